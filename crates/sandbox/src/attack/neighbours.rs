//! Other processes, and what processes of a machine share.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, setsid};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

use super::files::read;
use super::{Attack, World, of, starter};
use crate::sys::attempt::{self, kernel, processes, shared};

pub const ATTACKS: &[Attack] = &[
    Attack { id: "I01", words: "connect to a Unix socket outside", run: |world| stream(world, 0) },
    Attack { id: "I02", words: "connect to one in an open folder", run: |world| stream(world, 1) },
    Attack { id: "I03", words: "connect to one among temporary files", run: |world| stream(world, 2) },
    Attack { id: "I22", words: "send to a Unix socket of messages", run: message },
    Attack { id: "I23", words: "turn a pair of sockets to another", run: turned },
    Attack { id: "I24", words: "connect to buses, displays, containers, terminals, agents", run: |_| known_sockets() },
    Attack { id: "I06", words: "open a message queue by its name", run: queue },
    Attack { id: "I25", words: "find a message queue", run: |world| shared::queue(world.more()?.queues) },
    Attack { id: "I26", words: "find semaphores", run: |world| shared::semaphores(world.more()?.queues) },
    Attack { id: "I27", words: "read a file in shared memory", run: |world| read(world.more()?.shared_file.as_path()) },
    Attack { id: "I08", words: "reach the user's keyring", run: |_| shared::user_keyring() },
    Attack { id: "I28", words: "add a key", run: |_| shared::add_key() },
    Attack { id: "I09", words: "find variables that do not pass", run: variables },
    Attack { id: "I11", words: "read another process's arguments", run: |world| of_process(world, "cmdline") },
    Attack { id: "I12", words: "trace another process", run: |world| processes::trace(world.process) },
    Attack { id: "I17", words: "push input into the terminal, plainly", run: |_| push_input() },
    Attack { id: "I20", words: "signal the supervisor", run: |world| attempt::signal(world.more()?.supervisor) },
    Attack { id: "I21", words: "read the memory of the first process", run: |_| first_memory() },
    Attack {
        id: "I29",
        words: "change another process's memory",
        run: |world| processes::change(world.process, world.address),
    },
    Attack { id: "I30", words: "open another process's memory", run: |world| writable(world, "mem") },
    Attack { id: "I31", words: "read another process's map of memory", run: |world| of_process(world, "maps") },
    Attack { id: "I32", words: "read another process's system calls", run: |world| of_process(world, "syscall") },
    Attack { id: "I33", words: "list another process's folder", run: folder_of },
    Attack { id: "I34", words: "read what another process's descriptors lead to", run: descriptors_of },
    Attack {
        id: "I35",
        words: "signal another process by descriptor",
        run: |world| processes::signal(&process(world)?),
    },
    Attack {
        id: "I36",
        words: "enter another process's namespaces by descriptor",
        run: |world| processes::enter(&process(world)?),
    },
    Attack { id: "I38", words: "lower another process's limits", run: |world| processes::lower(world.process) },
    Attack { id: "I39", words: "slow another process down", run: |world| processes::slow(world.process) },
    Attack { id: "I40", words: "tie another process to a processor", run: |world| processes::tie(world.process) },
    Attack {
        id: "I41",
        words: "change how another process is scheduled",
        run: |world| processes::schedule(world.process),
    },
    Attack { id: "I42", words: "lower another process's share of disks", run: |world| processes::disks(world.process) },
    Attack {
        id: "I43",
        words: "compare descriptors with another process",
        run: |world| processes::compare(world.process),
    },
    Attack { id: "I44", words: "ask for another process's locks", run: |world| processes::locks(world.process) },
    Attack { id: "I45", words: "have another process killed first", run: raise },
];

fn socket(world: &World, place: usize) -> Result<&Path, Errno> {
    Ok(world.more()?.sockets.get(place).ok_or(Errno::NOENT)?.as_path())
}

