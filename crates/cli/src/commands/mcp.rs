//! `writ mcp serve`: evaluation and verification as tools of the Model Context Protocol.

use std::net::TcpListener;

use writ_service::mcp::{self, HttpSetting, Instance, Server, World};

use super::relying;
use crate::args::{McpCommand, McpServeArgs};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Runs one of the protocol's commands.
pub fn run(command: McpCommand) -> Result<(), Failure> {
    match command {
        McpCommand::Serve(args) => serve(args),
    }
}

fn serve(args: McpServeArgs) -> Result<(), Failure> {
    let home = environment::home();
    let instance = match home.state() {
        Ok(state) => {
            Instance::open(state, args.instance.database.as_deref(), args.attest).map_err(Failure::could_not)?
        }
        Err(error) if args.attest => return Err(Failure::could_not(error)),
        Err(_) => Instance::None,
    };
    let foreign = if args.trust.is_empty() { mcp::nobody_trusted() } else { relying::foreign(&args.trust)? };
    let server = |world| Server::new(world, instance, foreign);
    let Some(address) = args.http else {
        let cwd = environment::cwd()?.to_string_lossy().into_owned();
        let world = World::Here { home: home.user_text(), cwd: Some(cwd) };
        return mcp::serve_stdio(server(world)).map_err(Failure::could_not);
    };
    let listener = TcpListener::bind(address)
        .map_err(|error| Failure::could_not(format!("cannot listen on {address}: {error}")))?;
    let bound = listener.local_addr()?;
    if !bound.ip().is_loopback() {
        output::note(format!(
            "{} {bound} can be reached from other machines, and asks nobody who they are",
            output::warn("warning:")
        ));
    }
    output::note(format!("listening on http://{bound}{}", mcp::PATH));
    let setting = HttpSetting { names: args.allow_host };
    mcp::serve_http(server(World::Elsewhere), listener, &setting).map_err(Failure::could_not)
}
