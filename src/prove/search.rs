//! Breadth first through every state, on many threads, level by level.
//!
//! Each level is cut into blocks. Threads take a block's states apart, and look up which of
//! the next ones are new; then each thread takes in the new ones of its own shards. Of two
//! ways to one state the one counts that comes first in the order of the level before: so
//! the states, their order, and the story that is told are the same on any number of threads.

use std::{
    num::NonZero,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use hashbrown::HashTable;
use xxhash_rust::xxh3::Xxh3;

use super::{
    catalogue::{Catalogue, View},
    memory::{of_the_process, room},
    property::Broken,
    reduce::Rules,
    scope::Scope,
    state::State,
    story::{Story, story},
};
use crate::{parallel::MOST_JOBS, shrink::monotonic};

/// Into how many shards the visited states are divided.
const SHARDS: usize = 256;
/// How many states are taken apart between two looks at time and memory.
const BLOCK: usize = 1 << 16;
/// How many states a thread takes at a time.
const PORTION: usize = 256;
/// Fewer states than this are not worth a second thread.
const WORTH_A_THREAD: usize = 4_096;

/// What to search, and what it may cost.
pub struct Search<'a> {
    /// The bounds.
    pub scope: Scope,
    /// The rules that reduce it.
    pub rules: Rules,
    /// How many threads, but for more than 256.
    pub jobs: NonZero<usize>,
    /// How much memory the process may take meanwhile, in bytes.
    pub max_memory: u64,
    /// How long it may take.
    pub within: Option<Duration>,
    /// How deep it goes, in actions.
    pub max_depth: usize,
    /// Ends it once true.
    pub stop: &'a AtomicBool,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Every state was visited, and nothing was wrong.
    Holds,
    /// Something was wrong: the shortest way there.
    Broken(Broken, Story),
    /// The memory was not enough.
    OutOfMemory,
    /// The time was not enough.
    OutOfTime,
    /// Somebody stopped it.
    Stopped,
    /// It went as deep as it should.
    Deep,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How it ended.
    pub end: End,
    /// How many states were visited, of those that are told apart.
    pub states: u64,
    /// How many steps were taken from them.
    pub steps: u64,
    /// The fewest actions to the last state visited.
    pub depth: usize,
    /// How many different stores, storages and clients there were.
    pub nodes: [usize; 3],
    /// How long it took.
    pub took: Duration,
    /// The most memory that the process took meanwhile, in bytes: estimated from above.
    pub memory: u64,
    /// A digest of the ways by which each state was first reached.
    pub ways: u64,
}

/// How a state was first reached: from which state of the level before, by which of its
/// steps.
#[derive(Clone, Copy)]
struct Way {
    from: u32,
    step: u16,
}

impl Way {
    fn order(self) -> (u32, u16) {
        (self.from, self.step)
    }
}

/// A state that was perhaps not visited before.
struct Fresh {
    print: u128,
    way: Way,
    state: State,
}

/// States that were visited.
struct Visited(Vec<HashTable<u128>>);

fn shard_of(print: u128) -> usize {
    (print >> 64) as usize % SHARDS
}

impl Visited {
    fn new() -> Self {
        Visited((0..SHARDS).map(|_| HashTable::new()).collect())
    }

    fn has(&self, print: u128) -> bool {
        let shard = &self.0[shard_of(print)];
        shard.find(print as u64, |other| *other == print).is_some()
    }

    fn bytes(&self) -> u64 {
        let bytes = self.0.iter().map(HashTable::allocation_size);
        bytes.sum::<usize>() as u64
    }

    /// What they take besides once so many more were visited: tables double.
    fn growth(&self, more: usize) -> u64 {
        let more = more.div_ceil(SHARDS);
        let grown = self.0.iter().map(|shard| {
            let room = room(shard.len(), shard.capacity(), more) - shard.capacity();
            // One is empty for seven that are not.
            room * size_of::<u128>() * 8 / 7
        });
        grown.sum::<usize>() as u64
    }
}

/// Whether it was not there.
fn insert(shard: &mut HashTable<u128>, print: u128) -> bool {
    let entry = shard.entry(print as u64, |other| *other == print, |other| *other as u64);
    match entry {
        hashbrown::hash_table::Entry::Occupied(_) => false,
        hashbrown::hash_table::Entry::Vacant(place) => {
            place.insert(print);
            true
        }
    }
}

/// What one thread finds in a block.
struct Harvest {
    fresh: Vec<Vec<Fresh>>,
    wrong: Option<(Way, Broken)>,
    steps: u64,
}

