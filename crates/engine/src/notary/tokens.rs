//! The tokens of a notary: issued to agents of sessions on record, and checked.
//!
//! Owns the key that signs them and which were revoked; both end with the process, and so do all its tokens. Refuses an agent whose identity
//! no row names. Invariant: a token that is let pass is for this session, under the policy and the identity that the session has now. Page:
//! `spec/token.md`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use writ_core::json::Value;
use writ_core::{Digest, SessionId, Timestamp};
use writ_evidence::jwt::{self, Claims, ISSUER, TokenError, TokenKey};
use writ_evidence::keys::KeyError;
use writ_policy::{Measure, Policy};
use writ_store::{Store, StoreError};

use crate::governing::layers::Caller;
use crate::home::NoStateDir;
use crate::identity::shown::{Shown, ShownError, shown};
use crate::identity::{self, TRUST_DOMAIN};
use crate::session::{Session, SessionError, millis_between, process};
use crate::{Asker, Home};

/// How long a token lasts where no limit of wall time is shorter, in seconds.
const LIFE: i64 = 3600;
/// The event of the row of a token.
const ISSUED: &str = "token-issued";
/// The event of the row that revokes a session's tokens.
const REVOKED: &str = "tokens-revoked";

/// What is asked about tokens.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "do")]
pub enum Request {
    /// A token for an agent of a session; the main agent where none is named.
    Issue {
        /// The session.
        session: SessionId,
        /// The agent's id.
        #[serde(default)]
        agent: Option<String>,
    },
    /// Whether a token holds.
    Check {
        /// The session.
        session: SessionId,
        /// The token.
        token: String,
    },
    /// A new one for one that holds.
    Refresh {
        /// The session.
        session: SessionId,
        /// The token.
        token: String,
    },
    /// No token of a session that was issued so far holds any more.
    Revoke {
        /// The session.
        session: SessionId,
    },
    /// The key that signs them.
    Key,
}

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// The token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
    /// The key that signs tokens, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Why there is no token, or it does not hold.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The token itself.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The session's tokens were revoked.
    #[error("it was revoked")]
    Revoked,
    /// The session has another policy now.
    #[error("the session's policy is another now: ask for a new one")]
    Policy,
    /// The policy is another since the agent was identified.
    #[error(
        "the session's policy is another than the one that the agent was identified under: ask again when its turn has ended"
    )]
    Older,
    /// The agent is another now.
    #[error("the agent's identity is another now: ask for a new one")]
    Identity,
    /// The session is over.
    #[error("the session has ended")]
    Ended,
    /// The session's wall time is used up.
    #[error("the session has run for as long as its policy lets it")]
    TimeUsed,
    /// The agent itself asks for what a human may.
    #[error("an agent's client runs this: revoke tokens from a terminal of your own")]
    Agent,
    /// No row names it.
    #[error("no row of this session says who that agent is")]
    Unknown,
    /// The session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The identity.
    #[error(transparent)]
    Shown(#[from] ShownError),
    /// The key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is none.
    #[error(transparent)]
    NoStateDir(#[from] NoStateDir),
}

/// The tokens.
pub struct Tokens {
    key: TokenKey,
    /// Until when tokens of a session are revoked: those issued then or earlier.
    revoked: Mutex<HashMap<SessionId, i64>>,
}

#[derive(Serialize)]
struct Issued<'a> {
    agent: &'a str,
    names: Digest,
    key: Digest,
    expires: i64,
}

#[derive(Serialize)]
struct Nothing {}

impl Tokens {
    /// With a new key.
    pub fn new() -> Result<Self, KeyError> {
        Ok(Self { key: TokenKey::generate()?, revoked: Mutex::default() })
    }

    /// Answers a request of a process.
    pub fn answer(&self, request: Request, home: &Home, asker: Asker) -> Told {
        let now = Timestamp::now();
        let answered = match request {
            Request::Issue { session, agent } => self.issue(&session, agent.as_deref().unwrap_or("main"), home, now),
            Request::Check { session, token } => self
                .check(&session, &token, home, now)
                .map(|(claims, _)| Told { claims: Some(claims), ..Told::default() }),
            Request::Refresh { session, token } => {
                let checked = self.check(&session, &token, home, now);
                checked.and_then(|(_, agent)| self.issue(&session, &agent, home, now))
            }
            Request::Revoke { session } => self.revoke(&session, home, now, asker),
            Request::Key => Ok(Told { key: Some(self.key.public().to_pem()), ..Told::default() }),
        };
        answered.unwrap_or_else(|error| Told { refused: Some(error.to_string()), ..Told::default() })
    }

