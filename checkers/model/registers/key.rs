//! One key: its operations as they are kept, and how it is judged.
//!
//! A register in the pass takes some thousand bytes, whatever it did. Keys may be millions
//! with a call or two each, so a *young* key has none: its few operations are judged anew
//! whenever one of them ends.

use std::collections::BTreeMap;

use super::Asked;
use crate::history::{F, Kind, Name};
use crate::linearizable::NEVER;
use crate::register_linearizable::{Act, Datum, Registers, TwiceWritten};
use crate::verdict::Evidence;

/// A key with no more operations than these is young.
pub(super) const YOUNG: usize = 8;

/// One operation of a key.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub invoke: u64,
    /// [`NEVER`] while it is under way.
    pub complete: u64,
    pub process: u32,
    /// How it ended.
    pub kind: Option<Kind>,
    pub asked: Asked,
}

impl Kept {
    /// When it surely happened, if it did.
    pub fn happened(&self) -> Option<u64> {
        (self.kind == Some(Kind::Ok)).then_some(self.complete)
    }

    fn f(&self) -> F {
        match &self.asked {
            Asked::Set(None) => F::Delete,
            Asked::Set(Some(_)) => F::Write,
            _ => F::Read,
        }
    }
}

/// How a key is judged.
#[derive(Default)]
pub(super) enum Way {
    #[default]
    Young,
    /// In the pass, under this number there.
    Passed(Box<Passed>),
    /// At the end.
    Searched,
}

pub(super) struct Passed {
    pub number: usize,
    /// What it held when that was last looked at.
    pub held: u64,
    pub looked: u64,
}

#[derive(Default)]
pub(super) struct Key {
    pub way: Way,
    pub kept: Vec<Kept>,
    /// Of what is under way: the place in `kept`, by process.
    open: BTreeMap<u32, usize>,
}

impl Key {
    pub fn searched() -> Self {
        Key {
            way: Way::Searched,
            ..Key::default()
        }
    }

    pub fn is_searched(&self) -> bool {
        matches!(self.way, Way::Searched)
    }

    pub fn keeps(&mut self, process: u32, invoke: u64, asked: Asked) {
        self.open.insert(process, self.kept.len());
        if self.kept.len() < YOUNG {
            self.kept.reserve_exact(1);
        }
        self.kept.push(Kept {
            invoke,
            complete: NEVER,
            process,
            kind: None,
            asked,
        });
    }

    /// The operation of a process that ends now, if it is kept.
    pub fn ends(&mut self, process: u32) -> Option<&mut Kept> {
        let place = self.open.remove(&process)?;
        if self.open.is_empty() {
            // An empty map may hold on to its memory.
            self.open = BTreeMap::new();
        }
        Some(&mut self.kept[place])
    }

    /// Forgets its operations.
    pub fn forgets(&mut self) {
        self.kept = Vec::new();
        self.open = BTreeMap::new();
    }

    /// Whether a value is written again.
    pub fn repeats(&self) -> bool {
        let [before @ .., last] = &self.kept[..] else {
            return false;
        };
        let Asked::Set(Some(value)) = &last.asked else {
            return false;
        };
        let same = |kept: &Kept| matches!(&kept.asked, Asked::Set(Some(other)) if other == value);
        before.iter().any(same)
    }

    /// Whether its operations came one after the other, and each read found what the last
    /// write left.
    fn is_plain(&self) -> bool {
        let nothing: Option<Datum> = None;
        let (mut now, mut there) = (None, &nothing);
        self.kept.iter().all(|kept| {
            let after = now.is_none_or(|now| kept.invoke > now);
            now = kept.happened();
            let fits = match &kept.asked {
                Asked::Set(value) => {
                    there = value;
                    true
                }
                Asked::See(seen) => seen == there,
                _ => true,
            };
            after && now.is_some() && fits
        })
    }

    /// Its operations, line by line, in the pass under a number.
    pub fn replays(&self, pass: &mut Registers, at: usize, names: &[Name]) -> Replayed {
        let mut lines: Vec<(u64, &Kept)> = Vec::with_capacity(2 * self.kept.len());
        for kept in &self.kept {
            lines.push((kept.invoke, kept));
            lines.extend(kept.kind.map(|_| (kept.complete, kept)));
        }
        lines.sort_unstable_by_key(|(line, _)| *line);
        for (line, kept) in lines {
            let name = &names[kept.process as usize];
            if line == kept.invoke {
                match &kept.asked {
                    Asked::Set(value) => {
                        let written = pass.writes(at, kept.invoke, name, value.clone());
                        if written == Err(TwiceWritten) {
                            return Replayed::Twice;
                        }
                    }
                    _ => pass.reads(at, kept.invoke),
                }
            } else if let Some(kind) = kept.kind {
                let act = Act {
                    f: kept.f(),
                    process: name.clone(),
                    invoke: kept.invoke,
                    complete: kept.complete,
                };
                let seen = match &kept.asked {
                    Asked::See(seen) => Some(seen.clone()),
                    _ => None,
                };
                if let Err(evidence) = pass.completes(at, act, kind, seen) {
                    return Replayed::Wrong(evidence);
                }
            }
        }
        Replayed::Order
    }

    /// A young key by itself; `whole` if nothing more will happen.
    pub fn judges(&self, key: impl Fn() -> Name, names: &[Name], whole: bool) -> Replayed {
        if self.is_plain() {
            return Replayed::Order;
        }
        let mut pass = Registers::default();
        let at = pass.add(key());
        let replayed = self.replays(&mut pass, at, names);
        match (&replayed, whole) {
            (Replayed::Order, true) => match pass.ends() {
                Some((_, evidence)) => Replayed::Wrong(evidence),
                None => replayed,
            },
            _ => replayed,
        }
    }
}

/// What the operations of a young key come to.
pub(super) enum Replayed {
    Order,
    Wrong(Evidence),
    /// A value is written again while it can still be read.
    Twice,
}
