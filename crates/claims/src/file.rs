//! What became of one claimed file.
//!
//! Asks the cheap questions first: the delta, the disk, the agent's own acts. What costs time — commits, stashes, other work
//! trees and repositories — is only looked at for a file that would otherwise stand against the claim.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use writ_core::Digest;

use crate::claim::{NameKind, name_kind};
use crate::facts::Facts;
use crate::paths::{base_name, holds, plain};
use crate::places::{alike_on_disk, beside, places, repositories_containing, submodules};
use crate::replay::{Act, Replay, ended_as, replay};
use crate::tree::{
    Delta, GitError, Repository, changed_since, git_ignores, is_submodule, status_of, tracked, versions, written_since,
};
use crate::verdict::{FileVerdict, Landing, Weight};

/// Longest file that is laid beside what an agent says it wrote, in bytes.
const MAX_CONTENTS: u64 = 64 << 20;

/// Commits with the paths each changed; the error's text where git does not say.
type History = Rc<Result<BTreeMap<String, BTreeSet<String>>, String>>;

/// The facts with what was looked up so far.
pub struct FactCache<'a> {
    facts: &'a Facts<'a>,
    /// What HEAD's moves and the stash held meanwhile.
    passed: OnceCell<BTreeSet<String>>,
    /// What was written since the start, in this and the other work trees: plain names, from the top.
    recent: OnceCell<Vec<PathBuf>>,
    /// The commits since the start, by repository.
    histories: RefCell<BTreeMap<PathBuf, History>>,
    /// When the judging began: it takes no longer than one git may.
    begun: Instant,
}

impl<'a> FactCache<'a> {
    pub fn new(facts: &'a Facts<'a>) -> Self {
        let (passed, recent, histories) = Default::default();
        Self { facts, passed, recent, histories, begun: Instant::now() }
    }

    /// The verdict on a claimed file; `gone` when the claim says that it is no longer there.
    pub fn file(&self, claimed: &str, gone: bool) -> FileVerdict {
        let places = places(self.facts, claimed);
        let inside = self.inside_of(&places);
        let there = places.iter().any(|path| fs::symlink_metadata(path).is_ok());
        let changed = inside.iter().any(|path| self.changed(path));
        if gone && !there {
            let reason = if changed { "changed" } else { "is not there, as claimed" };
            return FileVerdict::new(claimed, Landing::Landed, reason);
        }
        let replays: Vec<(Replay, &PathBuf)> = places.iter().map(|path| (self.replay(path), path)).collect();
        let told = |wanted: Replay| replays.iter().find(|(replay, _)| *replay == wanted);
        if told(Replay::Kept).is_some() {
            return FileVerdict::new(claimed, Landing::Landed, "holds what the agent wrote");
        }
        if let Some((_, path)) = told(Replay::Lost) {
            return self.lost(claimed, path);
        }
        if changed {
            return FileVerdict::new(claimed, Landing::Landed, "changed");
        }
        let unclear = told(Replay::Unclear).is_some();
        match (there, unclear) {
            (true, true) => FileVerdict::new(claimed, Landing::RevertedLater, "was written, and is as it was before"),
            (true, false) => self
                .elsewhere(claimed, &inside)
                .unwrap_or_else(|| FileVerdict::new(claimed, Landing::Unchanged, "is on disk and did not change")),
            (false, true) => {
                let reason = "was written, and a later command may have moved or removed it";
                FileVerdict::new(claimed, Landing::RevertedLater, reason)
            }
            (false, false) => self.absent(claimed, &places, &inside),
        }
    }

    /// The places of a claimed path as paths from the top, where they lie below it.
    pub fn inside(&self, claimed: &str) -> Vec<String> {
        self.inside_of(&places(self.facts, claimed))
    }

    fn inside_of(&self, places: &[PathBuf]) -> Vec<String> {
        places.iter().filter_map(|path| self.relative(path)).collect()
    }

