//! Which policy is in force: the accepted one, and what has become of its file since (R82).
//!
//! The accepted copy, kept by digest in Writ's state, goes on governing whatever happens to the file. A changed file that is
//! valid is judged as one more layer, so that it can only tighten; one that is invalid or gone changes nothing. Status, doctor,
//! hook and verification take their words from here. Page: `spec/policy.md`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};
use writ_policy::Policy;
use writ_store::{Store, StoreError, regular_file};

use super::find;
use super::open::{self, Governing, GoverningError};
use super::trust::Trust;

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

impl InForce {
    /// The policies that all have to permit.
    pub fn policies(&self) -> Vec<&Policy> {
        let change = self.change.as_ref().and_then(Change::layer);
        [&self.accepted.policy].into_iter().chain(change.map(|change| &change.policy)).collect()
    }
}

/// The policy a session runs under, as a human last accepted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRef {
    /// The file, absolute.
    #[serde(with = "json::path")]
    pub path: PathBuf,
    /// The policy's own name.
    pub name: String,
    /// Digest of the file (the envelope, when there is one).
    pub file: Digest,
    /// Digest of the policy document itself.
    pub digest: Digest,
    /// `unsigned`, `unknown-key` or `trusted`.
    pub signed: String,
    /// Whether Writ wrote it for one run alone: it is no file, and nothing can become of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Whether it limits what the session may use: only then is that looked at when no call is judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
}

impl PolicyRef {
    /// The reference to a policy that was just opened.
    pub fn to(governing: &Governing) -> Self {
        Self {
            path: governing.path.clone(),
            name: governing.policy.name().to_owned(),
            file: governing.file,
            digest: governing.policy.digest(),
            signed: governing.signed.as_str().to_owned(),
            own: false,
            limited: !governing.policy.limits().is_empty(),
        }
    }

    /// The folder relative patterns hang off.
    pub fn root(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
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
pub fn of(accepted: &PolicyRef, folder: &Path, trust: &Trust) -> Result<InForce, GoverningError> {
    let path = &accepted.path;
    let (kept, change) = match open::read(path) {
        _ if accepted.own => (kept(accepted, folder)?, None),
        Ok(bytes) if Digest::of(&bytes) == accepted.file => (bytes, None),
        Ok(bytes) => {
            let found = Digest::of(&bytes);
            let change = match open::open_bytes(path, bytes, None, trust) {
                Ok(governing) => Change::Layer(Box::new(governing)),
                Err(error) => Change::Invalid { found, why: error.to_string() },
            };
            (kept(accepted, folder)?, Some(change))
        }
        Err(error) => (kept(accepted, folder)?, Some(Change::Lost { why: reason(&error) })),
    };
    // Files that the policy names beside itself may be gone with it: what a human accepted, they accepted.
    let accepted = open::open_kept(path, kept, trust)?;
    Ok(InForce { accepted, change })
}

fn reason(error: &GoverningError) -> String {
    if let GoverningError::Unreadable { source, .. } = error { source.to_string() } else { error.to_string() }
}

fn kept(accepted: &PolicyRef, folder: &Path) -> Result<Vec<u8>, GoverningError> {
    let path = folder.join("policies").join(accepted.file.hex());
    let bytes = regular_file::read(&path, MAX_KEPT)
        .map_err(|source| GoverningError::Unreadable { path: path.clone(), source })?;
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
    let root = find::repository(folder);
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

/// What a person is told of a session that began before a human settled what an earlier one left open.
pub fn pending(path: &Path) -> String {
    format!(
        "another session here ended while its policy was changed or gone, and no human has accepted {} as it is now: every call asks \
         until `writ policy accept`",
        path.display()
    )
}
