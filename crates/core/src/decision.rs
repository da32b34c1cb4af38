//! A decision and the reasons that carry it.

use std::fmt;

use crate::json::{Object, Value};

/// What is to happen with a call. Ordered so that the stricter is the greater: deny beats ask beats allow (R5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A byte range `start..end` in the text that was judged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Which kind of thing a rule matched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Command => "command",
            Self::Path => "path",
            Self::Host => "host",
            Self::Unresolved => "unresolved",
            Self::Policy => "policy",
        }
    }
}

/// The part of a call that a rule matched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matched {
    /// What it is.
    pub subject: Subject,
    /// The text that matched: a path, a host, a command. Never stored in the ledger for commands (R8).
    pub text: String,
    /// Where it stands in the shell line, when the call is one.
    pub span: Option<Span>,
}

/// Why a decision is what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
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

impl Reason {
    /// The reason as a JSON object, members in a fixed order.
    pub fn to_json(&self) -> Value {
        let mut matched = Object::new();
        matched.push("subject", Value::from(self.matched.subject.as_str()));
        matched.push("text", Value::from(self.matched.text.as_str()));
        if let Some(span) = self.matched.span {
            matched.push("span", Value::Array(vec![Value::from(span.start), Value::from(span.end)]));
        }
        let mut out = Object::new();
        out.push("verdict", Value::from(self.verdict.as_str()));
        out.push("rule", Value::from(self.rule.as_str()));
        out.push("matched", Value::Object(matched));
        out.push("message", Value::from(self.message.as_str()));
        out.push("instead", Value::from(self.instead.as_str()));
        Value::Object(out)
    }
}

/// A verdict with every reason that speaks for it or for a milder one, strictest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The strictest verdict among the reasons; `Allow` when there are none.
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

    /// `{"decision": …, "reasons": […]}`.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("decision", Value::from(self.verdict.as_str()));
        out.push("reasons", Value::Array(self.reasons.iter().map(Reason::to_json).collect()));
        Value::Object(out)
    }
}
