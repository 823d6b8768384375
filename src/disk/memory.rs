//! A disk that never fails.

use std::{cell::RefCell, io, rc::Rc};

use super::{Batch, Disk, Records};
use crate::net::LocalFuture;

/// A disk that never fails, in memory: clones share it, so it survives a simulated
/// crash of the node, though not the end of the process.
#[derive(Clone, Default)]
pub struct MemoryDisk(Rc<RefCell<Records>>);

impl Disk for MemoryDisk {
    fn commit(&self, batch: Batch) -> LocalFuture<'_, io::Result<()>> {
        let mut records = self.0.borrow_mut();
        for (name, record) in batch {
            match record {
                Some(record) => records.insert(name, record),
                None => records.remove(&name),
            };
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn records(&self) -> LocalFuture<'_, io::Result<Records>> {
        Box::pin(std::future::ready(Ok(self.0.borrow().clone())))
    }
}
