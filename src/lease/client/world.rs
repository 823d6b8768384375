//! Clients and a store in a world that delays, loses and repeats what they say, on
//! clocks that drift within the bound: every belief lies inside its lease.

use std::cell::Cell;
use std::collections::BTreeMap;

use deposed_checkers::history::Name;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::*;
use crate::lease::{Denial, LeaseStore, StoreLimits};

pub(super) const TTL: Nanos = 1_000_000;
const CLIENTS: usize = 3;
/// 10 %: each clock may be off by half of it.
const DRIFT: u64 = PPB / 10;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Wait(Nanos),
    /// A client ticks; what it sends is under way.
    Wake(usize),
    /// A client ticks and, unless that leads nowhere, is answered a little later.
    Exchange(usize, Nanos),
    /// A message that is under way arrives.
    Deliver(usize),
    Lose(usize),
    Repeat(usize),
    Unreachable(usize),
    Resign(usize),
    Drained(usize),
    Stale(usize),
    RestartClient(usize),
    RestartStore,
}

/// Clock rates, the store's first, and what happens.
pub(super) type Story = (Vec<u64>, Vec<Step>);

pub(super) fn stories() -> impl Strategy<Value = Story> {
    let (slow, fast) = (PPB - DRIFT / 2, PPB + DRIFT / 2);
    let rate = prop_oneof![Just(slow), Just(fast), slow..=fast];
    let who = 0..CLIENTS;
    let nth = prop_oneof![Just(0usize), 0..16usize];
    let wait = prop_oneof![1..TTL / 5, 1..TTL * 3 / 2];
    let step = prop_oneof![
        8 => wait.prop_map(Step::Wait),
        8 => who.clone().prop_map(Step::Wake),
        8 => (who.clone(), 0..TTL / 4).prop_map(|(who, delay)| Step::Exchange(who, delay)),
        8 => nth.clone().prop_map(Step::Deliver),
        2 => nth.clone().prop_map(Step::Lose),
        2 => nth.prop_map(Step::Repeat),
        1 => who.clone().prop_map(Step::Unreachable),
        1 => who.clone().prop_map(Step::Resign),
        2 => who.clone().prop_map(Step::Drained),
        1 => who.clone().prop_map(Step::Stale),
        1 => who.prop_map(Step::RestartClient),
        1 => Just(Step::RestartStore),
    ];
    (
        proptest::collection::vec(rate, CLIENTS + 1),
        proptest::collection::vec(step, 1..150),
    )
}

enum Message {
    Ask {
        who: usize,
        holder: Name,
        request: Request,
    },
    Tell {
        who: usize,
        holder: Name,
        reply: Reply,
    },
}

struct Candidate {
    client: LeaseClient,
    holder: Name,
    boots: u32,
}

struct World {
    planted: Planted,
    config: LeaseConfig,
    rates: Vec<u64>,
    /// True time.
    time: Nanos,
    store: LeaseStore,
    candidates: Vec<Candidate>,
    under_way: Vec<Message>,
    /// Leaders seen, by token.
    leaders: BTreeMap<Token, Name>,
}

fn lease() -> Name {
    "leader".into()
}

impl World {
    fn new(planted: Planted, rates: Vec<u64>) -> Self {
        let config = LeaseConfig {
            max_drift_ppb: DRIFT,
            // More than readings lose by being whole numbers.
            safety_margin: 10,
            // Candidates that ask often come upon more of what may go wrong.
            backoff_min: TTL / 8,
            backoff_max: TTL / 4,
            ..LeaseConfig::for_ttl(TTL)
        };
        let store = LeaseStore::new(
            StoreLimits {
                min_ttl: 1,
                ..StoreLimits::default()
            },
            planted,
        );
        let mut world = Self {
            planted,
            config,
            rates,
            time: 0,
            store,
            candidates: Vec::new(),
            under_way: Vec::new(),
            leaders: BTreeMap::new(),
        };
        for who in 0..CLIENTS {
            let candidate = world.boot(who, 0);
            world.candidates.push(candidate);
        }
        world
    }

