//! Sockets of a command that has no network of its own and is to reach nothing but the proxy.
//!
//! Owns the answers to the calls that make, connect and open sockets: each socket it gets has its other end here already, and where it is
//! connected to only says what it is for. Refuses every address that stands for nothing, and to listen. Invariant: no such call ever goes on
//! to the kernel, so what a program writes over an address behind the answer changes nothing.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::readlink;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;
use rustix::thread::{Gid, Uid, set_thread_res_gid, set_thread_res_uid};

use super::Listeners;
use super::unconnected::{Unconnected, number};
use crate::confinement::{Network, Ports};
use crate::inside::Orders;
use crate::sys::notify::{self, Call};

/// Longest address.
const LONGEST: usize = 128;
/// How long the other end of a connection on this machine's own loopback may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most refusals that are told of one run.
const MOST: usize = 256;

/// What a program asked for.
#[derive(Debug)]
pub enum Asked {
    /// A connection to the proxy, which it has. This is the other end.
    Proxy(TcpStream),
    /// A connection to an address that stands for a host, or a port of this machine's that is handed in.
    Direct(TcpStream, SocketAddrV4),
    /// A socket for questions about names. This is the other end: a packet is a question, and its answer is one.
    Names(OwnedFd),
    /// A connection to somewhere else, which was refused.
    Elsewhere(SocketAddr),
    /// Something that is no connection, which was refused: in words.
    Other(&'static str),
}

type Receive = Box<dyn Fn(Asked) -> io::Result<()> + Send + Sync>;

/// Where a run's sockets lead. As long as nobody receives them, none is connected.
#[derive(Clone, Default)]
pub struct Connected(Arc<OnceLock<Receive>>);

impl Connected {
    /// Has `receive` take what is asked for: at once, since the program waits. An error refuses it.
    pub fn received_by(&self, receive: impl Fn(Asked) -> io::Result<()> + Send + Sync + 'static) {
        // Who came first stays.
        self.0.set(Box::new(receive)).unwrap_or_default();
    }

    fn receive(&self, asked: Asked) -> io::Result<()> {
        self.0.get().map_or_else(|| Err(ErrorKind::NotConnected.into()), |receive| receive(asked))
    }
}

impl std::fmt::Debug for Connected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connected")
    }
}

/// Who answers the calls.
pub struct Sockets {
    ports: Ports,
    connected: Connected,
    /// By which both ends of a connection are made.
    listener: TcpListener,
    /// The other ends of those that are not connected yet.
    unconnected: Unconnected,
    /// What the port for hooks stands for.
    hooks: Option<SocketAddr>,
    /// Whom the command is, where it is somebody else.
    user: Option<(u32, u32)>,
    told: Vec<String>,
}

impl Sockets {
    /// Answers for a run without a network of its own, where it is to reach a proxy; nothing for any other.
    pub fn begin(orders: &Orders, listeners: &mut Listeners) -> io::Result<Option<Self>> {
        let Network::Proxied(ports) = &orders.network else { return Ok(None) };
        if orders.namespaces {
            return Ok(None);
        }
        let own = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let hooks = ports.hooks.map(|_| own()).transpose()?;
        let address = hooks.as_ref().map(TcpListener::local_addr).transpose()?;
        let connected = Connected::default();
        (listeners.connected, listeners.hooks) = (Some(connected.clone()), hooks);
        let (ports, user) = (ports.clone(), orders.become_user);
        let unconnected = Unconnected::default();
        Ok(Some(Self { ports, connected, listener: own()?, unconnected, hooks: address, user, told: Vec::new() }))
    }

