//! The hook's side: put the question, take the answer. No thread, no runtime.

use std::io::{self, ErrorKind, Read, Write};

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::UCred;
use serde::{Deserialize, Serialize};
use writ_clients::Client;
use writ_core::json;
use writ_core::{Answer, Custody, Digest, Event, EventKind, SessionId};

use super::tokens::{self, Request};
use super::{Surroundings, confirm, door};
use crate::Home;
use crate::hook::wire::{MAX_BYTES, field, put};

/// What every question begins with; a notary of another form of question does not answer.
pub const MARK: &[u8; 14] = b"writ-notary-2\n";
/// Asks for an answer to a hook call.
pub const HOOK: u8 = b'h';
/// Asks for an answer to an event that is no hook's: of a call that stands between an agent and a server.
pub const EVENT: u8 = b'e';
/// Asks how the notary stands.
pub const STATUS: u8 = b's';
/// Asks about tokens.
pub const TOKEN: u8 = b't';
/// Asks for a statement: of a step, of what an agent says, of somebody else.
pub const ATTEST: u8 = b'p';
/// Asks for a seal over rows that came after a session's end.
pub const SEAL: u8 = b'l';
/// What the answer to a question begins with.
pub const ANSWERED: u8 = b'a';
/// What is said to whoever is not answered here; why comes after.
pub const NOT_HERE: u8 = b'n';
/// How long a hook waits; its own time and its client's are longer, so that it can still say why.
pub(super) const PATIENCE: Duration = Duration::from_secs(18);
/// How long at a prompt: it decides by itself where no answer comes, for a prompt is not let pass unjudged.
const AT_A_PROMPT: Duration = Duration::from_secs(8);
/// Longest request about tokens, and longest answer.
pub const MAX_TOKEN: u32 = 256 << 10;
/// Longest status, and longest reason.
const MAX_STATUS: u32 = 64 << 10;

/// What came of asking.
#[derive(Debug)]
pub enum Asked {
    /// The notary answered, and the record bears it out.
    Told(Answer),
    /// There is none for this hook, and why: it decides by itself.
    NotThere(String),
    /// It may have decided, and its answer did not come.
    Broken(io::Error),
}

/// Asks the notary of a state folder for the answer to one hook call.
pub fn ask(home: &Home, client: &dyn Client, cwd: &Path, payload: &[u8]) -> Asked {
    let prompt = confirm::is_prompt(payload, client);
    let before = confirm::before(payload, client, home);
    let fields = |surroundings: &[u8]| question(HOOK, [client.name().as_bytes(), surroundings, payload]);
    put_question(home, cwd, fields, prompt, |answer| confirm::confirm(answer, payload, client, home, before))
}

/// An event as it is asked about.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Happened {
    /// The session.
    pub session: SessionId,
    /// The client's own id of it.
    pub client_session: Option<SessionId>,
    /// The folder.
    pub cwd: String,
    /// What happens.
    pub kind: EventKind,
    /// Whether the server changed the tool since a human let it in.
    pub redefined: bool,
}

impl Happened {
    /// The event, of a client.
    pub fn event(self, client: &dyn Client) -> (Event, bool) {
        let Self { session, client_session, cwd, kind, redefined } = self;
        let event = Event {
            client: client.name(),
            session,
            client_session,
            transcript: None,
            cwd,
            agent: None,
            permission_mode: None,
            prompt_id: None,
            kind,
        };
        (event, redefined)
    }
}

/// Asks it about an event of no hook's; one that the notary does not know the client of is not its.
pub fn event(home: &Home, input: &Event, redefined: bool) -> Asked {
    let Some(client) = writ_clients::named(input.client) else {
        return Asked::NotThere("its client is not known".to_owned());
    };
    let happened = Happened {
        session: input.session.clone(),
        client_session: input.client_session.clone(),
        cwd: input.cwd.clone(),
        kind: input.kind.clone(),
        redefined,
    };
    let happened = json::to_canonical(&happened);
    let fields = |surroundings: &[u8]| question(EVENT, [client.name().as_bytes(), surroundings, happened.as_bytes()]);
    let masked = input.clone().masked();
    let before = if client.tells_ids() { 0 } else { confirm::rows_of(&masked.session, home) };
    let confirm = |answer| confirm::of_event(answer, &masked, client, home, (before, redefined));
    put_question(home, Path::new(&input.cwd), fields, false, confirm)
}

fn question(kind: u8, fields: [&[u8]; 3]) -> io::Result<Vec<u8>> {
    let mut bytes = [MARK.as_slice(), &[kind]].concat();
    fields.into_iter().try_for_each(|field| put(&mut bytes, field))?;
    Ok(bytes)
}

