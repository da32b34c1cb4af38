//! What a database's client is told to run: in its arguments, by what the line hands it, or from a file.
//!
//! Owns where a client's statements stand. What it reads from a file or from another program is not known, and that is said.

use writ_core::json::Value;
use writ_shell::{Access, Analysis, Command, Word};

use super::{Findings, printed};
use crate::report::Origin;
use crate::rules::{self, Rule};
use crate::{signs, sql};

/// Options whose value is a statement.
const STATEMENT: [&str; 10] =
    ["-c", "-e", "-q", "-Q", "--command", "--execute", "--query", "--statement", "-s", "--sql"];
/// Options whose value is a file of statements.
const FILE: [&str; 5] = ["-f", "--file", "-i", "--input-file", "--init-file"];

impl Findings<'_> {
    /// The statements among a client's arguments, and in what the line hands it.
    pub(super) fn sql(&mut self, rule: &Rule, command: &Command, analysis: &Analysis) {
        let arguments: Vec<Option<String>> = command.words.iter().skip(1).map(Word::literal).collect();
        let mut texts: Vec<String> = arguments.iter().flatten().cloned().collect();
        let bare = texts.windows(2).position(|pair| match pair {
            [flag, word] => STATEMENT.contains(&flag.as_str()) && !word.contains(' '),
            _ => false,
        });
        if let Some(rest) = bare.and_then(|at| texts.get(at + 1..)) {
            let whole = rest.join(" ");
            texts.extend(signs::is_statement(&whole).then_some(whole));
        }
        let own = texts.iter().any(|text| text.contains(' '))
            || arguments.iter().flatten().any(|word| says(word, &STATEMENT));
        let mut handed = printed(analysis);
        if let Some((_, document)) = self.line.split_once("<<").and_then(|(_, rest)| rest.split_once('\n')) {
            handed.push(document.to_owned());
        }
        if let Some((_, text)) = self.line.split_once("<<<") {
            handed.push(text.trim().trim_matches(['\'', '"']).to_owned());
        }
        if let Some(what) = self.not_read(command, &arguments, own || !handed.is_empty(), analysis) {
            let why = format!("statements run that were not looked into: {what}");
            self.not_known("run", "statements", &why, command.span);
        }
        texts.extend(handed);
        for text in texts.iter().filter(|text| text.contains(' ')) {
            let text =
                text.split_once('=').filter(|(name, _)| name.starts_with("--")).map_or(text.as_str(), |(_, sql)| sql);
            for found in sql::evaluate(text) {
                let id = Some(found.name.clone());
                let mut mutation =
                    self.mutation(found.tier, found.action, "table", &found.why, command.span, id, Origin::Rules);
                mutation.intent.metadata.push("rule", Value::from(rule.id.as_str()));
                if !found.undo.is_empty() {
                    mutation.recoverability.suggestions.push(found.undo.to_owned());
                }
                self.mutations.push(mutation);
            }
        }
    }

    /// Where the statements stand that nobody sees here.
    fn not_read(
        &self,
        command: &Command,
        arguments: &[Option<String>],
        told: bool,
        analysis: &Analysis,
    ) -> Option<String> {
        let pairs = || arguments.windows(2);
        let value_of = |flags: &'static [&'static str]| {
            pairs().find_map(move |pair| match pair {
                [Some(flag), value] if flags.contains(&flag.as_str()) => Some(value.clone()),
                _ => None,
            })
        };
        let program = command.words.first().and_then(Word::literal).map(|name| rules::name_of(&name))?;
        let client = matches!(
            program.as_str(),
            "psql"
                | "mysql"
                | "mariadb"
                | "sqlite3"
                | "sqlite"
                | "sqlcmd"
                | "clickhouse-client"
                | "duckdb"
                | "cockroach"
                | "cqlsh"
                | "snowsql"
                | "usql"
                | "pgcli"
                | "mycli"
                | "sqlplus"
                | "isql"
                | "osql"
                | "trino"
                | "presto"
                | "beeline"
                | "hive"
                | "impala-shell"
                | "spark-sql"
                | "tsql"
        );
        if !client
            || arguments.iter().flatten().any(|word| matches!(word.as_str(), "--help" | "--version" | "-l" | "--list"))
        {
            return None;
        }
        if let Some(value) = value_of(&FILE) {
            let named = value.filter(|name| name != "-" && name != "/dev/stdin");
            return named.map(|name| format!("`{name}`")).or_else(|| (!told).then(|| "what it reads".to_owned()));
        }
        let glued = arguments.iter().flatten().find_map(|word| word.strip_prefix("--file="));
        if let Some(name) = glued {
            return Some(format!("`{name}`"));
        }
        if value_of(&STATEMENT) == Some(None) {
            return Some("a statement that is known only once it runs".to_owned());
        }
        let redirected = analysis.files.iter().find(|file| {
            let before = self.line.get(..file.span.start).unwrap_or_default().trim_end();
            file.access == Access::Read
                && before.ends_with('<')
                && !before.ends_with("<<")
                && command.span.start <= file.span.start
                && file.span.end <= command.span.end
        });
        if let Some(file) = redirected {
            return Some(format!("`{}`", super::shown(&file.path)));
        }
        let piped = self.line.get(..command.span.start).unwrap_or_default().trim_end().ends_with('|');
        (piped && !told).then(|| "what another program hands it".to_owned())
    }
}

fn says(word: &str, flags: &[&str]) -> bool {
    flags.iter().any(|flag| word == *flag || flag.starts_with("--") && word.starts_with(&format!("{flag}=")))
}
