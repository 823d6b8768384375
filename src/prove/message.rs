//! What is under way between nodes, in eight bytes.

use std::fmt;

use deposed_checkers::history::{Name, Token};

use crate::lease::{Reply, Request};

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Says {
    /// To the store: an acquire with this id.
    Acquire,
    /// To the store: a renewal with this id under the token.
    Renew,
    /// To the store: a release of the token.
    Release,
    /// To storage: the barrier.
    Fence,
    /// To storage: the term's write.
    Write,
    /// To storage: the term's delete.
    Delete,
    /// From the store: the acquire was granted the token.
    Granted,
    /// From the store: the acquire was refused.
    Denied,
    /// From the store: the renewal was applied.
    Renewed,
    /// From the store: the renewal was refused.
    RenewDenied,
    /// From the store: the release was applied.
    Released,
    /// From the store: the release was refused.
    ReleaseDenied,
    /// From storage: the fence was taken.
    Fenced,
    /// From storage: the token is stale.
    Stale,
}

const ALL: [Says; 14] = [
    Says::Acquire,
    Says::Renew,
    Says::Release,
    Says::Fence,
    Says::Write,
    Says::Delete,
    Says::Granted,
    Says::Denied,
    Says::Renewed,
    Says::RenewDenied,
    Says::Released,
    Says::ReleaseDenied,
    Says::Fenced,
    Says::Stale,
];

/// Who reads a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The lease store.
    Store,
    /// Storage.
    Storage,
    /// The client that it names, if that process still lives.
    Client,
}

impl Says {
    /// Who reads it.
    pub fn reader(self) -> Reader {
        match self {
            Says::Acquire | Says::Renew | Says::Release => Reader::Store,
            Says::Fence | Says::Write | Says::Delete => Reader::Storage,
            _ => Reader::Client,
        }
    }

    /// The kind of frame that says so over TCP. A change that is stale is answered by its own
    /// kind, which counts as a fence's here.
    pub fn kind(self) -> &'static str {
        match self {
            Says::Acquire => "acquire",
            Says::Renew => "renew",
            Says::Release => "release",
            Says::Fence => "fence",
            Says::Write => "write",
            Says::Delete => "delete",
            Says::Granted | Says::Denied => "acquire-reply",
            Says::Renewed | Says::RenewDenied => "renew-reply",
            Says::Released | Says::ReleaseDenied => "release-reply",
            Says::Fenced | Says::Stale => "fence-reply",
        }
    }
}

/// A client's process: its number, and how often the client has started before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Which client, from 0.
    pub client: usize,
    /// Which life of it.
    pub life: u64,
}

impl Process {
    /// The holder that it contends as: `a#0`.
    pub fn holder(self) -> Name {
        Name::from(format!("{}#{}", name_of(self.client), self.life))
    }

    /// The process that contends as this holder.
    ///
    /// # Panics
    /// If none does.
    pub fn of(holder: &Name) -> Self {
        let parsed = holder.split_once('#').and_then(|(name, life)| {
            let client = usize::from(name.bytes().next()?.checked_sub(b'a')?);
            Some(Process {
                client,
                life: life.parse().ok()?,
            })
        });
        parsed.expect("a holder of this world")
    }
}

/// A client's name: `a`, `b`, …; that after the last is the grave's.
pub fn name_of(client: usize) -> Name {
    let letters = ["a", "b", "c", "d", "e"];
    Name::from(letters[client])
}

/// A message: what it says, whose process it is from or for, an id where it says one, and a
/// token where it says one. Messages that say the same are equal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message(u64);

const TOKEN_BITS: u32 = 48;
const ID_BITS: u32 = 5;
/// The highest id that fits: that of what nobody awaits.
pub(super) const LAST_ID: u64 = (1 << ID_BITS) - 1;
const LIFE_BITS: u32 = 4;
const CLIENT_BITS: u32 = 3;

/// The number under which all processes go that are gone: see `Rules::graves`.
pub(super) const GRAVE: usize = super::scope::MOST_CLIENTS;

impl Message {
    /// Comes after every message: an empty place.
    pub const NONE: Message = Message(u64::MAX);

    /// # Panics
    /// If a number is larger than a search of this size can reach.
    pub fn new(says: Says, process: Process, id: u64, token: Token) -> Self {
        let fits = process.client <= GRAVE
            && process.life < 1 << LIFE_BITS
            && id < 1 << ID_BITS
            && token < 1 << TOKEN_BITS;
        assert!(fits, "{says:?} {process:?} {id} {token} does not fit");
        let head = (says as u64) << CLIENT_BITS | process.client as u64;
        let head = head << LIFE_BITS | process.life;
        Message((head << ID_BITS | id) << TOKEN_BITS | token)
    }

    /// What it says.
    pub fn says(self) -> Says {
        ALL[(self.0 >> (TOKEN_BITS + ID_BITS + LIFE_BITS + CLIENT_BITS)) as usize]
    }

    /// Whose process it is from or for.
    pub fn process(self) -> Process {
        Process {
            client: (self.0 >> (TOKEN_BITS + ID_BITS + LIFE_BITS) & ((1 << CLIENT_BITS) - 1))
                as usize,
            life: self.0 >> (TOKEN_BITS + ID_BITS) & ((1 << LIFE_BITS) - 1),
        }
    }

    /// An acquire's or a renewal's id, else 0.
    pub fn id(self) -> u64 {
        self.0 >> TOKEN_BITS & ((1 << ID_BITS) - 1)
    }

    /// The token, 0 where it carries none.
    pub fn token(self) -> Token {
        self.0 & ((1 << TOKEN_BITS) - 1)
    }

    /// The number that it is.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// What a client wants sent to the store.
    pub fn request(process: Process, request: &Request) -> Self {
        match *request {
            Request::Acquire { request, .. } => Message::new(Says::Acquire, process, request, 0),
            Request::Renew { token, attempt, .. } => {
                Message::new(Says::Renew, process, attempt, token)
            }
            Request::Release { token } => Message::new(Says::Release, process, 0, token),
        }
    }

    /// What the store answers, as the client's core reads it; `None` of any other message.
    pub fn reply(self) -> Option<Reply> {
        let (id, token) = (self.id(), self.token());
        Some(match self.says() {
            Says::Granted => Reply::Granted { request: id, token },
            Says::Denied => Reply::AcquireDenied {
                request: id,
                retry_after: None,
            },
            Says::Renewed => Reply::Renewed { attempt: id },
            Says::RenewDenied => Reply::RenewDenied { attempt: id },
            Says::Released => Reply::Released { token },
            Says::ReleaseDenied => Reply::ReleaseDenied { token },
            _ => return None,
        })
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Message::NONE {
            return f.write_str("-");
        }
        let holder = self.process().holder();
        write!(
            f,
            "{:?} {holder} {} @{}",
            self.says(),
            self.id(),
            self.token()
        )
    }
}
