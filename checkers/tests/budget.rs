//! A judge never remembers more than its budget, whatever there is too much of, and says
//! so; what needs no memory for it goes on.

use std::convert::Infallible;

use deposed_checkers::budget::Budget;
use deposed_checkers::history::*;
use deposed_checkers::import::{self, Entry, Place};
use deposed_checkers::judge::Judge;
use deposed_checkers::model::{Model, judge};
use deposed_checkers::verdict::{Check, Verdict, Verdicts};
use serde_json::{Value, json};

const BUDGET: Budget = Budget {
    bytes: 1_000_000,
    steps: 1,
    jobs: 1,
};

/// Well past the budget.
const MANY: u64 = 4_000;

/// A stream of events into a judge: none is kept here.
struct Stream {
    judge: Judge,
    index: u64,
}

impl Stream {
    fn new() -> Self {
        let header = json!({
            "deposed": 1,
            "lease": {"ttl": 1_000_000_000u64, "lock_delay": 1, "max_drift_ppb": 1},
            "network": {"max_latency": 1},
        });
        let header: Header = serde_json::from_value(header).unwrap();
        Stream {
            judge: Judge::new(&header).within(BUDGET),
            index: 0,
        }
    }

    fn line(&mut self, process: &str, kind: Kind, call: Option<u64>, body: Body) {
        let (index, process) = (self.index, process.into());
        self.index += 1;
        self.judge.see(&Event {
            index,
            time: index * 1_000,
            process,
            kind,
            call,
            body,
            error: None,
        });
    }

    fn invoke(&mut self, process: &str, op: Op) -> u64 {
        let call = self.index;
        self.line(process, Kind::Invoke, Some(call), Body::Invoke(op));
        call
    }

    fn call(&mut self, process: &str, op: Op, kind: Kind, answer: Answer) {
        let f = op.f();
        let call = self.invoke(process, op);
        self.line(process, kind, Some(call), Body::Complete(f, answer));
    }

    fn saw(&mut self, process: &str, seen: Observation) {
        self.line(process, Kind::Info, None, Body::Observed(seen));
    }

    /// The checks that gave up, all for the same reason; the others must not have.
    fn gave_up(self, why: &str) -> Vec<Check> {
        let verdicts = self.judge.finish();
        let gave_up = verdicts
            .0
            .iter()
            .filter_map(|(check, verdict)| match verdict {
                Verdict::Unknown(sentence) => {
                    let both = ["more than 1000 things would have to be remembered", why];
                    assert!(
                        both.iter().all(|part| sentence.contains(part)),
                        "{check}: {sentence}"
                    );
                    Some(*check)
                }
                Verdict::Violated(evidence) => panic!("{check}: {evidence:?}"),
                _ => None,
            });
        gave_up.collect()
    }
}

fn name(what: &str, nth: u64) -> Name {
    format!("{what}-{nth}").into()
}

fn acquire(lease: Name, holder: Name, request: u64) -> Op {
    let ttl = 1_000_000_000;
    Op::Acquire(Acquire {
        lease,
        holder,
        request,
        ttl,
    })
}

fn write(token: Token, seq: u64, key: Name, value: Value) -> Op {
    let (lease, token, seq) = ("leader".into(), Some(token), Some(seq));
    Op::Write(Write {
        lease,
        token,
        seq,
        key,
        value,
    })
}

/// One leader, which then writes.
fn led() -> Stream {
    let mut stream = Stream::new();
    stream.call(
        "a",
        acquire("leader".into(), "a#1".into(), 1),
        Kind::Ok,
        Answer::Token(1),
    );
    let fence = Fence {
        lease: "leader".into(),
        token: 1,
    };
    stream.call("a", Op::Fence(fence), Kind::Ok, Answer::None);
    stream
}

#[test]
fn calls_that_are_open_for_ever_leave_everything_undecided() {
    let mut stream = led();
    for seq in 1..MANY {
        stream.invoke("a", write(1, seq, "x".into(), json!(seq)));
    }
    assert_eq!(stream.gave_up(""), Check::OF_LEASES);
    // By process, without an id.
    let mut stream = led();
    for nth in 1..MANY {
        let read = Read {
            lease: "leader".into(),
            token: None,
            key: "x".into(),
        };
        stream.line(
            &name("p", nth),
            Kind::Invoke,
            None,
            Body::Invoke(Op::Read(read)),
        );
    }
    assert_eq!(stream.gave_up(""), Check::OF_LEASES);
}

#[test]
fn as_many_calls_as_one_likes_may_come_one_after_the_other() {
    let mut stream = led();
    for seq in 1..20 * MANY {
        let value = json!(seq);
        stream.call(
            "a",
            write(1, seq, "x".into(), value.clone()),
            Kind::Ok,
            Answer::None,
        );
        let read = Op::Read(Read {
            lease: "leader".into(),
            token: Some(1),
            key: "x".into(),
        });
        stream.call("a", read, Kind::Ok, Answer::Value(value));
    }
    assert_eq!(stream.gave_up(""), []);
}

