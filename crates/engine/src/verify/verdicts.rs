//! From verdict to decision to execution: every attestation that a row names, against the row and against what came of the call.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;

use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::Attestation;
use writ_evidence::registry::Registry;
use writ_evidence::row::{Row, RowDecision};
use writ_evidence::tally::{Tally, listed};
use writ_policy::Facts;

use super::report::{Outcome, Phase, Standing};
use crate::Home;
use crate::attest::archive::Archive;
use crate::attest::attested::{self, Action};
use crate::attest::proofs::{attestation_file, registry_file};
use crate::attest::verdicts::APPROVAL;
use crate::decide::approvals::GRANT;
use crate::session::rows::event;

/// Most chains that the summary tells one by one.
const MOST: usize = 20;

/// How far apart the moments of a row and of what was signed for it may be.
const APART_MILLIS: u64 = 60_000;

/// This machine's own instance, which knows what became of its keys since. Asked only when a row names an attestation.
pub struct Own<'a> {
    home: &'a Home,
    /// Whether the session is one of this machine, so that no other instance can have signed for it.
    here: bool,
    registry: OnceCell<Result<Option<Registry>, String>>,
}

impl<'a> Own<'a> {
    /// The instance of a state folder.
    pub const fn of(home: &'a Home, here: bool) -> Self {
        Self { home, here, registry: OnceCell::new() }
    }

    /// Its registry, where it has one. One that is there and cannot be read is no absent one: it may know of a key that got out.
    fn registry(&self) -> Result<Option<&Registry>, String> {
        let known = self.registry.get_or_init(|| {
            let Some(state) = self.home.state().ok().filter(|state| state.join(writ_store::instance::FILE).is_file())
            else {
                return Ok(None);
            };
            let read = Archive::open(state, None).and_then(|mut archive| archive.registry(Timestamp::now()));
            read.map_err(|error| format!("this machine's own instance cannot be asked: {error}"))
        });
        known.as_ref().map(Option::as_ref).map_err(String::clone)
    }
}

/// The attestations that rows name, checked one by one.
pub struct Chains<'a> {
    folder: &'a Path,
    session: Option<String>,
    own: &'a Own<'a>,
    /// The evaluation of a tool's input, newest: an approval rests on it.
    evaluations: HashMap<Digest, Digest>,
    named: u64,
    /// The first of them, told: row, words, call and decision, and what came of the call.
    told: Vec<Told>,
    /// How many are not told.
    more: u64,
    wrong: Tally,
}

struct Told {
    row: u64,
    text: String,
    call: Option<String>,
    decision: RowDecision,
    end: &'static str,
}

impl<'a> Chains<'a> {
    /// Chains whose documents lie in `folder`, about the session of that id.
    pub fn of(folder: &'a Path, session: Option<String>, own: &'a Own<'a>) -> Self {
        let (evaluations, told, wrong) = (HashMap::new(), Vec::new(), Tally::new());
        Self { folder, session, own, evaluations, named: 0, told, more: 0, wrong }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: &Row) {
        if matches!(row.decision, RowDecision::Completed | RowDecision::Failed) {
            let end = if row.decision == RowDecision::Completed { ", ran" } else { ", ran and failed" };
            let ended = self.told.iter_mut().filter(|told| told.call.is_some() && told.call == row.call_id);
            ended.for_each(|told| told.end = end);
        }
        let mut outcomes = Vec::new();
        if row.detail.get("attestation").is_some() {
            outcomes.push(if event(row) == GRANT { self.approval(row) } else { self.evaluation(row) });
        }
        let facts = row.detail.get("facts").filter(|facts| facts.get("applies").is_some());
        let facts = facts.and_then(|facts| json::from_value::<Facts>(facts).ok());
        for apply in facts.iter().flat_map(Facts::applies).filter(|apply| apply.verdict.is_some()) {
            outcomes.push(self.apply(row, apply));
        }
        self.named += u64::from(!outcomes.is_empty());
        for outcome in outcomes {
            match outcome {
                Ok(text) if self.told.len() < MOST => {
                    let (call, decision) = (row.call_id.clone(), row.decision);
                    self.told.push(Told { row: row.sequence, text, call, decision, end: "" });
                }
                Ok(_) => self.more += 1,
                Err(why) => self.wrong.add(row.sequence, &why),
            }
        }
    }

    /// What it comes to; nothing when no row names an attestation.
    pub fn phase(self) -> Option<Phase> {
        if self.named == 0 {
            return None;
        }
        let (outcome, findings, summary) = if self.wrong.total() == 0 {
            let known = if self.own.registry().is_ok_and(|own| own.is_some()) {
                ""
            } else {
                ", as the registries kept with them have it"
            };
            let all = self.told.len() as u64 + self.more;
            let told = |told: Told| format!("row {}: {} — {}{}", told.row, told.text, told.decision, told.end);
            let summary = format!("{} rows rest on attested verdicts, signed and about these calls{known}", self.named);
            (Outcome::Passed, listed(self.told.into_iter().map(told).collect(), all), summary)
        } else {
            (Outcome::Failed, self.wrong.texts(), "a row does not rest on the verdict it names".to_owned())
        };
        Some(Phase { name: "verdicts", outcome, standing: Standing::Observed, summary, findings })
    }

