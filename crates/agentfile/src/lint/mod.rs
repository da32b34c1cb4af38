//! What is wrong with an Agentfile as a whole: its directives held against each other and against its policies.
//!
//! Owns the findings that need more than one line. Judges no request. Invariant: the findings come in the order of the file, and the
//! same file always gives the same ones. Page: `spec/agentfile.md`.

mod alone;
mod names;
mod secrets;

use crate::agent::Agent;
use crate::cedar::Rules;
use crate::diagnostic::{Diagnostic, Severity};
use crate::parse::{Options, parse_with};

/// An Agentfile with its policies and every finding about it.
#[derive(Debug)]
pub struct Linted {
    /// As it was read.
    pub agent: Agent,
    /// Its policies, as far as they could be read.
    pub rules: Rules,
    /// In the order of the file.
    pub found: Vec<Diagnostic>,
}

impl Linted {
    /// Whether the file cannot be used.
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }

    /// How many errors and warnings there are.
    pub fn counts(&self) -> (usize, usize) {
        let errors = self.found.iter().filter(|found| found.is_error()).count();
        (errors, self.found.len() - errors)
    }
}

/// Reads a file and says everything that is wrong with it.
pub fn lint(bytes: &[u8], name: &str, options: &Options) -> Linted {
    let (agent, mut found) = parse_with(bytes, name, options);
    let unreadable = agent.text.is_empty() && !found.is_empty();
    let (rules, cedar) = Rules::of(&agent);
    if !unreadable {
        alone::check(&agent, &mut found);
        names::check(&agent, &mut found);
        secrets::check(&agent, &mut found);
        found.extend(cedar);
        // What a broken line declares is not known: that something else is missing would be a guess.
        if !found.iter().any(Diagnostic::is_error) {
            rules.unpermitted(&agent, &mut found);
        }
    }
    found.sort_by(|a, b| (a.place, b.severity, a.code).cmp(&(b.place, a.severity, b.code)));
    found.dedup();
    Linted { agent, rules, found }
}

/// The worst of some findings.
pub fn worst(found: &[Diagnostic]) -> Option<Severity> {
    found.iter().map(|found| found.severity).max()
}
