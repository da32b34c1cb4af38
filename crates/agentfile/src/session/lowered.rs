//! An Agentfile's directives as the lists of a policy document.
//!
//! Owns which list each directive becomes, and where its mounts lie on this machine. Decides nothing. Invariant: what only a sandbox can
//! hold is in the document of a run alone ([`Placed::run`]), so that no session says it holds what nothing holds. Page:
//! `spec/agentfile.md`.

use serde::Serialize;

use super::client_tools;
use crate::agent::Agent;
use crate::cedar::Rules;
use crate::cedar::forbidden::Which;
use crate::directive::{Base, BindMode, Directive, Inject, Mode, Source};
use crate::names::call_name;
use crate::placed::{PACKAGE, Placed, Private, START, base_address};
use crate::reference::path_within;

/// The lists of a policy document.
#[derive(Serialize)]
pub(super) struct Document {
    version: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    extends: Option<String>,
    tools: Allowed,
    files: Files,
    domains: Domains,
    #[serde(skip_serializing_if = "Limits::is_empty")]
    limits: Limits,
    #[serde(skip_serializing_if = "Option::is_none")]
    enforce: Option<Enforce>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grants: Option<Grants>,
}

#[derive(Serialize)]
pub(super) struct Allowed {
    pub allow: Vec<String>,
}

#[derive(Serialize)]
struct Domains {
    allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Files {
    allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read_only: Vec<String>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_wall_time_seconds: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tool_calls: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_turns: Option<Limit>,
}

#[derive(Serialize)]
struct Limit {
    value: u64,
    enforcement: &'static str,
}

impl Limits {
    const fn is_empty(&self) -> bool {
        self.max_wall_time_seconds.is_none() && self.max_tool_calls.is_none() && self.max_turns.is_none()
    }
}

/// What a sandbox holds of a run.
#[derive(Serialize)]
struct Enforce {
    calls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Network>,
    #[serde(skip_serializing_if = "Usage::is_empty")]
    limits: Usage,
}

#[derive(Serialize)]
struct Network {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<Port>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    private: Vec<Private>,
}

#[derive(PartialEq, Eq, Serialize)]
struct Port {
    hosts: Vec<String>,
    port: u16,
    protocol: &'static str,
}

#[derive(Default, PartialEq, Eq, Serialize)]
struct Usage {
    #[serde(rename = "wallTimeSeconds", skip_serializing_if = "Option::is_none")]
    wall_time: Option<u64>,
    #[serde(rename = "cpuTimeSeconds", skip_serializing_if = "Option::is_none")]
    cpu_time: Option<u64>,
    #[serde(rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
    #[serde(rename = "processMemoryMiB", skip_serializing_if = "Option::is_none")]
    process_memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<u64>,
    #[serde(rename = "fileSizeMiB", skip_serializing_if = "Option::is_none")]
    file_size: Option<u64>,
    #[serde(rename = "openFiles", skip_serializing_if = "Option::is_none")]
    open_files: Option<u64>,
}

impl Usage {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Serialize)]
struct Grants {
    secrets: Secrets,
}

#[derive(Serialize)]
struct Secrets {
    bind: Vec<Bound>,
}

#[derive(Serialize)]
struct Bound {
    name: String,
    from: String,
    hosts: Vec<String>,
    inject: &'static str,
}

/// The tools of a client that its declared tools mean, beside those that concern the client alone.
pub(super) fn tools(agent: &Agent) -> Vec<String> {
    let mut tools: Vec<String> = writ_core::OWN_TOOLS.iter().map(|tool| (*tool).to_owned()).collect();
    tools.extend(agent.tools().flat_map(|(_, tool)| client_tools(tool)));
    tools.dedup();
    tools
}

/// The smallest of the limits of that name that are no rates.
fn named(agent: &Agent, name: &str) -> Option<u64> {
    let limits = agent.each(|directive| match directive {
        Directive::Limit { name, count, unit: None } => Some((name.as_str(), *count)),
        _ => None,
    });
    limits.filter(|(_, (known, _))| *known == name).map(|(_, (_, count))| count).min()
}

