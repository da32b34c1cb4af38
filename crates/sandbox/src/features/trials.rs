//! Trials: each thing done once, in a child that does nothing else.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, open};
use rustix::io::{self, Errno};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitId, WaitIdOptions, fchdir, getegid, geteuid, waitid};
use rustix::thread::set_no_new_privs;
use seccompiler::sock_filter;

use crate::sys::mount::{Attributes, map_owners, set_recursively};
use crate::sys::process::{Forked, clone, exit};
use crate::sys::{filter, landlock, network};

/// Whether `trial` succeeds in a child with these namespaces, where the caller is itself.
fn tried(namespaces: i32, trial: impl FnOnce() -> Result<(), Errno>) -> bool {
    with_child(namespaces, trial, |_| true)
}

/// The same, with something that is done outside before the trial.
fn with_child(namespaces: i32, trial: impl FnOnce() -> Result<(), Errno>, outside: impl FnOnce(Pid) -> bool) -> bool {
    let Ok((wait, go)) = pipe_with(PipeFlags::CLOEXEC) else { return false };
    match clone(namespaces) {
        Err(_) => false,
        Ok(Forked::Child) => {
            drop(go);
            let result = if io::read(&wait, &mut [0u8; 1]) == Ok(1) { trial() } else { Err(Errno::CANCELED) };
            exit(i32::from(result.is_err()))
        }
        Ok(Forked::Parent(child)) => {
            let mapped = namespaces & libc::CLONE_NEWUSER == 0 || map(child.pid).is_ok();
            let ready = mapped && outside(child.pid);
            if ready {
                // A child that is gone already has failed.
                io::write(&go, b"g").unwrap_or_default();
            }
            drop(go);
            let options = WaitIdOptions::EXITED;
            loop {
                match waitid(WaitId::PidFd(child.handle.as_fd()), options) {
                    Err(Errno::INTR) => {}
                    Ok(Some(status)) => break status.exit_status() == Some(0),
                    Ok(None) | Err(_) => break false,
                }
            }
        }
    }
}

fn map(pid: Pid) -> std::io::Result<()> {
    let pid = pid.as_raw_nonzero();
    fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
    fs::write(format!("/proc/{pid}/gid_map"), format!("{0} {0} 1", getegid().as_raw()))?;
    fs::write(format!("/proc/{pid}/uid_map"), format!("{0} {0} 1", geteuid().as_raw()))
}

const MOUNTS: i32 = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;

/// A mount in a user namespace: some systems allow the namespace and none of its rights.
pub fn mounts() -> bool {
    tried(MOUNTS, || {
        let tree = tmpfs()?;
        attach(tree.as_fd(), c"/")?;
        let read_only = Attributes { set: crate::sys::mount::READ_ONLY, ..Attributes::default() };
        set_recursively(CWD, c"/", read_only)
    })
}

/// A namespace of processes.
pub fn processes() -> bool {
    tried(libc::CLONE_NEWUSER | libc::CLONE_NEWPID, || {
        if rustix::process::getpid() == Pid::INIT { Ok(()) } else { Err(Errno::PERM) }
    })
}

/// `/proc` in one.
pub fn fresh_proc() -> bool {
    tried(MOUNTS | libc::CLONE_NEWPID, || {
        let context = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let attributes =
            MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let tree = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        attach(tree.as_fd(), c"/proc")
    })
}

/// A network with a loopback.
pub fn networks() -> bool {
    tried(libc::CLONE_NEWUSER | libc::CLONE_NEWNET, || {
        network::loopback_up(socket(AddressFamily::INET, SocketType::DGRAM, None)?.as_fd())
    })
}

/// Shared memory, names, control groups.
pub fn others() -> bool {
    tried(libc::CLONE_NEWUSER | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP, || Ok(()))
}

/// An overlay.
pub fn overlay() -> bool {
    tried(MOUNTS, || {
        let tree = tmpfs()?;
        for name in [c"lower", c"upper", c"work"] {
            mkdirat(&tree, name, Mode::RWXU)?;
        }
        attach(tree.as_fd(), c"/")?;
        fchdir(&tree)?;
        let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, folder) in [(c"lowerdir", c"lower"), (c"upperdir", c"upper"), (c"workdir", c"work")] {
            fsconfig_set_string(&context, key, folder)?;
        }
        fsconfig_set_flag(&context, c"userxattr")?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).map(drop)
    })
}

/// Mounts that show other owners: of a folder of the root's file system, where a caller is root.
pub fn mapped_owners() -> bool {
    if !geteuid().is_root() {
        return false;
    }
    let outside = |pid: Pid| {
        let pid = pid.as_raw_nonzero();
        let file = fs::File::open(format!("/proc/{pid}/ns/user"));
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(CWD, c"/", clone);
        matches!((file, tree), (Ok(file), Ok(tree)) if map_owners(tree.as_fd(), file.as_fd()).is_ok())
    };
    with_child(libc::CLONE_NEWUSER, || Ok(()), outside)
}

/// A filter that refuses what it is told to.
pub fn filters() -> bool {
    tried(0, || {
        set_no_new_privs(true)?;
        filter::install(&answer_getpgid(libc::SECCOMP_RET_ERRNO | libc::EXDEV.unsigned_abs()))?;
        match rustix::process::getpgid(None) {
            Err(Errno::XDEV) => Ok(()),
            _ => Err(Errno::PERM),
        }
    })
}

/// A filter with somebody to answer for it.
pub fn notifications() -> bool {
    tried(0, || {
        set_no_new_privs(true)?;
        filter::install_with_listener(&answer_getpgid(libc::SECCOMP_RET_USER_NOTIF)).map(drop)
    })
}

/// Rules that refuse what they do not allow.
pub fn landlock() -> bool {
    tried(0, || {
        set_no_new_privs(true)?;
        let read_file = 1 << 2;
        let rules = landlock::rules(read_file)?;
        landlock::restrict(rules.as_fd())?;
        match open(c"/proc/self/status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::ACCESS) => Ok(()),
            _ => Err(Errno::PERM),
        }
    })
}

/// `getpgid` is answered so, all else allowed.
fn answer_getpgid(answer: u32) -> [sock_filter; 4] {
    let getpgid = u32::try_from(libc::SYS_getpgid).unwrap_or(u32::MAX);
    [
        sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
        sock_filter { code: 0x15, jt: 0, jf: 1, k: getpgid },
        sock_filter { code: 0x06, jt: 0, jf: 0, k: answer },
        sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

fn tmpfs() -> Result<OwnedFd, Errno> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

fn attach(tree: BorrowedFd<'_>, target: &CStr) -> Result<(), Errno> {
    let private = Attributes { propagation: libc::MS_PRIVATE, ..Attributes::default() };
    set_recursively(CWD, c"/", private)?;
    move_mount(tree, c"", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}
