//! What a policy says of sandboxes beyond files and hosts: network, limits, secrets.
//!
//! Owns the reading of `enforce.network`, `enforce.limits` and `grants.secrets`. Refuses words that nothing could hold, at the time
//! the policy is read. Invariant: of several layers each can only tighten: what is granted has to be granted by every layer that
//! speaks of it, and of limits the strictest counts. Pages: `spec/extensions.md`, `spec/sandbox.md`.

mod limits;
mod network;
mod secrets;

pub use limits::Limits;
pub use network::{Loopback, Network, Port, Private, Protocol, TrafficLimit};
pub use secrets::{Inject, Secret, Secrets, Source};

use writ_core::json::Value;

use crate::domains::Domains;
use crate::error::Found;
use crate::host_rule::HostRule;

/// What one policy says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// What may be reached beside the usual ports of allowed hosts.
    pub network: Network,
    /// What a command may use up.
    pub limits: Limits,
    /// What it uses without having it.
    pub secrets: Secrets,
}

impl Sandbox {
    pub(crate) fn read(document: &Value, domains: &Domains, found: &mut Vec<Found>) -> Self {
        Self {
            network: Network::read(document, domains, found),
            limits: Limits::read(document, found),
            secrets: Secrets::read(document, domains, found),
        }
    }
}

/// The items of a list with their pointers.
fn items<'a>(list: Option<&'a Value>, place: &str) -> Vec<(String, &'a Value)> {
    let items = list.and_then(Value::as_array).unwrap_or_default();
    items.iter().enumerate().map(|(at, item)| (format!("{place}/{at}"), item)).collect()
}

/// The hosts of a rule; at least one, and each a pattern.
fn hosts(rule: &Value, place: &str, found: &mut Vec<Found>) -> Vec<HostRule> {
    let place = format!("{place}/hosts");
    let listed = items(rule.get("hosts"), &place);
    if listed.is_empty() && rule.get("hosts").is_some() {
        found.push(Found::value(&place, "no host at all", "name the hosts this is about").rule("bad-domain"));
    }
    let mut out = Vec::new();
    for (pointer, item) in listed {
        let Some(text) = item.as_str() else { continue };
        match HostRule::parse(pointer.clone(), text) {
            Some(rule) => out.push(rule),
            None => {
                let help = "a host name, `*.host`, `host.*` or `*`, without scheme, port or path";
                found.push(Found::value(&pointer, format!("bad domain pattern `{text}`"), help).rule("bad-domain"));
            }
        }
    }
    out
}

/// What both lists name: patterns of one that the other covers.
pub fn both(one: &[HostRule], other: &[HostRule]) -> Vec<HostRule> {
    let covered = |rules: &[HostRule], by: &[HostRule]| -> Vec<HostRule> {
        rules.iter().filter(|rule| by.iter().any(|wide| wide.covers(rule))).cloned().collect()
    };
    let mut out = covered(one, other);
    for rule in covered(other, one) {
        if !out.iter().any(|had| had.pattern == rule.pattern) {
            out.push(rule);
        }
    }
    out
}
