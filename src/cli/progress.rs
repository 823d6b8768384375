//! The progress bar, on standard error, and what is printed above it.

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts to `length`; hidden where none is welcome.
pub(super) fn bar(welcome: bool, length: u64, what: &str) -> ProgressBar {
    if !welcome {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    let template = format!("{{wide_bar}} {{pos}} of {{len}} {what}, {{eta}} left");
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// What a search of unknown length says of itself; hidden where it is not welcome.
pub(super) fn spinner(welcome: bool) -> ProgressBar {
    match welcome {
        true => ProgressBar::new_spinner(),
        false => ProgressBar::hidden(),
    }
}

/// Lines of a report push the progress bar down.
pub(super) struct AboveTheBar<'a> {
    pub(super) bar: &'a ProgressBar,
    pub(super) out: &'a mut dyn Write,
}

impl Write for AboveTheBar<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let out = &mut self.out;
        self.bar.suspend(|| {
            let written = out.write(bytes)?;
            out.flush()?;
            Ok(written)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
