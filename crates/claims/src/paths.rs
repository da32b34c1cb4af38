//! Paths as names: folded, resolved, compared.

use std::path::{Component, Path, PathBuf};

/// The last name.
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Whether a path, or a folder on it, bears this name in lower case; one without an extension may stand for a file with one.
pub fn holds(path: &str, name: &str) -> bool {
    let path = path.to_lowercase();
    let alike = |part: &str| part == name || (!name.contains('.') && part.split('.').next() == Some(name));
    !name.is_empty() && path.split('/').any(alike)
}

/// `.` and `..` taken out.
pub fn folded(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// An absolute path with `.` and `..` taken out and the links on the way followed, as far as the way is there. A link at its
/// end stays: it is what the path names.
pub fn resolved(path: &Path) -> PathBuf {
    let path = folded(path);
    let real = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    real.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))).unwrap_or(path)
}
