//! What was written to a file and is not synced: the operating system shows it to
//! everybody, and a loss of power leaves any part of it.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// What a disk writes in one piece.
pub(super) const SECTOR: u64 = 512;

/// One change to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Length(u64),
}

/// The changes to one file since its last sync, in their order.
#[derive(Debug, Default)]
pub(super) struct Unsynced(Vec<Change>);

impl Unsynced {
    pub(super) fn push(&mut self, change: Change) {
        self.0.push(change);
    }

    /// The file's length, where it is `synced` long on the disk.
    pub(super) fn len(&self, synced: u64) -> u64 {
        self.0.iter().fold(synced, |length, change| match change {
            Change::Length(length) => *length,
            Change::Write { at, bytes } => length.max(at + bytes.len() as u64),
        })
    }

    /// Lays the changes over what was read from the disk at `from`.
    pub(super) fn overlay(&self, from: u64, read: &mut [u8]) {
        let to = from + read.len() as u64;
        for change in &self.0 {
            match change {
                Change::Length(length) if *length < to => {
                    let cut = length.saturating_sub(from) as usize;
                    read[cut..].fill(0);
                }
                Change::Length(_) => {}
                Change::Write { at, bytes } => {
                    let (first, last) = (from.max(*at), to.min(at + bytes.len() as u64));
                    if first < last {
                        let (into, out) = ((first - from) as usize, (first - at) as usize);
                        let length = (last - first) as usize;
                        read[into..into + length].copy_from_slice(&bytes[out..out + length]);
                    }
                }
            }
        }
    }

    /// A sync: everything reaches the disk.
    pub(super) fn all(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.0)
    }

    /// No sync: an arbitrary subset of the sectors reaches the disk, and the rest is gone.
    pub(super) fn survivors(&mut self, rng: &mut ChaCha8Rng) -> Vec<Change> {
        let changes = std::mem::take(&mut self.0);
        if changes.is_empty() {
            return changes;
        }
        // Few, many, or all of one kind: each finds what the others miss.
        let of_ten = [0, 3, 7, 10][rng.random_range(0..4)];
        let mut survivors = Vec::new();
        for change in changes {
            match change {
                Change::Length(_) if rng.random_ratio(of_ten, 10) => survivors.push(change),
                Change::Length(_) => {}
                Change::Write { at, bytes } => {
                    let end = at + bytes.len() as u64;
                    let mut start = at;
                    while start < end {
                        let stop = end.min((start / SECTOR + 1) * SECTOR);
                        if rng.random_ratio(of_ten, 10) {
                            let part = &bytes[(start - at) as usize..(stop - at) as usize];
                            survivors.push(Change::Write {
                                at: start,
                                bytes: part.to_vec(),
                            });
                        }
                        start = stop;
                    }
                }
            }
        }
        survivors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    fn write(at: u64, bytes: &[u8]) -> Change {
        let bytes = bytes.to_vec();
        Change::Write { at, bytes }
    }

    #[test]
    fn what_is_not_synced_is_read_over_what_is() {
        let mut unsynced = Unsynced::default();
        unsynced.push(write(2, b"xyz"));
        let mut read = *b"abcdef";
        unsynced.overlay(0, &mut read);
        assert_eq!(&read, b"abxyzf");
        let mut read = *b"de";
        unsynced.overlay(3, &mut read);
        assert_eq!(&read, b"yz");
        unsynced.push(Change::Length(3));
        assert_eq!(unsynced.len(6), 3);
        unsynced.push(write(4, b"q"));
        assert_eq!(unsynced.len(6), 5);
        let mut read = *b"abcdef";
        unsynced.overlay(0, &mut read);
        assert_eq!(&read, b"abx\0q\0", "cut off, then written beyond");
        assert_eq!(unsynced.all().len(), 3);
        assert_eq!(unsynced.len(6), 6);
    }

    #[test]
    fn a_loss_of_power_leaves_any_sectors_in_any_order() {
        let mut rng = stream(1, "disk", 0);
        let (mut none, mut all, mut holes) = (0, 0, 0);
        for _ in 0..400 {
            let mut unsynced = Unsynced::default();
            unsynced.push(write(500, &[7; 1000]));
            // 500 to 512, to 1024, to 1500: three sectors are touched.
            let survivors = unsynced.survivors(&mut rng);
            let at = |change: &Change| match change {
                Change::Write { at, .. } => *at,
                Change::Length(_) => panic!("no length was set"),
            };
            match survivors.iter().map(at).collect::<Vec<_>>()[..] {
                [] => none += 1,
                [500, 512, 1024] => all += 1,
                [500, 1024] | [512, 1024] | [1024] => holes += 1,
                _ => {}
            }
            assert_eq!(unsynced.len(0), 0, "what did not survive is gone");
        }
        assert!(none > 50 && all > 50 && holes > 20, "{none} {all} {holes}");
    }
}
