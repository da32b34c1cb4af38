//! What this client's tools do.
//!
//! Owns the table of its names. A tool of a server is `server_tool`; where an underscore stands in a name nobody can tell which it parts, so
//! the first does. A tool without one that is not in the table is judged by what its input holds (R78).

use writ_core::json::Value;
use writ_core::{ToolCall, ToolKind};

use crate::input::{Input, folder_of};
use crate::patch;

/// Tools that concern the client alone; `invalid` is what it makes of a tool that does not exist.
const OWN: [&str; 7] = ["todowrite", "todoread", "skill", "question", "invalid", "plan_enter", "plan_exit"];

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str) -> ToolCall {
    let kind = kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why });
    let cwd = folder_of(&kind, input.get("workdir"), cwd);
    ToolCall::of(tool, kind, input, cwd)
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let input = Input::of(tool, input);
    let path = || input.file("filePath");
    Ok(match tool {
        "bash" => ToolKind::Shell { command: input.text("command")? },
        "read" => ToolKind::Read { paths: path()? },
        "write" => ToolKind::Write { paths: path()? },
        "edit" | "multiedit" => ToolKind::edit(path()?),
        "apply_patch" | "patch" => patch::kind(&input.text("patchText")?)?,
        "lsp" => ToolKind::Read { paths: path()? },
        "grep" => input.contents("path", "include")?,
        "glob" => input.names("path", "pattern")?,
        "list" => input.listing("path")?,
        "webfetch" => ToolKind::Fetch { url: input.text("url")? },
        "websearch" | "codesearch" => ToolKind::WebSearch,
        "task" => input.delegate("subagent_type")?,
        own if OWN.contains(&own) => ToolKind::Own,
        other => match other.split_once('_') {
            Some((server, tool)) => ToolKind::Mcp { server: server.to_owned(), tool: tool.to_owned() },
            None => ToolKind::Other,
        },
    })
}
