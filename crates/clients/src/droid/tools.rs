//! What this client's tools do.
//!
//! Owns the table of its names. A tool of a server is `server___tool`. A program of calls (`Script`) is refused: whether hooks are told of
//! what it calls is not known. A tool that is not in the table is judged by what its input holds (R78).

use writ_core::json::Value;
use writ_core::{Search, ToolCall, ToolKind};

use crate::input::Input;
use crate::patch;

/// Tools that concern the client alone.
const OWN: [&str; 7] = ["TodoWrite", "AskUser", "ExitSpecMode", "Skill", "TaskOutput", "TaskStop", "WaitForScript"];

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str) -> ToolCall {
    let kind = kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why });
    ToolCall::of(tool, kind, input, cwd)
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let input = Input::of(tool, input);
    Ok(match tool {
        "Execute" => ToolKind::Shell { command: input.text("command")? },
        "Read" => ToolKind::Read { paths: input.file("file_path")? },
        "Create" => ToolKind::Write { paths: input.file("file_path")? },
        "Edit" | "MultiEdit" => ToolKind::edit(input.file("file_path")?),
        // The file of the older form is named beside the patch.
        "ApplyPatch" => match input.optional("file_path")? {
            Some(path) => ToolKind::edit(vec![path]),
            None => patch::kind(&input.text("input")?)?,
        },
        "LS" => input.listing("directory_path")?,
        "Grep" => input.contents("path", "glob_pattern")?,
        "Glob" => names(input)?,
        "FetchUrl" => ToolKind::Fetch { url: input.text("url")? },
        "WebSearch" => ToolKind::WebSearch,
        "Task" => input.delegate("subagent_type")?,
        "Script" => {
            return Err("a program of calls: whether each of them is told is not known, so none of them can be judged"
                .to_owned());
        }
        own if OWN.contains(&own) => ToolKind::Own,
        other => match other.split_once("___") {
            Some((server, tool)) => ToolKind::Mcp { server: server.to_owned(), tool: tool.to_owned() },
            None => ToolKind::Other,
        },
    })
}

/// Names below a folder, by one pattern; by several as by any.
fn names(input: Input<'_>) -> Result<ToolKind, String> {
    let patterns = input.value().get("patterns").and_then(Value::as_array).unwrap_or_default();
    let pattern = match patterns {
        [one] => one.as_str().ok_or("`patterns` is no list of texts")?,
        _ => "**",
    };
    Ok(ToolKind::Search(Search::Names {
        path: input.optional("folder")?,
        others: Vec::new(),
        pattern: pattern.to_owned(),
    }))
}
