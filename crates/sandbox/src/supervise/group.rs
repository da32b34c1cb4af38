//! A control group for one run.
//!
//! Owns a group below the caller's own, with the run's limit on memory. Refuses to begin where a group should be had and cannot be made.
//! Its invariant: what bears the number of a process that is gone is removed by the next run that makes one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Pid;

use super::{Memory, MemoryHeldBy, RunError};
use crate::confinement::Limits;
use crate::features::{Cgroups, Controllers};

/// The folders of the group; none where no limit asks for it.
#[derive(Debug)]
pub struct Group(Vec<PathBuf>);

const NAME: &str = "writ-run-";

impl Group {
    /// Makes it if the memory of all processes together is limited. Where groups can be made is looked up now: the caller may be in
    /// another group than when the machine was tried.
    pub fn new(limits: &Limits) -> Result<Self, RunError> {
        let mut group = Self(Vec::new());
        let Some(memory) = limits.memory else { return Ok(group) };
        let found = Cgroups::find();
        let parent = found.memory.as_ref().ok_or(RunError::NoGroup)?;
        let memory = memory.to_string();
        let files: &[(&str, &str)] = match found.controllers {
            Controllers::None => return Err(RunError::NoGroup),
            Controllers::Version1 => &[("memory.limit_in_bytes", &memory), ("memory.memsw.limit_in_bytes", &memory)],
            Controllers::Version2 => &[("memory.max", &memory), ("memory.swap.max", "0"), ("memory.oom.group", "1")],
        };
        group.add(parent, files).map_err(|error| RunError::Outside("make a control group", error))?;
        Ok(group)
    }

    fn add(&mut self, parent: &Path, limits: &[(&str, &str)]) -> io::Result<()> {
        sweep(parent);
        let folder = parent.join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&folder)?;
        // From here on it is removed with this value, whatever fails.
        self.0.push(folder.clone());
        limits.iter().try_for_each(|(file, limit)| match fs::write(folder.join(file), limit) {
            // Where nothing can be swapped out, nothing limits it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && file.contains("sw") => Ok(()),
            other => other,
        })
    }

    /// Whether nothing is to be put in.
    pub const fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts a process in, with all it will start.
    pub fn join(&self, pid: Pid) -> io::Result<()> {
        self.0.iter().try_for_each(|folder| fs::write(folder.join("cgroup.procs"), pid.as_raw_nonzero().to_string()))
    }

    /// What became of a limit on memory.
    pub fn memory(&self, limits: &Limits) -> Option<Memory> {
        if self.0.is_empty() {
            return limits.process_memory.map(|_| Memory { held_by: MemoryHeldBy::EachProcess, killed: 0 });
        }
        Some(Memory { held_by: MemoryHeldBy::Group, killed: self.0.iter().map(|folder| kills(folder)).sum() })
    }
}

/// How many processes of a group the kernel killed because its memory was used up.
fn kills(folder: &Path) -> u64 {
    let counted = ["memory.events", "memory.oom_control"];
    let text = counted.iter().find_map(|name| fs::read_to_string(folder.join(name)).ok()).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.0 {
            // The kernel lets go of processes that ended a moment later.
            for _ in 0..50 {
                if fs::remove_dir(folder).is_ok() {
                    break;
                }
                sleep(Duration::from_millis(2));
            }
        }
    }
}

/// Removes groups whose run was killed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME));
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            // One that still holds processes stays.
            fs::remove_dir(entry.path()).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_limits_and_goes() {
        let found = Cgroups::find();
        let (Some(parent), Controllers::Version1) = (&found.processes, found.controllers) else { return };
        let old = parent.join(format!("{NAME}4194305"));
        fs::create_dir(&old).unwrap();
        let mut group = Group(Vec::new());
        group.add(parent, &[("pids.max", "3")]).unwrap();
        assert!(!old.exists());
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "read line; for i in 1 2 3 4 5; do sleep 1 & done; echo all; wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        group.join(Pid::from_raw(shell.id().try_into().unwrap()).unwrap()).unwrap();
        drop(shell.stdin.take());
        assert!(!String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap().contains("all"));
        let folder = group.0[0].clone();
        // Its orphans end in a second.
        sleep(Duration::from_millis(1200));
        drop(group);
        assert!(!folder.exists());
    }
}
