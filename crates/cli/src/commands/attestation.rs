//! `writ attestation` and `writ gate`: is this verdict genuine, and does it let this action pass?

use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_consequence::Verdict;
use writ_core::json::{Limits, Object, Value};
use writ_core::{Digest, Timestamp};
use writ_engine::attest::archive::Archive;
use writ_engine::attest::attested::{self, Action, Place, Terms};
use writ_engine::attest::subject::Subject;
use writ_engine::turns::shown::Shown;
use writ_evidence::attestation::{Attestation, Failure as Unverified, FailureCode, VERSION};
use writ_evidence::registry::KeyState;
use writ_store::instance::Record;
use writ_verifier::{Mode, Outcome, Refusal, Verified};

use super::attest;
use super::relying_party::{self, AttestationUse, RelyingParty};
use super::{archivista, turn_statements};
use crate::args::{AttestationCommand, Format, GateArgs, InstanceArgs};
use crate::exit::Failure;
use crate::{environment, human_check, input, output};

/// Runs one of the attestation commands.
pub fn run(command: &AttestationCommand) -> Result<(), Failure> {
    match command {
        AttestationCommand::Verify { attestation, mode, trust, format } => {
            let mode = Mode::from(*mode);
            let outcome = if mode == Mode::Ignore {
                ended(None)
            } else {
                let party = RelyingParty::new(trust)?;
                match report(&party, attestation)? {
                    Ok(report) => party.admit(&report, mode, Timestamp::now(), |_| AttestationUse::Looks)?,
                    Err(refusal) => ended(Some(refusal)),
                }
            };
            match format.format {
                Format::Json => output::print_json(&answer(&outcome, Some(mode), None)),
                Format::Human => {
                    output::line(told(&outcome, mode));
                    warn(&outcome);
                }
            }
            outcome.refusal.map_or(Ok(()), |refusal| Err(refused(refusal)))
        }
        AttestationCommand::Refresh { instance, operator, because } => {
            for_people("refreshes a registry")?;
            let (discarded, accepted) = relying_party::refresh(instance, operator.as_deref(), because.as_deref())?;
            output::line(format!("{} registry version {accepted} taken, {discarded} discarded", output::good("✓")));
            Ok(())
        }
        AttestationCommand::List { session, most, format, instance } => {
            list(session.as_deref(), *most, format.format, instance)
        }
        AttestationCommand::Import { file, key, name, session } => {
            turn_statements::import(file, key, name.as_deref(), session.as_deref())
        }
        AttestationCommand::Push { session, to, format } => {
            for_people("sends statements to a store")?;
            archivista::push(session.as_deref(), to, format.format)
        }
        AttestationCommand::Fetch { gitoid, from, output, force } => {
            for_people("fetches statements from a store")?;
            archivista::fetch(gitoid, from, output.as_deref(), *force)
        }
        AttestationCommand::Search { digest, at, format } => {
            for_people("asks a store")?;
            archivista::search(digest, at, format.format)
        }
        AttestationCommand::Export { session, to } => turn_statements::export(session.as_deref(), to),
        AttestationCommand::Prune { ended, dry_run, instance } => prune(*ended, *dry_run, instance),
        AttestationCommand::Show { id, session, .. } if session.is_some() || id.contains('.') => {
            turn_statements::show(id, session.as_deref())
        }
        // An id that a service issues has no such part.
        AttestationCommand::Show { id, .. } if id.starts_with("turn-") || id.contains("-turn-") => {
            turn_statements::show(&format!("{id}.json"), None)
        }
        AttestationCommand::Show { id, instance, .. } => {
            let found = attest::existing(instance)?.find(id).map_err(Failure::could_not)?;
            let found = found.ok_or_else(|| {
                Failure::could_not(format!("no attestation `{id}` was issued here; `writ attestation list` shows them"))
            })?;
            output::document(&found.document);
            Ok(())
        }
    }
}

/// What takes a protection away is no agent's.
fn for_people(what: &str) -> Result<(), Failure> {
    if human_check::below_agent() {
        return Err(Failure::could_not(format!(
            "an agent's client runs this, and a human {what}: use a terminal of your own"
        )));
    }
    Ok(())
}

