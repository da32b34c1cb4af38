//! `writ step run`: a command that Writ runs and attests.

use serde::Serialize;
use writ_core::SessionId;
use writ_engine::notary::attest;
use writ_engine::steps::{Ran, Step, StepError};

use crate::args::{Format, StepCommand, StepRunArgs};
use crate::commands::session_lookup::{session, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Runs a step.
pub fn run(command: &StepCommand) -> Result<(), Failure> {
    match command {
        StepCommand::Run(args) => one(args),
    }
}

/// What was attested.
#[derive(Serialize)]
struct Attested<'a> {
    name: &'a str,
    digest: String,
    code: i32,
}

fn one(args: &StepRunArgs) -> Result<(), Failure> {
    let home = environment::home();
    let store = store(&home)?;
    let id = match args.session.as_deref() {
        // Another user's notary has its record.
        Some(named) if attest::is_another_users(&home) => SessionId::new(named),
        named => session(&store, named)?,
    };
    let step = Step {
        name: args.name.clone(),
        command: args.command.clone(),
        materials: args.materials.clone(),
        products: args.products.clone(),
        cwd: environment::cwd()?,
    };
    let Ran { code, attested } = attest::run(&store, &id, &home, &step).map_err(|error| match error {
        StepError::Name { .. } => Failure::Usage(error.to_string()),
        StepError::Io { .. }
        | StepError::TooMany { .. }
        | StepError::Link { .. }
        | StepError::NoText { .. }
        | StepError::Run { .. }
        | StepError::Notary(_)
        | StepError::Refused(_)
        | StepError::Session(_) => Failure::could_not(error),
    })?;
    if args.format.format == Format::Json {
        output::print_json(&Attested { name: &attested.name, digest: attested.digest.to_string(), code });
    } else {
        output::note(format!("step `{}` ended with {code}; attested as {}", attested.name, attested.digest));
    }
    match u8::try_from(code) {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::Said(code)),
        Err(_) => Err(Failure::Said(1)),
    }
}
