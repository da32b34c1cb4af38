//! Tokens that an agent shows: who it is and what it may do, signed by a notary.
//!
//! A JSON Web Token (RFC 7519) as a compact JWS (RFC 7515) with ES256 (RFC 7518, 3.4). By hand, because `jsonwebtoken` brings another library
//! of cryptography beside `ring`, and a parser that takes the last of two equal names. Refuses every other algorithm before it looks at
//! anything else. Invariant: [`Claims`] that were read were signed by the given key and hold at the given moment. Page: `spec/token.md`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp};

use crate::keys::{Algorithm, KeyError, PublicKey};

/// Who issues tokens.
pub const ISSUER: &str = "aflock";
/// Longest token.
const MAX: usize = 64 << 10;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// [`ISSUER`].
    pub iss: String,
    /// The agent, as a SPIFFE id.
    pub sub: String,
    /// The session.
    pub aud: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub exp: i64,
    /// When it was issued.
    pub iat: i64,
    /// The session.
    pub jti: String,
    /// The agent, as a SPIFFE id.
    pub agent_id: String,
    /// The agent's identity (R21).
    pub identity_hash: Digest,
    /// The tools that its policies leave it.
    pub allowed_tools: Vec<String>,
    /// The tools that they name as denied.
    pub denied_tools: Vec<String>,
    /// The policy's limits, as it writes them.
    pub limits: Value,
    /// The policy.
    pub policy_digest: Digest,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    typ: Option<String>,
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// No compact JWS with the members that a token has.
    #[error("it is no token: three parts in base64url, a header and claims in JSON")]
    Malformed,
    /// Another algorithm.
    #[error("it is signed with another algorithm than ES256")]
    Algorithm,
    /// It is of another type, or says of none.
    #[error("its header has no `typ` that is `JWT`")]
    Type,
    /// It says of no key.
    #[error("its header has no `kid`, so that nobody can tell whose it is")]
    NoKey,
    /// Another key, as after a restart of the notary.
    #[error("it is signed with another key than the notary's: ask for a new one")]
    OtherKey,
    /// The signature does not hold.
    #[error("its signature is wrong")]
    Signature,
    /// Another issuer.
    #[error("another issued it")]
    Issuer,
    /// For another session.
    #[error("it is for another session")]
    Session,
    /// Its time is over.
    #[error("it expired: ask for a new one")]
    Expired,
    /// Its time has not come.
    #[error("it was issued in the future")]
    Early,
}

/// The key that signs tokens; it ends with its process.
pub struct TokenKey {
    pair: EcdsaKeyPair,
    public: PublicKey,
}

impl TokenKey {
    /// A new key.
    pub fn generate() -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let pkcs8 = pkcs8.map_err(|_unspecified| KeyError::Library)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
        let pair = pair.map_err(|_rejected| KeyError::Unsupported)?;
        let public = PublicKey::new(Algorithm::P256, pair.public_key().as_ref().to_vec())?;
        Ok(Self { pair, public })
    }

    /// Its public half.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The token that says so.
    pub fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        let header = Header {
            alg: "ES256".to_owned(),
            kid: Some(self.public.key_id().to_string()),
            typ: Some("JWT".to_owned()),
        };
        let part = |text: String| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", part(json::to_canonical(&header)), part(json::to_canonical(claims)));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_unspecified| KeyError::Library)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())))
    }
}

/// Reads a token under a key, for a session, at a moment.
pub fn verify(token: &str, key: &PublicKey, session: &str, now: Timestamp) -> Result<Claims, TokenError> {
    let claims = read(token, key)?;
    let seconds = now.millis().div_euclid(1000);
    match () {
        () if claims.iss != ISSUER => Err(TokenError::Issuer),
        () if claims.aud != [session] || claims.jti != session => Err(TokenError::Session),
        () if claims.iat > seconds => Err(TokenError::Early),
        () if claims.exp <= seconds => Err(TokenError::Expired),
        () => Ok(claims),
    }
}

