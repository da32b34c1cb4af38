//! Sigstore's bundle, v0.3: a signed payload and all that is needed to check it without a network.
//!
//! Owns the bundle's JSON. Refuses one without content or material, and another version's media type. Invariant: reading and writing
//! check nothing; whoever takes a bundle's word checks it (`engine/governing`). Page: `spec/signing.md`.

use serde::{Deserialize, Serialize};
use writ_core::json::{self, FormatError};

use super::entry::LogEntry;
use crate::custody::Bytes;
use crate::dsse::{Envelope, EnvelopeError};

/// The media type of what is written.
pub const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Media types that are read: what cosign, sigstore-python and npm write and wrote.
const READ: [&str; 4] = [
    MEDIA_TYPE,
    "application/vnd.dev.sigstore.bundle+json;version=0.3",
    "application/vnd.dev.sigstore.bundle+json;version=0.2",
    "application/vnd.dev.sigstore.bundle+json;version=0.1",
];
/// Most certificates, log entries or timestamps in one bundle.
const MOST: usize = 32;

/// Why bytes are no bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// Not JSON, or a member is missing or of the wrong kind.
    #[error("not a Sigstore bundle: {0}")]
    Format(#[from] FormatError),
    /// The envelope in it.
    #[error("the bundle's envelope: {0}")]
    Envelope(#[from] EnvelopeError),
    /// Another media type.
    #[error("`{0}` is not the media type of a Sigstore bundle of version 0.1 to 0.3")]
    MediaType(String),
    /// None or both of two members that exclude each other.
    #[error("expected one of {0}")]
    OneOf(&'static str),
    /// More than a bundle may have.
    #[error("more than {MOST} {0}")]
    TooMany(&'static str),
}

/// A signed payload with what it takes to check it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// What is signed.
    pub content: Content,
    /// What says whose signature it is.
    pub material: Material,
    /// The log's entries.
    pub entries: Vec<LogEntry>,
    /// RFC 3161 timestamps, DER.
    pub timestamps: Vec<Vec<u8>>,
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// An envelope, with its payload.
    Envelope(Envelope),
    /// A signature over bytes that are elsewhere.
    Message {
        /// The bytes' digest: a hint, as its algorithm's name and the digest.
        digest: Option<(String, Vec<u8>)>,
        /// The signature.
        signature: Vec<u8>,
    },
}

/// What says whose signature it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Material {
    /// A key that the reader has; the hint names it.
    PublicKey {
        /// Its id.
        hint: String,
    },
    /// The signer's certificate, DER.
    Certificate(Vec<u8>),
    /// The signer's certificate and those above it, DER: versions 0.1 and 0.2.
    Chain(Vec<Vec<u8>>),
}

/// A bundle as it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    media_type: String,
    verification_material: VerificationMaterial,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dsse_envelope: Option<json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_signature: Option<MessageSignature>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct VerificationMaterial {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_key: Option<KeyHint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<Certificate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x509_certificate_chain: Option<Certificates>,
    #[serde(default)]
    tlog_entries: Vec<LogEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp_verification_data: Option<Timestamps>,
}

#[derive(Serialize, Deserialize)]
struct KeyHint {
    #[serde(default)]
    hint: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Certificate {
    raw_bytes: Bytes,
}

#[derive(Serialize, Deserialize)]
struct Certificates {
    certificates: Vec<Certificate>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timestamps {
    #[serde(default)]
    rfc3161_timestamps: Vec<Timestamp>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timestamp {
    signed_timestamp: Bytes,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageSignature {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_digest: Option<MessageDigest>,
    signature: Bytes,
}

#[derive(Serialize, Deserialize)]
struct MessageDigest {
    algorithm: String,
    digest: Bytes,
}

impl Bundle {
    /// An envelope that a key signed, of which the reader has the public half.
    pub fn of_key(envelope: Envelope, hint: impl Into<String>) -> Self {
        let material = Material::PublicKey { hint: hint.into() };
        Self { content: Content::Envelope(envelope), material, entries: Vec::new(), timestamps: Vec::new() }
    }

    /// An envelope that the key of a certificate (DER) signed.
    pub fn of_certificate(envelope: Envelope, certificate: Vec<u8>) -> Self {
        let material = Material::Certificate(certificate);
        Self { content: Content::Envelope(envelope), material, entries: Vec::new(), timestamps: Vec::new() }
    }

    /// Reads a bundle.
    pub fn parse(bytes: &[u8]) -> Result<Self, BundleError> {
        let Document { media_type, verification_material: given, dsse_envelope, message_signature } =
            json::from_slice(bytes)?;
        if !READ.contains(&media_type.as_str()) {
            return Err(BundleError::MediaType(media_type.chars().take(100).collect()));
        }
        let content = match (dsse_envelope, message_signature) {
            (Some(envelope), None) => Content::Envelope(Envelope::parse(json::canonical(&envelope).as_bytes())?),
            (None, Some(MessageSignature { message_digest, signature: Bytes(signature) })) => {
                let digest =
                    message_digest.map(|MessageDigest { algorithm, digest: Bytes(digest) }| (algorithm, digest));
                Content::Message { digest, signature }
            }
            (None, None) | (Some(_), Some(_)) => {
                return Err(BundleError::OneOf("`dsseEnvelope` and `messageSignature`"));
            }
        };
        let timestamps = given.timestamp_verification_data.map(|data| data.rfc3161_timestamps).unwrap_or_default();
        if given.tlog_entries.len() > MOST {
            return Err(BundleError::TooMany("log entries"));
        }
        if timestamps.len() > MOST {
            return Err(BundleError::TooMany("timestamps"));
        }
        let material = match (given.public_key, given.certificate, given.x509_certificate_chain) {
            (Some(KeyHint { hint }), None, None) => Material::PublicKey { hint },
            (None, Some(Certificate { raw_bytes: Bytes(der) }), None) => Material::Certificate(der),
            (None, None, Some(Certificates { certificates })) => {
                if certificates.len() > MOST {
                    return Err(BundleError::TooMany("certificates"));
                }
                Material::Chain(certificates.into_iter().map(|certificate| certificate.raw_bytes.0).collect())
            }
            (None, None, None) | (Some(_), _, _) | (None, Some(_), Some(_)) => {
                return Err(BundleError::OneOf("`publicKey`, `certificate` and `x509CertificateChain`"));
            }
        };
        let timestamps = timestamps.into_iter().map(|stamp| stamp.signed_timestamp.0).collect();
        Ok(Self { content, material, entries: given.tlog_entries, timestamps })
    }

    /// The bundle as JSON of v0.3 with a final newline.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (mut dsse_envelope, mut message_signature) = (None, None);
        match &self.content {
            Content::Envelope(envelope) => dsse_envelope = json::parse(&envelope.to_bytes()).ok(),
            Content::Message { digest, signature } => {
                let digest = digest.clone();
                let message_digest =
                    digest.map(|(algorithm, digest)| MessageDigest { algorithm, digest: Bytes(digest) });
                message_signature = Some(MessageSignature { message_digest, signature: Bytes(signature.clone()) });
            }
        }
        let certificate = |der: &Vec<u8>| Certificate { raw_bytes: Bytes(der.clone()) };
        let mut material = VerificationMaterial { tlog_entries: self.entries.clone(), ..Default::default() };
        match &self.material {
            Material::PublicKey { hint } => material.public_key = Some(KeyHint { hint: hint.clone() }),
            // v0.3 has the signer's certificate alone.
            Material::Certificate(der) => material.certificate = Some(certificate(der)),
            Material::Chain(chain) => material.certificate = chain.first().map(certificate),
        }
        if !self.timestamps.is_empty() {
            let stamp = |der: &Vec<u8>| Timestamp { signed_timestamp: Bytes(der.clone()) };
            let rfc3161_timestamps = self.timestamps.iter().map(stamp).collect();
            material.timestamp_verification_data = Some(Timestamps { rfc3161_timestamps });
        }
        let document = Document {
            media_type: MEDIA_TYPE.to_owned(),
            verification_material: material,
            dsse_envelope,
            message_signature,
        };
        (json::pretty(&json::to_value(&document)) + "\n").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intoto::Int64;
    use crate::keys::{Algorithm, SigningKey};

    const GOOD: &str = r#"{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{
        "certificate":{"rawBytes":"AAEC"},"tlogEntries":[{"logIndex":"12","logId":{"keyId":"AA=="},
        "kindVersion":{"kind":"dsse","version":"0.0.1"},"integratedTime":"1700000000","inclusionPromise":
        {"signedEntryTimestamp":"AA=="},"inclusionProof":{"logIndex":"3","rootHash":"AA==","treeSize":"4",
        "hashes":["AA=="],"checkpoint":{"envelope":"x\n"}},"canonicalizedBody":"e30="}],
        "timestampVerificationData":{"rfc3161Timestamps":[{"signedTimestamp":"AA=="}]}},
        "messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":"AA=="},"signature":"AAAA"},"new":1}"#;

    #[test]
    fn a_bundle_survives_writing() {
        let bundle = Bundle::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(Bundle::parse(&bundle.to_bytes()).unwrap(), bundle);
        assert_eq!(bundle.entries[0].log_index, Int64(12));
        assert_eq!(bundle.material, Material::Certificate(vec![0, 1, 2]));
        let numbers = GOOD.replace("\"12\"", "12").replace("\"3\"", "3");
        assert_eq!(Bundle::parse(numbers.as_bytes()).unwrap(), bundle);
        let key = SigningKey::generate(Algorithm::P256).unwrap();
        let envelope = Envelope::sign("t", b"p", &[&key]).unwrap();
        for bundle in [
            Bundle::of_key(envelope.clone(), key.public().key_id().to_string()),
            Bundle::of_certificate(envelope, vec![1]),
        ] {
            assert_eq!(Bundle::parse(&bundle.to_bytes()).unwrap(), bundle);
        }
    }

    #[test]
    fn refuses_what_is_no_bundle() {
        for (from, to) in [
            ("bundle.v0.3+json", "bundle.v0.4+json"),
            ("\"messageSignature\"", "\"signature\""),
            ("\"new\":1", "\"dsseEnvelope\":{}"),
            ("\"certificate\":", "\"certificates\":"),
            ("\"certificate\":", "\"publicKey\":{\"hint\":\"\"},\"certificate\":"),
            ("\"12\"", "\"1.5\""),
            ("\"12\"", "\"99999999999999999999\""),
            ("\"AAEC\"", "\"AAE\""),
            ("\"treeSize\":\"4\",", ""),
            ("\"rootHash\"", "\"root\""),
            ("\"new\":1", "\"mediaType\":\"x\""),
            ("{\"signedTimestamp\":\"AA==\"}", "{}"),
        ] {
            let bad = GOOD.replacen(from, to, 1);
            assert!(bad != GOOD && Bundle::parse(bad.as_bytes()).is_err(), "{from} → {to}");
        }
        let stamp = "{\"signedTimestamp\":\"AA==\"}";
        let many = GOOD.replace(stamp, &vec![stamp; MOST + 1].join(","));
        assert_eq!(Bundle::parse(many.as_bytes()), Err(BundleError::TooMany("timestamps")));
    }
}
