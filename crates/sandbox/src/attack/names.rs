//! Files again: by other ways to the same name, and by what is left behind.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, XattrFlags, fchmod, open, openat, renameat_with, setxattr};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, mount_bind_recursive, unmount};

use super::files::{
    any, below, could_write, create, denied, outside, own, read, read_within, rooted, then_remove, write,
};
use super::kernel::apart;
use super::{Attack, World, of};
use crate::sys::attempt::{self, kernel};

pub const ATTACKS: &[Attack] = &[
    Attack { id: "F02", words: "read a denied file by dot-dot", run: |world| read(&below(world, "open/../outside")) },
    Attack { id: "F08", words: "read credentials of the home", run: home },
    Attack { id: "F10", words: "read through /proc/self/cwd", run: by_working_folder },
    Attack { id: "F12", words: "win a race of links to a denied file", run: |world| race(world, outside(world)) },
    Attack { id: "F13", words: "read beside an open folder by its descriptor", run: beside_descriptor },
    Attack { id: "F14", words: "read a token of the cluster's or a container's", run: tokens },
    Attack { id: "D06", words: "unmount a mask in a user namespace", run: uncover },
    Attack { id: "D07", words: "bind the folder anew in a user namespace", run: bind },
    Attack { id: "D12", words: "bind a masked folder by a detached copy of all mounts", run: detached },
    Attack { id: "D10", words: "read a denied file through another process's root", run: through_process },
    Attack { id: "D11", words: "read it after linking its folder's name anew", run: replace_folder },
    Attack { id: "D13", words: "win one to a denied file in an open folder", run: |world| race(world, denied(world)) },
    Attack { id: "P04", words: "write hooks of a repository", run: |world| kept(world, &["hooks"]) },
    Attack { id: "P05", words: "exchange a folder above what is kept", run: exchange_above },
    Attack { id: "P07", words: "name servers to a client", run: |world| kept(world, &[".mcp.json"]) },
    Attack { id: "P08", words: "write tasks of an editor", run: |world| kept(world, &[".vscode", ".idea", ".zed"]) },
    Attack { id: "P14", words: "put a file in place of a kept folder", run: file_for_folder },
    Attack { id: "P16", words: "reopen a kept file for writing by its descriptor", run: reopen },
    Attack { id: "P17", words: "make a set-user-id file in one call", run: |world| made(world, open_with_bits) },
    Attack {
        id: "P18",
        words: "the same by openat2",
        run: |world| made(world, |path| kernel::open_with(path, 0o4755)),
    },
    Attack { id: "P19", words: "the same by mknod", run: |world| made(world, |path| kernel::node(path, 0o104_755, 0)) },
    Attack {
        id: "P20",
        words: "set the bit by fchmodat2",
        run: |world| changed(world, |_, path| kernel::change_mode(path, 0o4755)),
    },
    Attack { id: "P21", words: "set the group's bit by its descriptor", run: |world| changed(world, by_descriptor) },
    Attack { id: "P22", words: "write below a layer", run: below_layer },
    Attack { id: "P23", words: "have a layer obey an attribute", run: layer_attribute },
    Attack { id: "P24", words: "give a file capabilities", run: capabilities },
    Attack { id: "P13", words: "make a device", run: device },
    Attack { id: "P25", words: "write where later programs are started from", run: |_| spools() },
];

fn home(world: &World) -> Result<(), Errno> {
    let home = std::env::var_os("HOME").map(PathBuf::from).ok_or(Errno::NOENT)?;
    let below: Vec<_> = world.masked.iter().filter(|path| path.as_path().starts_with(&home)).cloned().collect();
    if below.is_empty() { Err(Errno::NOENT) } else { any(&below, read_within) }
}

fn by_working_folder(world: &World) -> Result<(), Errno> {
    rustix::process::chdir(below(world, "open").as_path())?;
    read(Path::new("/proc/self/cwd/../outside"))
}

