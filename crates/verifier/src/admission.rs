//! Whether to go on with a report, by the mode (§7.3, §7.6, §7.7).

use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::{Attestation, Failure, FailureCode};

use crate::Mode;
use crate::event::{Event, Log, What};
use crate::fetch::Fetch;
use crate::verify::{Copy, Refusal, Verified, Verifier};

/// The member of a report that holds its attestation (§7.1).
const MEMBER: &str = "attestation";
/// Most characters of an `attestation_uri` that was not checked and goes on record.
const MAX_URI: usize = 2048;

/// Whether to go on, and with what.
#[must_use]
#[derive(Debug)]
pub struct Outcome {
    /// Why not. `None` is the permission to go on.
    pub refusal: Option<Refusal>,
    /// What was verified, in the modes that verify.
    pub verified: Option<Verified>,
    /// What a reader should see.
    pub warnings: Vec<Warning>,
    /// What was recorded, or could not be.
    pub event: Option<Event>,
}

/// What is no reason to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Warning {
    /// No attestation came: the report is not authenticated.
    Absent,
    /// The report says something else than its attestation. What the attestation says was signed.
    ReportDiffers,
    /// The URL serves the attestation no more: the cross-check compared nothing.
    CopyGone,
}

impl Warning {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "attestation_absent",
            Self::ReportDiffers => "report_differs",
            Self::CopyGone => "copy_gone",
        }
    }

    /// A sentence for a reader.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Absent => "the report has no attestation: nobody vouches for it",
            Self::ReportDiffers => "the report is not the one that was signed: go by the attestation's `output`",
            Self::CopyGone => "the attestation's URL serves it no more (410): it could not be cross-checked",
        }
    }
}

impl Outcome {
    /// Whether to go on. A verdict may still say no.
    pub const fn proceeds(&self) -> bool {
        self.refusal.is_none()
    }

    const fn refused(refusal: Refusal) -> Self {
        Self { refusal: Some(refusal), verified: None, warnings: Vec::new(), event: None }
    }

    const fn warned(warnings: Vec<Warning>) -> Self {
        Self { refusal: None, verified: None, warnings, event: None }
    }
}

impl<F: Fetch, L: Log> Verifier<F, L> {
    /// Judges a consequence report: a JSON object parsed under [`writ_core::json::Limits::SIGNED`], with an attestation in the member
    /// `attestation` or without the member. In every mode but `ignore` the outcome is on record when this returns; what cannot be recorded
    /// is refused.
    ///
    /// Whoever acts on the outcome goes by [`Verified::attestation`]'s `output` where there is one, and sees to it that its `input` is what
    /// was asked.
    pub fn admit(&self, response: &Value, now: Timestamp) -> Outcome {
        self.admit_by(response, now, |attestation| self.verify_once(attestation, now))
    }

    /// Judges as [`Self::admit`] does, with a verification of the caller's own: one that looks only, or that asks more before the nonce is
    /// used up.
    pub fn admit_by(
        &self,
        response: &Value,
        now: Timestamp,
        verify: impl FnOnce(&Attestation) -> Result<Verified, Refusal>,
    ) -> Outcome {
        let member = response.get(MEMBER);
        let mode = self.config.mode;
        let (mut outcome, what) = match (mode, member) {
            (Mode::Ignore, _) => return Outcome::warned(Vec::new()),
            (Mode::Log, Some(value)) => {
                (Outcome::warned(Vec::new()), What::Seen { digest: digest(value), uri: uri(value) })
            }
            (Mode::Log | Mode::Verify, None) => (Outcome::warned(vec![Warning::Absent]), What::Absent { mode }),
            (Mode::Require, None) => {
                let detail =
                    "there is none in it, and the mode is `require`: have the report made with one (`--attest`)";
                let failure = Failure::new(FailureCode::AttestationAbsent, detail);
                (Outcome::refused(failure.into()), What::Absent { mode })
            }
            (Mode::Verify | Mode::Require, Some(value)) => admit_attested(response, value, verify),
        };
        let event = Event { at: now, what };
        if let Err(error) = self.log.record(&event) {
            outcome = Outcome::refused(outcome.refusal.unwrap_or(Refusal::State(error)));
        }
        outcome.event = Some(event);
        outcome
    }
}

fn admit_attested(
    response: &Value,
    value: &Value,
    verify: impl FnOnce(&Attestation) -> Result<Verified, Refusal>,
) -> (Outcome, What) {
    let attestation = Attestation::from_value(value.clone()).map_err(Refusal::from);
    match attestation.and_then(|attestation| verify(&attestation)) {
        Ok(verified) => {
            let attestation = verified.attestation();
            let what = What::Verified {
                digest: attestation.digest(),
                uri: attestation.uri().to_owned(),
                key_id: attestation.key_id().to_owned(),
                state: verified.key_state(),
                registry_version: verified.registry_version(),
            };
            let mut warnings = Vec::new();
            if report(response) != json::canonical(attestation.output()) {
                warnings.push(Warning::ReportDiffers);
            }
            if verified.copy() == Copy::Gone {
                warnings.push(Warning::CopyGone);
            }
            (Outcome { verified: Some(verified), ..Outcome::warned(warnings) }, what)
        }
        Err(refusal) => {
            let detail = match &refusal {
                Refusal::Failure(failure) => failure.detail.clone(),
                Refusal::State(error) => error.to_string(),
            };
            let what = What::Failed { digest: digest(value), uri: uri(value), code: refusal.code(), detail };
            (Outcome::refused(refusal), what)
        }
    }
}
/// The report without its attestation, canonical: what `output` is a copy of (§7.2).
fn report(response: &Value) -> String {
    let members = response.as_object().into_iter().flat_map(|members| members.iter());
    let report = members.filter(|(name, _)| *name != MEMBER).map(|(name, value)| (name.to_owned(), value.clone()));
    json::canonical(&Value::Object(report.collect()))
}

fn digest(value: &Value) -> Digest {
    Digest::of(json::canonical(value).as_bytes())
}

fn uri(value: &Value) -> Option<String> {
    let uri = value.get("attestation_uri")?.as_str()?;
    Some(uri.chars().take(MAX_URI).collect())
}