/// What this machine's instance published, if there is one: looking makes nothing.
fn archive(args: &InstanceArgs) -> Result<Option<Archive>, Failure> {
    let home = environment::home();
    let state = home.state().map_err(Failure::could_not)?;
    if args.database.is_none() && !state.join(writ_store::instance::FILE).exists() {
        return Ok(None);
    }
    Archive::open(state, args.database.as_deref()).map(Some).map_err(Failure::could_not)
}

fn list(session: Option<&str>, most: usize, format: Format, instance: &InstanceArgs) -> Result<(), Failure> {
    let mut found: Vec<Attestation> = Vec::new();
    let turns = turn_statements::of(session)?;
    if session.is_none()
        && let Some(mut archive) = archive(instance)?
    {
        let mut see = |record: Record| {
            found.extend(Attestation::parse(record.document.as_bytes()));
            true
        };
        archive.each(&mut see).map_err(Failure::could_not)?;
    }
    found.sort_by_key(|attestation| std::cmp::Reverse(attestation.timestamp()));
    found.truncate(most);
    let verdict = |attestation: &Attestation| attested::verdict(attestation).map_or("-", Verdict::as_str);
    let source =
        |attestation: &Attestation| attestation.input().get("source").and_then(Value::as_str).unwrap_or("-").to_owned();
    if format == Format::Json {
        let row = |attestation| Listed {
            kind: VERSION,
            id: Attestation::id(attestation),
            timestamp: attestation.timestamp(),
            expires_at: attestation.expires_at(),
            source: source(attestation),
            risk_assessment: verdict(attestation),
            key_id: attestation.key_id(),
        };
        let verdicts = found.iter().map(row).map(Either::Verdict);
        output::print_json(&verdicts.chain(turns.iter().map(Either::Turn)).collect::<Vec<_>>());
        return Ok(());
    }
    if found.is_empty() && turns.is_empty() {
        output::line("nothing was attested here");
    }
    for attestation in &found {
        let (id, at) = (attestation.id(), attestation.timestamp());
        let line =
            format!("{id}  {at}  {:<9} {:<8} {}", source(attestation), verdict(attestation), attestation.key_id());
        output::line(output::plain(&line));
    }
    for turn in &turns {
        let (name, at, agent) = (&turn.name, turn.timestamp, &turn.agent);
        output::line(output::plain(&format!("{name:<32}  {at}  turn      {agent:<8} row {}", turn.row)));
    }
    Ok(())
}

