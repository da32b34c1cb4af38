//! Repositories that a run made: what git would obey of them outside.
//!
//! Owns where git looks for settings and hooks. Refuses to follow a link on the way to what it changes. Invariant: a repository whose
//! settings the plan kept is left as it is, but for what ties it to another.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with, unlinkat};
use rustix::io::Errno;
use writ_sandbox::{Confinement, is_reserve};
use writ_store::regular_file;

use super::settings::{self, Obeyed};
use super::{bare, is_of_host};

/// Names another folder whose settings count.
const COMMON_FOLDER: &str = "commondir";
/// Files of settings.
const SETTINGS: [&str; 2] = ["config", "config.worktree"];
/// What is added to the name of what is set aside.
const ASIDE: &str = ".set-aside";
/// Largest file of settings that is read.
const MAX_SETTINGS: u64 = 1 << 20;
/// Longest path in a file.
const MAX_PATH: u64 = 1 << 20;
/// Most names that are looked through for one run.
const MOST_NAMES: usize = 400_000;

/// Something that git would obey outside, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// Where it was.
    pub path: PathBuf,
    /// What became of it.
    pub how: How,
    /// Why, in words.
    pub why: String,
}

/// What became of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is gone.
    Removed,
    /// It has this name now.
    Renamed(OsString),
    /// It is there still, or may be.
    Left,
}

impl TakenBack {
    /// In words.
    pub fn words(&self) -> String {
        let path = self.path.display();
        match &self.how {
            How::Removed => format!("removed `{path}`: {}", self.why),
            How::Renamed(name) => format!("moved `{path}` to `{}` beside it: {}", name.display(), self.why),
            How::Left => format!("could not take `{path}` back: {}", self.why),
        }
    }
}

/// The repository that a changed path may belong to, or say where it is.
pub fn named(path: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = path.components().collect();
    if let Some(at) = parts.iter().position(|part| part.as_os_str() == ".git") {
        return Some(parts.iter().take(at + 1).collect());
    }
    let folder = path.parent()?;
    let name = path.file_name()?;
    if folder.file_name().is_some_and(|folder| folder == "hooks") {
        return folder.parent().map(Path::to_owned);
    }
    let others = ["HEAD", "objects", "refs", "hooks", COMMON_FOLDER];
    let of_git = others.iter().chain(&SETTINGS).any(|own| name == *own);
    of_git.then(|| folder.to_owned())
}

/// Removes what ties a repository to another, if it does.
pub fn untie(git: &Path) -> Option<TakenBack> {
    let path = git.join(COMMON_FOLDER);
    // What keeps the name for another run is that run's.
    let removed =
        !is_reserve(&path) && folder(git).is_some_and(|git| unlinkat(git, COMMON_FOLDER, AtFlags::empty()).is_ok());
    removed.then(|| TakenBack { path, how: How::Removed, why: "git would obey another folder's settings".to_owned() })
}

/// Repositories, as far as they have been found.
pub struct Repositories<'a> {
    confinement: &'a Confinement,
    /// What cannot have been written.
    kept: BTreeSet<PathBuf>,
    seen: BTreeSet<PathBuf>,
    /// Those to be looked at, and whether git was told that they are one.
    open: Vec<(PathBuf, bool)>,
    /// Names that were looked through.
    names: usize,
    done: Vec<TakenBack>,
}

impl<'a> Repositories<'a> {
    /// With those that the plan knew.
    pub fn of(confinement: &'a Confinement) -> Self {
        let kept: BTreeSet<PathBuf> = confinement.read_only.iter().map(|path| bare(path.as_path())).collect();
        let settings = kept.iter().filter(|path| path.ends_with("config")).filter_map(|path| path.parent());
        let known: BTreeSet<PathBuf> =
            settings.filter(|git| git.ends_with(".git") || is_bare(git)).map(Path::to_owned).collect();
        let done = known.iter().filter(|git| !kept.contains(&git.join(COMMON_FOLDER))).filter_map(|git| untie(git));
        let done = done.collect();
        Self { confinement, kept, seen: BTreeSet::new(), open: Vec::new(), names: 0, done }
    }

    /// One more, if it is one.
    pub fn add(&mut self, git: &Path) {
        self.add_as(git, false);
    }

    /// One more; `named` where git was told that it is one. What the run could not write is somebody else's.
    fn add_as(&mut self, git: &Path, named: bool) {
        let real = match (git.parent().map(fs::canonicalize), git.file_name()) {
            (Some(Ok(parent)), Some(name)) => parent.join(name),
            _ => match fs::canonicalize(git) {
                Ok(real) => real,
                Err(_) => return,
            },
        };
        if !is_of_host(self.confinement, &real) {
            return;
        }
        let fresh = self.seen.insert(real.clone());
        if fresh || named {
            self.open.push((real, named));
        }
    }

