//! Histories of clients that call an object at once, made line by line.

use std::collections::VecDeque;

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A lock whose acquires return rising tokens.
    FencedLock,
    /// A register; no value is written twice.
    Register,
    /// A register of five values, with `cas`.
    Cas,
    /// The same, where one call in a hundred is never answered, and its client begins anew.
    Crashing,
}

impl Shape {
    pub const ALL: [Shape; 4] = [
        Shape::FencedLock,
        Shape::Register,
        Shape::Cas,
        Shape::Crashing,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Shape::FencedLock => "fenced-lock",
            Shape::Register => "register",
            Shape::Cas => "cas-register",
            Shape::Crashing => "cas, 1 % lost",
        }
    }

    pub fn named(name: &str) -> Self {
        let named = Self::ALL.into_iter().find(|shape| shape.name() == name);
        named.expect("a shape's name")
    }
}

/// A history to be made.
#[derive(Clone, Copy)]
pub struct Made {
    pub shape: Shape,
    pub clients: u64,
    pub operations: u64,
    /// 1: one answer after nine tenths is a lie.
    pub corrupted: u64,
}

/// What is called, and after its completion what was answered: a token, a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Acquire(Option<i64>),
    Release,
    Read(Option<i64>),
    Write(i64),
    Cas(i64, i64),
}

/// A line: who, whether it completes the call, ok or failed, and the call.
pub struct Line {
    pub client: usize,
    /// As which process: another one after each call that was never answered.
    pub process: u64,
    pub kind: LineKind,
    pub call: Call,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Begins,
    Happened,
    Failed,
    /// It may have happened.
    Lost,
}

#[derive(Clone, Copy)]
enum Doing {
    Nothing,
    Asked(Call),
    Done(Call, bool),
}

/// The lines of a history.
pub struct Lines {
    made: Made,
    random: u64,
    clients: Vec<Doing>,
    processes: Vec<u64>,
    /// Who holds the lock.
    holder: Option<usize>,
    token: i64,
    value: Option<i64>,
    /// Values that were there, oldest first.
    before: VecDeque<Option<i64>>,
    next_value: i64,
    begun: u64,
    lied: bool,
}

impl Lines {
    pub fn of(made: &Made) -> Self {
        Lines {
            made: *made,
            random: 0x9E37_79B9_7F4A_7C15 ^ made.clients,
            clients: vec![Doing::Nothing; made.clients as usize],
            processes: (0..made.clients).collect(),
            holder: None,
            token: 0,
            value: None,
            before: VecDeque::new(),
            next_value: 0,
            begun: 0,
            lied: false,
        }
    }

    /// Xorshift.
    fn any(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below
    }

    fn asks(&mut self, client: usize) -> Call {
        match self.made.shape {
            Shape::FencedLock if self.holder == Some(client) => Call::Release,
            Shape::FencedLock => Call::Acquire(None),
            Shape::Register => match self.any(2) {
                0 => Call::Read(None),
                _ => {
                    self.next_value += 1;
                    Call::Write(self.next_value)
                }
            },
            Shape::Cas | Shape::Crashing => match self.any(3) {
                0 => Call::Read(None),
                1 => Call::Write(self.any(5) as i64),
                _ => {
                    let from = self.any(5);
                    Call::Cas(from as i64, ((from + 1 + self.any(4)) % 5) as i64)
                }
            },
        }
    }

    fn holds(&mut self, value: i64) {
        self.before.push_back(self.value);
        if self.before.len() > 256 {
            self.before.pop_front();
        }
        self.value = Some(value);
    }

    /// The call takes effect; what it is answered, and whether it happened.
    fn takes_effect(&mut self, client: usize, call: Call) -> Option<(Call, bool)> {
        Some(match call {
            Call::Acquire(_) if self.holder.is_some() => return None,
            Call::Acquire(_) => {
                self.holder = Some(client);
                self.token += 1;
                (Call::Acquire(Some(self.token)), true)
            }
            Call::Release => {
                self.holder = None;
                (call, true)
            }
            Call::Read(_) => (Call::Read(self.value), true),
            Call::Write(value) => {
                self.holds(value);
                (call, true)
            }
            Call::Cas(from, to) if self.value == Some(from) => {
                self.holds(to);
                (call, true)
            }
            Call::Cas(..) => (call, false),
        })
    }

    fn is_lost(&mut self) -> bool {
        self.made.shape == Shape::Crashing && self.any(100) == 0
    }

    fn line(&mut self, client: usize, kind: LineKind, call: Call) -> Line {
        let process = self.processes[client];
        if kind == LineKind::Lost {
            self.processes[client] += self.made.clients;
        }
        Line {
            client,
            process,
            kind,
            call,
        }
    }

    /// The answer, or a lie in its place.
    fn answers(&mut self, call: Call) -> Call {
        let late = self.begun >= self.made.operations / 10 * 9;
        if self.made.corrupted == 0 || self.lied || !late {
            return call;
        }
        let lie = match call {
            Call::Acquire(Some(token)) => Call::Acquire(Some(token - self.made.clients as i64 - 1)),
            Call::Read(_) if self.made.shape == Shape::Register => {
                Call::Read(self.before.front().copied().flatten())
            }
            Call::Read(_) => Call::Read(Some(7)),
            call => return call,
        };
        self.lied = true;
        lie
    }
}

impl Iterator for Lines {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        loop {
            let ended = self.begun >= self.made.operations;
            let busy = |doing: &Doing| !matches!(doing, Doing::Nothing);
            // What waits for the lock at the end stays open.
            if ended && (self.holder.is_some() || !self.clients.iter().any(busy)) {
                let done = |doing: &Doing| matches!(doing, Doing::Done(..));
                if !self.clients.iter().any(done) {
                    return None;
                }
            }
            let client = self.any(self.made.clients) as usize;
            match self.clients[client] {
                Doing::Nothing if ended => {}
                Doing::Nothing => {
                    let call = self.asks(client);
                    self.begun += 1;
                    self.clients[client] = Doing::Asked(call);
                    return Some(self.line(client, LineKind::Begins, call));
                }
                Doing::Asked(call) => {
                    if let Some((answer, happened)) = self.takes_effect(client, call) {
                        self.clients[client] = Doing::Done(answer, happened);
                    }
                }
                Doing::Done(call, happened) => {
                    self.clients[client] = Doing::Nothing;
                    let (kind, call) = match happened {
                        _ if self.is_lost() => (LineKind::Lost, call),
                        true => (LineKind::Happened, self.answers(call)),
                        false => (LineKind::Failed, call),
                    };
                    return Some(self.line(client, kind, call));
                }
            }
        }
    }
}
