//! The states of an object, as numbers: a value each, or a text that is appended to.

use std::collections::BTreeMap;

use crate::history::Name;

/// The number of a state.
pub(crate) type Id = u32;

/// The states that were met, by number.
#[derive(Clone, Default)]
pub(crate) struct States {
    names: Vec<Name>,
    ids: BTreeMap<Name, Id>,
    bytes: u64,
}

impl States {
    /// The number of a state: the same for the same name.
    pub fn id(&mut self, name: &str) -> Id {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        // More than four billion states do not fit into any memory budget.
        let id = Id::try_from(self.names.len()).unwrap_or(Id::MAX);
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        self.bytes += 2 * (name.len() as u64 + 32);
        id
    }

    /// Its name.
    pub fn name(&self, id: Id) -> &str {
        self.names.get(id as usize).map_or("", Name::as_str)
    }

    /// The state after a text was appended.
    pub fn append(&mut self, state: Id, text: Id) -> Id {
        let whole = format!("{}{}", self.name(state), self.name(text));
        self.id(&whole)
    }

    /// The bytes that they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
