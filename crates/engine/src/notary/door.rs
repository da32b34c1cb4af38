//! The socket: where it is, how it is bound and reached, and who is at its other end.
//!
//! Owns the addresses. Refuses a socket whose process is another user's. Invariant: of one state folder at most one notary listens.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

/// The socket's name in the state folder.
pub const SOCKET: &str = "notary.sock";
/// The lock of the one notary of a state folder.
pub const LOCK: &str = "notary.lock";
/// Longest path that a socket's address holds.
const MAX_ADDRESS: usize = 107;

/// The socket of a state folder.
pub fn socket(state: &Path) -> PathBuf {
    state.join(SOCKET)
}

/// Binds the socket. What an earlier notary left there goes; the caller holds the [lock](LOCK).
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    at(path, |address| UnixListener::bind(address))
}

/// Reaches the process that listens there, which has to be of this process's own user.
pub fn connect(path: &Path) -> io::Result<(UnixStream, UCred)> {
    let stream = at(path, |address| UnixStream::connect(address))?;
    let peer = socket_peercred(&stream)?;
    if peer.uid == geteuid() {
        return Ok((stream, peer));
    }
    let why = format!("{} is answered by user {}, not by your own", path.display(), peer.uid.as_raw());
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

/// Why whoever asks is not answered: it is another user's, or what a path leads to is another file for it.
pub fn stranger(stream: &UnixStream) -> Option<String> {
    let peer = match socket_peercred(stream) {
        Ok(peer) if peer.uid == geteuid() => peer,
        Ok(peer) => return Some(format!("user {} is not the notary's", peer.uid.as_raw())),
        Err(error) => return Some(format!("who asks cannot be told: {error}")),
    };
    let process = peer.pid.as_raw_nonzero();
    let same = |space: &str| {
        let theirs = fs::read_link(format!("/proc/{process}/ns/{space}")).ok()?;
        Some(fs::read_link(format!("/proc/self/ns/{space}")).ok()? == theirs)
    };
    let other = ["mnt", "pid", "user"].into_iter().find(|space| same(space) != Some(true))?;
    Some(format!("it is in another `{other}` namespace than the notary"))
}

/// Uses a socket's address. One that is too long is reached through its folder.
fn at<T>(path: &Path, then: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().as_bytes().len() <= MAX_ADDRESS {
        return then(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let folder = File::from(open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
    then(&Path::new(&format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd())).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_no_address_holds_is_reached_all_the_same() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("x".repeat(120));
        fs::create_dir(&folder).unwrap();
        let path = socket(&folder);
        assert_eq!(connect(&path).unwrap_err().kind(), ErrorKind::NotFound);
        let listener = bind(&path).unwrap();
        let (ours, peer) = connect(&path).unwrap();
        assert_eq!(peer.pid, rustix::process::getpid());
        let (theirs, _) = listener.accept().unwrap();
        assert_eq!((stranger(&theirs), stranger(&ours)), (None, None));
        drop(listener);
        // The name alone answers nobody, and does not keep the next from binding.
        assert_eq!(connect(&path).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        drop(bind(&path).unwrap());
    }
}
