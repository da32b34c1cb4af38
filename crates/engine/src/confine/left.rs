//! What a run left behind that git would obey outside.
//!
//! Owns taking it back. Refuses to follow a link on the way. Invariant: nothing is removed that git itself would have made: it ties only
//! linked work trees so, elsewhere.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat2, unlinkat};
use writ_sandbox::{Confinement, HostPath};

/// Names another folder whose settings count. It cannot be kept while a run goes on: git takes anything of this name for that.
const COMMON_FOLDER: &str = "commondir";

/// Removes it from repositories that are no linked work trees, and says where it was.
pub fn take_back(confinement: &Confinement) -> Vec<PathBuf> {
    let kept: Vec<&Path> = confinement.read_only.iter().map(HostPath::as_path).collect();
    let repositories = kept.iter().filter(|path| path.ends_with(".git/config")).filter_map(|path| path.parent());
    repositories.filter_map(take_back_of).collect()
}

/// The same of one repository, whose own folder is `git`: where it was, if it was there.
pub fn take_back_of(git: &Path) -> Option<PathBuf> {
    let path = git.join(COMMON_FOLDER);
    remove(&path).then_some(path)
}

fn remove(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    folder.is_ok_and(|folder| unlinkat(folder, name, AtFlags::empty()).is_ok())
}
