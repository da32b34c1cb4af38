//! The notary's side: threads that take questions and answer them.
//!
//! Owns the process while it serves; every answer is [`crate::hook`]'s. Refuses strangers before it reads what they ask. Invariant: it keeps
//! nothing between two calls that the ledger does not hold, so that its death at any moment loses nothing that was answered.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::{Gid, Uid, chown};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_name;
use writ_clients::Client;
use writ_core::json;
use writ_core::regular_file::{self, Reader};
use writ_core::{Answer, Reply, Timestamp};
use writ_evidence::keys;
use writ_store::{Store, StoreError};

use super::ask::{self, ANSWERED, EVENT, HOOK, Happened, MARK, NOT_HERE, STATUS, Status};
use super::tokens::Tokens;
use super::{Surroundings, attest, door, late};
use crate::hook::wire::{MAX_BYTES, field, put};
use crate::keeper::{self, Keeper, KeeperError, TokenKey};
use crate::procfs::Proc;
use crate::{Asker, Home, NoStateDir, hook};

/// Most connections at a time; one more is closed, and its hook denies.
const CONNECTIONS: usize = 512;
/// Threads that go on waiting when there is nothing to do; others end.
const IDLE: usize = 8;
/// How long whoever asks may take to say what, in all, and to take the answer.
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
    /// Another process could read the key.
    #[error("another process traces this one: a key here would be known to it")]
    Traced,
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

