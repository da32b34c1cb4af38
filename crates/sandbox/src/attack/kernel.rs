//! Calls that widen what a process may do, or open the kernel's less trodden paths.

use std::fs::OpenOptions;
use std::io::Read;

use rustix::io::Errno;
use rustix::mount::{FsOpenFlags, MountFlags, fsopen, mount};
use rustix::process::{chroot, setsid};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::thread::{capabilities, no_new_privs};

use super::{Attack, World, of};
use crate::sys::attempt;

pub const ATTACKS: &[Attack] = &[
    Attack { id: "K01", words: "make an io_uring", run: |_| attempt::ring() },
    Attack { id: "K02", words: "enter a user namespace", run: |_| attempt::user_namespace() },
    Attack { id: "K03", words: "enter one by clone3", run: |_| attempt::clone_behind_a_pointer() },
    Attack { id: "K04", words: "mount over /tmp", run: mount_over },
    Attack {
        id: "K05",
        words: "begin a mount by descriptor",
        run: |_| {
            attempt::own_ground(libc::CLONE_NEWNS);
            fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map(drop)
        },
    },
    Attack { id: "K06", words: "change the root", run: |_| change_root() },
    Attack { id: "K07", words: "open a file by its handle", run: |_| attempt::handle() },
    Attack { id: "K08", words: "open core_pattern for writing", run: |_| writable("/proc/sys/kernel/core_pattern") },
    Attack { id: "K09", words: "open sysrq for writing", run: |_| writable("/proc/sysrq-trigger") },
    Attack { id: "K10", words: "open uevent_helper for writing", run: |_| writable("/sys/kernel/uevent_helper") },
    Attack { id: "K11", words: "open disks, memory, virtual machines", run: |_| devices() },
    Attack { id: "K20", words: "read the kernel's addresses", run: |_| addresses() },
    Attack { id: "K12", words: "make a BPF map", run: |_| attempt::bpf() },
    Attack { id: "K13", words: "open a performance counter", run: |_| attempt::counter() },
    Attack { id: "K14", words: "handle page faults", run: |_| attempt::page_faults() },
    Attack { id: "K15", words: "change the personality", run: |_| attempt::personality() },
    Attack { id: "K16", words: "answer system calls", run: |_| attempt::listener() },
    Attack { id: "K17", words: "call by x32 numbers", run: |_| attempt::second_numbers() },
    Attack { id: "K18", words: "call the 32-bit way", run: |_| attempt::thirty_two_bits() },
    Attack { id: "K19", words: "gain rights by a program", run: |_| gain() },
    Attack { id: "I18", words: "push input into the terminal", run: |_| push_input() },
];

/// Where it succeeds it is in mounts of its own, so that nothing is left.
fn mount_over(world: &World) -> Result<(), Errno> {
    apart(world, libc::CLONE_NEWNS)?;
    mount("none", "/tmp", "tmpfs", MountFlags::empty(), None)
}

fn change_root() -> Result<(), Errno> {
    attempt::own_ground(0);
    chroot("/")
}

/// Namespaces of its own; outside nothing is tried without them.
pub(super) fn apart(world: &World, namespaces: i32) -> Result<(), Errno> {
    if attempt::own_ground(namespaces) || world.inside { Ok(()) } else { Err(Errno::PERM) }
}

fn writable(path: &str) -> Result<(), Errno> {
    OpenOptions::new().write(true).open(path).map(drop).map_err(|error| of(&error))
}

fn devices() -> Result<(), Errno> {
    let devices = ["/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/mem", "/dev/kvm", "/dev/fuse", "/proc/kcore"];
    let opened = devices.iter().any(|device| std::fs::File::open(device).is_ok());
    if opened { Ok(()) } else { Err(Errno::ACCESS) }
}

fn addresses() -> Result<(), Errno> {
    let mut bytes = [0u8; 4096];
    let read = std::fs::File::open("/proc/kallsyms").and_then(|mut file| file.read(&mut bytes));
    let text = String::from_utf8_lossy(bytes.get(..read.map_err(|error| of(&error))?).unwrap_or_default()).into_owned();
    let shown = text
        .lines()
        .any(|line| line.split(' ').next().is_some_and(|address| address.bytes().any(|digit| digit != b'0')));
    if shown { Ok(()) } else { Err(Errno::ACCESS) }
}

fn gain() -> Result<(), Errno> {
    let held = no_new_privs()? && capabilities(None)?.permitted.is_empty();
    if held { Err(Errno::PERM) } else { Ok(()) }
}

/// Into a terminal of its own, so that nobody's is disturbed.
fn push_input() -> Result<(), Errno> {
    setsid()?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = openpt(flags)?;
    unlockpt(&terminal)?;
    // The first process of a session that opens a terminal is controlled by it.
    let own = ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR)?;
    let pushed = attempt::push_input(&own);
    // When it closes, this process is hung up on before it can tell.
    std::mem::forget(terminal);
    pushed
}
