//! Hosts that a run reached, and what it may reach while nobody has said so yet.
//!
//! Owns the policy of a run that is learnt from where no policy governs, and `domains` and `enforce.network` for what was reached. Invariant:
//! a host stands in the policy only where a connection to it was let through.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;

use serde::Serialize;
use writ_core::json;
use writ_egress::{Protocol, Rules};

use crate::confine::traffic::Reached;

/// Ports beside 443 and 80 that servers listen on, and what is spoken there.
const PORTS: [(u16, &str); 18] = [
    (21, "opaque"),
    (22, "opaque"),
    (25, "opaque"),
    (465, "opaque"),
    (587, "opaque"),
    (993, "opaque"),
    (1433, "opaque"),
    (3000, "http"),
    (3306, "opaque"),
    (5000, "http"),
    (5432, "opaque"),
    (6379, "opaque"),
    (8000, "http"),
    (8080, "http"),
    (8443, "tls"),
    (9200, "http"),
    (9418, "opaque"),
    (27017, "opaque"),
];
/// Ranges that are nobody's in public. Those where clouds hand out credentials are not among them.
const PRIVATE: [&str; 7] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "::1", "fc00::/7"];
/// Most ports of the host's loopback: a policy takes no more.
const LOOPBACK: usize = 64;
/// What a run has inside for itself.
const INSIDE: [u16; 2] = [3128, 3129];

/// `enforce.network`
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<Port>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    private: Vec<Private>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loopback: Vec<u16>,
}

impl Network {
    /// Whether it says nothing.
    pub const fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.private.is_empty() && self.loopback.is_empty()
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Port {
    hosts: Vec<String>,
    port: u16,
    protocol: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Private {
    range: String,
    hosts: Vec<String>,
}

/// Hosts, and the rest of the network.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// `domains.allow`
    pub allow: Vec<String>,
    /// `enforce.network`
    pub network: Network,
}

/// For what was reached under these rules.
pub fn hosts(reached: &BTreeSet<Reached>, rules: &Rules) -> Hosts {
    let (mut allow, mut loopback) = (BTreeSet::new(), BTreeSet::new());
    let (mut ports, mut private) = (BTreeMap::<(u16, &str), BTreeSet<String>>::new(), BTreeMap::new());
    for Reached { host, port, address, loopback: own } in reached {
        if *own {
            loopback.insert(*port);
            continue;
        }
        let Some(host) = host else { continue };
        allow.insert(host.clone());
        if let Some(rule) =
            rules.ports.iter().find(|rule| rule.port == *port && rule.hosts.iter().any(|of| of.matches(host)))
        {
            ports.entry((*port, word(rule.protocol))).or_default().insert(host.clone());
        }
        let named = |address: &IpAddr| rules.private.iter().any(|private| private.range.holds(*address));
        if let Some(address) = address.filter(named) {
            private.entry(address).or_insert_with(BTreeSet::new).insert(host.clone());
        }
    }
    let port = |((port, protocol), hosts): ((u16, &str), BTreeSet<String>)| Port {
        hosts: hosts.into_iter().collect(),
        port,
        protocol: protocol.to_owned(),
    };
    let range = |(address, hosts): (IpAddr, BTreeSet<String>)| Private {
        range: address.to_string(),
        hosts: hosts.into_iter().collect(),
    };
    let network = Network {
        ports: ports.into_iter().map(port).collect(),
        private: private.into_iter().map(range).collect(),
        loopback: loopback.into_iter().collect(),
    };
    Hosts { allow: allow.into_iter().collect(), network }
}

const fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tls => "tls",
        Protocol::Http => "http",
        Protocol::Opaque => "opaque",
    }
}

/// The policy of a run where none governs: its folder is written, every host is reached through the proxy.
pub fn unwritten() -> Vec<u8> {
    let any = || vec!["*".to_owned()];
    let network = Network {
        ports: PORTS
            .iter()
            .map(|(port, protocol)| Port { hosts: any(), port: *port, protocol: (*protocol).to_owned() })
            .collect(),
        private: PRIVATE.iter().map(|range| Private { range: (*range).to_owned(), hosts: any() }).collect(),
        loopback: listening().into_iter().take(LOOPBACK).collect(),
    };
    let policy = super::Policy {
        version: "1.0",
        name: "learning",
        enforce: super::Enforce { calls: true, network: Some(network) },
        files: None,
        domains: Some(super::Domains { allow: any() }),
    };
    json::pretty(&json::to_value(&policy)).into_bytes()
}

/// Ports of this machine's loopback that somebody listens on.
fn listening() -> BTreeSet<u16> {
    let mut out = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        for line in text.lines().skip(1) {
            let mut words = line.split_whitespace().skip(1);
            let (Some(local), Some(state)) = (words.next(), words.nth(1)) else { continue };
            let port = local.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
            out.extend(port.filter(|_| state == "0A"));
        }
    }
    out.retain(|port| *port > 0 && !INSIDE.contains(port) && !PORTS.iter().any(|(known, _)| known == port));
    out
}
