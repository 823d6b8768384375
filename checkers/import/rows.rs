//! The bytes of a table on their way to its parser, which takes any quotes: here they must
//! stand as RFC 4180 has them. A quote that is never closed would make one cell of the rest
//! of the file, and a history without its last lines may be valid where the whole is not.

use std::io::{self, Read};

use super::{ENTRY_LIMIT, Place};

/// A text whose quotes are followed. What is wrong is told once what stands before is read.
pub(super) struct Rows<R> {
    input: R,
    /// How many bytes the row may still have.
    left: usize,
    state: State,
    place: Place,
    /// Where the row begins, and the quote that was opened last.
    row: Place,
    opened: Place,
    wrong: Option<(Place, Wrong)>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Between rows.
    Row,
    /// Behind a comma.
    Cell,
    Bare,
    Quoted,
    /// Behind a quote in a quoted cell: it closes the cell, or is the first of two.
    Quote,
}

/// Why a table's bytes cannot be read on.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum Wrong {
    #[error("the row is too long")]
    TooLong,
    #[error(
        "the quote that opens here is never closed: close it, or write \"\" for a quote in a \
         quoted cell"
    )]
    Unclosed,
    #[error(
        "a quote within a cell that does not begin with one: write the whole cell in quotes, and \
         \"\" for each quote in it"
    )]
    Stray,
    #[error(
        "the cell goes on behind its closing quote, which opened at {0}: a comma or the end of \
         the line must follow, and a quote in a quoted cell is written \"\""
    )]
    Behind(Place),
    #[error("the last line has no end")]
    Torn,
}

/// What is wrong, and where, as the parser hands it on.
#[derive(Debug, thiserror::Error)]
#[error("{1}")]
pub(super) struct Misplaced(pub(super) Place, #[source] pub(super) Wrong);

impl<R: Read> Rows<R> {
    pub(super) fn new(input: R) -> Self {
        let begin = Place { line: 1, column: 1 };
        Rows {
            input,
            left: ENTRY_LIMIT,
            state: State::Row,
            place: begin,
            row: begin,
            opened: begin,
            wrong: None,
        }
    }

    /// A row begins: from now on bytes are counted.
    pub(super) fn begin(&mut self) {
        self.left = ENTRY_LIMIT;
    }

    fn see(&mut self, byte: u8) -> Result<(), (Place, Wrong)> {
        let place = self.place;
        let is_end = matches!(byte, b'\n' | b'\r');
        self.state = match (self.state, byte) {
            (State::Quoted, b'"') => State::Quote,
            (State::Quoted, _) => State::Quoted,
            (State::Quote, b'"') => State::Quoted,
            (State::Row | State::Cell, b'"') => {
                self.opened = place;
                State::Quoted
            }
            (_, b',') => State::Cell,
            (_, _) if is_end => State::Row,
            (State::Quote, _) => return Err((place, Wrong::Behind(self.opened))),
            (State::Bare, b'"') => return Err((place, Wrong::Stray)),
            (State::Row | State::Cell | State::Bare, _) => State::Bare,
        };
        match byte {
            b'\n' => {
                self.place.line += 1;
                self.place.column = 1;
            }
            // The later bytes of a character.
            0x80..=0xBF => {}
            _ => self.place.column += 1,
        }
        if self.state == State::Row {
            self.row = self.place;
        }
        Ok(())
    }

    /// What is wrong with a file that ends here.
    fn ends(&self) -> Option<(Place, Wrong)> {
        match self.state {
            // A closing quote says itself that the cell is whole.
            State::Row | State::Quote => None,
            State::Quoted => Some((self.opened, Wrong::Unclosed)),
            State::Cell | State::Bare => Some((self.row, Wrong::Torn)),
        }
    }
}

impl<R: Read> Read for Rows<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let failed = |(place, wrong)| Err(io::Error::other(Misplaced(place, wrong)));
        if let Some(wrong) = self.wrong {
            return failed(wrong);
        }
        let read = self.input.read(into)?;
        if read == 0 && !into.is_empty() {
            return self.ends().map_or(Ok(0), failed);
        }
        let Some(left) = self.left.checked_sub(read) else {
            return failed((self.row, Wrong::TooLong));
        };
        self.left = left;
        for (at, byte) in into[..read].iter().enumerate() {
            if let Err(wrong) = self.see(*byte) {
                self.wrong = Some(wrong);
                return if at == 0 { failed(wrong) } else { Ok(at) };
            }
        }
        Ok(read)
    }
}
