//! `writ token`: what an agent shows, from the notary that runs here.

use std::io::Read;

use writ_core::SessionId;
use writ_engine::notary::ask;
use writ_engine::notary::tokens::{Request, Told};
use writ_engine::{Home, governing, verify};

use super::session_lookup::store;
use crate::args::{TokenArgs, TokenCommand};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Longest token.
const MAX: u64 = 64 << 10;

/// Runs one of its commands.
pub fn run(command: TokenCommand) -> Result<(), Failure> {
    let home = environment::home();
    let request = match command {
        TokenCommand::Issue { agent, of } => Request::Issue { session: session(&home, &of)?, agent },
        TokenCommand::Check { token, of } => Request::Check { session: session(&home, &of)?, token: text(token)? },
        TokenCommand::Refresh { token, of } => Request::Refresh { session: session(&home, &of)?, token: text(token)? },
        TokenCommand::Revoke(of) => {
            human_check::not_agent("revoke tokens")?;
            Request::Revoke { session: session(&home, &of)? }
        }
        TokenCommand::Key => Request::Key,
    };
    let told = ask::token(&home, &request)
        .map_err(|error| Failure::could_not(format!("no notary answers ({error}): run `writ notary run`")))?;
    match told {
        Told { refused: Some(why), .. } => {
            output::note(format!("{} {why}", output::bad("refused:")));
            Err(Failure::No)
        }
        Told { token: Some(token), .. } => {
            output::line(token);
            Ok(())
        }
        Told { claims: Some(claims), .. } => {
            output::print_json(&claims);
            Ok(())
        }
        Told { key: Some(key), .. } => {
            output::line(key.trim_end());
            Ok(())
        }
        Told { .. } => {
            output::line("revoked");
            Ok(())
        }
    }
}

fn session(home: &Home, of: &TokenArgs) -> Result<SessionId, Failure> {
    if let Some(id) = &of.session {
        return Ok(SessionId::new(id.as_str()));
    }
    let cwd = environment::cwd()?;
    verify::newest(&store(home)?, governing::repository(&cwd)).map_err(Failure::could_not)
}

fn text(token: String) -> Result<String, Failure> {
    if token != "-" {
        return Ok(token);
    }
    let mut text = String::new();
    std::io::stdin().lock().take(MAX).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}
