//! The client's `config.toml`: which hooks it may run, and whether it runs any.
//!
//! Owns the hash by which the client knows a hook that its user trusts, and the entries that say so. Refuses to overwrite what the user
//! decided there: an entry of theirs for the same place is an error that names it. The invariant: what is written is valid TOML that says
//! what it did before, and the hashes. Format page: `spec/clients/codex.md`.

use std::path::Path;

use toml::{Table, Value as Toml};
use writ_core::Digest;
use writ_core::json::{self, Value, canonical, parse_with};

use super::settings::{AT_END, EVENTS, FORM};
use crate::hooks_file::{LIMITS, object, ours};
use crate::servers::Server;
use crate::settings::{Edited, Pin, SettingsError};

/// Stands above each entry of ours.
const MARK: &str = "# trusted by `writ init`";

/// Seconds that the client waits for a hook that does not say how long.
const DEFAULT_TIMEOUT: u64 = 600;

/// What holds the switches.
pub const PIN: Pin = Pin {
    file: "/etc/codex/requirements.toml",
    is_in: pins,
    how: "as root, put `[features]` with `hooks = true` into /etc/codex/requirements.toml: no settings file and no option switches \
          hooks off then",
    held: &["`--disable hooks`", "`[features] hooks = false` in the user's config.toml or a trusted project's"],
    holds: &["features.hooks", "features.codex_hooks"],
    moved_by: None,
    open: &[
        "hooks that nobody trusted are left out in silence; `allow_managed_hooks_only` leaves out all but the administrator's",
    ],
};

/// A hook in a settings file, as the client trusts it.
struct Trusted {
    key: String,
    hash: String,
}

impl Trusted {
    fn header(&self) -> String {
        format!("[hooks.state.{}]", json::to_compact(&self.key))
    }

    fn entry(&self) -> String {
        format!("\n{MARK}\n{}\ntrusted_hash = \"{}\"\n", self.header(), self.hash)
    }

    /// What the file says of it.
    fn of<'a>(&self, config: &'a Table) -> Option<&'a Table> {
        config.get("hooks")?.get("state")?.get(&self.key)?.as_table()
    }
}

/// `PreToolUse` → `pre_tool_use`.
fn snake(event: &str) -> String {
    let letter = |(at, letter): (usize, char)| {
        let gap = if at > 0 && letter.is_ascii_uppercase() { "_" } else { "" };
        format!("{gap}{}", letter.to_ascii_lowercase())
    };
    event.chars().enumerate().map(letter).collect()
}

/// The hash of a hook: of its definition, with what it leaves out put in, as canonical JSON.
fn hash(event: &str, matcher: Option<&str>, entry: &Value) -> String {
    let most = if matches!(event, "SessionEnd" | "Interrupt") { AT_END } else { u64::MAX };
    let timeout = entry.get("timeout").and_then(Value::as_u64).unwrap_or(DEFAULT_TIMEOUT).min(most);
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let hook = object([
        ("type", Value::from("command")),
        ("command", Value::from(command)),
        ("timeout", Value::from(timeout)),
        ("async", Value::from(entry.get("async").and_then(Value::as_bool).unwrap_or(false))),
    ]);
    let matcher = matcher.filter(|_| !matches!(event, "UserPromptSubmit" | "Stop"));
    let members = [("event_name", Value::from(snake(event).as_str())), ("hooks", Value::Array(vec![hook]))];
    let members = members.into_iter().chain(matcher.map(|matcher| ("matcher", Value::from(matcher))));
    format!("sha256:{}", Digest::of(canonical(&object(members)).as_bytes()).hex())
}

/// Writ's hooks in a settings file.
fn all(settings: &Path, installed: &str) -> Vec<Trusted> {
    let parsed = parse_with(installed.as_bytes(), LIMITS).unwrap_or(Value::Null);
    let found = ours(&parsed, &FORM);
    let listened = found.into_iter().filter(|found| EVENTS.contains(&found.event));
    let trusted = listened.map(|found| {
        let matcher = found.group_value.get("matcher").and_then(Value::as_str);
        Trusted {
            key: format!("{}:{}:{}:{}", settings.display(), snake(found.event), found.item, found.entry),
            hash: hash(found.event, matcher, found.entry_value),
        }
    });
    trusted.collect()
}

