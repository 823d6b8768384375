//! A simulated disk, on turmoil's file system, that fails as the schedule wants it.
//!
//! What was written and not synced is kept here, above turmoil's file: a crash of the
//! process leaves it to the operating system, a loss of power leaves an arbitrary
//! subset of its 512-byte sectors (turmoil itself would leave a prefix of each write,
//! which misses what a missing checksum lets through). A failed sync does the same at
//! once: what could not be written is dropped and never tried again.

mod folder;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io,
    os::unix::fs::FileExt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use deposed_checkers::history::{Nanos, Token};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use tokio::sync::Notify;
use turmoil::fs::shim::std::fs::{self as turmoil_fs, OpenOptions};

use super::{
    Batch, Disk, RESTORED, Records, Restored,
    engine::{Engine, FILE, Missing, Sync},
    put_json,
    unsynced::{Change, Unsynced},
};
use crate::{clock::Clock, net::LocalFuture};
use folder::SimFolder;

/// The disk of one simulated machine, across its boots, as the world handles it.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Machine>);

#[derive(Debug)]
struct Machine {
    state: Mutex<State>,
    /// Slow syncs end.
    quick: Notify,
}

#[derive(Debug)]
struct State {
    rng: ChaCha8Rng,
    /// By file: what is written and not synced.
    unsynced: BTreeMap<String, Unsynced>,
    /// Whether the machine has power, and its process may use the disk.
    on: bool,
    /// What the engine that is open may do ends with this.
    handle: Arc<AtomicBool>,
    /// The power went since the last boot.
    lost_power: bool,
    /// The file was there once.
    made: bool,
    /// Disk operations until the power goes, and for how long.
    fuse: Option<(u32, Nanos)>,
    /// Inside which operation it went, and for how long.
    cut: Option<(&'static str, Nanos)>,
    /// So many operations fail.
    errors: u32,
    /// The longest delays of syncs, of the faults in force.
    slow: Vec<Nanos>,
    /// How many faults in force have it full.
    full: u32,
    backup: Backup,
    /// The operator's floor, until the old copy is in place.
    restoring: Option<Token>,
}

#[derive(Debug)]
enum Backup {
    None,
    /// The file as it is on the disk now; read before that changes.
    Due,
    Taken(Vec<u8>),
}

impl SimDisk {
    /// An empty disk; `rng` draws what survives.
    pub fn new(rng: ChaCha8Rng) -> Self {
        let state = State {
            rng,
            unsynced: Default::default(),
            on: false,
            handle: Arc::default(),
            lost_power: false,
            made: false,
            fuse: None,
            cut: None,
            errors: 0,
            slow: Vec::new(),
            full: 0,
            backup: Backup::None,
            restoring: None,
        };
        Self(Arc::new(Machine {
            state: Mutex::new(state),
            quick: Notify::new(),
        }))
    }

    /// The disk as the machine's next boot has it.
    pub fn boot(&self, clock: Arc<dyn Clock>) -> impl Disk + use<> {
        self.0.state().on = true;
        Boot {
            machine: self.0.clone(),
            clock,
            engine: RefCell::default(),
        }
    }

    /// The process is killed: nothing of it touches the disk any more. To be called
    /// before it is torn down, since redb closes its file in order when dropped.
    pub fn kill(&self) {
        let mut state = self.0.state();
        state.on = false;
        state.handle.store(false, Relaxed);
    }

    /// The power goes: as [`SimDisk::kill`], and what was not synced is as it may be.
    pub fn lose_power(&self) {
        self.kill();
        self.0.state().lost_power = true;
    }

    /// The power goes inside the `operations`th operation from here, from 1, for `length`
    /// ns. Of two that are armed the sooner strikes.
    pub fn cut_inside(&self, operations: u32, length: Nanos) {
        let mut state = self.0.state();
        if state.fuse.is_none_or(|(left, _)| operations < left) {
            state.fuse = Some((operations, length));
        }
    }

