//! `writ policy`: make, check, show, sign, verify, accept.

mod add;
mod diff;
mod layers;
mod learn;
mod signatures;
mod test;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};
use serde::Serialize;
use writ_core::{Digest, Timestamp, json, visible};
use writ_engine::governing::{self, Governing, GoverningError, Signed};
use writ_engine::governing::{Trust, starter, unenforced};
use writ_engine::setup::agents;
use writ_policy::{Policy, PolicyError};

use crate::args::{Format, FormatArgs, PolicyCommand};
use crate::commands::{approve, notary};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Runs one of the policy commands.
pub fn run(command: PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::New { file, force, observe } => new(&file, force, observe),
        PolicyCommand::Check { file, format } => check(file, &format),
        PolicyCommand::Show { file, resolved: true, format } => {
            layers::show(&open(&given_or_found(file)?, None)?, &format)
        }
        PolicyCommand::Show { file, resolved: false, format } => show(&given_or_found(file)?, &format),
        PolicyCommand::Lock { file, check, update } => layers::lock(&given_or_found(file)?, check, &update),
        PolicyCommand::Sign { file, key, cert, bundle, pkcs11, token, output } => {
            let with = match pkcs11 {
                true => signatures::With::Token(Box::new(notary::token_place(&token)?), cert),
                false => signatures::With::of(key, cert, bundle)?,
            };
            signatures::sign(&file, with, output)
        }
        PolicyCommand::Verify { file, key, format } => signatures::verify(&file, &key, &format),
        PolicyCommand::Test(args) => test::run(args),
        PolicyCommand::Learn(args) => learn::run(&args),
        PolicyCommand::Diff(args) => diff::run(&args),
        PolicyCommand::Add(args) => add::run(&args),
        PolicyCommand::Schema { services: true } => {
            output::document(writ_evaluators::grpc::PROTO.trim_end());
            Ok(())
        }
        PolicyCommand::Schema { services: false } => {
            output::print_json(&Policy::schema());
            Ok(())
        }
        PolicyCommand::Accept { session, none } => approve::accept(session.as_deref(), none),
    }
}

/// Opens a policy the user named.
pub fn open(path: &Path, root: Option<&Path>) -> Result<Governing, Failure> {
    governing::open(&std::path::absolute(path)?, root, &Trust::open(environment::home().state.as_deref()))
        .map_err(report)
}

/// The named file, or the one a session here would find.
pub fn given_or_found(file: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(file) = file {
        return Ok(file);
    }
    let cwd = environment::cwd()?;
    governing::find(&cwd).ok_or_else(|| {
        Failure::could_not(format!("no policy governs {}: `writ init` or `writ policy new` writes one", cwd.display()))
    })
}

/// A policy error as a person wants it: each problem with its place in the file, and what to do on lines of their own.
pub fn report(error: GoverningError) -> Failure {
    match error {
        GoverningError::Invalid { path, text, source } => {
            let labels = source.problems().iter().map(|problem| {
                let note = format!("{} ({}) [{}]", problem.message, pointer(&problem.pointer), problem.rule);
                LabeledSpan::new(
                    Some(output::plain(&note)),
                    problem.span.start,
                    problem.span.end.saturating_sub(problem.span.start),
                )
            });
            let first = source.problems().first();
            let place = first.map_or_else(String::new, |problem| format!(":{}:{}", problem.line, problem.column));
            let title = first.map_or_else(|| source.to_string(), |problem| problem.message.clone());
            let helps: Vec<String> = source
                .problems()
                .iter()
                .filter(|problem| !problem.help.is_empty())
                .map(|problem| output::plain(&format!("{}: {}", pointer(&problem.pointer), problem.help)))
                .collect();
            let title = output::plain(&format!("{}{place}: {title}", path.display()));
            let mut diagnostic = MietteDiagnostic::new(title).with_labels(labels);
            if !helps.is_empty() {
                diagnostic = diagnostic.with_help(helps.join("\n"));
            }
            let shown = NamedSource::new(output::path(&path), visible::in_place(&text)).with_language("json");
            let report = Report::new(diagnostic).with_source_code(shown);
            if is_otherwise(&source) {
                output::report(&format!("{report:?}"));
                return Failure::No;
            }
            Failure::MalformedReport(report)
        }
        GoverningError::Layer { rule, .. } if layer_code(rule) == 4 => Failure::malformed(error),
        GoverningError::Layer { rule, .. } if layer_code(rule) == 1 => Failure::could_not(error),
        GoverningError::NotTrusted { .. }
        | GoverningError::Envelope { .. }
        | GoverningError::Lock(_)
        | GoverningError::Layer { .. } => {
            output::note(format!("{} {}", output::bad("error:"), output::plain(&error.to_string())));
            Failure::No
        }
        GoverningError::TooLarge { .. } => Failure::malformed(error),
        GoverningError::Unreadable { .. } | GoverningError::KeptChanged { .. } | GoverningError::Trust(_) => {
            Failure::could_not(error)
        }
    }
}

