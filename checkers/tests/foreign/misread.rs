//! What could be read in a way that its writer did not mean, and have another verdict then: it
//! is refused in a sentence.

use deposed_checkers::import::{Format, Problem};

use super::{all_told, entries, read, refused};

#[test]
fn a_quote_that_is_not_where_it_must_stand_swallows_no_rows() {
    let rows =
        "process,type,f,key,value\n0,invoke,write,x,CELL\n0,ok,write,x,1\n1,invoke,read,x,\n";
    let stray = "not CSV: a quote within a cell that does not begin with one: write the whole \
                 cell in quotes, and \"\" for each quote in it";
    let unclosed = "not CSV: the quote that opens here is never closed: close it, or write \"\" \
                    for a quote in a quoted cell";
    let behind = "not CSV: the cell goes on behind its closing quote, which opened at 2:18: a \
                  comma or the end of the line must follow, and a quote in a quoted cell is \
                  written \"\"";
    for (cell, said) in [
        ("\"1", format!("2:18: {unclosed}")),
        ("\"1\"\"", format!("2:18: {unclosed}")),
        ("1\"2", format!("2:19: {stray}")),
        (" \"1\"", format!("2:19: {stray}")),
        ("\"1\"z", format!("2:21: {behind}")),
        ("\"é\" \"", format!("2:21: {behind}")),
    ] {
        assert_eq!(
            refused(Format::Csv, rows.replace("CELL", cell)),
            format!("f:{said}"),
            "{cell}"
        );
    }
    // The quote of a later row closes the cell, and what follows it tells.
    let later = rows.replace("CELL", "\"1") + "1,ok,read,x,\"3\"\n";
    assert_eq!(refused(Format::Csv, later), format!("f:5:14: {behind}"));
    // The rows before are read, however the text is cut into blocks.
    let long = "process,type,f,value\n".to_owned() + &"0,info,x,\"a\"\n".repeat(5_000);
    let read = |text: String| {
        let read = deposed_checkers::import::Entries::new(Format::Csv, text.as_bytes(), "f");
        let (read, wrong): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
        (read.len(), wrong.len())
    };
    assert_eq!(read(long.clone() + "0,info,x,1\"\n"), (5_000, 1));
    assert_eq!(read(long), (5_000, 0));
    let quoted = "process,type,f,value\n0,info,x,\"a \"\"b\"\", c\nd\"\n";
    assert_eq!(
        all_told(&entries(Format::Csv, quoted)),
        ["0 info x \"a \\\"b\\\", c\\nd\""]
    );
}

#[test]
fn a_column_that_is_not_known_is_refused_and_the_nearest_is_named() {
    for (column, hint) in [
        ("val", "is value meant? Name it so, or take the column out"),
        ("k", "is key meant? Name it so, or take the column out"),
        (
            "timestamp",
            "is time meant? Name it so, or take the column out",
        ),
        ("t", "take the column out"),
        ("mine", "take the column out"),
        ("", "take the column out"),
    ] {
        let table = format!("process,type,f,{column}\n0,info,x,1\n");
        let said = format!(
            "f:1:16: not CSV: the column '{column}' is none of time, process, type, f, token, \
             key, value, error: {hint}"
        );
        assert_eq!(refused(Format::Csv, table), said);
    }
}

/// As spreadsheets write them.
#[test]
fn the_header_may_be_in_capitals() {
    let table = "Process,TYPE,f, Value\n0,invoke,write,1\n0,ok,write,1\n";
    assert_eq!(
        all_told(&entries(Format::Csv, table)),
        ["0 invoke write 1", "0 ok write 1"]
    );
    let twice = "process,type,f,value,Value\n";
    let said = "f:1:22: not CSV: the column Value stands twice";
    assert_eq!(refused(Format::Csv, twice), said);
}

#[test]
fn a_row_has_as_many_cells_as_the_header() {
    let table = "process,type,f,token\na,invoke,acquire,\na,ok,acquire,,5\n";
    let said = "f:3:15: not CSV: the row has 5 fields, too many for the header, which has 4";
    assert_eq!(refused(Format::Csv, table), said);
}

