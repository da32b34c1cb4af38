//! The client as a program (measured, `spec/clients/claude-code.md`).

use std::path::Path;

use crate::program::{Begins, Needs, Own};

/// The program's name.
pub const PROGRAM: &str = "claude";

/// Names in its folder that it writes: conversations, lists, what it remembers of files, caches, logs.
const DATA: [&str; 21] = [
    "projects",
    "todos",
    "tasks",
    "teams",
    "plans",
    "history.jsonl",
    "file-history",
    "backups",
    "cache",
    "debug",
    "downloads",
    "ide",
    "image-cache",
    "logs",
    "paste-cache",
    "statsig",
    "stats-cache.json",
    "telemetry",
    "usage-data",
    "mcp-needs-auth-cache.json",
    CREDENTIALS,
];

/// Names in its folder that a later session obeys, beside the settings that are protected anyway.
const KEPT: [&str; 9] = [
    "CLAUDE.md",
    "agents/",
    "commands/",
    "skills/",
    "rules/",
    "output-styles/",
    "workflows/",
    "keybindings.json",
    "local/",
];

/// Its login, where the system has no key chain.
const CREDENTIALS: &str = ".credentials.json";

/// Folders that other sessions read too: what their shells start with, and keys of those that run.
const SHARED: [&str; 3] = ["shell-snapshots", "session-env", "sessions"];

/// What it needs.
pub fn needs(user: &Path, folder: Option<&Path>) -> Needs {
    let own = folder.map_or_else(|| user.join(".claude"), Path::to_owned);
    let shared = SHARED.iter().map(|name| Own { path: own.join(name), begins: Begins::Empty });
    // Servers that a later session starts are named in it.
    let file = Own { path: folder.unwrap_or(user).join(".claude.json"), begins: Begins::Copy("{}\n") };
    Needs {
        data: &DATA,
        kept: &KEPT,
        own: shared.chain([file]).collect(),
        login: vec![own.join(CREDENTIALS)],
        variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        set: &[("DISABLE_AUTOUPDATER", "1")],
        folder: own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude_code::settings::places;

    /// What is protected as settings is either not written, or one of the client's own in a run.
    #[test]
    fn nothing_that_is_obeyed_is_data() {
        let (user, moved) = (Path::new("/h"), Path::new("/c"));
        for folder in [None, Some(moved)] {
            let needs = needs(user, folder);
            let places = places(Path::new("/p"), user, folder);
            let protected = places.settings.iter().chain(places.others.iter().map(|(path, _)| path));
            for path in protected.filter(|path| path.starts_with(&needs.folder)) {
                let name = path.strip_prefix(&needs.folder).unwrap().to_str().unwrap();
                // Of a pattern below data, the rest of that folder is.
                assert!(name.contains('*') || !needs.data.contains(&name), "{name}");
            }
            assert!(needs.own.iter().any(|own| own.path.ends_with(".claude.json")));
            assert!(needs.login.iter().all(|path| path.starts_with(&needs.folder)));
        }
    }
}
