//! Folders of the host that are the command's: its `/tmp`, and layers for what it changes.
//!
//! Owns its making. Refuses a folder that others can enter or that is somebody else's. Its invariant: below it nothing is followed or
//! replaced, since commands that ran before have written there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid, XattrFlags, chownat, fsetxattr, lgetxattr,
    mkdirat, openat2, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::RunError;
use super::identity::Who;
use super::shared;
use crate::plan::{MountPoint, WORK};

/// Makes it, unless an earlier run did.
pub fn make(folder: &Path, who: &Who, within: &[&str]) -> Result<(), RunError> {
    let failed = |error| RunError::Outside("make a folder for what the command writes", error);
    let owner = if who.other && !who.mapped { who.uid } else { geteuid().as_raw() };
    let found = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_whole(folder, who).and_then(|()| fs::symlink_metadata(folder))
        }
        found => found,
    };
    let found = found.map_err(failed)?;
    if !found.is_dir() || found.uid() != owner || found.mode() & 0o077 != 0 {
        return Err(failed(io::Error::other("it is no folder of the command's user alone")));
    }
    within.iter().try_for_each(|name| make_within(&top(folder)?, name, who)).map_err(|error| failed(error.into()))
}

/// Makes a folder in it. One that is to be given away is under another name until it is, since another run may be about to use it.
fn make_within(top: &OwnedFd, name: &str, who: &Who) -> Result<(), Errno> {
    if statat(top, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Ok(());
    }
    let given = who.other && !who.mapped;
    let aside = if given { format!("{name}.{}", number()) } else { name.to_owned() };
    match mkdirat(top, &aside, Mode::from_raw_mode(0o700)) {
        // A process of the same number was killed here.
        Err(Errno::EXIST) if given => {}
        Err(Errno::EXIST) => return Ok(()),
        made => made?,
    }
    if !given {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(who.uid), Gid::from_raw(who.gid));
    chownat(top, &aside, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    match renameat_with(top, &aside, top, name, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => unlinkat(top, &aside, AtFlags::REMOVEDIR),
        renamed => renamed,
    }
}

/// One that nobody else alive has.
fn number() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn top(folder: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Under another name until it belongs to its owner, since another run may be about to use it.
fn make_whole(folder: &Path, who: &Who) -> io::Result<()> {
    let mut aside = folder.as_os_str().to_owned();
    aside.push(format!(".{}", number()));
    match DirBuilder::new().mode(0o700).create(&aside) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        // A process of the same number was killed here.
        Ok(()) | Err(_) => {}
    }
    if who.other && !who.mapped {
        lchown(&aside, Some(who.uid), Some(who.gid))?;
    }
    match renameat_with(CWD, &aside, CWD, folder, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => fs::remove_dir(&aside),
        renamed => Ok(renamed?),
    }
}

/// An attribute of what the kernel works in: the number of the mounts that have it, which what a command leaves running has, too. An overlay
/// keeps attributes of its own in the same way, so it can be set wherever there is one.
const MOUNTS: &str = "user.writ.mounts";
/// How many are there before a run looks for those that nobody has. Making and removing files for every run is dear.
pub const MANY_WORKS: usize = 256;

/// Notes who has it, for whoever comes when this process is gone.
pub fn note_mounts(layer: &Path, work: &str, mounts: u64) -> Result<(), RunError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let work = openat2(CWD, layer.join(work), flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    work.and_then(|work| fsetxattr(work, MOUNTS, mounts.to_string().as_bytes(), XattrFlags::empty()))
        .map_err(|error| RunError::Outside("note who has a layer", error.into()))
}

/// Who was noted.
fn noted_mounts(work: &Path) -> Option<u64> {
    let mut bytes = [0u8; 32];
    let length = lgetxattr(work, MOUNTS, bytes.as_mut_slice()).ok()?;
    std::str::from_utf8(bytes.get(..length)?).ok()?.parse().ok()
}

/// Removes what the kernel worked in for runs that have ended, where nothing that they started has it any more, if there are more than
/// `most`. What no run has yet is there as long as the process that made it.
pub fn sweep_works(layer: &Path, most: usize) {
    let entries = fs::read_dir(layer).into_iter().flatten().flatten();
    let mut works: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    works.retain(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(WORK.as_bytes())));
    if works.len() <= most {
        return;
    }
    // Before it is seen which mounts there are: those of a run are there until it has ended.
    let noted: Vec<Option<u64>> = works.iter().map(|work| noted_mounts(work)).collect();
    // Where nobody can say who is there, nothing is taken from anybody.
    let Ok(held) = shared::all_mounts() else { return };
    for (work, noted) in works.iter().zip(noted) {
        let used = noted.map_or_else(|| maker_lives(work), |mounts| held.contains(&mounts));
        if !used {
            remove_work(work);
        }
    }
}

/// Whether the process that made it is alive: `work-17` and `work-17-3` are those of 17.
fn maker_lives(work: &Path) -> bool {
    let number = work.file_name().and_then(|name| name.to_str()?.strip_prefix(WORK)?.split('-').next());
    number.is_none_or(|number| Path::new("/proc").join(number).exists())
}

/// Removes what the kernel worked in for a run. Where that fails, it is a few bytes that nobody uses again.
pub fn end_work(layer: &Path, work: &str) {
    remove_work(&layer.join(work));
}

/// The folders that it makes there and leaves without any right, the last two for layers that no power cut outlasts.
const CLOSED: [&str; 3] = ["work", "work/incompat", "work/incompat/volatile"];

fn remove_work(work: &Path) {
    for folder in CLOSED {
        drop(fs::set_permissions(work.join(folder), fs::Permissions::from_mode(0o700)));
    }
    drop(fs::remove_dir_all(work));
}

/// Puts aside what the kernel worked in for an earlier process of the same number, which may have left others running: it takes none that
/// was used before.
pub fn put_work_aside(layer: &Path, work: &str) {
    let Ok(layer) = top(layer) else { return };
    for number in 0..u32::MAX {
        match renameat_with(&layer, work, &layer, format!("{work}.{number}"), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // There is none, mostly. What is there all the same fails where it is used.
            Ok(()) | Err(_) => return,
        }
    }
}

/// Makes what something is shown on, parents first.
pub fn make_grounds(points: &[MountPoint], who: &Who) -> Result<(), RunError> {
    let failed = |error: Errno| RunError::Outside("make a place in a folder of the command's", error.into());
    points.iter().try_for_each(|point| make_ground(point, who)).map_err(failed)
}

fn make_ground(point: &MountPoint, who: &Who) -> Result<(), Errno> {
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let (Some(parent), Some(name)) = (point.path.parent(), point.path.file_name()) else { return Err(Errno::INVAL) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = openat2(top(&point.within)?, parent, flags, Mode::empty(), inside)?;
    let made = if point.folder {
        mkdirat(&parent, name, Mode::from_raw_mode(0o755))
    } else {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat2(&parent, name, flags, Mode::from_raw_mode(0o644), inside).map(drop)
    };
    if made.is_ok() && who.other && !who.mapped {
        let (user, group) = (Uid::from_raw(who.uid), Gid::from_raw(who.gid));
        chownat(&parent, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    match made {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}
