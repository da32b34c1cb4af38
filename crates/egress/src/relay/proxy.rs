//! Programs that know the proxy: CONNECT, and requests for absolute URLs.
//!
//! Owns the proxy's port. Refuses SOCKS, since every program that speaks it speaks HTTP to a proxy or finds hosts by their
//! names here, and a second reader is a second chance to read wrongly. Invariant: a tunnel is said to stand only when it does.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Connection, HEAD_TIME, refuse, requests, say, tls, tunnel};
use crate::context::Allowed;
use crate::http::request::{Request, Target};
use crate::http::wire::Wire;
use crate::record::Road;
use crate::refusal::Refusal;
use crate::rules::Protocol;
use crate::secret::{Fields, Watcher};

const STANDS: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const CONNECT: &[u8] = b"CONNECT ";

/// Serves a connection to the proxy's port.
pub async fn serve(connection: &Connection, stream: TcpStream) -> Result<(), Refusal> {
    let mut wire = Wire::new(stream, Vec::new());
    while wire.buffer().len() < CONNECT.len() && !wire.buffer().contains(&b'\n') {
        if matches!(wire.buffer().first(), Some(4 | 5)) {
            let (mut stream, _) = wire.into_parts();
            say(&mut stream, &[5, 0xff]).await;
            return Err(Refusal::Socks);
        }
        if !timeout(HEAD_TIME, wire.fill()).await.map_err(|_elapsed| Refusal::Timeout)?? {
            return if wire.buffer().is_empty() { Ok(()) } else { Err(Refusal::Broken) };
        }
    }
    if !wire.buffer().starts_with(CONNECT) {
        connection.entry().note(|record| record.road = Road::Forward);
        let (stream, first) = wire.into_parts();
        let door = requests::Door { secure: false, port: 80, host: None, fixed: None };
        return requests::serve(connection, Box::new(stream), first, &door).await;
    }
    let asked = ask(connection, &mut wire).await;
    let (mut stream, first) = wire.into_parts();
    match asked {
        Ok((allowed, up)) => tunnel_to(connection, stream, first, allowed, up).await,
        Err(refusal) => {
            refuse(connection, &mut stream, &refusal).await;
            Err(refusal)
        }
    }
}

/// Reads a CONNECT and judges it. What is not read here is connected with at once, so that the program learns of a failure.
async fn ask(connection: &Connection, wire: &mut Wire<TcpStream>) -> Result<(Allowed, Option<TcpStream>), Refusal> {
    let context = &connection.context;
    let head = timeout(HEAD_TIME, wire.head()).await.map_err(|_elapsed| Refusal::Timeout)??;
    let mut request = Request::read(&head.ok_or(Refusal::Broken)?)?;
    let (host, port) = request.destination(443)?;
    let Target::Connect(..) = request.target else { return Err(Refusal::Request("it is no CONNECT")) };
    if request.framing != crate::http::head::Framing::Empty {
        return Err(Refusal::Request("a CONNECT has no body"));
    }
    let entry = connection.entry();
    let allowed = context.allow(host, port, &entry)?;
    // Nothing is put in here: a placeholder among the fields is on its way to nobody.
    let mut fields = Fields { target: Vec::new(), fields: std::mem::take(&mut request.fields) };
    context.secrets.place(&allowed.host, false, &mut fields)?;
    let readable = match allowed.protocol {
        Protocol::Tls => context.rules.is_terminated(&allowed.host),
        Protocol::Http => true,
        Protocol::Opaque => false,
    };
    if readable {
        return Ok((allowed, None));
    }
    allowed.meter.ask()?;
    let up = context.dial(&allowed, &entry).await?;
    Ok((allowed, Some(up)))
}

async fn tunnel_to(
    connection: &Connection,
    mut stream: TcpStream,
    first: Vec<u8>,
    allowed: Allowed,
    up: Option<TcpStream>,
) -> Result<(), Refusal> {
    stream.write_all(STANDS).await.map_err(|_error| Refusal::Broken)?;
    match (allowed.protocol, up) {
        (Protocol::Tls, up) => tls::serve(connection, stream, first, allowed, up).await,
        (Protocol::Opaque, Some(mut up)) => {
            let watcher = Watcher::new(connection.context.secrets.clone(), allowed.host.clone(), None);
            let entry = connection.entry();
            tunnel::relay(&mut stream, &first, &mut up, &allowed, &entry, Some(watcher)).await
        }
        (Protocol::Http | Protocol::Opaque, _) => {
            let door = requests::Door { secure: false, port: allowed.port, host: None, fixed: Some(allowed) };
            requests::serve(connection, Box::new(stream), first, &door).await
        }
    }
}