    /// Becomes the command's user, for this thread alone: only the same user may read its memory where root is not allowed everything.
    pub fn come_near(&self) -> Result<(), Errno> {
        let Some((uid, gid)) = self.user else { return Ok(()) };
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)
    }

    /// Answers a call.
    pub fn answer(&mut self, listener: BorrowedFd<'_>, call: &Call) {
        let [first, second, third, ..] = call.arguments;
        let answer = match call.number {
            libc::SYS_socket => match self.socket(listener, call) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            libc::SYS_connect => self.connect(listener, call, (first, second, third)),
            _ => {
                self.tell(Asked::Other("a server wanted to listen"));
                Err(Errno::ACCESS)
            }
        };
        // Who made it may have ended.
        notify::answer(listener, call, answer.map(|()| 0)).unwrap_or_default();
    }

    /// A socket whose other end is here: what it is for, connecting it says.
    fn socket(&mut self, listener: BorrowedFd<'_>, call: &Call) -> Result<(), Errno> {
        // Numbers of 32 bits, whatever stands above them.
        let [family, kind, protocol] =
            [0, 1, 2].map(|place| call.arguments.get(place).map_or(0, |number| *number as i32));
        let (close, wait) = (kind & libc::SOCK_CLOEXEC != 0, kind & libc::SOCK_NONBLOCK == 0);
        match (family, kind & 0xf, protocol) {
            (libc::AF_INET, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => {
                let made = self.pair().and_then(|(theirs, ours)| {
                    theirs.set_nonblocking(!wait)?;
                    self.unconnected.keep(number(theirs.as_fd())?, ours)?;
                    Ok(theirs)
                });
                let theirs = made.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOBUFS))?;
                notify::give(listener, call, theirs.as_fd(), close)
            }
            (libc::AF_INET, libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => {
                let theirs = self.names(wait)?;
                notify::give(listener, call, theirs.as_fd(), close)
            }
            _ => {
                self.tell(Asked::Other("a socket that is neither TCP nor UDP was wanted"));
                Err(Errno::PERM)
            }
        }
    }

    /// A socket for packets of which each goes to who answers for names, whatever address it is sent to: one of the internet's would take an
    /// address with each packet, where no filter looks. This kind takes none.
    fn names(&self, wait: bool) -> Result<OwnedFd, Errno> {
        let (theirs, ours) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        ioctl_fionbio(&theirs, !wait)?;
        self.connected.receive(Asked::Names(ours)).map_err(|_error| Errno::NOBUFS)?;
        Ok(theirs)
    }

    /// Both ends of a connection that nobody else has.
    fn pair(&self) -> io::Result<(TcpStream, TcpStream)> {
        let theirs = TcpStream::connect_timeout(&self.listener.local_addr()?, PATIENCE)?;
        let address = theirs.local_addr()?;
        let until = Instant::now() + PATIENCE;
        loop {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).map_err(io::Error::other)?;
            if poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(&left))? == 0 {
                return Err(ErrorKind::TimedOut.into());
            }
            let (ours, peer) = self.listener.accept()?;
            // Anybody on this machine can connect to it; only this one is meant.
            if peer == address {
                return Ok((theirs, ours));
            }
        }
    }

    fn connect(
        &mut self,
        listener: BorrowedFd<'_>,
        call: &Call,
        (descriptor, address, length): (u64, u64, u64),
    ) -> Result<(), Errno> {
        let address = target(call, address, length).ok_or(Errno::ACCESS)?;
        let here = |port: u16| address == SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if let Some(hooks) = self.hooks.filter(|_| self.ports.hooks.is_some_and(here)) {
            // The program that asks there is Writ's own, which waits for this descriptor in no other way.
            let stream = TcpStream::connect_timeout(&hooks, PATIENCE).map_err(|_error| Errno::CONNREFUSED)?;
            return notify::replace(listener, call, stream.as_fd(), descriptor as u32);
        }
        let number = call.process.and_then(|process| descriptor_number(process, descriptor as u32));
        let asked: fn(TcpStream, SocketAddrV4) -> Asked = match address {
            _ if here(self.ports.http) => |ours, _| Asked::Proxy(ours),
            SocketAddr::V4(to) if to.ip().is_loopback() && self.ports.direct.contains(&to.port()) => Asked::Direct,
            // Where names are asked for: a socket of packets leads there, and a stream nowhere.
            SocketAddr::V4(to) if self.ports.dns == Some(to.port()) && !self.unconnected.has(number) => return Ok(()),
            SocketAddr::V4(_) | SocketAddr::V6(_) => {
                self.tell(Asked::Elsewhere(address));
                return Err(Errno::ACCESS);
            }
        };
        let SocketAddr::V4(to) = address else { return Err(Errno::ACCESS) };
        // One that is connected stays where it is.
        let ours = self.unconnected.take(number).ok_or(Errno::ISCONN)?;
        self.connected.receive(asked(ours, to)).map_err(|_error| Errno::CONNREFUSED)
    }

    /// Tells of a refusal, once.
    fn tell(&mut self, asked: Asked) {
        let text = format!("{asked:?}");
        if self.told.len() < MOST && !self.told.contains(&text) {
            self.told.push(text);
            // It is refused whether or not somebody hears of it.
            self.connected.receive(asked).unwrap_or_default();
        }
    }
}

/// The number of the socket that a process has as this descriptor.
fn descriptor_number(process: Pid, descriptor: u32) -> Option<u64> {
    let link = readlink(format!("/proc/{}/fd/{descriptor}", process.as_raw_nonzero()), Vec::new()).ok()?;
    link.to_str().ok()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The internet address that a call names.
fn target(call: &Call, address: u64, length: u64) -> Option<SocketAddr> {
    let mut bytes = [0; LONGEST];
    let wanted = bytes.get_mut(..usize::try_from(length as u32).ok()?)?;
    let read = notify::read_memory(call.process?, address, wanted).ok()?;
    let bytes = bytes.get(..read)?;
    let part = |from: usize, to: usize| bytes.get(from..to);
    let family = i32::from(u16::from_ne_bytes(part(0, 2)?.try_into().ok()?));
    let port = u16::from_be_bytes(part(2, 4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let address: [u8; 4] = part(4, 8)?.try_into().ok()?;
            Some(SocketAddrV4::new(address.into(), port).into())
        }
        libc::AF_INET6 => {
            let address: [u8; 16] = part(8, 24)?.try_into().ok()?;
            Some(SocketAddrV6::new(address.into(), port, 0, 0).into())
        }
        _ => None,
    }
}
