//! What became of one claimed file, and how much that weighs against the claim.

use serde::Serialize;
use writ_core::json;

/// What became of a claimed file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Landing {
    /// It changed, and is there.
    Landed,
    /// The change is somewhere else: another folder, commit, stash or work tree.
    #[serde(rename = "landed-elsewhere")]
    Elsewhere,
    /// It is there, and as it was.
    Unchanged,
    /// It is not there, and no change of it is.
    Missing,
    /// It was written, and something later may have taken that back.
    RevertedLater,
    /// Nothing can be said about it.
    CannotVerify,
}

impl Landing {
    /// `landed`, `landed-elsewhere`, `unchanged`, `missing`, `reverted-later`, `cannot-verify`.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

/// How much a verdict weighs against a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    /// Nothing.
    None,
    /// The tree speaks against it, which proves something only where nobody else worked on it.
    Tree,
    /// The agent's own transcript says it was written, and it is not there.
    Transcript,
}

/// The verdict on one claimed file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FileVerdict {
    /// As claimed.
    pub claimed: String,
    /// What became of it.
    #[serde(rename = "verdict")]
    pub landing: Landing,
    /// Why.
    pub reason: String,
    /// How much it weighs.
    #[serde(skip)]
    pub weight: Weight,
}

impl FileVerdict {
    /// One that weighs nothing.
    pub(crate) fn new(claimed: &str, landing: Landing, reason: &str) -> Self {
        Self { claimed: claimed.to_owned(), landing, reason: reason.to_owned(), weight: Weight::None }
    }

    /// The same with a weight.
    pub(crate) fn with_weight(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }
}
