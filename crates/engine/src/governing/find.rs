//! Which file governs a directory (R10).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The names a policy may have, in the order they are tried in each directory (R10).
pub use writ_policy::POLICY_NAMES as NAMES;

/// The policy file for `cwd`: tried there and in its parents, up to the git root. Without a repository, only `cwd`
/// and its parents up to the file system's root are tried. The folder is the one that `cwd` leads to, so that patterns hang off the same
/// place whichever symlink a session was begun through; where none governs that one, the folders of the path as it is written are tried.
pub fn find(cwd: &Path) -> Option<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    if let Some(found) = real(cwd).and_then(|folder| find_above(&folder)) {
        return Some(found);
    }
    let found = find_above(cwd)?;
    let folder = found.parent().and_then(real);
    Some(folder.and_then(|folder| Some(folder.join(found.file_name()?))).unwrap_or(found))
}

fn find_above(cwd: &Path) -> Option<PathBuf> {
    for dir in cwd.ancestors() {
        if let Some(path) = NAMES.iter().map(|name| dir.join(name)).find(|path| may_be_there(path)) {
            return Some(path);
        }
        if dir.join(".git").exists() {
            return None;
        }
    }
    None
}

/// A folder that cannot be searched may hold a policy: reading it then fails, and that denies (R6). What keeps the name for a sandbox
/// is none.
fn may_be_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => !writ_sandbox::is_reserve(path),
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// The git root above `cwd`, or `cwd` itself.
pub fn repository(cwd: &Path) -> &Path {
    cwd.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(cwd)
}
