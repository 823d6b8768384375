use std::fs;

use deposed::{
    checkers::writer::event_line,
    report::html::{PAGE_LIMIT, Page},
    timeline::selection::Selection,
};

use super::{STORY, judged, kept, shown, told};

fn page(text: &str) -> String {
    let (header, events, verdicts) = judged(text);
    let mut page = Page::new(&header, "h.jsonl", Selection::default());
    events.iter().for_each(|event| page.see(event));
    page.finish(verdicts).expect("no slip")
}

#[test]
fn a_page_is_one_file_that_loads_nothing() {
    let (dir, file) = kept("page", STORY);
    let out = dir.join("page.html");
    let (code, said, err) = shown(&file, &format!("--html {}", out.display()));
    assert_eq!((code, said.as_str(), err.as_str()), (0, "", ""));
    let page = fs::read_to_string(&out).expect("written");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for loads in [
        "http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "import(",
    ] {
        assert!(!page.contains(loads), "{loads}");
    }
    assert!(
        page.contains("default-src 'none'; style-src 'sha256-"),
        "a policy"
    );
    let (_, piped, _) = shown(&file, "--html -");
    assert_eq!(piped, page, "the same on standard output");
}

#[test]
fn text_of_a_hostile_history_is_nowhere_in_the_page_as_it_was() {
    const EVIL: &str = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{data}}\
                        '-->]]>\u{2028}javascript:alert(1)";
    let line = format!(r#"0 {} mood "{EVIL}""#, EVIL.replace(' ', "-"));
    let header = format!(
        r#"{{"deposed":1,"workload":"{EVIL}","seed":0,"schedule":[],"clocks":{{"{EVIL}":2}}}}"#
    );
    let text = told(&header, &[&line]);
    let page = page(&text);
    assert_eq!(
        page.matches("alert(1)").count(),
        6,
        "in the title and the heading"
    );
    assert_eq!(page.matches("<script").count(), 2, "the data and ours");
    assert!(!page.contains("<img"));
    assert!(
        page.contains("&lt;&#x2F;script&gt;&lt;script&gt;alert(1)"),
        "as text"
    );
    assert!(page.contains("{{data}}"), "a text is no template");
    assert!(!page.contains('\u{2028}') && !page.contains("'-->"));
}

/// A hundred thousand events, each unlike the others, with the violation among them.
fn long() -> String {
    let mut text = String::from("{\"deposed\":1}\n");
    let (_, story, _) = judged(STORY);
    let mut noise: u64 = 1;
    let mut push = |mut event: deposed::checkers::history::Event, index: u64, time: u64| {
        event.index = index;
        event.time = time;
        event.call = event.call.map(|call| call + 1_000_000);
        text += &event_line(&event);
        text.push('\n');
    };
    let mut index = 0;
    for event in &story {
        push(event.clone(), index, index * 1_000_000);
        index += 1;
    }
    while index < 100_000 {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let process = ["a", "b", "c"][(index / 2) as usize % 3];
        let kind = if index % 2 == 0 { "invoke" } else { "ok" };
        let value = match kind {
            "invoke" => format!(
                r#"{{"lease":"leader","token":8,"seq":{},"key":"k{}","value":{}}}"#,
                noise >> 48,
                noise >> 60,
                noise >> 20
            ),
            _ => "null".to_owned(),
        };
        let (call, time) = (index / 2, index * 1_000_000 + (noise >> 45));
        text += &format!(
            "{{\"index\":{index},\"time\":{time},\"process\":\"{process}\",\"type\":\"{kind}\",\"call\":{call},\"f\":\"write\",\"value\":{value}}}\n"
        );
        index += 1;
    }
    text
}

/// So many characters of noise, which does not pack.
fn noise(characters: usize) -> String {
    let mut noise: u64 = 1;
    let words = std::iter::repeat_with(|| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{noise:016x}")
    });
    words.take(characters / 16).collect()
}

#[test]
fn a_header_that_fits_in_no_page_is_left_out_and_told() {
    let field = noise(7_000_000);
    for name in ["of", "workload"] {
        let header = format!(r#"{{"deposed":1,"{name}":"{field}","schedule":[]}}"#);
        let (_, events) = STORY.split_once('\n').expect("lines");
        let page = page(&format!("{header}\n{events}"));
        assert!(page.len() <= PAGE_LIMIT, "{name}: {} bytes", page.len());
        let told = "18 events in 5 lanes; the header is left out, being too large for a page";
        assert!(page.contains(told), "{name}");
    }
    assert!(!page(STORY).contains("left out"));
}

#[test]
fn a_name_of_megabytes_leaves_a_page_of_at_most_five() {
    let name = noise(8_000_000);
    let line = format!("1000000000 {name} mood null");
    let page = page(&told(r#"{"deposed":1}"#, &["0 a mood null", &line]));
    assert!(page.len() <= PAGE_LIMIT, "{} bytes", page.len());
    assert!(page.contains("2 events in 2 lanes; the JSON of 1 event is cut off"));
}

#[test]
fn a_page_of_a_hundred_thousand_events_is_at_most_five_megabytes() {
    let page = page(&long());
    assert!(page.contains("100000 events"));
    assert!(page.len() <= PAGE_LIMIT, "{} bytes", page.len());
}
