//! Which object each operation is done to, where its value says it.
//!
//! Jepsen's independent keys stand in the value, `[key value]`, of every call: that of a read is
//! `[key nil]`. A register may hold pairs, too, and then a read asks for nothing. So a pair is a
//! key and a value where every call has one, and a value where one call has none; until a call
//! tells which it is, calls are read ahead. Where the format names the key apart, a pair is a
//! value. Of locks and leases, a map that is the value names it as `:lock`, `:lease` or `:key`.
//!
//! What names its object in some calls and not in others is refused, and so are acquires that
//! say different things and may mean different locks: judged as one object, a correct history
//! would be convicted.

use std::collections::{BTreeMap, VecDeque};

use super::{Entry, Place, Value, operation::gives};
use crate::history::{Kind, NEMESIS, Name};

mod locks;

/// How many lines are read ahead at most.
const AHEAD: usize = 1_024;

/// Why there is no next entry.
pub(crate) enum Unfit<E> {
    Read(E),
    /// Its key cannot be told: where, and why.
    Key(Place, String),
}

/// Entries of which the key stands apart from the value, wherever they have one.
pub(crate) struct Keyed<I: Iterator> {
    entries: I,
    ahead: VecDeque<I::Item>,
    /// Whether a value that is a map of data names its key.
    maps: bool,
    data: Objects,
    locks: Objects,
    said: locks::Said,
    /// By process: the call whose key was taken out of its value.
    open: BTreeMap<Name, (Name, Value)>,
}

/// How the calls of one kind name their objects.
#[derive(Default)]
struct Objects {
    /// The first call that names one, and the first that names none, with their lines.
    named: Option<(Name, u64)>,
    bare: Option<(Name, u64)>,
    /// Whether pairs are keys and values.
    pairs: bool,
}

/// What a call says of its object.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    /// Apart from the value.
    Name,
    /// A pair, whose first is the key.
    Pair,
    /// A pair, which may be a value.
    Perhaps,
    Nothing,
}

impl<E, I: Iterator<Item = Result<Entry, E>>> Keyed<I> {
    /// Those of registers and locks.
    pub fn new(entries: I) -> Self {
        Keyed {
            entries,
            ahead: VecDeque::new(),
            maps: false,
            data: Objects::default(),
            locks: Objects::default(),
            said: locks::Said::default(),
            open: BTreeMap::new(),
        }
    }

    /// Those of leases and the data under them.
    pub fn of_leases(entries: I) -> Self {
        Keyed {
            maps: true,
            ..Keyed::new(entries)
        }
    }

    /// Whether the pair at hand is a key and a value: the next call that tells.
    fn are_keys(&mut self, is_lock: bool) -> bool {
        let mut read = 0;
        loop {
            if read == self.ahead.len() {
                let next = (read < AHEAD).then(|| self.entries.next());
                let Some(next) = next.flatten() else {
                    return true;
                };
                self.ahead.push_back(next);
            }
            let Some(Ok(entry)) = self.ahead.get(read) else {
                return true;
            };
            read += 1;
            let says = (kind_of(entry) == Some(is_lock)).then(|| says(entry, self.maps));
            match says {
                Some(Says::Pair) => return true,
                Some(Says::Nothing) => return false,
                _ => {}
            }
        }
    }

    fn keyed(&mut self, entry: &mut Entry) -> Result<(), String> {
        if entry.kind != Kind::Invoke {
            return self.answered(entry);
        }
        let Some(is_lock) = kind_of(entry) else {
            return Ok(());
        };
        if is_lock {
            locks::name(entry);
        }
        let objects = |keys: &Self| match is_lock {
            true => (keys.locks.bare.is_some(), keys.locks.pairs),
            false => (keys.data.bare.is_some(), keys.data.pairs),
        };
        let says = match (says(entry, self.maps), objects(self)) {
            (Says::Perhaps, (true, _)) => Says::Nothing,
            (Says::Perhaps, (_, true)) => Says::Pair,
            (Says::Perhaps, _) => match self.are_keys(is_lock) {
                true => Says::Pair,
                false => Says::Nothing,
            },
            (says, _) => says,
        };
        let objects = match is_lock {
            true => &mut self.locks,
            false => &mut self.data,
        };
        objects.see(entry, says)?;
        if says == Says::Pair
            && let Some((key, value)) = parted(&mut entry.value)
        {
            let call = (entry.f.clone(), key.clone());
            self.open.insert(entry.process.clone(), call);
            entry.key = Some(key);
            entry.value = value;
        }
        match is_lock && says == Says::Nothing {
            true => self.said.asks(entry),
            false => Ok(()),
        }
    }

