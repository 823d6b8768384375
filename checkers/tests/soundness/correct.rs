//! A correct system, as its clients see it: whatever clocks within the bound, messages
//! and restarts do, no check convicts it. And one that breaks a promise now and then,
//! which is convicted.
//!
//! One store and one storage, three clients, a millisecond a step; calm begins half way.
//! Systems differ as the ones out there do: with tokens and storage that checks them, or
//! locks without either; requests that are numbered, or not, and then are refused or told
//! again of what they have; headers that know the clocks, or the bound alone.

use std::collections::BTreeMap;

use deposed_checkers::history::*;
use serde_json::{Value, json};

use crate::model::Random;

mod clients;
mod servers;

const MS: Nanos = 1_000_000;
const TTL: u64 = 300;
const TRY: u64 = 30;
const BACKOFF: u64 = 40;
const LATENCY: u64 = 5;
const CALM: u64 = 1_500;
const END: u64 = 3_000;
/// In parts per billion.
const DRIFT: u64 = 100_000_000;
const MARGIN: u64 = 2;

/// What kind of system it is.
pub struct Features {
    tokens: bool,
    numbered: bool,
    /// A live holder that asks again without a number is told again.
    told_again: bool,
    renews: bool,
    lock_delay: u64,
    /// How often a promise is broken, in percent.
    pub broken: Option<Broken>,
}

/// What the store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Grants when a third of the ttl is over.
    GrantsEarly,
    /// Grants to whoever asks.
    TwoHolders,
    /// A restart forgets who owns the lease.
    ForgetsOwner,
    /// From calm on nothing is granted.
    GrantsNothing,
}

struct Client {
    name: &'static str,
    rate: u64,
    nonce: u64,
    request: u64,
    state: State,
    down_until: u64,
    /// Calls that are open: sent when, and whether it is the work of its term.
    open: BTreeMap<u64, (u64, Op)>,
    seq: u64,
    /// Work that it had looked at its clock for, and was stopped before it sent it.
    held: Option<(u64, Op)>,
}

enum State {
    Idle {
        until: u64,
    },
    /// Counts from here; the last try was then.
    Asking {
        first: u64,
        tried: u64,
    },
    Leads {
        token: Option<Token>,
        from: u64,
        renewed: u64,
        fenced: bool,
    },
    /// Sends its release until it is answered.
    Leaving {
        token: Option<Token>,
        tried: u64,
    },
}

enum Message {
    Ask {
        client: usize,
        nonce: u64,
        call: u64,
        op: Op,
    },
    Answer {
        client: usize,
        nonce: u64,
        call: u64,
        kind: Kind,
        answer: Answer,
        error: Option<Failure>,
    },
}

pub struct System {
    random: Random,
    kind: Features,
    now: u64,
    pub events: Vec<Event>,
    clients: Vec<Client>,
    messages: BTreeMap<(u64, u64), Message>,
    sent: u64,
    store_rate: u64,
    counter: Token,
    /// Holder, request, token, expiry by the store's clock, released.
    owner: Option<(Name, u64, Token, u128, bool)>,
    highest: Token,
    values: BTreeMap<Name, Value>,
    last: Option<(Op, Kind)>,
    fresh: u64,
}

/// The history of clients' calls, and its header.
pub fn run(seed: u64, broken: Option<Broken>) -> (Header, Vec<Event>) {
    let mut random = Random(seed);
    let kind = Features {
        tokens: random.percent(60),
        numbered: random.percent(60),
        told_again: random.percent(50),
        renews: random.percent(80),
        lock_delay: if random.percent(30) { 80 } else { 0 },
        broken,
    };
    let mut rate = || 1_000_000_000 - DRIFT / 2 + random.below(DRIFT);
    let rates = [rate(), rate(), rate(), rate()];
    let mut header = json!({"deposed": 1, "lease": {
        "ttl": TTL * MS, "max_drift_ppb": DRIFT, "safety_margin": MARGIN * MS,
        "lock_delay": kind.lock_delay * MS, "try_timeout": TRY * MS, "backoff_max": BACKOFF * MS,
    }, "network": {"max_latency": LATENCY * MS}});
    if random.percent(50) {
        header["clocks"] = json!({"a": rates[0], "b": rates[1], "c": rates[2], "store": rates[3]});
    }
    let names = ["a", "b", "c"].into_iter().zip(rates);
    let clients = names.map(|(name, rate)| Client {
        name,
        rate,
        nonce: 1,
        request: 0,
        state: State::Idle {
            until: random.below(100),
        },
        down_until: 0,
        open: BTreeMap::new(),
        seq: 0,
        held: None,
    });
    let mut system = System {
        clients: clients.collect(),
        random,
        kind,
        now: 0,
        events: Vec::new(),
        messages: BTreeMap::new(),
        sent: 0,
        store_rate: rates[3],
        counter: 0,
        owner: None,
        highest: 0,
        values: BTreeMap::new(),
        last: None,
        fresh: 0,
    };
    system.runs();
    (serde_json::from_value(header).unwrap(), system.events)
}

