//! Histories as lanes over time: the chart, its drawing in a terminal, its page, and
//! `deposed show`, which makes them.

mod chart;
mod index;
mod lanes;
mod page;
mod show;

use std::{
    fs,
    path::{Path, PathBuf},
};

use deposed::{
    checkers::{
        history::{Event, Header},
        judge::judge,
        reader::Reader,
        verdict::Verdicts,
    },
    cli::{self, Suite},
    timeline::Chart,
};

/// A stale write that lands: `a` is paused, `b` takes over and fences, `a` writes.
const STORY: &str = r#"{"deposed":1,"workload":"made","lease":{"ttl":300000000}}
{"index":0,"time":0,"process":"a","type":"invoke","call":1,"f":"acquire","value":{"lease":"leader","holder":"a#1","request":1,"ttl":300000000}}
{"index":1,"time":10000000,"process":"store","type":"info","f":"granted","value":{"lease":"leader","holder":"a#1","request":1,"token":7,"ttl":300000000,"clock":10000000}}
{"index":2,"time":20000000,"process":"a","type":"ok","call":1,"f":"acquire","value":{"token":7}}
{"index":3,"time":20000000,"process":"a","type":"info","f":"lead","value":{"lease":"leader","holder":"a#1","token":7,"until":300000000,"sent":0}}
{"index":4,"time":200000000,"process":"nemesis","type":"info","f":"pause","value":{"target":"leader","node":"a","for":600000000}}
{"index":5,"time":390000000,"process":"b","type":"invoke","call":2,"f":"acquire","value":{"lease":"leader","holder":"b#1","request":1,"ttl":300000000}}
{"index":6,"time":395000000,"process":"store","type":"info","f":"granted","value":{"lease":"leader","holder":"b#1","request":1,"token":8,"ttl":300000000,"clock":395000000}}
{"index":7,"time":400000000,"process":"b","type":"ok","call":2,"f":"acquire","value":{"token":8}}
{"index":8,"time":400000000,"process":"b","type":"info","f":"lead","value":{"lease":"leader","holder":"b#1","token":8,"until":690000000,"sent":390000000}}
{"index":9,"time":410000000,"process":"b","type":"invoke","call":3,"f":"fence","value":{"lease":"leader","token":8}}
{"index":10,"time":450000000,"process":"storage","type":"info","f":"fenced","value":{"lease":"leader","token":8}}
{"index":11,"time":460000000,"process":"b","type":"ok","call":3,"f":"fence","value":null}
{"index":12,"time":800000000,"process":"nemesis","type":"info","f":"resume","value":{"node":"a"}}
{"index":13,"time":800000000,"process":"a","type":"info","f":"follow","value":{"lease":"leader","holder":"a#1","token":7}}
{"index":14,"time":810000000,"process":"a","type":"invoke","call":4,"f":"write","value":{"lease":"leader","token":7,"seq":1,"key":"x","value":40}}
{"index":15,"time":850000000,"process":"storage","type":"info","f":"applied","value":{"f":"write","lease":"leader","token":7,"seq":1,"key":"x","value":40}}
{"index":16,"time":860000000,"process":"a","type":"ok","call":4,"f":"write","value":null}
{"index":17,"time":999000000,"process":"b","type":"invoke","call":5,"f":"read","value":{"lease":"leader","token":8,"key":"x"}}
"#;

fn read(text: &str) -> (Header, Vec<Event>) {
    let (header, reader) = Reader::new(text.as_bytes(), "made").expect("a header");
    (
        header,
        reader.map(|event| event.expect("an event")).collect(),
    )
}

fn judged(text: &str) -> (Header, Vec<Event>, Verdicts) {
    let (header, events) = read(text);
    let verdicts = judge(&header, &events);
    (header, events, verdicts)
}

fn chart(text: &str) -> Chart {
    let (header, events, verdicts) = judged(text);
    Chart::of(&header, &events, verdicts)
}

/// A history of these events, each without its index, in lines of `time process f value`.
fn told(header: &str, lines: &[&str]) -> String {
    let mut text = format!("{header}\n");
    for (index, line) in lines.iter().enumerate() {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().expect("four words");
        let (time, process, f, value) = (word(), word(), word(), word());
        text += &format!(
            "{{\"index\":{index},\"time\":{time},\"process\":\"{process}\",\"type\":\"info\",\"f\":\"{f}\",\"value\":{value}}}\n"
        );
    }
    text
}

/// An empty directory of the test's own, with the history in it.
fn kept(name: &str, text: &str) -> (PathBuf, PathBuf) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("timeline-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("cargo's directory for tests can be written to");
    let file = dir.join("h.jsonl");
    fs::write(&file, text).expect("room");
    (dir, file)
}

/// Exit code, standard output, standard error of `deposed show`.
fn shown(file: &Path, options: &str) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let suite = Suite {
        workloads: Vec::new(),
        systems: Vec::new(),
    };
    let file = file.to_str().expect("a path in UTF-8");
    let args = ["deposed", "show", file]
        .into_iter()
        .chain(options.split_whitespace());
    let code = cli::run(&suite, args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (code, text(out), text(err))
}
