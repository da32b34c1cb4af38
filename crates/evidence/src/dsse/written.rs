//! The envelope's JSON: the bytes in it still base64.
//!
//! Owns the members, and those that witness and its kin put beside a signature. Refuses base64 that nobody who signs writes. Invariant:
//! what is read is written again as it was, but for the alphabet. Page: `spec/signing.md`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};

use super::{EnvelopeError, MAX_CHAIN, Signature};

/// An envelope as it is written: the bytes in it still base64.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    pub payload_type: String,
    pub payload: String,
    pub signatures: Vec<Written>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Written {
    #[serde(default)]
    keyid: String,
    sig: String,
    /// As witness and its kin write it: base64 of PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    intermediates: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bundle: Option<Value>,
}

impl Written {
    pub fn of(one: &Signature) -> Self {
        let mut chain = one.chain.iter().map(|pem| STANDARD.encode(pem));
        Self {
            keyid: one.keyid.clone(),
            sig: STANDARD.encode(&one.sig),
            certificate: chain.next(),
            intermediates: chain.collect(),
            bundle: one.bundle.as_deref().and_then(|bundle| json::parse(bundle.as_bytes()).ok()),
        }
    }

    pub fn read(self) -> Result<Signature, EnvelopeError> {
        if self.intermediates.len() > MAX_CHAIN || self.certificate.is_none() && !self.intermediates.is_empty() {
            return Err(EnvelopeError::Chain);
        }
        let chain = self.certificate.iter().map(|pem| base64(pem, "certificate"));
        let chain = chain.chain(self.intermediates.iter().map(|pem| base64(pem, "intermediates")));
        let (chain, sig) = (chain.collect::<Result<_, _>>()?, base64(&self.sig, "sig")?);
        Ok(Signature { keyid: self.keyid, sig, chain, bundle: self.bundle.as_ref().map(json::canonical) })
    }
}

pub(super) fn base64(text: &str, name: &'static str) -> Result<Vec<u8>, EnvelopeError> {
    let engine = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    engine.decode(text).map_err(|_not_base64| EnvelopeError::Base64 { member: name })
}