#[test]
fn a_line_that_writes_has_a_value() {
    for (a, f) in [("a", "write"), ("a", "cas"), ("an", "append"), ("a", "put")] {
        let said = format!(
            "f:1:1: field 'value': missing; {a} {f} has one (nil where it is to be absent), and \
             this has the keys f, process, type, val"
        );
        let edn = format!("{{:process 0 :type :invoke :f :{f} :val 1}}");
        assert_eq!(refused(Format::Edn, edn), said);
        let json = format!("{{\"process\":0,\"type\":\"invoke\",\"f\":\"{f}\",\"val\":1}}");
        assert_eq!(refused(Format::Json, json), said);
        let csv = format!("process,type,f\n0,invoke,{f}\n");
        let said = format!(
            "f:2:10: field 'value': the header has no such column, and {a} {f} has a value"
        );
        assert_eq!(refused(Format::Csv, csv), said);
        let log = format!("INFO jepsen.util - 0 :invoke :{f}\n");
        assert!(refused(Format::JepsenLog, log).ends_with(&format!("early: {a} {f} has a value")));
    }
    // Nil is one; and who reads, or answers, needs none. Other keys are the tool's own.
    let edn = "{:process 0 :type :invoke :f :write :value nil :node \"n1\"}
               {:process 0 :type :ok :f :write}
               {:process 0 :type :invoke :f :read}";
    assert_eq!(entries(Format::Edn, edn).len(), 3);
}

#[test]
fn a_last_line_whose_value_may_be_cut_off_is_torn() {
    let csv = "process,type,f,value\n0,info,x,";
    let log = "INFO jepsen.util - 0 :info :x ";
    for (format, head) in [(Format::Csv, csv), (Format::JepsenLog, log)] {
        for (value, whole) in [
            ("12", false),
            ("nil", false),
            ("\"12\"", true),
            ("12\n", true),
            ("12\r\n", true),
        ] {
            match read(format, format!("{head}{value}")) {
                Ok(read) => assert!(whole && read.len() == 1, "{format} {value}"),
                Err(error) => {
                    assert!(!whole, "{format} {value}: {error}");
                    assert!(matches!(error.problem, Problem::TornLine), "{error}");
                }
            }
        }
    }
    assert_eq!(
        refused(Format::Csv, format!("{csv}1")),
        "f:2:1: the last line is torn: it does not end in a line break, and its last value may \
         have been cut off; remove it, or end it with a line break if it is whole"
    );
}

#[test]
fn an_answer_repeats_what_was_given_or_leaves_it_out() {
    let table = |began: &str, ended: &str| {
        format!("process,type,f,key,value\n0,invoke,{began}\n0,ok,{ended}\n")
    };
    let behind = "an answer repeats what was given, or leaves it out; write it as it was begun";
    for (began, ended, said) in [
        (
            "write,x,1",
            "write,x,2",
            "a write with the value 2, and began it with 1",
        ),
        (
            "put,,a",
            "put,,b",
            "a put with the value \"b\", and began it with \"a\"",
        ),
        (
            "append,,a",
            "append,,1",
            "an append with the value 1, and began it with \"a\"",
        ),
        (
            "cas,,[1 2]",
            "cas,,[1 3]",
            "a cas with the value [1 3], and began it with [1 2]",
        ),
        (
            "write,x,1",
            "write,y,1",
            "a write with the key \"y\", and began it with \"x\"",
        ),
        (
            "read,x,",
            "read,y,1",
            "a read with the key \"y\", and began it with \"x\"",
        ),
    ] {
        let said = format!("f:3:1: process 0 ends {said} on line 2: {behind}");
        assert_eq!(refused(Format::Csv, table(began, ended)), said);
        // What failed or is indefinite may say why there.
        let fail = table(began, ended).replace(",ok,", ",fail,");
        assert_eq!(entries(Format::Csv, fail).len(), 2);
    }
    for (began, ended) in [
        ("write,x,1", "write,,"),
        ("write,x,1", "write,x,nil"),
        ("write,,[x 1]", "write,,1"),
        ("write,,[x 1]", "write,,[x 1]"),
        ("read,x,1", "read,x,2"),
        ("acquire,,1", "acquire,,2"),
        ("write,x,1", "write,x,{:revision 7}"),
    ] {
        assert_eq!(entries(Format::Csv, table(began, ended)).len(), 2);
    }
}
