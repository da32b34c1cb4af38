//! Steps, and what others say of them, where a notary signs for the session.
//!
//! Owns both sides of that question. The notary takes the digests of what goes in and comes out, and the time, itself; that the command ran and
//! how it ended it is told by the process that ran it, and says so. Refuses another program than Writ's own, where the kernel tells which it
//! is. Invariant: nothing is signed as observed that another process told. Page: `spec/notary.md`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{SessionId, secret::hide};
use writ_evidence::keys::PublicKey;
use writ_store::Store;

use super::ask::{ANSWERED, ATTEST, MARK, exchange, reach, reason};
use super::door;
use crate::Home;
use crate::hook::wire::{MAX_BYTES, field, put};
use crate::session::statements::Attested;
use crate::steps::imported::{self, ImportError, Imported};
use crate::steps::{self, Ran, Reported, ReportedError, Step, StepError};

/// Longest question.
pub const MAX_REQUEST: u32 = MAX_BYTES;
/// Longest word that a step has ended.
const MAX_ENDED: u32 = 1024;
/// How long whoever asks waits: many files may be looked at.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most steps that run at a time.
const RUNNING: usize = 64;

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// What is wanted.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Request {
    /// A step begins.
    #[serde(rename_all = "camelCase")]
    Step {
        session: String,
        name: String,
        command: Vec<String>,
        materials: Vec<PathBuf>,
        products: Vec<PathBuf>,
        cwd: PathBuf,
    },
    /// An agent's word.
    #[serde(rename_all = "camelCase")]
    Said { session: String, name: String, kind: String, predicate: Value, products: Vec<PathBuf>, cwd: PathBuf },
    /// A statement that somebody else signed.
    #[serde(rename_all = "camelCase")]
    Import { session: String, envelope: String, keys: Vec<String>, name: Option<String> },
}

/// What comes of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Told {
    /// What goes into the step is known: its command may run.
    Begun,
    /// It is signed and on record.
    Attested(Attested),
    /// The same of somebody else's.
    Imported(Attested, Imported),
    /// It is not, and why.
    Refused(String),
}

/// That a step's command has ended.
#[derive(Serialize, Deserialize)]
struct Ended {
    code: i32,
}

/// A step whose command is about to run.
pub enum Begun<'a> {
    /// This process signs.
    Here(steps::Begun<'a>),
    /// A notary does, at the other end.
    Notary(UnixStream),
}

impl<'a> Begun<'a> {
    /// Has what goes in looked at by whoever signs for the session. What would not be attested in the end does not begin.
    pub fn of(store: &'a Store, id: &'a SessionId, home: &'a Home, step: &'a Step) -> Result<Self, StepError> {
        steps::named(&step.name)?;
        if !signs(store, id, home)? {
            return steps::Begun::of(store, id, home, step).map(Self::Here);
        }
        let request = Request::Step {
            session: id.as_str().to_owned(),
            name: step.name.clone(),
            command: step.command.iter().map(|word| hide(&word.to_string_lossy())).collect(),
            materials: step.materials.clone(),
            products: step.products.clone(),
            cwd: step.cwd.clone(),
        };
        match ask(home, &request)? {
            (stream, Told::Begun) => Ok(Self::Notary(stream)),
            (_, told) => Err(unexpected(told)),
        }
    }

    /// Has it attested: its command has ended with this code.
    pub fn ended(self, code: i32) -> Result<Attested, StepError> {
        let mut stream = match self {
            Self::Here(begun) => return begun.ended(code),
            Self::Notary(stream) => stream,
        };
        let mut bytes = Vec::new();
        let sent = put(&mut bytes, json::to_canonical(&Ended { code }).as_bytes());
        let sent = sent.and_then(|()| io::Write::write_all(&mut stream, &bytes));
        match sent.and_then(|()| told(&mut stream)).map_err(|error| StepError::Notary(error.to_string()))? {
            Told::Attested(attested) => Ok(attested),
            told => Err(unexpected(told)),
        }
    }
}

