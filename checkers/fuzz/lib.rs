//! What every foreign reader must stand: any bytes are read or refused, and what is read
//! becomes events of a lease, or is refused as one.

use deposed_checkers::import::{Entries, Entry, Format, lease};

/// Reads bytes in a format.
pub fn read(format: Format, bytes: &[u8]) {
    let entries: Vec<Entry> = Entries::new(format, bytes, "fuzz")
        .map_while(Result::ok)
        .collect();
    for (before, after) in entries.iter().zip(entries.iter().skip(1)) {
        assert!(before.index < after.index, "indices rise");
    }
    for entry in &entries {
        assert!(entry.place.line > 0 && entry.place.column > 0);
        // A value prints as EDN, and any value can be printed.
        let _ = entry.value.to_string();
    }
    for event in lease::Events::new(entries.into_iter().map(Ok), "fuzz") {
        let _ = event;
    }
}
