//! `recourse.consequence.v1`: mutations with what could bring each back, and the verdict they add up to.

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

/// What an action would do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// What would change; nothing when nothing would.
    pub mutations: Vec<Mutation>,
    /// Terraform: risks that only several changes together make, as `{kind, reason, addresses}`.
    pub cross_action_risks: Option<Vec<Value>>,
}

impl Report {
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

    /// The report as JSON, without an attestation.
    pub fn to_json(&self) -> Value {
        let worst = self.worst();
        let reason = worst.map_or("nothing is changed that could be lost", |worst| &worst.recoverability.reasoning);
        let tier = worst.map_or(Tier::Reversible, |worst| worst.recoverability.tier);
        let mut summary = Object::new();
        summary.push("totalMutations", Value::from(self.mutations.len()));
        let mut label = Object::new();
        label.push("tier", Value::from(u64::from(tier.number())));
        label.push("label", Value::from(tier.label()));
        summary.push("worstRecoverability", Value::Object(label));
        summary.push("needsReview", Value::from(self.tiers().any(|tier| tier == Tier::NeedsReview)));
        summary.push("hasUnrecoverable", Value::from(self.tiers().any(|tier| tier == Tier::Unrecoverable)));
        let dependencies: usize = self.mutations.iter().map(|mutation| mutation.dependencies.len()).sum();
        summary.push("dependencyImpactCount", Value::from(dependencies));
        let mut out = Object::new();
        out.push("schemaVersion", Value::from(SCHEMA));
        out.push("version", Value::from(env!("CARGO_PKG_VERSION")));
        out.push("riskAssessment", Value::from(self.verdict().as_str()));
        out.push("assessmentReason", Value::from(reason));
        out.push("summary", Value::Object(summary));
        out.push("mutations", Value::Array(self.mutations.iter().map(Mutation::to_json).collect()));
        if let Some(risks) = &self.cross_action_risks {
            out.push("crossActionRisks", Value::Array(risks.clone()));
        }
        Value::Object(out)
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

impl Mutation {
    fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("intent", self.intent.to_json());
        out.push("recoverability", self.recoverability.to_json());
        let evidence = |evidence: &Evidence| {
            let mut out = Object::new();
            out.push("key", Value::from(evidence.key.as_str()));
            out.push("value", evidence.value.clone());
            out.push("present", Value::from(evidence.present));
            out.push("description", Value::from(evidence.description.as_str()));
            Value::Object(out)
        };
        let missing = |missing: &Missing| {
            let mut out = Object::new();
            out.push("key", Value::from(missing.key.as_str()));
            out.push("description", Value::from(missing.description.as_str()));
            out.push("effect", Value::from(missing.effect.as_str()));
            Value::Object(out)
        };
        let dependency = |dependency: &Dependency| {
            let mut out = Object::new();
            out.push("targetId", Value::from(dependency.id.as_str()));
            out.push("targetType", Value::from(dependency.kind.as_str()));
            out.push("reason", Value::from(dependency.reason.as_str()));
            out.push("transitive", Value::from(dependency.transitive));
            Value::Object(out)
        };
        out.push("evidence", Value::Array(self.evidence.iter().map(evidence).collect()));
        out.push("missingEvidence", Value::Array(self.missing.iter().map(missing).collect()));
        out.push("dependencyImpact", Value::Array(self.dependencies.iter().map(dependency).collect()));
        Value::Object(out)
    }
}

impl Intent {
    fn to_json(&self) -> Value {
        let mut target = Object::new();
        let members = [
            ("provider", &self.target.provider),
            ("service", &self.target.service),
            ("type", &self.target.kind),
            ("id", &self.target.id),
            ("name", &self.target.name),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                target.push(name, Value::from(value.as_str()));
            }
        }
        let mut out = Object::new();
        out.push("source", Value::from(self.source));
        out.push("action", Value::from(self.action.as_str()));
        out.push("target", Value::Object(target));
        if self.actor != Actor::default() {
            let mut actor = Object::new();
            actor.push("id", Value::from(self.actor.id.as_deref()));
            actor.push("kind", Value::from(self.actor.kind.as_deref()));
            out.push("actor", Value::Object(actor));
        }
        for (name, state) in [("before", &self.before), ("after", &self.after)] {
            if let Some(state) = state {
                out.push(name, state.clone());
            }
        }
        if let Some(raw) = &self.raw {
            out.push("raw", Value::from(raw.as_str()));
        }
        if !self.metadata.is_empty() {
            out.push("metadata", Value::Object(self.metadata.clone()));
        }
        Value::Object(out)
    }
}

impl Recoverability {
    fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("tier", Value::from(u64::from(self.tier.number())));
        out.push("label", Value::from(self.tier.label()));
        out.push("reasoning", Value::from(self.reasoning.as_str()));
        let source = match self.source {
            Origin::Rules => "rules",
            Origin::Default => "default",
        };
        out.push("source", Value::from(source));
        out.push("confidence", Value::from(self.confidence.as_str()));
        let suggestions = self.suggestions.iter().map(|text| Value::from(text.as_str())).collect();
        out.push("verificationSuggestions", Value::Array(suggestions));
        Value::Object(out)
    }
}
