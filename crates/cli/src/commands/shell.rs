//! `writ shell explain`: what the policy sees in a line; `writ shell programs`: what is known of a program.

use std::io::Read;

use writ_core::json::Value;
use writ_policy::did_you_mean;
use writ_shell::{Described, Env};

use crate::args::{Format, ShellCommand};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Largest line.
const MAX_BYTES: u64 = 1 << 20;

/// Runs one of them.
pub fn run(command: &ShellCommand) -> Result<(), Failure> {
    match command {
        ShellCommand::Explain { line, format } => explain(line, format.format),
        ShellCommand::Programs { page: true, .. } => {
            output::document(writ_shell::page().trim_end());
            Ok(())
        }
        ShellCommand::Programs { name, format, .. } => programs(name.as_deref(), format.format),
    }
}

/// Shows the tree and what the line would do. Exit code 4 when the line is no shell program.
fn explain(line: &str, format: Format) -> Result<(), Failure> {
    let mut text = line.to_owned();
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
    match format {
        Format::Json => output::print_json(&explained),
        Format::Human => output::line(explained.to_text()),
    }
    match explained.syntax_error() {
        Some(message) => Err(Failure::malformed(message)),
        None => Ok(()),
    }
}

/// Shows one program, or lists all.
fn programs(name: Option<&str>, format: Format) -> Result<(), Failure> {
    let Some(name) = name else {
        match format {
            Format::Json => {
                output::print_json(&Value::Array(writ_shell::programs().map(Described::to_json).collect()));
            }
            Format::Human => {
                output::line(output::bold(format!("{:<11} {:<36} what operands are; what runs", "family", "program")));
                for entry in writ_shell::programs() {
                    output::line(format!(
                        "{:<11} {:<36} {}",
                        entry.family(),
                        entry.title(),
                        output::dim(entry.summary())
                    ));
                }
            }
        }
        return Ok(());
    };
    let Some(entry) = writ_shell::program(name) else {
        let known = writ_shell::programs().flat_map(|entry| entry.names().iter().copied());
        let near = did_you_mean(name, known).map(|near| format!("did you mean `{near}`?"));
        let help = near.unwrap_or_else(|| "`writ shell programs` lists the programs".to_owned());
        return Err(Failure::could_not(format!("no entry for `{name}`; {help}")));
    };
    match format {
        Format::Json => output::print_json(&entry.to_json()),
        Format::Human => output::line(entry.to_text()),
    }
    Ok(())
}
