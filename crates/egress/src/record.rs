//! What is on record of each connection, and how it gets there.
//!
//! Owns the record's type and the one thread that hands records to the caller's sink. Refuses to go on without a record: a
//! connection is reported as opened before its first byte goes out, and a sink that fails ends every connection. Invariant: a
//! slow sink makes connections wait and loses nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::refusal::Refusal;

/// Records that wait for the sink, at most; then connections wait.
const WAITING: usize = 64;

/// By which road a program asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Road {
    /// CONNECT at the proxy's port.
    Connect,
    /// A request for an absolute URL at the proxy's port.
    Forward,
    /// A connection to an address that stands for a name, TLS.
    Tls,
    /// The same, HTTP in the clear.
    Http,
    /// The same, on a port whose protocol is not read.
    Opaque,
    /// A connection to 127.0.0.1, for a port of the machine's own.
    Loopback,
    /// A question for a name's address.
    Dns,
    /// Past the proxy, where there is no network to keep it from: refused by the kernel.
    Past,
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Allowed; nothing has gone out yet. A record with the same `id` follows when it is over.
    Opened,
    /// Over. Without a refusal both ends ended it.
    Closed,
    /// Never opened.
    Refused,
}

/// A connection, or a question that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    /// Counts up within a run.
    pub id: u64,
    /// Where it stands.
    pub stage: Stage,
    /// How it was asked for.
    pub road: Road,
    /// The host, as the policy compares it; `None` where no one name was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port; 0 where none was given.
    pub port: u16,
    /// The address that was connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// JSON pointer of the rule that allowed the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether its TLS ended here.
    pub terminated: bool,
    /// Requests that were seen.
    pub requests: u64,
    /// Bytes to the host.
    pub bytes_up: u64,
    /// Bytes from the host.
    pub bytes_down: u64,
    /// How long it lasted.
    pub milliseconds: u64,
    /// Names of the secrets that were put in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Why it was refused or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refused>,
    /// Who asked, as [`Whose`] knows it: it is no part of what was seen.
    #[serde(skip)]
    pub asker: Option<u64>,
}

/// Who has a socket with this address of its own; whether it is a stream.
pub type Whose = Arc<dyn Fn(SocketAddr, bool) -> Option<u64> + Send + Sync>;

/// A refusal on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// One word (`spec/egress.md`).
    pub word: String,
    /// The same for people.
    pub text: String,
    /// Whether Writ decided it; else the network or one of its ends failed.
    pub decided: bool,
}

/// A sink that could not keep a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a connection could not be recorded: {0}")]
pub struct SinkError(pub String);

/// Where records go. It runs on a thread of its own and may take its time.
pub type Sink = Box<dyn FnMut(Record) -> Result<(), SinkError> + Send>;

/// What is told to the sink's thread, and where it says that it is kept.
type Message = (Record, oneshot::Sender<()>);

/// Hands records to the sink.
pub struct Reporter {
    sender: mpsc::Sender<Message>,
    next: AtomicU64,
    thread: Mutex<Thread>,
    failed: Arc<AtomicBool>,
    ended: CancellationToken,
}

/// The sink's thread: most runs make no connection, so it starts with the first record.
enum Thread {
    Waiting(Sink, mpsc::Receiver<Message>),
    Running(JoinHandle<Result<(), SinkError>>),
    Gone,
}