    /// An answer repeats the key, or leaves it out.
    fn answered(&mut self, entry: &mut Entry) -> Result<(), String> {
        if self.locks.bare.is_some() {
            self.said.answered(entry)?;
        }
        let open = self.open.get(&entry.process);
        if open.is_none_or(|(f, _)| *f != entry.f) {
            return Ok(());
        }
        let Some((f, key)) = self.open.remove(&entry.process) else {
            return Ok(());
        };
        match pair(&entry.value) {
            Some((again, _)) if *again == key => {
                if let Some((_, value)) = parted(&mut entry.value) {
                    entry.value = value;
                }
                Ok(())
            }
            Some(_) if entry.kind == Kind::Ok && !gives(&f) => Err(format!(
                "process {} ends the {f} of key {key} with {}: an answer repeats the key, or \
                 leaves it out; where pairs are values, name the key apart from them",
                entry.process, entry.value
            )),
            _ => Ok(()),
        }
    }
}

impl Objects {
    fn see(&mut self, entry: &Entry, says: Says) -> Result<(), String> {
        let this = || Some((entry.f.clone(), entry.place.line));
        let (other, has, had) = match says {
            Says::Nothing => {
                self.bare = self.bare.take().or_else(this);
                (&self.named, "no key", "one")
            }
            _ => {
                self.pairs |= says == Says::Pair;
                self.named = self.named.take().or_else(this);
                (&self.bare, "a key", "none")
            }
        };
        let Some((f, line)) = other else {
            return Ok(());
        };
        Err(format!(
            "this {} has {has}, and the {f} of line {line} has {had}: give all of them a key, or \
             none; a pair [key value] has one, unless the key is named apart",
            entry.f
        ))
    }
}

impl<E, I: Iterator<Item = Result<Entry, E>>> Iterator for Keyed<I> {
    type Item = Result<Entry, Unfit<E>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.ahead.pop_front().or_else(|| self.entries.next())?;
        Some(next.map_err(Unfit::Read).and_then(|mut entry| {
            if entry.process == NEMESIS {
                return Ok(entry);
            }
            match self.keyed(&mut entry) {
                Ok(()) => Ok(entry),
                Err(why) => Err(Unfit::Key(entry.place, why)),
            }
        }))
    }
}

/// Whether an operation is one of a lock, or of data; none of what is no call of either.
fn kind_of(entry: &Entry) -> Option<bool> {
    if entry.kind != Kind::Invoke || entry.process == NEMESIS {
        return None;
    }
    match entry.f.as_str() {
        "acquire" | "renew" | "release" | "fence" => Some(true),
        "read" | "write" | "delete" | "cas" | "get" | "put" | "append" => Some(false),
        _ => None,
    }
}

fn says(entry: &Entry, maps: bool) -> Says {
    if entry.key.is_some() {
        return Says::Name;
    }
    if let Value::Map(fields) = &entry.value {
        let names = match kind_of(entry) {
            Some(true) => locks::named(fields).is_some(),
            _ => maps && fields.contains_key("key"),
        };
        return if names { Says::Name } else { Says::Nothing };
    }
    let independent = matches!(&entry.value, Value::Tagged(tag, _) if tag.contains("independent"));
    match (entry.f.as_str(), pair(&entry.value)) {
        (_, None) => Says::Nothing,
        (_, Some(_)) if independent => Says::Pair,
        // [from to] of one register is a pair itself, and a register that holds pairs goes from
        // one to the other.
        ("cas", Some((Value::List(_) | Value::Nil, _))) => Says::Nothing,
        ("cas", Some((_, Value::List(_) | Value::Tagged(..)))) => Says::Perhaps,
        ("cas", Some(_)) => Says::Nothing,
        (f, Some(_)) if gives(f) => Says::Perhaps,
        // Nothing but a key is given to it.
        (_, Some(_)) => Says::Pair,
    }
}

/// The two parts of a pair.
fn pair(value: &Value) -> Option<(&Value, &Value)> {
    match value {
        Value::Tagged(_, value) => pair(value),
        Value::List(items) => match &items[..] {
            [key, value] => Some((key, value)),
            _ => None,
        },
        _ => None,
    }
}

/// The same, taken out of it.
fn parted(value: &mut Value) -> Option<(Value, Value)> {
    match value {
        Value::Tagged(_, value) => parted(value),
        Value::List(items) => match &mut items[..] {
            [key, value] => Some((
                std::mem::replace(key, Value::Nil),
                std::mem::replace(value, Value::Nil),
            )),
            _ => None,
        },
        _ => None,
    }
}