/// Whether nothing is wrong with a policy but that a file is not the one that it pins.
fn is_otherwise(error: &PolicyError) -> bool {
    error.problems().iter().all(|problem| problem.rule == "other-digest")
}

/// What kind of error it is, as `policy check --format json` names it, and the exit code it has.
fn kind(error: &GoverningError) -> (&'static str, u8) {
    match error {
        GoverningError::Invalid { source, .. } if is_otherwise(source) => ("other-digest", 3),
        GoverningError::Invalid { .. } => ("invalid", 4),
        GoverningError::TooLarge { .. } => ("too-large", 4),
        GoverningError::NotTrusted { .. } => ("not-trusted", 3),
        GoverningError::Envelope { .. } => ("bad-envelope", 3),
        GoverningError::Unreadable { .. } => ("unreadable", 1),
        GoverningError::KeptChanged { .. } => ("copy-changed", 1),
        GoverningError::Layer { rule, .. } => (rule, layer_code(rule)),
        GoverningError::Lock(_) => ("bad-lock", 3),
        GoverningError::Trust(_) => ("trust-unreadable", 1),
    }
}

/// The exit code of a layer that cannot be used: the answer is no, where it is not what it has to be.
const fn layer_code(rule: &str) -> u8 {
    match rule.as_bytes() {
        b"not-locked" | b"stale-lock" | b"other-digest" | b"not-trusted" => 3,
        b"not-fetched" => 1,
        _ => 4,
    }
}

/// A policy that cannot be used.
#[derive(Serialize)]
struct Unusable<'a> {
    valid: bool,
    #[serde(with = "json::path")]
    path: PathBuf,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
struct Problem<'a> {
    rule: &'a str,
    #[serde(flatten)]
    place: Option<Place<'a>>,
    message: String,
    help: &'a str,
}

#[derive(Serialize)]
struct Place<'a> {
    pointer: &'a str,
    line: usize,
    column: usize,
}

fn unusable<'a>(path: &Path, error: &'a GoverningError) -> Unusable<'a> {
    let problems = match error {
        GoverningError::Invalid { source, .. } => source
            .problems()
            .iter()
            .map(|problem| Problem {
                rule: problem.rule,
                place: Some(Place { pointer: &problem.pointer, line: problem.line, column: problem.column }),
                message: problem.message.clone(),
                help: &problem.help,
            })
            .collect(),
        other => vec![Problem { rule: kind(other).0, place: None, message: other.to_string(), help: "" }],
    };
    Unusable { valid: false, path: path.to_owned(), problems }
}

fn pointer(pointer: &str) -> &str {
    if pointer.is_empty() { "the whole document" } else { pointer }
}

fn new(file: &Path, force: bool, observe: bool) -> Result<(), Failure> {
    let starter = starter::starter(&environment::cwd()?, observe);
    if file == Path::new("-") {
        output::bytes(starter.text.as_bytes());
        return Ok(());
    }
    if file.exists() && !force {
        return Err(Failure::could_not(format!("{} exists already; --force replaces it", file.display())));
    }
    fs::write(file, &starter.text).map_err(|error| Failure::could_not(format!("{}: {error}", file.display())))?;
    output::line(format!("wrote {}{}", file.display(), found(&starter.found)));
    Ok(())
}

/// ` (found Rust, Cargo.lock)`, or nothing.
pub fn found(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(" (found {})", found.join(", ")) }
}

fn check(file: Option<PathBuf>, args: &FormatArgs) -> Result<(), Failure> {
    let as_json = args.format == Format::Json;
    let path = match given_or_found(file) {
        Err(Failure::CouldNot(error)) if as_json => {
            let source = std::io::Error::new(std::io::ErrorKind::NotFound, error.to_string());
            let cwd = environment::cwd()?;
            let error = GoverningError::Unreadable { path: cwd.clone(), source };
            output::print_json(&unusable(&cwd, &error));
            return Err(Failure::Said(1));
        }
        other => other?,
    };
    let whole = std::path::absolute(&path)?;
    let governing = match governing::open(&whole, None, &Trust::open(environment::home().state.as_deref())) {
        Ok(governing) => governing,
        Err(error) if as_json => {
            output::print_json(&unusable(&whole, &error));
            return Err(Failure::Said(kind(&error).1));
        }
        Err(error) => return Err(report(error)),
    };
    let pending = unenforced::of(&governing, None);
    let by_client = unenforced::by_client(&governing);
    let warnings = warnings(&governing);
    if as_json {
        let summary = summary(&governing);
        let not_enforced_with = by_client.into_iter().collect();
        output::print_json(&Checked { valid: true, summary, warnings, not_enforced_yet: pending, not_enforced_with });
        return Ok(());
    }
    output::line(format!(
        "{} {} `{}` is valid",
        output::good("✓"),
        output::path(&path),
        output::plain(governing.policy.name())
    ));
    for warning in &warnings {
        output::line(format!("{} {}", output::warn("warning:"), output::plain(warning)));
    }
    for pointer in &pending {
        output::line(format!("{} {}: not enforced yet", output::dim("–"), output::plain(pointer)));
    }
    for (client, pointer) in
        by_client.iter().flat_map(|(client, fields)| fields.iter().map(move |field| (client, field)))
    {
        let text = format!("not enforced in sessions of `{client}`, which tell of single calls alone");
        output::line(format!("{} {}: {text}", output::dim("–"), output::plain(pointer)));
    }
    Ok(())
}

