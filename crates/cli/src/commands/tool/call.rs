//! `writ tool call`: one call, decided, made, and on record.
//!
//! Owns the way from a command line to a call and from its result to an exit code. Decides nothing. Refuses arguments that do not fit before
//! any policy is asked. Invariant: what is decided is what is run or sent. Page: `spec/tools.md`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use writ_agentfile::directive::{Directive, Source};
use writ_agentfile::placed::vault_variable;
use writ_agentfile::reference::ToolRef;
use writ_agentfile::tool::{Cli, Description, How, LIMITS, MAX_BYTES, MAX_OUTPUT, Request};
use writ_agentfile::{Agent, call_name};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::{SessionId, ToolCall, Verdict};
use writ_engine::mcp::{Gate, Offered, Ruling, Wanted};
use writ_service::Vault;
use writ_service::tools::{self, Bounds, Called, Done, Given, OUTPUT};
use zeroize::Zeroizing;

use super::composed::{Composed, Named, compose, cred, unknown};
use super::found::{self, Opened, Tool};
use crate::args::ToolCallArgs;
use crate::environment;
use crate::exit::Failure;
use crate::input;
use crate::output;

/// How long a call may take where `TIMEOUT` says nothing.
const SECONDS: u64 = 120;

/// Calls a tool.
pub fn run(args: &ToolCallArgs) -> Result<(), Failure> {
    let opened = found::open(&args.tools.file)?;
    let cwd = opened.cwd()?;
    let held = opened.held_to(&cwd)?;
    let own = held.session(opened.linted.agent.name_or_default());
    let session = args.session.as_deref().map_or_else(|| own.clone(), SessionId::new);
    if session != own && held.counts(&environment::home()).map_err(Failure::could_not)? {
        return Err(Failure::Usage(format!(
            "`--session`: these calls are counted (RATELIMIT, LIMIT, or limits of a policy), so all of them are in {own}: leave it out"
        )));
    }
    let named = opened.named(&args.name)?;
    let given = given(args)?;
    let server = named.as_ref().filter(|tool| tool.namespace == "mcp").and_then(|tool| tool.name.split_once('.'));
    let server = server.map_or("tools", |(server, _)| server);
    let gate = Gate::under(environment::home(), &cwd, server, session.clone(), held).map_err(Failure::could_not)?;
    let called = match &named {
        Some(reference) => match refused(&gate, &opened, reference, (args, &given))? {
            Some(called) => called,
            None => declared(&gate, &opened, opened.tool(reference)?, (args, &given), &cwd)?,
        },
        None => undeclared(&gate, &args.name, &cwd),
    };
    if let Err(error) = gate.seal() {
        output::note(format!("writ: the record is not sealed: {error}"));
    }
    told(args, &session, called)
}

/// What is said of a call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    tool: &'a str,
    session: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

fn told(args: &ToolCallArgs, session: &SessionId, called: Called) -> Result<(), Failure> {
    let Done { result, streams: [out, err], note } = match called {
        Called::Done(done) => done,
        Called::Refused { reason, .. } => {
            reason.split("\nwrit: ").for_each(|text| {
                let text = text.strip_prefix("writ: ").unwrap_or(text);
                output::note(format!("writ: {}", output::plain(text)));
            });
            return Err(Failure::No);
        }
    };
    if !err.is_empty() {
        output::note(output::plain(err.trim_end()));
    }
    if let Some(note) = note {
        output::note(output::plain(&note));
    }
    let (tool, session) = (args.name.as_str(), session.as_str());
    if args.tools.format.is_json() {
        output::print_json(&Told {
            tool,
            session,
            result: result.as_ref().ok(),
            error: result.as_ref().err().map(String::as_str),
        });
    } else {
        match &result {
            Ok(Value::String(text)) => output::line(text),
            Ok(value) => output::line(json::compact(value)),
            Err(_) if !out.is_empty() => output::document(out.trim_end_matches('\n')),
            Err(_) => {}
        }
    }
    result.map(drop).map_err(|why| Failure::could_not(format!("`{tool}` failed: {}", output::plain(&why))))
}

