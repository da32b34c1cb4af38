//! The mirror for CAST: verdicts in a table of its database, where that database is already there. Best effort, as the seed
//! has it: the ledger is the record.

use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};
use writ_core::Timestamp;
use writ_core::json::{self, Object, Value};

use crate::Home;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS attestations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, agent_key TEXT, false_done INTEGER, payload TEXT, created_at TEXT)";

/// Mirrors a claim's verdict.
pub fn mirror(home: &Home, session: &str, claim: &Value, now: Timestamp) {
    let Some(path) = home.claims.cast.as_deref().filter(|path| path.is_file()) else { return };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(database) = Connection::open_with_flags(path, flags) else { return };
    let agent = claim.get("agent").and_then(Value::as_str).unwrap_or_default();
    let false_done = claim.get("falseDone").and_then(Value::as_bool).unwrap_or(false);
    let insert = "INSERT INTO attestations (agent_key, false_done, payload, created_at) VALUES (?1, ?2, ?3, ?4)";
    let values = params![agent, i64::from(false_done), json::compact(&payload(session, claim)), now.to_string()];
    database.busy_timeout(Duration::from_millis(250)).ok();
    database.execute(TABLE, []).and_then(|_| database.execute(insert, values)).ok();
}

fn payload(session: &str, claim: &Value) -> Value {
    let enforced = claim.get("code").and_then(Value::as_str) != Some("ALLOW_NOT_ENFORCING");
    let member = |name: &str| claim.get(name).cloned().unwrap_or(Value::Null);
    let mut out = Object::new();
    out.push("agent_key", member("agent"));
    out.push("false_done", member("falseDone"));
    out.push("enforced", Value::from(enforced));
    out.push("blocked", member("blocked"));
    out.push("reason_code", member("code"));
    out.push("agent_type", member("type"));
    out.push("session_id", Value::from(session));
    out.push("status", member("status"));
    out.push("reason", member("reason"));
    out.push("claimed", member("claimed"));
    out.push("observed", member("observed"));
    Value::Object(out)
}
