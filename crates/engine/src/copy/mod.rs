//! What a run wrote that left the policy's folder as it is: shown, applied, or thrown away.
//!
//! Owns the way from a session's record to its layers and back to the folder. Decides nothing of what an agent may do. Refuses what changed
//! outside since the run began, and what binds agents unless a human says so. Invariant: nothing is applied that is not on record before.
//! Page: `spec/sandbox.md`.

mod apply;
mod begun;
mod changes;
pub mod later;
pub mod shown;
mod text;
mod tree;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::json::Value;
use writ_core::{Digest, SessionId, Timestamp};
use writ_policy::{Policy, Reach};
use writ_store::{Store, StoreError, regular_file};

use crate::Home;
use crate::confine::copy::{self, Place};
use crate::confine::folders;
use crate::confine::order::Order;
use crate::confine::tracked::identity;
use crate::governing::layers::Caller;
use crate::run::copies;
use crate::session::{Session, SessionError, seal};
use begun::Begun;
use changes::{Change, Pair};
pub use later::Later;

/// The event of the row of a copy that begins.
pub const BEGUN: &str = "copy-begun";
/// The event of the row of one that is about to be applied.
pub const APPLIED: &str = "copy-applied";
/// The event of the row of one that is about to be removed.
pub const DISCARDED: &str = "copy-discarded";
/// Where the list of marks is kept in the session's folder.
const LIST: &str = "copies/begun";
/// Largest list of marks.
const MAX_LIST: u64 = 256 << 20;

/// Why a copy cannot be shown, applied or removed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The session's record.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is none.
    #[error("session `{0}` was no copy: `writ run --copy -- COMMAND` makes one")]
    None(SessionId),
    /// It is gone.
    #[error("the copy of session `{session}` was {what} already")]
    Over {
        /// The session.
        session: SessionId,
        /// What became of it.
        what: &'static str,
    },
    /// The run has not ended.
    #[error("session `{0}` is still running")]
    Running(SessionId),
    /// What is kept is not what is on record.
    #[error("`{}` is not what the session's record says", .0.display())]
    Kept(PathBuf),
    /// The disk.
    #[error("`{}`: {error}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// Something changed outside.
    #[error("changed outside since the run began, so nothing is applied without `--over`: {}", names(.0))]
    Changed(Vec<PathBuf>),
    /// Something is protected.
    #[error("protected, so nothing is applied without `--all`: {}", names(.0))]
    Protected(Vec<PathBuf>),
    /// Something is no file, folder or link.
    #[error("no file, folder or link, so nothing is applied: {}", names(.0))]
    Other(Vec<PathBuf>),
}

fn names(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().take(20).map(|path| format!("`{}`", path.display())).collect();
    let rest = if paths.len() > 20 { format!(" and {} more", paths.len() - 20) } else { String::new() };
    shown.join(", ") + &rest
}

fn disk(path: &Path) -> impl FnOnce(io::Error) -> CopyError {
    let path = path.to_owned();
    move |error| CopyError::Disk { path, error }
}

/// Before the command of a copy starts: keeps what the folder is like, and records that.
pub fn begin(session: &mut Session<'_>, call: &str, order: &Order) -> Result<(), CopyError> {
    let mut list = Begun::default();
    for place in copy::places(&order.confinement) {
        list.add(&place.path).map_err(disk(&place.path))?;
        if !place.folder {
            // As it is now that its mark is taken.
            copy::copy_file(&place.path, &place.layer).map_err(disk(&place.path))?;
        }
    }
    let bytes = list.to_bytes();
    session.keep(LIST, &bytes)?;
    let mut draft = session.event(BEGUN, Began { order: order.digest(), begun: Digest::of(&bytes) });
    draft.call_id = Some(call.to_owned());
    session.append(draft)?;
    Ok(())
}

/// What the row of a copy that begins says.
#[derive(Serialize)]
struct Began {
    order: Digest,
    /// Digest of the list of marks.
    begun: Digest,
}

/// What the row of a copy that is over says.
#[derive(Serialize)]
struct Ended {
    order: Digest,
    /// Digest of the list of changes, which is kept in the session's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    beyond: Option<Beyond>,
    standing: &'static str,
}

/// What a human said beside yes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Beyond {
    /// What is protected is applied too.
    pub all: bool,
    /// So is what changed outside since the run began.
    pub over: bool,
}

