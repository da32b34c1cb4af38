//! Whether the disk takes what is to be kept: a service that cannot keep an attestation is not well.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much is written to find out: more than the journal grows by in one step.
const BYTES: usize = 256 << 10;
/// How long an answer holds, so that nobody wears the disk out by asking.
const HOLDS: Duration = Duration::from_secs(5);

/// The state folder's disk.
#[derive(Debug)]
pub struct DiskCheck {
    file: PathBuf,
    known: Mutex<Option<(Instant, bool)>>,
}

impl DiskCheck {
    /// The disk of a state folder.
    pub fn of(state: &Path) -> Self {
        Self { file: state.join(format!(".health-{}", std::process::id())), known: Mutex::default() }
    }

    /// Whether something can be written and flushed now. Blocks.
    pub fn is_writable(&self) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = known.filter(|(at, _)| at.elapsed() < HOLDS) {
            return answer;
        }
        let answer = self.written();
        *known = Some((Instant::now(), answer));
        answer
    }

    fn written(&self) -> bool {
        let written =
            OpenOptions::new().write(true).create(true).truncate(true).open(&self.file).and_then(|mut file| {
                file.write_all(&vec![0x55; BYTES])?;
                file.sync_data()
            });
        // Left behind, it would take the room it was looking for.
        let removed = std::fs::remove_file(&self.file);
        written.is_ok() && removed.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_there_is_writable_and_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        assert!(DiskCheck::of(folder.path()).is_writable());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!DiskCheck::of(&folder.path().join("gone")).is_writable());
    }
}
