//! Every recorded decision, decided again from the recorded facts under the recorded policy.
//!
//! Also follows the state from row to row: counters count, grants are given and spent, the policy changes only where a human
//! accepted one. The judging is the hook's own ([`writ_policy::judge`]); nothing here knows a rule.

use std::collections::BTreeSet;
use std::path::Path;

use writ_core::json::{self, Value};
use writ_core::{Decision, Digest, Timestamp, Verdict};
use writ_evidence::row::{Row, RowDecision};
use writ_evidence::tally::Tally as Findings;
use writ_policy::{Enforce, Enforced, Facts, Flow, Held, Layer, Policy, Setting, Taint, Tally, enforce, judge};

use super::answered::Answered;
use super::layers::{Judged, OfAgents, Policies};
use super::policies::Kept;
use super::recorded::{self, about, digest, is_untold, read_facts};
use super::report::{Outcome, Phase, Standing};
use super::{approvals, limits};
use crate::claims::blocks::AgentBlocks;
use crate::confine::tested::{self, TESTED};
use crate::decide::approvals::{GRANT, REFUSAL, REVOKED, VOID};
use crate::decide::outcome;
use crate::decide::rates;
use crate::governing::in_force::PolicyRef;
use crate::governing::layers::LayerRef;
use crate::governing::{self, protect};
use crate::session::observed::Observed;
use crate::session::process::ClientProcess;
use crate::session::rows::{
    self, CALL, CUSTODY, ENDED, PRICED, PROMPT, RESUMED, RUN, SEEN, SESSION_END, STARTED, UNANSWERED, UNREADABLE, event,
};
use crate::session::shown::Rules;
use crate::session::state::{Action, State};
use crate::session::{agents, millis_between, taint};

/// What is said of a state that is not what its row makes of the one before.
const STATE: &str = "its state does not follow from the row before";
/// What is said of a client's process that is none.
const CLIENT: &str = "the client's process does not read";

/// Follows a ledger's rows in order.
pub struct Replay<'a> {
    policies: Policies<'a>,
    setting: Option<Setting>,
    before: Option<State>,
    /// When the session began.
    began: Timestamp,
    /// The moment of the row before.
    last: Timestamp,
    /// How often each agent was sent back so far.
    blocks: AgentBlocks,
    /// What a policy that observes let run.
    observed: Observed,
    session: String,
    /// What it has taken in so far.
    taint: Taint,
    /// The record begins in the middle of the session.
    begins_late: bool,
    /// The call of the run that was let run.
    run: Option<String>,
    /// Asked calls, and those that humans' words answered.
    answered: Answered,
    /// Decisions that came out the same.
    decided: u64,
    /// What did not.
    findings: Findings,
}

impl<'a> Replay<'a> {
    /// Starts before the genesis row.
    pub fn new(policies: &'a Kept) -> Self {
        Self {
            policies: Policies::of(policies),
            setting: None,
            before: None,
            began: Timestamp::from_millis(0),
            last: Timestamp::from_millis(0),
            blocks: AgentBlocks::default(),
            observed: Observed::default(),
            session: String::new(),
            taint: Taint::default(),
            begins_late: false,
            run: None,
            answered: Answered::default(),
            decided: 0,
            findings: Findings::default(),
        }
    }

    /// Takes the next row, and the state it holds.
    pub fn row(&mut self, row: &Row, after: Option<State>) {
        if self.before.is_none() {
            self.began = row.timestamp;
        }
        if self.setting.is_none() {
            self.setting = protect::recorded(&row.detail);
        }
        if let Err(why) = self.check(row, after.as_ref()) {
            self.findings.add(row.sequence, &why);
        }
        self.before = after.or(self.before.take());
        self.last = row.timestamp;
    }

    /// What it comes to.
    pub fn phases(self) -> Vec<Phase> {
        let counts = self.before.as_ref().map_or_else(String::new, |state| {
            format!(" ({} allowed, {} asked, {} denied)", state.calls, state.asked, state.denied)
        });
        let (outcome, summary) = match self.findings.total() {
            0 => (Outcome::Passed, format!("{} decisions come out the same{counts}", self.decided)),
            wrong => (Outcome::Failed, format!("{wrong} rows do not follow from the record")),
        };
        let findings = self.findings.texts();
        let decisions = Phase { name: "decisions", outcome, standing: Standing::Advised, summary, findings };
        // What a policy that observes let run although it would have been stopped.
        let observed = self.observed.any.then(|| Phase {
            name: "enforcement",
            outcome: Outcome::Absent,
            standing: Standing::Observed,
            summary: self.observed.summary(),
            findings: self.observed.lines(),
        });
        std::iter::once(decisions).chain(observed).collect()
    }

