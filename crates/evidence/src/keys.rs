//! Signing keys: Ed25519 and ECDSA P-256, PKCS#8 and SPKI in PEM.
//!
//! Reads what OpenSSL makes and writes what OpenSSL reads. Refuses Ed25519 keys of small order, for which anyone can make
//! signatures. Invariant: no error and no `Debug` output holds private bytes. Page: `spec/signing.md`.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use writ_core::Digest;

/// A signature algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algorithm {
    /// Ed25519 (RFC 8032).
    Ed25519,
    /// ECDSA on NIST P-256 with SHA-256; signatures in ASN.1 DER.
    P256,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ed25519 => "ed25519",
            Self::P256 => "ecdsa-p256-sha256",
        })
    }
}

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No PEM block of the wanted kind, or text around it.
    #[error("expected one PEM block `{label}`")]
    Pem {
        /// `PRIVATE KEY` or `PUBLIC KEY`.
        label: &'static str,
    },
    /// Neither Ed25519 nor ECDSA P-256, or damaged.
    #[error("not an Ed25519 or ECDSA P-256 key (PKCS#8 or SPKI)")]
    Unsupported,
    /// An Ed25519 key of small order.
    #[error("a weak Ed25519 key: anyone can make signatures for it")]
    Weak,
    /// The random number generator or the signing itself failed.
    #[error("the cryptographic library failed")]
    Library,
}

/// A private key.
pub struct SigningKey {
    pair: Pair,
    pkcs8: Vec<u8>,
    public: PublicKey,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.key_id())
    }
}

impl SigningKey {
    /// A new key.
    pub fn generate(algorithm: Algorithm) -> Result<Self, KeyError> {
        let library = |_unspecified| KeyError::Library;
        let pkcs8 = match algorithm {
            Algorithm::Ed25519 => {
                Ed25519KeyPair::generate().and_then(|pair| pair.to_pkcs8v1()).map_err(library)?.as_ref().to_vec()
            }
            Algorithm::P256 => {
                let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).map_err(library)?;
                pair.to_pkcs8v1().map_err(library)?.as_ref().to_vec()
            }
        };
        Self::from_pkcs8(pkcs8)
    }

    /// Reads one PEM block `PRIVATE KEY` (PKCS#8, version 1 or 2).
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        Self::from_pkcs8(read_pem(pem, "PRIVATE KEY")?)
    }

    /// The key as PKCS#8 PEM.
    pub fn to_pem(&self) -> String {
        write_pem("PRIVATE KEY", &self.pkcs8)
    }

    /// Its public half.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs `message`.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        match &self.pair {
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::P256(pair) => {
                let signature = pair.sign(&SystemRandom::new(), message).map_err(|_unspecified| KeyError::Library)?;
                Ok(signature.as_ref().to_vec())
            }
        }
    }

    fn from_pkcs8(pkcs8: Vec<u8>) -> Result<Self, KeyError> {
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8) {
            let public = PublicKey::new(Algorithm::Ed25519, pair.public_key().as_ref().to_vec())?;
            return Ok(Self { pair: Pair::Ed25519(pair), pkcs8, public });
        }
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &pkcs8)
            .map_err(|_rejected| KeyError::Unsupported)?;
        let public = PublicKey::new(Algorithm::P256, pair.public_key().as_ref().to_vec())?;
        Ok(Self { pair: Pair::P256(pair), pkcs8, public })
    }
}

/// A public key.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    raw: Vec<u8>,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.algorithm, self.key_id())
    }
}

/// A signature that does not belong to the message and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature is wrong")]
pub struct BadSignature;

/// What stands before the raw key in a SubjectPublicKeyInfo (RFC 8410, RFC 5480).
const ED25519_SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

