//! Denied files that git tracks: their content lies in git's own objects too.
//!
//! Owns where objects lie, and what an index says. Refuses to guess: an index that cannot be read is one that tracks such a file. Invariant:
//! what is kept from one plan to the next is of the same index and the same policies. Older versions of files that are tracked no more are
//! not looked for.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::Digest;
use writ_core::json;
use writ_policy::Index;
use writ_sandbox::{Confinement, HostPath};
use writ_store::regular_file;

use crate::governing;

/// Largest index that is read.
const MAX_INDEX: u64 = 64 << 20;
/// Longest file that names a folder.
const MAX_NAME: u64 = 64 << 10;
/// Largest answer that is kept.
const MAX_KEPT: u64 = 64 << 10;
/// How far folders of objects that lean on others are followed.
const DEEPEST: usize = 5;
/// Where git keeps lines of files beside its objects.
const BESIDE_OBJECTS: [&str; 4] = ["lfs/objects", "rr-cache", "rebase-apply", "rebase-merge"];
/// Answers, in Writ's state.
const FOLDER: &str = "tracked";

/// What a folder's repository is known by, whatever path leads there: its folder of git, which linked work trees share; without one, the
/// folder itself.
pub fn identity(folder: &Path) -> PathBuf {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let root = governing::repository(&real);
    let of_git = root.join("HEAD").is_file() && root.join("objects").is_dir() || root.join("commondir").is_file();
    let git = Git::of(&root.join(".git")).or_else(|| Git::of(root).filter(|_| of_git));
    git.map_or_else(|| root.to_owned(), |git| git.common)
}

/// Git's folders for a work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Git {
    own: PathBuf,
    common: PathBuf,
}

impl Git {
    /// As `.git` in a work tree says: the folder itself, or a file that names it.
    pub fn of(git: &Path) -> Option<Self> {
        let own = if git.is_dir() {
            git.to_owned()
        } else {
            let text = regular_file::text(git, MAX_NAME).ok()?;
            git.parent()?.join(text.trim().strip_prefix("gitdir:")?.trim())
        };
        let own = fs::canonicalize(own).ok()?;
        let common = regular_file::text(&own.join("commondir"), MAX_NAME).ok();
        let common = common.and_then(|text| fs::canonicalize(own.join(text.trim())).ok());
        Some(Self { common: common.unwrap_or_else(|| own.clone()), own })
    }

    /// Where its objects lie, those that it borrows, and what else holds lines of files.
    pub fn objects(&self) -> BTreeSet<PathBuf> {
        let mut all = BTreeSet::new();
        let mut open = vec![(self.common.join("objects"), 0)];
        while let Some((folder, depth)) = open.pop() {
            let borrowed = regular_file::text(&folder.join("info/alternates"), MAX_NAME).unwrap_or_default();
            if depth < DEEPEST {
                let lines = borrowed.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
                open.extend(lines.filter_map(|line| Some((fs::canonicalize(folder.join(line)).ok()?, depth + 1))));
            }
            if folder.is_dir() {
                all.insert(folder);
            }
        }
        let beside = self.folders().into_iter().flat_map(|folder| BESIDE_OBJECTS.map(|name| folder.join(name)));
        all.extend(beside.filter(|folder| folder.is_dir()));
        all
    }

    /// The folder that a work tree's is, and the one that it shares with others.
    pub fn folders(&self) -> [&Path; 2] {
        [&self.own, &self.common]
    }

    /// What says which files are tracked.
    pub fn index(&self) -> PathBuf {
        self.own.join("index")
    }

    /// A tracked file that is denied. `policies` stands for what `is_denied` says; what was found is kept in `state`.
    pub fn denied(&self, state: Option<&Path>, policies: Digest, is_denied: impl Fn(&str) -> bool) -> Option<String> {
        let index = self.index();
        let found = fs::metadata(&index).ok()?;
        let now = Answer {
            policies,
            index: index.to_string_lossy().into_owned(),
            stamp: [found.ino(), found.size()],
            changed: [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()],
            denied: None,
        };
        let name = Digest::of(now.index.as_bytes()).hex();
        let kept = state.map(|state| state.join(FOLDER).join(name.get(..32).unwrap_or(&name)));
        let before = kept.as_ref().and_then(|kept| regular_file::read(kept, MAX_KEPT).ok());
        let before = before.and_then(|bytes| json::from_slice::<Answer>(&bytes).ok());
        if let Some(before) = before.filter(|before| Answer { denied: None, ..before.clone() } == now) {
            return before.denied;
        }
        let denied = self.look(&index, is_denied);
        if let Some(kept) = kept {
            let answer = Answer { denied: denied.clone(), ..now };
            // It is only sooner the next time.
            keep(&kept, json::to_canonical(&answer).as_bytes()).ok();
        }
        denied
    }

    fn look(&self, index: &Path, is_denied: impl Fn(&str) -> bool) -> Option<String> {
        let config = regular_file::text(&self.common.join("config"), MAX_NAME).unwrap_or_default();
        let hash = if config.to_ascii_lowercase().contains("sha256") { 32 } else { 20 };
        let read = regular_file::read(index, MAX_INDEX).ok().and_then(|bytes| Index::parse(&bytes, hash));
        let Some(index) = read else { return Some("an index that cannot be read".to_owned()) };
        index.entries.into_iter().map(|tracked| tracked.path).find(|path| is_denied(path))
    }
}

/// What a command that failed is told where objects are hidden: git only says that there is no repository.
pub fn words(confinement: &Confinement) -> Option<String> {
    let objects = confinement.masked.iter().map(HostPath::as_path).find(|path| path.ends_with("objects"))?;
    let path = objects.strip_prefix(confinement.folder.as_path()).unwrap_or(objects).display();
    Some(format!("git can read nothing of `{path}`: it tracks a file that is denied (`writ sandbox plan` names it)"))
}

fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let draft = path.with_extension(std::process::id().to_string());
    fs::write(&draft, bytes)?;
    fs::rename(draft, path)
}

/// What was found of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    policies: Digest,
    index: String,
    stamp: [u64; 2],
    changed: [i64; 4],
    denied: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_tree_says_where_its_objects_are() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["main/.git/objects/info", "main/.git/worktrees/linked", "other/objects", "linked"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("main/.git/objects/info/alternates"), "../../../other/objects\n").unwrap();
        fs::write(root.join("main/.git/worktrees/linked/commondir"), "../..\n").unwrap();
        fs::write(root.join("linked/.git"), format!("gitdir: {}\n", root.join("main/.git/worktrees/linked").display()))
            .unwrap();
        let git = Git::of(&root.join("linked/.git")).unwrap();
        assert_eq!(git.own, root.join("main/.git/worktrees/linked"));
        let objects: Vec<PathBuf> = git.objects().into_iter().collect();
        assert_eq!(objects, [root.join("main/.git/objects"), root.join("other/objects")]);
        assert_eq!(git.denied(None, Digest::of(b""), |_| true), None, "nothing is tracked");
        fs::write(git.own.join("index"), "no index").unwrap();
        let state = root.join("state");
        for _ in 0..2 {
            let denied = git.denied(Some(&state), Digest::of(b""), |_| false);
            assert_eq!(denied.as_deref(), Some("an index that cannot be read"));
        }
    }
}
