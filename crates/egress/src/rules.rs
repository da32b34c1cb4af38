//! What a confined program may reach: a plain value, made from a policy and put on record by its digest.
//!
//! Owns ports, private ranges, limits, which hosts are terminated and which secrets go where. Which hosts are allowed at all it
//! does not decide itself: it asks [`Domains`], as the judge of calls does, and which requests [`WebGrants`]. Refuses by default: no layer, no host. Page:
//! `spec/egress.md`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};
use writ_policy::{Domains, HostRule, WebGrants};

use crate::address::{self, AddressKind, Network};
use crate::host::{HostName, any};
use crate::refusal::Refusal;
use crate::secret::{SecretRule, is_placeholder};

/// What may be reached, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rules {
    /// The `domains` of each layer of the policy: all of them must allow a host. Of none, nothing is allowed.
    pub domains: Vec<Domains>,
    /// Ports beside 443 (TLS) and 80 (HTTP), which every allowed host has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRule>,
    /// Ranges that are nobody's in public, and the hosts that may lead there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<PrivateRange>,
    /// How often and how much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// Ports of this machine's own 127.0.0.1, reached inside at the same address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loopback: Vec<LoopbackPort>,
    /// Hosts whose TLS ends here although no secret is bound to them, so that their requests can be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminated: Vec<HostRule>,
    /// What each layer grants of requests: `grants.apis`, `grants.storage`. All of them must let a request pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<WebGrants>,
    /// What is put in where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretRule>,
}

/// A port of some hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortRule {
    /// Whose.
    pub hosts: Vec<HostRule>,
    /// Which.
    pub port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
}

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TLS whose client names the host.
    Tls,
    /// HTTP/1.1 in the clear, whose client names the host.
    Http,
    /// Anything over TCP; what is said there is not read.
    Opaque,
}

/// A port of this machine's own 127.0.0.1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopbackPort {
    /// JSON pointer of the rule.
    pub pointer: String,
    /// Which.
    pub port: u16,
}

/// A range that is no public one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateRange {
    /// The addresses. A metadata service's is reached only where the range is that address alone.
    pub range: Network,
    /// Hosts that may lead there.
    pub hosts: Vec<HostRule>,
}

/// How often and how much; what a limit's patterns match counts together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limit {
    /// JSON pointer of the rule.
    pub pointer: String,
    /// Whose.
    pub hosts: Vec<HostRule>,
    /// Requests a minute; where requests cannot be seen, connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<std::num::NonZeroU32>,
    /// Bytes to them in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_up: Option<u64>,
    /// Bytes from them in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_down: Option<u64>,
}

/// What is wrong with rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum RulesError {
    #[error("two secrets are called `{0}`, or have one placeholder")]
    Twice(String),
    #[error("the placeholder of secret `{0}` has another form than Writ's")]
    Placeholder(String),
    #[error("secret `{0}` is bound to no host, or to every host")]
    Unbound(String),
    #[error("secret `{0}`: `{1}` is not a header that a secret may stand in")]
    Header(String, String),
}

impl Rules {
    /// What identifies them: the digest of their canonical form.
    pub fn digest(&self) -> Digest {
        Digest::of(json::to_canonical(self).as_bytes())
    }

    /// Whether they can be kept.
    pub fn check(&self) -> Result<(), RulesError> {
        let mut seen = BTreeSet::new();
        for secret in &self.secrets {
            let name = || secret.name.clone();
            if !is_placeholder(&secret.placeholder) {
                return Err(RulesError::Placeholder(name()));
            }
            if !seen.insert(&secret.name) || !seen.insert(&secret.placeholder) {
                return Err(RulesError::Twice(name()));
            }
            if secret.hosts.is_empty() || secret.hosts.iter().any(HostRule::is_everything) {
                return Err(RulesError::Unbound(name()));
            }
            if let Some(bad) = secret.headers.iter().find(|header| !SecretRule::may_stand_in(header)) {
                return Err(RulesError::Header(name(), bad.clone()));
            }
        }
        Ok(())
    }

