//! A session's use, held against its policy's limits: from the rows, and from the transcripts counted again.
//!
//! Two questions. Whether each prompt and turn was let or refused as the limits say, from the recorded use; and what the whole session
//! came to (R17): a post-hoc limit is broken when more was used than it says. What the client told is no more than its word; what it
//! does not tell any more is not spoken for. Page: `spec/limits.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use writ_clients::meter::{AgentUse, Meter};
use writ_clients::transcript::Transcripts;
use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp, Verdict};
use writ_evidence::row::{Row, RowDecision};
use writ_policy::{
    Action, Enforce, Enforced, Limit, Measure, Policy, Refused, Tally, Usage, enforce, judge_limits, near,
    near_of_type, strictest,
};

use super::Options;
use super::layers::{OfAgents, Policies};
use super::policies::{self, Kept};
use super::report::{LIMITS, Outcome, Phase, Standing};
use crate::decide::outcome::rules;
use crate::governing::in_force::PolicyRef;
use crate::governing::layers::LayerRef;
use crate::limits::meter::{prices_of, usage_of, used_under};
use crate::limits::prices::Prices;
use crate::limits::raise::Raise;
use crate::session::agents::Agents;
use crate::session::rows::{NEAR, PROMPT, PROMPT_REFUSED, RAISED, TURN_ENDED, event};
use crate::session::state::State;
use crate::session::{agents, millis_between};

/// Whether a state's use follows from the one before: what was counted is not taken back.
pub fn follows(before: Option<&Usage>, after: Option<&Usage>) -> Result<(), String> {
    let falls = match (before, after) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(before), Some(after)) => before.tokens_in > after.tokens_in || before.tokens_out > after.tokens_out,
    };
    if falls { Err("it says that less was used than the row before".to_owned()) } else { Ok(()) }
}

/// Whether a row is about a prompt, a turn or a limit.
pub fn is_about(row: &Row) -> bool {
    [PROMPT, PROMPT_REFUSED, TURN_ENDED, NEAR, RAISED].contains(&event(row))
}

/// The same for what sub-agents used: the state before, with what was used by now.
pub fn follow(mut before: Agents, after: &Agents) -> Result<Agents, String> {
    for (layer, count) in after.iter().filter(|(_, count)| count.usage.is_some()) {
        let known = before.entry(layer.clone()).or_default();
        follows(known.usage.as_ref(), count.usage.as_ref())?;
        known.usage.clone_from(&count.usage);
    }
    Ok(before)
}

/// What a policy and its layers limit.
#[derive(Debug, Default)]
pub struct Limited {
    /// What the session as a whole may use.
    pub limits: Vec<Limit>,
    /// What sub-agents of one type may.
    pub agents: Vec<OfAgents>,
    /// The layers.
    pub list: Vec<LayerRef>,
}

/// What a policy and its layers limit, as far as they were kept.
pub fn limited(named: &PolicyRef, policies: &Kept) -> Limited {
    let mut layers = Policies::of(policies);
    let agents =
        layers.of_agents(named, None).unwrap_or_default().into_iter().map(|(of_agents, _)| of_agents).collect();
    Limited {
        limits: policies::limits(named, policies),
        agents,
        list: policies::list(named, policies).unwrap_or_default(),
    }
}

/// What a row between calls is held against.
pub struct Held<'a> {
    /// The policies whose limits are the session's, with what their rules are named with.
    pub policies: &'a [(Option<&'a str>, &'a Policy)],
    /// Those about its agent's type, which limit that.
    pub agents: &'a [(OfAgents, &'a Policy)],
    /// All that limit sub-agents of one type.
    pub raised: &'a [OfAgents],
}

