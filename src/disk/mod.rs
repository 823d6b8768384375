//! The disk seam: named records that survive a crash of their node.
//!
//! A record is written whole. When [`Disk::commit`] has returned it is durable;
//! a node answers nobody before that.
//!
//! [`MemoryDisk`] never fails. [`FileDisk`] keeps the records in one redb file, for
//! service; the simulated disk (`sim`) keeps the same file on a machine whose disk
//! fails in every way that the schedule asks for.

mod engine;
mod file;
mod memory;
pub mod sim;
mod unsynced;

use std::{collections::BTreeMap, io};

use deposed_checkers::history::Token;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::net::LocalFuture;

pub use file::FileDisk;
pub use memory::MemoryDisk;

/// Records by name.
pub type Records = BTreeMap<String, Vec<u8>>;

/// Changes that become durable together: what is to stand under each name; `None`:
/// nothing.
pub type Batch = BTreeMap<String, Option<Vec<u8>>>;

/// A node's durable state. Names of records are not empty.
pub trait Disk {
    /// Makes changes durable: all of them, or none.
    ///
    /// # Errors
    /// When they could not be made durable. Whether they were is then open until
    /// [`Disk::records`] tells: what was in memory may be ahead of the disk.
    fn commit(&self, batch: Batch) -> LocalFuture<'_, io::Result<()>>;

    /// Writes changes that a loss of power or a crash may still undo, until the next
    /// commit makes them durable.
    ///
    /// # Errors
    /// As [`Disk::commit`].
    fn write(&self, batch: Batch) -> LocalFuture<'_, io::Result<()>> {
        self.commit(batch)
    }

    /// Takes the disk up anew, at a boot or after an error: every durable record.
    ///
    /// # Errors
    /// `InvalidData` when what is there is corrupted: the node must not start. Others
    /// may pass: try again.
    fn records(&self) -> LocalFuture<'_, io::Result<Records>>;
}

/// The name of the record that an operator leaves with an old copy; see [`Restored`].
pub const RESTORED: &str = "restored";

/// Says that the other records are an old copy, put in place of what was lost. A node
/// that cannot make good for what the copy forgot must not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// At least the highest token that was ever granted.
    pub floor: Token,
}

/// Declares a disk an old copy: what an operator does after putting a backup in place and
/// before the lease server starts on it. `floor` is at least the highest token that was
/// ever granted; above it every lease goes on.
///
/// # Errors
/// When the disk cannot be read or written, or its file is corrupted.
pub async fn declare_restored(disk: &dyn Disk, floor: Token) -> io::Result<()> {
    disk.records().await?;
    commit_json(disk, RESTORED, &Restored { floor }).await
}

/// One change to a batch, as JSON.
///
/// # Errors
/// When the record has no JSON form.
pub fn put_json(batch: &mut Batch, name: String, record: &impl Serialize) -> io::Result<()> {
    batch.insert(name, Some(serde_json::to_vec(record)?));
    Ok(())
}

/// Makes one record durable as JSON.
///
/// # Errors
/// As [`Disk::commit`].
pub async fn commit_json(disk: &dyn Disk, name: &str, record: &impl Serialize) -> io::Result<()> {
    let mut batch = Batch::new();
    put_json(&mut batch, name.to_owned(), record)?;
    disk.commit(batch).await
}

/// Every durable record, read as JSON.
///
/// # Errors
/// When the disk cannot be read, or a record is not what it should be: the node
/// must not start on a guess.
pub async fn records_json<T: DeserializeOwned>(disk: &dyn Disk) -> io::Result<BTreeMap<String, T>> {
    let records = disk.records().await?;
    let read = |(name, bytes): (String, Vec<u8>)| {
        let record = read_json(&name, &bytes)?;
        Ok((name, record))
    };
    records.into_iter().map(read).collect()
}

/// Takes one record out, read as JSON.
///
/// # Errors
/// When the record is not what it should be.
pub fn take_json<T: DeserializeOwned>(records: &mut Records, name: &str) -> io::Result<Option<T>> {
    let bytes = records.remove(name);
    bytes.map(|bytes| read_json(name, &bytes)).transpose()
}

/// The records whose names begin with `prefix`, by the rest of their names, as JSON.
///
/// # Errors
/// When a record of them is not what it should be, or there is one of another name:
/// it belongs to another program, or a newer one.
pub fn all_json<T: DeserializeOwned, K: for<'a> From<&'a str> + Ord>(
    records: &Records,
    prefix: &str,
) -> io::Result<BTreeMap<K, T>> {
    let read = |(name, bytes): (&String, &Vec<u8>)| {
        let key = name.strip_prefix(prefix).ok_or_else(|| {
            corrupted(format!(
                "the durable record '{name}' is none of this node's; give it its own disk"
            ))
        })?;
        Ok((K::from(key), read_json(name, bytes)?))
    };
    records.iter().map(read).collect()
}

fn read_json<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        corrupted(format!(
            "the durable record '{name}' cannot be read: {error}; put a good copy of the disk in \
             its place"
        ))
    })
}

/// What a node must not start on.
fn corrupted(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Nobody has asked for the records yet, or they could not be had.
fn not_open() -> io::Error {
    io::Error::other("the disk is not open: ask for its records first")
}
