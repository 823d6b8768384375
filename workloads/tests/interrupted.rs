//! Ctrl-C: what was decided until then is told, and a second one ends a command at once.

#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

fn deposed(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_deposed"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// Whether it would survive a Ctrl-C.
fn catches_interrupts(process: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << 1 != 0)
}

fn interrupt(process: &mut Child) {
    while !catches_interrupts(process) {
        assert_eq!(process.try_wait().expect("its state"), None, "it goes on");
        std::thread::yield_now();
    }
    let kill = format!("kill -INT {}", process.id());
    let killed = Command::new("sh").args(["-c", &kill]).status();
    assert!(killed.expect("a shell").success());
}

/// What it says to whoever pressed Ctrl-C, as soon as it does.
fn first_complaint(process: &mut Child) -> String {
    let mut line = String::new();
    let err = process.stderr.as_mut().expect("a pipe");
    BufReader::new(err).read_line(&mut line).expect("a line");
    line
}

#[test]
fn a_search_that_is_interrupted_tells_what_was_covered_so_far() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interrupted");
    let out = out.to_str().expect("UTF-8");
    let endless = "prove --clients 4 --ttl 30 --in-flight 6 --max-memory 1GB --out";
    let args: Vec<&str> = endless.split(' ').chain([out]).collect();
    let mut search = deposed(&args);
    interrupt(&mut search);
    let ended = search.wait_with_output().expect("its end");
    let out = String::from_utf8(ended.stdout).expect("UTF-8");
    assert_eq!(ended.status.code(), Some(130), "{out}");
    assert!(out.starts_with("UNKNOWN  4 clients, ttl 30"), "{out}");
    assert!(
        out.contains(" states, ") && out.contains("then it was interrupted"),
        "{out}"
    );
    assert!(
        out.contains(", so far\n") && !out.contains("holds"),
        "{out}"
    );
}

const HEADER: &str = "{\"deposed\":1}\n";
/// Another token is fenced than the last.
const TABLE: &str = "process,type,f,value\n";

fn fenced(index: u64) -> String {
    format!(
        "{{\"index\":{index},\"time\":{index},\"process\":\"storage\",\"type\":\"info\",\
         \"f\":\"fenced\",\"value\":{{\"lease\":\"l\",\"token\":2}}}}\n"
    )
}

/// Below the token that storage has seen.
fn late(index: u64) -> String {
    format!(
        "{{\"index\":{index},\"time\":{index},\"process\":\"storage\",\"type\":\"info\",\
         \"f\":\"applied\",\"value\":{{\"f\":\"write\",\"lease\":\"l\",\"token\":1,\
         \"key\":\"x\",\"value\":7}}}}\n"
    )
}

/// An operation of a register, which begins or ends.
fn written(index: u64) -> String {
    let kind = ["invoke", "ok"][(index % 2) as usize];
    format!("a,{kind},write,{}\n", index / 2)
}

/// Judges a history that does not end before it is interrupted: what it begins with, and line
/// after line after that. Its exit code, and what it said.
fn judged_until_interrupted(
    args: &[&str],
    begins: String,
    line: fn(u64) -> String,
    first: u64,
) -> (Option<i32>, String) {
    let mut check = deposed(&[&["check", "-"], args].concat());
    let mut input = check.stdin.take().expect("a pipe");
    input.write_all(begins.as_bytes()).expect("it reads");
    interrupt(&mut check);
    let told = first_complaint(&mut check);
    assert!(told.contains("telling what is decided by now"), "{told}");
    let mut lines = (first..).map(line);
    while input
        .write_all(lines.next().expect("there is no end of them").as_bytes())
        .is_ok()
    {}
    let ended = check.wait_with_output().expect("its end");
    let out = String::from_utf8(ended.stdout).expect("UTF-8");
    (ended.status.code(), out)
}

#[test]
fn a_judgement_that_is_interrupted_tells_what_was_decided_so_far() {
    let (code, out) = judged_until_interrupted(&[], HEADER.to_owned() + &fenced(0), fenced, 1);
    assert_eq!(code, Some(130), "{out}");
    assert!(
        out.starts_with("unknown  -") && out.contains("interrupted before it was decided"),
        "{out}"
    );
    let begins = HEADER.to_owned() + &fenced(0) + &late(1);
    let (code, out) = judged_until_interrupted(&[], begins, fenced, 2);
    assert_eq!(code, Some(1), "what is wrong stays wrong: {out}");
    assert!(
        out.contains("storage-safety") && out.contains("interrupted before it was decided"),
        "{out}"
    );
    let table = ["--model", "register"];
    let (code, out) = judged_until_interrupted(&table, TABLE.to_owned(), written, 0);
    assert_eq!(code, Some(130), "another tool's: {out}");
    assert!(out.contains("interrupted before it was decided"), "{out}");
}

#[test]
fn a_second_ctrl_c_ends_a_judgement_at_once() {
    let mut check = deposed(&["check", "-"]);
    // It waits for what never comes.
    let mut input = check.stdin.take().expect("a pipe");
    input.write_all(HEADER.as_bytes()).expect("it reads");
    interrupt(&mut check);
    first_complaint(&mut check);
    interrupt(&mut check);
    let mut out = String::new();
    let mut reader = check.stdout.take().expect("a pipe");
    reader.read_to_string(&mut out).expect("UTF-8");
    let ended = check.wait().expect("its end");
    assert_eq!((ended.code(), &*out), (Some(130), ""));
    drop(input);
}
