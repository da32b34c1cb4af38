//! The room that composes the verbs: find the policy, open the session, decide, record, seal, verify.
//!
//! Every client, command and (later) service goes through here, so there is one place that decides, one that records and one
//! that checks. It reads no environment variables and prints nothing. Invariant: an allowing answer has its row on disk
//! before it leaves. Format pages: `spec/ledger.md`, `spec/verify.md`.
//!
//! # Embedding
//!
//! A program that runs agents needs four things of it, and `examples/workflow` has all of them:
//!
//! - a [`Home`]: where state lies, and what of the machine the engine may know. It reads nothing by itself.
//! - [`hook::answer`]: an event in, an answer out. Before a call the program asks, and makes the call only where the answer lets it
//!   (`Reply::Silent`, or `Decided` with `allow`); afterwards it tells what came of it. A client of its own speaks the JSON of
//!   `spec/clients/generic.md` ([`writ_clients::generic::Generic`]).
//! - [`steps::run`]: a command that is run and attested.
//! - [`verify::session`]: the record checked again, as `writ verify` does.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use writ_clients::generic::Generic;
//! use writ_core::SessionId;
//! use writ_engine::verify::{self, Options};
//! use writ_engine::{Home, hook};
//! use writ_store::Store;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let home = Home { state: Some("/var/lib/agents/writ".into()), ..Home::default() };
//! let call = br#"{"event":"before-call","session":"run-1","cwd":"/work","call":{"id":"c1","tool":"shell",
//!     "does":{"shell":{"command":"cargo test"}}}}"#;
//! let answer = hook::answer(call, &Generic, &home, Path::new("/work"));
//! println!("{:?}", answer.reply);
//!
//! let store = Store::open("/var/lib/agents/writ".into())?;
//! let report = verify::session(&store, &SessionId::new("run-1"), &home, &Options::default())?;
//! println!("{}", report.verdict());
//! # Ok(())
//! # }
//! ```
//!
//! A policy's Rego rules run in a process of their own: [`Home::program`] names `writ`, or a program that answers to the word
//! `rego` with `writ_evaluators::rego::child::serve`. What a session's sandboxes need of `writ`, they need of that program too.
//! Errors are one `thiserror` enum per operation, and nothing here panics.

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
mod lag;
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
