//! Which object a call is done to: keys in values, locks named there, and what is refused.

use deposed_checkers::budget::Budget;
use deposed_checkers::import::{Entries, Format, ReadError, lease};
use deposed_checkers::judge::judge;
use deposed_checkers::model::{self, JudgeError, Model};
use deposed_checkers::verdict::{Check, Verdict};

/// Of a table: the word of its verdict, or what is said of it.
fn judged(columns: &str, rows: &str, model: Option<Model>) -> Result<&'static str, String> {
    let table = format!("{columns}\n{rows}\n");
    let entries = Entries::new(Format::Csv, table.as_bytes(), "f");
    let judged = model::judge(entries, model, Budget::default());
    let judged = judged.map_err(|error: JudgeError<ReadError>| error.to_string())?;
    let check = judged.model.check().expect("a register or a lock");
    Ok(judged.verdicts.of(check).expect("it was judged").word())
}

fn register(rows: &str) -> Result<&'static str, String> {
    judged("process,type,f,value", rows, None)
}

/// A register may hold pairs: only where every call has one are they keys and values.
#[test]
fn a_register_of_pairs_is_no_register_by_key() {
    let written = "a,invoke,write,[1 5]\na,ok,write,[1 5]\n";
    let read = |value: &str| register(&format!("{written}b,invoke,read,\nb,ok,read,{value}"));
    assert_eq!(read("[1 5]"), Ok("valid"));
    assert_eq!(read("[1 6]"), Ok("violated"));
    let cas = "b,invoke,cas,[[1 5] [2 6]]\nb,ok,cas,[[1 5] [2 6]]";
    assert_eq!(register(&format!("{written}{cas}")), Ok("valid"));
    // However late a read tells it.
    let many = written.repeat(200);
    let late = register(&format!("{many}b,invoke,read,\nb,ok,read,[1 5]"));
    assert_eq!(late, Ok("valid"));
}

/// As Jepsen's independent keys are written.
#[test]
fn pairs_of_which_every_read_has_one_are_keys_and_values() {
    let written =
        "a,invoke,write,[x 5]\na,ok,write,[x 5]\na,invoke,write,[y 6]\na,ok,write,[y 6]\n";
    let read = |value: &str| {
        let rows = format!("{written}b,invoke,read,[x nil]\nb,ok,read,{value}");
        register(&rows)
    };
    for right in ["[x 5]", "5"] {
        assert_eq!(read(right), Ok("valid"), "{right}");
    }
    for wrong in ["[x 6]", "6", "[x nil]"] {
        assert_eq!(read(wrong), Ok("violated"), "{wrong}");
    }
    let said = read("[y 6]").expect_err("another key's");
    assert!(
        said.contains("7:1: process b ends the read of key"),
        "{said}"
    );
    let cas = "a,invoke,cas,[x [5 7]]\na,ok,cas,[x [5 7]]\n";
    assert_eq!(register(&format!("{written}{cas}")), Ok("valid"));
}

/// With a column of keys a pair is a value.
#[test]
fn beside_a_key_a_pair_is_a_value() {
    let rows = "a,invoke,write,k,[1 5]\na,ok,write,k,[1 5]\nb,invoke,read,k,\nb,ok,read,k,[1 5]";
    assert_eq!(judged("process,type,f,key,value", rows, None), Ok("valid"));
}

/// What one call says and another does not: judged as one object, or as two, a correct history
/// might be convicted.
#[test]
fn a_key_that_is_left_out_in_some_calls_is_refused() {
    let columns = "process,type,f,key,value";
    let told = |rows: &str| judged(columns, rows, None).expect_err("some have a key");
    let said = told("a,invoke,write,x,1\na,ok,write,x,1\nb,invoke,read,,\nb,ok,read,,1");
    let expected = "4:1: this read has no key, and the write of line 2 has one: give all of them \
                    a key, or none";
    assert!(said.starts_with(expected), "{said}");
    let said = told("a,invoke,write,,1\na,ok,write,,1\nb,invoke,read,,[x nil]\nb,ok,read,,1");
    assert!(
        said.contains("has a key, and the write of line 2 has none"),
        "{said}"
    );
    told("a,invoke,acquire,L1,\na,ok,acquire,L1,\na,invoke,release,,\na,ok,release,,");
    // Told too late to have judged otherwise.
    let many = "a,invoke,write,,[1 5]\na,ok,write,,[1 5]\n".repeat(600);
    told(&format!("{many}b,invoke,read,,\nb,ok,read,,[1 5]"));
}

/// Two locks are none that two hold at once.
#[test]
fn locks_are_told_apart_by_what_names_them() {
    let two = |one: &str, other: &str| {
        let rows = format!(
            "a,invoke,acquire,{one}\na,ok,acquire,\nb,invoke,acquire,{other}\nb,ok,acquire,"
        );
        [Model::Mutex, Model::OwnedMutex]
            .map(|model| judged("process,type,f,value", &rows, Some(model)))
    };
    for names in ["{:lock L1}", "{:lease L1}", "[L1 nil]"] {
        for judged in two(names, &names.replace('1', "2")) {
            assert_eq!(judged, Ok("valid"), "{names}");
        }
        for judged in two(names, names) {
            assert_eq!(judged, Ok("violated"), "{names}");
        }
    }
    // Who asks, and how, is no name.
    for judged in two("{:client c1 :uid 1}", "{:client c2 :uid 2}") {
        assert_eq!(judged, Ok("violated"));
    }
    for judged in two("a", "b") {
        assert_eq!(judged, Ok("violated"));
    }
    for (one, other) in [
        ("L1", "L2"),
        (":L1", ":L2"),
        ("1", "2"),
        ("{:name L1}", "{:name L2}"),
    ] {
        for judged in two(one, other) {
            let said = judged.expect_err("which it means is not told");
            assert!(said.starts_with("4:1: this acquire says "), "{said}");
            assert!(said.contains("name each by its key"), "{said}");
        }
    }
}

