//! Finds calls that no hook saw before they happened: tools that do not exist, calls the client refused by itself.
//!
//! Such calls never reach PreToolUse; they show up in PostToolBatch and in the transcript. Each gets one row, so that an
//! invented tool is on record (R41). A call that *ran* unseen gets no row from here: that would paper over it, and
//! coverage is to name it.

use std::path::Path;

use writ_clients::claude_code::{BatchCall, HookInput, Outcome, batch_outcome, transcript};
use writ_core::Digest;
use writ_core::json::{Object, Value};
use writ_evidence::row::RowDecision;

use crate::call::{describe, input_digest};
use crate::session::{Session, SessionError};

/// One call found after the fact.
struct Found<'a> {
    call_id: &'a str,
    tool: &'a str,
    input: Digest,
    outcome: Outcome,
    source: &'static str,
}

/// Records the calls of a finished batch that have no row.
pub fn batch(session: &mut Session<'_>, input: &HookInput, calls: &[BatchCall]) -> Result<(), SessionError> {
    let seen = session.ledger().call_ids()?;
    for BatchCall { call, response } in calls.iter().filter(|batch| !seen.contains(&batch.call.call_id)) {
        let Some(outcome) = batch_outcome(&call.tool, response) else { continue };
        let mut detail = Object::new();
        describe(input, &mut detail);
        let input = input_digest(&call.input);
        let found = Found { call_id: &call.call_id, tool: &call.tool, input, outcome, source: "PostToolBatch" };
        record(session, &found, detail)?;
    }
    Ok(())
}

/// Records the transcript's calls that have no row. A transcript that cannot be read is left to `writ verify`.
pub fn transcript(session: &mut Session<'_>, path: &Path) -> Result<(), SessionError> {
    let Ok(read) = transcript::read_session(path) else { return Ok(()) };
    let seen = session.ledger().call_ids()?;
    for call in read.calls().filter(|call| !call.server_side && !seen.contains(&call.call_id)) {
        // A call without a result may still be on its way to its hook.
        let Some(outcome) = call.outcome else { continue };
        let mut detail = Object::new();
        if let Some(agent) = &call.agent {
            let mut out = Object::new();
            out.push("id", Value::from(agent.as_str()));
            detail.push("agent", Value::Object(out));
        }
        let found =
            Found { call_id: &call.call_id, tool: &call.tool, input: call.input, outcome, source: "transcript" };
        record(session, &found, detail)?;
    }
    Ok(())
}

fn record(session: &mut Session<'_>, found: &Found<'_>, mut detail: Object) -> Result<(), SessionError> {
    let (decision, reason) = match found.outcome {
        Outcome::NoSuchTool => (RowDecision::Hallucinated, "no such tool"),
        Outcome::Refused => (RowDecision::Denied, "refused by the client before any hook"),
        Outcome::DeniedByClient => (RowDecision::Denied, "denied by the client's own rules before any hook"),
        Outcome::DeniedByHook | Outcome::Completed | Outcome::Failed => return Ok(()),
    };
    detail.push("event", Value::from("found"));
    detail.push("source", Value::from(found.source));
    detail.push("input", Value::from(found.input.to_string()));
    detail.push("standing", Value::from("reported"));
    let mut draft = session.draft(decision, detail);
    draft.call_id = Some(found.call_id.to_owned());
    draft.tool_name = Some(found.tool.to_owned());
    draft.denial_reason = Some(reason.to_owned());
    session.append(draft)?;
    Ok(())
}