    fn evaluation(&mut self, row: &Row) -> Result<String, String> {
        let (attestation, state) = self.genuine(row, row.detail.get("attestation"))?;
        self.about(&attestation, row)?;
        let said = attestation.input().get("tool_input").and_then(Value::as_str);
        if said.is_none() || said != row.detail.get("input").and_then(Value::as_str) {
            return Err("its attestation is about another input".to_owned());
        }
        let call = attestation.input().get("call").and_then(Value::as_str);
        if call != row.call_id.as_deref() {
            return Err("its attestation is about another call".to_owned());
        }
        let tier = attested::tier(&attestation);
        let facts = row.detail.get("facts").and_then(|facts| json::from_value::<Facts>(facts).ok());
        let judged = facts.as_ref().and_then(Facts::loss).map_or(Some(1), |loss| Some(loss.tier));
        if tier != judged {
            return Err("its attestation tells of another tier than its facts".to_owned());
        }
        let input = row.detail.get("input").and_then(Value::as_str).unwrap_or_default();
        self.evaluations.insert(key(row.tool_name.as_deref().unwrap_or_default(), input), attestation.digest());
        let verdict = attested::verdict(&attestation).ok_or("its attestation holds no verdict")?;
        Ok(format!("verdict {} by {} ({state})", verdict.as_str(), attestation.key_id()))
    }

    fn approval(&self, row: &Row) -> Result<String, String> {
        let (attestation, state) = self.genuine(row, row.detail.get("attestation"))?;
        let input = attestation.input();
        if input.get("source").and_then(Value::as_str) != Some(APPROVAL) {
            return Err("its attestation is no approval".to_owned());
        }
        self.about(&attestation, row)?;
        let grant = row.detail.get("grant");
        let text = |name: &str| grant.and_then(|grant| grant.get(name)).and_then(Value::as_str).unwrap_or_default();
        if input.get("tool_input").and_then(Value::as_str) != Some(text("input")) {
            return Err("its attestation approves another call".to_owned());
        }
        let evaluated = self.evaluations.get(&key(text("tool"), text("input")));
        let parent = attestation.text("parent_attestation").and_then(|text| Digest::parse(text).ok());
        if parent.is_none() || evaluated.copied() != parent {
            return Err("its approval does not rest on the evaluation of that call".to_owned());
        }
        Ok(format!("approval of {} by {} ({state}), resting on its evaluation", text("tool"), attestation.key_id()))
    }

    fn apply(&self, row: &Row, apply: &writ_policy::Apply) -> Result<String, String> {
        let verdict = apply.verdict.as_ref().ok_or("no verdict")?;
        let (attestation, state) = self.documents(row.timestamp, verdict.attestation, verdict.registry)?;
        if !attested::covers(&attestation, &Action::PlanFile(verdict.plan)) {
            return Err("its attestation is about another plan file".to_owned());
        }
        if attested::tier(&attestation) != Some(verdict.tier) || attestation.expires_at() != Some(verdict.until) {
            return Err("its attestation says something else than its facts".to_owned());
        }
        let plan = apply.plan.as_deref().unwrap_or_default();
        Ok(format!("plan {plan}, tier {}, by {} ({state})", verdict.tier, attestation.key_id()))
    }

    fn genuine(&self, row: &Row, named: Option<&Value>) -> Result<(Attestation, &'static str), String> {
        let digest = |name: &str| {
            let text = named.and_then(|named| named.get(name)).and_then(Value::as_str);
            text.and_then(|text| Digest::parse(text).ok()).ok_or("it names no attestation")
        };
        self.documents(row.timestamp, digest("digest")?, digest("registry")?)
    }

    /// The kept documents: the named ones, genuine, and not from the row's future.
    fn documents(&self, at: Timestamp, named: Digest, known: Digest) -> Result<(Attestation, &'static str), String> {
        let kept = |name: String, digest: Digest| {
            let bytes =
                super::optional(&self.folder.join(&name)).ok().flatten().ok_or(format!("{name} is not there"))?;
            if Digest::of(&bytes) == digest { Ok(bytes) } else { Err(format!("{name} was changed")) }
        };
        let attestation =
            Attestation::parse(&kept(attestation_file(named), named)?).map_err(|error| error.to_string())?;
        let registry = Registry::parse(&kept(registry_file(known), known)?).map_err(|error| error.to_string())?;
        let state = registry.check(&attestation).map_err(|error| error.to_string())?;
        self.stands(&attestation, &registry)?;
        // The row's moment was taken when the call came in; its own evaluation is signed a little later.
        let apart = attestation.timestamp().millis().saturating_sub(at.millis());
        if apart > 0 && apart.unsigned_abs() > APART_MILLIS {
            return Err("its attestation is younger than the decision".to_owned());
        }
        Ok((attestation, state.as_str()))
    }

    /// What this machine knows of the key today; a key that got out proves nothing, whenever it signed.
    fn stands(&self, attestation: &Attestation, kept: &Registry) -> Result<(), String> {
        let own = self.own.registry()?.filter(|own| own.instance() == kept.instance());
        match own {
            Some(own) => own.check(attestation).map(|_state| ()).map_err(|error| error.to_string()),
            None if self.own.here => Err(format!("`{}` is not this machine's instance", kept.instance())),
            None => Ok(()),
        }
    }

    /// What is signed on the way of a call is signed for its session, then.
    fn about(&self, attestation: &Attestation, row: &Row) -> Result<(), String> {
        if attestation.input().get("session").and_then(Value::as_str) != self.session.as_deref() {
            return Err("its attestation is about another session".to_owned());
        }
        let apart = attestation.timestamp().millis().saturating_sub(row.timestamp.millis());
        if apart.unsigned_abs() > APART_MILLIS {
            return Err(format!("its attestation was signed at {}, not then", attestation.timestamp()));
        }
        Ok(())
    }
}

/// What stands for a tool and its input: the input is a digest already, and holds no space.
fn key(tool: &str, input: &str) -> Digest {
    Digest::of(format!("{input} {tool}").as_bytes())
}