impl Document {
    pub fn of((agent, rules): (&Agent, &Rules), root: &str, placed: &Placed) -> Self {
        // Writ calls a tool by its own name, whatever it does.
        let mut tools = match placed.calls {
            true => agent.tools().map(|(_, tool)| call_name(agent, tool)).collect(),
            false => tools(agent),
        };
        let mut files = Files { allow: Vec::new(), deny: Vec::new(), read_only: Vec::new() };
        let own = placed.package.then(|| (literal(root), Mode::Ro));
        let called = placed.package.then(|| (PACKAGE.to_owned(), Mode::Ro));
        // A program among its tools has to be read to be run.
        let programs = placed.calls.then(|| (format!("{}/tools", literal(root)), Mode::Ro));
        let mounts = places(agent, root).into_iter().flat_map(|place| {
            // In a run the mount's own path leads there.
            let name = (placed.run && place.mount != place.host).then(|| (literal(&place.mount), place.mode));
            std::iter::once((literal(&place.host), place.mode)).chain(name)
        });
        for (folder, mode) in mounts.chain(own).chain(called).chain(programs) {
            let folder = folder.trim_end_matches('/');
            let whole = if folder.is_empty() { "/" } else { folder };
            for pattern in [whole.to_owned(), format!("{folder}/**")] {
                if mode == Mode::Ro {
                    files.read_only.push(pattern.clone());
                }
                files.allow.push(pattern);
            }
        }
        // What a policy forbids of a folder, it forbids of whatever walks over it, and a sandbox holds it.
        let children = placed.children.iter().map(String::as_str);
        let names: Vec<&str> = children.chain([agent.name_or_default()]).collect();
        let forbidden = rules.forbidden(&names);
        files.deny = forbidden.read.iter().flat_map(|which| patterns(agent, root, which)).collect();
        files.read_only.extend(forbidden.written.iter().flat_map(|which| patterns(agent, root, which)));
        let mut hosts: Vec<String> = agent.destinations().map(|(_, to)| to.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        let limit = |value| Some(Limit { value, enforcement: "fail-fast" });
        let limits = Limits {
            // A run is ended when its time is up, and so is each call.
            max_wall_time_seconds: agent.timeout().filter(|_| !placed.run && !placed.calls).and_then(limit),
            max_tool_calls: named(agent, "tool_calls").and_then(limit),
            max_turns: named(agent, "turns").and_then(limit),
        };
        let base = agent.base().and_then(|base| match base {
            Base::Reference(reference) if !placed.image => Some(base_address(reference)),
            Base::Scratch | Base::Reference(_) => None,
        });
        let held = placed.run || placed.calls && is_isolated(agent);
        if placed.run {
            tools.push(START.to_owned());
        }
        Self {
            version: "1.0",
            name: agent.name_or_default().to_owned(),
            extends: base.or_else(|| placed.beside.clone()),
            tools: Allowed { allow: tools },
            files,
            domains: Domains { deny: hosts_of(&forbidden.hosts, &hosts), allow: hosts },
            limits,
            enforce: held.then(|| enforce(agent, placed)),
            grants: held.then(|| grants(agent)).flatten(),
        }
    }
}

/// Patterns of files for what a policy calls a path: where it lies on this machine, and where the agent sees it.
fn patterns(agent: &Agent, root: &str, which: &Which) -> Vec<String> {
    let places = places(agent, root);
    let (mut folders, within): (Vec<String>, bool) = match which {
        Which::All => (places.iter().flat_map(|place| [place.host.clone(), place.mount.clone()]).collect(), true),
        Which::One(path) | Which::Within(path) => {
            let here = places.iter().filter_map(|place| match path.strip_prefix(place.mount.trim_end_matches('/')) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    Some(format!("{}{rest}", place.host.trim_end_matches('/')))
                }
                // A mount that lies in it.
                _ if path_within(&place.mount, path) => Some(place.host.clone()),
                _ => None,
            });
            (here.chain([path.clone()]).collect(), matches!(which, Which::Within(_)))
        }
    };
    folders.sort();
    folders.dedup();
    folders
        .iter()
        .flat_map(|folder| {
            let folder = literal(folder.trim_end_matches('/'));
            let own = (!folder.is_empty()).then(|| folder.clone());
            own.into_iter().chain(within.then(|| format!("{folder}/**")))
        })
        .collect()
}

/// Patterns of hosts for what policies call hosts; all of them are those that are declared.
fn hosts_of(forbidden: &[Which], declared: &[String]) -> Vec<String> {
    let one = |which: &Which| match which {
        Which::All => declared.to_vec(),
        Which::One(host) | Which::Within(host) => vec![host.clone()],
    };
    let mut out: Vec<String> = forbidden.iter().flat_map(one).collect();
    out.sort();
    out.dedup();
    out
}

