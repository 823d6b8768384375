//! Registers by key, and what was overwritten last in any of them.

use std::collections::{BTreeMap, VecDeque};

use super::datum::Datum;
use super::evidence;
use super::order::{Act, Conflict, Stay};
use super::register::{Overwritten, Register, TwiceWritten, Wrong};
use crate::budget::Remembered;
use crate::history::{Kind, Name};
use crate::verdict::Evidence;

/// How many overwritten values are remembered, of all keys together.
const REMEMBERED: usize = 16_384;

/// Registers, numbered as they were added.
#[derive(Default)]
pub(crate) struct Registers {
    registers: Vec<(Name, Register)>,
    /// By register and value.
    overwritten: BTreeMap<(usize, Datum), Overwritten>,
    /// Those, oldest first.
    oldest: VecDeque<(usize, Datum)>,
}

impl Registers {
    /// Adds a register, absent at first. Its number.
    pub fn add(&mut self, key: Name) -> usize {
        self.registers.push((key, Register::default()));
        self.registers.len() - 1
    }

    /// The register of this number.
    pub(super) fn at(&mut self, at: usize) -> &mut Register {
        &mut self.registers[at].1
    }

    /// The key of a register.
    pub fn key(&self, at: usize) -> &Name {
        &self.registers[at].0
    }

    /// A read without a lease begins.
    pub fn reads(&mut self, at: usize, invoke: u64) {
        self.at(at).reads(invoke);
    }

    /// A write without a lease begins, once and for all; of nothing it is a delete.
    pub fn writes(
        &mut self,
        at: usize,
        invoke: u64,
        process: &Name,
        value: Option<Datum>,
    ) -> Result<(), TwiceWritten> {
        match value {
            Some(value) => self.at(at).writes(invoke, process, None, value),
            None => {
                self.at(at).deletes(invoke, process, None);
                Ok(())
            }
        }
    }

    /// Forgets a register: it is judged elsewhere.
    pub fn forgets(&mut self, at: usize) {
        self.registers[at].1 = Register::default();
    }

    /// What a register remembers.
    pub fn remembered(&self, at: usize) -> Remembered {
        self.registers[at].1.remembered()
    }

    /// How many registers there are.
    pub fn count(&self) -> usize {
        self.registers.len()
    }

    /// A call on a register ended; a read that was answered brought `found`.
    pub fn completes(
        &mut self,
        at: usize,
        act: Act,
        kind: Kind,
        found: Option<Option<Datum>>,
    ) -> Result<(), Evidence> {
        let (overwritten, oldest) = (&mut self.overwritten, &mut self.oldest);
        let mut over = |gone: Overwritten| {
            if oldest.len() == REMEMBERED
                && let Some(first) = oldest.pop_front()
            {
                overwritten.remove(&first);
            }
            oldest.push_back((at, gone.value.clone()));
            overwritten.insert((at, gone.value.clone()), gone);
        };
        let (key, register) = &mut self.registers[at];
        let result = register.completes(act, kind, found, &mut over);
        let key = key.clone();
        result.map_err(|wrong| evidence::of(&key, self.with_what_is_remembered(at, wrong)))
    }

    /// Nothing more will happen. What went wrong first, in any register, and in which.
    pub fn ends(&mut self) -> Option<(usize, Evidence)> {
        (self.registers.iter_mut().enumerate())
            .filter_map(|(at, (key, register))| {
                Some((at, evidence::of(key, register.ends().err()?)))
            })
            .min_by_key(|(_, evidence)| evidence.culprit)
    }

    /// A value that nobody can have read any more may have been overwritten; so may one whose
    /// last write failed have been written before.
    fn with_what_is_remembered(&mut self, at: usize, wrong: Wrong) -> Wrong {
        let (read, value) = match &wrong {
            Wrong::NeverWritten(read, value) => (read, value),
            Wrong::Failed(_, value, read) => (&**read, value),
            _ => return wrong,
        };
        match self.overwritten.remove(&(at, value.clone())) {
            Some(gone) => {
                let around = Stay {
                    value: Some(value.clone()),
                    first: gone.first,
                    last: read.clone(),
                };
                Wrong::NoOrder(Conflict::Between(Box::new(around), Box::new(gone.by)))
            }
            None => match wrong {
                Wrong::NeverWritten(read, value) if self.oldest.len() == REMEMBERED => {
                    Wrong::NotThere(read, value)
                }
                wrong => wrong,
            },
        }
    }
}
