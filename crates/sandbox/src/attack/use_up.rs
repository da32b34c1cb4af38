//! What a machine has only so much of, and what outlives its run.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, setsid};

use super::files::{own, then_remove};
use super::{Attack, World, of};
use crate::sys::process::{Child, Forked, clone, exit};

pub const ATTACKS: &[Attack] = &[
    Attack { id: "R01", words: "start more processes than it may", run: processes },
    Attack { id: "R02", words: "use more memory than it may", run: memory },
    Attack { id: "R03", words: "fill shared memory", run: fill },
    Attack { id: "R04", words: "make a file larger than it may be", run: large },
    Attack { id: "R05", words: "open more files than it may", run: files },
    Attack { id: "L01", words: "leave a process behind", run: leave },
];

/// How long what is left behind waits before it tells.
pub const LATER: Duration = Duration::from_millis(400);

fn processes(world: &World) -> Result<(), Errno> {
    let most = world.more()?.limits.processes.ok_or(Errno::NOSYS)?;
    let mut children: Vec<Child> = Vec::new();
    let mut result = Ok(());
    for _ in 0..most + 8 {
        match clone(0) {
            Ok(Forked::Child) => loop {
                std::thread::sleep(Duration::from_secs(1));
                // Whoever ended the rest has forgotten this one.
                if rustix::process::getppid().is_none_or(|parent| parent.is_init()) {
                    exit(0);
                }
            },
            Ok(Forked::Parent(child)) => children.push(child),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    for child in children {
        rustix::process::pidfd_send_signal(&child.handle, Signal::KILL).unwrap_or_default();
        rustix::process::waitpid(Some(child.pid), rustix::process::WaitOptions::empty()).ok();
    }
    result
}

fn memory(world: &World) -> Result<(), Errno> {
    let most = world.more()?.limits.memory.ok_or(Errno::NOSYS)?;
    let most = usize::try_from(most).ok().ok_or(Errno::OVERFLOW)?;
    let mut held: Vec<Vec<u8>> = Vec::new();
    for _ in 0..(most >> 20) + 32 {
        held.push(vec![1u8; 1 << 20]);
    }
    if held.iter().all(|part| part.first() == Some(&1)) { Ok(()) } else { Err(Errno::NOMEM) }
}

fn fill(world: &World) -> Result<(), Errno> {
    let most = world.more()?.temporary;
    let path = std::path::PathBuf::from(format!("/dev/shm/writ-self-test-fill-{}", std::process::id()));
    let write = || {
        let mut file = File::create(&path)?;
        let part = vec![0u8; 1 << 20];
        (0..=most >> 20).try_for_each(|_| file.write_all(&part))
    };
    then_remove(&path, write().map_err(|error: std::io::Error| of(&error)))
}

fn large(world: &World) -> Result<(), Errno> {
    let most = world.more()?.limits.file_size.ok_or(Errno::NOSYS)?;
    let path = own(world, "large");
    let write = || {
        let mut file = File::create(&path)?;
        file.seek(SeekFrom::Start(most))?;
        file.write_all(b"x")
    };
    let written = write().map_err(|error: std::io::Error| of(&error));
    then_remove(&path, written)
}

fn files(world: &World) -> Result<(), Errno> {
    let most = world.more()?.limits.open_files.ok_or(Errno::NOSYS)?;
    let mut open = Vec::new();
    for _ in 0..most {
        open.push(File::open("/dev/null").map_err(|error| of(&error))?);
    }
    Ok(())
}

/// It goes on by itself, and makes a file later. Whether it did is seen outside.
fn leave(world: &World) -> Result<(), Errno> {
    if let Forked::Parent(_) = clone(0)? {
        return Ok(());
    }
    let left = setsid().ok().ok_or(Errno::PERM).and_then(|_| clone(0));
    if let Ok(Forked::Child) = left {
        std::thread::sleep(LATER);
        fs::write(world.folder.as_path().join("open/free/late"), "late\n").unwrap_or_default();
    }
    exit(0)
}
