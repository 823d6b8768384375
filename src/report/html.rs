//! A history as one page for a browser: self-contained, no network, nothing in it that a
//! history could make run.
//!
//! The chart travels as one packed block (JSON, gzipped, in base64: no character of it means
//! anything to HTML); the page's script is allowed by its hash alone, and sets what it
//! unpacks as text.

mod packed;
mod template;

use deposed_checkers::{
    history::{Event, Header},
    verdict::Verdicts,
    writer::event_line,
};

use super::{
    text::{Calls, clipped, counted, printable},
    words,
};
use crate::timeline::{Drawing, selection::Selection};
use packed::Packed;
pub(super) use template::{escaped, page};

/// The largest page that is made, in bytes. A history that does not fit is thinned.
pub const PAGE_LIMIT: usize = 5_000_000;

const PAGE: &str = include_str!("html/timeline.html");
const STYLE: &str = include_str!("html/timeline.css");
/// One script: what it knows, how it is drawn, what a person does with it.
const SCRIPT: &str = concat!(
    include_str!("html/model.js"),
    include_str!("html/draw.js"),
    include_str!("html/page.js")
);

/// The longest text that is drawn: a history may hold a name of any length. Its JSON has it.
const SAID_LIMIT: usize = 400;

/// A history's page in the making. Keeps the text of every event until it is made.
pub struct Page {
    header: String,
    title: String,
    drawing: Drawing,
    calls: Calls,
    told: Vec<Told>,
    selection: Selection,
}

/// An event as the page tells it.
struct Told {
    said: String,
    json: String,
    /// Whether it was asked for.
    shown: bool,
}

impl Page {
    /// Of a history with this header, of which this much is shown. `file` names one that
    /// has no name of its own.
    pub fn new(header: &Header, file: &str, selection: Selection) -> Self {
        Self {
            // Names and JSON values always have a JSON form; there is nothing to fail.
            header: serde_json::to_string(header).unwrap_or_default(),
            title: title(header, file),
            drawing: Drawing::new(header),
            calls: Calls::default(),
            told: Vec::new(),
            selection,
        }
    }

    /// Looks at the next event.
    pub fn see(&mut self, event: &Event) {
        self.drawing.see(event);
        let (action, outcome) = self.calls.words(event);
        self.told.push(Told {
            said: drawn(format!("{action} {outcome}").trim_end(), SAID_LIMIT),
            json: event_line(event),
            shown: self.selection.takes(event),
        });
    }

    /// The page.
    ///
    /// # Errors
    /// The selection asks for a [slip](Selection::slip).
    pub fn finish(self, verdicts: Verdicts) -> Result<String, String> {
        self.within(verdicts, PAGE_LIMIT)
    }

    fn within(self, verdicts: Verdicts, limit: usize) -> Result<String, String> {
        let chart = self.drawing.finish(verdicts);
        if let Some(slip) = self.selection.slip(&chart.lane_names(), &chart.names) {
            return Err(slip);
        }
        let packed = Packed {
            chart: &chart,
            told: &self.told,
            header: &self.header,
            selection: &self.selection,
        };
        // The title stands there twice, and around it a policy and a summary of a few lines.
        let title = 2 * escaped(&self.title).len();
        let furniture = PAGE.len() + STYLE.len() + SCRIPT.len() + title + 2048;
        let block = packed.block(limit.saturating_sub(furniture));
        let shown = self.told.iter().filter(|told| told.shown).count() as u64;
        let mut summary = format!(
            "{} in {}",
            counted(shown, "event"),
            counted((chart.lanes.len() - block.lanes_left_out) as u64, "lane")
        );
        if let Some((first, last)) = chart.bounds()
            && !self.selection.finds(&chart)
        {
            let (first, last) = (words::time(first), words::time(last));
            summary += &format!(
                "; nothing is in the part that was asked for, and the history goes from {first} \
                 to {last}"
            );
        }
        if block.events_left_out > 0 {
            summary += &format!(
                "; {} of them are left out, evenly, to keep the page small: give a part \
                 with --from, --to, --process or --kind to see all of it",
                block.events_left_out
            );
        }
        if block.lanes_left_out > 0 {
            summary += &format!(
                "; {} of which nothing is left are not drawn",
                counted(block.lanes_left_out as u64, "lane")
            );
        }
        if block.cut_off > 0 {
            summary += &format!(
                "; the JSON of {} is cut off (…), being too large for a page",
                counted(block.cut_off as u64, "event")
            );
        }
        if block.header_left_out {
            summary += "; the header is left out, being too large for a page";
        }
        let parts = [("summary", &*escaped(&summary)), ("data", &*block.data)];
        Ok(page(PAGE, STYLE, SCRIPT, &self.title, &parts))
    }
}

/// The longest title, in characters: a header may hold anything.
const TITLE_LIMIT: usize = 300;

/// What a history is called: the run it is of, or else its file.
pub fn title(header: &Header, file: &str) -> String {
    if !header.rest.contains_key("schedule") {
        return printable(file);
    }
    let mut title = format!("{}  seed {}", header.workload, header.seed);
    if header.system != "deposed" {
        title += &format!("  system {}", header.system);
    }
    if let Some(flaw) = header.rest.get("flaw").and_then(serde_json::Value::as_str) {
        title += &format!("  flaw {flaw}");
    }
    drawn(&title, TITLE_LIMIT)
}

/// Text from a history as it is drawn.
fn drawn(text: &str, most: usize) -> String {
    printable(&clipped(text, most))
}

#[cfg(test)]
mod tests;
