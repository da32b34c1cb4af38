//! What only a human may do to a running session: let one asked call run, accept a changed policy.
//!
//! The caller makes sure that a human is there (a terminal); the agent's own way here is barred by self-protection (R19).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, Timestamp};
use writ_evidence::attestation::Attestation;
use writ_evidence::row::{Row, RowDecision};
use writ_store::{Store, regular_file};

use super::outcome::APPROVED;
use crate::Home;
use crate::attest::proofs::{Proof, attestation_file};
use crate::attest::verdicts::{self, VerdictError};
use crate::governing::in_force::{self, PolicyRef};
use crate::governing::{self, Governing, Trust, kept};
use crate::session::shown::{Rules, Shown, cite};
use crate::session::state::{MAX_GRANTS, State, short};
use crate::session::{Session, SessionError, kept_policy};

/// Largest attestation that was kept.
const MAX_ATTESTATION: u64 = 64 << 20;
/// How long a grant lasts.
const GRANT_MINUTES: i64 = 30;

/// A call that was asked about and not run since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its tool.
    pub tool: String,
    /// [`writ_core::ToolCall::digest`].
    pub input: Digest,
    /// Digest of the whole action: tool, what it does, input, folder, agent, session and policy (R71).
    pub action: Digest,
    /// The folder it would run in.
    pub cwd: String,
    /// When it was asked.
    pub asked: Timestamp,
    /// The rules that asked, each with its text: `ask `Bash:git push`, /tools/requireApproval/0`.
    pub rules: Vec<String>,
    /// What it would run, touch and contact.
    pub shown: Shown,
    /// The attested evaluation it was asked about with, if there is one.
    pub evaluation: Option<Digest>,
}

impl Waiting {
    /// The name `writ approve` takes: calls alike but for their folder, agent or policy have different ones.
    pub fn name(&self) -> String {
        short(self.action)
    }
}

/// One human yes: this action, once, until then. The state of later rows repeats only its action and its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The tool.
    pub tool: String,
    /// [`writ_core::ToolCall::digest`].
    pub input: Digest,
    /// The whole action's digest: the one that counts.
    pub action: Digest,
    /// After this moment the grant is void.
    pub until: Timestamp,
}

impl Grant {
    /// The name `writ approve` takes.
    pub fn name(&self) -> String {
        short(self.action)
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
    /// No grant, or more than one, has that name.
    #[error("{matches} approvals match `{name}`: `writ approve --list` shows them")]
    NoSuchGrant {
        /// What was asked for.
        name: String,
        /// How many match.
        matches: usize,
    },
    /// Too many wait to be used.
    #[error("{MAX_GRANTS} approvals wait to be used: revoke one, or let the agent make its calls first")]
    TooMany,
    /// No waiting call, or more than one, has that name.
    #[error("{matches} waiting calls match `{name}`: `writ approve` lists them")]
    NoSuchCall {
        /// What was asked for.
        name: String,
        /// How many match.
        matches: usize,
    },
}

/// The calls of a session that wait for a human, newest last.
pub fn waiting(store: &Store, id: &SessionId) -> Result<Vec<Waiting>, ApprovalError> {
    let policy = store.last_row(id)?.and_then(|row| kept_policy(store, id, &row));
    let mut out: Vec<Waiting> = Vec::new();
    store.each_row(id, |row| wait(&mut out, row, policy.as_ref().map(|policy| policy as &dyn Rules)))?;
    Ok(out)
}

/// Takes the next row: it may ask, or end what was asked.
fn wait(out: &mut Vec<Waiting>, row: Row, policy: Option<&dyn Rules>) {
    let text = |name| row.detail.get(name).and_then(Value::as_str);
    let digest = |name| text(name).and_then(|text| Digest::parse(text).ok());
    if text("event") == Some("policy-accepted") {
        out.clear();
    }
    let (Some(tool), Some(input), Some(action)) = (&row.tool_name, digest("input"), digest("action")) else { return };
    out.retain(|waiting| waiting.action != action);
    if row.decision == RowDecision::Asked {
        let shown = Shown::of(&row);
        let rules = shown.rules.iter().map(|rule| cited(policy, rule)).collect();
        let named = row.detail.get("attestation").and_then(|named| named.get("digest")).and_then(Value::as_str);
        let evaluation = named.and_then(|text| Digest::parse(text).ok());
        let (tool, cwd) = (tool.clone(), text("cwd").unwrap_or_default().to_owned());
        out.push(Waiting { tool, input, action, cwd, asked: row.timestamp, rules, shown, evaluation });
    }
}

/// `ask /tools/deny/0` with the rule's own text.
fn cited(policy: Option<&dyn Rules>, rule: &str) -> String {
    match rule.split_once(' ') {
        Some((verdict, pointer)) => format!("{verdict} {}", cite(policy, pointer)),
        None => rule.to_owned(),
    }
}

/// What a human granted in this session and was not used yet, oldest first; those that have ended too.
pub fn granted(store: &Store, id: &SessionId) -> Result<Vec<Grant>, ApprovalError> {
    let last = store.last_row(id)?;
    let open = last.and_then(|row| State::from_detail(&row.detail)).map(|state| state.grants).unwrap_or_default();
    let mut grants: Vec<Grant> = Vec::new();
    if open.is_empty() {
        return Ok(grants);
    }
    store.each_row(id, |row| {
        let given = row.detail.get("grant").and_then(|grant| json::from_value::<Grant>(grant).ok());
        if let Some(grant) = given.filter(|grant| open.get(&grant.action) == Some(&grant.until)) {
            grants.retain(|known| *known != grant);
            grants.push(grant);
        }
    })?;
    Ok(grants)
}

/// What the row of a grant says.
#[derive(Serialize)]
struct Granted<'a> {
    grant: &'a Grant,
    #[serde(skip_serializing_if = "Option::is_none")]
    attestation: Option<Proof>,
    rule: &'static str,
}

