//! The socket: where it is, how it is bound and reached, and who is at its other end.
//!
//! Owns the addresses. Refuses a socket in the user's own folders whose process is another user's, and one of another user in a folder that
//! is not root's alone. Invariant: of one state folder at most one notary listens.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, Uid, chown, open};
use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use crate::Asker;

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

/// Binds the socket of a notary for another user, who alone may reach it, in a folder that is root's alone. For root.
pub fn bind_for(path: &Path, user: u32) -> io::Result<UnixListener> {
    roots_alone(path)?;
    let listener = bind(path)?;
    chown(path, Some(Uid::from_raw(user)), None)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Reaches the notary of another user: its socket lies where only root can put one, and whoever listens is not this user.
pub fn connect_other(path: &Path) -> io::Result<(UnixStream, UCred)> {
    let stream = at(path, |address| UnixStream::connect(address))?;
    roots_alone(path)?;
    let peer = socket_peercred(&stream)?;
    if peer.uid != geteuid() {
        return Ok((stream, peer));
    }
    let why = format!("{} is answered by your own user, not by another", path.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

/// Refuses a path that somebody else than root could lead elsewhere.
fn roots_alone(path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
    for (above, folder) in folder.ancestors().enumerate() {
        let found = folder.symlink_metadata()?;
        let (others, sticky) = (found.mode() & 0o022 != 0, found.mode() & 0o1000 != 0);
        if !found.is_dir() || found.uid() != 0 || others && !(sticky && above > 0) {
            let why = format!("{} is not a folder that only root can write to", folder.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
    }
    Ok(())
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

/// Why whoever asks is not answered: it is not the user that the notary is for, which is its own where none is named, or what a path leads to
/// is another file for it.
pub fn stranger(stream: &UnixStream, of: Option<u32>) -> Option<String> {
    let wanted = of.map_or_else(geteuid, Uid::from_raw);
    let peer = match socket_peercred(stream) {
        Ok(peer) if peer.uid == wanted => peer,
        Ok(peer) => return Some(format!("user {} is not the one that this notary is for", peer.uid.as_raw())),
        Err(error) => return Some(format!("who asks cannot be told: {error}")),
    };
    if of.is_some() {
        // Of another user's process the kernel does not tell.
        return None;
    }
    let process = peer.pid.as_raw_nonzero();
    let mut own = own_spaces().iter().zip(SPACES);
    let (_, other) =
        own.find(|(own, space)| own.is_none() || fs::read_link(format!("/proc/{process}/ns/{space}")).ok() != **own)?;
    Some(format!("it is in another `{other}` namespace than the notary"))
}

/// Namespaces that decide what a path and a process's number mean.
const SPACES: [&str; 3] = ["mnt", "pid", "user"];

/// This process's own; nothing of one that cannot be seen. It never leaves them.
fn own_spaces() -> &'static [Option<PathBuf>; SPACES.len()] {
    static OWN: OnceLock<[Option<PathBuf>; SPACES.len()]> = OnceLock::new();
    OWN.get_or_init(|| SPACES.map(|space| fs::read_link(format!("/proc/self/ns/{space}")).ok()))
}

/// The process at the other end, as it was when it connected.
pub fn asker(stream: &UnixStream) -> io::Result<Asker> {
    let process = socket_peercred(stream)?.pid.as_raw_nonzero().get();
    Ok(u32::try_from(process).map_or(Asker::Unknown, Asker::Process))
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
        assert_eq!((stranger(&theirs, None), stranger(&ours, None)), (None, None));
        drop(listener);
        // The name alone answers nobody, and does not keep the next from binding.
        assert_eq!(connect(&path).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        drop(bind(&path).unwrap());
    }

    #[test]
    fn the_notary_of_another_user_is_where_only_root_puts_it() {
        let root = tempfile::tempdir().unwrap();
        let path = socket(root.path());
        let _listener = bind(&path).unwrap();
        // Whoever runs this test listens here, and is no other user.
        assert_eq!(connect_other(&path).unwrap_err().kind(), ErrorKind::PermissionDenied);
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = connect_other(&path).unwrap_err().to_string();
        assert!(refused.contains("only root"), "{refused}");
    }
}
