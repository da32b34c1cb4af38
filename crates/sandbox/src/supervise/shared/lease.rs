//! The side that borrows, and the socket where both meet.
//!
//! Owns what is said there: a name, namespaces; mounts, that they are known; how the run ended, what was seen of it. Refuses an answer of
//! another user. Its invariant: a run that does not say that it ended well, however that comes, is ended.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, chmod, openat};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen as wait_for, socket_with,
};
use rustix::process::geteuid;
use writ_core::Digest;

use super::packet;
use crate::confinement::Layered;
use crate::host_path::HostPath;
use crate::inside::Target;
use crate::supervise::Listeners;

/// What is said at the end of a run whose children may stay.
pub const WELL: &[u8] = b"well";
/// Asked for instead of a run's name: that nobody gets them any more.
pub const RETIRE: &str = "\0retire";
/// What is lent, a letter each: users, processes, network, owners.
pub const KINDS: [u8; 4] = *b"upno";
/// Each overlay, after those, in the order in which they were asked for. What the kernel works in for them is called as is said after a zero.
pub const OVERLAY: u8 = b'c';
/// A tree of the run's own, after those: the digest of its words is said after another zero.
pub const TREE: u8 = b't';
/// What is said of a run whose mounts stand, after all that is protected in them.
pub const BEGAN: &[u8] = b"began";
/// How many of those are said at once: a path has up to 4096 bytes, and a packet holds 16 of the longest.
const PROTECTED_AT_ONCE: usize = 15;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many may wait.
const WAITING: i32 = 128;

/// Namespaces that were asked for. Who lends them takes a moment, in which a run is prepared.
#[derive(Debug)]
pub struct Awaited(Arc<OwnedFd>);

/// Namespaces to run in, lent by whoever holds them.
#[derive(Debug)]
pub struct Joined {
    pub(super) user: OwnedFd,
    pub(super) processes: OwnedFd,
    pub(super) network: Option<OwnedFd>,
    /// A namespace of users in which root's files are the command's, where it stands in for root.
    pub(in super::super) owners: Option<OwnedFd>,
    /// What lies over its layered folders.
    pub(in super::super) overlays: Option<Overlays>,
    /// A tree of its own, made before: by the digest of the words that say what it is.
    pub(in super::super) tree: Option<(Digest, OwnedFd)>,
}

/// Overlays, in the order of the folders that they lie over.
#[derive(Debug)]
pub struct Overlays {
    /// What the folders are called that the kernel works in, in each layer.
    pub work: String,
    /// What stands for them.
    pub trees: Vec<OwnedFd>,
}

/// A run that is to begin.
pub struct Asked {
    /// What it is called.
    pub run: String,
    /// What changes of it go to a layer.
    pub layered: Vec<Layered>,
    /// Whether it sees the same mounts.
    pub here: bool,
}

/// That they are lent. Where it is dropped, what is left of the run ends.
#[derive(Debug)]
pub struct Lease(Arc<OwnedFd>);

impl Lease {
    /// Asks for them at the socket `name` in `folder`, for a run that is called `run` and has these layers.
    pub fn ask(folder: &Path, name: &str, run: &str, layered: &[Layered]) -> io::Result<(Self, Awaited)> {
        let socket = reach(folder, name)?;
        packet::send(&socket, &asked(run, layered), &[])?;
        let socket = Arc::new(socket);
        Ok((Self(Arc::clone(&socket)), Awaited(socket)))
    }

    /// Whether anybody answers there.
    pub fn answers(folder: &Path, name: &str) -> bool {
        reach(folder, name).is_ok()
    }

    /// Has them lent to nobody any more: they end with the last run that has them.
    pub fn retire(folder: &Path, name: &str) -> io::Result<()> {
        let socket = reach(folder, name)?;
        packet::send(&socket, RETIRE.as_bytes(), &[])?;
        // Who asks is looked at, so is not to end before.
        packet::receive(&socket).map(drop)
    }

    /// Says which mounts the run's processes have, and hands over the record of its names, before its command starts; not before that is
    /// known.
    pub fn began(&self, listeners: &Listeners) -> io::Result<()> {
        let mounts = listeners.mounts.as_ref().ok_or_else(|| io::Error::other("no mounts of its own were made"))?;
        let both: Vec<_> = [Some(mounts), listeners.names.as_ref()].into_iter().flatten().map(AsFd::as_fd).collect();
        for some in listeners.protected.chunks(PROTECTED_AT_ONCE) {
            packet::send(&self.0, &protected(some), &[])?;
        }
        // One that is too large for a packet each run makes itself.
        if let Some(words) = listeners.tree.as_ref().filter(|words| words.len() < packet::MOST) {
            packet::send(&self.0, &[&[TREE], words.as_slice()].concat(), &[])?;
        }
        packet::send(&self.0, BEGAN, &both)?;
        packet::receive(&self.0).map(drop)
    }

