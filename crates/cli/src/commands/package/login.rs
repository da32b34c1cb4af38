//! `writ login`, `writ logout`: credentials for registries.

use std::io::Read;

use writ_package::reference::is_registry;
use writ_service::registry::{Credentials, Options, Registry};
use zeroize::Zeroizing;

use super::registry_failure;
use crate::args::{LoginArgs, LogoutArgs};
use crate::commands::rooms;
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Longest password.
const MAX_PASSWORD: u64 = 64 << 10;

/// Keeps credentials, once the registry took them.
pub fn log_in(args: &LoginArgs) -> Result<(), Failure> {
    known(&args.registry)?;
    if args.username.contains(':') {
        return Err(Failure::Usage("a user's name holds no `:`".to_owned()));
    }
    let password = if args.password_stdin {
        let mut text = Zeroizing::new(String::new());
        std::io::stdin().take(MAX_PASSWORD).read_to_string(&mut text)?;
        Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned())
    } else {
        human_check::hidden("password: ")?
    };
    if password.is_empty() {
        return Err(Failure::Usage("the password is empty".to_owned()));
    }
    // What the registry does not take is not kept: tried with a file of its own first.
    let room = rooms::folder()?;
    let trial = Credentials::of(Some(room.path().join("config.json")));
    trial.keep(&args.registry, &args.username, &password).map_err(Failure::could_not)?;
    let options = Options { credentials: trial, plain_http: args.plain_http, ..Options::default() };
    Registry::new(options).log_in(&args.registry).map_err(registry_failure)?;
    let credentials = Credentials::of(environment::docker_config());
    let place = credentials.keep(&args.registry, &args.username, &password).map_err(Failure::could_not)?;
    output::line(format!("logged in to {}: kept by {}", args.registry, output::plain(&place)));
    Ok(())
}

/// Forgets credentials.
pub fn log_out(args: &LogoutArgs) -> Result<(), Failure> {
    known(&args.registry)?;
    let credentials = Credentials::of(environment::docker_config());
    let forgotten = credentials.forget(&args.registry).map_err(Failure::could_not)?;
    let said = if forgotten { "logged out of" } else { "nothing was kept for" };
    output::line(format!("{said} {}", args.registry));
    Ok(())
}

fn known(registry: &str) -> Result<(), Failure> {
    if is_registry(registry) {
        return Ok(());
    }
    Err(Failure::Usage(format!("`{}` is no registry: write `HOST[:PORT]`", output::plain(registry))))
}
