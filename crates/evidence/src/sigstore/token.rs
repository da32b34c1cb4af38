//! A token in which an OIDC issuer says who somebody is, as a certificate authority takes it.
//!
//! Owns what is read of it before it is sent. Checks no signature: the authority does. Refuses a token that has expired, and an address that
//! its issuer has not verified, since no authority would take either. Invariant: no error and no `Debug` output holds any of its text.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use writ_core::Timestamp;
use writ_core::json::{self, Limits};
use zeroize::Zeroizing;

/// Longest token.
const MAX: usize = 64 << 10;

/// A token in which an OIDC issuer says who somebody is.
pub struct IdentityToken {
    text: Zeroizing<String>,
    subject: String,
}

/// Why a token is none, or is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityTokenError {
    /// No JSON Web Token with an issuer's claims.
    #[error("it is no identity token: three parts in base64url, with the claims `iss`, `exp` and `sub` or `email`")]
    Malformed,
    /// It is over.
    #[error("the identity token expired at {0}: get a new one")]
    Expired(Timestamp),
    /// The issuer does not vouch for the address.
    #[error("the identity token's issuer has not verified its `email`, so that no authority takes it")]
    Unverified,
}

#[derive(Deserialize)]
struct Claims {
    #[serde(rename = "iss")]
    issuer: String,
    #[serde(rename = "exp")]
    expires: i64,
    #[serde(rename = "sub", default)]
    subject: String,
    #[serde(default)]
    email: String,
    /// Some issuers write it as a text.
    #[serde(rename = "email_verified", default)]
    verified: Option<Flag>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Flag {
    Is(bool),
    Said(String),
}

impl Flag {
    fn holds(&self) -> bool {
        match self {
            Self::Is(so) => *so,
            Self::Said(text) => text == "true",
        }
    }
}

impl fmt::Debug for IdentityToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityToken")
    }
}

impl IdentityToken {
    /// Reads one, which has to hold at this moment.
    pub fn read(text: &str, now: Timestamp) -> Result<Self, IdentityTokenError> {
        let (malformed, text) = (IdentityTokenError::Malformed, text.trim());
        let mut parts = text.split('.');
        let (Some(_header), Some(claims), Some(_signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed);
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if text.len() > MAX || !text.bytes().all(plain) {
            return Err(malformed);
        }
        let claims = Zeroizing::new(URL_SAFE_NO_PAD.decode(claims).map_err(|_not_base64| malformed.clone())?);
        let claims: Claims =
            json::from_slice_with(&claims, Limits::FOREIGN).map_err(|_not_claims| malformed.clone())?;
        let ends = Timestamp::from_millis(claims.expires.saturating_mul(1000));
        if ends <= now {
            return Err(IdentityTokenError::Expired(ends));
        }
        if !claims.email.is_empty() && !claims.verified.is_some_and(|flag| flag.holds()) {
            return Err(IdentityTokenError::Unverified);
        }
        // As cosign has it: whoever has an address is known by that.
        let subject = if claims.email.is_empty() { claims.subject } else { claims.email };
        if claims.issuer.is_empty() || subject.is_empty() {
            return Err(malformed);
        }
        Ok(Self { text: Zeroizing::new(text.to_owned()), subject })
    }

    /// What the authority is sent.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whom it names: what a new key signs, so that the authority sees it is the caller's.
    pub fn subject(&self) -> &str {
        &self.subject
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{}", part(r#"{"alg":"RS256"}"#), part(claims), part("signature"))
    }

    #[test]
    fn is_known_by_address_or_subject() {
        let now = Timestamp::from_millis(1_000_000);
        for (claims, expected) in [
            (r#"{"iss":"i","exp":1001,"sub":"s"}"#, Ok("s")),
            (r#"{"iss":"i","exp":1001,"sub":"s","email":"e","email_verified":true}"#, Ok("e")),
            (r#"{"iss":"i","exp":1001,"email":"e","email_verified":"true"}"#, Ok("e")),
            (r#"{"iss":"i","exp":1001,"sub":"s","email":"e"}"#, Err(IdentityTokenError::Unverified)),
            (
                r#"{"iss":"i","exp":1001,"sub":"s","email":"e","email_verified":false}"#,
                Err(IdentityTokenError::Unverified),
            ),
            (
                r#"{"iss":"i","exp":1001,"sub":"s","email":"e","email_verified":"no"}"#,
                Err(IdentityTokenError::Unverified),
            ),
            (r#"{"iss":"i","exp":1000,"sub":"s"}"#, Err(IdentityTokenError::Expired(now))),
            (r#"{"iss":"i","exp":1001}"#, Err(IdentityTokenError::Malformed)),
            (r#"{"iss":"","exp":1001,"sub":"s"}"#, Err(IdentityTokenError::Malformed)),
            (r#"{"iss":"i","sub":"s"}"#, Err(IdentityTokenError::Malformed)),
            (r#"{"iss":"i","exp":1001,"sub":"s","sub":"t"}"#, Err(IdentityTokenError::Malformed)),
        ] {
            let read = IdentityToken::read(&(token(claims) + "\n"), now);
            assert_eq!(read.as_ref().map(IdentityToken::subject).map_err(Clone::clone), expected, "{claims}");
        }
    }

    #[test]
    fn refuses_what_is_no_token_and_shows_none() {
        let (now, good) = (Timestamp::from_millis(0), token(r#"{"iss":"i","exp":1001,"sub":"s"}"#));
        let token = IdentityToken::read(&good, now).unwrap();
        assert_eq!((token.text(), format!("{token:?}").as_str()), (good.as_str(), "IdentityToken"));
        for bad in ["", "a.b", "a.b.c", "a.b.c.d", &format!("{good}.x"), &good.replace('.', " . ")] {
            assert_eq!(IdentityToken::read(bad, now).unwrap_err(), IdentityTokenError::Malformed, "{bad}");
        }
    }
}
