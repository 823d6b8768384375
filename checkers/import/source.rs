//! Bytes with their places: what the readers of texts without fixed lines stand on.

use std::io::{self, Read};

use super::{ENTRY_LIMIT, Place, Problem, fault::Fault};

/// A text, read byte by byte, a block of it in memory at a time.
pub(super) struct Source<R> {
    input: R,
    block: Box<[u8]>,
    at: usize,
    end: usize,
    place: Place,
    /// Where the entry that is being read begins, and how many bytes it may still have.
    entry: Option<(Place, usize)>,
}

impl<R: Read> Source<R> {
    pub(super) fn new(input: R) -> Self {
        Self::at(input, Place { line: 1, column: 1 }, 1 << 16)
    }

    /// A text that begins in the middle of a file.
    pub(super) fn at(input: R, place: Place, block: usize) -> Self {
        Source {
            input,
            block: vec![0; block.max(1)].into_boxed_slice(),
            at: 0,
            end: 0,
            place,
            entry: None,
        }
    }

    /// The place of the next character.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn fault(&self, problem: Problem) -> Fault {
        Fault::at(self.place, problem)
    }

    /// An entry begins here: from now on bytes are counted.
    pub(super) fn begin(&mut self) {
        self.entry = Some((self.place, ENTRY_LIMIT));
    }

    /// The entry is whole. What stands between entries may be of any length.
    pub(super) fn end(&mut self) {
        self.entry = None;
    }

    /// The file ends in the middle of something.
    pub(super) fn torn(&self) -> Fault {
        match self.entry {
            Some((place, _)) => Fault::at(place, Problem::Torn),
            None => self.fault(Problem::Torn),
        }
    }

    /// The next byte, which stays.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Fault> {
        if self.at == self.end {
            self.at = 0;
            self.end = loop {
                match self.input.read(&mut self.block) {
                    Ok(read) => break read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.end = 0;
                        return Err(self.fault(Problem::of_io(error)));
                    }
                }
            };
        }
        match self.block[..self.end].get(self.at) {
            Some(0) => Err(self.fault(Problem::Nul)),
            next => Ok(next.copied()),
        }
    }

    /// Passes the byte that was peeked at.
    pub(super) fn pass(&mut self) -> Result<(), Fault> {
        debug_assert!(self.at < self.end, "a byte was peeked at");
        let byte = self.block[self.at];
        self.at += 1;
        match byte {
            b'\n' => {
                self.place.line += 1;
                self.place.column = 1;
            }
            // The later bytes of a character.
            0x80..=0xBF => {}
            _ => self.place.column += 1,
        }
        if let Some((place, left)) = &mut self.entry {
            match left.checked_sub(1) {
                Some(rest) => *left = rest,
                None => return Err(Fault::at(*place, Problem::TooLong)),
            }
        }
        Ok(())
    }

    /// The next byte, passed.
    pub(super) fn next(&mut self) -> Result<Option<u8>, Fault> {
        let next = self.peek()?;
        if next.is_some() {
            self.pass()?;
        }
        Ok(next)
    }

    /// Passes what remains of the line.
    pub(super) fn pass_line(&mut self) -> Result<(), Fault> {
        while self.next()?.is_some_and(|byte| byte != b'\n') {}
        Ok(())
    }
}
