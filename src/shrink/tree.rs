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

use super::pass::{Next, Pass, round};
use crate::run::Header;

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
