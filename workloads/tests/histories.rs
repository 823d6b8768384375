//! Every history in `histories/` is told in its `README.md`, is judged as is told there,
//! and comes out again byte for byte.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use deposed::{
    checkers::{
        history::{Body, Event, F, Kind, Observation},
        reader,
    },
    kept::{self, Folder, Story},
    run::Header,
    system::{Deposed, System},
};

/// A history is kept to be read.
const MOST_BYTES: u64 = 60_000;

fn histories() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.parent().expect("a workspace").join("histories")
}

#[test]
fn every_kept_history_is_judged_as_told_and_replays() {
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed)];
    kept::test(&histories(), &systems);
}

#[test]
fn every_kept_history_can_be_read_by_a_person() {
    let names = Folder::new(&histories()).names().expect("the folder");
    assert!(names.len() >= 12, "{} only", names.len());
    for name in names {
        let file = histories().join(format!("{name}.jsonl"));
        let bytes = file.metadata().expect("it is there").len();
        assert!(bytes <= MOST_BYTES, "{name}: {bytes} bytes; shrink it");
    }
}

/// The runs of a history: its header, and how often each fault struck.
fn run(name: &str) -> (Header, BTreeMap<String, usize>) {
    let path = histories().join(format!("{name}.jsonl"));
    let text = fs::read_to_string(&path).expect("it is there");
    let line = text.lines().next().expect("a header");
    let header: Header = serde_json::from_str(line).expect("a header");
    let faults: Vec<&str> = header
        .schedule
        .iter()
        .map(|entry| entry.fault.name())
        .collect();
    let (_, events) = reader::open(&path).expect("a history");
    let mut struck = BTreeMap::new();
    for event in events {
        if let Body::Nemesis(fault, _) = event.expect("an event").body
            && faults.contains(&fault.as_str())
        {
            *struck.entry(fault.to_string()).or_default() += 1;
        }
    }
    (header, struck)
}

/// Otherwise one sees a defect, and not what a system does about it.
#[test]
fn beside_every_bad_history_is_a_good_one_that_the_same_faults_struck() {
    let readme = fs::read_to_string(histories().join("README.md")).expect("it is told");
    let told = kept::stories(&readme);
    let is_good = |story: &Story| story.verdicts == ["valid"];
    let (good, bad): (Vec<&Story>, Vec<&Story>) = told.iter().partition(|story| is_good(story));
    let good: Vec<_> = good.iter().map(|story| run(&story.name)).collect();
    for story in bad {
        let (header, struck) = run(&story.name);
        let sound = Header {
            flaw: None,
            ..header
        };
        let name = &story.name;
        let twin = good.iter().find(|(header, _)| *header == sound);
        let (_, again) = twin.unwrap_or_else(|| panic!("{name} has no good one beside it"));
        assert_eq!(*again, struck, "{name}");
    }
}