    /// A reported write that the disk knows nothing of: a proof, unless a commit, a stash or another work tree holds it.
    fn lost(&self, claimed: &str, place: &Path) -> FileVerdict {
        let disk = contents(place);
        let wrote = |content: &[u8]| ended_as(self.facts.acts, place, disk.as_deref(), content);
        match self.held_in_history(place, &wrote) {
            Ok(true) => {
                let reason = "was written, and is in a commit or stash that HEAD is not at";
                return FileVerdict::new(claimed, Landing::Elsewhere, reason);
            }
            Ok(false) => {}
            Err(why) => {
                let reason = format!("was written, and git cannot be asked where it is: {why}");
                return FileVerdict::new(claimed, Landing::CannotVerify, &reason);
            }
        }
        let relative = self.relative(place);
        let mut others =
            self.facts.repository.others().into_iter().filter_map(|top| Some(top.join(relative.as_ref()?)));
        if let Some(other) = others.find(|path| contents(path).is_some_and(|content| wrote(&content))) {
            let reason = format!("is in another work tree: {}", other.display());
            return FileVerdict::new(claimed, Landing::Elsewhere, &reason);
        }
        let (landing, reason) = if disk.is_some() {
            (Landing::Unchanged, "was reported as written, and holds what it held before")
        } else {
            (Landing::Missing, "was reported as written, and is not on disk")
        };
        FileVerdict::new(claimed, landing, reason).with_weight(Weight::Transcript)
    }

    /// Whether a commit since the start has what was written there.
    fn held_in_history(&self, place: &Path, wrote: &dyn Fn(&[u8]) -> bool) -> Result<bool, String> {
        for repository in repositories_containing(place) {
            let Some(path) = below(&repository.root, place) else { continue };
            let history = self.history(&repository);
            let history = history.as_ref().as_ref().map_err(Clone::clone)?;
            let commits = history.iter().filter(|(_, paths)| paths.contains(&path)).map(|(commit, _)| commit.as_str());
            let commits: Vec<&str> = commits.collect();
            let held = versions(&repository.root, &commits, &path, self.facts.limits);
            if held.map_err(|error| error.to_string())?.iter().any(|content| wrote(content)) {
                return Ok(true);
            }
            if repository.root == self.facts.repository.root {
                break;
            }
        }
        Ok(false)
    }

    /// A claimed file that is not on disk and not among the changes.
    fn absent(&self, claimed: &str, places: &[PathBuf], inside: &[String]) -> FileVerdict {
        let doubt = |reason: &str| FileVerdict::new(claimed, Landing::CannotVerify, reason);
        if let Some(found) = self.elsewhere(claimed, inside) {
            return found;
        }
        if self.facts.acts.iter().filter_map(Act::touched).flatten().any(|path| places.contains(path)) {
            return doubt("was handled by a shell command, and is not on disk");
        }
        if inside.is_empty() {
            return doubt("lies outside the repository");
        }
        if inside.iter().all(|path| path.split('/').any(|part| part == ".git")) {
            return doubt("lies in git's own folder");
        }
        if let Some(path) = alike_on_disk(self.facts, claimed) {
            let reason = format!("is on disk as {}, and did not change", path.display());
            return FileVerdict::new(claimed, Landing::Unchanged, &reason);
        }
        if !self.is_path(claimed) {
            return doubt("may be no path");
        }
        match self.known(claimed, places, inside) {
            Ok(Some(found)) => found,
            Ok(None) => FileVerdict::new(claimed, Landing::Missing, "is neither on disk nor among the changes")
                .with_weight(Weight::Tree),
            Err(why) => doubt(&format!("cannot be looked for: {why}")),
        }
    }

    /// Whether a name is a path and nothing else that stands in such lists (R51): what could be one is, where its first folder
    /// is there and git knows no branch of that name.
    fn is_path(&self, claimed: &str) -> bool {
        match name_kind(claimed) {
            NameKind::File => true,
            NameKind::Word => false,
            NameKind::Path => {
                let first = claimed.split('/').find(|part| !part.is_empty()).unwrap_or_default();
                let tops = std::iter::once(&self.facts.repository.root).chain(self.facts.folders);
                let beside = tops.map(|top| top.join(first)).any(|folder| folder.is_dir());
                (beside || (claimed.ends_with('/') && claimed.matches('/').count() == 1))
                    && !self.facts.repository.has_reference(claimed)
            }
        }
    }

    /// The same name among the changes, in what HEAD and the stash held meanwhile, in another work tree.
    fn elsewhere(&self, claimed: &str, inside: &[String]) -> Option<FileVerdict> {
        let found = |reason: &str| Some(FileVerdict::new(claimed, Landing::Elsewhere, reason));
        let (name, front) = (plain(base_name(claimed)), plain(claimed));
        // A name with a comma in it may have been read up to there.
        let cut = |path: &str| plain(path).strip_prefix(&front).is_some_and(|rest| rest.starts_with([',', ';', ' ']));
        if let Some(path) = self.facts.delta.changed.iter().find(|path| holds(path, &name) || cut(path)) {
            return found(&format!("a change of that name is at {path}"));
        }
        let mut written = self.facts.acts.iter().filter_map(Act::written).filter(|path| path.exists());
        if let Some(path) = written.find(|path| holds(base_name(&path.to_string_lossy()), &name)) {
            return found(&format!("a file of that name was written at {}", path.display()));
        }
        let passed = self.passed.get_or_init(|| {
            let Facts { before, after, repository, limits, .. } = self.facts;
            Delta::passed_through(before, after, repository, limits).unwrap_or_default()
        });
        if passed.iter().any(|path| holds(path, &name)) {
            return found("changed in a commit or stash that HEAD is not at");
        }
        let other = |top: PathBuf| inside.iter().find(|path| self.differs(&top, path)).map(|path| top.join(path));
        let other = self.facts.repository.others().into_iter().find_map(other)?;
        found(&format!("is in another work tree: {}", other.display()))
    }

