//! A pool of threads that read the archive: the registry, and attestations by their id.
//!
//! Owns threads with a connection each, so that no read waits for a signature. The registry is kept in memory and read again when its
//! version moved or a rotation is due. Invariant: an id is only ever a key in the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use axum::body::Bytes;
use tokio::sync::{mpsc, oneshot};
use writ_core::{Digest, Timestamp, json};
use writ_engine::attest::archive::Archive;
use writ_engine::attest::issuer::IssuerError;
use writ_evidence::registry::{KeyState, Registry};

use super::error::ApiError;
use super::telemetry::Metrics;

/// Most reads that wait for one thread.
const WAITING: usize = 1024;

/// The registry as it goes out.
#[derive(Debug)]
pub struct PublishedRegistry {
    registry: Registry,
    /// The document.
    pub body: Bytes,
    /// Its tag.
    pub tag: String,
}

/// An attestation as it was found.
#[derive(Debug)]
pub struct Found {
    /// Its document.
    pub document: String,
    /// What its key may be used for now.
    pub key: Option<KeyState>,
}

enum Query {
    Registry(oneshot::Sender<Option<Option<Arc<PublishedRegistry>>>>),
    Find(String, oneshot::Sender<Option<Option<Found>>>),
}

/// Where reads wait.
#[derive(Clone)]
pub struct ArchivePool {
    threads: Arc<[mpsc::Sender<Query>]>,
    next: Arc<AtomicUsize>,
}

impl ArchivePool {
    /// Starts a thread for each archive. They end when the last pool is dropped.
    pub fn open(archives: Vec<Archive>, metrics: &Metrics) -> std::io::Result<(Self, Vec<JoinHandle<()>>)> {
        let (mut threads, mut handles) = (Vec::new(), Vec::new());
        for archive in archives {
            let (sender, queries) = mpsc::channel(WAITING);
            let source = Source { archive, published: None, metrics: metrics.clone() };
            let thread = std::thread::Builder::new().name("writ-reader".to_owned());
            handles.push(thread.spawn(move || work(source, queries))?);
            threads.push(sender);
        }
        Ok((Self { threads: threads.into(), next: Arc::default() }, handles))
    }

    /// The registry now, if there is one.
    pub async fn registry(&self) -> Result<Option<Arc<PublishedRegistry>>, ApiError> {
        let (answer, published) = oneshot::channel();
        self.send(Query::Registry(answer))?;
        published.await.ok().flatten().ok_or(ApiError::Unavailable)
    }

    /// An attestation by its id.
    pub async fn find(&self, id: &str) -> Result<Option<Found>, ApiError> {
        let (answer, found) = oneshot::channel();
        self.send(Query::Find(id.to_owned(), answer))?;
        found.await.ok().flatten().ok_or(ApiError::Unavailable)
    }

    fn send(&self, query: Query) -> Result<(), ApiError> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed).checked_rem(self.threads.len()).unwrap_or(0);
        let thread = self.threads.get(turn).ok_or(ApiError::Unavailable)?;
        thread.try_send(query).map_err(|_full| ApiError::Busy)
    }
}

impl PublishedRegistry {
    /// Whether a key may sign now.
    pub fn signs(&self) -> bool {
        self.registry.signing(Timestamp::now()).is_some()
    }

    /// Its version.
    pub const fn version(&self) -> u64 {
        self.registry.version()
    }
}

struct Source {
    archive: Archive,
    published: Option<Arc<PublishedRegistry>>,
    metrics: Metrics,
}

impl Source {
    fn registry(&mut self) -> Result<Option<Arc<PublishedRegistry>>, IssuerError> {
        let now = Timestamp::now();
        let version = self.archive.version()?;
        let fresh = |known: &&Arc<PublishedRegistry>| known.version() == version && known.registry.due(now).is_none();
        if let Some(known) = self.published.as_ref().filter(fresh) {
            return Ok(Some(Arc::clone(known)));
        }
        self.published = self.archive.registry(now)?.map(|registry| {
            let body = json::to_compact(&registry);
            let tag = format!("\"{}-{}\"", registry.version(), Digest::of(body.as_bytes()).hex().split_at(16).0);
            self.metrics.registry(registry.version());
            Arc::new(PublishedRegistry { registry, body: body.into(), tag })
        });
        Ok(self.published.clone())
    }

    fn find(&mut self, id: &str) -> Result<Option<Found>, IssuerError> {
        let Some(record) = self.archive.find(id)? else { return Ok(None) };
        let registry = self.registry()?;
        let key = registry.and_then(|published| Some(published.registry.key(&record.key_id)?.state));
        Ok(Some(Found { document: record.document, key }))
    }
}

fn work(mut source: Source, mut queries: mpsc::Receiver<Query>) {
    while let Some(query) = queries.blocking_recv() {
        // A connection that was lost is found out by the first try and made anew by the second.
        match query {
            Query::Registry(answer) => {
                let read = source.registry().or_else(|_lost| source.registry());
                drop(answer.send(logged(read)));
            }
            Query::Find(id, answer) => {
                let read = source.find(&id).or_else(|_lost| source.find(&id));
                drop(answer.send(logged(read)));
            }
        }
    }
}

fn logged<T>(read: Result<T, IssuerError>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!(event = "unavailable", why = error.to_string())).ok()
}
