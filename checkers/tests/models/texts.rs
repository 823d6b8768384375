//! Stores of texts: `get`, `put`, `append`.

use deposed_checkers::model::Model::Kv;

use crate::{convicts, passes};

#[test]
fn a_text_is_empty_at_first() {
    passes(
        "1 invoke get\n1 ok get \"\"\n1 invoke get\n1 ok get nil",
        Kv,
    );
}

#[test]
fn appends_take_effect_in_one_order() {
    let read = |read: &str| {
        format!(
            "1 invoke append \"x\"\n2 invoke append \"y\"\n1 ok append\n2 ok append\n\
             3 invoke get\n3 ok get \"xy\"\n3 invoke get\n3 ok get \"{read}\""
        )
    };
    passes(&read("xy"), Kv);
    convicts(
        &read("yx"),
        Kv,
        "process 3 got \"yx\" of the register, and no order of its puts and appends explains that",
        &[4, 5, 6, 7],
    );
}

/// A text that lacks what was appended before shows that, if no put came since.
#[test]
fn an_appended_text_must_not_be_missing() {
    let read = |put: &str| {
        format!(
            "3 invoke append \"a\"\n3 ok append\n{put}1 invoke append \"x\"\n1 ok append\n\
             2 invoke get\n2 ok get \"a\"\n4 ok put"
        )
    };
    convicts(
        &read("").replace("\n4 ok put", ""),
        Kv,
        "process 2 got \"a\" of the register, and no order of its puts and appends explains that; \
         process 1 had appended \"x\" before, which no put can have replaced",
        &[2, 3, 4, 5],
    );
    passes(&read("4 invoke put \"a\"\n"), Kv);
}

/// A text that by itself is wrong is shown with whatever could have made a part of it.
#[test]
fn what_made_a_wrong_text_is_shown() {
    let read = |read: &str| {
        format!(
            "1 invoke append \"x\"\n1 ok append\n1 invoke append \"-\"\n1 ok append\n\
             1 invoke append \"y\"\n1 ok append\n2 invoke get\n2 ok get \"{read}\""
        )
    };
    passes(&read("x-y"), Kv);
    convicts(&read("yx"), Kv, "process 2 got \"yx\"", &[0, 1, 4, 5, 6, 7]);
    convicts(
        &read("z"),
        Kv,
        "and nobody had put or appended any part of it by then",
        &[6, 7],
    );
}

/// Of two appends that are alike one may be unseen before a put, though it ends first and the
/// other one, which began after the put, was seen already.
#[test]
fn of_appends_that_are_alike_either_may_be_the_one_that_was_seen() {
    let append = "1 invoke append \"a\"\n";
    let text = |before: &str, after: &str| {
        format!(
            "{before}2 invoke put \"x\"\n2 ok put\n{after}3 invoke append \"a\"\n\
             2 invoke get\n2 ok get \"xa\"\n1 ok append\n3 ok append\n\
             2 invoke get\n2 ok get \"xa\""
        )
    };
    passes(&text(append, ""), Kv);
    convicts(&text("", append), Kv, "got \"xa\"", &[2, 3, 6, 7, 8, 9]);
}

#[test]
fn a_put_replaces_what_was_there() {
    let read = |read: &str| {
        format!(
            "1 invoke append \"x\"\n1 ok append\n1 invoke put \"a\"\n1 ok put\n\
             1 invoke append \"y\"\n1 ok append\n2 invoke get\n2 ok get \"{read}\""
        )
    };
    passes(&read("ay"), Kv);
    convicts(&read("xy"), Kv, "process 2 got \"xy\"", &[2, 3, 6, 7]);
}

/// A lost put of what is there already hides a put under way, and is appended to.
#[test]
fn a_lost_put_hides_one_under_way() {
    let text = "1 invoke put \"b\"\n1 ok put\n2 invoke put \"b\"\n2 info put\n\
                5 invoke append \"c\"\n6 invoke put \"a\"\n5 ok append\n6 ok put\n\
                5 invoke get\n5 ok get \"bc\"";
    passes(text, Kv);
    convicts(
        &text.replace("info", "fail"),
        Kv,
        "got \"bc\"",
        &[5, 7, 8, 9],
    );
}
