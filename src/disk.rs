//! The disk seam: named records that survive a crash of their node.
//!
//! A record is written whole. When [`Disk::commit`] has returned it is durable;
//! a node answers nobody before that.

use std::{cell::RefCell, collections::BTreeMap, io, rc::Rc};

use serde::{Serialize, de::DeserializeOwned};

use crate::net::LocalFuture;

/// A node's durable state.
pub trait Disk {
    /// Makes one record durable, replacing what stood under its name.
    ///
    /// # Errors
    /// When it could not be made durable; the old record stands.
    fn commit<'a>(&'a self, name: &'a str, record: Vec<u8>) -> LocalFuture<'a, io::Result<()>>;

    /// Every durable record, by name.
    ///
    /// # Errors
    /// When the disk cannot be read.
    fn records(&self) -> LocalFuture<'_, io::Result<BTreeMap<String, Vec<u8>>>>;
}

/// A disk that never fails, in memory: clones share it, so it survives a simulated
/// crash of the node, though not the end of the process.
#[derive(Clone, Default)]
pub struct MemoryDisk(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

impl Disk for MemoryDisk {
    fn commit<'a>(&'a self, name: &'a str, record: Vec<u8>) -> LocalFuture<'a, io::Result<()>> {
        self.0.borrow_mut().insert(name.to_owned(), record);
        Box::pin(std::future::ready(Ok(())))
    }

    fn records(&self) -> LocalFuture<'_, io::Result<BTreeMap<String, Vec<u8>>>> {
        Box::pin(std::future::ready(Ok(self.0.borrow().clone())))
    }
}

/// Makes one record durable as JSON.
///
/// # Errors
/// As [`Disk::commit`].
pub async fn commit_json(disk: &dyn Disk, name: &str, record: &impl Serialize) -> io::Result<()> {
    disk.commit(name, serde_json::to_vec(record)?).await
}

/// Every durable record, read as JSON.
///
/// # Errors
/// When the disk cannot be read, or a record is not what it should be: the node
/// must not start on a guess.
pub async fn records_json<T: DeserializeOwned>(disk: &dyn Disk) -> io::Result<BTreeMap<String, T>> {
    let mut records = BTreeMap::new();
    for (name, bytes) in disk.records().await? {
        let record = serde_json::from_slice(&bytes).map_err(|error| {
            let what = format!("the durable record '{name}' cannot be read: {error}");
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        records.insert(name, record);
    }
    Ok(records)
}
