//! `writ ledger`: one ledger file, shown or verified by itself.

use std::path::Path;

use writ_core::json::{Object, Value};
use writ_core::plain;
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
            let bytes = plain::read(file, MAX_LEDGER);
            let bytes = bytes.map_err(|error| Failure::could_not(format!("{}: {error}", file.display())))?;
            let (rows, wrong) = Row::parse_all(&bytes);
            show_rows(&rows, format.format);
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

/// Rows for people, one a line, or as a JSON array.
pub fn show_rows(rows: &[Row], format: Format) {
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
        let what = output::plain(row.tool_name.as_deref().unwrap_or_else(|| text("event")));
        let why = row.denial_reason.as_deref().unwrap_or_default();
        output::line(format!(
            "{:>5}  {}  {word}  {what}  {}",
            row.sequence,
            row.timestamp,
            output::dim(output::plain(why))
        ));
    }
}
