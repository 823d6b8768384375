//! The clients of the correct system: what they send, and what they make of the answers.

use deposed_checkers::history::*;
use serde_json::json;

use super::{BACKOFF, MS, Message, State, System, TRY, TTL, over};

impl System {
    pub(super) fn act(&mut self, n: usize) {
        self.time_out(n);
        let now = self.now;
        if let Some((_, op)) = self.clients[n].held.take_if(|(until, _)| *until <= now) {
            return self.call(n, op);
        }
        let (kind, now) = (&self.kind, self.now);
        let client = &mut self.clients[n];
        let (lease, holder): (Name, Name) = (
            "leader".into(),
            format!("{}#{}", client.name, client.nonce).into(),
        );
        let request = if kind.numbered { client.request } else { 0 };
        let (rate, busy) = (
            client.rate,
            !client.open.is_empty() || client.held.is_some(),
        );
        let ttl = TTL * MS;
        match &mut client.state {
            State::Idle { until } if now >= *until && !busy => {
                client.request += 1;
                let request = if kind.numbered { client.request } else { 0 };
                client.state = State::Asking {
                    first: now,
                    tried: now,
                };
                self.call(
                    n,
                    Op::Acquire(Acquire {
                        lease,
                        holder,
                        request,
                        ttl,
                    }),
                );
            }
            State::Asking { tried, .. } if !busy && now >= *tried + BACKOFF / 2 => {
                *tried = now;
                self.call(
                    n,
                    Op::Acquire(Acquire {
                        lease,
                        holder,
                        request,
                        ttl,
                    }),
                );
            }
            State::Leads {
                token,
                from,
                renewed,
                fenced,
            } => {
                let token = *token;
                if over(*from, now, rate) {
                    client.state = State::Idle { until: now };
                    return;
                }
                if kind.renews && now >= *renewed + TTL / 4 {
                    *renewed = now;
                    let attempt = now;
                    self.call(
                        n,
                        Op::Renew(Renew {
                            lease,
                            holder,
                            token,
                            attempt,
                            ttl,
                        }),
                    );
                } else if busy {
                } else if self.random.percent(1) {
                    client.state = State::Leaving { token, tried: 0 };
                } else if let Some(token) = token
                    && self.random.percent(20)
                {
                    if !*fenced {
                        return self.call(n, Op::Fence(Fence { lease, token }));
                    }
                    let key: Name = if self.random.percent(50) { "x" } else { "y" }.into();
                    if self.random.percent(40) {
                        return self.call(
                            n,
                            Op::Read(Read {
                                lease,
                                token: Some(token),
                                key,
                            }),
                        );
                    }
                    client.seq += 1;
                    self.fresh += 1;
                    let (seq, value) = (Some(client.seq), json!(self.fresh));
                    let token = Some(token);
                    let write = Op::Write(Write {
                        lease,
                        token,
                        seq,
                        key,
                        value,
                    });
                    match self.random.percent(5) {
                        true => {
                            let until = now + self.random.below(2 * TTL);
                            self.clients[n].held = Some((until, write));
                        }
                        false => self.call(n, write),
                    }
                }
            }
            State::Leaving { token, tried } if !busy && now >= *tried => {
                *tried = now + TRY;
                let token = *token;
                self.call(
                    n,
                    Op::Release(Release {
                        lease,
                        holder,
                        token,
                    }),
                );
            }
            _ => {}
        }
    }

    fn time_out(&mut self, n: usize) {
        let late = |(_, (sent, _)): &(&u64, &(u64, Op))| self.now >= sent + TRY;
        let late: Vec<u64> = self.clients[n]
            .open
            .iter()
            .filter(late)
            .map(|(call, _)| *call)
            .collect();
        for call in late {
            let Some((_, op)) = self.clients[n].open.remove(&call) else {
                continue;
            };
            let (name, body) = (self.clients[n].name, Body::Complete(op.f(), Answer::None));
            self.record(
                name,
                Kind::Info,
                Some(call),
                body,
                Some(Failure::new("timeout")),
            );
        }
    }

    pub(super) fn deliver(&mut self, message: Message) {
        match message {
            Message::Ask {
                client,
                nonce,
                call,
                op,
            } => {
                let (kind, answer, error) = self.serve(&op);
                self.send(Message::Answer {
                    client,
                    nonce,
                    call,
                    kind,
                    answer,
                    error,
                });
            }
            Message::Answer {
                client: n,
                nonce,
                call,
                kind,
                answer,
                error,
            } => {
                let client = &mut self.clients[n];
                if client.nonce != nonce {
                    return;
                }
                // Who is paused reads it later.
                if client.down_until > self.now {
                    let key = (client.down_until, self.sent + 1);
                    self.sent += 1;
                    let again = Message::Answer {
                        client: n,
                        nonce,
                        call,
                        kind,
                        answer,
                        error,
                    };
                    self.messages.insert(key, again);
                    return;
                }
                let Some((sent, op)) = client.open.remove(&call) else {
                    return;
                };
                let name = client.name;
                let stale = error
                    .as_ref()
                    .is_some_and(|error| error.kind == STALE_TOKEN);
                let body = Body::Complete(op.f(), answer.clone());
                self.record(name, kind, Some(call), body, error);
                self.answered(n, sent, &op, kind, &answer, stale);
            }
        }
    }

    fn answered(&mut self, n: usize, sent: u64, op: &Op, kind: Kind, answer: &Answer, stale: bool) {
        let now = self.now;
        let until = now + 1 + self.random.below(BACKOFF - 1);
        let client = &mut self.clients[n];
        let ok = kind == Kind::Ok;
        match (op, &mut client.state) {
            (Op::Acquire(_), State::Asking { first, .. }) if ok => {
                let from = *first;
                let token = match answer {
                    Answer::Token(token) => Some(*token),
                    _ => None,
                };
                client.state = match over(from, now, client.rate) {
                    true => State::Leaving { token, tried: 0 },
                    false => State::Leads {
                        token,
                        from,
                        renewed: from,
                        fenced: false,
                    },
                };
            }
            (Op::Acquire(_), State::Asking { first, tried }) => match self.kind.numbered {
                true => client.state = State::Idle { until },
                // What it asked before may have been granted all the same.
                false => (*first, *tried) = (*first, until),
            },
            (Op::Renew(op), State::Leads { token, from, .. }) if *token == op.token => {
                match ok && !over(*from, now, client.rate) {
                    true => *from = sent,
                    false => client.state = State::Idle { until },
                }
            }
            (Op::Fence(_), State::Leads { fenced, .. }) if ok => *fenced = true,
            (Op::Release(_), State::Leaving { .. }) => client.state = State::Idle { until },
            (_, State::Leads { .. }) if stale => client.state = State::Idle { until },
            _ => {}
        }
    }
}
