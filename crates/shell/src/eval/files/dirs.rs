//! The folders a command may run in.

use crate::eval::Eval;
use crate::word::{Dir, Part, Word};

/// Longest path of a folder.
const MAX_PATH: usize = 512;
/// Most folders a command may run in.
const MAX_DIRS: usize = 16;
/// Most pieces of a folder's path that is not fully known.
const MAX_PARTS: usize = 16;

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

    /// `cd -`, `popd`: one of the folders left behind; without any, not known.
    pub(crate) fn return_dir(&mut self) {
        let back = self.left.clone();
        self.leave_dirs();
        self.unlikely.clear();
        self.dirs = if back.is_empty() { vec![Dir::Unknown] } else { back };
    }

    fn leave_dirs(&mut self) {
        for dir in self.dirs.clone() {
            if self.left.len() < MAX_DIRS && !self.left.contains(&dir) {
                self.left.push(dir);
            }
        }
    }

    /// `cd`: `None` is a place not known.
    pub(crate) fn change_dir(&mut self, to: Option<&Word>) {
        self.leave_dirs();
        let known = to.and_then(Word::place).filter(|_| to.is_some_and(|to| !to.is_glob()));
        if let (None, Some(to)) = (&known, to) {
            return self.enter_open(&to.parts);
        }
        let Some(path) = known.filter(|path| path.len() <= MAX_PATH) else {
            self.unlikely.clear();
            self.dirs = vec![Dir::Unknown];
            return;
        };
        // Whether links decide what `..` means.
        let raw = self.physical && path.split('/').any(|part| part == "..");
        let join = |dir: &Dir| match dir {
            _ if path.starts_with('/') => Dir::Start(path.clone()),
            Dir::Start(base) if base.len() < MAX_PATH => Dir::Start(below(base, &path)),
            Dir::Open(parts) if parts.len() < MAX_PARTS => Dir::Open(join_path(parts, &[Part::Text(path.clone())])),
            Dir::Start(_) | Dir::Open(_) | Dir::Unknown => Dir::Unknown,
        };
        let mut dirs: Vec<Dir> = self.dirs.iter().map(join).collect();
        if raw {
            let unfolded = |dir: &Dir| match dir {
                Dir::Start(base) if base.is_empty() => Some(Dir::Start(path.clone())),
                Dir::Start(base) if base.len() < MAX_PATH => Some(Dir::Start(format!("{base}/{path}"))),
                Dir::Start(_) | Dir::Open(_) | Dir::Unknown => None,
            };
            dirs.extend(self.dirs.iter().filter_map(unfolded).collect::<Vec<_>>());
        }
        let unlikely: Vec<Dir> = self.unlikely.iter().map(join).collect();
        (self.dirs, self.unlikely) = (Vec::new(), Vec::new());
        self.add_dirs(dirs);
        self.add_unlikely(unlikely);
    }

    /// `cd` to a path of which something is not known.
    fn enter_open(&mut self, to: &[Part]) {
        let away = matches!(to.first(), Some(Part::Text(text)) if text.starts_with('/'));
        let join = |dir: &Dir| match dir {
            _ if away => Dir::Open(to.to_vec()),
            Dir::Start(base) if base.is_empty() => Dir::Open(to.to_vec()),
            Dir::Start(base) => Dir::Open(join_path(&[Part::Text(base.clone())], to)),
            Dir::Open(parts) if parts.len() < MAX_PARTS => Dir::Open(join_path(parts, to)),
            Dir::Open(_) | Dir::Unknown => Dir::Unknown,
        };
        let dirs: Vec<Dir> = self.dirs.iter().map(join).collect();
        self.dirs.clear();
        self.unlikely.clear();
        self.add_dirs(dirs);
    }

    /// Runs with another directory (`git -C x`).
    pub(crate) fn in_dir(&mut self, dir: Option<&Word>, run: impl FnOnce(&mut Self)) {
        let before = (self.dirs.clone(), self.unlikely.clone(), self.left.clone());
        if dir.is_some() {
            self.change_dir(dir);
        }
        run(self);
        (self.dirs, self.unlikely, self.left) = before;
    }
}

/// A path of pieces below another.
pub fn join_path(base: &[Part], path: &[Part]) -> Vec<Part> {
    [base, &[Part::Text("/".to_owned())], path].concat()
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
