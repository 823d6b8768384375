//! A system whose every run is convicted.

use deposed::{
    checkers::history::{Answer, Op, Write},
    net::LocalFuture,
    node::Node,
    system::{Setup, System},
    workload::MS,
};

/// Clients that write under tokens which nobody granted, differently under each seed.
pub struct Forger;

impl System for Forger {
    fn name(&self) -> &'static str {
        "forger"
    }

    fn store(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn storage(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn client(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(async move {
            loop {
                node.sleep(10 * MS + node.random_below(20) * MS).await;
                let write = node.invoke(write(7)).await;
                node.sleep(2 * MS).await;
                write.ok(Answer::None);
            }
        })
    }
}

/// A write under this token.
pub fn write(token: u64) -> Op {
    Op::Write(Write {
        lease: "leader".into(),
        token: Some(token),
        seq: Some(1),
        key: "x".into(),
        value: 40.into(),
    })
}
