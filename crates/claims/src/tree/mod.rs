//! The state of a work tree at one moment: everything that differs from HEAD, with a fingerprint of each.
//!
//! Owns the map `path → fingerprint` and what has changed between two of them. Refuses to guess: a git that does not answer
//! gives no snapshot. Invariant: nothing in the repository is written, and what is read is bounded in number, bytes and time.
//! Page: `spec/claims.md`.

mod aside;
mod ask;
mod delta;
mod git;
mod history;
mod status;
mod written;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use writ_core::Digest;

pub use delta::{Delta, git_ignores};
pub use git::{GitError, Only, Repository};
pub use history::{changed_since, versions};
pub use written::written_since;

use status::{Kind, Status};

/// Beyond so many paths, or bytes, that differ, size and times stand for contents.
const MAX_HASHED: usize = 5_000;
const MAX_HASHED_BYTES: u64 = 256 << 20;
/// Deepest nesting of repositories.
const MAX_NESTING: usize = 4;
/// How much of both ends of a large file is hashed.
const ENDS: u64 = 64 << 10;

/// Limits of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Files above so many bytes are known by size, time, head and tail (`ATTEST_MAX_HASH_BYTES`).
    pub max_hash_bytes: u64,
    /// How long one git may take.
    pub timeout: Duration,
    /// The one repository that git may be asked about, not even those inside it; any where there is none.
    pub only: Option<Only>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_hash_bytes: 10 << 20, timeout: Duration::from_secs(10), only: None }
    }
}

/// Everything that differs from HEAD, by path from the top.
///
/// Fingerprints: 64 hexadecimal digits of SHA-256, with `+x` behind them for what can be run · `deleted` · `link:<target>` ·
/// `large:<size>:<time>:<hash of both ends>` · `stat:<size>:<time>` · `commit:<id>` for a repository inside. Three paths
/// that no file can have carry the rest: `.git/HEAD` the commit, `.git/refs/stash`, and `.git/logs/HEAD` that log's length;
/// a repository inside has its own, below its path.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Snapshot {
    /// Path to fingerprint.
    pub files: BTreeMap<String, String>,
}

impl Snapshot {
    /// Takes the state of the work tree that `dir` lies in; gives its top, too.
    pub fn take(dir: &Path, limits: &Limits) -> Result<(Self, Repository), GitError> {
        let repository = Repository::containing(dir)?;
        let mut snapshot = Self::default();
        snapshot.repository(&repository, "", limits, 0)?;
        Ok((snapshot, repository))
    }

    fn repository(
        &mut self,
        repository: &Repository,
        prefix: &str,
        limits: &Limits,
        depth: usize,
    ) -> Result<(), GitError> {
        let status = status(&repository.root, limits)?;
        let head = status.head.as_deref().unwrap_or("unborn");
        self.files.insert(format!("{prefix}.git/HEAD"), format!("commit:{head}"));
        self.files.insert(format!("{prefix}.git/logs/HEAD"), repository.log_length().to_string());
        if let Some(stash) = repository.stash() {
            self.files.insert(format!("{prefix}.git/refs/stash"), format!("commit:{stash}"));
        }
        let mut budget = if status.entries.len() > MAX_HASHED { 0 } else { MAX_HASHED_BYTES };
        for entry in &status.entries {
            let name = format!("{prefix}{}", String::from_utf8_lossy(&entry.path));
            let path = repository.root.join(OsStr::from_bytes(&entry.path));
            match &entry.kind {
                Kind::Tracked { staged } => {
                    let mut print = fingerprint(&path, limits, &mut budget);
                    if let Some(staged) = staged {
                        print.push_str(&format!("+index:{staged}"));
                    }
                    self.files.insert(name, print);
                }
                Kind::Untracked => {
                    self.files.insert(name, fingerprint(&path, limits, &mut budget));
                }
                Kind::Submodule { .. } | Kind::Nested => {
                    let inner = Repository::at(&path).filter(|_| depth < MAX_NESTING);
                    if let Kind::Submodule { wanted } = &entry.kind {
                        self.files.insert(format!("{name}/.git/wanted"), format!("commit:{wanted}"));
                    }
                    match inner {
                        Some(inner) => self.repository(&inner, &format!("{name}/"), limits, depth + 1)?,
                        None => drop(self.files.insert(name, "deleted".to_owned())),
                    }
                }
            }
        }
        Ok(())
    }

