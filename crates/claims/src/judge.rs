//! A claim beside the facts: a verdict for each file, and whether the whole is a false DONE.
//!
//! Owns the words for what became of a claimed file. Refuses to call a claim false on doubt: anything that could explain it
//! makes it less than a proof. What costs time is only looked at for a file that would otherwise stand against the claim.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use writ_core::json;

use crate::acts::Act;
use crate::claim::{Claim, Status};
use crate::file::Bench;
use crate::tree::{Delta, Limits, Repository, Snapshot};

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

/// The verdict on a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// One for each claimed file, and for each entry that is no path.
    pub files: Vec<FileVerdict>,
    /// The paths that changed.
    pub observed: BTreeSet<String>,
    /// Changed, and named by no claim.
    pub unclaimed: Vec<String>,
    /// Done was said, and a file says otherwise beyond doubt.
    pub false_done: bool,
    /// The tree was not clean before: what changed may be somebody else's.
    pub ambiguous: bool,
    /// The false claim is proven by the agent's own transcript, whoever else worked on the tree.
    pub proven: bool,
}

impl FileVerdict {
    /// One that weighs nothing.
    pub(crate) fn new(claimed: &str, landing: Landing, reason: &str) -> Self {
        Self { claimed: claimed.to_owned(), landing, reason: reason.to_owned(), weight: Weight::None }
    }

    /// The same with a weight.
    pub(crate) fn weighing(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }
}

impl Verdict {
    /// The claimed files without a change, as claimed.
    pub fn unchanged(&self) -> impl Iterator<Item = &str> {
        let against = |file: &&FileVerdict| matches!(file.landing, Landing::Unchanged | Landing::Missing);
        self.files.iter().filter(against).map(|file| file.claimed.as_str())
    }

    /// The files that prove the claim false.
    pub fn against(&self) -> impl Iterator<Item = &FileVerdict> {
        self.files.iter().filter(|file| file.weight > Weight::None)
    }

    /// One sentence.
    pub fn reason(&self) -> String {
        match self.against().next() {
            Some(file) if self.false_done => format!("claimed DONE, but {} {}", file.claimed, file.reason),
            _ => match self.unchanged().next() {
                Some(file) => format!("{file} is claimed and did not change, which proves nothing"),
                None => "nothing speaks against the claim".to_owned(),
            },
        }
    }
}

/// Everything a claim is laid beside.
pub struct Facts<'a> {
    /// The state before.
    pub before: &'a Snapshot,
    /// The state after.
    pub after: &'a Snapshot,
    /// When the state before was taken, if that is known.
    pub since: Option<SystemTime>,
    /// What changed.
    pub delta: &'a Delta,
    /// Where it changed.
    pub repository: &'a Repository,
    /// Folders that a relative path may start from, besides the top.
    pub folders: &'a [PathBuf],
    /// Where `~` leads.
    pub home: Option<&'a Path>,
    /// What the agent did, in order; empty when that is not known.
    pub acts: &'a [Act],
    /// Files that other agents wrote meanwhile, absolute.
    pub others: &'a BTreeSet<PathBuf>,
    /// Limits for git.
    pub limits: &'a Limits,
}

/// Lays a claim beside the facts.
pub fn judge(claim: &Claim, facts: &Facts<'_>) -> Verdict {
    let bench = Bench::new(facts);
    let mut files: Vec<FileVerdict> =
        claim.files.iter().map(|path| bench.file(path, claim.gone.contains(path))).collect();
    let no_path = |text: &String| FileVerdict::new(text, Landing::CannotVerify, "is no path");
    files.extend(claim.unparsed.iter().map(no_path));
    let claimed: Vec<String> = claim.files.iter().flat_map(|path| bench.inside(path)).collect();
    let covered = |path: &&String| {
        claimed
            .iter()
            .any(|own| own == *path || path.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    let unclaimed: Vec<String> = facts.delta.changed.iter().filter(|path| !covered(path)).cloned().collect();
    let weight = files.iter().map(|file| file.weight).max().unwrap_or(Weight::None);
    Verdict {
        unclaimed,
        observed: facts.delta.changed.clone(),
        false_done: claim.status == Some(Status::Done) && weight > Weight::None,
        ambiguous: !facts.delta.clean_before,
        proven: weight == Weight::Transcript,
        files,
    }
}
