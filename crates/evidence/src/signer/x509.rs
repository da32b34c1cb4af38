//! Certificates: whether one may sign, under roots that the caller trusts, at a moment that the caller gives.
//!
//! Owns the roots and chains as PEM, the checks around the path that `rustls-webpki` finds, and the signature by the certificate's key.
//! Refuses what is not a code signer's certificate, each with a reason of its own; revocation is not asked for. Invariant: a
//! [`Certified`] exists only where the whole path held at that moment. Page: `spec/signing.md`, "Certificates".

use std::time::Duration;

use der::Decode;
use der::oid::AssociatedOid;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage as Purpose, VerifiedPath, anchor_from_trusted_cert};
use writ_core::{Digest, Timestamp};
use x509_cert::Certificate;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage, KeyUsages};

use super::name::Name;
use crate::keys::PublicKey;

/// Most certificates in a chain, the signer's own counted.
const MOST: usize = 8;
/// Largest certificate, in bytes of DER.
const MAX: usize = 32 << 10;
/// Largest PEM text of one certificate or a chain.
const MAX_PEM: usize = MOST * MAX * 2;
/// id-kp-codeSigning, 1.3.6.1.5.5.7.3.3.
const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];

/// Why a certificate's word cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum X509Error {
    /// Not PEM certificates.
    #[error("not certificates in PEM: {0}")]
    Pem(String),
    /// More or larger certificates than are read.
    #[error("more than {MOST} certificates, or one larger than {MAX} bytes")]
    TooLarge,
    /// A certificate that does not parse.
    #[error("a certificate is malformed: {0}")]
    Malformed(String),
    /// A root that is no authority.
    #[error(
        "`{0}` is no certificate authority: a root needs `CA:TRUE`, and `keyCertSign` where it says what its key is for"
    )]
    NotAnAuthority(String),
    /// No path to a trusted root.
    #[error("`{subject}` chains to no certificate authority you trust")]
    UnknownIssuer {
        /// Whose certificate.
        subject: String,
    },
    /// Its time is over, or that of one above it.
    #[error("the certificate of `{subject}`, or one above it, expired before it was checked")]
    Expired {
        /// Whose certificate.
        subject: String,
    },
    /// Its time has not come.
    #[error("the certificate of `{subject}`, or one above it, is not valid yet")]
    NotYetValid {
        /// Whose certificate.
        subject: String,
    },
    /// Its key is not for signatures.
    #[error("the key usage of `{subject}` does not name digitalSignature")]
    NotForSignatures {
        /// Whose certificate.
        subject: String,
    },
    /// Its extended key usage leaves out code signing.
    #[error("the extended key usage of `{subject}`, or of one above it, leaves out codeSigning")]
    NotForCode {
        /// Whose certificate.
        subject: String,
    },
    /// The certificate of an authority.
    #[error("`{subject}` is a certificate authority, not a signer")]
    Authority {
        /// Whose certificate.
        subject: String,
    },
    /// Somebody above it is no authority, or may not sign certificates.
    #[error("a certificate above `{subject}` may not sign certificates, or not at that depth")]
    IssuerIsNone {
        /// Whose certificate.
        subject: String,
    },
    /// It is outside of the names that an authority above it may vouch for.
    #[error("the name constraints of an authority above `{subject}` do not allow it")]
    NameConstraint {
        /// Whose certificate.
        subject: String,
    },
    /// More paths than are tried.
    #[error("the certificates above `{subject}` lead in too many or too long ways")]
    TooDeep {
        /// Whose certificate.
        subject: String,
    },
    /// Anything else that makes a path none.
    #[error("the chain of `{subject}` does not hold: {why}")]
    Path {
        /// Whose certificate.
        subject: String,
        /// What the library says.
        why: String,
    },
    /// The chain holds, and the signature is not by its key.
    #[error("the signature is not by the certificate of `{subject}`: the envelope was tampered with")]
    Signature {
        /// Whose certificate.
        subject: String,
    },
}

/// When a certificate ends, in seconds since 1970.
pub fn not_after(der: &[u8]) -> Result<u64, X509Error> {
    Ok(read(&CertificateDer::from(der))?.tbs_certificate.validity.not_after.to_unix_duration().as_secs())
}

/// A certificate authority that is trusted.
#[derive(Clone, Debug)]
pub struct Root {
    der: CertificateDer<'static>,
    subject: Name,
    not_after: u64,
    not_before: u64,
    /// How many authorities may stand between it and a signer.
    path_length: Option<u8>,
}

