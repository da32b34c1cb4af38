//! A statement that somebody else signed, taken into a session's record as it is: of witness, of the Go aflock, of any in-toto tool.
//!
//! Owns which of them are read, and what their row says. Refuses one that none of the given keys signed. Invariant: the record tells whose
//! key it is and in which encoding it was signed, and that the statement is that key's word, not Writ's. Page: `spec/statements.md`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, Timestamp};
use writ_evidence::dsse::{Envelope, EnvelopeError};
use writ_evidence::intoto::{Statement, StatementError};
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;
use writ_store::{Store, regular_file};

use super::reported::is_own;
use super::{StepError, may_attest, told};
use crate::Home;
use crate::session::statements::{self, Attested, Word};
use crate::session::{Session, SessionError};

/// How an envelope was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// As DSSE says.
    #[serde(rename = "dsse")]
    Dsse,
    /// As the Go aflock does, with lengths in little-endian bytes (R2).
    #[serde(rename = "go-aflock")]
    GoAflock,
}

/// What a row says of whose statement it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The public key that signed, SubjectPublicKeyInfo in DER, as Base64.
    pub key: String,
    /// How.
    pub encoding: Encoding,
}

/// Why a statement is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is no envelope.
    #[error("it is no DSSE envelope: {0}")]
    Envelope(#[from] EnvelopeError),
    /// The statement in it.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// Nobody known signed it.
    #[error("none of the given keys signed it: give the signer's public key with `--key`")]
    Signature,
    /// It has no name.
    #[error("`{kind}` names no step: give it one with `--name`")]
    Nameless {
        /// The type of its predicate.
        kind: String,
    },
    /// The type.
    #[error("`{kind}` is a type of what Writ sees itself, and speaks for no step")]
    OwnType {
        /// It.
        kind: String,
    },
    /// It is about another step.
    #[error("it is of the step `{own}`, not of `{name}`: leave `--name` out")]
    Other {
        /// What its predicate says.
        own: String,
        /// What was asked for.
        name: String,
    },
    /// It is about another session.
    #[error("its subject is another session than this one, or this one with another beginning")]
    Session,
    /// Its size.
    #[error("it has {bytes} bytes, and may have {}", statements::MAX_ENVELOPE)]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// It is there.
    #[error("row {row} names it already: nothing was added")]
    Twice {
        /// Which.
        row: u64,
    },
    /// The step.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl Imported {
    /// What a row says, where it names a statement of somebody else's.
    pub fn of(row: &Row) -> Option<Self> {
        json::from_value(row.detail.get("imported")?).ok()
    }

    /// The key, where it is one.
    pub fn key(&self) -> Option<PublicKey> {
        PublicKey::from_der(&BASE64.decode(&self.key).ok()?).ok()
    }

    /// The statement in an envelope, where that key signed it so.
    pub fn check(&self, envelope: &Envelope) -> Result<Statement<Value>, StatementError> {
        let keys: Vec<PublicKey> = self.key().into_iter().collect();
        let verified = match self.encoding {
            Encoding::Dsse => envelope.verify_statement(&keys),
            Encoding::GoAflock => envelope.verify_legacy_go_statement(&keys),
        };
        Ok(verified?.into_payload())
    }

    /// For reports: `imported, signed by sha256:…`.
    pub fn told(&self) -> String {
        let key = self.key().map_or_else(|| "a key that cannot be read".to_owned(), |key| key.key_id().to_string());
        let how =
            if self.encoding == Encoding::GoAflock { ", in the Go aflock's encoding, which is not DSSE's" } else { "" };
        format!("imported, signed by {key}{how}")
    }
}

/// Takes a statement into a session's record. Durable on return.
pub fn import(
    store: &Store,
    id: &SessionId,
    home: &Home,
    bytes: &[u8],
    keys: &[PublicKey],
    name: Option<&str>,
) -> Result<(Attested, Imported), ImportError> {
    if bytes.len() as u64 > statements::MAX_ENVELOPE {
        return Err(ImportError::TooLarge { bytes: bytes.len() });
    }
    let envelope = Envelope::parse(bytes)?;
    let of_key = |key: &PublicKey| {
        let key = BASE64.encode(key.to_der());
        [Encoding::Dsse, Encoding::GoAflock].map(|encoding| Imported { key: key.clone(), encoding })
    };
    // What it says is looked at before who signed it: an error in it is the better message.
    let unchecked: Statement<Value> = envelope.unchecked_statement()?;
    let imported = keys.iter().flat_map(of_key).find(|imported| imported.check(&envelope).is_ok());
    let imported = imported.ok_or(ImportError::Signature)?;
    let kind = unchecked.predicate_type().to_owned();
    if is_own(&kind) && !told::is_link(&kind) {
        return Err(ImportError::OwnType { kind });
    }
    let own = told::step(&kind, unchecked.predicate());
    let name = name.or(own).ok_or_else(|| ImportError::Nameless { kind: kind.clone() })?.to_owned();
    if let Some(own) = own.filter(|own| *own != name) {
        return Err(ImportError::Other { own: own.to_owned(), name });
    }
    may_attest(store, id, home, &name)?;
    let mut session = Session::resume(store, id, home, Timestamp::now()).map_err(StepError::from)?;
    let digest = Digest::of(bytes);
    if is_of_another(&unchecked, id, session.genesis().map_err(StepError::from)?) {
        return Err(ImportError::Session);
    }
    // The ledger is locked: nobody else adds it in between.
    if let Some(row) = already(store, id, digest, (&envelope, &imported.key))? {
        return Err(ImportError::Twice { row });
    }
    let attested = Attested { name, kind, digest, standing: Word::Reported, uncopied: None };
    let more = More { imported: &imported };
    let attested = statements::record(&mut session, attested, bytes, more).map_err(StepError::from)?;
    Ok((attested, imported))
}

/// Whether a statement says of which session it is, and means another.
pub fn is_of_another(statement: &Statement<Value>, session: &SessionId, genesis: Digest) -> bool {
    let own = statements::subject_of(session.as_str(), genesis);
    let sessions = || statement.subject().iter().filter(|subject| statements::is_session(subject));
    sessions().next().is_some() && !sessions().any(|subject| *subject == own)
}

/// The row that names a file with this digest, of whatever kind, or the same statement of the same key in another envelope: a second one would
/// break the record.
fn already(
    store: &Store,
    id: &SessionId,
    digest: Digest,
    (envelope, key): (&Envelope, &str),
) -> Result<Option<u64>, StepError> {
    let (hex, mut found, folder) = (digest.hex(), None, store.folder(id));
    let same = |row: &Row| {
        let own = Imported::of(row).filter(|imported| imported.key == key);
        let Some(Ok(attested)) = own.and_then(|_imported| Attested::of(row)) else { return false };
        let kept = regular_file::read(&folder.join(attested.file()), statements::MAX_ENVELOPE).ok();
        kept.and_then(|bytes| Envelope::parse(&bytes).ok()).is_some_and(|kept| kept.payload() == envelope.payload())
    };
    let each = store.each_row(id, |row| {
        if found.is_none() && (json::canonical(&row.detail).contains(&hex) || same(&row)) {
            found = Some(row.sequence);
        }
    });
    each.map_err(SessionError::from)?;
    Ok(found)
}

/// What the row says beside the statement's name.
#[derive(Serialize)]
struct More<'a> {
    imported: &'a Imported,
}