/// A link that leads now to an own file, now to a denied one, is read as fast as it is changed.
fn race(world: &World, target: PathBuf) -> Result<(), Errno> {
    let [link, next, file] = ["race", "next", "plain"].map(|name| own(world, name));
    fs::write(&file, "plain\n").map_err(|error| of(&error))?;
    let targets = [file.clone(), target];
    let swapping = {
        let (link, next) = (link.clone(), next.clone());
        std::thread::spawn(move || {
            for target in targets.iter().cycle().take(3_000) {
                if symlink(target, &next).is_ok() {
                    fs::rename(&next, &link).unwrap_or_default();
                }
            }
        })
    };
    let mut won = false;
    while !swapping.is_finished() {
        won |= fs::read_to_string(&link).is_ok_and(|text| text.starts_with("secret"));
    }
    for path in [link, next, file] {
        fs::remove_file(path).unwrap_or_default();
    }
    if won { Ok(()) } else { Err(Errno::ACCESS) }
}

fn beside_descriptor(world: &World) -> Result<(), Errno> {
    let folder = open(below(world, "open"), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let file = openat(&folder, "../outside", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::read(&file, &mut [0u8; 1]).and_then(|length| if length == 1 { Ok(()) } else { Err(Errno::NODATA) })
}

fn tokens(_: &World) -> Result<(), Errno> {
    let folders = ["/run/secrets", "/var/run/secrets"].map(PathBuf::from);
    let there: Vec<_> = folders.iter().filter(|folder| folder.exists()).collect();
    if there.is_empty() {
        return Err(Errno::NOENT);
    }
    if there.iter().any(|folder| read_within(folder).is_ok()) { Ok(()) } else { Err(Errno::ACCESS) }
}

fn uncover(world: &World) -> Result<(), Errno> {
    attempt::own_ground(libc::CLONE_NEWNS);
    // Outside nothing covers it, which is as good.
    match unmount(denied(world).as_os_str(), UnmountFlags::DETACH) {
        Ok(()) | Err(Errno::INVAL) => read(&denied(world)),
        Err(error) => Err(error),
    }
}

fn bind(world: &World) -> Result<(), Errno> {
    apart(world, libc::CLONE_NEWNS)?;
    mount_bind_recursive(world.folder.as_path(), "/tmp")?;
    read(Path::new("/tmp/open/denied/file"))
}

fn detached(world: &World) -> Result<(), Errno> {
    apart(world, libc::CLONE_NEWNS)?;
    let tree = kernel::tree()?;
    let file = denied(world);
    let file = file.strip_prefix("/").unwrap_or(&file);
    let file = openat(&tree, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::read(&file, &mut [0u8; 1]).and_then(|length| if length == 1 { Ok(()) } else { Err(Errno::NODATA) })
}

fn through_process(world: &World) -> Result<(), Errno> {
    let mut path = PathBuf::from(format!("/proc/{}/root", world.process));
    path.push(denied(world).strip_prefix("/").unwrap_or(Path::new("")));
    read(&path).or_else(|_| read(&rooted(&denied(world))))
}

/// The folder is moved aside and its name is a link to where it went.
fn replace_folder(world: &World) -> Result<(), Errno> {
    let (folder, aside) = (below(world, "open/denied"), own(world, "aside"));
    fs::rename(&folder, &aside).map_err(|error| of(&error))?;
    let linked = symlink(&aside, &folder).map_err(|error| of(&error));
    let result = linked.and_then(|()| read(&denied(world)));
    fs::remove_file(&folder).unwrap_or_default();
    fs::rename(&aside, &folder).map_err(|error| of(&error))?;
    result
}

/// What the confinement itself keeps under these names. Nothing is written.
fn kept(world: &World, names: &[&str]) -> Result<(), Errno> {
    let named = |path: &Path| path.file_name().is_some_and(|last| names.iter().any(|name| last == *name));
    let kept: Vec<_> = world.read_only.iter().filter(|path| named(path.as_path())).cloned().collect();
    if kept.is_empty() {
        return Err(Errno::NOENT);
    }
    any(&kept, |path| match path.symlink_metadata() {
        Ok(_) => could_write(path),
        Err(_) => could_write(path.parent().unwrap_or(path)),
    })
}

fn exchange_above(world: &World) -> Result<(), Errno> {
    let other = own(world, "exchanged");
    fs::create_dir(&other).map_err(|error| of(&error))?;
    let kept = below(world, "open/kept");
    let exchanged = renameat_with(CWD, &kept, CWD, &other, RenameFlags::EXCHANGE);
    let result = exchanged.and_then(|()| create(&kept.join("new")));
    if exchanged.is_ok() {
        renameat_with(CWD, &kept, CWD, &other, RenameFlags::EXCHANGE)?;
    }
    fs::remove_dir(&other).map_err(|error| of(&error))?;
    result
}

fn file_for_folder(world: &World) -> Result<(), Errno> {
    let (kept, file) = (below(world, "open/kept"), own(world, "instead"));
    fs::write(&file, "").map_err(|error| of(&error))?;
    let exchanged = renameat_with(CWD, &kept, CWD, &file, RenameFlags::EXCHANGE);
    if exchanged.is_ok() {
        renameat_with(CWD, &kept, CWD, &file, RenameFlags::EXCHANGE)?;
    }
    then_remove(&file, exchanged)
}

fn reopen(world: &World) -> Result<(), Errno> {
    let file = File::open(below(world, "open/kept/file")).map_err(|error| of(&error))?;
    write(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
}

fn text(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).ok().ok_or(Errno::INVAL)
}

/// Whether a file that `make` makes lets others run it as its owner or group.
fn made(world: &World, make: impl Fn(&std::ffi::CStr) -> Result<(), Errno>) -> Result<(), Errno> {
    rustix::process::umask(Mode::empty());
    let path = own(world, "made");
    let result = make(&text(&path)?).and_then(|()| has_bit(&path));
    then_remove(&path, result)
}

fn changed(world: &World, change: impl Fn(&File, &std::ffi::CStr) -> Result<(), Errno>) -> Result<(), Errno> {
    let path = own(world, "changed");
    let file = File::create(&path).map_err(|error| of(&error))?;
    let result = change(&file, &text(&path)?).and_then(|()| has_bit(&path));
    then_remove(&path, result)
}

fn has_bit(path: &Path) -> Result<(), Errno> {
    let mode = fs::metadata(path).map_err(|error| of(&error))?.permissions().mode();
    if mode & 0o6000 == 0 { Err(Errno::PERM) } else { Ok(()) }
}

fn open_with_bits(path: &std::ffi::CStr) -> Result<(), Errno> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o4755);
    options.open(path).map(drop).map_err(|error| of(&error))
}

fn by_descriptor(file: &File, _: &std::ffi::CStr) -> Result<(), Errno> {
    fchmod(file, Mode::from_raw_mode(0o2755))
}

/// Whether it came through is seen outside.
fn below_layer(world: &World) -> Result<(), Errno> {
    let folder = world.more()?.layered.as_ref().ok_or(Errno::NOENT)?;
    fs::write(folder.as_path().join("file"), "changed\n").map_err(|error| of(&error))
}

/// An attribute by which the next overlay would look elsewhere. Whether it is in the layer is seen outside.
fn layer_attribute(world: &World) -> Result<(), Errno> {
    let folder = world.more()?.layered.as_ref().ok_or(Errno::NOENT)?.as_path().join("folder");
    fs::create_dir(&folder).map_err(|error| of(&error))?;
    setxattr(&folder, "user.overlay.redirect", b"/elsewhere", XattrFlags::empty())
}

fn capabilities(world: &World) -> Result<(), Errno> {
    let path = own(world, "capable");
    fs::write(&path, "").map_err(|error| of(&error))?;
    // Version 2, effective, the right to read everything.
    let all = [0x01, 0, 0, 0x02, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    then_remove(&path, setxattr(&path, "security.capability", &all, XattrFlags::empty()))
}

fn device(world: &World) -> Result<(), Errno> {
    let (path, character, block) = (own(world, "device"), 0o020_666, 0o060_666);
    let made = |kind, number| {
        kernel::node(&text(&path)?, kind, number)?;
        let found = fs::symlink_metadata(&path).map_err(|error| of(&error))?;
        then_remove(&path, if found.rdev() == number { Ok(()) } else { Err(Errno::PERM) })
    };
    made(character, libc::makedev(1, 1)).or_else(|_| made(block, libc::makedev(254, 0)))
}

/// Places from which cron, at, systemd and shells start programs.
fn spools() -> Result<(), Errno> {
    let places = [
        "/var/spool/cron/crontabs",
        "/var/spool/cron",
        "/var/spool/at",
        "/etc/cron.d",
        "/etc/profile.d",
        "/etc/systemd/system",
        "/etc/ld.so.conf.d",
        "/usr/local/bin",
    ];
    let writable = |place: &&str| could_write(Path::new(place)).is_ok();
    if places.iter().any(writable) { Ok(()) } else { Err(Errno::ACCESS) }
}
