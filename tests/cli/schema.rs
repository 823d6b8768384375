//! `deposed schema`: the format, for whoever records in another language.

use super::{deposed, scratch};

#[test]
fn the_schema_that_is_printed_is_the_one_that_is_kept() {
    let (code, out, err) = deposed(&scratch("schema"), "schema");
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, include_str!("../../checkers/history.schema.json"));
    let schema: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(schema["$defs"]["Event"]["oneOf"].is_array());
}
