use std::io::Read;

use base64::{Engine, prelude::BASE64_STANDARD};
use deposed_checkers::{judge::judge, reader::Reader};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

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
    paged(&header, &events, limit)
}

/// A history's page, and what it carries.
fn paged(header: &Header, events: &[Event], limit: usize) -> (String, Value) {
    let verdicts = judge(header, events);
    let mut page = Page::new(header, "long", Selection::default());
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

/// Noise, which does not pack, in as many characters.
fn noise(seed: u64, characters: usize) -> String {
    let mut noise = seed;
    let words = std::iter::repeat_with(|| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{:08x}", noise >> 32)
    });
    words.take(characters / 8).collect()
}

/// The story, and after it these events.
fn story_and(lines: &[Value]) -> (Header, Vec<Event>) {
    let mut text = STORY.to_owned();
    lines.iter().for_each(|line| text += &format!("{line}\n"));
    let (header, reader) = Reader::new(text.as_bytes(), "made").expect("a header");
    (
        header,
        reader.map(|event| event.expect("an event")).collect(),
    )
}

#[test]
fn a_text_of_any_length_leaves_the_page_within_its_limit() {
    let (limit, huge) = (200_000, noise(1, 800_000));
    let event = |process: &str, kind: &str, f: &str, value: Value| json!({"index": 19, "time": 15_000_000_000_u64, "process": process, "type": kind, "f": f, "value": value});
    let write = |lease: &str, key: &str, value: &str| json!({"lease": lease, "token": 8, "seq": 9, "key": key, "value": value});
    let pause = |node: &str| json!({"node": node, "for": 1_000_000});
    let cases = [
        ("process", event(&huge, "info", "mood", json!(null))),
        ("f", event("a", "info", &huge, json!(null))),
        ("value", event("a", "info", "mood", json!(huge))),
        ("field", event("a", "info", "mood", json!({&*huge: huge}))),
        ("node", event("nemesis", "info", "pause", pause(&huge))),
        ("fault", event("nemesis", "info", &huge, json!(huge))),
        (
            "lease",
            event("a", "invoke", "write", write(&huge, "x", "y")),
        ),
        (
            "key",
            event("a", "invoke", "write", write("leader", &huge, "y")),
        ),
        (
            "written",
            event("a", "invoke", "write", write("leader", "x", &huge)),
        ),
        (
            "belief",
            event(
                "a",
                "info",
                "lead",
                json!({"lease": huge, "holder": huge, "token": 9, "until": 16_000_000_000_u64, "sent": 0}),
            ),
        ),
    ];
    for (what, line) in cases {
        let (header, events) = story_and(&[line]);
        let (page, chart) = paged(&header, &events, limit);
        assert!(page.len() <= limit, "{what}: {} bytes", page.len());
        let told = "; the JSON of 1 event is cut off (…), being too large for a page";
        assert!(page.contains(told), "{what}");
        // Nothing else gives way, and as much of it is there as of anything.
        assert!(!page.contains("left out"), "{what}");
        let json = chart["json"].as_str().expect("lines");
        let last = json.lines().last().expect("an event");
        assert!(
            last.starts_with("{\"index\":19,") && last.ends_with('…'),
            "{what}"
        );
        assert_eq!(last.chars().count(), 16_384, "{what}");
        let drawn = [
            &chart["lanes"],
            &chart["names"],
            &chart["spans"],
            &chart["said"],
        ];
        for drawn in drawn {
            assert!(drawn.to_string().len() < 4_000, "{what}: {drawn}");
        }
    }
}

#[test]
fn what_fits_is_all_there_however_large_it_is() {
    let huge = noise(1, 200_000);
    let line = json!({"index": 19, "time": 15_000_000_000_u64, "process": huge, "type": "info", "f": "mood", "value": huge});
    let (header, events) = story_and(&[line]);
    let (page, chart) = paged(&header, &events, PAGE_LIMIT);
    assert!(!page.contains("is cut off") && !page.contains("left out"));
    let json = chart["json"].as_str().expect("lines");
    assert_eq!(json.matches(&huge).count(), 2);
}

#[test]
fn a_page_of_more_processes_than_can_be_drawn_has_those_of_which_something_is_left() {
    let limit = 200_000;
    let lines = (0..3_000).map(|nth| {
        json!({"index": 19 + nth, "time": 15_000_000_000_u64 + nth, "process": noise(nth, 160), "type": "info", "f": noise(nth, 160), "value": null})
    });
    let (header, events) = story_and(&lines.collect::<Vec<_>>());
    let (page, chart) = paged(&header, &events, limit);
    assert!(page.len() <= limit, "{} bytes", page.len());
    let lanes = chart["lanes"].as_array().expect("lanes").len();
    let told = format!("in {lanes} lanes; ");
    assert!(page.contains(&told), "{lanes}");
    assert!((200..3_000).contains(&lanes), "{lanes}");
    // And each event is still in its own.
    let points = |field: &str| chart["points"][field].as_array().expect("a list").clone();
    let index = points("index")
        .iter()
        .scan(0, |sum, step| {
            *sum += step.as_u64().expect("a number");
            Some(*sum)
        })
        .collect::<Vec<_>>();
    for ((index, lane), f) in index.iter().zip(points("lane")).zip(points("f")) {
        let lane = &chart["lanes"][lane.as_u64().expect("a place") as usize][0];
        let name = &chart["names"][f.as_u64().expect("a place") as usize];
        let event = &events[*index as usize];
        let begins = |drawn: &Value, whole: &str| {
            whole.starts_with(drawn.as_str().expect("text").trim_end_matches('…'))
        };
        assert!(begins(lane, &event.process), "{index}: {lane}");
        assert!(
            begins(name, crate::timeline::name_of(&event.body)),
            "{index}: {name}"
        );
    }
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
