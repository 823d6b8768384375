//! The rules of the quorum, one test each.

use super::*;
use crate::flaw::Planted;
use crate::storage::fenced::{Certainty, Refusal};

fn lease() -> Name {
    "leader".into()
}

fn key() -> Name {
    "k".into()
}

fn version(token: Token, seq: u64) -> Version {
    Version { token, seq }
}

fn accept(after: u64, seq: u64, value: &str) -> Message {
    Message::Accept {
        after,
        seq,
        key: key(),
        value: Some(value.into()),
    }
}

fn state(token: Token, seq: u64, value: &str) -> Snapshot {
    Snapshot {
        version: version(token, seq),
        values: [(key(), Value::from(value))].into(),
    }
}

/// Where the replica stands after the message.
fn stands(replica: &mut QuorumReplica, token: Token, message: Message) -> Version {
    match replica.take(&lease(), token, &message).unwrap().answer {
        Answer::Stands { version, .. } => version,
        Answer::Promised(snapshot) => snapshot.version,
    }
}

fn value_of(replica: &QuorumReplica) -> Option<&str> {
    let record = replica.record(&lease())?;
    record.shard.values.get(&key()).map(Value::as_str)
}

/// Three replicas and a leader that reaches some of them.
struct Cluster {
    replicas: Vec<QuorumReplica>,
}

impl Cluster {
    fn new() -> Self {
        Self {
            replicas: vec![QuorumReplica::new(); 3],
        }
    }

    /// Carries an operation's messages to these replicas and their answers back; the
    /// others are never sent anything.
    fn carry(
        &mut self,
        leader: &mut QuorumCoordinator,
        messages: Vec<Message>,
        reached: &[usize],
    ) -> QuorumOutcome {
        let round = leader.round();
        let mut posted: Vec<(usize, Message)> = messages.into_iter().enumerate().collect();
        while !posted.is_empty() {
            let (replica, message) = posted.remove(0);
            let heard = if reached.contains(&replica) {
                match self.replicas[replica].take(&lease(), leader.token(), &message) {
                    Ok(taken) => Heard::Answer(taken.answer),
                    Err(Refusal::StaleToken {
                        seen,
                        applied_before,
                        ..
                    }) => Heard::Stale {
                        seen,
                        applied_before,
                    },
                    Err(other) => panic!("{other}"),
                }
            } else {
                Heard::NotSent
            };
            posted.extend(leader.on_heard(replica, round, heard));
        }
        leader.outcome().expect("everybody was heard")
    }

    fn fence(&mut self, token: Token, reached: &[usize]) -> (QuorumCoordinator, QuorumOutcome) {
        let mut leader = QuorumCoordinator::new(3, Planted::NONE);
        let messages = leader.fence(token);
        let outcome = self.carry(&mut leader, messages, reached);
        (leader, outcome)
    }

    fn write(
        &mut self,
        leader: &mut QuorumCoordinator,
        seq: u64,
        value: &str,
        reached: &[usize],
    ) -> QuorumOutcome {
        let messages = leader.write(seq, &key(), Some(value.into())).unwrap();
        self.carry(leader, messages.expect("it fenced"), reached)
    }

    fn read(&mut self, leader: &mut QuorumCoordinator, reached: &[usize]) -> QuorumOutcome {
        let messages = leader.read(&key()).expect("it fenced");
        self.carry(leader, messages, reached)
    }
}

const DONE: QuorumOutcome = QuorumOutcome::Done(None);

fn holds(value: &str) -> QuorumOutcome {
    QuorumOutcome::Done(Some(value.into()))
}

#[test]
fn a_replica_promises_and_refuses_everything_below() {
    let mut replica = QuorumReplica::new();
    assert_eq!(stands(&mut replica, 8, Message::Prepare), version(0, 0));
    for message in [
        Message::Prepare,
        Message::Query { key: key() },
        accept(0, 1, "zombie"),
        Message::Adopt(state(7, 0, "zombie")),
    ] {
        let refusal = replica.take(&lease(), 7, &message).unwrap_err();
        let applied_before = Certainty::NotApplied;
        let stale = Refusal::StaleToken {
            presented: 7,
            seen: 8,
            applied_before,
        };
        assert_eq!(refusal, stale, "{message:?}");
    }
    assert_eq!(value_of(&replica), None);
}

