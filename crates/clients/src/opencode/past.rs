//! Past sessions of this client, out of its database, or out of a file that one was drawn into.
//!
//! A session of the database goes by the path of that with its id behind it. Page: `spec/replay.md`.

use std::io::Read;
use std::path::{Path, PathBuf};

use writ_core::regular_file;

use super::log::{self, Log};
use super::{database, plugin};
use crate::jsonl::{self, Calls, first_entry, text};
use crate::past::{PastAgent, PastCall, Unseen};
use crate::transcript::{MAIN, TranscriptError, parse_line};

/// How a database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

fn is_database(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    regular_file::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *MAGIC
}

/// The sessions that were begun in a project.
pub fn kept(project: &Path, user: &Path) -> Vec<PathBuf> {
    let path = plugin::database(user);
    let roots = database::roots(&path).unwrap_or_default().into_iter();
    roots.filter(|(_, folder)| Path::new(folder).starts_with(project)).map(|(id, _)| path.join(id)).collect()
}

/// Whether a file is the database, or was drawn from it.
pub fn is_one(path: &Path) -> bool {
    let first = first_entry(path);
    is_database(path) || text(&first, "type") == Some("session") && text(&first, "database").is_some()
}

/// The calls of a session; of a whole database those of all its sessions.
pub fn calls(main: &Path, take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
    if is_database(main) {
        let roots = database::roots(main)?.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        return of_sessions(main, &roots, take);
    }
    let above = main.parent().filter(|path| is_database(path));
    match above.zip(main.file_name().and_then(|name| name.to_str())) {
        Some((path, id)) => of_sessions(path, &[id.to_owned()], take),
        None => {
            let agent = |name: &str, path: &Path| {
                (name != MAIN).then(|| PastAgent { id: name.to_owned(), kind: log::note(path).kind })
            };
            jsonl::calls(&Log, (log::files(main), "/"), agent, take)
        }
    }
}

fn of_sessions(path: &Path, roots: &[String], take: &mut dyn FnMut(PastCall)) -> Result<Unseen, TranscriptError> {
    let mut calls = Calls::default();
    for root in roots {
        database::tell(path, root, &mut |session, line| {
            session.directory.as_deref().unwrap_or("/").clone_into(&mut calls.cwd);
            let by = (session.id != *root).then(|| PastAgent { id: session.id.clone(), kind: session.kind.clone() });
            calls.entry(&Log, parse_line(line).ok().as_ref(), by.as_ref());
        })?;
    }
    Ok(calls.tell(take))
}
