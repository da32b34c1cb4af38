//! The plan where there are no namespaces: Landlock's rights alone.
//!
//! Owns what Landlock can say: a right on a folder is a right on all below it. So a folder that holds something kept apart has no right of its
//! own but to be listed, and each name in it that is there now has its own. Refuses what has to be shown elsewhere. Its invariant: nothing
//! that was asked for is left out in silence; a name that is made later is not given.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Bound;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use landlock::{ABI, Access, AccessFs};

use super::places::{look, present};
use super::{Plan, PlanError, bytes, of_a_file, reading, text, writing};
use crate::confinement::{Confinement, Reading};
use crate::host_path::HostPath;

/// Most names that are given one by one.
const MOST: usize = 20_000;
/// Where a command that is root finds what is root's alone, and how deep is looked for it.
const SYSTEM: [(&str, usize); 4] = [("/etc", 4), ("/var", 3), ("/boot", 2), ("/dev", 3)];

/// Devices that no command does without; they can be written, too.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Where no devices are but those of terminals: to open them gives what one has already. What lies in shared memory anybody made.
const NONE: [&str; 4] = ["/dev/ptmx", "/dev/pts", "/dev/shm", "/dev/mqueue"];

/// Lays out the rights, for a command of this user.
pub fn plan(confinement: &Confinement, abi: ABI, user: u32) -> Result<Plan, PlanError> {
    let shown = confinement.binds.iter().map(|bind| &bind.target).chain(&confinement.devices);
    let shown = shown.chain(confinement.links.iter().map(|link| &link.name));
    let shown =
        shown.chain(&confinement.temporary_folder).chain(confinement.home.as_ref().map(|home| &home.target)).next();
    if let Some(path) = shown {
        return Err(PlanError::NeedsMounts(path.as_path().to_owned()));
    }
    let all = |paths: &[HostPath]| -> Result<BTreeSet<PathBuf>, PlanError> {
        paths.iter().map(|path| Ok(look(path.as_path())?.path)).collect()
    };
    let plan = Plan { folder: text(&look(confinement.folder.as_path())?.path)?, ..Plan::default() };
    let mut rights =
        Rights { plan, abi, masked: all(&confinement.masked)?, kept: all(&confinement.read_only)?, names: 0 };
    if user == 0 {
        for (folder, depth) in SYSTEM {
            rights.mask_private(Path::new(folder), depth);
        }
    }
    let mut named = all(&confinement.readable)?;
    named.extend(all(&confinement.writable)?);
    rights.mask_devices(Path::new("/dev"), 3, &named);
    if confinement.reading == Reading::Open {
        rights.give(Path::new("/"), true, Change::No, Asked::Itself)?;
    } else {
        // Not the folder it starts in: a right on it would be one on all below it. To enter it needs none.
        rights.give_all(&confinement.readable, Change::No)?;
    }
    rights.give_all(&confinement.writable, Change::Yes)?;
    let Rights { mut plan, .. } = rights;
    let change = (AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev) & AccessFs::from_all(abi);
    for path in DEVICES {
        if Path::new(path).exists() {
            plan.rights.push((bytes(path.as_ref())?, (of_a_file(reading(), abi) | change).bits()));
        }
    }
    // What can be written there changes other processes of the same user, too.
    plan.rights.push((bytes("/proc".as_ref())?, reading().bits()));
    Ok(plan)
}

/// Whether it can be written too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Yes,
    No,
}

/// Why a place is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// It is named, and has to be there.
    Itself,
    /// It is in a folder that is; it may be gone, or lie where the command may not look.
    Within,
}

struct Rights {
    plan: Plan,
    abi: ABI,
    masked: BTreeSet<PathBuf>,
    kept: BTreeSet<PathBuf>,
    /// How many were given because of what lies beside them.
    names: usize,
}

impl Rights {
    fn give_all(&mut self, paths: &[HostPath], change: Change) -> Result<(), PlanError> {
        for path in paths.iter().map(HostPath::as_path) {
            let resolved = look(path)?;
            let folder = present(path, &resolved)?;
            self.give(&resolved.path, folder, change, Asked::Itself)?;
        }
        Ok(())
    }

    fn give(&mut self, path: &Path, folder: bool, change: Change, asked: Asked) -> Result<(), PlanError> {
        if self.masked.contains(path) {
            return Ok(());
        }
        let change = if self.kept.contains(path) { Change::No } else { change };
        let apart = folder && (lies_below(&self.masked, path) || change == Change::Yes && lies_below(&self.kept, path));
        let rights = match change {
            _ if apart => AccessFs::ReadDir.into(),
            Change::Yes => reading() | writing(self.abi),
            Change::No => reading(),
        };
        let rights = if folder { rights } else { of_a_file(rights, self.abi) };
        let list = if asked == Asked::Itself { &mut self.plan.rights } else { &mut self.plan.parts };
        list.push((text(path)?, rights.bits()));
        if !apart {
            return Ok(());
        }
        // What cannot be listed here has names that are not given.
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            // A link has no rights; where it leads has.
            let Some(kind) = entry.file_type().ok().filter(|kind| !kind.is_symlink()) else { continue };
            self.names += 1;
            if self.names > MOST {
                return Err(PlanError::TooManyNames(path.to_owned()));
            }
            self.give(&entry.path(), kind.is_dir(), change, Asked::Within)?;
        }
        Ok(())
    }

    /// Keeps apart each device that is not named: who may open a disk or a virtual machine needs no right to change its file.
    fn mask_devices(&mut self, folder: &Path, depth: usize, named: &BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if DEVICES.iter().chain(&NONE).any(|known| path == Path::new(known)) || named.contains(&path) {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_char_device() || kind.is_block_device() {
                self.masked.insert(path);
            } else if kind.is_dir() && depth > 1 {
                self.mask_devices(&path, depth - 1, named);
            }
        }
    }

    /// Takes from root what others may not read: it is root's own, and no right of root's is needed for it.
    fn mask_private(&mut self, folder: &Path, depth: usize) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Some(found) = entry.metadata().ok().filter(|found| !found.is_symlink()) else { continue };
            let needed = if found.is_dir() { 0o005 } else { 0o004 };
            if found.mode() & needed != needed {
                self.masked.insert(entry.path());
            } else if found.is_dir() && depth > 1 {
                self.mask_private(&entry.path(), depth - 1);
            }
        }
    }
}

/// Whether one of the paths lies below a folder.
fn lies_below(paths: &BTreeSet<PathBuf>, folder: &Path) -> bool {
    // By their parts they are in the order of a walk.
    let after = paths.range::<Path, _>((Bound::Excluded(folder), Bound::Unbounded)).next();
    after.is_some_and(|path| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_is_found_beside_names_that_begin_alike() {
        let paths = ["/a-b", "/a/b", "/ab"].map(PathBuf::from).into_iter().collect();
        for (folder, below) in [("/a", true), ("/", true), ("/a/b", false), ("/ab", false), ("/a-b", false)] {
            assert_eq!(lies_below(&paths, Path::new(folder)), below, "{folder}");
        }
    }
}