#[test]
fn a_replica_takes_a_change_right_after_the_one_before_it_or_not_at_all() {
    let mut replica = QuorumReplica::new();
    stands(&mut replica, 1, Message::Adopt(state(1, 0, "found")));
    assert_eq!(
        stands(&mut replica, 1, accept(1, 2, "b")),
        version(1, 0),
        "it lacks 1.1"
    );
    assert_eq!(stands(&mut replica, 1, accept(0, 1, "a")), version(1, 1));
    assert_eq!(stands(&mut replica, 1, accept(1, 2, "b")), version(1, 2));
    assert_eq!(
        stands(&mut replica, 1, accept(0, 1, "a")),
        version(1, 2),
        "a late copy"
    );
    assert_eq!(value_of(&replica), Some("b"));
}

#[test]
fn a_late_state_takes_a_replica_back_nowhere() {
    let mut replica = QuorumReplica::new();
    stands(&mut replica, 1, Message::Adopt(state(1, 3, "new")));
    assert_eq!(
        stands(&mut replica, 1, Message::Adopt(state(1, 2, "old"))),
        version(1, 3)
    );
    assert_eq!(value_of(&replica), Some("new"));
    // Nor one that is no newer, nor a change that comes after nothing.
    stands(&mut replica, 1, Message::Adopt(state(1, 3, "again")));
    stands(&mut replica, 1, accept(3, 3, "again"));
    assert_eq!(value_of(&replica), Some("new"));
}

#[test]
fn what_changed_is_told_so_that_it_becomes_durable() {
    let mut replica = QuorumReplica::new();
    let mut take = |token, message| {
        let taken = replica.take(&lease(), token, &message).unwrap();
        (taken.promised, taken.applied, taken.changed)
    };
    assert_eq!(take(1, Message::Prepare), (true, false, true));
    assert_eq!(take(1, Message::Prepare), (false, false, false));
    assert_eq!(
        take(1, Message::Adopt(state(1, 0, "a"))),
        (false, false, true)
    );
    assert_eq!(take(1, accept(0, 1, "b")), (false, true, true));
    assert_eq!(take(1, accept(0, 1, "b")), (false, false, false));
    assert_eq!(
        take(1, Message::Query { key: key() }),
        (false, false, false)
    );
    // A change that does not fit promises all the same, and that must be durable.
    assert_eq!(take(2, accept(0, 1, "c")), (true, false, true));
}

#[test]
fn a_replica_comes_back_with_its_promise_and_its_state() {
    let mut replica = QuorumReplica::new();
    stands(&mut replica, 3, Message::Adopt(state(3, 1, "a")));
    stands(&mut replica, 4, Message::Prepare);
    let written = serde_json::to_string(&[(lease(), replica.record(&lease()).unwrap())]).unwrap();
    let records: Vec<(Name, ReplicaRecord)> = serde_json::from_str(&written).unwrap();
    let back = QuorumReplica::recover(records.into_iter().collect());
    assert_eq!(back, replica);
    assert_eq!(back.highest().collect::<Vec<_>>(), [(&lease(), 4)]);
}

#[test]
fn a_majority_is_enough_and_a_minority_is_not() {
    let mut cluster = Cluster::new();
    let nobody = QuorumOutcome::Unreached(Certainty::NotApplied);
    assert_eq!(cluster.fence(1, &[]).1, nobody);
    let one = QuorumOutcome::Unreached(Certainty::MayHaveApplied);
    assert_eq!(cluster.fence(1, &[0]).1, one);
    let (mut leader, outcome) = cluster.fence(1, &[0, 1]);
    assert_eq!(outcome, DONE);
    assert_eq!(cluster.write(&mut leader, 1, "a", &[1, 2]), DONE);
    assert_eq!(cluster.write(&mut leader, 2, "b", &[2]), one);
    assert_eq!(
        cluster.read(&mut leader, &[0, 1]),
        holds("b"),
        "and is repaired by the next"
    );
}

#[test]
fn a_lagging_replica_is_repaired_by_the_next_operation_that_reaches_it() {
    let mut cluster = Cluster::new();
    let (mut leader, _) = cluster.fence(1, &[0, 1]);
    cluster.write(&mut leader, 1, "a", &[0, 1]);
    cluster.write(&mut leader, 2, "b", &[0, 1]);
    assert_eq!(value_of(&cluster.replicas[2]), None);
    assert_eq!(cluster.write(&mut leader, 3, "c", &[1, 2]), DONE);
    assert_eq!(value_of(&cluster.replicas[2]), Some("c"));
}

