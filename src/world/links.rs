//! Which links are cut, held or slow, counted: two faults on one link overlap, and the link
//! heals when the last of them ends.

use std::rc::Rc;

use deposed_checkers::history::Name;

use crate::net::sim::Cuts;

/// The state of every directed link between `n` nodes.
pub(super) struct Links {
    n: usize,
    cuts: Vec<u32>,
    holds: Vec<u32>,
    slow: Vec<u32>,
    /// What handshakes know of the cuts.
    known: Rc<Cuts>,
}

/// A directed link, by the nodes' places.
pub(super) type Link = (usize, usize);

impl Links {
    pub(super) fn new(n: usize, known: Rc<Cuts>) -> Self {
        Self {
            known,
            n,
            cuts: vec![0; n * n],
            holds: vec![0; n * n],
            slow: vec![0; n * n],
        }
    }

    pub(super) fn cut(&mut self, sim: &turmoil::Sim<'_>, names: &[Name], links: &[Link]) {
        self.change(sim, names, links, |links, at| links.cuts[at] += 1);
    }

    pub(super) fn mend(&mut self, sim: &turmoil::Sim<'_>, names: &[Name], links: &[Link]) {
        self.change(sim, names, links, |links, at| links.cuts[at] -= 1);
    }

    pub(super) fn hold(&mut self, sim: &turmoil::Sim<'_>, names: &[Name], links: &[Link]) {
        self.change(sim, names, links, |links, at| links.holds[at] += 1);
    }

    pub(super) fn release(&mut self, sim: &turmoil::Sim<'_>, names: &[Name], links: &[Link]) {
        self.change(sim, names, links, |links, at| links.holds[at] -= 1);
    }

    /// The links are slow once more.
    pub(super) fn slow(&mut self, links: &[Link]) {
        for &(from, to) in links {
            self.slow[from * self.n + to] += 1;
        }
    }

    /// The links are slow once less; returns those that are not slow any more.
    pub(super) fn quick(&mut self, mut links: Vec<Link>) -> Vec<Link> {
        links.retain(|&(from, to)| {
            let slow = &mut self.slow[from * self.n + to];
            *slow -= 1;
            *slow == 0
        });
        links
    }

    fn change(
        &mut self,
        sim: &turmoil::Sim<'_>,
        names: &[Name],
        links: &[Link],
        change: impl Fn(&mut Self, usize),
    ) {
        for &(from, to) in links {
            change(self, from * self.n + to);
        }
        let mut pairs: Vec<Link> = links.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        for (a, b) in pairs {
            self.settle(sim, names, a, b);
        }
    }

    /// Brings turmoil's link between two nodes to what the counts say. Turmoil holds
    /// both ways or none, and a cut both loses and outlasts what is held.
    fn settle(&self, sim: &turmoil::Sim<'_>, names: &[Name], a: usize, b: usize) {
        let (there, back) = (a * self.n + b, b * self.n + a);
        self.known.set(&names[a], &names[b], self.cuts[there] > 0);
        self.known.set(&names[b], &names[a], self.cuts[back] > 0);
        let (a, b) = (names[a].as_str(), names[b].as_str());
        if self.holds[there] + self.holds[back] > 0 {
            sim.hold(a, b);
        } else {
            sim.release(a, b);
        }
        if self.cuts[there] > 0 {
            sim.partition_oneway(a, b);
        }
        if self.cuts[back] > 0 {
            sim.partition_oneway(b, a);
        }
    }
}

/// Both directions between every node of one party and every node of the other.
pub(super) fn between(a: &[usize], b: &[usize]) -> Vec<Link> {
    let mut links = towards(a, b);
    links.extend(towards(b, a));
    links.sort_unstable();
    links.dedup();
    links
}

/// From every node of one party to every node of the other.
pub(super) fn towards(from: &[usize], to: &[usize]) -> Vec<Link> {
    let pairs = from
        .iter()
        .flat_map(|&from| to.iter().map(move |&to| (from, to)));
    pairs.filter(|(from, to)| from != to).collect()
}