/// Whether it asks for this machine's own isolation.
pub(super) fn is_isolated(agent: &Agent) -> bool {
    agent.entries.iter().any(|entry| matches!(&entry.directive, Directive::Isolation(word) if word == "local"))
}

fn enforce(agent: &Agent, placed: &Placed) -> Enforce {
    let mut ports: Vec<Port> = Vec::new();
    for (_, to) in agent.destinations().filter(|(_, to)| ![80, 443].contains(&to.port)) {
        let protocol = if to.scheme == "https" { "tls" } else { "http" };
        let port = Port { hosts: vec![to.host.clone()], port: to.port, protocol };
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    let slice = agent.each(|directive| match directive {
        Directive::Slice(pairs) => pairs.iter().find(|(key, _)| key == "mem").map(|(_, value)| value.parse().ok()),
        _ => None,
    });
    let slice = slice.filter_map(|(_, memory)| memory).min();
    let private = placed.private.clone();
    Enforce {
        calls: true,
        network: (!ports.is_empty() || !private.is_empty()).then_some(Network { ports, private }),
        limits: Usage {
            wall_time: agent.timeout(),
            cpu_time: named(agent, "cpu_time"),
            memory: named(agent, "memory").into_iter().chain(slice).min(),
            process_memory: named(agent, "process_memory"),
            processes: named(agent, "processes"),
            file_size: named(agent, "file_size"),
            open_files: named(agent, "open_files"),
        },
    }
}

fn grants(agent: &Agent) -> Option<Grants> {
    let bind: Vec<Bound> = agent
        .creds()
        .filter_map(|(_, cred)| {
            let from = match &cred.source {
                Source::Env { variable } => format!("env:{variable}"),
                Source::Vault { .. } => format!("env:{}", crate::placed::vault_variable(&cred.name)),
                // Nothing of a run asks a keyring: it does not begin.
                Source::Keyring { .. } => return None,
            };
            let inject = if cred.inject == Inject::Query { "query" } else { "header" };
            Some(Bound { name: cred.name.clone(), from, hosts: cred.hosts.clone(), inject })
        })
        .collect();
    (!bind.is_empty()).then_some(Grants { secrets: Secrets { bind } })
}

/// A path as a pattern that matches nothing else.
fn literal(path: &str) -> String {
    path.chars().flat_map(|c| ["*?[]{}!\\".contains(c).then_some('\\'), Some(c)]).flatten().collect()
}

/// A mount, and where it lies on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// What the agent calls it.
    pub mount: String,
    /// Where it is here, absolute: what `BIND` says, else the same path.
    pub host: String,
    /// Whether it may be written.
    pub mode: Mode,
    /// Whether what is written goes to a copy.
    pub copied: bool,
}

/// Where an agent's mounts lie; relative sources hang off `root`.
pub(crate) fn places(agent: &Agent, root: &str) -> Vec<Place> {
    let binds = || {
        agent.each(|directive| match directive {
            Directive::Bind { source, target, mode } => Some((source, target, mode.unwrap_or(BindMode::Copy))),
            _ => None,
        })
    };
    let mut out = Vec::new();
    for (_, (mount, mode)) in agent.mounts() {
        let bound = binds().map(|(_, bind)| bind).find(|(_, target, _)| target.as_str() == mount);
        let (host, mode, copied) = match bound {
            Some((source, _, BindMode::Ro)) => (from(root, source), Mode::Ro, false),
            Some((source, _, bind)) => (from(root, source), mode, bind == BindMode::Copy && mode == Mode::Rw),
            None => (mount.to_owned(), mode, false),
        };
        out.push(Place { mount: mount.to_owned(), host, mode, copied });
    }
    // What is built on this one may see a part of a mount alone.
    for (_, (source, target, bind)) in binds() {
        let around = agent.mounts().map(|(_, mount)| mount).filter(|(mount, _)| path_within(target, mount));
        let Some((mount, mode)) = around.max_by_key(|(mount, _)| mount.len()) else { continue };
        if mount != target {
            let mode = if bind == BindMode::Ro { Mode::Ro } else { mode };
            out.push(Place { mount: target.clone(), host: from(root, source), mode, copied: false });
        }
    }
    out
}

/// A path from a folder, without `.` and `..`.
fn from(root: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{root}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}
