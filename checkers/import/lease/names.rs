//! The lease that an entry is of, where it names none.
//!
//! A table has one column of keys: of a write it is the data's, and cannot name the lease. So
//! whoever acquired a lease by its name writes under that one; of several, under that which was
//! granted with the token at hand.

use std::collections::BTreeMap;

use super::fields::{LEASE, token};
use crate::history::{F, Kind, Name, Token};
use crate::import::{Entry, Problem};

/// The leases that were asked for by name.
#[derive(Default)]
pub(super) struct Leases {
    /// By process, with the last token that each was granted with.
    asked: BTreeMap<Name, BTreeMap<Name, Option<Token>>>,
    /// The only one, as long as there is one.
    only: Option<Name>,
    many: bool,
}

impl Leases {
    pub fn asks(&mut self, process: &Name, lease: &Name) {
        match &self.only {
            None => self.only = Some(lease.clone()),
            Some(only) => self.many |= only != lease,
        }
        let asked = self.asked.entry(process.clone()).or_default();
        asked.entry(lease.clone()).or_default();
    }

    pub fn granted(&mut self, process: &Name, lease: &Name, token: Option<Token>) {
        let own = self.asked.get_mut(process);
        if let Some(last) = own.and_then(|own| own.get_mut(lease)) {
            *last = token.or(*last);
        }
    }

    /// The lease of an entry that names none.
    pub fn of(&self, entry: &Entry) -> Result<Name, Problem> {
        let Some(only) = &self.only else {
            return Ok(LEASE.into());
        };
        if !self.many {
            return Ok(only.clone());
        }
        let own = self.asked.get(&entry.process);
        if let Some((lease, None)) = own.and_then(|own| {
            let mut own = own.keys();
            own.next().map(|lease| (lease, own.next()))
        }) {
            return Ok(lease.clone());
        }
        let by = match (&*entry.f, entry.kind) {
            (_, Kind::Invoke) => token(entry, F::of_name(&entry.f).unwrap_or(F::Write))?,
            _ => token(entry, F::Fence)?,
        };
        let mut same = (own.into_iter().flatten())
            .filter(|(_, last)| by.is_some() && **last == by)
            .map(|(lease, _)| lease);
        match (same.next(), same.next()) {
            (Some(lease), None) => Ok(lease.clone()),
            _ => Err(Problem::field(
                "lease",
                format!(
                    "which lease this {} is of is not told, as process {} acquired not just one: \
                     give it a map as its value that names the lease, as {{:lease \"L1\" :key x \
                     :value 1}}",
                    entry.f, entry.process
                ),
            )),
        }
    }
}