    fn check(&mut self, row: &Row, after: Option<&State>) -> Result<(), String> {
        let after = after.ok_or("it holds no readable state")?;
        let Some(before) = self.before.clone() else {
            let custody = after.custody.clone();
            let process = row.detail.get("process").map(json::from_value::<ClientProcess>).transpose();
            let clients = process.map_err(|_error| CLIENT)?.into_iter().collect();
            let fresh = State { pending: after.pending, custody, clients, ..State::fresh(after.policy.clone()) };
            self.begins_late = !rows::begins_whole(&row.detail);
            self.session = row.detail.get("session").and_then(Value::as_str).unwrap_or_default().to_owned();
            let genesis = event(row) == "session-start" && *after == fresh;
            return if genesis { Ok(()) } else { Err("the ledger does not begin with a session's start".to_owned()) };
        };
        let before = before.with_clock(after, self.last, row.timestamp);
        limits::follows(before.usage.as_ref(), after.usage.as_ref())?;
        // What was used is counted before anything is decided.
        let before =
            State { usage: after.usage.clone(), agents: limits::follow(before.agents, &after.agents)?, ..before };
        let moved = self.answered.row(row)?;
        let mut expected = before.clone();
        if let Some(policy) = before.policy.as_ref().filter(|policy| policy.limited && limits::is_about(row)) {
            let of_agents = self.policies.of_agents(policy, Some(rows::caller(&row.detail)))?;
            let raised = self.policies.of_agents(policy, None)?;
            let counted = self.policies.counted(policy)?;
            let get = |file: Digest| self.policies.get(&policy.path, file);
            let counted = counted.iter().filter_map(|(name, file)| Some((name.as_deref(), get(*file)?)));
            let counted: Vec<(Option<&str>, &Policy)> = counted.collect();
            let agents = of_agents.iter().filter_map(|(of_agents, file)| Some((of_agents.clone(), get(*file)?)));
            let agents: Vec<(OfAgents, &Policy)> = agents.collect();
            let raised: Vec<OfAgents> = raised.into_iter().map(|(of_agents, _)| of_agents).collect();
            let held = limits::Held { policies: &counted, agents: &agents, raised: &raised };
            if let Some(decided) = limits::decide_again(row, &held, &before, self.began) {
                let same = decided? == *after;
                return if same { Ok(()) } else { Err(STATE.to_owned()) };
            }
        }
        match (row.decision, event(row)) {
            (RowDecision::Approved | RowDecision::Asked | RowDecision::Denied, CALL | RUN) => {
                self.decide_again(row, &before, &mut expected)?;
                self.decided += 1;
            }
            (RowDecision::Denied, UNREADABLE | UNANSWERED) => expected.denied += 1,
            (RowDecision::Checkpoint, PROMPT) => (expected.turns, expected.over) = (expected.turns + 1, false),
            (RowDecision::Checkpoint, told @ (STARTED | RESUMED | SEEN)) => {
                expected.over &= told == SEEN;
                Self::seen(row, after, &mut expected)?;
            }
            (RowDecision::Checkpoint, TESTED) => {
                let outcome = tested::Outcome::of(&row.detail).ok_or("it does not say what its self-test came to")?;
                expected.tested = Some(outcome.result());
            }
            (RowDecision::Checkpoint, GRANT | REFUSAL | REVOKED | VOID) => approvals::follow(row, &mut expected)?,
            (RowDecision::Checkpoint, "claim") => self.claim(row, &mut expected)?,
            // Records of older versions do not say that it is over; which rows that leaves unsealed, the tail's question asks.
            (RowDecision::Checkpoint, SESSION_END) => {
                expected.end();
                expected.over = after.over;
            }
            (RowDecision::Checkpoint, ENDED) => expected.over = after.over,
            (RowDecision::Checkpoint, "policy-changed" | "policy-restored") => {
                expected.told = self.policies.tell(row)?;
            }
            // Whether it is what the row introduces, its own phase asks.
            (RowDecision::Checkpoint, CUSTODY) => expected.custody.clone_from(&after.custody),
            (RowDecision::Checkpoint, PRICED) => expected.prices = digest(row.detail.get("prices")),
            (RowDecision::Checkpoint, "policy-accepted") => {
                self.policies.accept();
                expected.policy = after.policy.clone();
                expected.grants.clear();
                let accepted = after.policy.as_ref().ok_or("it names no policy that was accepted")?;
                let now = self.policies.of_agents(accepted, None)?;
                let governed = before.policy.as_ref().map(|policy| self.policies.of_agents(policy, None));
                let earlier = governed.transpose()?.unwrap_or_default();
                expected.forget_limits(&limiting(&earlier), &limiting(&now));
                expected.relabel();
                (expected.told, expected.pending) = (None, false);
            }
            _ => {}
        }
        if let Some((asked, again)) = moved {
            let policy = before.policy.as_ref().ok_or("no policy governed")?;
            let calls = self.policies.of_agents(policy, Some(asked.caller()))?;
            let turns = self.policies.starting(policy, asked.starts.as_deref())?;
            expected.answer(&named(&calls), &named(&turns), again);
        }
        if expected == *after { Ok(()) } else { Err(STATE.to_owned()) }
    }

