//! `clone(2)`, `execve(2)`, `close_range(2)`.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Pid;

use super::{check, last};

/// Which side of a `clone`.
pub enum Forked {
    /// The new process.
    Child,
    /// The one that called, with the new one.
    Parent(Child),
}

/// A child, and the descriptor that stands for it.
#[derive(Debug)]
pub struct Child {
    /// Its number.
    pub pid: Pid,
    /// It, whatever becomes of its number.
    pub handle: OwnedFd,
}

/// A new process in new namespaces (`CLONE_NEW*`), a copy of this one. Unlike `fork(3)` it takes no lock of the C library: until it calls
/// `execve` or `exit` the child must not allocate, or wait for anything another thread held.
pub fn clone(namespaces: i32) -> Result<Forked, Errno> {
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut handle: i32 = -1;
    // SAFETY: without `CLONE_VM` the child has a copy of all memory and goes on with the same stack pointer, as after `fork`. The kernel writes
    // one `int` to `handle`, which lives; the two last arguments, whose order differs between architectures, are both null and not asked for.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, &raw mut handle, 0usize, 0usize) })?;
    match i32::try_from(pid).ok().and_then(Pid::from_raw) {
        None => Ok(Forked::Child),
        // SAFETY: the kernel has just made this descriptor, and nothing else knows it.
        Some(pid) => Ok(Forked::Parent(Child { pid, handle: unsafe { OwnedFd::from_raw_fd(handle) } })),
    }
}

/// Room for the stack of a process that shares memory, and of the copies of it that go on.
pub struct Stack(Vec<MaybeUninit<u128>>);

impl Stack {
    const SIZE: usize = 256 << 10;

    /// Makes it. It takes no memory until it is used.
    pub fn new() -> Self {
        Self(Vec::with_capacity(Self::SIZE / size_of::<u128>()))
    }
}

/// Runs `going` in a new process that has this one's memory, not a copy of it: half the time of a copy, each page of which is copied again
/// when one of both writes to it. This one waits until the other has ended or become another program. It must not allocate, or wait for
/// anything another thread held.
pub fn run_within(stack: &mut Stack, mut going: impl FnMut() -> i32) -> Result<Child, Errno> {
    extern "C" fn enter<G: FnMut() -> i32>(going: *mut c_void) -> i32 {
        // SAFETY: it is the pointer that is handed over below, and who owns what it points to waits meanwhile.
        let going = unsafe { &mut *going.cast::<G>() };
        going()
    }
    fn entry<G: FnMut() -> i32>(_going: &G) -> extern "C" fn(*mut c_void) -> i32 {
        enter::<G>
    }
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut handle: i32 = -1;
    let entry = entry(&going);
    // SAFETY: the stack grows down from its end, is aligned, and lives until the other process uses this memory no more, since with
    // `CLONE_VFORK` this thread goes on only then. `entry` gets a pointer to `going`, which nobody uses meanwhile. The kernel writes one `int`
    // to `handle`.
    let pid = check(libc::c_long::from(unsafe {
        let top = stack.0.as_mut_ptr().add(stack.0.capacity()).cast::<c_void>();
        libc::clone(entry, top, flags, (&raw mut going).cast(), &raw mut handle)
    }))?;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    // SAFETY: the kernel has just made this descriptor, and nothing else knows it.
    Ok(Child { pid, handle: unsafe { OwnedFd::from_raw_fd(handle) } })
}

/// Closes a descriptor for this process, where the value that stands for it is another's, who has the same memory.
pub fn close_here(descriptor: BorrowedFd<'_>) {
    // SAFETY: it changes descriptors of a process that uses no value which stands for this one.
    unsafe { libc::close(descriptor.as_raw_fd()) };
}

/// Texts as `execve` takes them: pointers and a null. They are kept beside the pointers, so these stay valid.
pub struct Texts {
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Texts {
    /// Takes them over.
    pub fn new(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { _texts: texts, pointers }
    }
}

/// Becomes another program. Answers only if that failed.
pub fn execute(program: &CStr, arguments: &Texts, environment: &Texts) -> Errno {
    // SAFETY: `program` ends with a zero byte; both lists end with a null and point to texts that `Texts` keeps alive and in place.
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    last()
}

/// Becomes the program that a descriptor stands for. Answers only if that failed.
pub fn execute_descriptor(program: BorrowedFd<'_>, arguments: &Texts, environment: &Texts) -> Errno {
    // SAFETY: as for `execute`; the path is empty, which with `AT_EMPTY_PATH` means the descriptor itself.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            arguments.pointers.as_ptr(),
            environment.pointers.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    last()
}

/// Every descriptor from `first` on closes when a program is executed.
pub fn close_on_execution(first: u32) -> Result<(), Errno> {
    // SAFETY: it changes flags of descriptors and touches no memory.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Goes on with mounts of its own, a copy of those before.
pub fn own_mounts() -> Result<(), Errno> {
    // SAFETY: only descriptors that are shared would matter, and it says nothing of descriptors.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }
}

/// Ends this process at once, without anything that was registered for its end.
pub fn exit(code: i32) -> ! {
    // SAFETY: it does not come back and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor but this one, which moves to 0. For a process that goes on with nothing else: values that stand for descriptors
/// are not dropped after this.
pub fn keep_only(descriptor: BorrowedFd<'_>) -> Result<BorrowedFd<'static>, Errno> {
    // SAFETY: both calls change descriptors and touch no memory; the only caller never drops a value that stands for one of them.
    check(unsafe { libc::c_long::from(libc::dup2(descriptor.as_raw_fd(), 0)) })?;
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) })?;
    // SAFETY: 0 is open and stays so until the process ends.
    Ok(unsafe { BorrowedFd::borrow_raw(0) })
}

/// Goes on as a child of nobody who called, in a session of its own, and with no descriptor but the first three. For a process that has
/// just begun: it has one thread, and stands for no other descriptor.
pub fn go_on_alone() -> Result<(), Errno> {
    // SAFETY: it changes descriptors that no value stands for yet, and touches no memory.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) })?;
    // SAFETY: this process has one thread, so the child has all of it.
    match check(unsafe { libc::c_long::from(libc::fork()) })? {
        0 => rustix::process::setsid().map(drop),
        _ => exit(0),
    }
}

/// Standard output goes there from now on.
pub fn replace_output(descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: it changes descriptors and touches no memory; no value stands for descriptor 1.
    check(unsafe { libc::c_long::from(libc::dup2(descriptor.as_raw_fd(), 1)) }).map(drop)
}

unsafe extern "C" {
    static environ: *const *mut c_char;
}

/// Overwrites the variables that this process was started with. For a process that is a copy of another, has one thread, and reads no
/// variable from here on.
pub fn forget_environment() {
    // SAFETY: `environ` is null or a list of texts that ends with a null; each ends with a zero byte and lies in memory that this process
    // may write: its first stack, or the C library's heap. Nobody else runs here, so nobody reads or changes them meanwhile.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let mut byte = *entry;
            while *byte != 0 {
                byte.write_volatile(0);
                byte = byte.add(1);
            }
            entry = entry.add(1);
        }
    }
}

/// Standard input, output and errors go there from now on.
pub fn replace_streams(descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: it changes descriptors and touches no memory; no value stands for the first three.
    (0..3).try_for_each(|number| {
        check(unsafe { libc::c_long::from(libc::dup2(descriptor.as_raw_fd(), number)) }).map(drop)
    })
}
