//! Rows about what runs confined, written from outside it.
//!
//! Owns which session and which call a row belongs to. Invariant: each row is appended to the session as it is then, whoever wrote before.

use serde::Serialize;
use writ_core::{SessionId, Timestamp};
use writ_evidence::row::Draft;
use writ_store::Store;

use crate::Home;
use crate::session::{Session, SessionError};

/// Where a run is recorded.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Where sessions are kept.
    pub store: Store,
    /// Writ's own places.
    pub home: Home,
    /// The session.
    pub session: SessionId,
    /// The call, if it is one.
    pub call: Option<String>,
    /// The last row there was when it began.
    pub after: Option<u64>,
}

impl Recorder {
    /// Writes a row. Durable on return.
    pub fn record(&self, event: &str, detail: impl Serialize) -> Result<u64, SessionError> {
        let (mut session, draft) = self.draft(event, |_session| detail)?;
        session.append(draft)
    }

    /// Writes a row that says more with the session at hand. Durable with the next, which is that of the result: a power cut before takes
    /// the client too, and leaves a call of which nothing is known.
    pub fn record_with<T: Serialize>(
        &self,
        event: &str,
        detail: impl FnOnce(&Session<'_>) -> T,
    ) -> Result<u64, SessionError> {
        let (mut session, draft) = self.draft(event, detail)?;
        session.append_unflushed(draft)
    }

    fn draft<T: Serialize>(
        &self,
        event: &str,
        detail: impl FnOnce(&Session<'_>) -> T,
    ) -> Result<(Session<'_>, Draft), SessionError> {
        let session = Session::resume(&self.store, &self.session, &self.home, Timestamp::now())?;
        let mut draft = session.event(event, detail(&session));
        draft.call_id.clone_from(&self.call);
        Ok((session, draft))
    }
}
