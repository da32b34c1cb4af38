//! Every recorded decision, decided again from the recorded facts under the recorded policy.
//!
//! Also follows the state from row to row: counters count, grants are given and spent, the policy changes only where a human
//! accepted one. The judging is the hook's own ([`writ_policy::judge`]); nothing here knows a rule.

use std::collections::HashMap;

use writ_core::json::Value;
use writ_core::{Digest, Verdict};
use writ_evidence::row::{Row, RowDecision};
use writ_evidence::tally::Tally;
use writ_policy::{Enforce, Enforced, Facts, Policy, Setting, enforce, judge};

use super::policies::{self, Kept};
use super::report::{Outcome, Phase, Standing};
use crate::call::{self, POLICY_CHANGED, POLICY_UNUSABLE};
use crate::hook::UNREADABLE;
use crate::observed::Observed;
use crate::protect;
use crate::state::{Grant, State};

/// Follows a ledger's rows in order.
pub struct Replay<'a> {
    policies: &'a Kept,
    parsed: HashMap<Digest, Policy>,
    setting: Option<Setting>,
    before: Option<State>,
    /// What a policy that observes let run.
    observed: Observed,
    /// Decisions that came out the same.
    decided: u64,
    /// What did not.
    findings: Tally,
}

impl<'a> Replay<'a> {
    /// Starts before the genesis row.
    pub fn new(policies: &'a Kept) -> Self {
        Self {
            policies,
            parsed: HashMap::new(),
            setting: None,
            before: None,
            observed: Observed::default(),
            decided: 0,
            findings: Tally::default(),
        }
    }

