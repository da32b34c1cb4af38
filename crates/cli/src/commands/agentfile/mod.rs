//! `writ agentfile`: write, lint, format, show, decide.

pub mod base;
mod decide;
mod levels;
mod lint;
mod project;
mod prove;
mod show;

use std::fs;
use std::path::Path;

use writ_agentfile::{Linted, Options, cedar};

use crate::args::AgentfileCommand;
use crate::environment;
use crate::exit::Failure;
use crate::input;
use crate::lsp;
use crate::output;

/// Runs one of the commands.
pub fn run(command: &AgentfileCommand) -> Result<(), Failure> {
    match command {
        AgentfileCommand::New { file, name, force } => new(file, name.as_deref(), *force),
        AgentfileCommand::Lint(args) => lint::run(args),
        AgentfileCommand::Fmt { file, check } => format(file, *check),
        AgentfileCommand::Show { file, format } => show::run(file, format.format),
        AgentfileCommand::Decide(args) => decide::run(args),
        AgentfileCommand::Project(args) => project::run(args),
        AgentfileCommand::Prove(args) => prove::run(args),
        AgentfileCommand::Lsp => lsp::serve(),
        AgentfileCommand::Schema => {
            output::document(cedar::SCHEMA_TEXT);
            Ok(())
        }
    }
}

/// A file, linted; what is no text at all is malformed.
pub fn open(file: &Path, options: &Options) -> Result<Linted, Failure> {
    let linted = read(file, options)?;
    match unreadable(&linted) {
        Some(why) => Err(why),
        None => Ok(linted),
    }
}

fn read(file: &Path, options: &Options) -> Result<Linted, Failure> {
    Ok(writ_agentfile::lint(&input::bytes(file)?, &file.to_string_lossy(), options))
}

/// Why a file is no text at all.
fn unreadable(linted: &Linted) -> Option<Failure> {
    let [only] = linted.found.as_slice() else { return None };
    let (file, place) = (&linted.agent.file, only.place);
    (linted.agent.text.is_empty() && only.is_error())
        .then(|| Failure::malformed(format!("{file}:{}:{}: {}: {}", place.line, place.column, only.message, only.help)))
}

/// A file without errors.
pub fn usable(file: &Path) -> Result<Linted, Failure> {
    let linted = open(file, &Options::default())?;
    if linted.has_errors() {
        lint::tell(&linted, true);
        return Err(Failure::No);
    }
    Ok(linted)
}

fn new(file: &Path, name: Option<&str>, force: bool) -> Result<(), Failure> {
    let folder = environment::cwd()?;
    let own = folder.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let plain: String =
        own.chars().map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    let name = name.unwrap_or(if plain.is_empty() { "agent" } else { plain });
    let text = writ_agentfile::starter(name);
    if writ_agentfile::lint(text.as_bytes(), "Agentfile", &Options::default())
        .found
        .iter()
        .any(|found| found.code != "no-agent")
    {
        return Err(Failure::Usage(format!("`{name}` is no name for an agent: lower-case letters, digits and `-`")));
    }
    if file == Path::new("-") {
        output::document(&text);
        return Ok(());
    }
    let told = |error: std::io::Error| Failure::could_not(format!("{}: {error}", file.display()));
    if force {
        fs::write(file, &text).map_err(told)?;
    } else {
        let mut out = fs::File::create_new(file).map_err(told)?;
        std::io::Write::write_all(&mut out, text.as_bytes()).map_err(told)?;
    }
    output::line(format!("{} wrote {}", output::good("✓"), file.display()));
    Ok(())
}

fn format(file: &Path, check: bool) -> Result<(), Failure> {
    let text = String::from_utf8(input::bytes(file)?)
        .map_err(|_error| Failure::malformed(format!("{}: not UTF-8 text", file.display())))?;
    let Some(formatted) = writ_agentfile::format(&text) else {
        lint::tell(&open(file, &Options::default())?, true);
        return Err(Failure::No);
    };
    if file == Path::new("-") && !check {
        output::document(&formatted);
        return Ok(());
    }
    if formatted == text {
        return Ok(());
    }
    if check {
        let line = text.lines().zip(formatted.lines()).position(|(one, other)| one != other);
        let line = line.unwrap_or_else(|| text.lines().count().min(formatted.lines().count())) + 1;
        output::note(format!("{}:{line}: not in form; `writ agentfile fmt` puts it so", file.display()));
        return Err(Failure::No);
    }
    fs::write(file, &formatted).map_err(|error| Failure::could_not(format!("{}: {error}", file.display())))
}
