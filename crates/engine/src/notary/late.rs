//! Rows that a human's command writes after a session's end, while a notary keeps the key that signs for it.
//!
//! Owns who seals those: the notary, where one answers, so that its key goes on signing; the command by itself where none does, and then
//! custody breaks, as it does wherever another key signs. Page: `spec/notary.md`.

use std::io;

use serde::{Deserialize, Serialize};
use writ_core::{SessionId, Timestamp, json};
use writ_store::Store;

use super::ask::{self, ANSWERED, MARK, exchange, reach};
use crate::Home;
use crate::hook::wire::{field, put};
use crate::session::{Session, SessionError, seal};

/// Longest question, and longest answer.
const MOST: u32 = 64 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    session: SessionId,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    /// Why it was not sealed.
    error: Option<String>,
}

/// Has what a human's command wrote after the end of a session sealed, where the command has not the key that signs for it.
pub fn settle(store: &Store, id: &SessionId, home: &Home) -> Result<(), SessionError> {
    let waits = {
        let session = Session::resume(store, id, home, Timestamp::now())?;
        session.state.over && session.state.custody.is_some() && home.keeper.is_none()
    };
    if waits && asked(id, home).is_err() {
        return seal::seal(&mut Session::resume(store, id, home, Timestamp::now())?);
    }
    Ok(())
}

fn asked(id: &SessionId, home: &Home) -> io::Result<()> {
    let (mut stream, ..) = reach(home)?;
    let mut bytes = [MARK.as_slice(), &[ask::SEAL]].concat();
    put(&mut bytes, json::to_canonical(&Question { session: id.clone() }).as_bytes())?;
    if !exchange(&mut stream, &bytes, ask::PATIENCE)? {
        return Err(io::Error::other(ask::reason(&mut stream)));
    }
    let told: Told = json::from_slice(&field(&mut stream, MOST)?).map_err(io::Error::other)?;
    told.error.map_or(Ok(()), |why| Err(io::Error::other(why)))
}

/// The notary's side: seals the session that is asked about, where it is over.
pub fn serve(question: &mut impl io::Read, home: &Home) -> io::Result<Vec<u8>> {
    let question: Question = json::from_slice(&field(question, MOST)?).map_err(io::Error::other)?;
    let sealed = || -> Result<(), SessionError> {
        let store = Store::open(home.state()?.to_owned())?;
        let mut session = Session::resume(&store, &question.session, home, Timestamp::now())?;
        if session.state.over { seal::seal(&mut session) } else { Ok(()) }
    };
    let told = Told { error: sealed().err().map(|error| error.to_string()) };
    let mut bytes = vec![ANSWERED];
    put(&mut bytes, json::to_canonical(&told).as_bytes())?;
    Ok(bytes)
}
