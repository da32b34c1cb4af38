//! Which file governs a directory (R10).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The names a policy may have, in the order they are tried in each directory (R10).
pub use writ_policy::POLICY_NAMES as NAMES;

/// The policy file for `cwd`: tried there and in its parents, up to the git root. Without a repository, only `cwd`
/// and its parents up to the file system's root are tried.
pub fn find(cwd: &Path) -> Option<PathBuf> {
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