    /// Whether a host may be reached: the pointer of what allows it.
    pub fn host(&self, host: &HostName) -> Result<String, Refusal> {
        let name = host.as_str();
        let refused = |rule: &str| Refusal::Host { host: name.to_owned(), rule: rule.to_owned() };
        if self.domains.is_empty() {
            return Err(refused("no rule names a host"));
        }
        if let Some(rule) = self.domains.iter().find_map(|layer| layer.refusal(name, false)) {
            return Err(refused(rule));
        }
        if let Some(rule) = self.grants.iter().find_map(|layer| layer.denies_host(name, None)) {
            return Err(refused(rule));
        }
        let mut allowing = self.domains.iter().filter_map(|layer| layer.allowing(name));
        let named = allowing.clone().find(|rule| !rule.is_everything());
        if host.address().is_some() && named.is_none() {
            return Err(Refusal::Address { host: name.to_owned() });
        }
        Ok(named.or_else(|| allowing.next()).map_or_else(|| "/domains".to_owned(), |rule| rule.pointer.clone()))
    }

    /// Whether a request that can be seen may be made.
    pub fn request(&self, secure: bool, host: &HostName, port: u16, path: &[u8]) -> Result<(), Refusal> {
        let (scheme, usual) = if secure { ("https", 443) } else { ("http", 80) };
        // What is no text can be read in different ways.
        let path = std::str::from_utf8(path).unwrap_or_default();
        let at = (scheme, host.as_str(), Some(port).filter(|port| *port != usual));
        let refused = self.grants.iter().find_map(|layer| layer.refusal(at, path));
        refused.map_or(Ok(()), |rule| Err(Refusal::Api { host: host.to_string(), rule: rule.to_owned() }))
    }

    /// What may be spoken on a port of an allowed host.
    pub fn protocol(&self, host: &HostName, port: u16) -> Result<Protocol, Refusal> {
        if let Some(rule) = self.grants.iter().find_map(|layer| layer.denies_host(host.as_str(), Some(port))) {
            return Err(Refusal::Host { host: host.to_string(), rule: rule.to_owned() });
        }
        let ruled = self.ports.iter().find(|rule| rule.port == port && any(&rule.hosts, host));
        match (ruled, port) {
            (Some(rule), _) => Ok(rule.protocol),
            (None, 443) => Ok(Protocol::Tls),
            (None, 80) => Ok(Protocol::Http),
            (None, _) => Err(Refusal::Port { host: host.to_string(), port }),
        }
    }

    /// Whether a host may lead to an address.
    pub fn address(&self, host: &HostName, address: IpAddr) -> Result<(), Refusal> {
        let mut kind = address::kind(address);
        if kind == AddressKind::Public && address::is_own(address) {
            kind = AddressKind::Own;
        }
        let mut ranges = self.private.iter().filter(|private| any(&private.hosts, host));
        let fine = match kind {
            AddressKind::Public => true,
            AddressKind::Metadata => ranges.any(|private| private.range.is_only(address)),
            AddressKind::Loopback
            | AddressKind::LinkLocal
            | AddressKind::Private
            | AddressKind::Reserved
            | AddressKind::Own => ranges.any(|private| private.range.holds(address)),
        };
        if fine { Ok(()) } else { Err(Refusal::Private { host: host.to_string(), address, kind }) }
    }

    /// Whether a secret is bound to a host.
    pub fn has_secret(&self, host: &HostName) -> bool {
        self.secrets.iter().any(|secret| any(&secret.hosts, host))
    }

    /// Whether TLS to a host ends here.
    pub fn is_terminated(&self, host: &HostName) -> bool {
        self.has_secret(host) || any(&self.terminated, host)
    }

    /// Whether TLS to any host ends here, so that the confined programs must trust Writ's authority.
    pub fn needs_authority(&self) -> bool {
        !self.secrets.is_empty() || !self.terminated.is_empty()
    }

    /// The rule that hands a port of this machine's own loopback in.
    pub fn loopback(&self, port: u16) -> Option<&LoopbackPort> {
        self.loopback.iter().find(|rule| rule.port == port)
    }

    /// The ports that need a listener of their own for programs that know no proxy.
    pub fn listening_ports(&self) -> BTreeSet<u16> {
        let ruled = self.ports.iter().map(|rule| rule.port).chain(self.loopback.iter().map(|rule| rule.port));
        [80, 443].into_iter().chain(ruled).collect()
    }
}

#[cfg(test)]
mod tests;