/// Decides again whether a prompt is taken, or a turn goes on, and says what the state is then. `None` where the row is about neither.
pub fn decide_again(row: &Row, held: &Held<'_>, before: &State, began: Timestamp) -> Option<Result<State, String>> {
    let tally = before.tally(millis_between(began, before.steady(row.timestamp)));
    let limits = || strictest(held.policies.iter().flat_map(|(_, policy)| policy.limits()));
    let agents = || held.agents.iter().map(|(of_agents, policy)| (of_agents, *policy));
    let all = held.policies.iter().map(|(_, policy)| *policy).chain(agents().map(|(_, policy)| policy));
    let mode = Enforce::strictest(all.map(Policy::enforce));
    let judged = |action| {
        let own = held
            .agents
            .iter()
            .map(|(of_agents, policy)| (of_agents.layer.as_str(), *policy, of_agents.own(before, row.timestamp)));
        let decision = judge_limits(held.policies.iter().copied(), own, tally, action);
        let rules = rules(&decision);
        let Enforced { decision, observed } = enforce(mode, decision);
        (decision.verdict == Verdict::Deny, observed, rules)
    };
    let recorded = || row.detail.get("rules").cloned().unwrap_or_default();
    let refused = |action, what: &str| {
        let (refused, _, rules) = judged(action);
        let same = json::to_value(&rules) == recorded();
        if refused && same { Ok(()) } else { Err(format!("{what} was refused, and the recorded use does not say so")) }
    };
    let mut expected = before.clone();
    let said = match (row.decision, event(row)) {
        (RowDecision::Checkpoint, PROMPT) => {
            let (refused, observed, _) = judged(Action::Prompt);
            let told = row.detail.get("observed").and_then(Value::as_str);
            (expected.turns, expected.refused) = (expected.turns + 1, None);
            if refused || told != observed.map(Verdict::as_str) {
                Err("a prompt was taken although a limit was reached".to_owned())
            } else {
                Ok(())
            }
        }
        (RowDecision::Denied, PROMPT_REFUSED) => {
            expected.refused = Some(Refused::Prompt);
            refused(Action::Prompt, "a prompt")
        }
        (RowDecision::Denied, TURN_ENDED) => {
            expected.refuse_call();
            agents::refuse(&mut expected.agents, agents().map(|(of_agents, _)| of_agents.layer.as_str()));
            refused(Action::Request, "a turn")
        }
        (RowDecision::Checkpoint, NEAR) => {
            let told: Vec<Measure> = row.detail.get("limits").and_then(|limits| json::from_value(limits).ok())?;
            let known = near(&limits(), tally);
            let mut right = told.iter().all(|told| known.iter().any(|(measure, _)| measure == told));
            expected.warned.extend(told);
            let of_agents = row.detail.get("agents").map(json::from_value::<BTreeMap<String, Vec<Measure>>>);
            for (layer, told) in of_agents.transpose().ok()?.unwrap_or_default() {
                let own = held.raised.iter().find(|of_agents| of_agents.layer == layer);
                let known = own.map(|own| near_of_type(&own.limits, own.own(before, row.timestamp).tally));
                let known = known.unwrap_or_default();
                right &= told.iter().all(|told| known.iter().any(|(measure, _)| measure == told));
                agents::warned(&mut expected.agents, &layer, &told);
            }
            if right { Ok(()) } else { Err("a limit is said to be near, and is not".to_owned()) }
        }
        (RowDecision::Checkpoint, RAISED) => match json::from_value::<Raise>(&row.detail) {
            Ok(Raise { limit, from, to, agent: Some(agent) }) => {
                let stops = |known: &&Limit| known.measure == limit && !known.post_hoc;
                let theirs = held.raised.iter().filter(|of_agents| of_agents.agent == agent);
                let theirs: Vec<(&str, u64)> = theirs
                    .filter_map(|of_agents| {
                        let tally = of_agents.own(before, row.timestamp).tally;
                        let known = of_agents.limits.iter().find(stops)?;
                        Some((of_agents.layer.as_str(), tally.limit(known)))
                    })
                    .collect();
                let right = theirs.iter().map(|(_, now)| *now).min() == Some(from) && to > from;
                agents::raise(&mut expected.agents, theirs.into_iter().map(|(layer, _)| layer), limit, to);
                if right { Ok(()) } else { Err("the limit that it raises is another".to_owned()) }
            }
            Ok(Raise { limit, from, to, agent: None }) => {
                let known = limits().into_iter().find(|known| known.measure == limit && !known.post_hoc);
                let right = known.is_some_and(|known| tally.limit(&known) == from && to > from);
                expected.raise(limit, to);
                if right { Ok(()) } else { Err("the limit that it raises is another".to_owned()) }
            }
            Err(error) => Err(format!("it names no limit that was raised: {error}")),
        },
        _ => return None,
    };
    Some(said.map(|()| expected))
}

