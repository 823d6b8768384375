//! What an elector believes, as it is told: each change is recorded, and wakes whoever
//! waits for it.

use std::{cell::RefCell, sync::Arc};

use deposed_checkers::history::{Follow, Lead, Name, Nanos, Observation};

use super::{
    super::{Believer, Node, Told},
    Shared,
};

/// What was last told of an elector's belief, and how the world asks for it.
pub(super) struct Belief {
    lease: Name,
    shared: Arc<Shared>,
    told: RefCell<Option<Told>>,
}

impl Belief {
    /// Nothing is told yet.
    pub(super) fn new(lease: Name, shared: Arc<Shared>) -> Self {
        Self {
            lease,
            shared,
            told: RefCell::new(None),
        }
    }

    /// Records a change of belief, and wakes whoever waits for it.
    /// `sent` is the true time of a send that was decided at this local time.
    pub(super) fn tell(&self, node: &Node, holder: &Name, sent: impl Fn(Nanos) -> Nanos) {
        let belief = self.shared.state().client.belief();
        let now = belief.map(|belief| Told {
            holder: holder.clone(),
            token: Some(belief.token),
            until: belief.until,
            sent: sent(belief.sent),
        });
        let before = self.told.replace(now.clone());
        if before == now {
            return;
        }
        let term = |told: &Option<Told>| told.as_ref().and_then(|told| told.token);
        if let Some(before) = &before
            && term(&now) != before.token
        {
            node.observe(Observation::Follow(Follow {
                lease: self.lease.clone(),
                holder: before.holder.clone(),
                token: before.token,
            }));
            self.shared.lost.notify_waiters();
        }
        if let Some(told) = &now {
            node.observe(Observation::Lead(Lead {
                lease: self.lease.clone(),
                holder: told.holder.clone(),
                token: told.token,
                // While the clock that counts stands still, there is no end to tell.
                until: told
                    .until
                    .map(|until| self.shared.clock.true_time_of(until))
                    .filter(|until| *until != Nanos::MAX),
                sent: Some(told.sent),
            }));
            if term(&before) != told.token {
                self.shared.won.notify_waiters();
            }
        }
    }
}

impl Believer for Belief {
    fn lease(&self) -> &Name {
        &self.lease
    }

    fn is_leader(&self, local: Nanos) -> bool {
        let now = match self.shared.misled {
            true => self.shared.clock.now(),
            false => local,
        };
        self.shared.state().client.is_leader(now)
    }

    fn told(&self) -> Option<Told> {
        self.told.borrow().clone()
    }

    fn ends_at(&self, _node: &Node) -> Option<Nanos> {
        let until = self.told.borrow().as_ref()?.until?;
        Some(self.shared.clock.true_time_of(until))
    }

    /// A handle may have ended the term, by a resignation or a stale token.
    fn catch_up(&self, node: &Node) {
        let believed = self.shared.state().client.belief();
        let mut told = self.told.borrow_mut();
        let over = told
            .as_ref()
            .is_some_and(|told| told.token != believed.map(|now| now.token));
        if let Some(before) = told.take_if(|_| over) {
            node.observe(Observation::Follow(Follow {
                lease: self.lease.clone(),
                holder: before.holder,
                token: before.token,
            }));
            self.shared.lost.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{rc::Rc, sync::Mutex};

    use deposed_checkers::history::Body;
    use futures_util::FutureExt;
    use tokio::sync::Notify;

    use super::*;
    use crate::{
        clock::ManualClock,
        disk::MemoryDisk,
        flaw::Planted,
        lease::{self, LeaseClient, LeaseConfig},
        net::tcp::{AddressBook, TcpNet},
        node::{
            Parts,
            elector::{Leadership, State},
            gate::{Gate, GcPause},
        },
        recorder::Recorder,
        rng::stream,
    };

    /// A node whose elector leads under token 7, and the handle of that term.
    fn leads() -> (Node, Leadership, Gate) {
        let clock = Arc::new(ManualClock::default());
        let gate = Gate::default();
        let node = Node::new(Parts {
            name: "a".into(),
            boots: 1,
            clock: clock.clone(),
            net: Rc::new(TcpNet::new("a", Rc::new(AddressBook::default()))),
            disk: Rc::new(MemoryDisk::default()),
            rng: stream(0, "a", 1),
            recorder: Recorder::new(clock.clone()),
            gate: gate.clone(),
            panics: Rc::default(),
        });
        let mut client = LeaseClient::new(LeaseConfig::for_ttl(1000), 0, Planted::NONE);
        client.tick(0);
        let (request, token) = (1, 7);
        client.on_reply(0, &lease::Reply::Granted { request, token }, 0);
        let shared = Arc::new(Shared {
            clock,
            misled: false,
            state: Mutex::new(State {
                client,
                work_in_hand: 0,
                unsettled: None,
                resigning: None,
                planted: Planted::NONE,
            }),
            poke: Notify::new(),
            won: Notify::new(),
            lost: Notify::new(),
        });
        let told = Told {
            holder: "a#1".into(),
            token: Some(token),
            until: Some(980),
            sent: 0,
        };
        node.enlist(Rc::new(Belief {
            lease: "leader".into(),
            shared: shared.clone(),
            told: RefCell::new(Some(told)),
        }));
        (node, Leadership { shared, token }, gate)
    }

    /// What is recorded when the process reaches a gc point and stops there, before the
    /// elector's task has had its turn.
    fn recorded_at_a_gc_point(end: impl Fn(&Leadership)) -> Vec<Body> {
        let (node, leadership, gate) = leads();
        gate.arm(GcPause {
            length: 1,
            before: None,
        });
        end(&leadership);
        assert_eq!(node.gc_point().now_or_never(), None, "it stops");
        let events = node.recorder().finish();
        events.into_iter().map(|event| event.body).collect()
    }

    #[test]
    fn a_term_that_a_handle_ended_is_recorded_before_the_process_stops() {
        let follow = Body::Observed(Observation::Follow(Follow {
            lease: "leader".into(),
            holder: "a#1".into(),
            token: Some(7),
        }));
        for end in [Leadership::resign, Leadership::told_stale] {
            assert_eq!(recorded_at_a_gc_point(end), std::slice::from_ref(&follow));
        }
        assert_eq!(recorded_at_a_gc_point(|_| ()), []);
    }

    #[test]
    fn a_term_of_which_something_may_land_yet_is_not_given_back() {
        for unsettled in [false, true] {
            let (_, leadership, _) = leads();
            let work = leadership.begin_work().expect("it leads");
            leadership.resign();
            let sent = || leadership.shared.state().client.tick(0);
            assert_eq!(sent(), None, "work is in hand");
            if unsettled {
                work.unsettled();
            }
            drop(work);
            let release = lease::Request::Release { token: 7 };
            assert_eq!(sent(), (!unsettled).then_some(release));
        }
    }
}
