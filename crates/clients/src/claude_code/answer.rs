//! What a hook writes to its standard output.
//!
//! Owns the JSON of an answer. Refuses to be anything but one object: a word before or after it, and this client takes
//! the whole for plain text and lets the tool run, without a warning even where `onFailure` is `block`. The invariant:
//! every text in an answer is at most [`TEXT_LIMIT`] bytes and free of control characters. Format page:
//! `spec/clients/claude-code.md`.

use serde::Serialize;
use writ_core::json::to_compact;
use writ_core::{Verdict, visible};

/// The longest reason, message or context in an answer, in bytes; longer texts are cut and end in `…`.
pub const TEXT_LIMIT: usize = 4096;

/// An answer to one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookAnswer {
    /// What the client is to do.
    pub answer: Answer,
    /// Shown to the user, not to the model.
    pub message: Option<String>,
    /// Lines for standard error: neither user nor model see them unless they look.
    pub notes: Vec<String>,
}

/// What the client is to do. An answer that does not fit its event is ignored by the client, so each variant says where
/// it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing; go on.
    Silent,
    /// `PreToolUse`: let the tool run without the client's own question, ask the user, or do not let it run. The client's
    /// own deny and ask rules still win over `Allow`; outside an interactive session `Ask` denies.
    PreToolUse {
        /// What is to happen.
        verdict: Verdict,
        /// Why; the model sees it when the call is denied.
        reason: String,
    },
    /// `PermissionRequest`: answer no in the user's stead.
    DenyPermission {
        /// Why; the model sees it.
        reason: String,
    },
    /// `Stop`, `SubagentStop`: send the agent back to work. `UserPromptSubmit`: do not take the prompt. `PostToolBatch`:
    /// end the turn. `PreToolUse`: deny. The one refusal that holds when the event cannot be told.
    Block {
        /// Why.
        reason: String,
    },
    /// `SessionStart`, `UserPromptSubmit`, `SubagentStart`, `PostToolUse`, `PostToolUseFailure`, `PostToolBatch`: tell
    /// the model something.
    Context {
        /// The event that is answered.
        event: &'static str,
        /// What to tell.
        text: String,
    },
}

impl From<Answer> for HookAnswer {
    fn from(answer: Answer) -> Self {
        Self { answer, message: None, notes: Vec::new() }
    }
}

impl HookAnswer {
    /// Whether a failure at this event must stop nothing: a stop that is refused sends the agent back to work, and a prompt that
    /// is refused keeps the user from repairing what is broken.
    pub fn fails_open(event: &str) -> bool {
        let open =
            ["Stop", "SubagentStop", "SubagentStart", "SessionStart", "SessionEnd", "UserPromptSubmit", "PreCompact"];
        open.contains(&event)
    }

    /// The answer that stops whatever `event` is about; for an event that is not known (`None`) the one that stops the most. Of
    /// an event that [fails open](Self::fails_open) the user is told.
    pub fn refuse(event: Option<&str>, reason: &str) -> Self {
        let reason = reason.to_owned();
        if event.is_some_and(Self::fails_open) {
            return Self::from(Answer::Silent).with_message(reason);
        }
        match event {
            Some("PreToolUse") => Answer::PreToolUse { verdict: Verdict::Deny, reason },
            Some("PermissionRequest") => Answer::DenyPermission { reason },
            _ => Answer::Block { reason },
        }
        .into()
    }

    /// Adds a message to the user.
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Exactly one JSON object on one line, without a line break behind it.
    pub fn to_json(&self) -> String {
        let mut out = Output { system_message: self.message.as_deref().map(bounded), ..Output::default() };
        match &self.answer {
            Answer::Silent => {}
            Answer::PreToolUse { verdict, reason } => {
                out.hook_specific_output = Some(Specific::PreToolUse {
                    permission_decision: *verdict,
                    permission_decision_reason: bounded(reason),
                });
            }
            Answer::DenyPermission { reason } => {
                let decision = Permission { behavior: Verdict::Deny, message: bounded(reason) };
                out.hook_specific_output = Some(Specific::PermissionRequest { decision });
            }
            Answer::Block { reason } => {
                out.decision = Some("block");
                out.reason = Some(bounded(reason));
            }
            Answer::Context { event, text } => {
                let context = Context { hook_event_name: event, additional_context: bounded(text) };
                out.hook_specific_output = Some(Specific::Context(context));
            }
        }
        to_compact(&out)
    }
}

