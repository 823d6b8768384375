use std::io::Read;

use base64::{Engine, prelude::BASE64_STANDARD};
use deposed_checkers::{judge::judge, reader::Reader};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::{super::text::tests::STORY, *};

/// The story, and after it so many renewals, each by a client of its own.
fn long(renewals: u64) -> (Header, Vec<Event>) {
    let mut text = STORY.to_owned();
    for nth in 0..renewals {
        let time = 20_000_000_000 + nth * 1_000_000;
        for (at, kind) in [(2 * nth, "invoke"), (2 * nth + 1, "ok")] {
            let value = match kind {
                "invoke" => format!(
                    r#"{{"lease":"leader","holder":"h{nth}","try":{}}}"#,
                    nth * 7919
                ),
                _ => "null".to_owned(),
            };
            text += &format!(
                "{{\"index\":{},\"time\":{time},\"process\":\"c\",\"type\":\"{kind}\",\"call\":{},\"f\":\"renew\",\"value\":{value}}}\n",
                19 + at,
                100 + nth
            );
        }
    }
    let (header, reader) = Reader::new(text.as_bytes(), "long").expect("a header");
    (
        header,
        reader.map(|event| event.expect("an event")).collect(),
    )
}

fn page_within(limit: usize) -> (String, Value) {
    let (header, events) = long(2000);
    let verdicts = judge(&header, &events);
    let mut page = Page::new(&header, "long", Selection::default());
    events.iter().for_each(|event| page.see(event));
    let page = page.within(verdicts, limit).expect("no slip");
    let data = page.split_once("id=\"data\">").expect("a block").1;
    let data = BASE64_STANDARD.decode(data.split_once('<').expect("its end").0);
    let mut text = String::new();
    let packed = data.expect("base64");
    GzDecoder::new(&*packed)
        .read_to_string(&mut text)
        .expect("gzip");
    let chart = serde_json::from_str(&text).expect("JSON");
    (page, chart)
}

#[test]
fn what_does_not_fit_is_thinned_and_told_and_never_what_shows_the_violation() {
    let (whole, chart) = page_within(PAGE_LIMIT);
    assert_eq!(
        chart["points"]["index"].as_array().map(Vec::len),
        Some(4019)
    );
    assert!(!whole.contains("left out"));
    for limit in [whole.len() - 5_000, 40_000, 1] {
        let (page, chart) = page_within(limit);
        assert!(page.len() <= limit || limit == 1, "{limit}: {}", page.len());
        let points = chart["points"]["index"].as_array().map_or(0, Vec::len);
        assert!(points < 4019, "{limit}: {points}");
        let told = format!("; {} of them are left out", 4019 - points);
        assert!(page.contains(&told), "{limit}: {told}");
        let lines: Vec<&str> = chart["json"].as_str().expect("lines").split('\n').collect();
        let (header, events) = long(0);
        let verdicts = judge(&header, &events);
        for (check, evidence) in verdicts.violated() {
            let mut packed = chart["checks"].as_array().expect("checks").iter();
            let packed = packed.find(|packed| packed["check"] == check.name());
            let place = packed.and_then(|packed| packed["culprit"].as_u64());
            let line = lines[place.expect("it is in the page") as usize];
            let culprit = format!(r#"{{"index":{},"#, evidence.culprit);
            assert!(line.starts_with(&culprit), "{check}: {line}");
        }
    }
}
