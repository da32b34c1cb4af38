//! Which policy is in force: the accepted one, and what has become of its file since (R82).
//!
//! The accepted copy, kept by digest in Writ's state, goes on governing whatever happens to the file. A changed file that is
//! valid is judged as one more layer, so that it can only tighten; one that is invalid or gone changes nothing. Status, doctor,
//! hook and verification take their words from here. Page: `spec/policy.md`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, SessionId, json};
use writ_store::{Store, StoreError, plain};

use crate::governing::{self, Governing, GoverningError};
use crate::state::{PolicyRef, State};
use crate::trust::Trust;

/// Largest kept policy.
const MAX_KEPT: u64 = 8 << 20;

/// The policies that a call is judged under.
#[derive(Debug)]
pub struct InForce {
    /// As a human last accepted it.
    pub accepted: Governing,
    /// What is at its place now, where that is something else.
    pub change: Option<Change>,
}

/// What became of the accepted policy's file.
#[derive(Debug)]
pub enum Change {
    /// Another valid policy: both must allow.
    Layer(Box<Governing>),
    /// No valid policy.
    Invalid {
        /// Digest of what is there.
        found: Digest,
        /// What is wrong with it.
        why: String,
    },
    /// It cannot be read.
    Lost {
        /// Why.
        why: String,
    },
}

impl Change {
    /// A text that is another for each other change.
    pub fn key(&self) -> String {
        match self {
            Self::Layer(governing) => governing.file.to_string(),
            Self::Invalid { found, .. } => found.to_string(),
            Self::Lost { .. } => "lost".to_owned(),
        }
    }

    /// The policy that is judged too.
    pub fn layer(&self) -> Option<&Governing> {
        match self {
            Self::Layer(governing) => Some(governing),
            Self::Invalid { .. } | Self::Lost { .. } => None,
        }
    }

    /// What a person is told of it.
    pub fn tell(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Layer(_) => format!(
                "the policy {path} is not the one a human accepted for this session: the accepted copy goes on governing, and the \
                 changed file is asked too. Review it, then `writ policy accept`"
            ),
            Self::Invalid { why, .. } => format!(
                "the policy {path} changed and is not valid ({why}): the accepted copy goes on governing. Mend it, then `writ policy \
                 accept`"
            ),
            Self::Lost { why } => format!(
                "the policy {path} is gone ({why}): the accepted copy goes on governing. Put it back, as with `git checkout BRANCH -- \
                 FILE`"
            ),
        }
    }
}

/// What is in force for a session whose files are in `folder`.
pub fn in_force(accepted: &PolicyRef, folder: &Path, trust: &Trust) -> Result<InForce, GoverningError> {
    let path = &accepted.path;
    let (kept, change) = match governing::read(path) {
        Ok(bytes) if Digest::of(&bytes) == accepted.file => (bytes, None),
        Ok(bytes) => {
            let found = Digest::of(&bytes);
            let change = match governing::open_bytes(path, bytes, None, trust) {
                Ok(governing) => Change::Layer(Box::new(governing)),
                Err(error) => Change::Invalid { found, why: error.to_string() },
            };
            (kept(accepted, folder)?, Some(change))
        }
        Err(error) => (kept(accepted, folder)?, Some(Change::Lost { why: reason(&error) })),
    };
    // Files that the policy names beside itself may be gone with it: what a human accepted, they accepted.
    let accepted = governing::open_kept(path, kept, trust)?;
    Ok(InForce { accepted, change })
}

fn reason(error: &GoverningError) -> String {
    if let GoverningError::Unreadable { source, .. } = error { source.to_string() } else { error.to_string() }
}

fn kept(accepted: &PolicyRef, folder: &Path) -> Result<Vec<u8>, GoverningError> {
    let path = folder.join("policies").join(accepted.file.hex());
    let bytes =
        plain::read(&path, MAX_KEPT).map_err(|source| GoverningError::Unreadable { path: path.clone(), source })?;
    if Digest::of(&bytes) == accepted.file { Ok(bytes) } else { Err(GoverningError::KeptChanged { path }) }
}

/// A session whose policy was not the accepted one when it was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Where the policy was.
    #[serde(with = "json::path")]
    pub path: PathBuf,
    /// Digest of the accepted file.
    pub file: Digest,
}

impl Open {
    /// The note as it is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::to_compact(self).into_bytes()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        json::from_slice(bytes).ok()
    }
}

/// The name under which a folder's repository is kept in the store.
pub fn repository(folder: &Path) -> Digest {
    let root = governing::repository(folder);
    let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    Digest::of(real.to_string_lossy().as_bytes())
}

/// What was left open in the repository around `cwd`.
pub fn left_open(store: &Store, cwd: &Path) -> Result<Option<Open>, StoreError> {
    Ok(store.left_open(repository(cwd))?.and_then(|bytes| Open::parse(&bytes)))
}

/// Whether a policy that governed `cwd` is gone without anyone having settled that.
pub fn is_lost(store: &Store, cwd: &Path) -> bool {
    let open = left_open(store, cwd).ok().flatten();
    open.is_some_and(|open| open.path.parent().is_some_and(|folder| cwd.starts_with(folder)))
}

/// How a session stands to its policy: `None` where it runs under the file as it is.
pub fn of_session(store: &Store, id: &SessionId, trust: &Trust) -> Option<String> {
    let row = store.last_row(id).ok()??;
    let state = State::from_detail(&row.detail)?;
    let policy = state.policy?;
    let pending = state.pending.then(|| pending(&policy.path));
    match in_force(&policy, &store.folder(id), trust) {
        Ok(InForce { change: Some(change), .. }) => Some(change.tell(&policy.path)),
        Ok(InForce { change: None, .. }) => pending,
        Err(error) => Some(format!("{error}: every call is denied")),
    }
}

/// What a person is told of a session that began before a human settled what an earlier one left open.
pub fn pending(path: &Path) -> String {
    format!(
        "another session here ended while its policy was changed or gone, and no human has accepted {} as it is now: every call asks \
         until `writ policy accept`",
        path.display()
    )
}
