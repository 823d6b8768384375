//! What `pause` does here is the writer's next step, so that no test waits for another thread.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
};

use clap::Parser;

use super::*;
use crate::cli::arguments::{Arguments, Command};

const HEADER: &str = "{\"deposed\":1}\n";
const FENCED: &str = r#"{"index":0,"time":1,"process":"storage","type":"info","f":"fenced","value":{"lease":"l","token":2}}
"#;
/// Below the token that storage has seen.
const LATE: &str = r#"{"index":1,"time":2,"process":"storage","type":"info","f":"applied","value":{"f":"write","lease":"l","token":1,"key":"x","value":7}}
"#;
const FENCED_AGAIN: &str = r#"{"index":1,"time":2,"process":"storage","type":"info","f":"fenced","value":{"lease":"l","token":3}}
"#;

/// A file of this test's own, as others run beside it.
fn place(name: &str) -> PathBuf {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default().replace("::", "-");
    let dir = std::env::temp_dir().join(format!("deposed-follow-{}", std::process::id()));
    dir.join(test).join(name)
}

/// The same, which is not there yet.
fn scratch(name: &str) -> PathBuf {
    let path = place(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    path
}

fn append(path: &Path, text: &str) {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

/// What `deposed check --follow` is given beside its file.
fn asked(options: &str) -> CheckArgs {
    let words = ["deposed", "check", "--follow", "FILE"];
    let all = words.into_iter().chain(options.split_whitespace());
    match Arguments::try_parse_from(all).unwrap().command {
        Command::Check(args) => args,
        _ => unreachable!("that is its name"),
    }
}

/// A step of the writer, taken when all before it was read.
type Step<'a> = &'a dyn Fn(&Path);

/// Follows a file that begins like this while these steps are taken; and how many were.
fn while_written(name: &str, begins: &str, steps: &[Step<'_>]) -> (Result<Judged, Halt>, usize) {
    asked_while_written("", name, begins, steps)
}

/// The same with options.
fn asked_while_written(
    options: &str,
    name: &str,
    begins: &str,
    steps: &[Step<'_>],
) -> (Result<Judged, Halt>, usize) {
    let path = scratch(name);
    append(&path, begins);
    let mut taken = 0;
    let judged = followed(&path, &asked(options), &[], || match steps.get(taken) {
        Some(step) => {
            step(&path);
            taken += 1;
            None
        }
        None => Some(End::Enough),
    });
    (judged, taken)
}

#[track_caller]
fn refused(judged: Result<Judged, Halt>, says: &str) {
    match judged {
        Err(Halt::BadInput(sentence)) => assert!(sentence.contains(says), "{sentence}"),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it is judged"),
    }
}

#[test]
fn it_ends_at_the_first_violation_that_is_certain() {
    let late: Step<'_> = &|path| append(path, LATE);
    let never: Step<'_> = &|_| panic!("nothing more is waited for");
    let (judged, taken) = while_written("late", &(HEADER.to_owned() + FENCED), &[late, never]);
    assert_eq!(judged.unwrap().exit(), Exit::Violated);
    assert_eq!(taken, 1);
}

#[test]
fn what_comes_in_pieces_is_one_line() {
    // In the middle of the header, of a word, and before the line feed.
    let header: Step<'_> = &|path| append(path, &HEADER[5..]);
    let half: Step<'_> = &|path| append(path, &FENCED[..40]);
    let rest: Step<'_> = &|path| append(path, FENCED[40..].trim_end());
    let end: Step<'_> = &|path| append(path, "\n");
    let more: Step<'_> = &|path| append(path, LATE);
    let steps = [header, half, rest, end, more];
    let (judged, taken) = while_written("pieces", &HEADER[..5], &steps);
    assert_eq!(judged.unwrap().exit(), Exit::Violated);
    assert_eq!(taken, steps.len());
}

#[test]
fn enough_is_a_verdict_on_the_whole_lines_that_are_there() {
    let torn: Step<'_> = &|path| append(path, &FENCED_AGAIN[..50]);
    let (judged, _) = while_written("enough", &(HEADER.to_owned() + FENCED), &[torn]);
    assert_eq!(judged.unwrap().exit(), Exit::Valid);

    let (judged, _) = while_written("no-events", HEADER, &[]);
    assert_eq!(judged.unwrap().exit(), Exit::Unknown);
    let (judged, _) = while_written("nothing", "", &[]);
    refused(judged, "the file is empty");
}

#[test]
fn a_file_that_is_no_longer_the_same_is_refused() {
    let text = HEADER.to_owned() + FENCED;
    let truncate: Step<'_> = &|path| fs::write(path, HEADER).unwrap();
    let (judged, _) = while_written("truncated", &text, &[truncate]);
    refused(judged, "truncated while it was followed");

    let rotate: Step<'_> = &|path| {
        fs::rename(path, path.with_extension("1")).unwrap();
        append(path, HEADER);
    };
    let (judged, _) = while_written("rotated", &text, &[rotate]);
    refused(judged, "moved, removed or replaced while it was followed");

    let remove: Step<'_> = &|path| fs::remove_file(path).unwrap();
    let (judged, _) = while_written("removed", &text, &[remove]);
    refused(judged, "moved, removed or replaced while it was followed");
}

#[test]
fn what_was_written_before_a_file_was_moved_is_judged() {
    let rotate: Step<'_> = &|path| {
        append(path, LATE);
        fs::rename(path, path.with_extension("1")).unwrap();
    };
    let (judged, _) = while_written("late-rotation", &(HEADER.to_owned() + FENCED), &[rotate]);
    assert_eq!(judged.unwrap().exit(), Exit::Violated);
}

#[test]
fn gzipped_is_refused() {
    let path = scratch("gzipped");
    fs::write(&path, [0x1f, 0x8b, 8, 0]).unwrap();
    let judged = followed(&path, &asked(""), &[], || panic!("it is told at once"));
    refused(judged, "it is gzipped");
}

#[test]
fn a_broken_line_is_told_with_its_place() {
    let broken: Step<'_> = &|path| append(path, "{\"index\":7}\n");
    let (judged, _) = while_written("broken", &(HEADER.to_owned() + FENCED), &[broken]);
    refused(judged, "broken:3: not an event");
}

/// A FIFO is opened before anybody writes to it, and ends with its writer.
#[test]
fn a_fifo_is_followed_to_its_writers_end() {
    let path = scratch("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let mut writer = None;
    let mut step = 0;
    let judged = followed(&path, &asked(""), &[], || {
        step += 1;
        match step {
            // Nobody has opened it for writing: that is no end.
            1 => {}
            2 => writer = Some(OpenOptions::new().write(true).open(&path).unwrap()),
            3 => writer
                .as_mut()
                .unwrap()
                .write_all(HEADER.as_bytes())
                .unwrap(),
            4 => writer
                .as_mut()
                .unwrap()
                .write_all(FENCED.as_bytes())
                .unwrap(),
            5 => drop(writer.take()),
            _ => panic!("the writer is done"),
        }
        None
    });
    assert_eq!(judged.unwrap().exit(), Exit::Valid);
    assert_eq!(step, 5);
}

/// A writer that dies in the middle of a line leaves one that nobody will finish.
#[test]
fn a_pipe_that_ends_in_the_middle_of_a_line_is_torn() {
    let (reads, writes) = io::pipe().unwrap();
    let (path, end) = (Path::new("pipe"), Rc::new(OnceCell::new()));
    let mut writes = Some(writes);
    let tail = Tail {
        path,
        input: Input::Pipe(File::from(std::os::fd::OwnedFd::from(reads))),
        position: 0,
        pause: || {
            let mut writer = writes.take().expect("asked once");
            writer
                .write_all((HEADER.to_owned() + &FENCED[..50]).as_bytes())
                .unwrap();
            None
        },
        end: Rc::clone(&end),
    };
    let (_, events) = Reader::new(BufReader::new(tail), "pipe").unwrap();
    let read: Result<Vec<_>, _> = events.collect();
    assert!(matches!(read.unwrap_err().problem, Problem::Torn));
    assert_eq!(end.get(), Some(&End::Written));
}

/// A register in each format that streams: 1 is written, and the read that begins last is
/// answered with the 2 that nobody wrote.
const READ_UNWRITTEN: [(&str, &str, &str); 6] = [
    (
        "lines.edn",
        "{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :ok :f :write :value 1}\n\
         {:process 1 :type :invoke :f :read :value nil}\n",
        "{:process 1 :type :ok :f :read :value 2}\n",
    ),
    (
        "vector.edn",
        "[{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :ok :f :write :value 1}\n\
         {:process 1 :type :invoke :f :read :value nil}",
        "\n{:process 1 :type :ok :f :read :value 2}",
    ),
    (
        "lines.json",
        "{\"process\":0,\"type\":\"invoke\",\"f\":\"write\",\"value\":1}\n\
         {\"process\":0,\"type\":\"ok\",\"f\":\"write\",\"value\":1}\n\
         {\"process\":1,\"type\":\"invoke\",\"f\":\"read\",\"value\":null}\n",
        "{\"process\":1,\"type\":\"ok\",\"f\":\"read\",\"value\":2}\n",
    ),
    (
        "array.json",
        "[{\"process\":0,\"type\":\"invoke\",\"f\":\"write\",\"value\":1},\n\
         {\"process\":0,\"type\":\"ok\",\"f\":\"write\",\"value\":1},\n\
         {\"process\":1,\"type\":\"invoke\",\"f\":\"read\",\"value\":null}",
        ",\n{\"process\":1,\"type\":\"ok\",\"f\":\"read\",\"value\":2}",
    ),
    (
        "jepsen.log",
        "INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:ok\t:write\t1\n\
         INFO  jepsen.util - 1\t:invoke\t:read\tnil\n",
        "INFO  jepsen.util - 1\t:ok\t:read\t2\n",
    ),
    (
        "table.csv",
        "Process,Type,F,Value\n0,invoke,write,1\n0,ok,write,1\n1,invoke,read,\n",
        "1,ok,read,2\n",
    ),
];

#[test]
fn another_tools_ends_at_the_first_violation_that_is_certain() {
    for (name, begins, last) in READ_UNWRITTEN {
        let last: Step<'_> = &|path| append(path, last);
        let never: Step<'_> = &|_| panic!("nothing more is waited for");
        let (judged, taken) = asked_while_written("--model register", name, begins, &[last, never]);
        let judged = judged.unwrap_or_else(|halt| panic!("{name}: {halt:?}"));
        assert_eq!((judged.exit(), taken), (Exit::Violated, 1), "{name}");
        let told = judged.told(&scratch("gone"), &asked("")).unwrap();
        assert!(told.contains("  4 entries, "), "{told}");
    }
    let begins = "process,type,f,token\na,invoke,acquire,\na,ok,acquire,5\nb,invoke,acquire,\n\
                  b,ok,acquire,6\nb,invoke,fence,6\nb,ok,fence,6\na,invoke,fence,5\n";
    let last: Step<'_> = &|path| append(path, "a,ok,fence,5\n");
    let never: Step<'_> = &|_| panic!("nothing more is waited for");
    let (judged, taken) = asked_while_written("", "lease.csv", begins, &[last, never]);
    assert_eq!((judged.unwrap().exit(), taken), (Exit::Violated, 1));
}

/// What is half written when time is up is left out, wherever it is cut; what a pipe's
/// writer leaves half written is torn.
#[test]
fn of_another_tools_enough_is_a_verdict_on_the_whole_entries() {
    for (name, begins, last) in READ_UNWRITTEN {
        for cut in 1..last.trim_end().len() {
            let half: Step<'_> = &|path| append(path, &last[..cut]);
            let (judged, _) = asked_while_written("--model register", name, begins, &[half]);
            let judged = judged.unwrap_or_else(|halt| panic!("{name} {cut}: {halt:?}"));
            let told = judged.told(&scratch("gone"), &asked("")).unwrap();
            assert!(told.contains("  3 entries, "), "{name} {cut}: {told}");
        }
    }
}

/// The evidence is read again from a file that goes on meanwhile.
#[test]
fn the_evidence_of_another_tools_is_shown_though_its_next_line_is_half_written() {
    let (name, begins, last) = READ_UNWRITTEN[0];
    let last: Step<'_> = &|path| append(path, &(last.to_owned() + "{:process 1 :type :inv"));
    let (judged, _) = asked_while_written("--model register", name, begins, &[last]);
    let told = judged.unwrap().told(&place(name), &asked("")).unwrap();
    assert!(told.contains("> 4:1  1  ok     read 2"), "{told}");
}

#[test]
fn what_cannot_be_followed_says_what_to_do() {
    let etcd = "{\"ClientId\":1,\"Input\":{\"Type\":\"range\"},\"Call\":1}\n";
    let (judged, _) = while_written("etcd", etcd, &[]);
    refused(judged, "check it without --follow then");
    let own = HEADER.to_owned() + FENCED;
    let (judged, _) = asked_while_written("--model kv", "own-kv", &own, &[]);
    refused(judged, "leave --model out");
    let (judged, _) = asked_while_written("--lease ttl=1s", "own-lease", &own, &[]);
    refused(judged, "leave --lease out");
    let (judged, _) = while_written("unknown", "hello\n", &[]);
    refused(judged, "is named with --format");
    let never = || panic!("it is told at once");
    let missing = followed(&scratch("missing"), &asked(""), &[], never);
    refused(
        missing,
        "is not there yet: follow it once its writer has begun it",
    );
    let folder = followed(&std::env::temp_dir(), &asked(""), &[], never);
    refused(folder, "a folder cannot be followed");
}
