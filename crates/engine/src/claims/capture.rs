//! `ATTEST_CAPTURE=1`: copies of what the client sent, for those who look into a case. Off unless asked for: payloads and
//! transcripts hold whatever the agent saw. In a work tree the copies hide from git: they are nobody's work.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use writ_core::{Event, EventKind};

use crate::Home;

/// Longest file that is copied.
const MAX_COPY: u64 = 64 << 20;

/// Copies payload and transcript of a subagent's start or stop. What cannot be copied is left out.
pub fn copy(payload: &[u8], input: &Event, home: &Home) {
    let Some(folder) = &home.claims.capture else { return };
    let transcript = match &input.kind {
        EventKind::SubagentStart => None,
        EventKind::SubagentStop { transcript, .. } => transcript.as_deref(),
        _ => return,
    };
    let agent = input.agent.as_ref().map_or("none", |agent| agent.id.as_str());
    let name = |suffix: &str| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let agent: String = agent.chars().take(64).map(plain).collect();
        folder.join(format!("{}-{agent}.{suffix}", input.kind.name()))
    };
    if fs::create_dir_all(folder).is_ok() {
        if let Ok(mut ignore) = File::create_new(folder.join(".gitignore")) {
            ignore.write_all(b"*\n").ok();
        }
        fs::write(name("json"), payload).ok();
        let small = |path: &&str| fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_COPY);
        if let Some(path) = transcript.filter(small) {
            fs::copy(Path::new(path), name("jsonl")).ok();
        }
    }
}
