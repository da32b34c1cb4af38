//! `writ lock`: what an Agentfile's references lead to, by digest.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use writ_agentfile::lock::{self, Found, Lock, Shown, Sources};
use writ_agentfile::reference::OciRef;
use writ_clients::CLIENTS;
use writ_core::json::Value;
use writ_core::{Digest, Reason, ToolCall, Verdict, regular_file};
use writ_engine::governing::layers::Caller;
use writ_engine::governing::{self, Trust};
use writ_engine::verify::package::chain;
use writ_service::{Policies, mcp::ask};

use super::agentfile;
use super::decide::decide;
use super::leaks::leaks;
use super::package::build::Pulled;
use crate::args::{LockArgs, RegistryArgs};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Largest file of a bundle, and of the lock.
const MAX_FILE: u64 = 64 << 20;
/// Most files of a bundle, and deepest folder.
const MAX_FILES: usize = 20_000;
const MAX_DEPTH: usize = 32;
/// What a package's manifest says it is.
const PACKAGE: &str = "application/vnd.agentrc.agent";

/// Makes the lock, or says in what it is stale.
pub fn run(args: &LockArgs) -> Result<(), Failure> {
    let linted = agentfile::usable(&args.file)?;
    let file = std::path::absolute(&args.file)?;
    let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let path = args.output.clone().unwrap_or_else(|| folder.join("agentrc.lock"));
    let known = read(&path)?;
    let sources = Here::at(&folder);
    let fresh = lock::resolve(&linted.agent, &linted.rules, &sources).map_err(|found| {
        for found in found {
            let place = found.place;
            output::note(format!(
                "{} {}:{}:{}: {}",
                output::bad("error:"),
                args.file.display(),
                place.line,
                place.column,
                output::plain(&found.message)
            ));
        }
        Failure::Said(1)
    })?;
    let wanted = match &known {
        Some(known) if !args.update.is_empty() => {
            let named = |name: &String| fresh.names().any(|known| known == name) || name == "base";
            if let Some(other) = args.update.iter().find(|name| !named(name)) {
                return Err(Failure::Usage(format!(
                    "`{other}` is none of the references: {}",
                    fresh.names().collect::<Vec<_>>().join(", ")
                )));
            }
            fresh.keeping(known, &args.update)
        }
        _ => fresh,
    };
    if !args.check && wanted.base_image.as_ref().is_some_and(|base| base.package) {
        // Sessions and runs ask no registry for a ceiling.
        chain(&wanted, &Pulled(&RegistryArgs::usual())).map_err(Failure::could_not)?;
    }
    if let Some(what) = leaks(&wanted, &linted.agent) {
        return Err(Failure::could_not(format!("{}: {what}, and a lock holds none", path.display())));
    }
    let shown = output::path(&path);
    let differences = match &known {
        Some(known) => lock::differences(known, &wanted),
        None => vec!["there is none yet".to_owned()],
    };
    if differences.is_empty() {
        output::line(format!("{} {shown} is as it has to be", output::good("✓")));
        return Ok(());
    }
    if known.is_some() || args.check {
        differences.iter().for_each(|line| output::line(output::plain(line)));
    }
    if args.check {
        output::line(format!("{} {shown} is stale: `writ lock` makes it anew", output::bad("✗")));
        return Err(Failure::No);
    }
    fs::write(&path, wanted.to_bytes()).map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
    output::line(format!("{} wrote {shown}  {}", output::good("✓"), wanted.digest()));
    Ok(())
}

fn read(path: &Path) -> Result<Option<Lock>, Failure> {
    match regular_file::read(path, MAX_FILE) {
        Ok(bytes) => {
            Lock::parse(&bytes).map(Some).map_err(|error| Failure::malformed(format!("{}: {error}", path.display())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::could_not(format!("{}: {error}", path.display()))),
    }
}

/// This machine and the network.
pub struct Here {
    folder: PathBuf,
    network: Policies,
}

impl Here {
    /// What an Agentfile in this folder refers to.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), network: Policies::default() }
    }

    /// A path below the folder, with no link that leads out of it.
    pub fn inside(&self, path: &str) -> Result<Option<PathBuf>, String> {
        let whole = self.folder.join(path);
        let real = match whole.canonicalize() {
            Ok(real) => real,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error.to_string()),
        };
        let folder = self.folder.canonicalize().map_err(|error| error.to_string())?;
        if real.starts_with(&folder) {
            Ok(Some(real))
        } else {
            Err("it leads out of the Agentfile's folder".to_owned())
        }
    }
}

impl Sources for Here {
    fn file(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        match self.inside(path)? {
            Some(real) if real.is_file() => {
                regular_file::read(&real, MAX_FILE).map(Some).map_err(|error| error.to_string())
            }
            _ => Ok(None),
        }
    }

