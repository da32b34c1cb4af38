//! A run of a workflow: the sessions that begin in a repository from a moment on, held to one policy and verified together.
//!
//! Owns what is kept of a run's beginning, and which sessions are its own. Decides and records nothing: sessions are what hooks and
//! `writ run` make, and each is verified by [`super::session`]. Invariant: a session whose rows are gone fails the run that it began in.
//! Page: `spec/agentflow.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, SessionId, Timestamp, json};
use writ_evidence::row::Row;
use writ_store::{Store, StoreError, regular_file};

use super::{Options, Report, VerifyError, newest};
use crate::Home;
use crate::confine::tracked::identity;
use crate::governing::Governing;
use crate::governing::layers;
use crate::session::rows::{SESSION_END, event};
use crate::session::state::State;

/// Where runs are kept, in the state folder.
const FOLDER: &str = "agentflow";
/// Largest list of layers that is read.
const MAX_LIST: u64 = 1 << 20;
/// Largest file of a run.
const MAX_FILE: u64 = 64 << 10;
/// How many digits name a run.
const DIGITS: usize = 12;

/// The beginning of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// The repository that its sessions begin in.
    pub repository: PathBuf,
    /// What people call its policy.
    pub policy: String,
    /// Digest of the policy's file.
    pub file: Digest,
    /// Digest of the list of its layers without their places, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Digest>,
    /// When it began.
    pub started: Timestamp,
}

/// Why a run cannot be begun or verified.
#[derive(Debug, thiserror::Error)]
pub enum AgentflowError {
    /// Nothing of that name.
    #[error("no run and no session `{0}` is on record")]
    Unknown(String),
    /// What is kept of it does not read.
    #[error("what is kept of the run, {}, does not read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Begins a run under a policy. Durable on return.
pub fn start(store: &Store, repository: &Path, governing: &Governing, now: Timestamp) -> Result<Run, AgentflowError> {
    let name = |salt: u32| {
        let text = format!("{}\n{}\n{now}\n{salt}\n{}", repository.display(), governing.file, std::process::id());
        Digest::of(text.as_bytes()).hex().chars().take(DIGITS).collect::<String>()
    };
    let free = |id: &String| !file(store, id).exists();
    let run = Run {
        id: (0..).map(name).find(free).unwrap_or_default(),
        repository: repository.to_owned(),
        policy: governing.policy.name().to_owned(),
        file: governing.file,
        layers: content(governing),
        started: now,
    };
    store.keep(&format!("{FOLDER}/{}.json", run.id), json::to_canonical(&run).as_bytes())?;
    Ok(run)
}

fn file(store: &Store, id: &str) -> PathBuf {
    store.root().join(FOLDER).join(format!("{id}.json"))
}

fn read(path: &Path) -> Result<Run, AgentflowError> {
    let bytes = regular_file::read(path, MAX_FILE).ok();
    let run: Option<Run> = bytes.and_then(|bytes| json::from_slice(&bytes).ok());
    let named = |run: &Run| path.file_stem().is_some_and(|stem| stem.to_str() == Some(&run.id));
    run.filter(named).ok_or_else(|| AgentflowError::Unreadable { path: path.to_owned() })
}

/// The run that was begun last in a repository.
fn latest(store: &Store, repository: &Path) -> Result<Option<Run>, AgentflowError> {
    let own = identity(repository);
    let mut found: Option<Run> = None;
    for entry in fs::read_dir(store.root().join(FOLDER)).into_iter().flatten().flatten() {
        if entry.path().extension().is_none_or(|end| end != "json") {
            continue;
        }
        let run = read(&entry.path())?;
        let here = identity(&run.repository) == own;
        if here && found.as_ref().is_none_or(|found| run.started > found.started) {
            found = Some(run);
        }
    }
    Ok(found)
}

/// What of a session or of a run is to be verified.
#[derive(Debug)]
pub enum Subject {
    /// A run, with its sessions and the names of those whose rows are gone.
    Run(Run, Vec<SessionId>, Vec<String>),
    /// One session.
    Session(SessionId),
    /// No agent has worked here under a policy.
    Nothing,
}

/// What a name means: a run, a session; without a name the last run of the repository, else its newest session.
pub fn subject(store: &Store, repository: &Path, named: Option<&str>) -> Result<Subject, AgentflowError> {
    let run = match named {
        Some(name) if name.chars().all(|c| c.is_ascii_hexdigit()) && file(store, name).exists() => {
            Some(read(&file(store, name))?)
        }
        Some(name) => {
            let id = SessionId::new(name);
            let known = store.exists(&id) || store.is_known(&id);
            return if known { Ok(Subject::Session(id)) } else { Err(AgentflowError::Unknown(name.to_owned())) };
        }
        None => latest(store, repository)?,
    };
    let Some(run) = run else {
        return match newest(store, repository) {
            Ok(id) => Ok(Subject::Session(id)),
            Err(VerifyError::NoSession { .. }) => Ok(Subject::Nothing),
            Err(error) => Err(error.into()),
        };
    };
    let (sessions, lost) = newest::since(store, &run.repository, run.started)?;
    Ok(Subject::Run(run, sessions, lost))
}

/// What one session of a run comes to.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// Its id.
    pub session: String,
    /// Whether it is good.
    pub pass: bool,
    /// The last line of its report, and what else is wrong with it.
    pub verdict: String,
}

