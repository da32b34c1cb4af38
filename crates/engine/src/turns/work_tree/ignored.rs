//! Which files git leaves out: `.gitignore` on the way down, the repository's own list, and the user's.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use writ_core::regular_file;

/// Largest list that is read.
const MAX_LIST: u64 = 4 << 20;

/// The lists that bind in a folder, the nearest last.
#[derive(Default)]
pub struct Lists(Vec<Gitignore>);

impl Lists {
    /// Adds a list whose patterns hang off `folder`. Returns whether there was one.
    pub fn add(&mut self, list: &Path, folder: &Path) -> bool {
        let Ok(bytes) = regular_file::read(list, MAX_LIST) else { return false };
        let mut builder = GitignoreBuilder::new(folder);
        // A pattern that does not read is passed over, as git does.
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            if builder.add_line(None, line.trim_start_matches('\u{feff}').trim_end_matches('\r')).is_err() {}
        }
        let Ok(list) = builder.build() else { return false };
        self.0.push(list);
        true
    }

    /// Forgets the nearest.
    pub fn leave(&mut self) {
        self.0.pop();
    }

    /// Whether a path is left out, given that the folders above it are not.
    pub fn leaves_out(&self, path: &Path, is_folder: bool) -> bool {
        let said = self.0.iter().rev().map(|list| list.matched(path, is_folder)).find(|said| !said.is_none());
        matches!(said, Some(Match::Ignore(_)))
    }
}
