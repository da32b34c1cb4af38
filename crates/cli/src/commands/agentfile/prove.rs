//! `writ agentfile prove`: whether a child ever allows what its base does not.

use serde::Serialize;
use writ_agentfile::ceiling::{Violation, violations};
use writ_core::json;
use writ_service::prove::{Answer, ProveError, prove};

use super::levels::levels;
use crate::args::{Format, ProveArgs};
use crate::exit::Failure;
use crate::output;

#[derive(Serialize)]
struct Document {
    /// Whether everything is proved.
    proved: bool,
    /// What the declarations exceed.
    violations: Vec<Violation>,
    /// Each kind of request.
    requests: Vec<Answer>,
}

/// Proves it, or shows a request.
pub fn run(args: &ProveArgs) -> Result<(), Failure> {
    let both = levels([&args.child, &args.parent])?;
    let [child, base] = both.as_slice() else { return Err(Failure::could_not("two files are needed")) };
    let violations = violations(&child.agent, child.lock.as_ref(), base);
    let requests = prove(child, base).map_err(|error| match error {
        ProveError::Solver(_) | ProveError::Policies(_) | ProveError::Runtime(_) => Failure::could_not(error),
    })?;
    let proved = violations.is_empty() && requests.iter().all(|answer| answer.result == "proved");
    let refuted = !violations.is_empty() || requests.iter().any(|answer| answer.result == "refuted");
    match args.format.format {
        Format::Json => output::print_json(&Document { proved, violations, requests }),
        Format::Human => {
            for found in &violations {
                let shown = found.diagnostic(&child.agent);
                output::line(format!("{} {}", output::bad("✗"), output::plain(&shown.message)));
            }
            for answer in &requests {
                let mark = match answer.result {
                    "proved" => output::good("✓"),
                    "refuted" => output::bad("✗"),
                    _ => output::warn("?"),
                };
                let what = match answer.result {
                    "proved" => "nothing that the base does not allow",
                    "refuted" => "allowed here, and not by the base:",
                    _ => "not known:",
                };
                let example = answer.counterexample.as_ref().map(json::compact).unwrap_or_default();
                let why = answer.why.as_deref().unwrap_or_default();
                output::line(output::plain(format!("{mark} {:<18} {what} {why} {example}", answer.action).trim_end()));
            }
        }
    }
    match (proved, refuted) {
        (true, _) => Ok(()),
        (false, true) => Err(Failure::No),
        (false, false) => Err(Failure::could_not("it is neither proved nor refuted")),
    }
}
