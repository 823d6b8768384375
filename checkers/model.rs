//! What a foreign history's operations mean: the models they are judged by.

/// The object that a history's operations were done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Model {
    /// A lease with fencing tokens, judged by the lease checks.
    Lease,
    /// A lock: `acquire` and `release`.
    Mutex,
    /// A lock whose acquires return rising tokens.
    FencedMutex,
    /// One register a key: `read` and `write`.
    Register,
    /// Registers with `cas`.
    CasRegister,
    /// A store of texts by key: `get`, `put` and `append`.
    Kv,
}

impl Model {
    /// Every model.
    pub const ALL: [Model; 6] = [
        Model::Lease,
        Model::Mutex,
        Model::FencedMutex,
        Model::Register,
        Model::CasRegister,
        Model::Kv,
    ];

    /// The model's name, as `--model` takes it: `cas-register`.
    pub fn name(self) -> &'static str {
        match self {
            Model::Lease => "lease",
            Model::Mutex => "mutex",
            Model::FencedMutex => "fenced-mutex",
            Model::Register => "register",
            Model::CasRegister => "cas-register",
            Model::Kv => "kv",
        }
    }
}
