//! What this client's tools do.
//!
//! Owns the table of its names. A tool of a server is `mcp_server_tool`; where an underscore stands in a name nobody can tell which it parts,
//! so the first does. A tool that is not in the table is judged by what its input holds (R78). A call that starts another agent is refused.

use writ_core::json::Value;
use writ_core::{ToolCall, ToolKind};

use crate::input::{Input, folder_of};

/// Tools that concern the client alone.
const OWN: [&str; 7] = ["todos", "job_output", "job_kill", "crush_info", "crush_logs", "lsp_restart", "ask_user"];

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str) -> ToolCall {
    let kind = kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why });
    let cwd = folder_of(&kind, input.get("working_dir"), cwd);
    ToolCall::of(tool, kind, input, cwd)
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let input = Input::of(tool, input);
    Ok(match tool {
        "bash" => ToolKind::Shell { command: input.text("command")? },
        "view" | "diagnostics" if input.optional("file_path")?.is_some() => {
            ToolKind::Read { paths: input.file("file_path")? }
        }
        "write" => ToolKind::Write { paths: input.file("file_path")? },
        "edit" | "multiedit" => ToolKind::edit(input.file("file_path")?),
        // The client reads variables in the folder's name.
        "ls" if input.optional("path")?.is_some_and(|path| path.contains(['$', '`'])) => {
            return Err("a folder with a `$` in its name: the client reads it in its own way".to_owned());
        }
        "ls" => input.listing("path")?,
        "grep" => input.contents("path", "include")?,
        "glob" => input.names("path", "pattern")?,
        "fetch" | "web_fetch" => ToolKind::Fetch { url: input.text("url")? },
        "web_search" | "sourcegraph" => ToolKind::WebSearch,
        "agent" | "agentic_fetch" => {
            return Err("another agent: hooks are not told of its calls, so none of them can be judged".to_owned());
        }
        own if OWN.contains(&own) => ToolKind::Own,
        other => match other.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')) {
            Some((server, tool)) => ToolKind::Mcp { server: server.to_owned(), tool: tool.to_owned() },
            None => ToolKind::Other,
        },
    })
}
