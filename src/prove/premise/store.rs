//! What is asked of a store.

use deposed_checkers::history::{Name, Token};

use super::Premise;
use crate::prove::{
    message::{GRAVE, LAST_ID, Message, Process, Says},
    reduce::{NOBODYS, Rules, SOMEBODY},
    scope::Scope,
    store_node::{StoreNode, StoreSays, StoreStep, lease},
};

/// As many tokens as a store may have granted to be asked: those of a small world are few,
/// as they are told by their rank.
const MOST_TOKENS: Token = 1 << 6;

/// A store with room between its tokens, and who may ask it what.
struct Asked<'a> {
    scope: &'a Scope,
    node: StoreNode,
    /// The recorded owners and their requests: one, but where a disk lags behind.
    owners: Vec<(Process, u64)>,
    processes: Vec<Process>,
    /// Two that are nowhere yet: who asks like anybody, and whose a lease is that is nobody's.
    strangers: [Process; 2],
}

/// The first premise of these rules that does not hold of a store.
pub(in crate::prove) fn broken(node: &StoreNode, scope: &Scope, rules: Rules) -> Option<Premise> {
    if !rules.settled && !rules.graves {
        return None;
    }
    if node.granted >= MOST_TOKENS {
        return Some(Premise::TokensRise);
    }
    let mut owners = Vec::new();
    let node = node.renamed(
        |token| 2 * token,
        |holder, request| {
            let owner = (Process::of(holder), request);
            if !owners.contains(&owner) {
                owners.push(owner);
            }
            (holder.clone(), request)
        },
    );
    let processes = processes(&owners, scope);
    let graves = (0..).map(|life| Process {
        client: GRAVE,
        life,
    });
    let mut strangers = graves.filter(|grave| !processes.contains(grave));
    let mut stranger = || strangers.next().expect("there is no end of them");
    let asked = Asked {
        scope,
        strangers: [stranger(), stranger()],
        processes,
        node,
        owners,
    };
    let settled = rules.settled.then(|| asked.settled()).flatten();
    settled.or_else(|| rules.graves.then(|| asked.graves()).flatten())
}

/// The owners, another life of each, a stranger, and the two that stand for others.
fn processes(owners: &[(Process, u64)], scope: &Scope) -> Vec<Process> {
    let mut all = vec![NOBODYS, SOMEBODY];
    for client in 0..scope.clients {
        all.extend([0, 1].map(|life| Process { client, life }));
    }
    for (owner, _) in owners {
        let another = Process {
            life: owner.life ^ 1,
            ..*owner
        };
        all.extend([*owner, another]);
    }
    all.sort_unstable();
    all.dedup();
    all
}

