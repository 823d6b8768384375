//! The simulated network: turmoil's TCP, and above it the message rules that
//! turmoil has not (it drops whole segments, which wedges a stream for good; see
//! its `fail_rate`). Rules live at the receiving end: a frame delayed by one still
//! arrives after its sender has crashed or closed.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
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

/// Which links are cut, as the world told it: what a handshake has to know. Turmoil
/// refuses a connection across a cut at once; a real one is a black hole, in which
/// nobody learns that nothing was sent.
#[derive(Default)]
pub struct Cuts(RefCell<BTreeMap<(Name, Name), Cut>>);

/// One way from a node to another.
#[derive(Clone, Copy, Default)]
struct Cut {
    cut: bool,
    /// How often it was cut.
    times: u64,
}

impl Cuts {
    /// From now on, no message passes from one node to the other, or they do again.
    pub fn set(&self, from: &Name, to: &Name, cut: bool) {
        let mut cuts = self.0.borrow_mut();
        let way = cuts.entry((from.clone(), to.clone())).or_default();
        way.times += u64::from(cut && !way.cut);
        way.cut = cut;
    }

    /// Both ways between two nodes. A handshake needs both.
    fn between(&self, a: &Name, b: &Name) -> Cut {
        let cuts = self.0.borrow();
        let way = |from: &Name, to: &Name| {
            let way = cuts.get(&(from.clone(), to.clone()));
            way.copied().unwrap_or_default()
        };
        let (there, back) = (way(a, b), way(b, a));
        Cut {
            cut: there.cut || back.cut,
            times: there.times + back.times,
        }
    }
}

/// A node's way to the simulated network.
pub struct SimNet {
    me: Name,
    rules: Rc<Rules>,
    cuts: Rc<Cuts>,
}

impl SimNet {
    /// For the node called `me`, which must be the turmoil host it runs on.
    pub fn new(me: Name, rules: Rc<Rules>, cuts: Rc<Cuts>) -> Self {
        Self { me, rules, cuts }
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

    /// Across a cut, in either direction and at any time while it shakes hands, it
    /// waits for ever. It is refused only by a host that is up and does not listen.
    fn connect(&self, peer: &Name) -> LocalFuture<'static, io::Result<Connection>> {
        let (me, peer, rules) = (self.me.clone(), peer.clone(), self.rules.clone());
        let cuts = self.cuts.clone();
        Box::pin(async move {
            let before = cuts.between(&me, &peer);
            if before.cut {
                return std::future::pending().await;
            }
            let connected = turmoil::net::TcpStream::connect((peer.as_str(), PORT)).await;
            // A cut that has healed meanwhile lost the handshake all the same.
            if cuts.between(&me, &peer).times != before.times {
                return std::future::pending().await;
            }
            let stream = connected?;
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
