//! An entry of a transparency log, asked of Rekor: `dsse` of its first version, `hashedrekord` of its second.
//!
//! Owns neither form: `sigstore-rekor` does. Refuses an entry of another signature or another certificate, and one without what proves it.

use serde::Serialize;
use sigstore_verify::rekor::{
    DsseEntry, HashedRekordV2, LogEntry as Answer, RekorApiVersion, RekorEntryBody, RekorV2KeyDetails,
};
use sigstore_verify::types::{
    DerCertificate, DsseEnvelope, DsseSignature, KeyId, KindVersion, PayloadBytes, Sha256Hash, SignatureBytes,
    TransparencyLogEntry,
};
use std::collections::BTreeMap;
use writ_core::Digest;
use writ_core::json::{self, Limits};

use super::AnswerError;
use crate::dsse::pae;
use crate::intoto::LogEntry;

/// Which API a log speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Entries of kind `dsse`, with the log's promise and time.
    V1,
    /// Entries of kind `hashedrekord`, with a proof alone: a timestamp says when.
    V2,
}

impl Version {
    /// One by its number.
    pub fn of(major: u32) -> Option<Self> {
        match RekorApiVersion::from_major(major)? {
            RekorApiVersion::V1 => Some(Self::V1),
            RekorApiVersion::V2 => Some(Self::V2),
            _ => None,
        }
    }

    /// Where entries are put, below the log's URL.
    pub const fn path(self) -> &'static str {
        match self {
            Self::V1 => "/api/v1/log/entries",
            Self::V2 => "/api/v2/log/entries",
        }
    }
}

/// What is put into the log: a signed payload, with the signer's certificate as DER.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The payload's type.
    pub payload_type: &'a str,
    /// The payload.
    pub payload: &'a [u8],
    /// The signature over both.
    pub signature: &'a [u8],
    /// The certificate.
    pub certificate: &'a [u8],
}

impl Signed<'_> {
    fn bytes(&self) -> SignatureBytes {
        SignatureBytes::new(self.signature.to_vec())
    }

    fn certificate(&self) -> DerCertificate {
        DerCertificate::new(self.certificate.to_vec())
    }

    /// The request.
    pub fn request(&self, version: Version) -> Result<String, AnswerError> {
        match version {
            Version::V1 => {
                // No key's id: the log would look for a verifier that is called so.
                let envelope = DsseEnvelope::new(
                    self.payload_type.to_owned(),
                    PayloadBytes::new(self.payload.to_vec()),
                    DsseSignature::new(self.bytes(), KeyId::default()),
                );
                let entry = DsseEntry::new(&envelope, &self.certificate());
                Ok(text(&entry.map_err(|error| AnswerError::Entry(error.to_string()))?))
            }
            Version::V2 => {
                let digest = Digest::of(&pae(self.payload_type, self.payload));
                Ok(text(&HashedRekordV2::new_with_certificate(
                    &Sha256Hash::new(*digest.as_bytes()),
                    &self.bytes(),
                    &self.certificate(),
                    RekorV2KeyDetails::PkixEcdsaP256Sha256,
                )))
            }
        }
    }

    /// The entry that the log answers with.
    pub fn read(&self, version: Version, answer: &[u8]) -> Result<LogEntry, AnswerError> {
        let wrong = |error: &dyn std::fmt::Display| AnswerError::Entry(error.to_string());
        let entry = match version {
            Version::V1 => {
                let entries: BTreeMap<String, Answer> = json::from_slice_with(answer, Limits::FOREIGN)?;
                let mut entries = entries.into_values();
                let (Some(entry), None) = (entries.next(), entries.next()) else {
                    return Err(AnswerError::Entry("not one entry".to_owned()));
                };
                entry.to_bundle_entry(KindVersion::DsseV001).map_err(|error| wrong(&error))?
            }
            Version::V2 => json::from_slice_with(answer, Limits::FOREIGN)?,
        };
        self.is_of(version, &entry)?;
        Ok(json::from_value(&json::to_value(&entry))?)
    }

    fn is_of(&self, version: Version, entry: &TransparencyLogEntry) -> Result<(), AnswerError> {
        let body = RekorEntryBody::parse(&entry.canonicalized_body, entry.kind_version)
            .map_err(|error| AnswerError::Entry(error.to_string()))?;
        let (signature, certificate, digest) = match (version, body) {
            (Version::V1, RekorEntryBody::DsseV001(body)) => {
                let [one] = body.spec.signatures.as_slice() else {
                    return Err(AnswerError::OtherEntry("it has not one signature"));
                };
                let certificate = one.parse_certificate().map_err(|error| AnswerError::Entry(error.to_string()))?;
                let same = body.spec.payload_hash.value == Digest::of(self.payload).hex();
                (one.signature.as_bytes().to_vec(), Some(certificate), same)
            }
            (Version::V2, RekorEntryBody::HashedRekordV002(body)) => {
                let found = body.spec.hashed_rekord_v002;
                let pae = Digest::of(&pae(self.payload_type, self.payload));
                let certificate = found.signature.verifier.x509_certificate.map(|one| one.raw_bytes);
                let same = found.data.digest.as_bytes() == pae.as_bytes();
                (found.signature.content.as_bytes().to_vec(), certificate, same)
            }
            _ => return Err(AnswerError::OtherEntry("it is of another kind")),
        };
        if signature != self.signature {
            return Err(AnswerError::OtherEntry("the signature is another"));
        }
        if certificate.is_none_or(|found| found.as_bytes() != self.certificate) {
            return Err(AnswerError::OtherEntry("the certificate is another"));
        }
        if !digest {
            return Err(AnswerError::OtherEntry("what is signed is another"));
        }
        if entry.inclusion_proof.is_none() {
            return Err(AnswerError::Unproven("a proof that it is in the log"));
        }
        let dated = entry.inclusion_promise.is_some() && entry.integrated_time.is_some();
        if version == Version::V1 && !dated {
            return Err(AnswerError::Unproven("the log's promise and time"));
        }
        Ok(())
    }
}

fn text<T: Serialize>(request: &T) -> String {
    json::to_canonical(request)
}
