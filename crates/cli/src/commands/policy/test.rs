//! `writ policy test`: the cases beside a policy.

use std::path::PathBuf;

use serde::Serialize;
use writ_clients::DEFAULT;
use writ_core::Digest;
use writ_engine::past::cases::{self, CasesError, Checked};

use super::{given_or_found, open};
use crate::args::{CasesArgs, Format};
use crate::commands::past::verdict;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// What all cases come to.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(with = "writ_core::json::path")]
    policy: PathBuf,
    digest: Digest,
    #[serde(with = "writ_core::json::path")]
    cases: PathBuf,
    passed: usize,
    failed: usize,
    results: &'a [Checked],
}

/// Checks them. Exit code 3 where one fails.
pub fn run(args: CasesArgs) -> Result<(), Failure> {
    let governing = open(&given_or_found(args.file)?, None)?;
    let file = match args.cases {
        Some(file) => std::path::absolute(file)?,
        None => cases::beside(&governing.path).map_err(failure)?,
    };
    let results = cases::check(&file, &governing, DEFAULT, &environment::home()).map_err(failure)?;
    let failed = results.iter().filter(|result| !result.passed).count();
    let passed = results.len() - failed;
    if args.format.format == Format::Json {
        let (policy, digest) = (governing.path.clone(), governing.policy.digest());
        output::print_json(&Report { policy, digest, cases: file, passed, failed, results: &results });
    } else {
        results.iter().filter(|result| !result.passed).for_each(show);
        let summary = format!("{passed} of {} cases pass", results.len());
        output::line(if failed == 0 { output::good(summary) } else { output::bad(summary) });
    }
    if failed == 0 { Ok(()) } else { Err(Failure::No) }
}

fn failure(error: CasesError) -> Failure {
    match error {
        CasesError::Malformed { .. } => Failure::malformed(error),
        CasesError::None { .. } | CasesError::Empty(_) | CasesError::Io { .. } => Failure::could_not(error),
    }
}

fn show(result: &Checked) {
    let wanted = result.rule.as_ref().map_or_else(String::new, |rule| format!(" by {rule}"));
    output::line(format!(
        "{} {}: {} {}\n    expected {}{}, came to {}",
        output::bad("✗"),
        output::plain(&result.name),
        output::plain(&result.tool),
        output::plain(&result.what),
        result.expect,
        output::plain(&wanted),
        verdict(result.decision.verdict)
    ));
    for reason in result.decision.reasons.iter().take(3) {
        output::line(output::dim(output::plain(&format!("      {}: {}", reason.rule, reason.message))));
    }
    if result.decision.reasons.is_empty() {
        output::line(output::dim("      no rule speaks against it"));
    }
}
