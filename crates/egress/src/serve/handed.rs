//! Connections that no listener takes: the caller makes both ends.
//!
//! Owns the way in. Refuses more that say nothing than it can hold. Invariant: what the caller refused is recorded, also when the run has
//! ended meanwhile.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::names::{Questions, answers};
use super::{Meant, connection};
use crate::context::Context;
use crate::record::{Entry, Road};
use crate::refusal::Refusal;

/// What comes in another way than through a listener.
#[derive(Debug)]
pub enum Handed {
    /// A connection to the proxy's port.
    Stream(TcpStream, OwnedSemaphorePermit),
    /// A connection to an address that stands for a host.
    Direct(TcpStream, SocketAddrV4),
    /// A socket of packets that ask for names.
    Names(UnixDatagram, OwnedSemaphorePermit),
    /// What the caller refused, because it was for somewhere else than the proxy.
    Elsewhere(Option<SocketAddr>, &'static str),
}

/// Most connections that were handed over and have said nothing yet, and most sockets that may ask for names.
const SILENT: usize = 512;

/// Where no listener can stand inside: the caller makes both ends of each connection, keeps one for the program and hands the
/// other over.
#[derive(Clone, Debug)]
pub struct Hand {
    sender: UnboundedSender<Handed>,
    silent: Arc<Semaphore>,
    asking: Arc<Semaphore>,
}

impl Hand {
    /// With where what is handed over comes out.
    pub fn new() -> (Self, UnboundedReceiver<Handed>) {
        let (sender, receiver) = unbounded_channel();
        let [silent, asking] = [SILENT, SILENT].map(|most| Arc::new(Semaphore::new(most)));
        (Self { sender, silent, asking }, receiver)
    }

    /// Serves a connection as if it came in at the proxy's port. One that never says anything is on no record.
    pub fn stream(&self, stream: TcpStream) -> io::Result<()> {
        let slot = Arc::clone(&self.silent).try_acquire_owned();
        let slot = slot.map_err(|_none| io::Error::other("too many connections say nothing"))?;
        stream.set_nonblocking(true)?;
        self.send(Handed::Stream(stream, slot))
    }

    /// Serves a connection as if it came in at this address, which stands for a host or is this machine's own.
    pub fn direct(&self, stream: TcpStream, to: SocketAddrV4) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        self.send(Handed::Direct(stream, to))
    }

    /// Answers the questions for names that come by a socket: each packet is one, and so is its answer.
    pub fn names(&self, socket: OwnedFd) -> io::Result<()> {
        let slot = Arc::clone(&self.asking).try_acquire_owned();
        let slot = slot.map_err(|_none| io::Error::other("too many sockets ask for names"))?;
        let socket = UnixDatagram::from(socket);
        socket.set_nonblocking(true)?;
        self.send(Handed::Names(socket, slot))
    }

    fn send(&self, handed: Handed) -> io::Result<()> {
        self.sender.send(handed).map_err(|_gone| io::Error::other("the run has ended"))
    }

    /// Records what the caller refused: a connection to this address, or something else that leads past the proxy, in words.
    pub fn elsewhere(&self, address: Option<SocketAddr>, what: &'static str) -> io::Result<()> {
        self.send(Handed::Elsewhere(address, what))
    }
}

/// Takes what comes in another way. What was refused is recorded also when the run has ended meanwhile.
pub async fn handed(
    mut streams: UnboundedReceiver<Handed>,
    context: Arc<Context>,
    tasks: TaskTracker,
    slots: Arc<Semaphore>,
    questions: Arc<Questions>,
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
            Some(Handed::Direct(stream, to)) if !context.ended.is_cancelled() => {
                tasks.spawn(meant(stream, to, Arc::clone(&context), Arc::clone(&slots)));
            }
            Some(Handed::Names(socket, slot)) if !context.ended.is_cancelled() => {
                tasks.spawn(packets(socket, slot, Arc::clone(&context), Arc::clone(&questions)));
            }
            Some(Handed::Stream(..) | Handed::Direct(..) | Handed::Names(..)) => {}
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

/// Serves a connection at once: where something else than HTTP and TLS is spoken, the host may speak first.
async fn meant(stream: TcpStream, to: SocketAddrV4, context: Arc<Context>, slots: Arc<Semaphore>) {
    // As above.
    let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
    let Ok(slot) = slots.acquire_owned().await else { return };
    connection(stream, Some(Meant { port: to.port(), address: Some((*to.ip()).into()) }), context, slot).await;
}

/// Answers what comes by one socket, until nobody has its other end.
async fn packets(socket: UnixDatagram, slot: OwnedSemaphorePermit, context: Arc<Context>, questions: Arc<Questions>) {
    let Ok(socket) = tokio::net::UnixDatagram::from_std(socket) else { return };
    let mut packet = vec![0; 4096];
    loop {
        let received = tokio::select! {
            () = context.ended.cancelled() => break,
            received = socket.recv(&mut packet) => received,
        };
        // Nothing is what comes when the other end is closed.
        let Ok(length @ 1..) = received else { break };
        let said = packet.get(..length).unwrap_or_default();
        let Some(answer) = answers(&context, &questions, said, async || None).await else { continue };
        // Who does not take an answer is not waited for.
        if socket.try_send(&answer).is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            break;
        }
    }
    drop(slot);
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
