//! A certificate for a new key, asked of Fulcio: `POST /api/v2/signingCert`.
//!
//! Owns the request, in which the key signs whom the token names, and what is taken of the answer. Refuses a certificate for another key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use der::{Decode, Encode};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use sigstore_verify::crypto::x509::parse_certificate_info;
use sigstore_verify::types::DerCertificate;
use writ_core::json::{self, Limits};
use x509_cert::Certificate;
use zeroize::Zeroizing;

use super::{AnswerError, IdentityToken};
use crate::keys::{KeyError, PublicKey, SigningKey};

/// Where it is asked, below the authority's URL.
pub const PATH: &str = "/api/v2/signingCert";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    credentials: Credentials<'a>,
    public_key_request: PublicKeyRequest,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Credentials<'a> {
    oidc_identity_token: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PublicKeyRequest {
    public_key: Key,
    proof_of_possession: String,
}

#[derive(Serialize)]
struct Key {
    algorithm: &'static str,
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    signed_certificate_embedded_sct: Option<Issued>,
    #[serde(default)]
    signed_certificate_detached_sct: Option<Issued>,
}

#[derive(Deserialize)]
struct Issued {
    chain: Chain,
}

#[derive(Deserialize)]
struct Chain {
    certificates: Vec<String>,
}

/// Whom a certificate names, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The subject's alternative name.
    pub identity: String,
    /// The OIDC issuer.
    pub issuer: String,
}

/// The request: the token, the key, and that whoever asks has the key.
pub fn request(token: &IdentityToken, key: &SigningKey) -> Result<Zeroizing<String>, KeyError> {
    let proof = key.sign(token.subject().as_bytes())?;
    let request = Request {
        credentials: Credentials { oidc_identity_token: token.text() },
        public_key_request: PublicKeyRequest {
            public_key: Key { algorithm: "ECDSA", content: key.public().to_pem() },
            proof_of_possession: STANDARD.encode(proof),
        },
    };
    Ok(Zeroizing::new(json::to_canonical(&request)))
}

/// The certificate, as DER, which is for this key.
pub fn read(answer: &[u8], key: &PublicKey) -> Result<Vec<u8>, AnswerError> {
    let answer: Answer = json::from_slice_with(answer, Limits::FOREIGN)?;
    let issued = match (answer.signed_certificate_embedded_sct, answer.signed_certificate_detached_sct) {
        (Some(issued), _) => issued,
        (None, Some(_)) => return Err(AnswerError::DetachedSct),
        (None, None) => return Err(AnswerError::Certificate("there is none".to_owned())),
    };
    let first =
        issued.chain.certificates.first().ok_or_else(|| AnswerError::Certificate("there is none".to_owned()))?;
    let wrong = |error: &dyn std::fmt::Display| AnswerError::Certificate(error.to_string());
    let der = CertificateDer::from_pem_slice(first.as_bytes()).map_err(|error| wrong(&error))?.to_vec();
    let certificate = Certificate::from_der(&der).map_err(|error| wrong(&error))?;
    let spki = certificate.tbs_certificate.subject_public_key_info.to_der().map_err(|error| wrong(&error))?;
    if spki != key.to_der() {
        return Err(AnswerError::OtherKey);
    }
    Ok(der)
}

/// Whom a certificate names. Nobody has checked it.
pub fn named(certificate: &[u8]) -> Option<Named> {
    let found = parse_certificate_info(&DerCertificate::new(certificate.to_vec())).ok()?;
    Some(Named { identity: found.identity?.as_str().to_owned(), issuer: found.issuer? })
}
