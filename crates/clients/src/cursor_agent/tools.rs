//! What this client's tools do.
//!
//! Owns the table of its names. A tool of a server is `MCP:tool`, and the server is not told: it may be any. A tool that is not in the table
//! is judged by what its input holds (R78).

use writ_core::json::Value;
use writ_core::{ToolCall, ToolKind};

use crate::input::{Input, folder_of};
use crate::patch;

/// Tools that concern the client alone.
const OWN: [&str; 5] = ["TodoWrite", "AskQuestion", "SwitchMode", "UpdateCurrentStep", "CreatePlan"];

/// What stands for a server that is not told.
const ANY: &str = "*";

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str) -> ToolCall {
    let kind = kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why });
    let cwd = folder_of(&kind, input.get("working_directory"), cwd);
    ToolCall::of(tool, kind, input, cwd)
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let input = Input::of(tool, input);
    let file = || input.file_of(["file_path", "path"]);
    Ok(match tool {
        "Shell" => ToolKind::Shell { command: input.text("command")? },
        "Read" => ToolKind::Read { paths: file()? },
        "Write" | "Delete" => ToolKind::Write { paths: file()? },
        "StrReplace" | "Edit" => ToolKind::edit(file()?),
        "ApplyPatch" => match input.optional("patch")?.or(input.optional("input")?) {
            Some(text) => patch::kind(&text)?,
            None => ToolKind::Other,
        },
        "Grep" => input.contents("path", "glob")?,
        "WebFetch" => ToolKind::Fetch { url: input.text("url")? },
        "WebSearch" => ToolKind::WebSearch,
        "Task" => input.delegate("subagent_type")?,
        own if OWN.contains(&own) => ToolKind::Own,
        other => match other.strip_prefix("MCP:") {
            Some(tool) => ToolKind::Mcp { server: ANY.to_owned(), tool: tool.trim().to_owned() },
            None => ToolKind::Other,
        },
    })
}