impl Harvest {
    /// For how many states it has room.
    fn held(&self) -> usize {
        self.fresh.iter().map(Vec::capacity).sum()
    }
}

impl Search<'_> {
    /// Searches. What is found where clients and the network do more than they would is
    /// looked for again where they do not: only that convicts. Where the cores are not as a
    /// rule takes them, it is searched again without that rule.
    pub fn run(&self) -> Found {
        let mut rules = self.rules;
        let mut within = self.within;
        loop {
            let search = Search {
                scope: self.scope.clone(),
                rules,
                within,
                ..*self
            };
            let found = search.once();
            let fewer = match found.end {
                End::Broken(Broken::Premise(premise), _) => rules.without(premise),
                End::Broken(..) => rules.tellable(),
                _ => rules,
            };
            if fewer == rules {
                return found;
            }
            rules = fewer;
            within = within.map(|within| within.saturating_sub(found.took));
        }
    }

    /// Searches, and tells a story only where nobody does more than it would.
    pub(super) fn once(&self) -> Found {
        let began = monotonic();
        let catalogue = Catalogue::new(self.scope.clone(), self.rules);
        let mut views: Vec<View<'_>> = Vec::new();
        views.resize_with(self.jobs.get().min(MOST_JOBS), || View::new(&catalogue));
        let mut visited = Visited::new();
        let start = catalogue.start();
        insert(
            &mut visited.0[shard_of(start.fingerprint())],
            start.fingerprint(),
        );
        let mut found = Found {
            end: End::Holds,
            states: 1,
            steps: 0,
            depth: 0,
            nodes: [0; 3],
            took: Duration::ZERO,
            memory: 0,
            ways: 0,
        };
        let mut digest = Xxh3::new();
        let mut frontier = vec![start];
        let mut levels: Vec<Vec<Way>> = Vec::new();
        found.end = 'search: loop {
            if found.depth >= self.max_depth {
                break End::Deep;
            }
            let (mut next, mut ways) = (Vec::new(), Vec::new());
            for (nth, block) in frontier.chunks(BLOCK).enumerate() {
                let before = next.len();
                let harvests = self.take_apart(block, nth * BLOCK, &visited, &mut views);
                found.steps += harvests.iter().map(|harvest| harvest.steps).sum::<u64>();
                // Once where they are found, and once by shard.
                let fresh = 2 * harvests.iter().map(Harvest::held).sum::<usize>();
                let wrong = harvests.iter().filter_map(|harvest| harvest.wrong);
                if let Some((way, broken)) = wrong.min_by_key(|(way, _)| way.order()) {
                    found.depth += 1;
                    let tellable = self.rules == self.rules.tellable();
                    let story = match broken {
                        Broken::Check(_) | Broken::Inductive(_) if tellable => {
                            story(&self.scope, self.rules, &path(&levels, way), broken)
                        }
                        _ => Story {
                            actions: Vec::new(),
                        },
                    };
                    break 'search End::Broken(broken, story);
                }
                for fresh in take_in(harvests, &mut visited, self.jobs) {
                    next.push(fresh.state);
                    ways.push(fresh.way);
                    digest.update(&fresh.way.from.to_le_bytes());
                    digest.update(&fresh.way.step.to_le_bytes());
                }
                let bytes = visited.bytes()
                    + catalogue.bytes()
                    + views.iter().map(View::bytes).sum::<u64>()
                    + size::<Fresh>(fresh)
                    + size::<State>(frontier.capacity() + next.capacity())
                    + size::<Way>(
                        ways.capacity() + levels.iter().map(Vec::capacity).sum::<usize>(),
                    );
                found.memory = found.memory.max(of_the_process(bytes));
                // The next block's are to fit in before this is asked again: twice as many as
                // one of its size should have.
                let left = frontier.len() - nth * BLOCK - block.len();
                let to_come = if left > 0 { left } else { next.len() };
                let times = to_come.min(BLOCK).div_ceil(block.len());
                let more = 2 * times * (next.len() - before);
                let lists = room(next.len(), next.capacity(), more) - next.capacity();
                let growth = visited.growth(more)
                    + size::<State>(lists)
                    + size::<Way>(lists)
                    + size::<Fresh>(2 * times * fresh);
                if of_the_process(bytes + growth) > self.max_memory
                    || next.len() >= u32::MAX as usize
                {
                    found.states += next.len() as u64;
                    break 'search End::OutOfMemory;
                }
                let took = monotonic().saturating_sub(began);
                if self.within.is_some_and(|within| took >= within) {
                    found.states += next.len() as u64;
                    break 'search End::OutOfTime;
                }
                if self.stop.load(Ordering::Relaxed) {
                    found.states += next.len() as u64;
                    break 'search End::Stopped;
                }
            }
            if next.is_empty() {
                break End::Holds;
            }
            found.states += next.len() as u64;
            found.depth += 1;
            ways.shrink_to_fit();
            levels.push(ways);
            frontier = next;
        };
        found.ways = digest.digest();
        found.nodes = catalogue.sizes();
        found.took = monotonic().saturating_sub(began);
        found
    }

    /// Every next state of a block that was not visited before this block.
    #[expect(
        clippy::disallowed_methods,
        reason = "what is found is sorted by where it was found"
    )]
    fn take_apart(
        &self,
        block: &[State],
        offset: usize,
        visited: &Visited,
        views: &mut [View<'_>],
    ) -> Vec<Harvest> {
        let taken = AtomicUsize::new(0);
        let work = |view: &mut View<'_>| {
            let mut harvest = Harvest {
                fresh: (0..SHARDS).map(|_| Vec::new()).collect(),
                wrong: None,
                steps: 0,
            };
            loop {
                let begin = taken.fetch_add(PORTION, Ordering::Relaxed);
                if begin >= block.len() {
                    return harvest;
                }
                let end = block.len().min(begin + PORTION);
                for (at, state) in block[begin..end].iter().enumerate() {
                    let from = u32::try_from(offset + begin + at).expect("a level fits");
                    take_one_apart(view, state, from, visited, &mut harvest);
                }
            }
        };
        if block.len() < WORTH_A_THREAD {
            return vec![work(&mut views[0])];
        }
        thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = views
                .iter_mut()
                .map(|view| scope.spawn(move || work(view)))
                .collect();
            let harvests = threads.into_iter();
            harvests
                .map(|thread| thread.join().expect("no step panics"))
                .collect()
        })
    }
}