#[derive(Serialize)]
struct Revoked<'a> {
    grant: &'a Grant,
}

/// What the row of an accepted policy says.
#[derive(Serialize)]
struct Accepted {
    /// Digest of the file that was accepted before.
    from: Digest,
}

/// Takes a grant back, before it was used. `name` begins the digest of the call's input.
pub fn revoke(store: &Store, id: &SessionId, name: &str, home: &Home) -> Result<Grant, ApprovalError> {
    let mut session = Session::resume(store, id, home, Timestamp::now())?;
    let mut hits = granted(store, id)?;
    hits.retain(|grant| begins(grant, name));
    let matches = hits.len();
    let (Some(grant), 1) = (hits.pop(), matches) else {
        return Err(ApprovalError::NoSuchGrant { name: name.to_owned(), matches });
    };
    session.state.spend(grant.action);
    let draft = session.event("grant-revoked", Revoked { grant: &grant });
    session.append(draft)?;
    Ok(grant)
}

fn begins(grant: &Grant, name: &str) -> bool {
    !name.is_empty() && (grant.input.hex().starts_with(name) || grant.action.hex().starts_with(name))
}

/// Lets the waiting call whose digest starts with `name` run once, within half an hour.
pub fn approve(store: &Store, id: &SessionId, name: &str, home: &Home) -> Result<Waiting, ApprovalError> {
    let named = |digest: Digest| digest.hex().starts_with(name);
    let mut hits: Vec<Waiting> =
        waiting(store, id)?.into_iter().filter(|call| named(call.input) || named(call.action)).collect();
    let found = hits.len();
    let (Some(call), 1) = (hits.pop(), found) else {
        return Err(ApprovalError::NoSuchCall { name: name.to_owned(), matches: found });
    };
    let now = Timestamp::now();
    let mut session = Session::resume(store, id, home, now)?;
    let until = Timestamp::from_millis(now.millis().saturating_add(GRANT_MINUTES * 60_000));
    let grant = Grant { tool: call.tool.clone(), input: call.input, action: call.action, until };
    let mut attestation = None;
    if let Some(evaluation) = call.evaluation {
        let proof = attested(store, &session, &call, evaluation)?;
        proof.keep(&session)?;
        attestation = Some(proof);
    }
    session.state.grant(grant.action, grant.until, now).ok_or(ApprovalError::TooMany)?;
    let draft = session.event("grant", Granted { grant: &grant, attestation, rule: APPROVED });
    session.append(draft)?;
    Ok(call)
}

/// The human's word under signature, resting on the evaluation that was kept with the call.
fn attested(store: &Store, session: &Session<'_>, call: &Waiting, evaluation: Digest) -> Result<Proof, ApprovalError> {
    let path = store.folder(&session.id).join(attestation_file(evaluation));
    let kept = regular_file::read(&path, MAX_ATTESTATION).ok().and_then(|bytes| Attestation::parse(&bytes).ok());
    let kept = kept.filter(|kept| kept.digest() == evaluation).ok_or(ApprovalError::NoEvaluation { path })?;
    Ok(verdicts::approve(session, &call.tool, call.input, GRANT_MINUTES * 60, &kept)?)
}

/// Accepts the policy as it stands now for a running session.
pub fn accept(store: &Store, id: &SessionId, home: &Home) -> Result<Governing, ApprovalError> {
    let mut session = Session::resume(store, id, home, Timestamp::now())?;
    let policy = session.state.policy.clone().ok_or(SessionError::Ungoverned)?;
    let path = policy.path;
    let governing = governing::open(&path, None, &Trust::open(home.state.as_deref())).map_err(SessionError::from)?;
    session.keep_policy(&governing)?;
    let repository = in_force::repository(policy_root(&governing));
    let whole = kept::whole(&governing);
    store.keep_accepted(repository, Digest::of(&whole), &whole)?;
    store.settle(repository)?;
    session.state.policy = Some(PolicyRef::to(&governing));
    // What was approved was approved under the policy before.
    session.state.grants.clear();
    session.state.forget_limits();
    session.state.relabel();
    (session.state.told, session.state.pending) = (None, false);
    let draft = session.event("policy-accepted", Accepted { from: policy.file });
    session.append(draft)?;
    Ok(governing)
}

/// Settles that a policy that governed here is gone: new sessions run without one.
pub fn accept_none(store: &Store, cwd: &std::path::Path) -> Result<(), ApprovalError> {
    Ok(store.settle(in_force::repository(cwd))?)
}

fn policy_root(governing: &Governing) -> &std::path::Path {
    governing.path.parent().unwrap_or(std::path::Path::new("/"))
}
