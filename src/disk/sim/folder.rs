//! The machine's folder and files as an engine has them: every operation passes the
//! machine's state, and what is written waits there for a sync.

use std::{
    io,
    os::unix::fs::FileExt,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use redb::StorageBackend;
use turmoil::fs::shim::std::fs::{self as turmoil_fs, File, OpenOptions};

use super::{Machine, State, Stop, path};
use crate::disk::{
    engine::Folder,
    unsynced::{Change, Unsynced},
};

/// The machine's folder, as one engine has it.
pub(super) struct SimFolder {
    machine: Arc<Machine>,
    handle: Arc<AtomicBool>,
}

impl SimFolder {
    /// For a new engine: whatever an old one still wants to do is not done.
    pub(super) fn take_over(machine: &Arc<Machine>) -> io::Result<Self> {
        let handle = Arc::new(AtomicBool::new(true));
        let mut state = machine.state();
        let old = std::mem::replace(&mut state.handle, handle.clone());
        old.store(false, Relaxed);
        state.settle()?;
        drop(state);
        let machine = machine.clone();
        Ok(Self { machine, handle })
    }

    fn pass(&self, operation: &'static str) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.machine.state();
        state.pass(&self.handle, operation)?;
        Ok(state)
    }
}

impl Folder for SimFolder {
    type File = SimFile;

    fn exists(&self, name: &str) -> io::Result<bool> {
        let _state = self.pass("look")?;
        Ok(turmoil_fs::exists(path(name)))
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        let new = !turmoil_fs::exists(path(name));
        let state = self.pass(if new { "create" } else { "open" })?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(new)
            .open(path(name))?;
        drop(state);
        Ok(SimFile {
            machine: self.machine.clone(),
            handle: self.handle.clone(),
            name: name.to_owned(),
            file,
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.pass("remove")?;
        state.unsynced.remove(name);
        turmoil_fs::remove_file(path(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.pass("rename")?;
        if let Some(unsynced) = state.unsynced.remove(from) {
            state.unsynced.insert(to.to_owned(), unsynced);
        }
        turmoil_fs::rename(path(from), path(to))
    }

    fn sync(&self) -> io::Result<()> {
        let _state = self.pass("sync-folder")?;
        turmoil_fs::sync_dir("/")
    }

    fn path(&self, name: &str) -> String {
        path(name)
    }
}

/// One file, as one engine has it.
#[derive(Debug)]
pub(super) struct SimFile {
    machine: Arc<Machine>,
    handle: Arc<AtomicBool>,
    pub(super) name: String,
    file: File,
}

impl SimFile {
    fn pass(&self, operation: &'static str) -> Result<MutexGuard<'_, State>, io::Error> {
        let mut state = self.machine.state();
        state.pass(&self.handle, operation)?;
        Ok(state)
    }

    fn length(&self, state: &State) -> io::Result<u64> {
        let synced = self.file.metadata()?.len();
        let unsynced = state.unsynced.get(&self.name);
        Ok(unsynced.map_or(synced, |unsynced| unsynced.len(synced)))
    }

    /// A change to the file; one that is cut short or fails may have come through in part.
    fn change(&self, operation: &'static str, change: Change) -> io::Result<()> {
        let mut state = self.machine.state();
        let passed = state.pass(&self.handle, operation);
        let State { rng, unsynced, .. } = &mut *state;
        let unsynced = unsynced.entry(self.name.clone()).or_default();
        match passed {
            Ok(()) => unsynced.push(change),
            Err(Stop::Off) => return Err(Stop::Off.into()),
            Err(Stop::Cut) => {
                unsynced.push(change);
                return Err(Stop::Cut.into());
            }
            Err(Stop::Failed(error)) => {
                let mut partly = Unsynced::default();
                partly.push(change);
                for survivor in partly.survivors(rng) {
                    unsynced.push(survivor);
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

impl StorageBackend for SimFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.pass("length")?;
        self.length(&state)
    }

    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.pass("read")?;
        if at + out.len() as u64 > self.length(&state)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut read = 0;
        while read < out.len() {
            match self.file.read_at(&mut out[read..], at + read as u64)? {
                // Beyond what was synced of it.
                0 => break,
                more => read += more,
            }
        }
        out[read..].fill(0);
        if let Some(unsynced) = state.unsynced.get(&self.name) {
            unsynced.overlay(at, out);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change("set-length", Change::Length(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.machine.state();
        let passed = state.pass(&self.handle, "sync");
        if matches!(passed, Err(Stop::Off | Stop::Cut)) {
            return passed.map_err(io::Error::from);
        }
        let mut unsynced = state.unsynced.remove(&self.name).unwrap_or_default();
        let changes = match &passed {
            Ok(()) => unsynced.all(),
            Err(_) => unsynced.survivors(&mut state.rng),
        };
        state.sync(&self.name, changes)?;
        passed.map_err(io::Error::from)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let bytes = bytes.to_vec();
        self.change("write", Change::Write { at, bytes })
    }
}