/// Runs a step of a session, and has it attested.
pub fn run(store: &Store, id: &SessionId, home: &Home, step: &Step) -> Result<Ran, StepError> {
    let begun = Begun::of(store, id, home, step)?;
    let code = steps::execute(step)?;
    Ok(Ran { code, attested: begun.ended(code)? })
}

/// Has what an agent says signed, as its word, by whoever signs for the session.
pub fn sign(store: &Store, id: &SessionId, home: &Home, said: &Reported<'_>) -> Result<Attested, ReportedError> {
    if !signs(store, id, home)? {
        return steps::sign(store, id, home, said);
    }
    let request = Request::Said {
        session: id.as_str().to_owned(),
        name: said.name.to_owned(),
        kind: said.kind.to_owned(),
        predicate: said.predicate.clone(),
        products: said.products.clone(),
        cwd: said.cwd.to_owned(),
    };
    match ask(home, &request)? {
        (_, Told::Attested(attested)) => Ok(attested),
        (_, told) => Err(unexpected(told).into()),
    }
}

/// Has a statement of somebody else's taken into the record by whoever signs for the session.
pub fn import(
    store: &Store,
    id: &SessionId,
    home: &Home,
    bytes: &[u8],
    keys: &[PublicKey],
    name: Option<&str>,
) -> Result<(Attested, Imported), ImportError> {
    if !signs(store, id, home)? {
        return imported::import(store, id, home, bytes, keys, name);
    }
    let request = Request::Import {
        session: id.as_str().to_owned(),
        envelope: BASE64.encode(bytes),
        keys: keys.iter().map(|key| BASE64.encode(key.to_der())).collect(),
        name: name.map(str::to_owned),
    };
    match ask(home, &request)? {
        (_, Told::Imported(attested, imported)) => Ok((attested, imported)),
        (_, told) => Err(unexpected(told).into()),
    }
}

/// Whether a notary signs for a session, and this process is none: that of another user has its record, or it says so itself.
fn signs(store: &Store, id: &SessionId, home: &Home) -> Result<bool, StepError> {
    let other = home.keeper.is_none() && !store.exists(id) && is_another_users(home);
    if other { Ok(true) } else { steps::is_a_notarys(store, id, home) }
}

/// Whether the notary of another user answers for this one, and so has the records.
pub fn is_another_users(home: &Home) -> bool {
    home.notary.as_deref().is_some_and(|path| door::connect_other(path).is_ok())
}

fn unexpected(told: Told) -> StepError {
    match told {
        Told::Refused(why) => StepError::Refused(why),
        Told::Begun | Told::Attested(_) | Told::Imported(..) => {
            StepError::Notary("it answers something else".to_owned())
        }
    }
}

fn ask(home: &Home, request: &Request) -> Result<(UnixStream, Told), StepError> {
    let put_question = || -> io::Result<(UnixStream, Told)> {
        let (mut stream, ..) = reach(home)?;
        let mut bytes = [MARK.as_slice(), &[ATTEST]].concat();
        put(&mut bytes, json::to_canonical(request).as_bytes())?;
        if !exchange(&mut stream, &bytes, PATIENCE)? {
            return Err(io::Error::new(ErrorKind::PermissionDenied, reason(&mut stream)));
        }
        let answer = answer(&mut stream)?;
        Ok((stream, answer))
    };
    put_question().map_err(|error| StepError::Notary(error.to_string()))
}

fn answer(stream: &mut UnixStream) -> io::Result<Told> {
    json::from_slice(&field(stream, MAX_BYTES)?).map_err(io::Error::other)
}

/// The second answer on a connection.
fn told(stream: &mut UnixStream) -> io::Result<Told> {
    let mut first = [0];
    io::Read::read_exact(stream, &mut first)?;
    if first == [ANSWERED] { answer(stream) } else { Err(io::Error::new(ErrorKind::InvalidData, "it is no notary")) }
}

