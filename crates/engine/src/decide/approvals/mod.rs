//! What only a human may do to a running session: let asked calls run or not, accept a changed policy.
//!
//! Owns a human's word from the request it answers to the call that uses it: signed, for one action, recorded, void under
//! another policy. The caller makes sure that a human is there; the agent's own way here is barred by self-protection (R19,
//! R71). Page: `spec/policy.md`, "Approvals".

mod accept;
pub mod keys;
pub mod pending;
pub mod signed;
pub mod text;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, Timestamp};
use writ_evidence::attestation::Attestation;
use writ_evidence::checkpoint::Checkpoint;
use writ_evidence::keys::{KeyError, PublicKey, SigningKey};
use writ_evidence::row::{Row, RowDecision};
use writ_store::{Store, regular_file};

use super::answered;
use super::outcome::{APPROVED, REFUSED};
use crate::Home;
use crate::attest::proofs::{Proof, attestation_file};
use crate::attest::verdicts::{self, VerdictError};
use crate::governing::{Trust, TrustError};
use crate::session::rows::event;
use crate::session::state::{Given, MAX_GRANTS, State, Uses, short};
use crate::session::{Session, SessionError};

pub use accept::{accept, accept_edited, accept_none};
pub use pending::{Requests, Waiting, everywhere, waiting};
pub use signed::Presence;

/// Largest attestation that was kept.
const MAX_ATTESTATION: u64 = 64 << 20;
/// How long a word lasts that says nothing of that.
const GIVEN_MILLIS: i64 = 30 * 60_000;
/// Longest that an attested approval is good for, however long the word itself lasts.
const ATTESTED_SECONDS: i64 = 24 * 60 * 60;

/// The event of the row of a human's yes.
pub const GRANT: &str = "grant";
/// The event of the row of a human's no.
pub const REFUSAL: &str = "refusal";
/// The event of the row of a word that was taken back.
pub const REVOKED: &str = "grant-revoked";
/// The event of the row of a passphrase that was not the right one.
pub const WRONG_PASSPHRASE: &str = "wrong-passphrase";
/// The event of the row of a word that was found to be nobody's.
pub const VOID: &str = "grant-void";

/// One human word about an action. The state of later rows repeats only its action, its uses and its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The tool.
    pub tool: String,
    /// [`writ_core::ToolCall::digest`].
    pub input: Digest,
    /// The whole action's digest: the one that counts.
    pub action: Digest,
    /// How often it may run.
    #[serde(default)]
    pub uses: Uses,
    /// After this moment the word is void; without it, it lasts as long as the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Grant {
    /// The name `writ approve` takes.
    pub fn name(&self) -> String {
        short(self.action)
    }

    /// What the state repeats of it.
    pub const fn given(&self) -> Given {
        Given { uses: self.uses, until: self.until }
    }
}

/// How long a human's word lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// So many milliseconds.
    Millis(i64),
    /// As long as the session.
    Session,
}

/// What a human says.
pub struct Word<'a> {
    /// Whether it may run.
    pub yes: bool,
    /// For how long, as often as it is called; a yes without it is for one run.
    pub lasts: Option<Lasts>,
    /// How they showed that they are there.
    pub presence: Presence,
    /// Their own key; the machine's signs when left out.
    pub key: Option<&'a SigningKey>,
}

impl Word<'_> {
    /// A yes to one run, signed by the machine.
    pub const YES: Self = Self { yes: true, lasts: None, presence: Presence::Terminal, key: None };
    /// A no, signed by the machine.
    pub const NO: Self = Self { yes: false, ..Self::YES };

    fn given(&self, now: Timestamp) -> Given {
        let uses = match (self.yes, self.lasts) {
            (false, _) => Uses::Never,
            (true, None) => Uses::Once,
            (true, Some(_)) => Uses::Any,
        };
        let until = match self.lasts.unwrap_or(Lasts::Millis(GIVEN_MILLIS)) {
            Lasts::Millis(millis) => Some(Timestamp::from_millis(now.millis().saturating_add(millis))),
            Lasts::Session => None,
        };
        Given { uses, until }
    }
}

