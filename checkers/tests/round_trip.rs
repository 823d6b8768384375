//! Any event survives being written and read, and any written line being read and
//! written: the bytes are the same.

use deposed_checkers::history::*;
use deposed_checkers::reader::Reader;
use deposed_checkers::writer::{Writer, event_line};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Value, json};

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        "[a-z]{1,8}(#[0-9])?",
        "\\PC{0,40}",
        Just("\"\\\n\u{0}\u{2028}".to_owned())
    ]
    .prop_map(Name::from)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("\\PC{0,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn token() -> impl Strategy<Value = Option<Token>> {
    of(any::<u64>())
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (name(), name(), any::<u64>(), any::<u64>()).prop_map(|(lease, holder, request, ttl)| {
            Op::Acquire(Acquire {
                lease,
                holder,
                request,
                ttl,
            })
        }),
        (name(), name(), token(), any::<u64>(), any::<u64>()).prop_map(
            |(lease, holder, token, attempt, ttl)| Op::Renew(Renew {
                lease,
                holder,
                token,
                attempt,
                ttl
            })
        ),
        (name(), name(), token()).prop_map(|(lease, holder, token)| Op::Release(Release {
            lease,
            holder,
            token
        })),
        (name(), any::<u64>()).prop_map(|(lease, token)| Op::Fence(Fence { lease, token })),
        (name(), token(), token(), name(), value()).prop_map(|(lease, token, seq, key, value)| {
            Op::Write(Write {
                lease,
                token,
                seq,
                key,
                value,
            })
        }),
        (name(), token(), token(), name()).prop_map(|(lease, token, seq, key)| Op::Delete(
            Delete {
                lease,
                token,
                seq,
                key
            }
        )),
        (name(), token(), name()).prop_map(|(lease, token, key)| Op::Read(Read {
            lease,
            token,
            key
        })),
    ]
}

fn f() -> impl Strategy<Value = F> {
    op().prop_map(|op| op.f())
}

fn failure() -> impl Strategy<Value = Failure> {
    (name(), token(), token()).prop_map(|(kind, presented, seen)| Failure {
        kind,
        presented,
        seen,
    })
}

fn leases() -> impl Strategy<Value = std::collections::BTreeMap<Name, RecoveredLease>> {
    let lease =
        (any::<u64>(), of(name()), token()).prop_map(|(counter, holder, ttl)| RecoveredLease {
            counter,
            holder,
            ttl,
        });
    btree_map(name(), lease, 0..3)
}

fn observation() -> impl Strategy<Value = Observation> {
    let number = any::<u64>;
    prop_oneof![
        (name(), name(), token(), token(), token()).prop_map(
            |(lease, holder, token, until, sent)| {
                Observation::Lead(Lead {
                    lease,
                    holder,
                    token,
                    until,
                    sent,
                })
            }
        ),
        (name(), name(), token()).prop_map(|(lease, holder, token)| Observation::Follow(Follow {
            lease,
            holder,
            token
        })),
        (name(), name(), number(), token(), number(), number()).prop_map(
            |(lease, holder, request, token, ttl, clock)| {
                Observation::Granted(Granted {
                    lease,
                    holder,
                    request,
                    token,
                    ttl,
                    clock,
                })
            }
        ),
        (name(), name(), token(), number(), number()).prop_map(
            |(lease, holder, token, ttl, clock)| {
                Observation::Renewed(Renewed {
                    lease,
                    holder,
                    token,
                    ttl,
                    clock,
                })
            }
        ),
        (name(), name(), token(), number()).prop_map(|(lease, holder, token, clock)| {
            Observation::Released(Released {
                lease,
                holder,
                token,
                clock,
            })
        }),
        (name(), token(), number()).prop_map(|(lease, token, clock)| Observation::Expired(
            Expired {
                lease,
                token,
                clock
            }
        )),
        (name(), f(), name(), token(), token(), number(), failure()).prop_map(
            |(lease, f, holder, request, token, clock, error)| {
                Observation::Denied(Denied {
                    lease,
                    f,
                    holder,
                    request,
                    token,
                    clock,
                    error,
                })
            }
        ),
        (leases(), number()).prop_map(|(leases, clock)| {
            Observation::StoreRecovered(StoreRecovered { leases, clock })
        }),
        (number(), leases(), number()).prop_map(|(floor, leases, clock)| {
            Observation::Restored(Restored {
                floor,
                leases,
                clock,
            })
        }),
        (f(), name(), token(), token(), name(), of(value())).prop_map(
            |(f, lease, token, seq, key, value)| {
                Observation::Applied(Applied {
                    f,
                    lease,
                    token,
                    seq,
                    key,
                    value,
                })
            }
        ),
        (name(), number()).prop_map(|(lease, token)| Observation::Fenced(Fenced { lease, token })),
        (f(), name(), number(), token(), number()).prop_map(|(f, lease, token, seq, seen)| {
            Observation::Refused(Refused {
                f,
                lease,
                token,
                seq,
                seen,
            })
        }),
        (name(), name(), value()).prop_map(|(lease, key, value)| {
            Observation::Dropped(Dropped { lease, key, value })
        }),
        btree_map(name(), number(), 0..3)
            .prop_map(|highest| { Observation::StorageRecovered(StorageRecovered { highest }) }),
    ]
}

