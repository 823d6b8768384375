//! Histories and verdicts as text.

use deposed_checkers::history::Event;

/// One event as one line, without its time and process.
pub fn line(event: &Event) -> String {
    format!("{:?}", event.body)
}
