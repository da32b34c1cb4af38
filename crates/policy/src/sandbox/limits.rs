//! `enforce.limits`: what a command may use up.
//!
//! Owns the units: seconds and MiB in the policy, and no others. Refuses zero, with which nothing could run.

use writ_core::json::Value;

use crate::error::Found;

/// What a command and all it starts may use up; `None` is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Seconds until everything ends.
    pub wall_time: Option<u64>,
    /// Seconds of processor time, of each process.
    pub cpu_time: Option<u64>,
    /// MiB of memory, of all processes together.
    pub memory: Option<u64>,
    /// MiB of memory, of each process.
    pub process_memory: Option<u64>,
    /// Processes and threads at a time.
    pub processes: Option<u64>,
    /// MiB of a file.
    pub file_size: Option<u64>,
    /// Open files, of each process.
    pub open_files: Option<u64>,
}

/// Largest number: what it comes to in bytes or milliseconds is a number of JSON's.
const LARGEST: u64 = 1 << 32;

impl Limits {
    pub(super) fn read(document: &Value, found: &mut Vec<Found>) -> Self {
        let member = document.get("enforce").and_then(|enforce| enforce.get("limits"));
        let mut limit = |name: &str, least: u64| {
            let value = member?.get(name)?.as_u64()?;
            if !(least..=LARGEST).contains(&value) {
                let pointer = format!("/enforce/limits/{name}");
                let help = format!("{least} to {LARGEST}; left out it is not limited");
                found.push(Found::value(&pointer, format!("nothing runs with {value}"), help).rule("bad-limit"));
                return None;
            }
            Some(value)
        };
        Self {
            wall_time: limit("wallTimeSeconds", 1),
            cpu_time: limit("cpuTimeSeconds", 1),
            memory: limit("memoryMiB", 1),
            process_memory: limit("processMemoryMiB", 1),
            processes: limit("processes", 1),
            file_size: limit("fileSizeMiB", 1),
            // The first three, and what a program needs to open its libraries.
            open_files: limit("openFiles", 8),
        }
    }

    /// The strictest of both.
    #[must_use]
    pub fn tightest(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            wall_time: least(self.wall_time, other.wall_time),
            cpu_time: least(self.cpu_time, other.cpu_time),
            memory: least(self.memory, other.memory),
            process_memory: least(self.process_memory, other.process_memory),
            processes: least(self.processes, other.processes),
            file_size: least(self.file_size, other.file_size),
            open_files: least(self.open_files, other.open_files),
        }
    }
}
