//! Keyless signatures: a new key, a certificate for it, and an entry in a transparency log, asked of a Sigstore instance.
//!
//! Owns the order of things and the requests. Checks no trust: what an instance's word is worth, whoever verifies knows
//! (`evidence::signer::keyless`). Refuses plain HTTP but to this machine, follows nothing, and asks no instance that was not named.
//! Invariant: the key never leaves this process and goes with it; the token is sent to the certificate authority alone, once, and stands in
//! no error. Page: `spec/package.md`, "Keyless".

mod client;
mod error;

use std::fmt;

use writ_core::Timestamp;
use writ_evidence::dsse::{Envelope, pae};
use writ_evidence::intoto::{Bundle, LogEntry, PAYLOAD_TYPE};
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::sigstore::certificate::{self, Named};
use writ_evidence::sigstore::log::{Signed, Version};
use writ_evidence::sigstore::{IdentityToken, Services, timestamp};

use client::{Client, Service};
pub use error::SigstoreError;

/// Someone whom an instance vouches for, for as long as the certificate is valid.
pub struct Keyless {
    client: Client,
    key: SigningKey,
    certificate: Vec<u8>,
    named: Named,
    rekor: Service,
    version: Version,
    tsa: Option<Service>,
}

impl fmt::Debug for Keyless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyless").field("named", &self.named).finish_non_exhaustive()
    }
}

/// A statement that was signed.
#[derive(Clone, Debug)]
pub struct Vouched {
    /// The statement with all that it takes to check it.
    pub bundle: Bundle,
    /// Its index in the log.
    pub log_index: i64,
}

impl Keyless {
    /// Makes a key and has it certified for whom the token names. All addresses are looked at before anything is sent.
    pub fn begin(services: &Services, token: &IdentityToken) -> Result<Self, SigstoreError> {
        let fulcio = Service::at("Fulcio", &services.fulcio, certificate::PATH)?;
        let rekor = Service::at("Rekor", &services.rekor.url, services.rekor.version.path())?;
        let tsa = services.tsa.as_deref().map(|url| Service::at("the timestamp authority", url, "")).transpose()?;
        let client = Client::new(token);
        let key = SigningKey::generate(Algorithm::P256)?;
        let request = certificate::request(token, &key)?;
        let answer = client.ask(&fulcio, "application/json", request.as_bytes())?;
        let certificate = certificate::read(&answer, key.public()).map_err(|error| client.wrong(&fulcio, &error))?;
        let named = certificate::named(&certificate).ok_or_else(|| SigstoreError::Nameless(fulcio.url.clone()))?;
        Ok(Self { client, key, certificate, named, rekor, version: services.rekor.version, tsa })
    }

    /// Whom the certificate names.
    pub const fn named(&self) -> &Named {
        &self.named
    }

    /// Signs a statement, in its canonical form, and puts that into the log.
    pub fn sign(&self, statement: &str) -> Result<Vouched, SigstoreError> {
        let payload = statement.as_bytes();
        let signature = self.key.sign(&pae(PAYLOAD_TYPE, payload))?;
        let entry = self.logged(payload, &signature)?;
        let stamp = self.tsa.as_ref().map(|tsa| self.stamped(tsa, &signature)).transpose()?;
        let log_index = entry.log_index.0;
        let envelope = Envelope::of_unnamed(PAYLOAD_TYPE, payload, signature);
        let mut bundle = Bundle::of_certificate(envelope, self.certificate.clone());
        bundle.entries.push(entry);
        bundle.timestamps.extend(stamp);
        Ok(Vouched { bundle, log_index })
    }

    fn logged(&self, payload: &[u8], signature: &[u8]) -> Result<LogEntry, SigstoreError> {
        let signed = Signed { payload_type: PAYLOAD_TYPE, payload, signature, certificate: &self.certificate };
        let wrong = |error| self.client.wrong(&self.rekor, &error);
        let request = signed.request(self.version).map_err(wrong)?;
        let answer = self.client.ask(&self.rekor, "application/json", request.as_bytes())?;
        signed.read(self.version, &answer).map_err(wrong)
    }

    fn stamped(&self, tsa: &Service, signature: &[u8]) -> Result<Vec<u8>, SigstoreError> {
        let request = timestamp::Request::of(signature)?;
        let answer = self.client.ask(tsa, timestamp::MEDIA_TYPE, request.bytes())?;
        request.is_answered_by(&answer).map_err(|error| self.client.wrong(tsa, &error))?;
        Ok(answer)
    }
}

/// A token's text, which has to hold now.
pub fn token(text: &str) -> Result<IdentityToken, SigstoreError> {
    Ok(IdentityToken::read(text, Timestamp::now())?)
}
