//! The notary: a process that answers hooks on one engine, one ledger and one key.
//!
//! Owns the door to it: a Unix socket, who may ask there, and what hook and notary say to each other. Refuses whoever is another user, or
//! sees other files. Invariant: a call whose hook has put its whole question is answered by the notary or denied; it is never decided beside it.
//! Page: `spec/notary.md`.

pub mod ask;
pub mod attest;
mod confirm;
pub mod door;
pub mod late;
pub mod peer;
pub mod serve;
mod surroundings;
pub mod tokens;
pub mod unanswered;

pub use ask::{Asked, ask};
pub use surroundings::Surroundings;
