//! Connections to hosts that wait for their next request.
//!
//! Owns the pool. Refuses a connection on which anything came unasked, or that was closed meanwhile. Invariant: one that waits
//! was opened to this host and port, with this kind of TLS, and its last answer was read to the end.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};

use super::wire::Wire;
use crate::host::HostName;

/// How long a connection waits.
const WAITS: Duration = Duration::from_secs(30);
/// Most connections that wait for one host.
const MOST: usize = 16;

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A connection, plain or TLS.
pub type Stream = Box<dyn Duplex>;
/// Host, port, and whether it is TLS.
pub type Key = (HostName, u16, bool);

/// A connection to a host.
pub struct Upstream {
    key: Key,
    /// What comes back.
    pub read: Wire<ReadHalf<Stream>>,
    /// What goes out.
    pub write: WriteHalf<Stream>,
    /// Whether it carried a request before.
    pub used: bool,
}

impl Upstream {
    /// A connection that was just opened.
    pub fn new(key: Key, stream: Stream) -> Self {
        let (read, write) = tokio::io::split(stream);
        Self { key, read: Wire::new(read, Vec::new()), write, used: false }
    }
}

/// Connections that wait.
#[derive(Default)]
pub struct Pool(Mutex<HashMap<Key, Vec<(Instant, Upstream)>>>);

impl Pool {
    /// One that is still good.
    pub async fn take(&self, key: &Key) -> Option<Upstream> {
        loop {
            let (since, mut upstream) = {
                let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                pool.get_mut(key)?.pop()?
            };
            // Asked once, without waiting: a good connection has nothing to say.
            let silent = upstream.read.buffer().is_empty() && {
                let mut more = pin!(upstream.read.fill());
                poll_fn(|task| Poll::Ready(more.as_mut().poll(task).is_pending())).await
            };
            if silent && since.elapsed() < WAITS {
                upstream.used = true;
                return Some(upstream);
            }
        }
    }

    /// Keeps one.
    pub fn put(&self, upstream: Upstream) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pool.values_mut().for_each(|waiting| waiting.retain(|(since, _)| since.elapsed() < WAITS));
        pool.retain(|_, waiting| !waiting.is_empty());
        let waiting = pool.entry(upstream.key.clone()).or_default();
        if waiting.len() < MOST {
            waiting.push((Instant::now(), upstream));
        }
    }
}
