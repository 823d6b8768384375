//! Two leaders, one after the other by their tokens and at once in fact, over a network
//! that delivers, copies, delays and loses what it likes, and replicas that restart:
//! what their clients see must be what one register would show, and nothing that an
//! earlier leader begins after a later one's barrier may succeed.
//!
//! Searched whole for short scripts, and at random for longer ones. With a planted flaw
//! the same search finds a run that no register explains.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::flaw::Planted;
use crate::storage::fenced::{Certainty, Refusal};

/// What a leader does, in this order; a barrier that failed is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Op {
    Fence,
    Write(u8),
    Delete,
    Read,
}
use Op::{Delete, Fence, Read, Write};

/// What a client saw. A leader has one operation at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Seen {
    Began(usize, Op),
    Done(usize, Option<Value>),
    Failed(usize),
    /// It may have been done, or be done later.
    Unknown(usize),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    replicas: Vec<QuorumReplica>,
    leaders: Vec<Leader>,
    /// Sorted, so that equal worlds are equal values.
    network: Vec<Packet>,
    history: Vec<Seen>,
    spare: Spare,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Leader {
    coordinator: QuorumCoordinator,
    token: Token,
    script: &'static [Op],
    next: usize,
    in_hand: Option<Op>,
}

/// A message on its way, or what will be heard of one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Packet {
    To {
        leader: usize,
        replica: usize,
        round: u64,
        message: Message,
    },
    From {
        leader: usize,
        replica: usize,
        round: u64,
        answer: Result<Answer, (Token, bool)>,
    },
}

/// How often the world may do what would otherwise never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Spare {
    timeouts: u8,
    copies: u8,
    unsent: u8,
    /// How many answers are never heard.
    unheard: u8,
    /// Whether an answer travels by itself, or is heard at once.
    answers_travel: bool,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Begin(usize),
    Deliver(usize),
    DeliverUnheard(usize),
    Copy(usize),
    Unsent(usize),
    TimeOut(usize),
}

fn lease() -> Name {
    "leader".into()
}

fn key() -> Name {
    "k".into()
}

