//! Which variables the code of programs asks for, as far as its text shows that: in arguments, in documents, in what is piped. Page:
//! `spec/grants.md`.

use writ_core::{Span, ToolKind};
use writ_shell::{Analysis, Command, Word};

use super::Survey;
use super::programs::{may_ask, program_of, takes_code};
use super::resources::shown;
use crate::grants::{Kind, is_secret_variable};

/// How code asks for variables, by name or for all.
const SIGNS: [&str; 8] = ["process.env", "Deno.env", "environ", "getenv", "ENVIRON", "ENV", "env", "$__env"];
/// Options of `jq` behind which a name stands that is none of a variable from outside.
const NAMING: [&str; 4] = ["--arg", "--argjson", "--slurpfile", "--rawfile"];

impl Survey<'_> {
    /// Code that a document in the line, or another program, gives an interpreter: any name in the line may be in it.
    pub(super) fn code_of_documents(&mut self, analysis: &Analysis) {
        let ToolKind::Shell { command: line } = &self.call.kind else { return };
        let words = |command: &Command| command.words.iter().map(Word::literal).collect::<Vec<_>>();
        if !["<<", "|", "<("].iter().any(|sign| line.contains(sign))
            || !analysis.commands.iter().any(|command| takes_code(&words(command)))
        {
            return;
        }
        let span = Span { start: 0, end: line.len() };
        let line = line.clone();
        let filter = analysis.commands.iter().any(|command| program_of(&words(command)) == "jq");
        let more = if filter { asked_by_filter(&line) } else { Vec::new() };
        for name in asked(&line).into_iter().chain(more) {
            self.variable(name.unwrap_or("*"), Some(span), false);
        }
        self.names_in(&line, span);
    }

    /// What an interpreter's own code asks for, which need be no name that a rule has.
    pub(super) fn asked_by_code(&mut self, program: &str, arguments: &[Option<String>], span: Span) {
        if !may_ask(program) {
            return;
        }
        let names = match program {
            "jq" => filters(arguments).flat_map(asked_by_filter).collect(),
            _ if arguments.iter().flatten().any(|text| text == "env") => vec![None],
            _ => arguments.iter().flatten().flat_map(|text| asked(text)).collect::<Vec<_>>(),
        };
        for name in names {
            self.variable(name.unwrap_or("*"), Some(span), false);
        }
    }

    /// A text in the line that a program is given, and does more with than write it down.
    pub(super) fn documents(&mut self, analysis: &Analysis, plain: &[bool]) {
        let ToolKind::Shell { command: line } = &self.call.kind else { return };
        // Where one program takes its arguments for text, no other in the line runs what it is told.
        if !line.contains("<<") || plain.contains(&true) || analysis.commands.is_empty() {
            return;
        }
        let (line, span) = (line.clone(), Span { start: 0, end: line.len() });
        self.names_in(&line, span);
        self.text_stores(&line, false, span);
    }

    /// Names of variables inside an argument: another program may read them.
    pub(super) fn word_names(&mut self, word: &Word, span: Span) {
        if !self.policy.grants.of(Kind::Secrets).any() && !self.policy.flow.any() {
            return;
        }
        self.names_in(&shown(word), span);
    }

    pub(super) fn names_in(&mut self, text: &str, span: Span) {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let upper = |name: &&str| {
            name.len() > 2
                && name.bytes().any(|c| c.is_ascii_uppercase())
                && !name.bytes().any(|c| c.is_ascii_lowercase())
        };
        for name in text.split(|c: char| !letter(c)).filter(upper) {
            // `awk 'ENVIRON["X"]'`, `docker run -e X`. In a longer text only what is forbidden counts.
            let alone = name == text && is_secret_variable(name);
            let text = format!("env:{name}");
            let deny = &self.policy.grants.of(Kind::Secrets).deny;
            if alone || deny.iter().any(|rule| rule.matches(&text)) || self.is_labelled_variable(&text) {
                self.variable(name, Some(span), false);
            }
        }
    }
}

/// The names that code asks for; `None` stands for all, or for one that is not told.
pub(super) fn asked(text: &str) -> Vec<Option<&str>> {
    let mut out = Vec::new();
    for sign in SIGNS {
        for (at, _) in text.match_indices(sign) {
            let (before, rest) = (text.get(..at), text.get(at + sign.len()..).unwrap_or_default());
            if begins(sign, before.unwrap_or_default()) && ends(sign, rest) {
                out.push(name(rest, sign.ends_with(".env") || sign == "env"));
            }
        }
    }
    out
}

/// Whether a sign is not only the end of a longer name, or of a path.
fn begins(sign: &str, before: &str) -> bool {
    let mut letters = before.chars().rev();
    let last = letters.next();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    match sign {
        // However they are imported.
        "environ" | "getenv" | "$__env" => true,
        // A file where a text or a folder ends before it: `'.env.local'`.
        "env" if last == Some('.') => letters.next().is_some_and(|c| !matches!(c, '"' | '\'' | '/')),
        "env" => !last.is_some_and(word),
        _ => !last.is_some_and(word),
    }
}

