//! An Agentfile as the policy that governs a session: hooks, MCP, runs (R62).
//!
//! Owns the lowering to [`writ_policy::Policy`]: tools, paths, hosts and limits become that policy's lists, and the Cedar policies are
//! asked beside them from the same facts. Decides nothing by itself. Invariant: what the Agentfile does not declare and permit is
//! denied; what cannot be enforced on a session is listed as that. Page: `spec/agentfile.md`.

mod asked;
mod lowered;

use std::sync::Arc;

use serde::Serialize;
use writ_core::json;
use writ_policy::{Policy, PolicyError, Problem};

use crate::agent::Agent;
use crate::lines::lines;
use crate::lint::{Linted, lint};
use crate::parse::Options;
use crate::placed::Placed;
use crate::reference::ToolRef;
use asked::Cedar;
pub(crate) use lowered::places;
use lowered::{Allowed, Document};

/// What clients' own tools are called in Agentfiles: the canonical name, and the names of tools that mean it.
const TOOLS: [(&str, &[&str]); 9] = [
    ("Bash", &["shell", "bash", "terminal", "exec", "run_command", "execute_command"]),
    ("Read", &["file_read", "read", "read_file"]),
    ("Write", &["file_write", "write", "write_file"]),
    ("Edit", &["file_edit", "edit", "edit_file", "file_write", "write_file", "write"]),
    ("Glob", &["file_search", "glob", "list_files", "file_read", "read_file", "read"]),
    ("Grep", &["file_search", "grep", "search_files", "file_read", "read_file", "read"]),
    ("WebFetch", &["web_fetch", "fetch", "http_request", "http_get"]),
    ("WebSearch", &["web_search"]),
    ("Task", &["use_agent", "task", "agent", "delegate"]),
];

/// Whether bytes are an Agentfile rather than a policy in JSON: its first word is a directive's name.
pub fn is_agentfile(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes.get(..bytes.len().min(1 << 20)).unwrap_or_default()) else { return false };
    let first = lines(text).find_map(|line| line.tokens().into_iter().next());
    first.is_some_and(|word| crate::directive::known(&word.text).is_some())
}

/// The policy that an Agentfile means, or one with its place ([`Placed`]); its relative paths hang off `root`.
pub fn policy(bytes: &[u8], name: &str, root: &str) -> Result<Policy, PolicyError> {
    match Placed::of(bytes) {
        Some(placed) => lowered(bytes, placed.linted(name), root, &placed),
        None => lowered(bytes, lint(bytes, name, &Options::default()), root, &Placed::default()),
    }
}

fn lowered(bytes: &[u8], linted: Linted, root: &str, placed: &Placed) -> Result<Policy, PolicyError> {
    let problems: Vec<Problem> = linted.found.iter().filter(|found| found.is_error()).map(problem).collect();
    if !problems.is_empty() {
        return Err(PolicyError::of(problems));
    }
    let root = root.trim_end_matches('/');
    let document = json::to_compact(&Document::of((&linted.agent, &linted.rules), root, placed));
    let policy = Policy::parse_made(document.as_bytes(), root)?;
    let also = Cedar {
        agent: linted.agent,
        rules: linted.rules,
        root: root.to_owned(),
        run: placed.run,
        calls: placed.calls,
        package: placed.package,
        children: placed.children.clone(),
    };
    Ok(policy.made_from(bytes, Arc::new(also)))
}

fn problem(found: &crate::Diagnostic) -> Problem {
    Problem {
        rule: found.code,
        pointer: String::new(),
        line: found.place.line,
        column: found.place.column,
        span: found.place.span,
        message: found.message.clone(),
        help: found.help.clone(),
    }
}

/// The canonical tools of clients that a declared tool means.
pub fn client_tools(tool: &ToolRef) -> Vec<String> {
    if tool.namespace == "mcp" {
        return vec![format!("mcp__{}", tool.name.replacen('.', "__", 1))];
    }
    let known: Vec<String> = TOOLS
        .iter()
        .filter(|(_, names)| names.contains(&tool.name.as_str()))
        .map(|(tool, _)| (*tool).to_owned())
        .collect();
    if known.is_empty() { vec![tool.name.clone()] } else { known }
}

/// A policy in JSON that extends an Agentfile: both have to allow. It names the Agentfile's tools, so that what both allow is allowed.
pub fn extending(agent: &Agent, name: &str, path: &str, observe: bool) -> String {
    let tools = Allowed { allow: lowered::tools(agent) };
    let enforce = observe.then_some("observe");
    json::pretty(&json::to_value(&Extending { version: "1.0", name, extends: path, enforce, tools })) + "\n"
}

#[derive(Serialize)]
struct Extending<'a> {
    version: &'static str,
    name: &'a str,
    extends: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    enforce: Option<&'static str>,
    tools: Allowed,
}
