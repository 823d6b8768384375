//! What is asked of a client.

use deposed_checkers::history::Token;

use super::Premise;
use crate::prove::{
    candidate::{Candidate, CandidateStep},
    message::{LAST_ID, Message, Process, Says},
    reduce::Rules,
    scope::Scope,
};

/// What a client is asked by: every answer that it could be given.
struct Asked<'a> {
    scope: &'a Scope,
    rules: Rules,
    node: &'a Candidate,
    /// The ids of its last acquire and of its last renewal.
    last: [u64; 2],
    answers: Vec<Message>,
}

/// The first premise of these rules that does not hold of a client.
pub(in crate::prove) fn broken(node: &Candidate, scope: &Scope, rules: Rules) -> Option<Premise> {
    let (mut tokens, mut requests, mut attempts) = (vec![0], Vec::new(), Vec::new());
    node.renamed(
        |token| {
            tokens.push(token);
            token
        },
        |request| {
            requests.push(request);
            request
        },
        |attempt| {
            attempts.push(attempt);
            attempt
        },
        node.life,
    );
    let last = [&requests, &attempts].map(|ids| ids.iter().copied().max().unwrap_or(0));
    let asked = Asked {
        scope,
        rules,
        node,
        last,
        answers: answers(
            node.life,
            &around(&tokens),
            &around(&requests),
            &around(&attempts),
        ),
    };
    let heeds = rules.dead_answers.then(|| asked.heeds()).flatten();
    heeds.or_else(|| rules.refusals.then(|| asked.refusals()).flatten())
}

/// These numbers, and those beside them.
fn around(numbers: &[u64]) -> Vec<u64> {
    let beside = |number: &u64| [number.saturating_sub(1), *number, number + 1];
    let mut all: Vec<u64> = numbers.iter().flat_map(beside).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn answers(life: u64, tokens: &[Token], requests: &[u64], attempts: &[u64]) -> Vec<Message> {
    // What a client makes of an answer does not hang on its number.
    let process = Process { client: 0, life };
    let mut all = Vec::new();
    let mut may_come = |says, id, token| {
        if id <= LAST_ID {
            all.push(Message::new(says, process, id, token));
        }
    };
    for &token in tokens.iter().filter(|token| **token > 0) {
        for &request in requests {
            may_come(Says::Granted, request, token);
        }
        for says in [
            Says::Released,
            Says::ReleaseDenied,
            Says::Fenced,
            Says::Stale,
        ] {
            may_come(says, 0, token);
        }
    }
    for &request in requests {
        may_come(Says::Denied, request, 0);
    }
    for &attempt in attempts {
        may_come(Says::Renewed, attempt, 0);
        may_come(Says::RenewDenied, attempt, 0);
    }
    all
}

impl Asked<'_> {
    /// What a search makes of a client after a step, and what that sends.
    fn after(&self, step: CandidateStep) -> (Candidate, Option<Message>) {
        let (next, says) = self.node.step(self.scope, 0, step);
        (self.rules.mapped(next), says.sent)
    }

    fn reads(&self, answer: Message) -> Candidate {
        self.after(CandidateStep::Read(answer)).0
    }

    /// An answer that it does not await changes nothing, and comes to be awaited by no step
    /// that does not ask for it.
    fn heeds(&self) -> Option<Premise> {
        let mut unawaited = self.answers.clone();
        unawaited.retain(|answer| !self.node.awaits(*answer));
        let own = [
            CandidateStep::Tick { skips: false },
            CandidateStep::Tick { skips: true },
            CandidateStep::Wake,
            CandidateStep::Look,
            CandidateStep::Act { deletes: false },
            CandidateStep::Act { deletes: true },
            CandidateStep::Resign,
        ];
        let reads = self.answers.iter().copied().map(CandidateStep::Read);
        for step in own.into_iter().chain(reads) {
            if !self.node.may(self.scope, step) {
                continue;
            }
            let (next, sent) = self.after(step);
            if let CandidateStep::Read(answer) = step
                && unawaited.contains(&answer)
                && next != *self.node
            {
                return Some(Premise::AwaitsWhatItAsked);
            }
            let newly = unawaited.iter().filter(|answer| next.awaits(**answer));
            for &answer in newly {
                if !self.is_asked_for(answer, step, sent) {
                    return Some(Premise::AwaitsWhatItAsked);
                }
            }
        }
        None
    }

    /// Whether nothing that was sent before this step can have this answer.
    fn is_asked_for(&self, answer: Message, step: CandidateStep, sent: Option<Message>) -> bool {
        let sends = |says, last| {
            let id = sent.filter(|sent| sent.says() == says).map(Message::id);
            id == Some(answer.id()) && answer.id() > last
        };
        let (token, [request, attempt]) = (answer.token(), self.last);
        match answer.says() {
            Says::Granted | Says::Denied => sends(Says::Acquire, request),
            Says::Renewed | Says::RenewDenied => sends(Says::Renew, attempt),
            // No fence is sent before the leader looks, which is once a term.
            Says::Fenced => {
                step == CandidateStep::Look && self.node.work.is_none_or(|it| it.token != token)
            }
            // Its own to call so only once it has it.
            Says::Stale => matches!(step, CandidateStep::Read(grant)
                if grant.says() == Says::Granted && grant.token() == token),
            // Whoever has a term has not released it.
            _ => self.node.core.token() == Some(token),
        }
    }

    /// However it is refused, it comes to the same.
    fn refusals(&self) -> Option<Premise> {
        let alike = self.answers.iter().all(|&answer| {
            let (process, token) = (answer.process(), answer.token());
            match answer.says() {
                Says::RenewDenied if self.node.awaits(answer) => {
                    let token = self.node.core.token().unwrap_or(0);
                    let stale = Message::new(Says::Stale, process, 0, token);
                    self.reads(answer) == self.reads(stale)
                }
                Says::ReleaseDenied => {
                    let released = Message::new(Says::Released, process, 0, token);
                    let after = self.reads(answer);
                    let sent = self.after(CandidateStep::Wake).0;
                    after == self.reads(released) && (after == *self.node || after == sent)
                }
                _ => true,
            }
        });
        let (next, sent) = self.after(CandidateStep::Wake);
        let released = sent.filter(|sent| sent.says() == Says::Release);
        let gone = released.is_none_or(|release| next.core.token() != Some(release.token()));
        (!alike || !gone).then_some(Premise::RefusalsSayAlike)
    }
}
