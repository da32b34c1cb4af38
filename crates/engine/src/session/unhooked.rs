//! Finds calls that no hook saw before they happened: tools that do not exist, calls the client refused by itself.
//!
//! Such calls never reach PreToolUse; they show up in PostToolBatch and in the transcript. Each gets one row, so that an
//! invented tool is on record (R41). A call that *ran* unseen gets no row from here: that would paper over it, and
//! coverage is to name it. The transcript is read before the ledger is locked, from where the last stop left off, and the row of
//! the stop says what was read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde::Serialize;
use writ_clients::cursor::{Cursor, News, Reading, news};
use writ_clients::transcript::Call;
use writ_clients::{Client, keys};
use writ_core::json::{self, Value};
use writ_core::secret::mask_id;
use writ_core::{BatchCall, Digest, Event, EventKind, Outcome, SessionId, ToolUse};
use writ_evidence::row::RowDecision;
use writ_store::{Store, regular_file};

use super::rows::Who;
use super::{Session, SessionError};
use crate::lag;

/// Where the cursor is kept, in the session's folder.
const CURSOR: &str = "transcripts.json";
/// Largest cursor that is read.
const MAX_CURSOR: u64 = 16 << 20;

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
    id: Cow<'a, str>,
}

/// Records the calls of a finished batch that have no row.
pub fn batch(session: &mut Session<'_>, input: &Event, calls: &[BatchCall]) -> Result<(), SessionError> {
    let ids: Vec<_> = calls.iter().map(|batch| mask_id(&batch.call.id)).collect();
    let seen = session.ledger().recorded(ids.iter().map(AsRef::as_ref).collect())?;
    for (BatchCall { call: ToolUse { id, call }, outcome }, _) in
        calls.iter().zip(&ids).filter(|(_, id)| !seen.contains(id.as_ref()))
    {
        let Some(outcome) = *outcome else { continue };
        let digest = call.digest();
        let found = Found { call_id: id, tool: &call.tool, input: digest, outcome, source: "PostToolBatch" };
        record(session, &found, Who::of(input))?;
    }
    Ok(())
}

/// Whether an event ends a turn: its row says what was read, and a checkpoint covers it.
pub const fn ends_turn(event: &EventKind) -> bool {
    matches!(event, EventKind::Stop { .. } | EventKind::SessionEnd { .. })
}

/// What the transcripts say since the last stop, and the cursor that was found.
pub struct Prepared {
    news: News,
    kept: Option<Vec<u8>>,
}

/// The cursor as it is kept. One that is no plain file is as good as none.
fn kept(store: &Store, id: &SessionId) -> Option<Vec<u8>> {
    regular_file::read(&store.folder(id).join(CURSOR), MAX_CURSOR).ok()
}

/// Reads what the transcripts say since the last stop, without the ledger. What cannot be read is left to `writ verify`.
pub fn prepare(input: &Event, store: &Store, id: &SessionId) -> Option<Prepared> {
    let path = input.transcript.as_deref().filter(|_| ends_turn(&input.kind))?;
    let transcripts = writ_clients::named(input.client).and_then(Client::transcripts)?;
    let kept = kept(store, id);
    let cursor: Option<Cursor> = kept.as_ref().and_then(|bytes| json::from_slice(bytes).ok());
    if transcripts.written_late() {
        let main = Path::new(path);
        let read = cursor.as_ref().map_or(0, |cursor| cursor.read_of(main));
        // A turn leaves lines behind; behind the session's end there may be none.
        let expected = read == 0 || matches!(input.kind, EventKind::Stop { .. });
        let _there =
            expected.then(|| lag::wait_for(|| main.metadata().is_ok_and(|file| file.len() > read).then_some(())));
    }
    Some(Prepared { news: news(transcripts, Path::new(path), cursor.unwrap_or_default()), kept })
}

/// Records the calls that have no row, and keeps the cursor. Returns what the row of the stop is to say.
pub fn transcripts(
    session: &mut Session<'_>,
    input: &Event,
    prepared: Prepared,
) -> Result<Option<Reading>, SessionError> {
    // Another stop may have read on meanwhile; what each one reads is to join.
    let current = kept(session.store, &session.id) == prepared.kept;
    let prepared = if current { Some(prepared) } else { prepare(input, session.store, &session.id) };
    let Some(Prepared { news: News { ended, stretches: read, unread, cursor }, .. }) = prepared else {
        return Ok(None);
    };
    let unhooked: Vec<_> = ended.into_iter().filter(|(_, outcome)| decision(*outcome).is_some()).collect();
    if !unhooked.is_empty() {
        let seen = session.ledger().call_ids()?;
        let keys: HashSet<&str> = seen.iter().filter_map(|id| keys::key_of(id)).collect();
        // Where hooks are told no ids, a call that one was asked about is known by what it is.
        let known = |call: &Call| match call.key.as_deref() {
            Some(key) => keys.contains(key),
            None => seen.contains(mask_id(&call.call_id).as_ref()),
        };
        for (call, outcome) in unhooked.iter().filter(|(call, _)| !known(call)) {
            let agent = call.agent.as_deref().map(|id| Named { id: mask_id(id) });
            let numbered = call.key.as_deref().map(|key| keys::numbered(key, &call.call_id));
            let (call_id, tool, input) = (numbered.as_ref().unwrap_or(&call.call_id), &call.tool, call.input);
            let found = Found { call_id, tool, input, outcome: *outcome, source: "transcript" };
            record(session, &found, Of { agent })?;
        }
    }
    keep(session, &cursor);
    let genesis = session.store.first_row(&session.id)?;
    let began_with = genesis.as_ref().and_then(|row| row.detail.get("transcript")).and_then(Value::as_str);
    let main = input.transcript.clone().filter(|path| began_with != Some(path.as_str()));
    Ok(Some(Reading { main, read, unread }))
}

/// Keeps the cursor. Without it the next stop reads everything again, so no stop fails for it; what lies in its place is moved
/// away.
fn keep(session: &Session<'_>, cursor: &Cursor) {
    let bytes = json::to_canonical(cursor);
    let path = session.store.folder(&session.id).join(CURSOR);
    if session.keep(CURSOR, bytes.as_bytes()).is_err() && fs::rename(&path, path.with_extension("aside")).is_ok() {
        drop(session.keep(CURSOR, bytes.as_bytes()));
    }
}

/// What a call that no hook saw gets for a row; nothing if it ran, or a hook denied it.
const fn decision(outcome: Outcome) -> Option<(RowDecision, &'static str)> {
    match outcome {
        Outcome::NoSuchTool => Some((RowDecision::Hallucinated, "no such tool")),
        Outcome::Refused => Some((RowDecision::Denied, "refused by the client before any hook")),
        Outcome::DeniedByClient => Some((RowDecision::Denied, "denied by the client's own rules before any hook")),
        Outcome::DeniedByHook | Outcome::Completed | Outcome::Failed => None,
    }
}

fn record(session: &mut Session<'_>, found: &Found<'_>, who: impl Serialize) -> Result<(), SessionError> {
    let Some((decision, reason)) = decision(found.outcome) else { return Ok(()) };
    let (source, input) = (found.source, found.input);
    let mut draft = session.draft(decision, Detail { event: "found", source, input, standing: "reported", who });
    draft.call_id = Some(found.call_id.to_owned());
    draft.tool_name = Some(found.tool.to_owned());
    draft.denial_reason = Some(reason.to_owned());
    session.append(draft)?;
    Ok(())
}