    /// Gives them back; with `stay`, what the command has left goes on, and who lends them answers on `watched`, where its calls that name
    /// files wait. What is told of the run comes back; `meanwhile` is done until then.
    pub fn end(self, stay: bool, watched: Option<OwnedFd>, meanwhile: impl FnOnce()) -> io::Result<Vec<u8>> {
        let watched = watched.as_ref().map(AsFd::as_fd);
        packet::send(&self.0, if stay { WELL } else { b"end" }, watched.as_slice())?;
        meanwhile();
        packet::receive(&self.0).map(|(told, _)| told)
    }
}

impl Awaited {
    /// Waits for the answer.
    pub fn lent(self) -> io::Result<Joined> {
        let (said, descriptors) = packet::receive(&self.0)?;
        let mut said = said.split(|byte| *byte == 0);
        let which = said.next().unwrap_or_default();
        let mut next = || String::from_utf8(said.next().unwrap_or_default().to_vec()).map_err(io::Error::other);
        let (work, digest) = (next()?, next()?);
        let mut joined = [const { None }; 4];
        let (mut trees, mut own) = (Vec::new(), None);
        for (kind, descriptor) in which.iter().zip(descriptors) {
            let place = KINDS.iter().position(|known| known == kind);
            match place.and_then(|place| joined.get_mut(place)) {
                Some(place) => *place = Some(descriptor),
                None if *kind == TREE => own = Some(descriptor),
                None => trees.push(descriptor),
            }
        }
        let overlays = (!trees.is_empty()).then_some(Overlays { work, trees });
        let tree = Digest::from_hex(&digest).ok().zip(own);
        match joined {
            [Some(user), Some(processes), network, owners] => {
                Ok(Joined { user, processes, network, owners, overlays, tree })
            }
            _ => Err(io::Error::other("no namespaces were lent")),
        }
    }
}

/// Files that are protected, each with a zero behind it: `m` before those that cannot be read either.
fn protected(targets: &[Target]) -> Vec<u8> {
    let mut said = Vec::new();
    for target in targets {
        said.push(if target.masked { b'm' } else { b'r' });
        said.extend_from_slice(target.path.to_bytes_with_nul());
    }
    said
}

/// The same, as it was said.
pub fn protected_of(said: &[u8]) -> impl Iterator<Item = Target> {
    said.split_inclusive(|byte| *byte == 0).filter_map(|one| {
        let (kind, path) = one.split_first()?;
        Some(Target { path: CStr::from_bytes_with_nul(path).ok()?.to_owned(), masked: *kind == b'm' })
    })
}

/// A run's name, and after a zero each its folders and their layers. Those that are to outlast a power cut it makes itself.
fn asked(run: &str, layered: &[Layered]) -> Vec<u8> {
    let mut said = run.as_bytes().to_vec();
    let lent = if layered.iter().any(|layered| layered.lasting) { &[] } else { layered };
    for path in lent.iter().flat_map(|layered| [&layered.path, &layered.layer]) {
        said.push(0);
        said.extend_from_slice(path.as_path().as_os_str().as_bytes());
    }
    said
}

impl Asked {
    /// What was asked.
    pub fn of(said: &[u8]) -> io::Result<Self> {
        let mut parts = said.split(|byte| *byte == 0);
        let run = String::from_utf8(parts.next().unwrap_or_default().to_vec()).map_err(io::Error::other)?;
        let mut paths = parts.map(|path| HostPath::new(OsStr::from_bytes(path)).map_err(io::Error::other));
        let mut layered = Vec::new();
        while let Some(path) = paths.next().transpose()? {
            let layer = paths.next().ok_or_else(|| io::Error::other("a folder without its layer"))??;
            layered.push(Layered { path, layer, lasting: false });
        }
        Ok(Self { run, layered, here: true })
    }
}

fn reach(folder: &Path, name: &str) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    at(folder, name, |address| Ok(connect(&socket, address)?))?;
    if socket_peercred(&socket)?.uid != geteuid() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "answered by somebody else"));
    }
    Ok(socket)
}

/// A socket at which namespaces are asked for, in the place of one that nobody answers at any more.
pub fn listen(folder: &Path, name: &str) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match std::fs::remove_file(folder.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    at(folder, name, |address| Ok(bind(&socket, address)?))?;
    chmod(folder.join(name), Mode::from_raw_mode(0o600))?;
    wait_for(&socket, WAITING)?;
    Ok(socket)
}

/// A socket's path may have no more than 107 bytes, whatever the folder's.
fn at(folder: &Path, name: &str, then: impl FnOnce(&SocketAddrUnix) -> io::Result<()>) -> io::Result<()> {
    let folder = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    then(&SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))?)
}
