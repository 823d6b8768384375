//! A page out of its template, with a policy that lets its own script run and nothing else.

use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};

/// Text as HTML shows it.
pub(in crate::report) fn escaped(text: &str) -> String {
    html_escape::encode_safe(text).into_owned()
}

/// Fills a template: `style` and `script` as they are, the title escaped, and further parts
/// that are HTML already.
pub(in crate::report) fn page(
    template: &str,
    style: &str,
    script: &str,
    title: &str,
    parts: &[(&str, &str)],
) -> String {
    let source = |text: &str| match text {
        "" => "'none'".to_owned(),
        text => format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text))),
    };
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        source(style),
        source(script)
    );
    let title = escaped(title);
    let ours = [
        ("policy", &*policy),
        ("style", style),
        ("script", script),
        ("title", &title),
    ];
    let parts = || ours.iter().chain(parts);
    let mut filled = String::new();
    let mut rest = template;
    // In one pass: what is filled in is never read as a template.
    while let Some((before, after)) = rest.split_once("{{") {
        filled += before;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        filled += parts()
            .find(|(part, _)| *part == name)
            .map_or("", |(_, text)| text);
        rest = after;
    }
    filled + rest
}
