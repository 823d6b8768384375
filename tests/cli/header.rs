//! A header that somebody edited: what cannot be run is refused in one sentence, and
//! nothing in it goes unnoticed.

use std::fs;

use super::{deposed, refuses, scratch};

#[test]
fn a_schedule_that_cannot_be_injected_is_one_sentence_that_names_the_entry() {
    let dir = scratch("schedule");
    assert_eq!(deposed(&dir, "run gc-pause --seed 0 --keep --out DIR").0, 0);
    let kept = fs::read_to_string(dir.join("gc-pause-0.jsonl")).expect("it was kept");
    let header = kept.lines().next().expect("a header");
    assert!(header.contains("\"schedule\":[]"), "{header}");
    let edited = |entry: &str| {
        let right = r#"{"when":{"at":5000000},"fault":"pause","target":"store","for":1000000}"#;
        let header = header.replace(
            "\"schedule\":[]",
            &format!("\"schedule\":[{right},{entry}]"),
        );
        fs::write(dir.join("h.jsonl"), header + "\n").expect("room");
    };
    edited(
        r#"{"when":{"next":{"f":"renew","type":"ok","after":9}},"fault":"suspend","target":"leader","for":7}"#,
    );
    let (code, out, err) = deposed(&dir, "replay DIR/h.jsonl --out DIR/runs");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for (entry, says) in [
        (
            r#"{"when":{"at":5},"fault":"gc-puase","target":"store","for":1}"#,
            "(gc-puase) cannot be injected: no fault is called 'gc-puase'; did you mean 'gc-pause'? (known: partition, ",
        ),
        (
            r#"{"when":{"att":5},"fault":"pause","target":"store","for":1}"#,
            "(pause) cannot be injected: no trigger is called 'att'; did you mean 'at'? (known: at, on, next)",
        ),
        (
            r#"{"when":{"at":5},"fault":"pause","target":"stroe","for":1}"#,
            "(pause) cannot be injected: its 'target': no target is called 'stroe'; did you mean 'store'? (known: leader, ",
        ),
        (
            r#"{"when":{"at":-5},"fault":"pause","target":"store","for":1}"#,
            "(pause) cannot be injected: its 'at' is -5, and must be a whole number, 0 or more",
        ),
        (
            r#"{"when":{"at":5},"fault":"pause","target":"store","for":-1}"#,
            "(pause) cannot be injected: its 'for' is -1, and must be a whole number, 0 or more",
        ),
        (
            r#"{"when":{"at":5},"fault":"step","target":"store","by":"much"}"#,
            "(step) cannot be injected: its 'by' is \"much\", and must be a whole number",
        ),
        (
            r#"{"when":{"at":5},"fault":"pause","target":{"client":3},"for":1}"#,
            "(pause) cannot be injected: client 3 is its target, and the last of 3 is 2",
        ),
        (
            r#"{"when":{"at":5},"fault":"starve","target":"store","one_in":1,"for":1}"#,
            "(starve) cannot be injected: its 'one_in' is 1, and must be 2 or more",
        ),
        (
            r#"{"when":{"at":1000001000},"fault":"halves","for":1}"#,
            "(halves) cannot be injected: its 'at' is 1000001000, and the run's 'chaos' is over after 1000000000 ns: it would never strike",
        ),
        (
            r#"{"when":{"next":{"f":"write","type":"ok","after":5,"plus":1000000000}},"fault":"halves","for":1}"#,
            "(halves) cannot be injected: its 'after' is 5, 'plus' 1000000000, and the run's 'chaos' is over",
        ),
        (
            r#"{"when":{"at":5},"fault":"pause","target":"store","for":0}"#,
            "(pause) cannot be injected: its 'for' is 0, and must be 1 or more: it would be over before it began",
        ),
        (
            r#"{"when":{"at":5},"fault":"partition","a":"store","b":"store","for":1}"#,
            "(partition) cannot be injected: its 'a' and 'b' are both the node 'store', which sends itself nothing: name two",
        ),
        (
            r#"{"when":{"at":5},"fault":"partition","a":"leader","b":"leader","for":1}"#,
            "(partition) cannot be injected: its 'a' and 'b' are both a client, and nothing passes between two of them: take a client and a server",
        ),
        (
            r#"{"when":{"on":{"f":"delete","type":"ok","nth":1}},"fault":"halves","for":1}"#,
            "(halves) cannot be injected: it waits for a delete, and nobody ever deletes: it would never strike; set 'delete_one_in' to 10 in the header's 'traffic'",
        ),
        (
            r#"{"when":{"at":5},"fault":"rate","target":"store","rate_ppb":1000000000,"for":1}"#,
            "(rate) cannot be injected: its 'rate_ppb' is 1000000000, at which the clock runs already: give another",
        ),
        (
            r#"{"when":{"at":5},"fault":"lose","kind":"renew","from":{"client":1},"to":{"client":1},"count":1}"#,
            "(lose) cannot be injected: its 'from' and 'to' are both the node 'b'",
        ),
        (
            r#"{"when":{"at":5},"fault":"lose","kind":"renew","from":"store","to":"clients","count":0}"#,
            "(lose) cannot be injected: its 'count' is 0, and must be 1 or more: it would strike no frame",
        ),
        (
            r#"{"when":{"at":5},"fault":"flaky","a":"store","b":"clients","lose_ppb":0,"delay_ppb":0,"by":9,"for":1}"#,
            "(flaky) cannot be injected: its 'lose_ppb' and 'delay_ppb' are 0: no frame would be lost or late",
        ),
        (
            r#"{"when":{"at":5},"fault":"lose","kind":3,"from":"store","to":"clients","count":3}"#,
            "(lose) cannot be injected: its 'kind' is 3, and must be a name",
        ),
        (
            r#"{"when":{"at":1e30},"fault":"halves","for":1}"#,
            "(halves) cannot be injected: its 'at' is 1e+30, and must be a whole number, 18446744073709551615 or less",
        ),
        ("7", "(no fault) cannot be injected: it is no object"),
    ] {
        edited(entry);
        let sentence = format!("DIR/h.jsonl: entry 1 of the header's schedule {says}");
        refuses(&dir, "replay DIR/h.jsonl", &sentence);
    }
}