/// A copy, open.
pub struct Copy {
    session: SessionId,
    order: Digest,
    places: Vec<Place>,
    pairs: Vec<Pair>,
    begun: Begun,
    changes: Vec<Change>,
    protected: Vec<bool>,
}

/// Whether a session has layers that were not applied.
pub fn is_open(store: &Store, session: &SessionId) -> bool {
    state(store, session).is_ok_and(|(_, over)| over.is_none())
}

/// The newest session with an open copy that began in this repository.
pub fn newest(store: &Store, repository: &Path) -> Result<Option<SessionId>, CopyError> {
    let own = identity(repository);
    let mut found: Option<(Timestamp, SessionId)> = None;
    for id in store.sessions()? {
        let Some(genesis) = store.first_row(&id)? else { continue };
        let text = |name: &str| genesis.detail.get(name).and_then(Value::as_str);
        let here = text("cwd").is_some_and(|cwd| identity(Path::new(cwd)) == own);
        let newer = found.as_ref().is_none_or(|(began, _)| *began < genesis.timestamp);
        if here && newer && store.folder(&id).join(LIST).is_file() && is_open(store, &id) {
            found = Some((genesis.timestamp, id));
        }
    }
    Ok(found.map(|(_, id)| id))
}

/// The order and the list of a session's copy, and what became of it.
fn state(store: &Store, session: &SessionId) -> Result<((Digest, Digest), Option<&'static str>), CopyError> {
    let (mut found, mut over) = (None, None);
    store.each_row(session, |row| {
        let text = |name: &str| row.detail.get(name).and_then(Value::as_str);
        let digest = |name: &str| text(name).and_then(|text| Digest::parse(text).ok());
        match text("event") {
            Some(BEGUN) => found = digest("order").zip(digest("begun")),
            Some(APPLIED) => over = Some("applied"),
            Some(DISCARDED) => over = Some("discarded"),
            _ => {}
        }
    })?;
    Ok((found.ok_or_else(|| CopyError::None(session.clone()))?, over))
}

impl Copy {
    /// Opens the copy of a session, and compares.
    pub fn open(store: &Store, session: &SessionId, home: &Home) -> Result<Self, CopyError> {
        let ((order, list), over) = state(store, session)?;
        if copies::is_running(store.root(), session.as_str()) {
            return Err(CopyError::Running(session.clone()));
        }
        let kept = Order::kept(store, session, order).map_err(CopyError::Kept)?;
        let places = copy::places(&kept.confinement);
        if let Some(what) = over.filter(|_| places.iter().all(|place| place.layer.symlink_metadata().is_err())) {
            return Err(CopyError::Over { session: session.clone(), what });
        }
        let path = store.folder(session).join(LIST);
        let bytes = regular_file::read(&path, MAX_LIST).map_err(disk(&path))?;
        let begun = Some(bytes).filter(|bytes| Digest::of(bytes) == list);
        let begun = begun.as_deref().and_then(Begun::from_bytes).ok_or(CopyError::Kept(path))?;
        let open = |place: &Place| Pair::open(place).map_err(disk(&place.layer));
        let pairs = places.iter().map(open).collect::<Result<Vec<Pair>, _>>()?;
        let changes = changes::changes(&pairs).map_err(disk(&store.folder(session)))?;
        let mut copy = Self { session: session.clone(), order, places, pairs, begun, changes, protected: Vec::new() };
        copy.protected = copy.protected(store, home)?;
        Ok(copy)
    }

    fn path(&self, change: &Change) -> PathBuf {
        self.pairs.get(change.pair).map_or_else(PathBuf::new, |pair| pair.below.path.join(&change.name))
    }

    /// Which changes bind agents, or are the policy's to refuse.
    fn protected(&self, store: &Store, home: &Home) -> Result<Vec<bool>, CopyError> {
        let session = Session::resume(store, &self.session, home, Timestamp::now())?;
        let in_force = session.policy().ok();
        let layers: Vec<&Policy> = in_force.map(|in_force| in_force.policies(Caller::Main)).unwrap_or_default();
        let user = session.setting.home.as_deref();
        let is_protected = |change: &Change| {
            let path = self.path(change);
            let text = path.to_string_lossy();
            let reach = |policy: &&Policy| policy.reach(&text, user, false);
            let reach = layers.iter().map(reach).min().unwrap_or(Reach::Denied);
            // Git's own folder is written though no list names it, as in the sandbox.
            let written = reach == Reach::Write || change.git.is_some() && reach == Reach::Unnamed;
            let settings = session.setting.protected.iter().any(|protected| path.starts_with(&protected.path));
            later::of(change).is_some_and(|later| later.protected)
                || settings
                || change.after.as_ref().is_some_and(|after| after.kind != tree::Kind::Folder) && !written
                || path.extension().or(path.file_name()).is_some_and(|name| name == "aflock" || name == ".aflock")
        };
        Ok(self.changes.iter().map(is_protected).collect())
    }

