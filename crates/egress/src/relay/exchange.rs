//! One request to a host, and its answer back.
//!
//! Owns the two directions at once: a host may answer before it has read everything. Refuses answers whose end cannot be told or
//! that cannot be looked through. Invariant: a connection is used again only when both messages were read to their ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};

use super::Connection;
use super::tunnel::{count, upgraded};
use crate::context::Allowed;
use crate::http::body::{self, Body};
use crate::http::head::{self, Framing};
use crate::http::request::Request;
use crate::http::response::Response;
use crate::http::upstream::{Stream, Upstream};
use crate::http::wire::Wire;
use crate::record::Entry;
use crate::refusal::Refusal;
use crate::secret::{Scrubber, Unpacker, Watcher};

/// One request, ready to be sent.
pub struct Ready {
    /// What it said of itself.
    pub request: Request,
    /// Its head as it is sent on.
    pub head: zeroize::Zeroizing<Vec<u8>>,
    /// Who it is for.
    pub allowed: Allowed,
    /// Who looks at its body.
    pub watcher: Watcher,
}

/// The program's connection.
pub struct Ends<'a> {
    /// What comes from it.
    pub wire: &'a mut Wire<ReadHalf<Stream>>,
    /// What goes to it.
    pub write: &'a mut WriteHalf<Stream>,
    /// Whether an answer has begun.
    pub answered: &'a AtomicBool,
}

/// How sending a request ended when it did not end well.
enum Cut {
    /// Here, or at the program.
    Refused(Refusal),
    /// At the host, which may have answered before.
    Host,
}

/// How an answer ended.
struct Answered {
    /// Whether the host keeps the connection.
    host_keeps: bool,
    /// Whether the program may ask again.
    keep: bool,
    /// Whether something else is spoken now.
    upgraded: bool,
}

/// Sends a request and passes the answer on; whether the program's connection may carry another.
pub async fn exchange(connection: &Connection, ready: Ready, secure: bool, ends: Ends<'_>) -> Result<bool, Refusal> {
    let context = &connection.context;
    let entry = connection.entry();
    let Ready { request, head, allowed, mut watcher } = ready;
    let Ends { wire, write, answered } = ends;
    let mut fresh = false;
    loop {
        let mut up = context.upstream(&allowed, secure, &entry, fresh).await?;
        let mut sent = Body::new(request.framing);
        let outcome = {
            let upload = send(&mut sent, &request, &head, wire, &mut up.write, (&allowed, &entry, &mut watcher));
            let scrubber = Scrubber::new(Arc::clone(&context.secrets));
            let download = receive(&request, &mut up.read, write, answered, (&allowed, &entry, scrubber));
            both(upload, download).await
        };
        match outcome {
            // A connection that waited may have been closed just now: asked again, a request without a body does no more.
            Err(Refusal::Unreachable { .. })
                if up.used && request.framing == Framing::Empty && !answered.load(Ordering::Relaxed) =>
            {
                fresh = true;
            }
            Err(refusal) => return Err(refusal),
            Ok((true, outcome)) if outcome.upgraded => {
                let scrubber = Scrubber::new(Arc::clone(&context.secrets));
                speak_otherwise(wire, write, up, (&allowed, &entry), (watcher, scrubber)).await?;
                return Ok(false);
            }
            Ok((whole, outcome)) => {
                if whole && outcome.host_keeps {
                    context.keep(up);
                }
                return Ok(whole && outcome.keep);
            }
        }
    }
}

/// Runs both directions; whether the request was sent to its end, and the answer.
async fn both(
    upload: impl Future<Output = Result<(), Cut>>,
    download: impl Future<Output = Result<Answered, Refusal>>,
) -> Result<(bool, Answered), Refusal> {
    tokio::pin!(upload, download);
    let mut sent = None;
    loop {
        tokio::select! {
            biased;
            done = &mut upload, if sent.is_none() => match done {
                Ok(()) => sent = Some(true),
                Err(Cut::Host) => sent = Some(false),
                Err(Cut::Refused(refusal)) => return Err(refusal),
            },
            answer = &mut download => return answer.map(|answer| (sent == Some(true), answer)),
        }
    }
}

async fn send(
    body: &mut Body,
    request: &Request,
    head: &[u8],
    from: &mut Wire<ReadHalf<Stream>>,
    to: &mut WriteHalf<Stream>,
    (allowed, entry, watcher): (&Allowed, &Entry, &mut Watcher),
) -> Result<(), Cut> {
    count(allowed, entry, head.len(), 0).map_err(Cut::Refused)?;
    to.write_all(head).await.map_err(|_error| Cut::Host)?;
    to.flush().await.map_err(|_error| Cut::Host)?;
    while let Some(piece) = body.next(from).await.map_err(Cut::Refused)? {
        watcher.next(&piece).map_err(Cut::Refused)?;
        count(allowed, entry, piece.len(), 0).map_err(Cut::Refused)?;
        body::write(to, (request.framing, Vec::new()), &piece, false).await.map_err(|_broken| Cut::Host)?;
    }
    if request.framing == Framing::Chunked {
        body::write(to, (request.framing, Vec::new()), &[], true).await.map_err(|_broken| Cut::Host)?;
    }
    Ok(())
}

