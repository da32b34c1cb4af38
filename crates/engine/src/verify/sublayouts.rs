//! Sub-agents' policies, each verified as its parent is, with what it names in turn; and what all agents used together.
//!
//! Owns the recursion: per sublayout its policy, its agents' statements, what that policy binds them to, its evaluators, what it requires,
//! its end and its limits. Refuses to count a sublayout whose agents never ran as good: it has nothing to show, and owes nothing. Invariant:
//! the totals are the sums of the newest statement of each agent, the main one's among them. Page: `spec/verify.md`, "Sublayouts".

use std::path::Path;

use serde::Serialize;
use writ_clients::transcript::{MAIN, Transcripts};
use writ_core::Digest;
use writ_core::json::Value;
use writ_evaluators::rego;
use writ_policy::{Limit, Measure};

use super::evaluators::{self, Asked, Evaluation};
use super::phase::{Outcome, Phase, Standing};
use super::phase_names::{LIMITS, SUBLAYOUTS, TURNS};
use super::policies;
use super::speaking::{Functionaries, Policies, Speaking};
use super::statements::{NotShown, Statements, Wish};
use super::turns::Turns;
use super::{Options, materials};
use crate::governing::layers::{self, LayerRef};
use crate::turns::predicate::{Cumulative, Usd};

/// A sub-agent's policy, and what came of its agents under it.
#[derive(Clone, Debug, Serialize)]
pub struct Sublayout {
    /// The type of its agents.
    pub name: String,
    /// What rules of the policy are named with.
    pub layer: String,
    /// The policy's digest.
    pub policy: Digest,
    /// How many agents of the type ran.
    pub agents: u64,
    /// How many statements of turns they have.
    pub statements: u64,
    /// What they used, by their newest statements.
    pub used: Cumulative,
    /// What was asked, in order.
    pub phases: Vec<Phase>,
    /// Those that its policy names.
    pub sublayouts: Vec<Sublayout>,
}

/// What is verified, and what it is verified with.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// The policies.
    pub policies: Policies<'a>,
    /// The statements.
    pub statements: &'a Statements,
    /// Those of turns.
    pub turns: &'a Turns<'a>,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// Writ's own program.
    pub program: Option<&'a Path>,
    /// The session's main transcript.
    pub main: Option<&'a Path>,
    /// How its client's transcripts are read.
    pub transcripts: Option<&'a dyn Transcripts>,
    /// What the verifier brings along.
    pub options: &'a Options,
    /// What time rules have, those of all sublayouts too.
    pub time: &'a rego::Budget,
}

