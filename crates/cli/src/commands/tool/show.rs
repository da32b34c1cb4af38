//! `writ tool list`, `describe` and `events`: what tools are, in words and as schema, and their calls on record.

use serde::Serialize;
use writ_agentfile::call_name;
use writ_agentfile::tool::{Description, Parameter};
use writ_core::json::Value;
use writ_core::{SessionId, json};
use writ_evidence::row::Row;

use super::found::{self, Opened, Tool};
use crate::args::{Format, ToolArgs, ToolEventsArgs, ToolsArgs};
use crate::commands::session_lookup::store;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// A tool in a list.
#[derive(Serialize)]
struct Listed {
    tool: String,
    /// `cli`, `http`, `mcp`, `program`; nothing where it cannot be called from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<&'static str>,
    description: String,
    /// Why it cannot be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Lists the declared tools. One whose server or description is not as it should be is listed with that.
pub fn list(args: &ToolsArgs) -> Result<(), Failure> {
    let opened = found::open(&args.file)?;
    let mut listed = Vec::new();
    for reference in opened.declared() {
        let tool = reference.to_string();
        listed.push(match opened.tool(&reference) {
            Ok(Tool { description, .. }) => Listed {
                tool,
                how: Some(description.how.word()),
                description: first(&description.about),
                problem: None,
            },
            Err(failure) => Listed { tool, how: None, description: String::new(), problem: Some(words(failure)) },
        });
    }
    if args.format.is_json() {
        output::print_json(&listed);
        return Ok(());
    }
    let width = listed.iter().map(|one| one.tool.len()).max().unwrap_or(0);
    for Listed { tool, how, description, problem } in &listed {
        let said = problem.as_ref().map_or_else(|| output::plain(description), |why| output::warn(output::plain(why)));
        output::line(format!("{tool:<width$}  {:<7}  {said}", how.unwrap_or("-")));
    }
    Ok(())
}

fn words(failure: Failure) -> String {
    match failure {
        Failure::CouldNot(error) | Failure::Malformed(error) => error.to_string(),
        Failure::Usage(text) => text,
        Failure::No | Failure::Said(_) | Failure::MalformedReport(_) => "it is not what agentrc.lock pins".to_owned(),
    }
}

fn first(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Shows one.
pub fn describe(args: &ToolArgs) -> Result<(), Failure> {
    let opened = found::open(&args.tools.file)?;
    let tool = one(&opened, &args.name)?;
    match args.tools.format.format {
        Format::Json => output::document(&schema(&tool)),
        Format::Human => output::document(help(&tool).trim_end()),
    }
    Ok(())
}

fn one(opened: &Opened, name: &str) -> Result<Tool, Failure> {
    match opened.named(name)? {
        Some(reference) => opened.tool(&reference),
        None => Err(Failure::could_not(format!("no line of {} declares a tool `{name}`", opened.linted.agent.file))),
    }
}

/// What a tool takes and gives, as one document.
#[derive(Serialize)]
struct Document<'a> {
    name: String,
    description: &'a str,
    how: &'static str,
    inputs: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<&'a Value>,
}

/// Its schema, as `describe --format json` and the projection have it.
pub fn schema(tool: &Tool) -> String {
    let Description { about, inputs, outputs, how } = &tool.description;
    let (name, outputs) = (tool.reference.to_string(), outputs.as_ref());
    json::pretty(&json::to_value(&Document { name, description: about, how: how.word(), inputs, outputs }))
}

/// What a tool is, for people.
pub fn help(tool: &Tool) -> String {
    let description = &tool.description;
    let reference = &tool.reference;
    let mut lines = vec![format!("{reference} ({})", description.how.word())];
    if !description.about.is_empty() {
        lines.push(String::new());
        lines.extend(description.about.lines().map(|line| format!("  {line}")));
    }
    let parameters = description.parameters();
    if !parameters.is_empty() {
        lines.extend([String::new(), "Arguments:".to_owned()]);
    }
    for Parameter { name, kind, required, about } in &parameters {
        let kind = if kind.is_empty() { "any" } else { kind };
        let must = if *required { ", required" } else { "" };
        let about = if about.is_empty() { String::new() } else { format!("  {}", first(about)) };
        lines.push(format!("  {name} ({kind}{must}){about}"));
    }
    let gives = description.outputs.as_ref().and_then(|outputs| outputs.get("type")).and_then(Value::as_str);
    lines.extend(gives.into_iter().flat_map(|kind| [String::new(), format!("Gives: {kind}")]));
    lines.extend([String::new(), "Call it:".to_owned()]);
    lines.push(format!("  writ tool call {reference} '{{…}}'      arguments as a JSON object; `-` for stdin"));
    lines.extend(parameters.first().map(|first| format!("  writ tool call {reference} --arg {}=…", first.name)));
    lines.iter().map(|line| output::plain(line) + "\n").collect()
}

/// A row of the ledger, as far as it is about a call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    session: &'a str,
    sequence: u64,
    timestamp: String,
    call_id: Option<&'a str>,
    tool_name: Option<&'a str>,
    decision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    denial_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_hash: Option<String>,
}

/// Shows the calls of one that are on record.
pub fn events(args: &ToolEventsArgs) -> Result<(), Failure> {
    let opened = found::open(&args.file)?;
    let named = opened.named(&args.name)?;
    let name = named.map_or_else(|| args.name.clone(), |tool| call_name(&opened.linted.agent, &tool));
    let id = match &args.session {
        Some(id) => SessionId::new(id),
        None => opened.held_to(&opened.cwd()?)?.session(opened.linted.agent.name_or_default()),
    };
    let store = store(&environment::home())?;
    if !store.exists(&id) {
        output::note(format!("writ: nothing was called yet: there is no session {id}"));
        return Ok(());
    }
    let show = |row: Row| {
        if row.tool_name.as_deref() == Some(&name) {
            output::print_json_line(&Shown {
                session: id.as_str(),
                sequence: row.sequence,
                timestamp: row.timestamp.to_string(),
                call_id: row.call_id.as_deref(),
                tool_name: row.tool_name.as_deref(),
                decision: json::word(&row.decision).to_owned(),
                denial_reason: row.denial_reason.as_deref(),
                result_hash: row.result_hash.map(|hash| hash.to_string()),
            });
        }
    };
    store.each_row(&id, show).map_err(Failure::could_not)?;
    output::note(format!("writ: `writ verify {id}` checks the whole record"));
    Ok(())
}
