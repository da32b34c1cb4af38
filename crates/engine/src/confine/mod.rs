//! Calls in a sandbox made from the policy.
//!
//! Owns the way from an allowed call to a confined one: the plan, what this machine allows, the run, its row. Decides nothing: what
//! runs was allowed before, and its row says in what.

pub mod exec;
pub mod keeper;
pub mod order;
mod places;
pub mod plan;
pub mod record;
pub mod strength;
pub mod supervise;
pub mod traffic;
