//! Repositories that a run made: what git would obey of them outside.
//!
//! Owns where git looks for settings and hooks. Refuses to follow a link on the way to what it changes. Invariant: a repository whose
//! settings the plan kept is left as it is, but for what ties it to another; any other is known by the names in its own folder, and none
//! obeys another folder's settings, so that what names a repository elsewhere (`.git` files, links) need not be followed.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, RenameFlags, renameat_with, unlinkat};
use rustix::io::Errno;
use writ_sandbox::{Confinement, is_reserve};
use writ_store::regular_file;

use super::settings::{self, Obeyed};
use super::{bare, is_of_host};
use crate::confine::folders::{folder, of, open_up};
use crate::confine::git;

/// Names another folder whose settings count.
const COMMON_FOLDER: &str = "commondir";
/// What git writes there itself, for a linked work tree.
const COMMON_OF_TREE: &[u8] = b"../..";
/// Files of settings.
const SETTINGS: [&str; 2] = ["config", "config.worktree"];
/// What is added to the name of what is set aside.
const ASIDE: &str = ".set-aside";
/// Largest file of settings, or hook, that is read.
const MAX_SETTINGS: u64 = 1 << 20;
/// Most names that are looked through for one run.
const MOST_NAMES: usize = 1_000_000;

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

/// The folders that may be repositories because of a changed name.
pub fn named(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    if folder.ends_with("hooks") {
        return folder.parent().map(Path::to_owned).into_iter().collect();
    }
    let others = ["HEAD", "objects", "refs", "hooks", COMMON_FOLDER];
    let of_git = others.iter().chain(&SETTINGS).any(|own| name == *own);
    if of_git {
        vec![folder.to_owned()]
    } else if name == ".git" {
        vec![path.to_owned()]
    } else {
        Vec::new()
    }
}

/// Whether git takes a folder for a repository, or for what several share, once it is told that it is one.
pub fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("objects") && has("refs") || has("HEAD") && has(COMMON_FOLDER)
}

/// Removes what ties a repository to another, if it does.
pub fn untie(git: &Path) -> Option<TakenBack> {
    let path = git.join(COMMON_FOLDER);
    // What keeps the name for another run is that run's.
    let removed =
        !is_reserve(&path) && folder(git).is_some_and(|git| unlinkat(git, COMMON_FOLDER, AtFlags::empty()).is_ok());
    removed.then(|| TakenBack { path, how: How::Removed, why: "git would obey another folder's settings".to_owned() })
}

/// Repositories that are looked at, and what became of them.
pub struct Repositories<'a> {
    confinement: &'a Confinement,
    /// What cannot have been written.
    kept: BTreeSet<PathBuf>,
    /// Where the user's own hooks are copied from.
    templates: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    /// Folders that are closed again in the end, as this.
    opened: Vec<(PathBuf, u32)>,
    /// Names that were looked through.
    names: usize,
    done: Vec<TakenBack>,
}

impl<'a> Repositories<'a> {
    /// With those that the plan kept.
    pub fn of(confinement: &'a Confinement, home: Option<&Path>) -> Self {
        let held = confinement.read_only.iter().chain(&confinement.masked);
        let kept: BTreeSet<PathBuf> = held.map(|path| bare(path.as_path())).collect();
        let settings = kept.iter().filter(|path| path.ends_with("config")).filter_map(|path| path.parent());
        let known: BTreeSet<PathBuf> =
            settings.filter(|git| git.ends_with(".git") || is_repository(git)).map(Path::to_owned).collect();
        let done = known.iter().filter(|git| !kept.contains(&git.join(COMMON_FOLDER))).filter_map(|git| untie(git));
        let (done, templates) = (done.collect(), git::templates(home));
        Self { confinement, kept, templates, seen: BTreeSet::new(), opened: Vec::new(), names: 0, done }
    }

