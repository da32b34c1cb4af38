//! Whether an attestation is a verdict on exactly this action, good enough and fresh enough.
//!
//! The gate for CI and the hook that binds an apply to its plan ask the same question here. Whether the attestation is genuine has been
//! settled before ([`writ_evidence::registry::Registry::check`] and the verifier). Page: `spec/attestation.md`.

use writ_consequence::{Verdict, mcp};
use writ_core::json::Value;
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::Attestation;

use crate::matter;

/// How far an instance's clock may be ahead of ours.
const SKEW_MILLIS: i64 = 60_000;

/// What is about to happen.
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// A plan file is applied: its digest.
    PlanFile(Digest),
    /// A plan is applied: its document's bytes, and the same read.
    Plan(&'a [u8], &'a Value),
    /// A shell line runs.
    Line(&'a str),
    /// A server is called.
    Call(&'a mcp::Call<'a>),
}

/// What the verdict must be.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The worst that passes.
    pub worst: Verdict,
    /// How old it may be, in seconds, whatever it says of itself.
    pub max_age: Option<i64>,
    /// Now.
    pub now: Timestamp,
}

/// Why a genuine attestation does not let an action pass.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unmet {
    /// It is about something else.
    #[error("the attestation is about another action than this one")]
    Other,
    /// Its verdict cannot be read.
    #[error("the attestation holds no verdict")]
    NoVerdict,
    /// The verdict is worse than the terms allow.
    #[error("the verdict is `{found}`, and `{worst}` is the worst that passes")]
    TooBad {
        /// The verdict.
        found: &'static str,
        /// The worst that passes.
        worst: &'static str,
    },
    /// It is over.
    #[error("the verdict expired at {0}")]
    Expired(Timestamp),
    /// It is older than the terms allow.
    #[error("the verdict of {0} is too old")]
    TooOld(Timestamp),
    /// It is from the future.
    #[error("the verdict is of {0}, which is still to come")]
    Future(Timestamp),
    /// Neither it nor the terms say when it ends.
    #[error("nothing says how long this verdict holds: give an age that is allowed")]
    Endless,
}

/// The verdict that was attested.
pub fn verdict(attestation: &Attestation) -> Option<Verdict> {
    let word = attestation.output().get("riskAssessment").and_then(Value::as_str)?;
    [Verdict::Allow, Verdict::Warn, Verdict::Escalate, Verdict::Block]
        .into_iter()
        .find(|verdict| verdict.as_str() == word)
}

/// The tier of the worst finding that was attested.
pub fn tier(attestation: &Attestation) -> Option<u8> {
    let tier = attestation.output().get("summary")?.get("worstRecoverability")?.get("tier")?.as_u64()?;
    u8::try_from(tier).ok().filter(|tier| (1..=5).contains(tier))
}

/// Whether the attestation is about this action.
pub fn covers(attestation: &Attestation, action: &Action<'_>) -> bool {
    let named =
        |name: &str| attestation.input().get(name).and_then(Value::as_str).and_then(|text| Digest::parse(text).ok());
    let of = |source: &str| attestation.input().get("source").and_then(Value::as_str) == Some(source);
    match action {
        Action::PlanFile(digest) => of("terraform") && named("plan_file") == Some(*digest),
        Action::Plan(bytes, plan) => {
            let canonical = || matter::document_hash(writ_core::json::canonical(plan).as_bytes());
            of("terraform")
                && named("hash").is_some_and(|hash| hash == matter::document_hash(bytes) || hash == canonical())
        }
        Action::Line(line) => of("shell") && named("hash") == Some(matter::line_hash(line)),
        Action::Call(call) => of("mcp") && named("hash") == Some(matter::call_hash(call)),
    }
}

/// Whether the verdict lets the action pass.
pub fn meets(attestation: &Attestation, action: &Action<'_>, terms: &Terms) -> Result<Verdict, Unmet> {
    if !covers(attestation, action) {
        return Err(Unmet::Other);
    }
    let (at, now) = (attestation.timestamp(), terms.now);
    if at.millis() > now.millis().saturating_add(SKEW_MILLIS) {
        return Err(Unmet::Future(at));
    }
    match (attestation.expires_at(), terms.max_age) {
        (Some(end), _) if now >= end => return Err(Unmet::Expired(end)),
        (_, Some(age)) if now.millis().saturating_sub(at.millis()) > age.saturating_mul(1000) => {
            return Err(Unmet::TooOld(at));
        }
        (None, None) => return Err(Unmet::Endless),
        _ => {}
    }
    let found = verdict(attestation).ok_or(Unmet::NoVerdict)?;
    if found > terms.worst {
        return Err(Unmet::TooBad { found: found.as_str(), worst: terms.worst.as_str() });
    }
    Ok(found)
}
