//! What verification found, in an order that people read: one phase a question.

use serde::{Serialize, Serializer};
use writ_core::Digest;
use writ_core::json;

use super::evaluators::Evaluation;
use super::sublayouts::Sublayout;

pub use super::phase::{Outcome, Phase, Standing};
pub use super::phase_names::{
    APPROVALS, BINDING, CUSTODY, DENIALS, EVALUATORS, EXPIRY, LEFT_OUT, LIMITS, MATERIALS, REQUESTS, REQUIRED,
    SUBLAYOUTS, TURNS, WANTED,
};

/// What a record is worth as a whole (R76). One that is gone is an error: there is nothing to report on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nothing failed, and a key that the verifier pinned, or their own, signed for it.
    Verified,
    /// Nothing failed, and nobody signed.
    Unsigned,
    /// Signed, by a key that nobody here knows.
    #[serde(rename = "unknown key")]
    UnknownKey,
    /// Something does not hold.
    Broken,
    /// The record holds, and says that the session was not as its policy wants: limits, materials, required attestations, evaluators.
    Breached,
    /// There are no rows, and nothing says that there ever were.
    Empty,
}

impl Status {
    /// `verified`, `unsigned`, `unknown key`, `broken`, `breached` or `empty`.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }

    const fn explained(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unsigned => "unsigned: no checkpoint says that this record is whole",
            Self::UnknownKey => "unknown key: whoever signed this is not known here (give --key)",
            Self::Broken => "broken: the record does not hold",
            Self::Breached => "breached: the record holds, and the session was not as its policy wants",
            Self::Empty => "empty: nothing is on record",
        }
    }
}

/// The phases whose absence is an exception (R75): a record with one of them is never plainly verified.
const EXCEPTIONS: [&str; 17] = [
    APPROVALS,
    "attestations",
    "beginning",
    CUSTODY,
    DENIALS,
    "enforcement",
    EVALUATORS,
    "false claims",
    LIMITS,
    MATERIALS,
    REQUESTS,
    REQUIRED,
    BINDING,
    "sandbox",
    SUBLAYOUTS,
    "transcripts",
    TURNS,
];

/// Most exceptions that the last line tells.
const TOLD: usize = 5;

/// Calls that no row saw, as `tool call-id`: some of them, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unobserved {
    /// The first of them.
    pub calls: Vec<String>,
    /// How many.
    pub count: u64,
}

/// A whole verification.
#[derive(Clone, Debug)]
pub struct Report {
    /// The session's id, when the genesis row could be read.
    pub session: Option<String>,
    /// The seal of its first row, which no other session has.
    pub run: Option<Digest>,
    /// Name and file of the policy that governed last.
    pub policy: Option<(String, Digest)>,
    /// How many rows there are.
    pub rows: u64,
    /// What it is worth.
    pub status: Status,
    /// The key that the checkpoints were checked with.
    pub key: Option<String>,
    /// Whether the verifier, and not the folder, brought that key.
    pub pinned: bool,
    /// The first row that no checkpoint covers.
    pub open: Option<u64>,
    /// Whether a ledger alone was looked at, for its chain.
    pub chain_only: bool,
    /// Whether the record says that its session came to its end, and of nothing after that.
    pub over: bool,
    /// What kind of bundle it was, if any.
    pub bundled: Option<Bundled>,
    /// Calls in the transcript that no row saw.
    pub unobserved: Unobserved,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// The sublayouts of the policy that governed last.
    pub sublayouts: Vec<Sublayout>,
    /// What evaluators said, those of sublayouts too.
    pub evaluations: Vec<Evaluation>,
}

impl Report {
    /// What the record does not speak for although it holds.
    pub fn exceptions(&self) -> impl Iterator<Item = &str> {
        let absent = |phase: &&Phase| phase.outcome == Outcome::Absent && EXCEPTIONS.contains(&phase.name);
        self.phases.iter().filter(absent).map(|phase| phase.summary.as_str())
    }

