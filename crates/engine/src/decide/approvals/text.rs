//! What a call that waits for a human says, for that human alone.
//!
//! Owns a file beside the ledger for each such call: its shell line or its input, secrets masked, until it is answered or the session ends.
//! Refuses to be a record: no row, statement or bundle has it (R8), and nothing is decided by it. Invariant: a text that was not kept is
//! missing, and never another call's.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use writ_core::secret::hide;
use writ_core::{Digest, ToolCall, ToolKind, Verdict, json};
use writ_store::regular_file;

use crate::session::Session;

/// Most texts that are kept: twice as many as calls of a session wait.
const MOST: usize = 128;
/// The folder in the session's.
const FOLDER: &str = "waiting";
/// Longest text that is kept, in characters.
const LONGEST: usize = 2000;
/// Longest text that is read, in bytes.
const MAX: u64 = 16 << 10;

/// Keeps what a call says that waits from now on. It is a help: where it cannot be kept, the call waits without.
pub fn keep_asked(session: &Session<'_>, verdict: Verdict, action: Digest, call: &ToolCall) {
    if verdict == Verdict::Ask {
        write(&session.store.folder(&session.id).join(FOLDER), action, &said(call)).unwrap_or_default();
    }
}

/// What a call says.
fn said(call: &ToolCall) -> String {
    let text = match &call.kind {
        ToolKind::Shell { command } => hide(command),
        _ => hide(&json::to_canonical(&call.input)),
    };
    let text = if call.rounded.is_empty() {
        text
    } else {
        format!("{text} (with the numbers {}, as they were written)", call.rounded.join(", "))
    };
    let cut = text.chars().nth(LONGEST).is_some();
    let text: String = text.chars().take(LONGEST).collect();
    if cut { format!("{text} …") } else { text }
}

fn write(folder: &Path, action: Digest, text: &str) -> io::Result<()> {
    if fs::read_dir(folder).is_ok_and(|entries| entries.count() >= MOST) {
        // Those that wait no more are not told from those that do; a human then sees the rest of what is on record.
        fs::remove_dir_all(folder)?;
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path(folder, action))?;
    file.write_all(text.as_bytes())
}

/// What a waiting call says.
pub fn of(session: &Path, action: Digest) -> Option<String> {
    regular_file::text(&path(&session.join(FOLDER), action), MAX).ok()
}

/// Forgets it.
pub fn forget(session: &Path, action: Digest) {
    fs::remove_file(path(&session.join(FOLDER), action)).unwrap_or_default();
}

/// Forgets those of a session.
pub fn forget_all(session: &Path) {
    fs::remove_dir_all(session.join(FOLDER)).unwrap_or_default();
}

fn path(folder: &Path, action: Digest) -> PathBuf {
    folder.join(action.hex())
}
