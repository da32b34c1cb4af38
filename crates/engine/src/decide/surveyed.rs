//! One call, surveyed under each policy that speaks on it.
//!
//! Owns the order of things: each policy has facts of its own, what holds the call is put into them, then all are judged together.
//! Decides nothing itself. Invariant: what the row keeps is what was judged, layer for layer. Page: `spec/layers.md`.

use serde::{Deserialize, Serialize};
use writ_consequence::Report;
use writ_core::{Decision, Digest, ToolCall};
use writ_policy::{Facts, Flow, Held, Layer, Policy, Tally, judge};

use super::look::{CallContext, Looked, look};
use super::rates::{self, Counted};
use crate::attest::proofs::Proof;
use crate::attest::{subject, verdicts};
use crate::governing;
use crate::governing::in_force::Speaks;
use crate::session::Session;

/// A policy beside the root that a call was judged under, as its row says it.
#[derive(Serialize, Deserialize)]
pub struct JudgedLayer {
    /// What its rules are named with.
    pub name: String,
    /// Digest of its file.
    pub file: Digest,
    /// What its survey found.
    pub facts: Facts,
}

/// What the surveys of a call found.
pub struct Surveyed<'a> {
    /// The root's, first.
    found: Vec<(&'a Speaks<'a>, Facts)>,
    report: Option<Report>,
    proofs: Vec<Proof>,
}

impl<'a> Surveyed<'a> {
    /// Looks at a call with the eyes of each policy; `labelling` are those that have no say in it and label what it takes in and lets go.
    pub fn of(session: &Session<'_>, call: &ToolCall, speaking: &'a [Speaks<'a>], labelling: &[&Policy]) -> Self {
        let folder = session.store.folder(&session.id);
        // What a confined call writes may be the settings of a repository that it made.
        let confines = speaking.iter().any(|speaks| speaks.policy.confine().is_some());
        let confined = session.state.policy.as_ref().filter(|_| confines);
        let repository = match &session.within {
            Some(within) => Some(within.repository.clone()),
            None => confined.map(|policy| governing::repository(policy.root()).to_owned()),
        };
        let surroundings = CallContext {
            setting: &session.setting,
            home: session.home,
            client: session.client,
            session: Some(&folder),
            repository: repository.as_deref(),
        };
        let mut out = Self { found: Vec::new(), report: None, proofs: Vec::new() };
        for speaks in speaking {
            let Looked { facts, report, proofs } = look(speaks.policy, call, &surroundings);
            // What would be lost is the same for all of them.
            out.report = out.report.or(report);
            out.proofs.extend(proofs);
            out.found.push((speaks, facts));
        }
        let labels: Vec<Flow> =
            labelling.iter().map(|policy| look(policy, call, &surroundings).facts.flow().clone()).collect();
        out.root(|facts| facts.labelled(&Flow::all(&labels)));
        out
    }

    /// The type of the sub-agent that the call gives a task.
    pub fn starts(&self) -> Option<&str> {
        self.found.first().and_then(|(_, facts)| facts.starts())
    }

    /// Attests what would be lost, where a policy wants that.
    pub fn attest(&mut self, session: &Session<'_>, id: &str, call: &ToolCall) -> Option<Proof> {
        let wanted = || self.found.iter().map(|(speaks, _)| speaks.policy.consequences());
        let (report, subject) = (self.report.as_ref()?, subject::Subject::of(call)?);
        if !wanted().any(|wanted| wanted.attest) {
            return None;
        }
        let shown = subject::Detail::hash_only(wanted().any(|wanted| wanted.hash_only));
        match verdicts::attest(session, id, &subject, call.digest(), report, shown) {
            Ok(proof) => {
                self.proofs.push(proof.clone());
                Some(proof)
            }
            Err(error) => {
                self.root(|facts| facts.unattested(error.to_string()));
                None
            }
        }
    }

    /// Says which tools were called as often as they may be.
    pub fn rates(&mut self, rates: &[Counted], session: &Session<'_>) {
        for (at, (_, facts)) in self.found.iter_mut().enumerate() {
            let tools = rates::exceeded(rates, at, &session.state, session.now);
            *facts = std::mem::take(facts).exceeding(tools);
        }
    }

    /// Says why the call cannot be confined.
    pub fn unconfined(&mut self, why: String) {
        self.root(|facts| facts.unconfined(why));
    }

    fn root(&mut self, change: impl FnOnce(Facts) -> Facts) {
        if let Some((_, facts)) = self.found.first_mut() {
            *facts = change(std::mem::take(facts));
        }
    }

    /// Says what holds the call. A run's sandbox was made without the policies of single sub-agents, and does not hold those.
    pub fn settle(&mut self, held: Held, session: &Session<'_>, by_a_human: bool) {
        for (speaks, facts) in &mut self.found {
            let held = if session.within.is_some() && speaks.of_agent.is_some() { Held::default() } else { held };
            let settled = std::mem::take(facts).held(held).redefined(session.redefined);
            let settled = match session.agent.clone().filter(|_| speaks.policy.identity().asks()) {
                Some(known) if !by_a_human => settled.of_agent(known),
                Some(_) | None => settled,
            };
            *facts = if by_a_human { settled.by_a_human() } else { settled };
        }
    }

    /// Judges them together.
    pub fn judge(&self, session: &Session<'_>) -> Decision {
        let (agents, now) = (&session.state.agents, session.moment());
        let layers = self.found.iter().map(|(speaks, facts)| speaks.layer(facts, agents, now));
        let layers: Vec<Layer<'_>> = layers.collect();
        judge(&layers, &session.setting, session.tally())
    }

    /// What the row keeps: the root's facts, those of the layers, and the attestations they rest on.
    pub fn recorded(self) -> (Option<Facts>, Vec<JudgedLayer>, Vec<Proof>) {
        let mut found = self.found.into_iter();
        let root = found.next().map(|(_, facts)| facts);
        let layer = |(speaks, facts): (&Speaks<'_>, Facts)| JudgedLayer {
            name: speaks.name.as_deref().unwrap_or_default().to_owned(),
            file: speaks.file,
            facts,
        };
        (root, found.map(layer).collect(), self.proofs)
    }
}

/// Looks at a call under policies and judges it, outside of any session.
pub fn judged(policies: &[(Option<&str>, &Policy)], call: &ToolCall, surroundings: &CallContext<'_>) -> Decision {
    let facts: Vec<Facts> = policies.iter().map(|(_, policy)| look(policy, call, surroundings).facts).collect();
    let layers = policies.iter().zip(&facts).map(|((name, policy), facts)| match name {
        None => Layer::own(policy, facts),
        Some(name) => Layer::named(name, policy, facts).uncounted(),
    });
    judge(&layers.collect::<Vec<_>>(), surroundings.setting, Tally::default())
}
