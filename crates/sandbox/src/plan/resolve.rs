//! A path on the host without its links.
//!
//! Owns the walk; refuses loops of links. Its invariant: what it answers holds no link at the time it was asked, and whoever opens it
//! refuses links, so a link put there later is an error and not another file.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};
use rustix::io::Errno;

use super::{HERE, Reserve};

/// What became of a path.
#[derive(Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Where it leads.
    pub path: PathBuf,
    /// What is there.
    pub found: Found,
    /// Links on the way: where each lies, and its text.
    pub links: Vec<(PathBuf, PathBuf)>,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// A folder.
    Folder,
    /// Anything else.
    File,
    /// Nothing.
    Missing,
    /// The caller may not look.
    Hidden,
}

const LINKS: usize = 40;
/// Most folders that are kept open at once: paths come in an order in which those of one folder are mostly together.
const MOST_PARENTS: usize = 16;

/// Follows every link of an absolute path without `..`.
pub fn resolve(path: &Path) -> io::Result<Resolved> {
    if let Some(found) = straight(path) {
        let path = if is_plain(path) { path.to_owned() } else { path.components().collect() };
        return Ok(Resolved { path, found, links: Vec::new() });
    }
    let mut links = Vec::new();
    let mut rest: Vec<OsString> = parts(path);
    let mut at = PathBuf::from("/");
    let mut found = Found::Folder;
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        at.push(&part);
        found = match fs::symlink_metadata(&at) {
            Ok(metadata) if metadata.is_symlink() => {
                let target = fs::read_link(&at)?;
                if links.len() == LINKS {
                    return Err(io::Error::new(ErrorKind::InvalidInput, "too many links"));
                }
                links.push((at.clone(), target.clone()));
                at.pop();
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                rest.extend(parts(&target));
                Found::Folder
            }
            Ok(metadata) if metadata.is_dir() => Found::Folder,
            Ok(_) => Found::File,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Found::Missing,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Found::Hidden,
            Err(error) => return Err(error),
        };
        if matches!(found, Found::Missing | Found::Hidden) {
            at.extend(rest.drain(..).rev());
        }
    }
    Ok(Resolved { path: at, found, links })
}

/// Paths that are looked at one after the other, of which many lie in the same folders: each of those is looked for once.
#[derive(Debug, Default)]
pub struct Lookups(BTreeMap<OsString, Parent>);

/// A folder that something is looked for in.
#[derive(Debug)]
enum Parent {
    /// It, come to without a link.
    Open(OwnedFd),
    Missing,
    /// There is a link on the way, or something that is no folder, or one that may not be entered.
    Other,
}

impl Lookups {
    /// As [`resolve`].
    pub fn resolve(&mut self, path: &Path) -> io::Result<Resolved> {
        let found = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if is_plain(path) => self.straight(folder, name),
            _ => None,
        };
        match found {
            Some(found) => Ok(Resolved { path: path.to_owned(), found, links: Vec::new() }),
            None => resolve(path),
        }
    }

    /// As the function of this name.
    fn straight(&mut self, folder: &Path, name: &OsStr) -> Option<Found> {
        if self.0.len() >= MOST_PARENTS && !self.0.contains_key(folder.as_os_str()) {
            self.0.clear();
        }
        let parent = match self.0.get(folder.as_os_str()) {
            Some(parent) => parent,
            None => self.0.entry(folder.as_os_str().to_owned()).or_insert(parent(folder)),
        };
        match parent {
            Parent::Missing => Some(Found::Missing),
            Parent::Other => None,
            Parent::Open(folder) => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(there) => of_kind(there.st_mode),
                Err(Errno::NOENT) => Some(Found::Missing),
                Err(_) => None,
            },
        }
    }
}

fn parent(folder: &Path) -> Parent {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(folder) => Parent::Open(folder),
        Err(Errno::NOENT) => Parent::Missing,
        Err(_) => Parent::Other,
    }
}

/// Whether a path is written as its parts are put together.
fn is_plain(path: &Path) -> bool {
    let below = path.as_os_str().as_bytes().strip_prefix(b"/");
    below.is_some_and(|below| below.split(|byte| *byte == b'/').all(|part| !part.is_empty() && part != b"."))
}

/// What is at a path that holds no link, which the kernel says in one call; `None` where it has to be walked.
fn straight(path: &Path) -> Option<Found> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOENT) => return Some(Found::Missing),
        place => place.ok()?,
    };
    of_kind(fstat(&place).ok()?.st_mode)
}

fn of_kind(mode: u32) -> Option<Found> {
    match FileType::from_raw_mode(mode) {
        FileType::Symlink => None,
        FileType::Directory => Some(Found::Folder),
        FileType::RegularFile
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Some(Found::File),
    }
}

/// Whether what is at a path only keeps its name, for a run that goes on or was killed: nothing is there.
pub fn is_reserve(path: &Path) -> bool {
    let Ok(found) = path.symlink_metadata() else { return false };
    match Reserve::of_file(path) {
        Reserve::Here => {
            found.is_file() && found.len() == HERE.len() as u64 && fs::read(path).is_ok_and(|text| text == HERE)
        }
        Reserve::File | Reserve::Folder => found.file_type().is_socket() && found.mode() & 0o777 == 0,
    }
}

/// Whether only its owner and group can read it.
pub fn closed_to_others(path: &Path, folder: bool) -> bool {
    let wanted = if folder { 0o005 } else { 0o004 };
    path.symlink_metadata().is_ok_and(|metadata| metadata.mode() & wanted != wanted)
}

/// The names of a path, the last first.
fn parts(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a", root.join("l")).unwrap();
        symlink(root.join("l/b/../b"), root.join("m")).unwrap();
        let resolved = resolve(&root.join("m/c/d")).unwrap();
        assert_eq!((resolved.path, resolved.found), (root.join("a/b/c/d"), Found::Missing));
        let names: Vec<PathBuf> = resolved.links.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [root.join("m"), root.join("l")]);
        symlink("loop", root.join("loop")).unwrap();
        assert!(resolve(&root.join("loop")).is_err());
    }

    /// Whatever was looked for before, the answer is the same.
    #[test]
    fn one_lookup_after_the_other_is_as_each_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        symlink("a", root.join("l")).unwrap();
        let mut lookups = Lookups::default();
        for path in [
            "x/1",
            "x/2",
            "x/",
            "xy/1",
            "a/x",
            "a/y/1",
            "a/y/2",
            "a/b",
            "l/y/3",
            "l/b",
            "l/y/4",
            "a/file/1",
            "a/file",
            "x",
            "l",
            "a/",
            "a/./b",
            "a//b",
            "x/1/2",
            "a/file/1/2",
        ] {
            let path = root.join(path);
            assert_eq!(lookups.resolve(&path).unwrap(), resolve(&path).unwrap(), "{}", path.display());
        }
    }

    /// Files that are denied may lie in any number of folders.
    #[test]
    fn few_folders_are_open_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mut lookups = Lookups::default();
        for number in 0..100 {
            fs::create_dir(root.join(number.to_string())).unwrap();
            assert_eq!(lookups.resolve(&root.join(format!("{number}/x"))).unwrap().found, Found::Missing);
        }
        assert!(lookups.0.len() <= MOST_PARENTS);
    }
}