    /// What was done.
    pub fn done(self) -> Vec<TakenBack> {
        for (path, mode) in self.opened.iter().rev() {
            if let Some(folder) = folder(path) {
                // One that is gone needs nothing.
                fs::set_permissions(of(&folder), fs::Permissions::from_mode(*mode)).ok();
            }
        }
        self.done
    }

    /// Looks at those anywhere that can be written.
    pub fn find_all(&mut self) {
        let confinement = self.confinement;
        confinement.writable.iter().for_each(|path| self.find(path.as_path(), &mut |_file| {}));
    }

    /// Looks at those in a folder, and below, and tells of every file on the way.
    pub fn find(&mut self, folder: &Path, file: &mut dyn FnMut(&Path)) {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            if self.is_kept(&folder) || !is_of_host(self.confinement, &folder) {
                continue;
            }
            for entry in self.entries(&folder) {
                if !self.one_more(&folder) {
                    return;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                } else {
                    file(&entry.path());
                }
            }
            self.look(&folder);
        }
    }

    /// Opens a folder that its owner has closed, until all is done; tells whether that is this user.
    fn open(&mut self, folder: &Path) -> bool {
        let Ok(found) = folder.symlink_metadata() else { return false };
        let is_own = found.uid() == rustix::process::geteuid().as_raw();
        if is_own && found.is_dir() && found.mode() & 0o500 != 0o500 {
            open_up(folder);
            self.opened.push((folder.to_owned(), found.mode() & 0o7777));
        }
        is_own
    }

    /// Whether a folder is there. Those above it that were closed are opened; where that does not help, it may be there still.
    fn is_there(&mut self, folder: &Path) -> bool {
        let mut found = folder.symlink_metadata();
        if found.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
            let above: Vec<&Path> =
                folder.ancestors().skip(1).filter(|above| is_of_host(self.confinement, above)).collect();
            for folder in above.into_iter().rev() {
                self.open(folder);
            }
            found = folder.symlink_metadata();
        }
        match found {
            Ok(found) => found.is_dir(),
            Err(error) => {
                if error.kind() == ErrorKind::PermissionDenied && self.seen.insert(folder.to_owned()) {
                    let why = format!("whether git would obey it cannot be looked at ({error})");
                    self.done.push(TakenBack { path: folder.to_owned(), how: How::Left, why });
                }
                false
            }
        }
    }

    /// What is in a folder. One that its owner has closed is opened until all is done.
    fn entries(&mut self, folder: &Path) -> Vec<fs::DirEntry> {
        let is_own = self.open(folder);
        match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().collect(),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Vec::new(),
            // Whoever ran could not look either.
            Err(_) if !is_own => Vec::new(),
            Err(error) => {
                let why = format!("what is in it cannot be looked at ({error})");
                self.done.push(TakenBack { path: folder.to_owned(), how: How::Left, why });
                Vec::new()
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

    /// Sets aside what has git run something, where this is a repository. What the run could not write is somebody else's.
    pub fn look(&mut self, git: &Path) {
        if !is_of_host(self.confinement, git) || !self.is_there(git) {
            return;
        }
        self.open(git);
        let is_one = git.ends_with(".git") || is_repository(git);
        if !is_one || !self.seen.insert(git.to_owned()) {
            return;
        }
        self.common(git);
        SETTINGS.iter().for_each(|name| self.settings(git, name));
        self.hooks(&git.join("hooks"));
    }

    /// Another folder's settings count for a linked work tree alone, and those are the repository's that it lies in.
    fn common(&mut self, git: &Path) {
        let path = git.join(COMMON_FOLDER);
        let Ok(found) = path.symlink_metadata() else { return };
        if self.is_kept(&path) || is_reserve(&path) {
            return;
        }
        let trees = git.parent().filter(|above| above.ends_with("worktrees"));
        let text = regular_file::read(&path, MAX_SETTINGS).unwrap_or_default();
        let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
        let is_of_tree = found.is_file() && found.nlink() == 1 && text.get(..end) == Some(COMMON_OF_TREE);
        match trees.and_then(Path::parent).filter(|_| is_of_tree) {
            Some(common) => self.look(common),
            None => self.set_aside(&path, "git would obey another folder's settings".to_owned()),
        }
    }

    /// Whether the plan kept it, or something above it.
    fn is_kept(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.kept.contains(above))
    }

    fn settings(&mut self, git: &Path, name: &str) {
        let path = git.join(name);
        let Ok(found) = path.symlink_metadata() else { return };
        if self.is_kept(&path) || is_reserve(&path) {
            return;
        }
        let text = if found.is_file() { regular_file::read(&path, MAX_SETTINGS).ok() } else { None };
        let obeyed = match text.as_deref().map(|text| settings::plain(text, |tree| is_tree_of_submodule(git, tree))) {
            // Under its other name it could be written later on.
            Some(Ok(())) if found.nlink() > 1 => "it has another name too".to_owned(),
            Some(Ok(())) => return,
            Some(Err(Obeyed::Setting(name))) => format!("`{name}`"),
            Some(Err(Obeyed::Unclear)) | None => "a line that cannot be read with certainty".to_owned(),
        };
        self.set_aside(&path, format!("git may run programs for what it says ({obeyed}), outside of any sandbox"));
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
        for entry in self.entries(hooks) {
            if !self.one_more(hooks) {
                return;
            }
            // No hook has a point in its name.
            if !entry.file_name().as_encoded_bytes().contains(&b'.') && !self.is_of_user(&entry.path()) {
                self.set_aside(&entry.path(), why());
            }
        }
    }

    /// Whether a hook is the user's own: what git copied from their templates.
    fn is_of_user(&self, hook: &Path) -> bool {
        let Some(name) = hook.file_name() else { return false };
        let is_alone = hook.symlink_metadata().is_ok_and(|found| found.is_file() && found.nlink() == 1);
        let Some(own) = regular_file::read(hook, MAX_SETTINGS).ok().filter(|_| is_alone) else { return false };
        let same = |templates: &PathBuf| {
            let template = fs::canonicalize(templates.join("hooks").join(name)).ok()?;
            let is_written = is_of_host(self.confinement, &template) && !self.is_kept(&template);
            (!is_written && regular_file::read(&template, MAX_SETTINGS).ok()? == own).then_some(())
        };
        self.templates.iter().any(|templates| same(templates).is_some())
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
                // Somebody else has.
                Err(Errno::NOENT) => return,
                Err(_) => {}
            }
        }
        self.done.push(TakenBack { path: path.to_owned(), how: How::Left, why });
    }
}

