//! Attacks on a confinement by our own program.
//!
//! Owns the list, and what each tries; the self-test starts this program again, inside and outside, and compares. Refuses to do harm: what
//! succeeds is undone, or only asks. Its invariant: an attack counts as held only where the same attack was seen to succeed outside.

mod files;
mod kernel;
mod reach;

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};
use writ_core::json;

use crate::host_path::HostPath;
use crate::sys::process::{Forked, clone, exit};

/// What an attack needs to know of the world outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct World {
    /// A folder with `outside`, `open/denied/file`, `open/kept/file`.
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
}

/// One attack.
struct Attack {
    id: &'static str,
    words: &'static str,
    run: fn(&World) -> Result<(), Errno>,
}

/// All of them.
fn attacks() -> impl Iterator<Item = &'static Attack> {
    files::ATTACKS.iter().chain(reach::ATTACKS).chain(kernel::ATTACKS)
}

/// What an attack is called and what it does.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    attacks().map(|attack| (attack.id, attack.words))
}

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
/// standard output; gives `false` if it was not asked properly.
pub fn attack(arguments: &[OsString]) -> bool {
    let [world] = arguments else { return false };
    let Ok(world) = json::from_slice::<World>(world.as_encoded_bytes()) else { return false };
    let mut lines = String::new();
    for attack in attacks() {
        let done = succeeded(attack, &world);
        lines.push_str(attack.id);
        lines.push_str(if done { " done\n" } else { " refused\n" });
    }
    lines.push_str("end\n");
    std::io::stdout().write_all(lines.as_bytes()).is_ok()
}

/// Each in a process of its own: some attacks change it, and one ends it.
fn succeeded(attack: &Attack, world: &World) -> bool {
    match clone(0) {
        Err(_) => false,
        Ok(Forked::Child) => exit(i32::from((attack.run)(world).is_err())),
        Ok(Forked::Parent(child)) => loop {
            match waitid(WaitId::PidFd(child.handle.as_fd()), WaitIdOptions::EXITED) {
                Err(Errno::INTR) => {}
                Ok(Some(status)) => break status.exit_status() == Some(0),
                Ok(None) | Err(_) => break false,
            }
        },
    }
}

fn of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
