//! What processes of a machine share beside files: queues, semaphores, keys.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::super::check;

/// A message queue and a set of semaphores by a key; for [`remove`].
pub fn make(key: i32) -> Result<(i32, i32), Errno> {
    let how = libc::IPC_CREAT | libc::IPC_EXCL | 0o666;
    // SAFETY: neither call touches memory.
    let queue = unsafe { libc::msgget(key, how) };
    check(libc::c_long::from(queue))?;
    // SAFETY: as above.
    let semaphores = unsafe { libc::semget(key, 1, how) };
    if semaphores < 0 {
        let error = super::super::last();
        remove_queue(queue);
        return Err(error);
    }
    Ok((queue, semaphores))
}

/// Removes them.
pub fn remove((queue, semaphores): (i32, i32)) {
    remove_queue(queue);
    remove_semaphores(semaphores);
}

/// Removes a queue.
pub fn remove_queue(number: i32) {
    // SAFETY: this command takes no buffer.
    unsafe { libc::msgctl(number, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// Removes a set of semaphores.
pub fn remove_semaphores(number: i32) {
    // SAFETY: this command takes no buffer.
    unsafe { libc::semctl(number, 0, libc::IPC_RMID) };
}

/// A message queue by its key.
pub fn queue(key: i32) -> Result<(), Errno> {
    // SAFETY: it touches no memory.
    check(libc::c_long::from(unsafe { libc::msgget(key, 0) })).map(drop)
}

/// Semaphores by their key.
pub fn semaphores(key: i32) -> Result<(), Errno> {
    // SAFETY: it touches no memory.
    check(libc::c_long::from(unsafe { libc::semget(key, 1, 0) })).map(drop)
}

/// Makes a message queue with a name; for [`remove_named`].
pub fn make_named(name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
    let mode: libc::c_uint = 0o666;
    // SAFETY: the name ends with a zero byte; without attributes the kernel takes its own.
    let queue = unsafe { libc::mq_open(name.as_ptr(), flags, mode, std::ptr::null_mut::<libc::mq_attr>()) };
    check(libc::c_long::from(queue))?;
    // SAFETY: the kernel has just made this descriptor, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(queue) })
}

/// A message queue by its name.
pub fn named(name: &CStr) -> Result<(), Errno> {
    // SAFETY: the name ends with a zero byte; nothing is made, so no more arguments are looked at.
    let queue = unsafe { libc::mq_open(name.as_ptr(), libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC) };
    check(libc::c_long::from(queue)).map(drop)
}

/// Removes it.
pub fn remove_named(name: &CStr) {
    // SAFETY: the name ends with a zero byte.
    unsafe { libc::mq_unlink(name.as_ptr()) };
}

/// The number of the user's keyring.
pub fn user_keyring() -> Result<(), Errno> {
    let (get_keyring, user) = (0, -4);
    // SAFETY: it touches no memory.
    check(unsafe { libc::syscall(libc::SYS_keyctl, get_keyring, user, 0) }).map(drop)
}

/// A key in this thread's own ring.
pub fn add_key() -> Result<(), Errno> {
    let thread = -1;
    let (kind, name) = (c"user", c"writ-self-test");
    // SAFETY: the texts end with a zero byte, and one byte of a literal is read.
    check(unsafe { libc::syscall(libc::SYS_add_key, kind.as_ptr(), name.as_ptr(), c"x".as_ptr(), 1usize, thread) })
        .map(drop)
}

/// A message to an address as the kernel has it, and whether it could be sent.
pub fn send(socket: &OwnedFd, address: &libc::sockaddr_in, text: &[u8]) -> Result<(), Errno> {
    let size = libc::socklen_t::try_from(size_of_val(address)).ok().ok_or(Errno::INVAL)?;
    // SAFETY: text and address are valid for the sizes given and outlive the call.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            text.as_ptr().cast(),
            text.len(),
            libc::MSG_NOSIGNAL,
            std::ptr::from_ref(address).cast(),
            size,
        )
    };
    check(sent as libc::c_long).map(drop)
}

/// The option by which `connect` sends bytes with the opening of a connection.
pub fn fast_open_later(socket: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    let size = libc::socklen_t::try_from(size_of_val(&on)).ok().ok_or(Errno::INVAL)?;
    // SAFETY: one `int` is read.
    check(libc::c_long::from(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_FASTOPEN_CONNECT,
            (&raw const on).cast(),
            size,
        )
    }))
    .map(drop)
}