#[test]
fn a_header_field_that_is_misspelt_or_does_not_fit_is_one_sentence_that_names_it() {
    let dir = scratch("header");
    assert_eq!(deposed(&dir, "run gc-pause --seed 0 --keep --out DIR").0, 0);
    let kept = fs::read_to_string(dir.join("gc-pause-0.jsonl")).expect("it was kept");
    let header = kept.lines().next().expect("a header");
    for (right, wrong, says) in [
        (
            "\"schedule\":",
            "\"shedule\":",
            "no field of a header is called 'shedule'; did you mean 'schedule'? (known: workload, ",
        ),
        (
            "\"flaw\":",
            "\"chaoss\":7,\"flaw\":",
            "no field of a header is called 'chaoss'; did you mean 'chaos'?",
        ),
        (
            "\"flaw\":null",
            "\"flaw\":\"no-barier\"",
            "the header: its 'flaw': no flaw is called 'no-barier'; did you mean 'no-barrier'? (`deposed list` shows them all)",
        ),
        (
            "\"flaw\":",
            "\"clocks\":{\"d\":1000000000},\"flaw\":",
            "the header's 'clocks': no node is called 'd' (known: store, storage, a, b, c)",
        ),
        (
            "\"flaw\":",
            "\"offsets\":{\"stroe\":1},\"flaw\":",
            "the header's 'offsets': no node is called 'stroe'; did you mean 'store'?",
        ),
        (
            "\"flaw\":",
            "\"offsets\":{\"a\":-1},\"flaw\":",
            "the header's 'offsets': its 'a' is -1, and must be a whole number, 0 or more",
        ),
        (
            "\"seed\":0",
            "\"seed\":\"0\"",
            "the header: its 'seed' is \"0\", and must be a whole number, 0 or more",
        ),
        (
            "\"clients\":3",
            "\"clients\":300",
            "the header's 'cluster': its 'clients' is 300, and must be a whole number from 0 to 255",
        ),
        (
            "\"clients\":3",
            "\"clients\":3,\"storage\":\"quorum\"",
            "the header's 'cluster': its 'storage' is \"quorum\", and must be \"fenced\", ",
        ),
        (
            "\"leases\":1",
            "\"lease\":1",
            "the header's 'traffic': no field of 'traffic' is called 'lease'; did you mean 'leases'?",
        ),
        (
            "\"leases\":1,",
            "",
            "the header's 'traffic': it has no 'leases'",
        ),
        (
            "\"leases\":1",
            "\"leases\":1,\"without_barrier\":1",
            "the header's 'traffic': its 'without_barrier' is 1, and must be true or false",
        ),
    ] {
        let edited = header.replacen(right, wrong, 1);
        assert_ne!(edited, header, "{right}");
        fs::write(dir.join("h.jsonl"), edited + "\n").expect("room");
        refuses(&dir, "replay DIR/h.jsonl", says);
    }
    // What is only checked may hold what a later version writes.
    let later = kept.replacen("\"flaw\":", "\"weather\":\"fine\",\"flaw\":", 1);
    fs::write(dir.join("later.jsonl"), later).expect("room");
    assert_eq!(deposed(&dir, "check DIR/later.jsonl").0, 0);
    let says =
        "this history can be checked, not replayed: no field of a header is called 'weather'";
    refuses(&dir, "replay DIR/later.jsonl", says);
}

/// It is no bad input, since a schedule that is drawn may have it; who wrote it is told.
#[test]
fn a_restore_without_a_backup_before_it_is_told() {
    let dir = scratch("restore");
    assert_eq!(deposed(&dir, "run gc-pause --seed 0 --keep --out DIR").0, 0);
    let kept = fs::read_to_string(dir.join("gc-pause-0.jsonl")).expect("it was kept");
    let header = kept.lines().next().expect("a header");
    let header = header.replace("\"clients\":3", "\"clients\":3,\"disk\":\"simulated\"");
    let told = |schedule: &str| {
        let header = header.replace("\"schedule\":[]", &format!("\"schedule\":[{schedule}]"));
        fs::write(dir.join("h.jsonl"), header + "\n").expect("room");
        let (code, out, err) = deposed(&dir, "replay DIR/h.jsonl --out DIR/runs");
        assert_eq!(code, 0, "{out}{err}");
        err
    };
    let restore = r#"{"when":{"at":500000000},"fault":"restore","target":"store","for":1000000}"#;
    let backup = |at: u64| format!(r#"{{"when":{{"at":{at}}},"fault":"backup","target":"store"}}"#);
    let nothing = "entry 0 of the header's schedule (restore) has no copy to restore";
    assert!(told(restore).contains(nothing));
    assert!(told(&format!("{restore},{}", backup(600_000_000))).contains(nothing));
    assert_eq!(told(&format!("{restore},{}", backup(400_000_000))), "");
}
