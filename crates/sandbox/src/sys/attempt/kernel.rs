//! Less trodden calls of the kernel.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

use super::super::check;
use super::taken;

/// New namespaces of one kind for this process, in a user namespace of its own.
pub fn namespaces(kinds: i32) -> Result<(), Errno> {
    // SAFETY: it touches no memory; this process ends after it.
    check(libc::c_long::from(unsafe { libc::unshare(kinds) })).map(drop)
}

/// A child in a user namespace, by flags that a filter sees.
pub fn clone() -> Result<(), Errno> {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: without `CLONE_VM` the child has memory of its own and goes on as after `fork`.
    if check(unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, 0usize, 0usize, 0usize) })? == 0 {
        super::super::process::exit(0);
    }
    Ok(())
}

/// The handle of a file, by which it can be opened past every folder.
pub fn name_handle(path: &CStr) -> Result<(), Errno> {
    let mut handle = [0u32; 64];
    let [size, ..] = &mut handle;
    *size = 128;
    let mut mount = 0i32;
    // SAFETY: `handle` says how many bytes follow its two first numbers and has room for them; `mount` is one `int`.
    check(libc::c_long::from(unsafe {
        libc::name_to_handle_at(libc::AT_FDCWD, path.as_ptr(), handle.as_mut_ptr().cast(), &raw mut mount, 0)
    }))
    .map(drop)
}

/// A group of events of files, of the kind that needs no rights.
pub fn file_events() -> Result<(), Errno> {
    let with_handles = 0x200;
    // SAFETY: it touches no memory.
    taken(unsafe { libc::syscall(libc::SYS_fanotify_init, with_handles, libc::O_RDONLY) }).map(drop)
}

/// The size of the kernel's log.
pub fn log() -> Result<(), Errno> {
    let size = 10;
    // SAFETY: this command takes no buffer.
    check(unsafe { libc::syscall(libc::SYS_syslog, size, 0usize, 0) }).map(drop)
}

/// A module from a descriptor that is none: the kernel says so only to those who may load one.
pub fn module() -> Result<(), Errno> {
    // SAFETY: the text ends with a zero byte.
    match check(unsafe { libc::syscall(libc::SYS_finit_module, -1, c"".as_ptr(), 0) }) {
        Err(Errno::BADF) => Ok(()),
        other => other.map(drop),
    }
}

/// Another kernel from a descriptor that is none.
pub fn other_kernel() -> Result<(), Errno> {
    // SAFETY: the text ends with a zero byte.
    match check(unsafe { libc::syscall(libc::SYS_kexec_file_load, -1, -1, 1usize, c"".as_ptr(), 0usize) }) {
        Err(Errno::BADF) => Ok(()),
        other => other.map(drop),
    }
}

/// A descriptor that nobody has.
const NOBODYS: i32 = 1_000_000;

/// Entering a ring of `io_uring` that is none: the kernel says so only to those who may have one.
pub fn enter_ring() -> Result<(), Errno> {
    // SAFETY: no memory is given.
    match check(unsafe { libc::syscall(libc::SYS_io_uring_enter, NOBODYS, 0, 0, 0, 0usize, 0usize) }) {
        Err(Errno::BADF) => Ok(()),
        other => other.map(drop),
    }
}

/// The same with what is registered there.
pub fn register_ring() -> Result<(), Errno> {
    let give_back = 1;
    // SAFETY: as above.
    match check(unsafe { libc::syscall(libc::SYS_io_uring_register, NOBODYS, give_back, 0usize, 0) }) {
        Err(Errno::BADF) => Ok(()),
        other => other.map(drop),
    }
}

/// Swapping to what is no device.
pub fn swap() -> Result<(), Errno> {
    // SAFETY: the text ends with a zero byte.
    match check(libc::c_long::from(unsafe { libc::swapoff(c"/dev/null".as_ptr()) })) {
        Err(Errno::INVAL) => Ok(()),
        other => other.map(drop),
    }
}

/// The rights over ports that this process has: none.
pub fn ports() -> Result<(), Errno> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: it takes away a right, and touches no memory.
        check(unsafe { libc::syscall(libc::SYS_ioperm, 0x80usize, 1usize, 0) }).map(drop)
    }
    #[cfg(not(target_arch = "x86_64"))]
    Err(Errno::NOSYS)
}

/// This process's table of segments.
pub fn segments() -> Result<(), Errno> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut table = [0u8; 64];
        // SAFETY: it writes at most the 64 bytes given.
        check(unsafe { libc::syscall(libc::SYS_modify_ldt, 0, table.as_mut_ptr(), size_of_val(&table)) }).map(drop)
    }
    #[cfg(not(target_arch = "x86_64"))]
    Err(Errno::NOSYS)
}

/// Quotas of what is mounted.
pub fn quotas() -> Result<(), Errno> {
    let sync_all = 0x80_0001 << 8;
    // SAFETY: without a device this command takes no buffer.
    check(unsafe { libc::syscall(libc::SYS_quotactl, sync_all, 0usize, 0, 0usize) }).map(drop)
}

/// A detached copy of all mounts.
pub fn tree() -> Result<OwnedFd, Errno> {
    let (clone, recursive) = (1, 0x8000);
    // SAFETY: the text ends with a zero byte.
    taken(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, c"/".as_ptr(), clone | recursive) })
}

/// Changes what holds for every mount, to what it is.
pub fn attributes() -> Result<(), Errno> {
    let private = [0u64, 0, libc::MS_PRIVATE, 0];
    // SAFETY: the path ends with a zero byte; the attributes are of the size given and outlive the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            0,
            private.as_ptr(),
            size_of_val(&private),
        )
    })
    .map(drop)
}

/// Makes a file with these bits by `openat2`, whose mode no filter sees.
pub fn open_with(path: &CStr, mode: u32) -> Result<(), Errno> {
    let how = [(libc::O_CREAT | libc::O_WRONLY | libc::O_EXCL | libc::O_CLOEXEC) as u64, u64::from(mode), 0];
    // SAFETY: the path ends with a zero byte; `how` is of the size given and outlives the call.
    taken(unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), how.as_ptr(), size_of_val(&how)) })
        .map(drop)
}

/// Bits of a file by the newest call that sets them.
pub fn change_mode(path: &CStr, mode: u32) -> Result<(), Errno> {
    let fchmodat2 = 452;
    // SAFETY: the path ends with a zero byte.
    check(unsafe { libc::syscall(fchmodat2, libc::AT_FDCWD, path.as_ptr(), mode, 0) }).map(drop)
}

/// A node, with its mode and the number of its device.
pub fn node(path: &CStr, mode: u32, device: u64) -> Result<(), Errno> {
    // SAFETY: the path ends with a zero byte.
    check(libc::c_long::from(unsafe { libc::mknod(path.as_ptr(), mode, device) })).map(drop)
}

/// Input pushed into a terminal, by the plain number.
pub fn push_input(terminal: &OwnedFd) -> Result<(), Errno> {
    let request: libc::c_ulong = 0x5412;
    // SAFETY: this request reads one byte of a literal.
    check(unsafe { libc::syscall(libc::SYS_ioctl, terminal.as_raw_fd(), request, c"".as_ptr()) }).map(drop)
}
