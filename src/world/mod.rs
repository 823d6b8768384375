//! The simulated world: a header becomes a running turmoil simulation, step by step,
//! with faults injected and everything recorded.
//!
//! What knows turmoil is here and in `net/sim.rs`. One step is one tick of 1 ms.
//! Between two steps the world looks at what was recorded, asks every client what it
//! believes, heals what is due and injects what is due, in that order.

mod clocks;
mod disks;
mod heal;
mod inject;
mod links;
mod queue;
mod targets;
mod watch;

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    ops::RangeInclusive,
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use deposed_checkers::history::{Event, Name, Nanos, RatePpb};
use serde_json::json;

use crate::{
    clock::{Drift, DriftingClock, TrueTime},
    cluster::Role,
    disk::{Disk, MemoryDisk, sim::SimDisk},
    net::{
        LocalFuture,
        sim::{Cuts, Rules, SimNet},
    },
    node::{
        Node, Panics, Parts,
        gate::{Gate, Process},
    },
    recorder::Recorder,
    rng::stream,
    run::Header,
    system::{Setup, System},
    workload::MS,
};

use inject::Injector;
use watch::Watch;

/// The length of one step. At 5 or 10 ms messages can arrive before they were sent.
pub const TICK: Nanos = MS;

/// The ports of a node, for the connections that it opens. One that nobody accepted keeps
/// its port to the end of the run.
pub const PORTS: RangeInclusive<u16> = 1024..=u16::MAX;

/// Connections that may wait for a paused server; turmoil panics when its backlog
/// overflows. More than all the ports of all the clients that there may be.
const BACKLOG: usize = 1 << 21;

/// What a run brought forth.
pub struct Recorded {
    /// Every event, by time.
    pub history: Vec<Event>,
    /// Panics of node tasks: (node, message).
    pub panics: Vec<(Name, String)>,
    /// The first time at which a client's `is_leader()` was not what its records said.
    pub discrepancy: Option<String>,
}

/// Runs a header on a system, from the first step to the last.
///
/// # Errors
/// When turmoil itself gives up.
pub fn record(header: &Header, system: &Arc<dyn System>) -> Result<Recorded, String> {
    steps(header, system, None)
}

/// How often [`record_while`] shows what was recorded, in steps.
const LOOK_EVERY: u32 = 50;

/// The same, as long as whoever watches wants more. Shown are the events since the last
/// look, in the order of the history; their indices are not yet those of the history.
///
/// # Errors
/// When turmoil itself gives up.
pub fn record_while(
    header: &Header,
    system: &Arc<dyn System>,
    mut more: impl FnMut(&mut [Event]) -> bool,
) -> Result<Recorded, String> {
    steps(header, system, Some(&mut more))
}

/// Whether whoever watches wants more.
type Watcher<'a> = &'a mut dyn FnMut(&mut [Event]) -> bool;

fn steps(
    header: &Header,
    system: &Arc<dyn System>,
    mut watcher: Option<Watcher<'_>>,
) -> Result<Recorded, String> {
    let mut world = World::new(header, system);
    let chaos_ends = header.chaos;
    let ends = header.chaos.saturating_add(header.calm);
    let mut calm = false;
    let (mut step, mut shown) = (0, 0);
    while world.time.true_now() < ends {
        world.step()?;
        if !calm && world.time.true_now() >= chaos_ends {
            calm = true;
            world.heal_everything();
        }
        step += 1;
        if let Some(more) = &mut watcher
            && step % LOOK_EVERY == 0
        {
            let mut events = world.recorder.since(shown);
            shown += events.len();
            if !more(&mut events) {
                break;
            }
        }
    }
    let history = world.recorder.finish();
    let panics = world.panics.borrow().clone();
    Ok(Recorded {
        history,
        panics,
        discrepancy: world.watch.discrepancy.take(),
    })
}

struct World {
    sim: turmoil::Sim<'static>,
    actors: Vec<Actor>,
    time: Arc<SimTime>,
    recorder: Recorder,
    rules: Rc<Rules>,
    panics: Panics,
    injector: Injector,
    watch: Watch,
}

/// One node of the world, across its boots.
struct Actor {
    name: Name,
    role: Role,
    clock: DriftingClock,
    initial_rate: RatePpb,
    gate: Gate,
    /// The present boot; empty while the node is down.
    node: Rc<RefCell<Option<Node>>>,
    boots: Rc<Cell<u64>>,
    /// Where its disk can fail.
    disk: Option<SimDisk>,
}