/// Why a human's word could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// The session or its policy.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store.
    #[error(transparent)]
    Store(#[from] writ_store::StoreError),
    /// The attestation that the call was asked about with.
    #[error("{} is not the evaluation on which this call was asked: put it back, or have the agent ask again", path.display())]
    NoEvaluation {
        /// Where it should be.
        path: PathBuf,
    },
    /// The approval could not be attested.
    #[error("the approval could not be attested: {0}")]
    Verdict(#[from] VerdictError),
    /// It could not be signed.
    #[error("the approval could not be signed: {0}")]
    Key(#[from] KeyError),
    /// The pinned keys.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The key is not pinned, so that nobody could tell whose word it is.
    #[error("key {key} is not trusted here: pin its public half first, with `writ keys trust`")]
    NotTrusted {
        /// Its id.
        key: Digest,
    },
    /// Its policy wants another key.
    #[error("key {key} may not approve this: {why}; give yours with `--key FILE`")]
    NotAccepted {
        /// Its id.
        key: Digest,
        /// Which policy wants what.
        why: String,
    },
    /// No grant, or more than one, has that name.
    #[error("{matches} approvals match `{name}`: `writ approve --list` shows them")]
    NoSuchGrant {
        /// What was asked for.
        name: String,
        /// How many match.
        matches: usize,
    },
    /// Too many wait to be used.
    #[error("{MAX_GRANTS} words are open in this session: revoke one, or let the agent make its calls first")]
    TooMany,
    /// No waiting call, or more than one, has that name.
    #[error("{matches} waiting calls match `{name}`: `writ approvals` lists them")]
    NoSuchCall {
        /// What was asked for.
        name: String,
        /// How many match.
        matches: usize,
    },
}

/// What humans said in this session and still stands or was not used, oldest first; what has ended too.
pub fn granted(store: &Store, id: &SessionId) -> Result<Vec<Grant>, ApprovalError> {
    let last = store.last_row(id)?;
    let open = last.and_then(|row| State::from_detail(&row.detail)).map(|state| state.grants).unwrap_or_default();
    let mut grants: Vec<Grant> = Vec::new();
    if open.is_empty() {
        return Ok(grants);
    }
    store.each_row(id, |row| {
        let given = of_row(&row);
        if let Some(grant) = given.filter(|grant| open.get(&grant.action) == Some(&grant.given())) {
            grants.retain(|known| known.action != grant.action);
            grants.push(grant);
        }
    })?;
    Ok(grants)
}

/// The word that a row gives.
fn of_row(row: &Row) -> Option<Grant> {
    let gives = row.decision == RowDecision::Checkpoint && matches!(event(row), GRANT | REFUSAL);
    row.detail.get("grant").filter(|_| gives).and_then(|grant| json::from_value(grant).ok())
}

/// What the row of a human's word says.
#[derive(Serialize)]
struct Granted<'a> {
    grant: &'a Grant,
    signed: Value,
    /// The call that counts no more now.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attestation: Option<Proof>,
    rule: &'static str,
}

#[derive(Serialize)]
struct Revoked<'a> {
    grant: &'a Grant,
}

/// What the row of a word says that was found to be nobody's.
#[derive(Serialize)]
struct Voided {
    action: Digest,
    why: String,
}

/// Takes a human's word back. `name` begins the digest of the call's action or input.
pub fn revoke(store: &Store, id: &SessionId, name: &str, home: &Home) -> Result<Grant, ApprovalError> {
    let mut session = Session::resume(store, id, home, Timestamp::now())?;
    let mut hits = granted(store, id)?;
    hits.retain(|grant| begins(grant, name));
    let matches = hits.len();
    let (Some(grant), 1) = (hits.pop(), matches) else {
        return Err(ApprovalError::NoSuchGrant { name: name.to_owned(), matches });
    };
    session.state.take_back(grant.action);
    let draft = session.event(REVOKED, Revoked { grant: &grant });
    session.append(draft)?;
    Ok(grant)
}

