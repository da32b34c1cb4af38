//! Who is at the other end of a connection on loopback.
//!
//! Owns the look into the kernel's tables of sockets. Refuses to guess: a connection that they do not show has no known peer. Invariant: a
//! peer is told of the connection that is open now, by both its addresses.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, readlinkat};

use crate::procfs::Proc;

/// Most that is read of a table: of more sockets than fit in it no peer is known.
const TABLE: u64 = 16 << 20;
/// Most processes that are looked at.
const PROCESSES: usize = 1 << 16;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    inode: u64,
}

/// The peer at `theirs`, of a connection to `ours`.
pub fn of(theirs: SocketAddr, ours: SocketAddr) -> io::Result<Option<Peer>> {
    let own = std::process::id();
    let (name, wanted) = match (theirs.ip(), ours.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => ("tcp", [hex(theirs), hex(ours)]),
        _ => ("tcp6", [hex(theirs), hex(ours)]),
    };
    let table: OwnedFd = Proc::open()?.file(format!("{own}/net/{name}"))?;
    let mut lines = BufReader::with_capacity(1 << 16, File::from(table).take(TABLE)).lines();
    lines.next();
    for line in lines {
        let line = line?;
        let mut words = line.split_ascii_whitespace().skip(1);
        let [local, remote] = [words.next(), words.next()].map(Option::unwrap_or_default);
        if [local, remote] == wanted {
            let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
            let (uid, inode) = (number(words.nth(4)), number(words.nth(1)));
            return Ok(uid.zip(inode).and_then(|(uid, inode)| Some(Peer { uid: u32::try_from(uid).ok()?, inode })));
        }
    }
    Ok(None)
}

/// An address as the tables have it: words of four bytes as this machine orders them, and the port.
fn hex(address: SocketAddr) -> String {
    let bytes = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)));
    let words: String = words.map(|word| format!("{word:08X}")).collect();
    format!("{words}:{:04X}", address.port())
}

impl Peer {
    /// The process that holds its end; those in `first` are looked at before all others. `None` where none is seen to.
    pub fn process(&self, first: &[u32]) -> Option<u32> {
        let proc = Proc::open().ok()?;
        let link = format!("socket:[{}]", self.inode);
        let known = first.iter().copied().find(|id| holds(&proc, *id, &link));
        known.or_else(|| processes(&proc)?.into_iter().find(|id| holds(&proc, *id, &link)))
    }
}

fn processes(proc: &Proc) -> Option<Vec<u32>> {
    let entries = Dir::read_from(proc.folder(".").ok()?).ok()?.filter_map(Result::ok);
    let mut ids: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()).take(PROCESSES).collect();
    // A client is younger than most.
    ids.sort_unstable_by(|a, b| b.cmp(a));
    Some(ids)
}

fn holds(proc: &Proc, id: u32, link: &str) -> bool {
    let Ok(folder) = proc.folder(format!("{id}/fd")) else { return false };
    let Ok(entries) = Dir::read_from(&folder) else { return false };
    let is =
        |name: &std::ffi::CStr| readlinkat(&folder, name, Vec::new()).is_ok_and(|to| to.to_bytes() == link.as_bytes());
    entries.filter_map(Result::ok).any(|entry| is(entry.file_name()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_has_a_user_and_a_process() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let ours = listener.local_addr().unwrap();
            let stream = TcpStream::connect(ours).unwrap();
            let (_accepted, theirs) = listener.accept().unwrap();
            assert_eq!(stream.local_addr().unwrap(), theirs);
            let peer = of(theirs, ours).unwrap().unwrap();
            assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
            let own = std::process::id();
            assert_eq!((peer.process(&[]), peer.process(&[own])), (Some(own), Some(own)));
            drop(stream);
            let nobody = SocketAddr::new(theirs.ip(), 1);
            assert_eq!(of(nobody, ours).unwrap(), None);
        }
    }
}
