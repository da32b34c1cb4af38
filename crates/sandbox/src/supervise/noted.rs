//! Which files a command used: what a policy is learnt from.
//!
//! Owns the notes and their bounds: above a number the names in a folder become the folder. Refuses nothing, and notes no content. Invariant:
//! what is noted was there when the call was made, or was made by it; links are noted as themselves, and followed to what they lead to.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// Most names that are kept of one folder.
const NAMES: u32 = 256;
/// Most paths in all.
const MOST: usize = 100_000;

/// What a call does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It asks whether it is there, and what it is.
    Ask,
    /// It opens, runs or enters it.
    Read,
    /// It changes what is in it, and may make it.
    Change,
    /// It makes it, where it is not there.
    Make,
    /// It gives it another name beside its own.
    Link,
    /// It removes it.
    Remove,
    /// It puts something else in its place.
    Replace,
}

impl Act {
    /// Whether it changes something.
    pub const fn changes(self) -> bool {
        !matches!(self, Self::Ask | Self::Read)
    }
}

/// What was done with a path; nothing of it is that it was asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// It was opened, run, entered or listed.
    pub read: bool,
    /// What is in it was changed.
    pub changed: bool,
    /// It came or went: the folder that holds it was changed.
    pub came_or_went: bool,
    /// It is a folder.
    pub folder: bool,
    /// It stands for all the names in it, of which there were too many.
    pub whole: bool,
}

impl Use {
    const fn and(self, other: Self) -> Self {
        Self {
            read: self.read || other.read,
            changed: self.changed || other.changed,
            came_or_went: self.came_or_went || other.came_or_went,
            folder: self.folder || other.folder,
            whole: self.whole || other.whole,
        }
    }
}

/// What a command used.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    /// Paths without links in front of their last names.
    pub paths: BTreeMap<PathBuf, Use>,
    /// Whether there were more than are kept.
    pub more: bool,
}

/// Notes that are being made.
#[derive(Default)]
pub struct Notes {
    noted: Noted,
    names: HashMap<PathBuf, u32>,
}

impl Notes {
    /// Notes a path that a call is about to use.
    pub fn take(&mut self, path: &Path, act: Act) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(real) = fs::canonicalize(parent) else { return };
        if real != parent {
            let is_link = |folder: &&Path| fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink());
            let links: Vec<&Path> = parent.ancestors().filter(is_link).collect();
            for link in links {
                self.note(link.to_owned(), Use::default());
            }
        }
        let path = real.join(name);
        let Ok(found) = fs::symlink_metadata(&path) else {
            // What is not there, and is not made, is not used.
            if matches!(act, Act::Change | Act::Make | Act::Replace) {
                self.note(path, Use { changed: true, came_or_went: true, ..Use::default() });
            }
            return;
        };
        let folder = found.is_dir();
        let done = match act {
            Act::Ask | Act::Link | Act::Make => Use { folder, ..Use::default() },
            Act::Read => Use { read: true, folder, ..Use::default() },
            Act::Change => Use { changed: true, folder, ..Use::default() },
            Act::Remove | Act::Replace => Use { changed: true, came_or_went: true, folder, ..Use::default() },
        };
        if !found.is_symlink() || matches!(act, Act::Remove | Act::Replace | Act::Make) {
            return self.note(path, done);
        }
        // Who asks about a link may mean what it leads to.
        let target = fs::canonicalize(&path).ok().and_then(|target| Some((fs::metadata(&target).ok()?, target)));
        self.note(path, Use::default());
        if let Some((found, target)) = target {
            self.note(target, Use { folder: found.is_dir(), ..done });
        }
    }

    fn note(&mut self, path: PathBuf, done: Use) {
        if let Some(had) = self.noted.paths.get_mut(&path) {
            *had = had.and(done);
            return;
        }
        let Some(parent) = path.parent().map(Path::to_owned) else { return };
        if !done.folder
            && let Some(whole) = self.noted.paths.get_mut(&parent).filter(|had| had.whole)
        {
            *whole = whole.and(Use { folder: true, ..done });
            return;
        }
        if self.noted.paths.len() >= MOST {
            self.noted.more = true;
            return;
        }
        self.noted.paths.insert(path, done);
        let names = self.names.entry(parent.clone()).or_default();
        *names += 1;
        if *names > NAMES {
            self.fold(&parent);
        }
    }

    /// The names in a folder, folders aside, become the folder.
    fn fold(&mut self, folder: &Path) {
        let within = |path: &Path| path.parent() == Some(folder);
        let inside = self.noted.paths.range(folder.to_owned()..).take_while(|(path, _)| path.starts_with(folder));
        let names: Vec<PathBuf> =
            inside.filter(|(path, done)| within(path) && !done.folder).map(|(path, _)| path.clone()).collect();
        let mut all = Use { folder: true, whole: true, ..Use::default() };
        for name in names {
            all = all.and(self.noted.paths.remove(&name).unwrap_or_default());
        }
        let had = self.noted.paths.entry(folder.to_owned()).or_default();
        *had = had.and(all);
        self.names.insert(folder.to_owned(), 0);
    }

    /// All of them.
    pub fn end(self) -> Noted {
        self.noted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_noted_and_folded() {
        let folder = std::env::temp_dir().join(format!("writ-noted-{}", std::process::id()));
        fs::create_dir_all(folder.join("real")).unwrap();
        let folder = folder.canonicalize().unwrap();
        fs::write(folder.join("real/file"), "x").unwrap();
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        let mut notes = Notes::default();
        notes.take(&folder.join("link/file"), Act::Read);
        notes.take(&folder.join("none"), Act::Read);
        notes.take(&folder.join("made"), Act::Change);
        let done = |notes: &Notes, name: &str| notes.noted.paths.get(&folder.join(name)).copied();
        assert!(done(&notes, "real/file").unwrap().read && !done(&notes, "real/file").unwrap().changed);
        assert_eq!(done(&notes, "link"), Some(Use::default()));
        assert_eq!(done(&notes, "none"), None);
        assert!(done(&notes, "made").unwrap().came_or_went);
        for number in 0..300 {
            notes.take(&folder.join(format!("real/{number}")), Act::Change);
        }
        let all = done(&notes, "real").unwrap();
        assert!(all.whole && all.changed && all.read && done(&notes, "real/file").is_none());
        fs::remove_dir_all(&folder).unwrap();
    }
}
