//! JSON of elle-cli, lines of Jepsen's log, tables.

use deposed_checkers::history::Kind;
use deposed_checkers::import::{Format, Value};

use super::{all_told, entries, int, list, refused, text, word};

#[test]
fn an_array_of_objects_and_loose_ones_are_the_same_history() {
    let first = r#"{"process":0,"type":"invoke","f":"cas","value":[null,"b"],"time":5}"#;
    let second = r#"{"f":"cas","type":"fail","process":0,"value":[null,"b"],"error":{"a":[1.50]}}"#;
    for written in [
        format!("[{first},{second}]"),
        format!("[\r\n  {first} ,\n{second}\n]\n"),
        format!("{first}\n{second}\n"),
        format!("\u{feff}{first}{second}"),
    ] {
        let read = entries(Format::Json, &written);
        assert_eq!(
            all_told(&read),
            ["0 invoke cas [nil \"b\"]", "0 fail cas [nil \"b\"]"]
        );
        assert_eq!((read[0].time, read[1].time), (Some(5), None));
        let error = Value::Map([("a".into(), list([Value::Number("1.5".into())]))].into());
        assert_eq!(read[1].error, Some(error));
    }
    assert_eq!(entries(Format::Json, "[]"), []);
    assert_eq!(entries(Format::Json, "\n"), []);
}

#[test]
fn what_is_no_json_is_refused_where_it_stands() {
    let ok = r#"{"process":0,"type":"info","f":"x"}"#;
    for (history, said) in [
        (
            format!("[{ok}\n {ok}]"),
            "2:2: not JSON: a comma or ']' is missing",
        ),
        (
            format!("[{ok},]"),
            "1:38: not JSON: an operation is an object, as {\"process\": 0, \"type\": \"invoke\", …}",
        ),
        (
            format!("[{ok}] {ok}"),
            "1:39: not JSON: the history's array is closed, and more follows",
        ),
        (
            format!("[{ok}"),
            "1:37: the file ends, and ']' is missing: it was cut off; copy it again, whole",
        ),
        (
            "[\n{\"process\":0,\"é\":tru }]".into(),
            "2:21: not JSON: expected ident",
        ),
        (
            "[{\"f\":1,\"f\":2}]".into(),
            "1:11: not JSON: the key f stands twice in an object",
        ),
        (
            "[{\"é\":1,\"value\":18446744073709551616}]".into(),
            "1:17: the number 18446744073709551616 is past 64 bits: write larger ones as strings",
        ),
    ] {
        assert_eq!(refused(Format::Json, history), format!("f:{said}"));
    }
    let large = r#"[{"process":0,"type":"info","f":"x","value":18446744073709551615}]"#;
    let number = Value::Number("18446744073709551615".into());
    assert_eq!(entries(Format::Json, large)[0].value, number);
}

#[test]
fn log_lines_are_read_with_tabs_and_spaces() {
    let log = "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n\
               INFO  jepsen.util - 12   :invoke :cas    [0 1]\r\n\
               \n\
               2015-01-02 INFO  jepsen.util - 0\t:fail\t:read\t:timed-out\n\
               INFO  jepsen.util - 12  :info  :cas  :timed-out\n\
               INFO  jepsen.util - :nemesis\t:info\t:start\t\"cut off\"\n\
               INFO  jepsen.util - 3\t:invoke\t:write\t4\n";
    let read = entries(Format::JepsenLog, log);
    assert_eq!(
        all_told(&read),
        [
            "0 invoke read nil",
            "12 invoke cas [0 1]",
            "0 fail read nil",
            "12 info cas nil",
            "nemesis info start \"cut off\"",
            "3 invoke write 4",
        ]
    );
    assert_eq!(read[2].error, Some(word("timed-out")));
    assert_eq!(read[3].error, Some(word("timed-out")));
    assert_eq!(read[5].place.line, 7);
}

