//! What no history should be: each is read rightly or refused in a sentence, in bounded memory.

use std::io::{self, Read};

use deposed_checkers::history::Kind;
use deposed_checkers::import::{DEPTH_LIMIT, ENTRY_LIMIT, Entries, Format, Problem};

use super::{all_told, entries, read, refused};

/// A text whose middle is repeated many times over, which is never in memory.
struct Repeated {
    left: u64,
    part: &'static [u8],
}

impl Read for Repeated {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while self.left > 0 && filled + self.part.len() <= into.len() {
            into[filled..filled + self.part.len()].copy_from_slice(self.part);
            filled += self.part.len();
            self.left -= 1;
        }
        Ok(filled)
    }
}

fn gigabyte(part: &'static [u8]) -> Repeated {
    let left = (1 << 30) / part.len() as u64;
    Repeated { left, part }
}

#[test]
fn a_line_of_a_gigabyte_is_refused_early() {
    let edn = &b"[{:process 0, :type :info, :f :x, :value \""[..];
    let json = &b"[{\"process\":0,\"type\":\"info\",\"f\":\"x\",\"value\":\""[..];
    let csv = &b"process,type,f,value\n0,info,x,"[..];
    let log = &b"INFO jepsen.util - "[..];
    for (format, head, part, place) in [
        (Format::Edn, edn, &b"a"[..], "1:2"),
        (Format::Edn, &edn[..40], b"#_1 ", "1:2"),
        (Format::Edn, &edn[..40], b"a", "1:2"),
        (Format::Json, json, b"\\n", "1:2"),
        (Format::Csv, csv, b"a", "2:1"),
        (
            Format::Csv,
            &b"process,type,f,value\n0,info,x,\""[..],
            b"\n",
            "2:1",
        ),
        (Format::JepsenLog, log, b"a", "1:1"),
        (
            Format::Etcd,
            &b"{\"ClientId\":1,\"Input\":\""[..],
            b"a",
            "1:1",
        ),
    ] {
        let mut endless = gigabyte(part);
        let error = Entries::new(format, head.chain(&mut endless), "f").next();
        let said = error.unwrap().unwrap_err().to_string();
        let expected = format!(
            "f:{place}: the entry is longer than {ENTRY_LIMIT} bytes: no operation is; is this the \
             right file?"
        );
        assert_eq!(said, expected, "{format}");
        let taken = (1 << 30) - endless.left * part.len() as u64;
        assert!(
            taken < 2 * ENTRY_LIMIT as u64,
            "{format}: {taken} bytes were read"
        );
    }
}

