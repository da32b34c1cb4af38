//! A shell line: every command it would run against the rules, every path it would write against the world.

mod files;
mod network;

use std::collections::{HashMap, HashSet};

use writ_core::Span;
use writ_core::json::{Object, Value};
use writ_shell::{Access, Analysis, Command, Env, Part, Word, analyze};

use files::{DELETES, search_of};

use crate::paths::{Doing, Eyes, Place, judge};
use crate::report::{Confidence, Effect, Intent, Missing, Mutation, Origin, Recoverability, Report, Target, Tier};
use crate::rules::{self, Judged, Rule, Subject};
use crate::{signs, sql};

/// Evaluates a line.
pub fn evaluate(line: &str, env: &Env, eyes: &dyn Eyes) -> Report {
    let analysis = analyze(line, env);
    let mut out = Findings { line, env, eyes, mutations: Vec::new(), seen: HashSet::new() };
    let statement = signs::is_statement(line);
    if statement {
        out.statement();
    } else if let Some((_, span)) = &analysis.syntax_error {
        out.unread(*span);
    }
    for command in &analysis.commands {
        out.command(command, &analysis);
    }
    let owners = owners(&analysis);
    for file in analysis.files.iter().filter(|file| file.access == Access::Write) {
        let owner = owners.get(&(file.span.start, file.span.end, text_of(&file.path)));
        out.path(file, owner.copied().or_else(|| search_of(&analysis, file)));
    }
    for arrival in analysis.arrivals.iter().filter(|arrival| !arrival.in_folder) {
        out.arrival(&arrival.target);
    }
    out.network(&analysis);
    out.bomb();
    out.strangers(&analysis);
    Report { mutations: out.mutations, cross_action_risks: None }
}

struct Findings<'a> {
    line: &'a str,
    env: &'a Env,
    eyes: &'a dyn Eyes,
    mutations: Vec<Mutation>,
    seen: HashSet<(String, usize, usize)>,
}