/// An attestation of either kind.
#[derive(Serialize)]
#[serde(untagged)]
enum Either<'a> {
    Verdict(Listed<'a>),
    Turn(&'a Shown),
}

fn prune(ended: i64, dry_run: bool, instance: &InstanceArgs) -> Result<(), Failure> {
    for_people("forgets attestations")?;
    let Some(mut archive) = archive(instance)? else {
        output::line("nothing was attested here");
        return Ok(());
    };
    let before = Timestamp::now().millis().saturating_sub(ended.saturating_mul(1000));
    let mut over = Vec::new();
    let mut see = |record: Record| {
        let end = Attestation::parse(record.document.as_bytes()).ok();
        // One without an end is as old as its timestamp.
        let end = end.map(|it| it.expires_at().unwrap_or_else(|| it.timestamp()).millis());
        if end.is_some_and(|end| end < before) {
            over.push(record.id);
        }
        true
    };
    archive.each(&mut see).map_err(Failure::could_not)?;
    if dry_run {
        output::line(format!("{} would be deleted", over.len()));
        return Ok(());
    }
    let gone = archive.forget(&over).map_err(Failure::could_not)?;
    output::line(format!("{} {gone} deleted", output::good("✓")));
    Ok(())
}

/// Lets an action pass, or not. Its nonce is used up last: an attestation that does not cover the action keeps it.
pub fn gate(args: &GateArgs) -> Result<(), Failure> {
    let party = RelyingParty::new(&args.trust)?;
    let named = Named::read(args)?;
    let now = Timestamp::now();
    let mut unmet = None;
    let acts = |attestation: &Attestation| {
        let terms = Terms { worst: args.max_risk.into(), max_age: args.max_age, now };
        unmet = match &named {
            Ok(named) => named.unmet(args, attestation, &terms),
            Err(why) => Some(why.clone()),
        };
        if unmet.is_none() { AttestationUse::Passes } else { AttestationUse::Stops }
    };
    let outcome = match report(&party, &args.require_attestation) {
        Ok(Ok(report)) => party.admit(&report, Mode::Require, now, acts)?,
        Ok(Err(refusal)) => ended(Some(refusal)),
        // There is no attestation where there is no file.
        Err(Failure::CouldNot(why)) => {
            let outcome = party.admit(&Value::Object(Object::new()), Mode::Require, now, acts)?;
            let absent = matches!(outcome.refusal, Some(Refusal::Failure(_)));
            if absent { ended(Some(Unverified::new(FailureCode::AttestationAbsent, why.to_string()))) } else { outcome }
        }
        Err(other) => return Err(other),
    };
    let why = outcome.refusal.as_ref().map(ToString::to_string).or(unmet);
    match args.format.format {
        Format::Json => output::print_json(&answer(&outcome, None, Some(why.as_deref()))),
        Format::Human => {
            match &why {
                None => output::line(format!("{} the attestation covers this action", output::good("pass"))),
                Some(why) => output::line(format!("{} {}", output::bad("stop"), output::plain(why))),
            }
            warn(&outcome);
        }
    }
    match (outcome.refusal, why) {
        (Some(refusal), _) => Err(refused(refusal)),
        (None, Some(_)) => Err(Failure::No),
        (None, None) => Ok(()),
    }
}

/// The actions that are named, their files read.
struct Named {
    plan: Option<Digest>,
    document: Option<(Vec<u8>, Value)>,
    call: Option<Value>,
    place: Place,
}

impl Named {
    /// Reads them. The inner error is why nothing passes: a file that cannot be read is nobody's plan.
    fn read(args: &GateArgs) -> Result<Result<Self, String>, Failure> {
        let bytes = |file: &Path| match input::bytes(file) {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(Failure::CouldNot(why)) => Ok(Err(why.to_string())),
            Err(other) => Err(other),
        };
        let read = |file: &Option<PathBuf>| file.as_deref().map(bytes).transpose().map(Option::transpose);
        let (plan, plan_json, call) = match (read(&args.plan)?, read(&args.plan_json)?, read(&args.call)?) {
            (Ok(plan), Ok(plan_json), Ok(call)) => (plan, plan_json, call),
            (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => return Ok(Err(why)),
        };
        let document = |file: &Option<PathBuf>, bytes: &[u8]| {
            input::json(&file.as_deref().unwrap_or(Path::new("-")).to_string_lossy(), bytes, Limits::FOREIGN)
        };
        let call = call.map(|bytes| document(&args.call, &bytes)).transpose()?;
        if let Some(call) = &call {
            Subject::read("mcp", call, None).map_err(Failure::malformed)?;
        }
        let plan_json =
            plan_json.map(|bytes| Ok::<_, Failure>((document(&args.plan_json, &bytes)?, bytes))).transpose()?;
        let here = environment::cwd()?;
        let cwd = args.cwd.as_ref().map_or_else(|| Ok(here), std::path::absolute)?;
        Ok(Ok(Self {
            plan: plan.map(|bytes| Digest::of(&bytes)),
            document: plan_json.map(|(value, bytes)| (bytes, value)),
            call,
            place: Place::at(&cwd),
        }))
    }

    /// Every one of them must be covered. Returns why one is not.
    fn unmet(&self, args: &GateArgs, attestation: &Attestation, terms: &Terms) -> Option<String> {
        let subject = self.call.as_ref().and_then(|call| Subject::read("mcp", call, None).ok());
        let call = match &subject {
            Some(Subject::Mcp { call, .. }) => Some(Action::Call(call, &self.place)),
            _ => None,
        };
        let actions = [
            self.plan.map(Action::PlanFile),
            self.document.as_ref().map(|(bytes, plan)| Action::Plan(bytes, plan)),
            args.command.as_deref().map(|line| Action::Line(line, &self.place)),
            call,
        ];
        let mut actions = actions.iter().flatten();
        actions.find_map(|action| attested::meets(attestation, action, terms).err().map(|why| why.to_string()))
    }
}

/// The report that is named. The outer error is ours, the inner one the attestation's.
fn report(party: &RelyingParty<'_>, named: &str) -> Result<Result<Value, Unverified>, Failure> {
    let bytes = match relying_party::is_url(named) {
        true => party.fetch(named),
        false => match input::bytes(Path::new(named)) {
            Err(Failure::Malformed(why)) => Err(Unverified::new(FailureCode::InvalidAttestation, why.to_string())),
            read => Ok(read?),
        },
    };
    Ok(bytes.and_then(|bytes| attest::report(&bytes)))
}

/// An outcome without a look at any attestation.
fn ended(refusal: Option<Unverified>) -> Outcome {
    Outcome { refusal: refusal.map(Refusal::from), verified: None, warnings: Vec::new(), event: None }
}

/// One line on what came of a verification.
fn told(outcome: &Outcome, mode: Mode) -> String {
    match (&outcome.refusal, &outcome.verified) {
        (Some(refusal), _) => format!("{} {}", output::bad("not valid"), output::plain(&refusal.to_string())),
        (None, Some(verified)) => {
            let attestation = verified.attestation();
            format!(
                "{} {} by {} ({}), {}",
                output::good("valid"),
                attested::verdict(attestation).map_or("no verdict", Verdict::as_str),
                output::plain(attestation.key_id()),
                verified.key_state(),
                attest::until(attestation.expires_at())
            )
        }
        (None, None) => format!("not verified (mode `{mode}`)"),
    }
}

fn warn(outcome: &Outcome) {
    for warning in &outcome.warnings {
        output::line(format!("{} {}", output::bad("warning:"), warning.message()));
    }
}

/// An attestation in a list.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a str,
    timestamp: Timestamp,
    expires_at: Option<Timestamp>,
    source: String,
    #[serde(rename = "riskAssessment")]
    risk_assessment: &'static str,
    key_id: &'a str,
}

/// What became of an attestation.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proceeds: Option<bool>,
    valid: bool,
    #[serde(flatten)]
    verified: Option<Told<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<FailureCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    warnings: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passes: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// One that verified.
#[derive(Serialize)]
struct Told<'a> {
    id: &'a str,
    digest: Digest,
    key_id: &'a str,
    key_state: KeyState,
    instance: &'a str,
    timestamp: Timestamp,
    expires_at: Option<Timestamp>,
    #[serde(rename = "riskAssessment")]
    risk_assessment: Option<Verdict>,
}

