//! A report's document: what the mutations add up to, then the mutations.

use serde::{Serialize, Serializer};

use super::{Mutation, Report, Risk, SCHEMA, Tier, Unseen, Verdict};

/// A tier as it is written: its number and its name.
#[derive(Serialize)]
pub struct Labelled {
    tier: u8,
    label: &'static str,
}

impl From<Tier> for Labelled {
    fn from(tier: Tier) -> Self {
        Self { tier: tier.number(), label: tier.label() }
    }
}

/// The document, without an attestation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    schema_version: &'static str,
    version: &'static str,
    risk_assessment: Verdict,
    assessment_reason: String,
    summary: Summary,
    mutations: &'a [Mutation],
    #[serde(skip_serializing_if = "Option::is_none")]
    cross_action_risks: Option<&'a [Risk]>,
    #[serde(skip_serializing_if = "<[Unseen]>::is_empty")]
    not_looked_into: &'a [Unseen],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    total_mutations: usize,
    worst_recoverability: Tier,
    needs_review: bool,
    has_unrecoverable: bool,
    dependency_impact_count: usize,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let summary = Summary {
            total_mutations: self.mutations.len(),
            worst_recoverability: self.worst().map_or(Tier::Reversible, |worst| worst.recoverability.tier),
            needs_review: self.tiers().any(|tier| tier == Tier::NeedsReview),
            has_unrecoverable: self.tiers().any(|tier| tier == Tier::Unrecoverable),
            dependency_impact_count: self.mutations.iter().map(|mutation| mutation.dependencies.len()).sum(),
        };
        let document = Document {
            schema_version: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            risk_assessment: self.verdict(),
            assessment_reason: self.reason(),
            summary,
            mutations: &self.mutations,
            cross_action_risks: self.cross_action_risks.as_deref(),
            not_looked_into: &self.unseen,
        };
        document.serialize(serializer)
    }
}