fn stream(world: &World, place: usize) -> Result<(), Errno> {
    UnixStream::connect(socket(world, place)?).map(drop).map_err(|error| of(&error))
}

fn message(world: &World) -> Result<(), Errno> {
    let sender = UnixDatagram::unbound().map_err(|error| of(&error))?;
    sender.send_to(b"x", socket(world, 3)?).map(drop).map_err(|error| of(&error))
}

fn turned(world: &World) -> Result<(), Errno> {
    let (one, _other) = UnixDatagram::pair().map_err(|error| of(&error))?;
    one.connect(socket(world, 3)?).map_err(|error| of(&error))?;
    one.send(b"x").map(drop).map_err(|error| of(&error))
}

fn known_sockets() -> Result<(), Errno> {
    let user = rustix::process::getuid().as_raw();
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut places = vec![
        PathBuf::from(format!("/run/user/{user}/bus")),
        format!("/tmp/tmux-{user}/default").into(),
        format!("/run/screen/S-{user}").into(),
    ];
    let fixed = [
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
        "/run/systemd/journal/stdout",
        "/tmp/.X11-unix/X0",
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/run/snapd.socket",
    ];
    places.extend(fixed.map(PathBuf::from));
    places.extend([named("SSH_AUTH_SOCK"), named("GPG_AGENT_INFO")].into_iter().flatten());
    let reached = |place: &PathBuf| UnixStream::connect(place).is_ok();
    if places.iter().any(reached) { Ok(()) } else { Err(Errno::NOENT) }
}

fn queue(world: &World) -> Result<(), Errno> {
    shared::named(&CString::new(world.more()?.queue.as_str()).ok().ok_or(Errno::INVAL)?)
}

fn variables(world: &World) -> Result<(), Errno> {
    let names = &world.more()?.variables;
    let there = names.iter().any(|name| std::env::var_os(name).is_some());
    if there { Ok(()) } else { Err(Errno::NOENT) }
}

fn of_process(world: &World, name: &str) -> Result<(), Errno> {
    let text = fs::read(format!("/proc/{}/{name}", world.process)).map_err(|error| of(&error))?;
    if text.is_empty() { Err(Errno::NODATA) } else { Ok(()) }
}

fn writable(world: &World, name: &str) -> Result<(), Errno> {
    let path = format!("/proc/{}/{name}", world.process);
    OpenOptions::new().write(true).open(path).map(drop).map_err(|error| of(&error))
}

fn folder_of(world: &World) -> Result<(), Errno> {
    fs::read_dir(format!("/proc/{}/cwd/", world.process)).map(drop).map_err(|error| of(&error))
}

fn descriptors_of(world: &World) -> Result<(), Errno> {
    fs::read_link(format!("/proc/{}/fd/{}", world.process, world.descriptor)).map(drop).map_err(|error| of(&error))
}

fn process(world: &World) -> Result<std::os::fd::OwnedFd, Errno> {
    pidfd_open(Pid::from_raw(world.process).ok_or(Errno::SRCH)?, PidfdFlags::empty())
}

fn raise(world: &World) -> Result<(), Errno> {
    let path = format!("/proc/{}/oom_score_adj", world.process);
    let mut file = OpenOptions::new().write(true).open(path).map_err(|error| of(&error))?;
    file.write_all(b"500").map_err(|error| of(&error))
}

fn first_memory() -> Result<(), Errno> {
    let maps = |pid: i32| fs::read(format!("/proc/{pid}/maps")).map_err(|error| of(&error));
    let text = maps(1).or_else(|error| maps(starter().ok_or(error)?))?;
    if text.is_empty() { Err(Errno::NODATA) } else { Ok(()) }
}

/// Into a terminal of its own, so that nobody's is disturbed.
fn push_input() -> Result<(), Errno> {
    setsid()?;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&terminal)?;
    let own = ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR)?;
    let pushed = kernel::push_input(&own);
    // When it closes, this process is hung up on before it can tell.
    std::mem::forget(terminal);
    pushed
}
