//! A statement in a signed envelope.
//!
//! Owns the way from a statement to an envelope and back. Refuses a payload that is not called a statement, whatever its bytes.
//! Invariant: a predicate whose signatures nobody checked is handed out by [`parse`] and [`Envelope::unchecked_statement`] alone.
//! Page: `spec/signing.md`.

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use writ_core::json::{self, FormatError, Integers, Limits};

use super::statement::{PAYLOAD_TYPE, Statement};
use crate::custody::Signs;
use crate::dsse::{Envelope, Verified, VerifyError};
use crate::keys::{KeyError, PublicKey};

/// What a statement may ask of the parser. Others write predicates too: integers as their canonical form is.
const LIMITS: Limits = Limits { bytes: 16 << 20, depth: 64, integers: Integers::Canonical };

/// Why an envelope's statement cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// The envelope holds something else.
    #[error("the envelope holds `{found}`, not a statement (`{PAYLOAD_TYPE}`)")]
    OtherPayload {
        /// Its payload type.
        found: String,
    },
    /// The payload is no statement, or its predicate is not of the wanted kind.
    #[error("not an in-toto statement: {0}")]
    Format(#[from] FormatError),
    /// It speaks of something else than what was asked for.
    #[error("the statement is a `{found}`, not a `{wanted}`")]
    OtherPredicate {
        /// Its predicate type.
        found: String,
        /// The one that was asked for.
        wanted: String,
    },
    /// Its signatures do not hold.
    #[error(transparent)]
    Signature(#[from] VerifyError),
}

/// Signs a statement, in its canonical form, with every key.
pub fn sign<P: Serialize, S: Signs + ?Sized>(statement: &Statement<P>, keys: &[&S]) -> Result<Envelope, KeyError> {
    Envelope::sign(PAYLOAD_TYPE, json::to_canonical(statement).as_bytes(), keys)
}

/// Reads a statement's bytes, which nobody has checked.
pub fn parse<P: DeserializeOwned>(payload: &[u8]) -> Result<Statement<P>, FormatError> {
    json::from_slice_with(payload, LIMITS)
}

impl Envelope {
    /// The predicate's type, as the envelope says it: nobody has checked its signatures.
    pub fn statement_type(&self) -> Result<String, StatementError> {
        let statement: Statement<IgnoredAny> = self.unchecked_statement()?;
        Ok(statement.predicate_type().to_owned())
    }

    /// The statement in it, whose signatures these keys made, as [`Envelope::verify`] checks them.
    pub fn verify_statement<P: DeserializeOwned>(
        &self,
        keys: &[PublicKey],
    ) -> Result<Verified<Statement<P>>, StatementError> {
        self.verify(keys)?.try_map(|_payload| self.unchecked_statement())
    }

    /// The same for a statement that the Go aflock signed (R2): for importing alone.
    pub fn verify_legacy_go_statement<P: DeserializeOwned>(
        &self,
        keys: &[PublicKey],
    ) -> Result<Verified<Statement<P>>, StatementError> {
        self.verify_legacy_go(keys)?.try_map(|_payload| self.unchecked_statement())
    }

    /// The same, of one type of predicate.
    pub fn verify_statement_of<P: DeserializeOwned>(
        &self,
        predicate_type: &str,
        keys: &[PublicKey],
    ) -> Result<Verified<Statement<P>>, StatementError> {
        match self.verify_statement(keys) {
            Ok(verified) if verified.payload().predicate_type() == predicate_type => Ok(verified),
            // That it speaks of something else is said first, whatever else is wrong.
            other => {
                let found = self.statement_type()?;
                if found == predicate_type {
                    return other;
                }
                Err(StatementError::OtherPredicate { found, wanted: predicate_type.to_owned() })
            }
        }
    }

    /// The statement in it: nobody has checked its signatures.
    pub fn unchecked_statement<P: DeserializeOwned>(&self) -> Result<Statement<P>, StatementError> {
        if self.payload_type() != PAYLOAD_TYPE {
            return Err(StatementError::OtherPayload { found: self.payload_type().to_owned() });
        }
        Ok(parse(self.payload())?)
    }
}

#[cfg(test)]
mod tests {
    use writ_core::Digest;
    use writ_core::json::Value;

    use super::*;
    use crate::intoto::{DigestSet, ResourceDescriptor};
    use crate::keys::{Algorithm, SigningKey};

    const TYPE: &str = "https://example.org/predicate/v1";

    fn statement() -> Statement<DigestSet> {
        let subject = vec![ResourceDescriptor::sha256("x", Digest::of(b"x"))];
        Statement::new(subject, TYPE, DigestSet::from([("said".to_owned(), "so".to_owned())]))
    }

    #[test]
    fn signs_and_opens() {
        let (one, two) =
            (SigningKey::generate(Algorithm::Ed25519).unwrap(), SigningKey::generate(Algorithm::P256).unwrap());
        let envelope = sign(&statement(), &[&one, &two]).unwrap();
        let envelope = Envelope::parse(&envelope.to_bytes()).unwrap();
        assert_eq!(envelope.statement_type().unwrap(), TYPE);
        for key in [&one, &two] {
            let verified = envelope.verify_statement_of::<DigestSet>(TYPE, &[key.public().clone()]).unwrap();
            assert_eq!(verified.signers(), [key.public().key_id()]);
            assert_eq!(verified.into_payload(), statement());
        }
        let stranger = [SigningKey::generate(Algorithm::Ed25519).unwrap().public().clone()];
        let unsigned = envelope.verify_statement::<Value>(&stranger);
        assert_eq!(unsigned, Err(StatementError::Signature(VerifyError::NoSignature { keys: 1 })));
        let other = envelope.verify_statement_of::<Value>("u", &[one.public().clone()]);
        assert!(matches!(other, Err(StatementError::OtherPredicate { .. })));
        // Also where something else is wrong with it.
        let strange = envelope.verify_statement_of::<Value>("u", &stranger);
        assert!(matches!(strange, Err(StatementError::OtherPredicate { .. })));
        let shape = envelope.verify_statement_of::<Vec<u8>>("u", &[one.public().clone()]);
        assert!(matches!(shape, Err(StatementError::OtherPredicate { .. })));
        let strange = envelope.verify_statement_of::<DigestSet>(TYPE, &stranger);
        assert!(matches!(strange, Err(StatementError::Signature(_))));
        assert!(envelope.verify_legacy_go_statement::<Value>(&[one.public().clone()]).is_err());
    }

    #[test]
    fn refuses_what_is_not_called_a_statement() {
        let key = SigningKey::generate(Algorithm::Ed25519).unwrap();
        let keys = [key.public().clone()];
        let text = json::to_canonical(&statement());
        let other = Envelope::sign("application/json", text.as_bytes(), &[&key]).unwrap();
        assert!(matches!(other.statement_type(), Err(StatementError::OtherPayload { .. })));
        assert!(matches!(other.verify_statement::<Value>(&keys), Err(StatementError::OtherPayload { .. })));
        let broken = Envelope::sign(PAYLOAD_TYPE, b"{}", &[&key]).unwrap();
        assert!(matches!(broken.verify_statement::<Value>(&keys), Err(StatementError::Format(_))));
        // A predicate of another shape is not taken for one that is wanted.
        let envelope = sign(&statement(), &[&key]).unwrap();
        assert!(matches!(envelope.verify_statement::<Vec<u8>>(&keys), Err(StatementError::Format(_))));
        let deep = format!("{}{}", "[".repeat(80), "]".repeat(80));
        let deep = text.replace(r#"{"said":"so"}"#, &deep);
        let deep = Envelope::sign(PAYLOAD_TYPE, deep.as_bytes(), &[&key]).unwrap();
        assert!(matches!(deep.statement_type(), Err(StatementError::Format(_))));
    }
}
