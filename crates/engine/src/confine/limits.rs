//! Policies into what a run may use up, and what became of it in words.
//!
//! Owns the units: a policy says seconds and MiB, the kernel takes milliseconds and bytes. Refuses a limit on the memory of a whole
//! tree where no control group can be made. Invariant: of several layers the strictest counts.

use writ_policy::Policy;
use writ_sandbox::{Cgroups, Limits, Memory, MemoryHeldBy};

const MIB: u64 = 1 << 20;

/// The strictest of every layer.
pub fn limits(layers: &[&Policy]) -> Limits {
    let all = layers.iter().map(|policy| policy.sandbox().limits);
    let limits = all.fold(writ_policy::sandbox::Limits::default(), writ_policy::sandbox::Limits::tightest);
    let bytes = |mebibytes: Option<u64>| mebibytes.map(|count| count.saturating_mul(MIB));
    Limits {
        wall_time: limits.wall_time.map(|seconds| seconds.saturating_mul(1000)),
        cpu_time: limits.cpu_time,
        memory: bytes(limits.memory),
        process_memory: bytes(limits.process_memory),
        processes: limits.processes,
        file_size: bytes(limits.file_size),
        open_files: limits.open_files,
    }
}

/// Why they cannot be held here.
pub fn unheld(limits: &Limits) -> Option<String> {
    let grouped = limits.memory.is_none() || Cgroups::find().memory.is_some();
    (!grouped).then(|| {
        "no control group can be made here, so the memory of all processes together (`/enforce/limits/memoryMiB`) cannot be \
         limited; `processMemoryMiB` limits each process"
            .to_owned()
    })
}

/// Each limit, for people.
pub fn words(limits: &Limits) -> Vec<String> {
    let each = [
        (limits.wall_time.map(|limit| limit / 1000), "s of wall time"),
        (limits.cpu_time, "s of processor time each process"),
        (limits.memory.map(|limit| limit / MIB), "MiB of memory"),
        (limits.process_memory.map(|limit| limit / MIB), "MiB of memory each process"),
        (limits.processes, "processes"),
        (limits.file_size.map(|limit| limit / MIB), "MiB a file"),
        (limits.open_files, "open files each process"),
    ];
    each.into_iter().filter_map(|(limit, words)| Some(format!("{} {words}", limit?))).collect()
}

/// What is said at the end of a run that a limit ended, for the agent.
pub fn ended(limits: &Limits, time_up: bool, memory: Option<Memory>) -> Vec<String> {
    let time = limits.wall_time.filter(|_| time_up).map(|limit| {
        format!("the time of {} s is up (/enforce/limits/wallTimeSeconds): everything was ended", limit / 1000)
    });
    let killed = memory.filter(|memory| memory.killed > 0 && memory.held_by == MemoryHeldBy::Group);
    let memory = killed.zip(limits.memory).map(|(memory, limit)| {
        let (count, megabytes) = (memory.killed, limit / MIB);
        let processes = if count == 1 { "1 process was" } else { &format!("{count} processes were") };
        format!("the memory of {megabytes} MiB is used up (/enforce/limits/memoryMiB): {processes} killed")
    });
    time.into_iter().chain(memory).collect()
}