/// A hundred terms of each of five clients in turn, again and again.
#[test]
fn as_many_terms_as_one_likes_may_come_one_after_the_other() {
    let mut stream = Stream::new();
    for token in 1..20 * MANY {
        let process = name("p", token % 5);
        let (lease, holder): (Name, Name) = ("leader".into(), format!("{process}#1").into());
        let asked = acquire(lease.clone(), holder.clone(), token);
        stream.call(&process, asked, Kind::Ok, Answer::Token(token));
        let fence = Fence {
            lease: lease.clone(),
            token,
        };
        stream.call(&process, Op::Fence(fence), Kind::Ok, Answer::None);
        let release = Release {
            lease,
            holder,
            token: Some(token),
        };
        stream.call(&process, Op::Release(release), Kind::Ok, Answer::None);
    }
    let gave_up = stream.gave_up("");
    // Each holder's last tokens are remembered, a thousand of them.
    assert_eq!(gave_up, [Check::TokenMonotonicity, Check::ElectionBarrier]);
}

#[test]
fn values_that_nobody_overwrites_are_too_many_for_the_register_alone() {
    let mut stream = led();
    for seq in 1..MANY {
        // Each may take effect at any later time.
        stream.call(
            "a",
            write(1, seq, "x".into(), json!(seq)),
            Kind::Info,
            Answer::None,
        );
    }
    let checks = [
        Check::StorageSafety,
        Check::ZombieWrite,
        Check::RegisterLinearizable,
    ];
    let gave_up = stream.gave_up("");
    assert_eq!(gave_up, checks);
}

#[test]
fn keys_are_remembered_by_the_register_alone() {
    let mut stream = led();
    for seq in 1..MANY {
        stream.call(
            "a",
            write(1, seq, name("k", seq), json!(seq)),
            Kind::Ok,
            Answer::None,
        );
    }
    assert_eq!(stream.gave_up("keys"), [Check::RegisterLinearizable]);
}

#[test]
fn leases_are_remembered_by_whoever_judges_leases() {
    let mut stream = Stream::new();
    for nth in 1..MANY {
        let (lease, token) = (name("lease", nth), 1);
        let asked = acquire(lease.clone(), "a#1".into(), nth);
        stream.call("a", asked, Kind::Ok, Answer::Token(token));
        let fence = Fence {
            lease: lease.clone(),
            token,
        };
        stream.call("a", Op::Fence(fence), Kind::Ok, Answer::None);
        let write = Write {
            lease,
            token: Some(token),
            seq: Some(1),
            key: "x".into(),
            value: json!(nth),
        };
        stream.call("a", Op::Write(write), Kind::Ok, Answer::None);
    }
    let all_but = |spared: &[Check]| -> Vec<Check> {
        let checks = Check::OF_LEASES.into_iter();
        checks.filter(|check| !spared.contains(check)).collect()
    };
    assert_eq!(stream.gave_up(""), all_but(&[Check::WellFormed]));
}

/// Each is a holder of its own, asks once and is refused.
#[test]
fn processes_are_remembered_by_whoever_judges_terms() {
    let mut stream = led();
    for nth in 1..MANY {
        let process = name("p", nth);
        let holder = format!("{process}#1").into();
        let asked = acquire("leader".into(), holder, 1);
        stream.call(&process, asked, Kind::Fail, Answer::None);
    }
    let gave_up = stream.gave_up("");
    let spared = [
        Check::WellFormed,
        Check::StorageSafety,
        Check::RegisterLinearizable,
    ];
    for check in Check::OF_LEASES {
        assert_eq!(
            gave_up.contains(&check),
            !spared.contains(&check),
            "{check}"
        );
    }
}

#[test]
fn beliefs_that_never_end_are_too_many() {
    let mut stream = led();
    for nth in 1..MANY {
        let lead = Lead {
            lease: name("lease", nth),
            holder: "a#1".into(),
            token: Some(nth),
            until: None,
            sent: None,
        };
        stream.saw("a", Observation::Lead(lead));
    }
    assert_eq!(
        stream.gave_up(""),
        [Check::BeliefSafety, Check::Failover, Check::Conduct]
    );
}

#[test]
fn clocks_that_change_without_end_are_too_many() {
    let mut stream = led();
    for nth in 1..MANY {
        let value = json!({"node": "a", "rate_ppb": 999_000_000 + nth});
        stream.line(
            "nemesis",
            Kind::Info,
            None,
            Body::Nemesis("rate".into(), value),
        );
    }
    assert_eq!(
        stream.gave_up("changes of clocks' rates"),
        [
            Check::BeliefSafety,
            Check::LeaseLinearizable,
            Check::LockDelay,
            Check::Failover
        ]
    );
}

