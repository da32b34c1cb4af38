//! Other processes, the network, memory and keys that are shared.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6, TcpStream};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{Attack, World, of};
use crate::sys::attempt;

pub const ATTACKS: &[Attack] = &[
    Attack { id: "I04", words: "connect to an abstract socket", run: abstract_socket },
    Attack { id: "I05", words: "find shared memory", run: |world| attempt::shared_memory(world.shared_memory) },
    Attack { id: "I07", words: "reach the session's keyring", run: |_| attempt::session_keyring() },
    Attack {
        id: "I13",
        words: "read another process's memory",
        run: |world| attempt::memory(world.process, world.address),
    },
    Attack { id: "I10", words: "read another process's environment", run: environment },
    Attack { id: "I16", words: "enter another process's network", run: enter_network },
    Attack { id: "I19", words: "read the first process's environment", run: |_| first_process() },
    Attack { id: "I14", words: "signal another process", run: |world| attempt::signal(world.process) },
    Attack { id: "I15", words: "take another process's descriptor", run: take_descriptor },
    Attack { id: "N01", words: "connect to the host's loopback", run: loopback },
    Attack { id: "N02", words: "connect to it by IPv6", run: loopback6 },
    Attack {
        id: "N11",
        words: "make a UDP-Lite socket",
        run: |_| socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_UDPLITE),
    },
    Attack { id: "N09", words: "connect by MPTCP", run: multipath },
    Attack { id: "N10", words: "connect by TCP fast open", run: fast_open },
    Attack {
        id: "N12",
        words: "make a raw socket",
        run: |_| own_socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
    },
    Attack { id: "N13", words: "make a packet socket", run: |_| own_socket(libc::AF_PACKET, libc::SOCK_RAW, 0) },
    Attack { id: "N14", words: "make a vsock socket", run: |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) },
    Attack {
        id: "N16",
        words: "make a socket of the kernel's cryptography",
        run: |_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
    },
    Attack {
        id: "N17",
        words: "make a netlink socket for IPsec",
        run: |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_XFRM),
    },
];

pub(super) fn socket(family: i32, kind: i32, protocol: i32) -> Result<(), Errno> {
    attempt::socket(family, kind, protocol).map(drop)
}

/// The same, in a network of its own where one can be had.
fn own_socket(family: i32, kind: i32, protocol: i32) -> Result<(), Errno> {
    socket(family, kind, protocol).or_else(|_| {
        attempt::own_ground(libc::CLONE_NEWNET);
        socket(family, kind, protocol)
    })
}

fn abstract_socket(world: &World) -> Result<(), Errno> {
    let address = SocketAddr::from_abstract_name(&world.abstract_socket).map_err(|error| of(&error))?;
    UnixStream::connect_addr(&address).map(drop).map_err(|error| of(&error))
}

fn take_descriptor(world: &World) -> Result<(), Errno> {
    let pid = Pid::from_raw(world.process).ok_or(Errno::SRCH)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    pidfd_getfd(&process, world.descriptor, PidfdGetfdFlags::empty()).map(drop)
}

fn loopback(world: &World) -> Result<(), Errno> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, world.tcp).into();
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).map(drop).map_err(|error| of(&error))
}

fn loopback6(world: &World) -> Result<(), Errno> {
    let address = SocketAddrV6::new(Ipv6Addr::LOCALHOST, world.tcp6, 0, 0).into();
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).map(drop).map_err(|error| of(&error))
}

fn environment(world: &World) -> Result<(), Errno> {
    std::fs::read(format!("/proc/{}/environ", world.process)).map(drop).map_err(|error| of(&error))
}

/// Of the first process, or of the one that started this program: inside they are the same.
fn first_process() -> Result<(), Errno> {
    let read = |pid: i32| std::fs::read(format!("/proc/{pid}/environ")).map(drop).map_err(|error| of(&error));
    read(1).or_else(|error| read(super::starter().ok_or(error)?))
}

fn enter_network(world: &World) -> Result<(), Errno> {
    let network = std::fs::File::open(format!("/proc/{}/ns/net", world.process)).map_err(|error| of(&error))?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
}

/// An address of the host's loopback.
pub(super) fn kernel_address(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default(),
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets()) },
        sin_zero: [0; 8],
    }
}

fn multipath(world: &World) -> Result<(), Errno> {
    let socket = attempt::socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP)?;
    attempt::connect(&socket, &kernel_address(world.tcp))
}

fn fast_open(world: &World) -> Result<(), Errno> {
    let socket = attempt::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    attempt::fast_open(&socket, &kernel_address(world.tcp))
}
