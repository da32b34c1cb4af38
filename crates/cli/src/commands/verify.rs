//! `writ verify`: the whole record, checked again.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::{Digest, Hasher, SessionId, Timestamp, regular_file};
use writ_engine::bundle::BundleError;
use writ_engine::verify::results::results;
use writ_engine::verify::summary::summary;
use writ_engine::verify::{self, BundleVerifyError, Explained, Judges, Options, Outcome, Phase, Report, Sublayout};
use writ_engine::{Home, governing};
use writ_evidence::intoto::{self, Statement};
use writ_evidence::keys::SigningKey;
use writ_service::evaluators;

use crate::args::{Format, VerifyArgs};
use crate::commands::keys::{public_key, signing_key};
use crate::commands::session_lookup::{failure, outside_state, store};
use crate::commands::{package, rooms};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// The file of a session's rows.
const LEDGER: &str = "ledger.jsonl";

/// Verifies a session or a folder of evidence.
pub fn run(args: &VerifyArgs) -> Result<(), Failure> {
    if args.vsa_key.is_some() && args.vsa.is_none() && args.results.is_none() {
        return Err(Failure::Usage(
            "`--vsa-key` signs what `--vsa` and `--results` write: give one of them".to_owned(),
        ));
    }
    if let Some(target) = args.target.as_deref().filter(|target| package::verify::is_one(target)) {
        return package::verify::run(target, args);
    }
    let home = environment::home();
    let options = Options {
        key: args.key.as_deref().map(public_key).transpose()?,
        transcript: args.transcript.clone(),
        judges: args.evaluators.then(judges),
        progress: Some(output::progress),
        ..Options::default()
    };
    let (report, ledger) = match args.target.as_deref() {
        Some(folder) if Path::new(folder).is_dir() => {
            (verify::folder(Path::new(folder), &home, &options), Path::new(folder).join(LEDGER))
        }
        Some(name) if Path::new(name).exists() => return of_bundle(Path::new(name), &home, &options, args),
        Some(name) => {
            let (store, id) = (store(&home)?, SessionId::new(name));
            if !store.exists(&id) && !store.is_known(&id) {
                return Err(Failure::could_not(format!(
                    "no session `{name}` is on record, and no such folder is there"
                )));
            }
            (verify::session(&store, &id, &home, &options), store.folder(&id).join(LEDGER))
        }
        None => {
            let store = store(&home)?;
            let cwd = environment::cwd()?;
            match verify::newest(&store, governing::repository(&cwd)) {
                Ok(id) => (verify::session(&store, &id, &home, &options), store.folder(&id).join(LEDGER)),
                Err(error) => (Err(error), PathBuf::new()),
            }
        }
    };
    match report {
        Ok(report) => answer(&report, args, &ledger),
        Err(error) => {
            if let (verify::VerifyError::Lost { session, .. }, Format::Json) = (&error, args.format.format) {
                output::print_json(&Lost { verified: false, status: "lost", session });
            }
            Err(failure(error))
        }
    }
}

/// How models and services are asked.
fn judges() -> Judges {
    Judges { endpoint: environment::evaluator(), send: evaluators::send, call: evaluators::call }
}

fn answer(report: &Report, args: &VerifyArgs, evidence: &Path) -> Result<(), Failure> {
    show(report, args.format.format);
    if let Some(key) = &args.vsa_key {
        signed(report, args, evidence, key)?;
    }
    if report.verified() || args.allow_absent && report.holds() { Ok(()) } else { Err(Failure::No) }
}

