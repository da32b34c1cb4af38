//! What a database's client is told to run: in its arguments, by what the line hands it, or from a file.
//!
//! Owns where a client's statements stand. What it reads from a file or from another program is not known, and that is said.

use writ_shell::{Access, Analysis, Command, Word};

use super::nested::MAX_DEPTH;
use super::{Findings, printed};
use crate::report::Origin;
use crate::rules::{self, Rule};
use crate::{heuristics, sql};

/// Options whose value is a statement.
const STATEMENT: [&str; 10] =
    ["-c", "-e", "-q", "-Q", "--command", "--execute", "--query", "--statement", "-s", "--sql"];
/// Most lines of commands that are read.
const MAX_LINES: usize = 64;
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
            texts.extend(heuristics::is_statement(&whole).then_some(whole));
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
        let own_files =
            analysis.inputs.iter().filter(|(span, _)| command.span.start <= span.start && span.end <= command.span.end);
        handed.extend(own_files.map(|(_, text)| text.clone()));
        if let Some(what) = self.not_read(command, &arguments, own || !handed.is_empty(), analysis) {
            let why = format!("statements run that were not looked into: {what}");
            self.not_known("run", "statements", &why, command.span);
        }
        if self.own_language(command, &handed) {
            return;
        }
        texts.extend(handed);
        for text in texts.iter().filter(|text| text.contains(' ')) {
            let text =
                text.split_once('=').filter(|(name, _)| name.starts_with("--")).map_or(text.as_str(), |(_, sql)| sql);
            for found in sql::evaluate(text) {
                let id = Some(found.name.clone());
                let mut mutation =
                    self.mutation(found.tier, found.action, "table", &found.why, command.span, id, Origin::Rules);
                mutation.intent.metadata.rule.get_or_insert_with(|| rule.id.clone());
                if !found.undo.is_empty() {
                    mutation.recoverability.suggestions.push(found.undo.to_owned());
                }
                self.mutations.push(mutation);
            }
        }
    }

    /// What is handed to a client that speaks no SQL, as if it stood in the client's arguments.
    fn own_language(&mut self, command: &Command, handed: &[String]) -> bool {
        let program = program_of(command);
        let mongo = matches!(program.as_str(), "mongo" | "mongosh");
        if !mongo && !rules::of(&program).any(|family| family.name == "redis") {
            return false;
        }
        let deep = self.depth >= MAX_DEPTH;
        for text in handed.iter().filter(|_| !deep) {
            if mongo {
                self.found_in(&format!("mongosh --eval '{}'", text.replace('\'', "'\\''")), command);
                continue;
            }
            for line in text.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINES) {
                self.found_in(&format!("redis-cli {line}"), command);
            }
        }
        true
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
        let program = program_of(command);
        let client = match program.as_str() {
            "bq" => arguments.iter().flatten().any(|word| word == "query"),
            "wrangler" | "turso" | "supabase" | "heroku" | "influx" => false,
            _ => !arguments.iter().flatten().any(|word| word == "-x"),
        };
        if !client
            || arguments.iter().flatten().any(|word| matches!(word.as_str(), "--help" | "--version" | "-l" | "--list"))
        {
            return None;
        }
        let written = |name: &str| {
            let named = command.words.iter().filter(|word| word.literal().is_some_and(|text| text == name));
            named.map(|word| word.span).any(|span| analysis.inputs.iter().any(|(own, _)| *own == span))
        };
        if value_of(&FILE).flatten().is_some_and(|name| written(&name)) {
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
        let reads = command.words.iter().skip(1).any(|word| {
            word.literal().is_none()
                && [".read", "\\i "].iter().any(|start| super::shown(word).trim_start().starts_with(start))
        });
        if reads || value_of(&STATEMENT) == Some(None) {
            return Some("a statement that is known only once it runs".to_owned());
        }
        let script = arguments.iter().flatten().find(|word| word.ends_with(".js") || word.ends_with(".redis"));
        if let Some(name) = script.filter(|_| matches!(program.as_str(), "mongo" | "mongosh")) {
            return Some(format!("`{name}`"));
        }
        // `docker exec -i db psql < drop.sql`: the redirection is the outer command's.
        let outer = analysis.commands.iter().filter(|outer| super::wraps(outer, command)).map(|outer| outer.span);
        let spans: Vec<_> = outer.chain([command.span]).collect();
        let redirected = analysis.files.iter().find(|file| {
            let before = self.line.get(..file.span.start).unwrap_or_default().trim_end();
            file.access == Access::Read
                && before.ends_with('<')
                && !before.ends_with("<<")
                && spans.iter().any(|span| span.start <= file.span.start && file.span.end <= span.end)
        });
        if redirected.is_some_and(|file| analysis.inputs.iter().any(|(span, _)| *span == file.span)) {
            return None;
        }
        if let Some(file) = redirected {
            return Some(format!("`{}`", super::shown(&file.path)));
        }
        let piped = self.line.get(..command.span.start).unwrap_or_default().trim_end().ends_with('|');
        (piped && !told).then(|| "what another program hands it".to_owned())
    }
}

fn program_of(command: &Command) -> String {
    command.words.first().and_then(Word::literal).map(|name| rules::name_of(&name)).unwrap_or_default()
}

fn says(word: &str, flags: &[&str]) -> bool {
    flags.iter().any(|flag| word == *flag || flag.starts_with("--") && word.starts_with(&format!("{flag}=")))
}
