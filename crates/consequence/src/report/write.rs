//! A report as JSON.

use writ_core::json::{Object, Value};

use super::{
    Actor, Dependency, Evidence, Intent, Missing, Mutation, Origin, Recoverability, Report, SCHEMA, Tier, Unseen,
};

impl Report {
    /// The report as JSON, without an attestation.
    pub fn to_json(&self) -> Value {
        let worst = self.worst();
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
        out.push("assessmentReason", Value::from(self.reason()));
        out.push("summary", Value::Object(summary));
        out.push("mutations", Value::Array(self.mutations.iter().map(Mutation::to_json).collect()));
        if let Some(risks) = &self.cross_action_risks {
            out.push("crossActionRisks", Value::Array(risks.clone()));
        }
        if !self.unseen.is_empty() {
            let unseen = |unseen: &Unseen| {
                let mut out = Object::new();
                out.push("what", Value::from(unseen.what.as_str()));
                out.push("why", Value::from(unseen.why.as_str()));
                Value::Object(out)
            };
            out.push("notLookedInto", Value::Array(self.unseen.iter().map(unseen).collect()));
        }
        Value::Object(out)
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
