//! A claim beside the facts: a verdict for each file, and whether the whole is a false DONE.
//!
//! Owns the words for what became of a claimed file. Refuses to call a claim false on doubt: anything that could explain it
//! makes it less than a proof. What costs time is only looked at for a file that would otherwise stand against the claim.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use writ_core::Digest;
use writ_core::json::{Object, Value};

use crate::acts::{Act, Story, story};
use crate::claim::{Claim, Status};
use crate::paths::{base_name, folded, holds, resolved};
use crate::tree::{Delta, GitError, Limits, Repository, Snapshot, git_ignores, git_remembers, written_since};

/// Longest file that is laid beside what an agent says it wrote, in bytes.
const MAX_CONTENTS: u64 = 64 << 20;

/// What became of a claimed file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Landing {
    /// It changed, and is there.
    Landed,
    /// The change is somewhere else: another folder, commit, stash or work tree.
    Elsewhere,
    /// It is there, and as it was.
    Unchanged,
    /// It is not there, and no change of it is.
    Missing,
    /// It was written, and something later may have taken that back.
    RevertedLater,
    /// Nothing can be said about it.
    CannotVerify,
}

impl Landing {
    /// `landed`, `landed-elsewhere`, `unchanged`, `missing`, `reverted-later`, `cannot-verify`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Landed => "landed",
            Self::Elsewhere => "landed-elsewhere",
            Self::Unchanged => "unchanged",
            Self::Missing => "missing",
            Self::RevertedLater => "reverted-later",
            Self::CannotVerify => "cannot-verify",
        }
    }
}

/// How much a verdict weighs against a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    /// Nothing.
    None,
    /// The tree speaks against it, which proves something only where nobody else worked on it.
    Tree,
    /// The agent's own transcript says it was written, and it is not there.
    Transcript,
}

/// The verdict on one claimed file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileVerdict {
    /// As claimed.
    pub claimed: String,
    /// What became of it.
    pub landing: Landing,
    /// Why.
    pub reason: String,
    /// How much it weighs.
    pub weight: Weight,
}

/// The verdict on a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// One for each claimed file, and for each entry that is no path.
    pub files: Vec<FileVerdict>,
    /// The paths that changed.
    pub observed: BTreeSet<String>,
    /// Changed, and named by no claim.
    pub unclaimed: Vec<String>,
    /// Done was said, and a file says otherwise beyond doubt.
    pub false_done: bool,
    /// The tree was not clean before: what changed may be somebody else's.
    pub ambiguous: bool,
    /// The false claim is proven by the agent's own transcript, whoever else worked on the tree.
    pub proven: bool,
}

impl Verdict {
    /// The claimed files without a change, as claimed.
    pub fn unchanged(&self) -> impl Iterator<Item = &str> {
        let against = |file: &&FileVerdict| matches!(file.landing, Landing::Unchanged | Landing::Missing);
        self.files.iter().filter(against).map(|file| file.claimed.as_str())
    }

    /// The files that prove the claim false.
    pub fn against(&self) -> impl Iterator<Item = &FileVerdict> {
        self.files.iter().filter(|file| file.weight > Weight::None)
    }

    /// One sentence.
    pub fn reason(&self) -> String {
        match self.against().next() {
            Some(file) if self.false_done => format!("claimed DONE, but {} {}", file.claimed, file.reason),
            _ => match self.unchanged().next() {
                Some(file) => format!("{file} is claimed and did not change, which proves nothing"),
                None => "nothing speaks against the claim".to_owned(),
            },
        }
    }

    /// `[{claimed, verdict, reason}]`
    pub fn files_json(&self) -> Value {
        let one = |file: &FileVerdict| {
            let mut out = Object::new();
            out.push("claimed", Value::from(file.claimed.as_str()));
            out.push("verdict", Value::from(file.landing.as_str()));
            out.push("reason", Value::from(file.reason.as_str()));
            Value::Object(out)
        };
        Value::Array(self.files.iter().map(one).collect())
    }
}