#[test]
fn a_write_of_a_minority_is_adopted_where_it_is_met() {
    let mut cluster = Cluster::new();
    let (mut old, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.write(&mut old, 1, "a", &[0, 1, 2]);
    cluster.write(&mut old, 2, "b", &[0]);
    let (mut new, outcome) = cluster.fence(2, &[0, 2]);
    assert_eq!(outcome, DONE);
    assert_eq!(cluster.read(&mut new, &[1, 2]), holds("b"));
}

#[test]
fn a_write_of_a_minority_never_surfaces_where_it_is_not_met() {
    let mut cluster = Cluster::new();
    let (mut old, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.write(&mut old, 1, "a", &[0, 1, 2]);
    cluster.write(&mut old, 2, "b", &[0]);
    let (mut new, _) = cluster.fence(2, &[1, 2]);
    assert_eq!(cluster.read(&mut new, &[0, 1]), holds("a"));
    assert_eq!(
        value_of(&cluster.replicas[0]),
        Some("a"),
        "it is overwritten"
    );
    let (mut third, _) = cluster.fence(3, &[0, 1]);
    assert_eq!(cluster.read(&mut third, &[0, 2]), holds("a"));
}

#[test]
fn a_deposed_leader_neither_writes_nor_reads() {
    let mut cluster = Cluster::new();
    let (mut old, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.fence(2, &[0, 1]);
    // The third replica has not heard of the new leader, and takes the zombie.
    let may_have = QuorumOutcome::Stale {
        seen: 2,
        certainty: Certainty::MayHaveApplied,
    };
    assert_eq!(cluster.write(&mut old, 1, "zombie", &[0, 1, 2]), may_have);
    let surely_not = QuorumOutcome::Stale {
        seen: 2,
        certainty: Certainty::NotApplied,
    };
    assert_eq!(cluster.read(&mut old, &[0, 1, 2]), surely_not);
    // And nobody reads of it.
    let (mut new, _) = cluster.fence(3, &[1, 2]);
    assert_eq!(cluster.read(&mut new, &[0, 1]), DONE);
}

#[test]
fn a_refusal_by_all_is_sure() {
    let mut cluster = Cluster::new();
    let (mut old, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.fence(2, &[0, 1, 2]);
    let surely_not = QuorumOutcome::Stale {
        seen: 2,
        certainty: Certainty::NotApplied,
    };
    assert_eq!(cluster.write(&mut old, 1, "zombie", &[0, 1, 2]), surely_not);
}

#[test]
fn what_was_never_sent_leaves_no_trace() {
    let mut cluster = Cluster::new();
    let (mut leader, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.write(&mut leader, 1, "a", &[0, 1, 2]);
    let nobody = QuorumOutcome::Unreached(Certainty::NotApplied);
    assert_eq!(cluster.write(&mut leader, 2, "b", &[]), nobody);
    assert_eq!(cluster.read(&mut leader, &[0, 1, 2]), holds("a"));
    assert_eq!(
        cluster.write(&mut leader, 3, "c", &[0, 1, 2]),
        DONE,
        "past the gap"
    );
}

#[test]
fn what_was_sent_before_may_have_been_copied_on_the_way() {
    let mut cluster = Cluster::new();
    let (mut leader, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.write(&mut leader, 1, "a", &[1, 2]);
    leader.write(2, &key(), Some("b".into())).unwrap();
    let (round, behind) = (leader.round(), version(1, 0));
    let answer = Answer::Stands {
        version: behind,
        value: None,
    };
    let repair = leader.on_heard(0, round, Heard::Answer(answer));
    assert!(matches!(repair[..], [(0, Message::Adopt(_))]));
    for replica in 0..3 {
        leader.on_heard(replica, round, Heard::NotSent);
    }
    let in_doubt = QuorumOutcome::Unreached(Certainty::MayHaveApplied);
    assert_eq!(leader.outcome(), Some(in_doubt));
}

#[test]
fn a_barrier_tried_again_keeps_the_state_that_it_chose() {
    let mut cluster = Cluster::new();
    let (mut old, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.write(&mut old, 1, "a", &[0, 1]);
    // The state is chosen of replicas 0 and 2, and reaches nobody any more.
    let mut new = QuorumCoordinator::new(3, Planted::NONE);
    let (messages, round) = (new.fence(2), new.round());
    for replica in [0, 2] {
        let taken = cluster.replicas[replica].take(&lease(), 2, &messages[replica]);
        new.on_heard(replica, round, Heard::Answer(taken.unwrap().answer));
    }
    new.give_up();
    let unknown = QuorumOutcome::Unreached(Certainty::MayHaveApplied);
    assert_eq!(new.outcome(), Some(unknown));
    let again = new.fence(2);
    assert!(
        again
            .iter()
            .all(|message| *message == Message::Adopt(state(2, 0, "a")))
    );
    assert_eq!(cluster.carry(&mut new, again, &[1, 2]), DONE);
}

#[test]
fn nothing_is_sent_before_the_barrier_and_no_seq_twice() {
    let mut leader = QuorumCoordinator::new(3, Planted::NONE);
    assert_eq!(leader.read(&key()), None);
    assert_eq!(leader.write(1, &key(), None), Ok(None));
    let mut cluster = Cluster::new();
    let (mut leader, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.write(&mut leader, 2, "a", &[0, 1, 2]);
    let old = Refusal::OldSeq {
        presented_seq: 2,
        last_seq: 2,
    };
    assert_eq!(leader.write(2, &key(), None), Err(old));
}

#[test]
fn an_answer_to_an_earlier_operation_counts_for_nothing_now() {
    let mut cluster = Cluster::new();
    let (mut leader, _) = cluster.fence(1, &[0, 1, 2]);
    leader.read(&key()).unwrap();
    let earlier = leader.round();
    leader.give_up();
    leader.outcome().unwrap();
    leader.read(&key()).unwrap();
    let answer = Answer::Stands {
        version: version(1, 0),
        value: None,
    };
    for replica in 0..3 {
        leader.on_heard(replica, earlier, Heard::Answer(answer.clone()));
    }
    assert_eq!(
        leader.outcome(),
        None,
        "a later leader may have fenced in between"
    );
}

#[test]
fn a_replica_that_lacks_nothing_is_sent_the_change_alone() {
    let mut cluster = Cluster::new();
    let (mut leader, _) = cluster.fence(1, &[0, 1, 2]);
    let late = leader.read(&key()).map(|_| leader.round()).unwrap();
    leader.give_up();
    leader.outcome().unwrap();
    let barrier = leader.fence(2);
    cluster.carry(&mut leader, barrier, &[0, 1, 2]);
    // Of the earlier term, it tells nothing of where the replica stands now.
    let answer = Answer::Stands {
        version: version(1, 0),
        value: None,
    };
    leader.on_heard(0, late, Heard::Answer(answer));
    let sent = leader.write(1, &key(), Some("x".into())).unwrap();
    assert_eq!(sent, Some(vec![accept(0, 1, "x"); 3]));
}

#[test]
fn a_replica_that_is_known_to_lag_is_sent_the_state_at_once() {
    let mut cluster = Cluster::new();
    let (mut leader, _) = cluster.fence(1, &[0, 1, 2]);
    cluster.write(&mut leader, 1, "a", &[1, 2]);
    let behind = Answer::Stands {
        version: version(1, 0),
        value: None,
    };
    leader.on_heard(0, leader.round(), Heard::Answer(behind));
    let sent = leader.write(2, &key(), Some("b".into())).unwrap();
    let change = || accept(1, 2, "b");
    let whole = Message::Adopt(state(1, 2, "b"));
    assert_eq!(sent, Some(vec![whole, change(), change()]));
}

#[test]
fn a_refused_message_is_told_whether_it_was_taken_before() {
    let mut replica = QuorumReplica::new();
    stands(&mut replica, 1, Message::Adopt(state(1, 0, "a")));
    stands(&mut replica, 1, accept(0, 2, "b"));
    stands(&mut replica, 2, Message::Prepare);
    let (may_have, not) = (Certainty::MayHaveApplied, Certainty::NotApplied);
    for (message, expected) in [
        (accept(0, 1, "b"), may_have),
        (accept(0, 2, "b"), may_have),
        (accept(2, 3, "b"), not),
        (Message::Adopt(state(1, 2, "b")), may_have),
        (Message::Adopt(state(1, 3, "b")), not),
        (Message::Query { key: key() }, not),
        (Message::Prepare, not),
    ] {
        let Err(Refusal::StaleToken { applied_before, .. }) = replica.take(&lease(), 1, &message)
        else {
            panic!("{message:?} was taken")
        };
        assert_eq!(applied_before, expected, "{message:?}");
    }
}

#[test]
fn a_fence_under_a_token_already_promised_becomes_durable_once() {
    let mut replica = QuorumReplica::new();
    stands(&mut replica, 3, Message::Adopt(state(3, 1, "a")));
    for changed in [true, false] {
        let taken = replica.take(&lease(), 3, &Message::Prepare).unwrap();
        assert_eq!(taken.changed, changed);
    }
}