#[test]
fn a_log_line_that_is_no_operation_is_refused() {
    for (line, said) in [
        (
            "INFO  jepsen.core - Run complete",
            "not a Jepsen log: the line is none of jepsen.util's operations, as INFO  jepsen.util \
             - 0 :invoke :read nil; take those alone, as by grep 'jepsen.util - '",
        ),
        (
            "INFO  jepsen.util - 0\t:ok",
            "not a Jepsen log: the line ends early: it has a process, a type, an operation and a value",
        ),
        (
            "INFO  jepsen.util - 0 :done :read 1",
            "field 'type': 'done' is none of invoke, ok, fail and info",
        ),
    ] {
        let column = if said.contains("early") { 26 } else { 1 };
        assert_eq!(
            refused(Format::JepsenLog, line),
            format!("f:1:{column}: {said}")
        );
    }
}

#[test]
fn a_table_is_read_with_columns_in_any_order() {
    let table = "f,type,process,value,key,time\r\n\
                 write,invoke,a,\"[1, \"\"x\"\"]\",k,10\r\n\
                 write,:info,a,two words,7,\r\n\
                 read,info,:nemesis,,,-1\r\n";
    let read = entries(Format::Csv, table);
    assert_eq!(
        all_told(&read),
        [
            "a invoke write \"k\" [1 \"x\"]",
            "a info write 7 \"two words\"",
            "nemesis info read nil",
        ]
    );
    assert_eq!(
        (read[0].time, read[1].time, read[2].time),
        (Some(10), None, None)
    );
    let tokens = entries(Format::Csv, "process,type,f,token\na,info,x,7\na,info,x,\n");
    assert_eq!((&tokens[0].token, &tokens[1].token), (&Some(int(7)), &None));
    assert_eq!(tokens[0].kind, Kind::Info);
}

#[test]
fn a_cell_is_a_form_of_edn_or_else_text() {
    for (cell, value) in [
        ("7", int(7)),
        ("-3", int(-3)),
        ("nil", Value::Nil),
        ("true", Value::Bool(true)),
        ("[0 1]", list([int(0), int(1)])),
        (":timed-out", word("timed-out")),
        ("word", text("word")),
        ("n1:8080", text("n1:8080")),
        ("007", text("007")),
        ("+7", text("+7")),
        ("7 ; seven", text("7 ; seven")),
        ("\"\"\"7\"\"\"", text("7")),
        ("é é", text("é é")),
        ("[", text("[")),
    ] {
        let table = format!("process,type,f,value\n0,info,x,{cell}\n");
        assert_eq!(entries(Format::Csv, table)[0].value, value, "{cell}");
    }
}

#[test]
fn a_table_that_does_not_fit_is_refused_with_line_and_column() {
    for (table, said) in [
        (
            "process,f\n0,read\n",
            "1:1: not CSV: the first row names no column type: it is a header like \
             time,process,type,f,token,key,value",
        ),
        (
            "process,type,f,type\n",
            "1:16: not CSV: the column type stands twice",
        ),
        (
            "process,type,f\n0,invoke\n",
            "2:1: not CSV: the row has 2 fields, too few for the header, which has 3",
        ),
        (
            "process,type,f\n0,,x\n",
            "2:3: field 'type': empty; every operation has one",
        ),
        (
            "process,f,time,type\n\"a,é\",x,1.5,info\n",
            "2:9: field 'time': 1.5 is no time: they are whole nanoseconds, or empty for none",
        ),
        (
            "process,f,time,type\na,x,100000000000000000000000000000,info\n",
            "2:5: field 'time': 100000000000000000000000000000 is too large: the latest time is \
             18446744073709551615",
        ),
        (
            "process;type;f\na;info;x\n",
            "1:1: not CSV: its cells are parted by ';': part them by commas; the first row is a \
             header like time,process,type,f,token,key,value",
        ),
        (
            "process\ttype\tf\na\tinfo\tx\n",
            "1:1: not CSV: its cells are parted by tabs: part them by commas; the first row is a \
             header like time,process,type,f,token,key,value",
        ),
        (
            "# of tuesday\nprocess,type,f\n",
            "1:1: not CSV: a table has no comments: take this line out; the first row is a header \
             like time,process,type,f,token,key,value",
        ),
    ] {
        assert_eq!(refused(Format::Csv, table), format!("f:{said}"));
    }
}
