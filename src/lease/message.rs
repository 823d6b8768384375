//! What a client asks and what it is told, and what the store answers.

use deposed_checkers::history::{Nanos, Token};

/// What a client wants sent to the store. Lease and holder are the sender's to add.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Ask for the lease. A retry carries the same id.
    Acquire {
        /// Rises within a client, by one.
        request: u64,
        /// How long the lease should last.
        ttl: Nanos,
    },
    /// Extend the lease. Each try has its own id.
    Renew {
        /// The term's token.
        token: Token,
        /// Rises within a client, by one.
        attempt: u64,
        /// How long the lease should last from when this is applied.
        ttl: Nanos,
    },
    /// Give the lease back.
    Release {
        /// The token of the term that is over.
        token: Token,
    },
}

/// What came back. Answers may come in any order, late, twice or never.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The acquire was granted.
    Granted {
        /// The acquire's id.
        request: u64,
        /// The new term's token.
        token: Token,
    },
    /// The acquire was refused.
    AcquireDenied {
        /// The acquire's id.
        request: u64,
        /// After how long it may succeed, if the store knows.
        retry_after: Option<Nanos>,
    },
    /// The renewal was applied.
    Renewed {
        /// The try's id.
        attempt: u64,
    },
    /// The renewal was refused: the term is over.
    RenewDenied {
        /// The try's id.
        attempt: u64,
    },
    /// The release was applied, now or before.
    Released {
        /// The token it carried.
        token: Token,
    },
    /// The release was refused: the lease had another owner already.
    ReleaseDenied {
        /// The token it carried.
        token: Token,
    },
}

/// A granted acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The term's fencing token.
    pub token: Token,
    /// How long the term lasts from when it was *first* granted, unless renewed.
    pub ttl: Nanos,
    /// False: the same answer again, and nothing changed.
    pub fresh: bool,
}

/// A granted renewal: the lease now lasts at least `ttl` from when it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extension {
    /// As asked for.
    pub ttl: Nanos,
    /// The recorded ttl grew: the record must become durable before the answer.
    pub durable_changed: bool,
}

/// A granted release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// False: it had been released before, and nothing changed.
    pub fresh: bool,
}

/// Why the store refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Denial {
    /// Somebody has the lease, the asking holder itself perhaps, or its lock-delay runs.
    #[error("the lease is held for another {remaining} ns")]
    Held {
        /// Until a new owner is possible, on the store's clock, if nobody renews.
        remaining: Nanos,
    },
    /// The holder has since made a later request, or has released what this one got.
    #[error("the request is older than what its holder did since")]
    Superseded,
    /// Another holder, another token, or nobody: not the recorded owner.
    #[error("not the lease's owner")]
    NotOwner,
    /// The recorded owner, but its time is over.
    #[error("the lease has expired")]
    Expired,
    /// The store does not grant such a ttl.
    #[error("the ttl must lie between {min} ns and {max} ns")]
    TtlOutOfBounds {
        /// The shortest.
        min: Nanos,
        /// The longest.
        max: Nanos,
    },
    /// The lease's or the holder's name is empty or too long.
    #[error("a name is empty or too long")]
    BadName,
    /// The lease's last token, `u64::MAX`, has been granted.
    #[error("the lease has no tokens left")]
    TokensSpent,
}

impl Denial {
    /// The error's name in a history and on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Denial::Held { .. } => "held",
            Denial::Superseded => "superseded",
            Denial::NotOwner => "not-owner",
            Denial::Expired => "expired",
            Denial::TtlOutOfBounds { .. } => "ttl-out-of-bounds",
            Denial::BadName => "bad-name",
            Denial::TokensSpent => "tokens-spent",
        }
    }
}