/// The notary's side: answers a question of this kind. `own` says that whoever asks is of the notary's own user, so that the kernel tells which
/// program it is.
pub fn serve(request: &[u8], stream: &mut UnixStream, home: &Home, own: bool) -> io::Result<()> {
    let told = match json::from_slice(request) {
        Ok(Request::Step { session, name, command, materials, products, cwd }) => {
            let command = command.into_iter().map(OsString::from).collect();
            return step(
                stream,
                home,
                own,
                &SessionId::new(session),
                &Step { name, command, materials, products, cwd },
            );
        }
        Ok(Request::Said { session, name, kind, predicate, products, cwd }) => {
            let said = Reported { name: &name, kind: &kind, predicate: &predicate, products, cwd: &cwd };
            let signed = store(home).and_then(|store| {
                steps::sign(&store, &SessionId::new(session), home, &said).map_err(|error| error.to_string())
            });
            signed.map_or_else(Told::Refused, Told::Attested)
        }
        Ok(Request::Import { session, envelope, keys, name }) => {
            let session = SessionId::new(session);
            let taken = taken(home, &session, &envelope, &keys, name.as_deref());
            taken.map_or_else(Told::Refused, |(attested, imported)| Told::Imported(attested, imported))
        }
        Err(error) => Told::Refused(format!("what is to be attested cannot be read: {error}")),
    };
    tell(stream, &told)
}

fn store(home: &Home) -> Result<Store, String> {
    let state = home.state().map_err(|error| error.to_string())?;
    Store::open(state.to_owned()).map_err(|error| error.to_string())
}

fn taken(
    home: &Home,
    session: &SessionId,
    envelope: &str,
    keys: &[String],
    name: Option<&str>,
) -> Result<(Attested, Imported), String> {
    let bytes = BASE64.decode(envelope).map_err(|error| error.to_string())?;
    let read = |key: &String| PublicKey::from_der(&BASE64.decode(key).ok()?).ok();
    let keys: Vec<PublicKey> = keys.iter().filter_map(read).collect();
    imported::import(&store(home)?, session, home, &bytes, &keys, name).map_err(|error| error.to_string())
}

/// A step from its beginning to its end, over one connection. A process that goes before it says how it ended leaves nothing.
fn step(stream: &mut UnixStream, home: &Home, own: bool, session: &SessionId, step: &Step) -> io::Result<()> {
    let open = Running::begin();
    let refused = |why: String| Told::Refused(why);
    if open.is_none() {
        return tell(stream, &refused(format!("{RUNNING} steps are running already")));
    }
    if own && !is_own_program(stream, home) {
        return tell(stream, &refused("only Writ's own program tells the notary of a step".to_owned()));
    }
    let store = match store(home) {
        Ok(store) => store,
        Err(why) => return tell(stream, &refused(why)),
    };
    let begun = match steps::Begun::told(&store, session, home, step) {
        Ok(begun) => begun,
        Err(error) => return tell(stream, &refused(error.to_string())),
    };
    tell(stream, &Told::Begun)?;
    // It takes as long as it takes.
    stream.set_read_timeout(None)?;
    let Ended { code } = json::from_slice(&field(stream, MAX_ENDED)?).map_err(io::Error::other)?;
    let attested = begun.ended(code);
    tell(stream, &attested.map_or_else(|error| refused(error.to_string()), Told::Attested))
}

fn tell(stream: &mut UnixStream, told: &Told) -> io::Result<()> {
    let mut bytes = vec![ANSWERED];
    put(&mut bytes, json::to_canonical(told).as_bytes())?;
    io::Write::write_all(stream, &bytes)
}

/// Whether the process at the other end runs this very program, as the kernel tells.
fn is_own_program(stream: &UnixStream, home: &Home) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let asker = door::asker(stream).ok().and_then(|asker| asker.id());
    let theirs = asker.and_then(|process| file(Path::new(&format!("/proc/{process}/exe"))));
    theirs.is_some() && theirs == home.program.as_deref().and_then(file)
}

/// One of the steps that run.
struct Running;

impl Running {
    fn begin() -> Option<Self> {
        let place = Self;
        (OPEN.fetch_add(1, Ordering::Relaxed) < RUNNING).then_some(place)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}
