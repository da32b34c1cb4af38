//! What this client's tools do.
//!
//! Owns the table of its names. A tool that is not in it is judged by what its input holds (R78). Several addresses in one fetch are refused:
//! each has to be judged, and a call has one.

use writ_core::json::Value;
use writ_core::{Search, ToolCall, ToolKind};

use crate::input::{Input, folder_of};

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
    let folder = ["dir_path", "directory"].iter().find_map(|name| input.get(name));
    let cwd = folder_of(&kind, folder, cwd);
    let kind = match folder.and_then(Value::as_str).filter(|_| matches!(kind, ToolKind::Shell { .. })) {
        Some(folder) if meant(folder).len() > 1 => {
            ToolKind::Malformed { why: format!("`{folder}` may mean several folders to the client") }
        }
        _ => kind,
    };
    ToolCall::of(tool, kind, input, cwd)
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let input = Input::of(tool, input);
    let file = || input.text("file_path").map(|path| meant(&path));
    // The folder as it stands, and what else it may mean.
    let folder = || {
        let found = input.optional("dir_path")?.or(input.optional("path")?);
        let mut all = found.iter().flat_map(|path| meant(path));
        Ok::<_, String>((all.next(), all.collect::<Vec<String>>()))
    };
    Ok(match tool {
        "run_shell_command" => ToolKind::Shell { command: input.text("command")? },
        "read_file" => ToolKind::Read { paths: file()? },
        "write_file" => ToolKind::Write { paths: file()? },
        "replace" => ToolKind::Edit { paths: file()?, searched: true },
        "glob" => {
            let (path, others) = folder()?;
            ToolKind::Search(Search::Names { path, others, pattern: input.text("pattern")? })
        }
        "grep_search" | "search_file_content" => {
            let glob = input.optional("include_pattern")?.or(input.optional("include")?);
            let (path, others) = folder()?;
            ToolKind::Search(Search::Contents { path, others, glob, file_type: None })
        }
        "list_directory" => {
            let (path, others) = folder()?;
            ToolKind::Search(Search::Folder { path, others })
        }
        "read_many_files" => many(input.value())?,
        "web_fetch" => fetch(&input.text("prompt").or_else(|_| input.text("url"))?)?,
        "google_web_search" => ToolKind::WebSearch,
        "invoke_agent" => input.delegate("agent_name")?,
        own if OWN.contains(&own) => ToolKind::Own,
        other => match other.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')) {
            Some((server, tool)) => ToolKind::Mcp { server: server.to_owned(), tool: tool.to_owned() },
            None => ToolKind::Other,
        },
    })
}

/// A path as it stands, and as the client may read it: without an `@` in front, and with what is percent-encoded decoded.
fn meant(path: &str) -> Vec<String> {
    let mut out = vec![path.to_owned()];
    let bare = path.strip_prefix('@').map(|rest| rest.trim_start_matches(['/', '\\']));
    out.extend(bare.filter(|rest| !rest.is_empty()).map(str::to_owned));
    let decoded: Vec<String> = out.iter().filter_map(|path| percent_decoded(path)).collect();
    out.extend(decoded);
    out
}

/// What JavaScript's `decodeURIComponent` makes of a text, where that is another one.
fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first == b'%' {
            let (digits, tail) = rest.split_at_checked(2)?;
            let digits =
                std::str::from_utf8(digits).ok().filter(|two| two.bytes().all(|one| one.is_ascii_hexdigit()))?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = tail;
        } else {
            out.push(*first);
        }
    }
    String::from_utf8(out).ok().filter(|decoded| decoded != text)
}

/// Files that are named by patterns: as much as a look at them all.
fn many(input: &Value) -> Result<ToolKind, String> {
    let patterns = ["include", "paths"].iter().find_map(|name| input.get(name)).and_then(Value::as_array);
    let patterns: Vec<String> =
        patterns.unwrap_or_default().iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let plain = |path: &String| !path.contains(['*', '?', '[', '{']);
    if !patterns.is_empty() && patterns.iter().all(plain) {
        return Ok(ToolKind::Read { paths: patterns.iter().flat_map(|path| meant(path)).collect() });
    }
    match <[String; 1]>::try_from(patterns) {
        Ok([pattern]) => Ok(ToolKind::Search(Search::Contents {
            path: None,
            others: Vec::new(),
            glob: Some(pattern),
            file_type: None,
        })),
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
