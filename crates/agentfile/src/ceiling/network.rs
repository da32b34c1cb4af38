//! The network that a child may not widen: hosts, and how each is reached.
//!
//! Owns the second of the seven MUST NOTs. Looks at what `URL`, `SERVER` and `TRACE` name; what policies say beyond that is the other
//! checks'. Invariant: each host, scheme and port of a child is one that a single line of the base names; its traces go to a host of the base's,
//! or where the base's go.

use super::{Check, MustNot, Side};
use crate::agent::Entry;
use crate::directive::{Address, Directive};

impl Check<'_> {
    pub(super) fn network(&mut self) {
        let (child, parent) = (self.child, &self.parent.agent);
        for (entry, address) in child.destinations() {
            let known: Vec<(&Entry, &Address)> =
                parent.destinations().filter(|(_, base)| base.host.eq_ignore_ascii_case(&address.host)).collect();
            if known.iter().any(|(_, base)| base.scheme == address.scheme && base.port == address.port) {
                continue;
            }
            let (message, theirs) = match (known.first(), parent.destinations().next()) {
                (Some((first, _)), _) => {
                    let message =
                        format!("`{}` is reached by {} on port {}", address.host, address.scheme, address.port);
                    let lines: Vec<String> = known.iter().map(|(line, _)| line.quoted()).collect();
                    (message, Side { text: lines.join("`, `"), ..Side::of(parent, first) })
                }
                (None, Some((first, _))) => {
                    let hosts: Vec<&str> = parent.destinations().map(|(_, base)| base.host.as_str()).collect();
                    let text = format!("hosts: {}", hosts.join(", "));
                    (none_of(address), Side { text, ..Side::of(parent, first) })
                }
                (None, None) => (none_of(address), Side::absent(parent, "no `URL`: no network")),
            };
            self.say(MustNot::WidenNetwork, message, Side::of(child, entry), theirs);
        }
        self.traces();
    }

    /// Traces go where the base sends its own, or to a host of the base's.
    fn traces(&mut self) {
        let (child, parent) = (self.child, &self.parent.agent);
        for entry in &child.entries {
            let Directive::Trace(Some(place)) = &entry.directive else { continue };
            let host = host_of(place);
            let known = |host: &str| parent.destinations().any(|(_, base)| base.host == host);
            if parent.entries.iter().any(|base| base.directive == entry.directive) || host.as_deref().is_some_and(known)
            {
                continue;
            }
            let theirs = parent.entries.iter().find(|base| matches!(base.directive, Directive::Trace(_)));
            let theirs = theirs.map_or_else(|| Side::absent(parent, "no `TRACE`"), |base| Side::of(parent, base));
            let message = format!("traces go to `{}`, which is none of the base's", host.as_deref().unwrap_or(place));
            self.say(MustNot::WidenNetwork, message, Side::of(child, entry), theirs);
        }
    }
}

/// The host of a place for traces, lower case.
fn host_of(place: &str) -> Option<String> {
    Some(url::Url::parse(place).ok()?.host_str()?.to_ascii_lowercase())
}

fn none_of(address: &Address) -> String {
    format!("the host `{}` is none of the base's", address.host)
}
