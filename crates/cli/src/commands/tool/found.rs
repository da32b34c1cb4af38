//! An Agentfile with its tools as they are here: descriptions, programs, servers, and what the lock says of them.
//!
//! Owns the way from a tool's name to what is called. Decides nothing. Refuses a tool that is not the locked one. Invariant: what is read of
//! a tool is what its lock pins, where there is a lock. Page: `spec/tools.md`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use writ_agentfile::directive::{Base, Directive, Toolset};
use writ_agentfile::lock::{
    self, Lock, LockedTool, Sources, described, description_path, locked_tool, program_path, set_path, set_tools,
};
use writ_agentfile::placed::Placed;
use writ_agentfile::reference::ToolRef;
use writ_agentfile::tool::{Description, How};
use writ_agentfile::{Linted, Resolved, call_name, resolve};
use writ_core::Digest;
use writ_core::json::Value;
use writ_engine::mcp::under::{HeldTo, held_to};
use writ_service::mcp::ask::Server;

use crate::commands::agentfile::{base, usable};
use crate::commands::lock::Here;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// An Agentfile whose tools are called.
pub struct Opened {
    /// The file, absolute.
    pub file: PathBuf,
    /// Its folder.
    pub folder: PathBuf,
    /// It, with the tools of its sets.
    pub linted: Linted,
    /// What calls are held to, but for what else governs.
    pub placed: Placed,
    lock: Option<Lock>,
    here: Here,
}

/// A tool as it is here.
pub struct Tool {
    /// What the Agentfile calls it.
    pub reference: ToolRef,
    /// What calls of it are on record as.
    pub call: String,
    /// What it is.
    pub description: Description,
    /// Its program, where it is one.
    pub program: Option<PathBuf>,
    /// Its server, where it is one's.
    pub server: Option<Server>,
    /// All that its server says of it.
    pub definition: Option<Value>,
}

/// Reads an Agentfile, and its lock where there is one.
pub fn open(file: &Path) -> Result<Opened, Failure> {
    let own = usable(file)?;
    let file = file.canonicalize().map_err(|error| Failure::could_not(format!("{}: {error}", file.display())))?;
    let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let here = Here::at(&folder);
    let lock = base::lock(&file)?;
    if let Some(lock) = &lock {
        let now = Lock { agentfile_hash: own.agent.digest(), policy_hash: own.rules.digest(), ..lock.clone() };
        stale(&lock::differences(lock, &now))?;
    }
    let tools = of_sets(&own, lock.as_ref(), &here, true)?;
    let from = matches!(own.agent.base(), Some(Base::Reference(_)));
    let image = from && base::locked(&file, &own.agent)?.is_empty();
    let placed = Placed { agentfile: own.agent.text, calls: true, image, tools, ..Placed::default() };
    let linted = placed.linted(&file.to_string_lossy());
    if let Some(error) = linted.found.iter().find(|found| found.is_error()) {
        return Err(Failure::malformed(format!("{}:{}: {}", file.display(), error.place.line, error.message)));
    }
    Ok(Opened { file, folder, linted, placed, lock, here })
}

/// The tools that an agent's sets bring, as a call of one finds them; a set whose list is not there brings none.
pub fn brought(own: &Linted, file: &Path) -> Result<Vec<String>, Failure> {
    let is_set = |directive: &Directive| matches!(directive, Directive::Toolset(Toolset::Named(_)));
    if !own.agent.entries.iter().any(|entry| is_set(&entry.directive)) {
        return Ok(Vec::new());
    }
    let Ok(file) = file.canonicalize() else { return Ok(Vec::new()) };
    let here = Here::at(file.parent().unwrap_or(Path::new("/")));
    of_sets(own, base::lock(&file)?.as_ref(), &here, false)
}

/// The tools of an agent's sets that no line declares.
fn of_sets(own: &Linted, lock: Option<&Lock>, here: &Here, must: bool) -> Result<Vec<String>, Failure> {
    let mut out = Vec::new();
    for entry in &own.agent.entries {
        // What a set in a registry brings, its lock does not say: no tool of it is declared.
        let Directive::Toolset(Toolset::Named(set)) = &entry.directive else { continue };
        let path = set_path(set);
        let wrong = |why: &str| Failure::malformed(format!("{path}, for line {}: {why}", entry.line()));
        let bytes = match here.file(&path).map_err(|why| wrong(&why))? {
            Some(bytes) => bytes,
            None if must => return Err(wrong("there is no such list of tools")),
            None => continue,
        };
        if let Some(locked) = lock.and_then(|lock| lock.toolsets.iter().find(|locked| locked.name == set.to_string())) {
            let now = Digest::of(&bytes).to_string();
            if locked.hash.as_deref() != Some(now.as_str()) {
                let was = locked.hash.clone().unwrap_or_default();
                stale(&[format!("toolsets/{set}/hash: {was} → {now}")])?;
            }
        }
        out.extend(set_tools(&bytes).map_err(|why| wrong(&why))?.iter().map(ToString::to_string));
    }
    out.sort();
    out.dedup();
    out.retain(|tool| !own.agent.tools().any(|(_, known)| known.to_string() == *tool));
    Ok(out)
}

/// Refuses what is not as it was locked.
fn stale(differences: &[String]) -> Result<(), Failure> {
    if differences.is_empty() {
        return Ok(());
    }
    output::note(format!("{} agentrc.lock pins something else, so nothing is called:", output::bad("error:")));
    differences.iter().for_each(|line| output::note(format!("  {}", output::plain(line))));
    output::note("  `writ lock` makes it anew, once a human has looked at what changed");
    Err(Failure::No)
}

