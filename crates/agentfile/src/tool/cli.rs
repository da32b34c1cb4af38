//! A tool that is a shell line: UTCP's `cli` template.
//!
//! Owns what arguments make of it: one line for one shell, so that what is decided is what is run. Refuses secrets in its variables: nothing
//! keeps a value from a program that has it. Invariant: an argument is one value of one word ([`super::quoting`]). Page: `spec/tools.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use writ_core::json::{self, Object, Value};

use super::quoting::{fill_at, literal};
use super::template::{Text, is_variable};
use super::{Malformed, plain};

/// Most commands of one tool.
const MOST: usize = 64;

/// A tool that is a shell line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cli {
    steps: Vec<Step>,
    /// Whether arguments without a place in it are options behind it: `command_name`.
    options: bool,
    variables: BTreeMap<String, String>,
    /// The variables of the caller's that it is run with beside those that every program gets; `None` for those alone.
    pub inherited: Option<Vec<String>>,
    /// The folder that it is run in, as it is written.
    pub folder: Option<String>,
    pointer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    command: String,
    #[serde(default)]
    append_to_final_output: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(default, rename = "name")]
    _name: Option<Value>,
    #[serde(default, rename = "type", alias = "call_template_type", alias = "provider_type")]
    _kind: Option<Value>,
    #[serde(default, rename = "allowed_communication_protocols")]
    _protocols: Option<Value>,
    #[serde(default)]
    commands: Option<Vec<Step>>,
    #[serde(default)]
    command_name: Option<String>,
    #[serde(default)]
    env_vars: Option<BTreeMap<String, String>>,
    #[serde(default)]
    inherit_env_vars: Option<Vec<String>>,
    #[serde(default)]
    working_dir: Option<String>,
    #[serde(default)]
    auth: Option<Value>,
}

impl Cli {
    pub(super) fn read(pointer: &str, template: &Value) -> Result<Self, Malformed> {
        let wrong = |below: &str, why: String| Malformed::new(format!("{pointer}{below}"), why);
        let wire: Wire = json::from_value(template).map_err(|error| wrong("", error.to_string()))?;
        if wire.auth.is_some_and(|auth| auth != Value::Null) {
            return Err(wrong("/auth", "a command is given no secret".to_owned()));
        }
        let (steps, options) = match (wire.commands, wire.command_name) {
            (Some(steps), None) => (steps, false),
            (None, Some(command)) => (vec![Step { command, append_to_final_output: None }], true),
            (None, None) => return Err(wrong("", "it has neither `commands` nor `command_name`".to_owned())),
            (Some(_), Some(_)) => return Err(wrong("", "it has both `commands` and `command_name`".to_owned())),
        };
        if steps.is_empty() || steps.len() > MOST {
            return Err(wrong("/commands", format!("it has none, or more than {MOST}")));
        }
        let variables = wire.env_vars.unwrap_or_default();
        for (name, value) in &variables {
            let place = format!("/env_vars/{name}");
            if !is_variable(name) {
                return Err(wrong(&place, "this is no variable's name".to_owned()));
            }
            if let Some(variable) = Text::read(value).variables().next() {
                let why =
                    format!("a command is given no value of `{variable}`: nothing would keep it from whatever it runs");
                return Err(wrong(&place, why));
            }
        }
        if let Some(name) = wire.inherit_env_vars.iter().flatten().find(|name| !is_variable(name)) {
            return Err(wrong("/inherit_env_vars", format!("`{name}` is no variable's name")));
        }
        let (inherited, folder) = (wire.inherit_env_vars, wire.working_dir);
        Ok(Self { steps, options, variables, inherited, folder, pointer: pointer.to_owned() })
    }

    /// The line that it is with these arguments.
    pub fn line(&self, arguments: &Object) -> Result<String, Malformed> {
        let mut used = BTreeSet::new();
        let mut commands = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            let pointer = if self.options {
                format!("{}/command_name", self.pointer)
            } else {
                format!("{}/commands/{at}", self.pointer)
            };
            let mut value = |name: &str| {
                let value = arguments.get(name)?;
                used.insert(name.to_owned());
                Some(Ok(plain(value)))
            };
            let mut command = fill_at(&pointer, &step.command, self.options, &mut value)?;
            if self.options {
                for (name, value) in arguments.iter().filter(|(name, _)| !used.contains(*name)) {
                    option(name, value, &mut command).map_err(|why| Malformed::new(&pointer, why))?;
                }
            }
            commands.push(command);
        }
        let variables = self.variables.iter().map(|(name, value)| format!("export {name}={}\n", literal(value)));
        Ok(variables.collect::<String>() + &self.joined(&commands))
    }

    /// One line of several commands: each in the shell that the one before left, but those whose output another one uses.
    fn joined(&self, commands: &[String]) -> String {
        if let [only] = commands {
            return only.clone();
        }
        let last = commands.len() - 1;
        let told = |at: usize| self.steps.get(at).and_then(|step| step.append_to_final_output).unwrap_or(at == last);
        let mut out = String::new();
        for (at, command) in commands.iter().enumerate() {
            let name = format!("CMD_{at}_OUTPUT");
            let wanted = commands.iter().skip(at + 1).any(|later| later.contains(&name));
            out.push_str(&match (wanted, told(at)) {
                (true, true) => format!("{name}=$({command}\n)\nprintf '%s\\n' \"${name}\"\n"),
                (true, false) => format!("{name}=$({command}\n)\n"),
                (false, true) => format!("{command}\n"),
                (false, false) => format!("{{ {command}\n}} > /dev/null\n"),
            });
        }
        out.trim_end().to_owned()
    }
}

