//! Manifests, indexes and descriptors of OCI 1.1.
//!
//! Owns their JSON. Refuses a document that two readers could take for two things, digests of other algorithms than SHA-256, and more
//! than a package has. Invariant: the bytes are what is digested and passed on; a [`Document`] is only what stands in them. `oci-spec` was
//! looked at: it reads through `serde_json`, which takes the last of two equal names. Page: `spec/package.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use writ_core::Digest;
use writ_core::json::{self, FormatError, Limits, Value};

/// The media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The same as Docker writes them.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// The same as Docker writes them.
pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// The media type of a config that says nothing.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// What stands in it.
pub const EMPTY_BYTES: &[u8] = b"{}";
/// Largest manifest or index.
pub const MAX_BYTES: u64 = 4 << 20;
/// Most layers, or manifests of an index.
const MAX_ITEMS: usize = 2048;

/// Notes on a descriptor, a manifest or an index.
pub type Annotations = BTreeMap<String, String>;

/// What bytes are, and how to know them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What they are.
    pub media_type: String,
    /// Their digest.
    pub digest: Digest,
    /// How many they are.
    pub size: u64,
    /// What kind of artifact a manifest is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
    /// The platform of a manifest in an index; carried as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Value>,
}

impl Descriptor {
    /// Of these bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }

    /// Of bytes that are elsewhere.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        let media_type = media_type.to_owned();
        Self { media_type, digest, size, artifact_type: None, annotations: Annotations::new(), platform: None }
    }

    /// With a note.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.annotations.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A note.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }

    /// Whether it is of a manifest or an index.
    pub fn is_document(&self) -> bool {
        is_index(&self.media_type) || is_manifest(&self.media_type)
    }

    /// The same without notes: what a subject is.
    pub fn bare(&self) -> Self {
        Self::new(&self.media_type, self.digest, self.size)
    }
}

/// Whether a media type is a manifest's.
pub fn is_manifest(media_type: &str) -> bool {
    matches!(media_type, MANIFEST | DOCKER_MANIFEST)
}

/// Whether a media type is an index's.
pub fn is_index(media_type: &str) -> bool {
    matches!(media_type, INDEX | DOCKER_INDEX)
}

/// A manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// 2.
    pub schema_version: u32,
    /// Its own media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What kind of artifact it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Its config.
    pub config: Descriptor,
    /// Its layers.
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    /// What it is said of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// 2.
    pub schema_version: u32,
    /// Its own media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What kind of artifact it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Its manifests.
    pub manifests: Vec<Descriptor>,
    /// What it is said of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

/// A manifest or an index.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// A manifest.
    Manifest(Manifest),
    /// An index.
    Index(Index),
}

/// Why bytes are neither.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Too many bytes.
    #[error("a manifest of more than {MAX_BYTES} bytes")]
    TooLarge,
    /// Not JSON, or a member is missing or of the wrong kind.
    #[error("no OCI manifest: {0}")]
    Format(#[from] FormatError),
    /// It could be read as either.
    #[error("it has the members of a manifest and of an index, so that two readers could see two things")]
    Ambiguous,
    /// It says of itself something else than what is said of it.
    #[error("it is called `{called}` and says that it is `{says}`")]
    OtherType {
        /// What it is called.
        called: String,
        /// What it says.
        says: String,
    },
    /// Another version.
    #[error("its `schemaVersion` is {0}, not 2")]
    Version(u32),
    /// More than a manifest may have.
    #[error("more than {MAX_ITEMS} layers or manifests")]
    TooMany,
    /// Not one of either.
    #[error("`{0}` is no media type of an OCI manifest or index")]
    MediaType(String),
}

