//! What `dataFlow.flowRules` say of a call, with what its session has taken in before.

use writ_core::{Matched, Reason, Subject, Verdict};

use crate::flow::{Flow, Rule};
use crate::limits::Tally;
use crate::policy::Policy;

/// What a policy's rules say of a call, which takes in and lets go what all policies together label. `unseen` says that there were calls that this policy
/// gave no labels to.
pub fn flow_refusals(policy: &Policy, flow: &Flow, tally: Tally<'_>, unseen: bool) -> Vec<Reason> {
    let say = |rule: &Rule| {
        let may = |label: &String| flow.may.contains(label).then_some(false);
        let told = flow.gives.get(&rule.to).copied();
        let goes = told.max(may(&rule.to))?;
        // What a program may read by itself counts where it is known to go.
        let own = flow.takes.get(&rule.from).copied().max(may(&rule.from).filter(|_| told.is_some()));
        let before = tally.taint.and_then(|taint| taint.of(&rule.from));
        let unknown = (tally.unread || unseen).then_some(false);
        let came = own.max(before).max(unknown)?;
        // Doubt about what a program does is no reason to ask where it is in doubt what was read.
        told.or(came.then_some(false))?;
        let verdict = if goes && came { Verdict::Deny } else { Verdict::Ask };
        let has = if came { "has read" } else { "may have read" };
        let reaches = if goes { "goes" } else { "may go" };
        let message = rule.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        Some(Reason {
            verdict,
            rule: rule.pointer.clone(),
            matched: Matched { subject: Subject::Policy, text: format!("{}->{}", rule.from, rule.to), span: None },
            message: format!(
                "the session {has} what is `{}`, and this {reaches} where it is `{}`{message}",
                rule.from, rule.to
            ),
            instead: format!("a new session that reads nothing of `{}`", rule.from),
        })
    };
    policy.flow.rules.iter().filter_map(say).collect()
}
