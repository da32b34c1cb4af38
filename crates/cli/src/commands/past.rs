//! Past sessions, as `writ replay` and the tools for policies find and show them.

use std::path::PathBuf;

use writ_core::Verdict;
use writ_engine::governing;
use writ_engine::past::replay::NotJudged;
use writ_engine::past::{Example, PastError, Transcript};

use crate::args::PastArgs;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// The transcripts that are meant.
pub fn transcripts(args: &PastArgs) -> Result<Vec<Transcript>, Failure> {
    if !args.transcripts.is_empty() {
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        return args.transcripts.iter().map(|path| Transcript::at(&whole(path)).map_err(failure)).collect();
    }
    let cwd = environment::cwd()?;
    let project = args.root.clone().unwrap_or_else(|| governing::repository(&cwd).to_owned());
    Transcript::of_project(&std::path::absolute(project)?, &environment::home()).map_err(failure)
}

/// The code that goes with it.
pub fn failure(error: PastError) -> Failure {
    match error {
        PastError::Unknown { .. } => Failure::malformed(error),
        PastError::Transcript(_) | PastError::None { .. } => Failure::could_not(error),
    }
}

/// What was not judged, where there is something.
pub fn not_judged(of: NotJudged) {
    if !of.is_nothing() {
        output::line(output::warn(format!(
            "not judged: {} that cannot be read, {} run by the model's provider, {} sub-agents beyond those that are read",
            of.unreadable, of.server_side, of.agents
        )));
    }
}

/// A verdict in its colour.
pub fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Allow => output::good("allow"),
        Verdict::Ask => output::warn("ask"),
        Verdict::Deny => output::bad("deny"),
    }
}

/// A past call, on two lines.
pub fn example(example: &Example) {
    let then = if example.stopped_then { "  (stopped then, too)" } else { "" };
    output::line(format!(
        "        {} {}{}",
        output::plain(&example.tool),
        output::plain(&example.what),
        output::dim(then)
    ));
    let file = example.transcript.file_stem().unwrap_or_default().to_string_lossy();
    let place = format!("{file} {}", example.call_id);
    let message = if example.message.is_empty() { String::new() } else { format!("{}; ", example.message) };
    output::line(output::dim(format!("          {}{}", output::plain(&message), output::plain(&place))));
}