impl Opened {
    /// The tools that it declares, those of its sets too.
    pub fn declared(&self) -> Vec<ToolRef> {
        let mut out: Vec<ToolRef> = Vec::new();
        for (_, tool) in self.linted.agent.tools() {
            if !out.contains(tool) {
                out.push(tool.clone());
            }
        }
        out
    }

    /// What a name means; nothing where no tool has it.
    pub fn named(&self, name: &str) -> Result<Option<ToolRef>, Failure> {
        let agent = &self.linted.agent;
        match resolve(agent, name) {
            Resolved::Tool(tool) => Ok(Some(tool)),
            Resolved::Ambiguous(tools) => {
                let names: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
                Err(Failure::Usage(format!("`{name}` may be any of {}", names.join(", "))))
            }
            Resolved::Later(_) | Resolved::Unknown => {
                Ok(self.declared().into_iter().find(|tool| call_name(agent, tool) == name))
            }
        }
    }

    /// What calls are held to, in a folder.
    pub fn held_to(&self, cwd: &Path) -> Result<HeldTo, Failure> {
        held_to(&self.file, &self.placed, cwd, &environment::home()).map_err(|error| {
            output::note(format!("{} nothing is called: {error}", output::bad("error:")));
            Failure::No
        })
    }

    /// Where calls are made: where the caller is, if that is in the Agentfile's folder, else there.
    pub fn cwd(&self) -> Result<PathBuf, Failure> {
        let cwd = environment::cwd()?;
        let real = cwd.canonicalize().unwrap_or(cwd);
        Ok(if real.starts_with(&self.folder) { real } else { self.folder.clone() })
    }

    /// A tool as it is here. A server of it is started, or asked, for what it says of the tool.
    pub fn tool(&self, reference: &ToolRef) -> Result<Tool, Failure> {
        let call = call_name(&self.linted.agent, reference);
        let of = |description| Tool {
            reference: reference.clone(),
            call,
            description,
            program: None,
            server: None,
            definition: None,
        };
        if reference.namespace == "mcp" {
            let (server, definition) = self.server(reference)?;
            let found = described(reference.to_string(), &definition, String::new());
            self.is_locked(reference, &found)?;
            let description = Description::of_server(&definition);
            return Ok(Tool { server: Some(server), definition: Some(definition), ..of(description) });
        }
        let failed = |(name, why): (String, String)| Failure::malformed(format!("`{name}`: {why}"));
        self.is_locked(reference, &locked_tool(reference, &self.here).map_err(failed)?)?;
        let path = description_path(reference);
        let bytes = self.here.file(&path).map_err(|why| Failure::malformed(format!("{path}: {why}")))?;
        let description = match bytes {
            Some(bytes) => Description::read(&bytes).map_err(|error| Failure::malformed(format!("{path}: {error}")))?,
            None => Description::program(),
        };
        let program = matches!(description.how, How::Program).then(|| self.program(reference)).transpose()?;
        Ok(Tool { program, ..of(description) })
    }

    /// The program that a tool is.
    fn program(&self, reference: &ToolRef) -> Result<PathBuf, Failure> {
        let path = program_path(reference);
        let known = self.here.inside(&path).map_err(|why| Failure::could_not(format!("{path}: {why}")))?;
        let Some(real) = known.filter(|real| real.is_file()) else {
            let description = description_path(reference);
            return Err(Failure::could_not(format!(
                "nothing here says how `{reference}` is called: neither {description} nor a program {path} is beside the Agentfile"
            )));
        };
        let runs = fs::metadata(&real).is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
        if runs { Ok(real) } else { Err(Failure::could_not(format!("{path} is no program: `chmod +x` makes it one"))) }
    }

    /// The server of a tool, and what it says of it.
    fn server(&self, reference: &ToolRef) -> Result<(Server, Value), Failure> {
        let Some((name, tool)) = reference.name.split_once('.') else {
            return Err(Failure::malformed(format!("`{reference}` names no server: `mcp:<server>.<tool>`")));
        };
        let agent = &self.linted.agent;
        let address =
            agent.servers().find(|(_, (known, _))| *known == name).map(|(_, (_, address))| address.text.as_str());
        let failed = |why: String| Failure::could_not(format!("the MCP server `{name}`: {why}"));
        let unknown = || {
            failed(format!(
                "nothing here says how to reach it: `SERVER {name} <url>`, or the project's own .mcp.json, does"
            ))
        };
        let mut server = self.here.connected(name, address).map_err(failed)?.ok_or_else(unknown)?;
        let listed = server.listed().map_err(failed)?;
        let mut named = listed.tools.into_iter().filter(|one| one.get("name").and_then(Value::as_str) == Some(tool));
        match (named.next(), named.next()) {
            (Some(definition), None) => Ok((server, definition)),
            (None, _) => Err(failed(format!("it has no tool `{tool}`"))),
            (Some(_), Some(_)) => Err(failed(format!("it has several tools `{tool}`"))),
        }
    }

    /// Holds a tool against the lock, where there is one.
    fn is_locked(&self, reference: &ToolRef, now: &LockedTool) -> Result<(), Failure> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let name = reference.to_string();
        let of_servers = lock.mcp.iter().flat_map(|server| &server.tools);
        let locked = lock.tools.iter().chain(of_servers).find(|locked| locked.name == name);
        let only = |tool: Option<&LockedTool>| Lock { tools: tool.cloned().into_iter().collect(), ..lock.clone() };
        // Where it was found is not what it is.
        let now = LockedTool { source: locked.map_or_else(String::new, |locked| locked.source.clone()), ..now.clone() };
        stale(&lock::differences(&only(locked), &only(Some(&now))))
    }
}
