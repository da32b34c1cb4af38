//! Which repository a folder lies in, and which of its settings change a tree's hash.

use std::fs;
use std::path::{Path, PathBuf};

use writ_core::regular_file;

use super::TreeError;
use super::hash::Function;
use super::place::{Dot, Place};
use super::settings::Settings;

/// Largest index or list of attributes that is read.
const MAX_FILE: u64 = 256 << 20;

/// A repository and its work tree.
pub struct Layout {
    /// The work tree's root.
    pub work: PathBuf,
    /// Where it is kept.
    pub place: Place,
    /// How its objects are named.
    pub function: Function,
    /// Whether a setting has git change line ends, or names attributes for all repositories.
    pub filtered: bool,
    /// Lists of what is left out that lie outside the work tree, the farthest first.
    pub lists: Vec<PathBuf>,
    /// What its settings switch on.
    pub on: Switches,
}

/// Settings that are on or off.
pub struct Switches {
    /// Whether the executable bit counts.
    pub modes: bool,
    /// Whether links are links: otherwise a file may stand for one.
    pub links: bool,
    /// Whether names that differ in case are the same.
    pub fold: bool,
    /// Whether the work tree may have less than the index.
    pub sparse: bool,
    /// Whether names are refused that mean `.git` on Windows.
    pub windows: bool,
    /// Whether names are refused that mean `.git` on a Mac.
    pub mac: bool,
}

impl Layout {
    /// The repository around a folder.
    pub fn around(folder: &Path, home: Option<&Path>) -> Result<Self, TreeError> {
        let (work, place) = found(folder)?;
        let settings = Settings::of(&place, home)?;
        // A submodule's settings name its own work tree.
        let elsewhere = |tree: &str| {
            let (tree, work) = (place.git.join(tree).canonicalize().ok(), work.canonicalize().ok());
            tree.is_none() || tree != work
        };
        if settings.last("core.worktree").is_some_and(elsewhere) || settings.is("core.bare", false) {
            return Err(TreeError::Kind(
                "the repository's work tree is elsewhere: `core.worktree` or `core.bare` is set",
            ));
        }
        let users = |name: &str| home.map(|home| home.join(".config/git").join(name));
        let ignored = settings.path("core.excludesfile", &work, home)?.or_else(|| users("ignore"));
        let attributes = settings.path("core.attributesfile", &work, home)?.or_else(|| users("attributes"));
        let attributes =
            attributes.into_iter().chain(["/etc/gitattributes".into(), place.common.join("info/attributes")]);
        let line_ends = settings.last("core.autocrlf").is_some_and(|value| value.eq_ignore_ascii_case("input"))
            || settings.is("core.autocrlf", false);
        let filtered =
            line_ends || settings.last("attr.tree").is_some() || attributes.into_iter().any(|path| filters(&path));
        let on = Switches {
            modes: settings.is("core.filemode", true),
            links: settings.is("core.symlinks", true),
            fold: settings.is("core.ignorecase", false),
            sparse: settings.is("core.sparsecheckout", false),
            windows: settings.is("core.protectntfs", true),
            mac: settings.is("core.protecthfs", false),
        };
        let lists = ignored.into_iter().chain([place.common.join("info/exclude")]).collect();
        Ok(Self { work, function: place.function(), place, filtered, lists, on })
    }

    /// The index's bytes and when it was written; `None` where there is none.
    pub fn index(&self) -> Result<Option<(Vec<u8>, fs::Metadata)>, TreeError> {
        let path = self.place.git.join("index");
        let failed = |source| TreeError::Io { path: path.clone(), source };
        match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
            Ok(found) => Ok(Some((regular_file::read(&path, MAX_FILE).map_err(failed)?, found))),
        }
    }
}

/// The work tree that a folder lies in, as git looks for it.
fn found(folder: &Path) -> Result<(PathBuf, Place), TreeError> {
    let none = || TreeError::NoRepository(folder.to_owned());
    for at in folder.ancestors() {
        match Dot::of(at) {
            Dot::Repository(place) => return Ok((at.to_owned(), place)),
            Dot::Astray | Dot::Closed => return Err(none()),
            // In a repository's own folder there is no work tree.
            Dot::Nothing if Place::at(at.to_owned()).is_some() => return Err(none()),
            Dot::Nothing => {}
        }
    }
    Err(none())
}

/// Whether an attributes file has git keep other bytes than a file has.
pub fn filters(path: &Path) -> bool {
    let names = ["text", "eol", "crlf", "filter", "ident", "working-tree-encoding"];
    let sets = |word: &str| !word.starts_with(['-', '!']) && names.contains(&word.split('=').next().unwrap_or(word));
    let own = |line: &str| !line.trim_start().starts_with('#') && line.split_whitespace().skip(1).any(sets);
    match regular_file::read(path, MAX_FILE) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).lines().any(own),
        // What it says is not known.
        Err(error) => error.kind() == std::io::ErrorKind::FileTooLarge,
    }
}

impl Switches {
    /// Whether git refuses to add something of that name.
    pub fn refuse(&self, name: &[u8], is_link: bool) -> bool {
        let lower = name.to_ascii_lowercase();
        // Dots and spaces at its end, and what stands behind a colon, are nothing to Windows.
        let is = |own: &[u8]| {
            let rest = lower.strip_prefix(own)?;
            let rest = rest.iter().find(|byte| !matches!(byte, b'.' | b' '));
            Some(rest.is_none_or(|next| matches!(next, b':' | b'\\')))
        };
        let ascii = || lower.iter().copied().filter(u8::is_ascii).collect::<Vec<u8>>();
        lower == b".git"
            || self.windows && [&b".git"[..], b"git~1"].iter().any(|own| is(own) == Some(true))
            || self.mac && ascii() == b".git"
            || is_link && (lower == b".gitmodules" || self.mac && ascii() == b".gitmodules")
            || is_link
                && self.windows
                && (is(b".gitmodules") == Some(true) || lower.starts_with(b"gi") && lower.contains(&b'~'))
    }
}