/// What sessions have to have run under, and from when on.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Digest of the policy's file.
    pub file: Digest,
    /// Digest of the list of its layers without their places, where it has any.
    pub layers: Option<Digest>,
    /// When the run began; without one each row counts.
    pub since: Option<Timestamp>,
}

impl Held {
    /// What the sessions of a run have to have run under.
    pub const fn by(run: &Run) -> Self {
        Self { file: run.file, layers: run.layers, since: Some(run.started) }
    }

    /// What a single session has to have run under.
    pub fn under(governing: &Governing) -> Self {
        Self { file: governing.file, layers: content(governing), since: None }
    }

    /// Whether a row was written under it, or before; `layers` reads the list of layers that a session kept.
    fn holds(&self, row: &Row, layers: &mut dyn FnMut(Digest) -> Option<Digest>) -> bool {
        let governed = State::from_detail(&row.detail).and_then(|state| state.policy);
        let same = governed.is_some_and(|governed| {
            governed.file == self.file
                && match governed.layers {
                    None => self.layers.is_none(),
                    Some(list) => layers(list).is_some_and(|content| self.layers == Some(content)),
                }
        });
        // That one ends which began before, and what it notices then, is no work of the run's.
        let ends = || [SESSION_END, "policy-changed", "policy-restored"].contains(&event(row));
        same || self.since.is_some_and(|since| row.timestamp < since || ends())
    }
}

fn content(governing: &Governing) -> Option<Digest> {
    layers::content(&governing.list())
}

/// What a list that a session kept holds, without places.
fn kept_content(store: &Store, id: &SessionId, list: Digest) -> Option<Digest> {
    let bytes = regular_file::read(&store.folder(id).join(layers::file_name(list)), MAX_LIST).ok()?;
    if Digest::of(&bytes) != list {
        return None;
    }
    layers::content(&layers::parse(&bytes)?)
}

/// Verifies a session of a run.
pub fn check(
    store: &Store,
    id: &SessionId,
    held: &Held,
    home: &Home,
    allow_absent: bool,
) -> Result<Checked, VerifyError> {
    let session = id.to_string();
    let report: Report = match super::session(store, id, home, &Options::default()) {
        Ok(report) => report,
        Err(error @ (VerifyError::Lost { .. } | VerifyError::NoLedger { .. })) => {
            return Ok(Checked { session, pass: false, verdict: error.to_string() });
        }
        Err(error) => return Err(error),
    };
    let holds = report.verified() || allow_absent && report.holds();
    let mut same = true;
    // What cannot be read the report tells.
    let mut known: BTreeMap<Digest, Option<Digest>> = BTreeMap::new();
    let mut layers = |list: Digest| *known.entry(list).or_insert_with(|| kept_content(store, id, list));
    let read = store.each_row(id, |row| same &= held.holds(&row, &mut layers)).is_ok();
    let other = if same { "" } else { "; another policy governed it" };
    Ok(Checked { session, pass: holds && same && read, verdict: format!("{}{other}", report.verdict()) })
}
