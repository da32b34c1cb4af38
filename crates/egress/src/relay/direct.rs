//! Programs that know no proxy: they asked for a name, got an address that stands for it, and connected.
//!
//! Owns the ports that are listened on for them. Refuses a connection whose name, by address and by what is said on it, is not
//! one and the same. Invariant: where nothing is said that names a host, the address must stand for one.

use std::net::{IpAddr, Ipv4Addr};

use tokio::net::TcpStream;

use super::{Connection, alert, refuse, requests, tls, tunnel};
use crate::context::Allowed;
use crate::host::HostName;
use crate::record::Road;
use crate::refusal::Refusal;
use crate::rules::Protocol;
use crate::secret::Watcher;

/// Serves a connection to the address and port that the program meant.
pub async fn serve(
    connection: &Connection,
    mut stream: TcpStream,
    (address, port): (Option<IpAddr>, u16),
) -> Result<(), Refusal> {
    let context = &connection.context;
    let address = address.ok_or(Refusal::Broken)?;
    let entry = connection.entry();
    if let Some(rule) = context.rules.loopback(port).filter(|_| address == Ipv4Addr::LOCALHOST) {
        let (allowed, mut up) = context.dial_loopback(rule, &entry).await?;
        let watcher = Watcher::new(context.secrets.clone(), allowed.host.clone(), None);
        return tunnel::relay(&mut stream, &[], &mut up, &allowed, &entry, Some(watcher)).await;
    }
    let Some(host) = context.table.name(address) else { return unnamed(connection, stream, port).await };
    let allowed = match context.allow(host, port, &entry) {
        Ok(allowed) => allowed,
        Err(refusal) => {
            match port {
                80 => refuse(connection, &mut stream, &refusal).await,
                _ => alert(connection, &mut stream, &refusal).await,
            }
            return Err(refusal);
        }
    };
    let protocol = allowed.protocol;
    entry.note(|record| record.road = road(protocol));
    match protocol {
        Protocol::Tls => secure(connection, stream, Vec::new(), allowed).await,
        Protocol::Http => plain(connection, stream, port, Some(allowed.host)).await,
        Protocol::Opaque => {
            allowed.meter.ask()?;
            let mut up = context.dial(&allowed, &entry).await?;
            let watcher = Watcher::new(context.secrets.clone(), allowed.host.clone(), None);
            tunnel::relay(&mut stream, &[], &mut up, &allowed, &entry, Some(watcher)).await
        }
    }
}

/// An address that stands for nothing: only what is said can name the host.
async fn unnamed(connection: &Connection, mut stream: TcpStream, port: u16) -> Result<(), Refusal> {
    match port {
        443 => {
            let mut first = Vec::new();
            let asked = tls::first_message(&mut stream, &mut first).await;
            let host = asked.and_then(|hello| hello.server.ok_or(Refusal::NoServerName));
            match host.and_then(|host| connection.context.allow(host, port, &connection.entry())) {
                Ok(allowed) => secure(connection, stream, first, allowed).await,
                Err(refusal) => {
                    alert(connection, &mut stream, &refusal).await;
                    Err(refusal)
                }
            }
        }
        80 => plain(connection, stream, port, None).await,
        _ => Err(Refusal::Name("the address that was connected to stands for none")),
    }
}

async fn secure(
    connection: &Connection,
    mut stream: TcpStream,
    first: Vec<u8>,
    allowed: Allowed,
) -> Result<(), Refusal> {
    let readable = connection.context.rules.is_terminated(&allowed.host);
    if let Err(refusal) = if readable { Ok(()) } else { allowed.meter.ask() } {
        alert(connection, &mut stream, &refusal).await;
        return Err(refusal);
    }
    tls::serve(connection, stream, first, allowed, None).await
}

async fn plain(connection: &Connection, stream: TcpStream, port: u16, host: Option<HostName>) -> Result<(), Refusal> {
    connection.entry().note(|record| record.road = Road::Http);
    let door = requests::Door { secure: false, port, host: Some(host), fixed: None };
    requests::serve(connection, Box::new(stream), Vec::new(), &door).await
}

const fn road(protocol: Protocol) -> Road {
    match protocol {
        Protocol::Tls => Road::Tls,
        Protocol::Http => Road::Http,
        Protocol::Opaque => Road::Opaque,
    }
}
