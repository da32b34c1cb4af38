//! Answers as clients take them that let a tool run at the least surprise.
//!
//! Owns what is the same for all of them: no question (asking hangs, or lets the tool run, where nobody is there to be asked), no word of
//! consent, no message beside a refusal, and never a refusal without a reason. Refuses nothing by itself. The invariant: whatever is
//! refused stays refused.

use writ_core::{Answer, Reply, Verdict};

/// Said where a refusal gives no reason: several clients take one without for none.
const NO_REASON: &str = "writ denies this";

/// The answer without what not every client understands.
pub fn plain(answer: &Answer) -> Answer {
    let message = answer.message.as_deref();
    let because = |reason: &str| reason_with(reason, message);
    let reply = match &answer.reply {
        Reply::Decided { verdict: Verdict::Allow, .. } | Reply::Silent => Reply::Silent,
        Reply::Decided { verdict: Verdict::Ask | Verdict::Deny, reason } => {
            Reply::Decided { verdict: Verdict::Deny, reason: because(reason) }
        }
        Reply::DenyPermission { reason } => Reply::DenyPermission { reason: because(reason) },
        Reply::Block { reason } => Reply::Block { reason: because(reason) },
        Reply::Context { event, text } => Reply::Context { event: event.clone(), text: text.clone() },
    };
    let message = answer.message.clone().filter(|_| reply == Reply::Silent);
    Answer { reply, input: None, message, notes: answer.notes.clone() }
}

/// A reason that says something, with what the user is to be told behind it.
fn reason_with(reason: &str, message: Option<&str>) -> String {
    let reason = if reason.trim().is_empty() { NO_REASON } else { reason };
    match message.filter(|message| !message.trim().is_empty() && *message != reason) {
        Some(message) => format!("{reason}\n{message}"),
        None => reason.to_owned(),
    }
}
