//! The processes above this one, and which of them is the agent's client.
//!
//! Reads what the kernel says in `/proc`, and nothing else: something put in its place has a size, or says another number. A
//! process is its number and the moment it started, so that a number that is given out again is another process.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::Asker;

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

/// This process and those above it, up to the first; `None` where one of them cannot be seen.
pub fn ancestors() -> Option<Vec<Process>> {
    let mut out: Vec<Process> = Vec::new();
    let mut next = std::process::id();
    while next != 0 {
        if out.len() >= MOST {
            return None;
        }
        let process = process(next)?;
        next = process.parent;
        out.push(process);
    }
    Some(out)
}

/// The client that started a hook or server: the process above, past the shell that it is started through. `None` where that is
/// not to be seen, or is the machine's first.
pub fn client(asker: Asker) -> Option<ClientProcess> {
    let above = process(process(asker.id()?)?.parent)?;
    let found = if is_made_for_a_line(&above) { process(above.parent)? } else { above };
    // Looked at again: it is the same as long as it started then.
    let same = process(found.id).is_some_and(|again| again.started == found.started);
    (same && found.id != 1).then_some(ClientProcess { id: found.id, started: found.started })
}

/// Whether it is a shell that runs one line: `sh -c LINE`.
fn is_made_for_a_line(process: &Process) -> bool {
    let arguments = fs::read(format!("/proc/{}/cmdline", process.id)).unwrap_or_default();
    let line =
        arguments.split(|&byte| byte == 0).skip(1).take(2).any(|word| word.starts_with(b"-") && word.ends_with(b"c"));
    line && SHELLS.contains(&process.name.as_str())
}

/// What the kernel says of a process.
pub fn process(id: u32) -> Option<Process> {
    let path = format!("/proc/{id}/stat");
    let found = fs::symlink_metadata(&path).ok()?;
    if !found.is_file() || found.len() != 0 {
        return None;
    }
    let stat = fs::read_to_string(&path).ok()?;
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
        let above = ancestors().unwrap();
        assert_eq!(above.first().unwrap().id, std::process::id());
        assert!(above.windows(2).all(|pair| pair[0].parent == pair[1].id));
        assert!(
            above.iter().skip(1).take(2).any(|process| client(Asker::This).is_some_and(|client| client.is(process)))
        );
    }
}