/// Writes what the evidence came to, and what evaluators said, each where that was asked for.
fn signed(report: &Report, args: &VerifyArgs, evidence: &Path, key: &Path) -> Result<(), Failure> {
    let key = signing_key(key)?;
    let at = |error: std::io::Error| Failure::could_not(format!("{}: {error}", evidence.display()));
    let file = (evidence.file_name().unwrap_or_default().to_string_lossy(), digest(evidence).map_err(at)?);
    let file = (&*file.0, file.1);
    let real = |path: &Path| path.canonicalize().ok();
    if let Some(to) = [&args.vsa, &args.results]
        .into_iter()
        .flatten()
        .find(|to| real(to).is_some_and(|to| Some(to) == real(evidence)))
    {
        return Err(Failure::Usage(format!("{} is what was verified: write to another file", to.display())));
    }
    if let Some(to) = &args.vsa {
        let summary = summary(report, file, key.public().key_id(), Timestamp::now());
        let summary = summary.ok_or_else(|| Failure::could_not("there is no session to sum up"))?;
        write(to, &summary, &key)?;
    }
    if let Some(to) = &args.results {
        let none = || Failure::could_not("no evaluator is named by the policy: there are no results to write");
        write(to, &results(report, file).ok_or_else(none)?, &key)?;
    }
    Ok(())
}

fn write<P: Serialize>(to: &Path, statement: &Statement<P>, key: &SigningKey) -> Result<(), Failure> {
    outside_state(to, &environment::home())?;
    let envelope = intoto::sign(statement, &[key]).map_err(Failure::could_not)?;
    fs::write(to, envelope.to_bytes()).map_err(|error| Failure::could_not(format!("{}: {error}", to.display())))
}

fn digest(path: &Path) -> std::io::Result<Digest> {
    let (mut file, mut hasher, mut piece) = (regular_file::open(path)?, Hasher::default(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            length => hasher.update(piece.get(..length).unwrap_or_default()),
        }
    }
}

/// Verifies a bundle, which is laid out where temporary files are.
fn of_bundle(path: &Path, home: &Home, options: &Options, args: &VerifyArgs) -> Result<(), Failure> {
    let room = rooms::folder()?;
    match verify::bundle(path, room.path(), home, options) {
        Ok(report) => answer(&report, args, path),
        Err(BundleVerifyError::Verify(error)) => Err(failure(error)),
        Err(BundleVerifyError::Bundle(error @ (BundleError::Broken { .. } | BundleError::Unsigned { .. }))) => {
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
    report.phases.iter().for_each(|one| phase(one, ""));
    report.sublayouts.iter().for_each(|one| sublayout(one, ""));
    let verdict = output::plain(&report.verdict());
    let verdict = match (report.verified(), report.holds()) {
        (true, _) => output::good(verdict),
        (_, true) => output::warn(verdict),
        _ => output::bad(verdict),
    };
    output::line(format!("\n{verdict}"));
}

/// A phase: what it came to, single findings, and of one that failed what holds, where that was looked for, and what to do.
fn phase(phase: &Phase, indent: &str) {
    let mark = match phase.outcome {
        Outcome::Passed => output::good(phase.outcome.mark()),
        Outcome::Failed => output::bad(phase.outcome.mark()),
        Outcome::Absent => output::dim(phase.outcome.mark()),
    };
    let standing = output::dim(format!("[{}]", phase.standing.as_str()));
    output::line(format!("{indent}{mark} {:<12} {} {standing}", phase.name, output::plain(&phase.summary)));
    for finding in &phase.findings {
        output::line(format!("{indent}    {}", output::plain(finding)));
    }
    let Some(Explained { rule, evidence, remedy }) = phase.explained() else { return };
    for (what, words) in [("rule:", rule), ("evidence:", evidence), ("remedy:", remedy)] {
        output::line(format!("{indent}    {} {words}", output::dim(format!("{what:<9}"))));
    }
}

/// A sublayout with its phases, and those that it names below it.
fn sublayout(one: &Sublayout, indent: &str) {
    let name = output::bold(output::plain(&one.name));
    output::line(format!("\n{indent}sublayout {name}  {} agents, {} statements", one.agents, one.statements));
    let inner = format!("{indent}  ");
    one.phases.iter().for_each(|one| phase(one, &inner));
    one.sublayouts.iter().for_each(|one| sublayout(one, &inner));
}