fn answer<'a>(outcome: &'a Outcome, mode: Option<Mode>, unmet: Option<Option<&'a str>>) -> Answer<'a> {
    let told = |verified: &'a Verified| {
        let attestation = verified.attestation();
        Told {
            id: attestation.id(),
            digest: attestation.digest(),
            key_id: attestation.key_id(),
            key_state: verified.key_state(),
            instance: verified.instance().as_str(),
            timestamp: attestation.timestamp(),
            expires_at: attestation.expires_at(),
            risk_assessment: attested::verdict(attestation),
        }
    };
    let (code, detail) = match &outcome.refusal {
        Some(Refusal::Failure(failure)) => (Some(failure.code), Some(failure.detail.clone())),
        Some(Refusal::State(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    Answer {
        mode,
        proceeds: mode.map(|_| outcome.proceeds()),
        valid: outcome.verified.is_some(),
        verified: outcome.verified.as_ref().map(told),
        code,
        detail,
        warnings: outcome.warnings.iter().map(|warning| warning.as_str()).collect(),
        passes: unmet.map(|unmet| unmet.is_none()),
        why: unmet.flatten(),
    }
}

fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Failure(failure) if failure.code.may_retry() => Failure::could_not(failure),
        Refusal::Failure(_) => Failure::No,
        Refusal::State(error) => Failure::could_not(error),
    }
}