impl Findings<'_> {
    /// A database's statement without its client.
    fn statement(&mut self) {
        let span = Span { start: 0, end: self.line.len() };
        for found in sql::evaluate(self.line) {
            self.add(found.tier, found.action, "table", &found.why, span, Some(found.name.clone()), Origin::Rules);
        }
    }

    /// What is no shell program: bash runs nothing of it, another shell might.
    fn unread(&mut self, span: Span) {
        let why = "no shell program, and so not known";
        if signs::may_harm(self.line) {
            return self.add(Tier::NeedsReview, "run", "command", why, span, None, Origin::Rules);
        }
        let mut mutation = self.mutation(Tier::Reversible, "run", "command", why, span, None, Origin::Default);
        mutation.recoverability.confidence = Confidence::Low;
        self.mutations.push(mutation);
    }

    fn command(&mut self, command: &Command, analysis: &Analysis) {
        let Some(program) = command.words.first().and_then(Word::literal) else { return };
        let base = rules::name_of(&program);
        self.elsewhere(command, &base, analysis);
        if base == "find" {
            self.search(command);
        }
        let fed = self.fed(command, analysis);
        let command = fed.as_ref().unwrap_or(command);
        for family in rules::of(&base) {
            let subject = Subject::of(command, family);
            for rule in &family.rules {
                let Some(skip) = rule.applies(&subject) else { continue };
                if fed.is_some() && rule.id == "interpreters/inline-shell" && !signs::calls_deletion(&subject) {
                    continue;
                }
                match rule.tier {
                    Judged::As(tier) => self.rule(rule, tier, &subject.targets(skip), command.span),
                    Judged::BySql => self.sql(rule, command, analysis),
                    Judged::ByPath => {}
                }
            }
        }
    }

    /// An interpreter that reads its code from a here-document, as if the code stood in its arguments.
    fn fed(&self, command: &Command, analysis: &Analysis) -> Option<Command> {
        let plain = |word: &Word| word.literal().is_some_and(|word| word.starts_with('-'));
        if !signs::runs_code(command) || !command.words.iter().skip(1).all(plain) {
            return None;
        }
        let here = self.line.split_once("<<").and_then(|(_, rest)| rest.split_once('\n'));
        let document = here.map_or_else(|| printed(analysis).join("\n"), |(_, document)| document.to_owned());
        let mut command = command.clone();
        let span = command.span;
        let word = |text: &str| Word { parts: vec![Part::Text(text.to_owned())], span };
        command.words.extend([word("-c"), word(&document)]);
        Some(command)
    }

    /// What is deleted on another machine, and so is no file here: only its name can be judged.
    fn elsewhere(&mut self, command: &Command, base: &str, analysis: &Analysis) {
        let words: Vec<String> = command.words.iter().skip(1).filter_map(text_of).collect();
        let recursive = |word: &String| {
            word == "--recursive" || (word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R']))
        };
        if !DELETES.contains(&base) {
            return;
        }
        let tree = words.iter().any(recursive);
        let here: HashSet<String> = analysis.files.iter().filter_map(|file| text_of(&file.path)).collect();
        for path in words.iter().filter(|word| !word.starts_with('-') && !here.contains(*word)) {
            let place = Place { path, tree, glob: path.contains('*'), cwd: None, home: None };
            let found = judge(Doing::Delete, &place, crate::paths::Seen::default());
            if found.tier > Tier::WithEffort {
                let kind = if tree { "folder" } else { "file" };
                self.add(found.tier, "delete", kind, &found.why, command.span, Some(path.clone()), Origin::Rules);
            }
        }
    }

    fn rule(&mut self, rule: &Rule, tier: Tier, targets: &[String], span: Span) {
        if !self.seen.insert((rule.id.clone(), span.start, span.end)) {
            return;
        }
        let unknown = targets.iter().any(|target| target.contains('\u{1}'));
        let id = targets.first().filter(|_| !unknown).cloned();
        let mut mutation = self.mutation(tier, rule.action, rule.target, rule.why, span, id, Origin::Rules);
        mutation.intent.metadata.push("rule", Value::from(rule.id.as_str()));
        if !rule.undo.is_empty() {
            mutation.recoverability.suggestions.push(rule.undo.to_owned());
        }
        if !rule.need.is_empty() {
            let effect = Effect::LowersConfidence;
            mutation.missing.push(Missing { key: rule.id.clone(), description: rule.need.to_owned(), effect });
            mutation.recoverability.confidence = Confidence::Medium;
        }
        self.mutations.push(mutation);
    }

    /// The statements among a client's arguments, and in what the line hands it.
    fn sql(&mut self, rule: &Rule, command: &Command, analysis: &Analysis) {
        let mut texts: Vec<String> = command.words.iter().skip(1).filter_map(Word::literal).collect();
        let bare = texts.windows(2).position(|pair| match pair {
            [flag, word] => matches!(flag.as_str(), "-c" | "-e" | "--command" | "-Q") && !word.contains(' '),
            _ => false,
        });
        if let Some(rest) = bare.and_then(|at| texts.get(at + 1..)) {
            let whole = rest.join(" ");
            texts.extend(signs::is_statement(&whole).then_some(whole));
        }
        texts.extend(printed(analysis));
        if let Some((_, document)) = self.line.split_once("<<").and_then(|(_, rest)| rest.split_once('\n')) {
            texts.push(document.to_owned());
        }
        if let Some((_, text)) = self.line.split_once("<<<") {
            texts.push(text.trim().trim_matches(['\'', '"']).to_owned());
        }
        for text in texts.iter().filter(|text| text.contains(' ')) {
            let text =
                text.split_once('=').filter(|(name, _)| name.starts_with("--")).map_or(text.as_str(), |(_, sql)| sql);
            for found in sql::evaluate(text) {
                let id = Some(found.name.clone());
                let mut mutation =
                    self.mutation(found.tier, found.action, "table", &found.why, command.span, id, Origin::Rules);
                mutation.intent.metadata.push("rule", Value::from(rule.id.as_str()));
                mutation.recoverability.suggestions.push(found.undo.to_owned());
                self.mutations.push(mutation);
            }
        }
    }

    /// A function that calls itself twice in a pipe.
    fn bomb(&mut self) {
        let tight: String = self.line.chars().filter(|c| !c.is_whitespace()).collect();
        let defines = tight.match_indices("(){").any(|(at, _)| {
            let name: String =
                tight.get(..at).unwrap_or_default().chars().rev().take_while(|c| !";&|{}()".contains(*c)).collect();
            let name: String = name.chars().rev().collect();
            !name.is_empty() && tight.get(at + 3..).is_some_and(|body| body.starts_with(&format!("{name}|{name}")))
        });
        if defines {
            let span = Span { start: 0, end: self.line.len() };
            self.add(
                Tier::Unrecoverable,
                "exhaust",
                "machine",
                "processes multiply until the machine stops",
                span,
                None,
                Origin::Rules,
            );
        }
    }

    /// R36: programs that nobody knows are named, and nothing more.
    fn strangers(&mut self, analysis: &Analysis) {
        if !self.mutations.is_empty() {
            return;
        }
        for command in &analysis.commands {
            let Some(program) = command.words.first().and_then(Word::literal) else { continue };
            let base = program.rsplit('/').next().unwrap_or_default();
            if writ_shell::is_known(base) || rules::of(&rules::name_of(base)).next().is_some() {
                continue;
            }
            let wraps = |other: &Command| {
                other
                    .words
                    .first()
                    .is_some_and(|first| command.words.iter().skip(1).any(|word| word.span == first.span))
            };
            if analysis.commands.iter().any(wraps) {
                continue;
            }
            if signs::takes_away(command) {
                let why = format!("`{base}` is not known here, and is told to delete");
                self.add(Tier::FromBackup, "delete", "something", &why, command.span, None, Origin::Default);
                continue;
            }
            let why = format!("`{base}` is not known here");
            let id = Some(base.to_owned());
            let mut mutation =
                self.mutation(Tier::Reversible, "run", "program", &why, command.span, id, Origin::Default);
            mutation.recoverability.confidence = Confidence::Low;
            self.mutations.push(mutation);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one call for each finding, all of it data")]
    fn add(&mut self, tier: Tier, action: &str, kind: &str, why: &str, span: Span, id: Option<String>, source: Origin) {
        let mutation = self.mutation(tier, action, kind, why, span, id, source);
        if self.seen.insert((why.to_owned(), span.start, span.end)) {
            self.mutations.push(mutation);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one call for each finding, all of it data")]
    fn mutation(
        &self,
        tier: Tier,
        action: &str,
        kind: &str,
        why: &str,
        span: Span,
        id: Option<String>,
        source: Origin,
    ) -> Mutation {
        let mut metadata = Object::new();
        metadata.push("span", Value::Array(vec![Value::from(span.start), Value::from(span.end)]));
        Mutation {
            intent: Intent {
                source: "shell",
                action: action.to_owned(),
                target: Target { kind: Some(kind.to_owned()), id, ..Target::default() },
                metadata,
                ..Intent::default()
            },
            recoverability: Recoverability {
                tier,
                reasoning: why.to_owned(),
                source,
                confidence: Confidence::High,
                suggestions: Vec::new(),
            },
            evidence: Vec::new(),
            missing: Vec::new(),
            dependencies: Vec::new(),
        }
    }
}

/// What a line prints of its own.
fn printed(analysis: &Analysis) -> Vec<String> {
    let prints =
        |other: &&Command| matches!(other.words.first().and_then(Word::literal).as_deref(), Some("echo" | "printf"));
    analysis
        .commands
        .iter()
        .filter(prints)
        .flat_map(|other| other.words.iter().skip(1).filter_map(Word::literal))
        .collect()
}

/// The command whose operand a path is; a redirection's target is nobody's.
fn owners(analysis: &Analysis) -> HashMap<(usize, usize, Option<String>), &Command> {
    let words =
        analysis.commands.iter().flat_map(|command| command.words.iter().skip(1).map(move |word| (word, command)));
    words.map(|(word, command)| ((word.span.start, word.span.end, text_of(word)), command)).collect()
}

/// A path's text; `None` when part of it is not known.
fn text_of(word: &Word) -> Option<String> {
    let known = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => Some(text.clone()),
        Part::Unknown(_) => None,
    };
    word.parts.iter().map(known).collect()
}
