//! What a folder was like when its copy began.
//!
//! Owns the list of marks: one for each name below it, from what the kernel says without opening anything. Refuses folders too large to look
//! at. Invariant: a name whose mark is the same has not been written to since; the list's digest stands in the session's ledger.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::tree::{Kind, Node, Tree};

/// Most names.
pub const MOST: usize = 400_000;
/// Deepest folders.
pub const DEEPEST: usize = 128;
/// What the list begins with.
const HEAD: &[u8] = b"writ copy 1\n";

/// Marks by paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Begun(BTreeMap<PathBuf, String>);

/// What tells whether something has been written to. Of a folder only what is its own: what it holds has marks too.
pub fn mark(node: &Node) -> String {
    let stat = &node.stat;
    let what = match node.kind {
        Kind::Folder => return format!("d{:o}", node.mode()),
        Kind::File => 'f',
        Kind::Link => 'l',
        Kind::Whiteout | Kind::Other => 'o',
    };
    format!(
        "{what}{:o}.{}.{}.{}.{}.{}.{}",
        node.mode(),
        stat.st_size,
        stat.st_mtime,
        stat.st_mtime_nsec,
        stat.st_ctime,
        stat.st_ctime_nsec,
        stat.st_ino
    )
}

impl Begun {
    /// Adds what is at a path now, with everything below it.
    pub fn add(&mut self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return self.folder(&Tree::open(path)?, Path::new(""), 0);
        }
        let parent = path.parent().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        let name = Path::new(path.file_name().unwrap_or_default());
        if let Some(node) = Tree::open(parent)?.find(name)? {
            self.0.insert(path.to_owned(), mark(&node));
        }
        Ok(())
    }

    fn folder(&mut self, tree: &Tree, folder: &Path, depth: usize) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(io::Error::other(format!("folders lie more than {DEEPEST} deep")));
        }
        let names = match tree.names(folder, MOST) {
            // Whoever runs here may not look into it, and neither may the command.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => return Ok(()),
            names => names?,
        };
        for name in names {
            let path = folder.join(name);
            let Some(node) = tree.find(&path)? else { continue };
            if self.0.len() >= MOST {
                return Err(io::Error::other(format!("it holds more than {MOST} names")));
            }
            self.0.insert(tree.path.join(&path), mark(&node));
            if node.kind == Kind::Folder {
                self.folder(tree, &path, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Whether what is at a path is what was there.
    pub fn is_same(&self, path: &Path, now: Option<&Node>) -> bool {
        self.0.get(path).map(String::as_str) == now.map(mark).as_deref()
    }

    /// What is below a path that was not there, or was another, or is gone.
    pub fn differs_below(&self, path: &Path, now: &Self) -> Option<PathBuf> {
        let below = |list: &'_ Self| -> Vec<(PathBuf, String)> {
            let from = (Bound::Excluded(path.to_owned()), Bound::Unbounded);
            let range = list.0.range(from).take_while(|(other, _)| other.starts_with(path));
            range.map(|(path, mark)| (path.clone(), mark.clone())).collect()
        };
        let (then, now) = (below(self), below(now));
        let gone = then.iter().find(|entry| !now.contains(entry));
        gone.or_else(|| now.iter().find(|entry| !then.contains(entry))).map(|(path, _)| path.clone())
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = HEAD.to_vec();
        for (path, mark) in &self.0 {
            bytes.extend(mark.as_bytes());
            bytes.push(b' ');
            bytes.extend(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        bytes
    }

    /// From bytes, if they are such a list and whole.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(HEAD)?;
        let mut list = BTreeMap::new();
        for entry in rest.split_inclusive(|byte| *byte == 0) {
            let entry = entry.strip_suffix(&[0])?;
            let at = entry.iter().position(|byte| *byte == b' ')?;
            let mark = std::str::from_utf8(entry.get(..at)?).ok()?.to_owned();
            list.insert(PathBuf::from(OsStr::from_bytes(entry.get(at + 1..)?)), mark);
        }
        Some(Self(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_since_has_another_mark() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/c d"), "x").unwrap();
        let now = || {
            let mut list = Begun::default();
            list.add(&root).unwrap();
            list
        };
        let then = now();
        let bytes = then.to_bytes();
        assert_eq!(Begun::from_bytes(&bytes).unwrap(), then);
        assert!(Begun::from_bytes(&bytes[..bytes.len() - 1]).is_none());
        assert_eq!(then.differs_below(&root.join("a"), &now()), None);
        std::fs::write(root.join("a/b/c d"), "y").unwrap();
        assert_eq!(then.differs_below(&root.join("a"), &now()), Some(root.join("a/b/c d")));
        std::fs::remove_file(root.join("a/b/c d")).unwrap();
        assert_eq!(then.differs_below(&root.join("a"), &now()), Some(root.join("a/b/c d")));
    }
}