/// Whether it is not only the beginning of one.
fn ends(sign: &str, rest: &str) -> bool {
    match sign {
        "environ" => !rest.starts_with("ment"),
        "env" => rest.starts_with('.'),
        _ => !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'),
    }
}

/// The name in `["NAME"]`, `.get('NAME', …)`, `{NAME}`, and, where variables are `members`, in `.NAME`. A member without a capital letter may
/// be a method.
fn name(rest: &str, members: bool) -> Option<&str> {
    let opened =
        [".get(", ".fetch(", "(", "[", "{", "."].iter().find_map(|sign| Some((*sign, rest.strip_prefix(*sign)?)));
    let (opens, rest) = opened?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let rest = quote.map_or(rest, |_| rest.get(1..).unwrap_or_default());
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, behind) = rest.split_at_checked(end)?;
    let whole = match (quote, opens) {
        (Some(quote), _) => behind.strip_prefix(quote)?.trim_start().starts_with([')', ']', '}', ',']),
        (None, "{") => behind.starts_with('}'),
        (None, ".") => {
            let whole = !behind.starts_with(|c: char| c == '\\' || c == '$' || !c.is_ascii());
            members && whole && !name.contains(|c: char| c.is_ascii_lowercase())
        }
        (None, _) => false,
    };
    (whole && !name.is_empty()).then_some(name)
}

/// The same of a filter of `jq`: `env`, `$ENV`, `env.NAME`.
pub(super) fn asked_by_filter(text: &str) -> Vec<Option<&str>> {
    let mut out = Vec::new();
    for sign in ["$ENV", "env"] {
        for (at, _) in text.match_indices(sign) {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let rest = text.get(at + sign.len()..).unwrap_or_default();
            let word = |c: char| c.is_alphanumeric() || c == '_';
            // `.env`, `$env` and `{env: …}` are no variables from outside.
            let own = before.is_some_and(|c| word(c) || matches!(c, '.' | '$')) || rest.trim_start().starts_with(':');
            if own || rest.starts_with(word) || before == Some('"') && rest.starts_with('"') {
                continue;
            }
            out.push(name(rest, true));
        }
    }
    out
}

/// The arguments of `jq` without the names that it is given.
pub(super) fn filters(arguments: &[Option<String>]) -> impl Iterator<Item = &str> {
    let named = |at: usize| at.checked_sub(1).and_then(|at| arguments.get(at)?.as_deref());
    let texts =
        arguments.iter().enumerate().filter(move |(at, _)| !named(*at).is_some_and(|flag| NAMING.contains(&flag)));
    texts.filter_map(|(_, text)| text.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_where_they_stand_whole() {
        for (text, expected) in [
            ("os.environ.get('PORT')", vec![Some("PORT")]),
            ("os.environ['PORT']", vec![Some("PORT")]),
            ("os.environ['GH_'+'TOKEN']", vec![None]),
            ("os.environb", vec![None]),
            ("os.environ.items()", vec![None]),
            ("os.getenv(\"PORT\", 80)", vec![Some("PORT")]),
            ("os.getenv(name)", vec![None]),
            ("process.env.NODE_ENV", vec![Some("NODE_ENV"), Some("NODE_ENV")]),
            ("process.env[k]", vec![None]),
            ("process.env.valueOf/**/()", vec![None, None]),
            ("process.env.G\\u0048_TOKEN", vec![None, None]),
            ("process\n.env.PORT", vec![Some("PORT")]),
            ("f = os.environ.copy", vec![None]),
            ("1/env.PORT", vec![Some("PORT")]),
            ("process.env", vec![None]),
            ("require('process').env.PORT", vec![Some("PORT")]),
            ("Bun.env.PORT", vec![Some("PORT")]),
            ("const { env } = process; env.PORT", vec![Some("PORT")]),
            ("$ENV{PATH}", vec![Some("PATH")]),
            ("%ENV", vec![None]),
            ("ENV.fetch('A')", vec![Some("A")]),
            ("ENVIRON[\"HOME\"]", vec![Some("HOME")]),
            ("from os import environ as e", vec![None]),
            ("the environment; open('.env.local')", vec![]),
            ("NODE_ENV=x", vec![]),
        ] {
            assert_eq!(asked(text), expected, "{text}");
        }
        for (text, expected) in [
            ("[env]", vec![None]),
            ("{a:env}", vec![None]),
            ("\"\\(env)\"", vec![None]),
            ("env[\"GH_TOK\"+\"EN\"]", vec![None]),
            ("env.PORT", vec![Some("PORT")]),
            ("$ENV.PORT | length", vec![Some("PORT")]),
            ("$ENV", vec![None]),
            (".env.NODE_ENV, .environment, $env, {env: .x}, .[\"env\"]", vec![]),
        ] {
            assert_eq!(asked_by_filter(text), expected, "{text}");
        }
    }
}
