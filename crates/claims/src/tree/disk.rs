//! What is on disk, whatever git thinks of it: ignored files, repositories inside, other work trees.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most entries that are looked at; the upper folders come first.
const MAX_ENTRIES: usize = 100_000;

/// A file or folder below `top` that ends in `name`, in any case, and was written since then.
pub fn written_since(top: &Path, name: &str, since: Option<SystemTime>) -> Option<PathBuf> {
    let name = PathBuf::from(name.to_lowercase());
    let (mut folders, mut seen) = (VecDeque::from([top.to_owned()]), 0_usize);
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                return None;
            }
            let path = entry.path();
            let below = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().to_lowercase();
            let recent =
                || fs::symlink_metadata(&path).is_ok_and(|found| since.is_none_or(|since| changed(&found) >= since));
            if Path::new(&below).ends_with(&name) && recent() {
                return Some(path);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git" {
                folders.push_back(path);
            }
        }
    }
    None
}

/// When the file was written, or given its name.
fn changed(found: &fs::Metadata) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(found.ctime()).unwrap_or_default())
}
