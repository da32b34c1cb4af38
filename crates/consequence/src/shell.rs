//! A shell line: every command it would run against the rules, every path it would write against the world.

use std::collections::{HashMap, HashSet};

use writ_core::Span;
use writ_core::json::{Object, Value};
use writ_shell::{Access, Analysis, Command, Dir, Env, FileUse, Part, UnresolvedKind, Word, analyze};

use crate::paths::{Doing, Eyes, Place, judge};
use crate::report::{Confidence, Effect, Intent, Missing, Mutation, Origin, Recoverability, Report, Target, Tier};
use crate::rules::{self, Judged, Rule, Subject};
use crate::sql;

/// Programs that take what they are given away.
const DELETES: [&str; 6] = ["rm", "unlink", "rmdir", "shred", "srm", "trash"];
/// Programs that only change who may do what with a file.
const PERMITS: [&str; 5] = ["chmod", "chown", "chgrp", "setfacl", "chattr"];
/// Names of files that hold secrets.
const SECRETS: [&str; 10] = [
    ".env",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "credentials",
    ".netrc",
    "shadow",
    ".pgpass",
    "kubeconfig",
    ".git-credentials",
];

/// Evaluates a line.
pub fn evaluate(line: &str, env: &Env, eyes: &dyn Eyes) -> Report {
    let analysis = analyze(line, env);
    let mut out = Findings { line, env, eyes, mutations: Vec::new(), seen: HashSet::new() };
    if let Some((_, span)) = &analysis.syntax_error {
        out.add(Tier::NeedsReview, "run", "command", "no shell program, and so not known", *span, None, Origin::Rules);
    }
    let mut handled = Vec::new();
    for command in &analysis.commands {
        out.command(command, &analysis, &mut handled);
    }
    let owners = owners(&analysis);
    for file in analysis.files.iter().filter(|file| file.access == Access::Write) {
        let owner = owners.get(&(file.span.start, file.span.end, text_of(&file.path)));
        out.path(file, owner.copied());
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
    fn command(&mut self, command: &Command, analysis: &Analysis, handled: &mut Vec<Span>) {
        let Some(program) = command.words.first().and_then(Word::literal) else { return };
        let base = program.rsplit('/').next().unwrap_or_default().to_owned();
        self.elsewhere(command, &base, analysis);
        for family in rules::of(&base) {
            let subject = Subject::of(command, family);
            for rule in &family.rules {
                let Some(skip) = rule.applies(&subject) else { continue };
                handled.push(command.span);
                match rule.tier {
                    Judged::As(tier) => self.rule(rule, tier, &subject.targets(skip), command.span),
                    Judged::BySql => self.sql(rule, command, analysis),
                    Judged::ByPath => {}
                }
            }
        }
    }

    /// What is deleted on another machine, and so is no file here: only its name can be judged.
    fn elsewhere(&mut self, command: &Command, base: &str, analysis: &Analysis) {
        let words: Vec<String> = command.words.iter().skip(1).filter_map(text_of).collect();
        let recursive = |word: &String| {
            word == "--recursive" || (word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R']))
        };
        if !DELETES.contains(&base) || !words.iter().any(recursive) {
            return;
        }
        let here: HashSet<String> = analysis.files.iter().filter_map(|file| text_of(&file.path)).collect();
        for path in words.iter().filter(|word| !word.starts_with('-') && !here.contains(*word)) {
            let place = Place { path, tree: true, glob: path.contains('*'), cwd: None, home: None };
            let found = judge(Doing::Delete, &place, crate::paths::Seen::default());
            if found.tier > Tier::WithEffort {
                self.add(found.tier, "delete", "folder", &found.why, command.span, Some(path.clone()), Origin::Rules);
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
        let printed = analysis
            .commands
            .iter()
            .filter(|other| matches!(other.words.first().and_then(Word::literal).as_deref(), Some("echo" | "printf")));
        texts.extend(printed.flat_map(|other| other.words.iter().skip(1).filter_map(Word::literal)));
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
                mutation.recoverability.suggestions.push("From a dump or a backup of the database.".to_owned());
                self.mutations.push(mutation);
            }
        }
    }

    /// A path that is written.
    fn path(&mut self, file: &FileUse, owner: Option<&Command>) {
        let program = owner.and_then(|command| command.words.first()).and_then(Word::literal).unwrap_or_default();
        let base = program.rsplit('/').next().unwrap_or_default();
        let has = |text: &str| {
            owner.is_some_and(|command| {
                command.words.iter().take(64).any(|word| word.literal().as_deref() == Some(text))
            })
        };
        let doing = match base {
            base if DELETES.contains(&base) => Doing::Delete,
            base if PERMITS.contains(&base) => Doing::Permit,
            "git" if has("rm") && !has("--cached") => Doing::Delete,
            "find" if has("-delete") => Doing::Delete,
            "mv" | "rename" => Doing::Move,
            _ => Doing::Overwrite,
        };
        let Some(path) = text_of(&file.path) else { return self.unknown_target(file, doing) };
        for dir in &file.dirs {
            let absolute = match dir {
                Dir::Start(dir) => absolute(self.env, dir, &path),
                Dir::Unknown if path.starts_with('/') => path.clone(),
                Dir::Unknown => continue,
            };
            let place = Place {
                path: &absolute,
                tree: file.tree,
                glob: file.path.is_glob(),
                cwd: self.env.cwd.as_deref(),
                home: self.env.home.as_deref(),
            };
            let found = judge(doing, &place, self.eyes.look(&absolute));
            if found.tier == Tier::Reversible {
                continue;
            }
            let action = match doing {
                Doing::Delete => "delete",
                Doing::Overwrite => "overwrite",
                Doing::Move => "move",
                Doing::Permit => "permissions",
            };
            let kind = if file.tree { "folder" } else { "file" };
            let mut mutation =
                self.mutation(found.tier, action, kind, &found.why, file.span, Some(absolute), Origin::Rules);
            mutation.recoverability.confidence = found.confidence;
            mutation.evidence = found.evidence;
            mutation.missing = found.missing;
            mutation
                .recoverability
                .suggestions
                .push("`git checkout -- <path>` where git has it, else a backup.".to_owned());
            if self.seen.insert((mutation.recoverability.reasoning.clone(), file.span.start, file.span.end)) {
                self.mutations.push(mutation);
            }
        }
    }

    /// R36: something that destroys, aimed at nobody knows what.
    fn unknown_target(&mut self, file: &FileUse, doing: Doing) {
        if doing == Doing::Delete && file.tree {
            let why = "a tree is removed, and which is not known before it runs";
            self.add(Tier::NeedsReview, "delete", "folder", why, file.span, None, Origin::Rules);
        }
    }

    /// Code from the network into an interpreter, and secrets out to it.
    fn network(&mut self, analysis: &Analysis) {
        let fetches = !analysis.nets.is_empty();
        for open in &analysis.unresolved {
            let runs = matches!(open.kind, UnresolvedKind::Script | UnresolvedKind::Code);
            let piped = open.what.starts_with('|') || open.kind == UnresolvedKind::Script;
            if runs && fetches && piped {
                let why = "code from the network runs unseen";
                self.add(Tier::NeedsReview, "run", "code", why, open.span, None, Origin::Rules);
            }
        }
        let secret = |file: &&FileUse| {
            let name = file.path.literal().unwrap_or_default();
            let base = name.rsplit('/').next().unwrap_or_default().to_owned();
            file.access == Access::Read
                && (SECRETS.contains(&base.as_str())
                    || base.starts_with(".env.")
                    || name.contains("/.ssh/")
                    || base.ends_with(".pem"))
        };
        if fetches && let Some(file) = analysis.files.iter().find(secret) {
            let (span, name) = (file.span, file.path.literal());
            self.add(
                Tier::Unrecoverable,
                "disclose",
                "secret",
                "a secret leaves the machine; nothing takes it back",
                span,
                name,
                Origin::Rules,
            );
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
            if !writ_shell::is_known(base) && rules::of(base).next().is_none() {
                let why = format!("`{base}` is not known here");
                let mut mutation = self.mutation(
                    Tier::Reversible,
                    "run",
                    "program",
                    &why,
                    command.span,
                    Some(base.to_owned()),
                    Origin::Default,
                );
                mutation.recoverability.confidence = Confidence::Low;
                self.mutations.push(mutation);
            }
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
        Part::Unknown => None,
    };
    word.parts.iter().map(known).collect()
}

/// Folded, from where the line starts.
fn absolute(env: &Env, dir: &str, path: &str) -> String {
    let base = match (dir.starts_with('/'), &env.cwd) {
        (true, _) => dir.to_owned(),
        (false, Some(cwd)) => format!("{cwd}/{dir}"),
        (false, None) if path.starts_with('/') => String::new(),
        (false, None) => return format!("{dir}{}{path}", if dir.is_empty() { "" } else { "/" }),
    };
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}
