//! What the reader takes, and the sentence with which it refuses the rest.

use std::io::{Read, Write};

use deposed_checkers::history::{Body, Event, Header};
use deposed_checkers::reader::{self, Problem, ReadError, Reader};

const HEADER: &str = r#"{"deposed":1}"#;
const FENCE: &str = r#"{"index":0,"time":5,"process":"a","type":"invoke","call":1,"f":"fence","value":{"lease":"l","token":1}}"#;

fn read(bytes: impl AsRef<[u8]>) -> Result<(Header, Vec<Event>), ReadError> {
    let (header, reader) = Reader::new(bytes.as_ref(), "file")?;
    Ok((header, reader.collect::<Result<_, _>>()?))
}

#[track_caller]
fn refused(bytes: impl AsRef<[u8]>, place: &str, words: &str) -> Problem {
    let error = read(bytes).expect_err("refused");
    let sentence = error.to_string();
    assert!(sentence.starts_with(&format!("{place}: ")), "{sentence}");
    assert!(sentence.contains(words), "{sentence}");
    error.problem
}

/// A line of index 0 with this type, f and value.
fn line(kind: &str, f: &str, value: &str) -> String {
    format!(
        "{HEADER}\n{{\"index\":0,\"time\":0,\"process\":\"a\",\"type\":\"{kind}\",\"f\":\"{f}\",\"value\":{value}}}\n"
    )
}

#[test]
fn good_histories_in_every_dress() {
    let plain = format!("{HEADER}\n{FENCE}\n");
    let (header, events) = read(&plain).unwrap();
    assert_eq!((header.deposed, events.len()), (1, 1));
    for dressed in [
        format!("{HEADER}\n{FENCE}"),
        format!("{HEADER}\r\n{FENCE}\r\n"),
        format!("\u{feff}{HEADER}\n{FENCE}\n"),
        format!(
            "{HEADER}\n{}\n",
            FENCE.replace("\"call\"", "\"more\":[{}],\"call\"")
        ),
        format!(
            "{HEADER}\n{}\n",
            FENCE.replace("\"token\"", "\"more\":18446744073709551616,\"token\"")
        ),
    ] {
        assert_eq!(
            read(&dressed).unwrap(),
            (header.clone(), events.clone()),
            "{dressed}"
        );
    }
    assert_eq!(read(HEADER).unwrap().1, []);
}

