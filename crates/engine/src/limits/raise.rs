//! A human's word that raises a limit for one session.
//!
//! The caller makes sure that a human is there (a terminal); the agent's own way here is barred by self-protection (R19).

use serde::{Deserialize, Serialize};
use writ_core::{SessionId, Timestamp};
use writ_policy::{Limit, Measure};
use writ_store::Store;

use crate::Home;
use crate::session::rows::RAISED;
use crate::session::{Blocked, Session, SessionError};

/// A limit that was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raise {
    /// What it counts.
    pub limit: Measure,
    /// What it was.
    pub from: u64,
    /// What it is now.
    pub to: u64,
}

/// Why a limit was not raised.
#[derive(Debug, thiserror::Error)]
pub enum RaiseError {
    /// The session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Its policy cannot be had.
    #[error("the policy of this session cannot be read: `writ doctor` says more")]
    NoPolicy,
    /// There is no such limit.
    #[error("the policy of this session has no {0}")]
    NoLimit(Measure),
    /// It holds at the end alone, and stops nothing.
    #[error(
        "{0} of this session's policy is post-hoc: it stops nothing, and is held against the whole when that is verified"
    )]
    PostHoc(Measure),
    /// It is no more than before.
    #[error("{limit} is {} already: a limit is only raised here", limit.shown(*now))]
    NotMore {
        /// Which.
        limit: Measure,
        /// What it is.
        now: u64,
    },
}

/// Raises a limit of a session to `to`, and records that.
pub fn raise(store: &Store, id: &SessionId, limit: Measure, to: u64, home: &Home) -> Result<Raise, RaiseError> {
    let mut session = Session::resume(store, id, home, Timestamp::now())?;
    let in_force = match session.policy() {
        Ok(in_force) => in_force,
        Err(Blocked::Ungoverned) => return Err(SessionError::Ungoverned.into()),
        Err(Blocked::Unusable(_)) => return Err(RaiseError::NoPolicy),
    };
    let limits = in_force.accepted.limits();
    let found: Option<&Limit> = limits.iter().find(|found| found.measure == limit);
    let found = found.ok_or(RaiseError::NoLimit(limit))?;
    if found.post_hoc {
        return Err(RaiseError::PostHoc(limit));
    }
    let now = session.tally().limit(found);
    if to <= now {
        return Err(RaiseError::NotMore { limit, now });
    }
    let raise = Raise { limit, from: now, to };
    session.state.raise(limit, to);
    let draft = session.event(RAISED, raise);
    session.append(draft)?;
    Ok(raise)
}
