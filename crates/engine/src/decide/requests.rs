//! Requests of an Agentfile's policies, and what they came to, on record.
//!
//! Owns a session of decisions that no client's call stands behind: its beginning, a row for each, its seal. Decides nothing. Invariant: an
//! answer is given when its row is durable ([`Requests::record`]); no row holds a request's context (R8), and all rows of a session are of
//! one Agentfile. Page: `spec/agentfile.md`,
//! "Decisions".

use std::path::Path;

use serde::Serialize;
use writ_core::secret::mask_id;
use writ_core::{Digest, Event, EventKind, SessionId, Timestamp};
use writ_evidence::keys::random;
use writ_store::Store;

use crate::Home;
use crate::session::rows::COMMAND;
use crate::session::{Session, SessionError, Wanted, seal};

/// What ids of sessions of decisions begin with: none of them is what is meant where no session is named.
pub const DECISIONS: &str = "decisions-";
/// The event of a row.
pub const DECIDED: &str = "request-decided";

/// A session of decisions.
pub struct Requests<'a> {
    session: Session<'a>,
}

/// A request, and what it came to.
#[derive(Clone, Debug, Serialize)]
pub struct Decided<'a> {
    /// Digest of the Agentfile.
    pub agentfile: Digest,
    /// What was to be done.
    pub action: &'a str,
    /// With what.
    pub resource: &'a str,
    /// By whom; the agent itself where that is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<&'a str>,
    /// Digest of the context's canonical JSON.
    pub context: Digest,
    /// `allow` or `deny`.
    pub decision: &'a str,
    /// The policies that decided: `Agentfile:12`.
    pub rules: Vec<&'a str>,
    /// The base that denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<&'a str>,
}

impl<'a> Requests<'a> {
    /// Begins a session under what was decided with, which stands at a path; or goes on with one that is there.
    pub fn begin(
        store: &'a Store,
        home: &'a Home,
        held: (&[u8], &Path),
        named: Option<&SessionId>,
    ) -> Result<Self, SessionError> {
        let now = Timestamp::now();
        if let Some(id) = named.filter(|id| store.exists(id)) {
            let session = Session::resume(store, id, home, now)?;
            let governs = session.state.policy.as_ref().is_some_and(|policy| policy.file == Digest::of(held.0));
            return if governs { Ok(Self { session }) } else { Err(SessionError::Other { session: id.clone() }) };
        }
        let new = || Ok::<_, SessionError>(SessionId::new(format!("{DECISIONS}{:032x}", random()?)));
        let id = named.map_or_else(new, |id| Ok(id.clone()))?;
        let (bytes, path) = held;
        let event = Event {
            client: COMMAND,
            session: id.clone(),
            client_session: None,
            transcript: None,
            cwd: path.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned(),
            agent: None,
            permission_mode: None,
            prompt_id: None,
            kind: EventKind::SessionStart { source: Some("startup".to_owned()) },
        };
        Ok(Self { session: Session::open_under(store, &id, &event, home, now, Wanted::Own(bytes, path))? })
    }

    /// Its id.
    pub const fn id(&self) -> &SessionId {
        &self.session.id
    }

    /// Records some, durable on return.
    pub fn record(&mut self, all: &[Decided<'_>]) -> Result<(), SessionError> {
        self.session.look_at_the_clock();
        for (at, one) in all.iter().enumerate() {
            let (resource, principal) = (mask_id(one.resource), one.principal.map(mask_id));
            let told = Decided { resource: &resource, principal: principal.as_deref(), ..one.clone() };
            let draft = self.session.event(DECIDED, told);
            if at + 1 == all.len() {
                self.session.append(draft)?
            } else {
                self.session.append_unflushed(draft)?
            };
        }
        Ok(())
    }

    /// Seals it.
    pub fn end(mut self) -> Result<(), SessionError> {
        seal::seal(&mut self.session)
    }
}