/// Reads a token that the key signed, whatever it says.
fn read(token: &str, key: &PublicKey) -> Result<Claims, TokenError> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenError::Malformed);
    };
    if token.len() > MAX {
        return Err(TokenError::Malformed);
    }
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_not_base64| TokenError::Malformed);
    let named: Header = json::from_slice(&decode(header)?).map_err(|_not_json| TokenError::Malformed)?;
    if named.alg != "ES256" {
        return Err(TokenError::Algorithm);
    }
    if named.typ.as_deref() != Some("JWT") {
        return Err(TokenError::Type);
    }
    match named.kid {
        None => return Err(TokenError::NoKey),
        Some(kid) if kid != key.key_id().to_string() => return Err(TokenError::OtherKey),
        Some(_) => {}
    }
    let signed = token.get(..header.len() + 1 + claims.len()).unwrap_or_default();
    let signature = decode(signature)?;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.raw())
        .verify(signed.as_bytes(), &signature)
        .map_err(|_unspecified| TokenError::Signature)?;
    json::from_slice(&decode(claims)?).map_err(|_not_claims| TokenError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        let digest = Digest::of(b"x");
        Claims {
            iss: ISSUER.to_owned(),
            sub: "spiffe://writ.local/agent/m/1/a".to_owned(),
            aud: vec!["s".to_owned()],
            exp: 200,
            iat: 100,
            jti: "s".to_owned(),
            agent_id: "spiffe://writ.local/agent/m/1/a".to_owned(),
            identity_hash: digest,
            allowed_tools: vec!["Read".to_owned()],
            denied_tools: Vec::new(),
            limits: Value::Null,
            policy_digest: digest,
        }
    }

    #[test]
    fn each_failure_has_its_own_reason() {
        let (key, other) = (TokenKey::generate().unwrap(), TokenKey::generate().unwrap());
        let at = Timestamp::from_millis;
        let check = |token: &str| verify(token, key.public(), "s", at(150_000));
        let token = key.sign(&claims()).unwrap();
        assert_eq!(check(&token), Ok(claims()));
        assert_eq!(verify(&token, key.public(), "t", at(150_000)), Err(TokenError::Session));
        assert_eq!(verify(&token, key.public(), "s", at(200_000)), Err(TokenError::Expired));
        assert_eq!(verify(&token, key.public(), "s", at(99_999)), Err(TokenError::Early));
        assert_eq!(verify(&token, other.public(), "s", at(150_000)), Err(TokenError::OtherKey));
        let foreign = key.sign(&Claims { iss: "other".to_owned(), ..claims() }).unwrap();
        assert_eq!(check(&foreign), Err(TokenError::Issuer));
        let moved = key.sign(&Claims { jti: "t".to_owned(), ..claims() }).unwrap();
        assert_eq!(check(&moved), Err(TokenError::Session));
        let parts: Vec<&str> = token.split('.').collect();
        let header = |alg: &str| {
            let header = format!(r#"{{"alg":"{alg}","kid":"{}","typ":"JWT"}}"#, key.public().key_id());
            format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(header), parts[1], parts[2])
        };
        for alg in ["none", "HS256", "RS256", "es256"] {
            assert_eq!(check(&header(alg)), Err(TokenError::Algorithm), "{alg}");
        }
        for (header, error) in [
            (r#"{"alg":"none"}"#, TokenError::Algorithm),
            (r#"{"alg":"HS256","typ":"JWT"}"#, TokenError::Algorithm),
            (r#"{"alg":"ES256","typ":"JWT"}"#, TokenError::NoKey),
            (r#"{"alg":"ES256","kid":"x"}"#, TokenError::Type),
            (r#"{"alg":"ES256","kid":"x","typ":"JWT"}"#, TokenError::OtherKey),
        ] {
            let token = format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(header), parts[1], parts[2]);
            assert_eq!(check(&token), Err(error), "{header}");
        }
        assert_eq!(check(&format!("{}.{}.", parts[0], parts[1])), Err(TokenError::Signature));
        let bent = other.sign(&claims()).unwrap();
        let bent = format!("{}.{}.{}", parts[0], parts[1], bent.split('.').nth(2).unwrap());
        assert_eq!(check(&bent), Err(TokenError::Signature));
        for bad in ["", "a.b", "a.b.c", "a.b.c.d", &format!("{token}="), &format!("{token}.x")] {
            assert_eq!(check(bad), Err(TokenError::Malformed), "{bad}");
        }
        let twice = format!(r#"{{"alg":"none","alg":"ES256","kid":"{}","typ":"JWT"}}"#, key.public().key_id());
        let twice = format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(twice), parts[1], parts[2]);
        assert_eq!(check(&twice), Err(TokenError::Malformed));
    }
}
