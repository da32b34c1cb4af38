//! `writ verify`: the whole record, checked again.

use std::path::Path;

use serde::Serialize;
use writ_core::SessionId;
use writ_engine::bundle::BundleError;
use writ_engine::verify::{self, BundleVerifyError, Options, Outcome, Report};
use writ_engine::{Home, governing};

use crate::args::{Format, VerifyArgs};
use crate::commands::keys::public_key;
use crate::commands::session_lookup::{failure, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Verifies a session or a folder of evidence.
pub fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let home = environment::home();
    let options = Options {
        key: args.key.as_deref().map(public_key).transpose()?,
        transcript: args.transcript.clone(),
        progress: Some(output::progress),
        ..Options::default()
    };
    let report = match args.target.as_deref() {
        Some(folder) if Path::new(folder).is_dir() => verify::folder(Path::new(folder), &home, &options),
        Some(name) if Path::new(name).exists() => return of_bundle(Path::new(name), &home, &options, args),
        Some(name) => {
            let (store, id) = (store(&home)?, SessionId::new(name));
            if !store.exists(&id) && !store.is_known(&id) {
                return Err(Failure::could_not(format!(
                    "no session `{name}` is on record, and no such folder is there"
                )));
            }
            verify::session(&store, &id, &home, &options)
        }
        None => {
            let store = store(&home)?;
            let cwd = environment::cwd()?;
            verify::newest(&store, governing::repository(&cwd))
                .and_then(|id| verify::session(&store, &id, &home, &options))
        }
    };
    match report {
        Ok(report) => answer(&report, args),
        Err(error) => {
            if let (verify::VerifyError::Lost { session, .. }, Format::Json) = (&error, args.format.format) {
                output::print_json(&Lost { verified: false, status: "lost", session });
            }
            Err(failure(error))
        }
    }
}

fn answer(report: &Report, args: &VerifyArgs) -> Result<(), Failure> {
    show(report, args.format.format);
    if report.verified() || args.allow_absent && report.holds() { Ok(()) } else { Err(Failure::No) }
}

/// Verifies a bundle, which is laid out where temporary files are.
fn of_bundle(path: &Path, home: &Home, options: &Options, args: &VerifyArgs) -> Result<(), Failure> {
    let room = tempfile::tempdir()?;
    match verify::bundle(path, room.path(), home, options) {
        Ok(report) => answer(&report, args),
        Err(BundleVerifyError::Verify(error)) => Err(failure(error)),
        Err(BundleVerifyError::Bundle(error @ BundleError::Broken { .. })) => {
            let why = error.to_string();
            match args.format.format {
                Format::Json => output::print_json(&Broken { verified: false, status: "broken", why: &why }),
                Format::Human => output::line(output::bad(output::plain(&format!("NOT VERIFIED: {why}")))),
            }
            Err(Failure::No)
        }
        Err(BundleVerifyError::Bundle(error @ (BundleError::NotOne { .. } | BundleError::Manifest { .. }))) => {
            Err(Failure::malformed(error))
        }
        Err(BundleVerifyError::Bundle(error)) => Err(Failure::could_not(error)),
    }
}

/// What there is to say of a bundle that is not what its manifest says.
#[derive(Serialize)]
struct Broken<'a> {
    verified: bool,
    status: &'static str,
    why: &'a str,
}

/// What there is to say of a record that is gone.
#[derive(Serialize)]
struct Lost<'a> {
    verified: bool,
    status: &'static str,
    session: &'a str,
}

/// Prints a report.
pub fn show(report: &Report, format: Format) {
    match format {
        Format::Json => output::print_json(report),
        Format::Human => human(report),
    }
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
        output::line(format!("{mark} {:<12} {} {standing}", phase.name, output::plain(&phase.summary)));
        for finding in &phase.findings {
            output::line(format!("    {}", output::plain(finding)));
        }
    }
    let verdict = output::plain(&report.verdict());
    let verdict = match (report.verified(), report.holds()) {
        (true, _) => output::good(verdict),
        (_, true) => output::warn(verdict),
        _ => output::bad(verdict),
    };
    output::line(format!("\n{verdict}"));
}
