//! What is kept of an accepted policy: in its session's folder, and, whole, in the store.
//!
//! Owns the two forms and their reading back. Refuses what does not have the digest it is kept under. Invariant: what is read back
//! is what was accepted, layer for layer. Page: `spec/layers.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};
use writ_policy::Policy;
use writ_store::regular_file;

use super::error::GoverningError;
use super::layers::{self, Caller, LayerRef};
use super::open::{self, Governing};
use super::signed::{self, When};
use super::trust::Trust;

/// Largest kept policy.
const MAX_KEPT: u64 = 8 << 20;

/// The policy a session runs under, as a human last accepted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRef {
    /// The file, absolute.
    #[serde(with = "json::path")]
    pub path: PathBuf,
    /// The policy's own name.
    pub name: String,
    /// Digest of the file (the envelope, when there is one).
    pub file: Digest,
    /// Digest of the policy document itself.
    pub digest: Digest,
    /// `unsigned`, `unknown-key` or `trusted`.
    pub signed: String,
    /// The record of trust behind it, where a certificate or a bundle made it trusted: as long as that is there, it stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Digest>,
    /// Digest of the list of its layers, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Digest>,
    /// Whether Writ wrote it for one run alone: it is no file, and nothing can become of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Whether it limits what the session may use: only then is that looked at when no call is judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
    /// Whether it asks for attestations of turns: only then is that looked at when a turn ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attests: bool,
}

/// Whether a policy asks for attestations of turns: it says where they go, or rests something on them.
pub fn asks_for_turns(policy: &Policy) -> bool {
    let asks = ["attestationDir", "attestationsFrom", "evaluators", "materialsFrom", "requiredAttestations"];
    asks.iter().any(|name| policy.document().get(name).is_some())
}

/// The folder that the policy at a path names for attestations; `None` where that holds the policy itself.
pub fn attestations(policy: &Path, wanted: &str) -> Option<PathBuf> {
    let out = open::beside(policy, wanted);
    (!policy.parent()?.starts_with(&out)).then_some(out)
}

impl PolicyRef {
    /// The reference to a policy that was just opened.
    pub fn to(governing: &Governing) -> Self {
        Self {
            path: governing.path.clone(),
            name: governing.policy.name().to_owned(),
            file: governing.file,
            digest: governing.policy.digest(),
            signed: governing.signed.as_str().to_owned(),
            anchor: governing.signed.anchor(),
            layers: (!governing.layers.is_empty()).then(|| Digest::of(&layers::to_bytes(&governing.list()))),
            own: false,
            limited: governing.policies(Caller::Untold).iter().any(|policy| !policy.limits().is_empty())
                || governing.of_agents().next().is_some(),
            attests: governing.policies(Caller::Untold).into_iter().any(asks_for_turns),
        }
    }

    /// The folder relative patterns hang off.
    pub fn root(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// The policy in a file's bytes, as one at `path`; whose word it is does not count here.
pub fn document(path: &Path, bytes: &[u8]) -> Result<Policy, String> {
    let inner = signed::inner(path, bytes).map_err(|error| error.to_string())?;
    let root = path.parent().unwrap_or(Path::new("/")).to_string_lossy();
    open::parse(path, inner.as_deref().unwrap_or(bytes), &root).map_err(|error| error.to_string())
}

/// Reads the list of layers that a session whose files are in `folder` keeps.
pub fn list(accepted: &PolicyRef, folder: &Path) -> Result<Vec<LayerRef>, GoverningError> {
    let Some(digest) = accepted.layers else { return Ok(Vec::new()) };
    let path = folder.join(layers::file_name(digest));
    layers::parse(&bytes(&path, digest)?).ok_or(GoverningError::KeptChanged { path })
}

/// Opens the policy that a session keeps, with its layers.
pub fn open(accepted: &PolicyRef, folder: &Path, trust: &Trust) -> Result<Governing, GoverningError> {
    open_with(accepted, folder, trust, None)
}

/// The same, where the root's accepted bytes are at hand.
pub fn open_with(
    accepted: &PolicyRef,
    folder: &Path,
    trust: &Trust,
    root: Option<&[u8]>,
) -> Result<Governing, GoverningError> {
    let policy = |digest: Digest| bytes(&folder.join("policies").join(digest.hex()), digest);
    let root = root.map_or_else(|| policy(accepted.file), |root| Ok(root.to_vec()))?;
    // Files that the policy names beside itself may be gone with it: what a human accepted, they accepted.
    let when = When::Accepted(&accepted.signed, accepted.anchor);
    open::open_kept(&accepted.path, root, list(accepted, folder)?, trust, when, policy)
}

fn bytes(path: &Path, digest: Digest) -> Result<Vec<u8>, GoverningError> {
    let unreadable = |source| GoverningError::Unreadable { path: path.to_owned(), source };
    let bytes = regular_file::read(path, MAX_KEPT).map_err(unreadable)?;
    if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(GoverningError::KeptChanged { path: path.to_owned() }) }
}

/// A policy and its layers in one file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    root: String,
    list: Vec<LayerRef>,
    /// By digest.
    layers: BTreeMap<Digest, String>,
}

/// A policy as the store keeps it: its file, where it has no layers.
pub fn whole(governing: &Governing) -> Vec<u8> {
    if governing.layers.is_empty() {
        return governing.bytes.clone();
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let layers = governing.layers.iter().map(|layer| (layer.at.file, text(&layer.bytes))).collect();
    let whole = Whole { root: text(&governing.bytes), list: governing.list(), layers };
    json::to_canonical(&whole).into_bytes()
}

/// Opens what the store kept of the policy at `path`.
pub fn open_whole(path: &Path, bytes: Vec<u8>, trust: &Trust) -> Result<Governing, GoverningError> {
    let Ok(Whole { root, list, layers }) = json::from_slice(&bytes) else {
        let lost = |_digest| Err(GoverningError::KeptChanged { path: PathBuf::from(path) });
        return open::open_kept(path, bytes, Vec::new(), trust, When::now(), lost);
    };
    let layer = |digest: Digest| {
        let text = layers.get(&digest).filter(|text| Digest::of(text.as_bytes()) == digest);
        text.map(|text| text.clone().into_bytes()).ok_or_else(|| GoverningError::KeptChanged { path: path.to_owned() })
    };
    open::open_kept(path, root.into_bytes(), list, trust, When::now(), layer)
}
