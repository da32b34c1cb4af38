//! The labels of what a session has taken in, as its folder keeps them.
//!
//! Every row repeats only a digest; the labels lie in a file of that name. Refuses to guess: a file that is gone or changed is an error,
//! and an error denies (R6). Invariant: the file follows from the rows alone, so verification needs none. Page: `spec/flow.md`.

use std::path::Path;

use writ_core::{Digest, json};
use writ_policy::{Flow, Taint};
use writ_store::regular_file;

use super::{Session, SessionError};

/// Largest file that is read: far more than all labels of all layers.
const MAX_FILE: u64 = 1 << 20;

/// What later rows say of it.
pub fn digest(taint: &Taint) -> Digest {
    Digest::of(json::to_canonical(taint).as_bytes())
}

/// The labels as a session's folder holds them, of a state that names them by their digest.
pub fn kept(named: Option<Digest>, folder: &Path) -> Result<Taint, SessionError> {
    let Some(named) = named else { return Ok(Taint::default()) };
    let path = folder.join(file_name(named));
    let bytes = regular_file::read(&path, MAX_FILE).ok().filter(|bytes| Digest::of(bytes) == named);
    let taint = bytes.and_then(|bytes| json::from_slice(&bytes).ok());
    taint.ok_or(SessionError::Taint { path })
}

/// Takes in what a call does that may run: on disk before the row that names it.
pub fn take(session: &mut Session<'_>, flow: &Flow) -> Result<(), SessionError> {
    if !session.taint.take(flow) {
        return Ok(());
    }
    let named = digest(&session.taint);
    session.keep(&file_name(named), json::to_canonical(&session.taint).as_bytes())?;
    session.state.taint = Some(named);
    Ok(())
}

fn file_name(named: Digest) -> String {
    format!("taint/{}.json", named.hex())
}
