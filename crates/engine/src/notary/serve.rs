//! The notary's side: threads that take questions and answer them.
//!
//! Owns the process while it serves; every answer is [`crate::hook`]'s. Refuses strangers before it reads what they ask. Invariant: it keeps
//! nothing between two calls that the ledger does not hold, so that its death at any moment loses nothing that was answered.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, thread};

use rustix::fs::{Gid, Uid, chown};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Resource, Rlimit, setrlimit};
use writ_clients::Client;
use writ_core::json;
use writ_core::{Custody, Timestamp};
use writ_evidence::keys;
use writ_store::{Store, StoreError};

use super::ask::{self, ANSWERED, HOOK, MARK, NOT_HERE, STATUS, Status};
use super::tokens::Tokens;
use super::{Surroundings, door};
use crate::hook::wire::{MAX_BYTES, Told, field, put};
use crate::keeper::{Keeper, KeeperError};
use crate::{Asker, Home, NoStateDir, hook};

/// Calls that are answered at a time; the others wait in the socket's queue, in their order.
const WORKERS: usize = 32;
/// How long whoever asks may take to say what.
const PATIENCE: Duration = Duration::from_secs(5);
/// The file that holds the token of hooks over HTTP.
pub const TOKEN: &str = "notary.token";
/// Longest token.
const MAX_TOKEN: u64 = 4096;
/// Longest name of a client.
const MAX_NAME: u32 = 256;
/// Longest telling of surroundings.
const MAX_SURROUNDINGS: u32 = 1 << 20;

