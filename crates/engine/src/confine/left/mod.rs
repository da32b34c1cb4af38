//! What a run left behind that is obeyed or run outside.
//!
//! Owns taking it back: what ties a repository to another's settings is removed; settings and hooks of a repository that the run made itself
//! are set aside under another name where they have git run something. What only builds and editors run later is named. Refuses to follow
//! a link on the way, and to touch what the run could not have written. Invariant: nothing is taken back of what the plan kept; what could
//! not be taken back, or not be looked at, is told as that.

mod repositories;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use writ_sandbox::{Act, Confinement, HostPath, Observer};

use crate::copy::later;
use repositories::Repositories;
pub use repositories::{How, TakenBack, untie};

/// Most repositories that are noted one by one: above that all are looked for.
const REPOSITORIES: usize = 256;
/// Most files that are noted of what runs later.
const LATER: usize = 1024;
/// Most that a row says.
const SAID: usize = 32;
/// Where a sandbox has files of its own, under names of the host's.
const OWN: [&str; 3] = ["/tmp", "/dev", "/proc"];

/// What a run was seen to change, as far as it matters later.
#[derive(Debug, Default)]
pub struct Left(Mutex<Changed>);

#[derive(Debug, Default)]
struct Changed {
    /// What may be git's own folders, or say where one is.
    git: BTreeSet<PathBuf>,
    /// Whether one may lie elsewhere by now.
    moved: bool,
    later: BTreeMap<PathBuf, &'static str>,
}

/// What is left in the end.
#[derive(Debug, Default)]
pub struct Settled {
    /// What was taken back.
    pub taken_back: Vec<TakenBack>,
    /// What runs outside later.
    pub later: RunLater,
}

impl Settled {
    /// The paths of what was taken back, or of what was not.
    pub fn paths(&self, left: bool) -> Vec<String> {
        let of = self.taken_back.iter().filter(|taken| (taken.how == How::Left) == left);
        of.map(|taken| taken.path.to_string_lossy().into_owned()).collect()
    }
}

/// Files that run outside later: when somebody builds, or opens a folder.
#[derive(Debug, Default, Serialize)]
pub struct RunLater {
    /// How many.
    count: usize,
    /// The first of them, and why.
    first: Vec<(String, &'static str)>,
}

impl RunLater {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Left {
    /// Tells it what a run changes.
    pub fn observer(self: &Arc<Self>) -> Observer {
        let left = Arc::clone(self);
        Observer::new(move |path, act| left.changed(path, act))
    }

    fn changed(&self, path: &Path, act: Act) {
        let git = repositories::named(path);
        let later = later::by_name(path);
        let mut changed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let moves = matches!(act, Act::Remove | Act::Replace) && !changed.git.is_empty();
        if git.is_none() && later.is_none() && !moves {
            return;
        }
        // Links on the way may lead elsewhere by the end.
        let real = |path: &Path| match (path.parent().map(fs::canonicalize), path.file_name()) {
            (Some(Ok(parent)), Some(name)) => parent.join(name),
            _ => path.to_owned(),
        };
        if moves {
            let from = real(path);
            changed.moved |= changed.git.iter().any(|git| git.starts_with(&from));
        }
        if let Some(git) = git {
            if changed.git.len() < REPOSITORIES {
                changed.git.insert(real(&git));
            } else {
                changed.moved = true;
            }
        }
        if let Some(why) = later.filter(|_| act != Act::Remove && changed.later.len() < LATER) {
            changed.later.insert(real(path), why);
        }
    }

    /// There may be more than it was told of.
    pub fn unseen(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).moved = true;
    }

    /// Takes back what is to be taken back, and forgets it.
    pub fn settle(&self, confinement: &Confinement) -> Settled {
        let Changed { git, moved, later } = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut repositories = Repositories::of(confinement);
        let gone = |git: &PathBuf| git.symlink_metadata().is_err();
        let git: Vec<PathBuf> = git.into_iter().filter(|path| is_of_host(confinement, path)).collect();
        if moved || git.iter().any(gone) {
            repositories.find(confinement);
        }
        git.into_iter().for_each(|git| repositories.add(&git));
        let there = |(path, _): &(PathBuf, &str)| is_of_host(confinement, path) && path.symlink_metadata().is_ok();
        let mut later: Vec<(PathBuf, &'static str)> = later.into_iter().filter(there).collect();
        // What lies higher is run by more.
        later.sort_by_key(|(path, _)| path.components().count());
        let text = |(path, why): &(PathBuf, &'static str)| (path.to_string_lossy().into_owned(), *why);
        let later = RunLater { count: later.len(), first: later.iter().take(SAID).map(text).collect() };
        Settled { taken_back: repositories.settle(), later }
    }
}

/// Whether what a run writes to a path is written to the host's.
fn is_of_host(confinement: &Confinement, path: &Path) -> bool {
    let longest = |places: &mut dyn Iterator<Item = &Path>| {
        places.filter(|place| path.starts_with(place)).map(|place| place.components().count()).max()
    };
    let layered = confinement.layered.iter().map(|layered| layered.path.as_path());
    let own = longest(&mut OWN.iter().map(Path::new).chain(layered));
    longest(&mut confinement.writable.iter().map(HostPath::as_path)) > own
}

/// A path without a last `/`.
fn bare(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}
