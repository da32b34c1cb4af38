//! What a tool and its arguments come to, for the gate: a shell line, a request, a server's tool.
//!
//! Owns the call that is decided. Runs and sends nothing. Invariant: what is decided holds everything that is run or sent, but for the values of
//! secrets. Page: `spec/tools.md`.

use std::path::Path;

use serde::Serialize;
use writ_agentfile::directive::{Cred, Source};
use writ_agentfile::placed::Placed;
use writ_agentfile::reference::ToolRef;
use writ_agentfile::tool::{Description, How, Malformed, Request};
use writ_agentfile::{Agent, Resolved, call_name, resolve};
use writ_core::json::{self, Object, Value};
use writ_core::{Timestamp, ToolCall, ToolKind, Verdict};
use writ_policy::{Lexical, Setting, decide};

use crate::output::quoted;

/// Whose call it is, and where.
pub struct Named<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// What calls of the tool are on record as.
    pub call: &'a str,
    /// Its program, where it is one.
    pub program: Option<&'a Path>,
    /// The folder.
    pub cwd: &'a Path,
}

/// What a call comes to.
pub enum Composed {
    /// A line is run, with something on its standard input.
    Line { call: ToolCall, input: Vec<u8> },
    /// A request is sent.
    Request { call: ToolCall, request: Request },
    /// A server is asked.
    OfServer,
}

/// What a tool comes to with arguments that fit it.
pub fn compose(named: &Named<'_>, tool: &Description, arguments: &Object) -> Result<Composed, Malformed> {
    match &tool.how {
        How::Cli(cli) => Ok(Composed::Line { call: shell(named, &cli.line(arguments)?, None), input: Vec::new() }),
        How::Program => {
            let program = named.program.unwrap_or(Path::new("")).to_string_lossy();
            let line = quoted(&program);
            let input = json::compact(&Value::Object(arguments.clone())) + "\n";
            Ok(Composed::Line { call: shell(named, &line, Some(arguments.clone())), input: input.into_bytes() })
        }
        How::Http(http) => {
            let request = http.request(arguments)?;
            Ok(Composed::Request { call: fetch(named, &request, arguments.clone()), request })
        }
        How::Server => Ok(Composed::OfServer),
    }
}

/// A call of a name that no tool has.
pub fn unknown(name: &str, cwd: &Path) -> ToolCall {
    let input = Value::Object(Object::new());
    ToolCall::of(name, ToolKind::Other, input, cwd.to_string_lossy())
}

/// A call that runs a line.
fn shell(named: &Named<'_>, line: &str, arguments: Option<Object>) -> ToolCall {
    let mut input = Object::new();
    input.push("command", Value::from(line));
    if let Some(arguments) = arguments {
        input.push("arguments", Value::Object(arguments));
    }
    named.call(ToolKind::Shell { command: line.to_owned() }, input)
}

/// A secret as the gate is asked about it.
#[derive(Serialize)]
struct PutIn<'a> {
    name: &'a str,
    host: &'a str,
    inject: &'a str,
}

/// A call that sends a request.
fn fetch(named: &Named<'_>, request: &Request, arguments: Object) -> ToolCall {
    let host = request.host.as_str();
    let put = |(variable, inject): (&str, &'static str)| {
        // One that no line declares is asked about by its own name, and refused.
        let name = cred(named.agent, variable).map_or(variable, |cred| cred.name.as_str());
        json::to_value(&PutIn { name, host, inject })
    };
    let credentials = Value::Array(request.variables().into_iter().map(put).collect());
    let members = [
        ("url", Value::from(request.url.as_str())),
        ("method", Value::from(request.method.as_str())),
        ("arguments", Value::Object(arguments)),
        ("credentials", credentials),
    ];
    let input = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Object>();
    named.call(ToolKind::Fetch { url: request.url.clone() }, input)
}

/// The secret that a description's variable means: by its name, or by the variable that it comes from.
pub fn cred<'a>(agent: &'a Agent, variable: &str) -> Option<&'a Cred> {
    let from = |cred: &Cred| matches!(&cred.source, Source::Env { variable: own } if own == variable);
    let named = agent.creds().map(|(_, cred)| cred).find(|cred| cred.name == variable);
    named.or_else(|| agent.creds().map(|(_, cred)| cred).find(|cred| from(cred)))
}

impl Named<'_> {
    fn call(&self, kind: ToolKind, input: Object) -> ToolCall {
        let cwd = self.cwd.to_string_lossy().into_owned();
        ToolCall::of(self.call, kind, Value::Object(input), cwd)
    }
}

/// What a call comes to without anything being run, sent or recorded: for conformance.
#[derive(Default)]
pub struct Offline {
    /// `allowed`, `denied` or `malformed`.
    pub result: &'static str,
    /// Where it is malformed.
    pub pointer: Option<String>,
    /// The line that would be run.
    pub command: Option<String>,
    /// The address that would be asked.
    pub url: Option<String>,
    /// The Agentfile's line that denied it.
    pub line: Option<usize>,
}

/// Decides a call by the Agentfile alone; an error where that is none.
pub fn offline(agentfile: &str, name: &str, description: &Value, arguments: &Object) -> Result<Offline, String> {
    const ROOT: &str = "/agent";
    let malformed = |pointer: String| Offline { result: "malformed", pointer: Some(pointer), ..Offline::default() };
    let placed = Placed { agentfile: agentfile.to_owned(), calls: true, ..Placed::default() };
    let policy = writ_agentfile::policy(&placed.to_bytes(), "Agentfile", ROOT).map_err(|error| error.to_string())?;
    let tool = match Description::of(description) {
        Ok(tool) => tool,
        Err(error) => return Ok(malformed(error.pointer)),
    };
    let arguments = match tool.arguments(arguments) {
        Ok(arguments) => arguments,
        Err(wrong) => return Ok(malformed(wrong.into_iter().next().map(|one| one.pointer).unwrap_or_default())),
    };
    let agent = placed.agent("Agentfile");
    let reference = match resolve(&agent, name) {
        Resolved::Tool(tool) => Some(tool),
        Resolved::Later(_) | Resolved::Ambiguous(_) | Resolved::Unknown => None,
    };
    let called = reference.as_ref().map(|tool: &ToolRef| call_name(&agent, tool));
    let named = Named { agent: &agent, call: called.as_deref().unwrap_or(name), program: None, cwd: Path::new(ROOT) };
    let composed = match compose(&named, &tool, &arguments) {
        Ok(composed) => composed,
        Err(error) => return Ok(malformed(error.pointer)),
    };
    let (call, command, url) = match composed {
        _ if called.is_none() => (unknown(name, Path::new(ROOT)), None, None),
        Composed::Line { call, .. } => {
            let line = call.text("command").map(str::to_owned);
            (call, line, None)
        }
        Composed::Request { call, request } => (call, None, Some(request.url)),
        Composed::OfServer => return Err("what a server says of its tool is no description".to_owned()),
    };
    let setting = Setting { now: Timestamp::from_millis(0), home: None, protected: Vec::new() };
    let decision = decide(&policy, &call, &setting, &Lexical);
    let denying = decision.reasons.iter().filter(|reason| reason.verdict > Verdict::Allow);
    let line = denying.filter_map(|reason| reason.rule.strip_prefix("/Agentfile/")?.parse().ok()).next();
    let result = if decision.verdict == Verdict::Allow { "allowed" } else { "denied" };
    Ok(Offline { result, line, command, url, ..Offline::default() })
}
