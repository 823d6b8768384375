//! The lease server: a [`LeaseStore`] behind a network, on a durable disk.

use std::{collections::BTreeMap, convert::Infallible, io};

use deposed_checkers::history::{
    self, Denied, F, Failure, Granted, Name, Nanos, Observation, RecoveredLease, Released, Renewed,
    StoreRecovered, Token,
};

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{ServerError, Service, serve},
};
use crate::{
    disk::{Batch, RESTORED, Restored, all_json, put_json, take_json},
    flaw::{Flaw, Planted},
    lease::{Denial, LeaseRecord, LeaseStore, Restoration, StoreLimits},
    net::LocalFuture,
};

/// The record of each lease is called this and the lease's name.
pub(super) const LEASE: &str = "lease/";
/// The record that a restore from an old copy leaves behind.
const RESTORATION: &str = "restoration";

/// Runs the lease server of this node until it cannot go on.
///
/// # Errors
/// Always, at its end: the disk may not be gone on from, or the listener broke.
pub async fn run(
    node: Node,
    limits: StoreLimits,
    planted: Planted,
) -> Result<Infallible, ServerError> {
    let recover = async |first| recover(&node, &limits, planted, first).await;
    serve(node.clone(), recover).await
}

/// Takes up what the disk holds, and records it. A first boot that finds nothing
/// records nothing; a later one that finds nothing says so, since it forgot.
async fn recover(
    node: &Node,
    limits: &StoreLimits,
    planted: Planted,
    first: bool,
) -> io::Result<LeaseServer<DurableStore>> {
    let mut records = node.disk().records().await?;
    let restored: Option<Restored> = take_json(&mut records, RESTORED)?;
    let restoration: Option<Restoration> = take_json(&mut records, RESTORATION)?;
    let leases: BTreeMap<Name, LeaseRecord> = all_json(&records, LEASE)?;
    let clock = node.now();
    let found = found(&leases, restored.is_some());
    let now = counted_on(node, planted);
    let mut store = match restored {
        Some(Restored { floor }) if !planted.has(Flaw::RestoredWithoutFloor) => {
            LeaseStore::restore(limits.clone(), planted, leases, floor, now)
        }
        _ if first && leases.is_empty() => LeaseStore::new(limits.clone(), planted),
        _ => LeaseStore::recover(limits.clone(), planted, leases, now),
    };
    if let Some(restoration) = restoration {
        store.resume_restoration(restoration, now);
    }
    let mut store = DurableStore {
        closed: store.restoration(now).closed_for > 0,
        store,
        planted,
        #[cfg(feature = "flaws")]
        unwritten: None,
    };
    match restored {
        Some(Restored { floor }) => {
            store.take_over_copy(node).await?;
            let leases = found;
            node.observe(Observation::Restored(history::Restored {
                floor,
                leases,
                clock,
            }));
        }
        None if first && records.is_empty() && restoration.is_none() => {}
        None => node.observe(Observation::StoreRecovered(StoreRecovered {
            leases: found,
            clock,
        })),
    }
    Ok(LeaseServer {
        node: node.clone(),
        store,
        planted,
    })
}

/// What the disk held of each lease, as it is recorded.
pub(super) fn found(
    leases: &BTreeMap<Name, LeaseRecord>,
    restored: bool,
) -> BTreeMap<Name, RecoveredLease> {
    let found = leases.iter().map(|(lease, record)| {
        // A restored store takes no owner over: see `LeaseStore::restore`.
        let owner = record.owner.as_ref();
        let owner = owner.filter(|_| !record.released && !restored);
        let recovered = RecoveredLease {
            counter: record.counter,
            holder: owner.map(|owner| owner.holder.clone()),
            ttl: owner.map(|owner| owner.ttl),
        };
        (lease.clone(), recovered)
    });
    found.collect()
}

/// What the clock reads that leases are counted on: the boot clock.
fn counted_on(node: &Node, planted: Planted) -> Nanos {
    if planted.has(Flaw::WallClockStore) {
        return node.clock().wall();
    }
    node.now()
}