impl<'a> Record<'a> {
    /// The statements that these policies want, which speak where the one at this place of the list does.
    pub fn wanted(&self, speaking: &[Speaking<'_>], at: Option<usize>, prefix: Option<&str>) -> Vec<Wish> {
        let mut wishes: Vec<Wish> = Vec::new();
        for one in speaking {
            let (by, (_, policy)) = (self.policies.functionaries(at, one), one);
            let list = policy.document().get("requiredAttestations").and_then(Value::as_array);
            for name in list.unwrap_or_default().iter().filter_map(Value::as_str) {
                let wish = Wish { name: format!("{}{name}", prefix.unwrap_or_default()), by: by.clone() };
                if !wishes.contains(&wish) {
                    wishes.push(wish);
                }
            }
        }
        wishes
    }

    /// What evaluators of these policies say of these statements.
    pub fn evaluated(
        &self,
        speaking: &[Speaking<'_>],
        at: Option<usize>,
        shown: &dyn Fn(&Functionaries) -> Result<Vec<writ_evaluators::input::Statement>, NotShown>,
    ) -> (Vec<Phase>, Vec<Evaluation>) {
        let (mut phases, mut all) = (Vec::new(), Vec::new());
        for one in speaking {
            let (layer, policy) = one;
            if policy.document().get("evaluators").is_none() {
                continue;
            }
            let asked = Asked {
                policy: policy.document(),
                layer: layer.map(|layer| layer.name.as_str()),
                path: &self.policies.named.path,
                program: self.program,
                options: self.options,
                time: self.time,
            };
            let by = self.policies.functionaries(at, one);
            let (more, judged) = evaluators::phases(asked, shown(&by), self.statements);
            phases.extend(more);
            all.extend(judged);
        }
        (phases, all)
    }
}

/// The sublayouts of the policy that governed last; one phase on them and on what was used in all; and what evaluators said. `limits`
/// are the session's.
pub fn check(record: &Record<'_>, limits: &[Limit]) -> (Vec<Sublayout>, Option<Phase>, Vec<Evaluation>) {
    let mut judged = Vec::new();
    let all: Vec<Sublayout> =
        record.policies.children(None).into_iter().filter_map(|at| record.one(at, &mut judged)).collect();
    if all.is_empty() {
        return (all, None, judged);
    }
    let phase = summed(record, &all, limits);
    (all, Some(phase), judged)
}

/// What all agents used together, held against the session's limits, and what came of the sublayouts.
fn summed(record: &Record<'_>, all: &[Sublayout], limits: &[Limit]) -> Phase {
    let sums = record.turns.agents().filter_map(|(_, used, _)| used);
    let total = sum(sums);
    let held = Held::of(limits, &total);
    let mut findings = Vec::new();
    let (mut failed, mut absent) = (0_usize, 0_usize);
    for one in all {
        one.told(&mut findings, &mut failed, &mut absent);
    }
    if total.turns > 0 {
        findings.push(format!("in all, by the statements: {}", shown(&total)));
    }
    findings.extend(held.broken.iter().map(|text| format!("in all: {text}")));
    findings.extend(held.unknown.iter().map(|text| format!("in all: {text}")));
    let (outcome, summary) = match (failed, absent, held.broken.len()) {
        (0, _, more) if more > 0 => (Outcome::Failed, "all agents together used more than the policy gives".to_owned()),
        (0, 0, _) => (Outcome::Passed, format!("{} verified with their agents' statements", count(all.len()))),
        (0, ..) => (Outcome::Absent, format!("not all of {} can be verified", count(all.len()))),
        _ => (Outcome::Failed, format!("{failed} phases of {} fail", count(all.len()))),
    };
    Phase { name: SUBLAYOUTS, outcome, standing: Standing::Observed, summary, findings }
}

fn count(all: usize) -> String {
    if all == 1 { "1 sublayout".to_owned() } else { format!("{all} sublayouts") }
}

impl Sublayout {
    /// What people are told of it in its parent's report, and how many of its phases failed or are absent.
    fn told(&self, findings: &mut Vec<String>, failed: &mut usize, absent: &mut usize) {
        let name = &self.name;
        findings.push(match self.agents {
            0 => format!("`{name}`: no sub-agent of that type ran"),
            agents => format!("`{name}`: {agents} agents, {} statements, {}", self.statements, shown(&self.used)),
        });
        for phase in &self.phases {
            let wrong = match phase.outcome {
                Outcome::Passed => continue,
                Outcome::Failed => &mut *failed,
                // Nothing is owed of agents that did not run.
                Outcome::Absent if self.agents == 0 => continue,
                Outcome::Absent => &mut *absent,
            };
            *wrong += 1;
            findings.push(format!("`{name}`, {}: {}", phase.name, phase.summary));
        }
        self.sublayouts.iter().for_each(|one| one.told(findings, failed, absent));
    }
}

impl Record<'_> {
    /// One sublayout, with those that its policy names.
    fn one(&self, at: usize, judged: &mut Vec<Evaluation>) -> Option<Sublayout> {
        let layer = self.policies.layer(Some(at))?;
        let name = layer.agent.clone()?;
        let agents: Vec<&str> = self.turns.agents_of(&name).filter(|agent| *agent != MAIN).collect();
        let statements = self.statements.count_of(&agents);
        let theirs = || self.turns.agents().filter(|(agent, ..)| agents.contains(agent));
        let used = sum(theirs().filter_map(|(_, used, _)| used));
        let ended = theirs().filter_map(|(.., ended)| ended).max();
        let speaking = self.policies.speaking(Some(at));
        let mut phases = vec![self.policy(layer)];
        let mut sublayouts = Vec::new();
        if agents.is_empty() {
            let summary = "no sub-agent of this type ran".to_owned();
            phases.push(phase(TURNS, Outcome::Absent, summary, Vec::new()));
        } else {
            phases.push(self.attested(layer, &agents, statements));
            phases.extend(self.bound(&speaking, &agents));
        }
        sublayouts.extend(self.policies.children(Some(at)).into_iter().filter_map(|at| self.one(at, judged)));
        if !agents.is_empty() {
            let prefix = layer.prefix.as_deref();
            let shown = |by: &Functionaries| self.statements.of_agents(&agents, prefix, by);
            let (more, said) = self.evaluated(&speaking, Some(at), &shown);
            judged.extend(said);
            phases.extend(more);
            phases.extend(self.statements.required(&self.wanted(&speaking, Some(at), prefix)));
            phases.extend(speaking.iter().filter_map(|(_, policy)| policies::expiry(policy, ended)));
            phases.extend(self.limits(layer, &speaking, &used, statements));
        }
        let agents = agents.len() as u64;
        Some(Sublayout {
            name,
            layer: layer.name.clone(),
            policy: layer.digest,
            agents,
            statements,
            used,
            phases,
            sublayouts,
        })
    }

    /// Whether its policy is there, and is the one that its parent pins.
    fn policy(&self, layer: &LayerRef) -> Phase {
        let (found, above) = (self.policies.document(layer.file), self.policies.above(layer));
        let pinned = above.ok().and_then(|above| {
            let reference = above.references().into_iter().find(|named| named.pointer == layer.pointer)?;
            reference.child?.digest
        });
        let (outcome, summary) = match (found, pinned) {
            (Err(why), _) => (Outcome::Failed, why),
            (Ok(found), _) if found.digest() != layer.digest => {
                (Outcome::Failed, format!("`{}` is another document than the one that was accepted", layer.name))
            }
            (Ok(_), Some(Ok(pinned))) if pinned != layer.digest && pinned != layer.file => {
                (Outcome::Failed, format!("`{}` is not the one that {} pins", layer.name, layer.pointer))
            }
            (Ok(_), Some(Ok(_))) => {
                (Outcome::Passed, format!("`{}` {}, as its parent pins it", layer.name, layer.digest))
            }
            (Ok(_), _) => (Outcome::Passed, format!("`{}` {}, which its parent pins not", layer.name, layer.digest)),
        };
        phase("policy", outcome, summary, Vec::new())
    }

    /// The statements of its agents' turns. That each has the name, the signature and the place that it should is asked of all of a session's
    /// together.
    fn attested(&self, layer: &LayerRef, agents: &[&str], statements: u64) -> Phase {
        let prefix =
            layer.prefix.as_deref().map_or_else(String::new, |prefix| format!(", their names begin with `{prefix}`"));
        let asked = self.policies.named.attests;
        let summary = if asked || statements > 0 {
            format!("{statements} statements of {} agents{prefix}", agents.len())
        } else {
            format!("nothing is attested of {} agents: no policy asks for that", agents.len())
        };
        let missing = self.turns.unattested(&|agent| agents.contains(&agent));
        if asked && !missing.is_empty() {
            return phase(TURNS, Outcome::Absent, summary, missing);
        }
        phase(TURNS, Outcome::Passed, summary, Vec::new())
    }

    /// What its policy binds its agents' statements to: their order, the transcript, the work tree, artifacts.
    fn bound(&self, speaking: &[Speaking<'_>], agents: &[&str]) -> Vec<Phase> {
        let mut phases = Vec::new();
        for (_, policy) in speaking {
            phases.extend(materials::ordered(materials::order(policy), self.turns, &|agent| agents.contains(&agent)));
            let files = self.transcripts.zip(self.main).and_then(|(kept, main)| kept.files(main).ok());
            let files = files.map(|listed| listed.files).unwrap_or_default();
            let own = files.iter().filter(|(agent, _)| agents.contains(&agent.as_str()));
            let mut mains: Vec<Option<&Path>> = own.map(|(_, path)| Some(path.as_path())).collect();
            if mains.is_empty() {
                mains.push(None);
            }
            let looked = mains.into_iter().filter_map(|main| {
                let here = materials::Here {
                    root: self.policies.named.root(),
                    home: self.home,
                    main,
                    transcripts: self.transcripts,
                };
                materials::check(policy, &here, self.turns)
            });
            // One transcript that is as the policy says is enough: it names one root.
            let looked: Vec<Phase> = looked.collect();
            let good = looked.iter().position(|phase| phase.outcome == Outcome::Passed).unwrap_or(0);
            phases.extend(looked.into_iter().nth(good));
        }
        phases
    }

    /// Its own limits, held against what its agents' statements say.
    fn limits(&self, layer: &LayerRef, speaking: &[Speaking<'_>], used: &Cumulative, statements: u64) -> Option<Phase> {
        let above = self.policies.above(layer).ok();
        let mut limits: Vec<Limit> = Vec::new();
        for (own, policy) in speaking {
            let above = above.as_ref().filter(|_| own.is_some_and(|own| own.pointer == layer.pointer));
            limits.extend(layers::own_limits(own.unwrap_or(layer), policy, above));
        }
        if limits.is_empty() || statements == 0 {
            return None;
        }
        let Held { parts, broken, unknown } = Held::of(&limits, used);
        let (outcome, summary) = match (broken.len(), unknown.len()) {
            (0, 0) => (Outcome::Passed, parts.join(", ")),
            (0, _) => (Outcome::Absent, "what its agents used is not known for certain".to_owned()),
            _ => (Outcome::Failed, format!("its agents used more than it gives: {}", broken.join(", "))),
        };
        let told = Phase { name: LIMITS, outcome, standing: Standing::Reported, summary, findings: unknown };
        (!told.summary.is_empty()).then_some(told)
    }
}

/// What limits come to.
#[derive(Default)]
struct Held {
    parts: Vec<String>,
    broken: Vec<String>,
    unknown: Vec<String>,
}

impl Held {
    /// Holds what statements say against limits; prompts and time are no part of statements' sums.
    fn of(limits: &[Limit], used: &Cumulative) -> Self {
        let mut held = Self::default();
        for limit in limits {
            let amount = match limit.measure {
                Measure::TokensIn => Some(used.tokens_in),
                Measure::TokensOut => Some(used.tokens_out),
                Measure::ToolCalls => Some(used.tool_calls),
                Measure::Spend => used.cost_usd.map(|Usd(money)| money.micros()),
                Measure::Turns | Measure::WallTime => continue,
            };
            let Some(amount) = amount else {
                held.unknown.push(format!("{}: a model that was used has no price", limit.measure));
                continue;
            };
            let text = limit.measure.shown_of(amount, limit.value);
            // One that is fail-fast is broken by no total: it refuses what comes after.
            if limit.post_hoc && amount > limit.value { held.broken.push(text) } else { held.parts.push(text) }
        }
        held
    }
}

fn sum<'c>(all: impl Iterator<Item = &'c Cumulative>) -> Cumulative {
    all.fold(Cumulative::begin(), |sum, one| sum.plus(one))
}

fn shown(used: &Cumulative) -> String {
    let Cumulative { tokens_in, tokens_out, cost_usd, turns, tool_calls } = used;
    let cost = cost_usd.map_or_else(|| "cost not known".to_owned(), |Usd(money)| Measure::Spend.shown(money.micros()));
    format!("{tokens_in} tokens in, {tokens_out} out, {cost}, {turns} turns, {tool_calls} calls")
}

const fn phase(name: &'static str, outcome: Outcome, summary: String, findings: Vec<String>) -> Phase {
    Phase { name, outcome, standing: Standing::Observed, summary, findings }
}
