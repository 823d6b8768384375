//! The engine: records in one redb file, behind whatever holds the file.
//!
//! Each record is sealed with a checksum over its name and its bytes, and one more
//! entry counts and sums the seals, so that a record that rotted, vanished or came
//! back is found when the file is opened. Commits are two-phase: the pages are synced
//! before the header points at them, so a header whose pages do not fit it is rot and
//! not a commit that was cut short, and redb refuses it rather than go back to the
//! commit before.

use std::{fmt::Display, io};

use redb::{
    Builder, Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, StorageBackend,
    TableDefinition,
};

use super::{Batch, Records, corrupted};

/// The name of the file.
pub(super) const FILE: &str = "records.redb";
/// The name under which it is made: redb's creation can be cut short.
pub(super) const UNFINISHED: &str = "records.redb.new";

/// Enough for the records of a node; what the file holds is read once, at its opening.
const CACHE: usize = 1 << 20;

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
/// The entry that sums up all others.
const SUM: &str = "";

/// The folder that holds the file.
pub(super) trait Folder {
    type File: StorageBackend;

    /// Whether there is a file of this name.
    fn exists(&self, name: &str) -> io::Result<bool>;
    /// Opens a file, or makes an empty one.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes durable which files there are, and their names.
    fn sync(&self) -> io::Result<()>;
    /// What people call the file.
    fn path(&self, name: &str) -> String;
}

/// What to do where there is no file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Make one.
    Create,
    /// Refuse: it was there.
    Refuse,
}

/// Whether a commit waits until it is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    Now,
    /// With the next that does.
    Later,
}

/// An open file.
pub(super) struct Engine {
    db: Database,
    sum: Sum,
    path: String,
}

impl Engine {
    /// Opens the file and reads every record.
    ///
    /// # Errors
    /// `InvalidData` when the file is corrupted, `NotFound` when it is missing and may
    /// not be; else what the folder said.
    pub(super) fn open(folder: &impl Folder, missing: Missing) -> io::Result<(Self, Records)> {
        if !folder.exists(FILE)? {
            if missing == Missing::Refuse {
                let what = format!("the durable file '{}' is missing", folder.path(FILE));
                return Err(io::Error::new(io::ErrorKind::NotFound, what));
            }
            create(folder)?;
        }
        let path = folder.path(FILE);
        let file = folder.open(FILE)?;
        // redb would take it for a new one.
        if file.len()? == 0 {
            return Err(rotten(&path, "it is empty"));
        }
        let db = database(file, &path)?;
        let (records, sum) = read(&db, &path)?;
        Ok((Self { db, sum, path }, records))
    }

    /// Makes changes durable together. After an error the engine is of no use any more.
    pub(super) fn commit(&mut self, batch: &Batch, sync: Sync) -> io::Result<()> {
        let mut sum = self.sum;
        let told = |error: redb::Error| told(&self.path, error);
        let mut transaction = self.db.begin_write().map_err(|error| told(error.into()))?;
        transaction.set_two_phase_commit(true);
        if sync == Sync::Later {
            let set = transaction.set_durability(Durability::None);
            set.map_err(|error| told(error.into()))?;
        }
        {
            let table = transaction.open_table(TABLE);
            let mut table = table.map_err(|error| told(error.into()))?;
            for (name, record) in batch {
                let before = match record {
                    Some(record) => {
                        let sealed = sealed(name, record);
                        sum.add(&sealed);
                        table.insert(name.as_str(), sealed.as_slice())
                    }
                    None => table.remove(name.as_str()),
                };
                if let Some(before) = before.map_err(|error| told(error.into()))? {
                    sum.take(before.value());
                }
            }
            let summed = table.insert(SUM, sum.bytes().as_slice());
            summed.map_err(|error| told(error.into()))?;
        }
        transaction.commit().map_err(|error| told(error.into()))?;
        self.sum = sum;
        Ok(())
    }
}

