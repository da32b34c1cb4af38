//! `writ verify`: the whole record, checked again.

use std::path::Path;

use writ_core::SessionId;
use writ_engine::verify::{self, Options, Outcome, Report};

use crate::args::{Format, VerifyArgs};
use crate::commands::approve::{session, store};
use crate::commands::keys::public_key;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Verifies a session or a folder of evidence.
pub fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let home = environment::home();
    let options =
        Options { key: args.key.as_deref().map(public_key).transpose()?, transcript: args.transcript.clone() };
    let folder = args.target.as_deref().map(Path::new).filter(|path| path.is_dir());
    let report = match folder {
        Some(folder) => verify::folder(folder, &home, &options),
        None => {
            let store = store(&home)?;
            let id: SessionId = session(&store, args.target.as_deref())?;
            verify::session(&store, &id, &home, &options)
        }
    };
    print(&report.map_err(failure)?, args.format.format)
}

fn failure(error: verify::VerifyError) -> Failure {
    match error {
        verify::VerifyError::NoLedger { .. } | verify::VerifyError::Lost { .. } => Failure::malformed(error),
        verify::VerifyError::Io { .. } | verify::VerifyError::Store(_) => Failure::could_not(error),
    }
}

/// Prints a report; the answer is no when anything failed.
pub fn print(report: &Report, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => output::print_json(&report.to_json()),
        Format::Human => human(report),
    }
    if report.verified() { Ok(()) } else { Err(Failure::No) }
}

/// The report for people.
pub fn human(report: &Report) {
    let session = output::plain(report.session.as_deref().unwrap_or("unknown"));
    output::line(format!("session {}  {} rows\n", output::bold(session), report.rows));
    for phase in &report.phases {
        let mark = match phase.outcome {
            Outcome::Passed => output::good(phase.outcome.mark()),
            Outcome::Failed => output::bad(phase.outcome.mark()),
            Outcome::Absent => output::dim(phase.outcome.mark()),
        };
        let standing = output::dim(format!("[{}]", phase.standing.as_str()));
        output::line(format!("{mark} {:<12} {} {standing}", phase.name, phase.summary));
        for finding in &phase.findings {
            output::line(format!("    {}", output::plain(finding)));
        }
    }
    let verdict = if report.verified() { output::good("verified") } else { output::bad("NOT VERIFIED") };
    output::line(format!("\n{verdict}"));
}
