//! Sets of tools that a child may have: the base's own, by the same list.
//!
//! Owns what two lines `TOOLSET` have to have in common. Reads no list. Invariant: a set of a child is known to bring the tools of one that
//! the base has, whatever lies beside either file.

use super::{Check, MustNot, Side};
use crate::agent::Entry;
use crate::directive::{Directive, Toolset};
use crate::lock::Lock;

impl Check<'_> {
    pub(super) fn sets(&mut self) {
        let (child, parent) = (self.child, &self.parent.agent);
        for entry in &child.entries {
            let Directive::Toolset(set) = &entry.directive else { continue };
            let same = |base: &&Entry| matches!(&base.directive, Directive::Toolset(held) if held == set);
            let base = parent.entries.iter().find(same);
            let (here, there) = (list(self.lock, set), list(self.parent.lock.as_ref(), set));
            if base.is_some() && here.is_some() && here == there {
                continue;
            }
            let text =
                format!("the tools of `{}` are not known to be the base's: write a `TOOL` for each", entry.quoted());
            let theirs = match base {
                None => Side::absent(parent, "no such `TOOLSET`"),
                Some(base) => {
                    let list =
                        there.map_or_else(|| "of its own folder".to_owned(), |list| format!("whose list is {list}"));
                    Side { text: format!("{}, {list}", base.quoted()), ..Side::of(parent, base) }
                }
            };
            self.say(MustNot::IncreaseAuthority, text, Side::of(child, entry), theirs);
        }
    }
}

/// The digest of a set's list: as it is written, else as the lock found it.
fn list<'a>(lock: Option<&'a Lock>, set: &'a Toolset) -> Option<&'a str> {
    match set {
        Toolset::Registry { digest, .. } => Some(digest),
        Toolset::Named(named) => {
            let found = lock?.toolsets.iter().find(|one| one.name == named.to_string());
            found?.hash.as_deref()
        }
    }
}
