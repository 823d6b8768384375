//! Pairs the lines of a foreign history into calls, and numbers the keys that they are about.

use std::collections::{BTreeMap, BTreeSet};

use compact_str::ToCompactString;

use super::{JudgeError, misfit, words};
use crate::history::{Kind, Name};
use crate::import::{Entry, Value};

/// A call that began.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub process: u32,
    /// The process as it is named in a sentence.
    pub name: Name,
    pub invoke: u64,
    pub f: Name,
    /// The number of its key.
    pub key: usize,
    /// What that is; `None` for the only object of a history without keys.
    pub key_name: Option<Name>,
    /// What was asked for.
    pub value: Value,
}

/// How a call ended.
pub(super) struct Ended<'a> {
    pub call: Call,
    pub kind: Kind,
    pub complete: u64,
    /// The value of the line.
    pub value: &'a Value,
    /// The token, where the format names it apart from the value.
    pub token: Option<&'a Value>,
}

/// About what a call takes that is under way.
const OPEN_BYTES: u64 = 800;
/// About what a process takes that was seen.
const PROCESS_BYTES: u64 = 200;
/// About what a key takes, beside a long name.
const KEY_BYTES: u64 = 120;

/// The calls under way, and names by number.
pub(super) struct Calls {
    open: BTreeMap<Name, Call>,
    processes: BTreeMap<Name, u32>,
    names: Vec<Name>,
    keys: BTreeMap<Name, usize>,
    /// By number: none for the one object of a history without keys.
    key_names: Vec<Option<Name>>,
    /// Bytes of long names of keys.
    long: u64,
    /// Whether a process may do nothing more after a call of its own was lost.
    owned: bool,
    gone: BTreeSet<Name>,
    last: Option<u64>,
    count: u64,
}

impl Calls {
    pub fn new(owned: bool) -> Self {
        Calls {
            open: BTreeMap::new(),
            processes: BTreeMap::new(),
            names: Vec::new(),
            keys: BTreeMap::new(),
            key_names: Vec::new(),
            long: 0,
            owned,
            gone: BTreeSet::new(),
            last: None,
            count: 0,
        }
    }

    /// About what it all takes, with what the history's reader and the object remember of
    /// a call that is under way.
    pub fn bytes(&self) -> u64 {
        let of = |count: usize, bytes: u64| count as u64 * bytes;
        of(self.open.len(), OPEN_BYTES)
            + of(self.names.len() + self.gone.len(), PROCESS_BYTES)
            + self.key_bytes()
    }

    fn key_bytes(&self) -> u64 {
        self.key_names.len() as u64 * KEY_BYTES + self.long
    }

    /// What there is most of; `object` is what is remembered of the keys elsewhere.
    pub fn remembered(&self, object: u64) -> String {
        let keys = self.key_bytes() + object;
        if 2 * keys > self.bytes() + object {
            return format!(
                "{} keys, and what is remembered of each, do not fit into memory",
                self.key_names.len()
            );
        }
        format!(
            "{} operations are under way, of {} processes on {} keys, which do not fit into memory",
            self.open.len(),
            self.names.len(),
            self.key_names.len()
        )
    }

    /// How many calls began.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A process by number, as it is named in a sentence.
    pub fn process(&self, process: u32) -> &Name {
        &self.names[process as usize]
    }

    /// A key by number; `None` for the only object of a history without keys.
    pub fn key(&self, key: usize) -> Option<&str> {
        self.key_names.get(key)?.as_deref()
    }

    fn in_order<E>(&mut self, entry: &Entry) -> Result<(), JudgeError<E>> {
        if let Some(last) = self.last.filter(|last| *last >= entry.index) {
            let why = format!(
                "index {} after {last}: sort the lines by index, which must not repeat",
                entry.index
            );
            return Err(misfit(entry, why));
        }
        self.last = Some(entry.index);
        Ok(())
    }

    /// A call begins; `None` if it is one of the nemesis.
    pub fn begins<E>(&mut self, entry: &Entry) -> Result<Option<&Call>, JudgeError<E>> {
        self.in_order(entry)?;
        if is_nemesis(entry) {
            return Ok(None);
        }
        let name = &entry.process;
        if let Some(open) = self.open.get(name) {
            let why = format!(
                "process {name} begins {} while its {} at index {} is under way: a process does \
                 one thing at a time",
                entry.f, open.f, open.invoke
            );
            return Err(misfit(entry, why));
        }
        if self.gone.contains(name) {
            let why = format!(
                "process {name} goes on after a call that was not answered: who holds the lock is \
                 not known; give what follows another process, or name the model mutex"
            );
            return Err(misfit(entry, why));
        }
        let next = self.names.len();
        let process = match self.processes.get(name) {
            Some(process) => *process,
            None => {
                let process = u32::try_from(next)
                    .map_err(|_| misfit(entry, "more than four billion processes"))?;
                self.processes.insert(name.clone(), process);
                self.names.push(words::process(name));
                process
            }
        };
        let said = entry.key.as_ref().map(|key| match key {
            Value::Text(text) => text.clone(),
            key => key.to_compact_string(),
        });
        let number = self.key_names.len();
        // No key is said as the empty text is not: a text is in quotes there.
        let unique = (entry.key.as_ref())
            .map(Value::to_compact_string)
            .unwrap_or_default();
        let long = |name: &Name| {
            if name.is_heap_allocated() {
                name.len() as u64 + 16
            } else {
                0
            }
        };
        let bytes = long(&unique) + said.as_ref().map_or(0, long);
        let key = *self.keys.entry(unique).or_insert(number);
        if key == number {
            self.key_names.push(said);
            self.long += bytes;
        }
        self.count += 1;
        let call = Call {
            process,
            name: self.names[process as usize].clone(),
            invoke: entry.index,
            f: entry.f.clone(),
            key,
            key_name: self.key_names[key].clone(),
            value: entry.value.clone(),
        };
        Ok(Some(self.open.entry(name.clone()).or_insert(call)))
    }

    /// A call ended; `None` if the line is no answer to one.
    pub fn ends<'a, E>(&mut self, entry: &'a Entry) -> Result<Option<Ended<'a>>, JudgeError<E>> {
        self.in_order(entry)?;
        let Some(call) = self.open.remove(&entry.process) else {
            if entry.kind == Kind::Info || is_nemesis(entry) {
                return Ok(None);
            }
            let why = format!(
                "process {} completes {}, which it never began: is the history whole?",
                entry.process, entry.f
            );
            return Err(misfit(entry, why));
        };
        if call.f != entry.f {
            let why = format!(
                "process {} completes {}, and what it began at index {} is {}",
                entry.process, entry.f, call.invoke, call.f
            );
            return Err(misfit(entry, why));
        }
        if self.owned && entry.kind == Kind::Info {
            self.gone.insert(entry.process.clone());
        }
        Ok(Some(Ended {
            call,
            kind: entry.kind,
            complete: entry.index,
            value: &entry.value,
            token: entry.token.as_ref(),
        }))
    }
}

/// Whether the line is of the tool's own: its process is no client's.
fn is_nemesis(entry: &Entry) -> bool {
    entry.process == "nemesis"
}