impl World {
    fn new(header: &Header, system: &Arc<dyn System>) -> Self {
        let mut builder = turmoil::Builder::new();
        builder
            .rng_seed(header.seed)
            .epoch(UNIX_EPOCH)
            .tick_duration(Duration::from_nanos(TICK))
            .simulation_duration(Duration::MAX)
            .min_message_latency(Duration::from_nanos(header.network.min_latency))
            .max_message_latency(Duration::from_nanos(header.network.max_latency))
            .tcp_capacity(BACKLOG)
            .ephemeral_ports(PORTS)
            .enable_random_order();
        let mut sim = builder.build();
        let time = Arc::new(SimTime::default());
        let recorder = Recorder::new(time.clone());
        let chance = stream(header.seed, "flaky", 0);
        let rules = Rc::new(Rules::new(recorder.clone(), header.chaos, chance));
        let cuts = Rc::new(Cuts::default());
        let panics = Panics::default();
        let setup = header.setup();
        let actors: Vec<Actor> = header
            .cluster
            .nodes()
            .into_iter()
            .map(|(name, role)| Actor::new(name, role, header, &time))
            .collect();
        for actor in &actors {
            let (system, setup) = (system.clone(), setup.clone());
            actor.host(
                &mut sim,
                header.seed,
                system,
                setup,
                &recorder,
                &time,
                &rules,
                &cuts,
                &panics,
            );
        }
        let watch = Watch::new(actors.len());
        let injector = Injector::new(header, actors.len(), cuts);
        Self {
            sim,
            actors,
            time,
            recorder,
            rules,
            panics,
            injector,
            watch,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.ration(self.time.true_now() / TICK);
        self.sim.step().map_err(|error| error.to_string())?;
        let now = Nanos::try_from(self.sim.elapsed().as_nanos()).unwrap_or(Nanos::MAX);
        self.time.set(now);
        let (watch, injector) = (&mut self.watch, &mut self.injector);
        watch.read(&self.recorder, &self.actors, |moment, at| {
            injector.queue.on(moment, at)
        });
        watch.ask(&self.actors, now);
        self.catch_power_cuts(now);
        self.heal_due(now);
        self.inject_due(now);
        Ok(())
    }
}

impl Actor {
    fn new(name: Name, role: Role, header: &Header, time: &Arc<SimTime>) -> Self {
        let initial_rate = header.rate_of(&name);
        let drift = Drift::new(initial_rate, header.offset_of(&name));
        Self {
            role,
            clock: DriftingClock::new(time.clone(), drift),
            initial_rate,
            gate: Gate::default(),
            node: Rc::default(),
            boots: Rc::default(),
            disk: disks::of(role, header, &name),
            name,
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "each is one thing the host's closure keeps"
    )]
    fn host(
        &self,
        sim: &mut turmoil::Sim<'static>,
        seed: u64,
        system: Arc<dyn System>,
        setup: Setup,
        recorder: &Recorder,
        time: &Arc<SimTime>,
        rules: &Rc<Rules>,
        cuts: &Rc<Cuts>,
        panics: &Panics,
    ) {
        let (name, role) = (self.name.clone(), self.role);
        let (clock, gate) = (self.clock.clone(), self.gate.clone());
        let (slot, boots) = (self.node.clone(), self.boots.clone());
        let (memory, simulated) = (MemoryDisk::default(), self.disk.clone());
        let (recorder, panics) = (recorder.clone(), panics.clone());
        let (rules, cuts, time) = (rules.clone(), cuts.clone(), time.clone());
        sim.host(self.name.as_str(), move || {
            boots.set(boots.get() + 1);
            gate.reset();
            let disk: Rc<dyn Disk> = match &simulated {
                Some(disk) => Rc::new(disk.boot(Arc::new(clock.clone()))),
                None => Rc::new(memory.clone()),
            };
            let node = Node::new(Parts {
                name: name.clone(),
                boots: boots.get(),
                clock: Arc::new(clock.clone()),
                net: Rc::new(SimNet::new(name.clone(), rules.clone(), cuts.clone())),
                disk,
                rng: stream(seed, &name, boots.get()),
                recorder: recorder.clone(),
                gate: gate.clone(),
                panics: panics.clone(),
            });
            *slot.borrow_mut() = Some(node.clone());
            let body = boot(&*system, role, node.clone(), setup.clone());
            let process = Process::new(&name, gate.clone(), Box::pin(node.catching(body)));
            let time = time.clone();
            async move {
                let mut process = pin!(process);
                poll_fn(|context| {
                    time.look();
                    process.as_mut().poll(context)
                })
                .await;
                Ok(())
            }
        });
    }

    fn up(&self) -> bool {
        self.node.borrow().is_some()
    }
}

/// The body of the role that the node plays.
fn boot(system: &dyn System, role: Role, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
    match role {
        Role::Store => system.store(node, setup),
        Role::Storage => system.storage(node, setup),
        Role::Client => system.client(node, setup),
    }
}

/// True time in the simulation: turmoil's own as of the last poll of a process, the end
/// of the last step between steps. It stands still while a process is polled, and is
/// asked for many times in one poll, so it is looked up once. (Between steps turmoil may
/// be tearing a host down outside its runtime, where its clock would fall through to the
/// machine's.)
#[derive(Default)]
struct SimTime(AtomicU64);

impl SimTime {
    fn set(&self, now: Nanos) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// A process is about to be polled, inside a step.
    fn look(&self) {
        let inside = turmoil::sim_elapsed().map(|now| Nanos::try_from(now.as_nanos()));
        if let Some(Ok(now)) = inside {
            self.set(now);
        }
    }
}

impl TrueTime for SimTime {
    fn true_now(&self) -> Nanos {
        self.0.load(Ordering::Relaxed)
    }
}

impl World {
    /// The end of chaos: everything is healed, and must recover.
    fn heal_everything(&mut self) {
        self.injector.queue.stop();
        self.rules.clear();
        for actor in &self.actors {
            actor.gate.disarm();
            if let Some(disk) = &actor.disk {
                disk.disarm();
            }
        }
        self.heal_due(Nanos::MAX);
        self.recorder.nemesis("calm", json!({}));
    }
}

/// An idle simulation of the same hosts, tick and length: the floor that a run's cost
/// is measured against.
pub fn idle(header: &Header) {
    let mut builder = turmoil::Builder::new();
    builder
        .rng_seed(header.seed)
        .epoch(UNIX_EPOCH)
        .tick_duration(Duration::from_nanos(TICK))
        .simulation_duration(Duration::MAX);
    let mut sim = builder.build();
    for name in header.cluster.node_names() {
        sim.host(name.as_str(), || async {
            std::future::pending::<()>().await;
            Ok(())
        });
    }
    let ends = Duration::from_nanos(header.chaos.saturating_add(header.calm));
    while sim.elapsed() < ends {
        // An idle host neither fails nor finishes.
        if sim.step().is_err() {
            return;
        }
    }
}
