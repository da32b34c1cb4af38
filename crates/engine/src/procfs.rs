//! Files of `/proc`, as the kernel gives them.
//!
//! Owns the way to them. Refuses whatever was mounted over the folder or a file in it, and the folder of another process namespace, for
//! whoever has namespaces of its own can put any text there. Invariant: what is read here was written by the kernel about this machine's
//! processes, as this process numbers them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstat, fstatfs, open, openat2, readlinkat};

/// Most that is read of a file.
const MAX: u64 = 1 << 20;
/// The folder's own number in its file system.
const ROOT: u64 = 1;
/// The machine's first user namespace.
const FIRST_USERS: &str = "user:[4026531837]";
/// Its first process namespace.
const FIRST_PROCESSES: &str = "pid:[4026531836]";

/// The folder.
pub struct Proc(OwnedFd);

fn not_genuine(why: &str) -> io::Error {
    io::Error::other(format!("/proc is not the kernel's own: {why}"))
}

impl Proc {
    /// Opens it.
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = open("/proc", flags, Mode::empty())?;
        if fstatfs(&folder)?.f_type != PROC_SUPER_MAGIC || fstat(&folder)?.st_ino != ROOT {
            return Err(not_genuine("something else is mounted there"));
        }
        let own = readlinkat(&folder, "self", Vec::new())?;
        if own.to_bytes() != std::process::id().to_string().as_bytes() {
            return Err(not_genuine("it shows another process namespace"));
        }
        Ok(Self(folder))
    }

    /// A file of a process, or of the machine: `17/stat`, `net/tcp` of this process's network.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::from(self.file(path)?).take(MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The same as text.
    pub fn text(&self, path: impl AsRef<Path>) -> io::Result<String> {
        String::from_utf8(self.read(path)?).map_err(io::Error::other)
    }

    /// A file in it, open.
    pub fn file(&self, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
        self.inside(path.as_ref(), OFlags::RDONLY)
    }

    /// A folder in it.
    pub fn folder(&self, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
        self.inside(path.as_ref(), OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// What a process's namespace of a kind is called: `user:[4026531837]`.
    pub fn namespace(&self, process: u32, kind: &str) -> io::Result<String> {
        let folder = self.inside(Path::new(&format!("{process}/ns")), OFlags::PATH | OFlags::DIRECTORY)?;
        readlinkat(&folder, kind, Vec::new())?.into_string().map_err(io::Error::other)
    }

    /// Whether a process has the rights that its user has on this machine, and not those of a user namespace of its own.
    pub fn is_in_first_users(&self, process: u32) -> bool {
        self.namespace(process, "user").is_ok_and(|name| name == FIRST_USERS)
    }

    fn inside(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let plain = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        Ok(openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), plain)?)
    }
}

/// Whether a process namespace is the machine's first.
pub fn is_first(namespace: &str) -> bool {
    namespace == FIRST_PROCESSES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_this_process() {
        let proc = Proc::open().unwrap();
        let own = std::process::id();
        assert!(proc.text(format!("{own}/stat")).unwrap().starts_with(&own.to_string()));
        assert!(proc.namespace(own, "user").unwrap().starts_with("user:["));
        assert!(proc.read("../etc/passwd").is_err() && proc.read("self/stat").is_err());
    }
}
