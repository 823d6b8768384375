//! The context of one node, and the async shells that run on it.
//!
//! Everything a node may touch comes in through [`Node`]: time, randomness,
//! network, disk, the recorder, the pause gate. Nothing reaches around it, so the
//! same code runs in a simulated world and in service, and a run is repeatable to
//! the byte.

pub mod compare_and_swap_server;
pub mod effect_leader;
pub mod effect_server;
pub mod elector;
pub mod flag;
pub mod frame;
pub mod gate;
pub mod leader;
pub mod leader_storage;
pub mod lease_server;
pub mod quorum_client;
pub mod replica_server;
pub mod rpc;
pub mod server;
pub mod storage_client;
pub mod storage_server;

use std::{any::Any, cell::RefCell, panic::AssertUnwindSafe, rc::Rc, sync::Arc};

use deposed_checkers::history::{F, Name, Nanos, Observation, Op};
use futures_util::FutureExt;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::{
    clock::Clock,
    disk::Disk,
    net::Net,
    recorder::{Call, Recorder},
};
use gate::Gate;

/// What a node is made of; see [`Node`].
pub struct Parts {
    /// The node's name, unique in its cluster.
    pub name: Name,
    /// Which boot of the node this is, from 1.
    pub boots: u64,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// Its way to the network.
    pub net: Rc<dyn Net>,
    /// Its durable state.
    pub disk: Rc<dyn Disk>,
    /// Its source of randomness, split by node and boot.
    pub rng: ChaCha8Rng,
    /// Where it notes what happens.
    pub recorder: Recorder,
    /// Its pause gate.
    pub gate: Gate,
    /// Where panics of its tasks go.
    pub panics: Panics,
}

/// Panics caught in node tasks, with the node's name: they fail the run.
pub type Panics = Rc<RefCell<Vec<(Name, String)>>>;

/// One boot of one node. Cheap to clone; stays on its thread.
#[derive(Clone)]
pub struct Node(Rc<Inner>, Rc<dyn Disk>);

struct Inner {
    parts: Parts,
    rng: RefCell<ChaCha8Rng>,
    believers: RefCell<Vec<Rc<dyn Believer>>>,
}

impl Node {
    /// A node made of these parts.
    pub fn new(parts: Parts) -> Self {
        let rng = RefCell::new(parts.rng.clone());
        let disk = parts.disk.clone();
        let inner = Inner {
            parts,
            rng,
            believers: RefCell::default(),
        };
        Node(Rc::new(inner), disk)
    }

    /// The same boot of the same node, on another disk: to put a disk of one's own
    /// between a server and what it makes durable.
    pub fn with_disk(&self, disk: Rc<dyn Disk>) -> Self {
        Node(self.0.clone(), disk)
    }

    /// The node's name.
    pub fn name(&self) -> &Name {
        &self.0.parts.name
    }

    /// Which boot of the node this is, from 1. A server that boots again says what it
    /// found on its disk, even when that is nothing.
    pub fn boots(&self) -> u64 {
        self.0.parts.boots
    }

    /// The node's clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.parts.clock
    }

    /// The node's boot clock, ns.
    pub fn now(&self) -> Nanos {
        self.0.parts.clock.now()
    }

    /// Waits by the node's clock, ns.
    pub async fn sleep(&self, length: Nanos) {
        let until = self.now().saturating_add(length);
        self.clock().sleep_until(until).await;
    }

    /// Runs a future for at most `length` by the node's clock; `None` when it took longer.
    pub async fn timeout<T>(&self, length: Nanos, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = self.sleep(length) => None,
        }
    }

    /// The node's way to the network.
    pub fn net(&self) -> &dyn Net {
        &*self.0.parts.net
    }

    /// The node's durable state.
    pub fn disk(&self) -> &dyn Disk {
        &*self.1
    }

    /// Where the node notes what happens.
    pub fn recorder(&self) -> &Recorder {
        &self.0.parts.recorder
    }

    /// A random number below `bound`, from the node's own stream.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn random_below(&self, bound: u64) -> u64 {
        self.0.rng.borrow_mut().random_range(0..bound)
    }

    /// Starts a task of this process: it stops with the gate, dies with the
    /// process, and its panic fails the run.
    #[expect(clippy::disallowed_methods, reason = "this is the gate")]
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        tokio::task::spawn_local(self.catching(task));
    }

    /// The task, stopped with the gate, and with a panic caught and noted.
    pub fn catching(
        &self,
        task: impl Future<Output = ()> + 'static,
    ) -> impl Future<Output = ()> + 'static {
        let node = self.clone();
        async move {
            let task = AssertUnwindSafe(node.0.parts.gate.hold(task));
            if let Err(panic) = task.catch_unwind().await {
                let what = (node.name().clone(), panic_text(&*panic));
                node.0.parts.panics.borrow_mut().push(what);
            }
        }
    }

    /// A point at which a stop-the-world pause may land: put one between a check
    /// and the act that relies on it. Simulated pauses land at awaits only.
    pub async fn gc_point(&self) {
        self.reach(None).await;
    }

    /// Begins a call: a gc point, then the record that it was invoked. Its outcome
    /// is told to the returned [`Call`]; dropped without one it is `info`.
    pub async fn invoke(&self, op: Op) -> Call {
        self.reach(Some(op.f())).await;
        self.0.parts.recorder.invoke(self.name(), op)
    }

    async fn reach(&self, before: Option<F>) {
        // A belief that this instant has ended is recorded at this instant.
        let stopping = || self.each_believer(|believer| believer.catch_up(self));
        self.0.parts.gate.gc_point(before, stopping).await;
    }

    /// Notes what this node sees from the inside. Call it in the same poll as the
    /// deed, after it is durable and before it is answered.
    pub fn observe(&self, observation: Observation) {
        self.0.parts.recorder.observe(self.name(), observation);
    }

    /// Makes a belief known to the world, which asks it at every step (even while
    /// the process is paused) and rewrites its record when a clock's rate changes.
    pub fn enlist(&self, believer: Rc<dyn Believer>) {
        self.0.believers.borrow_mut().push(believer);
    }

    /// Shows the beliefs that were enlisted.
    pub fn each_believer(&self, mut see: impl FnMut(&dyn Believer)) {
        for believer in self.0.believers.borrow().iter() {
            see(&**believer);
        }
    }
}

/// Somebody who may believe to lead. Asked by the world without running the process.
pub trait Believer {
    /// Which lease.
    fn lease(&self) -> &Name;
    /// What `is_leader()` would answer at this reading of the node's clock.
    fn is_leader(&self, local: Nanos) -> bool;
    /// The belief as last recorded by `lead`, with its end on the node's clock.
    fn told(&self) -> Option<Told>;
    /// The true time at which the belief last recorded ends by itself, as the clocks run
    /// now; `None`: never. To be told only by who counts on another than the boot clock.
    fn ends_at(&self, node: &Node) -> Option<Nanos> {
        let until = self.told()?.until?;
        Some(node.clock().true_time_of(until))
    }
    /// Records an end of the belief that was not recorded yet: the process is about to
    /// be stopped, and who was to record it will not come to it. Needed only where
    /// another task than the one that records can end the belief.
    fn catch_up(&self, _node: &Node) {}
}

/// A belief as last recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Who believes.
    pub holder: Name,
    /// Its token; `None` for a system without tokens.
    pub token: Option<u64>,
    /// The end on the node's own clock (exclusive); `None`: never by itself.
    pub until: Option<Nanos>,
    /// True time of the send that it counts from.
    pub sent: Nanos,
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