/// What rows say of a session's use.
#[derive(Default)]
pub struct Used {
    began: Option<Timestamp>,
    ended: Option<Timestamp>,
    last: Option<State>,
    mains: Vec<PathBuf>,
}

impl Used {
    /// Takes the next row, and the state that it holds.
    pub fn row(&mut self, row: &Row, state: Option<&State>) {
        self.began = self.began.or(Some(row.timestamp));
        self.ended = Some(row.timestamp);
        let text = |name: &str| row.detail.get(name).and_then(Value::as_str);
        if let Some(main) = text("transcript").map(PathBuf::from).filter(|main| !self.mains.contains(main)) {
            self.mains.push(main);
        }
        if let Some(state) = state {
            self.last = Some(state.clone());
        }
    }

    /// What it comes to; `None` where no policy limits anything.
    pub fn phase(
        mut self,
        limited: &Limited,
        folder: &Path,
        transcripts: Option<&dyn Transcripts>,
        Options { transcript: elsewhere, sources, .. }: &Options,
    ) -> Option<Phase> {
        if limited.limits.is_empty() && limited.agents.is_empty() {
            return None;
        }
        let (last, began, ended) = (self.last.take()?, self.began?, self.ended?);
        match elsewhere {
            Some(main) => self.mains = vec![main.clone()],
            None => self.mains = self.mains.iter().map(|main| sources.main(main)).collect(),
        }
        let all = limited.limits.iter().chain(limited.agents.iter().flat_map(|of_agents| &of_agents.limits));
        let told = all.clone().any(|limit| limit.measure.is_told_by_client());
        // What a bundle does not have nobody can count again: then the rows' word stands, and may be short of what was used.
        let again = told && !sources.withheld();
        let recorded = last.usage.clone().unwrap_or_default();
        let counted = if again { self.counted(folder, transcripts, last.prices) } else { Ok(Counted::default()) };
        let (usage, mut findings, doubt) =
            reconciled(recorded, counted.as_ref().map(|counted| counted.usage.clone()), again);
        let tally = Tally { usage: Some(&usage), ..last.tally(millis_between(began, last.steady(ended))) };
        let mut verdicts: Vec<(String, Said)> = Vec::new();
        verdicts.extend(limited.limits.iter().map(|limit| (limit.measure.to_string(), verdict(limit, tally))));
        for of_agents in &limited.agents {
            let own = of_agents.own(&last, ended).tally;
            let theirs = counted.as_ref().map(|counted| counted.of(&limited.list, &of_agents.layer));
            let usage = reconciled(own.usage.cloned().unwrap_or_default(), theirs, again).0;
            let own = Tally { usage: Some(&usage), ..own };
            let agent = &of_agents.agent;
            verdicts.extend(of_agents.limits.iter().map(|limit| {
                let said = verdict(limit, own).map(|(text, broken)| (format!("`{agent}`: {text}"), broken));
                (format!("{} of `{agent}`", limit.measure), said)
            }));
        }
        let (mut outcome, mut parts) = (if doubt { Outcome::Absent } else { Outcome::Passed }, Vec::new());
        let mut broken = Vec::new();
        for (name, said) in verdicts {
            match said {
                Ok((text, false)) => parts.push(text),
                Ok((text, true)) => broken.push(text),
                Err(why) => {
                    outcome = Outcome::Absent;
                    findings.push(format!("{name}: not known: {why}"));
                }
            }
        }
        let summary = if broken.is_empty() {
            let head = (outcome != Outcome::Passed).then(|| "what was used is not known for certain".to_owned());
            let told = (!parts.is_empty()).then(|| parts.join(", "));
            head.into_iter().chain(told).collect::<Vec<_>>().join(": ")
        } else {
            outcome = Outcome::Failed;
            format!("more was used than the policy gives: {}", broken.join(", "))
        };
        let standing = if told { Standing::Reported } else { Standing::Observed };
        Some(Phase { name: LIMITS, outcome, standing, summary, findings })
    }

