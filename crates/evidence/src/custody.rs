//! Which key signs for a session from which row on, and who says so.
//!
//! A key that does not outlive its process, or that a token keeps, is introduced by the machine's ledger key: a signature over the place in
//! the record at which it begins. Pure. Invariant: an introduction holds at one row of one history and nowhere else. Page: `spec/notary.md`.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};
use writ_core::{Custody, Digest};

use crate::keys::{BadSignature, KeyError, PublicKey, SigningKey};

/// What signs: a key, or whoever has one.
pub trait Signs: Send + Sync {
    /// The key's public half.
    fn public(&self) -> &PublicKey;
    /// Signs a message.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError>;
}

impl Signs for SigningKey {
    fn public(&self) -> &PublicKey {
        Self::public(self)
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        Self::sign(self, message)
    }
}

/// What keeps a key that signs, as checkpoints say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What.
    pub custody: Custody,
    /// The key that introduces the next, where this one is not the machine's own.
    pub successor: Option<Digest>,
}

impl Kept {
    /// The line of a checkpoint.
    pub fn line(self) -> String {
        let successor = self.successor.map(|key| format!(" {key}")).unwrap_or_default();
        format!("custody {}{successor}\n", self.custody)
    }

    /// Reads one.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("custody ")?.splitn(2, ' ');
        let custody = Custody::parse(words.next()?)?;
        let successor = words.next().map(Digest::parse).transpose().ok()?;
        Some(Self { custody, successor })
    }
}

/// Bytes, in Base64 where they are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bytes(pub Vec<u8>);

impl TryFrom<String> for Bytes {
    type Error = DecodeError;

    fn try_from(text: String) -> Result<Self, DecodeError> {
        STANDARD.decode(text).map(Self)
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        STANDARD.encode(bytes.0)
    }
}

/// A key, where it begins to sign.
#[derive(Clone, Debug)]
pub struct Introduction<'a> {
    /// The session's origin.
    pub origin: &'a str,
    /// The row that introduces it.
    pub row: u64,
    /// The seal of the row before.
    pub after: Digest,
    /// What keeps it.
    pub custody: Custody,
    /// It.
    pub key: Digest,
    /// The key that signed before.
    pub before: Option<Digest>,
}

impl Introduction<'_> {
    /// Signed by whoever introduces it.
    pub fn sign(&self, by: &SigningKey) -> Result<Vec<u8>, KeyError> {
        by.sign(self.text().as_bytes())
    }

    /// Checks who introduced it.
    pub fn verify(&self, by: &PublicKey, signature: &[u8]) -> Result<(), BadSignature> {
        by.verify(self.text().as_bytes(), signature)
    }

    fn text(&self) -> String {
        let Self { origin, row, after, custody, key, before } = self;
        let before = before.map_or_else(|| "-".to_owned(), |key| key.to_string());
        format!("writ/custody/v1\n{origin}\n{row}\n{after}\n{custody}\n{key}\n{before}\n")
    }
}

/// The keys that sign for a session, each from a row on.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: Vec<(u64, PublicKey, Option<Kept>)>,
}

impl Keyring {
    /// One key for all, whatever keeps it.
    pub fn of(key: Option<&PublicKey>) -> Self {
        Self { keys: key.map(|key| (0, key.clone(), None)).into_iter().collect() }
    }

    /// A key that signs from a row on, which comes after those of all others.
    pub fn introduce(&mut self, row: u64, key: PublicKey, kept: Kept) {
        self.keys.push((row, key, Some(kept)));
    }

    /// The key that signs for so many rows, and what is said to keep it; the first for none.
    pub fn at(&self, size: u64) -> Option<(&PublicKey, Option<Kept>)> {
        let last = self.keys.iter().rev().find(|(row, _, _)| *row < size.max(1))?;
        Some((&last.1, last.2))
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Algorithm;

    #[test]
    fn an_introduction_holds_at_its_place_alone() {
        let (root, other) = (SigningKey::generate(Algorithm::Ed25519).unwrap(), Digest::of(b"other"));
        let here = Introduction {
            origin: "writ/session/s",
            row: 3,
            after: Digest::of(b"after"),
            custody: Custody::ProcessMemory,
            key: Digest::of(b"key"),
            before: None,
        };
        let signature = here.sign(&root).unwrap();
        assert!(here.verify(root.public(), &signature).is_ok());
        for elsewhere in [
            Introduction { origin: "writ/session/t", ..here.clone() },
            Introduction { row: 4, ..here.clone() },
            Introduction { after: other, ..here.clone() },
            Introduction { custody: Custody::Pkcs11, ..here.clone() },
            Introduction { key: other, ..here.clone() },
            Introduction { before: Some(other), ..here.clone() },
        ] {
            assert!(elsewhere.verify(root.public(), &signature).is_err(), "{elsewhere:?}");
        }
    }

    #[test]
    fn a_key_signs_for_the_rows_from_its_own_on() {
        let key = || SigningKey::generate(Algorithm::Ed25519).unwrap().public().clone();
        let (one, two) = (key(), key());
        let mut ring = Keyring::default();
        assert!(ring.at(1).is_none());
        ring.introduce(0, one.clone(), Kept::default());
        ring.introduce(4, two.clone(), Kept::default());
        let at = |size| ring.at(size).map(|(key, _)| key.clone());
        assert_eq!([at(0), at(4), at(5)], [Some(one.clone()), Some(one), Some(two)]);
    }
}
