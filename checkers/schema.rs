//! The format as a JSON Schema, for whoever writes a recorder in another language.
//!
//! [`HISTORY`] is the file `history.schema.json` beside this crate's manifest. Under the
//! feature `schema` it is generated anew from the types that the reader reads, and a test
//! compares the two.

/// The JSON Schema (draft 2020-12) of one line of a history, as text: its header where it
/// has the field `deposed`, else an event. What holds between lines (indices that rise by one,
/// time that does not go back, calls that are completed once) no schema can say:
/// [`well_formed`](crate::well_formed) does.
pub const HISTORY: &str = include_str!("history.schema.json");

#[cfg(feature = "schema")]
pub use generated::history;

#[cfg(all(test, feature = "schema"))]
use generated::EVERY_LINE;
#[cfg(all(test, feature = "schema"))]
mod tests;

#[cfg(feature = "schema")]
mod generated {
    use schemars::generate::SchemaSettings;
    use schemars::transform::RecursiveTransform;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde_json::{Value, json};

    use crate::history::*;

    /// A history in which every kind of line occurs: the examples.
    pub(super) const EVERY_LINE: &str = include_str!("schema/every-line.jsonl");

    /// Generates the schema from the types.
    pub fn history() -> Schema {
        let widest = RecursiveTransform(|schema: &mut Schema| {
            if schema.get("format") == Some(&json!("uint64")) && schema.get("maximum").is_none() {
                schema.insert("maximum".to_owned(), u64::MAX.into());
            }
        });
        let settings = SchemaSettings::draft2020_12().with_transform(widest);
        settings.into_generator().into_root_schema_for::<Line>()
    }

    /// What one line may be.
    struct Line;

    impl JsonSchema for Line {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "A line of a history".into()
        }