/// Everything a claim is laid beside.
pub struct Facts<'a> {
    /// The state before.
    pub before: &'a Snapshot,
    /// The state after.
    pub after: &'a Snapshot,
    /// When the state before was taken, if that is known.
    pub since: Option<SystemTime>,
    /// What changed.
    pub delta: &'a Delta,
    /// Where it changed.
    pub repository: &'a Repository,
    /// Folders that a relative path may start from, besides the top.
    pub folders: &'a [PathBuf],
    /// Where `~` leads.
    pub home: Option<&'a Path>,
    /// What the agent did, in order; empty when that is not known.
    pub acts: &'a [Act],
    /// Files that other agents wrote meanwhile, absolute.
    pub others: &'a BTreeSet<PathBuf>,
    /// Limits for git.
    pub limits: &'a Limits,
}

/// Lays a claim beside the facts.
pub fn judge(claim: &Claim, facts: &Facts<'_>) -> Verdict {
    let bench = Bench { facts, passed: OnceCell::new(), recent: OnceCell::new(), begun: Instant::now() };
    let mut files: Vec<FileVerdict> = claim.files.iter().map(|path| bench.file(path)).collect();
    files.extend(claim.unparsed.iter().map(|text| verdict(text, Landing::CannotVerify, "is no path")));
    let claimed: Vec<String> = claim.files.iter().flat_map(|path| bench.inside(path)).collect();
    let covered = |path: &&String| {
        claimed
            .iter()
            .any(|own| own == *path || path.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    let unclaimed: Vec<String> = facts.delta.changed.iter().filter(|path| !covered(path)).cloned().collect();
    let weight = files.iter().map(|file| file.weight).max().unwrap_or(Weight::None);
    Verdict {
        unclaimed,
        observed: facts.delta.changed.clone(),
        false_done: claim.status == Some(Status::Done) && weight > Weight::None,
        ambiguous: !facts.delta.clean_before,
        proven: weight == Weight::Transcript,
        files,
    }
}

fn verdict(claimed: &str, landing: Landing, reason: &str) -> FileVerdict {
    FileVerdict { claimed: claimed.to_owned(), landing, reason: reason.to_owned(), weight: Weight::None }
}

struct Bench<'a> {
    facts: &'a Facts<'a>,
    /// What HEAD's moves and the stash held meanwhile.
    passed: OnceCell<BTreeSet<String>>,
    /// What was written since the start, in this and the other work trees: lower case, from the top.
    recent: OnceCell<Vec<PathBuf>>,
    /// When the judging began: it takes no longer than one git may.
    begun: Instant,
}

impl Bench<'_> {
    fn file(&self, claimed: &str) -> FileVerdict {
        let places = self.places(claimed);
        let inside = self.inside(claimed);
        let changed = inside.iter().any(|path| self.changed(path));
        let stories: Vec<(Story, bool)> = places.iter().map(|path| self.story(path)).collect();
        let told = |wanted: Story| stories.iter().any(|(story, _)| *story == wanted);
        if told(Story::Kept) {
            return verdict(claimed, Landing::Landed, "holds what the agent wrote");
        }
        if let Some((_, there)) = stories.iter().find(|(story, _)| *story == Story::Lost) {
            let (landing, reason) = if *there {
                (Landing::Unchanged, "was reported as written, and holds what it held before")
            } else {
                (Landing::Missing, "was reported as written, and is not on disk")
            };
            return FileVerdict { weight: Weight::Transcript, ..verdict(claimed, landing, reason) };
        }
        if changed {
            return verdict(claimed, Landing::Landed, "changed");
        }
        let unclear = told(Story::Unclear);
        if places.iter().any(|path| fs::symlink_metadata(path).is_ok()) {
            if unclear {
                return verdict(claimed, Landing::RevertedLater, "was written, and is as it was before");
            }
            return self
                .elsewhere(claimed, &inside)
                .unwrap_or_else(|| verdict(claimed, Landing::Unchanged, "is on disk and did not change"));
        }
        if unclear {
            return verdict(
                claimed,
                Landing::RevertedLater,
                "was written, and a later command may have moved or removed it",
            );
        }
        self.absent(claimed, &places, &inside)
    }

    /// A claimed file that is not on disk and not among the changes.
    fn absent(&self, claimed: &str, places: &[PathBuf], inside: &[String]) -> FileVerdict {
        if let Some(found) = self.elsewhere(claimed, inside) {
            return found;
        }
        let touched = |path: &PathBuf| {
            self.facts.acts.iter().any(|act| matches!(act, Act::Touched { paths } if paths.contains(path)))
        };
        if places.iter().any(touched) {
            return verdict(claimed, Landing::CannotVerify, "was handled by a shell command, and is not on disk");
        }
        if inside.is_empty() {
            return verdict(claimed, Landing::CannotVerify, "lies outside the repository");
        }
        match self.known(claimed, inside) {
            Ok(Some(found)) => return found,
            Ok(None) => {}
            Err(error) => {
                return verdict(claimed, Landing::CannotVerify, &format!("cannot be looked for: {error}"));
            }
        }
        let missing = verdict(claimed, Landing::Missing, "is neither on disk nor among the changes");
        FileVerdict { weight: Weight::Tree, ..missing }
    }

    /// The same name among the changes, in what HEAD and the stash held meanwhile, in another work tree.
    fn elsewhere(&self, claimed: &str, inside: &[String]) -> Option<FileVerdict> {
        let name = base_name(claimed).to_lowercase();
        if let Some(path) = self.facts.delta.changed.iter().find(|path| holds(path, &name)) {
            return Some(verdict(claimed, Landing::Elsewhere, &format!("a change of that name is at {path}")));
        }
        let written = self.facts.acts.iter().filter_map(Act::written);
        if let Some(path) =
            written.filter(|path| path.exists()).find(|path| holds(base_name(&path.to_string_lossy()), &name))
        {
            let reason = format!("a file of that name was written at {}", path.display());
            return Some(verdict(claimed, Landing::Elsewhere, &reason));
        }
        let passed = self.passed.get_or_init(|| {
            let Facts { before, after, repository, limits, .. } = self.facts;
            Delta::passed_through(before, after, repository, limits).unwrap_or_default()
        });
        if passed.iter().any(|path| holds(path, &name)) {
            return Some(verdict(claimed, Landing::Elsewhere, "changed in a commit or stash that HEAD is not at"));
        }
        let other = |top: PathBuf| inside.iter().find(|path| self.differs(&top, path)).map(|path| top.join(path));
        let other = self.facts.repository.others().into_iter().find_map(other)?;
        Some(verdict(claimed, Landing::Elsewhere, &format!("is in another work tree: {}", other.display())))
    }

    /// A claimed file that is nowhere to be seen, while git is told to ignore it, or one of that name was written since.
    fn known(&self, claimed: &str, inside: &[String]) -> Result<Option<FileVerdict>, GitError> {
        let Facts { before, repository, limits, .. } = self.facts;
        if self.begun.elapsed() > limits.timeout {
            return Err(GitError::Timeout("log".to_owned()));
        }
        for path in inside {
            if git_ignores(&repository.root.join(path), limits)? {
                return Ok(Some(verdict(claimed, Landing::CannotVerify, "is ignored by git")));
            }
        }
        // Clocks are coarse.
        let since = self.facts.since.and_then(|since| since.checked_sub(Duration::from_secs(2)));
        let recent = self.recent.get_or_init(|| {
            let tops = std::iter::once(repository.root.clone()).chain(repository.others().into_iter().take(16));
            let paths = tops.flat_map(|top| written_since(&top, since));
            paths.map(|path| PathBuf::from(path.to_string_lossy().to_lowercase())).collect()
        });
        let name = claimed.trim_end_matches('/').to_lowercase();
        if let Some(path) = recent.iter().find(|path| path.ends_with(&name)) {
            let reason = format!("a file of that name was written: {}", path.display());
            return Ok(Some(verdict(claimed, Landing::Elsewhere, &reason)));
        }
        let remembered = git_remembers(before, since, base_name(claimed), &repository.root, limits)?;
        Ok(remembered.then(|| verdict(claimed, Landing::Elsewhere, "changed in a commit that HEAD is not at")))
    }

    /// Whether another work tree has a file that is not here, or not so.
    fn differs(&self, top: &Path, path: &str) -> bool {
        let (there, here) = (top.join(path), self.facts.repository.root.join(path));
        let new = there.exists() && !here.exists();
        new || (there.is_file() && contents(&there) != contents(&here))
    }

    fn story(&self, path: &Path) -> (Story, bool) {
        if self.facts.acts.is_empty() || self.facts.others.contains(path) {
            return (Story::Silent, false);
        }
        let disk = contents(path);
        if disk.is_none() && fs::symlink_metadata(path).is_ok() {
            // It is there, and what it holds is not known: that proves nothing.
            return (Story::Silent, true);
        }
        let print = |path: &str| self.facts.before.files.get(path);
        let changed = self.relative(path).is_none_or(|path| match (print(&path), &disk) {
            // It differed from HEAD already: a commit of it is no write.
            (Some(print), Some(bytes)) if print.starts_with(&Digest::of(bytes).hex()) => false,
            _ => self.changed(&path),
        });
        // Outside the repository nobody knows what was there before.
        (story(self.facts.acts, path, disk.as_deref(), !changed), disk.is_some())
    }

    /// Whether a path, something below it, or the repository it lies in, changed.
    fn changed(&self, path: &str) -> bool {
        let changed = &self.facts.delta.changed;
        let below = format!("{}/", path.trim_end_matches('/'));
        changed.contains(path)
            || changed.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below))
            || path.match_indices('/').any(|(at, _)| path.get(..at).is_some_and(|above| changed.contains(above)))
    }

    /// Where a claimed path may lie, absolute.
    fn places(&self, claimed: &str) -> Vec<PathBuf> {
        let path = match (claimed.strip_prefix("~/"), self.facts.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(claimed),
        };
        let bases = std::iter::once(&self.facts.repository.root).chain(self.facts.folders);
        let mut out: Vec<PathBuf> = bases.map(|base| folded(&base.join(&path))).collect();
        if path.is_relative() && !out.iter().any(|place| fs::symlink_metadata(place).is_ok()) {
            // Only the end of the path is named: the transcript knows where that is.
            out.extend(self.facts.acts.iter().filter_map(Act::written).filter(|own| own.ends_with(&path)).map(folded));
        }
        // A folder on the way may be a link, or have become one.
        let real: Vec<PathBuf> = out.iter().map(|place| resolved(place)).collect();
        out.extend(real);
        out.sort();
        out.dedup();
        out
    }

    /// The same as paths from the top, where they lie below it.
    fn inside(&self, claimed: &str) -> Vec<String> {
        self.places(claimed).iter().filter_map(|path| self.relative(path)).collect()
    }

    fn relative(&self, path: &Path) -> Option<String> {
        let text = path.strip_prefix(&self.facts.repository.root).ok()?.to_string_lossy().into_owned();
        (!text.is_empty()).then_some(text)
    }
}

/// What a plain file holds; `None` for one that is not there, cannot be read, is too long, or is no file: a claim may name a
/// pipe, or a device without end.
fn contents(path: &Path) -> Option<Vec<u8>> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= MAX_CONTENTS).then(|| fs::read(path).ok()).flatten()
}
