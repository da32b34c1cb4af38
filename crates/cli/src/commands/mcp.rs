//! `writ mcp`; here `serve`: evaluation and verification as tools of the Model Context Protocol.

use std::net::TcpListener;

use writ_engine::attest::subject::Detail;
use writ_engine::mcp::Gate;
use writ_service::mcp::{self, AccessTokens, HttpSetting, Instance, Server, World};

use super::{mcp_pins, mcp_proxy, relying_party};
use crate::args::{McpCommand, McpServeArgs};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Runs one of the protocol's commands.
pub fn run(command: McpCommand) -> Result<(), Failure> {
    match command {
        McpCommand::Serve(args) => serve(args),
        McpCommand::Proxy(args) => mcp_proxy::run(&args),
        McpCommand::Pins(args) => mcp_pins::run(&args),
    }
}

fn serve(args: McpServeArgs) -> Result<(), Failure> {
    let Some(address) = args.http else {
        let cwd = environment::cwd()?.to_string_lossy().into_owned();
        let world = World::Here { home: environment::home().user_text(), cwd: Some(cwd) };
        let gate = args.guarded.then(|| mcp_proxy::gate("writ")).transpose()?;
        let server = server(&args, world, None, gate)?;
        return mcp::serve_stdio(server).map_err(Failure::could_not);
    };
    let local = address.ip().to_canonical().is_loopback();
    if !local && args.token_file.is_none() {
        let why = "is not loopback: give `--token-file`, so that not everybody who reaches it can ask";
        return Err(Failure::Usage(format!("{address} {why}")));
    }
    if !local && args.attest && args.base_url.is_none() {
        return Err(Failure::Usage(format!("{address} is not loopback: give `--base-url`, where others reach it")));
    }
    let tokens = args.token_file.as_deref().map(AccessTokens::read).transpose().map_err(Failure::could_not)?;
    let listener = TcpListener::bind(address)
        .map_err(|error| Failure::could_not(format!("cannot listen on {address}: {error}")))?;
    let bound = listener.local_addr()?;
    let url = args.base_url.clone().unwrap_or_else(|| format!("http://{bound}"));
    let server = server(&args, World::Elsewhere, Some((&url, args.base_url.is_some())), None)?;
    output::note(format!("listening on http://{bound}{}", mcp::PATH));
    if let Some(kept) = server.url().filter(|kept| args.attest && *kept != url.trim_end_matches('/')) {
        output::note(format!("{} attestations are found at {kept}: `--base-url` moves them", output::warn("warning:")));
    }
    mcp::serve_http(server, listener, &HttpSetting { names: args.allow_host, tokens }).map_err(Failure::could_not)
}

/// The tools, with what this process is to attestations.
fn server(args: &McpServeArgs, world: World, url: Option<(&str, bool)>, gate: Option<Gate>) -> Result<Server, Failure> {
    let home = environment::home();
    let instance = match home.state() {
        Ok(state) => {
            let url = url.map(|(url, told)| (url.trim_end_matches('/'), told));
            Instance::open(state, args.instance.database.as_deref(), args.attest, url).map_err(Failure::could_not)?
        }
        Err(error) if args.attest => return Err(Failure::could_not(error)),
        Err(_) => Instance::None,
    };
    let foreign = if args.trust.is_empty() { mcp::trust_no_instance() } else { relying_party::foreign(&args.trust)? };
    Ok(Server::new(world, instance, Detail::hash_only(args.hash_only), foreign, gate))
}