impl Asked<'_> {
    fn after(&self, message: Message) -> (StoreNode, StoreSays) {
        self.node.step(self.scope, StoreStep::Read(message))
    }

    fn heeds(node: &StoreNode, process: Process, token: Token) -> bool {
        node.core.heeds(&lease(), &process.holder(), token)
    }

    fn tokens(&self) -> impl Iterator<Item = Token> + use<> {
        1..=2 * self.node.granted.max(1) + 1
    }

    /// Acquires of everybody: by requests around the recorded ones.
    fn acquires(&self) -> Vec<Message> {
        let mut requests = vec![0, 1];
        for (_, request) in &self.owners {
            requests.extend([request.saturating_sub(1), *request, request + 1]);
        }
        requests.retain(|request| *request <= LAST_ID);
        requests.sort_unstable();
        requests.dedup();
        let of = |process: &Process| {
            let process = *process;
            let acquire = move |request: &u64| Message::new(Says::Acquire, process, *request, 0);
            requests.iter().map(acquire).collect::<Vec<_>>()
        };
        self.processes.iter().flat_map(of).collect()
    }

    /// Renewals and releases of everybody under every token.
    fn claims(&self) -> Vec<Message> {
        let mut all = Vec::new();
        for &process in &self.processes {
            for token in self.tokens() {
                all.push(Message::new(Says::Renew, process, 0, token));
                all.push(Message::new(Says::Release, process, 0, token));
            }
        }
        all
    }

    fn settled(&self) -> Option<Premise> {
        for claim in self.claims() {
            let (next, says) = self.after(claim);
            if !Self::heeds(&self.node, claim.process(), claim.token()) {
                let word = says.answer.map(Message::says);
                let refused = match claim.says() {
                    Says::Renew => word == Some(Says::RenewDenied),
                    // Once more what is released already.
                    _ => matches!(word, Some(Says::ReleaseDenied | Says::Released)),
                };
                if next != self.node || !refused {
                    return Some(Premise::RefusesOthers);
                }
            }
            if self.heeds_more(&next, None) {
                return Some(Premise::TokensRise);
            }
        }
        for acquire in self.acquires() {
            let (next, says) = self.after(acquire);
            let answer = says.answer.filter(|answer| answer.says() == Says::Granted);
            let granted = answer.map(|answer| (acquire.process(), answer.token()));
            let again = next == self.node && self.owners.contains(&whose(acquire));
            let higher = granted.is_none_or(|(_, token)| token > self.node.granted);
            if !higher && !again || self.heeds_more(&next, granted) {
                return Some(Premise::TokensRise);
            }
        }
        for step in [StoreStep::Tick, StoreStep::Crash] {
            if self.heeds_more(&self.node.step(self.scope, step).0, None) {
                return Some(Premise::TokensRise);
            }
        }
        None
    }

    /// Whether anybody is heeded after a step who was not before it, but for whom was granted
    /// a token by it; or granted tokens are forgotten.
    fn heeds_more(&self, next: &StoreNode, granted: Option<(Process, Token)>) -> bool {
        let more = self.processes.iter().any(|&process| {
            let mut tokens = self.tokens();
            tokens.any(|token| {
                Self::heeds(next, process, token)
                    && !Self::heeds(&self.node, process, token)
                    && granted != Some((process, token))
            })
        });
        more || next.granted < self.node.granted
    }

    /// An acquire does what anybody's would, or nothing; and with its owner by another name
    /// the store does the same.
    fn graves(&self) -> Option<Premise> {
        let [anybody, nobody] = self.strangers.map(|stranger| (stranger, 0));
        let by_anybody = self.after(Message::new(Says::Acquire, anybody.0, 0, 0)).0;
        for acquire in self.acquires() {
            let next = self.after(acquire).0;
            let same = renamed(&next, whose(acquire), anybody) == by_anybody;
            if next != self.node && !same {
                return Some(Premise::TreatsAllAlike);
            }
        }
        let &owner = self.owners.first()?;
        let nobodys = renamed(&self.node, owner, nobody);
        let alike = |step: StoreStep, other: StoreStep| {
            let (next, says) = self.node.step(self.scope, step);
            let (other, other_says) = nobodys.step(self.scope, other);
            let word = |says: &StoreSays| says.answer.map(|it| (it.says(), it.token()));
            renamed(&next, owner, nobody) == other
                && word(&says) == word(&other_says)
                && says.breaks == other_says.breaks
        };
        let asks = |acquire: &Message| {
            // What the owner asked before is told by what it comes to, above.
            let before = acquire.process() == owner.0 && acquire.id() <= owner.1;
            let step = StoreStep::Read(*acquire);
            before || alike(step, step)
        };
        let claims = |claim: &Message| {
            let (says, process, token) = (claim.says(), claim.process(), claim.token());
            let process = if process == owner.0 {
                nobody.0
            } else {
                process
            };
            let other = Message::new(says, process, claim.id(), token);
            alike(StoreStep::Read(*claim), StoreStep::Read(other))
        };
        let all = [StoreStep::Tick, StoreStep::Crash].map(|step| alike(step, step)) == [true; 2]
            && self.acquires().iter().all(asks)
            && self.claims().iter().all(claims);
        (!all).then_some(Premise::TreatsAllAlike)
    }
}

fn whose(acquire: Message) -> (Process, u64) {
    (acquire.process(), acquire.id())
}

/// The same store with one who asked by another name.
fn renamed(node: &StoreNode, from: (Process, u64), to: (Process, u64)) -> StoreNode {
    let asked = |holder: &Name, request| match (Process::of(holder), request) == from {
        true => (to.0.holder(), to.1),
        false => (holder.clone(), request),
    };
    node.renamed(|token| token, asked)
}
