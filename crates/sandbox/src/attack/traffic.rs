//! The network again: other addresses, messages, and protocols that filters forget.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;

use super::reach::{kernel_address, socket};
use super::{Attack, World, of};
use crate::sys::attempt::{self, shared};

pub const ATTACKS: &[Attack] = &[
    Attack { id: "N03", words: "connect to another address of the host", run: other },
    Attack { id: "N04", words: "connect by bash", run: shell },
    Attack { id: "N05", words: "send by UDP", run: |world| send(world, b"N05") },
    Attack { id: "N06", words: "ask for a name with a secret in it", run: name },
    Attack { id: "N08", words: "open a connection by QUIC", run: quic },
    Attack { id: "N21", words: "send by UDP over IPv6", run: send6 },
    Attack { id: "N07", words: "send echo requests by a raw socket", run: |_| raw() },
    Attack { id: "N15", words: "connect to where clouds hand out credentials", run: |_| metadata() },
    Attack { id: "N18", words: "connect by an IPv4 address in IPv6", run: mapped },
    Attack {
        id: "N19",
        words: "make an SCTP socket",
        run: |_| socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP),
    },
    Attack {
        id: "N20",
        words: "make an MPTCP socket over IPv6",
        run: |_| socket(libc::AF_INET6, libc::SOCK_STREAM, libc::IPPROTO_MPTCP),
    },
    Attack { id: "N22", words: "have a connection open with bytes", run: fast_open_later },
    Attack {
        id: "N23",
        words: "hear the kernel's events by netlink",
        run: |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT),
    },
    Attack {
        id: "N24",
        words: "make a netlink socket for connections",
        run: |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG),
    },
    Attack {
        id: "N25",
        words: "make a vsock socket of messages",
        run: |_| socket(libc::AF_VSOCK, libc::SOCK_DGRAM, 0),
    },
    Attack {
        id: "N26",
        words: "make a raw socket over IPv6",
        run: |_| {
            socket(libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6).or_else(|_| {
                attempt::own_ground(libc::CLONE_NEWNET);
                socket(libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6)
            })
        },
    },
];

/// The end of what comes from inside.
pub const INSIDE: &[u8] = b"inside";

const PATIENCE: Duration = Duration::from_millis(300);

fn reach(address: SocketAddr) -> Result<(), Errno> {
    TcpStream::connect_timeout(&address, PATIENCE).map(drop).map_err(|error| of(&error))
}

fn other(world: &World) -> Result<(), Errno> {
    reach(world.more()?.other.ok_or(Errno::ADDRNOTAVAIL)?)
}

fn mapped(world: &World) -> Result<(), Errno> {
    reach((IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()), world.tcp).into())
}

fn metadata() -> Result<(), Errno> {
    reach((Ipv4Addr::new(169, 254, 169, 254), 80).into())
}

fn shell(world: &World) -> Result<(), Errno> {
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}", world.tcp);
    let mut bash = Command::new("/bin/bash");
    let status = bash.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if status.map_err(|error| of(&error))?.success() { Ok(()) } else { Err(Errno::CONNREFUSED) }
}

/// Whether it arrives is seen outside.
fn send(world: &World, text: &[u8]) -> Result<(), Errno> {
    let socket = attempt::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    shared::send(&socket, &kernel_address(world.more()?.udp), &[text, side(world)].concat())
}

/// Which side it comes from.
fn side(world: &World) -> &'static [u8] {
    if world.inside { INSIDE } else { b"outside" }
}

/// A question for a name, its first part the secret.
fn name(world: &World) -> Result<(), Errno> {
    let mut question =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06secret\x07example\x00\x00\x10\x00\x01".to_vec();
    question.extend(b"N06");
    send(world, &question)
}

/// The first bytes of a long header.
fn quic(world: &World) -> Result<(), Errno> {
    let mut opening = vec![0xc0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    opening.resize(1197, 0);
    opening.extend(b"N08");
    send(world, &opening)
}

fn send6(world: &World) -> Result<(), Errno> {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).map_err(|error| of(&error))?;
    socket
        .send_to(&[b"N21", side(world)].concat(), (Ipv6Addr::LOCALHOST, world.more()?.udp6))
        .map(drop)
        .map_err(|error| of(&error))
}

fn raw() -> Result<(), Errno> {
    let make = || socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW);
    make().or_else(|_| {
        attempt::own_ground(libc::CLONE_NEWNET);
        make()
    })
}

fn fast_open_later(world: &World) -> Result<(), Errno> {
    let socket = attempt::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    shared::fast_open_later(&socket)?;
    attempt::connect(&socket, &kernel_address(world.tcp))
}
