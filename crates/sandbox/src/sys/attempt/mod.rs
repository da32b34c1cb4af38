//! System calls that a confined program has no business with, each tried once and undone.
//!
//! For the self-test: `Ok` means that the kernel did it.

use std::io::IoSlice;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::check;

pub mod kernel;
pub mod processes;
pub mod shared;

/// Room for what only a user of its own may do, where one can be had: rights over mounts and a network that nobody else sees. Gives
/// whether it was entered.
pub fn own_ground(namespaces: i32) -> bool {
    // SAFETY: it touches no memory; this process ends after the attack.
    let entered = unsafe { libc::unshare(libc::CLONE_NEWUSER | namespaces) } == 0;
    let private = rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC;
    entered && (namespaces & libc::CLONE_NEWNS == 0 || rustix::mount::mount_change("/", private).is_ok())
}

fn taken(result: libc::c_long) -> Result<OwnedFd, Errno> {
    let descriptor = i32::try_from(check(result)?).ok().ok_or(Errno::BADF)?;
    // SAFETY: every caller passes the answer of a call that makes a descriptor, which nothing else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A socket of any kind.
pub fn socket(family: i32, kind: i32, protocol: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: it touches no memory.
    taken(libc::c_long::from(unsafe { libc::socket(family, kind, protocol) }))
}

/// A ring of `io_uring`.
pub fn ring() -> Result<(), Errno> {
    let mut parameters = [0u8; 256];
    // SAFETY: the kernel writes 120 bytes of parameters, for which there is room.
    taken(unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) }).map(drop)
}

/// A map of BPF.
pub fn bpf() -> Result<(), Errno> {
    let map: [u32; 18] = [1, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the attribute is of the size given and outlives the call.
    taken(unsafe { libc::syscall(libc::SYS_bpf, 0, map.as_ptr(), size_of_val(&map)) }).map(drop)
}

/// A performance counter of this process.
pub fn counter() -> Result<(), Errno> {
    let mut attribute = [0u32; 32];
    let [kind, size, _, _, _, _, _, _, _, _, excluded, ..] = &mut attribute;
    // Without the kernel and what is below it, which everybody may count.
    (*kind, *size, *excluded) = (1, 128, 0x60);
    // SAFETY: the attribute is of the size it says and outlives the call.
    taken(unsafe { libc::syscall(libc::SYS_perf_event_open, attribute.as_ptr(), 0, -1, -1, 0) }).map(drop)
}

/// Page faults handled in user space.
pub fn page_faults() -> Result<(), Errno> {
    let user_mode_only = 1;
    // SAFETY: it touches no memory.
    taken(unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | user_mode_only) }).map(drop)
}

/// The number of the session's keyring.
pub fn session_keyring() -> Result<(), Errno> {
    let get_keyring = 0;
    let session = -3;
    // SAFETY: it touches no memory.
    check(unsafe { libc::syscall(libc::SYS_keyctl, get_keyring, session, 0) }).map(drop)
}

/// Another personality, and this one again.
pub fn personality() -> Result<(), Errno> {
    let no_randomisation = 0x0004_0000;
    // SAFETY: it touches no memory.
    let before = check(unsafe { libc::syscall(libc::SYS_personality, no_randomisation) })?;
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_personality, before) }).map(drop)
}

/// A child in a user namespace, by a call whose flags no filter sees.
pub fn clone_behind_a_pointer() -> Result<(), Errno> {
    let mut arguments = [0u64; 11];
    let [flags, _, _, _, exit_signal, ..] = &mut arguments;
    (*flags, *exit_signal) = (0x1000_0000, 17);
    // SAFETY: the arguments are of the size given and outlive the call; without `CLONE_VM` the child has memory of its own.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) })?;
    if pid == 0 {
        super::process::exit(0);
    }
    Ok(())
}

/// A new user namespace for this process.
pub fn user_namespace() -> Result<(), Errno> {
    // SAFETY: it touches no memory; this process ends after it.
    check(libc::c_long::from(unsafe { libc::unshare(libc::CLONE_NEWUSER) })).map(drop)
}

/// A byte of another process's memory, at an address it told.
pub fn memory(pid: i32, address: usize) -> Result<(), Errno> {
    let mut byte = [0u8; 1];
    let local = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 1 };
    // SAFETY: one byte is written to `byte`; the other address is of another process and only a number here.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    check(read as libc::c_long).map(drop)
}