    /// Inside which operation the power went, and for how long, once. The process is
    /// still there, and waits for its end: [`SimDisk::lose_power`].
    pub fn take_cut(&self) -> Option<(&'static str, Nanos)> {
        self.0.state().cut.take()
    }

    /// The next `count` operations fail.
    pub fn fail(&self, count: u32) {
        let mut state = self.0.state();
        state.errors = state.errors.saturating_add(count);
    }

    /// Each commit takes up to `by` ns of the node's clock, until [`SimDisk::quicken`].
    pub fn slow(&self, by: Nanos) {
        self.0.state().slow.push(by);
    }

    /// Ends one [`SimDisk::slow`].
    pub fn quicken(&self, by: Nanos) {
        let mut state = self.0.state();
        if let Some(at) = state.slow.iter().position(|slow| *slow == by) {
            state.slow.remove(at);
        }
        if state.slow.is_empty() {
            self.0.quick.notify_waiters();
        }
    }

    /// Nothing can be written, until [`SimDisk::free`].
    pub fn fill(&self) {
        self.0.state().full += 1;
    }

    /// Ends one [`SimDisk::fill`].
    pub fn free(&self) {
        let mut state = self.0.state();
        state.full = state.full.saturating_sub(1);
    }

    /// Takes a copy of what is on the disk.
    pub fn back_up(&self) {
        self.0.state().backup = Backup::Due;
    }

    /// Whether there is a copy to restore.
    pub fn has_backup(&self) -> bool {
        let state = self.0.state();
        // Before the file was made there was nothing to copy.
        match state.backup {
            Backup::None => false,
            Backup::Due => state.made,
            Backup::Taken(_) => true,
        }
    }

    /// The next boot finds the copy, and the operator's floor with it.
    pub fn restore(&self, floor: Token) {
        self.0.state().restoring = Some(floor);
    }

    /// Takes back what is armed and has not struck.
    pub fn disarm(&self) {
        let mut state = self.0.state();
        state.fuse = None;
        state.errors = 0;
    }
}

impl Machine {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere fails the run by itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an operation did not go through.
enum Stop {
    /// There is no power, or the process is gone.
    Off,
    /// The power went inside it.
    Cut,
    Failed(io::Error),
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Off | Stop::Cut => io::Error::other("the power is off"),
            Stop::Failed(error) => error,
        }
    }
}

impl State {
    /// Every disk operation passes here.
    fn pass(&mut self, handle: &AtomicBool, operation: &'static str) -> Result<(), Stop> {
        if !self.on || !handle.load(Relaxed) {
            return Err(Stop::Off);
        }
        if let Some((left, length)) = &mut self.fuse {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.on = false;
                self.cut = Some((operation, *length));
                self.fuse = None;
                return Err(Stop::Cut);
            }
        }
        if self.errors > 0 {
            self.errors -= 1;
            return Err(Stop::Failed(io::Error::other("an I/O error of the disk")));
        }
        // A disk that allocates as it is written to, so that it can be full for any write.
        if self.full > 0 && matches!(operation, "write" | "set-length" | "create") {
            let full = io::Error::new(io::ErrorKind::StorageFull, "the disk is full");
            return Err(Stop::Failed(full));
        }
        Ok(())
    }

    /// Brings changes to the disk itself.
    fn sync(&mut self, name: &str, changes: Vec<Change>) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        self.copy_if_due()?;
        let file = OpenOptions::new().write(true).open(path(name))?;
        for change in changes {
            match change {
                Change::Length(length) => file.set_len(length)?,
                Change::Write { at, bytes } => file.write_all_at(&bytes, at)?,
            }
        }
        file.sync_data()
    }

    /// A backup that is due is of the file as it still is.
    fn copy_if_due(&mut self) -> io::Result<()> {
        if matches!(self.backup, Backup::Due) {
            self.backup = match turmoil_fs::exists(path(FILE)) {
                true => Backup::Taken(turmoil_fs::read(path(FILE))?),
                false => Backup::None,
            };
        }
        Ok(())
    }

    /// What a machine finds that lost power, and what its operator did meanwhile.
    fn settle(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.lost_power) {
            for (name, mut unsynced) in std::mem::take(&mut self.unsynced) {
                let survivors = unsynced.survivors(&mut self.rng);
                // A file whose folder was not synced is gone.
                if turmoil_fs::exists(path(&name)) {
                    self.sync(&name, survivors)?;
                }
            }
        }
        if self.restoring.is_some() {
            self.copy_if_due()?;
            if let Backup::Taken(copy) = &self.backup {
                self.unsynced.remove(FILE);
                let file = OpenOptions::new().write(true).open(path(FILE))?;
                file.set_len(0)?;
                file.write_all_at(copy, 0)?;
                file.sync_data()?;
            }
        }
        Ok(())
    }
}

