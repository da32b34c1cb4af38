//! What this client's tools do.
//!
//! Owns the table of its names. A tool of a server is `server-tool`; where a hyphen stands in a name nobody can tell which it parts, so the
//! first does. A tool that is not in the table is judged by what its input holds (R78).

use writ_core::json::Value;
use writ_core::{Search, ToolCall, ToolKind};

use crate::input::Input;
use crate::patch;

/// Tools that concern the client alone.
const OWN: [&str; 15] = [
    "read_bash",
    "stop_bash",
    "list_bash",
    "report_intent",
    "update_todo",
    "ask_user",
    "skill",
    "sql",
    "session_store_sql",
    "exit_plan_mode",
    "read_agent",
    "list_agents",
    "write_agent",
    "fetch_copilot_cli_documentation",
    "store_memory",
];

/// A call of one of its tools.
pub fn call(tool: String, input: Value, cwd: &str) -> ToolCall {
    let kind = kind(&tool, &input).unwrap_or_else(|why| ToolKind::Malformed { why });
    ToolCall::of(tool, kind, input, cwd)
}

/// The call that a permission is asked for: it has other names for a file, and a slash between server and tool.
pub fn asked(tool: String, input: Value, cwd: &str) -> ToolCall {
    if let Some((server, name)) = tool.split_once('/') {
        let kind = ToolKind::Mcp { server: server.to_owned(), tool: name.to_owned() };
        return ToolCall::of(tool, kind, input, cwd);
    }
    let path = input.get("file_path").and_then(Value::as_str).filter(|_| matches!(tool.as_str(), "edit" | "create"));
    match path.map(str::to_owned) {
        Some(path) => ToolCall::of(tool, ToolKind::edit(vec![path]), input, cwd),
        None => call(tool, input, cwd),
    }
}

/// Keys that the client knows by these names in `write_bash`, beside `{enter}`.
const KEYS: [&str; 16] = [
    "backspace",
    "delete",
    "down",
    "end",
    "esc",
    "escape",
    "home",
    "insert",
    "left",
    "pagedown",
    "pageup",
    "right",
    "space",
    "tab",
    "up",
    "ctrl+",
];

/// No key's name is longer, in bytes, with the bracket that ends it.
const LONGEST_KEY: usize = 32;

/// What is typed into a shell that runs, as lines of it. A key that changes the line stands as a variable that nobody knows
/// (`$key_up`), and so does what is typed on to a line that no Enter ends.
fn typed(input: &str) -> String {
    let mut out = String::with_capacity(input.len());
    let mut rest = input;
    while let Some(letter) = rest.chars().next() {
        let name = rest.strip_prefix('{').and_then(|name| name.get(..name.floor_char_boundary(LONGEST_KEY)));
        let name = name.and_then(|name| name.split_once('}')).map(|(name, _)| name);
        let name = name.map(str::to_ascii_lowercase).filter(|name| is_key(name));
        match (name, letter) {
            (Some(name), _) => {
                rest = rest.get(name.len() + 2..).unwrap_or_default();
                pressed(&name, &mut out);
                continue;
            }
            (None, '\r') if rest.starts_with("\r\n") => {}
            (None, '\r' | '\n') => out.push('\n'),
            (None, '\u{3}' | '\u{4}') => pressed("ctrl+c", &mut out),
            (None, control) if control.is_control() => pressed("control", &mut out),
            (None, letter) => out.push(letter),
        }
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push_str("${key_more}");
    }
    out
}

fn is_key(name: &str) -> bool {
    matches!(name, "enter" | "return")
        || KEYS.iter().any(|key| name == *key || key.ends_with('+') && name.starts_with(key))
}

fn pressed(name: &str, out: &mut String) {
    let at_start = out.is_empty() || out.ends_with('\n');
    match name {
        "enter" | "return" => out.push('\n'),
        "space" => out.push(' '),
        // It ends what runs.
        "ctrl+c" | "ctrl+d" if at_start => {}
        name => out.push_str(&format!("${{key_{}}}", name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"))),
    }
}

fn kind(tool: &str, input: &Value) -> Result<ToolKind, String> {
    let input = Input::of(tool, input);
    let path = || input.file("path");
    // One folder or file, or a list of them, by either name.
    let folders = || {
        let mut all: Vec<String> = input.optional("path")?.into_iter().collect();
        match input.value().get("paths") {
            None | Some(Value::Null) => {}
            Some(Value::Array(of)) => {
                let of: Option<Vec<&str>> = of.iter().map(Value::as_str).collect();
                all.extend(of.ok_or("`paths` is no list of texts")?.into_iter().map(str::to_owned));
            }
            Some(_) => all.extend(input.optional("paths")?),
        }
        let mut all = all.into_iter();
        Ok::<_, String>((all.next(), all.collect::<Vec<String>>()))
    };
    Ok(match tool {
        "bash" => ToolKind::Shell { command: input.text("command")? },
        "write_bash" => ToolKind::Shell { command: typed(&input.text("input")?) },
        "view" => ToolKind::Read { paths: path()? },
        "create" => ToolKind::Write { paths: path()? },
        "edit" => ToolKind::edit(path()?),
        // The patch is the whole input.
        "apply_patch" => match input.value().as_str() {
            Some(patch) => patch::kind(patch)?,
            None => patch::kind(&input.text("input").or_else(|_| input.text("patch"))?)?,
        },
        "grep" | "rg" => {
            let (path, others) = folders()?;
            ToolKind::Search(Search::Contents {
                path,
                others,
                glob: input.optional("glob")?,
                file_type: input.optional("type")?,
            })
        }
        "glob" => {
            let (path, others) = folders()?;
            ToolKind::Search(Search::Names { path, others, pattern: input.text("pattern")? })
        }
        "web_fetch" => ToolKind::Fetch { url: input.text("url")? },
        "web_search" => ToolKind::WebSearch,
        "task" => input.delegate("agent_type")?,
        own if OWN.contains(&own) => ToolKind::Own,
        other => match other.split_once('-') {
            Some((server, tool)) => ToolKind::Mcp { server: server.to_owned(), tool: tool.to_owned() },
            None => ToolKind::Other,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn keys_are_what_they_do() {
        for (input, line) in [
            ("cat .env{enter}", "cat .env\n"),
            ("x{Enter}sudo id\r", "x\nsudo id\n"),
            ("cat .e{backspace}env\n", "cat .e${key_backspace}env\n"),
            ("{up}{enter}", "${key_up}\n"),
            ("cat .en\t\n", "cat .en${key_control}\n"),
            ("cat .e", "cat .e${key_more}"),
            ("{ctrl+c}", ""),
            ("\u{3}", ""),
            ("rm {a,b}\r\n", "rm {a,b}\n"),
        ] {
            assert_eq!(typed(input), line, "{input}");
        }
    }
}
