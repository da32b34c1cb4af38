//! Which types of sub-agents there can be: the client's own, and those that files define.
//!
//! Reads names alone. A type of a plugin (`plugin:agent`) is not known by any file here.

use std::fs;
use std::path::Path;

/// The client's own.
const BUILT_IN: [&str; 6] =
    ["general-purpose", "Explore", "Plan", "statusline-setup", "output-style-setup", "claude-code-guide"];
/// Most files that are looked at, and the longest.
const MOST: usize = 500;
const MAX_FILE: u64 = 1 << 20;

/// The types of a project; `own` is the client's own folder of the user.
pub fn agent_types(project: &Path, own: Option<&Path>) -> Vec<String> {
    let mut out: Vec<String> = BUILT_IN.map(str::to_owned).into();
    let folders = [Some(project.join(".claude/agents")), own.map(|own| own.join("agents"))];
    for folder in folders.into_iter().flatten() {
        let mut left = MOST;
        below(&folder, &mut left, &mut out);
    }
    out
}

fn below(folder: &Path, left: &mut usize, out: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(&path, left, out),
            Ok(_) if path.extension().is_some_and(|ending| ending == "md") => out.extend(name(&path)),
            Ok(_) | Err(_) => {}
        }
    }
}

/// `name:` in the head of a definition.
fn name(path: &Path) -> Option<String> {
    let small = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_FILE);
    let text = small.then(|| fs::read_to_string(path).ok()).flatten()?;
    let head = text.strip_prefix("---")?.split("\n---").next()?;
    let name = head.lines().find_map(|line| line.strip_prefix("name:"))?;
    Some(name.trim().trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
}
