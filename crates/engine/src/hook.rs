//! One hook call: bytes in, one JSON object out.
//!
//! This is the hot path. It never panics outward and never leaves a governed call without an answer: whatever keeps it from
//! deciding is turned into a denial that says how to repair it (R6). With no policy in reach it is silent. Invariant: an
//! answer that lets a call run has its row on disk first.

use std::path::Path;

use writ_clients::claude_code::{self, Answer, Event, HookAnswer, HookInput};
use writ_core::Timestamp;
use writ_store::Store;

use crate::session::{self, Session, SessionError};
use crate::{Home, call, claims, governing, lifecycle};

/// Answers one hook call. `cwd` is the process's own directory, used only when the payload does not say.
pub fn answer(bytes: &[u8], home: &Home, cwd: &Path) -> HookAnswer {
    match claude_code::parse(bytes) {
        Ok(input) => {
            claims::capture::copy(bytes, &input, home);
            respond(&input, home)
        }
        Err(error) => {
            if governing::find(cwd).is_none() {
                return Answer::Silent.into();
            }
            let why = format!("writ denies what it cannot read: {error}. Run `writ doctor`");
            HookAnswer::refuse(claude_code::event_hint(bytes).as_deref(), &why)
        }
    }
}

/// The answer to an event that could not be dealt with: where a call can be stopped, stop it; elsewhere tell the user.
/// Blocking a stop or a prompt would keep the user from repairing what is broken.
fn failed(event: &Event, why: &str) -> HookAnswer {
    match event {
        Event::PreToolUse(_) | Event::PermissionRequest { .. } => HookAnswer::refuse(Some(event.name()), why),
        _ => HookAnswer::from(Answer::Silent).with_message(why),
    }
}

fn respond(input: &HookInput, home: &Home) -> HookAnswer {
    match dispatch(input, home) {
        Ok(answer) => answer,
        Err(error) => failed(&input.event, &format!("writ denies what it cannot decide: {error}")),
    }
}

fn dispatch(input: &HookInput, home: &Home) -> Result<HookAnswer, SessionError> {
    if matches!(input.event, Event::Other(_)) {
        return Ok(Answer::Silent.into());
    }
    let id = &input.session;
    let known = match home.state() {
        Ok(state) => {
            let store = Store::open(state.to_owned())?;
            store.exists(id) || store.was_sealed(id)
        }
        Err(_) => false,
    };
    if !known && governing::find(Path::new(&input.cwd)).is_none() {
        return Ok(ungoverned(input, home).unwrap_or_else(|error| {
            let mut answer = HookAnswer::from(Answer::Silent);
            answer.notes.push(format!("writ: claims are not checked: {error}"));
            answer
        }));
    }
    let store = Store::open(home.state()?.to_owned())?;
    let prepared = claims::prepare(input, home, &store, id);
    let mut session = Session::open(&store, id, input, home, Timestamp::now())?;
    match &input.event {
        Event::PreToolUse(call) => call::before(&mut session, input, call),
        Event::PermissionRequest { tool, input: arguments } => call::permission(&mut session, input, tool, arguments),
        Event::PostToolUse { call, response, .. } => call::after(&mut session, input, call, Ok(response)),
        Event::PostToolUseFailure { call, error, .. } => call::after(&mut session, input, call, Err(error)),
        other => lifecycle::record(&mut session, input, other, prepared),
    }
}

/// Where no policy governs, only claims are looked at; this fails open (R6).
fn ungoverned(input: &HookInput, home: &Home) -> Result<HookAnswer, SessionError> {
    let about = matches!(input.event, Event::SubagentStart | Event::SubagentStop { .. });
    let ends = matches!(input.event, Event::Stop { .. } | Event::SessionEnd { .. });
    let main =
        matches!(input.event, Event::UserPromptSubmit { .. } | Event::Stop { .. }) && home.claims.includes_main(None);
    if !about && !ends && !main {
        return Ok(Answer::Silent.into());
    }
    let store = Store::open(home.state()?.to_owned())?;
    let id = session::ungoverned(&input.session);
    if ends && !store.exists(&id) {
        return Ok(Answer::Silent.into());
    }
    let prepared = claims::prepare(input, home, &store, &id);
    let mut session = Session::open(&store, &id, input, home, Timestamp::now())?;
    lifecycle::record(&mut session, input, &input.event, prepared)
}