/// Where a notary's key is. It is not shown: a PIN is in it.
pub enum Key {
    /// In the machine's file.
    File,
    /// In the memory of its process: a new one.
    Memory,
    /// In a token.
    Token {
        /// Where.
        place: keeper::Place,
        /// What the token asks for.
        pin: String,
    },
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
    /// That user's groups.
    pub groups: Vec<u32>,
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

/// Closes the process to others of the same user, and makes room for all connections.
fn close() -> Result<(), NotaryError> {
    writ_sandbox::close_to_others().map_err(io("close the process to others"))?;
    // Begun from a copy in memory, it is listed under that one's name. A name is for people alone.
    set_name(c"writ").unwrap_or_default();
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).map_err(|error| io("have files open")(error.into()))?;
    let status = Proc::open().and_then(|proc| proc.text(format!("{}/status", std::process::id())));
    let status = status.map_err(io("see whether it is traced"))?;
    if status.lines().find_map(|line| line.strip_prefix("TracerPid:")).is_none_or(|tracer| tracer.trim() != "0") {
        return Err(NotaryError::Traced);
    }
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
    pub fn open(mut home: Home, key: Key) -> Result<Self, NotaryError> {
        let (state, lock) = take(&home)?;
        close()?;
        home.keeper = match key {
            Key::File => None,
            Key::Memory => Some(Arc::new(Keeper::in_memory()?)),
            Key::Token { place, pin } => {
                let key = TokenKey::open(place, pin, &home.search).map_err(KeeperError::from)?;
                Some(Arc::new(Keeper::in_token(key)))
            }
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
        // It may read every file, and is to read none but what its user may.
        regular_file::read_only_for(Reader { uid: other.of, groups: other.groups.clone(), own: state.clone() });
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

    /// Answers a hook that did not say where it runs: with what the notary's own environment says. `process` is the one that posted it, where that is known.
    pub fn posted(&self, client: &'static dyn Client, payload: &[u8], process: Option<u32>) -> String {
        let home = Home { asker: process.map_or(Asker::Unknown, Asker::Client), ..self.home.clone() };
        self.answered.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = client.parse(payload) {
            // Where it happens is not known either, so that nothing shows that no policy governs there.
            let answer = hook::answer(payload, client, &home, Path::new("/"));
            let silent = answer.reply == Reply::Silent;
            let why = format!("writ denies what it cannot read: {error}");
            let answer = if silent { Answer::refuse(client.hints(payload).event.as_deref(), &why) } else { answer };
            return client.render(&answer);
        }
        client.render(&hook::answer(payload, client, &home, Path::new("/")))
    }

    /// Answers until the process ends: as many connections at a time as there are threads, so that a slow one keeps nobody waiting.
    pub fn serve(self: Arc<Self>) -> Result<(), NotaryError> {
        self.one_more(&Arc::new(Threads::default())).map_err(io("start a thread"))?;
        loop {
            thread::park();
        }
    }

    /// Takes connections and answers them, until enough other threads wait for the next. One that may have had a key on its stack takes no
    /// other: its stack goes with it.
    fn take(self: &Arc<Self>, threads: &Arc<Threads>) {
        let idle = if self.home.keeper.is_some() { 0 } else { IDLE };
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => {
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
            };
            if threads.waiting.fetch_sub(1, Ordering::SeqCst) == 1 && self.one_more(threads).is_err() {
                // Without a thread that waits the connection is closed, and its hook denies; the next may have one again.
                threads.waiting.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            // Whoever asked and is gone wants no answer.
            drop(self.answer(stream));
            let few = |waiting| (waiting < idle).then_some(waiting + 1);
            if threads.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, few).is_err() {
                return;
            }
        }
    }

    /// Starts a thread that waits, unless there are as many as there may be.
    fn one_more(self: &Arc<Self>, threads: &Arc<Threads>) -> io::Result<()> {
        let place = Place::take(threads).ok_or(ErrorKind::WouldBlock)?;
        let notary = Arc::clone(self);
        threads.waiting.fetch_add(1, Ordering::SeqCst);
        let started = thread::Builder::new().name("notary".to_owned()).spawn(move || notary.take(&place.0));
        if started.is_err() {
            threads.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        started.map(drop)
    }

    fn answer(&self, stream: UnixStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut question = BufReader::new(Timed { stream, until: Instant::now() + PATIENCE });
        if let Some(why) = door::stranger(&question.get_ref().stream, self.of) {
            return not_here(&mut question.get_mut().stream, &why);
        }
        let mut begin = [0; MARK.len() + 1];
        question.read_exact(&mut begin)?;
        let Some((kind, mark)) = begin.split_last() else { return Ok(()) };
        match (mark == MARK, *kind) {
            (true, HOOK | EVENT) => self.hook(&mut question, *kind),
            (true, STATUS) => self.status(&mut question.get_mut().stream),
            (true, ask::TOKEN) => self.token_asked(&mut question),
            (true, ask::SEAL) => {
                let told = late::serve(&mut question, &self.home)?;
                question.get_mut().stream.write_all(&told)
            }
            (true, ask::ATTEST) => {
                let request = field(&mut question, attest::MAX_REQUEST)?;
                if !question.buffer().is_empty() {
                    // What comes after is said in answer to what is said here.
                    return Err(ErrorKind::InvalidData.into());
                }
                attest::serve(&request, &mut question.get_mut().stream, &self.home, self.of.is_none())
            }
            (true | false, _) => not_here(&mut question.get_mut().stream, "the notary is of another version"),
        }
    }

    fn hook(&self, question: &mut Question, kind: u8) -> io::Result<()> {
        let client = String::from_utf8(field(question, MAX_NAME)?).map_err(io::Error::other)?;
        let surroundings = field(question, MAX_SURROUNDINGS)?;
        let payload = field(question, MAX_BYTES)?;
        let stream = &mut question.get_mut().stream;
        let Some(client) = writ_clients::named(&client) else {
            return not_here(stream, "the notary does not know this client");
        };
        let surroundings: Surroundings = match json::from_slice(&surroundings) {
            Ok(read) => read,
            Err(error) => return not_here(stream, &format!("surroundings cannot be read: {error}")),
        };
        let cwd = surroundings.cwd.clone();
        let asker = door::asker(stream)?;
        let home = Home { asker, ..surroundings.home(&self.home) };
        let answer = if kind == EVENT {
            let happened: Happened = match json::from_slice(&payload) {
                Ok(happened) => happened,
                Err(error) => return not_here(stream, &format!("what happened cannot be read: {error}")),
            };
            let (event, redefined) = happened.event(client);
            hook::event(event, &home, redefined)
        } else {
            hook::answer(&payload, client, &home, &cwd)
        };
        let mut bytes = vec![ANSWERED];
        put(&mut bytes, json::to_canonical(&answer).as_bytes())?;
        self.answered.fetch_add(1, Ordering::Relaxed);
        stream.write_all(&bytes)
    }

    fn token_asked(&self, question: &mut Question) -> io::Result<()> {
        let request = field(question, ask::MAX_TOKEN)?;
        let stream = &mut question.get_mut().stream;
        let told = match json::from_slice(&request) {
            Ok(request) => self.tokens.answer(request, &self.home, door::asker(stream)?),
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

/// The threads that answer.
#[derive(Default)]
struct Threads {
    all: AtomicUsize,
    /// Those that wait for a connection. While any of them answers, another waits.
    waiting: AtomicUsize,
}

/// One of the threads; it counts until this is dropped, in a thread that panics too.
struct Place(Arc<Threads>);

impl Place {
    /// None where there are as many as there may be.
    fn take(threads: &Arc<Threads>) -> Option<Self> {
        let place = Self(Arc::clone(threads));
        (threads.all.fetch_add(1, Ordering::Relaxed) <= CONNECTIONS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A question that is being put. Most come in one piece.
type Question = BufReader<Timed>;

/// Its stream. All of it has to be there in time, however it is cut into pieces.
struct Timed {
    stream: UnixStream,
    until: Instant,
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

/// Tells whoever asks to decide by itself.
fn not_here(stream: &mut UnixStream, why: &str) -> io::Result<()> {
    let mut bytes = vec![NOT_HERE];
    put(&mut bytes, why.as_bytes())?;
    stream.write_all(&bytes)
}
