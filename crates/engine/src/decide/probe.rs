//! What disk and git say of a path that a command is about to change.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use writ_claims::{Limits, Only, Repository, status_of};
use writ_consequence::{Git, Probe, Seen};

use super::authored;

/// Most paths that git is asked about.
const MAX_ASKED: usize = 16;
/// How long git may take for all of them: a hook that is late is a hook that is killed, and what it would deny runs.
const MAX_TIME: Duration = Duration::from_secs(2);

/// This machine's disk and its repositories. Asks git once for each path, and not for many.
#[derive(Debug)]
pub struct DiskProbe {
    seen: RefCell<HashMap<String, Seen>>,
    until: Instant,
    session: Option<PathBuf>,
    only: Option<PathBuf>,
}

impl DiskProbe {
    /// The same, by a session's agent: what it wrote is known.
    pub fn of_session(session: Option<&Path>) -> Self {
        Self { session: session.map(Path::to_owned), ..Self::default() }
    }

    /// The same, and git is asked of one work tree alone: of what lies elsewhere nothing is said in its favour.
    #[must_use]
    pub fn within(self, repository: Option<&Path>) -> Self {
        Self { only: repository.map(Path::to_owned), ..self }
    }
}

impl Default for DiskProbe {
    fn default() -> Self {
        Self { seen: RefCell::default(), until: Instant::now() + MAX_TIME, session: None, only: None }
    }
}

impl Probe for DiskProbe {
    fn look(&self, path: &str) -> Seen {
        if let Some(seen) = self.seen.borrow().get(path) {
            return *seen;
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if self.seen.borrow().len() >= MAX_ASKED || left.is_zero() {
            return Seen::default();
        }
        let seen = look(Path::new(path), self.only.as_deref(), left);
        self.seen.borrow_mut().insert(path.to_owned(), seen);
        seen
    }

    fn authored(&self, path: &str) -> Option<String> {
        authored::text(self.session.as_deref()?, Path::new(path))
    }
}

fn look(path: &Path, only: Option<&Path>, timeout: Duration) -> Seen {
    if path.to_string_lossy().contains(['*', '?', '[']) {
        return Seen::default();
    }
    let Ok(found) = fs::metadata(path).or_else(|_broken| fs::symlink_metadata(path)) else {
        return absent(path);
    };
    let folder = found.is_dir();
    // Git says nothing of its own folder, and that is no praise: what is in it is in no commit.
    if path.components().any(|part| part.as_os_str() == ".git") {
        return Seen { exists: Some(true), git: Some(Git::Outside), folder };
    }
    let Ok(repository) = Repository::containing(path.parent().unwrap_or(path)) else {
        return Seen { exists: Some(true), git: Some(Git::Outside), folder };
    };
    let only = only.map(Only::at);
    if only.is_some_and(|only| !only.is(&repository)) {
        return Seen { exists: Some(true), git: Some(Git::Outside), folder };
    }
    let limits = Limits { timeout, only, ..Limits::default() };
    let states = status_of(&repository.root, path, &limits);
    let worst = states.map(|states| {
        let any = |wanted: &str| states.iter().any(|state| state == wanted);
        match () {
            () if any("??") => Git::Untracked,
            () if states.iter().any(|state| state != "!!") => Git::Changed,
            () if any("!!") => Git::Ignored,
            () => Git::Clean,
        }
    });
    Seen { exists: Some(true), git: worst, folder }
}

/// What is not there says something only within a work tree: elsewhere the line may be meant for another machine, or for later.
fn absent(path: &Path) -> Seen {
    let above = path.ancestors().skip(1).find(|above| above.is_dir());
    match above.map(Repository::containing) {
        Some(Ok(_)) => Seen { exists: Some(false), ..Seen::default() },
        _ => Seen::default(),
    }
}