/// What a call may be answered with.
fn answer(f: F) -> BoxedStrategy<Answer> {
    match f {
        F::Acquire => prop_oneof![Just(Answer::None), any::<u64>().prop_map(Answer::Token)].boxed(),
        F::Read => prop_oneof![Just(Answer::None), value().prop_map(Answer::Value)].boxed(),
        _ => Just(Answer::None).boxed(),
    }
}

/// An event of its own, or a call and its completion; index and time are set later.
fn story() -> impl Strategy<Value = Vec<Event>> {
    let event = |process, kind, body, error| Event {
        index: 0,
        time: 0,
        process,
        kind,
        call: Some(0),
        body,
        error,
    };
    let ends = prop_oneof![Just(Kind::Ok), Just(Kind::Fail), Just(Kind::Info)];
    let call = (name(), op(), ends, of(failure()))
        .prop_flat_map(|(process, op, kind, error)| {
            let answer = answer(op.f());
            (Just(process), Just(op), Just(kind), Just(error), answer)
        })
        .prop_map(move |(process, op, kind, error, answer)| {
            let completion = Body::Complete(op.f(), answer);
            vec![
                event(process.clone(), Kind::Invoke, Body::Invoke(op), None),
                event(process, kind, completion, error),
            ]
        });
    let not_a_node = |process: &Name| process != NEMESIS;
    let alone = move |process, body| {
        vec![Event {
            call: None,
            ..event(process, Kind::Info, body, None)
        }]
    };
    prop_oneof![
        call.prop_filter("a node", move |events| not_a_node(&events[0].process)),
        (name().prop_filter("a node", not_a_node), observation())
            .prop_map(move |(process, seen)| alone(process, Body::Observed(seen))),
        (name(), value())
            .prop_map(move |(f, value)| alone(NEMESIS.into(), Body::Nemesis(f, value))),
        (
            name().prop_filter("a node", not_a_node),
            "odd[0-9]",
            value()
        )
            .prop_map(move |(process, f, value)| alone(process, Body::Foreign(f.into(), value))),
    ]
}

fn history() -> impl Strategy<Value = Vec<Event>> {
    (vec(story(), 0..6), any::<u32>()).prop_map(|(stories, step)| {
        let mut events: Vec<Event> = Vec::new();
        for mut story in stories {
            let call = events.len() as u64;
            for event in &mut story {
                event.index = events.len() as u64;
                event.time = event.index * u64::from(step);
                event.call = event.call.map(|_| call);
                events.push(event.clone());
            }
        }
        events
    })
}

fn written(header: &Header, events: &[Event]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    events.iter().for_each(|event| writer.write(event).unwrap());
    writer.finish().unwrap()
}

proptest! {
    #[test]
    fn events_survive_the_file(events in history(), title in name(), extra in value()) {
        let header = json!({"deposed": 1, "workload": title, "schedule": extra, "clocks": {"a": 1}});
        let header: Header = serde_json::from_value(header).unwrap();
        let bytes = written(&header, &events);
        let (found, reader) = Reader::new(bytes.as_slice(), "file").unwrap();
        let read: Vec<Event> = reader.collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&found, &header);
        prop_assert_eq!(&read, &events);
        prop_assert_eq!(written(&found, &read), bytes);
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200), header in any::<bool>()) {
        let mut text = if header { b"{\"deposed\":1}\n".to_vec() } else { Vec::new() };
        text.extend(bytes);
        if let Ok((_, reader)) = Reader::new(text.as_slice(), "file") {
            reader.for_each(drop);
        }
    }

    #[test]
    fn no_damaged_line_panics(events in history(), at in any::<prop::sample::Index>(), byte: u8) {
        let header: Header = serde_json::from_value(json!({"deposed": 1})).unwrap();
        let mut bytes = written(&header, &events);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok((header, reader)) = Reader::new(bytes.as_slice(), "file") {
            let events: Vec<Event> = reader.map_while(Result::ok).collect();
            deposed_checkers::judge::judge(&header, &events);
        }
    }
}

/// The order of fields is part of the format.
#[test]
fn lines_look_like_this() {
    let lines = [
        r#"{"index":0,"time":1000000,"process":"a","type":"invoke","call":1,"f":"acquire","value":{"lease":"leader","holder":"a#1","request":1,"ttl":500000000}}"#,
        r#"{"index":1,"time":4000000,"process":"a","type":"ok","call":1,"f":"acquire","value":{"token":1}}"#,
        r#"{"index":2,"time":4000000,"process":"a","type":"info","f":"lead","value":{"lease":"leader","holder":"a#1","token":1,"until":371000000,"sent":1000000}}"#,
        r#"{"index":3,"time":4000000,"process":"a","type":"invoke","call":2,"f":"write","value":{"lease":"leader","token":1,"seq":1,"key":"x","value":null}}"#,
        r#"{"index":4,"time":5000000,"process":"a","type":"fail","call":2,"f":"write","value":null,"error":{"kind":"stale-token","presented":1,"seen":2}}"#,
        r#"{"index":5,"time":5000000,"process":"nemesis","type":"info","f":"pause","value":{"node":"a"}}"#,
    ];
    let text = format!("{{\"deposed\":1}}\n{}\n", lines.join("\n"));
    let (_, reader) = Reader::new(text.as_bytes(), "file").unwrap();
    let read: Vec<String> = reader.map(|event| event_line(&event.unwrap())).collect();
    assert_eq!(read, lines);
}
