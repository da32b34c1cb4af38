//! What evaluators said, as a statement that others can rely on: an in-toto Test Result.
//!
//! Owns the predicate: which passed, which failed, which were not asked, each with the digests of its rule and of what it was shown, and its
//! reasons. Refuses to call one passed that was not asked. Page: `spec/evaluators.md`, "As an attestation".

use serde::Serialize;
use writ_core::Digest;
use writ_evaluators::{Judgement, Status};
use writ_evidence::intoto::{ResourceDescriptor, Statement};

use super::evaluators::Evaluation;
use super::report::Report;
use crate::session::statements::subject_of;

/// The type of the predicate.
pub const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// The predicate: <https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md>.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    result: &'static str,
    configuration: Vec<Configured>,
    passed_tests: Vec<String>,
    warned_tests: Vec<String>,
    failed_tests: Vec<String>,
}

/// An evaluator's rule, and what came of it.
#[derive(Clone, Debug, Serialize)]
struct Configured {
    #[serde(flatten)]
    rule: ResourceDescriptor,
    annotations: Told,
}

#[derive(Clone, Debug, Serialize)]
struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<Digest>,
    reasons: Vec<String>,
}

/// What evaluators said in a report on `file`, whose bytes have that digest. `None` where none is named, or nothing says which session it was.
pub fn results(report: &Report, file: (&str, Digest)) -> Option<Statement<Results>> {
    let (session, run) = (report.session.as_deref()?, report.run?);
    let mut results = Results {
        result: "PASSED",
        configuration: Vec::new(),
        passed_tests: Vec::new(),
        warned_tests: Vec::new(),
        failed_tests: Vec::new(),
    };
    for Evaluation { name, judged } in &report.evaluations {
        match judged {
            Ok(Judgement { status, reasons, notes, rule, shown }) => {
                let list = if *status == Status::Pass { &mut results.passed_tests } else { &mut results.failed_tests };
                list.push(name.clone());
                let reasons = reasons.iter().chain(notes).cloned().collect();
                let rule = ResourceDescriptor::sha256(name.clone(), *rule);
                results.configuration.push(Configured { rule, annotations: Told { shown: Some(*shown), reasons } });
            }
            Err(why) => {
                results.warned_tests.push(name.clone());
                let uri = Some(format!("urn:writ:evaluator:{name}"));
                let rule = ResourceDescriptor { name: name.clone(), uri, ..ResourceDescriptor::default() };
                let told = Told { shown: None, reasons: vec![why.clone()] };
                results.configuration.push(Configured { rule, annotations: told });
            }
        }
    }
    results.result = match (results.failed_tests.len(), results.warned_tests.len()) {
        (0, 0) => "PASSED",
        (0, _) => "WARNED",
        _ => "FAILED",
    };
    let subjects = vec![subject_of(session, run), ResourceDescriptor::sha256(file.0, file.1)];
    (!report.evaluations.is_empty()).then(|| Statement::new(subjects, TEST_RESULT, results))
}
