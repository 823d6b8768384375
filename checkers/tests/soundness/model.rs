//! Three clients, the messages between them and the servers, and how likely each errs.

use std::collections::BTreeMap;

use deposed_checkers::history::*;
use serde_json::json;

mod servers;

/// splitmix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How likely each error is, in percent; mostly never.
struct Errors {
    grants_early: u64,
    token_off: u64,
    forgets_counter: u64,
    forgets_owner: u64,
    forgets_highest: u64,
    restarts: u64,
    storage_accepts: u64,
    skips_fence: u64,
    works_before_fenced: u64,
    makes_token: u64,
    works_when_deposed: u64,
    lost: u64,
    tokens: bool,
}

impl Errors {
    fn draw(random: &mut Random) -> Self {
        let mut sometimes = |percent| if random.percent(30) { percent } else { 0 };
        Errors {
            grants_early: sometimes(20),
            token_off: sometimes(20),
            forgets_counter: sometimes(20),
            storage_accepts: sometimes(50),
            skips_fence: sometimes(50),
            works_before_fenced: sometimes(50),
            makes_token: sometimes(20),
            works_when_deposed: sometimes(90),
            lost: sometimes(20),
            tokens: sometimes(1) == 0,
            restarts: sometimes(2),
            forgets_owner: sometimes(20),
            forgets_highest: sometimes(20),
        }
    }
}

#[derive(Default)]
struct Client {
    holder: Name,
    request: u64,
    /// Of its term, as far as it knows.
    leads: bool,
    token: Option<Token>,
    fenced: bool,
    seq: u64,
    /// Open calls: their ids.
    open: BTreeMap<u64, Op>,
    /// Calls that timed out and whose answer it would still read.
    late: BTreeMap<u64, Op>,
    /// A call to be sent again.
    retry: Option<Op>,
}

enum Message {
    Request {
        client: usize,
        call: u64,
        op: Op,
    },
    Answer {
        client: usize,
        call: u64,
        kind: Kind,
        answer: Answer,
        error: Option<Failure>,
    },
    TimeOut {
        client: usize,
        call: u64,
    },
}

pub struct Model {
    random: Random,
    errors: Errors,
    now: u64,
    events: Vec<Event>,
    clients: Vec<Client>,
    messages: BTreeMap<(u64, u64), Message>,
    sent: u64,
    // The store.
    counter: Token,
    owner: Option<(Name, u64, Option<Token>, u64)>,
    // Storage.
    highest: Token,
    last: Option<(Op, Kind)>,
    fresh: u64,
}

const LEASE: &str = "leader";

impl Model {
    /// What happened, and whether the store kept all its promises.
    pub fn run(seed: u64) -> (Vec<Event>, bool) {
        let mut random = Random(seed);
        let errors = Errors::draw(&mut random);
        let clients = (0..3)
            .map(|n| Client {
                holder: format!("{}#1", name(n)).into(),
                ..Client::default()
            })
            .collect();
        let mut model = Model {
            random,
            errors,
            now: 0,
            events: Vec::new(),
            clients,
            messages: BTreeMap::new(),
            sent: 0,
            counter: 0,
            owner: None,
            highest: 0,
            last: None,
            fresh: 0,
        };
        while model.now < 300 {
            while let Some(first) = model.messages.first_entry()
                && first.key().0 <= model.now
            {
                let message = first.remove();
                model.deliver(message);
            }
            if model.random.percent(model.errors.restarts) {
                model.restart();
            }
            for client in 0..3 {
                if model.random.percent(25) {
                    model.act(client);
                }
            }
            model.now += 1;
        }
        let errors = &model.errors;
        let broken =
            errors.grants_early + errors.token_off + errors.forgets_counter + errors.forgets_owner;
        (model.events, broken == 0)
    }

    fn record(&mut self, process: &str, kind: Kind, call: Option<u64>, body: Body) {
        self.record_with(process, kind, call, body, None);
    }

    fn record_with(
        &mut self,
        process: &str,
        kind: Kind,
        call: Option<u64>,
        body: Body,
        error: Option<Failure>,
    ) {
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
    }

    fn observe(&mut self, node: &str, seen: Observation) {
        self.record(node, Kind::Info, None, Body::Observed(seen));
    }

    fn send(&mut self, delay: u64, message: Message) {
        self.sent += 1;
        self.messages.insert((self.now + delay, self.sent), message);
    }

    fn delay(&mut self) -> u64 {
        let longest = if self.random.percent(20) { 40 } else { 4 };
        1 + self.random.below(longest)
    }

