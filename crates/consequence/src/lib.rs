//! What an action would do, and what could bring it back: shell lines, Terraform plans, MCP calls.
//!
//! Owns the tiers and the reports. Knowledge is in `data/`, a file for each family of programs or resources, each rule with its
//! reason. It judges no policy and does no I/O: what is on disk and in git comes from whoever calls. The invariant: evidence
//! that the agent itself brings never lowers a tier (R35), and what is unknown is named, not guessed (R36). Page:
//! `spec/consequence.md`.

mod heuristics;
pub mod mcp;
mod paths;
mod report;
pub mod rules;
pub mod shell;
pub mod sql;
pub mod terraform;

pub use paths::{Git, NoProbe, Probe, Seen};

pub use report::{
    Actor, Confidence, Dependency, Effect, Evidence, Intent, Metadata, Missing, Mutation, Origin, Recoverability,
    Report, Risk, Target, Tier, Unseen, Verdict,
};
