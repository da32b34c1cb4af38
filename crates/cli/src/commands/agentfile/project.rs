//! `writ agentfile project`: an Agentfile's tools as a tree of commands (§17).
//!
//! Owns what is in the tree, and that nothing else in its folder is touched. Decides and calls nothing: each command is `writ tool call`.
//! Invariant: a file is replaced or removed only if an earlier projection wrote it and nobody changed it since; the same Agentfile and
//! tools give the same tree. Page: `spec/tools.md`.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_agentfile::directive::{Bundle, Directive, Function, Unit};
use writ_agentfile::lock::{Sources, is_left_out};
use writ_agentfile::reference::ToolRef;
use writ_agentfile::{Agent, tool_name};
use writ_core::{Digest, json, regular_file};

use crate::args::ProjectArgs;
use crate::commands::lock::Here;
use crate::commands::tool::found::{self, Opened};
use crate::commands::tool::{help, schema};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Where the tree says which files are its own.
const MANIFEST: &str = ".writ-projection.json";
/// Largest file of a skill, and of the tree.
const MAX_FILE: u64 = 64 << 20;

/// What an earlier projection wrote.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    version: String,
    files: BTreeMap<String, Digest>,
}

/// A file of the tree.
struct File {
    bytes: Vec<u8>,
    runs: bool,
}

type Tree = BTreeMap<String, File>;

/// Lays out the tree.
pub fn run(args: &ProjectArgs) -> Result<(), Failure> {
    let opened = found::open(&args.file)?;
    let mut tree = Tree::new();
    let mut left = tools(&opened, &mut tree)?;
    functions(&opened.linted.agent, &mut tree)?;
    left.extend(skills(&opened, &mut tree)?);
    proc(&opened, &mut tree)?;
    let count = write(&args.folder, &tree)?;
    for why in left {
        output::note(format!("{} not in the tree: {}", output::warn("warning:"), output::plain(&why)));
    }
    output::line(format!("{} {count} files in {}", output::good("✓"), output::path(&args.folder)));
    Ok(())
}

fn add(tree: &mut Tree, path: String, text: impl Into<Vec<u8>>, runs: bool) -> Result<(), Failure> {
    let known = tree.insert(path.clone(), File { bytes: text.into(), runs });
    match known {
        None => Ok(()),
        Some(_) => {
            Err(Failure::could_not(format!("two things of the Agentfile would be {path}: give one another name")))
        }
    }
}

/// The name of a tool's command: its own where no other tool has it, else with its namespace.
fn command_name(agent: &Agent, tool: &ToolRef) -> Result<String, Failure> {
    let name = if tool_name(agent, tool) == tool.name {
        tool.name.clone()
    } else {
        format!("{}.{}", tool.namespace, tool.name)
    };
    plain(&name, &tool.to_string())?;
    Ok(name)
}

/// Refuses a name that is no name of one file.
fn plain(name: &str, what: &str) -> Result<(), Failure> {
    let fine = !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    if fine {
        return Ok(());
    }
    Err(Failure::could_not(format!("`{what}` cannot be a file of the tree: `{name}` would be elsewhere, or hidden")))
}

/// The commands. Gives what nothing here can call.
fn tools(opened: &Opened, tree: &mut Tree) -> Result<Vec<String>, Failure> {
    let mut left = Vec::new();
    let file = output::quoted(&opened.file.to_string_lossy());
    for reference in opened.declared() {
        let name = command_name(&opened.linted.agent, &reference)?;
        let tool = match opened.tool(&reference) {
            Ok(tool) => tool,
            Err(Failure::CouldNot(why)) => {
                left.push(why.to_string());
                continue;
            }
            Err(other) => return Err(other),
        };
        let script = |about: &str, command: &str| {
            format!(
                "#!/bin/sh\n# {about}\nexec writ tool {command} {} --file {file} \"$@\"\n",
                output::quoted(&reference.to_string())
            )
        };
        let call = script(
            "What it may do, the Agentfile says: arguments as a JSON object, `-` for stdin, or --arg KEY=VALUE.",
            "call",
        );
        let events = script("Its calls that are on record, one JSON object a line.", "events");
        add(tree, format!("tools/{name}"), call, true)?;
        add(tree, format!("tools/{name}.schema.json"), schema(&tool) + "\n", false)?;
        add(tree, format!("tools/{name}.help"), help(&tool), false)?;
        add(tree, format!("tools/{name}.events"), events, true)?;
    }
    Ok(left)
}