    fn call(&mut self, client: usize, op: Op) {
        let call = self.events.len() as u64;
        self.record(
            name(client),
            Kind::Invoke,
            Some(call),
            Body::Invoke(op.clone()),
        );
        self.clients[client].open.insert(call, op.clone());
        if !self.random.percent(self.errors.lost) {
            let delay = self.delay();
            self.send(delay, Message::Request { client, call, op });
        }
        self.send(25, Message::TimeOut { client, call });
    }

    fn act(&mut self, n: usize) {
        let client = &mut self.clients[n];
        if client.open.len() > 1 {
            return;
        }
        if let Some(op) = client.retry.take() {
            return self.call(n, op);
        }
        let lease: Name = LEASE.into();
        if !client.leads {
            if client.open.is_empty() && self.random.percent(30) {
                client.request += 1;
                let (holder, request) = (client.holder.clone(), client.request);
                self.call(
                    n,
                    Op::Acquire(Acquire {
                        lease,
                        holder,
                        request,
                        ttl: 30,
                    }),
                );
            }
            return;
        }
        // Leaders do not look at the clock here: storage must defend itself.
        if self.random.percent(3) {
            client.leads = false;
            return;
        }
        let token = client.token;
        if let Some(token) = token
            && !client.fenced
        {
            let fencing = client.open.values().any(|op| op.f() == F::Fence);
            if self.random.percent(self.errors.skips_fence) {
                client.fenced = true;
            } else if !fencing {
                return self.call(n, Op::Fence(Fence { lease, token }));
            } else if !self.random.percent(self.errors.works_before_fenced) {
                return;
            }
        }
        let key: Name = if self.random.percent(50) { "x" } else { "y" }.into();
        let client = &mut self.clients[n];
        let op = match self.random.below(4) {
            0 => Op::Read(Read { lease, token, key }),
            1 => {
                client.seq += 1;
                Op::Delete(Delete {
                    lease,
                    token,
                    seq: Some(client.seq),
                    key,
                })
            }
            _ => {
                client.seq += 1;
                self.fresh += 1;
                let value = json!(self.fresh);
                Op::Write(Write {
                    lease,
                    token,
                    seq: Some(client.seq),
                    key,
                    value,
                })
            }
        };
        self.call(n, op);
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Request { client, call, op } => {
                let (kind, answer, error) = match &op {
                    Op::Acquire(op) => self.store(op),
                    _ => self.storage(&op),
                };
                if !self.random.percent(self.errors.lost) {
                    let delay = self.delay();
                    self.send(
                        delay,
                        Message::Answer {
                            client,
                            call,
                            kind,
                            answer,
                            error,
                        },
                    );
                }
            }
            Message::Answer {
                client,
                call,
                kind,
                answer,
                error,
            } => {
                let read_late = self.clients[client].late.remove(&call);
                if let Some(op) = self.clients[client].open.remove(&call) {
                    let body = Body::Complete(op.f(), answer.clone());
                    self.record_with(name(client), kind, Some(call), body, error);
                    self.answered(client, &op, kind, &answer);
                } else if let Some(op) = read_late {
                    self.answered(client, &op, kind, &answer);
                }
            }
            Message::TimeOut { client: n, call } => {
                let Some(op) = self.clients[n].open.remove(&call) else {
                    return;
                };
                let body = Body::Complete(op.f(), Answer::None);
                let error = Some(Failure::new("timeout"));
                self.record_with(name(n), Kind::Info, Some(call), body, error);
                if self.random.percent(50) {
                    self.clients[n].late.insert(call, op.clone());
                } else if self.random.percent(50) && !matches!(op, Op::Read(_)) {
                    self.clients[n].retry = Some(op);
                }
            }
        }
    }

    fn answered(&mut self, n: usize, op: &Op, kind: Kind, answer: &Answer) {
        let client = &mut self.clients[n];
        match (op, kind) {
            (Op::Acquire(op), Kind::Ok) if op.request == client.request => {
                let mut token = match answer {
                    Answer::Token(token) => Some(*token),
                    _ => None,
                };
                if self.random.percent(self.errors.makes_token) {
                    token = token.map(|token| token + 1);
                }
                if token != client.token || !client.leads {
                    (client.leads, client.token, client.fenced) = (true, token, false);
                }
            }
            (Op::Fence(op), Kind::Ok) if client.token == Some(op.token) => client.fenced = true,
            (Op::Acquire(_), _) => {}
            (_, Kind::Fail) if !self.random.percent(self.errors.works_when_deposed) => {
                client.leads = false;
            }
            _ => {}
        }
    }
}

fn name(client: usize) -> &'static str {
    ["a", "b", "c"][client]
}
