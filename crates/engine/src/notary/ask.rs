//! The hook's side: put the question, take the answer. No thread, no runtime.

use std::io::{self, ErrorKind, Read, Write};

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::UCred;
use serde::{Deserialize, Serialize};
use writ_core::json;
use writ_core::{Custody, Digest};

use super::Surroundings;
use super::door;
use super::tokens::{self, Request};
use crate::Home;
use crate::hook::wire::{Told, field, put};

/// What every question begins with; a notary of another form of question does not answer.
pub const MARK: &[u8; 14] = b"writ-notary-1\n";
/// Asks for an answer to a hook call.
pub const HOOK: u8 = b'h';
/// Asks how the notary stands.
pub const STATUS: u8 = b's';
/// Asks about tokens.
pub const TOKEN: u8 = b't';
/// What the answer to a question begins with.
pub const ANSWERED: u8 = b'a';
/// What is said to whoever is not answered here; why comes after.
pub const NOT_HERE: u8 = b'n';
/// How long a hook waits; its client waits longer.
const PATIENCE: Duration = Duration::from_secs(23);
/// Longest request about tokens, and longest answer.
pub const MAX_TOKEN: u32 = 256 << 10;
/// Longest status, and longest reason.
const MAX_STATUS: u32 = 64 << 10;

/// What came of asking.
#[derive(Debug)]
pub enum Asked {
    /// The notary answered.
    Told(Told),
    /// There is none for this hook, and why: it decides by itself.
    NotThere(String),
    /// It may have decided, and its answer did not come.
    Broken(io::Error),
}

/// Asks the notary of a state folder for the answer to one hook call.
pub fn ask(home: &Home, client: &str, cwd: &Path, payload: &[u8]) -> Asked {
    let mut stream = match reach(home) {
        Ok((stream, _)) => stream,
        Err(error) => return Asked::NotThere(error.to_string()),
    };
    let mut bytes = [MARK.as_slice(), &[HOOK]].concat();
    let Some(surroundings) = Surroundings::of(home, cwd) else {
        return Asked::NotThere("a path in its environment is no text".to_owned());
    };
    let surroundings = json::to_canonical(&surroundings);
    let fields = [client.as_bytes(), surroundings.as_bytes(), payload];
    if let Err(error) = fields.into_iter().try_for_each(|field| put(&mut bytes, field)) {
        return Asked::NotThere(error.to_string());
    }
    match exchange(&mut stream, &bytes) {
        Ok(true) => Told::read(&mut stream).map_or_else(Asked::Broken, Asked::Told),
        Ok(false) => Asked::NotThere(reason(&mut stream)),
        Err(error) => Asked::Broken(error),
    }
}

/// Reaches the notary of another user, where there is one for this user, else that of the state folder.
fn reach(home: &Home) -> io::Result<(UnixStream, UCred)> {
    if let Some(reached) = home.notary.as_deref().and_then(|path| door::connect_other(path).ok()) {
        return Ok(reached);
    }
    door::connect(&door::socket(home.state().map_err(io::Error::other)?))
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
    let (mut stream, peer) = reach(home)?;
    if !exchange(&mut stream, &[MARK.as_slice(), &[STATUS]].concat())? {
        return Err(io::Error::new(ErrorKind::PermissionDenied, reason(&mut stream)));
    }
    let text = field(&mut stream, MAX_STATUS)?;
    let status: Status = json::from_slice(&text).map_err(io::Error::other)?;
    Ok(Status { process: peer.pid.as_raw_nonzero().get(), ..status })
}

/// Asks a notary about tokens.
pub fn token(home: &Home, request: &Request) -> io::Result<tokens::Told> {
    let (mut stream, _) = reach(home)?;
    let mut bytes = [MARK.as_slice(), &[TOKEN]].concat();
    put(&mut bytes, json::to_canonical(request).as_bytes())?;
    if !exchange(&mut stream, &bytes)? {
        return Err(io::Error::new(ErrorKind::PermissionDenied, reason(&mut stream)));
    }
    json::from_slice(&field(&mut stream, MAX_TOKEN)?).map_err(io::Error::other)
}

/// Puts a whole question and says whether it is answered.
fn exchange(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<bool> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
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

fn reason(stream: &mut UnixStream) -> String {
    let text = field(stream, MAX_STATUS).unwrap_or_default();
    String::from_utf8(text).unwrap_or_default()
}