/// Why there is no notary.
#[derive(Debug, thiserror::Error)]
pub enum NotaryError {
    /// There is nowhere for it.
    #[error(transparent)]
    NoStateDir(#[from] NoStateDir),
    /// The state folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another one has the folder.
    #[error("a notary of {} is running already: `writ notary status`", state.display())]
    Running {
        /// The state folder.
        state: PathBuf,
    },
    /// It has no key.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// It would be the user that it is to be kept from.
    #[error("the notary's user {uid} has to be neither root nor the user {of} that it is for")]
    SameUser {
        /// The notary's.
        uid: u32,
        /// Whose hooks ask.
        of: u32,
    },
    /// Nothing keeps a key so.
    #[error("there is no notary in custody `{custody}` yet")]
    Custody {
        /// How.
        custody: Custody,
    },
    /// The system does not let it.
    #[error("cannot {what}: {source}")]
    Io {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

fn io(what: &'static str) -> impl FnOnce(io::Error) -> NotaryError {
    move |source| NotaryError::Io { what, source }
}

/// A notary that is one user and for another.
#[derive(Clone, Debug)]
pub struct Other {
    /// The notary's user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The user whose hooks ask.
    pub of: u32,
    /// Where they ask.
    pub socket: PathBuf,
}

/// Takes the state folder.
fn take(home: &Home) -> Result<(PathBuf, File), NotaryError> {
    let state = home.state()?.to_owned();
    match Store::open(state.clone())?.try_lock(door::LOCK)? {
        Some(lock) => Ok((state, lock)),
        None => Err(NotaryError::Running { state }),
    }
}

/// Closes the process to others of the same user.
fn close() -> Result<(), NotaryError> {
    writ_sandbox::close_to_others().map_err(io("close the process to others"))?;
    let no_core = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, no_core).map_err(|error| io("forbid core files")(error.into()))
}

/// A notary that can be asked. It answers once it [serves](Self::serve).
pub struct Notary {
    home: Home,
    listener: UnixListener,
    since: Timestamp,
    answered: AtomicU64,
    state: PathBuf,
    tokens: Tokens,
    socket: PathBuf,
    /// The user that it is for, where that is another than its own.
    of: Option<u32>,
    /// Held as long as it lives.
    _lock: File,
}

impl Notary {
    /// Takes the state folder, closes the process to others of the same user, makes its key, and listens.
    pub fn open(mut home: Home, custody: Custody) -> Result<Self, NotaryError> {
        let (state, lock) = take(&home)?;
        close()?;
        home.keeper = match custody {
            Custody::File => None,
            Custody::ProcessMemory => Some(Arc::new(Keeper::in_memory()?)),
            Custody::Pkcs11 | Custody::OtherUser => return Err(NotaryError::Custody { custody }),
        };
        let socket = door::socket(&state);
        let listener = door::bind(&socket).map_err(io("listen"))?;
        Ok(Self {
            home,
            listener,
            since: Timestamp::now(),
            answered: AtomicU64::new(0),
            state,
            socket,
            of: None,
            tokens: Tokens::new().map_err(KeeperError::Key)?,
            _lock: lock,
        })
    }

    /// The same for another user, as a user of its own. For root, in a process with one thread.
    pub fn open_for(mut home: Home, other: &Other) -> Result<Self, NotaryError> {
        if other.uid == 0 || other.uid == other.of {
            return Err(NotaryError::SameUser { uid: other.uid, of: other.of });
        }
        let (state, lock) = take(&home)?;
        let (uid, gid) = (Some(Uid::from_raw(other.uid)), Some(Gid::from_raw(other.gid)));
        chown(&state, uid, gid).map_err(|error| io("give the state folder to the notary's user")(error.into()))?;
        let listener = door::bind_for(&other.socket, other.of).map_err(io("listen"))?;
        writ_sandbox::become_reader(other.uid, other.gid).map_err(io("become the notary's user"))?;
        close()?;
        let key = Store::open(state.clone())?.ledger_key()?;
        home.keeper = Some(Arc::new(Keeper::of_other_user(key)));
        let (since, answered, socket) = (Timestamp::now(), AtomicU64::new(0), other.socket.clone());
        let tokens = Tokens::new().map_err(KeeperError::Key)?;
        Ok(Self { home, listener, since, answered, state, tokens, socket, of: Some(other.of), _lock: lock })
    }

    /// The token that hooks show that come over HTTP; made where there is none, in a file of the owner's alone.
    pub fn token(&self) -> Result<String, NotaryError> {
        let path = self.state.join(TOKEN);
        match writ_store::regular_file::text(&path, MAX_TOKEN) {
            Ok(text) => return Ok(text.trim().to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(io("read the token")(error)),
        }
        let random = keys::random().map_err(KeeperError::Key)?;
        let token = format!("{random:032x}");
        Store::open(self.state.clone())?.keep(TOKEN, token.as_bytes())?;
        Ok(token)
    }

    /// Answers a hook that did not say where it runs: with what the notary's own environment says.
    pub fn posted(&self, client: &'static dyn Client, payload: &[u8]) -> String {
        let home = Home { asker: Asker::Unknown, ..self.home.clone() };
        let answer = hook::answer(payload, client, &home, Path::new("/"));
        self.answered.fetch_add(1, Ordering::Relaxed);
        client.render(&answer)
    }

    /// Answers until the process ends.
    pub fn serve(self: Arc<Self>) -> Result<(), NotaryError> {
        let start = |number: usize| {
            let notary = Arc::clone(&self);
            let work = move || notary.work();
            thread::Builder::new().name(format!("notary-{number}")).spawn(work).map_err(io("start a thread"))
        };
        let workers = (0..WORKERS).map(start).collect::<Result<Vec<_>, _>>()?;
        workers.into_iter().for_each(|worker| drop(worker.join()));
        Ok(())
    }

    fn work(&self) {
        loop {
            match self.listener.accept() {
                // Whoever asked and is gone wants no answer.
                Ok((stream, _)) => drop(self.answer(stream)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        if let Some(why) = door::stranger(&stream, self.of) {
            return not_here(&mut stream, &why);
        }
        let mut begin = [0; MARK.len() + 1];
        stream.read_exact(&mut begin)?;
        let Some((kind, mark)) = begin.split_last() else { return Ok(()) };
        match (mark == MARK, *kind) {
            (true, HOOK) => self.hook(&mut stream),
            (true, STATUS) => self.status(&mut stream),
            (true, ask::TOKEN) => self.token_asked(&mut stream),
            (true | false, _) => not_here(&mut stream, "the notary is of another version"),
        }
    }

    fn hook(&self, stream: &mut UnixStream) -> io::Result<()> {
        let client = String::from_utf8(field(stream, MAX_NAME)?).map_err(io::Error::other)?;
        let surroundings = field(stream, MAX_SURROUNDINGS)?;
        let payload = field(stream, MAX_BYTES)?;
        let Some(client) = writ_clients::named(&client) else {
            return not_here(stream, "the notary does not know this client");
        };
        let surroundings: Surroundings = match json::from_slice(&surroundings) {
            Ok(read) => read,
            Err(error) => return not_here(stream, &format!("surroundings cannot be read: {error}")),
        };
        let cwd = surroundings.cwd.clone();
        let asker = socket_peercred(&*stream)?.pid.as_raw_nonzero().get();
        let asker = u32::try_from(asker).map_or(Asker::Unknown, Asker::Process);
        let home = Home { asker, ..surroundings.home(&self.home) };
        let answer = hook::answer(&payload, client, &home, &cwd);
        let told = Told { text: client.render(&answer).into_bytes(), notes: answer.notes.join("\n").into_bytes() };
        let mut bytes = vec![ANSWERED];
        told.put(&mut bytes)?;
        self.answered.fetch_add(1, Ordering::Relaxed);
        stream.write_all(&bytes)
    }

    fn token_asked(&self, stream: &mut UnixStream) -> io::Result<()> {
        let request = field(stream, ask::MAX_TOKEN)?;
        let told = match json::from_slice(&request) {
            Ok(request) => self.tokens.answer(request, &self.home),
            Err(error) => return not_here(stream, &format!("what is asked about tokens cannot be read: {error}")),
        };
        let mut bytes = vec![ANSWERED];
        put(&mut bytes, json::to_canonical(&told).as_bytes())?;
        stream.write_all(&bytes)
    }

    fn status(&self, stream: &mut UnixStream) -> io::Result<()> {
        let status = Status {
            process: i32::try_from(std::process::id()).unwrap_or_default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: self.state.clone(),
            since: self.since.to_string(),
            answered: self.answered.load(Ordering::Relaxed),
            custody: self.home.keeper.as_ref().map(|keeper| keeper.custody()).unwrap_or_default(),
            key: self.home.keeper.as_ref().map(|keeper| keeper.id()),
        };
        let mut bytes = vec![ANSWERED];
        put(&mut bytes, json::to_canonical(&status).as_bytes())?;
        stream.write_all(&bytes)
    }
}

impl Drop for Notary {
    fn drop(&mut self) {
        // A name that nobody answers is as good as none.
        fs::remove_file(&self.socket).unwrap_or_default();
    }
}

/// Tells whoever asks to decide by itself.
fn not_here(stream: &mut UnixStream, why: &str) -> io::Result<()> {
    let mut bytes = vec![NOT_HERE];
    put(&mut bytes, why.as_bytes())?;
    stream.write_all(&bytes)
}
