//! Where the transcripts are that rows name: where they were written, or in a bundle, or in nobody's hands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

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
        masked: BTreeSet<PathBuf>,
    },
    /// A bundle holds their digests alone.
    Withheld,
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

    /// Whether every line is there as it was.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Here => true,
            Self::Moved { masked, .. } => masked.is_empty(),
            Self::Withheld => false,
        }
    }

    /// Whether a file is a copy with masked lines.
    pub fn is_masked(&self, path: &Path) -> bool {
        match self {
            Self::Here | Self::Withheld => false,
            Self::Moved { masked, .. } => masked.contains(path),
        }
    }
}
