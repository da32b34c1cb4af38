//! Connections that no listener takes: the caller makes both ends.
//!
//! Owns the way in. Refuses more that say nothing than it can hold. Invariant: what the caller refused is recorded, also when the run has
//! ended meanwhile.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::connection;
use crate::context::Context;
use crate::record::{Entry, Road};
use crate::refusal::Refusal;

/// What comes in another way than through a listener.
#[derive(Debug)]
pub enum Handed {
    /// A connection to the proxy's port.
    Stream(TcpStream, OwnedSemaphorePermit),
    /// What the caller refused, because it was for somewhere else than the proxy.
    Elsewhere(Option<SocketAddr>, &'static str),
}

/// Most connections that were handed over and have said nothing yet.
const SILENT: usize = 512;

/// Where no listener can stand inside: the caller makes both ends of each connection, keeps one for the program and hands the
/// other over.
#[derive(Clone, Debug)]
pub struct Hand {
    sender: UnboundedSender<Handed>,
    silent: Arc<Semaphore>,
}

impl Hand {
    /// With where what is handed over comes out.
    pub fn new() -> (Self, UnboundedReceiver<Handed>) {
        let (sender, receiver) = unbounded_channel();
        (Self { sender, silent: Arc::new(Semaphore::new(SILENT)) }, receiver)
    }

    /// Serves a connection as if it came in at the proxy's port. One that never says anything is on no record.
    pub fn stream(&self, stream: TcpStream) -> io::Result<()> {
        let slot = Arc::clone(&self.silent).try_acquire_owned();
        let slot = slot.map_err(|_none| io::Error::other("too many connections say nothing"))?;
        stream.set_nonblocking(true)?;
        self.sender.send(Handed::Stream(stream, slot)).map_err(|_gone| io::Error::other("the run has ended"))
    }

    /// Records what the caller refused: a connection to this address, or something else that leads past the proxy, in words.
    pub fn elsewhere(&self, address: Option<SocketAddr>, what: &'static str) -> io::Result<()> {
        self.sender.send(Handed::Elsewhere(address, what)).map_err(|_gone| io::Error::other("the run has ended"))
    }
}

/// Takes what comes in another way. What was refused is recorded also when the run has ended meanwhile.
pub async fn handed(
    mut streams: UnboundedReceiver<Handed>,
    context: Arc<Context>,
    tasks: TaskTracker,
    slots: Arc<Semaphore>,
) {
    loop {
        let next = tokio::select! {
            biased;
            next = streams.recv() => next,
            () = context.ended.cancelled() => None,
        };
        match next {
            Some(Handed::Stream(stream, silent)) if !context.ended.is_cancelled() => {
                tasks.spawn(spoken(stream, silent, Arc::clone(&context), Arc::clone(&slots)));
            }
            Some(Handed::Stream(..)) => {}
            Some(Handed::Elsewhere(address, what)) => record_elsewhere(&context, address, what).await,
            None => return,
        }
    }
}

/// Serves a connection from its first byte on: programs make sockets that they never use.
async fn spoken(stream: TcpStream, silent: OwnedSemaphorePermit, context: Arc<Context>, slots: Arc<Semaphore>) {
    // One that cannot be served is closed, and says so by that.
    let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
    let mut byte = [0];
    let heard = tokio::select! {
        () = context.ended.cancelled() => return,
        heard = stream.peek(&mut byte) => heard,
    };
    drop(silent);
    if !matches!(heard, Ok(1)) {
        return;
    }
    let Ok(slot) = slots.acquire_owned().await else { return };
    connection(stream, None, context, slot).await;
}

async fn record_elsewhere(context: &Context, address: Option<SocketAddr>, what: &'static str) {
    let entry = Entry::new(context.reporter.next_id(), Road::Past);
    entry.note(|record| {
        record.host = address.map(|address| address.ip().to_string());
        record.port = address.map_or(0, |address| address.port());
    });
    let asked = address.map_or_else(|| what.to_owned(), |address| format!("`{address}` {what}"));
    // A reporter that fails has ended everything already.
    context.reporter.close(entry.last(&Err(Refusal::Past(asked)))).await.ok();
}
