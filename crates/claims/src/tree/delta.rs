//! What has changed between two snapshots (R52).

use std::collections::BTreeSet;
use std::path::Path;

use super::{GitError, Limits, Repository, Snapshot, ask, is_marker};

/// The empty tree of repositories with SHA-1 and with SHA-256.
const EMPTY_TREE: [&str; 2] =
    ["4b825dc642cb6eb9a060e54bf8d69288fbee4904", "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"];

/// The paths that changed between two moments, from the top.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delta {
    /// They changed in the work tree, in the index, or by commits that HEAD moved over.
    pub changed: BTreeSet<String>,
    /// Whether the tree was clean before, so that whoever worked in between made all of it.
    pub clean_before: bool,
}

impl Delta {
    /// What changed from `before` to `after` in the repository at `root`.
    pub fn between(before: &Snapshot, after: &Snapshot, root: &Path, limits: &Limits) -> Result<Self, GitError> {
        let mut changed: BTreeSet<String> = BTreeSet::new();
        for (path, print) in before.dirty() {
            if after.files.get(path).map(String::as_str) != Some(print) {
                changed.insert(path.to_owned());
            }
        }
        changed.extend(
            after.dirty().filter(|(path, _)| !before.files.contains_key(*path)).map(|(path, _)| path.to_owned()),
        );
        for (marker, now) in after.files.iter().filter(|(path, _)| is_head(path)) {
            let prefix = marker.strip_suffix(".git/HEAD").unwrap_or_default();
            let wanted = || after.files.get(&format!("{prefix}.git/wanted"));
            let was = before.files.get(marker).or_else(wanted).map_or("unborn", String::as_str);
            if was == now {
                continue;
            }
            match changed_paths(&root.join(prefix), prefix, was, now, limits) {
                Ok(paths) => changed.extend(paths),
                Err(error) if prefix.is_empty() => return Err(error),
                // Of a repository inside, the commit it was at may not be there: then all of it may have changed.
                Err(_) => drop(changed.insert(prefix.trim_end_matches('/').to_owned())),
            }
        }
        let clean_before = before.dirty().all(|(path, _)| is_own(path));
        Ok(Self { changed, clean_before })
    }

    /// What HEAD's moves and the stash held in between and the work tree no longer shows: commits on branches that were
    /// left again, resets, stashes.
    pub fn passed_through(
        before: &Snapshot,
        after: &Snapshot,
        repository: &Repository,
        limits: &Limits,
    ) -> Result<BTreeSet<String>, GitError> {
        let mut out = BTreeSet::new();
        let Some(start) = before.marker(".git/HEAD") else { return Ok(out) };
        let length = before.marker(".git/logs/HEAD").and_then(|length| length.parse().ok()).unwrap_or_default();
        let commits: BTreeSet<String> = repository.visited(length).into_iter().collect();
        for commit in commits.iter().filter(|commit| start.strip_prefix("commit:") != Some(commit.as_str())) {
            out.extend(changed_paths(&repository.root, "", start, &format!("commit:{commit}"), limits)?);
        }
        let stash = |snapshot: &Snapshot| snapshot.marker(".git/refs/stash").map(str::to_owned);
        if let Some(now) = stash(after).filter(|now| Some(now) != stash(before).as_ref()) {
            let now = now.strip_prefix("commit:").unwrap_or_default();
            for (from, to) in [(format!("{now}^1"), now.to_owned()), ("empty".to_owned(), format!("{now}^3"))] {
                // A stash without untracked files has no third parent.
                if let Ok(paths) = changed_paths(&repository.root, "", &from, &to, limits) {
                    out.extend(paths);
                }
            }
        }
        Ok(out)
    }
}

fn is_head(path: &str) -> bool {
    is_marker(path) && path.ends_with(".git/HEAD")
}

/// What Writ and its client keep in a work tree; the agent may not change it, so it says nothing about its work.
fn is_own(path: &str) -> bool {
    path.starts_with(".claude/")
        || matches!(path, ".aflock" | "policy.aflock" | ".aflock.json")
        || path.ends_with(".signed")
}

/// The paths two commits differ in.
fn changed_paths(root: &Path, prefix: &str, from: &str, to: &str, limits: &Limits) -> Result<Vec<String>, GitError> {
    let name = |commit: &str| commit.strip_prefix("commit:").unwrap_or(commit).to_owned();
    let (from, to) = (name(from), name(to));
    let long = [&from, &to].iter().any(|commit| commit.len() >= 64);
    let none = |commit: &str| !commit.is_empty() && commit.bytes().all(|byte| byte == b'0');
    let tree = |commit: String| match (if none(&commit) { "unborn" } else { commit.as_str() }, long) {
        ("unborn" | "empty", false) => EMPTY_TREE[0].to_owned(),
        ("unborn" | "empty", true) => EMPTY_TREE[1].to_owned(),
        _ => commit,
    };
    let (from, to) = (tree(from), tree(to));
    let same = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", "--no-commit-id", "--ignore-submodules=none"];
    let arguments = [same.as_slice(), &[&from, &to]].concat();
    let bytes = ask::run(root, &arguments, limits)?;
    let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| format!("{prefix}{}", String::from_utf8_lossy(path))).collect())
}

/// Whether git is told to leave a path alone, so that it says nothing about it. The innermost repository is asked.
pub fn git_ignores(path: &Path, limits: &Limits) -> Result<bool, GitError> {
    let Some((folder, text)) = path.ancestors().skip(1).find(|above| above.is_dir()).zip(path.to_str()) else {
        return Ok(false);
    };
    // Of what is not there, only a slash says that it is a folder.
    let as_folder = format!("{text}/");
    match ask::run(folder, &["check-ignore", "--no-index", "--", text, &as_folder], limits) {
        Ok(_) => Ok(true),
        Err(GitError::Failed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
