//! More of the kernel's paths that nothing confined has a use for.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{WaitId, WaitIdOptions, pivot_root, waitid};

use super::files::{below, denied};
use super::kernel::apart;
use super::{Attack, World, ended, of};
use crate::sys::attempt::{self, kernel};
use crate::sys::process::{Stack, run_within};

pub const ATTACKS: &[Attack] = &[
    Attack {
        id: "K21",
        words: "copy all mounts",
        run: |_| {
            attempt::own_ground(libc::CLONE_NEWNS);
            kernel::tree().map(drop)
        },
    },
    Attack {
        id: "K22",
        words: "change what holds for mounts",
        run: |world| {
            apart(world, libc::CLONE_NEWNS)?;
            kernel::attributes()
        },
    },
    Attack { id: "K23", words: "exchange the root", run: exchange_root },
    Attack {
        id: "K24",
        words: "unmount",
        run: |world| {
            apart(world, libc::CLONE_NEWNS)?;
            over(world)?;
            unmount("/tmp", UnmountFlags::DETACH)
        },
    },
    Attack { id: "K44", words: "enter an io_uring", run: |_| kernel::enter_ring() },
    Attack { id: "K45", words: "register with an io_uring", run: |_| kernel::register_ring() },
    Attack {
        id: "D14",
        words: "read a denied file in a process that shares memory",
        run: |world| sharing(&denied(world), false),
    },
    Attack {
        id: "P26",
        words: "write a file that is kept in a process that shares memory",
        run: |world| sharing(&below(world, "open/kept/file"), true),
    },
    Attack { id: "K25", words: "enter a user namespace by clone", run: |_| kernel::clone() },
    Attack {
        id: "K26",
        words: "enter a namespace of mounts",
        run: |_| kernel::namespaces(libc::CLONE_NEWUSER | libc::CLONE_NEWNS),
    },
    Attack {
        id: "K27",
        words: "enter a network namespace",
        run: |_| kernel::namespaces(libc::CLONE_NEWUSER | libc::CLONE_NEWNET),
    },
    Attack {
        id: "K28",
        words: "enter a namespace of clocks",
        run: |_| kernel::namespaces(libc::CLONE_NEWUSER | libc::CLONE_NEWTIME),
    },
    Attack { id: "K29", words: "take a file's handle", run: |_| kernel::name_handle(c".") },
    Attack { id: "K30", words: "hear of files by the kernel", run: |_| kernel::file_events() },
    Attack { id: "K31", words: "ask for the kernel's log", run: |_| kernel::log() },
    Attack { id: "K32", words: "load a module", run: |_| kernel::module() },
    Attack { id: "K33", words: "load another kernel", run: |_| kernel::other_kernel() },
    Attack { id: "K34", words: "change swapping", run: |_| kernel::swap() },
    Attack { id: "K35", words: "ask for ports of the machine", run: |_| kernel::ports() },
    Attack { id: "K36", words: "ask for segments of memory", run: |_| kernel::segments() },
    Attack { id: "K37", words: "ask for quotas", run: |_| kernel::quotas() },
    Attack { id: "K38", words: "open the device of page faults", run: |_| writable("/dev/userfaultfd") },
    Attack { id: "K39", words: "open devices that everybody may", run: |_| common_devices() },
    Attack { id: "K40", words: "move into another control group", run: |_| groups() },
    Attack {
        id: "K41",
        words: "change what the kernel runs when it is out of names",
        run: |_| writable("/proc/sys/kernel/modprobe"),
    },
    Attack { id: "K42", words: "register a kind of program", run: |_| writable("/proc/sys/fs/binfmt_misc/register") },
    Attack {
        id: "K43",
        words: "mount a file system of its own",
        run: |world| {
            apart(world, libc::CLONE_NEWNS)?;
            over(world)
        },
    },
];

fn writable(path: &str) -> Result<(), Errno> {
    OpenOptions::new().write(true).open(path).map(drop).map_err(|error| of(&error))
}

fn over(_: &World) -> Result<(), Errno> {
    mount("none", "/tmp", "ramfs", MountFlags::empty(), None)
        .or_else(|_| mount("none", "/tmp", "tmpfs", MountFlags::empty(), None))
}

fn exchange_root(world: &World) -> Result<(), Errno> {
    apart(world, libc::CLONE_NEWNS)?;
    over(world)?;
    rustix::process::chdir("/tmp")?;
    pivot_root(".", ".")
}

fn common_devices() -> Result<(), Errno> {
    let devices = [
        "/dev/fuse",
        "/dev/kvm",
        "/dev/vsock",
        "/dev/btrfs-control",
        "/dev/vga_arbiter",
        "/dev/net/tun",
        "/dev/udmabuf",
    ];
    let opened = devices.iter().any(|device| OpenOptions::new().read(true).open(device).is_ok());
    if opened { Ok(()) } else { Err(Errno::ACCESS) }
}

/// Opens a file in a child that has this process's memory.
fn sharing(path: &Path, write: bool) -> Result<(), Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).ok().ok_or(Errno::INVAL)?;
    let access = if write { OFlags::WRONLY } else { OFlags::RDONLY };
    let opens = || match open(path.as_c_str(), access | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => {
            // A mask can be opened by who owns it, and says nothing.
            let said = write || matches!(read(&file, &mut [0u8; 1]), Ok(1));
            if said { 0 } else { Errno::NODATA.raw_os_error() }
        }
        Err(error) => error.raw_os_error().clamp(1, 255),
    };
    let child = run_within(&mut Stack::new(), opens)?;
    loop {
        match waitid(WaitId::PidFd(child.handle.as_fd()), WaitIdOptions::EXITED) {
            Err(Errno::INTR) => {}
            Ok(status) => return ended(status.and_then(|status| status.exit_status())),
            Err(error) => return Err(error),
        }
    }
}

/// Any list of members that could be written, at most three folders deep.
fn groups() -> Result<(), Errno> {
    fn find(folder: &Path, depth: u32) -> bool {
        writable(&folder.join("cgroup.procs").to_string_lossy()).is_ok()
            || depth > 0
                && fs::read_dir(folder)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .take(64)
                    .any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && find(&entry.path(), depth - 1))
    }
    if find(&PathBuf::from("/sys/fs/cgroup"), 2) { Ok(()) } else { Err(Errno::ACCESS) }
}
