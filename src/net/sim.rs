//! The simulated network: turmoil's TCP, and above it the message rules that
//! turmoil has not (it drops whole segments, which wedges a stream for good; see
//! its `fail_rate`). Rules live at the receiving end: a frame delayed by one still
//! arrives after its sender has crashed or closed.

use std::{
    cell::{Cell, RefCell},
    io,
    net::Ipv4Addr,
    rc::Rc,
    time::Duration,
};

use deposed_checkers::history::{Name, Nanos};
use serde_json::json;

use super::{Connection, Listener, LocalFuture, Meddler, Meddling, Net};
use crate::recorder::Recorder;

/// Every node listens here; nodes have addresses of their own.
const PORT: u16 = 7000;

/// One armed message rule: what befalls the next `left` frames that match.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The frame's kind.
    pub kind: Name,
    /// Only frames sent by one of these; empty: by anyone.
    pub from: Vec<Name>,
    /// Only frames received by one of these; empty: by anyone.
    pub to: Vec<Name>,
    /// What happens.
    pub meddling: Meddling,
    /// How many frames are left to befall.
    pub left: u32,
}

impl Rule {
    fn matches(&self, from: &Name, to: &Name, kind: &str) -> bool {
        self.kind == kind
            && (self.from.is_empty() || self.from.contains(from))
            && (self.to.is_empty() || self.to.contains(to))
    }
}

/// The message rules of a world: armed by the nemesis, applied by receivers, each
/// frame hit recorded (`lost`, `delayed`, `duplicated`).
pub struct Rules {
    rules: RefCell<Vec<Rule>>,
    armed: Cell<bool>,
    recorder: Recorder,
    /// True time at which the network is healed: nothing is held back beyond it.
    healed_at: Nanos,
}

impl Rules {
    /// No rules yet; frames are held back until `healed_at` (true time) at the latest.
    pub fn new(recorder: Recorder, healed_at: Nanos) -> Self {
        Self {
            rules: RefCell::default(),
            armed: Cell::new(false),
            recorder,
            healed_at,
        }
    }

    /// Arms one more rule. Of two rules that match a frame the older one applies.
    pub fn arm(&self, rule: Rule) {
        self.armed.set(true);
        self.rules.borrow_mut().push(rule);
    }

    /// Disarms all rules.
    pub fn clear(&self) {
        self.armed.set(false);
        self.rules.borrow_mut().clear();
    }
}

impl Meddler for Rules {
    fn armed(&self) -> bool {
        self.armed.get()
    }

    fn meddle(&self, from: &Name, to: &Name, kind: &str) -> Option<Meddling> {
        let mut rules = self.rules.borrow_mut();
        let at = rules.iter().position(|rule| rule.matches(from, to, kind))?;
        let meddling = rules[at].meddling;
        rules[at].left -= 1;
        if rules[at].left == 0 {
            rules.remove(at);
            self.armed.set(!rules.is_empty());
        }
        let word = match meddling {
            Meddling::Lose => "lost",
            Meddling::Delay(_) => "delayed",
            Meddling::Duplicate(_) => "duplicated",
        };
        self.recorder
            .nemesis(word, json!({"kind": kind, "from": from, "to": to}));
        let most = Duration::from_nanos(self.healed_at.saturating_sub(self.recorder.now()));
        Some(match meddling {
            Meddling::Lose => Meddling::Lose,
            Meddling::Delay(by) => Meddling::Delay(by.min(most)),
            Meddling::Duplicate(by) => Meddling::Duplicate(by.min(most)),
        })
    }
}

/// A node's way to the simulated network.
pub struct SimNet {
    me: Name,
    rules: Rc<Rules>,
}

impl SimNet {
    /// For the node called `me`, which must be the turmoil host it runs on.
    pub fn new(me: Name, rules: Rc<Rules>) -> Self {
        Self { me, rules }
    }
}

impl Net for SimNet {
    fn listen(&self) -> LocalFuture<'static, io::Result<Box<dyn Listener>>> {
        let (me, rules) = (self.me.clone(), self.rules.clone());
        Box::pin(async move {
            let listener = turmoil::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
            Ok(Box::new(SimListener {
                me,
                rules,
                listener,
            }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, peer: &Name) -> LocalFuture<'static, io::Result<Connection>> {
        let (me, peer, rules) = (self.me.clone(), peer.clone(), self.rules.clone());
        Box::pin(async move {
            let stream = turmoil::net::TcpStream::connect((peer.as_str(), PORT)).await?;
            let rules: Rc<dyn Meddler> = rules;
            Ok(Connection::new(Box::new(stream), me, peer, Some(rules)))
        })
    }
}

struct SimListener {
    me: Name,
    rules: Rc<Rules>,
    listener: turmoil::net::TcpListener,
}

impl Listener for SimListener {
    fn accept(&mut self) -> LocalFuture<'_, io::Result<Connection>> {
        Box::pin(async {
            let (stream, address) = self.listener.accept().await?;
            let peer = turmoil::reverse_lookup(address.ip()).unwrap_or_default();
            let rules: Rc<dyn Meddler> = self.rules.clone();
            Ok(Connection::new(
                Box::new(stream),
                self.me.clone(),
                peer.into(),
                Some(rules),
            ))
        })
    }
}