    fn boot(&self, who: usize, boots: u32) -> Candidate {
        let client = LeaseClient::new(self.config.clone(), self.clock(who), self.planted);
        Candidate {
            client,
            holder: Name::from(format!("{who}#{boots}")),
            boots,
        }
    }

    /// What a client's clock reads; offsets differ by far.
    fn clock(&self, who: usize) -> Nanos {
        (who as Nanos + 1) * 7_000_000_000 + part(self.time, self.rates[who + 1])
    }

    fn store_clock(&self) -> Nanos {
        part(self.time, self.rates[0])
    }

    fn wake(&mut self, who: usize) -> Result<(), TestCaseError> {
        let now = self.clock(who);
        let candidate = &mut self.candidates[who];
        while let Some(request) = candidate.client.tick(now) {
            if let (Request::Release { .. }, false) =
                (&request, self.planted.has(Flaw::ReleaseBeforeStepDown))
            {
                prop_assert!(
                    !candidate.client.is_leader(now),
                    "releases and still believes"
                );
            }
            self.under_way.push(Message::Ask {
                who,
                holder: candidate.holder.clone(),
                request,
            });
        }
        let due = candidate.client.wake_at();
        prop_assert!(
            due.is_none_or(|due| due > now),
            "overdue after a tick: {:?}",
            candidate.client
        );
        Ok(())
    }

    fn deliver(&mut self, nth: usize) {
        if nth >= self.under_way.len() {
            return;
        }
        match self.under_way.remove(nth) {
            Message::Ask {
                who,
                holder,
                request,
            } => {
                let reply = self.answer(&holder, &request);
                self.under_way.push(Message::Tell { who, holder, reply });
            }
            // A process that is gone reads nothing.
            Message::Tell { who, holder, reply } if self.candidates[who].holder == holder => {
                let now = self.clock(who);
                let client = &mut self.candidates[who].client;
                let awaited = client.awaits(&reply);
                let mut untold = client.clone();
                untold.end_what_is_over(now);
                client.on_reply(now, &reply, self.time % PPB);
                assert!(awaited || *client == untold, "{reply:?} was not awaited");
            }
            Message::Tell { .. } => {}
        }
    }

    fn answer(&mut self, holder: &Name, request: &Request) -> Reply {
        let now = self.store_clock();
        match *request {
            Request::Acquire { request, ttl } => {
                match self.store.acquire(now, &lease(), holder, request, ttl) {
                    Ok(grant) => Reply::Granted {
                        request,
                        token: grant.token,
                    },
                    Err(Denial::Held { remaining }) => Reply::AcquireDenied {
                        request,
                        retry_after: Some(remaining),
                    },
                    Err(_) => Reply::AcquireDenied {
                        request,
                        retry_after: None,
                    },
                }
            }
            Request::Renew {
                token,
                attempt,
                ttl,
            } => match self.store.renew(now, &lease(), holder, token, attempt, ttl) {
                Ok(_) => Reply::Renewed { attempt },
                Err(_) => Reply::RenewDenied { attempt },
            },
            Request::Release { token } => match self.store.release(now, &lease(), holder, token) {
                Ok(_) => Reply::Released { token },
                Err(_) => Reply::ReleaseDenied { token },
            },
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Wait(time) => self.time += time,
            Step::Wake(who) => self.wake(who)?,
            Step::Exchange(who, delay) => {
                let before = self.under_way.len();
                self.wake(who)?;
                if self.under_way.len() > before {
                    self.time += delay / 2;
                    self.deliver(self.under_way.len() - 1);
                    self.time += delay / 2;
                    self.deliver(self.under_way.len() - 1);
                }
            }
            Step::Deliver(nth) => self.deliver(nth),
            Step::Lose(nth) => {
                if nth < self.under_way.len() {
                    self.under_way.remove(nth);
                }
            }
            Step::Repeat(nth) => {
                let copy = match self.under_way.get(nth) {
                    Some(Message::Ask {
                        who,
                        holder,
                        request,
                    }) => Message::Ask {
                        who: *who,
                        holder: holder.clone(),
                        request: request.clone(),
                    },
                    Some(Message::Tell { who, holder, reply }) => Message::Tell {
                        who: *who,
                        holder: holder.clone(),
                        reply: reply.clone(),
                    },
                    None => return Ok(()),
                };
                self.under_way.push(copy);
            }
            // Reported rightly, of a send that is not under way, or wrongly: both are safe.
            Step::Unreachable(who) => {
                let now = self.clock(who);
                self.candidates[who]
                    .client
                    .on_unreachable(now, self.time % PPB);
            }
            Step::Resign(who) => {
                let now = self.clock(who);
                self.candidates[who].client.resign(now);
            }
            Step::Drained(who) => {
                let now = self.clock(who);
                self.candidates[who].client.drained(now);
            }
            Step::Stale(who) => {
                let now = self.clock(who);
                let client = &mut self.candidates[who].client;
                if let Some(token) = client.token() {
                    client.on_stale_token(now, token);
                }
            }
            Step::RestartClient(who) => {
                self.candidates[who] = self.boot(who, self.candidates[who].boots + 1);
            }
            Step::RestartStore => {
                let records = self
                    .store
                    .records()
                    .map(|(name, record)| (name.clone(), record))
                    .collect();
                let limits = StoreLimits {
                    min_ttl: 1,
                    ..StoreLimits::default()
                };
                self.store = LeaseStore::recover(limits, self.planted, records, self.store_clock());
            }
        }
        self.check()
    }