    /// Takes the clients that are named after a row: those before, but for some that ran no more, and the one that it tells of.
    fn seen(row: &Row, after: &State, expected: &mut State) -> Result<(), String> {
        let process = row.detail.get("process").map(json::from_value::<ClientProcess>).transpose();
        let process = process.map_err(|_error| CLIENT)?;
        let known = |client: &ClientProcess| expected.clients.contains(client) || process.as_ref() == Some(client);
        let named = process.as_ref().is_none_or(|process| after.crowded || after.clients.contains(process));
        if !named || !after.clients.iter().all(known) || expected.crowded && !after.crowded {
            return Err(STATE.to_owned());
        }
        (expected.clients, expected.crowded) = (after.clients.clone(), after.crowded);
        Ok(())
    }

    fn decide_again(&mut self, row: &Row, before: &State, expected: &mut State) -> Result<(), String> {
        let verdict = match row.detail.get("facts") {
            None => recorded::blocked(row)?,
            Some(facts) => self.judged(row, facts, before, expected)?,
        };
        match verdict {
            // What a human runs is no call of the agent's.
            _ if event(row) == RUN => {}
            Verdict::Allow => expected.calls += 1,
            Verdict::Ask => expected.asked += 1,
            Verdict::Deny => expected.denied += 1,
        }
        if outcome::row_decision(verdict) == row.decision {
            return Ok(());
        }
        Err(format!("recorded as {}, but the recorded facts make it `{verdict}`", row.decision))
    }

