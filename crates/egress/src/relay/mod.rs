//! The roads: from a program's connection to a host's.
//!
//! Owns one connection from its first byte to its record. Refuses in the words of [`crate::refusal`], in whatever the program
//! speaks: an HTTP answer, a TLS alert, a closed connection. Invariant: however a connection ends, its last record is kept.

mod direct;
mod exchange;
mod proxy;
mod requests;
mod tls;
mod tunnel;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::context::Context;
use crate::crowd::Guest;
use crate::record::{Entry, Road, Stage};
use crate::refusal::Refusal;

pub use direct::serve as direct;
pub use proxy::serve as proxy;

/// How long a client may take for a head or a handshake.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a connection that has had its last answer is still read, so that the client gets to see it.
const LINGER: Duration = Duration::from_millis(500);
/// And how much.
const LINGER_BYTES: usize = 4 << 20;

/// One connection of a program.
pub struct Connection {
    context: Arc<Context>,
    entry: Mutex<Arc<Entry>>,
    /// Whether its last record is with the reporter.
    settled: AtomicBool,
}

impl Connection {
    /// Serves a connection and keeps its record, whatever becomes of it. `waited` is held until it has a place of its own.
    pub async fn serve<F>(
        context: Arc<Context>,
        (road, asker): (Road, Option<u64>),
        waited: OwnedSemaphorePermit,
        work: impl FnOnce(Arc<Self>) -> F,
    ) where
        F: Future<Output = Result<(), Refusal>>,
    {
        let entry = Entry::new(context.reporter.next_id(), road);
        entry.note(|record| record.asker = asker);
        let entry = Mutex::new(Arc::new(entry));
        let connection = Arc::new(Self { context, entry, settled: AtomicBool::new(false) });
        let ended = connection.context.ended.clone();
        let guest: Weak<Self> = Arc::downgrade(&connection);
        let place = connection.context.crowd.enter(asker, guest);
        drop(waited);
        let end = tokio::select! {
            biased;
            () = ended.cancelled() => Err(Refusal::Ended),
            () = place.taken() => Err(Refusal::Crowded),
            end = work(Arc::clone(&connection)) => end,
        };
        connection.settle(&end).await;
    }

    /// Keeps the last record, with why it ended. A program is told no sooner: it may end at once, and its run's record with it.
    async fn settle(&self, end: &Result<(), Refusal>) {
        if self.settled.load(Ordering::Relaxed) {
            return;
        }
        // A reporter that fails has ended everything already.
        if let Ok(kept) = self.context.reporter.close(self.entry().last(end)).await {
            self.settled.store(true, Ordering::Relaxed);
            kept.await.ok();
        }
    }

    fn entry(&self) -> Arc<Entry> {
        Arc::clone(&self.entry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a record of its own for another host on the same connection.
    async fn turn(&self) -> Result<(), Refusal> {
        let entry = self.entry();
        let record = entry.last(&Ok(()));
        if record.stage == Stage::Opened || record.host.is_some() {
            let next = Entry::new(self.context.reporter.next_id(), record.road);
            next.note(|next| next.asker = record.asker);
            *self.entry.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
            self.context.reporter.close(record).await?;
        }
        Ok(())
    }
}

impl Guest for Connection {
    fn is_idle(&self) -> bool {
        self.entry().note(|record| record.host.is_none())
    }
}

/// Says over HTTP why something was refused, and ends the connection.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(connection: &Connection, stream: &mut S, refusal: &Refusal) {
    connection.settle(&Err(refusal.clone())).await;
    let (status, reason) = refusal.status();
    let text = format!("writ: {refusal}\n");
    let answer = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: text/plain; charset=utf-8\r\nx-writ-refused: {}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{text}",
        refusal.word(),
        text.len()
    );
    say(stream, answer.as_bytes()).await;
}

/// Last words. A client that does not listen is no reason to stay.
async fn say<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, words: &[u8]) {
    let spoken = async {
        stream.write_all(words).await?;
        stream.shutdown().await?;
        // Closed with bytes unread, the kernel would reset the connection, and the words could be lost.
        let mut rest = Vec::new();
        stream.take(LINGER_BYTES as u64).read_to_end(&mut rest).await
    };
    timeout(LINGER, spoken).await.ok();
}

/// Says over TLS that access is denied (RFC 8446, 6.2), before there are keys.
async fn alert(connection: &Connection, stream: &mut TcpStream, refusal: &Refusal) {
    connection.settle(&Err(refusal.clone())).await;
    say(stream, &[21, 3, 3, 0, 2, 2, 49]).await;
}
