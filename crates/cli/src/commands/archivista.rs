//! `writ attestation push`, `fetch` and `search`: signed statements in an Archivista.

use std::fs;
use std::path::Path;

use serde::Serialize;
use writ_core::{Digest, SessionId, regular_file};
use writ_engine::session::statements::Attested;
use writ_engine::turns;
use writ_service::archivista::Archivista;
use writ_store::Store;

use super::session_lookup::{self, outside_state};
use crate::args::Format;
use crate::exit::Failure;
use crate::{environment, output};

/// Largest envelope.
const MAX: u64 = 16 << 20;

/// A statement that is there now.
#[derive(Serialize)]
struct Stored {
    name: String,
    gitoid: String,
}

/// Stores what a session's rows name.
pub fn push(session: Option<&str>, to: &str, format: Format) -> Result<(), Failure> {
    let store = session_lookup::store(&environment::home())?;
    let id = session_lookup::session(&store, session)?;
    let archivista = Archivista::at(to);
    let mut stored = Vec::new();
    for (name, file, digest) in named(&store, &id)? {
        let path = store.folder(&id).join(&file);
        let bytes = regular_file::read(&path, MAX).ok().filter(|bytes| Digest::of(bytes) == digest);
        let bytes = bytes.ok_or_else(|| Failure::could_not(format!("{file} is gone, or is not what its row names")))?;
        let gitoid = archivista.store(&bytes).map_err(Failure::could_not)?;
        if format == Format::Human {
            output::line(format!("{} {} {gitoid}", output::good("✓"), output::plain(&name)));
        }
        stored.push(Stored { name, gitoid });
    }
    match format {
        Format::Json => output::print_json(&stored),
        Format::Human if stored.is_empty() => output::line("the session has no signed statements of turns or steps"),
        Format::Human => {}
    }
    Ok(())
}

/// The statements that rows name: name, file, digest.
fn named(store: &Store, id: &SessionId) -> Result<Vec<(String, String, Digest)>, Failure> {
    let mut found = Vec::new();
    let each = store.each_row(id, |row| {
        if let Some(Ok(turn)) = turns::named::Named::of(&row) {
            let file = format!("{}/{}", turns::FOLDER, turn.name);
            found.push((turn.name.trim_end_matches(".json").to_owned(), file, turn.attestation));
        }
        if let Some(Ok(attested)) = Attested::of(&row) {
            let file = attested.file();
            found.push((attested.name, file, attested.digest));
        }
    });
    each.map_err(Failure::could_not)?;
    Ok(found)
}

/// Fetches one, whose bytes are those that its id names.
pub fn fetch(gitoid: &str, from: &str, to: Option<&Path>, force: bool) -> Result<(), Failure> {
    if let Some(to) = to.filter(|to| !force && to.exists()) {
        let why = format!("{} is there already: give another `-o`, or `--force` to replace it", to.display());
        return Err(Failure::could_not(why));
    }
    let bytes = Archivista::at(from).fetch(gitoid).map_err(Failure::could_not)?;
    match to {
        Some(to) => {
            outside_state(to, &environment::home())?;
            fs::write(to, bytes).map_err(|error| Failure::could_not(format!("{}: {error}", to.display())))
        }
        None => {
            output::document(&String::from_utf8_lossy(&bytes));
            Ok(())
        }
    }
}

/// Lists those that are about something.
pub fn search(digest: &str, at: &str, format: Format) -> Result<(), Failure> {
    let digest = digest.trim_start_matches("sha256:");
    let found = Archivista::at(at).search(digest).map_err(Failure::could_not)?;
    match format {
        Format::Json => output::print_json(&found),
        Format::Human if found.is_empty() => output::line("none"),
        Format::Human => {
            for one in &found {
                let kind = one.kind.as_deref().unwrap_or("of a type that it does not say");
                output::line(format!("{}  {}", output::plain(&one.gitoid), output::plain(kind)));
            }
        }
    }
    Ok(())
}
