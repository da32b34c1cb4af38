//! Files that are denied, and names that are kept.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, Mode, OFlags, RenameFlags, access, open, renameat_with};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::{Attack, World, of};
use crate::sys::attempt;

pub const ATTACKS: &[Attack] = &[
    Attack { id: "F01", words: "read a denied file", run: |world| read(&outside(world)) },
    Attack { id: "F03", words: "read it through a link", run: through_link },
    Attack { id: "F04", words: "read it through /proc/self/root", run: |world| read(&rooted(&outside(world))) },
    Attack { id: "F05", words: "read it through another process's root", run: through_process },
    Attack { id: "F09", words: "read the host's temporary files", run: |world| read(world.temporary.as_path()) },
    Attack { id: "F06", words: "read a descriptor that was open", run: descriptor },
    Attack { id: "F07", words: "make a hard link to it", run: |world| hard_link(&outside(world), world) },
    Attack { id: "F11", words: "read what this confinement masks", run: |world| any(&world.masked, read_within) },
    Attack { id: "D01", words: "read a denied file in an open folder", run: |world| read(&denied(world)) },
    Attack { id: "D02", words: "read it after renaming its folder", run: rename_folder },
    Attack { id: "D03", words: "read it through a hard link", run: |world| hard_link(&denied(world), world) },
    Attack { id: "D04", words: "read it through a path descriptor", run: path_descriptor },
    Attack { id: "D05", words: "unmount what covers it", run: uncover },
    Attack { id: "D08", words: "exchange its folder with another", run: exchange },
    Attack { id: "P01", words: "write in a folder that is kept", run: |world| create(&below(world, "open/kept/new")) },
    Attack { id: "P02", words: "write a file that is kept", run: |world| write(&below(world, "open/kept/file")) },
    Attack { id: "P03", words: "rename a folder above what is kept", run: rename_above },
    Attack { id: "P06", words: "make a file that may not be", run: |world| create(&below(world, "open/none")) },
    Attack { id: "P09", words: "write what this confinement keeps", run: |world| any(&world.read_only, could_write) },
    Attack { id: "P12", words: "leave a set-user-id file behind", run: set_user_id },
    Attack { id: "P11", words: "write outside through a link", run: write_through_link },
];

pub(super) fn below(world: &World, name: &str) -> PathBuf {
    world.folder.as_path().join(name)
}

pub(super) fn outside(world: &World) -> PathBuf {
    below(world, "outside")
}

pub(super) fn denied(world: &World) -> PathBuf {
    below(world, "open/denied/file")
}

pub(super) fn rooted(path: &Path) -> PathBuf {
    let mut rooted = PathBuf::from("/proc/self/root");
    rooted.push(path.strip_prefix("/").unwrap_or(path));
    rooted
}

fn through_process(world: &World) -> Result<(), Errno> {
    let mut path = PathBuf::from(format!("/proc/{}/root", world.process));
    path.push(outside(world).strip_prefix("/").unwrap_or(Path::new("")));
    read(&path)
}

/// A name of this process's own in the open folder.
pub(super) fn own(world: &World, name: &str) -> PathBuf {
    below(world, "open/free").join(format!("{name}-{}", std::process::id()))
}

pub(super) fn read(path: &Path) -> Result<(), Errno> {
    let metadata = fs::metadata(path).map_err(|error| of(&error))?;
    if metadata.is_dir() {
        return fs::read_dir(path).map(drop).map_err(|error| of(&error));
    }
    let mut file = fs::File::open(path).map_err(|error| of(&error))?;
    match file.read(&mut [0u8; 1]) {
        Ok(1) => Ok(()),
        Ok(_) => Err(Errno::NODATA),
        Err(error) => Err(of(&error)),
    }
}

/// Reads a file, or one of those in a folder: its names alone are seen where nothing can be mounted over it.
pub(super) fn read_within(path: &Path) -> Result<(), Errno> {
    if !path.is_dir() {
        return read(path);
    }
    let entries = fs::read_dir(path).map_err(|error| of(&error))?;
    let read = entries.flatten().take(64).any(|entry| read_within(&entry.path()).is_ok());
    if read { Ok(()) } else { Err(Errno::ACCESS) }
}