impl System {
    fn runs(&mut self) {
        while self.now < END {
            if self.now == CALM {
                self.calm();
            }
            while let Some(first) = self.messages.first_entry()
                && first.key().0 <= self.now
            {
                let message = first.remove();
                self.deliver(message);
            }
            if self.now < CALM {
                self.fault();
            }
            for client in 0..self.clients.len() {
                if self.clients[client].down_until <= self.now {
                    self.act(client);
                }
            }
            self.now += 1;
        }
    }

    /// Whatever is late comes now.
    fn calm(&mut self) {
        for client in &mut self.clients {
            client.down_until = client.down_until.min(self.now);
        }
        let late = std::mem::take(&mut self.messages);
        for ((at, nth), message) in late {
            self.messages
                .insert((at.min(self.now + LATENCY), nth), message);
        }
        self.nemesis("calm", json!({}));
    }

    fn fault(&mut self) {
        let client = self.random.below(3) as usize;
        if self.clients[client].down_until > self.now {
            return;
        }
        let down = self.random.below(2 * TTL);
        match self.random.below(400) {
            0 => {
                self.nemesis("crash", json!({"node": self.clients[client].name}));
                let client = &mut self.clients[client];
                client.nonce += 1;
                client.request = 0;
                client.open.clear();
                client.held = None;
                client.state = State::Idle { until: 0 };
                client.down_until = self.now + down;
            }
            // Nobody tells of a pause.
            1 => self.clients[client].down_until = self.now + down,
            2 => {
                if self.kind.broken == Some(Broken::ForgetsOwner) {
                    self.owner = None;
                } else if let Some((_, _, _, expiry, false)) = &mut self.owner {
                    let again = clock(self.now, self.store_rate) + counted(TTL);
                    *expiry = again.max(*expiry);
                }
            }
            _ => {}
        }
    }

    fn nemesis(&mut self, f: &str, value: Value) {
        self.record(
            "nemesis",
            Kind::Info,
            None,
            Body::Nemesis(f.into(), value),
            None,
        );
    }

    fn record(
        &mut self,
        process: &str,
        kind: Kind,
        call: Option<u64>,
        body: Body,
        error: Option<Failure>,
    ) {
        self.events.push(Event {
            index: self.events.len() as u64,
            time: self.now * MS,
            process: process.into(),
            kind,
            call,
            body,
            error,
        });
    }

    fn send(&mut self, message: Message) {
        // Without tokens a late release would end a later term: messages are never late.
        let late = self.kind.tokens && self.now < CALM && self.random.percent(15);
        if self.now < CALM && self.random.percent(10) {
            return;
        }
        let delay = 1 + self.random.below(if late { 400 } else { LATENCY });
        self.sent += 1;
        self.messages.insert((self.now + delay, self.sent), message);
    }

    fn call(&mut self, n: usize, op: Op) {
        let call = self.events.len() as u64;
        let client = &mut self.clients[n];
        client.open.insert(call, (self.now, op.clone()));
        let (name, nonce) = (client.name, client.nonce);
        self.record(
            name,
            Kind::Invoke,
            Some(call),
            Body::Invoke(op.clone()),
            None,
        );
        self.send(Message::Ask {
            client: n,
            nonce,
            call,
            op,
        });
    }
}

/// What a clock of this rate shows.
fn clock(now: u64, rate: u64) -> u128 {
    u128::from(now) * u128::from(rate)
}

fn counted(ms: u64) -> u128 {
    u128::from(ms) * u128::from(TRUE_RATE)
}

/// Whether the safe window since then is over by a clock of this rate.
fn over(from: u64, now: u64, rate: u64) -> bool {
    let window = counted(TTL) / u128::from(TRUE_RATE) * u128::from(TRUE_RATE - DRIFT);
    clock(now - from, rate) >= window - counted(MARGIN)
}
