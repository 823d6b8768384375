//! Another tool's history: judged by a model, its evidence by line and column.

use std::{
    io::Read,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use deposed_checkers::{
    history::{Kind, Name},
    import::{self, Entries, Entry, Format, History, OpenError, ReadError, Value, lease},
    model::{self, JudgeError, Model, Opening},
    verdict::{Check, Evidence, Verdicts},
};

use super::{
    CheckArgs, budget, cut_off,
    times::{Times, in_nanos},
};
use crate::cli::arguments::Unit;
use crate::report::{
    failure::others,
    text::{counted, printable},
};

/// What was judged, and how it was understood.
pub(in crate::cli) struct Foreign {
    pub(super) format: Format,
    pub(super) model: Model,
    pub(super) entries: u64,
    /// What the reader made no entries of.
    pub(super) left_out: Vec<String>,
    pub(super) verdicts: Verdicts,
    /// Whether it is known how long a lease lasts.
    timed: bool,
    /// What may be wrong with its times.
    hint: Option<String>,
    /// Whether the model was told by the operations alone.
    guessed: bool,
}

/// Judges by the model that is named, or that the first operations tell. An entry that was
/// read by when it is `cut` off is none: the rest of it would have come.
pub(in crate::cli) fn judged<R: Read>(
    mut entries: Entries<R>,
    args: &CheckArgs,
    only: &[Check],
    stop: &AtomicBool,
    cut: impl Fn() -> bool,
) -> Result<Foreign, String> {
    let (format, file) = (entries.format(), entries.file().to_owned());
    let (mut count, mut times) = (0, Times::default());
    let unit = args.time_unit.unwrap_or(Unit::Nanoseconds);
    let whole = entries.by_ref().take_while(|_| !cut());
    let counting = whole.map(|entry| {
        let entry = in_nanos(entry, unit, &file);
        count += 1;
        times.see(entry.as_ref().ok().and_then(|entry| entry.time));
        entry
    });
    let (model, verdicts) =
        judge(counting, &file, args, only, stop).map_err(|error| match error {
            JudgeError::Read(error) => error.to_string(),
            JudgeError::Misfit { place, why } => format!("{file}:{place}: {why}"),
            _ if count == 0 => format!("{file}: the history is empty: there is nothing to judge"),
            error => format!("{file}: {error}; name it with --model"),
        })?;
    if args.lease.is_some() && model != Model::Lease {
        return Err(format!(
            "{file}: judged as {model}, in which no time counts: leave --lease out, or name \
             --model lease"
        ));
    }
    // Who names the unit knows it.
    let ttl = (args.lease.as_ref()).filter(|_| args.time_unit.is_none());
    let ttl = ttl.map(|lease| lease.ttl);
    if let Some(other) = ttl.and_then(|ttl| times.other_unit(ttl)) {
        let (name, said) = other.names();
        return Err(format!(
            "{file}: its times are read as nanoseconds, and look like {said} since 1970: say \
             --time-unit {name}, or --time-unit ns if that is what they are"
        ));
    }
    Ok(Foreign {
        format,
        model,
        entries: count,
        left_out: entries.left_out().to_vec(),
        verdicts,
        timed: args.lease.is_some(),
        hint: ttl.and_then(|ttl| times.hint(ttl)),
        guessed: named(args).is_none(),
    })
}

/// Whose timing is told is a lease.
fn named(args: &CheckArgs) -> Option<Model> {
    let timed = args.lease.is_some().then_some(Model::Lease);
    args.model.or(timed)
}

fn judge(
    entries: impl Iterator<Item = Result<Entry, ReadError>>,
    file: &str,
    args: &CheckArgs,
    only: &[Check],
    stop: &AtomicBool,
) -> Result<(Model, Verdicts), JudgeError<ReadError>> {
    let Opening {
        model,
        certain,
        entries,
    } = model::opening(entries, named(args))?;
    if model != Model::Lease {
        let named = certain.then_some(model);
        let judged = match args.follow {
            true => model::judge_first(entries, named, budget(args), stop)?,
            false => model::judge_until(entries, named, budget(args), stop)?,
        };
        let mut verdicts = judged.verdicts;
        verdicts
            .0
            .retain(|(check, _)| only.is_empty() || only.contains(check));
        return Ok((judged.model, verdicts));
    }
    let mut header = lease::header();
    header.lease = args.lease.clone();
    let mut judge = super::judge(&header, only).within(budget(args));
    let mut events = lease::Events::new(entries, file);
    if args.lease.is_some() {
        events = events.timed();
    }
    let mut seen = 0;
    for event in events {
        judge.see(&event.map_err(JudgeError::Read)?);
        seen += 1;
        // Who reads on remembers what is open, too.
        let over = judge.gave_up() || stop.load(Ordering::Relaxed);
        if over || args.follow && judge.convicted().next().is_some() {
            break;
        }
    }
    let mut verdicts = judge.finish();
    if stop.load(Ordering::Relaxed) {
        cut_off(&mut verdicts, seen);
    }
    Ok((model, verdicts))
}

impl Foreign {
    /// What a person is told. `path` is read again for the evidence, where it can be.
    pub(super) fn text(
        &self,
        verdicts: &Verdicts,
        word: &str,
        path: &Path,
        format: Option<Format>,
    ) -> String {
        let file = path.display().to_string();
        let convicted = verdicts.violated().next().is_some();
        let word = if convicted { "FAILED" } else { word };
        let mut text = format!(
            "{word}  {}  {}, {} as {}\n\n",
            printable(&file),
            self.counted(),
            self.format,
            self.model
        );
        let evidence: Vec<(Check, &Evidence)> = verdicts.violated().collect();
        // What changed meanwhile, or was a pipe, is shown by its indices alone.
        let rows = match lasting(path) && convicted {
            true => self.rows(path, format, &evidence).unwrap_or_default(),
            false => Vec::new(),
        };
        for (check, evidence) in &evidence {
            text += &format!("  {check}: {}\n\n", printable(&evidence.sentence));
            text += &shown(evidence, &rows);
            text += "\n";
        }
        text += &others(&self.claims(verdicts));
        if self.model == Model::Lease && !self.timed {
            text += "  how long its leases last is not known: --lease ttl=15s,drift=1% tells it, and \
                     more is judged\n";
        }
        if let Some(hint) = &self.hint {
            text += &format!("  {hint}\n");
        }
        if self.guessed && convicted && self.model.check() == Some(Check::MutexLinearizable) {
            text += "  if its locks run out by themselves they are leases: --model lease, or --lease \
                     ttl=15s\n";
        }
        for left_out in &self.left_out {
            text += &format!("  left out: {}\n", printable(left_out));
        }
        text + "\n"
    }

    pub(super) fn counted(&self) -> String {
        match self.entries {
            1 => "1 entry".to_owned(),
            _ => counted(self.entries, "entrie"),
        }
    }

    /// Of a model other than a lease, the one check that judges it, and whatever was asked for.
    pub(super) fn claims(&self, verdicts: &Verdicts) -> Verdicts {
        let mut claims = verdicts.clone();
        if let Some(only) = self.model.check() {
            claims.0.retain(|(check, verdict)| {
                *check == only || *check == Check::WellFormed || verdict.word() == "unknown"
            });
        }
        claims
    }

    /// The entries that are evidence.
    fn rows(
        &self,
        path: &Path,
        format: Option<Format>,
        evidence: &[(Check, &Evidence)],
    ) -> Result<Vec<Row>, OpenError> {
        let History::Foreign(entries) = import::open(path, format)? else {
            return Ok(Vec::new());
        };
        let all = || evidence.iter().flat_map(|(_, found)| &found.events);
        let wanted = |index: u64| all().any(|event| *event == index);
        let last = all().copied().max().unwrap_or(0);
        let mut rows = Vec::new();
        for (count, entry) in (0..).zip(entries) {
            let entry = entry?;
            // A lease's events are numbered without gaps.
            let index = match self.model {
                Model::Lease => count,
                _ => entry.index,
            };
            if wanted(index) {
                rows.push(Row::of(index, &entry));
            }
            // What follows may be half written.
            if index >= last {
                break;
            }
        }
        Ok(rows)
    }
}

/// Whether it can be read again: a pipe cannot, and would be waited for.
pub(super) fn lasting(path: &Path) -> bool {
    path.is_file() || path.is_dir()
}

/// An entry as a row of evidence.
struct Row {
    index: u64,
    place: String,
    process: Name,
    action: String,
}

impl Row {
    fn of(index: u64, entry: &Entry) -> Row {
        let kind = match entry.kind {
            Kind::Invoke => "invoke",
            Kind::Ok => "ok",
            Kind::Fail => "fail",
            Kind::Info => "info",
        };
        let mut action = format!("{kind:<6} {}", entry.f);
        let token = entry.token.as_ref().map(|token| format!("@{token}"));
        let key = entry.key.as_ref().map(Value::to_string);
        let value = (entry.value != Value::Nil || entry.f == "read" && entry.kind == Kind::Ok)
            .then(|| entry.value.to_string());
        let error = entry.error.as_ref().map(|error| format!("({error})"));
        for part in [key, value, token, error].into_iter().flatten() {
            action += " ";
            // A text may be as long as it likes.
            action.extend(part.chars().take(60));
            if part.chars().nth(60).is_some() {
                action.push('…');
            }
        }
        Row {
            index,
            place: entry.place.to_string(),
            process: entry.process.clone(),
            action,
        }
    }
}

/// How many rows of a violation are shown: the last of them tell the most.
const ROWS_SHOWN: usize = 24;

/// The rows of one violation, its culprit marked.
fn shown(evidence: &Evidence, rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| evidence.events.contains(&row.index))
        .collect();
    let earlier = rows.len().saturating_sub(ROWS_SHOWN);
    let rows = &rows[earlier..];
    let widest = |column: fn(&Row) -> &str| {
        let lengths = rows.iter().map(|row| column(row).chars().count());
        lengths.max().unwrap_or(0)
    };
    let (place, process) = (widest(|row| &row.place), widest(|row| &row.process));
    let action = widest(|row| &row.action);
    if rows.is_empty() {
        let indices: Vec<String> = evidence.events.iter().map(u64::to_string).collect();
        let expected = match evidence.expected.is_empty() {
            true => String::new(),
            false => format!("   expected: {}", printable(&evidence.expected)),
        };
        return format!("     entries {}{expected}\n", indices.join(", "));
    }
    let line = |row: &&Row| {
        let culprit = row.index == evidence.culprit;
        let mark = if culprit { '>' } else { ' ' };
        let mut line = format!(
            "   {mark} {:>place$}  {:<process$}  {:<action$}",
            row.place, row.process, row.action
        );
        if culprit && !evidence.expected.is_empty() {
            line += &format!("   expected: {}", evidence.expected);
        }
        printable(line.trim_end()) + "\n"
    };
    let earlier = match earlier {
        0 => String::new(),
        more => format!("     and {more} before these; --json has the index of each\n"),
    };
    earlier + &rows.iter().map(line).collect::<String>()
}
