//! A passphrase as it is kept: stretched with PBKDF2-HMAC-SHA256 (RFC 8018) under a salt of its own.
//!
//! Owns the one-object JSON that a passphrase is checked against. Refuses short ones. Invariant: nothing kept gives the
//! passphrase back short of guessing it.

use std::num::NonZeroU32;

use ring::pbkdf2;
use ring::rand::{SecureRandom, SystemRandom};
use writ_core::json::{self, Object, Value};

/// Rounds for a new passphrase (OWASP's number for this function).
const ROUNDS: u32 = 600_000;
/// Fewest characters.
const SHORTEST: usize = 8;
const KDF: &str = "pbkdf2-hmac-sha256";

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passphrase {
    rounds: NonZeroU32,
    salt: Vec<u8>,
    check: Vec<u8>,
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
        let (mut salt, mut check) = (vec![0; 16], vec![0; 32]);
        SystemRandom::new().fill(&mut salt).map_err(|_no_bytes| PassphraseError::Random)?;
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, text.as_bytes(), &mut check);
        Ok(Self { rounds, salt, check })
    }

    /// Whether this is the text it was made of.
    pub fn is(&self, text: &str) -> bool {
        pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, self.rounds, &self.salt, text.as_bytes(), &self.check).is_ok()
    }

    /// As it is kept.
    pub fn to_json(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let mut out = Object::new();
        out.push("kdf", Value::from(KDF));
        out.push("rounds", Value::from(u64::from(self.rounds.get())));
        out.push("salt", Value::from(hex(&self.salt)));
        out.push("check", Value::from(hex(&self.check)));
        json::compact(&Value::Object(out))
    }

    /// Reads what is kept; `None` for anything else.
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        let value = json::parse(bytes).ok()?;
        let text = |name| value.get(name).and_then(Value::as_str);
        let rounds = value.get("rounds").and_then(Value::as_u64).and_then(|rounds| u32::try_from(rounds).ok())?;
        if text("kdf") != Some(KDF) || rounds > 50_000_000 {
            return None;
        }
        let (salt, check) = (unhex(text("salt")?)?, unhex(text("check")?)?);
        (check.len() == 32).then_some(Self { rounds: NonZeroU32::new(rounds)?, salt, check })
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect::<Option<_>>()?;
    digits.chunks(2).map(|pair| if let [high, low] = pair { Some(high << 4 | low) } else { None }).collect()
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
            &kept.replace(KDF, "none"),
            &kept.replace("\"rounds\":10", "\"rounds\":0"),
            &kept.replace("\"check\":\"", "\"check\":\"zz"),
        ] {
            assert_eq!(Passphrase::from_json(bad.as_bytes()), None, "{bad}");
        }
    }
}
