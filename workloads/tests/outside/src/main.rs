//! Somebody else's suite: a lock in a database row, judged under a workload of its
//! own. Nothing here is known to the harness beforehand; it speaks its own frames
//! over [`Node::net`] and records through [`Node::invoke`] and [`Node::observe`].
//!
//! The row holds until when it is locked. A client locks it if that is past, by the
//! *client's* clock, as schedulers that share a database do, and never looks again.

use std::{cell::Cell, process::ExitCode, rc::Rc, sync::Arc};

use deposed::{
    checkers::history::{
        Acquire, Answer, Applied, F, Failure, Granted, Name, Observation, Op, Write,
    },
    cli::{self, Suite},
    net::{Connection, LocalFuture},
    node::{Node, flag::Flag},
    prelude::*,
    system::Setup,
};
use serde::{Deserialize, Serialize};

/// What client and database say to each other; the reply is a `bool` of its own.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", content = "body", rename_all = "kebab-case")]
enum Query {
    /// `UPDATE lock SET until = now + ttl WHERE until <= now`.
    Acquire { by: Acquire, now: Nanos },
    /// `INSERT`.
    Write(Write),
}

struct DatabaseLock;

impl System for DatabaseLock {
    fn name(&self) -> &'static str {
        "database-lock"
    }

    fn store(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(database(node))
    }

    fn storage(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(database(node))
    }

    fn client(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Box::pin(async move {
            let holder = node.name().clone();
            let flag = Flag::new(&node, setup.leases[0].clone(), holder);
            for nth in 1.. {
                if lock(&node, &setup, nth).await {
                    flag.raise();
                    job(&node, &setup, nth).await;
                    flag.lower();
                }
                node.sleep(setup.lease.backoff_max).await;
            }
        })
    }
}

async fn database(node: Node) {
    let locked_until = Rc::new(Cell::new(0));
    let Ok(mut listener) = node.net().listen().await else {
        return;
    };
    while let Ok(connection) = listener.accept().await {
        node.spawn(session(node.clone(), connection, locked_until.clone()));
    }
}

async fn session(node: Node, mut connection: Connection, locked_until: Rc<Cell<Nanos>>) {
    while let Ok(Some(query)) = connection.receive().await {
        let done = match query {
            Query::Acquire { by, now } if locked_until.get() <= now => {
                locked_until.set(now + by.ttl);
                node.observe(Observation::Granted(Granted {
                    lease: by.lease,
                    holder: by.holder,
                    request: by.request,
                    token: None,
                    ttl: by.ttl,
                    clock: node.now(),
                }));
                true
            }
            Query::Acquire { .. } => false,
            Query::Write(write) => {
                node.observe(Observation::Applied(Applied {
                    f: F::Write,
                    lease: write.lease,
                    token: write.token,
                    seq: write.seq,
                    key: write.key,
                    value: Some(write.value),
                }));
                true
            }
        };
        if connection.send(&done).await.is_err() {
            return;
        }
    }
}

async fn lock(node: &Node, setup: &Setup, request: u64) -> bool {
    let by = Acquire {
        lease: setup.leases[0].clone(),
        holder: node.name().clone(),
        request,
        ttl: setup.lease.ttl,
    };
    let call = node.invoke(Op::Acquire(by.clone())).await;
    let now = node.now();
    match ask(node, setup, &setup.store, Query::Acquire { by, now }).await {
        Some(true) => {
            call.ok(Answer::None);
            true
        }
        Some(false) => {
            call.fail(Failure::new("locked"));
            false
        }
        None => false,
    }
}

/// Writes for half of the time that the lock lasts, as far as it knows.
async fn job(node: &Node, setup: &Setup, nth: u64) {
    let until = node.now() + setup.lease.ttl / 2;
    for row in 1.. {
        let write = Write {
            lease: setup.leases[0].clone(),
            token: None,
            seq: None,
            key: "report".into(),
            value: format!("{}: job {nth}, row {row}", node.name()).into(),
        };
        let call = node.invoke(Op::Write(write.clone())).await;
        if ask(node, setup, setup.first_storage(), Query::Write(write)).await == Some(true) {
            call.ok(Answer::None);
        }
        if node.now() >= until {
            return;
        }
        node.sleep(setup.traffic.write_every).await;
    }
}

async fn ask(node: &Node, setup: &Setup, peer: &Name, query: Query) -> Option<bool> {
    let asking = async {
        let mut connection = node.net().connect(peer).await.ok()?;
        connection.send(&query).await.ok()?;
        connection.receive().await.ok()?
    };
    node.timeout(setup.lease.try_timeout, asking).await?
}

/// The machine stalls in the middle of a job.
fn nightly_job() -> Workload {
    Workload {
        story: "the machine that runs the job stalls before a write",
        nemesis: Nemesis::one_in(4, vec![gc_pause(Target::Leader, Some(F::Write))]),
        seeds: 5,
        must_see: vec![Mark::Wrote, Mark::TakenOverAfterExpiry],
        ..Workload::named("nightly-job")
    }
}

fn main() -> ExitCode {
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(DatabaseLock)];
    let workloads = vec![nightly_job()];
    cli::main(Suite { workloads, systems })
}
