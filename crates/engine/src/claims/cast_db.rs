//! The mirror for CAST: verdicts in a table of its database, where that database is already there. Best effort, as the seed
//! has it: the ledger is the record.

use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};
use serde::Serialize;
use writ_claims::{Code, Status};
use writ_core::{Timestamp, json};

use super::record::Claim;
use crate::Home;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS attestations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, agent_key TEXT, false_done INTEGER, payload TEXT, created_at TEXT)";

/// Mirrors a claim's verdict.
pub fn mirror(home: &Home, session: &str, claim: &Claim, now: Timestamp) {
    let Some(path) = home.claims.cast.as_deref().filter(|path| path.is_file()) else { return };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(database) = Connection::open_with_flags(path, flags) else { return };
    let (agent, payload) = (claim.agent.as_deref().unwrap_or_default(), Payload::of(session, claim));
    let insert = "INSERT INTO attestations (agent_key, false_done, payload, created_at) VALUES (?1, ?2, ?3, ?4)";
    let values = params![agent, i64::from(claim.false_done), json::to_compact(&payload), now.to_string()];
    database.busy_timeout(Duration::from_millis(250)).ok();
    database.execute(TABLE, []).and_then(|_| database.execute(insert, values)).ok();
}

/// What the seed has in that table.
#[derive(Serialize)]
struct Payload<'a> {
    agent_key: Option<&'a str>,
    false_done: bool,
    enforced: bool,
    blocked: bool,
    reason_code: Code,
    agent_type: &'a str,
    session_id: &'a str,
    status: Option<Status>,
    reason: &'a str,
    claimed: &'a [String],
    observed: Option<&'a [String]>,
}

impl<'a> Payload<'a> {
    fn of(session: &'a str, claim: &'a Claim) -> Self {
        Self {
            agent_key: claim.agent.as_deref(),
            false_done: claim.false_done,
            enforced: claim.code != Code::NotEnforcing,
            blocked: claim.blocked,
            reason_code: claim.code,
            agent_type: &claim.kind,
            session_id: session,
            status: claim.status,
            reason: &claim.reason,
            claimed: &claim.claimed,
            observed: claim.observed(),
        }
    }
}
