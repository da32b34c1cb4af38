//! The processes above this one, and which of them is the agent's client.
//!
//! Reads what the kernel says in `/proc`, and nothing else. A process is its number and the moment it started, so that a number that is
//! given out again is another process.

use serde::{Deserialize, Serialize};

use crate::Asker;
use crate::procfs::Proc;

/// Most processes between this one and the first.
const MOST: usize = 64;
/// Shells that clients start their hooks through.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ash", "busybox"];

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Its name, as the kernel keeps it: fifteen bytes.
    pub name: String,
    /// The number of the one that started it.
    pub parent: u32,
    /// Clock ticks since the machine started.
    pub started: i64,
}

impl Process {
    /// Whether it is a client's by its name. One under another name is known by the session that it began ([`ClientProcess`]).
    pub fn is_client(&self) -> bool {
        self.name == "claude"
    }
}

/// A client's process, as rows name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientProcess {
    /// Its number.
    pub id: u32,
    /// Clock ticks since the machine started.
    pub started: i64,
}

impl ClientProcess {
    /// Whether it is that process.
    pub const fn is(&self, process: &Process) -> bool {
        self.id == process.id && self.started == process.started
    }
}

/// A process and those above it, up to the first; `None` where one of them cannot be seen.
pub fn ancestors(of: u32) -> Option<Vec<Process>> {
    let proc = Proc::open().ok()?;
    let mut out: Vec<Process> = Vec::new();
    let mut next = of;
    while next != 0 {
        if out.len() >= MOST {
            return None;
        }
        let process = process(&proc, next)?;
        next = process.parent;
        out.push(process);
    }
    Some(out)
}

/// Whether a process is below a client, by the client's name or as one of some known ones. One whose ancestors cannot be seen may be.
pub fn is_below(asker: Asker, clients: &[ClientProcess]) -> bool {
    let above = asker.id().and_then(ancestors);
    let of_client = |process: &Process| process.is_client() || clients.iter().any(|client| client.is(process));
    above.is_none_or(|above| above.iter().any(of_client))
}

/// The client that started a hook or server: the process above, past the shell that it is started through. `None` where that is
/// not to be seen, or is the machine's first.
pub fn client(asker: Asker) -> Option<ClientProcess> {
    let proc = Proc::open().ok()?;
    let found = match asker {
        Asker::Client(id) => process(&proc, id)?,
        Asker::This | Asker::Process(_) | Asker::Unknown => {
            let above = process(&proc, process(&proc, asker.id()?)?.parent)?;
            if is_made_for_a_line(&proc, &above) { process(&proc, above.parent)? } else { above }
        }
    };
    // Looked at again: it is the same as long as it started then.
    let same = process(&proc, found.id).is_some_and(|again| again.started == found.started);
    (same && found.id != 1).then_some(ClientProcess { id: found.id, started: found.started })
}

/// This process, and in which namespaces its number and its start are counted; nothing where that cannot be seen.
pub fn this() -> Option<(ClientProcess, String)> {
    let proc = Proc::open().ok()?;
    let Process { id, started, .. } = process(&proc, std::process::id())?;
    let digits = |kind| {
        let name: String = proc.namespace(id, kind).ok()?;
        Some(name.chars().filter(char::is_ascii_digit).collect::<String>())
    };
    // Kernels before 5.6 count one time for all.
    let namespaces = format!("{}.{}", digits("pid")?, digits("time").unwrap_or_default());
    Some((ClientProcess { id, started }, namespaces))
}

/// Those of some processes that still run. Where that cannot be seen, all of them may.
pub fn running(clients: &[ClientProcess]) -> Vec<ClientProcess> {
    let Ok(proc) = Proc::open() else { return clients.to_vec() };
    let runs = |client: &&ClientProcess| process(&proc, client.id).is_some_and(|process| client.is(&process));
    clients.iter().filter(runs).cloned().collect()
}

/// When the machine started, in milliseconds since 1970, as its clock says now.
pub fn machine_started() -> Option<i64> {
    let stat = Proc::open().ok()?.text("stat").ok()?;
    let seconds: i64 = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    seconds.checked_mul(1000)
}

/// Whether it is a shell that runs one line: `sh -c LINE`.
fn is_made_for_a_line(proc: &Proc, process: &Process) -> bool {
    let arguments = proc.read(format!("{}/cmdline", process.id)).unwrap_or_default();
    let line =
        arguments.split(|&byte| byte == 0).skip(1).take(2).any(|word| word.starts_with(b"-") && word.ends_with(b"c"));
    line && SHELLS.contains(&process.name.as_str())
}

/// What the kernel says of a process.
fn process(proc: &Proc, id: u32) -> Option<Process> {
    // A name may be no text.
    let stat = String::from_utf8_lossy(&proc.read(format!("{id}/stat")).ok()?).into_owned();
    let (front, rest) = stat.rsplit_once(')')?;
    let (number, name) = front.split_once('(')?;
    let mut rest = rest.split_whitespace();
    let parent = rest.nth(1)?.parse().ok()?;
    let started = rest.nth(17)?.parse().ok()?;
    (number.trim().parse() == Ok(id)).then(|| Process { id, name: name.to_owned(), parent, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_the_one_befores_parent() {
        let above = ancestors(std::process::id()).unwrap();
        assert_eq!(above.first().unwrap().id, std::process::id());
        assert!(above.windows(2).all(|pair| pair[0].parent == pair[1].id));
        assert!(
            above.iter().skip(1).take(2).any(|process| client(Asker::This).is_some_and(|client| client.is(process)))
        );
    }
}
