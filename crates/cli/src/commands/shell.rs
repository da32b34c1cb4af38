//! `writ shell explain`: what the policy sees in a line.

use std::io::Read;

use writ_shell::Env;

use crate::args::{Format, ShellCommand};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Largest line.
const MAX_BYTES: u64 = 1 << 20;

/// Shows the tree and what the line would do. Exit code 4 when the line is no shell program.
pub fn run(command: &ShellCommand) -> Result<(), Failure> {
    let ShellCommand::Explain { line, format } = command;
    let mut text = line.clone();
    if line == "-" {
        text.clear();
        std::io::stdin().take(MAX_BYTES).read_to_string(&mut text)?;
    }
    let env = Env {
        home: environment::home().user_text(),
        cwd: Some(environment::cwd()?.to_string_lossy().into_owned()),
        ..Env::default()
    };
    let explained = writ_shell::explain(&text, &env);
    match format.format {
        Format::Json => output::print_json(&explained.to_json()),
        Format::Human => output::line(explained.to_text()),
    }
    match explained.syntax_error() {
        Some(message) => Err(Failure::malformed(message)),
        None => Ok(()),
    }
}
