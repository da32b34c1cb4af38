//! `writ exec`: a granted line, run in what was granted, and its row.
//!
//! Owns the run from the call's row to its end. Refuses a line that no row lets run, and an order that is not the one the row names.
//! Invariant: what is said to be held was held: the row is written after the kernel took it, with the level it took it at.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, Timestamp};
use writ_egress::{Direct, Record, Setup, Stage, SystemResolver, serve};
use writ_evidence::row::{Row, RowDecision};
use writ_policy::Grant;
use writ_sandbox::{Command, End, Features, Host, Level, Listeners, Network, RunError};
use writ_store::{Store, StoreError, regular_file};

use super::order::{Order, granted};
use super::strength::{self, StrengthError};
use crate::Home;
use crate::session::{Session, SessionError};

/// Largest order that was kept.
const MAX_ORDER: u64 = 64 << 20;
/// The event of the row of a run.
pub const CONFINED: &str = "confined";
/// The event of the row of a connection.
pub const CONNECTION: &str = "connection";

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
    Run(#[from] RunError),
    /// It ran, and its row could not be written.
    #[error("it ran, and that could not be recorded: {0}")]
    Unrecorded(SessionError),
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
    let (grant, order) = order(&store, line)?;
    let features = strength::features(&store)?;
    let level = features.level().ok_or(StrengthError::Nothing)?;
    let (mut folder, kept) = io::pipe()?;
    let script = script(line, &store, kept.as_raw_fd());
    let command =
        Command { kept: Some(OwnedFd::from(kept)), ..Command::new(&line.shell, ["-c".into(), OsString::from(script)]) };
    let host = Host { features: &features, state: store.root() };
    let refused = Arc::new(Mutex::new(Vec::new()));
    let connections = Arc::new(Mutex::new((0, 0)));
    let network = order.confinement.network.clone();
    let (rules, counts, words) = (order.egress.clone(), Arc::clone(&connections), Arc::clone(&refused));
    let sink =
        Sink { store: store.clone(), session: line.session.clone(), call: line.call.to_owned(), home: home.clone() };
    let ran = writ_sandbox::run(&grant, &order.confinement, command, host, |listeners| match network {
        Network::Proxied(ports) => {
            let setup = Setup {
                rules,
                secrets: Vec::new(),
                authority: None,
                resolver: Arc::new(SystemResolver),
                extra_authorities: Vec::new(),
                sink: Box::new(move |record: Record| {
                    sink.take(&record, &counts, &words).map_err(|error| writ_egress::SinkError(error.to_string()))
                }),
            };
            serve(served(listeners, &ports.direct), setup).map(Some).map_err(io::Error::other)
        }
        Network::Open | Network::Closed => Ok(None),
    })?;
    let (code, ended) = match ran.end {
        End::Exited(code) => (u8::try_from(code).unwrap_or(u8::MAX), Ended::Exited { code }),
        End::Signaled(signal) => {
            (128_u8.saturating_add(u8::try_from(signal).unwrap_or(127)), Ended::Signaled { signal })
        }
        End::TimeUp => (124, Ended::TimeUp {}),
        End::Killed => (137, Ended::Killed {}),
    };
    let (allowed, denied) = *connections.lock().unwrap_or_else(PoisonError::into_inner);
    let detail = Confined {
        order: order.digest(),
        level,
        features: Digest::of(json::to_canonical(&features).as_bytes()),
        ended,
        milliseconds: u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX),
        connections: allowed,
        refused: denied,
        standing: "enforced",
    };
    record(&store, line, home, detail).map_err(ExecError::Unrecorded)?;
    let folder = (code == 0).then(|| ended_in(&mut folder)).flatten();
    let refused = std::mem::take(&mut *refused.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Ran { code, folder, refused })
}

fn record(store: &Store, line: &Line<'_>, home: &Home, detail: Confined) -> Result<u64, SessionError> {
    let mut session = Session::resume(store, line.session, home, Timestamp::now())?;
    let mut draft = session.event(CONFINED, detail);
    draft.call_id = Some(line.call.to_owned());
    session.append(draft)
}