impl Document {
    /// Reads a manifest or an index that is said to be of this media type; it has to say the same of itself, if it says it.
    pub fn parse(media_type: &str, bytes: &[u8]) -> Result<Self, DocumentError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(DocumentError::TooLarge);
        }
        let value = json::parse_with(bytes, LIMITS).map_err(FormatError::from)?;
        let (as_index, as_manifest) =
            (value.get("manifests").is_some(), value.get("layers").is_some() || value.get("config").is_some());
        if as_index && as_manifest {
            return Err(DocumentError::Ambiguous);
        }
        let says = value.get("mediaType").and_then(Value::as_str).filter(|says| *says != media_type);
        if let Some(says) = says {
            return Err(DocumentError::OtherType {
                called: media_type.to_owned(),
                says: says.chars().take(120).collect(),
            });
        }
        let (version, items, document) = if is_manifest(media_type) {
            let manifest: Manifest = json::from_value(&value)?;
            (manifest.schema_version, manifest.layers.len(), Self::Manifest(manifest))
        } else if is_index(media_type) {
            let index: Index = json::from_value(&value)?;
            (index.schema_version, index.manifests.len(), Self::Index(index))
        } else {
            return Err(DocumentError::MediaType(media_type.chars().take(120).collect()));
        };
        match (version, items) {
            (2, 0..=MAX_ITEMS) => Ok(document),
            (2, _) => Err(DocumentError::TooMany),
            (other, _) => Err(DocumentError::Version(other)),
        }
    }

    /// What it is said of.
    pub const fn subject(&self) -> Option<&Descriptor> {
        match self {
            Self::Manifest(manifest) => manifest.subject.as_ref(),
            Self::Index(index) => index.subject.as_ref(),
        }
    }

    /// What kind of artifact it is of: what it says, else the media type of its config.
    pub fn artifact_type(&self) -> Option<&str> {
        match self {
            Self::Manifest(manifest) => Some(manifest.kind()),
            Self::Index(index) => index.artifact_type.as_deref(),
        }
    }

    /// Its notes.
    pub const fn annotations(&self) -> &Annotations {
        match self {
            Self::Manifest(manifest) => &manifest.annotations,
            Self::Index(index) => &index.annotations,
        }
    }

    /// All that it names and that has to be there with it; not its subject.
    pub fn parts(&self) -> Vec<&Descriptor> {
        match self {
            Self::Manifest(manifest) => std::iter::once(&manifest.config).chain(&manifest.layers).collect(),
            Self::Index(index) => index.manifests.iter().collect(),
        }
    }
}

/// A manifest may be read by others with other limits; depth is what a parser pays for.
const LIMITS: Limits = Limits { bytes: MAX_BYTES as usize, depth: 32, ..Limits::OURS };

impl Manifest {
    /// A manifest of an artifact.
    pub fn artifact(kind: &str, config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(MANIFEST.to_owned()),
            artifact_type: Some(kind.to_owned()),
            config,
            layers,
            subject: None,
            annotations: Annotations::new(),
        }
    }

    /// What kind of artifact it is of.
    pub fn kind(&self) -> &str {
        self.artifact_type.as_deref().unwrap_or(&self.config.media_type)
    }

    /// Its bytes: canonical JSON, so that equal manifests have one digest.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::to_canonical(self).into_bytes()
    }

    /// The descriptor of [`Self::to_bytes`].
    pub fn descriptor(&self) -> Descriptor {
        let mut descriptor = Descriptor::of(MANIFEST, &self.to_bytes());
        descriptor.artifact_type = Some(self.kind().to_owned());
        descriptor
    }
}

impl Index {
    /// An index of these.
    pub fn of(manifests: Vec<Descriptor>) -> Self {
        let media_type = Some(INDEX.to_owned());
        Self {
            schema_version: 2,
            media_type,
            artifact_type: None,
            manifests,
            subject: None,
            annotations: Annotations::new(),
        }
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::to_canonical(self).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> String {
        let config = Descriptor::of(EMPTY, EMPTY_BYTES);
        let layer = Descriptor::of("text/plain", b"x").with("org.opencontainers.image.title", "x");
        let mut manifest = Manifest::artifact("application/x", config, vec![layer]);
        manifest.subject = Some(Descriptor::of(MANIFEST, b"y"));
        String::from_utf8(manifest.to_bytes()).unwrap()
    }

    #[test]
    fn a_manifest_reads_as_it_was_written() {
        let text = good();
        let Document::Manifest(read) = Document::parse(MANIFEST, text.as_bytes()).unwrap() else { panic!("an index") };
        assert_eq!(String::from_utf8(read.to_bytes()).unwrap(), text);
        let empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!((read.config.digest.to_string().as_str(), read.config.size), (empty, 2));
        assert_eq!(read.kind(), "application/x");
        let index = Index::of(vec![read.descriptor()]);
        assert_eq!(Document::parse(INDEX, &index.to_bytes()).unwrap(), Document::Index(index));
    }

    #[test]
    fn refuses_what_is_none() {
        let text = good();
        for (from, to) in [
            ("\"layers\":[", "\"manifests\":[],\"layers\":["),
            ("\"schemaVersion\":2", "\"schemaVersion\":1"),
            ("\"config\":", "\"configs\":"),
            ("image.manifest.v1", "image.index.v1"),
            ("sha256:", "sha512:"),
            ("\"size\":2", "\"size\":-2"),
            ("\"schemaVersion\":2", "\"schemaVersion\":2,\"schemaVersion\":2"),
        ] {
            let bad = text.replacen(from, to, 1);
            assert!(bad != text && Document::parse(MANIFEST, bad.as_bytes()).is_err(), "{from} → {to}");
        }
        assert!(Document::parse("text/plain", text.as_bytes()).is_err());
        let many = Index::of(vec![Descriptor::of(MANIFEST, b"y"); MAX_ITEMS + 1]);
        assert_eq!(Document::parse(INDEX, &many.to_bytes()), Err(DocumentError::TooMany));
    }
}