impl World {
    fn new(replicas: usize, scripts: &[&'static [Op]], spare: Spare, planted: Planted) -> Self {
        let leader = |(token, script): (Token, &&'static [Op])| Leader {
            coordinator: QuorumCoordinator::new(replicas, planted),
            token,
            script,
            next: 0,
            in_hand: None,
        };
        Self {
            replicas: vec![QuorumReplica::new(); replicas],
            leaders: (1..).zip(scripts).map(leader).collect(),
            network: Vec::new(),
            history: Vec::new(),
            spare,
        }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (at, leader) in self.leaders.iter().enumerate() {
            if leader.in_hand.is_none() && leader.next < leader.script.len() {
                actions.push(Action::Begin(at));
            }
            if leader.in_hand.is_some() && self.spare.timeouts > 0 {
                actions.push(Action::TimeOut(at));
            }
        }
        for (at, packet) in self.network.iter().enumerate() {
            actions.push(Action::Deliver(at));
            if let Packet::To { .. } = packet {
                if self.spare.unheard > 0 {
                    actions.push(Action::DeliverUnheard(at));
                }
                if self.spare.copies > 0 {
                    actions.push(Action::Copy(at));
                }
                if self.spare.unsent > 0 {
                    actions.push(Action::Unsent(at));
                }
            }
        }
        actions
    }

    /// Whether what was seen is now to be judged.
    fn act(&mut self, action: Action) -> bool {
        let before = self.history.len();
        match action {
            Action::Begin(leader) => self.begin(leader),
            Action::Deliver(at) => match self.network.remove(at) {
                packet @ Packet::To { .. } => self.arrive(packet, true),
                packet @ Packet::From { .. } => self.hear(packet),
            },
            Action::DeliverUnheard(at) => {
                self.spare.unheard -= 1;
                let packet = self.network.remove(at);
                self.arrive(packet, false);
            }
            Action::Copy(at) => {
                self.spare.copies -= 1;
                let packet = self.network[at].clone();
                self.network.insert(at, packet);
            }
            Action::Unsent(at) => {
                self.spare.unsent -= 1;
                if let Packet::To {
                    leader,
                    replica,
                    round,
                    ..
                } = self.network.remove(at)
                {
                    self.tell(leader, replica, round, Heard::NotSent);
                }
            }
            Action::TimeOut(leader) => {
                self.spare.timeouts -= 1;
                self.leaders[leader].coordinator.give_up();
                self.conclude(leader);
            }
        }
        self.forget_what_changes_nothing();
        self.history.len() > before
    }

    fn begin(&mut self, at: usize) {
        let leader = &mut self.leaders[at];
        let op = leader.script[leader.next];
        let seq = leader.next as u64;
        let messages = match op {
            Fence => Some(leader.coordinator.fence(leader.token)),
            Write(value) => {
                let value = Some(Value::from(value.to_string()));
                leader.coordinator.write(seq, &key(), value).unwrap()
            }
            Delete => leader.coordinator.write(seq, &key(), None).unwrap(),
            Read => leader.coordinator.read(&key()),
        };
        leader.in_hand = Some(op);
        self.history.push(Seen::Began(at, op));
        match messages {
            Some(messages) => self.post(at, messages.into_iter().enumerate().collect()),
            // With a flaw a barrier may be acknowledged that nothing stands behind.
            None => {
                leader.in_hand = None;
                leader.next = leader.script.len();
                self.history.push(Seen::Failed(at));
            }
        }
    }

    fn post(&mut self, leader: usize, messages: Vec<(usize, Message)>) {
        let round = self.leaders[leader].coordinator.round();
        for (replica, message) in messages {
            self.network.push(Packet::To {
                leader,
                replica,
                round,
                message,
            });
        }
        self.network.sort_unstable();
    }

    /// A replica takes a message, having come back from its disk just before.
    fn arrive(&mut self, packet: Packet, heard: bool) {
        let Packet::To {
            leader,
            replica,
            round,
            message,
        } = packet
        else {
            return;
        };
        let node = &mut self.replicas[replica];
        let record = node
            .record(&lease())
            .map(|record| (lease(), record.clone()));
        *node = QuorumReplica::recover(record.into_iter().collect());
        let answer = match node.take(&lease(), self.leaders[leader].token, &message) {
            Ok(taken) => Ok(taken.answer),
            Err(Refusal::StaleToken {
                seen,
                applied_before,
                ..
            }) => Err((seen, applied_before == Certainty::MayHaveApplied)),
            Err(other) => panic!("{other}"),
        };
        let reply = Packet::From {
            leader,
            replica,
            round,
            answer,
        };
        if !heard {
            return;
        }
        if self.spare.answers_travel {
            self.network.push(reply);
            self.network.sort_unstable();
        } else {
            self.hear(reply);
        }
    }

    fn hear(&mut self, packet: Packet) {
        let Packet::From {
            leader,
            replica,
            round,
            answer,
        } = packet
        else {
            return;
        };
        let heard = match answer {
            Ok(answer) => Heard::Answer(answer),
            Err((seen, may_have)) => Heard::Stale {
                seen,
                applied_before: match may_have {
                    true => Certainty::MayHaveApplied,
                    false => Certainty::NotApplied,
                },
            },
        };
        self.tell(leader, replica, round, heard);
    }

    fn tell(&mut self, leader: usize, replica: usize, round: u64, heard: Heard) {
        let more = self.leaders[leader]
            .coordinator
            .on_heard(replica, round, heard);
        self.post(leader, more);
        self.conclude(leader);
    }

    fn conclude(&mut self, at: usize) {
        let leader = &mut self.leaders[at];
        let Some(outcome) = leader.coordinator.outcome() else {
            return;
        };
        let op = leader.in_hand.take().expect("an operation was in hand");
        leader.next += 1;
        let seen = match outcome {
            QuorumOutcome::Done(value) => Seen::Done(at, value),
            QuorumOutcome::Unreached(certainty) => {
                if op == Fence {
                    leader.next -= 1;
                }
                unless_sure(at, certainty)
            }
            QuorumOutcome::Stale { certainty, .. } => {
                leader.next = leader.script.len();
                unless_sure(at, certainty)
            }
        };
        self.history.push(seen);
    }

    /// Messages that no replica will ever take notice of, and whose answer nobody waits
    /// for: without this the search would tell worlds apart that are alike.
    fn forget_what_changes_nothing(&mut self) {
        let (leaders, replicas) = (&self.leaders, &self.replicas);
        let waits = |leader: usize, round: u64| {
            let leader = &leaders[leader];
            leader.in_hand.is_some() && leader.coordinator.round() == round
        };
        self.network.retain(|packet| match packet {
            Packet::From { leader, round, .. } => waits(*leader, *round),
            Packet::To {
                leader,
                replica,
                round,
                message,
            } => {
                let token = leaders[*leader].token;
                let (stands, promised) = match replicas[*replica].record(&lease()) {
                    Some(record) => (record.version, record.shard.highest),
                    None => Default::default(),
                };
                let spent = match message {
                    Message::Prepare | Message::Query { .. } => promised >= token,
                    Message::Accept { after, .. } => stands > Version { token, seq: *after },
                    Message::Adopt(state) => stands >= state.version,
                };
                waits(*leader, *round) || !(promised > token || spent)
            }
        });
    }

    /// What no single register, and no barrier, explains.
    fn verdict(&self) -> Result<(), String> {
        let mut calls: Vec<Call> = Vec::new();
        let mut fenced: Option<usize> = None;
        let mut doomed = vec![false; self.leaders.len()];
        for (at, seen) in self.history.iter().enumerate() {
            let open = |calls: &[Call], leader: usize| {
                calls
                    .iter()
                    .rposition(|call| call.leader == leader)
                    .expect("it began")
            };
            match seen {
                Seen::Began(leader, op) => {
                    doomed[*leader] = fenced.is_some_and(|fenced| fenced > *leader);
                    calls.push(Call {
                        leader: *leader,
                        op: *op,
                        began: at,
                        ended: usize::MAX,
                        result: Outcome::Open,
                    });
                }
                Seen::Done(leader, value) => {
                    let call = open(&calls, *leader);
                    if doomed[*leader] {
                        let what = calls[call].op;
                        return Err(format!(
                            "{what:?} began after a later barrier, and was done"
                        ));
                    }
                    if calls[call].op == Fence {
                        fenced = fenced.max(Some(*leader));
                    }
                    calls[call].ended = at;
                    calls[call].result = Outcome::Done(value.clone());
                }
                Seen::Failed(leader) => {
                    let call = open(&calls, *leader);
                    calls.remove(call);
                    // What was there before it is complete: its place is never asked for.
                }
                Seen::Unknown(_) => {}
            }
        }
        calls.retain(|call| call.op != Fence);
        match explained(&calls, &mut vec![false; calls.len()], None) {
            true => Ok(()),
            false => Err("no order of a single register explains it".to_owned()),
        }
    }
}

fn unless_sure(leader: usize, certainty: Certainty) -> Seen {
    match certainty {
        Certainty::NotApplied => Seen::Failed(leader),
        Certainty::MayHaveApplied => Seen::Unknown(leader),
    }
}

struct Call {
    leader: usize,
    op: Op,
    began: usize,
    ended: usize,
    result: Outcome,
}

#[derive(PartialEq)]
enum Outcome {
    Open,
    Done(Option<Value>),
}

/// Whether the calls that are left can follow one another on a register that holds this
/// value; one that is open may be left out.
fn explained(calls: &[Call], placed: &mut Vec<bool>, holds: Option<&Value>) -> bool {
    let left = || calls.iter().enumerate();
    let first_end = left()
        .filter(|(at, _)| !placed[*at])
        .map(|(_, call)| call.ended)
        .min();
    let Some(first_end) = first_end else {
        return true;
    };
    if left().all(|(at, call)| placed[at] || call.result == Outcome::Open) {
        return true;
    }
    let next: Vec<usize> = left()
        .filter(|(at, call)| !placed[*at] && call.began <= first_end)
        .map(|(at, _)| at)
        .collect();
    for at in next {
        let written = match (calls[at].op, &calls[at].result) {
            (Write(value), _) => Some(Value::from(value.to_string())),
            (Delete, _) => None,
            (Read, Outcome::Done(value)) if value.as_ref() == holds => holds.cloned(),
            _ => continue,
        };
        placed[at] = true;
        if explained(calls, placed, written.as_ref()) {
            return true;
        }
        placed[at] = false;
    }
    false
}

/// Looks at every run of two leaders' scripts on three replicas, from when the first has
/// set its barrier on two of them (on any two: they are alike; the third may yet be
/// reached). The number of different worlds, or what went wrong in the first run that no
/// register explains.
fn search(scripts: &[&'static [Op]], planted: Planted) -> Result<usize, String> {
    let mut world = World::new(3, scripts, SHORT, planted);
    world.act(Action::Begin(0));
    while world.leaders[0].in_hand.is_some() {
        let reached = |packet: &Packet| matches!(packet, Packet::To { replica: 0 | 1, .. });
        let next = world.network.iter().position(reached);
        world.act(Action::Deliver(next.expect("two replicas are a majority")));
    }
    let mut met = BTreeSet::new();
    let mut open = vec![world];
    while let Some(world) = open.pop() {
        for action in world.actions() {
            let mut next = world.clone();
            if next.act(action) {
                next.verdict()
                    .map_err(|wrong| format!("{wrong}: {:?}", next.history))?;
            }
            let mut hasher = DefaultHasher::new();
            next.hash(&mut hasher);
            if met.insert(hasher.finish()) {
                open.push(next);
            }
        }
    }
    Ok(met.len())
}

const SHORT: Spare = Spare {
    timeouts: 0,
    copies: 0,
    unsent: 0,
    unheard: 0,
    answers_travel: false,
};

/// A leader's write may be on any replicas, or on its way to them, when another fences
/// and reads twice. What is lost is what never arrives.
#[test]
fn no_short_run_loses_what_was_acknowledged_or_revives_what_was_not() {
    let scripts: &[&[Op]] = &[&[Fence, Write(1)], &[Fence, Read, Read]];
    let worlds = search(scripts, Planted::NONE).unwrap();
    println!("{worlds} worlds");
    assert!(
        worlds > 1_000,
        "only {worlds} worlds: the search stops short"
    );
}

/// An earlier leader reads while a later one writes.
#[test]
fn no_deposed_leader_reads_what_was_overwritten() {
    let scripts: &[&[Op]] = &[&[Fence, Read], &[Fence, Write(1)]];
    let worlds = search(scripts, Planted::NONE).unwrap();
    println!("{worlds} worlds");
    assert!(
        worlds > 1_000,
        "only {worlds} worlds: the search stops short"
    );
}

/// Longer scripts on three and five replicas, walked at random: copies, answers that
/// travel, messages that never leave, timeouts.
fn walk(planted: Planted, cases: u32) -> Result<(), String> {
    const FIRST: &[Op] = &[Fence, Write(1), Read, Write(2), Delete, Write(3), Read];
    const SECOND: &[Op] = &[Fence, Read, Write(4), Read, Write(5), Read];
    const THIRD: &[Op] = &[Fence, Read, Write(6), Read];
    let spare = Spare {
        timeouts: 4,
        copies: 4,
        unsent: 3,
        unheard: 3,
        answers_travel: true,
    };
    let stories = (
        prop_oneof![Just(3usize), Just(5)],
        proptest::collection::vec(any::<u16>(), 20..160),
    );
    let check = |(replicas, choices): (usize, Vec<u16>)| {
        let mut world = World::new(replicas, &[FIRST, SECOND, THIRD], spare, planted);
        for choice in choices {
            let actions = world.actions();
            if actions.is_empty() {
                break;
            }
            if world.act(actions[usize::from(choice) % actions.len()]) {
                let verdict = world.verdict();
                prop_assert!(verdict.is_ok(), "{verdict:?}: {:?}", world.history);
            }
        }
        Ok(())
    };
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&stories, check);
    result.map_err(|failure| failure.to_string())
}

#[test]
fn no_long_run_found_at_random_does() {
    walk(Planted::NONE, 5_000).unwrap();
}

#[cfg(feature = "flaws")]
#[test]
fn every_flaw_of_the_quorum_is_found_out() {
    use crate::flaw::Flaw;

    let write_then_read: &[&[Op]] = &[&[Fence, Write(1)], &[Fence, Read, Read]];
    let read_then_write: &[&[Op]] = &[&[Fence, Read], &[Fence, Write(1)]];
    for (flaw, scripts) in [
        (Flaw::MinorityAck, write_then_read),
        (Flaw::CountsRefusals, write_then_read),
        (Flaw::NoRecovery, write_then_read),
        (Flaw::ReadsOneReplica, read_then_write),
    ] {
        let wrong = search(scripts, Planted::one(flaw));
        assert!(wrong.is_err(), "{flaw} goes unnoticed in {wrong:?} worlds");
    }
}