    fn judged(&mut self, row: &Row, facts: &Value, before: &State, expected: &mut State) -> Result<Verdict, String> {
        let tool = row.tool_name.as_deref().unwrap_or_default();
        let accepted = before.policy.clone().ok_or("no policy governed")?;
        let root = &accepted.path;
        let setting = self.setting.clone().ok_or("the genesis row holds no setting")?;
        let setting = protect::with_layers(Setting { now: row.timestamp, ..setting }, &self.policies.list(&accepted)?);
        let facts = read_facts(facts, tool)?;
        let judged = self.policies.of_row(row, &accepted)?;
        self.policies.load(root, accepted.file)?;
        for layer in &judged {
            about(&layer.facts, tool)?;
        }
        let wanted = {
            let layers = self.policies.all(root, accepted.file, &judged)?;
            let attests = layers.iter().any(|policy| policy.consequences().attest);
            let evaluated = facts.is_evaluated() || judged.iter().any(|layer| layer.facts.is_evaluated());
            let attested = row.detail.get("attestation").is_some() || facts.is_unattested();
            if attests && evaluated && !attested {
                return Err("its policy wants its verdict attested, and it names none".to_owned());
            }
            layers.iter().any(|policy| policy.confine().is_some())
        };
        recorded::held(row, wanted, &facts, &mut self.run)?;
        for layer in &judged {
            let bare = row.detail.get("run").is_some() && layer.of_agent.is_some();
            if layer.facts.is_held() != if bare { Held::default() } else { facts.is_held() } {
                return Err(format!("what holds it is another for its layer `{}`", layer.name));
            }
        }
        let refused = before.tested.as_ref().is_some_and(|tested| tested.refused.is_some());
        if refused && row.detail.get("sandbox").is_some() {
            return Err("it was granted a sandbox that its self-test had refused".to_owned());
        }
        let list = self.policies.list(&accepted)?;
        let refs: Vec<&LayerRef> = list.iter().collect();
        let given = facts.starts().filter(|_| event(row) != RUN);
        let lost = given.and_then(|kind| governing::layers::lost(&refs, rows::caller(&row.detail), kind));
        let starts = if event(row) == RUN { Vec::new() } else { self.policies.starting(&accepted, facts.starts())? };
        let policies = self.policies.all(root, accepted.file, &judged)?;
        if event(row) != RUN && is_untold(&policies, &facts, &judged) {
            return Err("its policy asks who the agent is, and its facts do not tell".to_owned());
        }
        let names = std::iter::once(None).chain(judged.iter().map(|layer| Some(layer.name.as_str())));
        let counting = names.zip(policies.iter().copied()).filter(|_| event(row) != RUN);
        let rates = rates::of(counting, facts.called());
        let all = std::iter::once(&facts).chain(judged.iter().map(|layer| &layer.facts));
        let counted =
            |(at, facts): (usize, &Facts)| facts.exceeded() == rates::exceeded(&rates, at, before, row.timestamp);
        if !all.enumerate().all(counted) {
            return Err("how often its tool was called is not what the rows before it say".to_owned());
        }
        let mode = Enforce::strictest(policies.iter().map(|policy| policy.enforce()));
        let wanted = outcome::wanted_custody(policies.iter().copied());
        let mut policies = policies.into_iter();
        let policy = policies.next().ok_or("no policy")?;
        let mut layers = vec![Layer::own(policy, &facts)];
        layers.extend(judged.iter().zip(policies).map(|(layer, policy)| layer.layer(policy, before, row.timestamp)));
        let tally = before.tally(millis_between(self.began, before.steady(row.timestamp)));
        let unread = tally.unread || self.begins_late;
        let tally = Tally { taint: Some(&self.taint), unread, ..tally };
        let begun = starts.iter().filter_map(|(own, file)| {
            Some((own.layer.as_str(), self.policies.get(root, *file)?, own.own(before, row.timestamp)))
        });
        let decision = outcome::and_turns(judge(&layers, &setting, tally), begun);
        let decision = outcome::and_lost(decision, lost, facts.starts());
        let mut decision = outcome::and_pending(decision, before.pending);
        decision = outcome::and_custody(decision, wanted, before.custody());
        let action = self.action(row, &accepted, &facts, &judged, &decision)?;
        if digest(row.detail.get("action")) != Some(action) {
            return Err("its action is not what its members make it".to_owned());
        }
        if decision.verdict == Verdict::Ask
            && let Some(given) = before.given(action, row.timestamp)
        {
            expected.spend(action);
            decision = outcome::after_a_word(decision, given.uses);
        }
        if json::to_value(&outcome::rules(&decision)) != *row.detail.get("rules").unwrap_or(&Value::Null) {
            return Err("deciding again names other rules".to_owned());
        }
        let Enforced { decision, observed } = enforce(mode, decision);
        let told = row.detail.get("observed").and_then(Value::as_str);
        if told != observed.map(Verdict::as_str) {
            return Err("whether it was only observed does not follow from its policy".to_owned());
        }
        expected.observed += u64::from(observed.is_some());
        if event(row) != RUN {
            let limited = outcome::is_limited(&decision);
            if limited {
                expected.refuse_call();
            }
            let counted = judged.iter().filter_map(|layer| layer.of_agent.as_ref());
            let counted =
                counted.filter(|of_agent| !of_agent.limits.is_empty()).map(|of_agent| of_agent.layer.as_str());
            let counted: BTreeSet<&str> = counted.collect();
            let now = expected.steady(row.timestamp);
            agents::count(&mut expected.agents, counted, decision.verdict, limited, now);
            let begun = starts.iter().map(|(own, _)| own.layer.as_str());
            agents::start(&mut expected.agents, begun, decision.verdict);
        }
        if decision.verdict != Verdict::Deny {
            rates.iter().for_each(|rate| rate.spend(expected, row.timestamp));
            take(&mut self.taint, &facts, &judged, expected);
        }
        let rules = Named { root: policy, layers: &judged, policies: &self.policies, path: root };
        self.observed.take(row, &rules, mode == Enforce::Observe);
        Ok(decision.verdict)
    }

    /// What an approval of a call is for.
    fn action(
        &self,
        row: &Row,
        accepted: &PolicyRef,
        facts: &Facts,
        judged: &[Judged],
        decision: &Decision,
    ) -> Result<Digest, String> {
        let asking = if decision.verdict == Verdict::Ask { outcome::rules(decision) } else { Vec::new() };
        let flows = outcome::flows(&asking);
        let tool = row.tool_name.as_deref().unwrap_or_default();
        let input = digest(row.detail.get("input")).ok_or("it holds no digest of its input")?;
        let agent = row.detail.get("agent").and_then(|agent| agent.get("id")).and_then(Value::as_str);
        let cwd = row.detail.get("cwd").and_then(Value::as_str).unwrap_or_default();
        let layers: Vec<Digest> = judged.iter().map(|layer| layer.file).collect();
        let policy = Some(accepted.file);
        let leads = digest(row.detail.get("leads"));
        let redefined = facts.is_redefined();
        Ok(Action {
            session: &self.session,
            tool,
            input,
            cwd,
            agent,
            policy,
            layers: &layers,
            leads,
            redefined,
            flows: &flows,
        }
        .digest())
    }