/// A call of a server's tool that is refused as it is given: then no server is started for it.
fn refused(
    gate: &Gate,
    opened: &Opened,
    reference: &ToolRef,
    (args, given): (&ToolCallArgs, &Object),
) -> Result<Option<Called>, Failure> {
    let Some((_, tool)) = reference.name.split_once('.').filter(|_| reference.namespace == "mcp") else {
        return Ok(None);
    };
    let input = Value::Object(arguments(args, given, &Description::program())?);
    let name = call_name(&opened.linted.agent, reference);
    let call = ToolCall::new(name, input.clone(), gate.cwd().to_string_lossy());
    let decision = gate.ask(&call).map_err(Failure::could_not)?;
    if decision.is_none_or(|decision| decision.verdict != Verdict::Deny) {
        return Ok(None);
    }
    match gate.before(Wanted::tool(tool, input), None) {
        Ruling::Refused { verdict, reason } => Ok(Some(Called::Refused { verdict, reason })),
        // The policy is another by now: it is asked again, with what the schema makes of the arguments.
        Ruling::Pass(passed) => {
            gate.after(&passed, Err("it was asked about, and not called".to_owned()));
            Ok(None)
        }
    }
}

/// A name that no tool has is decided as what it is: undeclared.
fn undeclared(gate: &Gate, name: &str, cwd: &Path) -> Called {
    match gate.own(unknown(name, cwd)) {
        Ruling::Refused { verdict, reason } => Called::Refused { verdict, reason },
        Ruling::Pass(passed) => {
            let why = format!("no line declares a tool `{name}`");
            gate.after(&passed, Err(why.clone()));
            Called::Refused { verdict: Verdict::Deny, reason: why }
        }
    }
}

fn declared(
    gate: &Gate,
    opened: &Opened,
    mut tool: Tool,
    (args, given): (&ToolCallArgs, &Object),
    cwd: &Path,
) -> Result<Called, Failure> {
    let given = arguments(args, given, &tool.description)?;
    let arguments = tool.description.arguments(&given).map_err(|wrong| {
        let told: Vec<String> = wrong.iter().map(|one| format!("`{}` {}", one.pointer, one.why)).collect();
        Failure::malformed(format!("the arguments of `{}`: {}", args.name, told.join("; ")))
    })?;
    let agent = &opened.linted.agent;
    let bounds = bounds(agent);
    let cwd = if let How::Cli(cli) = &tool.description.how { folder(opened, cli, cwd)? } else { cwd.to_owned() };
    let named = Named { agent, call: &tool.call, program: tool.program.as_deref(), cwd: &cwd };
    let composed = compose(&named, &tool.description, &arguments);
    match composed.map_err(|error| Failure::malformed(format!("`{}`: {error}", args.name)))? {
        Composed::Line { call, input } => {
            let inherited = if let How::Cli(cli) = &tool.description.how { cli.inherited.clone() } else { None };
            Ok(tools::line(gate, call, given_to(agent, inherited, input), &tool.description, bounds))
        }
        Composed::Request { call, request } => {
            let values = || values(agent, &request);
            Ok(tools::http(gate, call, (&request, &values), &tool.description, bounds))
        }
        Composed::OfServer => {
            let (Some((_, name)), Some(server), Some(definition)) =
                (tool.reference.name.split_once('.'), &mut tool.server, &tool.definition)
            else {
                return Err(Failure::could_not("its server is gone"));
            };
            // What it says now is held against what it said when it was first seen. Other tools may not be in this list.
            let (_, note) = gate.shown(&[Offered { name, definition }], false);
            if let Some(note) = note {
                output::note(format!("writ: {}", output::plain(&note)));
            }
            Ok(tools::server(gate, server, (name, &arguments), &tool.description, bounds))
        }
    }
}

/// The arguments that are given as JSON.
fn given(args: &ToolCallArgs) -> Result<Object, Failure> {
    let text = match args.arguments.as_deref() {
        None => return Ok(Object::new()),
        Some("-") => {
            let mut bytes = Vec::new();
            std::io::stdin().lock().take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
            bytes
        }
        Some(text) => text.as_bytes().to_vec(),
    };
    match input::json("the arguments", &text, LIMITS)? {
        Value::Object(object) => Ok(object),
        other => Err(Failure::malformed(format!("the arguments are of type {}, not an object", other.kind()))),
    }
}

