//! Repositories that a run made: what git would obey of them outside.
//!
//! Owns where git looks for settings and hooks. Refuses to follow a link on the way to what it changes. Invariant: a repository whose
//! settings the plan kept is left as it is, but for what ties it to another.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with, unlinkat};
use writ_sandbox::{Confinement, HostPath, is_reserve};
use writ_store::regular_file;

use super::bare;
use super::settings::{self, Obeyed};

/// Names another folder whose settings count.
const COMMON_FOLDER: &str = "commondir";
/// Files of settings.
const SETTINGS: [&str; 2] = ["config", "config.worktree"];
/// What is added to the name of what is set aside.
const ASIDE: &str = ".set-aside";
/// Largest file of settings that is read.
const MAX_SETTINGS: u64 = 1 << 20;
/// Longest path in a file.
const MAX_PATH: u64 = 8192;
/// Most folders that are looked at for one run.
const MOST: usize = 4096;
/// Most names that are looked through to find them.
const MOST_NAMES: usize = 400_000;

/// Something that was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// Where it was.
    pub path: PathBuf,
    /// What it is called now; nothing where it was removed.
    pub name: Option<OsString>,
    /// Why, in words.
    pub why: String,
}

impl TakenBack {
    /// In words.
    pub fn words(&self) -> String {
        let path = self.path.display();
        match &self.name {
            None => format!("removed `{path}`: {}", self.why),
            Some(name) => format!("moved `{path}` to `{}` beside it: {}", name.display(), self.why),
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
    let of_git = name == "HEAD" || name == "hooks" || name == COMMON_FOLDER || SETTINGS.iter().any(|own| name == *own);
    of_git.then(|| folder.to_owned())
}

/// Removes what ties a repository to another, if it does.
pub fn untie(git: &Path) -> Option<TakenBack> {
    let path = git.join(COMMON_FOLDER);
    // What keeps the name for another run is that run's.
    let removed =
        !is_reserve(&path) && folder(git).is_some_and(|git| unlinkat(git, COMMON_FOLDER, AtFlags::empty()).is_ok());
    removed.then(|| TakenBack { path, name: None, why: "git would obey another folder's settings".to_owned() })
}

/// Repositories, as far as they have been found.
pub struct Repositories {
    known: BTreeSet<PathBuf>,
    /// Whose submodules' are kept as well.
    whole: BTreeSet<PathBuf>,
    seen: BTreeSet<PathBuf>,
    open: Vec<PathBuf>,
    done: Vec<TakenBack>,
}

impl Repositories {
    /// With those that the plan knew.
    pub fn of(confinement: &Confinement) -> Self {
        let kept = || confinement.read_only.iter().map(HostPath::as_path);
        let beside = |name: &str| {
            let kept = kept().filter(|path| path.ends_with(name)).filter_map(Path::parent);
            kept.map(bare).collect::<BTreeSet<PathBuf>>()
        };
        let known: BTreeSet<PathBuf> = beside(".git/config").into_iter().collect();
        let done = known.iter().filter_map(|git| untie(git)).collect();
        Self { known, whole: beside(".git/modules"), seen: BTreeSet::new(), open: Vec::new(), done }
    }

    /// One more, if it is one.
    pub fn add(&mut self, git: &Path) {
        let real = match (git.parent().map(fs::canonicalize), git.file_name()) {
            (Some(Ok(parent)), Some(name)) => parent.join(name),
            _ => return,
        };
        if self.seen.len() < MOST && self.seen.insert(real.clone()) {
            self.open.push(real);
        }
    }

    /// Those anywhere that can be written.
    pub fn find(&mut self, confinement: &Confinement) {
        let mut folders: Vec<PathBuf> = confinement.writable.iter().map(|path| path.as_path().to_owned()).collect();
        let mut names = 0;
        while let Some(folder) = folders.pop() {
            let mut of_git = 0;
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                names += 1;
                if names > MOST_NAMES {
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

    /// Sets aside what has git run something.
    pub fn settle(mut self) -> Vec<TakenBack> {
        while let Some(git) = self.open.pop() {
            self.look(&git);
        }
        self.done
    }

    fn look(&mut self, git: &Path) {
        let Ok(found) = git.symlink_metadata() else { return };
        if found.is_symlink() {
            if let Ok(target) = fs::canonicalize(git) {
                self.add(&target);
            }
            return;
        }
        if found.is_file() {
            // A work tree of a repository that is elsewhere.
            let text = path_in(git);
            let target = text.as_deref().and_then(|text| text.strip_prefix("gitdir:"));
            if let (Some(target), Some(folder)) = (target, git.parent()) {
                self.add(&folder.join(target.trim()));
            }
            return;
        }
        let has = |name: &str| git.join(name).symlink_metadata().is_ok();
        if !found.is_dir() || !(git.ends_with(".git") || has("HEAD")) {
            return;
        }
        if !self.known.contains(git) {
            if let Some(common) = path_in(&git.join(COMMON_FOLDER)) {
                self.add(&git.join(common.trim()));
            }
            SETTINGS.iter().for_each(|name| self.settings(&git.join(name)));
            self.hooks(&git.join("hooks"));
        }
        if !self.whole.contains(git) {
            self.modules(&git.join("modules"));
        }
    }

    fn settings(&mut self, path: &Path) {
        let Ok(found) = path.symlink_metadata() else { return };
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
        let why = || "git would run it, outside of any sandbox".to_owned();
        if !found.is_dir() {
            return self.set_aside(hooks, why());
        }
        for entry in fs::read_dir(hooks).into_iter().flatten().flatten().take(MOST) {
            let name = entry.file_name();
            let ends = |end: &str| name.as_encoded_bytes().ends_with(end.as_bytes());
            // Other names git does not know.
            if !ends(".sample") && !ends(ASIDE) && !name.as_encoded_bytes().contains(&b'.') {
                self.set_aside(&entry.path(), why());
            }
        }
    }

    /// Repositories of submodules, which may have `/` in their names.
    fn modules(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(MOST) {
            let path = entry.path();
            if path.join("HEAD").symlink_metadata().is_ok() {
                self.add(&path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && path.components().count() < 128 {
                self.modules(&path);
            }
        }
    }

    fn set_aside(&mut self, path: &Path, why: String) {
        let (Some(parent), Some(name)) = (path.parent().and_then(folder), path.file_name()) else { return };
        for number in 0..100u8 {
            let mut new = name.to_owned();
            new.push(ASIDE);
            if number > 0 {
                new.push(format!("-{number}"));
            }
            if renameat_with(&parent, name, &parent, &new, RenameFlags::NOREPLACE).is_ok() {
                self.done.push(TakenBack { path: path.to_owned(), name: Some(new), why });
                return;
            }
        }
    }
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
