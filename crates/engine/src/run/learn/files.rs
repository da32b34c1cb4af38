//! Files that a run used, into patterns that people can read.
//!
//! Owns the folding: names into their folder where all of it was used, where names came or went, or where there would be too many. Invariant:
//! every path that was used is named by a pattern, and none that was changed by one that is read-only; the same uses give the same patterns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use writ_policy::Policy;
use writ_sandbox::{Confinement, HostPath, Noted, Use, is_reserve};

use crate::confine::places::{SYSTEM, TOOLS};
use crate::governing::NAMES;

/// Most patterns of `files.allow`, if folding can bring them down to it.
const ALLOWED: usize = 24;
/// Most of `files.readOnly`: what is left out stays writable.
const READ_ONLY: usize = 16;
/// Most entries of a folder that are compared with what was used of it.
const COMPARED: usize = 4096;
/// Where every sandbox has something of its own.
const OWN: [&str; 4] = ["/tmp", "/dev", "/proc", "/var/tmp"];
/// Names that hold secrets as a rule.
const SECRETS: [&str; 7] = [
    "**/.env",
    "**/.env.*",
    "**/*.pem",
    "**/*.key",
    "**/*.{p12,pfx,jks,keystore,kdbx}",
    "**/id_{rsa,dsa,ecdsa,ed25519}",
    "**/.{netrc,pgpass,git-credentials,pypirc,vault-token}",
];

/// Where a run was.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The policy's folder.
    pub root: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// Where programs are looked up.
    pub search: &'a [PathBuf],
    /// What it ran in; `None` where single calls are learnt from, of which nothing is free and everything lasts.
    pub confinement: Option<&'a Confinement>,
}

/// The lists of a policy.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// `files.allow`
    pub allow: Vec<String>,
    /// `files.readOnly`
    pub read_only: Vec<String>,
    /// `files.deny`
    pub deny: Vec<String>,
    /// Patterns of secrets of which something was opened.
    pub secrets: Vec<String>,
    /// How many paths they are made from.
    pub paths: usize,
    /// Changes outside the folder, which nothing lets through again.
    pub not_kept: Vec<String>,
    /// How many patterns of `files.readOnly` were left out.
    pub left_writable: usize,
}

/// What a pattern names: a file, the names in a folder, or all below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    File,
    Names,
    All,
}

/// The lists for what was used.
pub fn files(noted: &Noted, ground: &Ground<'_>) -> Files {
    let mut used = Used::of(ground);
    let mut out = Files::default();
    for (path, done) in &noted.paths {
        if used.is_wanted(path, *done) {
            out.paths += 1;
            if !used.take(path, *done) {
                out.not_kept.push(path.to_string_lossy().into_owned());
            }
        }
    }
    used.fold_what_is_whole();
    used.tidy();
    used.fold_to(ALLOWED);
    out.allow = used.wanted.iter().map(|(path, extent)| used.pattern(path, *extent)).collect();
    let kept = used.only_read();
    out.left_writable = kept.len().saturating_sub(READ_ONLY);
    out.read_only = kept.iter().take(READ_ONLY).map(|(path, extent)| used.pattern(path, *extent)).collect();
    let secrets = SECRETS.iter().map(|pattern| (*pattern).to_owned());
    (out.secrets, out.deny) = secrets.partition(|pattern| used.opened(pattern));
    for list in [&mut out.allow, &mut out.read_only] {
        list.sort();
        list.dedup();
    }
    out
}

struct Used<'a> {
    ground: &'a Ground<'a>,
    wanted: BTreeMap<PathBuf, Extent>,
    /// Whatever was named.
    named: BTreeSet<PathBuf>,
    /// Whether git's own folder was used.
    git: bool,
    /// Files that were opened, and folders whose names were.
    read: BTreeSet<PathBuf>,
    /// Files that were changed, and folders of which names came or went.
    changed: BTreeSet<PathBuf>,
}