    /// The files, without the paths that carry something else.
    pub fn dirty(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter(|(path, _)| !is_marker(path)).map(|(path, print)| (path.as_str(), print.as_str()))
    }

    /// What a marker of the top says.
    fn marker(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(String::as_str)
    }

    /// The commit HEAD is at; `None` before the first.
    pub fn head(&self) -> Option<&str> {
        self.marker(".git/HEAD")?.strip_prefix("commit:").filter(|head| *head != "unborn")
    }
}

/// Whether a path stands for something that is no file.
fn is_marker(path: &str) -> bool {
    let markers = [".git/HEAD", ".git/logs/HEAD", ".git/refs/stash", ".git/wanted"];
    markers.iter().any(|marker| path.strip_suffix(marker).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
}

fn status(root: &Path, limits: &Limits) -> Result<Status, GitError> {
    let arguments =
        ["status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames", inside(limits)];
    let bytes = ask::run(root, &arguments, limits)?;
    status::read(&bytes).ok_or_else(|| GitError::Answer("status".to_owned()))
}

/// Whether git looks into repositories inside, with their own settings.
const fn inside(limits: &Limits) -> &'static str {
    if limits.only.is_some() { "--ignore-submodules=dirty" } else { "--ignore-submodules=none" }
}

/// What git says of a path and everything below it: two letters each, as `git status` prints them; nothing for what is as
/// committed.
pub fn status_of(root: &Path, path: &Path, limits: &Limits) -> Option<Vec<String>> {
    let path = path.to_str()?;
    let arguments = [
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignored=matching",
        inside(limits),
        "--",
        path,
    ];
    let bytes = ask::run(root, &arguments, limits).ok()?;
    let records = bytes.split(|byte| *byte == 0).filter(|record| record.len() > 3);
    Some(records.map(|record| String::from_utf8_lossy(record.get(..2).unwrap_or_default()).into_owned()).collect())
}

/// Whether the index has a repository inside at this path.
pub fn is_submodule(root: &Path, path: &str, limits: &Limits) -> Result<bool, GitError> {
    let own = format!(":(top,literal){path}");
    ask::run(root, &["ls-files", "-z", "--stage", "--", &own], limits).map(|found| found.starts_with(b"160000 "))
}

/// A path of the index that is `path`, lies below it, or ends in it.
pub fn tracked(root: &Path, path: &str, limits: &Limits) -> Result<Option<String>, GitError> {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let escaped: String =
        path.chars().flat_map(|c| matches!(c, '*' | '?' | '[' | '\\').then_some('\\').into_iter().chain([c])).collect();
    let (own, below) = (format!(":(top,icase,glob)**/{escaped}"), format!(":(top,icase,glob)**/{escaped}/**"));
    let bytes = ask::run(root, &["ls-files", "-z", "--", &own, &below], limits)?;
    let first = bytes.split(|byte| *byte == 0).find(|name| !name.is_empty());
    Ok(first.map(|name| String::from_utf8_lossy(name).into_owned()))
}

/// What a path holds now. What cannot be read is marked so, and so counts as different from what can.
fn fingerprint(path: &Path, limits: &Limits, budget: &mut u64) -> String {
    let Ok(found) = fs::symlink_metadata(path) else { return "deleted".to_owned() };
    if found.is_symlink() {
        let target = fs::read_link(path).unwrap_or_else(|_| PathBuf::from("?"));
        return format!("link:{}", target.to_string_lossy());
    }
    if !found.is_file() {
        return "special".to_owned();
    }
    let run = if found.permissions().mode() & 0o111 == 0 { "" } else { "+x" };
    let body = if found.len() > limits.max_hash_bytes {
        large(path, &found)
    } else if found.len() > *budget {
        None
    } else {
        *budget -= found.len();
        fs::read(path).ok().map(|bytes| Digest::of(&bytes).hex())
    };
    let stat = || format!("stat:{}:{}.{}", found.len(), found.mtime(), found.mtime_nsec());
    format!("{}{run}", body.unwrap_or_else(stat))
}

/// `large:<size>:<time>:<hash of both ends>`
fn large(path: &Path, found: &Metadata) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut ends = Vec::new();
    file.by_ref().take(ENDS).read_to_end(&mut ends).ok()?;
    file.seek(SeekFrom::Start(found.len().saturating_sub(ENDS))).ok()?;
    file.take(ENDS).read_to_end(&mut ends).ok()?;
    Some(format!("large:{}:{}.{}:{}", found.len(), found.mtime(), found.mtime_nsec(), Digest::of(&ends).hex()))
}
