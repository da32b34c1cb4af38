//! Processes by the namespaces they are in.
//!
//! Owns finding and ending them. Refuses to trust a number: what is killed is what was looked at. Its invariant: whoever came from a run has
//! its mounts, since nothing inside can leave them; who hides that from the caller is ended where it may come from the run.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often the processes are gone through at most.
const PASSES: u32 = 2000;

/// Ends every process with these mounts, and returns when there is none.
pub fn all_of(mounts: u64, holder: Pid) -> io::Result<()> {
    let mut clean = 0;
    for _ in 0..PASSES {
        let mut found = false;
        for pid in processes()? {
            // A process whose number is looked at after this is that one, or the signal reaches nobody.
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if belongs(pid, mounts, holder) {
                found = true;
                // It may have ended by itself.
                pidfd_send_signal(&handle, Signal::KILL).unwrap_or_default();
            }
        }
        // A child that was being made while its parent was killed is seen by the next pass.
        clean = if found { 0 } else { clean + 1 };
        if clean == 2 {
            return Ok(());
        }
        sleep(Duration::from_micros(500));
    }
    Err(io::Error::other("processes are made faster than they can be ended"))
}

fn belongs(pid: Pid, mounts: u64, holder: Pid) -> bool {
    match number(pid, "mnt") {
        Ok(found) => found == mounts,
        // One that let nobody look into it, and whose parent is gone. The parent of a run's first process is its supervisor.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => comes_from(pid, holder),
        Err(_) => false,
    }
}

/// How many processes are in a namespace of processes, as far as the caller may look.
pub fn members(namespace: &File) -> io::Result<usize> {
    let wanted = namespace.metadata()?.ino();
    Ok(processes()?.into_iter().filter(|pid| number(*pid, "pid").is_ok_and(|found| found == wanted)).count())
}

/// The number of one of a process's namespaces.
pub fn number(pid: Pid, namespace: &str) -> io::Result<u64> {
    Ok(fs::metadata(format!("/proc/{}/ns/{namespace}", pid.as_raw_nonzero()))?.ino())
}

/// The mounts that processes have. Of those in a user namespace that this user made, every one can be looked into; what cannot is none of
/// them, or gone.
pub fn all_mounts() -> io::Result<HashSet<u64>> {
    Ok(processes()?.into_iter().filter_map(|pid| number(pid, "mnt").ok()).collect())
}

/// Every process there is.
pub fn processes() -> io::Result<Vec<Pid>> {
    let names = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(names.filter_map(Pid::from_raw).collect())
}

fn comes_from(pid: Pid, ancestor: Pid) -> bool {
    let mut at = pid;
    for _ in 0..4096 {
        match parent(at) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) => at = parent,
            None => return false,
        }
    }
    true
}

/// Its parent. The name before, in brackets, may hold anything.
pub fn parent(pid: Pid) -> Option<Pid> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}
