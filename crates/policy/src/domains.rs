//! Which hosts may be reached (R14): the one place that decides it, for calls that are judged and connections that are made.
//!
//! Owns the meaning of `domains.allow` and `domains.deny`. Refuses to guess: a host is a name in one spelling or it is not
//! compared at all. A deny rule that names a host beats every allow rule. Page: `spec/policy.md`.

use serde::{Deserialize, Serialize};

use crate::facts::{Host, HostFact};
use crate::host_rule::HostRule;
use crate::url;

/// The hosts that one policy allows and denies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domains {
    /// Nothing else is allowed; `None` allows whatever is not denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<HostRule>>,
    /// What is denied, allowed or not. The bare `*` denies only what no allow rule names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<HostRule>,
}

impl Domains {
    /// The pointer of what refuses a host (lower case, Punycode, no final dot). A host that is only mentioned counts against
    /// `deny` alone.
    pub fn refusal(&self, name: &str, mentioned: bool) -> Option<&str> {
        let allowed = self.allow.as_deref().map(|rules| rules.iter().any(|rule| rule.matches(name)));
        let inner = url::inner_v4(name);
        let hits = |rule: &&HostRule| rule.matches(name) || inner.as_ref().is_some_and(|inner| rule.matches(inner));
        let named = self.deny.iter().filter(|rule| !rule.is_everything()).find(hits);
        let everything = self.deny.iter().find(|rule| rule.is_everything() && allowed != Some(true));
        let absent = (allowed == Some(false) && !mentioned).then_some("/domains/allow");
        named.or(everything).map(|rule| rule.pointer.as_str()).or(absent)
    }

    /// The pointer of what refuses a host that a call would contact.
    pub(crate) fn refuses(&self, fact: &HostFact) -> Option<&str> {
        match &fact.host {
            Host::Name(name) => self.refusal(name, fact.mentioned),
            Host::Ambiguous | Host::Unknown => None,
        }
    }

    /// The allow rule that matches a host: the first that names it, else the bare `*`.
    pub fn allowing(&self, name: &str) -> Option<&HostRule> {
        let mut matching = self.allow.iter().flatten().filter(|rule| rule.matches(name));
        matching.clone().find(|rule| !rule.is_everything()).or_else(|| matching.next())
    }

    /// Whether every host that a pattern names is allowed, as far as patterns can tell.
    pub(crate) fn covers(&self, pattern: &HostRule) -> bool {
        let allowed = self.allow.as_deref().is_none_or(|rules| rules.iter().any(|rule| rule.covers(pattern)));
        // The bare `*` denies what no allow rule names.
        let denies = |rule: &HostRule| rule.covers(pattern) && !(rule.is_everything() && self.allow.is_some());
        allowed && !self.deny.iter().any(denies)
    }

    /// Whether a deny rule other than the bare `*` names a host.
    pub fn is_named(&self, name: &str) -> bool {
        self.deny.iter().any(|rule| !rule.is_everything() && rule.matches(name))
    }

    /// Whether anything is ruled.
    pub const fn any(&self) -> bool {
        self.allow.is_some() || !self.deny.is_empty()
    }
}