/// A function, as far as an Agentfile says what it is.
#[derive(Serialize)]
struct Declared<'a> {
    name: &'a str,
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<&'a str>,
    /// Who calls it.
    called: &'static str,
}

fn functions(agent: &Agent, tree: &mut Tree) -> Result<(), Failure> {
    for (entry, function) in agent.functions() {
        let (path, symbol) = match function {
            Function::Local { path, symbol } => (Some(path.as_str()), Some(symbol.as_str())),
            Function::Named { .. } => (None, None),
        };
        let name = function.name();
        plain(name, name)?;
        let declared = Declared { name, line: entry.line(), path, symbol, called: "by the agent's framework" };
        add(tree, format!("functions/{name}"), json::pretty(&json::to_value(&declared)) + "\n", false)?;
    }
    Ok(())
}

/// The skills that are beside the Agentfile. Gives those that are not.
fn skills(opened: &Opened, tree: &mut Tree) -> Result<Vec<String>, Failure> {
    let (here, mut left) = (Here::at(&opened.folder), Vec::new());
    for (entry, skill) in opened.linted.agent.skills() {
        let name = skill.name();
        plain(name, name)?;
        let path = match skill {
            Bundle::Local { path } => path.clone(),
            Bundle::Named { name } => format!("skills/{name}"),
            Bundle::Registry(reference) => {
                left.push(format!("the skill {reference} is in a registry (line {})", entry.line()));
                continue;
            }
        };
        let failed = |why: String| Failure::could_not(format!("the skill `{name}`, {path}: {why}"));
        if let Some(bytes) = here.file(&path).map_err(failed)? {
            add(tree, format!("skills/{name}/SKILL.md"), bytes, false)?;
            continue;
        }
        // The lock's own walk says what belongs to it, and refuses links.
        let Some(files) = here.tree(&path).map_err(failed)? else {
            left.push(format!("the skill `{name}` is not beside the Agentfile (line {})", entry.line()));
            continue;
        };
        for below in files.keys().filter(|below| !below.split('/').any(is_left_out)) {
            let bytes = here.file(&format!("{path}/{below}")).map_err(failed)?.unwrap_or_default();
            add(tree, format!("skills/{name}/{below}"), bytes, false)?;
        }
    }
    Ok(left)
}

/// `proc/limits`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Limits<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    limits: Vec<Limit<'a>>,
    rates: Vec<Rate<'a>>,
}

#[derive(Serialize)]
struct Limit<'a> {
    name: &'a str,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a Unit>,
    line: usize,
}

#[derive(Serialize)]
struct Rate<'a> {
    tool: &'a str,
    count: u64,
    seconds: u64,
    line: usize,
}

/// `proc/audit`.
#[derive(Serialize)]
struct Audit {
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<json::Value>,
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<String>,
    verify: String,
}

fn proc(opened: &Opened, tree: &mut Tree) -> Result<(), Failure> {
    let agent = &opened.linted.agent;
    add(tree, "proc/policy".to_owned(), opened.linted.rules.text().as_bytes(), false)?;
    let limits = agent.each(|directive| match directive {
        Directive::Limit { name, count, unit } => Some((name.as_str(), *count, unit.as_ref())),
        _ => None,
    });
    let limits = limits.map(|(entry, (name, count, unit))| Limit { name, count, unit, line: entry.line() }).collect();
    let rates = agent.each(|directive| match directive {
        Directive::RateLimit { tool, rate } => Some((tool.as_str(), *rate)),
        _ => None,
    });
    let rates = rates
        .map(|(entry, (tool, rate))| Rate { tool, count: rate.count, seconds: rate.unit.seconds(), line: entry.line() })
        .collect();
    let limits = Limits { timeout_seconds: agent.timeout(), limits, rates };
    add(tree, "proc/limits".to_owned(), json::pretty(&json::to_value(&limits)) + "\n", false)?;
    let session = opened.held_to(&opened.folder)?.session(agent.name_or_default());
    let ledger = environment::home()
        .state
        .map(|state| state.join("sessions").join(session.as_str()).join("ledger.jsonl").to_string_lossy().into_owned());
    let audit = Audit {
        audit: agent.audit().map(|audit| json::to_value(&audit)),
        verify: format!("writ verify {session}"),
        session: session.to_string(),
        ledger,
    };
    add(tree, "proc/audit".to_owned(), json::pretty(&json::to_value(&audit)) + "\n", false)
}

