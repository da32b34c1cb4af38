//! Sigstore's bundles, checked without a network.
//!
//! Owns the check of a bundle against a trusted root, over given bytes or of a statement: chain, SCT, the log's inclusion proof and promise,
//! times, signature. Refuses a bundle over anything else, and one whose log entry is not proven. Invariant: an [`Identity`] exists only where
//! all of that held; whether it is an accepted one is the caller's question. Pages: `spec/signing.md`, "Keyless"; `spec/package.md`.

use sigstore_verify::trust_root::TrustedRoot as Root;
use sigstore_verify::types::{Artifact, Bundle as Read, Sha256Hash};
use sigstore_verify::{CertificateError, Error, VerificationPolicy, Verifier};
use writ_core::Digest;
use writ_core::json;

use super::provider;
use crate::intoto::{Bundle, BundleError, Content, Material, Statement};
use crate::sigstore::certificate::{self, Named};

/// Largest trusted root, in bytes.
const MAX_ROOT: usize = 1 << 20;

/// Who signed, as a checked bundle says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate's subject alternative name.
    pub subject: String,
    /// The OIDC issuer.
    pub issuer: String,
    /// The entry's index in the log.
    pub log_index: i64,
}

/// The authorities of a Sigstore instance: its `trusted_root.json`.
pub struct TrustedRoot {
    verifier: Verifier,
    id: Digest,
}

/// Why a bundle's word cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeylessError {
    /// The trusted root is none.
    #[error("not a Sigstore trusted root: {0}")]
    Root(String),
    /// The bundle is none.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// It holds an envelope of its own.
    #[error(
        "the bundle signs an envelope of its own, not the policy's bytes: make it with `cosign sign-blob --bundle` or `sigstore sign`"
    )]
    NotOverBytes,
    /// It holds no statement.
    #[error("the bundle signs bytes that are elsewhere, and no statement that names a digest")]
    NoStatement,
    /// Its certificate is of no authority of this root.
    #[error("its certificate is of no authority of the trusted root: {0}")]
    UnknownAuthority(String),
    /// The certificate was not valid when the log or a timestamp says that it signed.
    #[error("its certificate was not valid when it signed: {0}")]
    NotValid(String),
    /// No certificate transparency log vouches for the certificate.
    #[error("no certificate log vouches for its certificate: {0}")]
    Sct(String),
    /// The log's entry is not proven, or is of something else.
    #[error("its log entry does not hold: {0}")]
    Log(String),
    /// Nothing says when it was signed.
    #[error("no trusted time says when it was signed: {0}")]
    Time(String),
    /// What is signed is something else, or the signature is wrong.
    #[error("its signature does not belong to these bytes: {0}")]
    Signature(String),
    /// The certificate names no identity or no issuer.
    #[error("its certificate names no identity and issuer")]
    NoIdentity,
    /// Anything else that the library refuses.
    #[error("the bundle does not hold: {0}")]
    Other(String),
}

impl TrustedRoot {
    /// Reads a `trusted_root.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeylessError> {
        let wrong = |why: String| KeylessError::Root(why);
        if bytes.len() > MAX_ROOT {
            return Err(wrong(format!("it has more than {MAX_ROOT} bytes")));
        }
        // Strictly first, so that both readers see the same document.
        let text = json::canonical(&json::parse(bytes).map_err(|error| wrong(error.to_string()))?);
        let root = Root::from_json(&text).map_err(|error| wrong(error.to_string()))?;
        if root.certificate_authorities.is_empty() || root.tlogs.is_empty() || root.ctlogs.is_empty() {
            return Err(wrong(
                "it names no certificate authority, no transparency log or no certificate log".to_owned(),
            ));
        }
        let verifier =
            provider::with_message(&[], || Verifier::new(&root)).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { verifier, id: Digest::of(text.as_bytes()) })
    }

    /// SHA-256 of its canonical form.
    pub const fn id(&self) -> Digest {
        self.id
    }
}

