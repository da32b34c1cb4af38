//! A session's record as one file, for somebody who was not there.
//!
//! Owns the form of a bundle: a manifest, then each file it lists, as an archive that any `tar` reads. Refuses what is not byte for byte
//! the archive that its manifest makes. Invariant: the same record gives the same bytes, whoever exports it and when. Page:
//! `spec/bundle.md`.

mod archive;
mod export;
mod named;
mod open;
mod places;
mod transcripts;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::Digest;
use writ_core::json::{self, FormatError};
use writ_evidence::keys::KeyError;

pub use export::{ExportOptions, Exported, export};
pub use named::unnamed;
pub use open::{Opened, open};
pub use places::misplaced;
pub use transcripts::FOLDER as TRANSCRIPTS;

/// The manifest's name, and the archive's first entry.
pub const MANIFEST: &str = "bundle.json";
/// The name of the manifest's signature, the second entry.
pub const SIGNATURE: &str = "bundle.sig";
/// What a manifest says it is.
pub const FORMAT: &str = "writ-bundle";
/// The version that is written and read.
pub const VERSION: u32 = 1;
/// Longest signature.
const MAX_SIGNATURE: u64 = 1024;
/// Longest manifest.
const MAX_MANIFEST: u64 = 16 << 20;
/// Most files of a bundle.
const MAX_FILES: usize = 100_000;
/// Numbers of a manifest are below this: every reader of JSON has them exactly.
const MAX_NUMBER: u64 = 1 << 53;
/// Largest file of checkpoints, which is held while the ledger is read: more than a hundred thousand of them.
pub const MAX_NOTES: u64 = 32 << 20;
/// Longest file that is not the ledger or a transcript: these are read whole.
const MAX_SINGLE: u64 = 64 << 20;
/// Most bytes of all of them.
const MAX_BYTES: u64 = 16 << 30;

/// What a bundle holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The session's id.
    pub session: String,
    /// Every file, by its path, sorted.
    pub files: Vec<Entry>,
    /// The transcripts that rows name.
    pub transcripts: Vec<Transcript>,
}

impl Manifest {
    /// Its canonical form in parts: a tree of all of it would take several times the room of its text.
    fn parts(&self) -> impl Iterator<Item = String> {
        let Self { format, version, session, files, transcripts } = self;
        let (format, session) = (json::to_canonical(format), json::to_canonical(session));
        std::iter::once("{\"files\":[".to_owned())
            .chain(listed(files))
            .chain(std::iter::once(format!("],\"format\":{format},\"session\":{session},\"transcripts\":[")))
            .chain(listed(transcripts))
            .chain(std::iter::once(format!("],\"version\":{version}}}")))
    }

    /// Whether a text is its canonical form.
    fn is_written(&self, text: &[u8]) -> bool {
        let mut rest = Some(text);
        for part in self.parts() {
            rest = rest.and_then(|rest| rest.strip_prefix(part.as_bytes()));
        }
        rest.is_some_and(<[u8]>::is_empty)
    }
}

/// The elements of a list, each in canonical form.
fn listed<T: Serialize>(all: &[T]) -> impl Iterator<Item = String> {
    let comma = |at| if at == 0 { "" } else { "," };
    all.iter().enumerate().map(move |(at, one)| format!("{}{}", comma(at), json::to_canonical(one)))
}

/// What is signed of a manifest that is written so.
pub fn signed_words(manifest: &[u8]) -> String {
    format!("writ/bundle/v1\n{}\n", Digest::of(manifest).hex())
}

/// One file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Below the bundle's top, with `/` between names.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// Of its bytes.
    pub sha256: Hex,
}

/// A digest as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Hex(pub Digest);

impl From<Hex> for String {
    fn from(hex: Hex) -> Self {
        hex.0.hex()
    }
}

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Digest::from_hex(&text).map(Self).map_err(|error| error.to_string())
    }
}

/// A transcript of the session, as it was when the bundle was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transcript {
    /// The file of its main conversation, as rows name it.
    pub main: String,
    /// `main`, or the subagent's id.
    pub name: String,
    /// Its length in bytes, up to the end of its last line.
    pub size: u64,
    /// Of these bytes.
    pub sha256: Hex,
    /// Where its text is in the bundle, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Lines whose secrets are masked in the bundle, from 0, each with the digest that the line has as a leaf of a tree, and its length in
    /// bytes, both as it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<(u64, Hex, u64)>,
}

/// Why there is no bundle, or none that can be read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to export.
    #[error("no session `{session}` is on record; `writ session list` shows them")]
    NoSession {
        /// Its id.
        session: String,
    },
    /// It is older than what was signed of it here.
    #[error(
        "the record of `{session}` lacks the last checkpoint that this machine signed for it: rows were taken away, or an older copy was put back; `writ verify {session}` tells more"
    )]
    Older {
        /// Its id.
        session: String,
    },
    /// Nobody here can sign for it.
    #[error("the ledger key of this machine is missing, and signs a bundle's manifest: export where the session ran")]
    NoKey,
    /// Signing.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It is no bundle.
    #[error("{} is no bundle: {why}; `writ export` makes one", path.display())]
    NotOne {
        /// Which file.
        path: PathBuf,
        /// What is there instead.
        why: String,
    },
    /// The manifest cannot be read.
    #[error("{}: its `bundle.json` cannot be read: {source}", path.display())]
    Manifest {
        /// Which bundle.
        path: PathBuf,
        /// Why.
        source: FormatError,
    },
    /// Whoever made it changed what the session's machine signed.
    #[error("{}: the key of the session's machine did not sign the manifest; nothing else was looked at", path.display())]
    Unsigned {
        /// Which bundle.
        path: PathBuf,
    },
    /// The archive is another than its manifest makes.
    #[error("{}: broken at byte {at}: {why}", path.display())]
    Broken {
        /// Which bundle.
        path: PathBuf,
        /// Where.
        at: u64,
        /// What is there.
        why: String,
    },
    /// A file changed while it was read.
    #[error("{} changed while it was exported; try again", path.display())]
    Changed {
        /// Which file.
        path: PathBuf,
    },
    /// A path that an archive has no room for.
    #[error("an archive has no room for the path `{path}`: {source}")]
    Path {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A transcript.
    #[error(transparent)]
    Transcript(#[from] writ_clients::transcript::TranscriptError),
    /// The store.
    #[error(transparent)]
    Store(#[from] writ_store::StoreError),
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> BundleError {
    BundleError::Io { what, path: path.to_owned(), source }
}