pub(super) fn any(paths: &[crate::HostPath], attempt: impl Fn(&Path) -> Result<(), Errno>) -> Result<(), Errno> {
    if paths.iter().any(|path| attempt(path.as_path()).is_ok()) { Ok(()) } else { Err(Errno::ACCESS) }
}

/// Whether it could be written, which is not done: a file is opened for that, and in a folder one is made that has no name.
pub(super) fn could_write(path: &Path) -> Result<(), Errno> {
    if !path.is_dir() {
        return write(path);
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match open(path, flags, Mode::RUSR) {
        // Not every file system has such files; there the kernel only says whether it could be.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => access(path, Access::WRITE_OK),
        made => made.map(drop),
    }
}

/// Opens for writing, and writes nothing.
pub(super) fn write(path: &Path) -> Result<(), Errno> {
    OpenOptions::new().append(true).open(path).map(drop).map_err(|error| of(&error))
}

pub(super) fn create(path: &Path) -> Result<(), Errno> {
    fs::write(path, "").map_err(|error| of(&error))?;
    fs::remove_file(path).map_err(|error| of(&error))
}

pub(super) fn then_remove(path: &Path, result: Result<(), Errno>) -> Result<(), Errno> {
    // It may not have been made.
    fs::remove_file(path).unwrap_or_default();
    result
}

fn through_link(world: &World) -> Result<(), Errno> {
    let link = own(world, "link");
    symlink(outside(world), &link).map_err(|error| of(&error))?;
    then_remove(&link, read(&link))
}

fn write_through_link(world: &World) -> Result<(), Errno> {
    let link = own(world, "out");
    symlink(outside(world), &link).map_err(|error| of(&error))?;
    then_remove(&link, write(&link))
}

fn descriptor(world: &World) -> Result<(), Errno> {
    read(Path::new(&format!("/proc/self/fd/{}", world.descriptor)))
}

fn hard_link(path: &Path, world: &World) -> Result<(), Errno> {
    let link = own(world, "hard");
    fs::hard_link(path, &link).map_err(|error| of(&error))?;
    then_remove(&link, read(&link))
}

fn rename_folder(world: &World) -> Result<(), Errno> {
    let moved = own(world, "moved");
    fs::rename(below(world, "open/denied"), &moved).map_err(|error| of(&error))?;
    let result = read(&moved.join("file"));
    fs::rename(&moved, below(world, "open/denied")).map_err(|error| of(&error))?;
    result
}

fn rename_above(world: &World) -> Result<(), Errno> {
    let moved = own(world, "above");
    fs::rename(below(world, "open/kept"), &moved).map_err(|error| of(&error))?;
    fs::rename(&moved, below(world, "open/kept")).map_err(|error| of(&error))
}

fn path_descriptor(world: &World) -> Result<(), Errno> {
    let path = open(denied(world), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&path);
    read(Path::new(&format!("/proc/self/fd/{number}")))
}

fn uncover(world: &World) -> Result<(), Errno> {
    attempt::own_ground(libc::CLONE_NEWNS);
    // Outside nothing covers it, which is as good.
    match unmount(denied(world).as_os_str(), UnmountFlags::DETACH) {
        Ok(()) | Err(Errno::INVAL) => read(&denied(world)),
        Err(error) => Err(error),
    }
}

fn exchange(world: &World) -> Result<(), Errno> {
    let other = own(world, "other");
    fs::create_dir(&other).map_err(|error| of(&error))?;
    let denied = below(world, "open/denied");
    let exchanged = renameat_with(CWD, &denied, CWD, &other, RenameFlags::EXCHANGE);
    let result = exchanged.and_then(|()| read(&other.join("file")));
    if exchanged.is_ok() {
        renameat_with(CWD, &denied, CWD, &other, RenameFlags::EXCHANGE)?;
    }
    fs::remove_dir(&other).map_err(|error| of(&error))?;
    result
}

fn set_user_id(world: &World) -> Result<(), Errno> {
    let file = own(world, "setuid");
    fs::write(&file, "").map_err(|error| of(&error))?;
    let set = fs::set_permissions(&file, Permissions::from_mode(0o4755)).map_err(|error| of(&error));
    let kept = fs::metadata(&file).is_ok_and(|metadata| metadata.permissions().mode() & 0o4000 != 0);
    then_remove(&file, set.and(if kept { Ok(()) } else { Err(Errno::PERM) }))
}
