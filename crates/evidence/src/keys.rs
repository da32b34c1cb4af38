//! Signing keys: Ed25519 and ECDSA P-256, PKCS#8 and SPKI in PEM.
//!
//! Reads what OpenSSL makes and writes what OpenSSL reads. Refuses Ed25519 keys of small order, for which anyone can make
//! signatures. Invariant: no error and no `Debug` output holds private bytes. Page: `spec/signing.md`.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::agreement::{self, ECDH_P256, EphemeralPrivateKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    UnparsedPublicKey,
};
use writ_core::Digest;

/// Largest PEM text.
const MAX_PEM: usize = 8192;

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
    /// Not exactly one PEM block of the wanted kind, in lines of 64 characters.
    #[error("expected one PEM block `{label}` and nothing else{}", conversion(label))]
    Pem {
        /// `PRIVATE KEY` or `PUBLIC KEY`.
        label: &'static str,
    },
    /// Neither Ed25519 nor ECDSA P-256, or damaged.
    #[error("not an Ed25519 or ECDSA P-256 key (PKCS#8 or SPKI)")]
    Unsupported,
    /// An Ed25519 key of small order, or one not in its only canonical form.
    #[error("a weak Ed25519 key: anyone can make signatures for it")]
    Weak,
    /// The random number generator or the signing itself failed.
    #[error("the cryptographic library failed")]
    Library,
    /// What keeps the key does not sign.
    #[error("the key's keeper does not sign: {why}")]
    Keeper {
        /// Why.
        why: String,
    },
}

/// How to make the wanted form out of the others that are around.
fn conversion(label: &str) -> &'static str {
    if label == "PRIVATE KEY" { ": `openssl pkcs8 -topk8 -nocrypt` makes it from other private keys" } else { "" }
}

/// Fills a seed with random bytes where it is.
pub fn fill_seed(seed: &mut [u8; SEED]) -> Result<(), KeyError> {
    SystemRandom::new().fill(seed).map_err(|_unspecified| KeyError::Library)
}

/// The public half of the Ed25519 key that a seed makes.
pub fn seed_public(seed: &[u8; SEED]) -> Result<PublicKey, KeyError> {
    public_of(&Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_rejected| KeyError::Unsupported)?)
}

/// A signature by the Ed25519 key that a seed makes. Nothing of the key is put on the heap.
pub fn seed_sign(seed: &[u8; SEED], message: &[u8]) -> Result<Vec<u8>, KeyError> {
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_rejected| KeyError::Unsupported)?;
    Ok(pair.sign(message).as_ref().to_vec())
}

fn public_of(pair: &Ed25519KeyPair) -> Result<PublicKey, KeyError> {
    PublicKey::new(Algorithm::Ed25519, pair.public_key().as_ref().to_vec())
}

/// 128 random bits.
pub fn random() -> Result<u128, KeyError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_unspecified| KeyError::Library)?;
    Ok(u128::from_be_bytes(bytes))
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
        let random = SystemRandom::new();
        match algorithm {
            Algorithm::Ed25519 => {
                let mut seed = [0; SEED];
                fill_seed(&mut seed)?;
                Self::ed25519(&seed)
            }
            Algorithm::P256 => {
                let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random);
                Self::p256(pkcs8.map_err(|_unspecified| KeyError::Library)?.as_ref())
            }
        }
    }

    /// Reads one PEM block `PRIVATE KEY` (PKCS#8, of version 1 or 2 for Ed25519, 1 for P-256).
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let der = read_pem(pem, "PRIVATE KEY")?;
        // The two versions differ in the first bytes and behind the seed, and the library takes no others.
        if Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).is_ok() {
            let seed = der.get(ED25519_PKCS8.len()..).and_then(<[u8]>::first_chunk);
            return Self::ed25519(seed.ok_or(KeyError::Unsupported)?);
        }
        Self::p256(&der)
    }

    /// The key as PKCS#8 PEM, version 1, which every OpenSSL reads.
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

    fn ed25519(seed: &[u8; SEED]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_rejected| KeyError::Unsupported)?;
        let public = public_of(&pair)?;
        Ok(Self { pair: Pair::Ed25519(pair), pkcs8: [ED25519_PKCS8.as_slice(), seed].concat(), public })
    }

    fn p256(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &SystemRandom::new());
        let pair = pair.map_err(|_rejected| KeyError::Unsupported)?;
        let public = PublicKey::new(Algorithm::P256, pair.public_key().as_ref().to_vec())?;
        Ok(Self { pair: Pair::P256(pair), pkcs8: pkcs8.to_vec(), public })
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

