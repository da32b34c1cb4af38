//! Which model speaks, as its client's transcript tells.

use std::path::Path;

use writ_clients::Client;
use writ_clients::transcript::{MAIN, Transcripts};
use writ_core::{Agent, Event, EventKind};

use crate::lag;
use crate::session::Session;

/// The model of the agent that an event happens in: of the message that made the call at hand, which its client writes down a little
/// after it asks its hooks; else of its last message.
pub fn of_agent(session: &Session<'_>, input: &Event, agent: Option<&Agent>) -> Option<String> {
    let transcripts = session.client.and_then(Client::transcripts)?;
    let main = Path::new(input.transcript.as_deref()?);
    let name = agent.map_or(MAIN, |agent| agent.id.as_str());
    let same = agent.map(|agent| &agent.id) == input.agent.as_ref().map(|agent| &agent.id);
    let call =
        if let EventKind::PreToolUse(used) = &input.kind { Some(used.id.as_str()).filter(|_| same) } else { None };
    let call = call.filter(|_| session.client.is_some_and(|client| client.tells_ids()));
    let look = || look(transcripts, main, name, call);
    if call.is_some() { lag::wait_for(look) } else { look() }
}

fn look(transcripts: &dyn Transcripts, main: &Path, name: &str, call: Option<&str>) -> Option<String> {
    if name == MAIN {
        return transcripts.model(main, call);
    }
    let files = transcripts.files(main).ok()?.files;
    let (_, path) = files.iter().find(|(agent, _)| agent == name)?;
    transcripts.model(path, call)
}
