//! A terse way to tell a history of one lease, `leader`: one event a
//! millisecond, unless a time is given.

use deposed_checkers::history::*;
use deposed_checkers::judge::judge;
use deposed_checkers::verdict::{Check, Evidence, Verdict};
use serde_json::{Value, json};

pub const MS: Nanos = 1_000_000;
/// The ttl of every lease told of, in ms.
pub const TTL: Nanos = 100;

#[derive(Clone)]
pub struct Tale {
    pub header: Header,
    pub events: Vec<Event>,
    now: Nanos,
    seq: u64,
}

/// A tale whose header has the lease's and the network's timing.
pub fn tale() -> Tale {
    let header = json!({"deposed": 1, "lease": {
        "ttl": TTL * MS, "max_drift_ppb": 10_000_000, "safety_margin": MS,
        "try_timeout": 10 * MS, "backoff_max": 10 * MS,
    }, "network": {"max_latency": MS}});
    Tale {
        header: serde_json::from_value(header).unwrap(),
        events: vec![],
        now: 0,
        seq: 0,
    }
}

impl Tale {
    /// The header states a lock-delay, in ms.
    pub fn lock_delay(mut self, ms: u64) -> Self {
        self.header.lease.as_mut().unwrap().lock_delay = ms * MS;
        self
    }

    /// The header's cluster has this storage.
    pub fn storage(mut self, storage: Value) -> Self {
        let cluster = json!({"storage": storage});
        self.header.rest.insert("cluster".to_owned(), cluster);
        self
    }

    /// The next event is at this time, in ms; those after it follow on.
    pub fn at(mut self, ms: u64) -> Self {
        self.now = ms * MS;
        self
    }

    /// The next event is at the time of the last.
    pub fn at_once(mut self) -> Self {
        self.now -= MS;
        self
    }

    pub fn clock(mut self, node: &str, percent: u64) -> Self {
        self.header
            .clocks
            .insert(node.into(), percent * TRUE_RATE / 100);
        self
    }

    pub fn line(
        mut self,
        process: &str,
        kind: Kind,
        call: Option<u64>,
        body: Body,
        error: Option<Failure>,
    ) -> Self {
        let index = self.events.len() as u64;
        let process = process.into();
        self.events.push(Event {
            index,
            time: self.now,
            process,
            kind,
            call,
            body,
            error,
        });
        self.now += MS;
        self
    }

    /// A call begins; its id is its index.
    pub fn invoke(self, process: &str, op: Op) -> Self {
        let call = self.events.len() as u64;
        self.line(process, Kind::Invoke, Some(call), Body::Invoke(op), None)
    }

    /// The call whose invoke has this index ends.
    pub fn complete(self, call: u64, kind: Kind, answer: Answer, error: Option<Failure>) -> Self {
        let invoke = &self.events[call as usize];
        let process = invoke.process.clone();
        let Body::Invoke(op) = &invoke.body else {
            panic!("event {call} is no invoke")
        };
        let body = Body::Complete(op.f(), answer);
        self.line(&process, kind, Some(call), body, error)
    }

    pub fn ends_ok(self, call: u64) -> Self {
        self.complete(call, Kind::Ok, Answer::None, None)
    }

    /// A call and its ok.
    pub fn ok(self, process: &str, op: Op) -> Self {
        let call = self.events.len() as u64;
        self.invoke(process, op).ends_ok(call)
    }

    /// A call and its time-out.
    pub fn times_out(self, process: &str, op: Op) -> Self {
        let call = self.events.len() as u64;
        let error = Some(Failure::new("timeout"));
        self.invoke(process, op)
            .complete(call, Kind::Info, Answer::None, error)
    }

    /// A call that is told that its token is stale.
    pub fn stale(self, process: &str, op: Op, seen: Token) -> Self {
        let call = self.events.len() as u64;
        let error = Failure::stale_token(op.token().unwrap(), seen);
        self.invoke(process, op)
            .complete(call, Kind::Fail, Answer::None, Some(error))
    }

