//! `writ exec`: a granted line, run in what was granted.
//!
//! Owns the way from the call's row to the run. Refuses a line that no row lets run, one that is
//! over, and an order that is not the one the row names. Invariant: a grant is for one run.

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use writ_core::json::Value;
use writ_core::{SessionId, Timestamp};
use writ_evidence::row::{Row, RowDecision};
use writ_policy::Grant;
use writ_sandbox::{Command, Features};
use writ_store::{Store, StoreError};

use super::order::{Order, granted};
use super::record::Recorder;
use super::strength::{self, StrengthError};
use super::supervise::{CONFINED, SuperviseError, supervise};
use crate::Home;
use crate::session::SessionError;
use crate::session::rows::{SESSION_END, event};

/// A line to run.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The call's id.
    pub call: &'a str,
    /// The model's line.
    pub text: &'a str,
    /// The shell that runs it.
    pub shell: PathBuf,
    /// The arguments of the shell that runs Writ: the client's own.
    pub arguments: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code as a shell says it.
    pub code: u8,
    /// The folder it ended in, if it ended well.
    pub folder: Option<PathBuf>,
    /// What was refused, in words for the agent.
    pub refused: Vec<String>,
}

/// Why it was not run, or not recorded.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// No row lets it run.
    #[error("no call `{call}` of this session may run this line in a sandbox")]
    NotGranted {
        /// The call.
        call: String,
    },
    /// It has run, or its result is there, or its session is over.
    #[error("call `{call}` is over: what it was granted is for one run, while its session goes on")]
    Over {
        /// The call.
        call: String,
    },
    /// The order is not there, or another.
    #[error("{} is not what was granted", path.display())]
    NoOrder {
        /// Where it should be.
        path: PathBuf,
    },
    /// The session or its record.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What this machine allows.
    #[error(transparent)]
    Strength(#[from] StrengthError),
    /// The run.
    #[error(transparent)]
    Run(#[from] SuperviseError),
    /// The system.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl ExecError {
    /// The exit code, as a shell would have it.
    pub fn exit_code(&self) -> u8 {
        if let Self::Run(error) = self { error.exit_code() } else { 126 }
    }
}

/// Runs it.
pub fn exec(line: &Line<'_>, home: &Home) -> Result<Ran, ExecError> {
    let store = Store::open(home.state().map_err(SessionError::from)?.to_owned())?;
    let Granted { grant, order, after } = order(&store, line)?;
    let (folder, kept) = io::pipe()?;
    let script = script(line, &order, kept.as_raw_fd());
    let command = Command {
        kept: Some(Arc::new(OwnedFd::from(kept))),
        ..Command::new(&line.shell, ["-c".into(), OsString::from(script)])
    };
    let (session, call) = (line.session.clone(), Some(line.call.to_owned()));
    let recorder = Recorder { store, home: home.clone(), session, call, after: Some(after) };
    let ran = supervise(&recorder, &grant, &order, command, |_hooks| Ok(()))?;
    let folder = (ran.code == 0).then(|| ended_in(&folder)).flatten();
    Ok(Ran { code: ran.code, folder, refused: ran.refused })
}

/// What a line may run in, and the last row before it.
struct Granted {
    grant: Grant,
    order: Order,
    after: u64,
}

/// The grant that the call's row says, and its order. A grant is for one run, before the session's end and the call's result, unless that
/// comes while it runs.
fn order(store: &Store, line: &Line<'_>) -> Result<Granted, ExecError> {
    let not_granted = || ExecError::NotGranted { call: line.call.to_owned() };
    let (last, over, answered) = (Cell::new(0), Cell::new(false), Cell::new(None));
    let allows = |row: &Row| {
        last.set(last.get().max(row.sequence));
        over.set(over.get() || event(row) == SESSION_END);
        if row.call_id.as_deref() != Some(line.call) {
            return false;
        }
        match row.decision {
            RowDecision::Completed | RowDecision::Failed => answered.set(Some(row.timestamp)),
            RowDecision::Checkpoint if event(row) == CONFINED => over.set(true),
            _ => {}
        }
        matches!(row.decision, RowDecision::Approved | RowDecision::Asked)
    };
    let row = store.last_row_where(line.session, allows)?.ok_or_else(not_granted)?;
    let late = |result| !lasts(&row.detail) || Timestamp::now().millis() > begins_by(result);
    if over.get() || answered.get().is_some_and(late) {
        return Err(ExecError::Over { call: line.call.to_owned() });
    }
    let grant = granted(&row.detail).ok_or_else(not_granted)?;
    let kept = Order::kept(store, line.session, grant.confinement());
    let order = kept.map_err(|path| ExecError::NoOrder { path })?;
    // The order's bytes are those of the digest.
    if !grant.covers(grant.confinement(), line.text) {
        return Err(not_granted());
    }
    Ok(Granted { grant, order, after: last.get() })
}

/// Whether a call's result comes while it runs.
pub fn lasts(detail: &Value) -> bool {
    detail.get("lasts") == Some(&Value::Bool(true))
}

/// The last millisecond in which such a call may begin, once its result is there: its shell needs a moment.
pub fn begins_by(result: Timestamp) -> i64 {
    result.millis().saturating_add(60_000)
}

/// The line behind what the client's shell does first, and the folder it ends in written to `descriptor`.
fn script(line: &Line<'_>, order: &Order, descriptor: i32) -> String {
    let client = order.client.as_deref().and_then(writ_clients::named);
    let prelude = client.and_then(|client| client.shell_calls()?.prelude(&line.arguments));
    let before = prelude.map_or_else(String::new, |prelude| format!("{prelude} && "));
    let quoted = line.text.replace('\'', r"'\''");
    // What the line leaves running does not get the descriptor.
    format!("{before}eval '{quoted}' {descriptor}>&- && pwd -P >&{descriptor}")
}

/// The folder that was told, where it is one. What the line has left running may have the other end still.
fn ended_in(told: &io::PipeReader) -> Option<PathBuf> {
    let text = writ_sandbox::read_now(told, 8192).ok()?;
    let path = String::from_utf8(text).ok()?;
    let path = PathBuf::from(path.strip_suffix('\n')?);
    (path.is_absolute() && path.is_dir()).then_some(path)
}

/// What this machine allows, for people.
pub fn features(home: &Home) -> Result<Features, ExecError> {
    let store = Store::open(home.state().map_err(SessionError::from)?.to_owned())?;
    Ok(strength::features(&store)?)
}
