//! Other tools' histories on the command line: what is said of them, and with which code.

use std::fs;

use super::{deposed, refuses, scratch};

const STALE: &str = "[{:process 0, :type :invoke, :f :write, :value 1}\n \
                     {:process 0, :type :ok, :f :write, :value 1}\n \
                     {:process 1, :type :invoke, :f :cas, :value [1 2]}\n \
                     {:process 1, :type :ok, :f :cas, :value [1 2]}\n \
                     {:process 2, :type :invoke, :f :read, :value nil}\n \
                     {:process 2, :type :ok, :f :read, :value 1}]\n";

const LATE: &str = "process,type,f,token,key,value\na,invoke,acquire,,,\na,ok,acquire,1,,\n\
                    b,invoke,acquire,,,\nb,ok,acquire,2,,\nb,invoke,fence,2,,\nb,ok,fence,2,,\n\
                    a,invoke,write,1,x,9\na,ok,write,1,x,9\n";

#[test]
fn a_foreign_history_is_judged_by_what_it_is() {
    let dir = scratch("foreign");
    fs::write(dir.join("stale.edn"), STALE).expect("it can be written");
    let (code, out, err) = deposed(&dir, "check DIR/stale.edn");
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    for part in [
        "FAILED  DIR/stale.edn  6 entries, edn as cas-register\n",
        "\n  register-linearizable: ",
        " 6:2  2  ok     read 1",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(
        !out.contains("not claimed"),
        "what no register has is not told: {out}"
    );

    fs::write(
        dir.join("fine.edn"),
        STALE.replace(":read, :value 1", ":read, :value 2"),
    )
    .expect("it can be written");
    let (code, out, _) = deposed(&dir, "check DIR/fine.edn");
    assert_eq!(code, 0, "{out}");
    assert!(
        out.starts_with("valid  DIR/fine.edn  6 entries, edn as cas-register\n"),
        "{out}"
    );

    let (code, out, _) = deposed(&dir, "check --json DIR/stale.edn");
    let object: serde_json::Value = serde_json::from_str(&out).expect("one object");
    assert_eq!(
        (code, &object["format"], &object["model"]),
        (1, &"edn".into(), &"cas-register".into())
    );
    assert_eq!(object["verdict"], "violated");
}

#[test]
fn the_lease_checks_run_on_a_table() {
    let dir = scratch("foreign-lease");
    fs::write(dir.join("late.csv"), LATE).expect("it can be written");
    let (code, out, _) = deposed(&dir, "check DIR/late.csv");
    assert_eq!(code, 1);
    for part in [
        "FAILED  DIR/late.csv  8 entries, csv as lease\n",
        "  storage-safety: a write with token 1",
        "> 9:1  a  ok     write \"x\" 9 @1",
        "expected: refused, storage had seen 2",
        "lock-delay not claimed: no lock-delay in the header",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (code, out, _) = deposed(&dir, "check DIR/late.csv --only lock-delay");
    assert_eq!(code, 3, "asked for by name it is not claimed: {out}");
    let (code, out, _) = deposed(&dir, "check DIR/late.csv --only token-monotonicity");
    assert_eq!(code, 0, "{out}");
}

#[test]
fn what_a_history_is_can_be_named() {
    let dir = scratch("foreign-named");
    let locks = "{:process 0 :type :invoke :f :acquire}\n{:process 0 :type :ok :f :acquire}\n\
                 {:process 1 :type :invoke :f :release}\n{:process 1 :type :ok :f :release}\n";
    fs::write(dir.join("locks"), locks).expect("it can be written");
    let (code, out, _) = deposed(&dir, "check DIR/locks");
    assert_eq!(code, 0, "anybody may release a mutex: {out}");
    let (code, out, _) = deposed(&dir, "check DIR/locks --format edn --model owned-mutex");
    assert_eq!(code, 1, "only its holder one that is owned: {out}");
    refuses(
        &dir,
        "check DIR/locks --format json",
        "DIR/locks:1:2: not JSON: key must be a string",
    );
    refuses(
        &dir,
        "check DIR/locks --format deposed",
        "DIR/locks:1: not a deposed history",
    );
    refuses(
        &dir,
        "check DIR/locks --format end",
        "[possible values: deposed, edn, json, jepsen-log, etcd, csv]",
    );
    refuses(
        &dir,
        "check DIR/locks --model lock",
        "[possible values: lease, mutex, owned-mutex",
    );
    // A model that its operations do not fit.
    refuses(&dir, "check DIR/locks --model kv", "DIR/locks:1:1: ");
    refuses(
        &dir,
        "show DIR/locks",
        "Another tool's history is judged by `deposed check`, and by nothing else",
    );
    let ours = r#"{"deposed":1}
{"index":0,"time":0,"process":"a","type":"info","f":"mood","value":1}
"#;
    fs::write(dir.join("ours.jsonl"), ours).expect("it can be written");
    assert_eq!(deposed(&dir, "check DIR/ours.jsonl --model lease").0, 0);
    refuses(
        &dir,
        "check DIR/ours.jsonl --model kv",
        "DIR/ours.jsonl: one of deposed's own histories, which are of leases, and no kv; leave --model out",
    );
}

#[test]
fn what_cannot_be_judged_is_told_in_a_sentence() {
    let dir = scratch("foreign-bad");
    for (name, text, says) in [
        (
            "torn",
            &STALE[..120],
            "DIR/torn:3:2: the file ends in the middle of the entry that begins here",
        ),
        (
            "add",
            "{:process 0 :type :invoke :f :add :value 1}",
            "DIR/add:1:1: add is an operation of no model",
        ),
        (
            "other",
            "hello\n",
            "Another tool's that does not begin like one is named with --format (edn, json, jepsen-log, etcd, csv)",
        ),
        (
            "nemesis",
            "{:process :nemesis :type :info :f :kill}",
            "DIR/nemesis: no operation among the first lines tells a model",
        ),
    ] {
        fs::write(dir.join(name), text).expect("it can be written");
        for command in ["check", "check --json"] {
            let (code, out, err) = deposed(&dir, &format!("{command} DIR/{name}"));
            assert_eq!((code, out.as_str()), (2, ""), "{command} {name}: {err}");
            assert!(err.contains(says), "{command} {name}: {err}");
            assert_eq!(err.trim_end().lines().count(), 1, "{err}");
        }
    }
    fs::write(dir.join("empty.edn"), "[]").expect("it can be written");
    let (code, out, _) = deposed(&dir, "check DIR/empty.edn --model kv");
    assert_eq!(code, 3, "nothing happened: {out}");
    assert!(out.contains("holds no events"), "{out}");
}

#[test]
fn the_help_of_check_lists_formats_and_models() {
    let dir = scratch("foreign-help");
    let (code, out, _) = deposed(&dir, "check --help");
    assert_eq!(code, 0);
    for format in deposed::checkers::import::Format::ALL {
        assert!(
            out.contains(&format!("\n  {:<14}", format.name())),
            "{format}: {out}"
        );
    }
    for model in deposed::checkers::model::Model::ALL {
        let line = out
            .lines()
            .find(|line| line.starts_with(&format!("  {:<14}", model.name())));
        let line = line.unwrap_or_else(|| panic!("{model}: {out}"));
        // Those of locks are told once, and then the difference.
        let same = line.contains("the same");
        assert!(
            same || model.operations().iter().all(|f| line.contains(f)),
            "{line}"
        );
    }
}

/// A table cannot tell how long a lease lasts, so whoever knows it does.
#[test]
fn the_timing_of_a_lease_can_be_told() {
    let dir = scratch("foreign-timing");
    let early = "time,process,type,f,token\n0,a,invoke,acquire,\n5000000,a,ok,acquire,3\n\
                 7000000000,b,invoke,acquire,\n7010000000,b,ok,acquire,4\n";
    fs::write(dir.join("early.csv"), early).expect("it can be written");
    let (code, out, _) = deposed(&dir, "check DIR/early.csv");
    assert_eq!(code, 1, "a lock does not run out: {out}");
    assert!(out.contains("--model lease"), "but a lease does: {out}");
    let (code, out, _) = deposed(&dir, "check DIR/early.csv --model lease");
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains("--lease ttl="),
        "it says how more is judged: {out}"
    );

    let (code, out, _) = deposed(&dir, "check DIR/early.csv --lease ttl=15s,drift=1%");
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("\n  lease-linearizable: "), "{out}");
    assert!(!out.contains("--lease"), "{out}");
    let (code, out, _) = deposed(&dir, "check DIR/early.csv --lease ttl=5s,drift=1%");
    assert_eq!(code, 0, "{out}");
    let asked = "check DIR/early.csv --lease ttl=5s,lock-delay=3s --only lock-delay";
    let (code, out, _) = deposed(&dir, asked);
    assert_eq!(code, 1, "{out}");

    let back = early.replace("7010000000", "6000000000");
    fs::write(dir.join("back.csv"), back).expect("it can be written");
    let asked = "check DIR/back.csv --lease ttl=15s";
    refuses(
        &dir,
        asked,
        "back.csv:5:1: field 'time': 6000000000 is earlier than 7000000000",
    );
    fs::write(dir.join("late.csv"), LATE).expect("it can be written");
    refuses(
        &dir,
        "check DIR/late.csv --lease ttl=15s",
        "field 'time': missing",
    );
    refuses(
        &dir,
        "check DIR/late.csv --lease drift=1%",
        "a lease has a ttl: ttl=15s",
    );
    fs::write(dir.join("stale.edn"), STALE).expect("it can be written");
    refuses(
        &dir,
        "check DIR/stale.edn --model cas-register --lease ttl=15s",
        "leave --lease out",
    );
}

