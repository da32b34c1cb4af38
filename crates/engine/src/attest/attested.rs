//! Whether an attestation is a verdict on exactly this action, good enough and fresh enough.
//!
//! The gate for CI and the hook that binds an apply to its plan ask the same question here. Whether the attestation is genuine has been
//! settled before ([`writ_evidence::registry::Registry::check`] and the verifier). Page: `spec/attestation.md`.

use std::path::Path;

use writ_consequence::{Verdict, mcp};
use writ_core::json::Value;
use writ_core::secret::hide;
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::Attestation;

use super::subject;

/// How far an instance's clock may be ahead of ours.
const SKEW_MILLIS: i64 = 60_000;

/// What is about to happen.
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// A plan file is applied: its digest.
    PlanFile(Digest),
    /// A plan is applied: its document's bytes, and the same read.
    Plan(&'a [u8], &'a Value),
    /// A shell line runs, in this folder.
    Line(&'a str, &'a Place),
    /// A server is called, from this folder.
    Call(&'a mcp::Call<'a>, &'a Place),
}

/// A folder by its names: the same words do other things in another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    named: String,
    real: Option<String>,
}

impl Place {
    /// The folder of this absolute path, which need not be there.
    pub fn at(path: &Path) -> Self {
        let text = |path: &Path| hide(&path.to_string_lossy());
        Self { named: text(path), real: path.canonicalize().ok().map(|real| text(&real)) }
    }

    /// Whether an attestation calls it by one of its names.
    fn is(&self, named: &str) -> bool {
        self.named == named || self.real.as_deref() == Some(named)
    }
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
    /// It is about this action in another folder.
    #[error("the attestation is about the folder `{attested}`, and this is `{here}`")]
    Elsewhere {
        /// The folder it names.
        attested: String,
        /// This one.
        here: String,
    },
    /// It names no folder, and the action needs one.
    #[error("the attestation does not say in which folder: have it made with one (`cwd`)")]
    Nowhere,
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
    #[error("the verdict is dated {0}, which is in the future")]
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
            let canonical = || subject::document_hash(writ_core::json::canonical(plan).as_bytes());
            of("terraform")
                && named("hash").is_some_and(|hash| hash == subject::document_hash(bytes) || hash == canonical())
        }
        Action::Line(line, _) => of("shell") && named("hash") == Some(subject::line_hash(line)),
        Action::Call(call, _) => of("mcp") && named("hash") == Some(subject::call_hash(call)),
    }
}

/// Whether the action happens where the attestation says. A line has to be somewhere; of a call and its server the attestation need not say.
fn is_there(attestation: &Attestation, action: &Action<'_>) -> Result<(), Unmet> {
    let at = attestation.input().get("cwd");
    let hashed = attestation.input().get("cwd_hash").and_then(Value::as_str);
    let (Action::Line(_, place) | Action::Call(_, place)) = action else { return Ok(()) };
    if at.is_none() && matches!(action, Action::Call(..)) || at.and_then(Value::as_str).is_some_and(|at| place.is(at)) {
        return Ok(());
    }
    if let Some(hashed) = hashed.filter(|_| at.is_none()) {
        let names = std::iter::once(&place.named).chain(&place.real);
        let here = names.map(|name| subject::folder_hash(name).to_string()).any(|hash| hash == hashed);
        let elsewhere = || Unmet::Elsewhere { attested: hashed.to_owned(), here: place.named.clone() };
        return here.then_some(()).ok_or_else(elsewhere);
    }
    let attested = at.and_then(Value::as_str).map(str::to_owned);
    Err(attested.map_or(Unmet::Nowhere, |attested| Unmet::Elsewhere { attested, here: place.named.clone() }))
}

/// Whether the verdict lets the action pass.
pub fn meets(attestation: &Attestation, action: &Action<'_>, terms: &Terms) -> Result<Verdict, Unmet> {
    if !covers(attestation, action) {
        return Err(Unmet::Other);
    }
    is_there(attestation, action)?;
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
