//! A call is looked at, decided, put on record and answered.

pub mod answered;
pub mod applies;
pub mod approvals;
mod authored;
pub mod call;
mod file_system;
mod leads;
mod look;
pub mod outcome;
mod own_server;
pub mod passphrase;
mod probe;
pub mod rates;
mod reply;
pub mod requests;
mod starts;
pub mod surveyed;

use writ_clients::Client;
use writ_core::{Decision, Timestamp, ToolCall};
use writ_policy::{Facts, Setting};

pub use file_system::FileSystem;
pub use probe::DiskProbe;

use crate::Home;
use crate::governing::layers::Caller;
use crate::governing::{Governing, protect};
use look::CallContext;

/// Decides one call of a client's agent under a policy and the layers that speak on its calls, now, on this machine's file system,
/// without a session and without a record.
pub fn now(governing: &Governing, call: &ToolCall, caller: Caller<'_>, client: &dyn Client, home: &Home) -> Decision {
    Sessionless::new(governing, home).decide(call, caller, client)
}

/// Decides calls one after another on this machine's file system, without a session and without a record: nothing is counted, and no label
/// of one call is remembered at the next. What protects the policy and the record is looked for once.
pub struct Sessionless<'a> {
    governing: &'a Governing,
    home: &'a Home,
    setting: Setting,
}

impl<'a> Sessionless<'a> {
    /// Under a policy and its layers, now.
    pub fn new(governing: &'a Governing, home: &'a Home) -> Self {
        let setting = protect::setting(home, &governing.path, Timestamp::now());
        Self { governing, home, setting: protect::with_layers(setting, &governing.list()) }
    }

    /// Decides one call.
    pub fn decide(&self, call: &ToolCall, caller: Caller<'_>, client: &dyn Client) -> Decision {
        let layers = self.governing.applying(caller).into_iter();
        let layers = layers.map(|layer| (Some(layer.at.name.as_str()), &layer.policy));
        let policies: Vec<_> = std::iter::once((None, &self.governing.policy)).chain(layers).collect();
        surveyed::judged(&policies, call, &self.surroundings(client))
    }

    /// What one call would touch, as the policy itself sees it.
    pub fn facts(&self, call: &ToolCall, client: &dyn Client) -> Facts {
        look::look(&self.governing.policy, call, &self.surroundings(client)).facts
    }

    fn surroundings<'b>(&'b self, client: &'b dyn Client) -> CallContext<'b> {
        CallContext { setting: &self.setting, home: self.home, client: Some(client), session: None, repository: None }
    }
}