    fn tree(&self, path: &str) -> Result<Option<BTreeMap<String, Digest>>, String> {
        let Some(real) = self.inside(path)?.filter(|real| real.is_dir()) else { return Ok(None) };
        let mut out = BTreeMap::new();
        walk(&real, "", 0, &mut out)?;
        Ok(Some(out))
    }

    fn registry(&self, reference: &OciRef) -> Result<Found, String> {
        let (host, repository) = match &reference.registry {
            Some(host) => (host.as_str(), reference.repository.clone()),
            None if reference.repository.contains('/') => ("registry-1.docker.io", reference.repository.clone()),
            None => ("registry-1.docker.io", format!("library/{}", reference.repository)),
        };
        let name = reference.digest.as_deref().or(reference.tag.as_deref()).unwrap_or("latest");
        let (digest, kind) = self.network.manifest(host, &repository, name)?;
        Ok(Found { digest: digest.to_string(), package: kind.is_some_and(|kind| kind.starts_with(PACKAGE)) })
    }

    fn server(&self, name: &str, address: Option<&str>) -> Result<Option<Shown>, String> {
        let Some(mut server) = self.connected(name, address)? else { return Ok(None) };
        let listed = server.listed()?;
        Ok(Some(Shown { version: listed.version, tools: listed.tools }))
    }
}

impl Here {
    /// An MCP server: at its address, else as the project starts it; `None` where nothing here says how.
    pub fn connected(&self, name: &str, address: Option<&str>) -> Result<Option<ask::Server>, String> {
        match (address, self.defined(name)) {
            (Some(address), _) => ask::Server::at(address).map(Some),
            (None, Some((command, args))) => {
                self.may_start(&command, &args)?;
                ask::Server::start(&command, &args, &self.folder).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// Refuses a start that the policy over the folder denies as the shell line that it is. What it would ask a human about starts, for whoever
    /// runs the command wants it; and a list of tools that may be called names no servers.
    fn may_start(&self, command: &str, args: &[String]) -> Result<(), String> {
        let Some(path) = governing::find(&self.folder) else { return Ok(()) };
        let governing = governing::open(&path, None, &Trust::open(environment::home().state.as_deref()));
        let governing = governing.map_err(|error| error.to_string())?;
        let words: Vec<String> =
            std::iter::once(command).chain(args.iter().map(String::as_str)).map(output::quoted).collect();
        let line = words.join(" ");
        let input = [("command".to_owned(), Value::from(line.as_str()))].into_iter().collect();
        let call = ToolCall::new("Bash", Value::Object(input), self.folder.to_string_lossy());
        let decision = decide(&governing, &call, Caller::Main);
        let denies = |reason: &&Reason| reason.verdict == Verdict::Deny && reason.rule != "/tools/allow";
        match decision.reasons.iter().find(denies) {
            Some(Reason { rule, message, .. }) => {
                Err(format!("{rule} of {} denies `{line}`: {message}", path.display()))
            }
            None => Ok(()),
        }
    }

    /// The program behind a server's name, as the project's own files of a client define it.
    fn defined(&self, name: &str) -> Option<(String, Vec<String>)> {
        let home = environment::home().user?;
        let files = CLIENTS.iter().filter_map(|client| client.servers());
        let own = files
            .flat_map(|servers| servers.files(&self.folder, &home, None).into_iter().map(move |file| (servers, file)));
        own.filter(|(_, file)| file.starts_with(&self.folder)).find_map(|(servers, file)| {
            let text = fs::read_to_string(file).ok()?;
            let server = servers.defined(&text, name).ok()?.into_iter().next()?;
            Some((server.command?, server.args))
        })
    }
}

fn walk(folder: &Path, below: &str, depth: usize, out: &mut BTreeMap<String, Digest>) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("folders nest deeper than {MAX_DEPTH}"));
    }
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry
            .file_name()
            .into_string()
            .map_err(|name| format!("{}: a name that is not UTF-8", name.to_string_lossy()))?;
        if lock::is_left_out(&name) {
            continue;
        }
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = entry.file_type().map_err(|error| error.to_string())?;
        if kind.is_symlink() {
            return Err(format!("`{path}` is a link: a bundle holds files alone"));
        }
        if kind.is_dir() {
            walk(&entry.path(), &path, depth + 1, out)?;
        } else {
            let bytes = regular_file::read(&entry.path(), MAX_FILE).map_err(|error| format!("{path}: {error}"))?;
            out.insert(path, Digest::of(&bytes));
        }
        if out.len() > MAX_FILES {
            return Err(format!("more than {MAX_FILES} files"));
        }
    }
    Ok(())
}