fn take_one_apart(
    view: &mut View<'_>,
    state: &State,
    from: u32,
    visited: &Visited,
    harvest: &mut Harvest,
) {
    let mut step = 0;
    view.next(state, &mut |next| {
        let way = Way { from, step };
        step += 1;
        if let Some(broken) = next.broken {
            let sooner = |(other, _): &(Way, Broken)| way.order() < other.order();
            if harvest.wrong.as_ref().is_none_or(sooner) {
                harvest.wrong = Some((way, broken));
            }
            return;
        }
        let print = next.to.fingerprint();
        if !visited.has(print) {
            harvest.fresh[shard_of(print)].push(Fresh {
                print,
                way,
                state: next.to,
            });
        }
    });
    harvest.steps += u64::from(step);
}

/// Takes in what is new, each once, in the order of the ways there.
#[expect(
    clippy::disallowed_methods,
    reason = "what is new is sorted by the way there"
)]
fn take_in(harvests: Vec<Harvest>, visited: &mut Visited, jobs: NonZero<usize>) -> Vec<Fresh> {
    let mut by_shard: Vec<Vec<Fresh>> = (0..SHARDS).map(|_| Vec::new()).collect();
    for harvest in harvests {
        for (all, some) in by_shard.iter_mut().zip(harvest.fresh) {
            match all.is_empty() {
                true => *all = some,
                false => all.extend(some),
            }
        }
    }
    let work = |shards: &mut [HashTable<u128>], fresh: &mut [Vec<Fresh>]| {
        for (shard, fresh) in shards.iter_mut().zip(fresh) {
            fresh.sort_unstable_by_key(|fresh| fresh.way.order());
            fresh.retain(|fresh| insert(shard, fresh.print));
        }
    };
    let many = by_shard.iter().map(Vec::len).sum::<usize>() >= WORTH_A_THREAD;
    if many {
        let part = SHARDS.div_ceil(jobs.get());
        let parts = visited.0.chunks_mut(part).zip(by_shard.chunks_mut(part));
        thread::scope(|scope| {
            for (shards, fresh) in parts {
                scope.spawn(move || work(shards, fresh));
            }
        });
    } else {
        work(&mut visited.0, &mut by_shard);
    }
    let mut fresh: Vec<Fresh> = by_shard.into_iter().flatten().collect();
    fresh.sort_unstable_by_key(|fresh| fresh.way.order());
    fresh
}

/// Which steps lead from the start to the last of them.
fn path(levels: &[Vec<Way>], last: Way) -> Vec<u16> {
    let (mut steps, mut way) = (vec![last.step], last);
    for level in levels.iter().rev() {
        way = level[way.from as usize];
        steps.push(way.step);
    }
    steps.reverse();
    steps
}

fn size<T>(count: usize) -> u64 {
    (count * size_of::<T>()) as u64
}