/// Puts a question and takes its answer, as far as the record bears that out.
fn put_question(
    home: &Home,
    cwd: &Path,
    question: impl FnOnce(&[u8]) -> io::Result<Vec<u8>>,
    prompt: bool,
    confirm: impl FnOnce(Answer) -> Result<Answer, confirm::Unconfirmed>,
) -> Asked {
    let (mut stream, of_other) = match reach(home) {
        Ok((stream, _, of_other)) => (stream, of_other),
        Err(error) => return Asked::NotThere(error.to_string()),
    };
    let Some(surroundings) = Surroundings::of(home, cwd) else {
        return Asked::NotThere("a path in its environment is no text".to_owned());
    };
    let bytes = match question(json::to_canonical(&surroundings).as_bytes()) {
        Ok(bytes) => bytes,
        Err(error) => return Asked::NotThere(error.to_string()),
    };
    let patience = if prompt { AT_A_PROMPT } else { PATIENCE };
    let told = match exchange(&mut stream, &bytes, patience) {
        Ok(true) => answer(&mut stream),
        Ok(false) => return Asked::NotThere(reason(&mut stream)),
        Err(error) => Err(error),
    };
    let silent = |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let told = told.map_err(|error| {
        let why = || io::Error::new(ErrorKind::TimedOut, format!("it did not answer in {} s", patience.as_secs()));
        if silent(&error) { why() } else { error }
    });
    match told {
        Ok(answer) if of_other => Asked::Told(answer),
        Ok(answer) => match confirm(answer) {
            Ok(answer) => Asked::Told(answer),
            Err(error) if prompt => Asked::NotThere(format!("what it answered does not count: {error}")),
            Err(error) => Asked::Broken(io::Error::other(format!("what it answered does not count: {error}"))),
        },
        Err(error) if prompt => Asked::NotThere(error.to_string()),
        Err(error) => Asked::Broken(error),
    }
}

fn answer(stream: &mut UnixStream) -> io::Result<Answer> {
    json::from_slice(&field(stream, MAX_BYTES)?).map_err(io::Error::other)
}

/// Reaches the notary of another user, where there is one for this user, else that of the state folder; and which it is.
pub(super) fn reach(home: &Home) -> io::Result<(UnixStream, UCred, bool)> {
    if let Some((stream, peer)) = home.notary.as_deref().and_then(|path| door::connect_other(path).ok()) {
        return Ok((stream, peer, true));
    }
    let (stream, peer) = door::connect(&door::socket(home.state().map_err(io::Error::other)?))?;
    Ok((stream, peer, false))
}

/// How a notary stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its process, as the kernel tells it.
    pub process: i32,
    /// The version of its program.
    pub version: String,
    /// Where its state is.
    pub state: PathBuf,
    /// When it began.
    pub since: String,
    /// Hook calls that it answered.
    pub answered: u64,
    /// What keeps its key.
    pub custody: Custody,
    /// Its key, where it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
}

/// Asks a notary how it stands.
pub fn status(home: &Home) -> io::Result<Status> {
    let (mut stream, peer, _) = reach(home)?;
    if !exchange(&mut stream, &[MARK.as_slice(), &[STATUS]].concat(), PATIENCE)? {
        return Err(io::Error::new(ErrorKind::PermissionDenied, reason(&mut stream)));
    }
    let text = field(&mut stream, MAX_STATUS)?;
    let status: Status = json::from_slice(&text).map_err(io::Error::other)?;
    Ok(Status { process: peer.pid.as_raw_nonzero().get(), ..status })
}

/// Asks a notary about tokens.
pub fn token(home: &Home, request: &Request) -> io::Result<tokens::Told> {
    let (mut stream, ..) = reach(home)?;
    let mut bytes = [MARK.as_slice(), &[TOKEN]].concat();
    put(&mut bytes, json::to_canonical(request).as_bytes())?;
    if !exchange(&mut stream, &bytes, PATIENCE)? {
        return Err(io::Error::new(ErrorKind::PermissionDenied, reason(&mut stream)));
    }
    json::from_slice(&field(&mut stream, MAX_TOKEN)?).map_err(io::Error::other)
}

/// Puts a whole question and says whether it is answered.
pub(super) fn exchange(stream: &mut UnixStream, bytes: &[u8], patience: Duration) -> io::Result<bool> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    // Whoever does not answer here may say so, and go, before it has read everything: what it said counts then.
    let written = stream.write_all(bytes);
    let mut first = [0];
    let read = stream.read_exact(&mut first);
    match (read, first) {
        (Ok(()), [ANSWERED]) => written.map(|()| true),
        (Ok(()), [NOT_HERE]) => Ok(false),
        (Ok(()), _) => Err(io::Error::new(ErrorKind::InvalidData, "it is no notary")),
        (Err(error), _) => Err(written.err().unwrap_or(error)),
    }
}

pub(super) fn reason(stream: &mut UnixStream) -> String {
    let text = field(stream, MAX_STATUS).unwrap_or_default();
    String::from_utf8(text).unwrap_or_default()
}