/// Makes the file under another name first, so that one that was cut short is never
/// taken for the real one.
pub(super) fn create(folder: &impl Folder) -> io::Result<()> {
    if folder.exists(UNFINISHED)? {
        folder.remove(UNFINISHED)?;
        folder.sync()?;
    }
    let path = folder.path(UNFINISHED);
    let file = folder.open(UNFINISHED)?;
    let mut made = Engine {
        db: database(file, &path)?,
        sum: Sum::default(),
        path,
    };
    // A file that was made has its sum in it: one that has none is not whole.
    made.commit(&Batch::new(), Sync::Now)?;
    made.db
        .close()
        .map_err(|error| told(&made.path, error.into()))?;
    folder.rename(UNFINISHED, FILE)?;
    folder.sync()
}

fn database(file: impl StorageBackend, path: &str) -> io::Result<Database> {
    let opened = Builder::new()
        .set_cache_size(CACHE)
        // Where a plain opening may panic on what it finds, this one reports it.
        .set_check_integrity_on_open(true)
        .create_with_backend(file);
    opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!("the durable file '{path}' is open in another process"),
        ),
        error => told(path, error.into()),
    })
}

fn read(db: &Database, path: &str) -> io::Result<(Records, Sum)> {
    let told = |error: redb::Error| told(path, error);
    let transaction = db.begin_read().map_err(|error| told(error.into()))?;
    let table = transaction.open_table(TABLE);
    let table = table.map_err(|error| told(error.into()))?;
    let (mut records, mut sum) = (Records::new(), Sum::default());
    let mut summed = None;
    for entry in table.iter().map_err(|error| told(error.into()))? {
        let (name, value) = entry.map_err(|error| told(error.into()))?;
        let (name, value) = (name.value(), value.value());
        if name == SUM {
            summed = Some(value.to_vec());
            continue;
        }
        let record = unsealed(name, value).ok_or_else(|| {
            rotten(
                path,
                format!("the checksum of its record '{name}' is wrong"),
            )
        })?;
        sum.add(value);
        records.insert(name.to_owned(), record.to_vec());
    }
    if summed.as_deref() != Some(&sum.bytes()) {
        return Err(rotten(
            path,
            "records are missing from it, or stale".to_owned(),
        ));
    }
    Ok((records, sum))
}

/// How many records there are, and their checksums in one.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u32,
    seals: u32,
}

impl Sum {
    fn add(&mut self, sealed: &[u8]) {
        self.count = self.count.wrapping_add(1);
        self.seals ^= seal_of(sealed);
    }

    fn take(&mut self, sealed: &[u8]) {
        self.count = self.count.wrapping_sub(1);
        self.seals ^= seal_of(sealed);
    }

    /// With a checksum of its own, since nothing sums up the sum.
    fn bytes(self) -> Vec<u8> {
        sealed(
            SUM,
            &[self.count.to_le_bytes(), self.seals.to_le_bytes()].concat(),
        )
    }
}

fn sealed(name: &str, record: &[u8]) -> Vec<u8> {
    let mut sealed = seal(name, record).to_le_bytes().to_vec();
    sealed.extend(record);
    sealed
}

fn unsealed<'a>(name: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
    let (_, record) = sealed.split_first_chunk::<4>()?;
    (seal(name, record) == seal_of(sealed)).then_some(record)
}

fn seal_of(sealed: &[u8]) -> u32 {
    sealed
        .first_chunk()
        .map_or(0, |seal| u32::from_le_bytes(*seal))
}

fn seal(name: &str, record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&u64::try_from(name.len()).unwrap_or(u64::MAX).to_le_bytes());
    hasher.update(name.as_bytes());
    hasher.update(record);
    hasher.finalize()
}

/// An error of the engine as one of the disk.
fn told(path: &str, error: redb::Error) -> io::Error {
    let damaged = [io::ErrorKind::InvalidData, io::ErrorKind::UnexpectedEof];
    match error {
        redb::Error::Io(error) if !damaged.contains(&error.kind()) => error,
        error @ (redb::Error::Io(_)
        | redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::TableDoesNotExist(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableIsMultimap(_)) => rotten(path, error),
        error => io::Error::other(error.to_string()),
    }
}

fn rotten(path: &str, what: impl Display) -> io::Error {
    corrupted(format!(
        "the durable file '{path}' is corrupted ({what}): put a good copy of it in its place, and \
         for a lease server say which token is the floor"
    ))
}
