//! The evaluators of the policy that governed: each asked again about the statements that the record names.
//!
//! Owns which are asked and how the answers stand. Refuses to ask models and services unless the verifier wants that (R25). Invariant: an
//! evaluator that was not asked is absent, and is no pass. Page: `spec/evaluators.md`.

use std::borrow::Cow;
use std::path::Path;

use writ_core::Digest;
use writ_core::json::Value;
use writ_evaluators::named::{Named, Rego};
use writ_evaluators::{Judgement, Status, ai, grpc, input, rego};
use writ_evidence::tally::listed;

use super::Options;
use super::phase::{Outcome, Phase, Standing};
use super::phase_names::EVALUATORS;
use super::statements::{NoRule, NotShown, Statements};
use crate::governing::rule_name;

/// Most reasons of one evaluator that a report tells: none crowds out another's.
const MOST: usize = 20;
/// Longest reason that a report tells, in characters.
const LONGEST: usize = 2000;

/// How models and services are asked, which the verifier brings.
#[derive(Clone, Debug)]
pub struct Judges {
    /// Where models are asked, where the verifier has said so.
    pub endpoint: Result<ai::Endpoint, String>,
    /// Sends a request to it.
    pub send: fn(&ai::Request) -> Result<Vec<u8>, String>,
    /// Asks a service.
    pub call: fn(&grpc::Request<'_>) -> Result<grpc::Answer, String>,
}

/// Whose evaluators are asked.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The policy's document.
    pub policy: &'a Value,
    /// What its rules are named with, where it is a layer.
    pub layer: Option<&'a str>,
    /// Where it lies.
    pub path: &'a Path,
    /// Writ's own program, which runs Rego in a process of its own.
    pub program: Option<&'a Path>,
    /// How others are asked.
    pub options: &'a Options,
    /// What time rules have that Writ runs.
    pub time: &'a rego::Budget,
}

/// What one evaluator came to.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Its name, behind that of its layer where it has one.
    pub name: String,
    /// Its judgement, or why it was not asked.
    pub judged: Judged,
}

/// What came of one evaluator; `Err` where it could not be asked.
type Judged = Result<Judgement, String>;

/// One phase for those that Writ runs itself, one for those of others; nothing where a policy names none. `shown` are the statements that
/// they judge.
pub fn phases(
    asked: Asked<'_>,
    shown: Result<Vec<input::Statement>, NotShown>,
    statements: &Statements,
) -> (Vec<Phase>, Vec<Evaluation>) {
    let (named, mut all) = (Named::of(asked.policy), Vec::new());
    if named.is_empty() {
        return (Vec::new(), all);
    }
    let shown = match shown {
        Ok(statements) => input::build(asked.policy, &statements),
        Err(NotShown::Wrong(why)) => return (vec![phase(Outcome::Failed, Standing::Observed, why, Vec::new())], all),
        Err(NotShown::Doubted) => {
            let why = "what functionaries signed counts only where somebody you trust signed the policy that names them: nothing was asked";
            return (vec![phase(Outcome::Absent, Standing::Observed, why.to_owned(), Vec::new())], all);
        }
    };
    let one = |name: &str, judged| Evaluation { name: rule_name(asked.layer, name), judged };
    let mut phases = Vec::new();
    if !named.rego.is_empty() {
        let rules: Vec<Evaluation> =
            named.rego.iter().map(|rule| one(&rule.name, rego(rule, asked, &shown, statements))).collect();
        phases.push(of_all(&rules, Standing::Observed, "rules"));
        all.extend(rules);
    }
    let others = named.ai.len() + named.grpc.len();
    if others == 0 {
        return (phases, all);
    }
    let Some(judges) = &asked.options.judges else {
        let names = named.ai.iter().map(|ai| &ai.name).chain(named.grpc.iter().map(|grpc| &grpc.name));
        let not_asked = names.map(|name| one(name, Err("not asked".to_owned())));
        let not_asked: Vec<Evaluation> = not_asked.collect();
        let names = not_asked.iter().map(|one| format!("`{}`: not asked", one.name)).collect();
        let summary = format!("{others} models and services were not asked: `--evaluators` asks them");
        phases.push(phase(Outcome::Absent, Standing::Reported, summary, listed(names, others as u64)));
        all.extend(not_asked);
        return (phases, all);
    };
    let models = named.ai.iter().map(|model| {
        let judged = match &judges.endpoint {
            Ok(endpoint) => ai::judge(endpoint, model, &shown, &judges.send),
            Err(why) => Err(why.clone()),
        };
        one(&model.name, judged)
    });
    let services = named.grpc.iter().map(|service| one(&service.name, grpc::judge(service, &shown, &judges.call)));
    let asked: Vec<Evaluation> = models.chain(services).collect();
    phases.push(of_all(&asked, Standing::Reported, "models and services"));
    all.extend(asked);
    (phases, all)
}

fn rego(rule: &Rego, asked: Asked<'_>, shown: &input::Input, statements: &Statements) -> Judged {
    let program = asked.program.ok_or("it is not known where Writ's own program is")?;
    let Some(file) = rule.file() else {
        let place = rule_name(asked.layer, &format!("{}#{}", asked.path.display(), rule.pointer));
        return rego::judge(program, &place, &rule.policy, shown, asked.time);
    };
    match statements.rule(asked.layer, file) {
        Ok(text) => rego::judge(program, file, &text, shown, asked.time),
        Err(NoRule::NeverRead(why)) => Err(why),
        // Whoever took it away took what it would have said.
        Err(NoRule::Gone { digest, why }) => Ok(Judgement {
            status: Status::Fail,
            reasons: vec![why],
            notes: Vec::new(),
            rule: digest,
            shown: Digest::of(shown.text.as_bytes()),
        }),
    }
}

fn of_all(all: &[Evaluation], standing: Standing, what: &str) -> Phase {
    let (mut failed, mut absent, mut findings) = (0_usize, 0_usize, Vec::new());
    for Evaluation { name, judged } in all {
        match judged {
            Ok(Judgement { status, reasons, notes, rule, shown }) => {
                failed += usize::from(*status == Status::Fail);
                let word = if *status == Status::Fail { "FAIL" } else { "PASS" };
                findings.push(format!("`{name}`: {word} (rule {rule}, shown {shown})"));
                let told = reasons.iter().chain(notes).take(MOST).map(|text| format!("`{name}`: {}", short(text)));
                let more = (reasons.len() + notes.len()).saturating_sub(MOST);
                findings.extend(told.chain((more > 0).then(|| format!("`{name}`: and {more} more"))));
            }
            Err(why) => {
                absent += 1;
                findings.push(format!("`{name}`: {why}"));
            }
        }
    }
    let all = all.len();
    let (outcome, summary) = match (failed, absent) {
        (0, 0) => (Outcome::Passed, format!("all {all} {what} pass")),
        (0, some) => (Outcome::Absent, format!("{some} of {all} {what} could not be asked")),
        (some, _) => (Outcome::Failed, format!("{some} of {all} {what} fail")),
    };
    phase(outcome, standing, summary, findings)
}

/// A text that a rule may have made as long as it likes.
fn short(text: &str) -> Cow<'_, str> {
    text.char_indices()
        .nth(LONGEST)
        .map_or(Cow::Borrowed(text), |(at, _)| Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default())))
}

const fn phase(outcome: Outcome, standing: Standing, summary: String, findings: Vec<String>) -> Phase {
    Phase { name: EVALUATORS, outcome, standing, summary, findings }
}