        fn json_schema(types: &mut SchemaGenerator) -> Schema {
            let (header, event) = (
                types.subschema_for::<Header>(),
                types.subschema_for::<Event>(),
            );
            json_schema!({
                "description": "A history is a text of JSON objects in UTF-8, one a line. Line 1 is \
                    a header, and the only line with the field `deposed`; every further line is an \
                    event. Times and durations are nanoseconds, as integers. `index` counts events \
                    from 0, `time` never goes back, and a call is completed once or never. Fields \
                    that are not named here are kept and ignored.",
                "if": {"required": ["deposed"]},
                "then": header,
                "else": event,
            })
        }
    }

    impl JsonSchema for Event {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Event".into()
        }

        fn json_schema(types: &mut SchemaGenerator) -> Schema {
            let (kind, error) = (
                types.subschema_for::<Kind>(),
                types.subschema_for::<Option<Failure>>(),
            );
            let integer = types.subschema_for::<u64>();
            let described = |schema: &Schema, description: &str| {
                let mut schema = schema.clone();
                schema.insert("description".to_owned(), description.into());
                schema
            };
            json_schema!({
                "description": "What happened, one event a line. `f` and `type` tell what `value` holds.",
                "type": "object",
                "properties": {
                    "index": described(&integer, "Counts events from 0, by one."),
                    "time": described(
                        &integer,
                        "Nanoseconds since the start of the run, by one clock for every process; \
                         never less than the line before."
                    ),
                    "process": {
                        "description": "Who: a client, a store or storage node, or `nemesis`, which \
                            injects faults.",
                        "type": "string",
                    },
                    "type": kind,
                    "call": {
                        "description": "Pairs an invoke with its completion, and is unique in the \
                            file. May be left out by a process that has one call open at a time.",
                        "type": ["integer", "null"],
                        "format": "uint64",
                        "minimum": 0,
                    },
                    "f": {
                        "description": "What was called, or observed.",
                        "type": "string",
                    },
                    "value": {"description": "What goes with it; by `f` and `type`."},
                    "error": described(&error, "Why a call failed, or what its outcome is unknown for."),
                },
                "required": ["index", "time", "process", "type", "f"],
                "oneOf": variants(types),
            })
        }
    }

    /// The kinds of events, each with examples.
    fn variants(types: &mut SchemaGenerator) -> Vec<Value> {
        let mut known: Vec<&str> = Vec::new();
        let mut variants = Vec::new();
        let calls = [
            (F::Acquire, types.subschema_for::<Acquire>()),
            (F::Renew, types.subschema_for::<Renew>()),
            (F::Release, types.subschema_for::<Release>()),
            (F::Fence, types.subschema_for::<Fence>()),
            (F::Write, types.subschema_for::<Write>()),
            (F::Delete, types.subschema_for::<Delete>()),
            (F::Read, types.subschema_for::<Read>()),
        ];
        for (f, op) in calls {
            let f_name = f.name();
            known.push(f_name);
            variants.push(variant(
                &format!("{f_name} is called"),
                json!({"type": {"const": "invoke"}, "f": {"const": f_name}, "value": op}),
                &["value"],
            ));
            variants.push(variant(
                &format!("{f_name} is answered, or given up"),
                json!({
                    "type": {"enum": ["ok", "fail", "info"]},
                    "f": {"const": f_name},
                    "value": answer(f),
                }),
                &[],
            ));
        }
        let observations = [
            ("lead", types.subschema_for::<Lead>()),
            ("follow", types.subschema_for::<Follow>()),
            ("granted", types.subschema_for::<Granted>()),
            ("renewed", types.subschema_for::<Renewed>()),
            ("released", types.subschema_for::<Released>()),
            ("expired", types.subschema_for::<Expired>()),
            ("denied", types.subschema_for::<Denied>()),
            ("recovered", recovered(types)),
            ("restored", types.subschema_for::<Restored>()),
            ("applied", types.subschema_for::<Applied>()),
            ("fenced", types.subschema_for::<Fenced>()),
            ("refused", types.subschema_for::<Refused>()),
            ("dropped", types.subschema_for::<Dropped>()),
        ];
        for (f, value) in observations {
            known.push(f);
            variants.push(variant(
                &format!("{f} is observed"),
                json!({"type": {"const": "info"}, "f": {"const": f}, "value": value}),
                &["value"],
            ));
        }
        variants.push(variant(
            "a fault strikes or ends",
            json!({"process": {"const": NEMESIS}, "type": {"const": "info"}}),
            &[],
        ));
        variants.push(variant(
            "anything else that is observed: kept, and judged by nobody",
            json!({"type": {"const": "info"}, "f": {"not": {"enum": known}}}),
            &[],
        ));
        variants
    }

    fn variant(title: &str, mut properties: Value, required: &[&str]) -> Value {
        let faults = properties["process"] == json!({"const": NEMESIS});
        if !faults {
            properties["process"] = json!({"not": {"const": NEMESIS}});
        }
        let fits = |line: &&Value| match (faults, line["process"] == NEMESIS) {
            (true, nemesis) => nemesis,
            (false, true) => false,
            (false, false) => {
                admits(&properties["type"], &line["type"]) && admits(&properties["f"], &line["f"])
            }
        };
        let lines: Vec<Value> = EVERY_LINE
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str(line).expect("the examples are JSON"))
            .collect();
        let examples: Vec<&Value> = lines.iter().filter(fits).take(2).collect();
        let mut variant = json!({"title": title, "properties": properties, "examples": examples});
        if !required.is_empty() {
            variant["required"] = json!(required);
        }
        variant
    }

    /// Whether a value is what a `const`, an `enum` or a `not` asks for.
    fn admits(asked: &Value, value: &Value) -> bool {
        let listed = |list: &Value| list.as_array().is_some_and(|list| list.contains(value));
        match asked {
            Value::Null => true,
            asked if asked["not"].is_object() => !listed(&asked["not"]["enum"]),
            asked if asked["enum"].is_array() => listed(&asked["enum"]),
            asked => asked["const"] == *value,
        }
    }

    /// What an answer brings back; an echo of the call is ignored.
    fn answer(f: F) -> Value {
        match f {
            F::Acquire => json!({
                "description": "The token granted; null from systems that have none.",
                "type": ["object", "null"],
                "properties": {"token": {
                    "type": ["integer", "null"], "format": "uint64", "minimum": 0,
                }},
            }),
            F::Read => json!({
                "description": "The value found, or null for a key that is absent; without the \
                    field, or null as a whole, nothing is claimed about what was read.",
                "type": ["object", "null"],
                "properties": {"value": true},
            }),
            _ => json!({"description": "Nothing.", "type": ["object", "null"]}),
        }
    }

    /// The store's and storage's share a name; what they hold tells them apart.
    fn recovered(types: &mut SchemaGenerator) -> Schema {
        let (store, storage) = (
            types.subschema_for::<StoreRecovered>(),
            types.subschema_for::<StorageRecovered>(),
        );
        json_schema!({"oneOf": [store, storage]})
    }
}
