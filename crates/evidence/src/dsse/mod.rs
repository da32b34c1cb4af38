//! Dead Simple Signing Envelope, v1: a payload, its type, and signatures over both.
//!
//! Owns the envelope's JSON and the pre-authentication encoding (R2). Refuses an envelope whose members are of the wrong kind;
//! unknown members pass, as DSSE says. Invariant: [`Verified`] has no other constructor than a checked signature. Page:
//! `spec/signing.md`.

mod written;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use writ_core::Digest;
use writ_core::json::{self, FormatError, Value};

use crate::custody::Signs;
use crate::keys::{KeyError, PublicKey};
use written::{Document, Written, base64};

/// Most signatures in one envelope.
const MAX_SIGNATURES: usize = 64;
/// Most certificates above a signer's.
const MAX_CHAIN: usize = 7;

/// A signed payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    payload_type: String,
    payload: Vec<u8>,
    signatures: Vec<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Signature {
    keyid: String,
    sig: Vec<u8>,
    /// The signer's certificate and those above it, each as PEM.
    chain: Vec<Vec<u8>>,
    /// A Sigstore bundle over the payload, in canonical form.
    bundle: Option<String>,
}

impl Signature {
    const fn of_key(keyid: String, sig: Vec<u8>) -> Self {
        Self { keyid, sig, chain: Vec::new(), bundle: None }
    }
}

/// What a signature says of whose it is, beside a key's id. Nothing of it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof<'a> {
    /// By a key: whoever has its public half can check it.
    Key,
    /// By the key of a certificate, over what DSSE says.
    X509 {
        /// The signature.
        signature: &'a [u8],
        /// The signer's certificate and those above it, as PEM.
        chain: &'a [Vec<u8>],
    },
    /// By a key that Sigstore vouched for, over the payload's own bytes.
    Keyless {
        /// The bundle, in canonical form.
        bundle: &'a str,
    },
}

/// Why bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not JSON, or a member is missing or of the wrong kind.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// No signatures, or too many.
    #[error("`signatures` is not an array of 1 to {MAX_SIGNATURES} objects")]
    Signatures,
    /// Certificates above one that is not there, or too many.
    #[error("`intermediates` without `certificate`, or more than {MAX_CHAIN} of them")]
    Chain,
    /// A payload or signature that is no base64 any more: whoever signs writes nothing else.
    #[error("`{member}` is not padded base64: the envelope was tampered with")]
    Base64 {
        /// Its name.
        member: &'static str,
    },
}

/// Why an envelope's word cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// None of the given keys signed it.
    #[error("no signature by any of the {keys} keys it was checked with")]
    NoSignature {
        /// How many keys were given.
        keys: usize,
    },
    /// It says that a given key signed it, and that is not so.
    #[error("the signature that names key {keyid} is wrong: the envelope was tampered with")]
    Wrong {
        /// The key.
        keyid: String,
    },
}

/// A payload whose signature was checked, and by whose keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T> {
    payload: T,
    signers: Vec<Digest>,
}

impl<T> Verified<T> {
    /// Ids of the keys whose signatures hold.
    pub fn signers(&self) -> &[Digest] {
        &self.signers
    }

    /// The payload.
    pub const fn payload(&self) -> &T {
        &self.payload
    }

    /// The payload, to keep.
    pub fn into_payload(self) -> T {
        self.payload
    }

    /// What the payload is read as.
    pub(crate) fn try_map<U, E>(self, read: impl FnOnce(T) -> Result<U, E>) -> Result<Verified<U>, E> {
        Ok(Verified { payload: read(self.payload)?, signers: self.signers })
    }
}

/// `DSSEv1 SP len SP type SP len SP body`, lengths in ASCII decimal.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    out.extend_from_slice(payload);
    out
}

