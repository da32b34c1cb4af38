//! Attacks on a confinement by our own program.
//!
//! Owns the list, and what each tries; the self-test starts this program again, inside and outside, and compares. Refuses to do harm: what
//! succeeds is undone, or only asks. Its invariant: an attack counts as held only where the same attack was seen to succeed outside.

mod files;
mod kernel;
mod names;
mod neighbours;
mod reach;
mod surface;
mod traffic;
mod use_up;

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};
use writ_core::json;

use crate::confinement::Limits;
use crate::host_path::HostPath;
use crate::sys::process::{Forked, clone, exit};

pub use traffic::INSIDE;
pub use use_up::LATER;

/// What an attack needs to know of the world outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct World {
    /// A folder with `outside`, `open/denied/file`, `open/kept/file`, and `open/free`, where anything may be done.
    pub folder: HostPath,
    /// A file in the host's folder for temporary ones.
    pub temporary: HostPath,
    /// A process outside.
    pub process: i32,
    /// An address in it.
    pub address: usize,
    /// A TCP port that somebody listens on.
    pub tcp: u16,
    /// The same on IPv6, or 0.
    pub tcp6: u16,
    /// The name of an abstract socket that somebody listens on.
    pub abstract_socket: String,
    /// The key of shared memory.
    pub shared_memory: i32,
    /// A descriptor on a secret, which was open when the program began.
    pub descriptor: i32,
    /// What the confinement itself masks.
    pub masked: Vec<HostPath>,
    /// What the confinement itself keeps from being written.
    pub read_only: Vec<HostPath>,
    /// Whether this is the side that has to hold. Outside nothing is tried that could not be undone.
    pub inside: bool,
    /// What the whole list needs beside.
    pub more: Option<More>,
}

impl World {
    fn more(&self) -> Result<&More, Errno> {
        self.more.as_ref().ok_or(Errno::NOENT)
    }
}

/// What the whole list needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct More {
    /// The process that watches over the run.
    pub supervisor: i32,
    /// An address of the host that is not its loopback, and the port that somebody listens on there.
    pub other: Option<SocketAddr>,
    /// A UDP port that somebody listens on.
    pub udp: u16,
    /// The same on IPv6, or 0.
    pub udp6: u16,
    /// Unix sockets that somebody listens on: of streams, in an open folder, among temporary files; of messages.
    pub sockets: [HostPath; 4],
    /// The key of a message queue and semaphores.
    pub queues: i32,
    /// The name of a message queue.
    pub queue: String,
    /// A file in the host's shared memory.
    pub shared_file: HostPath,
    /// Variables that do not pass, and are set.
    pub variables: Vec<String>,
    /// A folder whose changes go to a layer.
    pub layered: Option<HostPath>,
    /// What may be used up.
    pub limits: Limits,
    /// Bytes of its own `/dev/shm`.
    pub temporary: u64,
}

/// One attack.
struct Attack {
    id: &'static str,
    words: &'static str,
    run: fn(&World) -> Result<(), Errno>,
}

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// Those that take some milliseconds: before each session.
    Quick,
    /// All.
    Whole,
}

/// The quick ones come first.
const QUICK: [&[Attack]; 3] = [files::ATTACKS, reach::ATTACKS, kernel::ATTACKS];
const WHOLE: [&[Attack]; 5] =
    [names::ATTACKS, neighbours::ATTACKS, traffic::ATTACKS, surface::ATTACKS, use_up::ATTACKS];

fn attacks(suite: Suite) -> impl Iterator<Item = &'static Attack> {
    let more: &[&[Attack]] = if suite == Suite::Whole { &WHOLE } else { &[] };
    QUICK.iter().chain(more).copied().flatten()
}

/// What an attack is called and what it does.
pub fn list(suite: Suite) -> impl Iterator<Item = (&'static str, &'static str)> {
    attacks(suite).map(|attack| (attack.id, attack.words))
}

/// Those that only the world outside can tell of: a message that arrived, a file that was made there.
pub const TOLD_OUTSIDE: &[&str] = &["N05", "N06", "N08", "N21", "L01", "P22", "P23"];

/// What no kernel holds, and what holds it instead.
pub const BEYOND_A_KERNEL: &[(&str, &str)] = &[
    ("D09", "a denied file out of git's own objects: mask them where it is tracked"),
    ("P10", "build files that are run outside later: named at the end, held in a copy"),
    ("P15", "a folder from which PATH is taken: named at the end, held in a copy"),
    ("X01", "a copied or renamed program: its effects are held, its name is advice"),
    ("X02", "a program run by the loader: its effects are held, its name is advice"),
    ("X03", "a program run from memory: its effects are held, its name is advice"),
    ("X04", "a program by another path: its effects are held, its name is advice"),
];

/// The entry for a program that was started again to attack: its arguments are what `self_test` gave. Writes a line for each attack on
/// standard output, with the number of the error where it was refused; gives `false` if it was not asked properly.
pub fn attack(arguments: &[OsString]) -> bool {
    let [world] = arguments else { return false };
    let Ok(world) = json::from_slice::<World>(world.as_encoded_bytes()) else { return false };
    let mut lines = String::new();
    let suite = if world.more.is_some() { Suite::Whole } else { Suite::Quick };
    for attack in attacks(suite) {
        lines.push_str(attack.id);
        match carried_out(attack, &world) {
            Ok(()) => lines.push_str(" done\n"),
            Err(error) => lines.push_str(&format!(" {}\n", error.raw_os_error())),
        }
    }
    lines.push_str("end\n");
    std::io::stdout().write_all(lines.as_bytes()).is_ok()
}

/// Each in a process of its own: some attacks change it, and one ends it.
fn carried_out(attack: &Attack, world: &World) -> Result<(), Errno> {
    match clone(0)? {
        Forked::Child => exit((attack.run)(world).map_or_else(|error| error.raw_os_error().clamp(1, 255), |()| 0)),
        Forked::Parent(child) => loop {
            match waitid(WaitId::PidFd(child.handle.as_fd()), WaitIdOptions::EXITED) {
                Err(Errno::INTR) => {}
                Ok(Some(status)) => break ended(status.exit_status()),
                Ok(None) => break Err(Errno::CHILD),
                Err(error) => break Err(error),
            }
        },
    }
}

/// One that was ended by a signal has no code.
fn ended(code: Option<i32>) -> Result<(), Errno> {
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(Errno::from_raw_os_error(code)),
        None => Err(Errno::CANCELED),
    }
}

/// Who started this program: inside it is the first process.
fn starter() -> Option<i32> {
    let parent = |pid: i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    // An attack is a child of the program.
    parent(parent(i32::try_from(std::process::id()).ok()?)?)
}

fn of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
