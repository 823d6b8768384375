//! Where an object may stand between two completions, none twice and none that another
//! one makes needless.

use std::collections::BTreeMap;

use super::Does;
use super::pending::{self, Counts, Pending, no_more};
use super::states::Id;

/// One way in which the object may stand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Config {
    pub state: Id,
    /// The slots whose operations took effect, of those whose time is not over.
    pub taken: Counts,
    /// How many of each group took effect, of those never answered.
    pub used: Counts,
    /// When a state was last set whatever was there: what began before may have been just
    /// before that, if it begins with a set. 0: not yet.
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

/// What the slots hold between two completions: what makes one configuration as good as
/// another.
#[derive(Default)]
pub(crate) struct Kinds {
    /// Those that only see.
    sees: Counts,
    /// Those that set, whatever was there.
    sets: Counts,
    /// Of each slot, from when on nobody has to see it: a set is seen by nobody before
    /// another one.
    free: Vec<u64>,
}

impl Kinds {
    pub(super) fn of(pending: &Pending) -> Self {
        let mut kinds = Kinds::default();
        for (slot, pending::Slot { operation, .. }) in pending.slots() {
            match operation.does {
                Does::See(_) => pending::insert(&mut kinds.sees, slot),
                Does::Set(_) => pending::insert(&mut kinds.sets, slot),
                Does::Swap(..) | Does::Append(_) => {}
            }
            kinds.free.resize(kinds.free.len().max(slot + 1), 0);
            if operation.must {
                kinds.free[slot] = operation.invoke + 1;
            }
        }
        kinds
    }
}

/// What differs between configurations with one state.
#[derive(Clone)]
struct Way {
    sees: Counts,
    sets: Counts,
    used: Counts,
    set: u64,
}

impl Way {
    /// Whether it can do all that the other can: nothing more is used, it was set no sooner,
    /// all that only sees took effect here too, and what sets did so only there, where it
    /// need not.
    fn covers(&self, other: &Way, kinds: &Kinds) -> bool {
        self.set >= other.set
            && no_more(&self.used, &other.used)
            && pending::without(&other.sees, &self.sees).next().is_none()
            && pending::without(&self.sets, &other.sets).next().is_none()
            && pending::without(&other.sets, &self.sets).all(|slot| kinds.free[slot] <= self.set)
    }

    fn bytes(&self) -> u64 {
        96 + 4 * (self.sees.len() + self.sets.len() + self.used.len()) as u64
    }
}

/// All ways in which the object may stand.
#[derive(Default)]
pub(crate) struct Configs {
    kinds: Kinds,
    /// By state and slots that change it only as it is: none is as good as another.
    ways: BTreeMap<(Id, Counts), Vec<Way>>,
    bytes: u64,
}

/// What one entry of a map takes beside its lists, about.
const ENTRY: u64 = 96;

impl Configs {
    pub fn of(kinds: Kinds) -> Self {
        Configs {
            kinds,
            ..Configs::default()
        }
    }

    /// Adds one, unless another does all it can.
    pub fn add(&mut self, config: Config) {
        let Config {
            state,
            mut taken,
            used,
            set,
        } = config;
        let kinds = &self.kinds;
        let way = Way {
            sees: pending::both(&taken, &kinds.sees),
            sets: pending::both(&taken, &kinds.sets),
            used,
            set,
        };
        for slot in pending::without(&way.sees, &Counts::new()) {
            pending::remove(&mut taken, slot);
        }
        for slot in pending::without(&way.sets, &Counts::new()) {
            pending::remove(&mut taken, slot);
        }
        let taken_bytes = 4 * taken.len() as u64;
        let others = self.ways.entry((state, taken)).or_insert_with(|| {
            self.bytes += ENTRY + taken_bytes;
            Vec::new()
        });
        if others.iter().any(|other| other.covers(&way, kinds)) {
            return;
        }
        others.retain(|other| {
            let needless = way.covers(other, kinds);
            if needless {
                self.bytes -= other.bytes();
            }
            !needless
        });
        self.bytes += way.bytes();
        others.push(way);
    }

    /// Leaves at most so many: of each state those in which the least took effect. Whether
    /// there were more.
    pub fn narrows(&mut self, width: usize) -> bool {
        let count = self.len();
        if count <= width {
            return false;
        }
        let mut ranked: Vec<((u32, u32), Config)> = (self.each())
            .map(|config| {
                let taken: u32 = config.taken.iter().map(|word| word.count_ones()).sum();
                ((config.used.iter().sum::<u32>(), taken), config)
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
        self.ways.clear();
        self.bytes = 0;
        for (_, config) in placed.into_iter().take(width) {
            self.add(config);
        }
        true
    }

    pub fn len(&self) -> usize {
        self.ways.values().map(Vec::len).sum()
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
            ways.iter().map(move |way| {
                let mut all = taken.clone();
                for slots in [&way.sees, &way.sets] {
                    for slot in pending::without(slots, &Counts::new()) {
                        pending::insert(&mut all, slot);
                    }
                }
                Config {
                    state: *state,
                    taken: all,
                    used: way.used.clone(),
                    set: way.set,
                }
            })
        })
    }
}
