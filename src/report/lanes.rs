//! A chart in a terminal: lanes for each process over time, as wide as the screen.
//!
//! A client has a row for its belief, a bar for each term that begins with its token, and
//! one for its calls; whom something befell has a row for its process (paused, down …) and
//! one for what is around it (links, disk, clock). Each column shows the gravest of what
//! falls into it, so that a violation is seen at any width.

mod signs;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use anstyle::{AnsiColor, Style};
use deposed_checkers::history::{Name, Nanos, Token};

use super::{
    text::{Colour, printable},
    words,
};
use crate::timeline::{Chart, Condition, Lane, Point, Role, selection::Selection};
use signs::Sign;

/// How wide it is where there is no terminal.
pub const PLAIN_WIDTH: usize = 100;
/// The widest name that is shown in full.
const NAME_WIDTH: usize = 16;
/// The fewest columns that time is drawn in, however narrow the terminal.
const LEAST_COLUMNS: usize = 20;

/// What it is drawn on.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// In characters.
    pub width: usize,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
    /// Whether it shows colours.
    pub colour: Colour,
}

impl Screen {
    /// A pipe or a file: plain ASCII.
    pub const PLAIN: Self = Self {
        width: PLAIN_WIDTH,
        unicode: false,
        colour: Colour::Never,
    };
}

/// The whole drawing, ending in a line feed.
pub fn lanes(chart: &Chart, selection: &Selection, title: &str, screen: &Screen) -> String {
    let shown = |lane: &(usize, &Lane)| selection.takes_process(&lane.1.name);
    let shown: Vec<_> = chart.lanes.iter().enumerate().filter(shown).collect();
    let rows: Vec<Vec<(String, Rows)>> = shown
        .iter()
        .map(|(place, lane)| rows_of(chart, *place, lane))
        .collect();
    let longest = rows.iter().flatten().map(|(name, _)| name.chars().count());
    let gutter = longest.max().unwrap_or(0).min(NAME_WIDTH);
    let columns = screen.width.saturating_sub(gutter + 2).max(LEAST_COLUMNS);
    let (from, to) = selection.window(chart);
    let scale = Scale { from, to, columns };
    let mut points: BTreeMap<usize, Vec<&Point>> = BTreeMap::new();
    for point in &chart.points {
        points.entry(point.lane).or_default().push(point);
    }
    let mut drawing = Drawing {
        chart,
        points,
        selection,
        screen,
        scale: &scale,
        gutter,
        used: BTreeSet::new(),
        text: String::new(),
    };
    drawing.heading(title);
    for row in rows.into_iter().flatten() {
        drawing.row(row.0, row.1);
    }
    drawing.violations();
    drawing.legend();
    drawing.text
}

/// Time to columns.
struct Scale {
    from: Nanos,
    to: Nanos,
    columns: usize,
}

impl Scale {
    fn length(&self) -> u128 {
        u128::from(self.to - self.from) + 1
    }

    /// The column that a time falls into, if it is drawn.
    fn column(&self, time: Nanos) -> Option<usize> {
        let at = u128::from(time.checked_sub(self.from)?);
        (time <= self.to).then(|| (at * self.columns as u128 / self.length()) as usize)
    }

    /// The first and the last column of what lasts, half-open, if any of it is drawn.
    fn stretch(&self, from: Nanos, to: Nanos) -> Option<(usize, usize)> {
        let last = to.saturating_sub(1).max(from);
        if last < self.from || self.to < from {
            return None;
        }
        let clipped = |time: Nanos| self.column(time.clamp(self.from, self.to));
        clipped(from).zip(clipped(last))
    }

    /// The shortest round step between two marks that leaves room for their labels.
    fn step(&self, room: usize) -> Nanos {
        let fits = |step: &u128| step * self.columns as u128 >= room as u128 * self.length();
        let steps = (0..20).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u128.pow(power)));
        let step = steps.into_iter().find(fits).unwrap_or(u128::MAX);
        Nanos::try_from(step).unwrap_or(Nanos::MAX)
    }
}

