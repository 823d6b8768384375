//! The lease server: a [`LeaseStore`] behind a network, on a durable disk.

use std::io;

use deposed_checkers::history::{
    Denied, F, Failure, Granted, Name, Nanos, Observation, RecoveredLease, Released, Renewed,
    StoreRecovered, Token,
};

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{Service, serve},
};
use crate::{
    disk::{commit_json, records_json},
    flaw::{Flaw, Planted},
    lease::{Denial, LeaseRecord, LeaseStore, StoreLimits},
    net::LocalFuture,
};

/// Runs the lease server of this node until it cannot go on.
pub async fn run(node: Node, limits: StoreLimits, planted: Planted) {
    match recover(&node, limits, planted).await {
        Ok(store) => {
            let server = LeaseServer {
                node: node.clone(),
                store,
                planted,
            };
            serve(node, server).await;
        }
        Err(error) => {
            tracing::error!(target: "deposed", "the lease server does not start: {error}")
        }
    }
}

/// Takes up what the disk holds, and records it. A first boot that finds nothing
/// records nothing; a later one that finds nothing says so, since it forgot.
async fn recover(node: &Node, limits: StoreLimits, planted: Planted) -> io::Result<LeaseStore> {
    let records = records_json::<LeaseRecord>(node.disk()).await?;
    if records.is_empty() && node.boots() == 1 {
        return Ok(LeaseStore::new(limits, planted));
    }
    let clock = node.now();
    let found = records.iter().map(|(lease, record)| {
        let owner = record.owner.as_ref().filter(|_| !record.released);
        let recovered = RecoveredLease {
            counter: record.counter,
            holder: owner.map(|owner| owner.holder.clone()),
            ttl: owner.map(|owner| owner.ttl),
        };
        (Name::from(lease), recovered)
    });
    let recovered = StoreRecovered {
        leases: found.collect(),
        clock,
    };
    node.observe(Observation::StoreRecovered(recovered));
    let now = counted_on(node, planted);
    let records = records
        .into_iter()
        .map(|(lease, record)| (Name::from(lease), record))
        .collect();
    Ok(LeaseStore::recover(limits, planted, records, now))
}

/// What the clock reads that leases are counted on: the boot clock.
fn counted_on(node: &Node, planted: Planted) -> Nanos {
    if planted.has(Flaw::WallClockStore) {
        return node.clock().wall();
    }
    node.now()
}

struct LeaseServer {
    node: Node,
    store: LeaseStore,
    planted: Planted,
}

impl Service for LeaseServer {
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

impl LeaseServer {
    async fn acquire(
        &mut self,
        lease: Name,
        holder: Name,
        request: u64,
        ttl: Nanos,
    ) -> io::Result<Outcome<Token>> {
        let (clock, now) = (self.node.now(), counted_on(&self.node, self.planted));
        match self.store.acquire(now, &lease, &holder, request, ttl) {
            Ok(grant) => {
                if grant.fresh {
                    self.commit(&lease).await?;
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
        match self.store.renew(now, &lease, &holder, token, attempt, ttl) {
            Ok(extension) => {
                if extension.durable_changed {
                    self.commit(&lease).await?;
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
        match self.store.release(now, &lease, &holder, token) {
            Ok(release) => {
                if release.fresh {
                    self.commit(&lease).await?;
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
    fn expires(&self, lease: &Name) -> Option<Nanos> {
        if !self.planted.has(Flaw::WallClockExpiry) {
            return None;
        }
        let now = self.node.now();
        let holding = self.store.holding(now, lease)?;
        Some(
            self.node
                .clock()
                .wall()
                .saturating_add(holding.expiry - now),
        )
    }

    async fn commit(&self, lease: &Name) -> io::Result<()> {
        let Some(record) = self.store.record(lease) else {
            return Ok(());
        };
        commit_json(self.node.disk(), lease, &record).await
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