/// Bytes of an Ed25519 seed.
pub const SEED: usize = 32;
/// What stands before the seed in PKCS#8, version 1 (RFC 8410).
const ED25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// What stands before the raw key in a SubjectPublicKeyInfo (RFC 8410, RFC 5480).
const ED25519_SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

impl PublicKey {
    /// Reads one PEM block `PUBLIC KEY` (SubjectPublicKeyInfo).
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        Self::from_der(&read_pem(pem, "PUBLIC KEY")?)
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

    /// Checks a signature: Ed25519 strictly (RFC 8032 with S below the group order, and no point of small order, so that
    /// one signature cannot stand for two messages or keys), ECDSA in ASN.1 DER.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let outcome = match self.algorithm {
            Algorithm::Ed25519 if signature.get(..32).is_none_or(is_weak) => return Err(BadSignature),
            Algorithm::Ed25519 => UnparsedPublicKey::new(&ED25519, &self.raw).verify(message, signature),
            Algorithm::P256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.raw).verify(message, signature),
        };
        outcome.map_err(|_unspecified| BadSignature)
    }

    /// Reads SPKI DER.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        if let Some(raw) = der.strip_prefix(&ED25519_SPKI) {
            return Self::new(Algorithm::Ed25519, raw.to_vec());
        }
        let raw = der.strip_prefix(&P256_SPKI).ok_or(KeyError::Unsupported)?;
        Self::new(Algorithm::P256, raw.to_vec())
    }

    pub(crate) fn new(algorithm: Algorithm, raw: Vec<u8>) -> Result<Self, KeyError> {
        match algorithm {
            Algorithm::Ed25519 if raw.len() != 32 => Err(KeyError::Unsupported),
            Algorithm::Ed25519 if is_weak(&raw) => Err(KeyError::Weak),
            Algorithm::P256 if raw.len() != 65 || raw.first() != Some(&4) => Err(KeyError::Unsupported),
            Algorithm::P256 if !is_on_curve(&raw)? => Err(KeyError::Unsupported),
            Algorithm::Ed25519 | Algorithm::P256 => Ok(Self { algorithm, raw }),
        }
    }
}

/// Whether it is a point of P-256: the library looks when it agrees on a secret with it.
fn is_on_curve(raw: &[u8]) -> Result<bool, KeyError> {
    let ours = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new());
    let ours = ours.map_err(|_unspecified| KeyError::Library)?;
    let theirs = agreement::UnparsedPublicKey::new(&ECDH_P256, raw);
    Ok(agreement::agree_ephemeral(ours, &theirs, |_secret| ()).is_ok())
}

/// Whether these 32 bytes encode a point of small order, or a point in another than its canonical form.
fn is_weak(raw: &[u8]) -> bool {
    /// The y coordinates of the eight points of small order, little-endian.
    const SMALL_ORDER: [&str; 5] = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];
    let Ok(mut y) = <[u8; 32]>::try_from(raw) else { return true };
    let [first, middle @ .., last] = &mut y;
    // The last byte's high bit is the sign of x; the field's prime is 2^255 − 19.
    *last &= 0x7f;
    let beyond_prime = *last == 0x7f && *first >= 0xed && middle.iter().all(|&byte| byte == 0xff);
    beyond_prime || SMALL_ORDER.contains(&Digest::from_bytes(y).hex().as_str())
}