/// Whatever grants leases, and makes a lease durable before anybody is answered.
pub(super) trait Leases {
    /// The leases.
    fn leases(&mut self) -> &mut LeaseStore;
    /// Makes all there is to a lease durable, in one piece.
    async fn commit(&mut self, node: &Node, lease: &Name) -> io::Result<()>;
}

/// A store of leases alone, and what of it is not as its disk says.
struct DurableStore {
    store: LeaseStore,
    /// The restoration on the disk says that nothing may be granted for a while.
    closed: bool,
    planted: Planted,
    /// Under [`Flaw::AnswersBeforeDurable`], what was answered and is not durable.
    #[cfg(feature = "flaws")]
    unwritten: Option<Batch>,
}

impl Leases for DurableStore {
    fn leases(&mut self) -> &mut LeaseStore {
        &mut self.store
    }

    async fn commit(&mut self, node: &Node, lease: &Name) -> io::Result<()> {
        let Some(record) = self.store.record(lease) else {
            return Ok(());
        };
        let mut batch = Batch::new();
        put_json(&mut batch, format!("{LEASE}{lease}"), &record)?;
        // Once the store grants again a further restart need not close it anew.
        let restoration = self.store.restoration(counted_on(node, self.planted));
        if self.closed && restoration.closed_for == 0 {
            put_json(&mut batch, RESTORATION.to_owned(), &restoration)?;
            self.closed = false;
        }
        #[cfg(feature = "flaws")]
        if self.planted.has(Flaw::AnswersBeforeDurable) {
            batch = self.unwritten.replace(batch).unwrap_or_default();
        }
        make_durable(node, self.planted, batch).await
    }
}

/// Makes durable what is about to be answered about a lease.
pub(super) async fn make_durable(node: &Node, planted: Planted, batch: Batch) -> io::Result<()> {
    if planted.has(Flaw::CounterNotSynced) {
        return node.disk().write(batch).await;
    }
    node.disk().commit(batch).await
}

impl DurableStore {
    /// Makes durable, in one piece, that an old copy was raised to its floor.
    async fn take_over_copy(&mut self, node: &Node) -> io::Result<()> {
        let mut batch = Batch::from([(RESTORED.to_owned(), None)]);
        let restoration = self.store.restoration(counted_on(node, self.planted));
        put_json(&mut batch, RESTORATION.to_owned(), &restoration)?;
        for (lease, record) in self.store.records() {
            put_json(&mut batch, format!("{LEASE}{lease}"), &record)?;
        }
        node.disk().commit(batch).await
    }
}

/// Answers what is asked about leases.
pub(super) struct LeaseServer<S> {
    pub(super) node: Node,
    pub(super) store: S,
    pub(super) planted: Planted,
}

impl<S: Leases> Service for LeaseServer<S> {
    fn answer(&mut self, request: Request) -> LocalFuture<'_, io::Result<Option<Reply>>> {
        Box::pin(async move {
            Ok(Some(match request {
                Request::Acquire {
                    id,
                    lease,
                    holder,
                    request,
                    ttl,
                } => {
                    let asked = lease.clone();
                    let answer = self.acquire(lease, holder, request, ttl).await?;
                    Reply::AcquireReply {
                        id,
                        answer,
                        expires: self.expires(&asked),
                    }
                }
                Request::Renew {
                    id,
                    lease,
                    holder,
                    token,
                    attempt,
                    ttl,
                } => {
                    let asked = lease.clone();
                    let answer = self.renew(lease, holder, token, attempt, ttl).await?;
                    Reply::RenewReply {
                        id,
                        answer,
                        expires: self.expires(&asked),
                    }
                }
                Request::Release {
                    id,
                    lease,
                    holder,
                    token,
                } => {
                    let answer = self.release(lease, holder, token).await?;
                    Reply::ReleaseReply { id, answer }
                }
                _ => return Ok(None),
            }))
        })
    }
}