/// `DSSEv1`, then type and body, each behind its length as eight little-endian bytes: the Go aflock's encoding (R2).
fn pae_go(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = b"DSSEv1".to_vec();
    for part in [payload_type.as_bytes(), payload] {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// A payload whose signature is over the Go aflock's encoding rather than DSSE's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyGo(pub Vec<u8>);

impl Envelope {
    /// Signs `payload` with every key.
    pub fn sign<S: Signs + ?Sized>(payload_type: &str, payload: &[u8], keys: &[&S]) -> Result<Self, KeyError> {
        let message = pae(payload_type, payload);
        let one = |key: &&S| Ok(Signature::of_key(key.public().key_id().to_string(), key.sign(&message)?));
        let signatures = keys.iter().map(one).collect::<Result<_, KeyError>>()?;
        Ok(Self { payload_type: payload_type.to_owned(), payload: payload.to_vec(), signatures })
    }

    /// Signs `payload` with the key of a certificate; `chain` is that and those above it, as PEM. Whether they belong together is
    /// the caller's to know.
    pub fn sign_certified<S: Signs + ?Sized>(
        payload_type: &str,
        payload: &[u8],
        key: &S,
        chain: &[String],
    ) -> Result<Self, KeyError> {
        let mut envelope = Self::sign(payload_type, payload, &[key])?;
        for signature in &mut envelope.signatures {
            signature.chain = chain.iter().map(|pem| pem.clone().into_bytes()).collect();
        }
        Ok(envelope)
    }

    /// A payload with one signature over it, by a key that the envelope does not name.
    pub fn of_unnamed(payload_type: &str, payload: &[u8], signature: Vec<u8>) -> Self {
        let signatures = vec![Signature::of_key(String::new(), signature)];
        Self { payload_type: payload_type.to_owned(), payload: payload.to_vec(), signatures }
    }

    /// Puts a payload and a Sigstore bundle over its bytes into one envelope. `signature` is the bundle's own.
    pub fn around_bundle(payload_type: &str, payload: &[u8], bundle: &Value, signature: Vec<u8>) -> Self {
        let signature =
            Signature { bundle: Some(json::canonical(bundle)), ..Signature::of_key(String::new(), signature) };
        Self { payload_type: payload_type.to_owned(), payload: payload.to_vec(), signatures: vec![signature] }
    }

    /// What each signature says of whose it is. Nothing of it is checked.
    pub fn proofs(&self) -> impl Iterator<Item = Proof<'_>> {
        self.signatures.iter().map(|one| match (&one.bundle, one.chain.as_slice()) {
            (Some(bundle), _) => Proof::Keyless { bundle },
            (None, []) => Proof::Key,
            (None, chain) => Proof::X509 { signature: &one.sig, chain },
        })
    }

    /// The bytes that signatures are over.
    pub fn message(&self) -> Vec<u8> {
        pae(&self.payload_type, &self.payload)
    }

    /// Reads an envelope; base64 in either alphabet, padded.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let Document { payload_type, payload, signatures } = json::from_slice(bytes)?;
        let payload = base64(&payload, "payload")?;
        if signatures.is_empty() || signatures.len() > MAX_SIGNATURES {
            return Err(EnvelopeError::Signatures);
        }
        let signatures = signatures.into_iter().map(Written::read).collect::<Result<_, EnvelopeError>>()?;
        Ok(Self { payload_type, payload, signatures })
    }

    /// The envelope as JSON with a final newline.
    pub fn to_bytes(&self) -> Vec<u8> {
        let document = Document {
            payload_type: self.payload_type.clone(),
            payload: STANDARD.encode(&self.payload),
            signatures: self.signatures.iter().map(Written::of).collect(),
        };
        (json::pretty(&json::to_value(&document)) + "\n").into_bytes()
    }

    /// The payload's type.
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// The payload, whose signatures nobody has checked.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Whether a signature in here is, or says it is, by `key`. Other tools write other key ids, so a signature that holds
    /// counts whatever it is called.
    pub fn names(&self, key: &PublicKey) -> bool {
        let (id, message) = (key.key_id(), pae(&self.payload_type, &self.payload));
        let by = |signature: &Signature| names(&signature.keyid, id) || key.verify(&message, &signature.sig).is_ok();
        self.signatures.iter().any(by)
    }

    /// Checks the signatures with these keys. One that holds is enough, but one that names a given key and does not hold
    /// spoils the envelope: somebody changed it.
    pub fn verify(&self, keys: &[PublicKey]) -> Result<Verified<Vec<u8>>, VerifyError> {
        let signers = self.signers(&pae(&self.payload_type, &self.payload), keys)?;
        Ok(Verified { payload: self.payload.clone(), signers })
    }

    /// The same for envelopes that the Go aflock signed, whose encoding is not DSSE's (R2). For importing alone: nothing
    /// here signs this way, and the type of the result says what was accepted.
    pub fn verify_legacy_go(&self, keys: &[PublicKey]) -> Result<Verified<LegacyGo>, VerifyError> {
        let signers = self.signers(&pae_go(&self.payload_type, &self.payload), keys)?;
        Ok(Verified { payload: LegacyGo(self.payload.clone()), signers })
    }

    fn signers(&self, message: &[u8], keys: &[PublicKey]) -> Result<Vec<Digest>, VerifyError> {
        let mut signers = Vec::new();
        for signature in &self.signatures {
            for key in keys {
                let id = key.key_id();
                let holds = key.verify(message, &signature.sig).is_ok();
                if holds && !signers.contains(&id) {
                    signers.push(id);
                } else if !holds && names(&signature.keyid, id) {
                    return Err(VerifyError::Wrong { keyid: signature.keyid.clone() });
                }
            }
        }
        if signers.is_empty() { Err(VerifyError::NoSignature { keys: keys.len() }) } else { Ok(signers) }
    }
}

