//! Whose a socket in the shared network is.
//!
//! Owns the way from an address to the mounts of the process that has it. Refuses to guess: a socket that is held with different mounts, or
//! by somebody who cannot be looked into, is nobody's. Its invariant: no run is named that does not hold the socket.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::Pid;

use super::kill::{number, processes};

/// The mounts of the processes that hold the socket with this address of its own.
pub fn mounts(holder: Pid, network: &File, socket: SocketAddr, stream: bool) -> Option<u64> {
    let names = if stream { ["tcp", "tcp6"] } else { ["udp", "udp6"] };
    let inode = names.into_iter().find_map(|name| {
        let table = fs::read_to_string(format!("/proc/{}/net/{name}", holder.as_raw_nonzero())).ok()?;
        table.lines().skip(1).find_map(|line| inode(line, socket, stream))
    })?;
    let network = network.metadata().ok()?.ino();
    let link = format!("socket:[{inode}]");
    let mut found = None;
    for pid in processes().ok()? {
        if number(pid, "net").ok() != Some(network) || !holds(pid, &link) {
            continue;
        }
        let mounts = number(pid, "mnt").ok()?;
        if found.is_some_and(|found| found != mounts) {
            return None;
        }
        found = Some(mounts);
    }
    found
}

fn holds(pid: Pid, link: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else { return false };
    descriptors.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(link)))
}

/// A line of `/proc/net/tcp`: `0: 0100007F:0C38 0100007F:D431 01 … uid timeout inode`.
fn inode(line: &str, socket: SocketAddr, stream: bool) -> Option<u64> {
    let mut fields = line.split_whitespace().skip(1);
    let local = address(fields.next()?)?;
    let inode: u64 = fields.nth(7)?.parse().ok().filter(|inode| *inode != 0)?;
    let same = local.ip().to_canonical() == socket.ip() || (!stream && local.ip().is_unspecified());
    (same && local.port() == socket.port()).then_some(inode)
}

/// Words of four bytes, each as the machine has it.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |place: usize| u32::from_str_radix(host.get(place * 8..place * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let host = if host.len() == 8 {
        IpAddr::V4(Ipv4Addr::from(word(0)?))
    } else {
        let mut bytes = [0u8; 16];
        for (place, part) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *part = word(place)?;
        }
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    Some(SocketAddr::new(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_whose_a_socket_is() {
        let line = "   0: 0100007F:D431 0100007F:0C38 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 20 4 30 10 -1";
        let at = |text: &str| inode(line, text.parse().unwrap(), true);
        assert_eq!((at("127.0.0.1:54321"), at("127.0.0.1:3128"), at("127.0.0.2:54321")), (Some(4711), None, None));
        let mapped = "0000000000000000FFFF00000100007F:D431";
        let mapped = address(mapped).map(|address| (address.ip().to_canonical(), address.port()));
        assert_eq!(mapped, Some((IpAddr::V4(Ipv4Addr::LOCALHOST), 54321)));
    }
}
