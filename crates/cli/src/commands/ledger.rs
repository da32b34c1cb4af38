//! `writ ledger`: one ledger file, shown or verified by itself.

use std::path::Path;

use writ_core::json::{Object, Value};
use writ_core::regular_file;
use writ_engine::session::shown::{Rules, Shown, cite};
use writ_engine::verify;
use writ_evidence::row::{Row, RowDecision};

use crate::args::{Format, LedgerCommand};
use crate::commands::verify::show;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Largest ledger that is shown.
const MAX_LEDGER: u64 = 1 << 30;

/// Shows or verifies a ledger file.
pub fn run(command: &LedgerCommand) -> Result<(), Failure> {
    match command {
        LedgerCommand::Show { file, format } => {
            let bytes = regular_file::read(file, MAX_LEDGER);
            let bytes = bytes.map_err(|error| Failure::could_not(format!("{}: {error}", file.display())))?;
            let (rows, wrong) = Row::parse_all(&bytes);
            show_rows(&rows, None, format.format);
            match wrong {
                None => Ok(()),
                Some(error) => Err(Failure::malformed(format!("{}: {error}", file.display()))),
            }
        }
        LedgerCommand::Verify { file, format } => {
            let folder = file.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
            let report = verify::ledger(file, folder, &environment::home()).map_err(Failure::could_not)?;
            show(&report, format.format);
            if report.holds() { Ok(()) } else { Err(Failure::No) }
        }
    }
}

/// `deny /tools/deny/0` with the rule's own text, where the policy is at hand.
fn cited(policy: Option<&dyn Rules>, rule: &str) -> String {
    match rule.split_once(' ') {
        Some((verdict, pointer)) => format!("{verdict} {}", cite(policy, pointer)),
        None => rule.to_owned(),
    }
}

/// Rows for people, one a line with programs, paths, hosts and rules, or as a JSON array.
pub fn show_rows(rows: &[Row], policy: Option<&dyn Rules>, format: Format) {
    if format == Format::Json {
        output::print_json(&Value::Array(rows.iter().map(Row::to_json).collect()));
        return;
    }
    for row in rows {
        let word = format!("{:<12}", row.decision.as_str());
        let word = match row.decision {
            RowDecision::Approved | RowDecision::Completed => output::good(word),
            RowDecision::Asked | RowDecision::Failed => output::warn(word),
            RowDecision::Denied | RowDecision::Hallucinated => output::bad(word),
            RowDecision::Checkpoint => output::dim(word),
        };
        let detail = row.detail.as_object();
        let text =
            |name| detail.and_then(|detail: &Object| detail.get(name)).and_then(Value::as_str).unwrap_or_default();
        let shown = Shown::of(row);
        let what = if row.tool_name.is_some() { shown.summary() } else { text("event").to_owned() };
        let observed = text("observed");
        let observed = if observed.is_empty() { String::new() } else { format!("  would be {observed}") };
        let rules: Vec<String> = shown.rules.iter().map(|rule| cited(policy, rule)).collect();
        output::line(format!(
            "{:>5}  {}  {word}  {}{}  {}",
            row.sequence,
            row.timestamp,
            output::plain(&what),
            output::warn(observed),
            output::dim(output::plain(&rules.join("; ")))
        ));
    }
}