/// What a store and storage tell of, when they come back, too.
#[test]
fn what_servers_tell_of_counts() {
    let mut stream = led();
    let leases = (0..MANY).map(|nth| {
        let (counter, holder) = (1, Some("a#1".into()));
        (
            name("lease", nth),
            RecoveredLease {
                counter,
                holder,
                ttl: None,
            },
        )
    });
    let recovered = StoreRecovered {
        leases: leases.collect(),
        clock: 1,
    };
    stream.saw("store", Observation::StoreRecovered(recovered));
    let highest = (0..MANY).map(|nth| (name("lease", nth), 1)).collect();
    stream.saw(
        "storage",
        Observation::StorageRecovered(StorageRecovered { highest }),
    );
    for _ in 0..MANY {
        let read = Op::Read(Read {
            lease: "leader".into(),
            token: None,
            key: "x".into(),
        });
        stream.call("b", read, Kind::Ok, Answer::Value(Value::Null));
    }
    assert_eq!(
        stream.gave_up(""),
        [
            Check::TokenMonotonicity,
            Check::StorageSafety,
            Check::ElectionBarrier,
            Check::LeaseLinearizable,
            Check::LockDelay
        ]
    );
}

#[test]
fn what_was_convicted_before_stands() {
    let mut stream = led();
    stream.call(
        "b",
        Op::Fence(Fence {
            lease: "leader".into(),
            token: 9,
        }),
        Kind::Ok,
        Answer::None,
    );
    stream.call(
        "a",
        write(1, 1, "x".into(), json!(1)),
        Kind::Ok,
        Answer::None,
    );
    for seq in 2..MANY {
        stream.invoke("a", write(1, seq, "x".into(), json!(seq)));
    }
    let Verdicts(verdicts) = stream.judge.finish();
    for (check, verdict) in verdicts {
        match check {
            Check::StorageSafety => assert!(verdict.is_violated(), "{verdict:?}"),
            _ => assert_eq!(verdict.word(), "unknown", "{check}: {verdict:?}"),
        }
    }
}

/// Two calls on each of so many keys, one after the other; counts the keys that were asked for.
fn keys(model: Model, many: u64, asked: &mut u64) -> impl Iterator<Item = Entry> {
    let calls = match model {
        Model::Register => ["write", "read"],
        Model::CasRegister => ["write", "cas"],
        Model::Kv => ["append", "get"],
        _ => ["acquire", "release"],
    };
    let lines = (0..many)
        .inspect(|key| *asked = key + 1)
        .flat_map(move |key| {
            let call = |nth| [(nth, Kind::Invoke), (nth, Kind::Ok)];
            let lines = [call(0), call(1)].into_iter().flatten().enumerate();
            lines.map(move |(line, (nth, kind))| (key, 4 * key + line as u64, calls[nth], kind))
        });
    lines.map(move |(key, index, f, kind)| Entry {
        index,
        time: None,
        process: "1".into(),
        kind,
        f: f.into(),
        key: Some(import::Value::Text(name("k", key))),
        token: None,
        value: match f {
            "cas" => import::Value::List(vec![import::Value::Int(1), import::Value::Int(2)]),
            "acquire" => import::Value::Int(key as i64),
            "release" => import::Value::Nil,
            "append" | "get" => import::Value::Text("x".into()),
            _ => import::Value::Int(1),
        },
        error: None,
        place: Place {
            line: index + 1,
            column: 1,
        },
    })
}

/// A key counts with what it takes: some hundred bytes of a register, however few calls it had,
/// and not much more than a thousand of a lock.
#[test]
fn keys_without_end_are_too_many_for_every_model() {
    for (model, least, most) in [
        (Model::Register, 200, 500),
        (Model::CasRegister, 200, 700),
        (Model::Kv, 200, 500),
        (Model::Mutex, 1_000, 4_000),
        (Model::OwnedMutex, 500, 1_500),
        (Model::FencedMutex, 500, 1_500),
    ] {
        let mut asked = 0;
        let entries = keys(model, 10 * MANY, &mut asked);
        let budget = Budget {
            steps: 1_000,
            ..BUDGET
        };
        let judged = judge(entries.map(Ok::<_, Infallible>), Some(model), budget).unwrap();
        let Some(Verdict::Unknown(why)) = model.check().and_then(|check| judged.verdicts.of(check))
        else {
            panic!("{model} remembered {asked} keys: {:?}", judged.verdicts)
        };
        assert!(
            why.contains("keys, and what is remembered of each"),
            "{model}: {why}"
        );
        assert!(why.contains("(--max-memory)"), "{model}: {why}");
        let each = BUDGET.bytes / asked;
        assert!((least..most).contains(&each), "{model}: {each} bytes a key");
    }
}
