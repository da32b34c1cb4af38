//! What this client's tools do.
//!
//! Owns the table of its names. A tool that is not in it is judged by what its input holds (R78); one is [`ToolKind::Own`] only where it
//! touches nothing but the client itself.

use writ_core::json::Value;
use writ_core::{Outcome, Search, ToolCall, ToolKind};

/// Tools that concern the client alone.
const OWN: [&str; 17] = [
    "todo_write",
    "skill",
    "exit_plan_mode",
    "enter_plan_mode",
    "ask_user_question",
    "list_agents",
    "task_stop",
    "task_create",
    "task_update",
    "task_list",
    "send_message",
    "structured_output",
    "tool_search",
    "get_goal",
    "update_goal",
    "propose_goal",
    "report_findings",
];

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str) -> ToolCall {
    let kind = kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why });
    // A shell call may name its own folder.
    let folder = input.get("directory").and_then(Value::as_str).filter(|_| matches!(kind, ToolKind::Shell { .. }));
    let cwd = match folder.filter(|folder| !folder.is_empty()) {
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
    let paths = |name: &str| text(name).map(|path| vec![path]);
    Ok(match tool {
        "run_shell_command" | "monitor" => ToolKind::Shell { command: text("command")? },
        "read_file" | "zoom_image" | "display_image" if optional("file_path")?.is_some() => {
            ToolKind::Read { paths: paths("file_path")? }
        }
        "write_file" => ToolKind::Write { paths: paths("file_path")? },
        "edit" => ToolKind::edit(paths("file_path")?),
        "notebook_edit" => ToolKind::edit(paths("notebook_path")?),
        "grep_search" => ToolKind::Search(Search::Contents {
            path: optional("path")?,
            others: Vec::new(),
            glob: optional("glob")?,
            file_type: None,
        }),
        "glob" => {
            ToolKind::Search(Search::Names { path: optional("path")?, others: Vec::new(), pattern: text("pattern")? })
        }
        "list_directory" => ToolKind::Search(Search::Folder { path: optional("path")?, others: Vec::new() }),
        "web_fetch" => ToolKind::Fetch { url: text("url")? },
        "web_search" => ToolKind::WebSearch,
        // Hooks are told the session's folder for its calls, too.
        "agent" if optional("working_dir")?.is_some() || optional("isolation")?.is_some() => {
            return Err(
                "an agent in another folder: where its calls are made is not told, so none of them can be judged"
                    .to_owned(),
            );
        }
        "agent" => ToolKind::Delegate { subagent: optional("subagent_type")?.unwrap_or_default() },
        own if OWN.contains(&own) => ToolKind::Own,
        other if other.starts_with("mcp__") => ToolKind::canonical(other, input),
        _ => ToolKind::Other,
    })
}

/// What became of a call that was stopped before it began.
pub fn stopped(error_type: &str) -> Outcome {
    match error_type {
        "tool_not_registered" => Outcome::NoSuchTool,
        "execution_denied" => Outcome::DeniedByHook,
        _ => Outcome::Refused,
    }
}
