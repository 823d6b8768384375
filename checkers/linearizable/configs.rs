//! Where an object may stand between two completions, none twice and none that another
//! one makes needless.

use std::collections::BTreeMap;

use super::pending::{Counts, no_more};
use super::states::Id;

/// One way in which the object may stand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Config {
    pub state: Id,
    /// The slots whose operations took effect, of those whose time is not over.
    pub taken: Counts,
    /// How many of each group took effect, of those never answered.
    pub used: Counts,
    /// When a state was last set whatever was there: a set that began before may
    /// have been just before that one, seen by nobody. 0: not yet.
    pub set: u64,
}

impl Config {
    pub fn start(state: Id) -> Self {
        Config {
            state,
            taken: Counts::new(),
            used: Counts::new(),
            set: 0,
        }
    }
}

/// All ways in which the object may stand.
#[derive(Default)]
pub(crate) struct Configs {
    /// By state and slots: what was used and when it was last set, none of which is
    /// as good as another.
    ways: BTreeMap<(Id, Counts), Vec<(Counts, u64)>>,
    bytes: u64,
}

/// What one entry of a map takes beside its lists, about.
const ENTRY: u64 = 96;

impl Configs {
    /// Adds one, unless another does all it can: the same state, no more used, and set
    /// no sooner.
    pub fn add(&mut self, config: Config) {
        let Config {
            state,
            taken,
            used,
            set,
        } = config;
        let taken_bytes = 4 * taken.len() as u64;
        let others = self.ways.entry((state, taken)).or_insert_with(|| {
            self.bytes += ENTRY + taken_bytes;
            Vec::new()
        });
        let covered = |(other, at): &(Counts, u64)| *at >= set && no_more(other, &used);
        if others.iter().any(covered) {
            return;
        }
        others.retain(|(other, at)| {
            let needless = set >= *at && no_more(&used, other);
            if needless {
                self.bytes -= 32 + 4 * other.len() as u64;
            }
            !needless
        });
        self.bytes += 32 + 4 * used.len() as u64;
        others.push((used, set));
    }

    /// Leaves at most so many: of each state those in which the least took effect. Whether
    /// there were more.
    pub fn narrows(&mut self, width: usize) -> bool {
        let count: usize = self.ways.values().map(Vec::len).sum();
        if count <= width {
            return false;
        }
        let mut ranked: Vec<(u32, Config)> = (self.each())
            .map(|config| {
                let taken: u32 = config.taken.iter().map(|word| word.count_ones()).sum();
                (taken + config.used.iter().sum::<u32>(), config)
            })
            .collect();
        ranked.sort_by(|(one, this), (other, that)| (this.state, one).cmp(&(that.state, other)));
        let mut place = 0;
        let mut last = None;
        let mut placed: Vec<(usize, Config)> = Vec::with_capacity(count);
        for (_, config) in ranked {
            place = if last == Some(config.state) {
                place + 1
            } else {
                0
            };
            last = Some(config.state);
            placed.push((place, config));
        }
        placed.sort_by_key(|(place, _)| *place);
        *self = Configs::default();
        for (_, config) in placed.into_iter().take(width) {
            self.add(config);
        }
        true
    }

    pub fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// The bytes that they take, about.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Each, in an order of its own that is always the same.
    pub fn each(&self) -> impl Iterator<Item = Config> {
        self.ways.iter().flat_map(|((state, taken), ways)| {
            ways.iter().map(move |(used, set)| Config {
                state: *state,
                taken: taken.clone(),
                used: used.clone(),
                set: *set,
            })
        })
    }
}