/// What the lease checks find in a table, or what is said of it.
fn leases(rows: &str) -> Result<Vec<Check>, String> {
    let table = format!("process,type,f,token,key,value\n{rows}");
    let entries = Entries::new(Format::Csv, table.as_bytes(), "f");
    let events: Result<Vec<_>, _> = lease::Events::new(entries, "f").collect();
    let events = events.map_err(|error| error.to_string())?;
    let verdicts = judge(&lease::header(), &events);
    Ok(verdicts.violated().map(|(check, _)| check).collect())
}

/// A table has one column of keys, and a write's is that of its data.
#[test]
fn a_write_is_under_the_lease_that_its_process_acquired() {
    let term = |process: &str, lease: &str, token: u64| {
        format!(
            "{process},invoke,acquire,,{lease},\n{process},ok,acquire,{token},{lease},\n\
             {process},invoke,fence,{token},{lease},\n{process},ok,fence,{token},{lease},\n"
        )
    };
    let write = |process: &str, token: u64| {
        format!("{process},invoke,write,{token},x,{token}\n{process},ok,write,{token},x,{token}\n")
    };
    let one = term("a", "L1", 7) + &write("a", 7);
    assert_eq!(leases(&one), Ok(vec![]));
    let two = term("a", "L1", 7) + &term("b", "L2", 3) + &write("a", 7) + &write("b", 3);
    assert_eq!(leases(&two), Ok(vec![]));
    let both = term("a", "L1", 7) + &term("a", "L2", 3) + &write("a", 7) + &write("a", 3);
    assert_eq!(leases(&both), Ok(vec![]));
    let late = one + &term("b", "L1", 8) + &write("a", 7);
    let found = leases(&late).expect("there is one lease");
    assert!(found.contains(&Check::StorageSafety), "{found:?}");
    let said = leases(&(both + &write("a", 9))).expect_err("it is of either");
    assert!(
        said.contains("field 'lease': which lease this write is of"),
        "{said}"
    );
}

#[test]
fn data_under_a_lease_may_be_pairs() {
    let rows = "a,invoke,acquire,,,\na,ok,acquire,,,\na,invoke,write,,,[1 5]\na,ok,write,,,[1 5]\n\
                b,invoke,read,,,\nb,ok,read,,,[1 5]\n";
    assert_eq!(leases(rows), Ok(vec![]));
    let wrong = rows.replace("read,,,[1 5]", "read,,,[1 6]");
    assert_eq!(leases(&wrong), Ok(vec![Check::RegisterLinearizable]));
}

/// However a correct register of pairs is used, it is not convicted, whatever its pairs are
/// taken for; where they cannot be told from keys it is refused.
#[test]
fn a_correct_register_of_pairs_is_never_convicted() {
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut any = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) % below
    };
    let mut valid = 0;
    for _ in 0..4_000 {
        // Some never read, some tell what they read when they begin to.
        let (reads, known) = (any(3), any(4) == 0);
        let mut rows = String::new();
        let mut held = "nil".to_owned();
        for _ in 0..1 + any(6) {
            let next = format!("[{} {}]", any(2), any(3));
            match any(3) {
                0 if reads > 0 => {
                    let asked = if known { &held } else { "" };
                    rows += &format!("a,invoke,read,{asked}\na,ok,read,{held}\n");
                }
                1 => {
                    rows += &format!("b,invoke,cas,[{held} {next}]\nb,ok,cas,[{held} {next}]\n");
                    held = next;
                }
                _ => {
                    rows += &format!("b,invoke,write,{next}\nb,ok,write,{next}\n");
                    held = next;
                }
            }
        }
        match register(&rows) {
            Ok(word) => assert_ne!(word, "violated", "{rows}"),
            Err(said) => assert!(said.contains("a key"), "{said}: {rows}"),
        }
        valid += u64::from(register(&rows) == Ok("valid"));
    }
    assert!(valid > 1_000, "most are judged: {valid}");
}

#[test]
fn one_number_of_json_is_one_value() {
    let rows = [
        r#"{"process":0,"type":"invoke","f":"write","value":1.0}"#,
        r#"{"process":0,"type":"ok","f":"write","value":1}"#,
        r#"{"process":0,"type":"invoke","f":"read","value":null}"#,
        r#"{"process":0,"type":"ok","f":"read","value":1e0}"#,
    ];
    let text = rows.concat();
    let entries = Entries::new(Format::Json, text.as_bytes(), "f");
    let judged = model::judge(entries, None, Budget::default()).expect("it is read");
    let verdict = judged.verdicts.of(Check::RegisterLinearizable);
    assert_eq!(verdict, Some(&Verdict::Valid));
}
