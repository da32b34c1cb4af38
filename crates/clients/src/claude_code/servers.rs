//! The MCP servers that the client's files define: which program stands behind a tool's name.
//!
//! Owns the reading of `.mcp.json`, `~/.claude.json` and the administrator's `managed-mcp.json`. Refuses to choose: of several
//! definitions of one name all are returned, because which one the client takes depends on more than its files. A server that
//! the command line names (`--mcp-config`) stands in none of them. Format page: `spec/clients/claude-code.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{Integers, JsonError, Limits, Object, Value, parse_with};

use super::settings;
use crate::servers::Server;

const LIMITS: Limits = Limits { bytes: 16 << 20, depth: 64, integers: Integers::Any };

/// The files that may define servers for a session in `cwd`. `config_dir` is `CLAUDE_CONFIG_DIR`, if it is set.
pub fn files(cwd: &Path, home: &Path, config_dir: Option<&Path>) -> Vec<PathBuf> {
    let own = config_dir.unwrap_or(home).join(".claude.json");
    let managed = Path::new(settings::managed_folder()).join("managed-mcp.json");
    cwd.ancestors().map(|folder| folder.join(".mcp.json")).chain([own, managed]).collect()
}

/// Every definition of a server in one file, for any project, by the name that stands in tools' names.
pub fn servers(text: &str, name: &str) -> Result<Vec<Server>, JsonError> {
    let file = parse_with(text.as_bytes(), LIMITS)?;
    let projects = file.get("projects").and_then(Value::as_object).into_iter().flat_map(Object::iter);
    let scopes = projects.map(|(_, project)| project).chain([&file]);
    let all = scopes.filter_map(|scope| scope.get("mcpServers")?.as_object()).flat_map(Object::iter);
    Ok(all.filter(|(key, _)| as_in_tools(key) == name).map(|(_, value)| server(value)).collect())
}

/// The client writes `_` for whatever a tool's name may not hold.
fn as_in_tools(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    name.chars().map(|letter| if fits(letter) { letter } else { '_' }).collect()
}

fn server(value: &Value) -> Server {
    let starts = matches!(value.get("type").and_then(Value::as_str), None | Some("stdio"));
    let words = value.get("args").and_then(Value::as_array).unwrap_or_default();
    Server {
        command: value.get("command").and_then(Value::as_str).filter(|_| starts).map(str::to_owned),
        args: words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}
