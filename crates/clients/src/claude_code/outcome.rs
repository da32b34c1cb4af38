//! What became of a call, as far as the client tells.
//!
//! Owns the reading of a tool result's text and of the transcript's permission decision. Refuses to take a result's
//! text for more than it is: a tool that ran can print anything, so callers use [`batch_outcome`] only for calls that no
//! other event told of. The invariant: [`Outcome::NoSuchTool`] is returned only when the client's own words name the
//! very tool that was called. Format page: `spec/clients/claude-code.md`.

use writ_core::Outcome;
use writ_core::json::Value;

const OPEN: &str = "<tool_use_error>";
const NO_SUCH_TOOL: &str = "Error: No such tool available: ";

/// What a `PostToolBatch` response says about a call for which **no** `PreToolUse` came, or `None` when it does not say
/// that the call was stopped. Such a call has run unseen.
pub fn batch_outcome(tool: &str, response: &Value) -> Option<Outcome> {
    let text = text(response)?;
    if names_missing_tool(tool, text) {
        return Some(Outcome::NoSuchTool);
    }
    let denied = || text.starts_with("Permission to use ") && text.contains(" has been denied");
    if text.starts_with(OPEN) {
        Some(Outcome::Refused)
    } else if denied() {
        Some(Outcome::DeniedByClient)
    } else {
        None
    }
}

/// What a transcript's tool result says. `decision` is the line's `permissionDecision`, which the client writes once a
/// call has got as far as its permission check.
pub(super) fn transcript_outcome(tool: &str, result: &Value, decision: Option<&Value>) -> Outcome {
    let failed = result.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    let member = |name| decision.and_then(|decision| decision.get(name)).and_then(Value::as_str);
    match (member("decision"), failed) {
        (Some("reject"), _) if member("reasonCode") == Some("hook:PreToolUse") => Outcome::DeniedByHook,
        (Some("reject"), _) => Outcome::DeniedByClient,
        (None, true) => unchecked(tool, result.get("content")),
        (_, true) => Outcome::Failed,
        (_, false) => Outcome::Completed,
    }
}

fn unchecked(tool: &str, content: Option<&Value>) -> Outcome {
    match content.and_then(text) {
        Some(text) if names_missing_tool(tool, text) => Outcome::NoSuchTool,
        Some(text) if text.starts_with(OPEN) => Outcome::Refused,
        _ => Outcome::Failed,
    }
}

/// The client may add advice behind the name: `…available: bash. Tool names are case-sensitive: call Bash instead.`
fn names_missing_tool(tool: &str, text: &str) -> bool {
    let text = text.strip_prefix(OPEN).unwrap_or(text);
    let rest = text.strip_prefix(NO_SUCH_TOOL).and_then(|rest| rest.strip_prefix(tool));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("</") || rest.starts_with(". "))
}

/// A result's text: itself, or its first text block.
fn text(content: &Value) -> Option<&str> {
    let block = || content.as_array()?.iter().find_map(|block| block.get("text")?.as_str());
    content.as_str().or_else(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(tool: &str, text: &str) -> Option<Outcome> {
        batch_outcome(tool, &Value::from(text))
    }

    /// The client's words, as version 2.1.329 says them.
    #[test]
    fn reads_the_clients_refusals() {
        let bare = "<tool_use_error>Error: No such tool available: NoSuchTool</tool_use_error>";
        assert_eq!(said("NoSuchTool", bare), Some(Outcome::NoSuchTool));
        let advice = "<tool_use_error>Error: No such tool available: bash. Tool names are case-sensitive: call Bash \
                      instead.</tool_use_error>";
        assert_eq!(said("bash", advice), Some(Outcome::NoSuchTool));
        let unread = "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>";
        assert_eq!(said("Write", unread), Some(Outcome::Refused));
        let rule = "Permission to use Bash with command rm -rf build has been denied.";
        assert_eq!(said("Bash", rule), Some(Outcome::DeniedByClient));
    }

    #[test]
    fn does_not_believe_other_words() {
        assert_eq!(said("Bash", "hi"), None);
        assert_eq!(said("Bash", "it said: Error: No such tool available: Bash"), None);
        let other = "<tool_use_error>Error: No such tool available: Bashful</tool_use_error>";
        assert_eq!(said("Bash", other), Some(Outcome::Refused));
        assert_eq!(batch_outcome("Bash", &Value::Null), None);
    }
}
