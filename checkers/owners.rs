//! What is told of a lease's owners by their store: whose a term is, what releases were
//! sent that may have ended one, and when a store's clock began anew.

use std::collections::BTreeMap;

use crate::grants::process_of;
use crate::history::{Granted, Name, Nanos, Release, Token};

/// Whose a term is.
pub(crate) struct Owner {
    pub holder: Name,
    /// `None` after a restart: the recording does not tell.
    pub request: Option<u64>,
    pub token: Option<Token>,
}

impl Owner {
    pub fn of(granted: &Granted) -> Self {
        Owner {
            holder: granted.holder.clone(),
            request: Some(granted.request),
            token: granted.token,
        }
    }

    /// A store without tokens does not tell a holder's terms apart.
    pub fn is(&self, holder: &Name, token: Option<Token>) -> bool {
        self.holder == *holder && (self.token == token || token.is_none() || self.token.is_none())
    }

    /// One request answered again is one grant.
    pub fn is_told_again(&self, granted: &Granted) -> bool {
        self.is(&granted.holder, granted.token)
            && self
                .request
                .is_none_or(|request| request == granted.request)
    }

    /// In words, in a sentence that tells of another holder beside it.
    pub fn named(&self, beside: &str) -> String {
        named(&self.holder, self.token, beside)
    }
}

/// A holder as the user calls it: by its process's name. Where the sentence tells of another
/// holder of that process, a restarted one as a rule, each keeps its nonce.
pub(crate) fn called<'a>(holder: &'a str, beside: &str) -> &'a str {
    match process_of(holder) {
        "" => holder,
        process if process == process_of(beside) && holder != beside => holder,
        process => process,
    }
}

/// A holder and its token, in words.
pub(crate) fn named(holder: &str, token: Option<Token>, beside: &str) -> String {
    let who = called(holder, beside);
    match token {
        Some(token) => format!("{who} (token {token})"),
        None => who.to_owned(),
    }
}

/// Releases that were sent, by lease: who, and with what token. Each may have been made
/// durable in the instant before a crash, and never been recorded.
///
/// Grants make earlier ones be forgotten. Where so many are sent without a grant that a
/// store tells of, any of them may be meant from then on.
#[derive(Default)]
pub(crate) struct Releases(BTreeMap<Name, Vec<(Name, Option<Token>)>>);

/// How many releases of a lease are remembered.
const REMEMBERED: usize = 64;

impl Releases {
    pub fn sent(&mut self, release: &Release) {
        let releases = self.0.entry(release.lease.clone()).or_default();
        let sent = (release.holder.clone(), release.token);
        if releases.len() < REMEMBERED && !releases.contains(&sent) {
            releases.push(sent);
        }
    }

    /// How many there are.
    pub fn remembered(&self) -> usize {
        self.0.values().map(|sent| 1 + sent.len()).sum()
    }

    /// Those of earlier holders go with the next grant of a higher token.
    pub fn granted(&mut self, granted: &Granted) {
        let releases = self.0.get_mut(&granted.lease);
        if let Some(releases) = releases.filter(|releases| releases.len() < REMEMBERED) {
            // A store that hands a token out twice may yet meet them.
            releases.retain(|(holder, token)| {
                *holder == granted.holder || token.is_some() && *token >= granted.token
            });
        }
    }

    /// Whether one was sent that may have ended this owner's term.
    pub fn may_have_ended(&self, lease: &Name, owner: &Owner) -> bool {
        let releases = self.0.get(lease);
        releases.is_some_and(|sent| {
            let forgotten = sent.len() == REMEMBERED;
            forgotten || sent.iter().any(|(who, token)| owner.is(who, *token))
        })
    }
}

/// What each store's clock showed last.
#[derive(Default)]
pub(crate) struct StoreClocks(BTreeMap<Name, Nanos>);

impl StoreClocks {
    /// How many stores there are.
    pub fn remembered(&self) -> usize {
        self.0.len()
    }

    /// What it had shown before, if by now it has begun anew, as with a machine's restart.
    pub fn shows(&mut self, store: &Name, clock: Nanos) -> Option<Nanos> {
        let Some(last) = self.0.get_mut(store) else {
            self.0.insert(store.clone(), clock);
            return None;
        };
        let before = std::mem::replace(last, clock);
        (clock < before).then_some(before)
    }
}
