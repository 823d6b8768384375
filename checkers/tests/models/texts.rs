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
