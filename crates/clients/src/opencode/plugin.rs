//! The plugin that asks Writ in this client's process: its text, where it lies, what is found of it.
//!
//! Owns one file among the client's plugins. Refuses to touch a file that Writ did not write. The invariant: a file that [`install`] wrote is
//! whole, and byte for byte what this version writes. Format page: `spec/clients/opencode.md`.

use std::path::{Path, PathBuf};

use writ_core::json::{self, Object, Value};

use super::NAME;
use crate::guard;
use crate::settings::{Edited, HookSpec, Installed, Pin, Places, SettingsError, Start};

/// The plugin, for a program of this name.
const TEXT: &str = include_str!("plugin.js");
/// The line that names the program.
const NAMES: &str = "const PROGRAM = ";
/// How a plugin of Writ's begins, whatever its version.
const BEGINS: &str = "// Written by `writ init --client opencode`";
/// The name of the file.
const FILE: &str = "writ.js";
/// The administrator's folder.
const MANAGED: &str = "/etc/opencode";

/// What it listens to.
const EVENTS: [&str; 4] = ["tool.execute.before", "tool.execute.after", "chat.message", "event"];

/// What holds the switches.
pub const PIN: Pin = Pin {
    file: "/etc/opencode/opencode.json",
    is_in: pins,
    how: "as root, copy the plugin to /etc/opencode/writ.js and put `\"plugin\": [\"file:///etc/opencode/writ.js\"]` into \
          /etc/opencode/opencode.json",
    held: &["whoever can write to the user's plugins"],
    holds: &[],
    moved_by: None,
    open: &["`--pure` and `OPENCODE_PURE=1`, for the administrator's plugins too"],
};

fn text(program: &str) -> String {
    let line = |line: &str| match line.strip_prefix(NAMES) {
        Some(_) => format!("{NAMES}{}\n", json::to_compact(program)),
        None => format!("{line}\n"),
    };
    TEXT.lines().map(line).collect()
}

/// The program that a plugin of Writ's starts.
fn program(text: &str) -> Option<String> {
    let named = text.lines().filter(|_| text.starts_with(BEGINS)).find_map(|line| line.strip_prefix(NAMES))?;
    json::parse(named.as_bytes()).ok()?.as_str().map(str::to_owned)
}

/// Where the client keeps its conversations, unless a variable says otherwise.
pub fn database(home: &Path) -> PathBuf {
    home.join(".local/share/opencode/opencode.db")
}

/// The files that the client reads in `project`.
pub fn places(project: &Path, home: &Path) -> Places {
    let own = home.join(".config/opencode");
    let (user, repository) = (own.join("plugin").join(FILE), project.join(".opencode/plugin").join(FILE));
    let plugin = |path: PathBuf| (path, "a plugin of the client");
    let named = |path: PathBuf| (path, "the client's settings");
    let mut others = Vec::new();
    for folder in [&own, &project.join(".opencode")] {
        // Its own tools are code that it runs in its own process, and so is what they load.
        others.extend(
            ["plugin", "plugins", "tool", "tools", "node_modules", "package.json"]
                .map(|name| plugin(folder.join(name))),
        );
        others.push(named(folder.join("config.json")));
    }
    for folder in [own, project.to_owned(), project.join(".opencode")] {
        others.extend(["opencode.json", "opencode.jsonc"].map(|name| named(folder.join(name))));
    }
    others.push(named(MANAGED.into()));
    others.push((database(home), "a transcript of the client"));
    Places { settings: vec![user.clone(), repository.clone()], user, project: repository, managed: None, others }
}

/// Looks at a plugin file.
pub fn inspect(found: Option<&str>) -> Installed {
    let Some((found, program)) = found.and_then(|found| Some((found, program(found)?))) else {
        return Installed { missing: EVENTS.to_vec(), ..Installed::default() };
    };
    let whole = found == text(&program);
    let start = Start { command: guard::line(&program, NAME, "event"), args: None };
    let fails_open = if whole { Vec::new() } else { EVENTS.to_vec() };
    Installed { commands: vec![program], starts: vec![start], fails_open, ..Installed::default() }
}

/// Writes the plugin.
pub fn install(found: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError> {
    let wanted = text(&spec.command);
    match found {
        Some(found) if found == wanted => Ok(Edited { text: wanted, changed: Vec::new() }),
        Some(found) if !found.trim().is_empty() && !found.starts_with(BEGINS) => {
            Err(SettingsError::Shape { pointer: format!("/{FILE}"), expected: "a plugin that Writ wrote" })
        }
        _ => Ok(Edited { text: wanted, changed: EVENTS.to_vec() }),
    }
}

/// Empties a plugin of Writ's.
pub fn remove(found: &str) -> Edited {
    if found.starts_with(BEGINS) {
        return Edited { text: String::new(), changed: EVENTS.to_vec() };
    }
    Edited { text: found.to_owned(), changed: Vec::new() }
}

/// Whether the administrator's settings load Writ's plugin.
fn pins(text: &str) -> bool {
    let settings = json::parse(text.as_bytes()).unwrap_or(Value::Null);
    let plugins = settings.get("plugin").and_then(Value::as_array).unwrap_or_default();
    plugins.iter().filter_map(Value::as_str).any(|path| path.ends_with("/writ.js"))
}

/// A payload of a harmless read.
pub fn sample(cwd: &str) -> String {
    let input = Value::Object([("filePath", Value::from(format!("{cwd}/README.md").as_str()))].into());
    let call = Object::from([("id", Value::from("writ-doctor")), ("tool", Value::from("read")), ("input", input)]);
    let payload = Object::from([
        ("event", Value::from("before-call")),
        ("session", Value::from("writ-doctor")),
        ("cwd", Value::from(cwd)),
        ("call", Value::Object(call)),
    ]);
    json::compact(&Value::Object(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_names_its_program_and_is_known_again() {
        let spec = HookSpec { command: "/o \"p\"/writ".to_owned(), on_failure_block: false, name: None };
        let once = install(None, &spec).unwrap();
        assert!(once.text.contains(r#"const PROGRAM = "/o \"p\"/writ""#));
        assert!(install(Some(&once.text), &spec).unwrap().changed.is_empty());
        let found = inspect(Some(&once.text));
        assert!(found.complete() && found.fails_open.is_empty(), "{found:?}");
        assert_eq!(inspect(Some(&once.text.replace("!== true", "=== true"))).fails_open, EVENTS);
        assert!(install(Some("export const Other = 1\n"), &spec).is_err());
        assert_eq!(remove(&once.text).text, "");
        assert_eq!(inspect(None).missing, EVENTS);
    }
}
