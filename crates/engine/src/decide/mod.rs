//! A call is looked at, decided, put on record and answered.

pub mod applies;
pub mod approvals;
mod authored;
pub mod call;
mod file_system;
mod look;
pub mod outcome;
mod own_server;
pub mod passphrase;
mod probe;
mod reply;

use writ_clients::Client;
use writ_core::{Decision, Timestamp, ToolCall};
use writ_policy::{Layer, Tally};

pub use file_system::FileSystem;
pub use probe::DiskProbe;

use crate::Home;
use crate::governing::{Governing, protect};
use look::{CallContext, look};

/// Decides one call of a client's agent under a policy, now, on this machine's file system, without a session and without a
/// record.
pub fn now(governing: &Governing, call: &ToolCall, client: &dyn Client, home: &Home) -> Decision {
    let setting = protect::setting(home, &governing.path, Timestamp::now());
    let surroundings = CallContext { setting: &setting, home, client: Some(client), session: None, repository: None };
    let looked = look(&governing.policy, call, &surroundings);
    writ_policy::judge(&[Layer::own(&governing.policy, &looked.facts)], &setting, Tally::default())
}
