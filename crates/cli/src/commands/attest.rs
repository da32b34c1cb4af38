//! `--attest`: reports under signature.

use std::path::{Path, PathBuf};

use writ_consequence::Report;
use writ_core::json::{self, Limits, Value};
use writ_core::{Digest, Timestamp};
use writ_engine::attest::archive::Archive;
use writ_engine::attest::issuer::{Issuer, IssuerError, Statement};
use writ_engine::attest::subject::{self, Detail, Subject};
use writ_evidence::attestation::{Attestation, Failure as Refusal, FailureCode};

use crate::args::{AttestArgs, InstanceArgs};
use crate::commands::session_lookup::outside_state;
use crate::environment;
use crate::exit::Failure;
use crate::input;

/// Signs what one command evaluates.
pub struct Attester {
    issuer: Issuer,
    seconds: i64,
    parent: Option<Attestation>,
    detail: Detail,
}

impl Attester {
    /// The attester that was asked for, if one was.
    pub fn wanted(args: &AttestArgs) -> Result<Option<Self>, Failure> {
        if !args.attest {
            return Ok(None);
        }
        let parent = args.parent.as_deref().map(read).transpose()?;
        Ok(Some(Self {
            issuer: issuer(&args.instance)?,
            seconds: args.expires,
            parent,
            detail: Detail::hash_only(args.hash_only),
        }))
    }

    /// The report with its attestation beside it, durable.
    pub fn attest(&mut self, subject: &Subject<'_>, report: &Report) -> Result<Value, IssuerError> {
        let output = subject.output(report, self.detail);
        let chain_id = self.parent.as_ref().and_then(|parent| parent.text("chain_id")).map(str::to_owned);
        let statement = Statement {
            input: subject.attested(self.detail),
            output: output.clone(),
            seconds: self.seconds,
            chain_id,
            parent: self.parent.as_ref().map(Attestation::digest),
        };
        let documents = self.issuer.issue(&[statement])?;
        let document = documents.first().ok_or(IssuerError::Unsettled)?;
        let attestation = json::parse_with(document.as_bytes(), Limits::SIGNED).map_err(IssuerError::Unreadable)?;
        Ok(subject::response(output, attestation))
    }
}

/// The issuer of this machine's instance.
pub fn issuer(args: &InstanceArgs) -> Result<Issuer, Failure> {
    let home = environment::home();
    let state = home.state().map_err(Failure::could_not)?;
    Issuer::open(state, args.database.as_deref(), None).map_err(Failure::could_not)
}

/// The issuer of the instance that is there: what only looks, or names a key, begins none.
pub fn existing(args: &InstanceArgs) -> Result<Issuer, Failure> {
    let home = environment::home();
    let state = home.state().map_err(Failure::could_not)?;
    let none = || Failure::could_not("no key attests here yet: `writ keys rotate` makes the first");
    if args.database.is_none() && !state.join(writ_store::instance::FILE).is_file() {
        return Err(none());
    }
    let mut archive = Archive::open(state, args.database.as_deref()).map_err(Failure::could_not)?;
    match archive.registry(Timestamp::now()).map_err(Failure::could_not)? {
        Some(_) => issuer(args),
        None => Err(none()),
    }
}

/// Reads an attestation, or a report that holds one.
pub fn read(file: &Path) -> Result<Attestation, Failure> {
    let bytes = input::bytes(file)?;
    parsed(&bytes).map_err(|error| Failure::malformed(format!("{}: {error}", file.display())))
}

/// An attestation, or the one that stands in a report.
fn parsed(bytes: &[u8]) -> Result<Attestation, Refusal> {
    let report = report(bytes)?;
    let own = report.get("attestation").cloned();
    let absent =
        || Refusal::new(FailureCode::AttestationAbsent, "there is none in it: have the report made with `--attest`");
    Attestation::from_value(own.ok_or_else(absent)?)
}

/// A report that may hold an attestation. An attestation by itself is wrapped in what it says.
pub fn report(bytes: &[u8]) -> Result<Value, Refusal> {
    let invalid = |error: json::JsonError| Refusal::new(FailureCode::InvalidAttestation, error.to_string());
    let value = json::parse_with(bytes, Limits::SIGNED).map_err(invalid)?;
    let has = |name: &str| value.get(name).is_some();
    let bare = has("signature") || !has("attestation") && (has("attestation_uri") || has("key_id"));
    if value.as_object().is_some() && !bare {
        return Ok(value);
    }
    let output = value.get("output").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(subject::response(Value::Object(output), value))
}

/// Writes an attestation's canonical document.
pub fn write(response: &Value, to: &Path) -> Result<(), Failure> {
    outside_state(to, &environment::home())?;
    let document = response.get("attestation").map(json::canonical).unwrap_or_default();
    std::fs::write(to, document).map_err(|error| Failure::could_not(format!("cannot write {}: {error}", to.display())))
}

/// Where the attestation of a plan file is put, and looked for: `tfplan` has `tfplan.attestation.json`.
pub fn beside(plan: &Path) -> PathBuf {
    writ_engine::decide::applies::beside(plan)
}

/// A plan file as its program shows it.
pub struct Shown {
    /// The document.
    pub document: Vec<u8>,
    /// The file's digest.
    pub digest: Digest,
}

/// Whether these are a plan file's bytes rather than a document's: it is a ZIP archive.
pub fn is_plan_file(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Asks `terraform`, or else `tofu`, to show a plan file. The file must be the same before and after.
pub fn show(plan: &Path, bytes: &[u8]) -> Result<Shown, Failure> {
    let digest = Digest::of(bytes);
    let folder = plan.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let plan = std::path::absolute(plan)?;
    for program in ["terraform", "tofu"] {
        let shown = std::process::Command::new(program).args(["show", "-json"]).arg(&plan).current_dir(folder).output();
        let Ok(shown) = shown else { continue };
        if !shown.status.success() {
            let why = String::from_utf8_lossy(&shown.stderr);
            return Err(Failure::could_not(format!(
                "`{program} show -json` failed: {}",
                crate::output::plain(why.trim())
            )));
        }
        if Digest::of(&input::bytes(&plan)?) != digest {
            return Err(Failure::could_not(format!("{} changed while it was read", plan.display())));
        }
        return Ok(Shown { document: shown.stdout, digest });
    }
    Err(Failure::could_not("neither `terraform` nor `tofu` is on the PATH, and one must show the plan file"))
}

/// In words, how long something holds.
pub fn until(end: Option<Timestamp>) -> String {
    end.map_or_else(|| "no end".to_owned(), |end| format!("until {end}"))
}
