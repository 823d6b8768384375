//! Names given by a person: workloads, systems, flaws, checks. An unknown one is
//! answered with the nearest that exists.

use std::sync::Arc;

use deposed_checkers::verdict::Check;

use super::Suite;
use crate::{
    fault::reading::nearest, flaw::Flaw, report::Halt, system::System, workload::Workload,
};

impl Suite {
    /// `gc-pause`, `gc_pause` and `GC-PAUSE` are one name.
    pub(super) fn workload(&self, name: &str) -> Result<&Workload, Halt> {
        let found = self
            .workloads
            .iter()
            .find(|workload| same(workload.name, name));
        found.ok_or_else(|| unknown("workload", name, self.workloads.iter().map(|w| w.name)))
    }

    /// The first system when none is named.
    pub(super) fn system(&self, name: Option<&str>) -> Result<&Arc<dyn System>, Halt> {
        let Some(name) = name else {
            return self.systems.first().ok_or_else(|| {
                Halt::BadInput("this binary holds no system: put one into its suite".to_owned())
            });
        };
        let found = self.systems.iter().find(|system| same(system.name(), name));
        found.ok_or_else(|| unknown("system", name, self.systems.iter().map(|s| s.name())))
    }
}

/// A flaw that can be planted in this system.
pub(super) fn flaw(name: &str, system: &dyn System) -> Result<Flaw, Halt> {
    let found = Flaw::ALL.iter().find(|flaw| same(flaw.name(), name));
    let flaw = found.ok_or_else(|| unknown("flaw", name, Flaw::ALL.iter().map(|f| f.name())))?;
    match system.has_flaws() {
        true => Ok(*flaw),
        false if cfg!(feature = "flaws") => Err(Halt::BadInput(format!(
            "the flaw '{flaw}' cannot be planted in the system '{}': leave --flaw out, or name \
             a system that has flaws with --system",
            system.name()
        ))),
        false => Err(Halt::BadInput(format!(
            "the flaw '{flaw}' cannot be planted: this build has none; build it with the crate \
             feature 'flaws'"
        ))),
    }
}

/// What to say of a flaw where it cannot show; `None` where it can in all of these.
///
/// # Errors
/// It can in none of them.
pub(super) fn showing(flaw: Flaw, workloads: &[&Workload]) -> Result<Option<String>, Halt> {
    let without = workloads
        .iter()
        .filter(|workload| !flaw.lives_in(&workload.cluster));
    let without: Vec<&str> = without.map(|workload| workload.name).collect();
    let why = |places: &str| {
        format!(
            "the flaw '{flaw}' cannot show in {places}: the cluster has nothing that it is a \
             flaw of"
        )
    };
    match without.len() {
        0 => Ok(None),
        all if all == workloads.len() => Err(Halt::BadInput(format!(
            "{}; `deposed list` tells which workloads catch it",
            why(&without.join(", "))
        ))),
        _ => Ok(Some(why(&without.join(", ")))),
    }
}

/// A check.
pub(super) fn check(name: &str) -> Result<Check, Halt> {
    let found = Check::ALL.iter().find(|check| same(check.name(), name));
    let all = Check::ALL.iter().map(|check| check.name());
    found.copied().ok_or_else(|| unknown("check", name, all))
}

fn same(name: &str, given: &str) -> bool {
    let hyphenated = |c: char| match c {
        '_' => '-',
        c => c.to_ascii_lowercase(),
    };
    name.chars()
        .map(hyphenated)
        .eq(given.chars().map(hyphenated))
}

fn unknown<'a>(kind: &str, given: &str, known: impl Iterator<Item = &'a str>) -> Halt {
    let near = nearest(given, known);
    let hint = match near {
        Some(near) => format!("did you mean '{near}'?"),
        None => "`deposed list` shows them all".to_owned(),
    };
    Halt::BadInput(format!("no {kind} is called '{given}'; {hint}"))
}