#[test]
fn nesting_is_bounded() {
    for levels in [DEPTH_LIMIT - 2, 200, 1_000_000] {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        let edn = format!("{{:process 0 :type :info :f :x :value {open}1{close}}}");
        let json =
            format!("{{\"process\":0,\"type\":\"info\",\"f\":\"x\",\"value\":{open}1{close}}}");
        let log = format!("INFO jepsen.util - 0 :info :x {open}1{close}");
        let discards = format!("{{:process 0 :type :info :f :x}} {}1", "#_".repeat(levels));
        let tags = format!(
            "{{:process 0 :type :info :f :x :value {}1}}",
            "#a ".repeat(levels)
        );
        for (format, history) in [
            (Format::Edn, edn),
            (Format::Json, json),
            (Format::JepsenLog, log),
            (Format::Edn, tags),
            (Format::Edn, discards),
        ] {
            let is_deep = levels > DEPTH_LIMIT;
            let discards = history.ends_with("#_1");
            match read(format, history) {
                // As many discards as there are levels, and nothing to discard, is torn.
                Ok(read) => assert!(!is_deep && read.len() == 1, "{format} {levels}"),
                Err(error) if discards && !is_deep => {
                    assert!(matches!(error.problem, Problem::Torn), "{error}");
                }
                Err(error) => {
                    assert!(
                        is_deep && matches!(error.problem, Problem::TooDeep),
                        "{format} {levels}: {error}"
                    );
                }
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    let edn = b"[{:process 0 :type :info :f :x}\n {:process 0 :type :info :f :\xFF}]";
    let json = b"[{\"process\":0,\"type\":\"info\",\"f\":\"\xC3\xA9\xFF\"}]";
    let csv = b"process,type,f\n\xC3\xA9,info,\xFF\n";
    let log = b"INFO jepsen.util - 0 :info :\xC3\xA9\xFF";
    for (format, history, place) in [
        (Format::Edn, &edn[..], "2:30"),
        (Format::Json, json, "1:35"),
        (Format::Csv, csv, "2:8"),
        (Format::JepsenLog, log, "1:30"),
    ] {
        let said = format!("f:{place}: not UTF-8: a history is text; is this the right file?");
        assert_eq!(refused(format, history), said);
        let damaged: Vec<u8> = history
            .iter()
            .map(|b| if *b == 0xFF { 0 } else { *b })
            .collect();
        let said = refused(format, damaged);
        let ending =
            ": NUL bytes: the file was damaged, as by a crash while it was written; cut it here";
        assert!(said.ends_with(ending), "{format}: {said}");
    }
}

#[test]
fn a_file_that_was_cut_off_anywhere_is_never_read_as_whole() {
    let edn = "[{:process 0, :type :invoke, :f :write, :value \"é\"}\n {:process 0, :type :fail, :f :write, :value #{1 \\a}}]";
    let json = "[{\"process\":0,\"type\":\"invoke\",\"f\":\"write\",\"value\":\"é\"},\n{\"process\":0,\"type\":\"ok\",\"f\":\"write\"}]";
    for (format, whole) in [(Format::Edn, edn), (Format::Json, json)] {
        assert_eq!(entries(format, whole).len(), 2);
        for end in 1..whole.len() {
            let cut = &whole.as_bytes()[..end];
            assert!(
                read(format, cut).is_err(),
                "{format}: {:?}",
                String::from_utf8_lossy(cut)
            );
        }
    }
    assert_eq!(
        refused(
            Format::Edn,
            "{:process 0, :type :info, :f :x}\n{:process 0, :type"
        ),
        "f:2:1: the file ends in the middle of the entry that begins here: it was cut off; copy it again, whole"
    );
    assert_eq!(
        refused(Format::Edn, "[{:process 0, :type :info, :f :x}\n"),
        "f:2:1: the file ends, and ']' is missing: it was cut off; copy it again, whole"
    );
}

/// An operation: process, type, f.
fn edn(operations: &[(&str, &str, &str)]) -> String {
    let line = |(process, kind, f): &(&str, &str, &str)| {
        format!("{{:process {process} :type {kind} :f {f}}}\n")
    };
    operations.iter().map(line).collect()
}

#[test]
fn calls_are_paired_by_process() {
    let (begin, ok, info) = (":invoke", ":ok", ":info");
    for (operations, said) in [
        (
            vec![
                ("0", begin, ":read"),
                ("1", begin, ":read"),
                ("0", begin, ":write :value 1"),
            ],
            "3:1: process 0 begins a write, and its read of line 1 has not ended: a process does \
             one thing at a time; give each thread a name of its own",
        ),
        (
            vec![
                ("0", begin, ":read"),
                ("0", ok, ":read"),
                ("0", ok, ":read"),
            ],
            "3:1: process 0 ends a read that it never began: its invoke is missing",
        ),
        (
            vec![("0", begin, ":read"), ("0", ":fail", ":write")],
            "2:1: process 0 ends a write, and began a read on line 1",
        ),
        (
            vec![("0", ":done", ":x")],
            "1:1: field 'type': 'done' is none of invoke, ok, fail and info",
        ),
    ] {
        assert_eq!(refused(Format::Edn, edn(&operations)), format!("f:{said}"));
    }
    // An info that ends nothing is an observation; one that ends a call frees its process.
    let read = entries(
        Format::Edn,
        edn(&[
            (":nemesis", info, ":kill"),
            ("0", begin, ":read"),
            ("0", info, ":lead"),
            ("0", info, ":read"),
            ("0", begin, ":read"),
        ]),
    );
    assert_eq!(read.len(), 5);
    assert_eq!(read[4].kind, Kind::Invoke);
}

#[test]
fn indices_rise_and_times_need_not() {
    let line = |fields: &str| format!("{{:process 0 :type :info :f :x {fields}}}\n");
    let history = line(":index 3 :time 9") + &line(":time 5") + &line(":index 10 :time nil");
    let read = entries(Format::Edn, history);
    let told: Vec<_> = read.iter().map(|entry| (entry.index, entry.time)).collect();
    assert_eq!(told, [(3, Some(9)), (4, Some(5)), (10, None)]);
    for (fields, said) in [
        (
            ":index 3",
            "2:1: index 3 after 3: indices rise, and none stands twice",
        ),
        (
            ":index 2",
            "2:1: index 2 after 3: indices rise, and none stands twice",
        ),
        (
            ":index 9223372036854775808",
            "2:1: field 'index': 9223372036854775808 is no index: they are whole numbers from 0 to 9223372036854775807",
        ),
        (
            ":index -2",
            "2:1: field 'index': -2 is no index: they are whole numbers from 0 to 9223372036854775807",
        ),
        (
            ":time 1.5",
            "2:1: field 'time': 1.5 is no time: they are whole nanoseconds from 0 to 9223372036854775807, or -1 for none",
        ),
        (
            ":time 1e99",
            "2:1: field 'time': 1e99 is no time: they are whole nanoseconds from 0 to 9223372036854775807, or -1 for none",
        ),
    ] {
        let history = line(":index 3") + &line(fields);
        assert_eq!(refused(Format::Edn, history), format!("f:{said}"));
    }
    for (history, field) in [
        ("{:type :info :f :x}", "process"),
        ("{:process nil :type :info :f :x}", "process"),
        ("{:process 0 :f :x}", "type"),
        ("{:process 0 :type :info}", "f"),
    ] {
        let said = format!("f:1:1: field '{field}': missing; every operation has one");
        assert_eq!(refused(Format::Edn, history), said);
    }
    let said = "f:1:1: field 'process': [0] is neither a word nor a number";
    assert_eq!(
        refused(Format::Edn, "{:process [0] :type :info :f :x}"),
        said
    );
}

#[test]
fn a_million_processes_whose_calls_never_end_are_read() {
    let mut table = String::from("process,type,f\n");
    for process in 0..1_000_000 {
        table.push_str(&format!("{process},invoke,read\n"));
    }
    let read = Entries::new(Format::Csv, table.as_bytes(), "f");
    assert_eq!(
        read.map(Result::unwrap)
            .filter(|entry| entry.kind == Kind::Invoke)
            .count(),
        1_000_000
    );
}

#[test]
fn line_ends_and_a_mark_do_not_matter() {
    for (format, history) in [
        (
            Format::Edn,
            "[{:process 0 :type :info :f :x :value \"a\"}\n{:process 1 :type :info :f :x}]",
        ),
        (
            Format::Json,
            "[{\"process\":0,\"type\":\"info\",\"f\":\"x\"},\n{\"process\":1,\"type\":\"info\",\"f\":\"x\"}]",
        ),
        (Format::Csv, "process,type,f\n0,info,x\n1,info,x\n"),
        (
            Format::JepsenLog,
            "INFO jepsen.util - 0 :info :x nil\nINFO jepsen.util - 1 :info :x nil\n",
        ),
    ] {
        let plain = all_told(&entries(format, history));
        assert_eq!(plain.len(), 2);
        let windows = format!("\u{feff}{}", history.replace('\n', "\r\n"));
        assert_eq!(all_told(&entries(format, windows)), plain, "{format}");
    }
}
