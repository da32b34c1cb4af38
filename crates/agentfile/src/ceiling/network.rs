//! The network that a child may not widen: hosts, and how each is reached.
//!
//! Owns the second of the seven MUST NOTs. Looks at what `URL` and `SERVER` name; what policies say beyond that is the other checks'.
//! Invariant: each host, scheme and port of a child is one that a single line of the base names.

use super::{Check, MustNot, Side};
use crate::agent::Entry;
use crate::directive::Address;

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
    }
}

fn none_of(address: &Address) -> String {
    format!("the host `{}` is none of the base's", address.host)
}
