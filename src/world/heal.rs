//! Ends faults: by their time, or all of them when calm comes.

use deposed_checkers::history::Nanos;
use serde_json::json;

use super::{World, queue::Ending};
use crate::{node::gate::Caught, workload::Network};

impl World {
    pub(super) fn heal_due(&mut self, now: Nanos) {
        self.catch_gc_pauses();
        while let Some(ending) = self.injector.queue.next_ending(now) {
            self.heal(ending);
        }
    }

    fn heal(&mut self, ending: Ending) {
        let names = self.all_names();
        match ending {
            Ending::Mend { fault, links } => {
                self.recorder
                    .nemesis("heal", json!({"fault": fault, "nodes": self.ends(&links)}));
                self.injector.links.mend(&self.sim, &names, &links);
            }
            Ending::Release { links } => {
                self.recorder
                    .nemesis("heal", json!({"fault": "hold", "nodes": self.ends(&links)}));
                self.injector.links.release(&self.sim, &names, &links);
            }
            Ending::NormalLatency { links } => {
                let value = json!({"fault": "latency", "nodes": self.ends(&links)});
                self.recorder.nemesis("heal", value);
                let Network {
                    min_latency,
                    max_latency,
                } = self.injector.network;
                let links = self.injector.links.quick(links);
                self.set_latency(&links, min_latency, max_latency);
            }
            Ending::Resume { node, boot } => {
                // A process that was crashed meanwhile has nothing to resume.
                if self.actors[node].up() && self.actors[node].boots.get() == boot {
                    let value = json!({"node": self.actors[node].name});
                    self.recorder.nemesis("resume", value);
                    self.actors[node].gate.open();
                }
            }
            Ending::Steady { flaky, nodes } => {
                self.recorder
                    .nemesis("heal", json!({"fault": "flaky", "nodes": nodes}));
                self.rules.steady(flaky);
            }
            Ending::Wake { node, boot } => {
                if self.actors[node].up() && self.actors[node].boots.get() == boot {
                    let value = json!({"fault": "suspend", "node": self.actors[node].name});
                    self.recorder.nemesis("resume", value);
                    self.wake(node);
                }
            }
            Ending::Feed { node, one_in } => {
                let value = json!({"fault": "starve", "nodes": [self.actors[node].name]});
                self.recorder.nemesis("heal", value);
                self.feed(node, one_in);
            }
            Ending::Restart { node, cut } => {
                self.recorder
                    .nemesis("restart", json!({"node": self.actors[node].name}));
                self.injector.links.mend(&self.sim, &names, &cut);
                self.sim.bounce(self.actors[node].name.as_str());
            }
            Ending::Rate { node } => {
                let others = self.injector.off_rate.entry(node).or_default();
                *others -= 1;
                if *others == 0 {
                    self.set_rate(node, self.actors[node].initial_rate);
                }
            }
            Ending::SlowSync { node, by } => self.quicken_disk(node, by),
            Ending::FullDisk { node } => self.free_disk(node),
        }
    }

    /// A gc point has closed its gate by itself; the world ends that pause.
    fn catch_gc_pauses(&mut self) {
        let now = self.recorder.now();
        for node in 0..self.actors.len() {
            if let Some(Caught { length, before }) = self.actors[node].gate.take_caught() {
                let mut value = json!({"node": self.actors[node].name, "for": length});
                if let Some(before) = before {
                    value["before"] = json!(before);
                }
                self.recorder.nemesis("paused", value);
                self.resume_after(node, now.saturating_add(length));
            }
        }
    }

    pub(super) fn resume_after(&mut self, node: usize, at: Nanos) {
        let boot = self.actors[node].boots.get();
        self.injector.queue.end(at, Ending::Resume { node, boot });
    }
}
