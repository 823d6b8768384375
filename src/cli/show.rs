//! `deposed show`: a history as a timeline.

use std::io::{BufWriter, Write};

use deposed_checkers::reader;

use super::{Console, Exit, arguments::ShowArgs};
use crate::report::{
    Halt,
    text::{Timeline, printable},
};

pub(super) fn show(args: &ShowArgs, console: &mut Console<'_>) -> Result<Exit, Halt> {
    let bad = |error: reader::ReadError| Halt::BadInput(error.to_string());
    let (_, events) = reader::open(&args.history).map_err(bad)?;
    let mut timeline = Timeline::new(console.colour);
    let mut out = BufWriter::new(&mut *console.out);
    let mut empty = true;
    for event in events {
        match event {
            Ok(event) => {
                empty = false;
                writeln!(out, "{}", timeline.line(&event))?;
            }
            Err(error) => {
                // What was read before the damage is shown first.
                out.flush()?;
                return Err(bad(error));
            }
        }
    }
    if empty {
        let file = printable(&args.history.display().to_string());
        writeln!(out, "{file} holds no events, only a header")?;
    }
    out.flush()?;
    Ok(Exit::Valid)
}