impl Reporter {
    /// A reporter whose thread has not begun. When the sink fails, `ended` is cancelled.
    pub fn new(sink: Sink, ended: CancellationToken) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        let thread = Mutex::new(Thread::Waiting(sink, receiver));
        Self { sender, next: AtomicU64::new(1), thread, failed: Arc::default(), ended }
    }

    /// The next connection's number.
    pub fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps a record of what has not begun yet; on return it is kept.
    pub async fn open(&self, record: Record) -> Result<(), Refusal> {
        self.close(record).await?.await.map_err(|_closed| Refusal::Record)
    }

    /// Keeps a record of what is over, once: it is on its way on return. Who has to know waits for it.
    pub async fn close(&self, record: Record) -> Result<oneshot::Receiver<()>, Refusal> {
        self.start();
        if self.failed.load(Ordering::Acquire) {
            return Err(Refusal::Record);
        }
        let (kept, wait) = oneshot::channel();
        self.sender.send((record, kept)).await.map_err(|_closed| Refusal::Record)?;
        Ok(wait)
    }

    fn start(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        *thread = match std::mem::replace(&mut *thread, Thread::Gone) {
            Thread::Waiting(sink, receiver) => {
                let (failed, ended) = (Arc::clone(&self.failed), self.ended.clone());
                let work = move || keep(sink, receiver, &failed, &ended);
                match thread::Builder::new().name("egress-record".to_owned()).spawn(work) {
                    Ok(handle) => Thread::Running(handle),
                    // Its receiver is gone: every record fails from here on.
                    Err(_no_thread) => Thread::Gone,
                }
            }
            other @ (Thread::Running(_) | Thread::Gone) => other,
        };
    }

    /// Ends when every record is kept.
    pub fn finish(self) -> Result<(), SinkError> {
        drop(self.sender);
        match self.thread.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Thread::Waiting(..) => Ok(()),
            Thread::Running(handle) => handle.join().unwrap_or_else(|_panic| Err(SinkError("it panicked".to_owned()))),
            Thread::Gone => Err(SinkError("no thread could be started".to_owned())),
        }
    }
}

/// The sink's thread. After a failure nothing more is taken, and senders see a closed channel.
fn keep(
    mut sink: Sink,
    mut receiver: mpsc::Receiver<Message>,
    failed: &AtomicBool,
    ended: &CancellationToken,
) -> Result<(), SinkError> {
    while let Some((record, kept)) = receiver.blocking_recv() {
        if let Err(error) = sink(record) {
            failed.store(true, Ordering::Release);
            ended.cancel();
            return Err(error);
        }
        // Who asked may have gone meanwhile; the record stands.
        kept.send(()).ok();
    }
    Ok(())
}

/// One connection while it lasts: what its record will say.
#[derive(Debug)]
pub struct Entry {
    begun: Instant,
    record: Mutex<Record>,
    up: AtomicU64,
    down: AtomicU64,
}

impl Entry {
    /// A connection that has just been asked for.
    pub fn new(id: u64, road: Road) -> Self {
        let record = Record {
            id,
            stage: Stage::Refused,
            road,
            host: None,
            port: 0,
            address: None,
            rule: None,
            terminated: false,
            requests: 0,
            bytes_up: 0,
            bytes_down: 0,
            milliseconds: 0,
            secrets: Vec::new(),
            refusal: None,
            asker: None,
        };
        Self { begun: Instant::now(), record: Mutex::new(record), up: AtomicU64::new(0), down: AtomicU64::new(0) }
    }

    /// Changes what the record will say.
    pub fn note<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        change(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts bytes that were passed on.
    pub fn count(&self, up: u64, down: u64) {
        self.up.fetch_add(up, Ordering::Relaxed);
        self.down.fetch_add(down, Ordering::Relaxed);
    }

    /// The record as it stands.
    pub fn record(&self) -> Record {
        let mut record = self.note(|record| record.clone());
        record.bytes_up = self.up.load(Ordering::Relaxed);
        record.bytes_down = self.down.load(Ordering::Relaxed);
        record.milliseconds = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        record
    }

    /// The last record, with why it ended.
    pub fn last(&self, end: &Result<(), Refusal>) -> Record {
        let mut record = self.record();
        if record.stage == Stage::Opened || end.is_ok() {
            record.stage = Stage::Closed;
        }
        match end {
            Ok(()) => record.refusal = None,
            // The first reason stands: the run may end before it is handed over.
            Err(refusal) => {
                let first = self.note(|record| record.refusal.get_or_insert_with(|| refused(refusal)).clone());
                record.refusal = Some(first);
            }
        }
        record
    }
}

fn refused(refusal: &Refusal) -> Refused {
    Refused { word: refusal.word().to_owned(), text: refusal.to_string(), decided: refusal.is_decision() }
}
