//! The evaluators of the policy that governed: each asked again about the statements that the record names.
//!
//! Owns which are asked and how the answers stand. Refuses to ask models and services unless the verifier wants that (R25). Invariant: an
//! evaluator that was not asked is absent, and is no pass. Page: `spec/evaluators.md`.

use std::path::Path;

use writ_core::json::Value;
use writ_evaluators::named::{Named, Rego};
use writ_evaluators::{Judgement, Status, ai, grpc, input, rego};
use writ_evidence::tally::listed;

use super::Options;
use super::report::{EVALUATORS, Outcome, Phase, Standing};
use super::statements::Statements;

/// Most findings of one phase.
const MOST: usize = 50;

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

/// One phase for those that Writ runs itself, one for those of others; nothing where a policy names none.
pub fn phases(
    policy: &Value,
    path: &Path,
    program: Option<&Path>,
    statements: &Statements,
    options: &Options,
) -> Vec<Phase> {
    let named = Named::of(policy);
    if named.is_empty() {
        return Vec::new();
    }
    let shown = match statements.named() {
        Ok(statements) => input::build(policy, &statements),
        Err(why) => return vec![phase(Outcome::Failed, Standing::Observed, why, Vec::new())],
    };
    let mut phases = Vec::new();
    if !named.rego.is_empty() {
        let judged = named.rego.iter().map(|rule| (rule.name.as_str(), rego(rule, path, program, &shown, statements)));
        phases.push(of_all(judged.collect(), Standing::Observed, "rules"));
    }
    let others = named.ai.len() + named.grpc.len();
    if others == 0 {
        return phases;
    }
    let Some(judges) = &options.judges else {
        let names = named.ai.iter().map(|ai| &ai.name).chain(named.grpc.iter().map(|grpc| &grpc.name));
        let names: Vec<String> = names.map(|name| format!("`{name}`: not asked")).collect();
        let summary = format!("{others} models and services were not asked: `--evaluators` asks them");
        phases.push(phase(Outcome::Absent, Standing::Reported, summary, listed(names, others as u64)));
        return phases;
    };
    let models = named.ai.iter().map(|one| {
        let judged = match &judges.endpoint {
            Ok(endpoint) => ai::judge(endpoint, one, &shown, &judges.send),
            Err(why) => Err(why.clone()),
        };
        (one.name.as_str(), judged)
    });
    let services = named.grpc.iter().map(|one| (one.name.as_str(), grpc::judge(one, &shown, &judges.call)));
    phases.push(of_all(models.chain(services).collect(), Standing::Reported, "models and services"));
    phases
}

/// What came of one evaluator; `Err` where it could not be asked.
type Judged = Result<Judgement, String>;

fn rego(rule: &Rego, path: &Path, program: Option<&Path>, shown: &input::Input, statements: &Statements) -> Judged {
    let program = program.ok_or("it is not known where Writ's own program is")?;
    let Some(file) = rule.file() else {
        let place = format!("{}#{}", path.display(), rule.pointer);
        return Ok(rego::judge(program, &place, &rule.policy, shown));
    };
    Ok(rego::judge(program, file, &statements.rule(file)?, shown))
}

fn of_all(judged: Vec<(&str, Judged)>, standing: Standing, what: &str) -> Phase {
    let (mut failed, mut absent, mut findings) = (0_usize, 0_usize, Vec::new());
    let all = judged.len();
    for (name, judged) in judged {
        match judged {
            Ok(Judgement { status, reasons, notes, rule, shown }) => {
                failed += usize::from(status == Status::Fail);
                let word = if status == Status::Pass { "PASS" } else { "FAIL" };
                findings.push(format!("`{name}`: {word} (rule {rule}, shown {shown})"));
                findings.extend(reasons.into_iter().chain(notes).map(|text| format!("`{name}`: {text}")));
            }
            Err(why) => {
                absent += 1;
                findings.push(format!("`{name}`: {why}"));
            }
        }
    }
    let (outcome, summary) = match (failed, absent) {
        (0, 0) => (Outcome::Passed, format!("all {all} {what} pass")),
        (0, some) => (Outcome::Absent, format!("{some} of {all} {what} could not be asked")),
        (some, _) => (Outcome::Failed, format!("{some} of {all} {what} fail")),
    };
    findings.truncate(MOST);
    phase(outcome, standing, summary, findings)
}

const fn phase(outcome: Outcome, standing: Standing, summary: String, findings: Vec<String>) -> Phase {
    Phase { name: EVALUATORS, outcome, standing, summary, findings }
}
