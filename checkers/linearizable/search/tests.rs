//! Few configurations first must come to what all of them come to.

use super::*;
use crate::linearizable::NOBODY_STOPS;

const LIMIT: Limit<'static> = Limit {
    steps: 1_000_000,
    bytes: 1 << 30,
    stop: &NOBODY_STOPS,
};

/// A small generator of numbers, the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// One that begins now, and is not answered yet.
fn begun(now: u64, does: Does) -> Operation {
    Operation {
        invoke: now,
        complete: NEVER,
        must: false,
        does,
        process: 0,
    }
}

/// Operations of six clients on a register of three values, most of which really happened
/// in some order; one answer in four histories is a lie.
fn history(dice: &mut Dice) -> Vec<Operation> {
    let lies = dice.below(4) == 0;
    let (mut state, mut now) = (0, 0);
    let mut operations: Vec<Operation> = Vec::new();
    let mut open: Vec<(usize, bool)> = Vec::new();
    for _ in 0..50 {
        now += 1;
        if open.len() < 6 && operations.len() < 16 && dice.below(3) > 0 {
            let (from, to) = (dice.below(3) as Id, dice.below(2) as Id);
            let does = match dice.below(4) {
                0 => Does::Set(from),
                _ => Does::Swap(from, (from + 1 + to) % 3),
            };
            open.push((operations.len(), false));
            operations.push(begun(now, does));
        } else if !open.is_empty() {
            let place = dice.below(open.len() as u64) as usize;
            let (op, happened) = open[place];
            let operation = &mut operations[op];
            let fits = match operation.does {
                Does::Swap(from, _) => from == state || (lies && dice.below(8) == 0),
                _ => true,
            };
            if happened {
                (operation.complete, operation.must) = (now, true);
                open.swap_remove(place);
            } else if fits {
                state = operation.does.leaves().unwrap_or(state);
                open[place].1 = true;
            }
        }
    }
    operations
}

/// Of five clients that append to a text of two letters, and put another one.
fn texts(dice: &mut Dice) -> (Vec<Operation>, States) {
    let lies = dice.below(4) == 0;
    let mut states = States::default();
    let letters = ["", "a", "b"].map(|name| states.id(name));
    let (mut state, mut now) = (letters[0], 0);
    let mut operations: Vec<Operation> = Vec::new();
    let mut open: Vec<(usize, bool)> = Vec::new();
    for _ in 0..50 {
        now += 1;
        if open.len() < 5 && operations.len() < 14 && dice.below(3) > 0 {
            let letter = letters[dice.below(3) as usize];
            let does = match dice.below(6) {
                0 | 1 => Does::Set(letter),
                2 | 3 if letter != letters[0] => Does::Append(letter),
                _ => Does::See(letter),
            };
            open.push((operations.len(), false));
            operations.push(begun(now, does));
        } else if !open.is_empty() {
            let place = dice.below(open.len() as u64) as usize;
            let (op, happened) = open[place];
            let operation = &mut operations[op];
            if happened {
                (operation.complete, operation.must) = (now, true);
                open.swap_remove(place);
                continue;
            }
            open[place].1 = true;
            match &mut operation.does {
                // A lie: it did not take effect.
                _ if lies && dice.below(8) == 0 => {}
                Does::See(seen) => *seen = state,
                Does::Set(set) => state = *set,
                Does::Append(text) => state = states.append(state, *text),
                Does::Swap(..) => {}
            }
        }
    }
    (operations, states)
}

#[test]
fn few_ways_first_come_to_what_all_ways_come_to() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut back, mut without) = (0, 0);
    for round in 0..20_000 {
        let (operations, names) = match round % 2 {
            0 => (history(&mut dice), States::default()),
            _ => texts(&mut dice),
        };
        let found = |width: Width| {
            let until = (&AtomicU64::new(u64::MAX), width);
            let (mut states, mut steps) = (names.clone(), 0);
            let found = search(&operations, &[0], &mut states, LIMIT, until, &mut steps);
            let found = match found {
                Found::NoOrder(NoOrder { op, .. }) => Some(op),
                Found::Order => None,
                Found::TooMuch(..) => panic!("there is enough"),
            };
            (found, steps)
        };
        let (all, steps) = found(ALL);
        let few = [(1, 1), (1, 2), (2, 4), (1, 64)];
        for width in few.map(|(few, apart)| Width { few, apart }) {
            let (found, more) = found(width);
            assert_eq!(found, all, "round {round}, {width:?}: {operations:?}");
            back += usize::from(more > steps);
        }
        without += usize::from(all.is_some());
    }
    assert!(back > 1_000, "{back} were not enough at first");
    assert!(without > 1_000, "{without} have no order");
}