    /// Each belief is a live lease's at the store, under its token, and ends no later
    /// than it does, should nobody hear of anything any more.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let store_now = self.store_clock();
        for (who, candidate) in self.candidates.iter().enumerate() {
            let now = self.clock(who);
            let client = &candidate.client;
            prop_assert_eq!(client.is_leader(now), client.remaining(now) > 0);
            if !client.is_leader(now) {
                continue;
            }
            let belief = client.belief().unwrap();
            let held = self.store.holding(store_now, &lease());
            let own = held.is_some_and(|held| *held.holder == candidate.holder);
            prop_assert!(own, "{} believes, and {:?} holds", candidate.holder, held);
            let held = held.unwrap();
            prop_assert_eq!(belief.token, held.token);
            prop_assert!(belief.until.is_some(), "a belief without end");
            // remaining / client rate <= (expiry - now) / store rate
            let believed = u128::from(client.remaining(now)) * u128::from(self.rates[0]);
            let leased = u128::from(held.expiry - store_now) * u128::from(self.rates[who + 1]);
            prop_assert!(
                believed <= leased,
                "{} believes past its lease",
                candidate.holder
            );
            self.leaders.insert(belief.token, candidate.holder.clone());
        }
        Ok(())
    }
}

/// A test runner that runs the same cases every time and leaves no files.
pub(super) fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Plays a story; the terms that were led.
pub(super) fn play(planted: Planted, (rates, steps): &Story) -> Result<usize, TestCaseError> {
    let mut world = World::new(planted, rates.clone());
    for step in steps {
        world.step(step)?;
    }
    Ok(world.leaders.len())
}

#[test]
fn every_belief_lies_inside_its_lease() {
    let led = Cell::new(0);
    let check = |story: Story| {
        led.set(led.get() + play(Planted::NONE, &story)?);
        Ok(())
    };
    runner(4_000)
        .run(&stories(), check)
        .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(
        led.get() > 8_000,
        "only {} terms were led: the stories do not reach far",
        led.get()
    );
}

#[test]
fn clocks_beyond_the_bound_break_it() {
    let beyond = |(_, steps): Story| {
        // The store's clock fast, the clients' slow: relative drift of 20 %.
        let rates = vec![PPB + DRIFT, PPB - DRIFT, PPB - DRIFT, PPB - DRIFT];
        play(Planted::NONE, &(rates, steps)).map(|_| ())
    };
    assert!(runner(4_000).run(&stories(), beyond).is_err());
}