    /// Counts the transcripts again.
    fn counted(
        &self,
        folder: &Path,
        transcripts: Option<&dyn Transcripts>,
        prices: Option<Digest>,
    ) -> Result<Counted, String> {
        let transcripts = transcripts.ok_or("the session's client keeps no transcript that tells it")?;
        let mut meter = Meter::default();
        for main in &self.mains {
            meter.read(transcripts, main).map_err(|error| error.to_string())?;
        }
        if self.mains.is_empty() {
            return Err("the session names no transcript".to_owned());
        }
        let agents = meter.agents();
        let prices = prices.map(|digest| prices_of(folder, digest)).transpose()?;
        let (unread, torn) = (meter.unread(), meter.torn());
        let unknown = if unread > 0 {
            Some(format!("{unread} lines or transcripts that tell of it cannot be read"))
        } else {
            (torn > 0).then(|| format!("{torn} transcripts end in a line that is cut off"))
        };
        let usage = Usage { unknown, ..usage_of(agents.values(), prices.as_ref()) };
        Ok(Counted { usage, agents, prices })
    }
}

/// What transcripts tell, counted again.
#[derive(Default)]
struct Counted {
    usage: Usage,
    agents: BTreeMap<String, AgentUse>,
    prices: Option<Prices>,
}

impl Counted {
    /// What those agents used on whose calls a layer speaks.
    fn of(&self, list: &[LayerRef], layer: &str) -> Usage {
        let list: Vec<&LayerRef> = list.iter().collect();
        let theirs = used_under(&list, layer, &self.agents);
        Usage { unknown: self.usage.unknown.clone(), ..usage_of(theirs.into_iter(), self.prices.as_ref()) }
    }
}

/// What the rows say and what the transcripts say now, as one; what differs; and whether that leaves a doubt.
fn reconciled(recorded: Usage, counted: Result<Usage, &String>, told: bool) -> (Usage, Vec<String>, bool) {
    if !told {
        return (recorded, Vec::new(), false);
    }
    let counted = match counted {
        Ok(counted) => counted,
        Err(why) => return (recorded, vec![format!("the transcripts cannot be counted again: {why}")], true),
    };
    let mut findings = Vec::new();
    let mut doubt = false;
    for (what, before, now) in [
        (Measure::TokensIn, recorded.tokens_in, counted.tokens_in),
        (Measure::TokensOut, recorded.tokens_out, counted.tokens_out),
        (Measure::Spend, recorded.spend.micros(), counted.spend.micros()),
    ] {
        let (before_shown, now_shown) = (what.shown(before), what.shown(now));
        if now < before {
            doubt = true;
            findings.push(format!("{what}: the rows say {before_shown}, the transcripts tell of {now_shown} now"));
        } else if now > before {
            findings.push(format!("{what}: the transcripts tell of {now_shown}, the last row of {before_shown}"));
        }
    }
    let usage = Usage {
        tokens_in: recorded.tokens_in.max(counted.tokens_in),
        tokens_out: recorded.tokens_out.max(counted.tokens_out),
        spend: recorded.spend.max(counted.spend),
        unknown: recorded.unknown.or(counted.unknown),
        unpriced: counted.unpriced,
    };
    (usage, findings, doubt)
}

/// What a limit comes to, in words, and whether it is broken; or why that is not known.
type Said = Result<(String, bool), String>;

/// What one limit comes to, and whether it is broken. One that is fail-fast is broken by no total: what it refuses stands in the
/// rows, and what an answer used beyond it was on its way when it was reached.
fn verdict(limit: &Limit, tally: Tally<'_>) -> Said {
    let (measure, most) = (limit.measure, tally.limit(limit));
    let used = tally.used(measure)?;
    let reached = if !limit.post_hoc && used >= most { " (reached)" } else { "" };
    let text = format!("{}{reached}", measure.shown_of(used, most));
    Ok((text, limit.post_hoc && used > most))
}
