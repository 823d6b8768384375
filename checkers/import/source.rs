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
    /// How many bytes of the character at hand are to come, and what the next may be.
    to_come: (u8, u8, u8),
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
            to_come: (0, 0x80, 0xBF),
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
        self.utf8(byte)?;
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

    /// Follows the characters, so that what is none is told where it stands.
    fn utf8(&mut self, byte: u8) -> Result<(), Fault> {
        let (left, lowest, highest) = self.to_come;
        self.to_come = match (left, byte) {
            (0, 0..=0x7F) => (0, 0x80, 0xBF),
            (0, 0xC2..=0xDF) => (1, 0x80, 0xBF),
            // The shortest form alone counts, no halves of pairs, and nothing past U+10FFFF.
            (0, 0xE0) => (2, 0xA0, 0xBF),
            (0, 0xED) => (2, 0x80, 0x9F),
            (0, 0xE1..=0xEF) => (2, 0x80, 0xBF),
            (0, 0xF0) => (3, 0x90, 0xBF),
            (0, 0xF1..=0xF3) => (3, 0x80, 0xBF),
            (0, 0xF4) => (3, 0x80, 0x8F),
            (1.., next) if (lowest..=highest).contains(&next) => (left - 1, 0x80, 0xBF),
            _ => {
                let mut place = self.place;
                place.column -= u64::from(left > 0);
                return Err(Fault::at(place, Problem::NotUtf8));
            }
        };
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
