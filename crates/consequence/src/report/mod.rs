//! `recourse.consequence.v1`: mutations with what could bring each back, and the verdict they add up to.

mod write;

use serde::Serialize;
use writ_core::Span;
use writ_core::json::{self, Value};

use self::write::Labelled;

/// The report's schema.
pub const SCHEMA: &str = "recourse.consequence.v1";

/// What could bring a thing back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(into = "Labelled")]
pub enum Tier {
    /// 1: undone by the opposite action.
    Reversible,
    /// 2: brought back with some work.
    WithEffort,
    /// 3: brought back from a copy somebody has to have.
    FromBackup,
    /// 4: gone.
    Unrecoverable,
    /// 5: cannot be told; somebody has to look.
    NeedsReview,
}

impl Tier {
    /// 1 to 5.
    pub const fn number(self) -> u8 {
        match self {
            Self::Reversible => 1,
            Self::WithEffort => 2,
            Self::FromBackup => 3,
            Self::Unrecoverable => 4,
            Self::NeedsReview => 5,
        }
    }

    /// The tier of a number from 1 to 5.
    pub const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Reversible,
            2 => Self::WithEffort,
            3 => Self::FromBackup,
            4 => Self::Unrecoverable,
            5 => Self::NeedsReview,
            _ => return None,
        })
    }

    /// `reversible`, `recoverable-with-effort`, `recoverable-from-backup`, `unrecoverable`, `needs-review`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Reversible => "reversible",
            Self::WithEffort => "recoverable-with-effort",
            Self::FromBackup => "recoverable-from-backup",
            Self::Unrecoverable => "unrecoverable",
            Self::NeedsReview => "needs-review",
        }
    }

    /// The verdict of a finding of this tier (R34).
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Reversible | Self::WithEffort => Verdict::Allow,
            Self::FromBackup => Verdict::Warn,
            Self::Unrecoverable => Verdict::Block,
            Self::NeedsReview => Verdict::Escalate,
        }
    }
}

/// What to do about it. In order: block outranks escalate (R34).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Go on.
    Allow,
    /// Go on, and know it.
    Warn,
    /// Somebody has to look.
    Escalate,
    /// Do not.
    Block,
}

impl Verdict {
    /// `allow`, `warn`, `escalate`, `block`.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

/// What a tier rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A rule of the data files.
    Rules,
    /// Nothing is known of it.
    Default,
}

/// How sure a tier is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// A guess.
    Low,
    /// Likely.
    Medium,
    /// Certain, as far as rules and evidence go.
    High,
}

impl Confidence {
    /// `low`, `medium`, `high`.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

/// Who acts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Actor {
    /// Its id.
    pub id: Option<String>,
    /// `agent`, `user`, `ci`.
    pub kind: Option<String>,
}

impl Actor {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// What is acted on. Absent members are `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Target {
    /// `aws`, `filesystem`, `git`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// `s3`, `rds`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// `aws_s3_bucket`, `file`, `branch`, …
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its address or path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What is wanted.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Intent {
    /// `shell`, `terraform`, `mcp`.
    pub source: &'static str,
    /// `delete`, `overwrite`, `publish`, …
    pub action: String,
    /// What is acted on.
    pub target: Target,
    /// Who acts.
    #[serde(skip_serializing_if = "Actor::is_unknown")]
    pub actor: Actor,
    /// State before, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// State after, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// The part of the input this is about. Never a secret's value (R8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Anything else.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// What else is known of a mutation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Where it stands in the shell line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// The rule that found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Terraform: the address it had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_address: Option<String>,
    /// Terraform: the key of the object that a failed replacement left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// Terraform: why the plan holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_reason: Option<String>,
    /// Terraform: whether the plan imports it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// Terraform: the attributes that make it a replacement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced_for: Vec<String>,
}

impl Metadata {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What could bring it back, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Recoverability {
    /// The tier.
    #[serde(flatten)]
    pub tier: Tier,
    /// Why.
    pub reasoning: String,
    /// What it rests on.
    pub source: Origin,
    /// How sure it is.
    pub confidence: Confidence,
    /// How to undo it, or what to check first.
    #[serde(rename = "verificationSuggestions")]
    pub suggestions: Vec<String>,
}

/// A fact a tier rests on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Evidence {
    /// Its name: `backup_retention_period`, `git.tracked`.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Whether it is there.
    pub present: bool,
    /// What it means.
    pub description: String,
}

/// What a fact that is not known would change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The tier is less sure.
    LowersConfidence,
    /// Somebody has to look.
    RequiresReview,
    /// Nothing better can be said.
    BlocksSafeVerdict,
}

