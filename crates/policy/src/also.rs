//! Rules of a policy in another language than its own, judged from the same facts.
//!
//! Owns the seam: what such rules are asked, and where their reasons go. Knows no language. Invariant: they can only tighten; what they
//! say in favour is left out, because the policy's own lists say what is allowed.

use std::fmt::Debug;

use writ_core::{Reason, Verdict};

use crate::facts::{Facts, Host, PathKind};

/// Rules in another language.
// EXTENSION POINT: the rooms above this one bring the languages; an Agentfile's Cedar policies are the first.
pub trait Also: Debug + Send + Sync {
    /// What they object to.
    fn objections(&self, asked: &Asked<'_>) -> Vec<Reason>;
    /// What of them nothing acts on.
    fn not_enforced(&self) -> Vec<String>;
    /// Where a sandbox shows folders under other names.
    fn mounted(&self) -> Vec<Mounted>;
    /// How often tools may be called.
    fn rates(&self) -> Vec<Rate>;
}

/// How often a tool may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// What its rules call the tool.
    pub name: String,
    /// The tools of clients that it is.
    pub tools: Vec<String>,
    /// How often,
    pub count: u64,
    /// in so many seconds.
    pub seconds: u64,
}

impl Rate {
    /// Whether a call of a tool with these names counts.
    pub fn counts(&self, names: [&str; 2]) -> bool {
        self.tools.iter().any(|tool| names.contains(&tool.as_str()))
    }
}

/// A folder or file of this machine, and what it is called in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// What it is called, absolute.
    pub at: String,
    /// Where it lies.
    pub host: String,
    /// Whether what is written there goes to a copy.
    pub copied: bool,
}

/// What a call would do, for other rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The tool, as the client calls it.
    pub tool: &'a str,
    /// Its canonical name.
    pub known_as: &'a str,
    /// Whether its input holds a shell line.
    pub shell: bool,
    /// The paths it touches, resolved, and whether it writes there.
    pub paths: Vec<(&'a str, bool)>,
    /// The hosts it reaches; nothing stands for one that is not known.
    pub hosts: Vec<Option<&'a str>>,
    /// Whether parts of it are not known before it runs.
    pub unresolved: bool,
    /// What rules call the tools that were called as often as they may be.
    pub exceeded: &'a [String],
    /// The secrets that Writ puts into its request.
    pub secrets: Vec<PutIn<'a>>,
}

/// A secret that Writ puts into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutIn<'a> {
    /// Its name.
    pub name: &'a str,
    /// The host that gets it.
    pub host: &'a str,
    /// `header` or `query`.
    pub inject: &'a str,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(facts: &'a Facts) -> Self {
        let [tool, known_as] = facts.names();
        let named = |kind: PathKind| {
            !matches!(kind, PathKind::Mentioned | PathKind::Text | PathKind::Unlikely | PathKind::Listing)
        };
        let writes = |access| access == writ_shell::Access::Write;
        Self {
            tool,
            known_as,
            shell: facts.shell,
            paths: facts
                .paths
                .iter()
                .filter(|fact| named(fact.kind))
                .map(|fact| (fact.resolved.as_str(), writes(fact.access)))
                .collect(),
            hosts: facts
                .hosts
                .iter()
                .filter(|fact| !fact.mentioned)
                .map(|fact| match &fact.host {
                    Host::Name(name) => Some(name.as_str()),
                    Host::Ambiguous | Host::Unknown => None,
                })
                .collect(),
            unresolved: !facts.unresolved.is_empty(),
            exceeded: &facts.exceeded,
            secrets: facts
                .secrets
                .iter()
                .map(|fact| PutIn { name: &fact.name, host: &fact.host, inject: &fact.inject })
                .collect(),
        }
    }
}

/// Their objections to facts.
pub(crate) fn objections(also: &dyn Also, facts: &Facts) -> Vec<Reason> {
    let mut reasons = also.objections(&Asked::of(facts));
    reasons.retain(|reason| reason.verdict > Verdict::Allow);
    reasons
}
