//! Where the client keeps its settings.
//!
//! Owns the list of files that may install or switch off hooks. Refuses to look at the disk or the environment: the
//! caller says where home is. The invariant: every file named here is protected from the agent (R19). Format page:
//! `spec/clients/claude-code.md`.

use std::path::Path;

use crate::settings::Places;

const SETTINGS: &str = "the client's settings";

/// What lies in the client's own folder and comes back into a session by itself.
const RELOADED: [(&str, &str); 8] = [
    ("settings.local.json", SETTINGS),
    ("remote-settings.json", SETTINGS),
    ("shell-snapshots", "what the client's shell starts with"),
    ("session-env", "what the client's shell starts with"),
    ("plugins", "a plugin of the client"),
    ("hooks", "a hook of the client"),
    // A transcript is what a claim and a session are checked against. Notes beside it are the agent's own.
    ("projects/**/*.jsonl", "a transcript of the client"),
    ("projects/**/*.meta.json", "what the client notes of a subagent"),
];

/// The settings files that the client reads in `project`. `config_dir` is `CLAUDE_CONFIG_DIR`, if it is set.
pub fn places(project: &Path, home: &Path, config_dir: Option<&Path>) -> Places {
    let user = config_dir.map_or_else(|| home.join(".claude"), Path::to_owned);
    let managed = Path::new(managed_folder());
    let settings = vec![
        user.join("settings.json"),
        project.join(".claude/settings.json"),
        project.join(".claude/settings.local.json"),
        managed.join("managed-settings.json"),
    ];
    let mut others = vec![(managed.join("managed-settings.d"), SETTINGS)];
    others.extend(RELOADED.iter().map(|(name, what)| (user.join(name), *what)));
    others.push((config_dir.unwrap_or(home).join(".claude.json"), SETTINGS));
    others.push((project.join(".claude/hooks"), "a hook of the client"));
    Places {
        user: user.join("settings.json"),
        project: project.join(".claude/settings.json"),
        managed: Some(managed.join("managed-settings.json")),
        settings,
        others,
    }
}

/// The administrator's folder.
pub const fn managed_folder() -> &'static str {
    if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode"
    } else if cfg!(windows) {
        "C:\\Program Files\\ClaudeCode"
    } else {
        "/etc/claude-code"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_folder_moves_the_users_file_only() {
        let (project, home) = (Path::new("/p"), Path::new("/h"));
        let plain = places(project, home, None);
        assert_eq!(plain.user, Path::new("/h/.claude/settings.json"));
        let moved = places(project, home, Some(Path::new("/c")));
        assert_eq!(moved.user, Path::new("/c/settings.json"));
        assert_eq!(moved.project, plain.project);
        assert!(moved.settings.iter().any(|path| path == Path::new("/p/.claude/settings.local.json")));
        assert!(moved.settings.len() == 4 && !moved.settings.contains(&plain.user));
        let reloaded = |places: &Places, path: &str| places.others.iter().any(|(own, _)| own == Path::new(path));
        assert!(reloaded(&plain, "/h/.claude/shell-snapshots") && reloaded(&plain, "/h/.claude.json"));
        assert!(reloaded(&moved, "/c/shell-snapshots") && reloaded(&moved, "/c/.claude.json"));
        assert!(!reloaded(&moved, "/h/.claude.json") && reloaded(&moved, "/p/.claude/hooks"));
    }
}