impl Effect {
    /// `lowers-confidence`, `requires-review`, `blocks-safe-verdict`.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

/// A fact that is not known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Missing {
    /// Its name.
    pub key: String,
    /// What it is.
    pub description: String,
    /// What it would change.
    pub effect: Effect,
}

/// Something else that would be hit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Dependency {
    /// Its address.
    #[serde(rename = "targetId")]
    pub id: String,
    /// Its type.
    #[serde(rename = "targetType")]
    pub kind: String,
    /// Why.
    pub reason: String,
    /// Not directly, but through another.
    pub transitive: bool,
}

/// One thing that would change.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Mutation {
    /// What is wanted.
    pub intent: Intent,
    /// What could bring it back.
    pub recoverability: Recoverability,
    /// What that rests on.
    pub evidence: Vec<Evidence>,
    /// What would change it.
    #[serde(rename = "missingEvidence")]
    pub missing: Vec<Missing>,
    /// What else would be hit.
    #[serde(rename = "dependencyImpact")]
    pub dependencies: Vec<Dependency>,
}

/// Something of the input that nothing here has looked into: a script, a chart, a program that is not known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unseen {
    /// What: `make deploy`.
    pub what: String,
    /// Why: what it does stands elsewhere.
    pub why: String,
}

/// A risk that only several changes together make.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Risk {
    /// `backup-with-data`, `key-with-data`, …
    pub kind: &'static str,
    /// What would be lost, in a sentence.
    pub reason: String,
    /// The resources it is about, the one that is lost first.
    pub addresses: Vec<String>,
}

/// What an action would do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// What would change; nothing when nothing would.
    pub mutations: Vec<Mutation>,
    /// Terraform: risks that only several changes together make.
    pub cross_action_risks: Option<Vec<Risk>>,
    /// What was not looked into. That nothing was found there says nothing.
    pub unseen: Vec<Unseen>,
}

impl Report {
    /// A report on nothing at all.
    pub fn of_nothing() -> Self {
        let unseen = Unseen { what: "the input".to_owned(), why: "there is nothing in it to evaluate".to_owned() };
        Self { unseen: vec![unseen], ..Self::default() }
    }

    /// The verdict's reason, in a sentence.
    pub fn reason(&self) -> String {
        let worst = self.worst().filter(|worst| worst.recoverability.tier > Tier::Reversible);
        match (worst, self.unseen.first()) {
            (Some(worst), _) => worst.recoverability.reasoning.clone(),
            (None, Some(unseen)) => format!("not looked into: `{}`: {}", unseen.what, unseen.why),
            (None, None) => {
                let first = self.worst().map(|worst| worst.recoverability.reasoning.clone());
                first.unwrap_or_else(|| "nothing is changed that could be lost".to_owned())
            }
        }
    }

    /// The worst finding's verdict (R34).
    pub fn verdict(&self) -> Verdict {
        self.tiers().map(Tier::verdict).max().unwrap_or(Verdict::Allow)
    }

    /// The mutation the verdict rests on.
    pub fn worst(&self) -> Option<&Mutation> {
        let weight = |mutation: &&Mutation| rank(mutation.recoverability.tier);
        // The first of the worst: what stands first in the input is read first.
        self.mutations.iter().rev().max_by_key(weight)
    }

    fn tiers(&self) -> impl Iterator<Item = Tier> {
        self.mutations.iter().map(|mutation| mutation.recoverability.tier)
    }
}

/// How bad a tier is: what is gone outranks what nobody can tell.
const fn rank(tier: Tier) -> u8 {
    match tier {
        Tier::Reversible => 1,
        Tier::WithEffort => 2,
        Tier::FromBackup => 3,
        Tier::NeedsReview => 4,
        Tier::Unrecoverable => 5,
    }
}