#[test]
fn gzip_is_told_by_its_first_bytes() {
    let folder = std::env::temp_dir().join(format!("deposed-reading-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("{HEADER}\n{FENCE}\n");
    let mut zipped = Vec::new();
    flate2::read::GzEncoder::new(text.as_bytes(), flate2::Compression::fast())
        .read_to_end(&mut zipped)
        .unwrap();
    for (name, bytes) in [("plain.gz", text.as_bytes()), ("zipped.jsonl", &zipped)] {
        let path = folder.join(name);
        std::fs::File::create(&path)
            .unwrap()
            .write_all(bytes)
            .unwrap();
        let (_, events) = reader::open(&path).unwrap();
        assert_eq!(events.map(Result::unwrap).count(), 1);
    }
    let torn = folder.join("torn.gz");
    std::fs::write(&torn, &zipped[..zipped.len() - 10]).unwrap();
    let found = reader::open(&torn).and_then(|(_, events)| events.collect::<Result<Vec<_>, _>>());
    assert!(matches!(found.unwrap_err().problem, Problem::TornGzip));
    let missing = reader::open(folder.join("missing")).err().unwrap();
    assert!(
        missing.to_string().contains("cannot be opened"),
        "{missing}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_no_history() {
    assert!(matches!(refused("", "file", "empty"), Problem::Empty));
    assert!(matches!(
        refused("\u{feff}", "file:1", "empty"),
        Problem::Empty
    ));
    for foreign in [
        "{}",
        "[]",
        "{:type :invoke}",
        "INFO jepsen",
        "\n",
        "1",
        r#"{"deposed":"x"}"#,
    ] {
        assert!(matches!(
            refused(foreign, "file:1", "not a deposed history"),
            Problem::NotAHistory
        ));
    }
    refused(b"\xff\xfe{", "file:1", "not UTF-8");
    refused([0; 64], "file:1", "NUL");
    refused(r#"{"deposed":2,"clocks":[]}"#, "file:1", "newer version");
    refused(r#"{"deposed":1,"clocks":[]}"#, "file:1", "field `clocks`");
    refused(
        r#"{"deposed":1,"seed":18446744073709551616}"#,
        "file:1",
        "past 64 bits",
    );
    refused(r#"{"deposed":1,"wor"#, "file:1", "torn");
    // A window of nothing would convict every leader.
    for drift in ["1000000000", "18446744073709551615"] {
        let header = format!(r#"{{"deposed":1,"lease":{{"ttl":5,"max_drift_ppb":{drift}}}}}"#);
        refused(
            header,
            "file:1",
            "field `max_drift_ppb`: a clock that is off by",
        );
    }
    read(r#"{"deposed":1,"lease":{"ttl":5,"max_drift_ppb":999999999}}"#).unwrap();
}

#[test]
fn damaged_lines() {
    let after = |rest: &str| format!("{HEADER}\n{FENCE}\n{rest}");
    refused(after(&FENCE[..40]), "file:3", "torn");
    let cut = "; mend or remove the line";
    refused(after(&FENCE[..40]) + "\n", "file:3", cut);
    refused(after("\n"), "file:3", "empty line");
    refused(after("\0\0\0"), "file:3", "NUL");
    refused(after("[1]\n"), "file:3", "not an event");
    let mut bytes = after("").into_bytes();
    bytes.extend(b"\xc3\x28\n");
    refused(&bytes, "file:3", "not UTF-8");
    bytes.truncate(bytes.len() - 2);
    refused(&bytes, "file:3", "torn");
    refused(
        after(&" ".repeat(reader::LINE_LIMIT + 1)),
        "file:3",
        "longer than",
    );
    let deep = "[".repeat(100_000);
    refused(line("info", "odd", &deep), "file:2", "not JSON");
}

#[test]
fn a_line_that_is_as_long_as_can_be() {
    let of = |length: usize, end: &str| {
        let bare = line("info", "odd", "\"\"").lines().last().unwrap().len();
        let text = "x".repeat(length - bare);
        let mut lines = line("info", "odd", &format!("\"{text}\""));
        lines.pop();
        lines + end
    };
    for end in ["\n", "\r\n"] {
        read(of(reader::LINE_LIMIT, end)).unwrap();
        refused(of(reader::LINE_LIMIT + 1, end), "file:2", "longer than");
    }
}

#[test]
fn digits_in_a_string_are_no_number() {
    let digits = "99999999999999999999";
    for value in [
        format!(r#""{digits}""#),
        format!(r#"{{"{digits}":"x"}}"#),
        format!(r#""x\"{digits}""#),
        format!(r#"["x\\","{digits}"]"#),
    ] {
        read(line("info", "odd", &value)).unwrap_or_else(|error| panic!("{value}: {error}"));
    }
    // After a string it is one.
    for string in ["x", r"xyz\\", r#"xyz\""#] {
        let value = format!(r#"["{string}",{digits}]"#);
        refused(line("info", "odd", &value), "file:2", "past 64 bits");
    }
}

#[test]
fn fields_that_do_not_fit() {
    for (from, to, words) in [
        ("\"index\":0", "\"index\":-1", "field `index`"),
        (
            "\"index\":0",
            "\"index\":18446744073709551616",
            "18446744073709551616 is past 64 bits",
        ),
        ("\"time\":5", "\"time\":\"5\"", "field `time`"),
        ("\"time\":5,", "", "missing field `time`"),
        ("\"process\":\"a\"", "\"process\":3", "field `process`"),
        ("\"invoke\"", "\"begin\"", "field `type`"),
        ("\"call\":1", "\"call\":1.5", "field `call`"),
        (
            "\"token\":1",
            "\"token\":\"1\"",
            "value of fence does not fit: field `token`",
        ),
        ("\"token\":1", "\"token\":-1", "field `token`"),
        (
            "\"token\":1",
            "\"token\":99999999999999999999",
            "past 64 bits",
        ),
        ("\"lease\":\"l\",", "", "missing field `lease`"),
        ("}}", "},\"error\":{\"kind\":4}}", "field `kind`"),
    ] {
        refused(
            format!("{HEADER}\n{}\n", FENCE.replace(from, to)),
            "file:2",
            words,
        );
    }
    refused(
        line("info", "lead", "null"),
        "file:2",
        "value of lead does not fit",
    );
    refused(
        line("info", "granted", "{}"),
        "file:2",
        "missing field `lease`",
    );
    refused(line("info", "recovered", "{}"), "file:2", "`leases`");
    refused(
        line("ok", "fenced", r#"{"lease":"l","token":1}"#),
        "file:2",
        "its type is info",
    );
    let past = r#"{"lease":"l","key":"x","value":{"a":["1",18446744073709551616]}}"#;
    refused(line("invoke", "write", past), "file:2", "past 64 bits");
    refused(
        line("info", "odd", "-9223372036854775809"),
        "file:2",
        "past 64 bits",
    );
    read(line(
        "info",
        "odd",
        "[18446744073709551615,-9223372036854775808,1e30]",
    ))
    .unwrap();
    let answer = format!(
        "{HEADER}\n{FENCE}\n{}\n",
        FENCE
            .replace("invoke", "ok")
            .replace("\"index\":0", "\"index\":1")
    );
    read(&answer).expect("an answer may echo its call");
    refused(
        answer.replace(
            "\"ok\",\"call\":1,\"f\":\"fence\",\"value\":{\"lease\":\"l\",\"token\":1}",
            "\"ok\",\"call\":1,\"f\":\"fence\",\"value\":7",
        ),
        "file:3",
        "value of fence",
    );
}

#[test]
fn lines_out_of_order_name_the_rule() {
    let twice = format!("{HEADER}\n{FENCE}\n{FENCE}\n");
    assert!(matches!(
        refused(&twice, "file:3", "index 0 comes again"),
        Problem::Malformed(_)
    ));
    let completion = FENCE.replace("invoke", "ok");
    refused(
        format!("{HEADER}\n{completion}\n"),
        "file:2",
        "its invoke is missing",
    );
}

/// Of a call that is misspelt nothing would be judged.
#[test]
fn a_call_that_is_not_known_is_refused() {
    for kind in ["invoke", "ok", "fail"] {
        let said = "wirte is no call that is known, which are acquire, renew, release, fence, \
                    write, delete, read; what nobody judges is recorded as info";
        refused(line(kind, "wirte", "{}"), "file:2", said);
    }
}

#[test]
fn what_is_not_known_is_kept() {
    let (_, events) = read(line("info", "odd", "[1]")).unwrap();
    assert!(matches!(&events[0].body, Body::Foreign(f, value) if f == "odd" && value[0] == 1));
}

#[test]
fn the_reader_ends_with_its_first_error() {
    let text = format!("{HEADER}\n{FENCE}\n{FENCE}\n{FENCE}\n");
    let (_, mut reader) = Reader::new(text.as_bytes(), "file").unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

/// Set `DEPOSED_CORPUS` to a folder of other tools' histories: each is refused
/// with a sentence.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "each is refused, in whatever order"
)]
fn other_tools_histories_are_refused() {
    let Some(corpus) = std::env::var_os("DEPOSED_CORPUS") else {
        println!("DEPOSED_CORPUS is not set: nothing to read");
        return;
    };
    let mut folders = vec![std::path::PathBuf::from(corpus)];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let error = reader::open(&path)
                .err()
                .unwrap_or_else(|| panic!("{path:?} is read"));
            assert!(matches!(error.problem, Problem::NotAHistory), "{error}");
            files += 1;
        }
    }
    assert!(files > 0, "the corpus is empty");
}
