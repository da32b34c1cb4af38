//! A granted command in its sandbox, from the plan it was granted to the row of its run.
//!
//! Owns what stands outside while it runs: the egress proxy, and the record. Invariant: what is said to be held was held: the row is
//! written after the kernel took it, with the level it took it at.

use std::io;
use std::sync::Arc;

use serde::Serialize;
use writ_core::Digest;
use writ_core::json::{self, Value};
use writ_policy::Grant;
use writ_sandbox::{Command, End, Host, Level, RunError, Survivors};
use writ_store::StoreError;

use super::keeper::{self, KeeperError};
use super::order::Order;
use super::record::Recorder;
use super::strength::{self, StrengthError};
use super::traffic::{self, Traffic};
use crate::session::SessionError;

/// The event of the row of a run.
pub const CONFINED: &str = "confined";

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code as a shell says it.
    pub code: u8,
    /// What was refused, in words for the agent.
    pub refused: Vec<String>,
}

/// Why it was not run, or not recorded.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What this machine allows.
    #[error(transparent)]
    Strength(#[from] StrengthError),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Who holds what the session's calls share.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// It ran, and its row could not be written.
    #[error("it ran, and that could not be recorded: {0}")]
    Unrecorded(SessionError),
}

impl SuperviseError {
    /// The exit code, as a shell would have it.
    pub fn exit_code(&self) -> u8 {
        if let Self::Run(error) = self { error.exit_code() } else { 126 }
    }
}

/// Runs it, and records that it ran.
pub fn supervise(recorder: &Recorder, grant: &Grant, order: &Order, command: Command) -> Result<Ran, SuperviseError> {
    let features = strength::features(&recorder.store)?;
    let level = features.level().ok_or(StrengthError::Nothing)?;
    let host = Host { features: &features, state: recorder.store.root() };
    let traffic = Arc::new(Traffic::of(recorder.clone()));
    let mut lease = None;
    let mut command = command;
    if let Some(shared) = order.shared {
        let (lent, namespaces) = keeper::borrow(recorder, order, shared)?;
        lease = Some(lent);
        command.shared = Some(namespaces);
    }
    let ran = writ_sandbox::run(grant, &order.confinement, command, host, |mut listeners| {
        match (&lease, listeners.mounts.take()) {
            (Some(lease), Some(mounts)) => lease.began(mounts).map(|()| None),
            _ => traffic::serve(order, listeners, &traffic, None).map_err(io::Error::other),
        }
    })?;
    let (code, ended) = ended(ran.end);
    let stays = order.confinement.survivors == Survivors::Stay && matches!(ran.end, End::Exited(_) | End::Signaled(_));
    let seen = match lease {
        Some(lease) => keeper::give_back(lease, stays, &recorder.store),
        None => Some(traffic.seen()),
    };
    let row = Confined {
        order: order.digest(),
        level,
        features: Digest::of(json::to_canonical(&features).as_bytes()),
        ended,
        milliseconds: u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX),
        connections: seen.as_ref().map(|seen| seen.allowed),
        refused: seen.as_ref().map(|seen| seen.refused),
        standing: "enforced",
    };
    recorder.record(CONFINED, row).map_err(SuperviseError::Unrecorded)?;
    Ok(Ran { code, refused: seen.map(|seen| seen.words).unwrap_or_default() })
}

fn ended(end: End) -> (u8, Ended) {
    match end {
        End::Exited(code) => (u8::try_from(code).unwrap_or(u8::MAX), Ended::Exited { code }),
        End::Signaled(signal) => {
            (128_u8.saturating_add(u8::try_from(signal).unwrap_or(127)), Ended::Signaled { signal })
        }
        End::TimeUp => (124, Ended::TimeUp {}),
        End::Killed => (137, Ended::Killed {}),
    }
}

/// What the row of a run says.
#[derive(Serialize)]
struct Confined {
    order: Digest,
    level: Level,
    features: Digest,
    ended: Ended,
    milliseconds: u64,
    /// Nothing where the keeper that knew was killed: each connection has a row of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<u64>,
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