fn warnings(governing: &Governing) -> Vec<String> {
    let mut out: Vec<String> = governing.policy.warnings().to_vec();
    match &governing.signed {
        Signed::Plain => out.push("not signed: anyone who can write the file can change the policy".to_owned()),
        Signed::UnknownKey(reasons) => {
            out.push("signed, but not by a key you trust (`writ keys trust`)".to_owned());
            out.extend(reasons.iter().cloned());
        }
        Signed::NoFunctionary => out.push("signed, but by none of the functionaries it names".to_owned()),
        Signed::By(_) | Signed::Accepted(_) => {}
    }
    if governing.signed == Signed::Plain && governing.policy.functionaries().is_some() {
        out.push("it names functionaries, and none of them signed it".to_owned());
    }
    let of_layers = governing.layers.iter().flat_map(|layer| {
        let named = |warning: &String| format!("{}:{warning}", layer.at.name);
        layer.policy.warnings().iter().map(named).collect::<Vec<_>>()
    });
    out.extend(of_layers);
    out.extend(agents::never_met(governing, &environment::home()));
    out.extend(expired(governing));
    out
}

/// What to say of a policy whose time is over.
pub fn expired(governing: &Governing) -> Option<String> {
    let (at, text) = governing.policy.expires()?;
    (Timestamp::now() > at).then(|| format!("it expired on {text}: every call is denied"))
}

/// A policy in one object.
#[derive(Serialize)]
pub struct Summary<'a> {
    name: &'a str,
    #[serde(with = "json::path")]
    path: PathBuf,
    digest: Digest,
    file: Digest,
    signed: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired: Option<bool>,
}

/// A policy that holds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked<'a> {
    valid: bool,
    #[serde(flatten)]
    summary: Summary<'a>,
    warnings: Vec<String>,
    not_enforced_yet: Vec<String>,
    /// By client: what it gives nothing to hold with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_enforced_with: BTreeMap<&'static str, Vec<String>>,
}

/// A policy and its document as it stands.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    summary: Summary<'a>,
    document: String,
}

/// Sums it up.
pub fn summary(governing: &Governing) -> Summary<'_> {
    let expires = governing.policy.expires();
    Summary {
        name: governing.policy.name(),
        path: governing.path.clone(),
        digest: governing.policy.digest(),
        file: governing.file,
        signed: governing.signed.as_str(),
        signers: governing.signed.signers(),
        expires: expires.map(|(_, text)| text),
        expired: expires.map(|(at, _)| Timestamp::now() > at),
    }
}

fn show(path: &Path, args: &FormatArgs) -> Result<(), Failure> {
    let path = std::path::absolute(path)?;
    let bytes = governing::read(&path).map_err(report)?;
    let trust = Trust::open(environment::home().state.as_deref());
    let governing = governing::open_alone(&path, bytes, None, &trust).map_err(report)?;
    let inner = governing::inner(&governing.path, &governing.bytes).map_err(report)?;
    let document = String::from_utf8_lossy(inner.as_deref().unwrap_or(&governing.bytes)).into_owned();
    if args.format == Format::Json {
        output::print_json(&Shown { summary: summary(&governing), document });
        return Ok(());
    }
    let signed = match &governing.signed {
        Signed::Plain => output::warn("not signed"),
        Signed::UnknownKey(_) => output::warn("signed by a key you do not trust"),
        Signed::NoFunctionary => output::warn("signed by none of the functionaries it names"),
        Signed::By(_) | Signed::Accepted(_) => {
            output::good(format!("signed by {}", governing.signed.signers().unwrap_or_default().join(", ")))
        }
    };
    output::line(format!("{}  {}\n{signed}\n", output::path(&governing.path), governing.policy.digest()));
    output::bytes(document.as_bytes());
    Ok(())
}
