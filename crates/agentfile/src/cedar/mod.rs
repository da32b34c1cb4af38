//! Cedar: the policies of an Agentfile, and decisions by them.
//!
//! Owns how directives and blocks become one set of policies, and how a request is decided by it. Refuses to decide with policies that
//! have errors. Invariant: a request is allowed only if a policy permits it, none forbids it, and no policy erred (R5).

mod by_action;
mod decide;
pub(crate) mod forbidden;
mod lower;
mod many;
mod request;
mod rules;
mod schema;
mod split;

pub use decide::{Decided, Said};
pub use request::{BadRequest, MAX_NUMBER, Request};
pub use rules::{Rule, Rules};
pub use schema::{ACTIONS, Action, Kind, TEXT as SCHEMA_TEXT, known_action, schema};
