//! The git tree that the work tree would be, as it is (R74): what `git add -A && git write-tree` gives where no filter is set.
//!
//! Owns that hash. Starts no process, writes nothing, and takes nothing from the index but which files are tracked and, where a file's
//! stat is the same as when it was added, its object's name. Refuses to guess: a repository of a kind that is not known here has no hash.
//! Invariant: where filters could make git's own hash another, every file is hashed as it is, and the answer says so. Page:
//! `spec/turns.md`.

mod hash;
mod ignored;
mod place;
mod repository;
mod settings;
mod tracked;
mod walk;
mod wildmatch;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use repository::Layout;
use walk::Walk;

/// Longest time that it may take.
const MOST_TIME: Duration = Duration::from_secs(5);

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// There is no work tree.
    #[error("{} is in no work tree of git", .0.display())]
    NoRepository(PathBuf),
    /// The repository is of a kind that is not read here.
    #[error("{}", .0)]
    Kind(&'static str),
    /// A settings file is damaged.
    #[error("{} has a line that is no setting, and git refuses it", .0.display())]
    Settings(PathBuf),
    /// git itself refuses to add something, or would overlook it.
    #[error("{}: {why}", path.display())]
    Refused {
        /// Which.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file was written to meanwhile.
    #[error("{} was changed while it was read", .0.display())]
    Changed(PathBuf),
    /// It takes too long, or is too large.
    #[error("the work tree is too large to be hashed in {} seconds", MOST_TIME.as_secs())]
    TooLarge,
}

/// A work tree's hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// `sha1` or `sha256`, as the repository's objects go.
    pub algorithm: &'static str,
    /// The tree's name, hexadecimal.
    pub hash: String,
    /// Attributes or settings could make git's own hash another: line ends, LFS and the like.
    pub filtered: bool,
    /// The branch that is checked out; `None` where none is.
    pub branch: Option<String>,
}

/// The hash of the work tree that a folder lies in. `home` is the user's, whose settings of git count.
pub fn of(folder: &Path, home: Option<&Path>) -> Result<WorkTree, TreeError> {
    let layout = Layout::around(folder, home)?;
    let walked = Walk::of(&layout, Clock::new())?;
    let function = layout.function;
    let filtered = layout.filtered || walked.filtered;
    let hash = walked.root(&layout, filtered)?;
    Ok(WorkTree { algorithm: function.name(), hash, filtered, branch: layout.place.branch() })
}

/// The time that is left.
struct Clock {
    until: Instant,
    spent: usize,
}

impl Clock {
    /// Steps between two looks at the time.
    const STEPS: usize = 1 << 20;

    fn new() -> Self {
        Self { until: Instant::now() + MOST_TIME, spent: 0 }
    }

    fn look(&self) -> Result<(), TreeError> {
        if Instant::now() > self.until { Err(TreeError::TooLarge) } else { Ok(()) }
    }

    /// Counts so many steps, and looks at the time now and then.
    fn spend(&mut self, steps: usize) -> Result<(), TreeError> {
        self.spent += steps;
        if self.spent < Self::STEPS {
            return Ok(());
        }
        self.spent = 0;
        self.look()
    }
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
