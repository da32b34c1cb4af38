//! Which key signs for a session, and the row from which on it is another.
//!
//! Owns the change from key to key. Refuses to sign with one that no row introduces. Invariant: a call is decided under the custody that its
//! row's state names (spec/notary.md).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use writ_core::{Custody, Digest};
use writ_evidence::checkpoint::{Checkpoint, origin};
use writ_evidence::custody::{Bytes, Introduction, Kept, Signs};
use writ_evidence::keys::{KeyError, PublicKey, SigningKey};

use super::rows::{BESIDE, CUSTODY};
use super::state::Held;
use super::{Session, SessionError};
use crate::keeper::Keeper;

/// What signs for a session in this process.
pub enum Signer {
    /// The machine's key, in its file.
    File(Box<SigningKey>),
    /// A key of this process.
    Kept(Arc<Keeper>),
}

impl Signs for Signer {
    fn public(&self) -> &PublicKey {
        match self {
            Self::File(key) => key.public(),
            Self::Kept(keeper) => keeper.public(),
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        match self {
            Self::File(key) => key.sign(message),
            Self::Kept(keeper) => keeper.sign(message),
        }
    }
}

/// What a row says of the key that signs from it on. Without a key it is the machine's own.
#[derive(Debug, Serialize, Deserialize)]
pub struct Named {
    /// What keeps it.
    pub kept: Custody,
    /// Its public half, SPKI in DER.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Bytes>,
    /// The key that signed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// What the machine's key says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Bytes>,
}

#[derive(Serialize)]
struct Detail {
    custody: Named,
}

#[derive(Serialize)]
struct Beside {
    rows: [u64; 2],
}

impl Session<'_> {
    /// What signs for it here.
    pub fn signer(&self) -> Result<Signer, SessionError> {
        Ok(match &self.home.keeper {
            Some(keeper) => Signer::Kept(Arc::clone(keeper)),
            None => Signer::File(Box::new(self.store.ledger_key()?)),
        })
    }

    /// What keeps the key that signs here, and who introduces the next.
    pub fn kept(&self) -> Result<Kept, SessionError> {
        let Some(keeper) = &self.home.keeper else { return Ok(Kept::default()) };
        let root = self.store.ledger_key()?.public().key_id();
        Ok(Kept { custody: keeper.custody(), successor: (keeper.id() != root).then_some(root) })
    }

    /// The key that signs here, as the state names it.
    pub(super) fn held(&self) -> Option<Held> {
        self.home.keeper.as_ref().map(|keeper| Held { kept: keeper.custody(), key: keeper.id() })
    }

    /// Records that another key signs from here on, and rows that another process wrote than the one whose key signs.
    pub fn take_custody(&mut self) -> Result<(), SessionError> {
        let held = self.held();
        if held != self.state.custody {
            let named = self.named()?;
            let draft = self.event(CUSTODY, Detail { custody: named });
            self.state.custody = held;
            self.write(draft)?;
        } else if let Some(rows) = self.beside() {
            let draft = self.event(BESIDE, Beside { rows });
            self.write(draft)?;
        }
        Ok(())
    }

    /// Introduces the key that signs from the next row on; `None` where that is the machine's own in its file, from the beginning on.
    pub(super) fn introduced(&self) -> Result<Option<Named>, SessionError> {
        if self.home.keeper.is_none() { Ok(None) } else { self.named().map(Some) }
    }

    fn named(&self) -> Result<Named, SessionError> {
        let Some(keeper) = &self.home.keeper else {
            let before = self.state.custody.as_ref().map(|held| held.key);
            return Ok(Named { kept: Custody::File, key: None, before, signature: None });
        };
        let (last, root) = (self.guard.last(), self.store.ledger_key()?);
        let before = self.state.custody.as_ref().filter(|_| last.is_some()).map(|held| held.key);
        let kept = keeper.custody();
        if keeper.id() == root.public().key_id() {
            return Ok(Named { kept, key: None, before, signature: None });
        }
        let introduction = Introduction {
            origin: &origin(&self.id),
            row: last.map_or(0, |row| row.sequence + 1),
            after: last.map_or(Digest::ZERO, |row| row.entry_hash),
            custody: kept,
            key: keeper.id(),
            before,
        };
        let signature = Some(Bytes(introduction.sign(&root)?));
        Ok(Named { kept, key: Some(Bytes(keeper.public().to_der())), before, signature })
    }

    /// The first and the last of the rows that another process wrote since this one wrote its last.
    fn beside(&self) -> Option<[u64; 2]> {
        let keeper = self.home.keeper.as_ref().filter(|keeper| keeper.custody() < Custody::OtherUser)?;
        let last = self.guard.last()?;
        let first = keeper.beside(&self.id, last.sequence, last.entry_hash)?;
        // A key that outlives its process has signed for rows of one before this.
        let first = if keeper.outlives() { first.max(self.signed_for(keeper)) } else { first };
        (first <= last.sequence).then_some([first, last.sequence])
    }

    /// How many rows a key's last checkpoint covers.
    fn signed_for(&self, keeper: &Keeper) -> u64 {
        let head = self.store.head(&self.id).ok().flatten();
        let head = head.and_then(|note| Checkpoint::verify(std::str::from_utf8(&note).ok()?, keeper.public()).ok());
        head.map_or(0, |checkpoint| checkpoint.size)
    }

    /// Remembers that this process wrote the last row.
    pub(super) fn wrote(&self) {
        if let (Some(keeper), Some(last)) = (&self.home.keeper, self.guard.last()) {
            keeper.wrote(&self.id, last.sequence, last.entry_hash);
        }
    }
}
