//! The room that composes the verbs: find the policy, open the session, decide, record, seal, verify.
//!
//! Every client, command and (later) service goes through here, so there is one place that decides, one that records and one
//! that checks. It reads no environment variables and prints nothing. Invariant: an allowing answer has its row on disk
//! before it leaves. Format pages: `spec/ledger.md`, `spec/verify.md`.

mod call;
pub mod claims;
mod disk;
pub mod governing;
mod home;
pub mod hook;
pub mod human;
pub mod install;
mod lifecycle;
pub mod protect;
mod seal;
mod session;
mod sight;
pub mod starter;
pub mod state;
mod sweep;
mod trust;
pub mod verify;

use writ_core::{Decision, Timestamp, ToolCall};

pub use disk::Disk;
pub use governing::Governing;
pub use home::{Home, NoStateDir};
pub use sight::Sight;
pub use trust::{Trust, TrustError};

/// Decides one call under a policy, now, on this machine's file system, without a session and without a record.
pub fn decide(governing: &Governing, call: &ToolCall, home: &Home) -> Decision {
    let setting = protect::setting(home, &governing.path, Timestamp::now());
    let facts = writ_policy::survey(&governing.policy, call, &setting, &Disk::guarding(&setting));
    writ_policy::judge(&governing.policy, &setting, &facts)
}