/// What a good history does where the bad one beside it fails.
enum Decides {
    /// A token above this one is granted.
    Grant(u64),
    /// Storage refuses a write with this token.
    Refusal(u64),
    /// A candidate is refused the lease after the last fault that this names.
    Denial(&'static str),
    /// The term with this token ends before another is granted a token above it.
    EndInTime(u64),
    /// The term with this token ends before its lease is given back.
    EndBeforeRelease(u64),
    /// The lease with this token is renewed after the last fault that this names.
    Renewal(&'static str, u64),
    /// Storage comes back and has seen this token.
    Memory(u64),
    /// A fence fails, and one is acknowledged before the first write.
    FenceBeforeWork,
}

/// Each good history, and its moment.
const DECISIVE: [(&str, Decides); 19] = [
    ("paused-leader-refused", Decides::Refusal(1)),
    ("zombie-before-the-barrier-refused", Decides::Refusal(1)),
    ("fence-that-is-recorded", Decides::Refusal(1)),
    ("counted-from-the-send", Decides::EndInTime(1)),
    ("drift-with-a-margin", Decides::EndInTime(1)),
    ("drift-beyond-the-bound-obeyed", Decides::Refusal(1)),
    ("durable-counter", Decides::Grant(1)),
    ("same-holder-next-token", Decides::Grant(1)),
    ("drained-before-release", Decides::EndBeforeRelease(1)),
    ("expiry-on-the-boot-clock", Decides::Renewal("step", 1)),
    ("asked-anew-after-restart", Decides::Denial("restart")),
    ("tokens-that-are-counted", Decides::Grant(1)),
    ("restored-with-a-floor", Decides::Grant(1)),
    ("lock-delay-kept", Decides::Denial("restart")),
    ("idled-unfenced", Decides::FenceBeforeWork),
    ("clock-that-does-not-sleep", Decides::EndInTime(1)),
    ("one-lost-renewal-outlived", Decides::Renewal("lost", 1)),
    ("value-with-its-token", Decides::Memory(1)),
    ("majority-ack", Decides::Refusal(2)),
];

impl Decides {
    fn happens(&self, events: &[Event]) -> bool {
        let seen = |what: &dyn Fn(&Observation) -> bool| {
            events
                .iter()
                .position(|event| matches!(&event.body, Body::Observed(seen) if what(seen)))
        };
        let granted_above = |token| {
            seen(&move |seen| matches!(seen, Observation::Granted(g) if g.token > Some(token)))
        };
        let ended = |token| {
            seen(&move |seen| matches!(seen, Observation::Follow(f) if f.token == Some(token)))
        };
        let last = |fault: &str| {
            events.iter().rposition(
                |event| matches!(&event.body, Body::Nemesis(name, _) if name.as_str() == fault),
            )
        };
        let completed = |f: F, kind: Kind| {
            events.iter().position(|event| {
                matches!(event.body, Body::Complete(g, _) if g == f) && event.kind == kind
            })
        };
        // What is to come before must be there; what it comes before may be.
        let before = |first: Option<usize>, then: Option<usize>| {
            first.is_some_and(|first| then.is_none_or(|then| first < then))
        };
        match *self {
            Decides::Grant(token) => granted_above(token).is_some(),
            Decides::Refusal(token) => {
                seen(&|seen| matches!(seen, Observation::Refused(r) if r.token == token)).is_some()
            }
            Decides::Denial(fault) => last(fault).is_some_and(|at| {
                let mut after = events[at..].iter();
                after.any(|event| {
                    matches!(&event.body, Body::Observed(Observation::Denied(denied))
                        if denied.f == F::Acquire)
                })
            }),
            Decides::EndInTime(token) => {
                granted_above(token).is_some() && before(ended(token), granted_above(token))
            }
            Decides::EndBeforeRelease(token) => {
                let released = seen(
                    &|seen| matches!(seen, Observation::Released(r) if r.token == Some(token)),
                );
                released.is_some() && before(ended(token), released)
            }
            Decides::Renewal(fault, token) => last(fault).is_some_and(|at| {
                let mut after = events[at..].iter();
                after.any(|event| {
                    matches!(&event.body, Body::Observed(Observation::Renewed(renewed))
                        if renewed.token == Some(token))
                })
            }),
            Decides::Memory(token) => seen(&|seen| {
                matches!(seen, Observation::StorageRecovered(recovered)
                    if recovered.highest.values().any(|highest| *highest == token))
            })
            .is_some(),
            Decides::FenceBeforeWork => {
                let fenced = completed(F::Fence, Kind::Ok);
                let worked = completed(F::Write, Kind::Ok);
                let lost = completed(F::Fence, Kind::Fail);
                before(lost, fenced) && worked.is_some() && before(fenced, worked)
            }
        }
    }
}

/// A run that ends before anything was decided is valid for no reason.
#[test]
fn in_every_good_history_the_moment_comes_that_the_bad_one_fails_in() {
    let readme = fs::read_to_string(histories().join("README.md")).expect("it is told");
    let told = kept::stories(&readme);
    let good = told.iter().filter(|story| story.verdicts == ["valid"]);
    let mut good: Vec<&str> = good.map(|story| story.name.as_str()).collect();
    let mut decisive: Vec<&str> = DECISIVE.iter().map(|(name, _)| *name).collect();
    good.sort_unstable();
    decisive.sort_unstable();
    assert_eq!(good, decisive, "each good history has its moment");
    for (name, decides) in DECISIVE {
        let (_, events) =
            reader::open(histories().join(format!("{name}.jsonl"))).expect("it is there");
        let events: Vec<Event> = events.map(|event| event.expect("an event")).collect();
        assert!(decides.happens(&events), "{name}: nothing is decided in it");
    }
}
