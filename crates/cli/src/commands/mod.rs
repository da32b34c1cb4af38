//! One file per command, and the match that finds it.

mod agentfile;
mod agentflow;
mod approvals;
mod approve;
mod archivista;
mod attest;
mod attestation;
mod claim;
mod claims;
mod conformance;
mod copies;
mod decide;
mod demo;
mod doctor;
mod evaluate;
pub mod exec;
pub mod export;
pub mod hook;
mod identity;
mod init;
mod keep;
mod keys;
mod leaks;
mod ledger;
mod limits;
mod lock;
mod man;
mod mcp;
mod mcp_pins;
mod mcp_proxy;
mod notary;
mod open;
mod package;
mod past;
mod policy;
mod pre_push;
mod prices;
mod rego;
mod relying_party;
mod replay;
mod report;
mod rooms;
mod run;
mod sandbox;
mod sarif;
mod schema;
mod serve;
mod session;
mod session_lookup;
mod shell;
mod status;
mod step;
mod token;
mod tool;
mod trusted;
mod turn_statements;
mod verify;
mod watch;
mod why;

use crate::args::{self, Args, Command};
use crate::exit::Failure;
use crate::{lsp, output};

/// Runs one command.
pub fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Command::Demo(args) => demo::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Hook(args) => hook::from_command(&args),
        Command::Run(args) => run::run(&args),
        Command::Exec(args) => exec::run(&args),
        Command::Keep(args) => keep::run(&args),
        Command::Rego => rego::run(),
        Command::Step(command) => step::run(&command),
        Command::Sandbox(command) => sandbox::run(&command),
        Command::Agentfile(command) => agentfile::run(&command),
        Command::Lock(args) => lock::run(&args),
        Command::Tool(command) => tool::run(&command),
        Command::Conformance(args) => conformance::run(&args),
        Command::Policy(command) => policy::run(command),
        Command::Keys(command) => keys::run(command),
        Command::Decide(args) => decide::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Shell(command) => shell::run(&command),
        Command::Approvals(args) => approvals::run(&args),
        Command::Approve(args) => approve::run(&args),
        Command::Deny(args) => approve::deny(&args),
        Command::Identity(args) => identity::run(&args),
        Command::Limits(command) => limits::run(&command),
        Command::Prices(command) => prices::run(&command),
        Command::Session(command) => session::run(&command),
        Command::Ledger(command) => ledger::run(&command),
        Command::Mcp(command) => mcp::run(command),
        Command::Token(command) => token::run(command),
        Command::Notary(command) => notary::run(command),
        Command::Claim(command) => claim::run(&command),
        Command::Evaluate(command) => evaluate::run(&command),
        Command::Attestation(command) => attestation::run(&command),
        Command::Gate(args) => attestation::gate(&args),
        Command::Consequences(command) => evaluate::rules(&command),
        Command::Serve(args) => serve::run(args),
        Command::Claims(args) => claims::run(&args),
        Command::Build(args) => package::build::run(&args),
        Command::Push(args) => package::moved::push(&args),
        Command::Pull(args) => package::moved::pull(&args),
        Command::Copy(args) => package::moved::copy(&args),
        Command::Tag(args) => package::moved::tag(&args),
        Command::Login(args) => package::login::log_in(&args),
        Command::Logout(args) => package::login::log_out(&args),
        Command::Discover(args) => package::moved::discover(&args),
        Command::Inspect(args) => package::inspect::run(&args),
        Command::Sign(args) => package::sign::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Lsp => lsp::serve(),
        Command::Schema(args) => schema::run(&args),
        Command::Man { folder } => man::run(&folder),
        Command::Report(args) => report::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Agentflow(command) => agentflow::run(&command),
        Command::Completions { shell } => {
            output::bytes(&args::completion_script(shell)?);
            Ok(())
        }
    }
}
