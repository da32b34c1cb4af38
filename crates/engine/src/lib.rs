//! The room that composes the verbs: find the policy, open the session, decide, record, seal, verify.
//!
//! Every client, command and (later) service goes through here, so there is one place that decides, one that records and one
//! that checks. It reads no environment variables and prints nothing. Invariant: an allowing answer has its row on disk
//! before it leaves. Format pages: `spec/ledger.md`, `spec/verify.md`.

pub mod attest;
pub mod bundle;
mod claim_settings;
pub mod claims;
pub mod confine;
pub mod copy;
pub mod decide;
pub mod governing;
mod home;
pub mod hook;
pub mod identity;
pub mod keeper;
pub mod limits;
pub mod mcp;
pub mod notary;
pub mod past;
pub mod procfs;
pub mod run;
pub mod session;
pub mod setup;
pub mod steps;
pub mod turns;
pub mod verify;
pub mod view;

pub use home::{Asker, Environment, Home, NoStateDir, Svid, Workload};
