//! Jepsen's EDN, with everything that Clojure prints.

use std::collections::BTreeMap;

use deposed_checkers::import::{Format, Value};

use super::{all_told, entries, int, list, refused, text, word};

/// The value of an operation that is written so.
fn value(written: &str) -> Value {
    let history = format!("[{{:process 0 :type :info :f :x :value {written}}}]");
    entries(Format::Edn, history).remove(0).value
}

#[test]
fn a_vector_a_list_and_loose_maps_are_the_same_history() {
    let operations = "{:process 0, :type :invoke, :f :read, :value nil}\n\
                      {:process 0, :type :ok, :f :read, :value 3}\n";
    let expected = ["0 invoke read nil", "0 ok read 3"];
    for written in [
        operations.to_owned(),
        format!("[{operations}]"),
        format!("({operations})\n"),
        format!("; a subset\n#_(not this) [#_{{:not :this}} {operations} ; nor this\n]"),
        operations.replace('{', "#jepsen.history.Op{"),
        operations.replace('\n', "\r\n"),
        format!("\u{feff}{operations}"),
    ] {
        assert_eq!(
            all_told(&entries(Format::Edn, &written)),
            expected,
            "{written}"
        );
    }
}

#[test]
fn an_empty_history_is_empty() {
    for written in ["", " \n", "[]", "()", "; nothing\n", "[ #_{:process 0} ]"] {
        assert_eq!(entries(Format::Edn, written), [], "{written:?}");
    }
}

#[test]
fn the_fields_are_read_and_others_passed_over() {
    let history = "{:index 4, :time 12, :process :nemesis, :type :info, :f :kill, :key \"k\", \
                   :token 7, :value {\"n1\" :killed}, :error [:timeout 5], :node \"n1\"}\n\
                   {:time -1 :process \"a b\" :type \"info\" :f kill}";
    let read = entries(Format::Edn, history);
    let [first, second] = &read[..] else {
        panic!("two")
    };
    assert_eq!((first.index, first.time), (4, Some(12)));
    assert_eq!((&*first.process, &*first.f), ("nemesis", "kill"));
    assert_eq!(
        (&first.key, &first.token),
        (&Some(text("k")), &Some(int(7)))
    );
    assert_eq!(first.error, Some(list([word("timeout"), int(5)])));
    assert_eq!(
        first.value,
        Value::Map(BTreeMap::from([("n1".into(), word("killed"))]))
    );
    assert_eq!(
        (second.index, second.time, &*second.process),
        (5, None, "a b")
    );
    assert_eq!(
        (second.value.clone(), second.place.to_string()),
        (Value::Nil, "2:1".to_owned())
    );
}

#[test]
fn every_form_is_read_as_it_is_meant() {
    let number = |written: &str| Value::Number(written.into());
    let tagged = |tag: &str, value| Value::Tagged(tag.into(), Box::new(value));
    let map = |fields: Vec<(&str, Value)>| {
        Value::Map(
            fields
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    };
    for (written, meant) in [
        ("nil", Value::Nil),
        ("true", Value::Bool(true)),
        ("-9223372036854775808", int(i64::MIN)),
        ("9223372036854775807", int(i64::MAX)),
        ("+5", int(5)),
        ("-0", int(0)),
        ("7N", int(7)),
        ("9223372036854775808", number("9223372036854775808")),
        ("9223372036854775808N", number("9223372036854775808")),
        ("1.50M", number("1.50M")),
        ("1e400", number("1e400")),
        ("-2.5E-3", number("-2.5E-3")),
        ("##NaN", number("##NaN")),
        ("##-Inf", number("##-Inf")),
        ("22/7", number("22/7")),
        (":a.b/c", word("a.b/c")),
        ("sym/bol", word("sym/bol")),
        ("-", word("-")),
        (r#""a \"b\" \\ \n é""#, text("a \"b\" \\ \n é")),
        (r#""\u00e9 \ud83d\ude00 \101""#, text("é 😀 A")),
        ("\"two\nlines\"", text("two\nlines")),
        (r"\a", text("a")),
        (r"\newline", text("\n")),
        (r"\u0041", text("A")),
        (r"\o101", text("A")),
        (r"[\( \] \,]", list([text("("), text("]"), text(",")])),
        ("[1,(2) []]", list([int(1), list([int(2)]), list([])])),
        ("#{3 1}", Value::Set(vec![int(3), int(1)])),
        ("{:a 1 \"b\" 2}", map(vec![("a", int(1)), ("b", int(2))])),
        ("{0 10, [1] 2}", map(vec![("0", int(10)), ("[1]", int(2))])),
        (
            "#:a{:b 1 :_/c 2 :d/e 3}",
            map(vec![("a/b", int(1)), ("c", int(2)), ("d/e", int(3))]),
        ),
        ("#inst \"2020-01-01\"", tagged("inst", text("2020-01-01"))),
        ("#a.B{:c 1}", tagged("a.B", map(vec![("c", int(1))]))),
        (
            "#object[a.B 0x1f \"b\"]",
            tagged("object", list([word("a.B"), number("0x1f"), text("b")])),
        ),
        ("#\"a\\.\\\"b\"", tagged("regex", text("a\\.\\\"b"))),
        ("[#_1 2 #_#_3 4 5 #_[6 #_7]]", list([int(2), int(5)])),
        ("{:a #_1 2 #_:b #_3}", map(vec![("a", int(2))])),
        (
            "{:client \"n1\", :fence 3, :uid \"u\"}",
            map(vec![
                ("client", text("n1")),
                ("fence", int(3)),
                ("uid", text("u")),
            ]),
        ),
    ] {
        assert_eq!(value(written), meant, "{written}");
    }
}

#[test]
fn what_is_no_edn_is_refused_where_it_stands() {
    for (written, said) in [
        ("017", "1:39: not EDN: 017 is no number"),
        ("1a", "1:39: not EDN: 1a is no number"),
        (":", "1:39: not EDN: ':' is followed by no name"),
        (
            "^{:a 1} []",
            "1:39: not EDN: '^' begins no value: it is code's",
        ),
        ("\"\\q\"", "1:40: not EDN: \\q is no character"),
        ("\"\\ud83d!\"", "1:40: not EDN: \\ud83d is no character"),
        ("\\nothing", "1:39: not EDN: \\nothing is no character"),
        ("##Nan", "1:39: not EDN: ##Nan is no number"),
        ("# tag", "1:39: not EDN: '#' is followed by no tag"),
        ("[1 )", "1:42: not EDN: ')' closes nothing"),
        (
            "{:a}",
            "1:42: not EDN: a bracket is closed, and a value is missing",
        ),
        (
            "{:a 1 :a 2}",
            "1:45: not EDN: the key a stands twice in a map",
        ),
    ] {
        let history = format!("[{{:process 0 :type :info :f :é :value {written}}}]");
        // The column is in characters: é is one.
        assert_eq!(
            refused(Format::Edn, history),
            format!("f:{said}"),
            "{written}"
        );
    }
    for (history, said) in [
        (
            "[{:process 0 :type :info :f :x}\n7]",
            "f:2:1: not EDN: an operation is a map, as {:process 0, :type :invoke, :f :read}",
        ),
        (
            "[] []",
            "f:1:4: not EDN: the history's vector is closed, and more follows",
        ),
        (
            "[{:process 0 :type :info :f :x})",
            "f:1:32: not EDN: ')' closes nothing",
        ),
    ] {
        assert_eq!(refused(Format::Edn, history), said);
    }
}