/// By a timing that leaves nobody time to lead in, whatever happens would be valid.
#[test]
fn a_timing_that_empties_the_checks_is_refused() {
    let dir = scratch("foreign-emptied");
    for (timing, says) in [
        ("ttl=1s,margin=2s", "leave nothing of the ttl to lead in"),
        ("ttl=1s,margin=1s", "leave nothing of the ttl to lead in"),
        ("ttl=1s,ttl=1ms", "ttl is given twice; give it once"),
        (
            "ttl=1s,drift=200%",
            "a clock that is off by 200% may stand still",
        ),
    ] {
        refuses(&dir, &format!("check --lease {timing} DIR/a"), says);
    }
    let one = "time,process,type,f,token\n0,a,invoke,acquire,\n5000000000,a,ok,acquire,3\n";
    fs::write(dir.join("one.csv"), one).expect("it can be written");
    let zeros = "check --lease ttl=15s,margin=0s,lock-delay=0s,drift=0% DIR/one.csv";
    let (code, out, err) = deposed(&dir, zeros);
    assert_eq!(
        (code, err.as_str()),
        (0, ""),
        "as they are when left out: {out}"
    );
}

/// Milliseconds that are read as nanoseconds make a grant of 20 s later one of 20 us.
#[test]
fn times_in_another_unit_convict_nobody() {
    let dir = scratch("foreign-unit");
    let table = |begin: u64| {
        let time = |later: u64| begin + later;
        format!(
            "time,process,type,f,token\n{},a,invoke,acquire,\n{},a,ok,acquire,7\n\
             {},b,invoke,acquire,\n{},b,ok,acquire,8\n",
            time(0),
            time(5),
            time(20_500),
            time(20_513)
        )
    };
    fs::write(dir.join("epoch.csv"), table(1_700_000_000_000)).expect("it can be written");
    fs::write(dir.join("start.csv"), table(0)).expect("it can be written");
    refuses(
        &dir,
        "check --lease ttl=15s DIR/epoch.csv",
        "its times are read as nanoseconds, and look like milliseconds since 1970: say --time-unit ms",
    );
    let (code, out, _) = deposed(&dir, "check --lease ttl=15s DIR/start.csv");
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("all of it is within 20.513us"), "{out}");
    for file in ["epoch", "start"] {
        let asked = format!("check --lease ttl=15s --time-unit ms DIR/{file}.csv");
        let (code, out, err) = deposed(&dir, &asked);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(!out.contains("--time-unit"), "{out}");
    }
    // Of ttls that are longer than that it is the same.
    let longer = "check --lease ttl=30s --time-unit ms DIR/epoch.csv";
    assert_eq!(deposed(&dir, longer).0, 1);
    refuses(
        &dir,
        "check --lease ttl=15s --time-unit s DIR/epoch.csv",
        "epoch.csv:2:1: field 'time': 1700000000000 seconds are more than can be counted",
    );
}

