//! The identity that a SPIFFE Workload API gives to the agent's processes: an X.509-SVID, asked for when a client starts.
//!
//! Owns what a row says of it. Refuses the network, which the caller hands in, and to keep the SVID's private key, which nothing here needs.
//! Invariant: a service that gives none is named with the reason. Page: `spec/identity.md`.

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, Timestamp};
use writ_store::{Store, StoreError};

use super::environment::{self, Standing};
use crate::{Asker, Svid, Workload};

/// Most of a reason that is kept, in characters.
const LONGEST: usize = 300;

/// What a row says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Told {
    /// The SVID.
    Svid {
        /// Its SPIFFE id.
        id: String,
        /// SHA-256 of its certificate's DER.
        certificate: Digest,
        /// When that ends.
        expires: Timestamp,
        /// *Observed* where another user's process gave it, whose word the agent cannot make.
        standing: Standing,
    },
    /// There is none.
    Nothing {
        /// Why.
        error: String,
    },
}

impl Told {
    /// That of a row.
    pub fn of(detail: &Value) -> Option<Self> {
        json::from_value(detail.get("workload")?).ok()
    }
}

/// Asks for the identity of the processes that a client starts.
pub fn ask(workload: &Workload, asker: Asker) -> Told {
    match (workload.fetch)(&workload.address) {
        Ok(Svid { id, certificate, expires, peer }) => {
            let own = environment::see(asker);
            let told = own.environment.uid.filter(|_| own.is_genuine()).zip(peer);
            // Root can stand at the other end of any socket.
            let foreign = told.is_some_and(|(own, peer)| own != 0 && own != peer);
            let standing = if foreign { Standing::Observed } else { Standing::Reported };
            Told::Svid { id, certificate, expires, standing }
        }
        Err(why) => Told::Nothing { error: why.chars().take(LONGEST).collect() },
    }
}

/// What the newest start of a client has on record, with its row.
pub fn recorded(store: &Store, id: &SessionId) -> Result<Option<(u64, Told)>, StoreError> {
    let mut newest = None;
    store.each_row(id, |row| newest = Told::of(&row.detail).map(|told| (row.sequence, told)).or(newest.take()))?;
    Ok(newest)
}
