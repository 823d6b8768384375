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
            operations.push(Operation {
                invoke: now,
                complete: NEVER,
                must: false,
                does,
                process: 0,
            });
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

#[test]
fn few_ways_first_come_to_what_all_ways_come_to() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut widened, mut without) = (0, 0);
    for round in 0..20_000 {
        let operations = history(&mut dice);
        let found = |few: usize| {
            let until = (&AtomicU64::new(u64::MAX), few);
            let mut states = States::default();
            search(&operations, &[0], &mut states, LIMIT, until, &mut 0)
        };
        let all = found(ALL);
        assert_eq!(found(1), all, "round {round}: {operations:?}");
        without += usize::from(all != Found::Order);
        widened += usize::from(all == Found::Order && found(&[1]) != all);
    }
    assert!(widened > 100, "{widened} had to be widened");
    assert!(without > 1_000, "{without} have no order");
}
