//! Repositories that were there when a session began.
//!
//! Owns their list in the session's folder, made before the first call in a sandbox. Refuses to begin one later: what calls made would
//! be taken for the user's own. Invariant: what the list does not cover was there; where it is not there or cannot be read, everything was.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::json;
use writ_store::regular_file;

use super::left::is_repository;
use crate::session::{Session, SessionError};

/// The list in the session's folder.
const FILE: &str = "repositories.json";
/// Where what calls are granted is kept, in the session's folder: not there before the first.
pub const GRANTED: &str = "sandboxes";
/// Largest list that is read.
const MAX_LIST: u64 = 4 << 20;
/// Most repositories that are kept one by one.
const REPOSITORIES: usize = 8192;
/// Most names that are looked at.
const MOST: usize = 400_000;

/// Which repositories there were below a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    root: PathBuf,
    /// Their folders, what names one elsewhere (`.git` of a linked work tree), and each linked work tree's own.
    repositories: BTreeSet<PathBuf>,
    /// Folders that were not looked into: what lies below was there.
    closed: BTreeSet<PathBuf>,
}

impl Begun {
    /// The list of a session, which is made where nothing was granted yet.
    pub fn of(session: &Session<'_>, root: &Path) -> Result<Option<Self>, SessionError> {
        let folder = session.store.folder(&session.id);
        let kept = regular_file::read(&folder.join(FILE), MAX_LIST).ok();
        if let Some(kept) = kept {
            return Ok(json::from_slice::<Self>(&kept).ok().filter(|begun| begun.root == root));
        }
        if folder.join(GRANTED).symlink_metadata().is_ok() || folder.join(FILE).symlink_metadata().is_ok() {
            return Ok(None);
        }
        let begun = Self::look(root);
        session.keep(FILE, json::to_canonical(&begun).as_bytes())?;
        Ok(Some(begun))
    }

    fn look(root: &Path) -> Self {
        let mut begun = Self { root: root.to_owned(), repositories: BTreeSet::new(), closed: BTreeSet::new() };
        let (mut names, mut folders) = (0, vec![root.to_owned()]);
        while let Some(folder) = folders.pop() {
            // What cannot be kept as text is not told apart.
            let Some(entries) = folder.to_str().and_then(|_| fs::read_dir(&folder).ok()) else {
                begun.closed.insert(folder.ancestors().find(|path| path.to_str().is_some()).unwrap_or(root).to_owned());
                continue;
            };
            let in_git = folder.components().any(|part| part.as_os_str() == ".git");
            if is_repository(&folder) || in_git && folder.parent().is_some_and(|above| above.ends_with("worktrees")) {
                begun.repositories.insert(folder.clone());
            }
            for entry in entries.flatten() {
                names += 1;
                if entry.file_name() == ".git" {
                    begun.repositories.insert(entry.path());
                }
                // Git's own files are many, and no repository is among them that git made.
                let is_objects = in_git && folder.ends_with("objects");
                if !is_objects && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                }
            }
            if names > MOST || begun.repositories.len() > REPOSITORIES {
                (begun.repositories, begun.closed) = (BTreeSet::new(), BTreeSet::from([root.to_owned()]));
                break;
            }
        }
        begun
    }

    /// Whether a repository was there.
    pub fn had(&self, git: &Path) -> bool {
        !git.starts_with(&self.root)
            || self.repositories.contains(git)
            || git.ancestors().any(|above| self.closed.contains(above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_told_from_what_came() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in [".git/worktrees/linked", "nested/.git", "store.git/objects", "store.git/refs"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("store.git/HEAD"), "").unwrap();
        let begun = Begun::look(&root);
        for path in [".git", ".git/worktrees/linked", "nested/.git", "store.git"] {
            assert!(begun.had(&root.join(path)), "{path}");
        }
        for path in ["other/.git", ".git/worktrees/other", "nested"] {
            assert!(!begun.had(&root.join(path)), "{path}");
        }
        assert!(begun.had(Path::new("/elsewhere/.git")));
    }
}