impl Root {
    /// Reads one certificate of an authority from PEM.
    pub fn from_pem(text: &str) -> Result<Self, X509Error> {
        let mut found = certificates(text.as_bytes())?;
        let (Some(der), true) = (found.pop(), found.is_empty()) else {
            return Err(X509Error::Pem("expected one root".to_owned()));
        };
        let certificate = read(&der)?;
        let subject = Name::new(certificate.tbs_certificate.subject.clone());
        if !is_authority(&certificate)? || anchor_from_trusted_cert(&der).is_err() {
            return Err(X509Error::NotAnAuthority(subject.to_string()));
        }
        let validity = &certificate.tbs_certificate.validity;
        let seconds = |time: &x509_cert::time::Time| time.to_unix_duration().as_secs();
        let path_length = extension::<BasicConstraints>(&certificate)?.and_then(|basic| basic.path_len_constraint);
        let (not_before, not_after) = (seconds(&validity.not_before), seconds(&validity.not_after));
        Ok(Self { subject, not_before, not_after, path_length, der })
    }

    /// SHA-256 of its DER.
    pub fn id(&self) -> Digest {
        Digest::of(&self.der)
    }

    /// Whose it is.
    pub const fn subject(&self) -> &Name {
        &self.subject
    }
}

/// A signer's certificate and those above it, as they stand in an envelope.
#[derive(Clone, Debug)]
pub struct Chain {
    leaf: CertificateDer<'static>,
    above: Vec<CertificateDer<'static>>,
    subject: Name,
    issuer: Name,
}

/// Whose signature it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// The certificate's subject.
    pub subject: Name,
    /// Its issuer.
    pub issuer: Name,
    /// The root at the end of the path.
    pub root: Digest,
}

impl Chain {
    /// Reads certificates in PEM, the signer's first. A text may hold several.
    pub fn from_pem<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, X509Error> {
        let mut all = Vec::new();
        for text in texts {
            all.extend(certificates(text)?);
            if all.len() > MOST {
                return Err(X509Error::TooLarge);
            }
        }
        let mut all = all.into_iter();
        let leaf = all.next().ok_or_else(|| X509Error::Pem("there is none".to_owned()))?;
        let certificate = read(&leaf)?;
        let (subject, issuer) = (certificate.tbs_certificate.subject, certificate.tbs_certificate.issuer);
        Ok(Self { leaf, above: all.collect(), subject: Name::new(subject), issuer: Name::new(issuer) })
    }

    /// Whose certificate it is.
    pub const fn subject(&self) -> &Name {
        &self.subject
    }

    /// The certificates in PEM, one text each, the signer's first.
    pub fn to_pem(&self) -> Vec<String> {
        let one = |der: &CertificateDer<'_>| crate::keys::write_pem("CERTIFICATE", der);
        std::iter::once(&self.leaf).chain(&self.above).map(one).collect()
    }

    /// Whether the certificate is for this key.
    pub fn is_for(&self, key: &PublicKey) -> bool {
        self.end_entity().is_ok_and(|leaf| leaf.subject_public_key_info().as_ref() == key.to_der())
    }

