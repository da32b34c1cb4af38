//! The folders a command may run in.

use crate::action::{Dir, Word};
use crate::eval::Eval;

/// Longest path of a folder.
const MAX_PATH: usize = 512;
/// Most folders a command may run in.
const MAX_DIRS: usize = 16;

impl Eval<'_> {
    pub(crate) fn add_dirs(&mut self, more: Vec<Dir>) {
        for dir in more {
            if self.dirs.contains(&dir) {
                continue;
            }
            if self.dirs.len() < MAX_DIRS {
                self.dirs.push(dir);
            } else if !self.dirs.contains(&Dir::Unknown) {
                self.dirs.push(Dir::Unknown);
            }
        }
    }

    pub(crate) fn add_unlikely(&mut self, more: Vec<Dir>) {
        for dir in more {
            if self.unlikely.len() < MAX_DIRS && !self.dirs.contains(&dir) && !self.unlikely.contains(&dir) {
                self.unlikely.push(dir);
            }
        }
    }

    /// `cd`: `None` is a place not known.
    pub(crate) fn change_dir(&mut self, to: Option<&str>) {
        let Some(path) = to.filter(|path| path.len() <= MAX_PATH) else {
            self.unlikely.clear();
            self.dirs = vec![Dir::Unknown];
            return;
        };
        let join = |dir: &Dir| match dir {
            _ if path.starts_with('/') => Dir::Start(path.to_owned()),
            Dir::Start(base) if base.len() < MAX_PATH => Dir::Start(below(base, path)),
            Dir::Start(_) | Dir::Unknown => Dir::Unknown,
        };
        let dirs: Vec<Dir> = self.dirs.iter().map(join).collect();
        let unlikely: Vec<Dir> = self.unlikely.iter().map(join).collect();
        (self.dirs, self.unlikely) = (Vec::new(), Vec::new());
        self.add_dirs(dirs);
        self.add_unlikely(unlikely);
    }

    /// Runs with another directory (`git -C x`).
    pub(crate) fn in_dir(&mut self, dir: Option<&Word>, run: impl FnOnce(&mut Self)) {
        let before = (self.dirs.clone(), self.unlikely.clone());
        if let Some(dir) = dir {
            self.change_dir(dir.literal().as_deref());
        }
        run(self);
        (self.dirs, self.unlikely) = before;
    }
}

/// `path` as seen from `base`; `..` takes back a name, as bash's own `cd` does.
pub fn below(base: &str, path: &str) -> String {
    let base = if path.starts_with('/') { "/" } else { base };
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." && parts.last().is_some_and(|last| *last != "..") {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    let root = if base.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