fn names(keyid: &str, id: Digest) -> bool {
    keyid.strip_prefix("sha256:").unwrap_or(keyid) == id.hex()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Algorithm, SigningKey};

    #[test]
    fn pae_of_the_specification() {
        assert_eq!(
            pae("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }

    #[test]
    fn signs_and_verifies() {
        let (one, two) =
            (SigningKey::generate(Algorithm::Ed25519).unwrap(), SigningKey::generate(Algorithm::P256).unwrap());
        let stranger = SigningKey::generate(Algorithm::Ed25519).unwrap();
        let envelope = Envelope::parse(&Envelope::sign("t", b"p", &[&one, &two]).unwrap().to_bytes()).unwrap();
        let verified = envelope.verify(&[one.public().clone(), two.public().clone()]).unwrap();
        assert_eq!(verified.signers().len(), 2);
        assert!(envelope.names(one.public()) && !envelope.names(stranger.public()));
        assert_eq!(envelope.verify(&[stranger.public().clone()]), Err(VerifyError::NoSignature { keys: 1 }));
    }

    #[test]
    fn one_wrong_signature_by_a_given_key_spoils_it() {
        let (one, two) =
            (SigningKey::generate(Algorithm::Ed25519).unwrap(), SigningKey::generate(Algorithm::Ed25519).unwrap());
        let mut envelope = Envelope::sign("t", b"p", &[&one, &two]).unwrap();
        let keys = [one.public().clone(), two.public().clone()];
        assert_eq!(envelope.verify(&keys).unwrap().signers().len(), 2);
        envelope.signatures[1].sig[0] ^= 1;
        assert!(matches!(envelope.verify(&keys), Err(VerifyError::Wrong { .. })));
        assert_eq!(envelope.verify(&keys[..1]).unwrap().signers(), [one.public().key_id()]);
    }

    /// Key ids are hints: a signature under another name, or none, still counts for its key.
    #[test]
    fn key_ids_are_hints() {
        let key = SigningKey::generate(Algorithm::P256).unwrap();
        let stranger = SigningKey::generate(Algorithm::P256).unwrap();
        for keyid in ["", "spiffe://example.org/agent"] {
            let mut envelope = Envelope::sign("t", b"p", &[&key]).unwrap();
            keyid.clone_into(&mut envelope.signatures[0].keyid);
            assert!(envelope.names(key.public()) && !envelope.names(stranger.public()));
            assert!(envelope.verify(&[stranger.public().clone(), key.public().clone()]).is_ok());
        }
    }

    #[test]
    fn the_go_encoding_is_for_importing_alone() {
        assert_eq!(pae_go("ab", b"c"), b"DSSEv1\x02\0\0\0\0\0\0\0ab\x01\0\0\0\0\0\0\0c");
        let key = SigningKey::generate(Algorithm::P256).unwrap();
        let keys = [key.public().clone()];
        let go = Envelope {
            payload_type: "t".to_owned(),
            payload: b"p".to_vec(),
            signatures: vec![Signature::of_key(String::new(), key.sign(&pae_go("t", b"p")).unwrap())],
        };
        assert_eq!(go.verify_legacy_go(&keys).unwrap().into_payload(), LegacyGo(b"p".to_vec()));
        assert!(go.verify(&keys).is_err());
        let real = Envelope::sign("t", b"p", &[&key]).unwrap();
        assert!(real.verify_legacy_go(&keys).is_err());
    }

    #[test]
    fn refuses_what_is_no_envelope() {
        let good = r#"{"payloadType":"t","payload":"cA==","signatures":[{"sig":"+/8=","extra":1}],"other":[]}"#;
        assert!(Envelope::parse(good.as_bytes()).is_ok());
        assert!(Envelope::parse(good.replace("+/8=", "-_8=").as_bytes()).is_ok());
        for (from, to) in [
            ("cA==", "cA="),
            ("cA==", "cA"),
            ("cA==", "cB=="),
            ("cA==", "c A=="),
            ("+/8=", "+_8="),
            ("\"t\"", "7"),
            ("\"sig\"", "\"signature\""),
            ("\"extra\"", "\"keyid\""),
            ("[{\"sig\":\"+/8=\",\"extra\":1}]", "[]"),
            ("[{\"sig\":\"+/8=\",\"extra\":1}]", "{}"),
            ("\"other\"", "\"payload\""),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(bad != good && Envelope::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    /// Every byte of the envelope, changed in one bit: it no longer parses, no longer verifies, or says the same in other
    /// white space (which the digest of the file tells apart).
    #[test]
    fn a_changed_byte_never_yields_another_payload() {
        let key = SigningKey::generate(Algorithm::Ed25519).unwrap();
        let bytes = Envelope::sign("t", b"payload", &[&key]).unwrap().to_bytes();
        for at in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[at] ^= 1;
            if let Ok(envelope) = Envelope::parse(&bent)
                && let Ok(verified) = envelope.verify(&[key.public().clone()])
            {
                assert_eq!(verified.into_payload(), b"payload");
                assert_eq!(envelope.payload_type(), "t");
            }
        }
    }
}