/// Checks that `bundle`, in canonical form, holds for these very bytes under this root, and says whose it is.
pub fn verify(root: &TrustedRoot, bundle: &str, bytes: &[u8]) -> Result<Identity, KeylessError> {
    let ours = Bundle::parse(bundle.as_bytes())?;
    if !matches!(ours.content, Content::Message { .. }) {
        return Err(KeylessError::NotOverBytes);
    }
    checked(root, bundle, &ours, bytes, bytes.into())
}

/// Checks that `bundle`, in canonical form, holds under this root for the statement in it, and says whose it is. What the statement is about
/// is the caller's question.
pub fn verify_statement(root: &TrustedRoot, bundle: &str) -> Result<Identity, KeylessError> {
    let ours = Bundle::parse(bundle.as_bytes())?;
    let Content::Envelope(envelope) = &ours.content else { return Err(KeylessError::NoStatement) };
    let statement: Statement<json::Value> =
        envelope.unchecked_statement().map_err(|_no_statement| KeylessError::NoStatement)?;
    let about = statement.subject().iter().find_map(|one| one.digest()).ok_or(KeylessError::NoStatement)?;
    checked(root, bundle, &ours, &envelope.message(), Sha256Hash::new(*about.as_bytes()).into())
}

/// Whom the certificate of a bundle names, as it says itself: nobody has checked it.
pub fn named(bundle: &Bundle) -> Option<Identity> {
    let certificate = match &bundle.material {
        Material::Certificate(der) => der,
        Material::Chain(chain) => chain.first()?,
        Material::PublicKey { .. } => return None,
    };
    let Named { identity: subject, issuer } = certificate::named(certificate)?;
    let log_index = bundle.entries.first().map_or(-1, |entry| entry.log_index.0);
    Some(Identity { subject, issuer, log_index })
}

fn checked(
    root: &TrustedRoot,
    bundle: &str,
    ours: &Bundle,
    message: &[u8],
    artifact: Artifact<'_>,
) -> Result<Identity, KeylessError> {
    let read = Read::from_json(bundle).map_err(|error| KeylessError::Other(error.to_string()))?;
    let policy = VerificationPolicy::any_identity();
    let checked = provider::with_message(message, || root.verifier.verify(artifact, &read, &policy)).map_err(told)?;
    // Each has been checked by now; should the library ever skip one, this does not.
    if !(checked.certificate_verified() && checked.sct_verified() && checked.tlog_verified()) {
        return Err(KeylessError::Other("the library left out a check".to_owned()));
    }
    let entry = ours.entries.first().ok_or_else(|| KeylessError::Log("there is none".to_owned()))?;
    match (checked.identity(), checked.issuer()) {
        (Some(subject), Some(issuer)) if !issuer.is_empty() && !subject.as_str().is_empty() => Ok(Identity {
            subject: subject.as_str().to_owned(),
            issuer: issuer.to_owned(),
            log_index: entry.log_index.0,
        }),
        _ => Err(KeylessError::NoIdentity),
    }
}

fn told(error: Error) -> KeylessError {
    let why = error.to_string();
    match error {
        Error::Certificate(CertificateError::Sct(_)) => KeylessError::Sct(why),
        // The path is looked at for the time of signing, and what is wrong with it is told in `rustls-webpki`'s words alone.
        Error::Certificate(CertificateError::ChainInvalid(in_words))
            if in_words.contains("CertExpired") || in_words.contains("CertNotValidYet") =>
        {
            KeylessError::NotValid(why)
        }
        Error::Certificate(CertificateError::ChainInvalid(_) | CertificateError::NoValidAuthority { .. }) => {
            KeylessError::UnknownAuthority(why)
        }
        Error::Certificate(CertificateError::NotYetValid { .. } | CertificateError::Expired { .. }) => {
            KeylessError::NotValid(why)
        }
        Error::TransparencyLog(_) => KeylessError::Log(why),
        Error::Timestamp(_) => KeylessError::Time(why),
        Error::SignatureInvalid(_) | Error::ArtifactMismatch(_) => KeylessError::Signature(why),
        _ => KeylessError::Other(why),
    }
}