async fn receive(
    request: &Request,
    from: &mut Wire<ReadHalf<Stream>>,
    to: &mut WriteHalf<Stream>,
    answered: &AtomicBool,
    (allowed, entry, mut scrubber): (&Allowed, &Entry, Scrubber),
) -> Result<Answered, Refusal> {
    let bad = |why: &'static str| Refusal::Answer { host: allowed.host.to_string(), why };
    let mut response = loop {
        let head = from.head().await.map_err(|refusal| as_answer(refusal, allowed))?;
        let gone =
            || Refusal::Unreachable { host: allowed.host.to_string(), why: "it closed the connection".to_owned() };
        let head = head.ok_or_else(gone)?;
        count(allowed, entry, 0, head.len())?;
        let mut response = Response::read(&head, request.method == "HEAD").map_err(bad)?;
        scrubber.head(&mut response.fields, &mut response.reason);
        if !response.is_interim() {
            break response;
        }
        if request.chunks {
            let head = response.write(Framing::Empty, true);
            to.write_all(&head).await.map_err(|_error| Refusal::Broken)?;
            to.flush().await.map_err(|_error| Refusal::Broken)?;
        }
    };
    if response.status == 101 && (request.upgrade.is_none() || response.upgrade.is_none()) {
        return Err(bad("it changes the protocol unasked"));
    }
    let mut unpacker = unpacker(&mut response, &scrubber).map_err(bad)?;
    let framing = match response.framing {
        Framing::Empty => Framing::Empty,
        Framing::Length(length) if unpacker.is_none() => Framing::Length(length),
        Framing::Length(_) | Framing::Chunked | Framing::UntilClose if request.chunks => Framing::Chunked,
        Framing::Length(_) | Framing::Chunked | Framing::UntilClose => Framing::UntilClose,
    };
    let keep = request.keep && framing != Framing::UntilClose;
    answered.store(true, Ordering::Relaxed);
    let mut head = response.write(framing, keep);
    let mut body = Body::new(response.framing);
    loop {
        // A head goes out with what of its body is there already, and does not wait for more.
        if from.buffer().is_empty() && !head.is_empty() {
            to.write_all(&std::mem::take(&mut head)).await.map_err(|_error| Refusal::Broken)?;
            to.flush().await.map_err(|_error| Refusal::Broken)?;
        }
        let piece = body.next(from).await.map_err(|refusal| as_answer(refusal, allowed))?;
        let last = piece.is_none();
        let mut piece = piece.unwrap_or_default();
        count(allowed, entry, 0, piece.len())?;
        if let Some(unpacker) = &mut unpacker {
            piece = unpacker.next(&piece, last).ok_or_else(|| bad("its body is packed wrongly"))?;
        }
        scrubber.next(&mut piece, last);
        body::write(to, (framing, std::mem::take(&mut head)), &piece, last).await?;
        if last {
            return Ok(Answered { host_keeps: response.keep, keep, upgraded: response.status == 101 });
        }
    }
}

/// Who unpacks a body that was packed although that was not asked for; the field that says so is taken out.
fn unpacker(response: &mut Response, scrubber: &Scrubber) -> Result<Option<Unpacker>, &'static str> {
    if scrubber.is_idle() || response.framing == Framing::Empty {
        return Ok(None);
    }
    let packed = head::single(&response.fields, "content-encoding")?;
    let Some(packed) = packed.filter(|packed| !packed.eq_ignore_ascii_case(b"identity")) else { return Ok(None) };
    let packed = String::from_utf8_lossy(packed).to_ascii_lowercase();
    let unpacker = Unpacker::new(&packed).ok_or("its body is packed in a way that is not looked through")?;
    response.fields.retain(|(name, _)| name != "content-encoding");
    Ok(Some(unpacker))
}

/// What is malformed about an answer is the host's doing, not the program's.
fn as_answer(refusal: Refusal, allowed: &Allowed) -> Refusal {
    let host = || allowed.host.to_string();
    if let Refusal::Request(why) = refusal {
        return Refusal::Answer { host: host(), why };
    }
    if refusal == Refusal::Broken {
        return Refusal::Unreachable { host: host(), why: "the connection broke".to_owned() };
    }
    refusal
}

async fn speak_otherwise(
    wire: &mut Wire<ReadHalf<Stream>>,
    write: &mut WriteHalf<Stream>,
    up: Upstream,
    counted: (&Allowed, &Entry),
    looked: (Watcher, Scrubber),
) -> Result<(), Refusal> {
    let Upstream { read, write: mut up_write, .. } = up;
    let (mut up_read, up_first) = read.into_parts();
    let down_first = wire.take(usize::MAX);
    let down = (down_first, wire.reader(), write);
    upgraded(down, (up_first, &mut up_read, &mut up_write), counted, looked).await
}
