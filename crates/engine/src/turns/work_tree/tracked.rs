//! What the index says is tracked.
//!
//! Owns which of it can be leant on. Refuses to lean on the stat of a file that may have changed since. Invariant: of a path that a merge
//! left several entries of, the one counts that git would take. Page: `spec/turns.md`.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use writ_policy::{IndexStat, each_index_entry};

use super::TreeError;
use super::repository::Layout;

/// A file that git tracks.
pub struct Tracked {
    /// Its object.
    pub id: Vec<u8>,
    /// As in a tree.
    pub mode: u32,
    /// What the index remembers of it, where that can be leant on.
    pub stat: Option<IndexStat>,
    /// git keeps what the index has, whatever the work tree has.
    pub held: bool,
    /// git keeps what the index has where the work tree has nothing.
    pub kept: bool,
    stage: u16,
}

/// What the index has.
#[derive(Default)]
pub struct Index {
    /// By path from the root.
    pub files: HashMap<Vec<u8>, Tracked>,
    /// Folders that hold something tracked.
    pub folders: HashSet<Vec<u8>>,
}

impl Index {
    /// Reads it. A file that was changed when the index was written, or later, may have changed again since: nothing is known of its
    /// content.
    pub fn of(layout: &Layout) -> Result<Self, TreeError> {
        let mut index = Self::default();
        let Some((bytes, about)) = layout.index()? else { return Ok(index) };
        let written = stat(&about).modified;
        let read = each_index_entry(&bytes, layout.function.length(), &mut |entry| {
            let sure = entry.stage == 0 && entry.stat.modified < written;
            let one = Tracked {
                id: entry.id.to_vec(),
                mode: entry.mode,
                stat: sure.then_some(entry.stat),
                held: entry.assumed || entry.skipped && !layout.on.sparse,
                kept: entry.assumed || entry.skipped,
                stage: entry.stage,
            };
            // Of a merge, ours comes first, then what both had, then theirs.
            match index.files.get_mut(entry.path) {
                Some(other) if entry.stage == 2 || other.stage == 3 => *other = one,
                Some(_) => {}
                None => {
                    index.files.insert(entry.path.to_vec(), one);
                }
            }
            for (at, _) in entry.path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/') {
                // Where a folder is known, those above it are.
                let folder = entry.path.get(..at).unwrap_or_default();
                if !index.folders.contains(folder) {
                    index.folders.insert(folder.to_vec());
                } else {
                    break;
                }
            }
        });
        read.ok_or(TreeError::Kind("the repository's index is sparse, split or damaged"))?;
        Ok(index)
    }
}

/// What the index would remember of a file, each cut to 32 bits as it does.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "gitformat-index(5) keeps 32 bits of each")]
pub fn stat(about: &Metadata) -> IndexStat {
    IndexStat {
        changed: (about.ctime() as u32, about.ctime_nsec() as u32),
        modified: (about.mtime() as u32, about.mtime_nsec() as u32),
        inode: about.ino() as u32,
        size: about.len() as u32,
    }
}