fn read(text: &str) -> Result<Table, SettingsError> {
    text.parse::<Table>().map_err(|_not_toml| SettingsError::Shape {
        pointer: "config.toml".to_owned(),
        expected: "TOML that the client can read",
    })
}

/// Trusts Writ's hooks in a settings file. A second run changes nothing.
pub fn install(text: Option<&str>, settings: &Path, installed: &str) -> Result<Edited, SettingsError> {
    let text = text.unwrap_or_default();
    // Entries of ours for hooks that moved are taken out first.
    let mut edited = remove(text, settings)?.text;
    let config = read(&edited)?;
    for trusted in all(settings, installed) {
        match trusted.of(&config) {
            None => {
                if !edited.is_empty() && !edited.ends_with('\n') {
                    edited.push('\n');
                }
                edited.push_str(&trusted.entry());
            }
            Some(state) if is_trusted(state, &trusted) => {}
            Some(_) => {
                let expected = "the trust of Writ's hook: somebody else's word on it is there already";
                return Err(SettingsError::Shape { pointer: trusted.header(), expected });
            }
        }
    }
    let changed = if edited == text { Vec::new() } else { vec!["trusted_hash"] };
    let edited = if changed.is_empty() { text.to_owned() } else { edited };
    let config = read(&edited).map_err(|_closed| SettingsError::Shape {
        pointer: "/hooks".to_owned(),
        expected: "a table that can be added to: write `[hooks.state]` in the place of `hooks = { … }` or `state = { … }`",
    })?;
    if all(settings, installed)
        .iter()
        .any(|trusted| !trusted.of(&config).is_some_and(|state| is_trusted(state, trusted)))
    {
        return Err(SettingsError::Shape {
            pointer: "/hooks/state".to_owned(),
            expected: "a table that can be added to",
        });
    }
    Ok(Edited { text: edited, changed })
}

fn is_trusted(state: &Table, trusted: &Trusted) -> bool {
    let enabled = state.get("enabled").and_then(Toml::as_bool) != Some(false);
    enabled && state.get("trusted_hash").and_then(Toml::as_str) == Some(trusted.hash.as_str())
}

/// Takes out what [`install`] put in for a settings file. An entry that somebody added to stays.
pub fn remove(text: &str, settings: &Path) -> Result<Edited, SettingsError> {
    read(text)?;
    let begins =
        format!("[hooks.state.{}", json::to_compact(&format!("{}:", settings.display())).trim_end_matches('"'));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut kept: Vec<&str> = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((line, after)) = rest.split_first() {
        let ours = matches!(after, [header, hash, ..] if line.trim() == MARK
            && header.starts_with(&begins) && hash.starts_with("trusted_hash = "));
        let ends = after.get(2).is_none_or(|next| next.trim().is_empty() || next.starts_with(['[', '#']));
        if ours && ends {
            if kept.last().is_some_and(|line| line.trim().is_empty()) {
                kept.pop();
            }
            rest = after.get(2..).unwrap_or_default();
        } else {
            kept.push(line);
            rest = after;
        }
    }
    let edited = kept.concat();
    let changed = if edited == text { Vec::new() } else { vec!["trusted_hash"] };
    Ok(Edited { text: edited, changed })
}

/// Writ's hooks that the client would leave out, by their keys.
pub fn missing(text: Option<&str>, settings: &Path, installed: &str) -> Vec<String> {
    let config = read(text.unwrap_or_default()).unwrap_or_default();
    let untrusted = all(settings, installed)
        .into_iter()
        .filter(|trusted| !trusted.of(&config).is_some_and(|state| is_trusted(state, trusted)));
    untrusted.map(|trusted| trusted.key).collect()
}

/// Members of a `config.toml` that switch hooks off.
pub fn switches(text: &str) -> Vec<String> {
    let config = read(text).unwrap_or_default();
    let features = config.get("features");
    let names = ["hooks", "codex_hooks"];
    let off =
        names.iter().filter(|name| features.and_then(|all| all.get(**name)).and_then(Toml::as_bool) == Some(false));
    let mut out: Vec<String> = off.map(|name| format!("features.{name}")).collect();
    if config.get("allow_managed_hooks_only").and_then(Toml::as_bool) == Some(true) {
        out.push("allow_managed_hooks_only".to_owned());
    }
    out
}

