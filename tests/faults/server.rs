//! A server of ours, and a client that is gone before it can be answered.

use std::sync::{Arc, Mutex, PoisonError};

use deposed::{
    fault::Fault,
    net::LocalFuture,
    node::{
        Node,
        frame::{Outcome, Reply, Request},
        server::{Service, serve, until_it_stops},
    },
    run::run,
    system::{Setup, System},
    workload::MS,
};

use crate::probe::header;

const WRITES: u64 = 5;

/// Its storage notes the requests that were handed to it, by id. Its client `a` sends
/// some writes and hangs up.
#[derive(Clone, Default)]
struct Applied(Arc<Mutex<Vec<u64>>>);

impl Applied {
    fn ids(&self) -> Vec<u64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Service for Applied {
    fn answer(&mut self, request: Request) -> LocalFuture<'_, std::io::Result<Option<Reply>>> {
        let id = request.id();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(id);
        let answer = Outcome::Ok(());
        Box::pin(std::future::ready(Ok(Some(Reply::WriteReply {
            id,
            answer,
        }))))
    }
}

impl System for Applied {
    fn name(&self) -> &'static str {
        "applied"
    }

    fn store(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn storage(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        let applied = self.clone();
        let serving = serve(node, async move |_| Ok(applied.clone()));
        Box::pin(until_it_stops(serving))
    }

    fn client(&self, node: Node, setup: Setup) -> LocalFuture<'static, ()> {
        Box::pin(async move {
            if node.name() != "a" {
                return;
            }
            // Not before the server listens.
            node.sleep(10 * MS).await;
            let connected = node.net().connect(setup.first_storage()).await;
            let mut connection = connected.expect("it listens");
            for id in 0..WRITES {
                let write = Request::Write {
                    id,
                    lease: "leader".into(),
                    token: 1,
                    seq: id,
                    key: "k".into(),
                    value: "v".into(),
                };
                connection.send(&write).await.expect("it is up");
                node.sleep(10 * MS).await;
            }
            // The host stays up, and refuses what is sent to a connection that it closed.
            drop(connection);
            std::future::pending().await
        })
    }
}

#[test]
fn what_a_client_sent_before_it_hung_up_is_applied_however_late_it_comes() {
    let delay = Fault::Delay {
        kind: "write".into(),
        from: deposed::fault::Target::Everyone,
        to: deposed::fault::Target::Everyone,
        count: 5,
        by: 300 * MS,
    };
    let applied = Applied::default();
    let system: Arc<dyn System> = Arc::new(applied.clone());
    let outcome = run(&header(vec![(1, delay)]), &system).expect("it runs");
    assert_eq!(outcome.defects, Vec::<String>::new());
    assert_eq!(applied.ids(), [0, 1, 2, 3, 4]);
}
