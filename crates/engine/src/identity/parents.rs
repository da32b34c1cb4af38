//! Which agents started a sub-agent, up to the main one.
//!
//! Owns the way from a sub-agent's note beside its transcript, which names the call that started it, to the row of that call, which says whose
//! it was. Refuses to guess: where a note tells of more agents above than rows do, the rest is the main agent's, and said to be reported.
//! Invariant: a chain has an end. Page: `spec/identity.md`.

use std::path::Path;

use writ_clients::Client;
use writ_core::secret::mask_id;
use writ_core::{Agent, Event};
use writ_evidence::row::Row;

use super::environment::Standing;
use crate::session::Session;
use crate::session::rows;

/// Most agents above one.
const MOST: usize = 16;

/// The sub-agents above the one that an event happens in, from the main agent's own down, and how that is known.
pub fn of(session: &Session<'_>, input: &Event) -> (Vec<Agent>, Standing) {
    let Some(mut agent) = input.agent.clone() else { return (Vec::new(), Standing::Observed) };
    let (mut above, mut standing) = (Vec::new(), Standing::Observed);
    while above.len() < MOST {
        let Some(call) = started_by_an_agent(session, input, &agent) else { break };
        standing = Standing::Reported;
        let Some(parent) = whose(session, &call).filter(|parent| *parent != agent && !above.contains(parent)) else {
            break;
        };
        above.push(parent.clone());
        agent = parent;
    }
    above.reverse();
    (above, standing)
}

/// The call that started an agent, where its client notes that another sub-agent made it.
fn started_by_an_agent(session: &Session<'_>, input: &Event, agent: &Agent) -> Option<String> {
    let transcripts = session.client.and_then(Client::transcripts)?;
    let files = transcripts.files(Path::new(input.transcript.as_deref()?)).ok()?.files;
    let (_, path) = files.iter().find(|(id, _)| *id == agent.id)?;
    let note = transcripts.note(path);
    note.call.filter(|_| note.depth.is_some_and(|depth| depth > 1))
}

/// The sub-agent whose call it was, as its row says.
fn whose(session: &Session<'_>, call: &str) -> Option<Agent> {
    let id = mask_id(call);
    let decided = |row: &Row| row.call_id.as_deref() == Some(&*id) && row.detail.get("facts").is_some();
    let row = session.store.last_row_where(&session.id, decided).ok().flatten()?;
    rows::agent(&row.detail)
}
