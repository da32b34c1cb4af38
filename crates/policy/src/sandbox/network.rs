//! `enforce.network`: ports, private ranges, ceilings, and the host's own loopback.
//!
//! Owns their reading. Refuses them where no `domains` closes the network: nothing would hold them.

use std::net::IpAddr;
use std::num::NonZeroU32;

use writ_core::json::Value;

use super::{hosts, items};
use crate::domains::Domains;
use crate::error::Found;
use crate::host_rule::HostRule;

/// Most entries of a list: each port needs a socket inside.
const MOST: usize = 64;

/// What may be reached beside the usual ports of allowed hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Ports beside 443 and 80.
    pub ports: Vec<Port>,
    /// Ranges that are nobody's in public, and the hosts that may lead there.
    pub private: Vec<Private>,
    /// How often and how much.
    pub limits: Vec<TrafficLimit>,
    /// Ports of the host's own loopback.
    pub loopback: Vec<Loopback>,
}

/// A port of some hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Whose.
    pub hosts: Vec<HostRule>,
    /// Which.
    pub port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
}

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what each is")]
pub enum Protocol {
    Tls,
    Http,
    Opaque,
}

/// A range of addresses, and the hosts that may lead there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    /// `10.0.0.0/8`, or one address; nothing behind the prefix.
    pub range: String,
    /// Whose.
    pub hosts: Vec<HostRule>,
}

/// How often and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficLimit {
    /// JSON pointer of the rule.
    pub pointer: String,
    /// Whose.
    pub hosts: Vec<HostRule>,
    /// Requests a minute.
    pub per_minute: Option<NonZeroU32>,
    /// Bytes to them in all.
    pub bytes_up: Option<u64>,
    /// Bytes from them in all.
    pub bytes_down: Option<u64>,
}

/// A port of the host's own loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loopback {
    /// JSON pointer of the rule.
    pub pointer: String,
    /// Which.
    pub port: u16,
}

impl Network {
    pub(super) fn read(document: &Value, domains: &Domains, found: &mut Vec<Found>) -> Self {
        let place = "/enforce/network";
        let Some(member) = document.get("enforce").and_then(|enforce| enforce.get("network")) else {
            return Self::default();
        };
        if !domains.any() {
            let help = "say which hosts may be reached: `\"domains\": {\"allow\": []}` is none";
            found.push(
                Found::name(place, "without `domains` the network is open, and nothing holds this", help)
                    .rule("bad-network"),
            );
        }
        for list in ["ports", "private", "limits", "loopback"] {
            if member.get(list).and_then(Value::as_array).is_some_and(|list| list.len() > MOST) {
                let pointer = format!("{place}/{list}");
                let help = "patterns of hosts take several at once";
                found.push(Found::value(&pointer, format!("more than {MOST} entries"), help).rule("bad-network"));
            }
        }
        let rules = |list: &str| items(member.get(list), &format!("{place}/{list}"));
        Self {
            ports: rules("ports").iter().filter_map(|(at, rule)| port_rule(rule, at, found)).collect(),
            private: rules("private").iter().filter_map(|(at, rule)| private(rule, at, found)).collect(),
            limits: rules("limits").iter().filter_map(|(at, rule)| limit(rule, at, found)).collect(),
            loopback: rules("loopback").iter().filter_map(|(at, port)| loopback(port, at, found)).collect(),
        }
    }
}

fn port(value: Option<&Value>, pointer: &str, found: &mut Vec<Found>) -> Option<u16> {
    let number = value?.as_u64()?;
    let port = u16::try_from(number).ok().filter(|port| *port > 0);
    if port.is_none() {
        found.push(Found::value(pointer, format!("there is no port {number}"), "1 to 65535").rule("bad-network"));
    }
    port
}

fn port_rule(rule: &Value, place: &str, found: &mut Vec<Found>) -> Option<Port> {
    let protocol = match rule.get("protocol").and_then(Value::as_str)? {
        "tls" => Protocol::Tls,
        "http" => Protocol::Http,
        _ => Protocol::Opaque,
    };
    let hosts = hosts(rule, place, found);
    Some(Port { hosts, port: port(rule.get("port"), &format!("{place}/port"), found)?, protocol })
}

fn private(rule: &Value, place: &str, found: &mut Vec<Found>) -> Option<Private> {
    let text = rule.get("range").and_then(Value::as_str)?;
    if !is_range(text) {
        let help = "`10.0.0.0/8`, `fd00::/8`, or one address; nothing behind the prefix";
        let pointer = format!("{place}/range");
        found.push(Found::value(&pointer, format!("`{text}` is no range of addresses"), help).rule("bad-network"));
        return None;
    }
    Some(Private { range: text.to_owned(), hosts: hosts(rule, place, found) })
}

/// Whether a text is an address, or a range whose bits behind the prefix are zero.
fn is_range(text: &str) -> bool {
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let (bits, all) = match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let length = length.map_or(Some(all), |length| length.parse::<u32>().ok()).filter(|length| *length <= all);
    length.is_some_and(|length| bits & u128::MAX.checked_shr(length).unwrap_or(0) == 0)
}

fn limit(rule: &Value, place: &str, found: &mut Vec<Found>) -> Option<TrafficLimit> {
    let hosts = hosts(rule, place, found);
    let count = |name: &str| rule.get(name).and_then(Value::as_u64);
    let per_minute = count("perMinute").map(|count| u32::try_from(count).ok().and_then(NonZeroU32::new));
    let limit = TrafficLimit {
        pointer: place.to_owned(),
        hosts,
        per_minute: per_minute.flatten(),
        bytes_up: count("bytesUp"),
        bytes_down: count("bytesDown"),
    };
    if per_minute == Some(None) {
        let help = "1 to 4294967295; hosts that may not be asked at all stand in `domains.deny`";
        found.push(Found::value(&format!("{place}/perMinute"), "no rate", help).rule("bad-network"));
        return None;
    }
    if limit.per_minute.is_none() && limit.bytes_up.is_none() && limit.bytes_down.is_none() {
        let help = "`perMinute`, `bytesUp` or `bytesDown`";
        found.push(Found::value(place, "it limits nothing", help).rule("bad-network"));
        return None;
    }
    Some(limit)
}

fn loopback(value: &Value, pointer: &str, found: &mut Vec<Found>) -> Option<Loopback> {
    Some(Loopback { pointer: pointer.to_owned(), port: port(Some(value), pointer, found)? })
}
