//! Where the files of a bundle lie: each kind in its folder, under the name that its bytes give it.
//!
//! Owns the one place that a file has. Refuses a copy beside it: what is there twice was added. Invariant: whoever knows a file's bytes and
//! its kind knows its path, but for turns' statements, which rows name. Page: `spec/bundle.md`, "Files".

use std::collections::HashSet;

use writ_core::Digest;

use super::{Entry, TRANSCRIPTS, Transcript};
use crate::turns;

/// The rows.
pub const LEDGER: &str = "ledger.jsonl";
/// What was signed over them.
pub const CHECKPOINTS: &str = "checkpoints";
/// What a record has once.
pub const SINGLE: [&str; 3] = [LEDGER, CHECKPOINTS, "ledger.pub"];
/// Folders of files that lie under the digest of their bytes, and what follows it in the name.
pub const BY_DIGEST: [(&str, &str); 9] = [
    ("attestations", ".json"),
    ("claims", ".json"),
    ("identities", ".json"),
    ("layers", ""),
    ("policies", ""),
    ("prices", ".json"),
    ("registries", ".json"),
    ("sandboxes", ".json"),
    ("statements", ".json"),
];
/// What the name of a client's note on a transcript ends with, in the place of the transcript's own ending.
const NOTE: &str = ".meta.json";

/// The files that do not lie where one of their kind does, or have the bytes of another.
pub fn misplaced<'a>(files: &'a [Entry], transcripts: &[Transcript]) -> Vec<&'a str> {
    let texts: HashSet<&str> = transcripts.iter().filter_map(|transcript| transcript.path.as_deref()).collect();
    let stems: HashSet<&str> = texts.iter().map(|path| stem(path)).collect();
    let mut seen = HashSet::new();
    let mut right = |file: &Entry| {
        let path = file.path.as_str();
        if is_transcript(path) {
            return texts.contains(path) || path.strip_suffix(NOTE).is_some_and(|stem| stems.contains(stem));
        }
        SINGLE.contains(&path) || is_placed(file) && seen.insert(file.sha256.0)
    };
    files.iter().filter(|file| !right(file)).map(|file| file.path.as_str()).collect()
}

/// A file that another one's path leads through.
pub fn crossed(files: &[Entry]) -> Option<&str> {
    let folders: HashSet<&str> = files.iter().flat_map(|file| above(&file.path)).collect();
    files.iter().map(|file| file.path.as_str()).find(|path| folders.contains(path))
}

/// Whether a file that is no transcript lies under its digest, or as a turn's statement.
pub fn is_placed(file: &Entry) -> bool {
    let Some((folder, name)) = file.path.split_once('/') else { return false };
    let ending = BY_DIGEST.iter().find(|(known, _)| *known == folder).map(|(_, ending)| *ending);
    let Some(own) = ending.and_then(|ending| name.strip_suffix(ending)) else { return false };
    own == file.sha256.0.hex() || folder == turns::FOLDER && Digest::from_hex(own).is_err() && !own.contains('/')
}

/// Whether a path is one of a transcript's.
pub fn is_transcript(path: &str) -> bool {
    path.strip_prefix(TRANSCRIPTS).is_some_and(|rest| rest.starts_with('/'))
}

/// The folders that a path leads through.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

fn stem(path: &str) -> &str {
    let named = path.rsplit('/').next().unwrap_or_default();
    let ending = named.rsplit_once('.').map_or(0, |(_, ending)| ending.len() + 1);
    path.get(..path.len() - ending).unwrap_or(path)
}