fn begins(grant: &Grant, name: &str) -> bool {
    !name.is_empty() && (grant.input.hex().starts_with(name) || grant.action.hex().starts_with(name))
}

/// Puts a human's word on the waiting call on record whose digest starts with `name`.
pub fn answer(
    store: &Store,
    id: &SessionId,
    name: &str,
    word: &Word<'_>,
    home: &Home,
) -> Result<(Waiting, Grant), ApprovalError> {
    let now = Timestamp::now();
    let mut session = Session::resume(store, id, home, now)?;
    let mut hits = waiting(store, id, now)?;
    hits.retain(|call| call.is_named(name));
    let found = hits.len();
    let (Some(call), 1) = (hits.pop(), found) else {
        return Err(ApprovalError::NoSuchCall { name: name.to_owned(), matches: found });
    };
    let own;
    let key = match word.key {
        Some(key) if is_pinned(key.public(), home)? => key,
        Some(key) => return Err(ApprovalError::NotTrusted { key: key.public().key_id() }),
        None => {
            own = store.ledger_key()?;
            &own
        }
    };
    if word.yes {
        let files: Vec<Digest> = call.policy.iter().chain(&call.layers).copied().collect();
        let (folder, key) = (store.folder(id), key.public().key_id());
        keys::accepted(&files, &[key], |file| keys::kept_in(&folder, file))
            .map_err(|why| ApprovalError::NotAccepted { key, why })?;
    }
    let given = word.given(now);
    let (uses, until) = (given.uses, given.until);
    let grant = Grant { tool: call.tool.clone(), input: call.input, action: call.action, uses, until };
    let mut attestation = None;
    if let Some(evaluation) = call.evaluation.filter(|_| word.yes) {
        let proof = attested(store, &session, &call, given, evaluation)?;
        proof.keep(&session)?;
        attestation = Some(proof);
    }
    session.state.give(grant.action, given, now).ok_or(ApprovalError::TooMany)?;
    let answers = call.counted().filter(|(_, asked)| answered::settle(&mut session, asked, false)).map(|(id, _)| id);
    let follows = session.ledger().last().map_or(Digest::ZERO, |row| row.entry_hash);
    let place = signed::Place { at: now, follows };
    let flows = call.flows();
    let signed = signed::sign(call.action(id, &flows), given, word.presence, &place, key)?;
    let (event, rule) = if word.yes { (GRANT, APPROVED) } else { (REFUSAL, REFUSED) };
    let draft = session.event(event, Granted { grant: &grant, signed, answers, attestation, rule });
    session.append(draft)?;
    text::forget(&store.folder(id), grant.action);
    Ok((call, grant))
}

#[derive(Serialize)]
struct Nothing {}

/// Records that somebody gave a passphrase for this session that is not the right one.
pub fn wrong_passphrase(store: &Store, id: &SessionId, home: &Home) -> Result<(), SessionError> {
    let mut session = Session::resume(store, id, home, Timestamp::now())?;
    let draft = session.event(WRONG_PASSPHRASE, Nothing {});
    session.append(draft).map(drop)
}

fn is_pinned(key: &PublicKey, home: &Home) -> Result<bool, TrustError> {
    Ok(Trust::open(home.state.as_deref()).keys()?.contains(key))
}

/// The human's word under signature, resting on the evaluation that was kept with the call.
fn attested(
    store: &Store,
    session: &Session<'_>,
    call: &Waiting,
    given: Given,
    evaluation: Digest,
) -> Result<Proof, ApprovalError> {
    let path = store.folder(&session.id).join(attestation_file(evaluation));
    let kept = regular_file::read(&path, MAX_ATTESTATION).ok().and_then(|bytes| Attestation::parse(&bytes).ok());
    let kept = kept.filter(|kept| kept.digest() == evaluation).ok_or(ApprovalError::NoEvaluation { path })?;
    let lasts = given.until.map(|until| until.millis().saturating_sub(session.now.millis()) / 1000);
    let seconds = lasts.unwrap_or(ATTESTED_SECONDS).clamp(1, ATTESTED_SECONDS);
    Ok(verdicts::approve(session, &call.tool, call.input, seconds, given.uses == Uses::Once, &kept)?)
}

