//! Calls, and whole runs, in a sandbox made from the policy.
//!
//! Owns the way from an allowed call to a confined one: the plan, what this machine allows, the run, its row. Decides nothing: what
//! runs was allowed before, and its row says in what.

mod bare;
pub mod begun;
pub mod client;
pub mod copy;
pub mod exec;
pub mod folders;
mod git;
pub mod keeper;
pub mod layers;
pub mod left;
pub mod limits;
mod mounts;
mod network;
pub mod order;
pub mod places;
pub mod plan;
pub mod record;
mod refusals;
pub mod secrets;
pub mod strength;
pub mod supervise;
pub mod tested;
pub(crate) mod tracked;
pub mod traffic;
pub mod trust;
