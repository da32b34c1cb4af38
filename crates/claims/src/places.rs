//! Where a claimed path may lie, and which repositories lie around a place.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::facts::Facts;
use crate::paths::{alike, folded, resolved};
use crate::replay::Act;
use crate::tree::Repository;

/// Where a claimed path may lie, absolute, each place once.
pub fn places(facts: &Facts<'_>, claimed: &str) -> Vec<PathBuf> {
    let path = match (claimed.strip_prefix("~/"), facts.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(claimed),
    };
    let mut out: Vec<PathBuf> = bases(facts, &path).map(|base| folded(&base.join(&path))).collect();
    if path.is_relative() && !out.iter().any(|place| fs::symlink_metadata(place).is_ok()) {
        // Only the end of the path is named: the transcript knows where that is.
        let written = facts.acts.iter().filter_map(Act::written);
        let touched = facts.acts.iter().filter_map(Act::touched).flatten().map(PathBuf::as_path);
        out.extend(written.chain(touched).filter(|own| own.ends_with(&path)).map(folded));
    }
    // A folder on the way may be a link, or have become one.
    let real: Vec<PathBuf> = out.iter().map(|place| resolved(place)).collect();
    out.extend(real);
    out.sort();
    out.dedup();
    out
}

/// What is on disk where the path may lie, under a name that is the same to another file system.
pub fn alike_on_disk(facts: &Facts<'_>, claimed: &str) -> Option<PathBuf> {
    let path = Path::new(claimed);
    if path.is_absolute() {
        let root = &facts.repository.root;
        return alike(root, path.strip_prefix(root).ok()?);
    }
    let path = folded(path);
    bases(facts, &path).find_map(|base| alike(&base, &path))
}

/// The folders that a relative path may start from: the top, those the caller names, and the one above the top where the path
/// begins with the top's own name or with that of a repository beside it.
fn bases<'a>(facts: &'a Facts<'_>, path: &Path) -> impl Iterator<Item = PathBuf> + use<'a> {
    let root = &facts.repository.root;
    let first = match path.components().next() {
        Some(Component::Normal(first)) => Some(first.to_owned()),
        _ => None,
    };
    let above = root.parent().zip(first).and_then(|(above, first)| {
        let beside = above.join(&first);
        (beside == *root || Repository::at(&beside).is_some()).then(|| above.to_owned())
    });
    std::iter::once(root.clone()).chain(facts.folders.iter().cloned()).chain(above)
}

/// The repositories beside this one, at most 32.
pub fn beside(root: &Path) -> Vec<Repository> {
    let folders = root.parent().and_then(|above| fs::read_dir(above).ok()).into_iter().flatten().flatten().take(4096);
    let others = folders.map(|entry| entry.path()).filter(|path| path != root);
    others.filter_map(|path| Repository::at(&path)).take(32).collect()
}

/// The submodules that `.gitmodules` names and that are there, at most 64.
pub fn submodules(root: &Path) -> Vec<Repository> {
    let text = fs::read_to_string(root.join(".gitmodules")).unwrap_or_default();
    let paths = text.lines().filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
    paths.take(64).filter_map(|path| Repository::at(&folded(&root.join(path.trim())))).collect()
}

/// The repositories that a place lies in, the innermost first.
pub fn repositories_containing(place: &Path) -> Vec<Repository> {
    place.ancestors().skip(1).filter(|folder| folder.is_dir()).filter_map(Repository::at).collect()
}
