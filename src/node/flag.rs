//! A belief that is a flag, for a system of your own that has no deadline.

use std::{cell::RefCell, rc::Rc};

use deposed_checkers::history::{Follow, Lead, Name, Nanos, Observation};

use super::{Believer, Node, Told};

/// One candidate's belief that it leads, from [`Flag::raise`] to [`Flag::lower`], or
/// to the end of its process. It carries no token and never ends by itself.
///
/// The world asks it whom a fault on the leader strikes, and the history has it as
/// `lead` and `follow`.
pub struct Flag {
    node: Node,
    belief: Rc<Belief>,
    holder: Name,
}

struct Belief {
    lease: Name,
    told: RefCell<Option<Told>>,
}

impl Flag {
    /// A lowered flag.
    pub fn new(node: &Node, lease: Name, holder: Name) -> Self {
        let told = RefCell::default();
        let belief = Rc::new(Belief { lease, told });
        node.enlist(belief.clone());
        Self {
            node: node.clone(),
            belief,
            holder,
        }
    }

    /// The candidate believes that it leads.
    pub fn raise(&self) {
        let sent = self.node.recorder().now();
        *self.belief.told.borrow_mut() = Some(Told {
            holder: self.holder.clone(),
            token: None,
            until: None,
            sent,
        });
        self.node.observe(Observation::Lead(Lead {
            lease: self.belief.lease.clone(),
            holder: self.holder.clone(),
            token: None,
            until: None,
            sent: Some(sent),
        }));
    }

    /// It no longer does.
    pub fn lower(&self) {
        if self.belief.told.take().is_some() {
            self.node.observe(Observation::Follow(Follow {
                lease: self.belief.lease.clone(),
                holder: self.holder.clone(),
                token: None,
            }));
        }
    }
}

impl Believer for Belief {
    fn lease(&self) -> &Name {
        &self.lease
    }

    fn is_leader(&self, _local: Nanos) -> bool {
        self.told.borrow().is_some()
    }

    fn told(&self) -> Option<Told> {
        self.told.borrow().clone()
    }
}
