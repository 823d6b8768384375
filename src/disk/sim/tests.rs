//! The disk bites: what does not sync, has no checksum, or is made under its final
//! name loses or tears what it kept, on the same disk on which the engine loses nothing.

use std::{cell::RefCell, rc::Rc, time::Duration};

use rand_chacha::ChaCha8Rng;
use redb::StorageBackend;

use super::{folder::SimFile, *};
use crate::{
    disk::engine::{Folder, create},
    rng::stream,
};

/// What keeps one record, the count of its commits, with some weight to it.
trait Keeper: Sized {
    fn open(folder: SimFolder) -> io::Result<(Self, Option<Vec<u8>>)>;
    fn keep(&mut self, record: &[u8]) -> io::Result<()>;
}

/// What became of the commits of many lives that ended in a cut.
#[derive(Debug, Default)]
struct Figures {
    cuts: u32,
    acknowledged: u64,
    /// Lives that began with less than had been acknowledged.
    lost: u32,
    /// Lives that began with what was never written.
    torn: u32,
    /// Lives that could not begin.
    refused: u32,
}

/// What is kept under a count: as long as it is drawn, and told from any other.
fn record(count: u64) -> Vec<u8> {
    let mut record = count.to_le_bytes().to_vec();
    let length = count.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 5000;
    record.extend((0..length).map(|at| (at ^ count) as u8));
    record
}

/// Lives of one machine, each cut inside one of its disk operations.
fn lives<K: Keeper + 'static>(seed: u64, cuts: u32, figures: &Rc<RefCell<Figures>>) {
    let mut builder = turmoil::Builder::new();
    builder
        .rng_seed(seed)
        .epoch(std::time::UNIX_EPOCH)
        .simulation_duration(Duration::MAX);
    let mut sim = builder.build();
    let disk = SimDisk::new(stream(seed, "disk", 0));
    let acknowledged = Rc::new(RefCell::new(0));
    let (told, count, of_host) = (figures.clone(), acknowledged.clone(), disk.clone());
    sim.host("machine", move || {
        let (told, count, disk) = (told.clone(), count.clone(), of_host.clone());
        disk.0.state().on = true;
        async move {
            live::<K>(&disk.0, &told, &count);
            // Refused or cut: what is left of this life is its end.
            std::future::pending::<()>().await;
            Ok(())
        }
    });
    let mut rng: ChaCha8Rng = stream(seed, "cuts", 0);
    for _ in 0..cuts {
        disk.cut_inside(rng.random_range(1..150), 0);
        sim.step().expect("it goes on");
        disk.take_cut();
        disk.lose_power();
        sim.crash("machine");
        figures.borrow_mut().cuts += 1;
        sim.bounce("machine");
    }
    disk.kill();
}

/// One life: commits until the power goes.
fn live<K: Keeper>(machine: &Arc<Machine>, figures: &RefCell<Figures>, count: &RefCell<u64>) {
    let mut figures = figures.borrow_mut();
    let opened = SimFolder::take_over(machine).and_then(K::open);
    let (mut keeper, found) = match opened {
        Ok(opened) => opened,
        Err(_) => {
            figures.refused += u32::from(machine.state().on);
            return;
        }
    };
    let mut count = count.borrow_mut();
    let found_count = found.as_deref().map_or(0, |found| {
        found
            .first_chunk()
            .map_or(u64::MAX, |count| u64::from_le_bytes(*count))
    });
    // One that was cut short may have come through.
    match found {
        Some(found) if found_count > *count + 1 || found != record(found_count) => {
            figures.torn += 1;
            return;
        }
        _ if found_count < *count => figures.lost += 1,
        _ => {}
    }
    *count = found_count;
    while keeper.keep(&record(*count + 1)).is_ok() {
        *count += 1;
        figures.acknowledged += 1;
    }
}

fn figures<K: Keeper + 'static>() -> Figures {
    let figures = Rc::new(RefCell::new(Figures::default()));
    for seed in 0..60 {
        lives::<K>(seed, 20, &figures);
    }
    let figures = figures.take();
    println!("{}: {figures:?}", std::any::type_name::<K>());
    assert_eq!(figures.cuts, 1200);
    figures
}

/// The engine, on a folder that may be made worse.
struct Kept(Engine);

impl Kept {
    fn on(folder: &impl Folder) -> io::Result<(Self, Option<Vec<u8>>)> {
        let (engine, mut records) = Engine::open(folder, Missing::Create)?;
        Ok((Self(engine), records.remove("count")))
    }
}

impl Keeper for Kept {
    fn open(folder: SimFolder) -> io::Result<(Self, Option<Vec<u8>>)> {
        Self::on(&folder)
    }

    fn keep(&mut self, record: &[u8]) -> io::Result<()> {
        let batch = Batch::from([("count".to_owned(), Some(record.to_vec()))]);
        self.0.commit(&batch, Sync::Now)
    }
}

