//! The cryptography that the Sigstore library asks for, answered by `ring`: one stack for all of Writ.
//!
//! Owns the translation of its schemes. Refuses ML-DSA, which `ring` has not, and making signatures. The library checks signatures over
//! digests; `ring` checks them over messages alone, so the message is held beside the check and must have that very digest: to check a
//! message's signature and its digest's is the same. Page: `spec/signing.md`.

use std::cell::RefCell;
use std::sync::Once;

use ring::digest;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};
use sigstore_verify::crypto::{CryptoProvider, Error, HashContext, SigningScheme, install_default_provider};
use sigstore_verify::types::HashAlgorithm;

thread_local! {
    /// The message whose signature is being checked on this thread.
    static MESSAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
struct Ring;

static RING: Ring = Ring;
static INSTALLED: Once = Once::new();

/// Runs a check of signatures over `message`.
pub fn with_message<T>(message: &[u8], check: impl FnOnce() -> T) -> T {
    // Nobody else in this process has one; if somebody had, theirs would answer.
    INSTALLED.call_once(|| {
        let _another = install_default_provider(&RING);
    });
    MESSAGE.with_borrow_mut(|held| {
        held.clear();
        held.extend_from_slice(message);
    });
    let out = check();
    MESSAGE.with_borrow_mut(Vec::clear);
    out
}

struct Context(digest::Context);

impl HashContext for Context {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

fn hash(algorithm: HashAlgorithm) -> Result<&'static digest::Algorithm, Error> {
    match algorithm {
        HashAlgorithm::Sha2256 => Ok(&digest::SHA256),
        HashAlgorithm::Sha2384 => Ok(&digest::SHA384),
        HashAlgorithm::Sha2512 => Ok(&digest::SHA512),
        _ => Err(Error::UnsupportedAlgorithm("a digest other than SHA-256, SHA-384 and SHA-512".to_owned())),
    }
}

fn algorithm(scheme: SigningScheme) -> Result<&'static dyn VerificationAlgorithm, Error> {
    Ok(match scheme {
        SigningScheme::EcdsaP256Sha256 => &ECDSA_P256_SHA256_ASN1,
        SigningScheme::EcdsaP256Sha384 => &ECDSA_P256_SHA384_ASN1,
        SigningScheme::EcdsaP384Sha256 => &ECDSA_P384_SHA256_ASN1,
        SigningScheme::EcdsaP384Sha384 => &ECDSA_P384_SHA384_ASN1,
        SigningScheme::Ed25519 => &ED25519,
        SigningScheme::RsaPssSha256 => &RSA_PSS_2048_8192_SHA256,
        SigningScheme::RsaPssSha384 => &RSA_PSS_2048_8192_SHA384,
        SigningScheme::RsaPssSha512 => &RSA_PSS_2048_8192_SHA512,
        SigningScheme::RsaPkcs1Sha256 => &RSA_PKCS1_2048_8192_SHA256,
        SigningScheme::RsaPkcs1Sha384 => &RSA_PKCS1_2048_8192_SHA384,
        SigningScheme::RsaPkcs1Sha512 => &RSA_PKCS1_2048_8192_SHA512,
        SigningScheme::MlDsa44 | SigningScheme::MlDsa65 | SigningScheme::MlDsa87 => {
            return Err(Error::UnsupportedAlgorithm("ML-DSA".to_owned()));
        }
        _ => return Err(Error::UnsupportedAlgorithm("a scheme that is not known here".to_owned())),
    })
}

impl CryptoProvider for Ring {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>, Error> {
        Ok(Box::new(Context(digest::Context::new(hash(algorithm)?))))
    }

    fn verify_raw(&self, scheme: SigningScheme, key: &[u8], data: &[u8], signature: &[u8]) -> Result<(), Error> {
        let checked = UnparsedPublicKey::new(algorithm(scheme)?, key).verify(data, signature);
        checked.map_err(|_unspecified| Error::Verification(format!("{} signature invalid", scheme.name())))
    }

    fn verify_prehashed(&self, scheme: SigningScheme, key: &[u8], given: &[u8], signature: &[u8]) -> Result<(), Error> {
        let of = scheme.hash_algorithm().ok_or_else(|| Error::UnsupportedAlgorithm("no prehashed mode".to_owned()))?;
        let of = hash(of)?;
        MESSAGE.with_borrow(|message| {
            if digest::digest(of, message).as_ref() != given {
                return Err(Error::Verification("the digest is not that of the signed bytes".to_owned()));
            }
            self.verify_raw(scheme, key, message, signature)
        })
    }
}