/// What a row shows.
enum Rows {
    /// The terms of a client, of one lease.
    Belief(usize, Name),
    /// The events of a process.
    Events(usize),
    /// What befalls the process itself.
    Process(usize),
    /// What befalls its links, its disk, its clock, or its leases.
    Around(usize),
}

/// Whether it befalls the process itself, rather than what is around it.
fn is_of_process(what: &Condition) -> bool {
    matches!(
        what,
        Condition::Down | Condition::Paused | Condition::Suspended | Condition::Starved
    )
}

fn rows_of(chart: &Chart, place: usize, lane: &Lane) -> Vec<(String, Rows)> {
    let spans = || chart.spans_of(place).iter();
    let leases: BTreeSet<&Name> = spans()
        .filter_map(|span| match &span.what {
            Condition::Leads { lease, .. } => Some(lease),
            _ => None,
        })
        .collect();
    let alone = leases.len() == 1;
    let process = printable(&lane.name);
    let mut rows: Vec<(String, Rows)> = leases
        .into_iter()
        .map(|lease| {
            let name = match alone {
                true => process.clone(),
                false => printable(&format!("{process} {lease}")),
            };
            (name, Rows::Belief(place, lease.clone()))
        })
        .collect();
    let name = match rows.is_empty() {
        true => process,
        false => String::new(),
    };
    rows.push((name, Rows::Events(place)));
    let drawn = |what: &Condition| Sign::of(what).is_some();
    if spans().any(|span| is_of_process(&span.what)) {
        rows.push((String::new(), Rows::Process(place)));
    }
    if spans().any(|span| !is_of_process(&span.what) && drawn(&span.what)) {
        rows.push((String::new(), Rows::Around(place)));
    }
    rows
}

/// One character of a row.
#[derive(Clone, Copy)]
struct Cell {
    sign: Sign,
    glyph: char,
    style: Style,
}

struct Drawing<'a> {
    chart: &'a Chart,
    /// By lane.
    points: BTreeMap<usize, Vec<&'a Point>>,
    selection: &'a Selection,
    screen: &'a Screen,
    scale: &'a Scale,
    gutter: usize,
    used: BTreeSet<Sign>,
    text: String,
}

/// How long a column is, to the digits that a reader needs: `9.89ms`, and `0.1ns`, where many
/// share one.
fn a_column(length: u128, columns: usize) -> String {
    let columns = columns as u128;
    match length / columns {
        0 => {
            let hundredths = (length * 100 / columns).max(1);
            let digits = format!("0.{hundredths:02}");
            format!("{}ns", digits.trim_end_matches('0'))
        }
        whole => words::span(Nanos::try_from(whole).unwrap_or(Nanos::MAX)),
    }
}

