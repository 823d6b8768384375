//! What nobody reads any more.

use std::io::{self, ErrorKind, Write};

/// An output whose reader may leave. Where what is said there is a verdict, it is then said to
/// nobody, and all that was asked for is done nevertheless: runs are kept, and the exit code
/// is the verdict's.
pub(super) struct Unread<'a> {
    out: &'a mut dyn Write,
    goes_on: bool,
    left: bool,
}

impl<'a> Unread<'a> {
    /// Unless it `goes_on`, it fails once its reader has left.
    pub(super) fn new(out: &'a mut dyn Write, goes_on: bool) -> Self {
        Self {
            out,
            goes_on,
            left: false,
        }
    }

    fn unless_left<T>(
        &mut self,
        nothing: T,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.left {
            return Ok(nothing);
        }
        match write(self.out) {
            Err(error) if self.goes_on && error.kind() == ErrorKind::BrokenPipe => {
                self.left = true;
                Ok(nothing)
            }
            written => written,
        }
    }
}

impl Write for Unread<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_left(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_left((), |out| out.flush())
    }
}
