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
mod starts;
pub mod surveyed;

use writ_clients::Client;
use writ_core::{Decision, Timestamp, ToolCall};

pub use file_system::FileSystem;
pub use probe::DiskProbe;

use crate::Home;
use crate::governing::layers::Caller;
use crate::governing::{Governing, protect};
use look::CallContext;

/// Decides one call of a client's agent under a policy and the layers that speak on its calls, now, on this machine's file system,
/// without a session and without a record.
pub fn now(governing: &Governing, call: &ToolCall, caller: Caller<'_>, client: &dyn Client, home: &Home) -> Decision {
    let setting = protect::setting(home, &governing.path, Timestamp::now());
    let setting = protect::with_layers(setting, &governing.list());
    let surroundings = CallContext { setting: &setting, home, client: Some(client), session: None, repository: None };
    let layers = governing.applying(caller).into_iter().map(|layer| (Some(layer.at.name.as_str()), &layer.policy));
    let policies: Vec<_> = std::iter::once((None, &governing.policy)).chain(layers).collect();
    surveyed::judged(&policies, call, &surroundings)
}
