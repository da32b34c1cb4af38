//! The Agentfile: one reviewable file that declares one agent.
//!
//! Reads it, says what is wrong with it and where, decides requests by its Cedar policies, holds it against what it is built on, and
//! lowers it to the policy that everything else of Writ uses. Does no I/O. Invariant: what it grants is declared, permitted, not
//! forbidden and within every ceiling above it (R62). Specification: `agentrc` 0.1.0-draft.4 (R60). Page: `spec/agentfile.md`.

mod agent;
pub mod cedar;
pub mod ceiling;
mod diagnostic;
pub mod directive;
mod format;
mod lines;
mod lint;
pub mod lock;
mod names;
mod parse;
pub mod placed;
pub mod reference;
pub mod risk;
mod session;
pub mod tool;
mod unmet;

pub use agent::{Agent, Entry};
pub use diagnostic::{Diagnostic, Place, Severity};
pub use format::{format, starter};
pub use lines::{MAX_BYTES, Token};
pub use lint::{Linted, lint, worst};
pub use lock::Lock;
pub use names::{Resolved, call_name, resolve, tool_name};
pub use parse::{Options, SYNTAX, parse, parse_with};
pub use session::{client_tools, extending, is_agentfile, policy};
pub use unmet::{Machine, Unmet, unmet};
