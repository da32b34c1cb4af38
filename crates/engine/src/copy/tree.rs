//! A folder that somebody else writes to, or has written.
//!
//! Owns every look into it: by one descriptor and names below it. Refuses links and ways out: a name that leads through one is an error.
//! Invariant: nothing outside the folder is read or changed, whatever lies in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fgetxattr, fstat, openat2, readlinkat, statat,
};
use rustix::io::Errno;
use writ_core::{Digest, Hasher};

/// What an overlay says of a folder that hides what is below it.
const OPAQUE: &str = "user.overlay.opaque";

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A link.
    Link,
    /// What an overlay keeps in the place of something removed.
    Whiteout,
    /// A socket, a pipe, a device.
    Other,
}

/// What is known of something without opening it.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// What the kernel says.
    pub stat: Stat,
}

impl Node {
    fn of(stat: Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            FileType::Symlink => Kind::Link,
            FileType::CharacterDevice if stat.st_rdev == 0 => Kind::Whiteout,
            FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Fifo
            | FileType::Socket
            | FileType::Unknown => Kind::Other,
        };
        Self { kind, stat }
    }

    /// Its rights.
    pub const fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    /// Its size; of a file only.
    pub fn size(&self) -> u64 {
        if self.kind == Kind::File { u64::try_from(self.stat.st_size).unwrap_or_default() } else { 0 }
    }
}

/// The folder.
#[derive(Debug)]
pub struct Tree {
    /// Where it was when it was opened.
    pub path: PathBuf,
    top: OwnedFd,
}

impl Tree {
    /// Opens it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        Ok(Self { path: path.to_owned(), top })
    }

    /// The folder that holds a name, and the name.
    pub fn parent<'a>(&self, name: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let (parent, last) = (name.parent().unwrap_or(Path::new("")), name.file_name());
        let last = last.ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        Ok((self.at(parent, OFlags::PATH | OFlags::DIRECTORY)?, last))
    }

    fn at(&self, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(openat2(&self.top, name, flags | OFlags::CLOEXEC, Mode::empty(), inside)?)
    }

    /// What is at a name, which may be a link; nothing where nothing is.
    pub fn find(&self, name: &Path) -> io::Result<Option<Node>> {
        if name.as_os_str().is_empty() {
            return Ok(Some(Node::of(fstat(&self.top)?)));
        }
        let found = self
            .parent(name)
            .and_then(|(parent, last)| statat(&parent, last, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from));
        match found {
            Ok(stat) => Ok(Some(Node::of(stat))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names in a folder, sorted; at most `most` of them.
    pub fn names(&self, name: &Path, most: usize) -> io::Result<Vec<OsString>> {
        let folder = self.at(name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            if bytes == b"." || bytes == b".." {
                continue;
            }
            if names.len() == most {
                return Err(io::Error::other("a folder holds more than is looked at"));
            }
            names.push(OsString::from_vec(bytes.to_vec()));
        }
        names.sort();
        Ok(names)
    }

    /// Opens a file for reading.
    pub fn file(&self, name: &Path) -> io::Result<File> {
        let file = File::from(self.at(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file any more")) }
    }

    /// Where a link leads.
    pub fn link(&self, name: &Path) -> io::Result<PathBuf> {
        let (parent, last) = self.parent(name)?;
        let target = readlinkat(&parent, last, Vec::new())?;
        Ok(PathBuf::from(OsStr::from_bytes(target.to_bytes())))
    }

    /// The digest of a file's bytes, or of a link's text.
    pub fn digest(&self, name: &Path, kind: Kind) -> io::Result<Option<Digest>> {
        match kind {
            Kind::File => {
                let mut hasher = Hasher::default();
                io::copy(&mut self.file(name)?, &mut Into(&mut hasher))?;
                Ok(Some(hasher.finish()))
            }
            Kind::Link => Ok(Some(Digest::of(self.link(name)?.as_os_str().as_bytes()))),
            Kind::Folder | Kind::Whiteout | Kind::Other => Ok(None),
        }
    }

    /// Whether a folder of a layer hides what is below it. An error where it says so in a way that is not known.
    pub fn is_opaque(&self, name: &Path) -> io::Result<bool> {
        let folder = self.at(name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut value = [0_u8; 8];
        match fgetxattr(&folder, OPAQUE, &mut value) {
            Ok(1) if value.first() == Some(&b'y') => Ok(true),
            Ok(_) | Err(Errno::RANGE) => Err(io::Error::other("it hides what is below in a way that is not known")),
            Err(Errno::NODATA | Errno::NOTSUP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// A hasher that is written to.
struct Into<'a>(&'a mut Hasher);

impl io::Write for Into<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
