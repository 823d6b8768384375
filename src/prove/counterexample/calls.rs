//! What a client calls, and how its calls end.

use deposed_checkers::history::{
    Acquire, Answer, Body, Delete, Failure, Fence, Kind, Op, Read, Release, Renew, Token, Write,
};
use serde_json::Value;

use super::{
    super::{
        candidate::CandidateStep,
        message::{Message, Process, Reader, Says, name_of},
        storage_node::{KEY, SEQ, call_of},
        store_node::lease,
    },
    TICK,
    scribe::Scribe,
};

/// A call that is open: what was sent, or a read.
pub(super) struct Open {
    pub(super) what: Message,
    pub(super) call: u64,
}

impl Scribe {
    pub(super) fn client(&mut self, client: usize, step: CandidateStep) {
        let (next, says) = self.clients[client].step(&self.scope, client, step);
        // What it waits for, it may have waited for: see `Rules::waits`.
        self.clients[client] = next.waited();
        if let Some(token) = says.reads {
            let op = Op::Read(Read {
                lease: lease(),
                token: Some(token),
                key: KEY.into(),
            });
            self.calls += 1;
            let call = Some(self.calls);
            self.record(name_of(client), Kind::Invoke, call, Body::Invoke(op));
        }
        let Some(message) = says.sent else { return };
        if message.says() == Says::Release {
            self.give_up_work(client);
        }
        self.calls += 1;
        let call = self.calls;
        let op = self.op(message);
        self.record(name_of(client), Kind::Invoke, Some(call), Body::Invoke(op));
        self.open.push(Open {
            what: message,
            call,
        });
    }

    /// Calls to storage time out before their term is released.
    fn give_up_work(&mut self, client: usize) {
        let (over, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| {
                let of_client = open.what.process().client == client;
                of_client && open.what.says().reader() == Reader::Storage
            });
        self.open = open;
        let over: Vec<Open> = over;
        for open in over {
            let body = Body::Complete(call_of(open.what.says()), Answer::None);
            let event = self.record(name_of(client), Kind::Info, Some(open.call), body);
            event.error = Some(Failure::new("timeout"));
        }
    }

    fn op(&self, message: Message) -> Op {
        let (holder, token) = (message.process().holder(), message.token());
        let ttl = self.scope.ttl * TICK;
        match message.says() {
            Says::Acquire => Op::Acquire(Acquire {
                lease: lease(),
                holder,
                request: message.id(),
                ttl,
            }),
            Says::Renew => Op::Renew(Renew {
                lease: lease(),
                holder,
                token: Some(token),
                attempt: message.id(),
                ttl,
            }),
            Says::Release => Op::Release(Release {
                lease: lease(),
                holder,
                token: Some(token),
            }),
            Says::Fence => Op::Fence(Fence {
                lease: lease(),
                token,
            }),
            Says::Delete => Op::Delete(Delete {
                lease: lease(),
                token: Some(token),
                seq: Some(SEQ),
                key: KEY.into(),
            }),
            _ => Op::Write(Write {
                lease: lease(),
                token: Some(token),
                seq: Some(SEQ),
                key: KEY.into(),
                value: value(token),
            }),
        }
    }
    pub(super) fn lives(&self, process: Process) -> bool {
        self.clients[process.client].life == process.life
    }

    pub(super) fn at_client(&mut self, message: Message) {
        let (process, token) = (message.process(), message.token());
        if !self.lives(process) {
            return;
        }
        self.goes_on(process.client);
        let of = |says: Says| move |what: Message| what.process() == process && what.says() == says;
        let id = message.id();
        let denied = || Some(Failure::new("refused"));
        match message.says() {
            Says::Granted | Says::Denied => {
                let granted = message.says() == Says::Granted;
                let asked = |what: Message| of(Says::Acquire)(what) && what.id() == id;
                match granted {
                    true => self.complete(asked, Kind::Ok, Answer::Token(token), None),
                    false => self.complete(asked, Kind::Fail, Answer::None, denied()),
                }
            }
            Says::Renewed | Says::RenewDenied => {
                let asked = |what: Message| of(Says::Renew)(what) && what.id() == id;
                match message.says() {
                    Says::Renewed => self.complete(asked, Kind::Ok, Answer::None, None),
                    _ => self.complete(asked, Kind::Fail, Answer::None, denied()),
                }
            }
            Says::Released | Says::ReleaseDenied => {
                let asked = |what: Message| of(Says::Release)(what) && what.token() == token;
                match message.says() {
                    Says::Released => self.complete(asked, Kind::Ok, Answer::None, None),
                    _ => self.complete(asked, Kind::Fail, Answer::None, denied()),
                }
            }
            Says::Fenced => {
                let asked = |what: Message| of(Says::Fence)(what) && what.token() == token;
                self.complete(asked, Kind::Ok, Answer::None, None);
            }
            _ => {
                let asked = |what: Message| {
                    what.process() == process
                        && what.says().reader() == Reader::Storage
                        && what.token() == token
                };
                let error = Failure::stale_token(token, self.storage.highest());
                self.complete(asked, Kind::Fail, Answer::None, Some(error));
            }
        }
        self.client(process.client, CandidateStep::Read(message));
    }

    /// Completes the first open call of these, if one is open still.
    pub(super) fn complete(
        &mut self,
        which: impl Fn(Message) -> bool,
        kind: Kind,
        answer: Answer,
        error: Option<Failure>,
    ) {
        let Some(at) = self.open.iter().position(|open| which(open.what)) else {
            return;
        };
        let open = self.open.remove(at);
        let f = match open.what.says().reader() {
            Reader::Storage => call_of(open.what.says()),
            _ => self.op(open.what).f(),
        };
        let client = open.what.process().client;
        let call = Some(open.call);
        let event = self.record(name_of(client), kind, call, Body::Complete(f, answer));
        event.error = error;
    }
}

/// Unique, by its token.
pub(super) fn value(token: Token) -> Value {
    Value::from(format!("1/{token}.{SEQ}"))
}
