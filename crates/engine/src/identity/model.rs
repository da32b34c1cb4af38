//! Which model speaks, as its client's transcript tells.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use writ_clients::Client;
use writ_clients::transcript::{MAIN, Transcripts};
use writ_core::{Agent, Event, EventKind};

use crate::session::Session;

/// How long is waited for what a client is about to write, and how often that is looked for.
const PATIENCE: (Duration, u32) = (Duration::from_millis(10), 30);

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
    let (pause, times) = if call.is_some() { PATIENCE } else { (Duration::ZERO, 1) };
    for attempt in 0..times {
        if let Some(model) = look(transcripts, main, name, call) {
            return Some(model);
        }
        if attempt + 1 < times {
            sleep(pause);
        }
    }
    None
}

fn look(transcripts: &dyn Transcripts, main: &Path, name: &str, call: Option<&str>) -> Option<String> {
    if name == MAIN {
        return transcripts.model(main, call);
    }
    let files = transcripts.files(main).ok()?.files;
    let (_, path) = files.iter().find(|(agent, _)| agent == name)?;
    transcripts.model(path, call)
}
