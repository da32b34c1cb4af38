//! Conversations of a client that keeps them in a database, drawn off into the session's folder.
//!
//! Owns where they lie there and when they are brought up to date. Invariant: the database is the one that the first event named; what an
//! event names later changes nothing.

use std::path::{Path, PathBuf};

use writ_clients::Client;
use writ_clients::transcript::{Drawn, TranscriptError};
use writ_core::{Event, EventKind};
use writ_store::Store;

/// Their folder in the session's.
const FOLDER: &str = "conversations";

/// The conversation of an event.
pub struct Conversation {
    drawn: &'static dyn Drawn,
    database: PathBuf,
    /// The file of its main agent.
    pub main: PathBuf,
}

impl Conversation {
    /// Of an event whose client keeps it so and says where.
    pub fn of(input: &Event, store: &Store) -> Option<Self> {
        let drawn = writ_clients::named(input.client)?.drawn()?;
        let database = PathBuf::from(input.transcript.as_deref()?);
        let id = input.client_session.as_ref().unwrap_or(&input.session);
        let main = drawn.main(&store.folder(&input.session).join(FOLDER), id.as_str());
        Some(Self { drawn, database, main })
    }

    /// Begins it once its session is there.
    pub fn begin(&self) -> Result<(), TranscriptError> {
        self.drawn.begin(&self.main, &self.database)
    }

    /// Brings it up to date where an event is about more than one call: what is asked on each reads no more than it needs.
    pub fn catch_up(&self, kind: &EventKind) {
        let of_a_call = matches!(
            kind,
            EventKind::PreToolUse(_)
                | EventKind::PermissionRequest { .. }
                | EventKind::PostToolUse { .. }
                | EventKind::PostToolUseFailure { .. }
        );
        if !of_a_call {
            // What could not be drawn, verification finds missing.
            let _behind = self.drawn.draw(&self.main);
        }
    }
}

/// Brings the conversation up to date that an event names as its transcript, where it is one that is drawn.
pub fn refresh(client: Option<&dyn Client>, main: Option<&str>) -> Result<(), TranscriptError> {
    match client.and_then(Client::drawn).zip(main) {
        Some((drawn, main)) => drawn.draw(Path::new(main)),
        None => Ok(()),
    }
}
