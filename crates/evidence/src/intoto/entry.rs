//! An entry of a transparency log, as a Sigstore bundle holds it.
//!
//! Owns its members. Refuses a member of the wrong kind; what is missing may be missing, as protocol buffers have it. Invariant: it is
//! carried, not checked. Page: `spec/signing.md`.

use serde::{Deserialize, Serialize};

use crate::custody::Bytes;

/// An entry of a transparency log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// Its index.
    #[serde(default)]
    pub log_index: Int64,
    /// The log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_id: Option<LogId>,
    /// What kind of entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind_version: Option<KindVersion>,
    /// When the log says it took it; Rekor v2 does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrated_time: Option<Int64>,
    /// The log's promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclusion_promise: Option<InclusionPromise>,
    /// The proof that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inclusion_proof: Option<InclusionProof>,
    /// What the log holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonicalized_body: Option<Bytes>,
}

/// A 64-bit integer, which protocol buffers write as a text in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written64", into = "String")]
pub struct Int64(pub i64);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written64 {
    Text(String),
    Number(i64),
}

impl TryFrom<Written64> for Int64 {
    type Error = &'static str;

    fn try_from(written: Written64) -> Result<Self, Self::Error> {
        match written {
            Written64::Text(text) => text.parse().map(Self).map_err(|_not_one| "expected a 64-bit integer"),
            Written64::Number(number) => Ok(Self(number)),
        }
    }
}

impl From<Int64> for String {
    fn from(Int64(number): Int64) -> Self {
        number.to_string()
    }
}

/// A log by the digest of its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogId {
    /// The digest.
    pub key_id: Bytes,
}

/// What kind of entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindVersion {
    /// `dsse`, `hashedrekord`, `intoto`.
    pub kind: String,
    /// Its version.
    pub version: String,
}

/// The log's promise that an entry will be in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InclusionPromise {
    /// A signature over the entry.
    pub signed_entry_timestamp: Bytes,
}

/// The proof that an entry is in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InclusionProof {
    /// The entry's index in the tree.
    #[serde(default)]
    pub log_index: Int64,
    /// The tree's root.
    pub root_hash: Bytes,
    /// Its size.
    pub tree_size: Int64,
    /// The hashes from the entry to the root.
    #[serde(default)]
    pub hashes: Vec<Bytes>,
    /// The log's word for root and size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// A checkpoint, as a signed note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The note.
    pub envelope: String,
}
