//! Everything a claim is laid beside.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::replay::Act;
use crate::tree::{Delta, Limits, Repository, Snapshot};

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
