//! What this client's tools do.
//!
//! Owns the table of its names. The client glues a tool's namespace and name together (`clocksleep`, `multi_agent_v1wait_agent`), so both are
//! in it. A tool that is not is judged by what its input holds (R78). A patch that cannot be read is malformed, and so denied.

use writ_core::json::Value;
use writ_core::{ToolCall, ToolKind};

use crate::patch;

/// Namespaces of the client's own tools.
const NAMESPACES: [&str; 3] = ["multi_agent_v1", "collaboration", "clock"];

/// Tools that concern the client alone, without their namespaces.
const OWN: [&str; 16] = [
    "update_plan",
    "create_goal",
    "get_goal",
    "update_goal",
    "wait_agent",
    "close_agent",
    "resume_agent",
    "list_agents",
    "interrupt_agent",
    "send_input",
    "send_message",
    "followup_task",
    "sleep",
    "request_user_input",
    "list_mcp_resources",
    "list_mcp_resource_templates",
];

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str) -> ToolCall {
    let kind = kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why });
    ToolCall::of(tool, kind, input, cwd)
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let text = |name: &str| {
        let text = input.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| format!("`{tool}` without a text `{name}`"))
    };
    let own = NAMESPACES.iter().find_map(|space| tool.strip_prefix(space)).unwrap_or(tool);
    Ok(match own {
        "Bash" => ToolKind::Shell { command: text("command")? },
        "apply_patch" => patch::kind(&text("command")?)?,
        "view_image" => ToolKind::Read { paths: vec![text("path")?] },
        "spawn_agent" => ToolKind::Delegate {
            subagent: input.get("agent_type").and_then(Value::as_str).unwrap_or_default().to_owned(),
        },
        _ if tool.starts_with("mcp__") => ToolKind::canonical(tool, input),
        own if OWN.contains(&own) => ToolKind::Own,
        _ => ToolKind::Other,
    })
}