/// Writes the tree over an earlier one, once everything in its way is known to be that one's. Gives how many files it has.
fn write(folder: &Path, tree: &Tree) -> Result<usize, Failure> {
    let told = |path: &Path, error: &std::io::Error| Failure::could_not(format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| told(folder, &error))?;
    let folder = folder.canonicalize().map_err(|error| told(folder, &error))?;
    let known = known(&folder)?;
    let mut gone: Vec<PathBuf> = Vec::new();
    for path in tree.keys().chain(known.files.keys().filter(|path| !tree.contains_key(*path))) {
        let whole = folder.join(path);
        plain_parents(&folder, path)?;
        if whole.symlink_metadata().is_err() {
            continue;
        }
        let own = known.files.get(path);
        let same = || regular_file::read(&whole, MAX_FILE).is_ok_and(|bytes| Some(&Digest::of(&bytes)) == own);
        let is_plain = whole.symlink_metadata().is_ok_and(|found| found.is_file());
        if own.is_none() || !is_plain || !same() {
            return Err(Failure::could_not(format!(
                "{} is there already, and no projection wrote it as it is: move it away, or name another folder",
                whole.display()
            )));
        }
        gone.push(whole);
    }
    for path in gone {
        fs::remove_file(&path).map_err(|error| told(&path, &error))?;
    }
    let files = tree.iter().map(|(path, file)| (path.clone(), Digest::of(&file.bytes))).collect();
    let manifest = json::pretty(&json::to_value(&Manifest { version: "1".to_owned(), files })) + "\n";
    let own = File { bytes: manifest.into_bytes(), runs: false };
    // What a projection that is stopped has written is its own at the next.
    let path = folder.join(MANIFEST);
    fs::remove_file(&path)
        .or_else(|error| if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
        .map_err(|error| told(&path, &error))?;
    for (path, file) in std::iter::once((MANIFEST, &own)).chain(tree.iter().map(|(path, file)| (path.as_str(), file))) {
        let whole = folder.join(path);
        let parent = whole.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(|error| told(parent, &error))?;
        let mode = if file.runs { 0o755 } else { 0o644 };
        let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&whole);
        made.and_then(|mut made| made.write_all(&file.bytes)).map_err(|error| told(&whole, &error))?;
    }
    Ok(tree.len())
}

fn known(folder: &Path) -> Result<Manifest, Failure> {
    let path = folder.join(MANIFEST);
    match regular_file::read(&path, MAX_FILE) {
        Ok(bytes) => {
            json::from_slice(&bytes).map_err(|error| Failure::malformed(format!("{}: {error}", path.display())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Manifest::default()),
        Err(error) => Err(Failure::could_not(format!("{}: {error}", path.display()))),
    }
}

/// Refuses a path below the folder that a link, or no folder, stands in the way of.
fn plain_parents(folder: &Path, path: &str) -> Result<(), Failure> {
    let mut step = folder.to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err(Failure::malformed(format!(
            "{}: `{path}` leads out of the folder",
            folder.join(MANIFEST).display()
        )));
    }
    for part in parts.split_last().map_or(&[][..], |(_, parents)| parents) {
        step.push(part);
        match step.symlink_metadata() {
            Ok(found) if !found.is_dir() => {
                return Err(Failure::could_not(format!("{} is no folder of its own", step.display())));
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}