/// All arguments: those, and single ones over them.
fn arguments(args: &ToolCallArgs, whole: &Object, tool: &Description) -> Result<Object, Failure> {
    let mut single = Object::new();
    for text in &args.arg {
        let (name, value) =
            text.split_once('=').ok_or_else(|| Failure::Usage(format!("`--arg {text}`: it takes KEY=VALUE")))?;
        if single.get(name).is_some() {
            return Err(Failure::Usage(format!("`--arg {name}` is given twice")));
        }
        let kind = tool.inputs.get("properties").and_then(|all| all.get(name)).and_then(|one| one.get("type"));
        let is_text = kind.and_then(Value::as_str) == Some("string");
        let limits = Limits { integers: json::Integers::Any, ..LIMITS };
        let value =
            json::parse_with(value.as_bytes(), limits).ok().filter(|_| !is_text).unwrap_or_else(|| Value::from(value));
        single.push(name, value);
    }
    let rest = whole.iter().filter(|(name, _)| single.get(name).is_none());
    Ok(rest.chain(single.iter()).map(|(name, value)| (name.to_owned(), value.clone())).collect())
}

/// What `TIMEOUT` and `LIMIT max_output` say.
fn bounds(agent: &Agent) -> Bounds {
    let wanted = agent.each(|directive| match directive {
        Directive::Limit { name, count, unit: None } if name == MAX_OUTPUT => Some(*count),
        _ => None,
    });
    let [usual, most] = OUTPUT;
    let wanted = wanted.map(|(_, count)| count).min().unwrap_or(usual);
    Bounds { time: Duration::from_secs(agent.timeout().unwrap_or(SECONDS)), output: wanted.min(most) }
}

/// The folder that a line is run in.
fn folder(opened: &Opened, cli: &Cli, cwd: &Path) -> Result<PathBuf, Failure> {
    let Some(named) = &cli.folder else { return Ok(cwd.to_owned()) };
    let folder = opened.folder.join(named);
    folder.canonicalize().map_err(|error| Failure::could_not(format!("`working_dir` {}: {error}", folder.display())))
}

/// A secret's own variable is never a program's, nor is one whose name says that it holds a secret.
fn given_to(agent: &Agent, inherited: Option<Vec<String>>, input: Vec<u8>) -> Given {
    let withheld = agent.creds().filter_map(|(_, cred)| match &cred.source {
        Source::Env { variable } => Some(variable.clone()),
        Source::Vault { .. } | Source::Keyring { .. } => None,
    });
    let withheld = withheld.chain(environment::home().secret_variables).collect();
    Given { input, inherited: inherited.unwrap_or_default(), withheld }
}

/// The values of a request's secrets.
fn values(agent: &Agent, request: &Request) -> Result<Vec<(String, Zeroizing<String>)>, String> {
    let home = environment::home();
    let set =
        |name: &str| home.variable(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
    let mut out: Vec<(String, Zeroizing<String>)> = Vec::new();
    for (variable, _) in request.variables() {
        if out.iter().any(|(known, _)| known == variable) {
            continue;
        }
        let cred = cred(agent, variable).ok_or_else(|| format!("`{variable}` is no secret of the Agentfile"))?;
        let unset = |name: &str| format!("the secret `{}` has no value: the variable {name} is not set", cred.name);
        let value = match &cred.source {
            Source::Env { variable } => Zeroizing::new(set(variable).ok_or_else(|| unset(variable))?),
            Source::Vault { path, key } => match set(&vault_variable(&cred.name)) {
                Some(value) => Zeroizing::new(value),
                None => {
                    let address = set("VAULT_ADDR").ok_or_else(|| unset("VAULT_ADDR"))?;
                    let token = Zeroizing::new(set("VAULT_TOKEN").ok_or_else(|| unset("VAULT_TOKEN"))?);
                    Vault { address, token }.value(path, key)?
                }
            },
            Source::Keyring { .. } => {
                return Err(format!("the secret `{}` is in a keyring, which nothing here asks", cred.name));
            }
        };
        out.push((variable.to_owned(), value));
    }
    Ok(out)
}
