//! The shells that run in simulation, over real TCP on loopback with the machine's own
//! clock and no simulator.

mod bad_frames;
mod failover;
mod refusal;

use std::{
    path::Path,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use deposed::{
    checkers::history::{Event, Name},
    clock::BootClock,
    cluster::Cluster,
    disk::{Disk, FileDisk, MemoryDisk},
    lease::LeaseConfig,
    net::{
        LocalFuture,
        tcp::{AddressBook, TcpNet},
    },
    node::{
        Node, Panics, Parts,
        gate::{Gate, Process},
    },
    recorder::Recorder,
    rng::stream,
    run::Header,
    system::{Deposed, Setup, System},
    workload::{MS, Traffic, Workload},
};
use tokio::net::TcpListener;

/// Long enough for a loaded machine; a healthy one needs a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(60);

struct Loopback {
    recorder: Recorder,
    gates: Vec<(Name, Gate)>,
    panics: Panics,
    book: Rc<AddressBook>,
}

impl Loopback {
    /// Boots every node of the header's cluster on this thread.
    async fn boot(header: &Header) -> std::io::Result<Self> {
        let clock = Arc::new(BootClock::starting_now());
        let recorder = Recorder::new(clock.clone());
        let panics = Panics::default();
        let mut listeners = Vec::new();
        let mut book = AddressBook::new();
        for server in [Cluster::STORE, Cluster::STORAGE] {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            book.insert(server.into(), listener.local_addr()?);
            listeners.push((Name::from(server), listener));
        }
        let book = Rc::new(book);
        let mut gates = Vec::new();
        for name in header.cluster.node_names() {
            let at = listeners.iter().position(|(server, _)| *server == name);
            let net = match at.map(|at| listeners.swap_remove(at).1) {
                Some(listener) => TcpNet::listening(name.clone(), listener, book.clone()),
                None => TcpNet::new(name.clone(), book.clone()),
            };
            let gate = Gate::default();
            let node = Node::new(Parts {
                name: name.clone(),
                boots: 1,
                clock: clock.clone(),
                net: Rc::new(net),
                disk: disk_of(&name)?,
                rng: stream(header.seed, &name, 1),
                recorder: recorder.clone(),
                gate: gate.clone(),
                panics: panics.clone(),
            });
            let body = boot(node, header.setup(), &name);
            #[expect(clippy::disallowed_methods, reason = "a process has its own gate")]
            tokio::task::spawn_local(Process::new(&name, gate.clone(), body));
            gates.push((name, gate));
        }
        Ok(Self {
            recorder,
            gates,
            panics,
            book,
        })
    }

    fn gate(&self, name: &Name) -> &Gate {
        let found = self.gates.iter().find(|(node, _)| node == name);
        &found.expect("a node of the cluster").1
    }

    /// Waits until an event recorded from `from` on is the one looked for, and tells
    /// where it stands and whose it is.
    async fn until(
        &self,
        what: &str,
        from: usize,
        wanted: impl Fn(&Event) -> bool,
    ) -> (usize, Name) {
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let (mut at, mut found) = (from, None);
                self.recorder.look(from, |event| {
                    if found.is_none() && wanted(event) {
                        found = Some((at, event.process.clone()));
                    }
                    at += 1;
                });
                if let Some(found) = found {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        found
            .await
            .unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
    }
}

/// Servers keep their state in files of their own, as in service.
fn disk_of(name: &Name) -> std::io::Result<Rc<dyn Disk>> {
    static FOLDERS: AtomicU64 = AtomicU64::new(0);
    if ![Cluster::STORE, Cluster::STORAGE].contains(&name.as_str()) {
        return Ok(Rc::new(MemoryDisk::default()));
    }
    let nth = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder = format!("loopback-{}-{nth}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    Ok(Rc::new(FileDisk::create(folder)?))
}

fn boot(node: Node, setup: Setup, name: &Name) -> LocalFuture<'static, ()> {
    match name.as_str() {
        Cluster::STORE => Deposed.store(node, setup),
        Cluster::STORAGE => Deposed.storage(node, setup),
        _ => Deposed.client(node, setup),
    }
}

/// Two clients with a ttl of 300 ms.
fn header() -> Header {
    let mut workload = Workload::named("loopback");
    workload.cluster.clients = 2;
    workload.lease = LeaseConfig::for_ttl(300 * MS);
    workload.traffic = Traffic::for_ttl(300 * MS);
    Header::of(&workload, 7, "deposed", None)
}