    /// An acquire and its ok.
    pub fn acquires(self, process: &str, token: impl Into<Option<Token>>) -> Self {
        let call = self.events.len() as u64;
        let answer = token.into().map_or(Answer::None, Answer::Token);
        self.invoke(process, acquire(process, call))
            .complete(call, Kind::Ok, answer, None)
    }

    pub fn fences(self, process: &str, token: Token) -> Self {
        self.ok(process, fence(token))
    }

    /// A write of a fresh value, and its ok.
    pub fn writes(mut self, process: &str, token: impl Into<Option<Token>>) -> Self {
        self.seq += 1;
        let op = write(token, self.seq);
        self.ok(process, op)
    }

    pub fn saw(self, process: &str, seen: Observation) -> Self {
        self.line(process, Kind::Info, None, Body::Observed(seen), None)
    }

    pub fn leads(self, process: &str, token: Token, until: impl Into<Option<u64>>) -> Self {
        let sent = self.now / MS;
        self.leads_counting_from(sent, process, token, until)
    }

    /// A belief that counts from a send of before.
    pub fn leads_counting_from(
        self,
        sent: u64,
        process: &str,
        token: Token,
        until: impl Into<Option<u64>>,
    ) -> Self {
        let until = until.into().map(|ms| ms * MS);
        let (lease, holder, sent) = ("leader".into(), holder(process), Some(sent * MS));
        let lead = Lead {
            lease,
            holder,
            token: Some(token),
            until,
            sent,
        };
        self.saw(process, Observation::Lead(lead))
    }

    pub fn follows(self, process: &str, token: Token) -> Self {
        let (lease, holder) = ("leader".into(), holder(process));
        self.saw(
            process,
            Observation::Follow(Follow {
                lease,
                holder,
                token: Some(token),
            }),
        )
    }

    /// The store grants `request`, at a time of its clock in ms.
    pub fn grants(self, to: &str, request: u64, token: Token, clock: u64) -> Self {
        let (lease, holder, token) = ("leader".into(), holder(to), Some(token));
        let (ttl, clock) = (TTL * MS, clock * MS);
        self.saw(
            "store",
            Observation::Granted(Granted {
                lease,
                holder,
                request,
                token,
                ttl,
                clock,
            }),
        )
    }

    /// A store that grants something, elsewhere.
    pub fn with_a_store(self) -> Self {
        self.at_once().saw(
            "store",
            Observation::Granted(Granted {
                lease: "elsewhere".into(),
                holder: "z#1".into(),
                request: 1,
                token: Some(1),
                ttl: 1,
                clock: 0,
            }),
        )
    }

    pub fn renews(self, of: &str, token: Token, clock: u64) -> Self {
        let (lease, holder, token) = ("leader".into(), holder(of), Some(token));
        let (ttl, clock) = (TTL * MS, clock * MS);
        self.saw(
            "store",
            Observation::Renewed(Renewed {
                lease,
                holder,
                token,
                ttl,
                clock,
            }),
        )
    }

    pub fn releases(self, of: &str, token: Token, clock: u64) -> Self {
        let (lease, holder, token, clock) = ("leader".into(), holder(of), Some(token), clock * MS);
        self.saw(
            "store",
            Observation::Released(Released {
                lease,
                holder,
                token,
                clock,
            }),
        )
    }

    /// The store denies an acquire.
    pub fn denies(self, whom: &str, request: u64, clock: u64) -> Self {
        let denied = Denied {
            lease: "leader".into(),
            f: F::Acquire,
            holder: holder(whom),
            request: Some(request),
            token: None,
            clock: clock * MS,
            error: Failure::new("held"),
        };
        self.saw("store", Observation::Denied(denied))
    }

    /// The store comes back and finds an owner, or none.
    pub fn recovers(self, counter: Token, owner: Option<&str>, clock: u64) -> Self {
        let ttl = owner.map(|_| TTL * MS);
        let found = RecoveredLease {
            counter,
            holder: owner.map(holder),
            ttl,
        };
        let leases = [("leader".into(), found)].into();
        let recovered = StoreRecovered {
            leases,
            clock: clock * MS,
        };
        self.saw("store", Observation::StoreRecovered(recovered))
    }