    /// Whether the record holds, under a key that is known here, without exception.
    pub fn verified(&self) -> bool {
        self.holds() && self.exceptions().next().is_none()
    }

    /// Whether it holds, whatever it does not speak for. Of a ledger alone only its chain is asked.
    pub fn holds(&self) -> bool {
        match self.status {
            Status::Verified | Status::Empty => true,
            Status::Unsigned | Status::UnknownKey => {
                self.chain_only && self.phases.iter().all(|phase| phase.outcome != Outcome::Failed)
            }
            Status::Broken | Status::Breached => false,
        }
    }

    /// The last line: what it all comes to.
    pub fn verdict(&self) -> String {
        if self.chain_only && self.holds() && self.status != Status::Verified {
            return match self.status {
                Status::UnknownKey => "the chain holds; signed by a key that is not known here",
                Status::Empty => Status::Empty.explained(),
                Status::Verified | Status::Unsigned | Status::Broken | Status::Breached => {
                    "the chain holds; nobody signed for it"
                }
            }
            .to_owned();
        }
        if !self.holds() {
            return format!("NOT VERIFIED: {}", self.status.explained());
        }
        let exceptions: Vec<&str> = self.exceptions().collect();
        let told = exceptions.iter().take(TOLD).copied().collect::<Vec<_>>().join("; ");
        let last = self.rows.saturating_sub(1);
        let left_out = "the bundle leaves the transcripts out, and what they alone tell was not looked for";
        let unended = "the session had not ended when the bundle was made";
        match (exceptions.len(), self.open) {
            (0, None) if self.status == Status::Verified => match (self.bundled, self.over) {
                (Some(Bundled::Whole), false) => format!("verified up to row {last}: {unended}"),
                (Some(Bundled::WithoutTranscripts), true) => format!("verified by its rows: {left_out}"),
                (Some(Bundled::WithoutTranscripts), false) => {
                    format!("verified by its rows, up to row {last}: {unended}; {left_out}")
                }
                (Some(Bundled::Whole), true) | (None, _) => self.status.explained().to_owned(),
            },
            (0, None) => self.status.explained().to_owned(),
            (0, Some(_)) if self.status == Status::Empty => self.status.explained().to_owned(),
            (0, Some(row)) => format!("verified up to row {}: the session is still open", row.saturating_sub(1)),
            (1..=TOLD, _) => format!("verified, except: {told}"),
            (more, _) => format!("verified, except: {told}; and {} more", more - TOLD),
        }
    }
}

/// What a bundle that was verified speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundled {
    /// What the record and its transcripts tell; of a session that went on, there may be a newer one.
    Whole,
    /// What the rows tell: that nothing was looked for in transcripts is not the same as nothing being there.
    WithoutTranscripts,
}

/// The report's document. Shape: `spec/verify.md`.
#[derive(Serialize)]
struct Document<'a> {
    verified: bool,
    status: Status,
    except: Vec<&'a str>,
    session: Option<&'a str>,
    rows: u64,
    key: Option<&'a str>,
    pinned: bool,
    phases: &'a [Phase],
    #[serde(skip_serializing_if = "<[Sublayout]>::is_empty")]
    sublayouts: &'a [Sublayout],
    coverage: Coverage<'a>,
}

#[derive(Serialize)]
struct Coverage<'a> {
    unobserved: &'a [String],
    count: u64,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document = Document {
            verified: self.status == Status::Verified && self.verified(),
            status: self.status,
            except: self.exceptions().collect(),
            session: self.session.as_deref(),
            rows: self.rows,
            key: self.key.as_deref(),
            pinned: self.pinned,
            phases: &self.phases,
            sublayouts: &self.sublayouts,
            coverage: Coverage { unobserved: &self.unobserved.calls, count: self.unobserved.count },
        };
        document.serialize(serializer)
    }
}