impl<'a> Used<'a> {
    const fn of(ground: &'a Ground<'a>) -> Self {
        Self {
            ground,
            wanted: BTreeMap::new(),
            named: BTreeSet::new(),
            git: false,
            read: BTreeSet::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Whether a rule is needed for it.
    fn is_wanted(&self, path: &Path, done: Use) -> bool {
        let Ground { root, home, search, confinement } = self.ground;
        if confinement.is_none() {
            return true;
        }
        if path.starts_with(root) {
            let policy = path.parent() == Some(root)
                && path.file_name().is_some_and(|name| NAMES.iter().any(|own| name == *own));
            return !policy && !self.is_only_kept(path);
        }
        let tools = home.iter().flat_map(|home| TOOLS.iter().map(|name| home.join(name)));
        let free = |place: &Path| path.starts_with(place);
        let everywhere = OWN.iter().chain(&SYSTEM).any(|place| free(Path::new(place)));
        // Folders outside are there as far as something in them is.
        let known = everywhere || tools.into_iter().any(|place| free(&place)) || search.iter().any(|place| free(place));
        !known && (!done.folder || done.changed || done.whole || done.read && self.may_fold(path))
    }

    /// Whether nothing is there but a name that the run kept.
    fn is_only_kept(&self, path: &Path) -> bool {
        let kept = self.ground.confinement.iter().flat_map(|within| &within.read_only).map(HostPath::as_path);
        let is_empty = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
        let is_none = |at: &Path| at.symlink_metadata().is_err() || is_reserve(at) || is_empty(at);
        kept.filter(|at| path.starts_with(at)).any(is_none)
    }

    /// Takes one; not where it is a change that does not last.
    fn take(&mut self, path: &Path, done: Use) -> bool {
        let path = if path.to_str().is_some() { path } else { path.parent().unwrap_or(path) };
        if let Some(git) = self.repository(path) {
            self.git = true;
            self.want(git, Extent::All);
            return true;
        }
        self.named.insert(path.to_owned());
        let lasts = path.starts_with(self.ground.root) || self.may_write(path);
        if done.read || !lasts {
            self.read.insert(path.to_owned());
        }
        let made_folder = done.came_or_went && (done.folder || path.is_dir());
        match done {
            Use { whole: true, .. } => self.want(path.to_owned(), Extent::All),
            _ if made_folder && lasts => self.want(path.to_owned(), Extent::All),
            Use { folder: true, read: true, .. } => self.want(path.to_owned(), Extent::Names),
            Use { folder: false, .. } if self.ground.confinement.is_none() || path.symlink_metadata().is_ok() => {
                self.want(path.to_owned(), Extent::File);
            }
            _ => {}
        }
        if !done.changed {
            return true;
        }
        if lasts {
            self.changed.insert(path.to_owned());
            if let Some(parent) = path.parent().filter(|_| done.came_or_went) {
                self.want(parent.to_owned(), Extent::Names);
                self.changed.insert(parent.to_owned());
            }
        }
        lasts
    }

    fn want(&mut self, path: PathBuf, extent: Extent) {
        let had = self.wanted.entry(path).or_insert(extent);
        *had = extent.max(*had);
    }

    /// Git's own folder, if it lies in one: git works in all of it.
    fn repository(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(self.ground.root).ok()?;
        let part = |part: Component<'_>| part == Component::Normal(".git".as_ref());
        let depth = below.components().position(part)?;
        Some(self.ground.root.join(below.components().take(depth + 1).collect::<PathBuf>()))
    }

    fn may_write(&self, path: &Path) -> bool {
        let writable = |within: &Confinement| within.writable.iter().any(|place| path.starts_with(place.as_path()));
        self.ground.confinement.is_none_or(writable)
    }

    /// Whether all below a folder may be named at once.
    fn may_fold(&self, folder: &Path) -> bool {
        let Ground { root, home, .. } = *self.ground;
        let holds = |place: &Path| place.starts_with(folder);
        folder.starts_with(root) || folder.components().count() > 2 && !holds(root) && !home.is_some_and(holds)
    }

    /// Folders of which everything was used, from the deepest up.
    fn fold_what_is_whole(&mut self) {
        let root = self.ground.root;
        let mut folders: BTreeSet<(std::cmp::Reverse<usize>, PathBuf)> = BTreeSet::new();
        for path in self.wanted.keys().filter(|path| path.starts_with(root)) {
            let above = path.ancestors().skip(1).take_while(|above| above.starts_with(root));
            folders.extend(above.map(|folder| (std::cmp::Reverse(folder.components().count()), folder.to_owned())));
        }
        for (_, folder) in folders {
            if self.is_whole(&folder) {
                self.wanted.insert(folder, Extent::All);
            }
        }
    }

    fn is_whole(&self, folder: &Path) -> bool {
        let Ok(entries) = fs::read_dir(folder) else { return false };
        let mut found = 0;
        for entry in entries.take(COMPARED + 1) {
            let Ok(entry) = entry else { return false };
            let path = entry.path();
            let is_policy = folder == self.ground.root && NAMES.iter().any(|name| entry.file_name() == *name);
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let empty = || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
            let fine = match self.wanted.get(&path) {
                Some(Extent::All) => true,
                Some(_) => !is_folder,
                None => is_policy || is_folder && (entry.file_name() == ".git" || empty()),
            };
            if !fine {
                return false;
            }
            found += 1;
        }
        (2..=COMPARED).contains(&found)
    }

    /// Takes out what others name.
    fn tidy(&mut self) {
        let named = |path: &Path, extent: Extent| {
            let mut above = path.ancestors().skip(1);
            above.any(|folder| self.wanted.get(folder) == Some(&Extent::All))
                || extent == Extent::File
                    && path.parent().is_some_and(|folder| self.wanted.get(folder) >= Some(&Extent::Names))
        };
        let spare: Vec<PathBuf> =
            self.wanted.iter().filter(|(path, extent)| named(path, **extent)).map(|(path, _)| path.clone()).collect();
        for path in spare {
            self.wanted.remove(&path);
        }
    }

    /// Folds the deepest folder that has several patterns, until there are few enough.
    fn fold_to(&mut self, most: usize) {
        while self.wanted.len() > most {
            let mut patterns: BTreeMap<&Path, usize> = BTreeMap::new();
            for path in self.wanted.keys() {
                for folder in path.ancestors().skip(1).filter(|folder| self.may_fold(folder)) {
                    *patterns.entry(folder).or_default() += 1;
                }
            }
            let several = patterns
                .into_iter()
                .filter(|(folder, count)| *count + usize::from(self.wanted.contains_key(*folder)) > 1);
            // The first of equals, by its name.
            let best = several.rev().max_by_key(|(folder, count)| (folder.components().count(), *count));
            let Some(folder) = best.map(|(folder, _)| folder.to_owned()) else { return };
            self.wanted.insert(folder, Extent::All);
            self.tidy();
        }
    }

    /// What was read and not changed, folders before files.
    fn only_read(&self) -> Vec<(PathBuf, Extent)> {
        let mut out = Vec::new();
        for (path, extent) in &self.wanted {
            let below = |list: &BTreeSet<PathBuf>| {
                list.range(path.clone()..).take_while(|at| at.starts_with(path)).cloned().collect::<Vec<_>>()
            };
            let own = |at: &PathBuf| *extent != Extent::Names || at.parent() == Some(path);
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            let changed: Vec<PathBuf> = below(&self.changed).into_iter().filter(|at| at == path || own(at)).collect();
            // Git takes a folder that is read-only as a whole for another user's, where the command stands in for root.
            if changed.is_empty() && !(self.git && path == self.ground.root) {
                out.push((path.clone(), *extent));
                continue;
            }
            // The largest folders below it in which nothing changed.
            let mut last: Option<PathBuf> = None;
            for at in below(&self.named).iter().filter(|at| own(at)) {
                let quiet = |folder: &&Path| !changed.iter().any(|change| change.starts_with(folder));
                let top = at.ancestors().take_while(|folder| *folder != path).filter(quiet).last();
                let Some(top) = top.filter(|top| last.as_deref() != Some(*top)) else { continue };
                let extent = match (extent, top.is_dir()) {
                    (_, false) => Extent::File,
                    (Extent::All, true) => Extent::All,
                    _ => continue,
                };
                last = Some(top.to_owned());
                out.push((top.to_owned(), extent));
            }
        }
        out.sort_by_key(|(path, extent)| (std::cmp::Reverse(*extent), path.components().count(), path.clone()));
        out.dedup();
        out
    }

    /// Whether something that a pattern names was opened.
    fn opened(&self, pattern: &str) -> bool {
        let text = format!(r#"{{"version":"1.0","name":"secrets","files":{{"deny":["{pattern}"]}}}}"#);
        let Ok(policy) = Policy::parse(text.as_bytes(), &self.ground.root.to_string_lossy()) else { return false };
        let named = |path: &PathBuf| path.to_str().is_some_and(|path| policy.keeps(path, None, false).is_some());
        self.read.iter().chain(&self.changed).any(named)
    }

    /// As a policy has it: below its folder, below the home, or from the root.
    fn pattern(&self, path: &Path, extent: Extent) -> String {
        let Ground { root, home, .. } = self.ground;
        let below_home = || home.and_then(|home| path.strip_prefix(home).ok());
        let (front, rest) = match (path.strip_prefix(root), below_home()) {
            (Ok(rest), _) => ("", rest),
            (_, Some(rest)) => ("~/", rest),
            _ => ("/", path.strip_prefix("/").unwrap_or(path)),
        };
        let rest = plain(&rest.to_string_lossy());
        let slash = if rest.is_empty() { "" } else { "/" };
        match extent {
            Extent::File => format!("{front}{rest}"),
            Extent::Names => format!("{front}{rest}{slash}*"),
            Extent::All => format!("{front}{rest}{slash}**"),
        }
    }
}

/// A path as a pattern that names it alone.
pub(super) fn plain(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if r"\*?[]{}!:~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
