//! What is on disk, whatever git thinks of it: ignored files, repositories inside, other work trees.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most entries that are looked at; the upper folders come first.
const MAX_ENTRIES: usize = 100_000;

/// The files and folders below `top` that were written since then, as paths from there.
pub fn written_since(top: &Path, since: Option<SystemTime>) -> Vec<PathBuf> {
    let (mut folders, mut seen, mut out) = (VecDeque::from([top.to_owned()]), 0_usize, Vec::new());
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                return out;
            }
            let path = entry.path();
            let recent = entry.metadata().is_ok_and(|found| since.is_none_or(|since| changed(&found) >= since));
            if let (true, Ok(below)) = (recent, path.strip_prefix(top)) {
                out.push(below.to_owned());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git" {
                folders.push_back(path);
            }
        }
    }
    out
}

/// When the file was written, or given its name.
fn changed(found: &fs::Metadata) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(found.ctime()).unwrap_or_default())
}
