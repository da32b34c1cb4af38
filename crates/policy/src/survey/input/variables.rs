//! Variables in a text that is a path: those whose values in the session are known, and what is left of others.

use writ_shell::{Access, Part, Source};

use super::members::Member;
use crate::facts::{PathFact, PathKind};
use crate::survey::Survey;
use crate::survey::pattern::pattern_of;

/// Names for the folder that the session works in, as shells and editors have them.
const FOLDERS: [&str; 8] =
    ["PWD", "env:PWD", "env.PWD", "workspaceFolder", "workspaceRoot", "cwd", "CLAUDE_PROJECT_DIR", "INIT_CWD"];
/// Names for the user's home.
const HOMES: [&str; 4] = ["HOME", "env:HOME", "env.HOME", "userHome"];

impl Survey<'_> {
    /// A text as a server takes it that expands variables; `None` where it has none whose value is known.
    pub(super) fn with_known_variables(&self, text: &str) -> Option<String> {
        if !text.contains(['$', '`']) {
            return None;
        }
        let mut rest = text.replace("$(pwd)", "$PWD").replace("`pwd`", "$PWD");
        let mut out = String::new();
        while let Some(at) = rest.find('$') {
            let behind = rest.get(at + 1..).unwrap_or_default();
            out.push_str(rest.get(..at).unwrap_or_default());
            let (value, length) = self.value_of(behind).unwrap_or_default();
            // One that is not known stays as it is.
            out.push_str(value.unwrap_or("$"));
            rest = behind.get(length..).unwrap_or_default().to_owned();
        }
        out.push_str(&rest);
        let out: String = out.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
        (out != text).then_some(out)
    }

    /// The value of the variable that a text begins with, behind its sign, and how long that is.
    fn value_of(&self, text: &str) -> Option<(Option<&str>, usize)> {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, length) = match text.strip_prefix('{') {
            Some(inner) => {
                let end = inner.find('}')?;
                let inside = inner.get(..end)?;
                // `${NAME:-x}`, `${NAME%/}`: with a value, it is the value.
                let own = inside.find(|c: char| !letter(c) && !matches!(c, ':' | '.')).unwrap_or(inside.len());
                (inside.get(..own)?.trim_end_matches(':'), end + 2)
            }
            None => {
                let end = text.find(|c: char| !letter(c)).unwrap_or(text.len());
                (text.get(..end)?, end)
            }
        };
        let value = match name {
            name if FOLDERS.contains(&name) => Some(self.call.cwd.as_str()),
            name if HOMES.contains(&name) => self.setting.home.as_deref(),
            _ => None,
        };
        value.map(|value| (Some(value), length))
    }

    /// A path that begins with what is not known: what lies behind it may be anywhere.
    pub(super) fn open_path(&mut self, member: Member, text: &str, access: Access) {
        let path = matches!(member, Member::Path | Member::Place);
        // `$.a.b` is a path in JSON.
        let variable = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{' | '('));
        let begins = text.starts_with('`') || text.strip_prefix('$').is_some_and(variable);
        if !path || !begins || text.contains(char::is_whitespace) || self.there(text) {
            return;
        }
        let rest = text.find('/').and_then(|at| text.get(at..)).unwrap_or_default();
        let written = pattern_of(&[Part::Unknown(Source::Outside), Part::Text(rest.to_owned())]);
        let (resolved, kind) = (written.clone(), PathKind::Any);
        let fact = PathFact { written, resolved, access, tree: false, subject: false, new: false, kind, span: None };
        if !self.facts.paths.contains(&fact) {
            self.facts.paths.push(fact);
        }
    }
}