    /// A claimed file that is nowhere to be seen, while git is told to ignore it, or something of that name was written since.
    fn known(&self, claimed: &str, places: &[PathBuf], inside: &[String]) -> Result<Option<FileVerdict>, String> {
        let Facts { repository, limits, .. } = self.facts;
        let said = |error: GitError| error.to_string();
        if self.begun.elapsed() > limits.timeout {
            return Err(GitError::Timeout("log".to_owned()).to_string());
        }
        let verdict = |landing: Landing, reason: &str| Ok(Some(FileVerdict::new(claimed, landing, reason)));
        for path in inside {
            if git_ignores(&repository.root.join(path), limits).map_err(said)? {
                return verdict(Landing::CannotVerify, "is ignored by git");
            }
        }
        if let Some(found) = self.other_repository(claimed, places)? {
            return Ok(Some(found));
        }
        if let Some(path) = self.written_as(claimed) {
            return verdict(Landing::Elsewhere, &format!("a file of that name was written: {}", path.display()));
        }
        let name = plain(base_name(claimed));
        let submodules = submodules(&repository.root).into_iter().filter(|inner| self.is_recent(inner));
        for repository in
            inside.iter().flat_map(|path| self.repositories(&repository.root.join(path))).chain(submodules)
        {
            let history = self.history(&repository);
            let history = history.as_ref().as_ref().map_err(Clone::clone)?;
            if history.values().flatten().any(|path| holds(path, &name)) {
                return verdict(Landing::Elsewhere, "changed in a commit that HEAD is not at");
            }
        }
        let shortened = claimed.trim_start_matches("./").contains('/') && !claimed.starts_with('/');
        let tracked = shortened.then(|| tracked(&repository.root, claimed, limits)).transpose().map_err(said)?;
        Ok(tracked.flatten().map(|path| {
            FileVerdict::new(claimed, Landing::Unchanged, &format!("is on disk as {path}, and did not change"))
        }))
    }

    /// A place in a repository whose start nobody saw: one beside this, or inside it and ignored.
    fn other_repository(&self, claimed: &str, places: &[PathBuf]) -> Result<Option<FileVerdict>, String> {
        let Facts { before, after, repository, limits, .. } = self.facts;
        let names = || places.iter().filter_map(|place| below(&repository.root, place));
        let recent = beside(&repository.root).into_iter().filter(|other| self.is_recent(other));
        let beside: Vec<PathBuf> = recent.flat_map(|other| names().map(move |name| other.root.join(name))).collect();
        for place in places.iter().chain(&beside) {
            let Some(other) =
                repositories_containing(place).into_iter().next().filter(|other| other.root != repository.root)
            else {
                continue;
            };
            let inside = self.relative(&other.root);
            let marker = inside.as_ref().map(|inside| format!("{inside}/.git/HEAD"));
            let verdict = |landing, reason: &str| Ok(Some(FileVerdict::new(claimed, landing, reason)));
            if limits.only.is_some() {
                return verdict(Landing::CannotVerify, "lies in another repository, which is not asked");
            }
            let seen =
                marker.is_some_and(|marker| before.files.contains_key(&marker) || after.files.contains_key(&marker));
            let submodule = |path: &String| is_submodule(&repository.root, path, limits);
            if seen || inside.as_ref().map(submodule).transpose().map_err(|error| error.to_string())? == Some(true) {
                continue;
            }
            if status_of(&other.root, place, limits).is_some_and(|found| !found.is_empty()) {
                return verdict(Landing::Elsewhere, "changed in another repository");
            }
            let history = self.history(&other);
            // Of a repository that is none of ours, not to know is no doubt.
            let history = match history.as_ref() {
                Ok(history) => history,
                Err(_) if inside.is_none() => continue,
                Err(why) => return Err(why.clone()),
            };
            if below(&other.root, place).is_some_and(|path| history.values().any(|paths| paths.contains(&path))) {
                return verdict(Landing::Elsewhere, "changed in a commit of another repository");
            }
            if inside.is_some() {
                return verdict(Landing::CannotVerify, "lies in another repository");
            }
        }
        Ok(None)
    }

