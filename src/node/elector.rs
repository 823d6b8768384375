//! The elector: a [`LeaseClient`] driven over the network, and the handles that an
//! application holds.
//!
//! [`campaign`] starts it. [`Candidacy::elected`] resolves with a [`Leadership`],
//! which answers for one term: its token, whether it still leads, for how long, a
//! signal when it is lost, and a way to resign. The handles are `Send + Sync`.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use deposed_checkers::history::{Name, Nanos, Token};
use tokio::sync::Notify;

use super::Node;
use crate::{
    clock::{
        Clock,
        unfit::{RunClock, WallClock},
    },
    flaw::{Flaw, Planted},
    lease::{LeaseClient, LeaseConfig},
};

mod belief;
mod line;
mod old_term;
mod task;

/// Starts a candidate for one lease on this node; `store` is the lease server's name.
pub fn campaign(
    node: &Node,
    store: Name,
    lease: Name,
    config: LeaseConfig,
    planted: Planted,
) -> Candidacy {
    // Two processes of one name are two holders.
    let nonce = node.random_below(1 << 32);
    let holder = Name::from(format!("{}#{nonce:08x}", node.name()));
    let clock = counted_on(node.clock(), planted);
    let now = clock.now();
    let shared = Arc::new(Shared {
        misled: !Arc::ptr_eq(&clock, node.clock()),
        clock,
        state: Mutex::new(State {
            client: LeaseClient::new(config.clone(), now, planted),
            work_in_hand: 0,
            unsettled: None,
            resigning: None,
            planted,
        }),
        poke: Notify::new(),
        won: Notify::new(),
        lost: Notify::new(),
    });
    task::start(node, store, lease, holder, config, planted, shared.clone());
    Candidacy { shared }
}

/// The clock that the lease is counted on: the boot clock.
fn counted_on(machine: &Arc<dyn Clock>, planted: Planted) -> Arc<dyn Clock> {
    if planted.has(Flaw::ClockStopsInSuspend) {
        return Arc::new(RunClock(machine.clone()));
    }
    if planted.has(Flaw::WallClockExpiry) {
        return Arc::new(WallClock(machine.clone()));
    }
    machine.clone()
}

/// What the elector's task and the handles share.
struct Shared {
    /// What the lease is counted on.
    clock: Arc<dyn Clock>,
    /// Whether that is another than the boot clock: only with a planted flaw.
    misled: bool,
    state: Mutex<State>,
    /// A handle changed the state: the elector should look.
    poke: Notify,
    won: Notify,
    lost: Notify,
}

struct State {
    client: LeaseClient,
    work_in_hand: u32,
    /// The last term of which something may land yet, though no work is in hand.
    unsettled: Option<Token>,
    /// The term that was resigned and is not drained yet.
    resigning: Option<Token>,
    planted: Planted,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere fails the run by itself; the state is whole between calls.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A candidate for one lease. Contends until its process ends.
#[derive(Clone)]
pub struct Candidacy {
    shared: Arc<Shared>,
}

impl Candidacy {
    /// Resolves as soon as this candidate leads, at once if it does already.
    pub async fn elected(&self) -> Leadership {
        loop {
            let won = self.shared.won.notified();
            if let Some(leadership) = self.leadership() {
                return leadership;
            }
            won.await;
        }
    }

    /// The present term, if this candidate leads.
    pub fn leadership(&self) -> Option<Leadership> {
        let now = self.shared.clock.now();
        let state = self.shared.state();
        let token = state
            .client
            .token()
            .filter(|_| state.client.is_leader(now))?;
        Some(Leadership {
            shared: self.shared.clone(),
            token,
        })
    }
}

/// One term. Once it is lost it stays lost, whoever leads next.
#[derive(Clone)]
pub struct Leadership {
    shared: Arc<Shared>,
    token: Token,
}

impl Leadership {
    /// The term's fencing token: hand it to storage with everything.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Whether this term still runs, by this machine's clock. A local check: no
    /// network call, nothing cached. By the time the caller acts on it the answer
    /// may be out of date, which is what the token is for.
    pub fn is_leader(&self) -> bool {
        self.time_remaining() > Duration::ZERO
    }