/// An answer as the client reads it.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "hookEventName", rename_all_fields = "camelCase")]
enum Specific {
    PreToolUse {
        permission_decision: Verdict,
        permission_decision_reason: String,
    },
    PermissionRequest {
        decision: Permission,
    },
    /// Names its event itself.
    #[serde(untagged)]
    Context(Context),
}

#[derive(Serialize)]
struct Permission {
    behavior: Verdict,
    message: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    hook_event_name: &'static str,
    additional_context: String,
}

fn bounded(text: &str) -> String {
    // A file's name must not repaint the user's terminal.
    let text = visible::lines(text);
    if text.len() <= TEXT_LIMIT {
        return text.into_owned();
    }
    let room = TEXT_LIMIT - '…'.len_utf8();
    let kept = text.char_indices().take_while(|(at, c)| at + c.len_utf8() <= room).map(|(_, c)| c);
    kept.chain(std::iter::once('…')).collect()
}

#[cfg(test)]
mod tests {
    use writ_core::json::{Value, parse};

    use super::*;

    fn deny(reason: &str) -> HookAnswer {
        HookAnswer::refuse(Some("PreToolUse"), reason)
    }

    #[test]
    fn has_the_clients_shapes() {
        assert_eq!(HookAnswer::from(Answer::Silent).to_json(), "{}");
        assert_eq!(
            deny("no").to_json(),
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#
        );
        assert_eq!(
            HookAnswer::refuse(Some("PermissionRequest"), "no").to_json(),
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no"}}}"#
        );
        assert_eq!(
            HookAnswer::refuse(None, "no").with_message("look").to_json(),
            r#"{"systemMessage":"look","decision":"block","reason":"no"}"#
        );
        let context = Answer::Context { event: "SessionStart", text: "hi".to_owned() };
        assert_eq!(
            HookAnswer::from(context).to_json(),
            r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"hi"}}"#
        );
    }

    #[test]
    fn texts_are_bounded_and_visible() {
        let json = deny("a\u{1b}[2Jb\u{202e}c\r\n\"d\"").to_json();
        assert!(!json.chars().any(visible::is_unseen));
        assert!(json.contains(r#"a\\u{1b}[2Jb\\u{202e}c\\u{d}\n\"d\""#), "{json}");
        for length in [TEXT_LIMIT / 2, TEXT_LIMIT / 2 + 1, TEXT_LIMIT * 3] {
            let parsed = parse(deny(&"ü".repeat(length)).to_json().as_bytes()).unwrap();
            let reason = parsed.get("hookSpecificOutput").and_then(|o| o.get("permissionDecisionReason"));
            let reason = reason.and_then(Value::as_str).unwrap();
            assert!(reason.len() <= TEXT_LIMIT && reason.len() > TEXT_LIMIT - 4);
            assert_eq!(reason.ends_with('…'), length > TEXT_LIMIT / 2);
        }
    }

    #[test]
    fn a_stop_is_never_refused() {
        assert_eq!(HookAnswer::refuse(Some("SubagentStop"), "no").to_json(), r#"{"systemMessage":"no"}"#);
        assert_eq!(HookAnswer::refuse(None, "no").to_json(), r#"{"decision":"block","reason":"no"}"#);
        assert!(HookAnswer::refuse(Some("PreToolUse"), "no").to_json().contains("deny"));
        assert!(
            !["PreToolUse", "PermissionRequest", "ConfigChange", "x"].iter().any(|event| HookAnswer::fails_open(event))
        );
    }

    proptest::proptest! {
        #[test]
        fn is_always_one_object(reason in ".{0,200}", event in "PreToolUse|PermissionRequest|Stop|x") {
            let json = HookAnswer::refuse(Some(&event), &reason).with_message(reason).to_json();
            proptest::prop_assert!(parse(json.as_bytes()).unwrap().as_object().is_some());
            proptest::prop_assert!(!json.contains('\n'));
        }
    }
}
