//! The system under test: the roles that a workload runs, as async bodies over a
//! [`Node`]. Ours is [`Deposed`]; bring your own lease code by implementing
//! [`System`] in your own crate, and it gets the faults, the histories, the
//! checkers and the command line unchanged.

use std::sync::Arc;

use deposed_checkers::history::{Name, Nanos};

use crate::{
    cluster::StorageKind,
    flaw::Planted,
    lease::{LeaseConfig, StoreLimits},
    net::LocalFuture,
    node::{
        Node, compare_and_swap_server, effect_leader, effect_server,
        elector::{self, Candidacy},
        leader::{self, LeaderWork},
        lease_server, replica_server,
        server::until_it_stops,
        storage_server,
    },
    workload::Traffic,
};

/// The roles of a system. Each body is one boot of one process: it ends when the
/// process is crashed, and starts anew, on the same disk, after a restart.
///
/// A body records operations through [`Node::invoke`], and what only it can see
/// through [`Node::observe`]. What a system has no notion of (no token, say) makes
/// the checks that need it NotClaimed, by name.
pub trait System: Send + Sync {
    /// The name for `--system` and for the history's header.
    fn name(&self) -> &'static str;
    /// The lease server.
    fn store(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()>;
    /// The protected storage.
    fn storage(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()>;
    /// A candidate that works when it leads.
    fn client(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()>;
    /// Whether planted flaws can be switched on in it.
    fn has_flaws(&self) -> bool {
        false
    }
}

/// What a workload asks of a system.
#[derive(Clone, Debug)]
pub struct Setup(Arc<SetupParts>);

/// See [`Setup`].
#[derive(Clone, Debug)]
pub struct SetupParts {
    /// Lease timing, shared by all.
    pub lease: LeaseConfig,
    /// What leaders are to do.
    pub traffic: Traffic,
    /// The leases to contend for.
    pub leases: Vec<Name>,
    /// The lease server's name.
    pub store: Name,
    /// What leaders write to.
    pub storage: StorageKind,
    /// The names of the nodes that hold it, one at least.
    pub storages: Vec<Name>,
    /// The planted flaw; only our own system asks.
    pub planted: Planted,
}

impl Setup {
    /// Wraps the parts.
    pub fn new(parts: SetupParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl SetupParts {
    /// The node that holds what leaders write, or its first replica.
    ///
    /// # Panics
    /// If there is none.
    pub fn first_storage(&self) -> &Name {
        self.storages.first().expect("some node holds the data")
    }
}

impl std::ops::Deref for Setup {
    type Target = SetupParts;

    fn deref(&self) -> &SetupParts {
        &self.0
    }
}

/// Our own system: leases with fencing tokens, fenced storage, an election barrier.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deposed;

impl System for Deposed {
    fn name(&self) -> &'static str {
        "deposed"
    }

    fn store(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        let limits = StoreLimits {
            // A store that was restored from an old copy stays closed for the longest ttl.
            max_ttl: setup.lease.ttl,
            lock_delay: setup.lease.lock_delay,
            ..StoreLimits::default()
        };
        match setup.storage {
            StorageKind::CompareAndSwap => {
                let server = compare_and_swap_server::run(node, limits, setup.planted);
                Box::pin(until_it_stops(server))
            }
            _ => Box::pin(until_it_stops(lease_server::run(
                node,
                limits,
                setup.planted,
            ))),
        }
    }

    fn storage(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        match setup.storage {
            StorageKind::Effects { keys } => {
                Box::pin(until_it_stops(effect_server::run(node, keys)))
            }
            StorageKind::Quorum { .. } => {
                Box::pin(until_it_stops(replica_server::run(node, setup.planted)))
            }
            _ => Box::pin(until_it_stops(storage_server::run(node, setup.planted))),
        }
    }

    fn client(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Box::pin(async move {
            for lease in &setup.leases {
                let candidacy = elector::campaign(
                    &node,
                    setup.store.clone(),
                    lease.clone(),
                    setup.lease.clone(),
                    setup.planted,
                );
                if let Some(every) = setup.traffic.resign_every {
                    node.spawn(resign_now_and_then(node.clone(), candidacy.clone(), every));
                }
                let work = LeaderWork {
                    lease: lease.clone(),
                    storage: setup.storage,
                    storages: setup.storages.clone(),
                    config: setup.lease.clone(),
                    traffic: setup.traffic.clone(),
                    planted: setup.planted,
                };
                match setup.storage {
                    StorageKind::Effects { .. } => {
                        node.spawn(effect_leader::run(node.clone(), candidacy, work));
                    }
                    _ => node.spawn(leader::run(node.clone(), candidacy, work)),
                }
            }
            std::future::pending().await
        })
    }

    fn has_flaws(&self) -> bool {
        cfg!(feature = "flaws")
    }
}

/// Resigns each term that has lasted this long, whatever work is in hand.
async fn resign_now_and_then(node: Node, candidacy: Candidacy, every: Nanos) {
    loop {
        let leadership = candidacy.elected().await;
        tokio::select! {
            biased;
            () = leadership.lost() => {}
            () = node.sleep(every) => leadership.resign(),
        }
    }
}
