//! An Agentfile as the policy that governs a session: hooks, MCP, runs (R62).
//!
//! Owns the lowering to [`writ_policy::Policy`]: tools, paths, hosts and limits become that policy's lists, and the Cedar policies are
//! asked beside them from the same facts. Decides nothing by itself. Invariant: what the Agentfile does not declare and permit is
//! denied; what cannot be enforced on a session is listed as that. Page: `spec/agentfile.md`.

use std::sync::Arc;

use serde::Serialize;
use writ_core::json;
use writ_core::{Matched, Reason, Subject, Verdict};
use writ_policy::{Also, Asked, Policy, PolicyError, Problem};

use crate::agent::Agent;
use crate::cedar::{Decided, Request, Rules, known_action};
use crate::directive::{BindMode, Directive, Mode, Unit};
use crate::lines::lines;
use crate::lint::lint;
use crate::names::tool_name;
use crate::parse::Options;
use crate::reference::ToolRef;

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

/// The policy that an Agentfile means; its relative paths hang off `root`.
pub fn policy(bytes: &[u8], name: &str, root: &str) -> Result<Policy, PolicyError> {
    let linted = lint(bytes, name, &Options::default());
    let problems: Vec<Problem> = linted.found.iter().filter(|found| found.is_error()).map(problem).collect();
    if !problems.is_empty() {
        return Err(PolicyError::of(problems));
    }
    let document = json::to_compact(&Document::of(&linted.agent));
    let policy = Policy::parse(document.as_bytes(), root)?;
    let also = Cedar { agent: linted.agent, rules: linted.rules, root: root.trim_end_matches('/').to_owned() };
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
    let tools = Document::of(agent).tools;
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

/// The lists of a policy document.
#[derive(Serialize)]
struct Document {
    version: &'static str,
    name: String,
    tools: Allowed,
    files: Files,
    domains: Allowed,
    #[serde(skip_serializing_if = "Limits::is_empty")]
    limits: Limits,
}

#[derive(Serialize)]
struct Allowed {
    allow: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Files {
    allow: Vec<String>,
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

impl Document {
    fn of(agent: &Agent) -> Self {
        let mut tools: Vec<String> = writ_core::OWN_TOOLS.iter().map(|tool| (*tool).to_owned()).collect();
        tools.extend(agent.tools().flat_map(|(_, tool)| client_tools(tool)));
        tools.dedup();
        let mut files = Files { allow: Vec::new(), read_only: Vec::new() };
        for place in places(agent) {
            for pattern in patterns(&place.host) {
                if place.mode == Mode::Ro {
                    files.read_only.push(pattern.clone());
                }
                files.allow.push(pattern);
            }
        }
        let mut hosts: Vec<String> = agent.destinations().map(|(_, to)| to.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        let limit = |value| Some(Limit { value, enforcement: "fail-fast" });
        let named = |name: &str| {
            let limits = agent.each(|directive| match directive {
                Directive::Limit { name, count, unit: None } => Some((name.as_str(), *count)),
                _ => None,
            });
            limits.filter(|(_, (known, _))| *known == name).map(|(_, (_, count))| count).min()
        };
        let limits = Limits {
            max_wall_time_seconds: agent.timeout().and_then(limit),
            max_tool_calls: named("tool_calls").and_then(limit),
            max_turns: named("turns").and_then(limit),
        };
        let name = agent.name_or_default().to_owned();
        Self { version: "1.0", name, tools: Allowed { allow: tools }, files, domains: Allowed { allow: hosts }, limits }
    }
}

/// A folder as patterns: itself and everything below it. The policy's own folder is named by what is in it alone.
fn patterns(folder: &str) -> Vec<String> {
    match folder.trim_end_matches('/') {
        "" if folder.is_empty() => vec!["**".to_owned()],
        folder => vec![if folder.is_empty() { "/".to_owned() } else { folder.to_owned() }, format!("{folder}/**")],
    }
}

/// A mount, and where it lies on this machine.
struct Place<'a> {
    /// What the agent calls it.
    mount: &'a str,
    /// Where it is here, as a pattern: what `BIND` says, else the same path. Empty for the policy's own folder.
    host: String,
    mode: Mode,
}

fn places(agent: &Agent) -> Vec<Place<'_>> {
    let binds = || {
        agent.each(|directive| match directive {
            Directive::Bind { source, target, mode } => Some((source, target, *mode)),
            _ => None,
        })
    };
    let place = |(path, mode): (&'_ str, Mode)| {
        let bound = binds().map(|(_, bind)| bind).find(|(_, target, _)| target.as_str() == path);
        let (source, mode) = match bound {
            Some((source, _, Some(BindMode::Ro))) => (source.as_str(), Mode::Ro),
            Some((source, _, _)) => (source.as_str(), mode),
            None => (path, mode),
        };
        let plain: String =
            source.chars().flat_map(|c| ["*?[]{}!\\".contains(c).then_some('\\'), Some(c)]).flatten().collect();
        (if plain == "." { String::new() } else { plain }, mode)
    };
    agent
        .mounts()
        .map(|(_, (mount, mode))| (mount, place((mount, mode))))
        .map(|(mount, (host, mode))| Place { mount, host, mode })
        .collect()
}

/// The Cedar policies, asked from a call's facts.
#[derive(Debug)]
struct Cedar {
    agent: Agent,
    rules: Rules,
    /// The folder that relative paths hang off.
    root: String,
}

impl Also for Cedar {
    fn objections(&self, asked: &Asked<'_>) -> Vec<Reason> {
        let mut reasons = Vec::new();
        self.tool(asked, &mut reasons);
        for host in asked.hosts.iter().flatten() {
            self.ask("network.egress", host, Subject::Host, &[("host", host)], &mut reasons);
        }
        for (path, writes) in &asked.paths {
            self.path(path, *writes, &mut reasons);
        }
        reasons
    }

    fn not_enforced(&self) -> Vec<String> {
        let idle = |directive: &Directive| match directive {
            Directive::RateLimit { .. }
            | Directive::Cred(_)
            | Directive::Memory { .. }
            | Directive::Optimizer(_)
            | Directive::Healthcheck { .. }
            | Directive::Trace(_)
            | Directive::Limit { unit: Some(Unit::Sec | Unit::Min | Unit::Hour | Unit::Day), .. } => Some(()),
            Directive::Limit { name, .. } if name != "tool_calls" && name != "turns" => Some(()),
            _ => None,
        };
        self.agent
            .each(idle)
            .map(|(entry, ())| format!("/Agentfile/{} ({})", entry.line(), entry.keyword.text))
            .collect()
    }
}

impl Cedar {
    /// The tool: one of the declared tools that mean it has to be permitted, for every path and host of the call.
    fn tool(&self, asked: &Asked<'_>, reasons: &mut Vec<Reason>) {
        if writ_core::OWN_TOOLS.contains(&asked.known_as) {
            return;
        }
        let means = |tool: &ToolRef| client_tools(tool).iter().any(|name| name == asked.known_as || name == asked.tool);
        let declared: Vec<&ToolRef> = self.agent.tools().map(|(_, tool)| tool).filter(|tool| means(tool)).collect();
        // Undeclared: the list of tools refuses it.
        let mut refused: Option<Decided> = None;
        for tool in &declared {
            let name = tool_name(&self.agent, tool);
            let worst = self
                .contexts(asked)
                .into_iter()
                .map(|context| self.decide("tool.invoke", &name, &context))
                .find(|decided| !decided.is_allowed());
            match worst {
                None => return,
                Some(decided) => refused = refused.or(Some(decided)),
            }
        }
        reasons.extend(refused.map(|decided| self.reason(&decided, Subject::Tool, asked.tool)));
    }

    /// What is known of the call: a context for each path and each host, one where there are none. What is not known is left out, so
    /// that a policy that asks for it errs, which denies.
    fn contexts(&self, asked: &Asked<'_>) -> Vec<Vec<(&'static str, String)>> {
        let known = !asked.unresolved;
        let mut out: Vec<Vec<(&'static str, String)>> = Vec::new();
        let hosts: Vec<Option<&str>> =
            if asked.hosts.is_empty() { vec![known.then_some("")] } else { asked.hosts.clone() };
        let paths: Vec<(Option<String>, &str)> = if asked.paths.is_empty() {
            vec![(known.then(String::new), "")]
        } else {
            asked
                .paths
                .iter()
                .map(|(path, writes)| (Some(self.mounted(path)), if *writes { "write" } else { "read" }))
                .collect()
        };
        for host in &hosts {
            for (path, mode) in &paths {
                let mut context = vec![("mode", (*mode).to_owned()), ("caller", String::new())];
                context.extend(path.clone().map(|path| ("path", path)));
                context.extend(host.map(|host| ("host", host.to_owned())));
                out.push(context);
            }
        }
        out
    }

    /// A path of this machine as the agent calls it.
    fn mounted(&self, path: &str) -> String {
        let places = places(&self.agent);
        let under = places.iter().find_map(|place| {
            let host = place.host.replace('\\', "");
            let relative = host.trim_start_matches("./");
            let host = if host.starts_with('/') { host } else { format!("{}/{relative}", self.root) };
            let rest = path
                .strip_prefix(host.trim_end_matches('/'))
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
            Some(format!("{}{rest}", place.mount))
        });
        under.unwrap_or_else(|| path.to_owned())
    }

    /// What policies forbid of a path; which paths are declared, the lists of files say.
    fn path(&self, path: &str, writes: bool, reasons: &mut Vec<Reason>) {
        let (name, mode) = if writes { ("filesystem.write", "write") } else { ("filesystem.read", "read") };
        let mounted = self.mounted(path);
        let context = [("path", mounted.clone()), ("mode", mode.to_owned()), ("caller", String::new())];
        let Some(request) = request(name, &mounted, &context) else { return };
        let decided = self.rules.ask(self.agent.name_or_default(), &request);
        if !decided.errors.is_empty() || decided.rules.iter().any(|said| said.effect == "forbid") {
            reasons.push(self.reason(&decided, Subject::Path, path));
        }
    }

    fn ask(
        &self,
        action: &str,
        resource: &str,
        subject: Subject,
        context: &[(&'static str, &str)],
        reasons: &mut Vec<Reason>,
    ) {
        let context: Vec<(&'static str, String)> =
            context.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let decided = self.decide(action, resource, &context);
        if !decided.is_allowed() {
            reasons.push(self.reason(&decided, subject, resource));
        }
    }

    fn decide(&self, action: &str, resource: &str, context: &[(&'static str, String)]) -> Decided {
        let asked = request(action, resource, context);
        asked.map_or_else(|| Decided::refused("no such action"), |request| self.rules.decide(&self.agent, &request))
    }

    fn reason(&self, decided: &Decided, subject: Subject, text: &str) -> Reason {
        let matched = Matched { subject, text: text.to_owned(), span: None };
        let forbids = decided.rules.iter().find(|said| said.effect == "forbid");
        let (rule, message) = match forbids {
            Some(said) => (
                format!("/Agentfile/{}", said.line),
                format!("`{text}` is forbidden on line {} of the Agentfile", said.line),
            ),
            None => ("/Agentfile".to_owned(), decided.reasons.first().cloned().unwrap_or_default()),
        };
        let instead = format!("a policy in {} that permits it", self.agent.file);
        Reason { verdict: Verdict::Deny, rule, matched, message, instead }
    }
}

fn request(action: &str, resource: &str, context: &[(&'static str, String)]) -> Option<Request> {
    let action = known_action(action)?;
    let mut request = Request::new(action, resource);
    for (name, value) in context.iter().filter(|(name, _)| action.context.iter().any(|(member, _)| member == name)) {
        request.context.push(*name, json::Value::from(value.as_str()));
    }
    Some(request)
}