/// A signal that only asks whether it could be sent.
pub fn signal(pid: i32) -> Result<(), Errno> {
    // SAFETY: it touches no memory.
    check(libc::c_long::from(unsafe { libc::kill(pid, 0) })).map(drop)
}

/// Shared memory by its key.
pub fn shared_memory(key: i32) -> Result<(), Errno> {
    // SAFETY: it touches no memory.
    check(libc::c_long::from(unsafe { libc::shmget(key, 1, 0) })).map(drop)
}

/// Makes shared memory, and gives its number for [`remove_shared_memory`].
pub fn make_shared_memory(key: i32) -> Result<i32, Errno> {
    // SAFETY: it touches no memory.
    let number = unsafe { libc::shmget(key, 64, libc::IPC_CREAT | libc::IPC_EXCL | 0o666) };
    check(libc::c_long::from(number)).map(|_| number)
}

/// Removes it.
pub fn remove_shared_memory(number: i32) {
    // SAFETY: the command takes no buffer.
    unsafe { libc::shmctl(number, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// A file by its handle, which passes every mount and folder.
pub fn handle() -> Result<(), Errno> {
    let mut handle = [0u32; 64];
    let [size, ..] = &mut handle;
    *size = 128;
    let mut mount = 0i32;
    // SAFETY: `handle` says how many bytes follow its two first numbers and has room for them; `mount` is one `int`.
    check(libc::c_long::from(unsafe {
        libc::name_to_handle_at(libc::AT_FDCWD, c".".as_ptr(), handle.as_mut_ptr().cast(), &raw mut mount, 0)
    }))?;
    // SAFETY: the handle was just filled by the kernel.
    taken(libc::c_long::from(unsafe {
        libc::open_by_handle_at(libc::AT_FDCWD, handle.as_mut_ptr().cast(), libc::O_PATH)
    }))
    .map(drop)
}

/// A filter with a listener of its own.
pub fn listener() -> Result<(), Errno> {
    // Whoever gains nothing by a program may put filters on.
    rustix::thread::set_no_new_privs(true)?;
    let allow = [seccompiler::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW }];
    super::filter::install_with_listener(&allow).map(drop)
}

/// Input pushed into a terminal, with high bits that the kernel drops.
pub fn push_input(terminal: &OwnedFd) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let request: libc::c_ulong = 0x1_0000_5412;
    // SAFETY: this request reads one byte of a literal.
    check(unsafe { libc::syscall(libc::SYS_ioctl, terminal.as_raw_fd(), request, c"".as_ptr()) }).map(drop)
}

/// A call by its number in the second set of x86-64.
pub fn second_numbers() -> Result<(), Errno> {
    let get_pid = 0x4000_0000 | libc::SYS_getpid;
    // SAFETY: it touches no memory.
    check(unsafe { libc::syscall(get_pid) }).map(drop)
}

/// A call by the 32-bit way. A filter ends the process.
pub fn thirty_two_bits() -> Result<(), Errno> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut number: i32 = 20;
        // SAFETY: call 20 is `getpid`, which takes nothing and changes only the register that answers.
        unsafe {
            std::arch::asm!("int 0x80", inout("eax") number, out("r8") _, out("r9") _, out("r10") _, out("r11") _)
        };
        if number > 0 { Ok(()) } else { Err(Errno::NOSYS) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    Err(Errno::NOSYS)
}

/// Bytes with the opening of a connection, to an address as the kernel has it.
pub fn fast_open(socket: &OwnedFd, address: &libc::sockaddr_in) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let bytes = IoSlice::new(b"x");
    let size = libc::socklen_t::try_from(size_of_val(address)).ok().ok_or(Errno::INVAL)?;
    // SAFETY: bytes and address are valid for the sizes given and outlive the call.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL,
            std::ptr::from_ref(address).cast(),
            size,
        )
    };
    check(sent as libc::c_long).map(drop)
}

/// Connects to an address as the kernel has it.
pub fn connect(socket: &OwnedFd, address: &libc::sockaddr_in) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let size = libc::socklen_t::try_from(size_of_val(address)).ok().ok_or(Errno::INVAL)?;
    // SAFETY: the address is valid for the size given and outlives the call.
    check(libc::c_long::from(unsafe { libc::connect(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), size) }))
        .map(drop)
}
