//! A client whose `is_leader()` is not what it recorded fails its run.

use std::{rc::Rc, sync::Arc};

use deposed::{
    checkers::history::{Lead, Name, Nanos, Observation},
    net::LocalFuture,
    node::{Believer, Node, Told},
    run::run,
    system::{Setup, System},
};

use crate::probe::header;

/// Its clients believe to lead for ever, and say so or not.
struct Faith {
    told: bool,
}

struct Always {
    lease: Name,
}

impl Believer for Always {
    fn lease(&self) -> &Name {
        &self.lease
    }

    fn is_leader(&self, _: Nanos) -> bool {
        true
    }

    fn told(&self) -> Option<Told> {
        None
    }
}

impl System for Faith {
    fn name(&self) -> &'static str {
        "faith"
    }

    fn store(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn storage(&self, _: Node, _: Setup) -> LocalFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn client(&self, node: Node, _: Setup) -> LocalFuture<'static, ()> {
        let lease: Name = "leader".into();
        if self.told {
            node.observe(Observation::Lead(Lead {
                lease: lease.clone(),
                holder: node.name().clone(),
                token: Some(1),
                until: None,
                sent: None,
            }));
        }
        node.enlist(Rc::new(Always { lease }));
        Box::pin(std::future::pending())
    }
}

fn defects(told: bool) -> Vec<String> {
    let system: Arc<dyn System> = Arc::new(Faith { told });
    run(&header(vec![]), &system).expect("it runs").defects
}

#[test]
fn a_belief_that_was_not_recorded_is_a_defect_of_the_run() {
    let defects = defects(false);
    assert_eq!(defects.len(), 1, "{defects:?}");
    assert!(
        defects[0].contains("a's is_leader() for 'leader' is true"),
        "{}",
        defects[0]
    );
}

#[test]
fn a_belief_that_was_recorded_is_none() {
    assert_eq!(defects(true), Vec::<String>::new());
}
