//! The passes of a round: what is tried, in which order.

use std::collections::VecDeque;

use super::{Conviction, change::Change, knob::Knob, ladder::Ladder};
use crate::{cluster::DiskKind, run::Header};

/// A part of a round.
#[derive(Clone, Debug)]
pub(super) enum Pass {
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
pub(super) enum Later {
    Drops,
    Reseeds,
    Nodes,
    Knobs,
    Parties,
}

pub(super) enum Next {
    Try(Box<Header>),
    /// There is no such change: on to the next.
    Nothing,
    /// These, in the place of this pass.
    First(Vec<Pass>),
    Done,
}

/// The passes of a round. What leaves out most comes first, since what is tried after it
/// is cheaper, and what asks for many faults comes while there are many.
pub(super) fn round() -> VecDeque<Pass> {
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
    pub(super) fn next(&mut self, best: &Header, conviction: Conviction) -> Next {
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
    pub(super) fn is_over(&mut self, fails: bool) -> bool {
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
