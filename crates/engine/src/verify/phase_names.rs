//! The names of phases that more than one file speaks of.
//!
//! Owns the words. Refuses a phase that only its own file names. Invariant: `spec/verify.md` lists each of them.

/// The phases that fail where the record holds and the session was not as its policy wants.
pub const WANTED: [&str; 6] = [LIMITS, MATERIALS, REQUIRED, EVALUATORS, EXPIRY, SUBLAYOUTS];

/// The phase of the statements that a policy wants.
pub const REQUIRED: &str = "required";

/// The phases of what evaluators say.
pub const EVALUATORS: &str = "evaluators";

/// The phase that holds attestations of turns against rows.
pub const TURNS: &str = "turns";

/// The phase that holds them against transcripts.
pub const BINDING: &str = "session binding";
/// The phase that says that a bundle leaves out what turns are bound to; like `coverage` there, it is no exception, and the last line says it.
pub const LEFT_OUT: &str = "bound transcripts";

/// The phase that looks at what a policy binds attestations to.
pub const MATERIALS: &str = "materials";

/// The phase that verifies sub-agents' policies, and what all agents used together.
pub const SUBLAYOUTS: &str = "sublayouts";

/// The phase that says which decisions were not made again.
pub const REQUESTS: &str = "requests";

/// The phase that holds humans' words against their signatures.
pub const APPROVALS: &str = "approvals";

/// The phase that asks whether the policy was still in force.
pub const EXPIRY: &str = "expiry";

/// The phase that holds what was used against the policy's limits.
pub const LIMITS: &str = "limits";

/// The phase that says which calls a hook denied that did not reach this record.
pub const DENIALS: &str = "denials";

/// The phase that says what keeps the keys that sign.
pub const CUSTODY: &str = "custody";
