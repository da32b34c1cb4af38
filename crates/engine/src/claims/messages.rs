//! What people and the agent are told, in the seed's words (R50).

use writ_claims::{Code, Status, Verdict};

use super::tests_run::Tests;
use super::{NoVerdict, Stopping};

/// The report's lines.
pub fn report(stopping: &Stopping, code: Code, enforcing: bool) -> Vec<String> {
    let key = stopping.agent.as_deref().unwrap_or("(no agent id)");
    let claimed = list(stopping.claim.files.iter().map(String::as_str));
    let line = |text: String| format!("attest: stop: {key}: {text}");
    if stopping.claim.source == writ_claims::Source::None {
        return vec![line("claim source=none — cannot verify (never treating as false DONE)".to_owned())];
    }
    let judged = match &stopping.judged {
        Err(NoVerdict::NoSnapshot) => {
            return vec![format!("attest: stop: no snapshot found for {key} — cannot verify")];
        }
        Err(NoVerdict::Unreliable(why)) => {
            let text = format!("UNVERIFIABLE: git delta unreliable (non-git or git error): {why}");
            return vec![line(format!("CLAIMED [{claimed}] {text} [source={}]", stopping.source))];
        }
        Ok(judged) => &judged.verdict,
    };
    let observed = list(judged.observed.iter().map(String::as_str));
    let status = stopping.claim.status.map_or("none", Status::as_str);
    let finding = if judged.false_done {
        let hint = if enforcing { "" } else { " (would block in enforce mode)" };
        format!("MISMATCH: {} claimed-but-unchanged{hint}", against(judged))
    } else if judged.unchanged().next().is_some() {
        format!("WARN: {} claimed but not in delta (status={status})", list(judged.unchanged()))
    } else if !judged.unclaimed.is_empty() {
        format!("SCOPE_CREEP: {} observed-but-unclaimed", list(judged.unclaimed.iter().map(String::as_str)))
    } else {
        "OK".to_owned()
    };
    let mut out =
        vec![line(format!("CLAIMED [{claimed}] OBSERVED [{observed}] -> {finding} [source={}]", stopping.source))];
    if code.blocks() {
        out.push(line(format!("BLOCKED false DONE: {}", against(judged))));
    } else if enforcing && judged.false_done {
        out.push(line(format!("detected false DONE but NOT blocking (decision={})", code.as_str())));
    }
    out
}

/// What the agent is sent back with.
pub fn reason(stopping: &Stopping, tests: Option<Tests>) -> String {
    let mut out = String::from("writ: the claim DONE does not hold.");
    if let Ok(judged) = &stopping.judged {
        for file in judged.verdict.against().take(20) {
            out.push_str(&format!("\n- {} {}", file.claimed, file.reason));
        }
    }
    if let Some(against) = tests.and_then(Tests::against) {
        out.push_str(&format!("\n- {against}"));
    }
    out.push_str("\nDo what is missing and look at the files again, or correct the claim: name what was not done.");
    out
}

fn against(verdict: &Verdict) -> String {
    list(verdict.against().map(|file| file.claimed.as_str()))
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<&str> = items.collect();
    match items.as_slice() {
        [] => "(none)".to_owned(),
        many if many.len() > 40 => {
            format!("{}, … {} more", many.get(..40).unwrap_or_default().join(", "), many.len() - 40)
        }
        few => few.join(", "),
    }
}
