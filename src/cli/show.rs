//! `deposed show`: a history, one event a line, as lanes over time, or as a page.

use std::{
    collections::BTreeSet,
    io::{self, BufWriter, Write},
    path::Path,
};

use deposed_checkers::{
    history::{Event, Header, Name, Nanos},
    judge::Judge,
    reader::{self, ReadError},
    verdict::Verdicts,
};

use super::{Console, Exit, arguments::ShowArgs};
use crate::{
    report::{
        Halt, html,
        lanes::lanes,
        shelf,
        text::{Timeline, printable},
        words::time,
    },
    timeline::{Drawing, name_of, selection::Selection},
};

pub(super) fn show(args: &ShowArgs, console: &mut Console<'_>) -> Result<Exit, Halt> {
    let selection = Selection {
        from: args.from,
        to: args.to,
        processes: args.process.clone(),
        kinds: args.kind.clone(),
    };
    if let (Some(from), Some(to)) = (args.from, args.to)
        && to < from
    {
        let sentence = "--to is before --from: there is nothing between them; swap the two";
        return Err(Halt::BadInput(sentence.to_owned()));
    }
    match &args.html {
        Some(out) => page(&args.history, out, selection, console)?,
        None if args.timeline => timeline(&args.history, &selection, console)?,
        None => list(&args.history, &selection, console)?,
    }
    Ok(Exit::Valid)
}

fn list(history: &Path, selection: &Selection, console: &mut Console<'_>) -> Result<(), Halt> {
    // Before anything is shown, where it can be read twice.
    if history.is_file() && (!selection.processes.is_empty() || !selection.kinds.is_empty()) {
        look_ahead(history, selection)?;
    }
    let (header, events) = reader::open(history).map_err(bad)?;
    let mut timeline = Timeline::new(console.screen.colour);
    let mut met = Met::default();
    let mut out = BufWriter::new(&mut *console.out);
    let mut shown = false;
    for event in events {
        match event {
            Ok(event) => {
                met.see(&event);
                // Asked for every event: an answer is told with what it answers.
                let line = timeline.line(&event);
                if selection.takes(&event) {
                    shown = true;
                    writeln!(out, "{line}")?;
                }
            }
            Err(error) => {
                // What was read before the damage is shown first.
                out.flush()?;
                return Err(bad(error));
            }
        }
    }
    out.flush()?;
    let span = met.span;
    met.no_slip(&header, history, selection)?;
    if !shown {
        writeln!(out, "{}", nothing(history, span))?;
        out.flush()?;
    }
    Ok(())
}

/// Tells a slip in what is asked for; damage is told once what stands before it is shown.
fn look_ahead(history: &Path, selection: &Selection) -> Result<(), Halt> {
    let (header, events) = reader::open(history).map_err(bad)?;
    let mut met = Met::default();
    for event in events {
        match event {
            Ok(event) => met.see(&event),
            Err(_) => return Ok(()),
        }
    }
    met.no_slip(&header, history, selection)
}

/// What to say where nothing is shown: a slip in a time is seen by what there is.
fn nothing(history: &Path, span: Option<(Nanos, Nanos)>) -> String {
    let file = printable(&history.display().to_string());
    match span {
        None => format!("{file} holds no events, only a header"),
        Some((first, last)) => format!(
            "{file} has no event in the part that was asked for; it goes from {} to {}",
            time(first),
            time(last)
        ),
    }
}

/// Which processes and `f`s a history has, and the times of its first event and its last.
#[derive(Default)]
struct Met {
    processes: BTreeSet<Name>,
    names: BTreeSet<Name>,
    span: Option<(Nanos, Nanos)>,
}

impl Met {
    fn see(&mut self, event: &Event) {
        let first = self.span.map_or(event.time, |(first, _)| first);
        self.span = Some((first, event.time));
        if !self.processes.contains(&event.process) {
            self.processes.insert(event.process.clone());
        }
        let name = name_of(&event.body);
        if !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    fn no_slip(
        mut self,
        header: &Header,
        history: &Path,
        selection: &Selection,
    ) -> Result<(), Halt> {
        // Nodes that the header names are there, whether they said anything or not.
        let silent = Drawing::new(header).finish(Verdicts(Vec::new()));
        self.processes.extend(silent.lane_names());
        let (processes, names) = (Vec::from_iter(self.processes), Vec::from_iter(self.names));
        no_slip(history, selection, &processes, &names)
    }
}

fn timeline(history: &Path, selection: &Selection, console: &mut Console<'_>) -> Result<(), Halt> {
    let (header, events) = reader::open(history).map_err(bad)?;
    let mut drawing = Drawing::new(&header);
    let verdicts = judged(&header, events, |event| drawing.see(event))?;
    let chart = drawing.finish(verdicts);
    no_slip(history, selection, &chart.lane_names(), &chart.names)?;
    if !selection.finds(&chart) {
        writeln!(console.out, "{}", nothing(history, chart.bounds()))?;
        return Ok(());
    }
    let title = html::title(&header, &history.display().to_string());
    let text = lanes(&chart, selection, &title, &console.screen);
    console.out.write_all(text.as_bytes())?;
    Ok(())
}

fn page(
    history: &Path,
    out: &Path,
    selection: Selection,
    console: &mut Console<'_>,
) -> Result<(), Halt> {
    let to_standard_output = out.as_os_str() == "-";
    // Before a long history is read for nothing.
    if !to_standard_output {
        shelf::room_for(out).map_err(|error| unwritable(out, &error))?;
    }
    let (header, events) = reader::open(history).map_err(bad)?;
    let mut page = html::Page::new(&header, &history.display().to_string(), selection);
    let verdicts = judged(&header, events, |event| page.see(event))?;
    let page = page
        .finish(verdicts)
        .map_err(|slip| slipped(history, &slip))?;
    if to_standard_output {
        console.out.write_all(page.as_bytes())?;
        return Ok(());
    }
    let written = shelf::whole(out, false, |file| file.write_all(page.as_bytes()));
    written.map_err(|error| unwritable(out, &error))
}

/// Shows each event to the judge and to whoever else looks.
fn judged(
    header: &Header,
    events: impl Iterator<Item = Result<Event, ReadError>>,
    mut look: impl FnMut(&Event),
) -> Result<Verdicts, Halt> {
    let mut judge = Judge::new(header);
    for event in events {
        let event = event.map_err(bad)?;
        judge.see(&event);
        look(&event);
    }
    Ok(judge.finish())
}

fn bad(error: ReadError) -> Halt {
    Halt::BadInput(error.to_string())
}

fn unwritable(out: &Path, error: &io::Error) -> Halt {
    let out = out.display();
    Halt::BadInput(match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("'{out}' exists and is not overwritten: name a new file with --html")
        }
        _ => format!("the page '{out}' cannot be written: {error}; name another file with --html"),
    })
}

fn no_slip(
    history: &Path,
    selection: &Selection,
    processes: &[Name],
    names: &[Name],
) -> Result<(), Halt> {
    let slip = selection.slip(processes, names);
    slip.map_or(Ok(()), |slip| Err(slipped(history, &slip)))
}

fn slipped(history: &Path, slip: &str) -> Halt {
    Halt::BadInput(format!("{}: {slip}", history.display()))
}