/// Reads a block exactly as [`write_pem`] lays it out; line ends of either kind, white space around it ignored.
fn read_pem(text: &str, label: &'static str) -> Result<Vec<u8>, KeyError> {
    let wrong = || KeyError::Pem { label };
    if text.len() > MAX_PEM {
        return Err(wrong());
    }
    let text = text.trim().replace("\r\n", "\n");
    let body = text
        .strip_prefix(&format!("-----BEGIN {label}-----\n"))
        .and_then(|rest| rest.strip_suffix(&format!("\n-----END {label}-----")))
        .ok_or_else(wrong)?;
    let der = STANDARD.decode(body.replace('\n', "")).map_err(|_not_base64| wrong())?;
    if write_pem(label, &der).trim_end() == text { Ok(der) } else { Err(wrong()) }
}

pub(crate) fn write_pem(label: &str, der: &[u8]) -> String {
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
        let good = SigningKey::generate(Algorithm::Ed25519).unwrap().to_pem();
        let body = good.lines().nth(1).unwrap();
        let (front, back) = body.split_at(8);
        let block = |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        assert!(SigningKey::from_pem(&block("PRIVATE KEY", body)).is_ok());
        assert!(SigningKey::from_pem(&good.replace('\n', "\r\n")).is_ok());
        for bad in [
            String::new(),
            block("PRIVATE KEY", "AAAA"),
            block("PRIVATE KEY", "!"),
            block("PRIVATE KEY", ""),
            block("EC PRIVATE KEY", body),
            block("ENCRYPTED PRIVATE KEY", body),
            block("PUBLIC KEY", body),
            block("PRIVATE KEY", &format!("{body} ")),
            block("PRIVATE KEY", &format!("{body}\n\n")),
            block("PRIVATE KEY", &format!("{front}\n{back}")),
            format!("{good}{good}"),
            format!("key:\n{good}"),
            good.replace("-----END", "----END"),
        ] {
            let error = SigningKey::from_pem(&bad).unwrap_err();
            assert!(!error.to_string().contains(body.get(30..40).unwrap()), "{error}");
        }
    }

    /// RFC 8032, section 7.1, test 2; then the same signature with S + L, which naive verifiers take too.
    #[test]
    fn ed25519_is_strict() {
        let digit = |digit: u8| u8::try_from(char::from(digit).to_digit(16).unwrap()).unwrap();
        let bytes = |hex: &str| -> Vec<u8> {
            hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
        };
        let key = bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        let r = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da";
        let s = "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        let s_plus_l = "f52db7415978abc61b2c2eb6aeebfca0387b2eaeb4302aeeb00d291612bb0c10";
        let key = PublicKey::new(Algorithm::Ed25519, key).unwrap();
        assert_eq!(key.verify(b"\x72", &bytes(&format!("{r}{s}"))), Ok(()));
        assert_eq!(key.verify(b"\x72", &bytes(&format!("{r}{s_plus_l}"))), Err(BadSignature));
        assert_eq!(key.verify(b"\x72", &bytes(r)), Err(BadSignature));
        let identity = format!("01{}", "00".repeat(31));
        assert_eq!(key.verify(b"\x72", &bytes(&format!("{identity}{}", "00".repeat(32)))), Err(BadSignature));
        // Small order, its other sign, and y = p and p + 3, which are 0 and 3 in another form.
        for weak in [
            "00".repeat(32),
            identity,
            format!("{}80", "00".repeat(31)),
            format!("ed{}7f", "ff".repeat(30)),
            format!("f0{}ff", "ff".repeat(30)),
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa".to_owned(),
        ] {
            assert_eq!(PublicKey::new(Algorithm::Ed25519, bytes(&weak)), Err(KeyError::Weak), "{weak}");
        }
    }

    /// A point that is not on the curve, and one in the compressed form.
    #[test]
    fn p256_points_are_checked() {
        let good = SigningKey::generate(Algorithm::P256).unwrap().public().raw().to_vec();
        let mut off = good.clone();
        off[64] ^= 1;
        assert_eq!(PublicKey::new(Algorithm::P256, off), Err(KeyError::Unsupported));
        assert_eq!(PublicKey::new(Algorithm::P256, [&[2], &good[1..33]].concat()), Err(KeyError::Unsupported));
    }
}