    /// Whether somebody worked on a repository since the start, as far as its own files tell.
    fn is_recent(&self, repository: &Repository) -> bool {
        let own = ["index", "HEAD", "logs/HEAD", "refs/heads"].map(|name| repository.private.join(name));
        let written = |path: &PathBuf| path.metadata().and_then(|found| found.modified()).ok();
        let tops = [repository.root.clone()];
        own.iter().chain(&tops).filter_map(written).any(|written| self.since().is_none_or(|since| written >= since))
    }

    /// What was written since the start, here or in another work tree, and ends as the claimed path does.
    fn written_as(&self, claimed: &str) -> Option<&PathBuf> {
        let repository = self.facts.repository;
        let recent = self.recent.get_or_init(|| {
            let tops = std::iter::once(repository.root.clone()).chain(repository.others().into_iter().take(16));
            let paths = tops.flat_map(|top| written_since(&top, self.since()));
            paths.map(|path| PathBuf::from(plain(&path.to_string_lossy()))).collect()
        });
        let name = plain(claimed.trim_end_matches('/'));
        recent.iter().find(|path| path.ends_with(&name))
    }

    /// The start, with room for coarse clocks.
    fn since(&self) -> Option<SystemTime> {
        self.facts.since.and_then(|since| since.checked_sub(Duration::from_secs(2)))
    }

    /// The repositories from a place up to the one that is judged.
    fn repositories(&self, place: &Path) -> Vec<Repository> {
        let root = &self.facts.repository.root;
        repositories_containing(place).into_iter().filter(|repository| repository.root.starts_with(root)).collect()
    }

    fn history(&self, repository: &Repository) -> History {
        if let Some(known) = self.histories.borrow().get(&repository.root) {
            return Rc::clone(known);
        }
        let prefix = self.relative(&repository.root).map_or_else(String::new, |inside| format!("{inside}/"));
        let ours = repository.root.starts_with(&self.facts.repository.root);
        let start = self.facts.before.files.get(&format!("{prefix}.git/HEAD")).filter(|_| ours);
        let start = start.and_then(|start| start.strip_prefix("commit:")).filter(|start| *start != "unborn");
        let found = changed_since(repository, start, self.since(), self.facts.limits);
        let found = Rc::new(found.map_err(|error| error.to_string()));
        self.histories.borrow_mut().insert(repository.root.clone(), Rc::clone(&found));
        found
    }

    /// Whether another work tree has a file that is not here, or not so.
    fn differs(&self, top: &Path, path: &str) -> bool {
        let (there, here) = (top.join(path), self.facts.repository.root.join(path));
        let new = there.exists() && !here.exists();
        new || (there.is_file() && contents(&there) != contents(&here))
    }

    fn replay(&self, path: &Path) -> Replay {
        if self.facts.acts.is_empty() || self.facts.others.contains(path) {
            return Replay::NotNamed;
        }
        let disk = contents(path);
        if disk.is_none() && fs::symlink_metadata(path).is_ok() {
            // It is there, and what it holds is not known: that proves nothing.
            return Replay::NotNamed;
        }
        let print = |path: &str| self.facts.before.files.get(path);
        let changed = self.relative(path).is_none_or(|path| match (print(&path), &disk) {
            // It differed from HEAD already: a commit of it is no write.
            (Some(print), Some(bytes)) if print.starts_with(&Digest::of(bytes).hex()) => false,
            _ => self.changed(&path),
        });
        // Outside the repository nobody knows what was there before.
        replay(self.facts.acts, path, disk.as_deref(), !changed)
    }

    /// Whether a path, something below it, or the repository it lies in, changed.
    fn changed(&self, path: &str) -> bool {
        let changed = &self.facts.delta.changed;
        let below = format!("{}/", path.trim_end_matches('/'));
        changed.contains(path)
            || changed.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below))
            || path.match_indices('/').any(|(at, _)| path.get(..at).is_some_and(|above| changed.contains(above)))
    }

    fn relative(&self, path: &Path) -> Option<String> {
        below(&self.facts.repository.root, path)
    }
}

fn below(root: &Path, path: &Path) -> Option<String> {
    let text = path.strip_prefix(root).ok()?.to_string_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

/// What a plain file holds; `None` for one that is not there, cannot be read, is too long, or is no file: a claim may name a
/// pipe, or a device without end.
fn contents(path: &Path) -> Option<Vec<u8>> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= MAX_CONTENTS).then(|| fs::read(path).ok()).flatten()
}
