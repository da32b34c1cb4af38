//! What this client's tools do.
//!
//! Owns the table of its names. A tool of a server is `server_tool`; where an underscore stands in a name nobody can tell which it parts, so
//! the first does. A tool without one that is not in the table is judged by what its input holds (R78).

use writ_core::json::Value;
use writ_core::{Search, ToolCall, ToolKind};

use crate::patch;

/// Tools that concern the client alone; `invalid` is what it makes of a tool that does not exist.
const OWN: [&str; 7] = ["todowrite", "todoread", "skill", "question", "invalid", "plan_enter", "plan_exit"];

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str) -> ToolCall {
    let kind = kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why });
    let folder = input.get("workdir").and_then(Value::as_str);
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
    let path = || text("filePath").map(|path| vec![path]);
    Ok(match tool {
        "bash" => ToolKind::Shell { command: text("command")? },
        "read" => ToolKind::Read { paths: path()? },
        "write" => ToolKind::Write { paths: path()? },
        "edit" | "multiedit" => ToolKind::edit(path()?),
        "apply_patch" | "patch" => patch::kind(&text("patchText")?)?,
        "lsp" => ToolKind::Read { paths: path()? },
        "grep" => ToolKind::Search(Search::Contents {
            path: optional("path")?,
            others: Vec::new(),
            glob: optional("include")?,
            file_type: None,
        }),
        "glob" => {
            ToolKind::Search(Search::Names { path: optional("path")?, others: Vec::new(), pattern: text("pattern")? })
        }
        "list" => ToolKind::Search(Search::Folder { path: optional("path")?, others: Vec::new() }),
        "webfetch" => ToolKind::Fetch { url: text("url")? },
        "websearch" | "codesearch" => ToolKind::WebSearch,
        "task" => ToolKind::Delegate { subagent: optional("subagent_type")?.unwrap_or_default() },
        own if OWN.contains(&own) => ToolKind::Own,
        other => match other.split_once('_') {
            Some((server, tool)) => ToolKind::Mcp { server: server.to_owned(), tool: tool.to_owned() },
            None => ToolKind::Other,
        },
    })
}
