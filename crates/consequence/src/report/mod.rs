//! `recourse.consequence.v1`: mutations with what could bring each back, and the verdict they add up to.

mod write;

use writ_core::json::{Object, Value};

/// The report's schema.
pub const SCHEMA: &str = "recourse.consequence.v1";

/// What could bring a thing back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Escalate => "escalate",
            Self::Block => "block",
        }
    }
}

/// What a tier rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A rule of the data files.
    Rules,
    /// Nothing is known of it.
    Default,
}

/// How sure a tier is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Who acts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Actor {
    /// Its id.
    pub id: Option<String>,
    /// `agent`, `user`, `ci`.
    pub kind: Option<String>,
}

/// What is acted on. Absent members are `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// `aws`, `filesystem`, `git`, …
    pub provider: Option<String>,
    /// `s3`, `rds`, …
    pub service: Option<String>,
    /// `aws_s3_bucket`, `file`, `branch`, …
    pub kind: Option<String>,
    /// Its address or path.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
}

/// What is wanted.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Intent {
    /// `shell`, `terraform`, `mcp`.
    pub source: &'static str,
    /// `delete`, `overwrite`, `publish`, …
    pub action: String,
    /// What is acted on.
    pub target: Target,
    /// Who acts.
    pub actor: Actor,
    /// State before, where it is known.
    pub before: Option<Value>,
    /// State after, where it is known.
    pub after: Option<Value>,
    /// The part of the input this is about. Never a secret's value (R8).
    pub raw: Option<String>,
    /// Anything else: the rule, its data file, the span.
    pub metadata: Object,
}

/// What could bring it back, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recoverability {
    /// The tier.
    pub tier: Tier,
    /// Why.
    pub reasoning: String,
    /// What it rests on.
    pub source: Origin,
    /// How sure it is.
    pub confidence: Confidence,
    /// How to undo it, or what to check first.
    pub suggestions: Vec<String>,
}

/// A fact a tier rests on.
#[derive(Clone, PartialEq, Debug)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LowersConfidence => "lowers-confidence",
            Self::RequiresReview => "requires-review",
            Self::BlocksSafeVerdict => "blocks-safe-verdict",
        }
    }
}

/// A fact that is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// Its name.
    pub key: String,
    /// What it is.
    pub description: String,
    /// What it would change.
    pub effect: Effect,
}

/// Something else that would be hit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dependency {
    /// Its address.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// Why.
    pub reason: String,
    /// Not directly, but through another.
    pub transitive: bool,
}

/// One thing that would change.
#[derive(Clone, PartialEq, Debug)]
pub struct Mutation {
    /// What is wanted.
    pub intent: Intent,
    /// What could bring it back.
    pub recoverability: Recoverability,
    /// What that rests on.
    pub evidence: Vec<Evidence>,
    /// What would change it.
    pub missing: Vec<Missing>,
    /// What else would be hit.
    pub dependencies: Vec<Dependency>,
}

/// Something of the input that nothing here has looked into: a script, a chart, a program that is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unseen {
    /// What: `make deploy`.
    pub what: String,
    /// Why: what it does stands elsewhere.
    pub why: String,
}

/// What an action would do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// What would change; nothing when nothing would.
    pub mutations: Vec<Mutation>,
    /// Terraform: risks that only several changes together make, as `{kind, reason, addresses}`.
    pub cross_action_risks: Option<Vec<Value>>,
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