impl<S: Leases> LeaseServer<S> {
    async fn acquire(
        &mut self,
        lease: Name,
        holder: Name,
        request: u64,
        ttl: Nanos,
    ) -> io::Result<Outcome<Token>> {
        let (clock, now) = (self.node.now(), counted_on(&self.node, self.planted));
        let store = self.store.leases();
        match store.acquire(now, &lease, &holder, request, ttl) {
            Ok(grant) => {
                if grant.fresh {
                    self.store.commit(&self.node, &lease).await?;
                    let (token, ttl) = (Some(grant.token), grant.ttl);
                    let granted = Granted {
                        lease,
                        holder,
                        request,
                        token,
                        ttl,
                        clock,
                    };
                    self.node.observe(Observation::Granted(granted));
                }
                Ok(Outcome::Ok(grant.token))
            }
            Err(denial) => {
                let asked = Asked {
                    lease,
                    f: F::Acquire,
                    holder,
                    request: Some(request),
                    token: None,
                };
                Ok(self.deny(asked, clock, &denial))
            }
        }
    }

    async fn renew(
        &mut self,
        lease: Name,
        holder: Name,
        token: Token,
        attempt: u64,
        ttl: Nanos,
    ) -> io::Result<Outcome<()>> {
        let (clock, now) = (self.node.now(), counted_on(&self.node, self.planted));
        let store = self.store.leases();
        match store.renew(now, &lease, &holder, token, attempt, ttl) {
            Ok(extension) => {
                if extension.durable_changed {
                    self.store.commit(&self.node, &lease).await?;
                }
                let (token, ttl) = (Some(token), extension.ttl);
                self.node.observe(Observation::Renewed(Renewed {
                    lease,
                    holder,
                    token,
                    ttl,
                    clock,
                }));
                Ok(Outcome::Ok(()))
            }
            Err(denial) => {
                let asked = Asked {
                    lease,
                    f: F::Renew,
                    holder,
                    request: None,
                    token: Some(token),
                };
                Ok(self.deny(asked, clock, &denial))
            }
        }
    }

    async fn release(
        &mut self,
        lease: Name,
        holder: Name,
        token: Token,
    ) -> io::Result<Outcome<()>> {
        let (clock, now) = (self.node.now(), counted_on(&self.node, self.planted));
        match self.store.leases().release(now, &lease, &holder, token) {
            Ok(release) => {
                if release.fresh {
                    self.store.commit(&self.node, &lease).await?;
                    let token = Some(token);
                    self.node.observe(Observation::Released(Released {
                        lease,
                        holder,
                        token,
                        clock,
                    }));
                }
                Ok(Outcome::Ok(()))
            }
            Err(denial) => {
                let asked = Asked {
                    lease,
                    f: F::Release,
                    holder,
                    request: None,
                    token: Some(token),
                };
                Ok(self.deny(asked, clock, &denial))
            }
        }
    }

    /// The end of a lease on this machine's wall clock, where it is told at all.
    fn expires(&mut self, lease: &Name) -> Option<Nanos> {
        if !self.planted.has(Flaw::WallClockExpiry) {
            return None;
        }
        let now = self.node.now();
        let holding = self.store.leases().holding(now, lease)?;
        Some(
            self.node
                .clock()
                .wall()
                .saturating_add(holding.expiry - now),
        )
    }

    fn deny<T>(&self, asked: Asked, clock: Nanos, denial: &Denial) -> Outcome<T> {
        let error = Failure::new(denial.kind());
        let Asked {
            lease,
            f,
            holder,
            request,
            token,
        } = asked;
        let denied = Denied {
            lease,
            f,
            holder,
            request,
            token,
            clock,
            error: error.clone(),
        };
        self.node.observe(Observation::Denied(denied));
        let retry_after = match denial {
            Denial::Held { remaining } => Some(*remaining),
            _ => None,
        };
        Outcome::Refused {
            error,
            perhaps_done: false,
            retry_after,
        }
    }
}

/// What was asked of the store and refused.
struct Asked {
    lease: Name,
    f: F,
    holder: Name,
    request: Option<u64>,
    token: Option<Token>,
}
