//! The relying party: whether to act on a consequence report, and on which proof.
//!
//! Owns the four modes of §7.3, the list of trusted instances, the cached registries with their protection against rollback, and the
//! nonces used up. It opens no connection, reads no clock and starts no thread: the caller brings a [`Fetch`] and the moment. Invariant:
//! a [`Verified`] exists only where every check of §7.4 held. Page: `spec/attestation.md`, section 5 (seed §5.5 and §7, R30 to R33).

mod admission;
mod cache;
mod config;
mod entry;
mod event;
mod fetch;
mod nonces;
mod state_files;
mod verify;

pub use admission::{Outcome, Warning};
pub use cache::{Advance, Cache};
pub use config::{Config, Mode};
pub use entry::{Damage, Entry, Gone, MAX_GONE};
pub use event::{Discarded, Event, Journal, Log, What};
pub use fetch::{Fetch, Fetched, MAX_ATTESTATION, MAX_REGISTRY, NetworkError};
pub use nonces::{Nonces, Use};
pub use state_files::StateError;
pub use verify::{Copy, Refusal, Verified, Verifier};
pub use writ_evidence::attestation::{Instance, InstanceError};
