//! Where the transcripts are that rows name: where they were written, or in a bundle, or in nobody's hands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use writ_core::Digest;

/// Where transcripts are looked for.
#[derive(Clone, Debug, Default)]
pub enum Sources {
    /// Where the rows say.
    #[default]
    Here,
    /// In a folder that a bundle was laid out in.
    Moved {
        /// Where the file of each main conversation is now.
        mains: BTreeMap<PathBuf, PathBuf>,
        /// Files with masked lines, whose bytes are not those that stops read.
        masked: BTreeMap<PathBuf, BTreeMap<u64, Hidden>>,
    },
    /// A bundle holds their digests alone.
    Withheld,
}

/// A line whose secrets are masked, as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Its hash as a leaf of a tree.
    pub hash: Digest,
    /// Its length in bytes, without its line feed.
    pub length: u64,
}

impl Sources {
    /// Where the main conversation is that rows name so. One that a bundle does not have is nowhere.
    pub fn main(&self, recorded: &Path) -> PathBuf {
        match self {
            Self::Here | Self::Withheld => recorded.to_owned(),
            Self::Moved { mains, .. } => {
                mains.get(recorded).cloned().unwrap_or_else(|| PathBuf::from("(not in the bundle)"))
            }
        }
    }

    /// Whether nobody looks for them.
    pub const fn withheld(&self) -> bool {
        matches!(self, Self::Withheld)
    }

    /// Whether a file is a copy with masked lines.
    pub fn is_masked(&self, path: &Path) -> bool {
        self.hidden(path).is_some()
    }

    /// The masked lines of a file, by their numbers from 0.
    pub fn hidden(&self, path: &Path) -> Option<&BTreeMap<u64, Hidden>> {
        match self {
            Self::Here | Self::Withheld => None,
            Self::Moved { masked, .. } => masked.get(path),
        }
    }
}
