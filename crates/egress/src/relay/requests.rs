//! Requests on one connection, one after the other.
//!
//! Owns what each is for, and what is put into it. Refuses a request that is for another host than its connection. Invariant:
//! after a refusal nothing more is read from that connection.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::timeout;

use super::exchange::{Ends, Ready, exchange};
use super::{Connection, HEAD_TIME, refuse};
use crate::context::Allowed;
use crate::host::HostName;
use crate::http::head;
use crate::http::request::{self, Request, Target};
use crate::http::upstream::Stream;
use crate::http::wire::Wire;
use crate::record::Road;
use crate::refusal::Refusal;
use crate::rules::Protocol;
use crate::secret::{Fields, Watcher};

/// How a connection came to speak HTTP.
pub struct Door {
    /// Whether its TLS ended here.
    pub secure: bool,
    /// The port that a request means which names none.
    pub port: u16,
    /// The host that every request must be for, where it was judged already.
    pub fixed: Option<Allowed>,
    /// At a port without a proxy: the name that the address stands for, if any.
    pub host: Option<Option<HostName>>,
}

/// Serves requests until the program has no more.
pub async fn serve(connection: &Connection, stream: Stream, first: Vec<u8>, door: &Door) -> Result<(), Refusal> {
    let (read, mut write) = tokio::io::split(stream);
    let mut wire = Wire::new(read, first);
    loop {
        let answered = AtomicBool::new(false);
        match turn(connection, &mut wire, &mut write, door, &answered).await {
            Ok(true) => {}
            Ok(false) => {
                // A program that left is no failure.
                write.shutdown().await.ok();
                return Ok(());
            }
            Err(refusal) => {
                let (read, _) = wire.into_parts();
                if !answered.load(Ordering::Relaxed) {
                    refuse(connection, &mut read.unsplit(write), &refusal).await;
                }
                return Err(refusal);
            }
        }
    }
}

/// One request and its answer; whether another may follow.
async fn turn(
    connection: &Connection,
    wire: &mut Wire<ReadHalf<Stream>>,
    write: &mut WriteHalf<Stream>,
    door: &Door,
    answered: &AtomicBool,
) -> Result<bool, Refusal> {
    // An idle connection costs little; a head that was begun has to end.
    if wire.buffer().is_empty() && !wire.fill().await.unwrap_or(false) {
        return Ok(false);
    }
    if !wire.buffer().first().is_some_and(u8::is_ascii_alphabetic) {
        return Err(Refusal::Request("it begins with no method"));
    }
    let head = timeout(HEAD_TIME, wire.head()).await.map_err(|_elapsed| Refusal::Timeout)??;
    let Some(head) = head else { return Ok(false) };
    let ready = ready(connection, Request::read(&head)?, door).await?;
    exchange(connection, ready, door.secure, Ends { wire, write, answered }).await
}

/// Judges a request and puts in what belongs into it.
async fn ready(connection: &Connection, request: Request, door: &Door) -> Result<Ready, Refusal> {
    let context = &connection.context;
    if matches!(request.method.as_str(), "CONNECT" | "TRACE" | "TRACK") {
        return Err(Refusal::Method(request.method));
    }
    let allowed = destination(connection, &request, door).await?;
    context.rules.request(door.secure, &allowed.host, allowed.port, request.path())?;
    allowed.meter.ask()?;
    let entry = connection.entry();
    entry.note(|record| record.requests += 1);
    let mut fields = Fields { target: request.path().to_vec(), fields: request.fields.clone() };
    let used = context.secrets.place(&allowed.host, door.secure, &mut fields)?;
    if !context.secrets.is_empty() {
        // What comes back is looked through, so it must not be packed; of a part, a value could be the other part.
        let ranges = !used.is_empty() || context.secrets.are_for(&allowed.host);
        fields.fields.retain(|(name, _)| {
            name != "accept-encoding" && !(ranges && matches!(name.as_str(), "range" | "if-range"))
        });
        fields.fields.push(("accept-encoding".to_owned(), b"identity".to_vec()));
    }
    entry.note(|record| {
        for name in used {
            if !record.secrets.contains(&name) {
                record.secrets.push(name);
            }
        }
    });
    let packed = head::single(&request.fields, "content-encoding").map_err(Refusal::Request)?;
    let packed = packed.map(|packed| String::from_utf8_lossy(packed).to_ascii_lowercase());
    let watcher = Watcher::new(context.secrets.clone(), allowed.host.clone(), packed.as_deref());
    let usual = if door.secure { 443 } else { 80 };
    let host = match allowed.port == usual {
        true => allowed.host.to_string(),
        false => format!("{}:{}", allowed.host, allowed.port),
    };
    let head = request::write(&request, &host, &fields.target, &fields.fields);
    Ok(Ready { request, head, allowed, watcher })
}

/// Who a request is for: the connection's host, or the one that it names itself.
async fn destination(connection: &Connection, request: &Request, door: &Door) -> Result<Allowed, Refusal> {
    let (host, port) = request.destination(door.port)?;
    if let Target::Absolute(secure, ..) = request.target
        && secure != door.secure
    {
        return Err(Refusal::Request("https goes through CONNECT, and http does not"));
    }
    let mismatch = |asked: String| Refusal::Mismatch { asked, sent: format!("{host}:{port}") };
    if let Some(fixed) = &door.fixed {
        let same = fixed.host == host && fixed.port == port;
        return if same { Ok(fixed.clone()) } else { Err(mismatch(format!("{}:{}", fixed.host, fixed.port))) };
    }
    if let Some(named) = &door.host {
        if named.as_ref().is_some_and(|named| *named != host) || port != door.port {
            let asked = named.as_ref().map_or_else(String::new, HostName::to_string);
            return Err(mismatch(format!("{asked}:{}", door.port)));
        }
    } else if let Target::Origin(_) = request.target {
        return Err(Refusal::Request("a proxy is asked for a whole URL"));
    }
    // Another host on the same connection has a record of its own.
    let entry = connection.entry();
    if entry.note(|record| record.host.as_deref().is_some_and(|own| own != host.as_str() || record.port != port)) {
        connection.turn().await?;
    }
    let entry = connection.entry();
    if door.host.is_none() {
        entry.note(|record| record.road = Road::Forward);
    }
    let allowed = connection.context.allow(host, port, &entry)?;
    match allowed.protocol {
        Protocol::Http => Ok(allowed),
        Protocol::Tls => Err(Refusal::Request("this port speaks TLS")),
        // What is spoken at a port of this machine's own nobody says: who asks in HTTP means that.
        Protocol::Opaque if connection.context.loopback(&allowed.host, allowed.port).is_some() => Ok(allowed),
        Protocol::Opaque => Err(Refusal::Request("this port is reached by CONNECT")),
    }
}