    /// How much longer [`Leadership::is_leader`] will hold if no renewal succeeds.
    pub fn time_remaining(&self) -> Duration {
        let now = self.shared.clock.now();
        let state = self.shared.state();
        let ours = state.client.token() == Some(self.token);
        Duration::from_nanos(if ours { state.client.remaining(now) } else { 0 })
    }

    /// Resolves once this term is lost, be it by the clock alone.
    pub async fn lost(&self) {
        loop {
            let lost = self.shared.lost.notified();
            let remaining = self.time_remaining();
            if remaining == Duration::ZERO {
                return;
            }
            let left = Nanos::try_from(remaining.as_nanos()).unwrap_or(Nanos::MAX);
            let end = self.shared.clock.now().saturating_add(left);
            tokio::select! {
                biased;
                () = lost => {}
                () = self.shared.clock.sleep_until(end) => {}
            }
        }
    }

    /// Takes a piece of work in hand, unless the term is lost. A resigning leader
    /// releases its lease only when no work is in hand any more.
    pub fn begin_work(&self) -> Option<WorkInHand> {
        let now = self.shared.clock.now();
        // Checked and counted under one lock: no resignation falls between.
        let mut state = self.shared.state();
        let leads = state.client.token() == Some(self.token) && state.client.is_leader(now);
        if !leads {
            return None;
        }
        state.work_in_hand += 1;
        Some(WorkInHand {
            shared: self.shared.clone(),
            token: self.token,
        })
    }

    /// Gives the lease back: belief first, then the work in hand is drained, then
    /// the release is sent. Another candidate gets its turn.
    pub fn resign(&self) {
        let now = self.shared.clock.now();
        let mut state = self.shared.state();
        if state.client.token() != Some(self.token) || state.resigning == Some(self.token) {
            return;
        }
        state.client.resign(now);
        // Its window may have been over already: then there is nothing to release.
        if state.client.token() == Some(self.token) {
            state.resigning = Some(self.token);
            drain(&mut state, now);
        }
        drop(state);
        self.shared.lost.notify_waiters();
        self.shared.poke.notify_one();
    }

    /// Storage has answered that this term's token is stale: the term is over.
    pub fn told_stale(&self) {
        let now = self.shared.clock.now();
        self.shared.state().client.on_stale_token(now, self.token);
        self.shared.lost.notify_waiters();
        self.shared.poke.notify_one();
    }
}

/// A piece of work under a term, until dropped. See [`Leadership::begin_work`].
pub struct WorkInHand {
    shared: Arc<Shared>,
    token: Token,
}

impl WorkInHand {
    /// What was sent was not answered, and may be done yet by somebody who checks no
    /// token. Its term is not given back: a resigned lease is free at once, and the
    /// lock-delay follows only one that ran out.
    pub fn unsettled(&self) {
        self.shared.state().unsettled = Some(self.token);
    }
}

impl Drop for WorkInHand {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        let mut state = self.shared.state();
        state.work_in_hand -= 1;
        // Only a drained term gives the elector anything to do.
        let drained = drain(&mut state, now);
        drop(state);
        if drained {
            self.shared.poke.notify_one();
        }
    }
}

/// Lets the release go once a resigning leader has nothing in hand; or the lease run out,
/// where something of the term may land yet. Whether it did either.
fn drain(state: &mut State, now: Nanos) -> bool {
    let early = state.planted.has(Flaw::ReleaseBeforeDrain);
    if state.work_in_hand > 0 && !early {
        return false;
    }
    let Some(token) = state.resigning.take() else {
        return false;
    };
    match !early && state.unsettled == Some(token) {
        true => state.client.leave_to_expire(now),
        false => state.client.drained(now),
    }
    true
}
