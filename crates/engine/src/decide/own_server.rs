//! Calls of Writ's own MCP server: asking what an action would lose loses nothing.
//!
//! Refuses to go by the name: another server may have it. What counts is that every definition of the server in the files of
//! the agent's client starts this very program with `mcp serve`, and that there is one. Whatever cannot be read is another's.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use writ_clients::Client;
use writ_clients::servers::{MOST, Server};
use writ_core::{ToolCall, ToolKind, regular_file};

use crate::Home;

/// Whether the call is a question to `writ mcp serve`, as far as the files of the agent's client say.
pub fn is_ours(call: &ToolCall, client: &dyn Client, home: &Home) -> bool {
    let ToolKind::Mcp { server, tool } = &call.kind else { return false };
    !tool.is_empty() && defined(server, Path::new(&call.cwd), client, home).unwrap_or(false)
}

/// Whether all definitions are Writ's; `None` where that cannot be told.
fn defined(name: &str, cwd: &Path, client: &dyn Client, home: &Home) -> Option<bool> {
    let (servers, own) = (client.servers()?, fs::canonicalize(home.program.as_ref()?).ok()?);
    let mut found = Vec::new();
    for file in servers.files(cwd, home.user.as_ref()?, home.folder(client)) {
        match regular_file::text(&file, MOST) {
            Ok(text) => found.extend(servers.defined(&text, name).ok()?),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(_) => return None,
        }
    }
    Some(!found.is_empty() && found.iter().all(|server| starts(server, &own, home)))
}

fn starts(server: &Server, own: &Path, home: &Home) -> bool {
    let serves = matches!(server.args.as_slice(), [first, second, ..] if first == "mcp" && second == "serve");
    let program = server.command.as_deref().and_then(|command| program(command, home));
    serves && program.and_then(|path| fs::canonicalize(path).ok()).is_some_and(|path| path == own)
}

fn program(command: &str, home: &Home) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(|path| path.is_absolute());
    }
    home.search.iter().map(|folder| folder.join(command)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_clients::claude_code::ClaudeCode;
    use writ_core::json::Value;

    /// Whether a call of `mcp__writ__recourse_evaluate_shell` is ours where the user's and the project's files say so.
    fn ours(users: &str, projects: &str) -> bool {
        let below = tempfile::tempdir().unwrap();
        let (user, project, bin) = (below.path().join("home"), below.path().join("project"), below.path().join("bin"));
        for (file, text) in [(&user, users), (&project, projects), (&bin, "")] {
            fs::create_dir(file).unwrap();
            let name = if file == &user { ".claude.json" } else { ".mcp.json" };
            if !text.is_empty() {
                fs::write(file.join(name), text.replace("BIN", &bin.to_string_lossy())).unwrap();
            }
        }
        fs::write(bin.join("writ"), "").unwrap();
        fs::write(bin.join("other"), "").unwrap();
        let program = Some(bin.join("writ"));
        let home = Home { user: Some(user), program, search: vec![bin], ..Home::default() };
        let tool = "mcp__writ__recourse_evaluate_shell".to_owned();
        is_ours(&ToolCall::new(tool, Value::Null, project.to_string_lossy().into_owned()), &ClaudeCode, &home)
    }

    #[test]
    fn the_program_behind_the_name_counts() {
        let writ = r#"{"mcpServers": {"writ": {"command": "writ", "args": ["mcp", "serve", "--attest"]}}}"#;
        let path =
            r#"{"projects": {"/p": {"mcpServers": {"writ": {"command": "BIN/writ", "args": ["mcp", "serve"]}}}}}"#;
        assert!(ours(writ, "") && ours("", writ) && ours(path, "") && ours(path, writ));
        for other in [
            r#"{"mcpServers": {"writ": {"command": "other", "args": ["mcp", "serve"]}}}"#,
            r#"{"mcpServers": {"writ": {"command": "writ", "args": ["serve"]}}}"#,
            r#"{"mcpServers": {"writ": {"command": "sh", "args": ["-c", "writ mcp serve"]}}}"#,
            r#"{"mcpServers": {"writ": {"type": "http", "url": "http://127.0.0.1:1/", "command": "writ", "args": ["mcp", "serve"]}}}"#,
            r#"{"mcpServers": {"writ": 1}}"#,
            "{",
        ] {
            assert!(!ours(other, "") && !ours(writ, other), "{other}");
        }
        assert!(
            !ours("", "") && !ours(r#"{"mcpServers": {"echo": {"command": "writ", "args": ["mcp", "serve"]}}}"#, "")
        );
    }
}