    /// What changed outside since the run began, of what would be changed.
    fn conflicts(&self) -> Result<Vec<PathBuf>, CopyError> {
        let mut found = Vec::new();
        let mut now = Begun::default();
        if self.changes.iter().any(|change| is_folder(change.before.as_ref())) {
            for place in &self.places {
                now.add(&place.path).map_err(disk(&place.path))?;
            }
        }
        for change in &self.changes {
            let path = self.path(change);
            let stays = is_folder(change.before.as_ref()) && is_folder(change.after.as_ref());
            if !self.begun.is_same(&path, change.before.as_ref()) {
                found.push(path);
            } else if is_folder(change.before.as_ref()) && !stays {
                found.extend(self.begun.differs_below(&path, &now));
            }
        }
        Ok(found)
    }

    /// Removes the layers, whatever is in them, and records that before.
    pub fn discard(store: &Store, session: &SessionId, home: &Home) -> Result<(), CopyError> {
        let ((order, _), _) = state(store, session)?;
        if copies::is_running(store.root(), session.as_str()) {
            return Err(CopyError::Running(session.clone()));
        }
        let places = copy::places(&Order::kept(store, session, order).map_err(CopyError::Kept)?.confinement);
        let (pairs, changes, protected) = (Vec::new(), Vec::new(), Vec::new());
        let begun = Begun::default();
        let copy = Self { session: session.clone(), order, places, pairs, begun, changes, protected };
        let row = Ended { order, changes: None, count: None, beyond: None, standing: "observed" };
        copy.record(store, home, DISCARDED, row, None)?;
        copy.remove()
    }

    /// Carries the changes out, and removes the layers. Gives how many there were.
    pub fn apply(self, store: &Store, home: &Home, beyond: Beyond) -> Result<usize, CopyError> {
        let listed = |wanted: &dyn Fn(&Change, bool) -> bool| -> Vec<PathBuf> {
            let changes = self.changes.iter().zip(&self.protected);
            changes
                .filter(|(change, protected)| wanted(change, **protected))
                .map(|(change, _)| self.path(change))
                .collect()
        };
        let changed = self.conflicts()?;
        if !changed.is_empty() && !beyond.over {
            return Err(CopyError::Changed(changed));
        }
        let other = listed(&|change, _| change.after.as_ref().is_some_and(|after| after.kind == tree::Kind::Other));
        if !other.is_empty() {
            return Err(CopyError::Other(other));
        }
        let protected = listed(&|_, protected| protected);
        if !protected.is_empty() && !beyond.all {
            return Err(CopyError::Protected(protected));
        }
        let list = writ_core::json::to_canonical(&self.shown(0)?);
        let (digest, count) = (Digest::of(list.as_bytes()), self.changes.len());
        let row = Ended {
            order: self.order,
            changes: Some(digest),
            count: Some(count),
            beyond: Some(beyond),
            standing: "observed",
        };
        self.record(store, home, APPLIED, row, Some((format!("copies/{}.json", digest.hex()), list)))?;
        apply::apply(&self.pairs, &self.changes).map_err(|(path, error)| CopyError::Disk { path, error })?;
        self.remove()?;
        Ok(count)
    }

    fn record(
        &self,
        store: &Store,
        home: &Home,
        event: &str,
        row: Ended,
        kept: Option<(String, String)>,
    ) -> Result<(), CopyError> {
        let mut session = Session::resume(store, &self.session, home, Timestamp::now())?;
        if let Some((name, text)) = kept {
            session.keep(&name, text.as_bytes())?;
        }
        let draft = session.event(event, row);
        session.append(draft)?;
        Ok(seal::seal(&mut session).map(drop)?)
    }

    fn remove(&self) -> Result<(), CopyError> {
        for place in &self.places {
            let removed = if place.folder { folders::remove(&place.layer) } else { fs::remove_file(&place.layer) };
            match removed {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(disk(&place.layer)(error)),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

fn is_folder(node: Option<&tree::Node>) -> bool {
    node.is_some_and(|node| node.kind == tree::Kind::Folder)
}
