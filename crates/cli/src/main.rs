//! The `writ` binary: raw arguments → typed arguments → one match.
//!
//! Owns the command line, the terminal and the environment; everything else lives in the rooms below. `writ hook` and `writ exec`
//! are taken before the argument parser is built, because they start on every tool call. Exit codes: [`exit::Failure`] (R7).

mod args;
mod commands;
mod environment;
mod exit;
mod human_check;
mod input;
mod lsp;
mod output;
mod schemas;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(client) = commands::hook::client(std::env::args_os().skip(1)) {
        return commands::hook::run(client);
    }
    if let Some(line) = commands::exec::line(std::env::args_os().skip(1)) {
        return commands::exec::run(&line).map_or_else(exit::Failure::report, |()| ExitCode::SUCCESS);
    }
    match args::completed() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return exit::usage(&error),
    }
    output::color(args::color(std::env::args_os()));
    let args = match args::parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    match commands::run(args) {
        Ok(()) if output::lost() => exit::Failure::could_not("standard output could not take everything").report(),
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
