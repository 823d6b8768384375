//! Reports of etcd's robustness tests.

use std::fs;
use std::path::PathBuf;

use deposed_checkers::import::{self, Entries, Entry, Format, History};

use super::{all_told, entries, refused};

/// A line: client, call and return, request and answer.
fn line(client: u32, (call, returned): (i64, i64), input: &str, output: &str) -> String {
    format!(
        "{{\"ClientId\":{client},\"Input\":{{{input},\"LeaseGrant\":null}},\"Call\":{call},\
         \"Output\":{{{output},\"Persisted\":false}},\"Return\":{returned}}}\n"
    )
}

fn get(key: &str, revision: i64) -> String {
    format!(
        "\"Type\":\"range\",\"Range\":{{\"Start\":\"{key}\",\"End\":\"\",\"Limit\":0,\"Revision\":{revision}}},\"Txn\":null"
    )
}

/// What a get found: key, value and mod revision.
fn found(key: &str, value: &str, revision: i64) -> String {
    let kv = format!(
        "{{\"Key\":\"{key}\",\"Value\":{{\"Value\":\"{value}\"}},\"ModRevision\":{revision}}}"
    );
    format!("\"Range\":{{\"KVs\":[{kv}],\"Count\":1}},\"Error\":\"\",\"Revision\":{revision}")
}

const NOTHING: &str = "\"Range\":{\"KVs\":[],\"Count\":0},\"Error\":\"\",\"Revision\":1";

fn step(kind: &str, key: &str, value: &str, lease: i64) -> String {
    let range = if kind == "range" { key } else { "" };
    format!(
        "{{\"Type\":\"{kind}-operation\",\"Range\":{{\"Start\":\"{range}\",\"End\":\"\",\"Limit\":0}},\
         \"Put\":{{\"Key\":\"{key}\",\"Value\":{{\"Value\":\"{value}\"}},\"LeaseID\":{lease}}},\
         \"Delete\":{{\"Key\":\"{key}\"}}}}"
    )
}

fn txn(conditions: &str, success: &[String], failure: &[String]) -> String {
    format!(
        "\"Type\":\"txn\",\"Txn\":{{\"Conditions\":[{conditions}],\"OperationsOnSuccess\":[{}],\
         \"OperationsOnFailure\":[{}]}}",
        success.join(","),
        failure.join(",")
    )
}

fn put(key: &str, value: &str) -> String {
    txn("", &[step("put", key, value, 0)], &[])
}

fn at(key: &str, revision: i64) -> String {
    format!("{{\"Key\":\"{key}\",\"ExpectedRevision\":{revision}}}")
}

fn done(revision: i64) -> String {
    format!(
        "\"Txn\":{{\"Failure\":false,\"Results\":[{{}}]}},\"Error\":\"\",\"Revision\":{revision}"
    )
}

const UNMET: &str = "\"Txn\":{\"Failure\":true,\"Results\":[]},\"Error\":\"\",\"Revision\":9";
const LOST: &str = "\"Txn\":null,\"Error\":\"context deadline exceeded\"";

#[test]
fn operations_of_a_key_become_reads_writes_and_swaps_in_the_order_of_time() {
    let report = [
        line(1, (10, 20), &put("a", "1"), &done(2)),
        line(1, (60, 70), &get("a", 0), &found("a", "2", 3)),
        line(
            1,
            (80, 90),
            &txn("", &[step("delete", "a", "", 0)], &[]),
            &done(4),
        ),
        line(1, (100, 110), &get("a", 0), NOTHING),
        line(
            2,
            (15, 50),
            &txn(&at("a", 2), &[step("put", "a", "2", 0)], &[]),
            &done(3),
        ),
        line(
            2,
            (71, 72),
            &txn(&at("a", 0), &[step("put", "a", "3", 0)], &[]),
            UNMET,
        ),
        // What failed stands behind, without a return.
        line(3, (55, 0), &put("a", "4"), LOST),
    ]
    .concat();
    let read = entries(Format::Etcd, report);
    assert_eq!(
        all_told(&read),
        [
            "1 invoke write \"a\" \"1\"",
            "2 invoke cas \"a\" [\"1\" \"2\"]",
            "1 ok write \"a\" \"1\"",
            "2 ok cas \"a\" [\"1\" \"2\"]",
            "3 invoke write \"a\" \"4\"",
            "3 info write \"a\" \"4\"",
            "1 invoke read \"a\" nil",
            "1 ok read \"a\" \"2\"",
            "2 invoke cas \"a\" [nil \"3\"]",
            "2 fail cas \"a\" [nil \"3\"]",
            "1 invoke write \"a\" nil",
            "1 ok write \"a\" nil",
            "1 invoke read \"a\" nil",
            "1 ok read \"a\" nil",
        ]
    );
    assert_eq!((read[4].time, read[4].place.line), (Some(55), 7));
    assert_eq!(
        read.iter().map(|entry| entry.index).collect::<Vec<_>>(),
        (0..14).collect::<Vec<_>>()
    );
}

