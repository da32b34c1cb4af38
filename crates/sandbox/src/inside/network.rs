//! The sandbox's own network: a loopback, and sockets that somebody outside answers on.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::{At, Failed};
use crate::confinement::Network;
use crate::message::{DESCRIPTORS, Step};
use crate::sys::network::loopback_up;

const WAITING: i32 = 1024;

/// Opens them: HTTP, then each direct port, hooks, DNS.
pub fn open(network: &Network) -> Result<[Option<OwnedFd>; DESCRIPTORS], Failed> {
    let mut sockets = [const { None }; DESCRIPTORS];
    let ports = match network {
        Network::Open => return Ok(sockets),
        Network::Closed => None,
        Network::Proxied(ports) => Some(ports),
    };
    let dns = make(SocketType::DGRAM).at(Step::Loopback)?;
    loopback_up(dns.as_fd()).at(Step::Loopback)?;
    let Some(ports) = ports else { return Ok(sockets) };
    let direct = ports.direct.iter().map(|port| (Ipv4Addr::UNSPECIFIED, *port));
    let hooks = ports.hooks.map(|port| (Ipv4Addr::LOCALHOST, port));
    let mut count = 0;
    for (place, (address, port)) in
        sockets.iter_mut().zip([(Ipv4Addr::LOCALHOST, ports.http)].into_iter().chain(direct).chain(hooks))
    {
        *place = Some(listener(address, port).item(Step::Listen, usize::from(port))?);
        count += 1;
    }
    if let Some(port) = ports.dns {
        bind(&dns, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).item(Step::Listen, usize::from(port))?;
        match sockets.get_mut(count) {
            Some(place) => *place = Some(dns),
            None => return Err((Step::Listen, Errno::TOOBIG, usize::from(port))),
        }
    }
    Ok(sockets)
}

fn listener(address: Ipv4Addr, port: u16) -> Result<OwnedFd, Errno> {
    let socket = make(SocketType::STREAM)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(address, port))?;
    listen(&socket, WAITING)?;
    Ok(socket)
}

fn make(kind: SocketType) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None)
}
