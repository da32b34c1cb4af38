//! The circumstances of a decision, and what no policy can permit the agent to touch (R19).

use writ_core::Timestamp;
use writ_shell::Access;

use crate::command::Candidate;
use crate::facts::PathFact;

/// Circumstances that are neither policy nor call.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The moment of the decision.
    pub now: Timestamp,
    /// The home directory, for `~`.
    pub home: Option<String>,
    /// Paths the agent may not change.
    pub protected: Vec<Protected>,
}

/// A path the agent may not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Absolute; everything below it is protected too.
    pub path: String,
    /// What it is, for the message.
    pub what: String,
    /// It may not be read either.
    pub secret: bool,
}

/// The rule's name in reasons.
pub const RULE: &str = "writ:self-protection";

impl Setting {
    /// The protected thing that a use of a path would touch.
    pub(crate) fn violated(&self, fact: &PathFact) -> Option<&Protected> {
        self.protected.iter().find(|protected| {
            let guarded = match fact.access {
                Access::Write => true,
                Access::Read | Access::Exec => protected.secret,
                Access::List => false,
            };
            guarded
                && [&fact.written, &fact.resolved]
                    .iter()
                    .any(|path| is_below(path, &protected.path) || (fact.tree && is_below(&protected.path, path)))
        })
    }
}

/// Whether `path` is `folder` or lies in it.
pub fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Commands that only a human may run: those that change what binds the agent, and those that end the binding.
pub fn is_reserved(command: &Candidate) -> bool {
    let operands: Vec<String> = command.operands().collect();
    let word = |at: usize| operands.get(at).map_or("", String::as_str);
    match command.program() {
        "writ" => match word(0) {
            "approve" | "init" => true,
            "policy" => matches!(word(1), "accept" | "sign" | "new"),
            "keys" => word(1) != "list",
            _ => false,
        },
        "kill" | "pkill" | "killall" => operands.iter().any(|operand| operand.contains("writ")),
        _ => false,
    }
}
