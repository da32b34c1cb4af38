//! The policies that a repository's sessions began under on this machine, kept by digest.
//!
//! Owns `accepted/<repository>/`: one file a policy, and one that says that a session's policy changed or vanished and nobody
//! has settled it. Invariant: what is found under a digest has that digest, or is not given out.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use writ_core::Digest;

use crate::error::{StoreError, io};
use crate::{Store, durable};

/// Largest policy.
const MAX_POLICY: u64 = 8 << 20;
/// The file that says that something is not settled.
const OPEN: &str = "open";

impl Store {
    /// Keeps a policy that a session began under, or that a human accepted. Durable on return.
    pub fn keep_accepted(&self, repository: Digest, policy: Digest, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.accepted_folder(repository).join(policy.hex());
        if self.accepted(repository, policy)?.is_some() {
            return Ok(());
        }
        durable::replace(&path, bytes)
    }

    /// A kept policy's bytes.
    pub fn accepted(&self, repository: Digest, policy: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let kept = durable::read(&self.accepted_folder(repository).join(policy.hex()), MAX_POLICY)?;
        Ok(kept.filter(|bytes| Digest::of(bytes) == policy))
    }

    /// Notes that a session's policy is no longer the accepted one.
    pub fn leave_open(&self, repository: Digest, note: &[u8]) -> Result<(), StoreError> {
        durable::replace(&self.accepted_folder(repository).join(OPEN), note)
    }

    /// What is not settled, if anything.
    pub fn left_open(&self, repository: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        durable::read(&self.accepted_folder(repository).join(OPEN), MAX_POLICY)
    }

    /// Settles it.
    pub fn settle(&self, repository: Digest) -> Result<(), StoreError> {
        let path = self.accepted_folder(repository).join(OPEN);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(io("remove", &path)(error)),
            _ => Ok(()),
        }
    }

    fn accepted_folder(&self, repository: Digest) -> PathBuf {
        self.root().join("accepted").join(repository.hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_out_what_its_name_says() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned()).unwrap();
        let (repository, policy) = (Digest::of(b"/w"), Digest::of(b"policy"));
        assert_eq!(store.accepted(repository, policy).unwrap(), None);
        store.keep_accepted(repository, policy, b"policy").unwrap();
        assert_eq!(store.accepted(repository, policy).unwrap().as_deref(), Some(b"policy".as_slice()));
        fs::write(store.accepted_folder(repository).join(policy.hex()), b"another").unwrap();
        assert_eq!(store.accepted(repository, policy).unwrap(), None);
        store.keep_accepted(repository, policy, b"policy").unwrap();
        assert!(store.accepted(repository, policy).unwrap().is_some());
    }

    #[test]
    fn what_is_open_stays_so_until_it_is_settled() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().to_owned()).unwrap();
        let repository = Digest::of(b"/w");
        store.settle(repository).unwrap();
        store.leave_open(repository, b"note").unwrap();
        assert_eq!(store.left_open(repository).unwrap().as_deref(), Some(b"note".as_slice()));
        assert_eq!(store.left_open(Digest::of(b"/other")).unwrap(), None);
        store.settle(repository).unwrap();
        assert_eq!(store.left_open(repository).unwrap(), None);
    }
}