/// The disk as one boot of the machine has it.
struct Boot {
    machine: Arc<Machine>,
    clock: Arc<dyn Clock>,
    engine: RefCell<Option<Engine>>,
}

impl Boot {
    fn open(&self) -> io::Result<Records> {
        let folder = SimFolder::take_over(&self.machine)?;
        drop(self.engine.take());
        let missing = match self.machine.state().made {
            true => Missing::Refuse,
            false => Missing::Create,
        };
        let (mut engine, mut records) = Engine::open(&folder, missing)?;
        let restoring = self.machine.state().restoring;
        if let Some(floor) = restoring {
            let mut batch = Batch::new();
            put_json(&mut batch, RESTORED.to_owned(), &Restored { floor })?;
            engine.commit(&batch, Sync::Now)?;
            records.extend(batch.into_iter().filter_map(|(name, it)| Some((name, it?))));
        }
        let mut state = self.machine.state();
        state.restoring = None;
        state.made = true;
        *self.engine.borrow_mut() = Some(engine);
        Ok(records)
    }

    async fn apply(&self, batch: Batch, sync: Sync) -> io::Result<()> {
        // Some of the time passes before the data is durable, and some after.
        let (before, after) = self.delays();
        self.wait(before).await;
        let applied = match &mut *self.engine.borrow_mut() {
            Some(engine) => engine.commit(&batch, sync),
            None => Err(super::not_open()),
        };
        self.stop_without_power().await;
        applied?;
        self.wait(after).await;
        Ok(())
    }

    fn delays(&self) -> (Nanos, Nanos) {
        let mut state = self.machine.state();
        let Some(&longest) = state.slow.iter().max() else {
            return (0, 0);
        };
        let whole = state.rng.random_range(0..=longest);
        let before = state.rng.random_range(0..=whole);
        (before, whole - before)
    }

    async fn wait(&self, length: Nanos) {
        if length == 0 {
            return;
        }
        let quick = self.machine.quick.notified();
        let until = self.clock.now().saturating_add(length);
        tokio::select! {
            biased;
            () = quick => {}
            () = self.clock.sleep_until(until) => {}
        }
    }

    /// A process without power does nothing more.
    async fn stop_without_power(&self) {
        let on = self.machine.state().on;
        if !on {
            std::future::pending::<()>().await;
        }
    }
}

impl Disk for Boot {
    fn commit(&self, batch: Batch) -> LocalFuture<'_, io::Result<()>> {
        Box::pin(self.apply(batch, Sync::Now))
    }

    fn write(&self, batch: Batch) -> LocalFuture<'_, io::Result<()>> {
        Box::pin(self.apply(batch, Sync::Later))
    }

    fn records(&self) -> LocalFuture<'_, io::Result<Records>> {
        Box::pin(async move {
            let opened = self.open();
            self.stop_without_power().await;
            opened
        })
    }
}

fn path(name: &str) -> String {
    format!("/{name}")
}

#[cfg(test)]
mod tests;
