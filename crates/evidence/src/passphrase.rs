//! A passphrase as it is kept: stretched with PBKDF2-HMAC-SHA256 (RFC 8018) under a salt of its own.
//!
//! Owns the one-object JSON that a passphrase is checked against. Refuses short ones. Invariant: nothing kept gives the
//! passphrase back short of guessing it.

use std::num::NonZeroU32;

use ring::pbkdf2;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use writ_core::json;

/// Rounds for a new passphrase (OWASP's number for this function).
const ROUNDS: u32 = 600_000;
/// Fewest characters.
const SHORTEST: usize = 8;
/// Most rounds that are computed for somebody who asks.
const MOST_ROUNDS: u32 = 50_000_000;
/// Bytes of what a passphrase is stretched to.
const CHECK: usize = 32;

/// Why a passphrase cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PassphraseError {
    /// Fewer than eight characters.
    #[error("a passphrase has at least {SHORTEST} characters")]
    Short,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    Random,
}

/// A passphrase, stretched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passphrase {
    kdf: Kdf,
    rounds: NonZeroU32,
    #[serde(with = "hex")]
    salt: Vec<u8>,
    #[serde(with = "hex")]
    check: Vec<u8>,
}

/// How it is stretched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kdf {
    #[serde(rename = "pbkdf2-hmac-sha256")]
    Pbkdf2HmacSha256,
}

impl Passphrase {
    /// Stretches a new passphrase.
    pub fn new(text: &str) -> Result<Self, PassphraseError> {
        if text.chars().count() < SHORTEST {
            return Err(PassphraseError::Short);
        }
        let rounds = NonZeroU32::new(ROUNDS).unwrap_or(NonZeroU32::MIN);
        Self::stretched(text, rounds)
    }

    fn stretched(text: &str, rounds: NonZeroU32) -> Result<Self, PassphraseError> {
        let (mut salt, mut check) = (vec![0; 16], vec![0; CHECK]);
        SystemRandom::new().fill(&mut salt).map_err(|_no_bytes| PassphraseError::Random)?;
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, text.as_bytes(), &mut check);
        Ok(Self { kdf: Kdf::Pbkdf2HmacSha256, rounds, salt, check })
    }

    /// Whether this is the text it was made of.
    pub fn is(&self, text: &str) -> bool {
        pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, self.rounds, &self.salt, text.as_bytes(), &self.check).is_ok()
    }

    /// As it is kept.
    pub fn to_json(&self) -> String {
        json::compact(&json::to_value(self))
    }

    /// Reads what is kept; `None` for anything else.
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        let kept: Self = json::from_slice(bytes).ok()?;
        (kept.rounds.get() <= MOST_ROUNDS && kept.check.len() == CHECK).then_some(kept)
    }
}

/// Bytes as hexadecimal digits.
mod hex {
    use writ_core::json;

    pub fn serialize<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        json::read_text(deserializer, |text| unhex(text).ok_or("not pairs of hexadecimal digits"))
    }

    fn unhex(text: &str) -> Option<Vec<u8>> {
        let digits: Vec<u8> =
            text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect::<Option<_>>()?;
        digits.chunks(2).map(|pair| if let [high, low] = pair { Some(high << 4 | low) } else { None }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_own_text_alone() {
        let kept = Passphrase::stretched("correct horse", NonZeroU32::new(10).unwrap()).unwrap();
        let again = Passphrase::from_json(kept.to_json().as_bytes()).unwrap();
        assert!(again.is("correct horse") && !again.is("correct hors") && !again.is(""));
        assert!(!kept.to_json().contains("horse"));
        assert_eq!(Passphrase::new("short"), Err(PassphraseError::Short));
    }

    #[test]
    fn refuses_what_it_did_not_write() {
        let kept = Passphrase::stretched("correct horse", NonZeroU32::new(10).unwrap()).unwrap().to_json();
        for bad in [
            "",
            "{}",
            &kept.replace("pbkdf2-hmac-sha256", "none"),
            &kept.replace("\"rounds\":10", "\"rounds\":0"),
            &kept.replace("\"check\":\"", "\"check\":\"zz"),
        ] {
            assert_eq!(Passphrase::from_json(bad.as_bytes()), None, "{bad}");
        }
    }
}
