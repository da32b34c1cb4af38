//! What keeps the key that signs, in a process that has one of its own.
//!
//! Owns the key of a notary, and what that notary wrote. Refuses to give a key away. Invariant: a key that lives in memory was never
//! anywhere else, and ends with its process; one in a token never was in this one.

pub mod token;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use writ_core::{Custody, Digest, SessionId};
use writ_evidence::custody::Signs;
use writ_evidence::keys::{self, KeyError, PublicKey, SigningKey};
use writ_sandbox::Locked;

pub use token::{Place, TokenError, TokenKey};

/// A key that signs, what keeps it, and the last row of each session that its process wrote.
pub struct Keeper {
    custody: Custody,
    id: Digest,
    key: Box<dyn Signs>,
    written: Mutex<HashMap<String, (u64, Digest)>>,
}

/// Why there is no such key.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The system gives no locked memory.
    #[error("no memory can be locked for the key ({0}): raise `ulimit -l`")]
    Memory(std::io::Error),
    /// The key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The token that keeps it.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// A key in a page that is neither swapped out nor dumped.
struct MemoryKey {
    seed: Locked,
    public: PublicKey,
}

impl Signs for MemoryKey {
    fn public(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        keys::seed_sign(self.seed.get(), message)
    }
}

impl Keeper {
    /// A new key, which lives in this process and ends with it.
    pub fn in_memory() -> Result<Self, KeeperError> {
        let seed = Locked::fill(keys::fill_seed).map_err(|error| KeeperError::Memory(error.into()))??;
        let public = keys::seed_public(seed.get())?;
        Ok(Self::of(Custody::ProcessMemory, Box::new(MemoryKey { seed, public })))
    }

    /// A key that a token keeps.
    pub fn in_token(key: TokenKey) -> Self {
        Self::of(Custody::Pkcs11, Box::new(key))
    }

    /// The machine's own key, of a notary that is another user than those who ask it.
    pub fn of_other_user(key: SigningKey) -> Self {
        Self::of(Custody::OtherUser, Box::new(key))
    }

    fn of(custody: Custody, key: Box<dyn Signs>) -> Self {
        Self { custody, id: key.public().key_id(), key, written: Mutex::default() }
    }

    /// What keeps it.
    pub const fn custody(&self) -> Custody {
        self.custody
    }

    /// Whether the key is still there when its process has ended.
    pub fn outlives(&self) -> bool {
        self.custody >= Custody::Pkcs11
    }

    /// The key's id.
    pub const fn id(&self) -> Digest {
        self.id
    }

    /// Remembers the last row that was written here. Who else writes to a session is found out by that.
    pub fn wrote(&self, session: &SessionId, sequence: u64, seal: Digest) {
        self.written().insert(session.file_name(), (sequence, seal));
    }

    /// The number of the first row that another process wrote, where the last one is not what was written here.
    pub fn beside(&self, session: &SessionId, sequence: u64, seal: Digest) -> Option<u64> {
        match self.written().get(&session.file_name()) {
            Some((_, last)) if *last == seal => None,
            Some((last, _)) => Some(last.saturating_add(1).min(sequence)),
            None => Some(0),
        }
    }

    fn written(&self) -> std::sync::MutexGuard<'_, HashMap<String, (u64, Digest)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signs for Keeper {
    fn public(&self) -> &PublicKey {
        self.key.public()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.key.sign(message)
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keeper({}, {})", self.custody, self.id)
    }
}