/// The grant that the call's row says, and its order.
fn order(store: &Store, line: &Line<'_>) -> Result<(Grant, Order), ExecError> {
    let not_granted = || ExecError::NotGranted { call: line.call.to_owned() };
    let allows = |row: &Row| {
        row.call_id.as_deref() == Some(line.call) && matches!(row.decision, RowDecision::Approved | RowDecision::Asked)
    };
    let row = store.last_row_where(line.session, allows)?.ok_or_else(not_granted)?;
    let grant = granted(&row.detail).ok_or_else(not_granted)?;
    let path = store.folder(line.session).join(Order::file_name(grant.confinement()));
    let bytes = regular_file::read(&path, MAX_ORDER).ok().filter(|bytes| Digest::of(bytes) == grant.confinement());
    let order: Option<Order> = bytes.and_then(|bytes| json::from_slice(&bytes).ok());
    let order = order.ok_or(ExecError::NoOrder { path })?;
    grant.covers(order.digest(), line.text).then_some((grant, order)).ok_or_else(not_granted)
}

/// The line behind what the client's shell does first, and the folder it ends in written to `descriptor`.
fn script(line: &Line<'_>, store: &Store, descriptor: i32) -> String {
    let genesis = store.first_row(line.session).ok().flatten();
    let client = genesis.and_then(|row| crate::session::rows::client(&row.detail).ok());
    let prelude = client.and_then(|client| client.shell_calls()?.prelude(&line.arguments));
    let before = prelude.map_or_else(String::new, |prelude| format!("{prelude} && "));
    let quoted = line.text.replace('\'', r"'\''");
    format!("{before}eval '{quoted}' && pwd -P >&{descriptor}")
}

fn served(listeners: Listeners, ports: &[u16]) -> writ_egress::Listeners {
    let direct = listeners.direct.into_iter().zip(ports).map(|(listener, port)| Direct { port: *port, listener });
    writ_egress::Listeners { proxy: listeners.http, direct: direct.collect(), dns: listeners.dns }
}

/// The folder that was told, where it is one.
fn ended_in(told: &mut impl io::Read) -> Option<PathBuf> {
    let mut text = Vec::new();
    told.take(8192).read_to_end(&mut text).ok()?;
    let path = String::from_utf8(text).ok()?;
    let path = PathBuf::from(path.strip_suffix('\n')?);
    (path.is_absolute() && path.is_dir()).then_some(path)
}

/// Where records of connections go.
struct Sink {
    store: Store,
    session: SessionId,
    call: String,
    home: Home,
}

impl Sink {
    fn take(
        &self,
        record: &Record,
        counts: &Mutex<(u64, u64)>,
        words: &Mutex<Vec<String>>,
    ) -> Result<(), SessionError> {
        if record.stage == Stage::Opened {
            return Ok(());
        }
        {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            if record.refusal.is_some() { counts.1 += 1 } else { counts.0 += 1 }
        }
        if let Some(refusal) = &record.refusal {
            words.lock().unwrap_or_else(PoisonError::into_inner).push(refusal.text.clone());
        }
        let mut session = Session::resume(&self.store, &self.session, &self.home, Timestamp::now())?;
        let mut draft = session.event(CONNECTION, Connected { connection: record, standing: "enforced" });
        draft.call_id = Some(self.call.clone());
        session.append(draft)?;
        Ok(())
    }
}

/// What the row of a connection says.
#[derive(Serialize)]
struct Connected<'a> {
    connection: &'a Record,
    standing: &'static str,
}

/// What the row of a run says.
#[derive(Serialize)]
struct Confined {
    order: Digest,
    level: Level,
    features: Digest,
    ended: Ended,
    milliseconds: u64,
    connections: u64,
    refused: u64,
    standing: &'static str,
}

/// How the command ended.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Ended {
    Exited { code: i32 },
    Signaled { signal: i32 },
    TimeUp {},
    Killed {},
}

/// What a row of a run says of it: the order and the level.
pub fn told(detail: &Value) -> Option<(Digest, Level)> {
    let order = detail.get("order").and_then(Value::as_str).and_then(|text| Digest::parse(text).ok())?;
    Some((order, json::from_value(detail.get("level")?).ok()?))
}

/// What this machine allows, for people.
pub fn features(home: &Home) -> Result<Features, ExecError> {
    let store = Store::open(home.state().map_err(SessionError::from)?.to_owned())?;
    Ok(strength::features(&store)?)
}