impl Drawing<'_> {
    fn heading(&mut self, title: &str) {
        let Scale { from, to, columns } = *self.scale;
        let column = a_column(self.scale.length(), columns);
        let (from, to) = (words::time(from), words::time(to));
        self.say(&format!("{title}\n{from} to {to}, {column} a column\n\n"));
        let step = self.scale.step(10);
        let mut axis = vec![' '; columns];
        let first = self.scale.from.div_ceil(step).checked_mul(step);
        let mut next = first;
        while let Some(time) = next.filter(|time| *time <= self.scale.to) {
            let label = match step {
                ..1_000_000 => words::time(time),
                _ => words::span(time),
            };
            if let Some(at) = self.scale.column(time) {
                let cells = axis[at..].iter_mut();
                cells
                    .zip(format!("|{label}").chars())
                    .for_each(|(cell, c)| *cell = c);
            }
            next = time.checked_add(step);
        }
        let axis: String = axis.into_iter().collect();
        self.line("", axis.trim_end());
    }

    /// A row; one without anything on it is left out, but for a name.
    fn row(&mut self, name: String, row: Rows) {
        let cells = match row {
            Rows::Belief(lane, lease) => self.belief(lane, &lease),
            Rows::Events(lane) => self.events(lane),
            Rows::Process(lane) => self.conditions(lane, is_of_process),
            Rows::Around(lane) => self.conditions(lane, |what| !is_of_process(what)),
        };
        if name.is_empty() && cells.iter().all(Option::is_none) {
            return;
        }
        self.used
            .extend(cells.iter().flatten().map(|cell| cell.sign));
        let mut text = String::new();
        let style = |cell: &Option<Cell>| cell.map(|cell| cell.style);
        for alike in cells.chunk_by(|a, b| style(a) == style(b)) {
            let glyphs = alike.iter().map(|cell| cell.map_or(' ', |cell| cell.glyph));
            let glyphs: String = glyphs.collect();
            match (self.screen.colour, style(&alike[0])) {
                (Colour::Always, Some(style)) => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{style}{glyphs}{style:#}");
                }
                _ => text += &glyphs,
            }
        }
        self.line(&name, text.trim_end());
    }

    fn cell(&self, sign: Sign) -> Cell {
        let glyph = sign.glyph(self.screen.unicode);
        let style = sign.style();
        Cell { sign, glyph, style }
    }

    fn belief(&self, place: usize, ours: &Name) -> Vec<Option<Cell>> {
        let mut cells = vec![None; self.scale.columns];
        let bar = self.cell(Sign::Leads);
        for span in self.chart.spans_of(place) {
            let Condition::Leads { lease, token } = &span.what else {
                continue;
            };
            let Some((first, last)) = self.scale.stretch(span.from, span.to) else {
                continue;
            };
            if lease != ours {
                continue;
            }
            let style = term_style(*token);
            cells[first..=last].fill(Some(Cell { style, ..bar }));
            // A token that does not fit would be read as another.
            let label = token.map(|token| token.to_string()).unwrap_or_default();
            if label.len() <= last - first + 1 {
                for (at, glyph) in (first..).zip(label.chars()) {
                    cells[at] = Some(Cell {
                        style,
                        glyph,
                        ..bar
                    });
                }
            }
        }
        cells
    }

    fn events(&self, place: usize) -> Vec<Option<Cell>> {
        let mut cells: Vec<Option<Cell>> = vec![None; self.scale.columns];
        let (culprits, evidence) = self.exhibits();
        let role = self.chart.lanes[place].role;
        for point in self.points.get(&place).into_iter().flatten() {
            let name = &self.chart.names[point.f];
            let sign = match () {
                () if culprits.contains(&point.index) => Sign::Violation,
                () if evidence.contains(&point.index) => Sign::Evidence,
                () if !self
                    .selection
                    .takes_kind(name, point.kind, role == Role::Nemesis) =>
                {
                    continue;
                }
                () => Sign::of_event(role, name, point.kind),
            };
            let Some(at) = self.scale.column(point.time) else {
                continue;
            };
            if cells[at].is_none_or(|cell| sign < cell.sign) {
                cells[at] = Some(self.cell(sign));
            }
        }
        cells
    }

    /// The indices of the events that are wrong, and of all that show it.
    fn exhibits(&self) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let violated = || self.chart.verdicts.violated();
        let culprits = violated().map(|(_, evidence)| evidence.culprit);
        let evidence = violated().flat_map(|(_, evidence)| evidence.events.iter().copied());
        (culprits.collect(), evidence.collect())
    }

    fn conditions(&self, place: usize, fits: impl Fn(&Condition) -> bool) -> Vec<Option<Cell>> {
        let mut cells: Vec<Option<Cell>> = vec![None; self.scale.columns];
        let spans = self.chart.spans_of(place).iter();
        for span in spans.filter(|span| fits(&span.what)) {
            let sign = Sign::of(&span.what);
            let stretch = self.scale.stretch(span.from, span.to);
            let (Some(sign), Some((first, last))) = (sign, stretch) else {
                continue;
            };
            for cell in &mut cells[first..=last] {
                if cell.is_none_or(|cell| sign < cell.sign) {
                    *cell = Some(self.cell(sign));
                }
            }
        }
        cells
    }

    /// Where a rule was broken: below the lanes, at its time.
    fn violations(&mut self) {
        let chart = self.chart;
        let mut sentences = String::new();
        for (check, evidence) in chart.verdicts.violated() {
            let place = chart.place(evidence.culprit);
            let time = place.map(|place| chart.points[place].time);
            let at = time.and_then(|time| self.scale.column(time));
            let when = time.map(words::time).unwrap_or_default();
            if let Some(at) = at {
                let label = format!("{check} {when}");
                let before = at.checked_sub(label.len() + 1);
                let row = match before {
                    Some(before) if at + label.len() + 2 > self.scale.columns => {
                        format!("{:before$}{label} ^", "")
                    }
                    _ => format!("{:at$}^ {label}", ""),
                };
                let style = Sign::Violation.style();
                let row = match self.screen.colour {
                    Colour::Always => format!("{style}{row}{style:#}"),
                    Colour::Never => row,
                };
                self.line("", &row);
            }
            let unseen = match at {
                Some(_) => String::new(),
                None => format!(" (at {when}, not in this part)"),
            };
            sentences += &format!("{check}: {}{unseen}\n", evidence.sentence);
            for line in &evidence.reckoning {
                sentences += &format!("  {line}\n");
            }
        }
        if !sentences.is_empty() {
            self.say("\n");
            self.say(&sentences);
        }
    }

    /// Only of what is drawn.
    fn legend(&mut self) {
        let unicode = self.screen.unicode;
        let said = |sign: &Sign| format!("{} {}", sign.glyph(unicode), sign.meaning());
        let mut line = String::new();
        self.text.push('\n');
        for sign in self.used.iter().map(said) {
            // Two signs are never run together, and none is torn from its meaning.
            let wide = line.chars().count() + 3 + sign.chars().count();
            if !line.is_empty() && wide > self.screen.width {
                self.text += &format!("{line}\n");
                line.clear();
            }
            if !line.is_empty() {
                line += "   ";
            }
            line += &sign;
        }
        self.text += &format!("{line}\n");
    }

    fn line(&mut self, name: &str, rest: &str) {
        let name = match name.chars().count() > self.gutter {
            true => name
                .chars()
                .take(self.gutter.saturating_sub(1))
                .chain(['~'])
                .collect(),
            false => name.to_owned(),
        };
        let gutter = self.gutter;
        let line = format!("{name:<gutter$}  {rest}");
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// Text between the drawings, in lines that fit.
    fn say(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            let (line, end) = line.split_at(line.trim_end_matches('\n').len());
            let line = printable(line);
            self.text += &textwrap::fill(&line, self.screen.width.max(LEAST_COLUMNS));
            self.text += end;
        }
    }
}

/// Neighbouring terms differ.
fn term_style(token: Option<Token>) -> Style {
    let colours = [
        AnsiColor::Cyan,
        AnsiColor::Green,
        AnsiColor::Blue,
        AnsiColor::Yellow,
    ];
    let nth = token.unwrap_or(0) % colours.len() as Token;
    Style::new()
        .fg_color(Some(colours[nth as usize].into()))
        .bold()
}

#[cfg(test)]
mod tests {
    use super::a_column;

    #[test]
    fn a_column_is_as_long_as_it_is() {
        assert_eq!(a_column(900_000_000, 91), "9.89ms");
        assert_eq!(a_column(10, 100), "0.1ns");
        assert_eq!(a_column(5, 91), "0.05ns");
        assert_eq!(a_column(100, 91), "1ns");
    }
}