impl PublicKey {
    /// Reads one PEM block `PUBLIC KEY` (SubjectPublicKeyInfo).
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let der = read_pem(pem, "PUBLIC KEY")?;
        if let Some(raw) = der.strip_prefix(&ED25519_SPKI) {
            return Self::new(Algorithm::Ed25519, raw.to_vec());
        }
        let raw = der.strip_prefix(&P256_SPKI).ok_or(KeyError::Unsupported)?;
        Self::new(Algorithm::P256, raw.to_vec())
    }

    /// The key as SPKI PEM.
    pub fn to_pem(&self) -> String {
        write_pem("PUBLIC KEY", &self.to_der())
    }

    /// The key as SPKI DER.
    pub fn to_der(&self) -> Vec<u8> {
        let prefix: &[u8] = match self.algorithm {
            Algorithm::Ed25519 => &ED25519_SPKI,
            Algorithm::P256 => &P256_SPKI,
        };
        [prefix, &self.raw].concat()
    }

    /// SHA-256 of the SPKI DER.
    pub fn key_id(&self) -> Digest {
        Digest::of(&self.to_der())
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// 32 bytes for Ed25519, 65 for an uncompressed P-256 point.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Checks a signature: Ed25519 with S below the group order, ECDSA in DER.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let outcome = match self.algorithm {
            Algorithm::Ed25519 => UnparsedPublicKey::new(&ED25519, &self.raw).verify(message, signature),
            Algorithm::P256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.raw).verify(message, signature),
        };
        outcome.map_err(|_unspecified| BadSignature)
    }

    pub(crate) fn new(algorithm: Algorithm, raw: Vec<u8>) -> Result<Self, KeyError> {
        match algorithm {
            Algorithm::Ed25519 if raw.len() != 32 => Err(KeyError::Unsupported),
            Algorithm::Ed25519 if is_small_order(&raw) => Err(KeyError::Weak),
            Algorithm::P256 if raw.len() != 65 || raw.first() != Some(&4) => Err(KeyError::Unsupported),
            Algorithm::P256 => {
                let parsed = aws_lc_rs::signature::ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &raw);
                parsed.map_err(|_rejected| KeyError::Unsupported)?;
                Ok(Self { algorithm, raw })
            }
            Algorithm::Ed25519 => Ok(Self { algorithm, raw }),
        }
    }
}

/// The encodings of the eight points of small order, canonical or not, without the sign bit.
fn is_small_order(raw: &[u8]) -> bool {
    const Y: [&str; 7] = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];
    let mut bytes = [0u8; 32];
    for (to, from) in bytes.iter_mut().zip(raw) {
        *to = *from;
    }
    if let Some(last) = bytes.last_mut() {
        *last &= 0x7f;
    }
    let hex = Digest::from_bytes(bytes).hex();
    Y.contains(&hex.as_str())
}

fn read_pem(text: &str, label: &'static str) -> Result<Vec<u8>, KeyError> {
    let wrong = || KeyError::Pem { label };
    let body = text
        .trim()
        .strip_prefix(&format!("-----BEGIN {label}-----"))
        .and_then(|rest| rest.strip_suffix(&format!("-----END {label}-----")))
        .filter(|body| body.len() <= 8192)
        .ok_or_else(wrong)?;
    let body: String = body.split_ascii_whitespace().collect();
    STANDARD.decode(body).map_err(|_not_base64| wrong())
}

fn write_pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = tail;
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_pem_and_sign() {
        for algorithm in [Algorithm::Ed25519, Algorithm::P256] {
            let key = SigningKey::generate(algorithm).unwrap();
            let again = SigningKey::from_pem(&key.to_pem()).unwrap();
            let public = PublicKey::from_pem(&again.public().to_pem()).unwrap();
            assert_eq!(&public, key.public());
            let signature = again.sign(b"m").unwrap();
            assert_eq!(public.verify(b"m", &signature), Ok(()));
            assert_eq!(public.verify(b"n", &signature), Err(BadSignature));
            let mut bent = signature;
            bent[3] ^= 1;
            assert_eq!(public.verify(b"m", &bent), Err(BadSignature));
            assert!(!format!("{key:?}").contains("PRIVATE"));
        }
    }

    #[test]
    fn refuses_what_is_no_key() {
        for bad in [
            "",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----",
        ] {
            assert!(SigningKey::from_pem(bad).is_err());
        }
        let weak = PublicKey::new(Algorithm::Ed25519, vec![0; 32]);
        assert_eq!(weak, Err(KeyError::Weak));
    }
}
