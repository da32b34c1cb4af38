//! Which shell the client runs its lines with, as its settings say.
//!
//! Owns one member: `env.CLAUDE_CODE_SHELL`. The client takes it over its own environment, in the user's and the project's
//! settings alike, and gives it to its hooks (measured with 2.1.329). Without it the client runs the shell that `SHELL` names
//! where that is bash, else zsh where there is one. Format page: `spec/clients/claude-code.md`.

use writ_core::json::{Value, parse_with};

use super::checked;
use crate::hooks_file::splice::{append_member, children, index_of, remove_child};
use crate::hooks_file::{LIMITS, object, split_mark};
use crate::settings::{Edited, SettingsError, is_bash};

/// The variable that pins the shell.
pub const SHELL_VARIABLE: &str = "CLAUDE_CODE_SHELL";
/// What it is pinned to: looked up in `PATH`, because a project's settings are shared between machines.
pub const PINNED: &str = "bash";

const MEMBER: &str = "/env/CLAUDE_CODE_SHELL";

/// The shell that settings name.
pub fn pinned(settings: &Value) -> Option<&str> {
    settings.get("env").and_then(|env| env.get(SHELL_VARIABLE)).and_then(Value::as_str)
}

/// Has the client run bash. A second run changes nothing, and neither does one where a bash is named already.
pub fn pin_shell(text: &str) -> Result<Edited, SettingsError> {
    let (mark, body) = split_mark(text);
    let settings = checked(body)?;
    if pinned(&settings).is_some_and(is_bash) {
        return Ok(Edited { text: text.to_owned(), changed: Vec::new() });
    }
    let wrong = || SettingsError::Shape { pointer: "/env".to_owned(), expected: "an object" };
    let pin = Value::from(PINNED);
    let edited = match settings.get("env") {
        None => append_member(body, "", "env", &object([(SHELL_VARIABLE, pin)])),
        Some(env) => {
            let cleared = match env.get(SHELL_VARIABLE) {
                Some(_) => {
                    remove_child(body, "/env", index_of(&settings, MEMBER).ok_or_else(wrong)?).ok_or_else(wrong)?
                }
                None => body.to_owned(),
            };
            append_member(&cleared, "/env", SHELL_VARIABLE, &pin)
        }
    };
    Ok(Edited { text: format!("{mark}{}", edited.ok_or_else(wrong)?), changed: vec!["env"] })
}

/// Takes the pin out again, and `env` with it where that held nothing else. Another shell than the pinned one stays.
pub fn unpin_shell(text: &str) -> Result<Edited, SettingsError> {
    let (mark, body) = split_mark(text);
    let settings = parse_with(body.as_bytes(), LIMITS)?;
    let unchanged = Edited { text: text.to_owned(), changed: Vec::new() };
    if pinned(&settings) != Some(PINNED) {
        return Ok(unchanged);
    }
    let alone = children(&settings, "/env") == Some(1);
    let (parent, member) = if alone { ("", "/env") } else { ("/env", MEMBER) };
    let edited = index_of(&settings, member).and_then(|index| remove_child(body, parent, index));
    Ok(edited.map_or(unchanged, |body| Edited { text: format!("{mark}{body}"), changed: vec!["env"] }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_once_and_takes_back() {
        for text in [
            "{}",
            "{\n  \"model\": \"opus\"\n}\n",
            "{\"env\": {\"A\": \"b\"}}",
            "\u{feff}{\n\t\"env\": {\n\t\t\"A\": \"b\"\n\t}\n}",
        ] {
            let once = pin_shell(text).unwrap().text;
            let settings = parse_with(split_mark(&once).1.as_bytes(), LIMITS).unwrap();
            assert_eq!(pinned(&settings), Some(PINNED), "{once}");
            assert!(pin_shell(&once).unwrap().changed.is_empty());
            assert_eq!(unpin_shell(&once).unwrap().text, text);
        }
    }

    #[test]
    fn replaces_another_shell_and_keeps_a_bash() {
        let other = pin_shell("{\"env\":{\"CLAUDE_CODE_SHELL\":\"/bin/zsh\",\"A\":\"b\"}}").unwrap().text;
        assert!(
            other.contains("\"CLAUDE_CODE_SHELL\": \"bash\"")
                && !other.contains("zsh")
                && other.contains("\"A\":\"b\"")
        );
        let own = "{\"env\":{\"CLAUDE_CODE_SHELL\":\"/opt/homebrew/bin/bash\"}}";
        assert!(pin_shell(own).unwrap().changed.is_empty() && unpin_shell(own).unwrap().changed.is_empty());
        assert!(pin_shell("{\"env\": 5}").is_err() && pin_shell("{\"env\": [],}").is_err());
    }
}
