//! Paths as names: folded, resolved, compared.

use std::fs;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// Most names that are looked through in one folder.
const MAX_NAMES: usize = 20_000;

/// The last name.
pub fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// A name as file systems compare it that know neither case nor the forms of Unicode.
pub fn plain(name: &str) -> String {
    if name.is_ascii() { name.to_ascii_lowercase() } else { name.nfc().collect::<String>().to_lowercase() }
}

/// Whether a path, or a folder on it, bears this [`plain`] name. One without an extension may stand for a file with one; and
/// a name with a comma, a blank or a picture in it may have been read from there on.
pub fn holds(path: &str, name: &str) -> bool {
    let path = plain(path);
    let cut = |part: &str| {
        let front = part.strip_suffix(name).and_then(|front| front.chars().next_back());
        front.is_some_and(|c| {
            c.is_whitespace() || ",;&+\\()[]{}'\"`".contains(c) || (!c.is_alphanumeric() && !c.is_ascii())
        })
    };
    let alike = |part: &str| part == name || cut(part) || (!name.contains('.') && part.split('.').next() == Some(name));
    !name.is_empty() && path.split('/').any(alike)
}

/// What is on disk at `path` below `base` under a name that only differs in case, in its form of Unicode, or, without an
/// extension, in having none.
pub fn alike(base: &Path, path: &Path) -> Option<PathBuf> {
    let mut at = base.to_owned();
    for part in path.components() {
        let Component::Normal(name) = part else { return None };
        let name = plain(name.to_str()?);
        let names = fs::read_dir(&at).ok()?.flatten().take(MAX_NAMES).map(|entry| entry.file_name());
        let fits = |own: &str| own == name || (!name.contains('.') && own.split('.').next() == Some(name.as_str()));
        let found = names.filter_map(|own| own.into_string().ok()).find(|own| fits(&plain(own)))?;
        at.push(found);
    }
    (at != base).then_some(at)
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
