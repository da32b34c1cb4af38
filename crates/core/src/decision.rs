//! A decision and the reasons that carry it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json;
use crate::span::Span;

/// What is to happen with a call. Ordered so that the stricter is the greater: deny beats ask beats allow (R5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// A human has to say yes first.
    Ask,
    /// The call must not run.
    Deny,
}

impl Verdict {
    /// `allow`, `ask` or `deny`.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which kind of thing a rule matched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// The tool's name.
    Tool,
    /// One simple command of a shell line.
    Command,
    /// A file path.
    Path,
    /// A host name.
    Host,
    /// Something that cannot be known before it runs.
    Unresolved,
    /// The policy or Writ's own state.
    Policy,
}

impl Subject {
    /// The word used in JSON and in prose.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

/// The part of a call that a rule matched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Matched {
    /// What it is.
    pub subject: Subject,
    /// The text that matched: a path, a host, a command. Never stored in the ledger for commands (R8).
    pub text: String,
    /// Where it stands in the shell line, when the call is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// Why a decision is what it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reason {
    /// What this reason asks for.
    pub verdict: Verdict,
    /// JSON pointer of the rule in the policy (`/tools/deny/1`), or `writ:<name>` for a rule that is Writ's own.
    pub rule: String,
    /// The part of the call that the rule matched.
    pub matched: Matched,
    /// One sentence: what is wrong. Lower case, no full stop, names in backticks.
    pub message: String,
    /// What would have allowed it, or how to repair it. Empty for an allowing reason.
    pub instead: String,
}

/// A verdict with every reason that speaks for it or for a milder one, strictest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Decision {
    /// The strictest verdict among the reasons; `Allow` when there are none.
    #[serde(rename = "decision")]
    pub verdict: Verdict,
    /// Strictest first.
    pub reasons: Vec<Reason>,
}

impl Decision {
    /// The decision that these reasons add up to (R5).
    pub fn from_reasons(mut reasons: Vec<Reason>) -> Self {
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.verdict));
        let verdict = reasons.first().map_or(Verdict::Allow, |reason| reason.verdict);
        Self { verdict, reasons }
    }
}
