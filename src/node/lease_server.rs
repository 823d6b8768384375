//! The lease server: a [`LeaseStore`] behind a network, on a durable disk.

use std::io;

use deposed_checkers::history::{
    Denied, F, Failure, Granted, Name, Nanos, Observation, RecoveredLease, Released, Renewed,
    StoreRecovered, Token,
};
use serde::Serialize;

use super::{
    Node,
    frame::{Outcome, Reply, Request},
    server::{Service, serve},
};
use crate::{
    disk::{commit_json, records_json},
    flaw::Planted,
    lease::{Denial, LeaseRecord, LeaseStore, StoreLimits},
    net::LocalFuture,
};

/// Runs the lease server of this node until it cannot go on.
pub async fn run(node: Node, limits: StoreLimits, planted: Planted) {
    match recover(&node, limits, planted).await {
        Ok(store) => serve(node.clone(), LeaseServer { node, store }).await,
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
    observe_recovered(node, clock, records.iter());
    let records = records
        .into_iter()
        .map(|(lease, record)| (Name::from(lease), record))
        .collect();
    Ok(LeaseStore::recover(limits, planted, records, clock))
}

/// Records what was found of the leases.
pub(super) fn observe_recovered<'a>(
    node: &Node,
    clock: Nanos,
    records: impl Iterator<Item = (&'a String, &'a LeaseRecord)>,
) {
    let found = records.map(|(lease, record)| {
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
}

/// Whatever grants leases, and what must be durable of one before it is answered.
pub(super) trait Leases {
    /// The leases.
    fn leases(&mut self) -> &mut LeaseStore;
    /// The lease's durable record, all of it.
    fn record(&self, lease: &Name) -> Option<impl Serialize>;
}

impl Leases for LeaseStore {
    fn leases(&mut self) -> &mut LeaseStore {
        self
    }

    fn record(&self, lease: &Name) -> Option<impl Serialize> {
        LeaseStore::record(self, lease)
    }
}

/// Answers what is asked about leases.
pub(super) struct LeaseServer<S> {
    pub(super) node: Node,
    pub(super) store: S,
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
                    let answer = self.acquire(lease, holder, request, ttl).await?;
                    Reply::AcquireReply { id, answer }
                }
                Request::Renew {
                    id,
                    lease,
                    holder,
                    token,
                    attempt,
                    ttl,
                } => {
                    let answer = self.renew(lease, holder, token, attempt, ttl).await?;
                    Reply::RenewReply { id, answer }
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
        let clock = self.node.now();
        match self
            .store
            .leases()
            .acquire(clock, &lease, &holder, request, ttl)
        {
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
        let clock = self.node.now();
        match self
            .store
            .leases()
            .renew(clock, &lease, &holder, token, attempt, ttl)
        {
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
        let clock = self.node.now();
        match self.store.leases().release(clock, &lease, &holder, token) {
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