/// What is wrong with a value is told of the value, though it begins like an option.
#[test]
fn a_value_that_begins_with_a_hyphen_is_no_option() {
    let dir = scratch("foreign-hyphen");
    for (options, says) in [
        (
            "--for -1s",
            "invalid value '-1s' for '--for <TIME>': give a number and a unit",
        ),
        (
            "--max-memory -1MB",
            "invalid value '-1MB' for '--max-memory <SIZE>'",
        ),
        (
            "--max-steps -3",
            "invalid value '-3' for '--max-steps <N>': give a whole number",
        ),
        (
            "--lease -ttl",
            "invalid value '-ttl' for '--lease <TIMING>'",
        ),
        (
            "--lease ttl=1s,drift=100%",
            "a clock that is off by 100% may stand still",
        ),
        // A name that is left out is none.
        ("--only --json", "a value is required for '--only <CHECK>'"),
    ] {
        refuses(&dir, &format!("check {options} DIR/a"), says);
    }
    refuses(&dir, "replay gc-pause -1", "invalid value '-1'");
}

/// What a model has nothing to do with is in neither of the two.
#[test]
fn text_and_json_tell_the_same_checks() {
    let dir = scratch("foreign-same");
    fs::write(dir.join("stale.edn"), STALE).expect("it can be written");
    let (_, out, _) = deposed(&dir, "check --json DIR/stale.edn");
    let object: serde_json::Value = serde_json::from_str(&out).expect("one object");
    let checks = object["checks"].as_array().expect("a list");
    let told: Vec<_> = checks.iter().map(|check| &check["check"]).collect();
    assert_eq!(told, ["well-formed", "register-linearizable"]);
}

/// Too little memory or work is unknown, and the option that gives more is named.
#[test]
fn a_budget_is_an_option() {
    let dir = scratch("foreign-budget");
    fs::write(dir.join("stale.edn"), STALE).expect("it can be written");
    let (code, out, _) = deposed(&dir, "check DIR/stale.edn --max-steps 1");
    assert_eq!(code, 3, "{out}");
    assert!(
        out.contains("1 steps were not enough: give more (--max-steps)"),
        "{out}"
    );
    let open: String = (0..2_000)
        .map(|at| format!("p{at},invoke,acquire\n"))
        .collect();
    fs::write(dir.join("open.csv"), format!("process,type,f\n{open}")).expect("it can be written");
    for model in ["mutex", "owned-mutex", "lease"] {
        let asked = format!("check DIR/open.csv --max-memory 1MB --model {model}");
        let (code, out, _) = deposed(&dir, &asked);
        assert_eq!(code, 3, "{model}: {out}");
        assert!(
            out.contains("give more memory than 1 MB (--max-memory)"),
            "{model}: {out}"
        );
    }
    let (code, out, _) = deposed(&dir, "check DIR/open.csv --for 0s");
    assert_eq!(code, 3, "{out}");
    assert!(out.contains("the time was over"), "{out}");
}