    fn end_entity(&self) -> Result<EndEntityCert<'_>, X509Error> {
        EndEntityCert::try_from(&self.leaf).map_err(|error| self.wrong(&error))
    }

    /// Checks the path to one of `roots` at a moment, what the certificate is for, and the signature of `message`.
    pub fn verify(
        &self,
        roots: &[Root],
        message: &[u8],
        signature: &[u8],
        at: Timestamp,
    ) -> Result<Certified, X509Error> {
        let subject = || self.subject.to_string();
        let root = self.path(roots, at)?;
        let leaf = self.end_entity()?;
        let spki = leaf.subject_public_key_info();
        let holds = match PublicKey::from_der(&spki) {
            // The strict check, where the key is of a kind that Writ itself signs with.
            Ok(key) => key.verify(message, signature).is_ok(),
            Err(_other_kind) => {
                ALL_VERIFICATION_ALGS.iter().any(|&with| leaf.verify_signature(with, message, signature).is_ok())
            }
        };
        if !holds {
            return Err(X509Error::Signature { subject: subject() });
        }
        Ok(Certified { subject: self.subject.clone(), issuer: self.issuer.clone(), root })
    }

    /// Whether these certificates are good for a signature at a moment, if somebody trusts a root above them.
    pub fn is_good(&self, at: Timestamp) -> Result<(), X509Error> {
        self.is_signer()?;
        let (subject, seconds) = (self.subject.to_string(), u64::try_from(at.millis() / 1000).unwrap_or_default());
        for der in std::iter::once(&self.leaf).chain(&self.above) {
            let validity = read(der)?.tbs_certificate.validity;
            if validity.not_after.to_unix_duration().as_secs() < seconds {
                return Err(X509Error::Expired { subject });
            }
            if validity.not_before.to_unix_duration().as_secs() > seconds {
                return Err(X509Error::NotYetValid { subject });
            }
        }
        Ok(())
    }

    /// Whether the first certificate is of somebody who signs documents.
    fn is_signer(&self) -> Result<(), X509Error> {
        let (subject, certificate) = (self.subject.to_string(), read(&self.leaf)?);
        if extension::<BasicConstraints>(&certificate)?.is_some_and(|basic| basic.ca) {
            return Err(X509Error::Authority { subject });
        }
        let usage = extension::<KeyUsage>(&certificate)?;
        if !usage.is_some_and(|usage| usage.0.contains(KeyUsages::DigitalSignature)) {
            return Err(X509Error::NotForSignatures { subject });
        }
        Ok(())
    }

    /// The root at the end of a path that holds.
    fn path(&self, roots: &[Root], at: Timestamp) -> Result<Digest, X509Error> {
        let subject = || self.subject.to_string();
        self.is_signer()?;
        let leaf = self.end_entity()?;
        let seconds = u64::try_from(at.millis() / 1000).unwrap_or_default();
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expired = |root: &&Root| root.not_after < seconds;
        let early = |root: &&Root| root.not_before > seconds;
        let anchors: Vec<(TrustAnchor<'_>, &Root)> =
            roots.iter().filter_map(|root| Some((anchor_from_trusted_cert(&root.der).ok()?, root))).collect();
        let only: Vec<TrustAnchor<'_>> = anchors.iter().map(|(anchor, _)| anchor.clone()).collect();
        let usage = Purpose::required_if_present(CODE_SIGNING);
        let may_sign = |path: &VerifiedPath<'_>| {
            let mut above = path.intermediate_certificates();
            let one = |der: CertificateDer<'_>| read(&der).is_ok_and(|one| is_authority(&one) == Ok(true));
            if above.all(|one_above| one(one_above.der())) { Ok(()) } else { Err(webpki::Error::EndEntityUsedAsCa) }
        };
        let path = leaf
            .verify_for_usage(ALL_VERIFICATION_ALGS, &only, &self.above, time, usage, None, Some(&may_sign))
            .map_err(|error| self.wrong(&error))?;
        let root = anchors.iter().find(|(anchor, _)| anchor == path.anchor()).map(|(_, root)| root);
        let root = root.ok_or_else(|| X509Error::UnknownIssuer { subject: subject() })?;
        if expired(root) {
            return Err(X509Error::Expired { subject: subject() });
        }
        // The library holds what authorities on the way say of this, and does not ask the root.
        let between = path.intermediate_certificates().count();
        if root.path_length.is_some_and(|most| between > usize::from(most)) {
            return Err(X509Error::IssuerIsNone { subject: subject() });
        }
        if early(root) {
            return Err(X509Error::NotYetValid { subject: subject() });
        }
        Ok(root.id())
    }

    fn wrong(&self, error: &webpki::Error) -> X509Error {
        use webpki::Error as Why;
        let subject = self.subject.to_string();
        match error {
            Why::UnknownIssuer => X509Error::UnknownIssuer { subject },
            Why::CertExpired { .. } => X509Error::Expired { subject },
            Why::CertNotValidYet { .. } => X509Error::NotYetValid { subject },
            Why::RequiredEkuNotFoundContext(_) | Why::EmptyEkuExtension => X509Error::NotForCode { subject },
            Why::CaUsedAsEndEntity => X509Error::Authority { subject },
            Why::EndEntityUsedAsCa | Why::PathLenConstraintViolated => X509Error::IssuerIsNone { subject },
            Why::NameConstraintViolation => X509Error::NameConstraint { subject },
            Why::MaximumPathDepthExceeded
            | Why::MaximumPathBuildCallsExceeded
            | Why::MaximumSignatureChecksExceeded
            | Why::MaximumNameConstraintComparisonsExceeded => X509Error::TooDeep { subject },
            other => X509Error::Path { subject, why: other.to_string() },
        }
    }
}

/// The certificates of a PEM text.
fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, X509Error> {
    if text.len() > MAX_PEM {
        return Err(X509Error::TooLarge);
    }
    let mut out = Vec::new();
    for one in CertificateDer::pem_slice_iter(text) {
        let one = one.map_err(|error| X509Error::Pem(error.to_string()))?;
        if out.len() == MOST || one.len() > MAX {
            return Err(X509Error::TooLarge);
        }
        out.push(one);
    }
    Ok(out)
}

fn read(der: &CertificateDer<'_>) -> Result<Certificate, X509Error> {
    Certificate::from_der(der).map_err(|error| X509Error::Malformed(error.to_string()))
}

/// An extension of a certificate; one that is there twice is an error.
fn extension<'a, T: Decode<'a> + AssociatedOid>(certificate: &'a Certificate) -> Result<Option<T>, X509Error> {
    let found = certificate.tbs_certificate.get::<T>();
    Ok(found.map_err(|error| X509Error::Malformed(error.to_string()))?.map(|(_critical, extension)| extension))
}

/// Whether it may sign certificates, by its own word.
fn is_authority(certificate: &Certificate) -> Result<bool, X509Error> {
    let ca = extension::<BasicConstraints>(certificate)?.is_some_and(|basic| basic.ca);
    let usage = extension::<KeyUsage>(certificate)?;
    Ok(ca && usage.is_none_or(|usage| usage.0.contains(KeyUsages::KeyCertSign)))
}
