//! What this client's tools do.
//!
//! Owns the table of its names. A tool that is not in it is judged by what its input holds (R78); one is [`ToolKind::Own`] only where it
//! touches nothing but the client itself.

use writ_core::json::Value;
use writ_core::{Outcome, ToolCall, ToolKind};

use crate::input::{Input, folder_of};

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
    let cwd = folder_of(&kind, input.get("directory"), cwd);
    ToolCall::of(tool, kind, input, cwd)
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let input = Input::of(tool, input);
    Ok(match tool {
        "run_shell_command" | "monitor" => ToolKind::Shell { command: input.text("command")? },
        "read_file" | "zoom_image" | "display_image" if input.optional("file_path")?.is_some() => {
            ToolKind::Read { paths: input.file("file_path")? }
        }
        "write_file" => ToolKind::Write { paths: input.file("file_path")? },
        "edit" => ToolKind::edit(input.file("file_path")?),
        "notebook_edit" => ToolKind::edit(input.file("notebook_path")?),
        "grep_search" => input.contents("path", "glob")?,
        "glob" => input.names("path", "pattern")?,
        "list_directory" => input.listing("path")?,
        "web_fetch" => ToolKind::Fetch { url: input.text("url")? },
        "web_search" => ToolKind::WebSearch,
        // Hooks are told the session's folder for its calls, too.
        "agent" if input.optional("working_dir")?.is_some() || input.optional("isolation")?.is_some() => {
            return Err(
                "an agent in another folder: where its calls are made is not told, so none of them can be judged"
                    .to_owned(),
            );
        }
        "agent" => input.delegate("subagent_type")?,
        own if OWN.contains(&own) => ToolKind::Own,
        other if other.starts_with("mcp__") => ToolKind::canonical(other, input.value()),
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
