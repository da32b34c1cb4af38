//! The client's transcript against the ledger: which calls did no row see?
//!
//! The transcript is the client's own word and can be edited, so it proves nothing by itself; it can only accuse. A call that
//! it holds and the ledger does not was not observed.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use writ_clients::claude_code::Outcome;
use writ_clients::claude_code::transcript::{self, TranscriptError};
use writ_core::json::Value;
use writ_evidence::row::{Row, RowDecision};

use super::report::{self, Phase, Standing};

/// What the ledger knows of calls.
#[derive(Default)]
pub struct Seen {
    /// Calls with a row from before they ran, or one that says they never could: their tool and what became of them.
    decided: HashMap<String, (String, RowDecision)>,
    /// Ids of calls with a result row.
    finished: HashSet<String>,
    /// Calls that were denied and have a result all the same.
    pub ran_though_denied: Vec<String>,
}

impl Seen {
    /// Takes the next row.
    pub fn row(&mut self, row: &Row) {
        let Some(id) = &row.call_id else { return };
        match row.decision {
            RowDecision::Completed | RowDecision::Failed => {
                if self.decided.get(id).is_some_and(|(_, decision)| *decision == RowDecision::Denied) {
                    self.ran_though_denied.push(format!("{} {id}", row.tool_name.as_deref().unwrap_or("?")));
                }
                self.finished.insert(id.clone());
            }
            RowDecision::Approved | RowDecision::Asked | RowDecision::Denied | RowDecision::Hallucinated => {
                let tool = row.tool_name.clone().unwrap_or_default();
                self.decided.insert(id.clone(), (tool, row.decision));
            }
            RowDecision::Checkpoint => {}
        }
    }
}

/// Compares. Returns the phase and the unobserved calls as `tool call-id`.
pub fn check(path: Option<&Path>, seen: &Seen) -> (Phase, Vec<String>) {
    let absent = |why: String| (phase(report::Outcome::Absent, why, Vec::new()), Vec::new());
    let Some(path) = path else { return absent("the session names no transcript".to_owned()) };
    let read = match transcript::read_session(path) {
        Ok(read) => read,
        // A transcript that never was, or was tidied away, accuses nobody; one that cannot be read hides something.
        Err(TranscriptError::Io { path: at, source }) if at == path && source.kind() == ErrorKind::NotFound => {
            return absent(format!("there is no transcript {}", path.display()));
        }
        Err(error) => {
            let why = "the transcript cannot be read".to_owned();
            return (phase(report::Outcome::Failed, why, vec![error.to_string()]), Vec::new());
        }
    };
    let mut unobserved = Vec::new();
    let mut findings: Vec<String> =
        seen.ran_though_denied.iter().map(|call| format!("{call}: denied, and it ran all the same")).collect();
    let (mut calls, mut server_side) = (0u64, 0u64);
    for call in read.calls() {
        calls += 1;
        if call.server_side {
            server_side += 1;
            continue;
        }
        match seen.decided.get(&call.call_id) {
            None => unobserved.push(format!("{} {}", call.tool, call.call_id)),
            Some((tool, _)) if current(tool) != current(&call.tool) => {
                unobserved.push(format!("{} {}", call.tool, call.call_id));
                findings.push(format!("{} is on record as a call of `{tool}`, not of `{}`", call.call_id, call.tool));
            }
            Some((_, RowDecision::Denied)) if call.outcome == Some(Outcome::Completed) => {
                findings.push(format!("{} {}: denied, but the transcript shows a result", call.tool, call.call_id));
            }
            Some(_) => {}
        }
    }
    let told: HashSet<&str> = read.calls().map(|call| call.call_id.as_str()).collect();
    let untold = seen.decided.keys().filter(|id| !told.contains(id.as_str())).count();
    findings.extend(unobserved.iter().map(|call| format!("unobserved: {call}")));
    if !read.is_whole() {
        findings.push("parts of the transcript cannot be read".to_owned());
    }
    if findings.is_empty() && untold > 0 {
        let why = format!("the transcript is not whole: it lacks {untold} calls that are on record");
        return (phase(report::Outcome::Absent, why, Vec::new()), unobserved);
    }
    if findings.is_empty() {
        let beside = if server_side > 0 {
            format!(", {server_side} of them run by the model's provider, unseen by any hook")
        } else {
            String::new()
        };
        return (
            phase(
                report::Outcome::Passed,
                format!("all {calls} calls of the transcript are on record{beside}"),
                findings,
            ),
            unobserved,
        );
    }
    let summary = format!("{} of {calls} calls of the transcript have no row", unobserved.len());
    (phase(report::Outcome::Failed, summary, findings), unobserved)
}

/// The name the client uses today.
fn current(tool: &str) -> &str {
    if tool == "Task" { "Agent" } else { tool }
}

const fn phase(outcome: report::Outcome, summary: String, findings: Vec<String>) -> Phase {
    Phase { name: "coverage", outcome, standing: Standing::Reported, summary, findings }
}

/// Where the genesis row says the transcript is.
pub fn recorded_path(genesis: &Row) -> Option<&str> {
    genesis.detail.get("transcript").and_then(Value::as_str)
}
