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
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
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

/// A flaky link: what befalls each of its frames is drawn.
#[derive(Clone, Debug)]
pub struct Flaky {
    /// Between these and …
    pub a: Vec<Name>,
    /// … these, both ways.
    pub b: Vec<Name>,
    /// How likely a frame is lost, parts per billion.
    pub lose_ppb: u32,
    /// How likely it is late, parts per billion; not both.
    pub delay_ppb: u32,
    /// How late at most, ns.
    pub by: Nanos,
}

impl Flaky {
    fn joins(&self, from: &Name, to: &Name) -> bool {
        let (a, b) = (&self.a, &self.b);
        (a.contains(from) && b.contains(to)) || (b.contains(from) && a.contains(to))
    }

    /// What befalls one frame.
    fn draw(&self, rng: &mut ChaCha8Rng) -> Option<Meddling> {
        let ticket = rng.random_range(0..1_000_000_000);
        if ticket < self.lose_ppb {
            return Some(Meddling::Lose);
        }
        let late = ticket - self.lose_ppb < self.delay_ppb;
        late.then(|| Meddling::Delay(Duration::from_nanos(rng.random_range(0..=self.by))))
    }
}

/// The message rules of a world: armed by the nemesis, applied by receivers, each
/// frame hit recorded (`lost`, `delayed`, `duplicated`).
pub struct Rules {
    rules: RefCell<Vec<Rule>>,
    /// By the order in which they became flaky.
    flaky: RefCell<BTreeMap<u64, Flaky>>,
    rng: RefCell<ChaCha8Rng>,
    armed: Cell<bool>,
    recorder: Recorder,
    /// True time at which the network is healed: nothing is held back beyond it.
    healed_at: Nanos,
}

impl Rules {
    /// No rules yet; frames are held back until `healed_at` (true time) at the latest.
    /// `rng` draws what befalls the frames of flaky links.
    pub fn new(recorder: Recorder, healed_at: Nanos, rng: ChaCha8Rng) -> Self {
        Self {
            rules: RefCell::default(),
            flaky: RefCell::default(),
            rng: RefCell::new(rng),
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

    /// Makes a link flaky, until [`Rules::steady`] is told what this returns. A frame
    /// that a rule hits, or an older flaky link, is not drawn for again.
    pub fn flaky(&self, link: Flaky) -> u64 {
        self.armed.set(true);
        let mut flaky = self.flaky.borrow_mut();
        let id = flaky.last_key_value().map_or(0, |(id, _)| id + 1);
        flaky.insert(id, link);
        id
    }

    /// The link is not flaky any more.
    pub fn steady(&self, id: u64) {
        self.flaky.borrow_mut().remove(&id);
        self.settle();
    }

    /// Disarms all rules.
    pub fn clear(&self) {
        self.rules.borrow_mut().clear();
        self.settle();
    }

    fn settle(&self) {
        let idle = self.rules.borrow().is_empty() && self.flaky.borrow().is_empty();
        self.armed.set(!idle);
    }

    fn by_rule(&self, from: &Name, to: &Name, kind: &str) -> Option<Meddling> {
        let mut rules = self.rules.borrow_mut();
        let at = rules.iter().position(|rule| rule.matches(from, to, kind))?;
        let meddling = rules[at].meddling;
        rules[at].left -= 1;
        if rules[at].left == 0 {
            rules.remove(at);
            drop(rules);
            self.settle();
        }
        Some(meddling)
    }

    fn by_chance(&self, from: &Name, to: &Name) -> Option<Meddling> {
        let (flaky, mut rng) = (self.flaky.borrow(), self.rng.borrow_mut());
        let mut links = flaky.values().filter(|link| link.joins(from, to));
        links.find_map(|link| link.draw(&mut rng))
    }
}

impl Meddler for Rules {
    fn armed(&self) -> bool {
        self.armed.get()
    }

    fn meddle(&self, from: &Name, to: &Name, kind: &str) -> Option<Meddling> {
        let by_rule = self.by_rule(from, to, kind);
        let meddling = by_rule.or_else(|| self.by_chance(from, to))?;
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