    /// A storage node applies the write that [`write`] makes.
    pub fn applies(self, node: &str, token: impl Into<Option<Token>>, seq: u64) -> Self {
        let Op::Write(op) = write(token, seq) else {
            unreachable!()
        };
        let Write {
            lease,
            token,
            seq,
            key,
            value,
        } = op;
        let value = Some(value);
        self.saw(
            node,
            Observation::Applied(Applied {
                f: F::Write,
                lease,
                token,
                seq,
                key,
                value,
            }),
        )
    }

    pub fn takes_fence(self, node: &str, token: Token) -> Self {
        self.saw(
            node,
            Observation::Fenced(Fenced {
                lease: "leader".into(),
                token,
            }),
        )
    }

    pub fn nemesis(self, f: &str, value: Value) -> Self {
        self.line(
            NEMESIS,
            Kind::Info,
            None,
            Body::Nemesis(f.into(), value),
            None,
        )
    }

    pub fn verdict(&self, check: Check) -> Verdict {
        judge(&self.header, &self.events).of(check).unwrap().clone()
    }

    #[track_caller]
    pub fn passes(self, check: Check) {
        assert_eq!(self.verdict(check), Verdict::Valid);
    }

    /// The sentence must hold these words, and the evidence be these events.
    #[track_caller]
    pub fn convicts(self, check: Check, words: &str, events: &[u64]) -> Evidence {
        let Verdict::Violated(evidence) = self.verdict(check) else {
            panic!("not convicted: {:?}", self.verdict(check))
        };
        assert!(evidence.sentence.contains(words), "{}", evidence.sentence);
        assert_eq!(evidence.events, events, "{}", evidence.sentence);
        assert!(evidence.events.contains(&evidence.culprit));
        evidence
    }

    #[track_caller]
    pub fn violates(self, check: Check) {
        let verdict = self.verdict(check);
        assert!(verdict.is_violated(), "not convicted: {verdict:?}");
    }

    pub fn claims_nothing(self, check: Check, words: &str) {
        let verdict = self.verdict(check);
        let Verdict::NotClaimed(why) = &verdict else {
            panic!("{verdict:?}")
        };
        assert!(why.contains(words), "{why}");
        assert_eq!(verdict.clone().required().word(), "unknown");
    }
}

pub fn holder(process: &str) -> Name {
    format!("{process}#1").into()
}

pub fn acquire(process: &str, request: u64) -> Op {
    let (lease, holder) = ("leader".into(), holder(process));
    Op::Acquire(Acquire {
        lease,
        holder,
        request,
        ttl: TTL * MS,
    })
}

pub fn renew(process: &str, token: Token) -> Op {
    let (lease, holder, token) = ("leader".into(), holder(process), Some(token));
    Op::Renew(Renew {
        lease,
        holder,
        token,
        attempt: 1,
        ttl: TTL * MS,
    })
}

pub fn release(process: &str, token: impl Into<Option<Token>>) -> Op {
    let (lease, holder, token) = ("leader".into(), holder(process), token.into());
    Op::Release(Release {
        lease,
        holder,
        token,
    })
}

pub fn fence(token: Token) -> Op {
    Op::Fence(Fence {
        lease: "leader".into(),
        token,
    })
}

pub fn delete(token: u64) -> Op {
    let (lease, key) = ("leader".into(), "x".into());
    Op::Delete(Delete {
        lease,
        token: Some(token),
        seq: Some(1),
        key,
    })
}

/// A write of `seq`, as a value too.
pub fn write(token: impl Into<Option<Token>>, seq: u64) -> Op {
    let (lease, token, key, value) = ("leader".into(), token.into(), "x".into(), json!(seq));
    Op::Write(Write {
        lease,
        token,
        seq: Some(seq),
        key,
        value,
    })
}

pub fn read(token: impl Into<Option<Token>>) -> Op {
    Op::Read(Read {
        lease: "leader".into(),
        token: token.into(),
        key: "x".into(),
    })
}
