//! What a search of its bounds is worth, in words.

use deposed_checkers::verdict::Check;

use crate::{
    cli::Console,
    flaw::Planted,
    prove::{Inductive, JUDGED, Scope},
    report::{Halt, text::counted},
};

/// What was covered, what held there and why, and what was not covered. Unless `all` was
/// visited that is how deep the search came, of what there is, and held so far.
pub(super) fn coverage(
    scope: &Scope,
    all: bool,
    depth: usize,
    console: &mut Console<'_>,
) -> Result<(), Halt> {
    // Without a lock-delay there is nothing that could break it.
    let owed = |check: &&Check| **check != Check::LockDelay || scope.lock_delay > 0;
    let checks = JUDGED.iter().filter(owed).map(|check| check.name());
    let checks: Vec<&str> = checks.collect();
    let why = match scope.planted == Planted::NONE {
        true => Inductive::ALL
            .map(|inductive| format!("             {inductive}\n"))
            .concat(),
        // Nobody asks why, where a flaw is planted.
        false => String::new(),
    };
    let why = match why.trim_start() {
        "" => String::new(),
        why => format!("and why      {why}"),
    };
    let clocks = match scope.drift.every() {
        None => "clocks that run alike".to_owned(),
        Some(every) => format!("clients' clocks that skip any one tick in {every}"),
    };
    let (so_far, covered) = match all {
        true => ("in each state", "covered      ".to_owned()),
        false => {
            let deep = counted(depth as u64, "action");
            let only = format!(
                "met so far   at most what {deep} from the start can come to, in worlds that may have\n"
            );
            ("so far", only + "             ")
        }
    };
    write!(
        console.out,
        "\n{covered}messages late, in any order, lost, and again and again; clients paused for \
         any time;\n             clients, store and storage that crash and come back at any \
         time; leaders that resign;\n             {clocks}\nheld         {}, {so_far}\n{why}\
         not covered  liveness; more clients, longer leases, more messages in flight; a second \
         lease,\n             key, or change in a term; disks that lose what was synced, or are \
         put back;\n             wall clocks, suspend; the async shells around the cores; other \
         storages\n",
        checks.join(", "),
    )?;
    Ok(())
}
