//! What a hook writes to its standard output.
//!
//! Owns the JSON of an answer. Refuses to be anything but one object: a word before or after it, and this client takes
//! the whole for plain text and lets the tool run, without a warning even where `onFailure` is `block`. The invariant:
//! every text in an answer is at most [`crate::text::TEXT_LIMIT`] bytes and free of control characters. Format page:
//! `spec/clients/claude-code.md`.

use serde::Serialize;
use writ_core::json::{Value, to_compact};
use writ_core::{Answer, Reply, Verdict};

use crate::text::bounded;

/// Exactly one JSON object on one line, without a line break behind it.
pub fn to_json(answer: &Answer) -> String {
    let mut out = Output { system_message: answer.message.as_deref().map(bounded), ..Output::default() };
    match &answer.reply {
        Reply::Silent => {
            out.hook_specific_output = answer.input.clone().map(|updated_input| Specific::PreToolUse {
                permission_decision: None,
                permission_decision_reason: None,
                updated_input: Some(updated_input),
            });
        }
        Reply::Decided { verdict, reason } => {
            out.hook_specific_output = Some(Specific::PreToolUse {
                permission_decision: Some(*verdict),
                permission_decision_reason: Some(bounded(reason)),
                updated_input: answer.input.clone(),
            });
        }
        Reply::DenyPermission { reason } => {
            let decision = Permission { behavior: Verdict::Deny, message: bounded(reason) };
            out.hook_specific_output = Some(Specific::PermissionRequest { decision });
        }
        Reply::Block { reason } => {
            out.decision = Some("block");
            out.reason = Some(bounded(reason));
        }
        Reply::Context { event, text } => {
            let context = Context { hook_event_name: event.clone(), additional_context: bounded(text) };
            out.hook_specific_output = Some(Specific::Context(context));
        }
    }
    to_compact(&out)
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
        #[serde(skip_serializing_if = "Option::is_none")]
        permission_decision: Option<Verdict>,
        #[serde(skip_serializing_if = "Option::is_none")]
        permission_decision_reason: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        updated_input: Option<Value>,
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
    hook_event_name: String,
    additional_context: String,
}

#[cfg(test)]
mod tests {
    use writ_core::json::{Value, parse};
    use writ_core::visible;

    use super::*;
    use crate::text::TEXT_LIMIT;

    fn deny(reason: &str) -> Answer {
        Answer::refuse(Some("PreToolUse"), reason)
    }

    #[test]
    fn has_the_clients_shapes() {
        assert_eq!(to_json(&Answer::from(Reply::Silent)), "{}");
        assert_eq!(
            to_json(&deny("no")),
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#
        );
        assert_eq!(
            to_json(&Answer::refuse(Some("PermissionRequest"), "no")),
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no"}}}"#
        );
        assert_eq!(
            to_json(&Answer::refuse(None, "no").with_message("look")),
            r#"{"systemMessage":"look","decision":"block","reason":"no"}"#
        );
        let context = Reply::Context { event: "SessionStart".to_owned(), text: "hi".to_owned() };
        assert_eq!(
            to_json(&Answer::from(context)),
            r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"hi"}}"#
        );
    }

    #[test]
    fn texts_are_bounded_and_visible() {
        let json = to_json(&deny("a\u{1b}[2Jb\u{202e}c\r\n\"d\""));
        assert!(!json.chars().any(visible::is_unseen));
        assert!(json.contains(r#"a\\u{1b}[2Jb\\u{202e}c\\u{d}\n\"d\""#), "{json}");
        for length in [TEXT_LIMIT / 2, TEXT_LIMIT / 2 + 1, TEXT_LIMIT * 3] {
            let parsed = parse(to_json(&deny(&"ü".repeat(length))).as_bytes()).unwrap();
            let reason = parsed.get("hookSpecificOutput").and_then(|o| o.get("permissionDecisionReason"));
            let reason = reason.and_then(Value::as_str).unwrap();
            assert!(reason.len() <= TEXT_LIMIT && reason.len() > TEXT_LIMIT - 4);
            assert_eq!(reason.ends_with('…'), length > TEXT_LIMIT / 2);
        }
    }

    #[test]
    fn a_stop_is_never_refused() {
        assert_eq!(to_json(&Answer::refuse(Some("SubagentStop"), "no")), r#"{"systemMessage":"no"}"#);
        assert_eq!(to_json(&Answer::refuse(None, "no")), r#"{"decision":"block","reason":"no"}"#);
        assert!(to_json(&Answer::refuse(Some("PreToolUse"), "no")).contains("deny"));
        assert!(
            !["PreToolUse", "PermissionRequest", "ConfigChange", "x"].iter().any(|event| Answer::fails_open(event))
        );
    }

    proptest::proptest! {
        #[test]
        fn is_always_one_object(reason in ".{0,200}", event in "PreToolUse|PermissionRequest|Stop|x") {
            let json = to_json(&Answer::refuse(Some(&event), &reason).with_message(reason));
            proptest::prop_assert!(parse(json.as_bytes()).unwrap().as_object().is_some());
            proptest::prop_assert!(!json.contains('\n'));
        }
    }
}
