//! The search as a tree of values in proptest's sense: a run that fails, and simpler ones
//! in the order in which they are tried.

use std::{
    collections::{BTreeSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use deposed_checkers::history::Nanos;
use proptest::{
    strategy::{NewTree, Strategy, ValueTree},
    test_runner::TestRunner,
};

use super::{change::Change, knob::Knob, ladder::Ladder};
use crate::{cluster::DiskKind, run::Header};

/// When a run was convicted, ns of true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conviction {
    /// When it was sure, whatever might follow.
    pub at: Nanos,
    /// When what is wrong happened.
    pub culprit: Nanos,
    /// Whether it was harm done, and not only a rule broken that keeps harm away.
    pub manifest: bool,
}

impl Conviction {
    /// Nothing is known but that the run fails, by its end.
    pub fn of_the_whole(header: &Header) -> Self {
        let end = header.chaos.saturating_add(header.calm);
        Self {
            at: end,
            culprit: end,
            manifest: false,
        }
    }
}

/// A run that fails, to be made smaller: with proptest's own runner, or with
/// [`Shrink`](super::Shrink), which knows when each run was convicted.
///
/// ```
/// use deposed::{prelude::*, run::Header, shrink::Failing};
/// use proptest::test_runner::{TestError, TestRunner};
///
/// let workload = Workload {
///     nemesis: Nemesis::one_in(1, vec![pause(Target::Leader), crash(Target::Store)]),
///     ..Workload::named("w")
/// };
/// let header = Header::of(&workload, 7, "deposed", None);
/// // Whatever a run may depend on: here, that some process is paused.
/// let fails = |header: Header| {
///     let pauses = header.schedule.iter().filter(|entry| entry.fault.name() == "pause");
///     if pauses.count() > 0 {
///         return Err(proptest::test_runner::TestCaseError::fail("somebody was paused"));
///     }
///     Ok(())
/// };
/// let found = TestRunner::default().run(&Failing(header), fails);
/// let Err(TestError::Fail(_, smallest)) = found else { panic!("it fails") };
/// assert_eq!((smallest.schedule.len(), smallest.cluster.clients), (1, 1));
/// ```
#[derive(Clone, Debug)]
pub struct Failing(pub Header);

impl Strategy for Failing {
    type Tree = Smaller;
    type Value = Header;

    fn new_tree(&self, _: &mut TestRunner) -> NewTree<Self> {
        Ok(Smaller::new(
            self.0.clone(),
            Conviction::of_the_whole(&self.0),
        ))
    }
}

/// The smaller runs of one that fails. Rounds of passes, each over what the one before
/// left, until a round finds nothing: first whole parts of the run are left out, then
/// halves of its faults, quarters, single ones; then what is left becomes shorter, sooner,
/// rounder and plainer.
///
/// Pure, and in one order: [`simplify`](ValueTree::simplify) when the current run fails
/// as the first did, [`complicate`](ValueTree::complicate) when it does not.
#[derive(Clone, Debug)]
pub struct Smaller {
    best: Header,
    conviction: Conviction,
    trying: Option<Header>,
    passes: VecDeque<Pass>,
    /// Whether this round has found something smaller.
    found: bool,
    /// What was tried, by its hash.
    tried: BTreeSet<u64>,
}

impl Smaller {
    /// Of a run that fails, and was convicted then.
    pub fn new(header: Header, conviction: Conviction) -> Self {
        let tried = BTreeSet::from([hash(&header)]);
        Self {
            passes: round(),
            best: header,
            conviction,
            trying: None,
            found: false,
            tried,
        }
    }

    /// The smallest that is known to fail.
    pub fn best(&self) -> &Header {
        &self.best
    }

    /// When the current run, which fails, was convicted: to be told before
    /// [`simplify`](ValueTree::simplify).
    pub fn convicted(&mut self, conviction: Conviction) {
        self.conviction = conviction;
    }

    /// The next to try, if there is one.
    fn next(&mut self) -> bool {
        loop {
            let Some(pass) = self.passes.front_mut() else {
                if !std::mem::take(&mut self.found) {
                    return false;
                }
                self.passes = round();
                continue;
            };
            match pass.next(&self.best, self.conviction) {
                Next::Try(header) => {
                    if self.is_new(&header) {
                        self.trying = Some(*header);
                        return true;
                    }
                    self.answer(false);
                }
                Next::First(passes) => {
                    self.passes.pop_front();
                    for pass in passes.into_iter().rev() {
                        self.passes.push_front(pass);
                    }
                }
                Next::Nothing => self.answer(false),
                Next::Done => drop(self.passes.pop_front()),
            }
        }
    }

    fn answer(&mut self, fails: bool) {
        if self
            .passes
            .front_mut()
            .is_some_and(|pass| pass.is_over(fails))
        {
            self.passes.pop_front();
        }
    }

    fn is_new(&mut self, header: &Header) -> bool {
        self.tried.insert(hash(header)) && header.validate().is_ok()
    }
}

impl ValueTree for Smaller {
    type Value = Header;

    fn current(&self) -> Header {
        self.trying.as_ref().unwrap_or(&self.best).clone()
    }

    fn simplify(&mut self) -> bool {
        if let Some(smaller) = self.trying.take() {
            self.best = smaller;
            self.found = true;
            self.answer(true);
        }
        self.next()
    }

    fn complicate(&mut self) -> bool {
        if self.trying.take().is_none() {
            return false;
        }
        self.answer(false);
        self.next()
    }
}

/// A part of a round.
#[derive(Clone, Debug)]
enum Pass {
    /// A change, tried once.
    Once(Change),
    /// The numbers of clients below the present one, from the least.
    Clients(u8),
    /// The last faults before the conviction: one, two, four …
    Last(usize),
    /// Parts of the schedule left out: so many entries, the last of which stands before
    /// this place.
    Drop { size: usize, end: usize },
    /// Of more than a few faults single ones left out under other seeds, from the one that
    /// stands before this place.
    Reseed { end: usize, seed: u64 },
    /// A number turned down.
    Turn(Knob, Option<Ladder>),
    /// What depends on what is left by then.
    Then(Later),
}

/// As many faults as a reader takes in.
const FEW: usize = 3;
/// Under how many other seeds a fault is left out.
const SEEDS: u64 = 4;

/// Passes that are made when their turn comes.
#[derive(Clone, Copy, Debug)]
enum Later {
    Drops,
    Reseeds,
    Nodes,
    Knobs,
    Parties,
}

enum Next {
    Try(Box<Header>),
    /// There is no such change: on to the next.
    Nothing,
    /// These, in the place of this pass.
    First(Vec<Pass>),
    Done,
}

/// The passes of a round. What leaves out most comes first, since what is tried after it
/// is cheaper, and what asks for many faults comes while there are many.
fn round() -> VecDeque<Pass> {
    let settings = [
        Change::OneLease,
        Change::OneKey,
        Change::NoDeletes,
        Change::NoResigning,
        Change::Replicas(3),
        Change::TrueClocks,
        Change::NoOffsets,
        Change::Memory,
    ];
    let ends = [Change::EndAtCulprit, Change::EndAtConviction].map(Pass::Once);
    let mut passes = vec![
        Pass::Once(Change::End),
        Pass::Once(Change::Last(0)),
        Pass::Clients(1),
    ];
    passes.extend(settings.map(Pass::Once));
    // What is left of a late failure is brought forward first: each run costs its length.
    passes.extend([
        Pass::Last(1),
        Pass::Turn(Knob::Gap(0), None),
        Pass::Once(Change::End),
        Pass::Then(Later::Drops),
    ]);
    passes.extend(ends.clone());
    passes.extend([Later::Reseeds, Later::Nodes, Later::Knobs, Later::Parties].map(Pass::Then));
    passes.extend(ends);
    passes.extend([Change::SteadyNetwork, Change::InOrder].map(Pass::Once));
    passes.into()
}

impl Later {
    fn passes(self, best: &Header, conviction: Conviction) -> Vec<Pass> {
        let entries = best.schedule.len();
        match self {
            Later::Drops if entries == 0 => Vec::new(),
            Later::Drops => vec![Pass::Drop {
                size: entries.div_ceil(2),
                end: entries,
            }],
            Later::Reseeds => vec![Pass::Reseed {
                end: entries,
                seed: 0,
            }],
            Later::Nodes => {
                let clocks = best.clocks.keys().cloned().map(Change::TrueClock);
                let offsets = best.offsets.keys().cloned().map(Change::NoOffset);
                clocks.chain(offsets).map(Pass::Once).collect()
            }
            Later::Knobs => {
                // Where the conviction comes in chaos, the run has been cut there.
                let chaos = (conviction.at > best.chaos).then_some(Knob::Chaos);
                let knobs = chaos.into_iter().chain(Knob::all(best));
                knobs.map(|knob| Pass::Turn(knob, None)).collect()
            }
            Later::Parties => {
                let changes = (0..entries).flat_map(|entry| Change::parties(best, entry));
                changes.map(Pass::Once).collect()
            }
        }
    }
}

impl Pass {
    fn next(&mut self, best: &Header, conviction: Conviction) -> Next {
        let tried = |change: Change| match change.of(best, conviction) {
            Some(header) => Next::Try(Box::new(header)),
            None => Next::Nothing,
        };
        match self {
            Pass::Once(Change::Memory) if best.cluster.disk == DiskKind::Memory => Next::Done,
            Pass::Once(change) => tried(change.clone()),
            Pass::Clients(clients) if *clients >= best.cluster.clients => Next::Done,
            Pass::Clients(clients) => tried(Change::Clients(*clients)),
            Pass::Last(faults) if *faults >= best.schedule.len() => Next::Done,
            Pass::Last(faults) => tried(Change::Last(*faults)),
            Pass::Drop {
                size: 0 | 1,
                end: 0,
            } => Next::Done,
            Pass::Drop { size, end } => {
                if *end == 0 {
                    (*size, *end) = (size.div_ceil(2), best.schedule.len());
                }
                let first = end.saturating_sub(*size);
                tried(Change::Without(first, *end - first))
            }
            Pass::Reseed { end: 0, .. } => Next::Done,
            Pass::Reseed { .. } if best.schedule.len() <= FEW => Next::Done,
            Pass::Reseed { end, seed } => tried(Change::WithoutUnder(*end - 1, *seed)),
            Pass::Turn(knob, ladder) => {
                let Some(at) = knob.read(best) else {
                    return Next::Done;
                };
                let ladder = ladder.get_or_insert_with(|| Ladder::new(at));
                let Some(to) = ladder.next() else {
                    return Next::Done;
                };
                match knob.turn(best, to) {
                    Some(header) => Next::Try(Box::new(header)),
                    None => Next::Nothing,
                }
            }
            Pass::Then(later) => Next::First(later.passes(best, conviction)),
        }
    }

    /// Takes in whether what was tried fails; whether nothing is left to try.
    fn is_over(&mut self, fails: bool) -> bool {
        match self {
            Pass::Once(_) => return true,
            Pass::Clients(_) | Pass::Last(_) if fails => return true,
            Pass::Clients(clients) => *clients += 1,
            Pass::Last(faults) => *faults *= 2,
            Pass::Drop { size, end } => *end = end.saturating_sub(*size),
            Pass::Reseed { end, seed } if fails || *seed + 1 == SEEDS => {
                (*end, *seed) = (*end - 1, 0);
            }
            Pass::Reseed { seed, .. } => *seed += 1,
            Pass::Turn(_, Some(ladder)) => ladder.answer(fails),
            Pass::Turn(_, None) | Pass::Then(_) => {}
        }
        false
    }
}

fn hash(header: &Header) -> u64 {
    let mut hasher = DefaultHasher::new();
    // A header is plain data.
    let line = serde_json::to_string(header).unwrap_or_default();
    line.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        fault::{Injection, Target},
        nemesis::{Nemesis, crash, gc_pause, lose, pause, rate},
        shrink::Size,
        workload::{Clocks, MS, SECOND, Workload},
    };

    /// Runs with some dozens of faults of all kinds of triggers and targets.
    fn headers() -> impl Strategy<Value = Header> {
        let header = |seed| {
            let workload = Workload {
                nemesis: Nemesis::one_in(
                    1,
                    vec![
                        pause(Target::Leader),
                        crash(Target::Servers),
                        gc_pause(Target::AnyClient, None),
                        lose("renew"),
                        rate(Target::Store),
                    ],
                ),
                clocks: Clocks::WithinBound,
                ..Workload::named("w")
            };
            Header::of(&workload, seed, "deposed", None)
        };
        (0_u64..1_000).prop_map(header)
    }

    /// What a run must keep to fail: so many faults of each of two kinds, so many clients,
    /// so much chaos.
    #[derive(Clone, Debug)]
    struct Needs {
        pauses: usize,
        crashes: usize,
        clients: u8,
        chaos: u64,
    }

    impl Needs {
        fn met_by(&self, header: &Header) -> bool {
            let count = |name: &str| {
                let named = |entry: &&Injection| entry.fault.name() == name;
                header.schedule.iter().filter(named).count()
            };
            count("pause") >= self.pauses
                && count("crash") >= self.crashes
                && header.cluster.clients >= self.clients
                && header.chaos >= self.chaos
        }
    }

    fn needs() -> impl Strategy<Value = Needs> {
        (0_usize..3, 0_usize..3, 1_u8..=3, 1..=10_u64).prop_map(|(pauses, crashes, clients, s)| {
            Needs {
                pauses,
                crashes,
                clients,
                chaos: s * SECOND / 2,
            }
        })
    }

    /// The smallest that fails, of a run that does; and how many were tried.
    fn smallest(header: &Header, fails: impl Fn(&Header) -> bool) -> (Header, usize) {
        let mut tree = Smaller::new(header.clone(), Conviction::of_the_whole(header));
        let (mut more, mut tried) = (tree.simplify(), 0);
        while more {
            tried += 1;
            assert!(tried < 20_000, "it never ends");
            let current = tree.current();
            assert_eq!(current.validate(), Ok(()));
            more = match fails(&current) {
                true => tree.simplify(),
                false => tree.complicate(),
            };
        }
        assert_eq!(
            tree.current(),
            *tree.best(),
            "in the end it is the smallest"
        );
        (tree.best().clone(), tried)
    }

    fn never_larger(small: &Header, than: &Header) {
        let (small, than) = (Size::of(small), Size::of(than));
        assert!(small.faults <= than.faults, "{small} of {than}");
        assert!(small.clients <= than.clients, "{small} of {than}");
        assert!(small.length <= than.length, "{small} of {than}");
    }

    proptest! {
        /// Where each thing that a failure needs is needed for itself, nothing else is left.
        #[test]
        fn what_is_left_is_what_it_takes(header in headers(), needs in needs()) {
            prop_assume!(needs.met_by(&header));
            let (small, _) = smallest(&header, |header| needs.met_by(header));
            prop_assert!(needs.met_by(&small));
            never_larger(&small, &header);
            prop_assert_eq!(small.schedule.len(), needs.pauses + needs.crashes);
            prop_assert_eq!(small.cluster.clients, needs.clients);
            prop_assert!(small.clocks.is_empty() && small.offsets.is_empty());
            for entry in &small.schedule {
                let plain = |target| matches!(target, Target::Leader | Target::Store);
                prop_assert!(entry.fault.targets().into_iter().all(plain), "{:?}", entry);
            }
        }

        /// A simulation is no monotone thing: less may fail where more does not. It ends
        /// all the same, with something that fails.
        #[test]
        fn it_ends_whatever_fails(header in headers(), one_in in 2_u64..8) {
            let fails = |small: &Header| *small == header || hash(small).is_multiple_of(one_in);
            let (small, _) = smallest(&header, fails);
            prop_assert!(fails(&small));
            never_larger(&small, &header);
        }

        /// What is smallest cannot be shrunk: who shrinks twice has it once.
        #[test]
        fn the_smallest_stays_as_it_is(header in headers(), needs in needs()) {
            prop_assume!(needs.met_by(&header));
            let fails = |header: &Header| needs.met_by(header);
            let (small, _) = smallest(&header, fails);
            let (again, _) = smallest(&small, fails);
            prop_assert_eq!(again, small);
        }
    }

    /// Where the conviction came is where the run is cut: at once, to two digits.
    #[test]
    fn a_run_ends_where_it_was_convicted() {
        let header = Header::of(&Workload::named("w"), 0, "deposed", None);
        let conviction = Conviction {
            at: 1_234 * MS,
            culprit: 1_201 * MS,
            manifest: true,
        };
        let mut tree = Smaller::new(header, conviction);
        let (mut more, mut last) = (tree.simplify(), 0);
        while more {
            let header = tree.current();
            let end = header.chaos + header.calm;
            // Everything that happened by then is needed.
            more = match end >= 1_235 * MS && header.cluster.clients == 3 {
                true => {
                    last = end;
                    tree.convicted(conviction);
                    tree.simplify()
                }
                false => tree.complicate(),
            };
        }
        assert_eq!(last, 1_300 * MS);
    }
}
