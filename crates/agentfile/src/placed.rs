//! An Agentfile with what an operator says of the place it runs in (R63): what a run runs under, and what a base is asked as.
//!
//! Owns the form and how it reads: placement that is given stands in the place of the file's own, on lines behind the file's last. Refuses
//! nothing here; whether it can be held is [`crate::unmet`]'s to say. Invariant: lines of the Agentfile keep their numbers. Page:
//! `spec/agentfile.md`, "A run".

use serde::{Deserialize, Serialize};
use writ_core::json;

use crate::agent::Agent;
use crate::directive::{Class, known};
use crate::lint::{Linted, lint};
use crate::parse::{Options, parse};
use crate::reference::OciRef;

/// The tool that the command of a run counts as.
pub const START: &str = "CMD";
/// Where an agent finds its package.
pub const PACKAGE: &str = "/agentrc";
/// What addresses of bases begin with.
pub const BASE: &str = "agentrc://";
/// What the canonical form of one begins with.
const BEGINS: &[u8] = b"{\"agentfile\":";

/// The form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// The Agentfile's text.
    pub agentfile: String,
    /// The agents that are built on it: what it forbids to these by name, it forbids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<String>,
    /// The file of a policy that governs here too: both have to allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Whether calls of its tools that Writ makes itself are held to it (`writ tool call`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calls: bool,
    /// Whether what it is built on is an image, which bounds nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub image: bool,
    /// Whether it was unpacked from a package: its folder can be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub package: bool,
    /// The package that it was, by the digest of its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// Lines in the place of those that say where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Vec<String>>,
    /// Private addresses that hosts may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<Private>,
    /// Whether a run is held to it, and not a client's hooks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// The tools of its sets, as references: as if a line declared each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// Addresses that are nobody's on the Internet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Private {
    /// `10.0.0.0/8`.
    pub range: String,
    /// Whose.
    pub hosts: Vec<String>,
}

impl Placed {
    /// One in its canonical form.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(BEGINS) { json::from_slice(bytes).ok() } else { None }
    }

    /// An Agentfile without a place, or one with it.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = || String::from_utf8(bytes.to_vec()).ok();
        Self::of(bytes).or_else(|| Some(Self { agentfile: text()?, ..Self::default() }))
    }

    /// Its canonical form.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::to_canonical(self).into_bytes()
    }

    /// Its Agentfile in its place, linted.
    pub fn linted(&self, name: &str) -> Linted {
        lint(self.text().as_bytes(), name, &Options::default())
    }

    /// Its Agentfile in its place.
    pub fn agent(&self, name: &str) -> Agent {
        parse(self.text().as_bytes(), name).0
    }

    /// How many lines are the Agentfile's own; what comes behind them is the operator's.
    pub fn own_lines(&self) -> usize {
        self.agentfile.lines().count()
    }

    fn text(&self) -> String {
        let tools = self.tools.iter().map(|tool| format!("TOOL {tool}"));
        let Some(placement) = &self.placement else {
            let whole = self.agentfile.is_empty() || self.agentfile.ends_with('\n') || self.tools.is_empty();
            let end = if whole { "" } else { "\n" };
            return self.agentfile.clone() + end + &tools.map(|line| line + "\n").collect::<String>();
        };
        let own = placement_lines(&parse(self.agentfile.as_bytes(), "Agentfile").0);
        let kept = |(at, line): (usize, &str)| if own.contains(&(at + 1)) { String::new() } else { line.to_owned() };
        let kept = self.agentfile.lines().enumerate().map(kept);
        kept.chain(placement.iter().cloned()).chain(tools).map(|line| line + "\n").collect()
    }
}

/// The lines that say where it runs.
pub fn placement_lines(agent: &Agent) -> Vec<usize> {
    let placed = |name: &str| known(name).is_some_and(|known| known.class == Class::Placement);
    agent.entries.iter().filter(|entry| placed(&entry.keyword.text)).map(crate::Entry::line).collect()
}

/// What a base is called among the policies that a session keeps.
pub fn base_address(reference: &OciRef) -> String {
    format!("{BASE}{}", reference.text)
}

/// The variable that holds the value of a secret of a vault, once it was fetched.
pub fn vault_variable(name: &str) -> String {
    format!("WRIT_VAULT_{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placement_is_exchanged_and_lines_stay() {
        let text = "AGENT a\nISOLATION container\nPOLICY\nISOLATION local\nEND\nBIND ./x /w rw\nMOUNT /w rw\n";
        let placed = Placed {
            agentfile: text.to_owned(),
            placement: Some(vec!["BIND /srv/y /w ro".to_owned()]),
            ..Placed::default()
        };
        assert_eq!(placed.text(), "AGENT a\n\nPOLICY\nISOLATION local\nEND\n\nMOUNT /w rw\nBIND /srv/y /w ro\n");
        assert_eq!(placed.own_lines(), 7);
        assert_eq!(Placed::of(&placed.to_bytes()), Some(placed));
        assert_eq!(Placed::of(text.as_bytes()), None);
        assert_eq!(Placed::read(text.as_bytes()).unwrap().text(), text);
        let tools = vec!["utcp:x".to_owned()];
        let of =
            |agentfile: &str| Placed { agentfile: agentfile.to_owned(), tools: tools.clone(), ..Placed::default() };
        assert_eq!(of("AGENT a").text(), "AGENT a\nTOOL utcp:x\n");
        assert_eq!(of("AGENT a\n").agent("Agentfile").tools().count(), 1);
        assert_eq!(Placed::of(&of("AGENT a\n").to_bytes()), Some(of("AGENT a\n")));
    }
}