    /// Takes the next row, and the state it holds.
    pub fn row(&mut self, row: &Row, after: Option<State>) {
        if self.setting.is_none() {
            self.setting = protect::recorded(&row.detail);
        }
        if let Err(why) = self.check(row, after.as_ref()) {
            self.findings.add(row.sequence, &why);
        }
        self.before = after.or(self.before.take());
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
            let genesis = event(row) == "session-start" && *after == State::fresh(after.policy.clone());
            return if genesis { Ok(()) } else { Err("the ledger does not begin with a session's start".to_owned()) };
        };
        let mut expected = before.clone();
        match (row.decision, event(row)) {
            (RowDecision::Approved | RowDecision::Asked | RowDecision::Denied, "tool-call") => {
                self.decide_again(row, &before, &mut expected)?;
                self.decided += 1;
            }
            (RowDecision::Denied, UNREADABLE) => expected.denied += 1,
            (RowDecision::Checkpoint, "prompt") => expected.turns += 1,
            (RowDecision::Checkpoint, "grant") => expected.grants.clone_from(&after.grants),
            (RowDecision::Checkpoint, "grant-revoked") => revoked(row, &mut expected)?,
            (RowDecision::Checkpoint, "claim") => claim(row, &mut expected)?,
            (RowDecision::Checkpoint, "policy-accepted") => expected.policy = after.policy.clone(),
            _ => {}
        }
        if expected == *after { Ok(()) } else { Err("its state does not follow from the row before".to_owned()) }
    }

    fn decide_again(&mut self, row: &Row, before: &State, expected: &mut State) -> Result<(), String> {
        let verdict = match row.detail.get("facts") {
            None => self.blocked(row, before)?,
            Some(facts) => self.judged(row, facts, before, expected)?,
        };
        match verdict {
            Verdict::Allow => expected.calls += 1,
            Verdict::Ask => expected.asked += 1,
            Verdict::Deny => expected.denied += 1,
        }
        if call::row_decision(verdict) == row.decision {
            return Ok(());
        }
        Err(format!("recorded as {}, but the recorded facts make it `{verdict}`", row.decision))
    }

    /// A call without facts was denied because the policy was not there as accepted.
    fn blocked(&self, row: &Row, before: &State) -> Result<Verdict, String> {
        let only = |rule: &str| recorded_rules(row) == [format!("deny {rule}")];
        let found = row.detail.get("found").and_then(Value::as_str).and_then(|text| Digest::parse(text).ok());
        let holds = match found {
            Some(found) => only(POLICY_CHANGED) && before.policy.as_ref().is_some_and(|policy| found != policy.file),
            None => only(POLICY_UNUSABLE),
        };
        if holds { Ok(Verdict::Deny) } else { Err("it was decided without facts".to_owned()) }
    }

    fn judged(&mut self, row: &Row, facts: &Value, before: &State, expected: &mut State) -> Result<Verdict, String> {
        let facts = Facts::from_json(facts).map_err(|error| format!("its facts do not read: {error}"))?;
        let tool = row.tool_name.as_deref().unwrap_or_default();
        if facts.tool() != tool {
            return Err(format!("its facts are about `{}`, the row about `{tool}`", facts.tool()));
        }
        let mut setting = self.setting.clone().ok_or("the genesis row holds no setting")?;
        setting.now = row.timestamp;
        let policy = self.policy(before)?;
        let attested = row.detail.get("attestation").is_some() || facts.is_unattested();
        if policy.consequences().attest && facts.is_evaluated() && !attested {
            return Err("its policy wants its verdict attested, and it names none".to_owned());
        }
        let mut decision = judge(policy, &setting, &facts);
        let input = row.detail.get("input").and_then(Value::as_str).and_then(|text| Digest::parse(text).ok());
        let input = input.ok_or("it holds no digest of its input")?;
        if decision.verdict == Verdict::Ask && before.granted(tool, input, row.timestamp) {
            expected.spend(tool, input);
            decision = call::approved(decision);
        }
        if call::rules(&decision) != *row.detail.get("rules").unwrap_or(&Value::Null) {
            return Err("deciding again names other rules".to_owned());
        }
        let Enforced { decision, observed } = enforce(policy, decision);
        let told = row.detail.get("observed").and_then(Value::as_str);
        if told != observed.map(Verdict::as_str) {
            return Err("whether it was only observed does not follow from its policy".to_owned());
        }
        expected.observed += u64::from(observed.is_some());
        let observes = policy.enforce() == Enforce::Observe;
        if let Some(policy) = before.policy.as_ref().and_then(|accepted| self.parsed.get(&accepted.file)) {
            self.observed.take(row, policy, observes);
        }
        Ok(decision.verdict)
    }

    fn policy(&mut self, state: &State) -> Result<&Policy, String> {
        let accepted = state.policy.as_ref().ok_or("no policy governed")?;
        let digest = accepted.file;
        if !self.parsed.contains_key(&digest) {
            self.parsed.insert(digest, policies::document(accepted, self.policies)?);
        }
        self.parsed.get(&digest).ok_or_else(|| "no policy".to_owned())
    }
}

/// A grant that a human took back is gone, and no other.
fn revoked(row: &Row, expected: &mut State) -> Result<(), String> {
    let grant = row.detail.get("grant").and_then(Grant::from_json).ok_or("it names no grant")?;
    let at =
        expected.grants.iter().position(|known| *known == grant).ok_or("the grant it takes back was never given")?;
    expected.grants.remove(at);
    Ok(())
}

/// A claim counts only when its agent was sent back.
fn claim(row: &Row, expected: &mut State) -> Result<(), String> {
    let claim = row.detail.get("claim").ok_or("it holds no claim")?;
    if claim.get("blocked").and_then(Value::as_bool) == Some(true) {
        let agent = claim.get("agent").and_then(Value::as_str).ok_or("its claim names no agent")?;
        *expected.blocks.entry(agent.to_owned()).or_default() += 1;
    }
    Ok(())
}

/// `detail.event`.
pub fn event(row: &Row) -> &str {
    row.detail.get("event").and_then(Value::as_str).unwrap_or_default()
}

fn recorded_rules(row: &Row) -> Vec<String> {
    let rules = row.detail.get("rules").and_then(Value::as_array).unwrap_or_default();
    rules.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Home, hook};
    use writ_core::{SessionId, json};
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
            assert_eq!(hook::answer(payload.as_bytes(), &home, &repo).to_json(), "{}");
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