    /// Those anywhere that can be written.
    pub fn find(&mut self, confinement: &Confinement) {
        let mut folders: Vec<PathBuf> = confinement.writable.iter().map(|path| path.as_path().to_owned()).collect();
        while let Some(folder) = folders.pop() {
            let mut of_git = 0;
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if !self.one_more(&folder) {
                    return;
                }
                let name = entry.file_name();
                of_git += u32::from(["HEAD", "objects", "refs"].iter().any(|own| name == *own));
                if name == ".git" {
                    self.add(&entry.path());
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                }
            }
            if of_git == 3 {
                self.add(&folder);
            }
        }
    }

    /// Whether one more name may be looked at. What comes after the last is told to be left.
    fn one_more(&mut self, folder: &Path) -> bool {
        self.names += 1;
        if self.names == MOST_NAMES + 1 {
            let why = format!("there are more than {MOST_NAMES} names to look at");
            self.done.push(TakenBack { path: folder.to_owned(), how: How::Left, why });
        }
        self.names <= MOST_NAMES
    }

    /// Sets aside what has git run something.
    pub fn settle(mut self) -> Vec<TakenBack> {
        let mut looked = BTreeSet::new();
        while let Some(git) = self.open.pop() {
            if !looked.contains(&git) && self.one_more(&git.0) {
                self.look(&git.0, git.1);
                looked.insert(git);
            }
        }
        self.done
    }

    fn look(&mut self, git: &Path, named: bool) {
        let Ok(found) = git.symlink_metadata() else { return };
        if found.is_symlink() {
            if let Ok(target) = fs::canonicalize(git) {
                self.add_as(&target, true);
            }
            return;
        }
        if found.is_file() {
            // A work tree of a repository that is elsewhere.
            let text = path_in(git);
            let target = text.as_deref().and_then(|text| text.strip_prefix("gitdir:"));
            if let (Some(target), Some(folder)) = (target, git.parent()) {
                self.add_as(&folder.join(target.trim()), true);
            }
            return;
        }
        if !found.is_dir() || !(named || git.ends_with(".git") || is_bare(git)) {
            return;
        }
        if let Some(common) = path_in(&git.join(COMMON_FOLDER)) {
            self.add_as(&git.join(common.trim()), true);
        }
        SETTINGS.iter().for_each(|name| self.settings(&git.join(name)));
        self.hooks(&git.join("hooks"));
        self.modules(&git.join("modules"));
        for tree in fs::read_dir(git.join("worktrees")).into_iter().flatten().flatten() {
            if !self.one_more(git) {
                return;
            }
            self.add_as(&tree.path(), true);
        }
    }

    /// Whether the plan kept it, or something above it.
    fn is_kept(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.kept.contains(above))
    }

    fn settings(&mut self, path: &Path) {
        let Ok(found) = path.symlink_metadata() else { return };
        if self.is_kept(path) || is_reserve(path) {
            return;
        }
        let of_submodule = path.components().any(|part| part.as_os_str() == "modules");
        let text = if found.is_file() { regular_file::read(path, MAX_SETTINGS).ok() } else { None };
        let obeyed = match text.map(|text| settings::plain(&text, of_submodule)) {
            Some(Ok(())) => return,
            Some(Err(Obeyed::Setting(name))) => format!("`{name}`"),
            Some(Err(Obeyed::Unclear)) | None => "a line that cannot be read with certainty".to_owned(),
        };
        self.set_aside(path, format!("git may run programs for what it says ({obeyed}), outside of any sandbox"));
    }

    fn hooks(&mut self, hooks: &Path) {
        let Ok(found) = hooks.symlink_metadata() else { return };
        if self.is_kept(hooks) {
            return;
        }
        let why = || "git would run it, outside of any sandbox".to_owned();
        if !found.is_dir() {
            return self.set_aside(hooks, why());
        }
        open_up(hooks);
        for entry in fs::read_dir(hooks).into_iter().flatten().flatten() {
            if !self.one_more(hooks) {
                return;
            }
            // No hook has a point in its name.
            if !entry.file_name().as_encoded_bytes().contains(&b'.') {
                self.set_aside(&entry.path(), why());
            }
        }
    }

    /// Repositories of submodules, which may have `/` in their names.
    fn modules(&mut self, folder: &Path) {
        // What a link leads to is looked at where it lies.
        if self.is_kept(folder) || !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !self.one_more(folder) {
                return;
            }
            let path = entry.path();
            if path.join("HEAD").symlink_metadata().is_ok() {
                self.add_as(&path, true);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && path.components().count() < 128 {
                self.modules(&path);
            }
        }
    }

    fn set_aside(&mut self, path: &Path, why: String) {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Some(parent) = folder(above) else {
            return self.done.push(TakenBack { path: path.to_owned(), how: How::Left, why });
        };
        for tries in 0..8u8 {
            let mut new = name.to_owned();
            new.push(ASIDE);
            if tries > 0 {
                // Whoever wants it to stay may have taken any name that can be told beforehand.
                new.push(format!("-{:016x}", RandomState::new().hash_one(tries)));
            }
            match renameat_with(&parent, name, &parent, &new, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    self.done.push(TakenBack { path: path.to_owned(), how: How::Renamed(new), why });
                    return;
                }
                Err(Errno::ACCESS | Errno::PERM) => open_up(above),
                Err(_) => {}
            }
        }
        self.done.push(TakenBack { path: path.to_owned(), how: How::Left, why });
    }
}

/// Gives the owner of a folder its rights back.
fn open_up(path: &Path) {
    let Some(folder) = folder(path) else { return };
    let open = format!("/proc/self/fd/{}", folder.as_raw_fd());
    if let Ok(found) = fs::metadata(&open) {
        // Somebody else's stays as it is.
        fs::set_permissions(&open, fs::Permissions::from_mode(found.mode() & 0o7777 | 0o700)).ok();
    }
}

/// Whether a folder is a repository without a work tree.
fn is_bare(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).symlink_metadata().is_ok())
}

/// A folder on whose way no link lies.
fn folder(path: &Path) -> Option<std::os::fd::OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()
}

/// The text of a short file.
fn path_in(file: &Path) -> Option<String> {
    String::from_utf8(regular_file::read(file, MAX_PATH).ok()?).ok()
}
