//! A lock the way people lock with Redis, plugged in as a [`System`]: set if absent,
//! with an expiry by the server's wall clock; delete without a look; and no token, so
//! that storage takes whatever comes.
//!
//! `cargo run --release --example naive_lock -- run gc-pause --system naive-lock`

use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use deposed::{
    checkers::history::{Acquire, Observation, Op, Release, Write},
    cli::{self, Suite},
    net::LocalFuture,
    node::{Node, flag::Flag, rpc},
    system::{Deposed, Setup, System},
};

/// The lock server, storage, and the clients that trust them.
pub struct NaiveLock;

impl System for NaiveLock {
    fn name(&self) -> &'static str {
        "naive-lock"
    }

    fn store(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        let mut expiries = BTreeMap::new();
        Box::pin(rpc::serve(node.clone(), move |kind, op| {
            let (lease, now) = (op["lease"].to_string(), node.clock().wall());
            if kind == "release" {
                expiries.remove(&lease);
                return true;
            }
            let free = expiries.get(&lease).is_none_or(|expiry| now >= *expiry);
            if free {
                expiries.insert(lease, now + op["ttl"].as_u64().unwrap_or_default());
            }
            free
        }))
    }

    fn storage(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(rpc::serve(node.clone(), move |kind, op| {
            let mut applied = op.clone();
            applied["f"] = kind.into();
            let applied = serde_json::from_value(applied).map(Observation::Applied);
            applied.map(|applied| node.observe(applied)).is_ok()
        }))
    }

    fn client(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Box::pin(contend(node, setup))
    }
}

/// Lock, write for half the expiry, unlock; for ever.
async fn contend(node: Node, setup: Setup) {
    let (patience, pause) = (setup.lease.try_timeout, setup.traffic.write_every);
    let (lease, holder) = (setup.leases[0].clone(), node.name().clone());
    let flag = Flag::new(&node, lease.clone(), holder.clone());
    for request in 1.. {
        let acquire = Op::Acquire(Acquire {
            lease: lease.clone(),
            holder: holder.clone(),
            request,
            ttl: setup.lease.ttl,
        });
        if rpc::call(&node, &setup.store, acquire, patience).await {
            flag.raise();
            let until = node.now() + setup.lease.ttl / 2;
            while node.now() < until {
                let write = Op::Write(Write {
                    lease: lease.clone(),
                    token: None,
                    seq: None,
                    key: "k".into(),
                    value: format!("{holder} at {}", node.now()).into(),
                });
                rpc::call(&node, setup.first_storage(), write, patience).await;
                node.sleep(pause).await;
            }
            flag.lower();
            let release = Op::Release(Release {
                lease: lease.clone(),
                holder: holder.clone(),
                token: None,
            });
            rpc::call(&node, &setup.store, release, patience).await;
        }
        node.sleep(setup.lease.backoff_max).await;
    }
}

#[allow(dead_code, reason = "the test that includes this file has its own")]
fn main() -> ExitCode {
    let workloads = deposed_workloads::all();
    let systems: Vec<Arc<dyn System>> = vec![Arc::new(Deposed), Arc::new(NaiveLock)];
    cli::main(Suite { workloads, systems })
}