    /// A claim counts only when its agent was sent back.
    fn claim(&mut self, row: &Row, expected: &mut State) -> Result<(), String> {
        let claim = row.detail.get("claim").ok_or("it holds no claim")?;
        if claim.get("blocked").and_then(Value::as_bool) == Some(true) {
            let agent = claim.get("agent").and_then(Value::as_str).ok_or("its claim names no agent")?;
            expected.blocks = Some(self.blocks.add(agent));
        }
        Ok(())
    }
}

/// The policies of a call, by the names of its layers.
struct Named<'a> {
    root: &'a Policy,
    layers: &'a [Judged],
    policies: &'a Policies<'a>,
    path: &'a Path,
}

impl Rules for Named<'_> {
    fn text(&self, rule: &str) -> Option<String> {
        let Some((name, pointer)) = rule.split_once(":/") else { return self.root.rule_text(rule) };
        let layer = self.layers.iter().find(|layer| layer.name == name)?;
        self.policies.get(self.path, layer.file)?.rule_text(&format!("/{pointer}"))
    }
}

/// The names of layers that limit sub-agents of one type.
fn named(layers: &[(OfAgents, Digest)]) -> BTreeSet<&str> {
    layers.iter().map(|(own, _)| own.layer.as_str()).collect()
}

/// The layers that limit sub-agents of one type.
fn limiting(layers: &[(OfAgents, Digest)]) -> Vec<agents::Limits<'_>> {
    layers.iter().map(|(own, _)| agents::Limits { agent: &own.agent, layer: &own.layer }).collect()
}

/// Takes in what a call did that may have run.
fn take(taint: &mut Taint, facts: &Facts, judged: &[Judged], expected: &mut State) {
    let flows = judged.iter().map(|layer| layer.facts.flow());
    if taint.take(&Flow::all(std::iter::once(facts.flow()).chain(flows))) {
        expected.taint = Some(taint::digest(taint));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Home, hook};
    use std::collections::HashMap;
    use writ_clients::claude_code::ClaudeCode;
    use writ_core::{Answer, Reply, SessionId};
    use writ_store::Store;

    const POLICY: &[u8] = br#"{"version":"1.0","name":"x","enforce":"observe","tools":{"deny":["Bash:curl *"]}}"#;

    fn rows() -> Vec<Row> {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().join("repo");
        std::fs::create_dir_all(repo.join(".git")).unwrap();
        std::fs::write(repo.join(".aflock"), POLICY).unwrap();
        let home =
            Home { state: Some(folder.path().join("state")), user: Some(folder.path().into()), ..Home::default() };
        for (id, line) in [("1", "curl x.example"), ("2", "ls")] {
            let payload = format!(
                r#"{{"session_id":"s","cwd":"{}","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"{id}","tool_input":{{"command":"{line}"}}}}"#,
                repo.display()
            );
            assert_eq!(hook::answer(payload.as_bytes(), &ClaudeCode, &home, &repo), Answer::from(Reply::Silent));
        }
        Store::open(folder.path().join("state")).unwrap().rows(&SessionId::new("s")).unwrap()
    }

    fn findings(rows: &[Row]) -> Vec<String> {
        let policies = Kept::of(HashMap::from([(Digest::of(POLICY), POLICY.to_vec())]));
        let mut replay = Replay::new(&policies);
        rows.iter().for_each(|row| replay.row(row, State::from_detail(&row.detail)));
        replay.findings.texts()
    }

    /// A row that says otherwise of being observed than its policy does is found, in either direction.
    #[test]
    fn what_was_observed_follows_from_the_policy() {
        let rows = rows();
        assert_eq!(findings(&rows), [] as [String; 0]);
        for (from, to) in [
            (r#""observed":"deny""#, r#""observed":"ask""#),
            (r#""observed":"deny","#, ""),
            (r#""event":"tool-call""#, r#""event":"tool-call","observed":"ask""#),
        ] {
            let mut changed = rows.clone();
            let row = changed.iter_mut().rfind(|row| json::compact(&row.detail).contains(from)).unwrap();
            row.detail = json::parse(json::compact(&row.detail).replace(from, to).as_bytes()).unwrap();
            assert!(!findings(&changed).is_empty(), "{from} → {to}");
        }
    }
}