/// What a human said of an action that is about to run, if they did. A yes counts only under a signature that is good; one that
/// is not is put on record as void, and the call asks.
pub fn given(session: &mut Session<'_>, action: Digest) -> Result<Option<Uses>, SessionError> {
    let Some(given) = session.state.given(action, session.now) else { return Ok(None) };
    if given.uses == Uses::Never {
        return Ok(Some(given.uses));
    }
    let why = match why_void(session, action, given)? {
        None => return Ok(Some(given.uses)),
        Some(why) => why,
    };
    session.state.take_back(action);
    let draft = session.event(VOID, Voided { action, why });
    session.append(draft)?;
    Ok(None)
}

fn why_void(session: &Session<'_>, action: Digest, given: Given) -> Result<Option<String>, SessionError> {
    let row = match word_on(session, action, given.uses)? {
        Ok(row) => row,
        Err(why) => return Ok(Some(why)),
    };
    let known = match known_keys(session) {
        Ok(known) => known,
        Err(error) => return Ok(Some(error.to_string())),
    };
    Ok(match signed::check(&row, &known) {
        Ok(checked) if checked.grant.given() == given => {
            let folder = session.store.folder(&session.id);
            keys::accepted(&checked.files, &checked.signers, |file| keys::kept_in(&folder, file)).err()
        }
        Ok(_) => Some("its last row says otherwise".to_owned()),
        Err(why) => Some(why.to_string()),
    })
}

/// The row of the last word on an action, where all rows behind it follow each other and it; or why there is none that counts. The state
/// is whatever the last row says, which whoever writes the ledger may have put there again.
fn word_on(session: &Session<'_>, action: Digest, uses: Uses) -> Result<Result<Row, String>, SessionError> {
    let (mut after, mut found, mut why): (Option<Row>, Option<Row>, Option<String>) = (None, None, None);
    let used = |row: &Row| {
        let same = row.detail.get("action").and_then(Value::as_str).and_then(|text| Digest::parse(text).ok());
        row.decision == RowDecision::Approved && row.detail.get("granted").is_some() && same == Some(action)
    };
    let mut rows = 0;
    session.each_row_back(|row| {
        rows = rows.max(row.sequence + 1);
        let follows = |next: &Row| next.prev_hash == row.entry_hash && next.sequence == row.sequence + 1;
        if !after.as_ref().is_none_or(follows) {
            why = Some(format!("row {} is followed by one that does not follow it", row.sequence));
            return false;
        }
        if found.is_some() {
            return false;
        }
        if uses == Uses::Once && used(&row) {
            why = Some(format!("it was used in row {}", row.sequence));
            return false;
        }
        if of_row(&row).is_some_and(|grant| grant.action == action) {
            found = Some(row.clone());
        }
        after = Some(row);
        true
    })?;
    let seen = session.store.head(&session.id)?;
    let seen = seen.and_then(|note| Some(Checkpoint::read(std::str::from_utf8(&note).ok()?).ok()?.size));
    if seen.is_some_and(|size| size > rows) {
        why = Some("rows that a checkpoint covers are gone".to_owned());
    }
    Ok(match (why, found) {
        (Some(why), _) => Err(why),
        (None, found) => found.ok_or_else(|| "no row gives it".to_owned()),
    })
}

/// The keys that a human's word may be signed with here: the machine's own, and those pinned.
fn known_keys(session: &Session<'_>) -> Result<Vec<PublicKey>, TrustError> {
    let pinned = Trust::open(session.home.state.as_deref()).keys()?;
    Ok(session.store.public_key().into_iter().chain(pinned).collect())
}
