//! What this client's tools do.
//!
//! Owns the table of its names. A tool that is not in it is judged by what its input holds (R78). Several addresses in one fetch are refused:
//! each has to be judged, and a call has one.

use writ_core::json::Value;
use writ_core::{Search, ToolCall, ToolKind};

/// Tools that concern the client alone.
const OWN: [&str; 11] = [
    "write_todos",
    "update_topic",
    "complete_task",
    "activate_skill",
    "ask_user",
    "enter_plan_mode",
    "exit_plan_mode",
    "list_background_processes",
    "read_background_output",
    "get_internal_docs",
    "tracker_update_task",
];

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str, server: Option<(String, String)>) -> ToolCall {
    let kind = match server {
        Some((server, tool)) => ToolKind::Mcp { server, tool },
        None => kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why }),
    };
    // A shell call may name its own folder.
    let folder = ["dir_path", "directory"].iter().find_map(|name| input.get(name)).and_then(Value::as_str);
    let folder = folder.filter(|folder| !folder.is_empty() && matches!(kind, ToolKind::Shell { .. }));
    let cwd = match folder {
        Some(folder) if folder.starts_with('/') => folder.to_owned(),
        Some(folder) => format!("{cwd}/{folder}"),
        None => cwd.to_owned(),
    };
    ToolCall::of(tool, kind, input, cwd)
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let optional = |name: &str| match input.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_str().map(|text| Some(text.to_owned())).ok_or(format!("`{name}` is not a text")),
    };
    let text = |name: &str| optional(name)?.ok_or_else(|| format!("`{tool}` without a text `{name}`"));
    let folder = || Ok::<_, String>(optional("dir_path")?.or(optional("path")?));
    Ok(match tool {
        "run_shell_command" => ToolKind::Shell { command: text("command")? },
        "read_file" => ToolKind::Read { paths: vec![text("file_path")?] },
        "write_file" => ToolKind::Write { paths: vec![text("file_path")?] },
        "replace" => ToolKind::Edit { paths: vec![text("file_path")?] },
        "glob" => ToolKind::Search(Search::Names { path: folder()?, pattern: text("pattern")? }),
        "grep_search" | "search_file_content" => {
            let glob = optional("include_pattern")?.or(optional("include")?);
            ToolKind::Search(Search::Contents { path: folder()?, glob, file_type: None })
        }
        "list_directory" => ToolKind::Search(Search::Folder { path: folder()? }),
        "read_many_files" => many(input)?,
        "web_fetch" => fetch(&text("prompt").or_else(|_| text("url"))?)?,
        "google_web_search" => ToolKind::WebSearch,
        "invoke_agent" => ToolKind::Delegate { subagent: optional("agent_name")?.unwrap_or_default() },
        own if OWN.contains(&own) => ToolKind::Own,
        other => match other.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')) {
            Some((server, tool)) => ToolKind::Mcp { server: server.to_owned(), tool: tool.to_owned() },
            None => ToolKind::Other,
        },
    })
}

/// Files that are named by patterns: as much as a look at them all.
fn many(input: &Value) -> Result<ToolKind, String> {
    let patterns = ["include", "paths"].iter().find_map(|name| input.get(name)).and_then(Value::as_array);
    let patterns: Vec<String> =
        patterns.unwrap_or_default().iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let plain = |path: &String| !path.contains(['*', '?', '[', '{']);
    if !patterns.is_empty() && patterns.iter().all(plain) {
        return Ok(ToolKind::Read { paths: patterns });
    }
    match <[String; 1]>::try_from(patterns) {
        Ok([pattern]) => Ok(ToolKind::Search(Search::Contents { path: None, glob: Some(pattern), file_type: None })),
        Err(_) => Err("`read_many_files` with several patterns: one at a time can be judged".to_owned()),
    }
}

/// The one address in a prompt.
fn fetch(prompt: &str) -> Result<ToolKind, String> {
    let starts = ["http://", "https://"];
    let words = prompt.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')' | '`'));
    let mut urls: Vec<&str> = words
        .filter_map(|word| starts.iter().find_map(|start| word.find(start)).and_then(|at| word.get(at..)))
        .collect();
    urls.sort_unstable();
    urls.dedup();
    match urls.as_slice() {
        [url] => Ok(ToolKind::Fetch { url: (*url).to_owned() }),
        [] => Err("`web_fetch` without an address".to_owned()),
        _ => Err("`web_fetch` with several addresses: one at a time can be judged".to_owned()),
    }
}

/// The error of a call that failed.
pub fn failure(response: &Value) -> Option<String> {
    let error = response.get("error").filter(|error| **error != Value::Null)?;
    let text = error.as_str().or_else(|| error.get("message").and_then(Value::as_str));
    Some(text.map_or_else(|| writ_core::json::compact(error), str::to_owned))
}