#[test]
fn the_engine_loses_nothing() {
    let figures = figures::<Kept>();
    let wrong = (figures.lost, figures.torn, figures.refused);
    assert_eq!(wrong, (0, 0, 0));
    assert!(figures.acknowledged > 1000, "{figures:?}");
}

/// A folder whose files are never synced.
struct NoSync(SimFolder);

#[derive(Debug)]
struct NeverSynced(SimFile);

impl StorageBackend for NeverSynced {
    fn len(&self) -> io::Result<u64> {
        StorageBackend::len(&self.0)
    }

    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(at, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        // Not even when the file is made: it would be refused, and nothing be lost.
        match self.0.name.as_str() {
            FILE => Ok(()),
            _ => self.0.sync_data(),
        }
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(at, bytes)
    }
}

/// A folder in which the file is made under its final name.
struct NoRename(SimFolder);

macro_rules! folder {
    ($folder:ident, $file:ty, $wrap:expr, $name:expr, $rename:expr) => {
        impl Folder for $folder {
            type File = $file;

            fn exists(&self, name: &str) -> io::Result<bool> {
                match $name(name) == name {
                    true => self.0.exists(name),
                    false => Ok(false),
                }
            }

            fn open(&self, name: &str) -> io::Result<$file> {
                Folder::open(&self.0, $name(name)).map($wrap)
            }

            fn remove(&self, name: &str) -> io::Result<()> {
                self.0.remove(name)
            }

            fn rename(&self, from: &str, to: &str) -> io::Result<()> {
                match $rename {
                    true => self.0.rename(from, to),
                    false => Ok(()),
                }
            }

            fn sync(&self) -> io::Result<()> {
                Folder::sync(&self.0)
            }

            fn path(&self, name: &str) -> String {
                self.0.path(name)
            }
        }
    };
}

folder!(NoSync, NeverSynced, NeverSynced, |name| name, true);
folder!(NoRename, SimFile, |file| file, |_: &str| FILE, false);

struct WithoutSync(Kept);

impl Keeper for WithoutSync {
    fn open(folder: SimFolder) -> io::Result<(Self, Option<Vec<u8>>)> {
        let (kept, found) = Kept::on(&NoSync(folder))?;
        Ok((Self(kept), found))
    }

    fn keep(&mut self, record: &[u8]) -> io::Result<()> {
        self.0.keep(record)
    }
}

#[test]
fn without_a_sync_what_was_acknowledged_is_lost() {
    let figures = figures::<WithoutSync>();
    assert!(figures.lost + figures.refused > 100, "{figures:?}");
    assert!(figures.lost > 20, "{figures:?}");
}

struct WithoutRename(Kept);

impl Keeper for WithoutRename {
    fn open(folder: SimFolder) -> io::Result<(Self, Option<Vec<u8>>)> {
        // A file that is made under its final name is durable with its folder.
        let new = !turmoil_fs::exists(path(FILE));
        let folder = NoRename(folder);
        if new {
            drop(Folder::open(&folder, FILE)?);
            Folder::sync(&folder)?;
            create(&folder)?;
        }
        let (kept, found) = Kept::on(&folder)?;
        Ok((Self(kept), found))
    }

    fn keep(&mut self, record: &[u8]) -> io::Result<()> {
        self.0.keep(record)
    }
}

#[test]
fn without_a_rename_a_file_that_was_cut_short_cannot_be_opened() {
    let figures = figures::<WithoutRename>();
    assert!(figures.refused > 0, "{figures:?}");
    assert!(
        figures.acknowledged > 100,
        "one that was not cut short is whole"
    );
    assert_eq!((figures.lost, figures.torn), (0, 0), "{figures:?}");
}

/// A journal of lengths and records, each synced, with no checksum.
struct WithoutChecksum {
    file: SimFile,
    end: u64,
}

impl Keeper for WithoutChecksum {
    fn open(folder: SimFolder) -> io::Result<(Self, Option<Vec<u8>>)> {
        let file = Folder::open(&folder, "journal")?;
        Folder::sync(&folder)?;
        let mut bytes = vec![0; StorageBackend::len(&file)? as usize];
        file.read(0, &mut bytes)?;
        let (mut end, mut last) = (0, None);
        while let Some((length, rest)) = bytes[end..].split_first_chunk() {
            let length = u64::from_le_bytes(*length) as usize;
            if length == 0 || length > rest.len() {
                break;
            }
            last = Some(rest[..length].to_vec());
            end += 8 + length;
        }
        file.set_len(end as u64)?;
        file.sync_data()?;
        let end = end as u64;
        Ok((Self { file, end }, last))
    }

    fn keep(&mut self, record: &[u8]) -> io::Result<()> {
        let mut bytes = (record.len() as u64).to_le_bytes().to_vec();
        bytes.extend(record);
        self.file.write(self.end, &bytes)?;
        self.file.sync_data()?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

#[test]
fn without_a_checksum_a_torn_record_is_taken_for_a_whole_one() {
    let figures = figures::<WithoutChecksum>();
    assert!(figures.torn > 0, "{figures:?}");
}
