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
        /// What was there when it was made.
        made_of: MadeOf,
    },
    /// A bundle holds their digests alone.
    Withheld(MadeOf),
}

/// The transcripts that a bundle was made of, by the file of their main conversation as rows name it, and their own name: how long each was,
/// and the digest of all of it.
pub type MadeOf = BTreeMap<(PathBuf, String), (u64, Digest)>;

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
            Self::Here | Self::Withheld(_) => recorded.to_owned(),
            Self::Moved { mains, .. } => {
                mains.get(recorded).cloned().unwrap_or_else(|| PathBuf::from("(not in the bundle)"))
            }
        }
    }

    /// Whether nobody looks for them.
    pub const fn withheld(&self) -> bool {
        matches!(self, Self::Withheld(_))
    }

    /// What a bundle was made of; nothing where the transcripts are looked for where rows say.
    pub const fn made_of(&self) -> Option<&MadeOf> {
        match self {
            Self::Here => None,
            Self::Withheld(made_of) | Self::Moved { made_of, .. } => Some(made_of),
        }
    }

    /// Whether a file is a copy with masked lines.
    pub fn is_masked(&self, path: &Path) -> bool {
        self.hidden(path).is_some()
    }

    /// The masked lines of a file, by their numbers from 0.
    pub fn hidden(&self, path: &Path) -> Option<&BTreeMap<u64, Hidden>> {
        match self {
            Self::Here | Self::Withheld(_) => None,
            Self::Moved { masked, .. } => masked.get(path),
        }
    }
}