#[test]
fn a_swap_from_a_revision_that_nobody_tells_is_a_write() {
    let swap = txn(&at("a", 7), &[step("put", "a", "2", 0)], &[]);
    let report = line(1, (1, 2), &swap, &done(8));
    assert_eq!(
        all_told(&entries(Format::Etcd, report)),
        ["1 invoke write \"a\" \"2\"", "1 ok write \"a\" \"2\""]
    );
}

#[test]
fn a_swap_whose_condition_did_not_hold_is_the_read_of_its_other_branch() {
    let swap = txn(
        &at("a", 7),
        &[step("put", "a", "2", 0)],
        &[step("range", "a", "", 0)],
    );
    let kv = "{\"Key\":\"a\",\"Value\":{\"Value\":\"1\"},\"ModRevision\":5}";
    let output = format!(
        "\"Txn\":{{\"Failure\":true,\"Results\":[{{\"KVs\":[{kv}],\"Count\":1}}]}},\"Error\":\"\",\"Revision\":5"
    );
    let report = line(1, (1, 2), &swap, &output);
    assert_eq!(
        all_told(&entries(Format::Etcd, report)),
        ["1 invoke read \"a\" nil", "1 ok read \"a\" \"1\""]
    );
}

#[test]
fn what_is_no_register_is_left_out_and_told() {
    let list =
        "\"Type\":\"range\",\"Range\":{\"Start\":\"k\",\"End\":\"l\",\"Limit\":0,\"Revision\":0}";
    let two = txn(
        "",
        &[step("put", "b", "1", 0), step("put", "c", "1", 0)],
        &[],
    );
    let leased = txn("", &[step("put", "d", "1", 17)], &[]);
    let report = [
        line(1, (1, 2), list, NOTHING),
        line(1, (3, 4), &get("a", 5), NOTHING),
        line(1, (5, 6), &two, &done(2)),
        line(1, (7, 8), &leased, &done(3)),
        line(1, (9, 10), "\"Type\":\"leaseGrant\"", "\"Error\":\"\""),
        line(1, (11, 12), "\"Type\":\"defragment\"", "\"Error\":\"\""),
        line(1, (13, 14), &get("b", 0), NOTHING),
        line(1, (15, 16), &put("d", "2"), &done(4)),
        line(1, (17, 18), &get("a", 0), NOTHING),
    ]
    .concat();
    let mut read = Entries::new(Format::Etcd, report.as_bytes(), "f");
    let kept: Vec<Entry> = read.by_ref().map(Result::unwrap).collect();
    assert_eq!(
        all_told(&kept),
        ["1 invoke read \"a\" nil", "1 ok read \"a\" nil"]
    );
    assert_eq!(
        read.left_out(),
        [
            "2 operations of keys that more than a register's operations touch: b, c, d",
            "1 defragmentations",
            "1 lease grants",
            "1 puts under an etcd lease",
            "1 reads of old revisions",
            "1 reads of several keys",
            "1 transactions of several operations",
        ]
    );
}

#[test]
fn a_report_that_does_not_fit_is_refused_with_its_line() {
    let ok = line(1, (1, 2), &get("a", 0), NOTHING);
    let back = line(1, (5, 4), &get("a", 0), NOTHING);
    assert_eq!(
        refused(Format::Etcd, ok.clone() + &back),
        "f:2:1: field 'Return': 4 is before the call, at 5"
    );
    let unknown = line(1, (5, 6), "\"Type\":\"watch\"", "\"Error\":\"\"");
    assert_eq!(
        refused(Format::Etcd, ok.clone() + &unknown),
        "f:2:1: field 'Input.Type': 'watch' is none of range, txn, leaseGrant, leaseRevoke, defragment and compact"
    );
    let said = refused(Format::Etcd, ok + "{\"ClientId\":1}\n");
    assert!(
        said.starts_with("f:2:14: not JSON: missing field"),
        "{said}"
    );
}

#[test]
fn a_folder_of_clients_is_one_history() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report");
    let write = |client: &str, text: &str| {
        fs::create_dir_all(folder.join(client)).unwrap();
        fs::write(folder.join(client).join("operations.json"), text).unwrap();
    };
    write("client-2", &line(2, (5, 6), &put("a", "1"), &done(2)));
    write(
        "client-10",
        &line(10, (7, 8), &get("a", 0), &found("a", "1", 2)),
    );
    // A client that only watched.
    fs::create_dir_all(folder.join("client-3")).unwrap();
    let History::Foreign(read) = import::open(&folder, None).unwrap() else {
        panic!("foreign")
    };
    let read: Vec<Entry> = read.map(Result::unwrap).collect();
    assert_eq!(
        all_told(&read),
        [
            "2 invoke write \"a\" \"1\"",
            "2 ok write \"a\" \"1\"",
            "10 invoke read \"a\" nil",
            "10 ok read \"a\" \"1\"",
        ]
    );
    let none = match import::open(folder.join("client-3"), None) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened"),
    };
    assert!(none.ends_with("the folder holds no client-N/operations.json; name a file, or the folder of one run's clients"), "{none}");
}