/// Whether the work tree that the settings of a submodule's repository name lies in that of the repository that it is part of, where git
/// puts it, and is not all of it.
fn is_tree_of_submodule(git: &Path, tree: &str) -> bool {
    let above = |name: &str| git.ancestors().filter(move |path| path.ends_with(name)).last();
    let Some(own) = above(".git") else { return false };
    let Ok(below) = git.strip_prefix(own) else { return false };
    let mut names = below.iter();
    let top = match names.next().and_then(OsStr::to_str) {
        Some("modules") => own.parent().map(Path::to_owned),
        Some("worktrees") => {
            let linked = names.next().map(|name| own.join("worktrees").join(name).join("gitdir"));
            let text = linked.and_then(|linked| regular_file::text(&linked, MAX_SETTINGS).ok());
            let is_module = names.next().is_some_and(|name| name == "modules");
            text.filter(|_| is_module).and_then(|text| Path::new(text.trim_end()).parent().map(Path::to_owned))
        }
        _ => None,
    };
    let target = git::lexical(&git.join(tree));
    let within = top.as_deref().and_then(|top| target.strip_prefix(top).ok());
    let is_plain = |within: &Path| within.iter().all(|name| !name.eq_ignore_ascii_case(".git"));
    within.is_some_and(|within| within.iter().next().is_some() && is_plain(within))
        && fs::canonicalize(&target).ok().is_none_or(|real| real == target)
}
