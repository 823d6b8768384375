//! Records in a real file, for a node in service.

use std::{
    cell::{Cell, RefCell},
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use redb::backends::FileBackend;

use super::{
    Batch, Disk, Records,
    engine::{Engine, Folder, Missing, Sync},
};
use crate::net::LocalFuture;

/// Records in one redb file, `records.redb`, in a folder of the node's own.
///
/// A commit is two writes and four syncs of the file, on the thread that asks: a server
/// answers nobody meanwhile anyway. It is made twice, since no checksum covers the bit in
/// redb's header that names the newer of its last two commits: rot of that one brings the
/// older back, which is to hold the same. A second process that opens the same folder is
/// refused.
pub struct FileDisk {
    folder: RealFolder,
    /// A file that was there once and is gone is not made anew.
    missing: Cell<Missing>,
    engine: RefCell<Option<Engine>>,
}

impl FileDisk {
    /// The disk of a node that starts for the first time: makes the folder and the file.
    ///
    /// # Errors
    /// When the folder cannot be made, or holds a file already: a node that took it for
    /// an empty one would forget every token that it granted.
    pub fn create(folder: impl AsRef<Path>) -> io::Result<Self> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder)?;
        let disk = Self::at(folder, Missing::Create);
        if disk.folder.exists(super::engine::FILE)? {
            let path = disk.folder.path(super::engine::FILE);
            let what = format!("the durable file '{path}' is there already: open it");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Ok(disk)
    }

    /// The disk of a node that has run before. A file that is missing or corrupted is
    /// refused when the node asks for its records.
    pub fn open(folder: impl AsRef<Path>) -> Self {
        Self::at(folder.as_ref(), Missing::Refuse)
    }

    fn at(folder: &Path, missing: Missing) -> Self {
        Self {
            folder: RealFolder(folder.to_owned()),
            missing: Cell::new(missing),
            engine: RefCell::default(),
        }
    }

    fn apply(&self, batch: &Batch, sync: Sync) -> io::Result<()> {
        let mut engine = self.engine.borrow_mut();
        let Some(open) = &mut *engine else {
            return Err(super::not_open());
        };
        open.commit(batch, sync)?;
        match sync {
            Sync::Now => open.commit(&Batch::new(), Sync::Now),
            Sync::Later => Ok(()),
        }
    }
}

impl Disk for FileDisk {
    fn commit(&self, batch: Batch) -> LocalFuture<'_, io::Result<()>> {
        Box::pin(std::future::ready(self.apply(&batch, Sync::Now)))
    }

    fn write(&self, batch: Batch) -> LocalFuture<'_, io::Result<()>> {
        Box::pin(std::future::ready(self.apply(&batch, Sync::Later)))
    }

    fn records(&self) -> LocalFuture<'_, io::Result<Records>> {
        // The old one holds the file's lock.
        drop(self.engine.take());
        let opened = Engine::open(&self.folder, self.missing.get()).map(|(engine, records)| {
            self.missing.set(Missing::Refuse);
            *self.engine.borrow_mut() = Some(engine);
            records
        });
        Box::pin(std::future::ready(opened))
    }
}

struct RealFolder(PathBuf);

impl Folder for RealFolder {
    type File = FileBackend;

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.0.join(name).try_exists()
    }

    fn open(&self, name: &str) -> io::Result<FileBackend> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        FileBackend::new(options.open(self.0.join(name))?).map_err(io::Error::other)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}
