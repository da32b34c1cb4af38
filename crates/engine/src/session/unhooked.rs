//! Finds calls that no hook saw before they happened: tools that do not exist, calls the client refused by itself.
//!
//! Such calls never reach PreToolUse; they show up in PostToolBatch and in the transcript. Each gets one row, so that an
//! invented tool is on record (R41). A call that *ran* unseen gets no row from here: that would paper over it, and
//! coverage is to name it.

use std::path::Path;

use serde::Serialize;
use writ_clients::transcript::Transcripts;
use writ_core::{BatchCall, Digest, Event, Outcome, ToolUse};
use writ_evidence::row::RowDecision;

use super::rows::{Who, input_digest};
use super::{Session, SessionError};

/// One call found after the fact.
struct Found<'a> {
    call_id: &'a str,
    tool: &'a str,
    input: Digest,
    outcome: Outcome,
    source: &'static str,
}

/// What such a row says.
#[derive(Serialize)]
struct Detail<W> {
    event: &'static str,
    source: &'static str,
    input: Digest,
    standing: &'static str,
    #[serde(flatten)]
    who: W,
}

/// Who it was, as a transcript tells it: an id, and no type.
#[derive(Serialize)]
struct Of<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    id: &'a str,
}

/// Records the calls of a finished batch that have no row.
pub fn batch(session: &mut Session<'_>, input: &Event, calls: &[BatchCall]) -> Result<(), SessionError> {
    let seen = session.ledger().call_ids()?;
    for BatchCall { call: ToolUse { id, call }, outcome } in calls.iter().filter(|batch| !seen.contains(&batch.call.id))
    {
        let Some(outcome) = *outcome else { continue };
        let digest = input_digest(&call.input);
        let found = Found { call_id: id, tool: &call.tool, input: digest, outcome, source: "PostToolBatch" };
        record(session, &found, Who::of(input))?;
    }
    Ok(())
}

/// Records the transcript's calls that have no row. A transcript that cannot be read is left to `writ verify`.
pub fn transcript(session: &mut Session<'_>, transcripts: &dyn Transcripts, path: &Path) -> Result<(), SessionError> {
    let Ok(read) = transcripts.session(path) else { return Ok(()) };
    let seen = session.ledger().call_ids()?;
    for call in read.calls().filter(|call| !call.server_side && !seen.contains(&call.call_id)) {
        // A call without a result may still be on its way to its hook.
        let Some(outcome) = call.outcome else { continue };
        let agent = call.agent.as_deref().map(|id| Named { id });
        let found =
            Found { call_id: &call.call_id, tool: &call.tool, input: call.input, outcome, source: "transcript" };
        record(session, &found, Of { agent })?;
    }
    Ok(())
}

fn record(session: &mut Session<'_>, found: &Found<'_>, who: impl Serialize) -> Result<(), SessionError> {
    let (decision, reason) = match found.outcome {
        Outcome::NoSuchTool => (RowDecision::Hallucinated, "no such tool"),
        Outcome::Refused => (RowDecision::Denied, "refused by the client before any hook"),
        Outcome::DeniedByClient => (RowDecision::Denied, "denied by the client's own rules before any hook"),
        Outcome::DeniedByHook | Outcome::Completed | Outcome::Failed => return Ok(()),
    };
    let (source, input) = (found.source, found.input);
    let mut draft = session.draft(decision, Detail { event: "found", source, input, standing: "reported", who });
    draft.call_id = Some(found.call_id.to_owned());
    draft.tool_name = Some(found.tool.to_owned());
    draft.denial_reason = Some(reason.to_owned());
    session.append(draft)?;
    Ok(())
}
