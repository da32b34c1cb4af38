//! `writ attestation` and `writ gate`: is this verdict genuine, and does it let this action pass?

use std::path::Path;

use writ_core::json::{self, Limits, Object, Value};
use writ_core::{Digest, Timestamp};
use writ_engine::attested::{self, Action, Terms};
use writ_engine::matter::Subject;
use writ_evidence::attestation::{Attestation, Failure as Refusal, FailureCode};
use writ_evidence::registry::{KeyState, Registry};

use super::{attest, relying};
use crate::args::{AttestationCommand, Format, GateArgs, TrustArgs};
use crate::exit::Failure;
use crate::{input, output};

/// Runs one of the attestation commands.
pub fn run(command: &AttestationCommand) -> Result<(), Failure> {
    match command {
        AttestationCommand::Verify { attestation, trust, format } => {
            let found = genuine(attestation, trust)?;
            let document = answer(&found, None);
            match (&found, format.format) {
                (_, Format::Json) => output::print_json(&document),
                (Ok(genuine), Format::Human) => output::line(format!(
                    "{} {} by {} ({}), {}",
                    output::good("valid"),
                    attested::verdict(&genuine.attestation).map_or("no verdict", writ_consequence::Verdict::as_str),
                    output::plain(genuine.attestation.key_id()),
                    genuine.state,
                    attest::until(genuine.attestation.expires_at())
                )),
                (Err(refusal), Format::Human) => output::line(format!("{} {refusal}", output::bad("not valid"))),
            }
            ended(&found)
        }
        AttestationCommand::Refresh { instance, operator, because } => {
            let (discarded, accepted) = relying::refresh(instance, operator.as_deref(), because.as_deref())?;
            output::line(format!("{} registry version {accepted} taken, {discarded} discarded", output::good("✓")));
            Ok(())
        }
        AttestationCommand::Show { id, instance } => {
            let found = attest::notary(instance)?.find(id).map_err(Failure::could_not)?;
            let found = found.ok_or_else(|| Failure::could_not(format!("no attestation `{id}` was issued here")))?;
            output::line(found.document);
            Ok(())
        }
    }
}

/// Lets an action pass, or not.
pub fn gate(args: &GateArgs) -> Result<(), Failure> {
    let found = genuine(&args.require_attestation, &args.trust)?;
    let unmet = match &found {
        Ok(genuine) => held(args, &genuine.attestation)?,
        Err(refusal) => Some(refusal.to_string()),
    };
    match args.format.format {
        Format::Json => output::print_json(&answer(&found, Some(unmet.as_deref()))),
        Format::Human => match &unmet {
            None => output::line(format!("{} the attestation covers this action", output::good("pass"))),
            Some(why) => output::line(format!("{} {}", output::bad("stop"), output::plain(why))),
        },
    }
    ended(&found)?;
    if unmet.is_some() { Err(Failure::No) } else { Ok(()) }
}

/// Every action that is named must be covered. Returns why one is not.
fn held(args: &GateArgs, attestation: &Attestation) -> Result<Option<String>, Failure> {
    let terms = Terms { worst: args.max_risk.into(), max_age: args.max_age, now: Timestamp::now() };
    let unmet = |action: &Action<'_>| attested::meets(attestation, action, &terms).err().map(|why| why.to_string());
    let plan = args.plan.as_deref().map(input::bytes).transpose()?;
    if let Some(why) = plan.and_then(|bytes| unmet(&Action::PlanFile(Digest::of(&bytes)))) {
        return Ok(Some(why));
    }
    if let Some(file) = &args.plan_json {
        let bytes = input::bytes(file)?;
        if let Some(why) = unmet(&Action::Plan(&bytes, &document(file, &bytes)?)) {
            return Ok(Some(why));
        }
    }
    if let Some(why) = args.command.as_deref().and_then(|line| unmet(&Action::Line(line))) {
        return Ok(Some(why));
    }
    let Some(file) = &args.call else { return Ok(None) };
    let value = document(file, &input::bytes(file)?)?;
    let Subject::Mcp { call, .. } = Subject::read("mcp", &value, None).map_err(Failure::malformed)? else {
        return Ok(None);
    };
    Ok(unmet(&Action::Call(&call)))
}

fn document(file: &Path, bytes: &[u8]) -> Result<Value, Failure> {
    json::parse_with(bytes, Limits::FOREIGN).map_err(|error| Failure::malformed(format!("{}: {error}", file.display())))
}

/// An attestation whose signature, key and time were checked.
pub struct Genuine {
    attestation: Attestation,
    state: KeyState,
}

/// Reads and verifies an attestation. The outer error is ours, the inner one the attestation's.
fn genuine(named: &str, trust: &TrustArgs) -> Result<Result<Genuine, Refusal>, Failure> {
    let bytes = match relying::is_url(named) {
        true => match relying::fetch(named) {
            Ok(bytes) => bytes,
            Err(refusal) => return Ok(Err(refusal)),
        },
        false => input::bytes(Path::new(named))?,
    };
    let attestation = match attest::parsed(&bytes) {
        Ok(attestation) => attestation,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let now = Timestamp::now();
    let Some(file) = &trust.registry else {
        let verified = relying::verify(&attestation, trust, now)?;
        return Ok(verified.map(|state| Genuine { attestation, state }));
    };
    let registry = Registry::parse(&input::bytes(file)?);
    let registry = registry.map_err(|error| Failure::malformed(format!("{}: {error}", file.display())))?;
    Ok(registry.check(&attestation).and_then(|state| match attestation.expires_at() {
        Some(end) if now >= end => Err(Refusal::new(FailureCode::Expired, format!("it ended at {end}"))),
        _ => Ok(Genuine { attestation, state }),
    }))
}

fn answer(found: &Result<Genuine, Refusal>, unmet: Option<Option<&str>>) -> Value {
    let mut out = Object::new();
    out.push("valid", Value::from(found.is_ok()));
    match found {
        Ok(Genuine { attestation, state }) => {
            out.push("id", Value::from(attestation.id()));
            out.push("digest", Value::from(attestation.digest().to_string()));
            out.push("key_id", Value::from(attestation.key_id()));
            out.push("key_state", Value::from(state.as_str()));
            out.push("instance", Value::from(attestation.instance()));
            out.push("timestamp", Value::from(attestation.timestamp().to_string()));
            out.push("expires_at", attestation.expires_at().map_or(Value::Null, |end| Value::from(end.to_string())));
            let verdict = attested::verdict(attestation);
            out.push("riskAssessment", verdict.map_or(Value::Null, |verdict| Value::from(verdict.as_str())));
        }
        Err(refusal) => {
            out.push("code", Value::from(refusal.code.as_str()));
            out.push("detail", Value::from(refusal.detail.as_str()));
        }
    }
    if let Some(unmet) = unmet {
        out.push("passes", Value::from(unmet.is_none()));
        if let Some(why) = unmet {
            out.push("why", Value::from(why));
        }
    }
    Value::Object(out)
}

fn ended(found: &Result<Genuine, Refusal>) -> Result<(), Failure> {
    match found {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.code.may_retry() => Err(Failure::could_not(refusal)),
        Err(_) => Err(Failure::No),
    }
}
