//! What a run left behind that is obeyed or run outside.
//!
//! Owns taking it back: of a repository that the plan did not keep, settings and hooks that have git run something, and what ties it to
//! another's settings, are set aside under another name. What only builds and editors run later is named. Refuses to follow a link on the
//! way, and to touch what the run could not have written. Invariant: a folder is looked at whose names were changed, or that was moved, and
//! all where something changed that nobody could tell; what could not be taken back, or not be looked at, is told as that.

mod repositories;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use writ_sandbox::{Act, Confinement, HostPath, Observer, Told};

use crate::copy::later;
use repositories::Repositories;
pub use repositories::{How, TakenBack, is_repository, untie};

/// Most folders that are noted one by one: above that all are looked at.
const FOLDERS: usize = 256;
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
    /// What may be git's own folders.
    git: BTreeSet<PathBuf>,
    /// Folders that came from elsewhere, with all that is in them.
    moved: BTreeSet<PathBuf>,
    /// Whether there may be more anywhere that can be written.
    unseen: bool,
    /// Whether something was changed, and nobody could tell what.
    unclear: bool,
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
    /// Whether there may be more: something was changed, and nobody could tell what.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unseen: bool,
}

impl RunLater {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0 && !self.unseen
    }
}

impl Left {
    /// Tells it what a run changes.
    pub fn observer(self: &Arc<Self>) -> Observer {
        let left = Arc::clone(self);
        Observer::new(move |told| left.told(told))
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self, told: Told<'_>) {
        match told {
            Told::Unclear => {
                let mut changed = self.changed();
                (changed.unseen, changed.unclear) = (true, true);
            }
            Told::Moved(path) => {
                let mut changed = self.changed();
                changed.unseen |= changed.moved.len() >= FOLDERS;
                if !changed.unseen {
                    changed.moved.insert(path.to_owned());
                }
            }
            Told::Changed(path, act) => {
                let git = repositories::named(path);
                let later = later::by_name(path).filter(|_| !matches!(act, Act::Remove | Act::Link));
                if git.is_empty() && later.is_none() {
                    return;
                }
                let mut changed = self.changed();
                changed.unseen |= changed.git.len() >= FOLDERS;
                if !changed.unseen {
                    changed.git.extend(git);
                }
                if let Some(why) = later.filter(|_| changed.later.len() < LATER) {
                    changed.later.insert(path.to_owned(), why);
                }
            }
        }
    }

    /// There may be more than it was told of.
    pub fn unseen(&self) {
        self.changed().unseen = true;
    }

    /// Takes back what is to be taken back, and forgets it. `home` is the user's, whose own templates git copies.
    pub fn settle(&self, confinement: &Confinement, home: Option<&Path>) -> Settled {
        let Changed { git, moved, unseen, unclear, mut later } = std::mem::take(&mut *self.changed());
        if !unseen && !unclear && git.is_empty() && moved.is_empty() && later.is_empty() {
            return Settled::default();
        }
        let mut repositories = Repositories::of(confinement, home);
        let mut came = |path: &Path| {
            if let Some(why) = later::by_name(path).filter(|_| later.len() < LATER) {
                later.insert(path.to_owned(), why);
            }
        };
        moved.iter().for_each(|folder| repositories.find(folder, &mut came));
        if unseen {
            repositories.find_all();
        }
        let unclear = unclear || (unseen && moved.len() >= FOLDERS);
        git.iter().for_each(|git| repositories.look(git));
        let there = |(path, _): &(PathBuf, &str)| is_of_host(confinement, path) && path.symlink_metadata().is_ok();
        let mut later: Vec<(PathBuf, &'static str)> = later.into_iter().filter(there).collect();
        // What lies higher is run by more.
        later.sort_by_key(|(path, _)| path.components().count());
        let text = |(path, why): &(PathBuf, &'static str)| (path.to_string_lossy().into_owned(), *why);
        let later =
            RunLater { count: later.len(), first: later.iter().take(SAID).map(text).collect(), unseen: unclear };
        Settled { taken_back: repositories.done(), later }
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