/// Whether an administrator's requirements hold the switches.
fn pins(text: &str) -> bool {
    let requirements = read(text).unwrap_or_default();
    let hooks = requirements.get("features").and_then(|all| all.get("hooks"));
    hooks.and_then(Toml::as_bool) == Some(true)
}

/// The definitions of a server.
pub fn servers(text: &str, name: &str) -> Vec<Server> {
    let config = read(text).unwrap_or_default();
    let found = config.get("mcp_servers").and_then(|all| all.get(name)).and_then(Toml::as_table);
    let server = |table: &Table| Server {
        command: table.get("command").and_then(Toml::as_str).map(str::to_owned),
        args: table
            .get("args")
            .and_then(Toml::as_array)
            .into_iter()
            .flatten()
            .filter_map(Toml::as_str)
            .map(str::to_owned)
            .collect(),
    };
    found.map(server).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codex::settings;
    use crate::settings::HookSpec;

    /// Computed with the client's own rule on a hook of another program's, and equal to what the client stores.
    #[test]
    fn the_hash_is_the_clients() {
        let entry = parse_with(br#"{"type":"command","command":"/bin/true","timeout":30}"#, LIMITS).unwrap();
        let text = r#"{"event_name":"pre_tool_use","hooks":[{"async":false,"command":"/bin/true","timeout":30,"type":"command"}]}"#;
        assert_eq!(hash("PreToolUse", None, &entry), format!("sha256:{}", Digest::of(text.as_bytes()).hex()));
        let text = r#"{"event_name":"session_end","hooks":[{"async":false,"command":"/bin/true","timeout":3,"type":"command"}]}"#;
        assert_eq!(hash("SessionEnd", None, &entry), format!("sha256:{}", Digest::of(text.as_bytes()).hex()));
        assert_ne!(hash("PreToolUse", Some("Bash"), &entry), hash("PreToolUse", None, &entry));
    }

    #[test]
    fn trust_is_put_in_and_taken_out_to_the_byte() {
        let spec = HookSpec { command: "/opt/writ".to_owned(), on_failure_block: false, name: None };
        let installed = settings::install(None, &spec).unwrap().text;
        let path = Path::new("/home/u \"x/.codex/hooks.json");
        for text in [
            "",
            "model = \"x\"\n",
            "model = \"x\"\n\n[features]\nhooks = true\n",
            "[hooks.state.\"/other/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:00\"\n",
            "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"x\"\n",
        ] {
            let once = install(Some(text), path, &installed).unwrap();
            assert_eq!(once.changed, ["trusted_hash"]);
            assert!(missing(Some(&once.text), path, &installed).is_empty(), "{}", once.text);
            assert_eq!(missing(Some(text), path, &installed).len(), EVENTS.len());
            assert!(install(Some(&once.text), path, &installed).unwrap().changed.is_empty());
            assert_eq!(remove(&once.text, path).unwrap().text, text);
            assert!(remove(text, path).unwrap().changed.is_empty());
        }
    }

    #[test]
    fn what_somebody_else_said_stays() {
        let spec = HookSpec { command: "writ".to_owned(), on_failure_block: false, name: None };
        let installed = settings::install(None, &spec).unwrap().text;
        let path = Path::new("/h/.codex/hooks.json");
        let key = "[hooks.state.\"/h/.codex/hooks.json:stop:0:0\"]\n";
        for refused in ["hooks = { state = {} }\n".to_owned(), format!("{key}enabled = false\n"), "a = \n".to_owned()] {
            assert!(install(Some(&refused), path, &installed).is_err(), "{refused}");
        }
        let once = install(None, path, &installed).unwrap().text;
        let off = once.replacen("\n\n#", "\nenabled = false\n\n#", 1);
        assert_eq!(missing(Some(&off), path, &installed).len(), 1);
        assert!(remove(&off, path).unwrap().text.contains("enabled = false"));
        assert_eq!(switches("[features]\nhooks = false\n"), ["features.hooks"]);
        assert!(switches("[features]\nhooks = true\n").is_empty() && switches("x").is_empty());
    }
}