/// An argument as an option: `--name value`; a list is several, a truth none or a bare one.
fn option(name: &str, value: &Value, out: &mut String) -> Result<(), String> {
    let plain_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !plain_name {
        return Err("the name of an argument is none of an option: letters, digits, `_`, `-` and `.`".to_owned());
    }
    let mut one = |value: &Value| {
        let text = plain(value);
        if text.contains('\0') {
            return Err("an argument holds a zero byte, which no command can be given".to_owned());
        }
        out.push_str(&format!(" --{name} {}", literal(&text)));
        Ok(())
    };
    match value {
        Value::Bool(true) => out.push_str(&format!(" --{name}")),
        Value::Bool(false) | Value::Null => {}
        Value::Array(items) => return items.iter().try_for_each(one),
        Value::Number(_) | Value::String(_) | Value::Object(_) => return one(value),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Description, How};
    use super::*;

    fn cli(template: &str) -> Result<Cli, Malformed> {
        let text = format!(r#"{{"tool_call_template":{template}}}"#);
        match Description::read(text.as_bytes())?.how {
            How::Cli(cli) => Ok(cli),
            How::Http(_) | How::Program | How::Server => panic!("no command"),
        }
    }

    fn line(template: &str, arguments: &str) -> Result<String, Malformed> {
        cli(template)?.line(json::parse(arguments.as_bytes()).unwrap().as_object().unwrap())
    }

    #[test]
    fn commands_share_a_shell_and_their_outputs() {
        let one = r#"{"call_template_type":"cli","commands":[{"command":"grep -c UTCP_ARG_word_UTCP_END f"}]}"#;
        assert_eq!(line(one, r#"{"word":"it's"}"#).unwrap(), r"grep -c 'it'\''s' f");
        assert!(line(one, "{}").unwrap_err().why.contains("`word`"));
        let more = r#"{"call_template_type":"cli","commands":[{"command":"cd /tmp"},{"command":"pwd"},
            {"command":"echo \"in $CMD_1_OUTPUT\""}],"env_vars":{"A":"x y"}}"#;
        let line = line(more, "{}").unwrap();
        assert_eq!(line, "export A='x y'\n{ cd /tmp\n} > /dev/null\nCMD_1_OUTPUT=$(pwd\n)\necho \"in $CMD_1_OUTPUT\"");
        let out = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8(out.stdout).unwrap(), "in /tmp\n");
    }

    #[test]
    fn an_older_command_takes_options() {
        let older = r#"{"call_template_type":"cli","command_name":"ls -la ${path} $HOME"}"#;
        let line = line(older, r#"{"path":"a b","all":true,"none":false,"n":[1,2],"o":{"a":1}}"#).unwrap();
        assert_eq!(line, r#"ls -la 'a b' $HOME --all --n '1' --n '2' --o '{"a":1}'"#);
    }

    #[test]
    fn secrets_are_refused() {
        for (template, pointer) in [
            (
                r#"{"call_template_type":"cli","commands":[{"command":"a"}],"env_vars":{"T":"${TOKEN}"}}"#,
                "/tool_call_template/env_vars/T",
            ),
            (
                r#"{"call_template_type":"cli","commands":[{"command":"a"}],"env_vars":{"T=":"x"}}"#,
                "/tool_call_template/env_vars/T=",
            ),
            (
                r#"{"call_template_type":"cli","commands":[{"command":"a"}],"auth":{"auth_type":"basic"}}"#,
                "/tool_call_template/auth",
            ),
            (r#"{"call_template_type":"cli","commands":[]}"#, "/tool_call_template/commands"),
        ] {
            assert_eq!(cli(template).unwrap_err().pointer, pointer);
        }
        let older = r#"{"call_template_type":"cli","command_name":"a"}"#;
        assert!(line(older, r#"{"x; touch pwned":"1"}"#).is_err());
    }
}
