//! The authority of one run: it vouches for hosts whose TLS ends here, to the confined programs alone.
//!
//! Owns its key, which never leaves memory, and the certificates it made. Refuses to vouch for a host that the rules do not
//! terminate; its callers ask only then. Invariant: outside the run nobody trusts it, and after the run its key is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use writ_core::Digest;

use crate::host::HostName;

/// Certificates that are kept; with more, the cache begins anew.
const KEPT: usize = 1024;
const DAY: Duration = Duration::from_secs(86_400);

/// The authority could not be made, or could not vouch for a host.
#[derive(Debug, thiserror::Error)]
#[error("no certificate can be made: {0}")]
pub struct AuthorityError(String);

/// An authority's own certificate, which is no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    der: CertificateDer<'static>,
    pem: String,
}

impl Certificate {
    /// Reads one that was written as PEM.
    pub fn read(pem: &str) -> Result<Self, AuthorityError> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| AuthorityError(error.to_string()))?;
        Ok(Self { der, pem: pem.to_owned() })
    }

    /// As PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// As DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// What it is known by in a record: its digest.
    pub fn fingerprint(&self) -> Digest {
        Digest::of(&self.der)
    }
}

/// The authority of one run.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
    /// One key for all hosts: making it costs more than signing.
    key: KeyPair,
    made: Mutex<HashMap<HostName, Arc<ServerConfig>>>,
}

impl Authority {
    /// An authority with a new key.
    pub fn new() -> Result<Self, AuthorityError> {
        let failed = |error: rcgen::Error| AuthorityError(error.to_string());
        let mut params = params("Writ (this run only)", Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let certificate = Certificate { pem: certificate.pem(), der: certificate.der().clone() };
        let own = KeyPair::generate().map_err(failed)?;
        Ok(Self { issuer: Issuer::new(params, key), certificate, key: own, made: Mutex::default() })
    }

    /// Its own certificate.
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// How to answer in a host's place: HTTP/1.1 and no other protocol.
    pub fn server(&self, host: &HostName) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = made.get(host) {
            return Ok(Arc::clone(config));
        }
        let failed = |error: rcgen::Error| AuthorityError(error.to_string());
        let mut params = params(host.as_str(), vec![host.as_str().trim_matches(['[', ']']).to_owned()])?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&self.key, &self.issuer).map_err(failed)?;
        let chain = vec![certificate.der().clone(), self.certificate.der.clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let unusable = |error: rustls::Error| AuthorityError(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().map_err(unusable)?;
        let mut config = config.with_no_client_auth().with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if made.len() >= KEPT {
            made.clear();
        }
        let config = Arc::new(config);
        made.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }
}

fn params(name: &str, hosts: Vec<String>) -> Result<CertificateParams, AuthorityError> {
    let failed = |error: &dyn std::fmt::Display| AuthorityError(error.to_string());
    let mut params = CertificateParams::new(hosts).map_err(|error| failed(&error))?;
    let mut distinguished = DistinguishedName::new();
    // A common name has at most 64 letters; the name that counts is the alternative one.
    distinguished.push(DnType::CommonName, name.chars().take(64).collect::<String>());
    params.distinguished_name = distinguished;
    let mut serial = [0; 16];
    SystemRandom::new().fill(&mut serial).map_err(|_error| failed(&"no random bytes"))?;
    // A serial number is positive and not zero.
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x7f | 1;
    }
    params.serial_number = Some(serial.to_vec().into());
    let now = SystemTime::now();
    params.not_before = now.checked_sub(DAY).unwrap_or(now).into();
    params.not_after = now.checked_add(DAY * 30).unwrap_or(now).into();
    Ok(params)
}
