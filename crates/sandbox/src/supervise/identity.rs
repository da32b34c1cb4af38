//! Who the command is.
//!
//! Owns the map of users of its user namespace: one user, one group, each as itself. Refuses uid 0 wherever there is another way: what a root
//! without capabilities owns it could still read. Where root owns the folder, the command is a user that owns nothing, and what it may write
//! is mounted so that root's files are its own; where nothing can be mounted it is root without any right, and Landlock keeps from it what
//! is root's alone. Its invariant: no process inside has a number that owns anything it was not granted, but for that one.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::process::{Pid, Signal, getegid, geteuid, set_parent_process_death_signal};
use rustix::thread::{Timespec, nanosleep};

use super::{RunError, Sandbox};
use crate::confinement::{Confinement, Identity};
use crate::features::{Features, Layer, Level};
use crate::plan::Plan;
use crate::sys::mount::{Attributes, map_owners, set_recursively};
use crate::sys::process::{Forked, clone, exit};

/// Who, and whether the caller has to become that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    pub uid: u32,
    pub gid: u32,
    pub other: bool,
    /// Whether what it may write is shown as its own, though root owns it.
    pub mapped: bool,
}

/// The user and group that root's own files are shown to. No system gives this number to anybody.
pub const STAND_IN: u32 = 2_000_065_533;

/// Decides.
pub fn of(confinement: &Confinement, features: &Features) -> Result<Who, RunError> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let folder = confinement.folder.as_path();
    match confinement.identity {
        Identity::User { uid: 0, .. } => Err(RunError::Root(folder.to_owned())),
        Identity::User { uid: wanted, gid: group } if uid == 0 => {
            Ok(Who { uid: wanted, gid: group, other: true, mapped: false })
        }
        Identity::User { uid: wanted, gid: group } if (wanted, group) == (uid, gid) => {
            Ok(Who { uid, gid, other: false, mapped: false })
        }
        Identity::User { .. } => Err(RunError::OtherUser),
        Identity::Owner if uid != 0 => Ok(Who { uid, gid, other: false, mapped: false }),
        Identity::Owner => {
            let owner = fs::metadata(folder).map_err(|error| RunError::Outside("see who owns the folder", error))?;
            match owner.uid() {
                0 if features.mapped_owners && features.mounts => {
                    Ok(Who { uid: STAND_IN, gid: STAND_IN, other: true, mapped: true })
                }
                // Signals between root's processes are kept apart from this version on.
                0 if features.missing(Level::Landlock).is_empty()
                    && !has_namespaces(features)
                    && features.landlock >= 6 =>
                {
                    if confinement.limits.processes.is_some() {
                        return Err(RunError::RootsProcesses);
                    }
                    Ok(Who { uid, gid, other: false, mapped: false })
                }
                0 => Err(RunError::Root(folder.to_owned())),
                uid => Ok(Who { uid, gid: owner.gid(), other: true, mapped: false }),
            }
        }
    }
}

fn has_namespaces(features: &Features) -> bool {
    features.missing(Level::Namespaces).is_empty()
}

/// Slots of trees that the command could not take itself: for a stand-in those in which root's files are to be its own, and for whoever is
/// not the caller the folders that lie where only the caller may go.
pub fn lent(who: &Who, plan: &Plan) -> Vec<usize> {
    let mut slots = if who.other { plan.owned_slots() } else { Vec::new() };
    if !who.mapped {
        slots.retain(|slot| plan.lent.contains(slot));
    }
    slots
}

/// The trees of these slots. `owners` is made where it is needed and not there.
pub fn lend_trees(who: &Who, plan: &Plan, lent: &[usize], owners: Option<&OwnedFd>) -> Result<Vec<OwnedFd>, RunError> {
    let made = if who.mapped && owners.is_none() && !lent.is_empty() { Some(self::owners()?) } else { None };
    let owners = owners.or(made.as_ref()).filter(|_| who.mapped);
    let tree = |path: &CStr| -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let place = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(&place, c"", flags)?;
        let private = Attributes { propagation: libc::MS_PRIVATE, ..Attributes::default() };
        set_recursively(tree.as_fd(), c"", private)?;
        if let Some(owners) = owners {
            map_owners(tree.as_fd(), owners.as_fd())?;
        }
        Ok(tree)
    };
    let lend = |slot: &usize| plan.taken.get(*slot).and_then(|path| tree(path.as_deref()?).ok());
    lent.iter().map(|slot| lend(slot).ok_or(RunError::Layer(Layer::MappedOwners))).collect()
}

/// A user namespace in which root is the stand-in, and everybody else is as they are. It only carries the numbers.
pub fn owners() -> Result<OwnedFd, RunError> {
    let failed = |error| RunError::Outside("map root's files", error);
    let child = match clone(libc::CLONE_NEWUSER).map_err(|error| failed(error.into()))? {
        // It is ended below, or with this process.
        Forked::Child => {
            set_parent_process_death_signal(Some(Signal::KILL)).unwrap_or_default();
            // However long it is left to sleep, it is of no use any more.
            drop(nanosleep(&Timespec { tv_sec: 10, tv_nsec: 0 }));
            exit(0)
        }
        Forked::Parent(child) => Sandbox::new(child),
    };
    let pid = child.pid().as_raw_nonzero();
    let (before, after) = (STAND_IN - 1, STAND_IN + 1);
    let map = format!("0 {STAND_IN} 1\n1 1 {before}\n{after} {after} {}\n", u32::MAX - after);
    for name in ["gid_map", "uid_map"] {
        fs::write(format!("/proc/{pid}/{name}"), &map).map_err(failed)?;
    }
    let namespace = File::open(format!("/proc/{pid}/ns/user")).map_err(failed)?;
    Ok(namespace.into())
}

/// Writes the maps of a process's user namespace.
pub fn map(pid: Pid, who: &Who) -> Result<(), RunError> {
    let pid = pid.as_raw_nonzero();
    let write = |name: &str, text: &str| {
        let file = OpenOptions::new().write(true).open(format!("/proc/{pid}/{name}"));
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| RunError::Outside("map users of the sandbox", error))
    };
    if !who.other {
        // Asked of everybody but root before groups are mapped.
        write("setgroups", "deny")?;
    }
    write("gid_map", &format!("{0} {0} 1", who.gid))?;
    write("uid_map", &format!("{0} {0} 1", who.uid))
}