    fn issue(&self, id: &SessionId, agent: &str, home: &Home, now: Timestamp) -> Result<Told, TokensError> {
        let store = Store::open(home.state()?.to_owned())?;
        let named = shown(&store, id, TRUST_DOMAIN)?.into_iter().find(|shown| shown.agent == agent);
        let named = named.ok_or(TokensError::Unknown)?;
        let mut session = Session::resume(&store, id, home, now)?;
        if !is_under(&named, &session) {
            return Err(TokensError::Older);
        }
        session.take_custody()?;
        let seconds = now.millis().div_euclid(1000);
        let in_force = session.policy().map_err(|_blocked| TokensError::Unknown)?;
        let policies = in_force.policies(caller(&named));
        let life = life(&session, &policies)?;
        let denied = policies.iter().filter_map(|policy| policy.document().get("tools")?.get("deny")?.as_array());
        let mut denied: Vec<String> = denied.flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        denied.sort();
        denied.dedup();
        let limits = policies.first().and_then(|policy| policy.document().get("limits")).cloned();
        let claims = Claims {
            iss: ISSUER.to_owned(),
            sub: named.spiffe.clone(),
            aud: vec![id.as_str().to_owned()],
            exp: seconds + life,
            iat: seconds,
            jti: id.as_str().to_owned(),
            agent_id: named.spiffe.clone(),
            identity_hash: named.hash,
            allowed_tools: named.document.parts.tools.clone(),
            denied_tools: denied,
            limits: limits.unwrap_or(Value::Null),
            policy_digest: named.document.parts.policy_digest,
        };
        let token = self.key.sign(&claims)?;
        let about = Issued { agent, names: named.hash, key: self.key.public().key_id(), expires: claims.exp };
        let draft = session.event(ISSUED, about);
        session.append(draft)?;
        Ok(Told { token: Some(token), claims: Some(claims), ..Told::default() })
    }

    /// What a token says that holds now, and whose it is.
    fn check(&self, id: &SessionId, token: &str, home: &Home, now: Timestamp) -> Result<(Claims, String), TokensError> {
        let claims = jwt::verify(token, self.key.public(), id.as_str(), now)?;
        let revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        if revoked.is_some_and(|until| claims.iat <= until) {
            return Err(TokensError::Revoked);
        }
        let store = Store::open(home.state()?.to_owned())?;
        let agents = shown(&store, id, TRUST_DOMAIN)?;
        if !agents.iter().any(|agent| agent.document.parts.policy_digest == claims.policy_digest) {
            return Err(TokensError::Policy);
        }
        let agent = agents.into_iter().find(|agent| agent.hash == claims.identity_hash);
        let agent = agent.ok_or(TokensError::Identity)?;
        let session = Session::resume(&store, id, home, now)?;
        if !is_under(&agent, &session) {
            return Err(TokensError::Policy);
        }
        let in_force = session.policy().map_err(|_blocked| TokensError::Unknown)?;
        life(&session, &in_force.policies(caller(&agent)))?;
        Ok((claims, agent.agent))
    }

    fn revoke(&self, id: &SessionId, home: &Home, now: Timestamp, asker: Asker) -> Result<Told, TokensError> {
        let store = Store::open(home.state()?.to_owned())?;
        let mut session = Session::resume(&store, id, home, now)?;
        if process::is_below(asker, &session.state.clients) {
            return Err(TokensError::Agent);
        }
        session.take_custody()?;
        let draft = session.event(REVOKED, Nothing {});
        session.append(draft)?;
        drop(session);
        let now = Timestamp::now().millis();
        let until = now.div_euclid(1000);
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), until);
        // Tokens tell whole seconds: the next one is issued in another than the last that is revoked.
        let rest = u64::try_from(1000 - now.rem_euclid(1000)).unwrap_or_default();
        thread::sleep(Duration::from_millis(rest));
        Ok(Told::default())
    }
}

/// Whether an identity was told under the policies that are in force now.
fn is_under(shown: &Shown, session: &Session<'_>) -> bool {
    let told = shown.document.parts.policy_digest;
    session.policy().is_ok_and(|in_force| identity::policy_of(in_force, caller(shown)) == told)
}

/// Who an agent is to its policies.
fn caller(shown: &Shown) -> Caller<'_> {
    if shown.agent == "main" { Caller::Main } else { Caller::typed(shown.kind.as_deref()) }
}

/// How many seconds a token that is issued now may last: as long as the session has by its wall-time limits, and not over its end.
fn life(session: &Session<'_>, policies: &[&Policy]) -> Result<i64, TokensError> {
    if session.state.over {
        return Err(TokensError::Ended);
    }
    let raised = session.state.raised.get(&Measure::WallTime).copied().unwrap_or_default();
    let walls = policies.iter().flat_map(|policy| policy.limits());
    let walls = walls.filter(|limit| limit.measure == Measure::WallTime).map(|limit| limit.value.max(raised));
    let Some(most) = walls.min() else { return Ok(LIFE) };
    let left = most.saturating_sub(millis_between(session.began, session.moment()).div_ceil(1000));
    if left == 0 { Err(TokensError::TimeUsed) } else { Ok(i64::try_from(left).unwrap_or(LIFE).min(LIFE)) }
}
