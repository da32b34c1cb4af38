//! A shell line: every command it would run against the rules, every path it would write against the world.

mod files;
mod nested;
mod network;
mod overwrite;
mod statements;
mod unknown;
mod words;

use std::collections::HashSet;

use writ_core::Span;
use writ_shell::{Access, Analysis, Command, Env, Part, Sources, Word, analyze_with};

use files::{DELETES, search_of};
use words::{is_other_value, owners, printed, shown, text_of, wraps};

use crate::paths::{Git, PathOperation, Place, Probe, judge};
use crate::report::{
    Confidence, Effect, Intent, Metadata, Missing, Mutation, Origin, Recoverability, Report, Target, Tier, Unseen,
};
use crate::rules::{self, Judged, Rule, Subject};
use crate::{heuristics, sql};

/// Stands for a home that nobody named: `~` is judged without knowing whose it is.
const SOME_HOME: &str = "/~";
/// The rule about named files that are put back as git has them.
const DISCARD: &str = "git/discard";

/// Families of command lines of services: their words are verbs and names, not texts.
const SERVICES: [&str; 7] = ["aws", "google", "azure", "infrastructure", "kubernetes", "services", "registries"];

/// Evaluates a line.
pub fn evaluate(line: &str, env: &Env, probe: &dyn Probe) -> Report {
    if env.home.is_some() {
        return evaluate_within(line, env, probe, 0);
    }
    let env = Env { home: Some(SOME_HOME.to_owned()), ..env.clone() };
    let mut report = evaluate_within(line, &env, probe, 0);
    let shown = |text: &mut String| *text = text.replace(SOME_HOME, "~");
    for mutation in &mut report.mutations {
        shown(&mut mutation.recoverability.reasoning);
        mutation.intent.target.id.iter_mut().for_each(shown);
    }
    report
}

/// The same, so many commands deep.
fn evaluate_within(line: &str, env: &Env, probe: &dyn Probe, depth: usize) -> Report {
    let analysis = analyze_with(line, env, &Authored(probe)).with_listings_as_globs();
    let mut out = Findings { line, env, probe, depth, mutations: Vec::new(), unseen: Vec::new(), seen: HashSet::new() };
    let statement = heuristics::is_statement(line);
    if statement {
        out.statement();
    } else if let Some((_, span)) = &analysis.syntax_error {
        out.unread(*span);
    } else if analysis.commands.is_empty() && analysis.files.is_empty() && analysis.unresolved.is_empty() {
        let runs = line.lines().any(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
        if !runs {
            return Report::of_nothing();
        }
    }
    for command in &analysis.commands {
        out.command(command, &analysis);
    }
    let owners = owners(&analysis);
    for file in analysis.files.iter().filter(|file| file.access == Access::Write) {
        let owner = owners.get(&(file.span.start, file.span.end, shown(&file.path)));
        let owner = owner.copied().or_else(|| search_of(&analysis, file)).or_else(|| out.fed_by(&analysis, file));
        out.path(file, owner, &analysis);
    }
    for arrival in analysis.arrivals.iter().filter(|arrival| !arrival.in_folder) {
        out.arrival(arrival, &analysis);
    }
    out.network(&analysis);
    out.code(&analysis);
    out.bomb();
    if let Some(why) = heuristics::switches_off(line) {
        let span = Span { start: 0, end: line.len() };
        out.add(Tier::FromBackup, "unprotect", "machine", why, span, None, Origin::Rules);
    }
    out.unlisted_programs(&analysis);
    Report { mutations: out.mutations, cross_action_risks: None, unseen: out.unseen }
}

/// What the agent wrote before, as whoever looks at the disk knows it.
struct Authored<'a>(&'a dyn Probe);

impl Sources for Authored<'_> {
    fn authored(&self, path: &str) -> Option<String> {
        self.0.authored(path)
    }
}

struct Findings<'a> {
    line: &'a str,
    env: &'a Env,
    probe: &'a dyn Probe,
    depth: usize,
    mutations: Vec<Mutation>,
    unseen: Vec<Unseen>,
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
        if heuristics::may_harm(self.line) {
            return self.add(Tier::NeedsReview, "run", "command", why, span, None, Origin::Rules);
        }
        let mut mutation = self.mutation(Tier::Reversible, "run", "command", why, span, None, Origin::Default);
        mutation.recoverability.confidence = Confidence::Low;
        self.mutations.push(mutation);
    }

    fn command(&mut self, command: &Command, analysis: &Analysis) {
        let Some(first) = command.words.first() else { return };
        let Some(program) = first.literal().or_else(|| unknown::name_behind(first)) else { return };
        let base = rules::name_of(&program);
        self.writes_unknown(command, &base);
        self.elsewhere(command, &base, analysis);
        if base == "find" {
            self.search(command);
        }
        let fed = self.fed(command, analysis);
        let command = fed.as_ref().unwrap_or(command);
        if base.starts_with("python") && command.words.get(1).and_then(Word::literal).as_deref() == Some("-m") {
            self.module(command);
        }
        let (mut hit, mut service) = (false, false);
        if is_other_value(command, analysis) {
            return;
        }
        for family in rules::of(&base) {
            let subject = Subject::of(command, family);
            service |= SERVICES.contains(&family.name) && !subject.idle;
            for rule in &family.rules {
                let Some(skip) = rule.applies(&subject) else { continue };
                if fed.is_some() && rule.id == "interpreters/inline-shell" && !heuristics::calls_deletion(&subject) {
                    continue;
                }
                hit = true;
                match rule.tier {
                    Judged::As(_) if rule.id == DISCARD && self.are_clean(&subject.targets(skip)) => {}
                    Judged::As(tier) => self.rule(rule, tier, &subject.targets(skip), command.span),
                    Judged::BySql => self.sql(rule, command, analysis),
                    Judged::ByPath => {}
                    Judged::Unseen => self.opaque(rule, command, analysis),
                }
            }
        }
        // No rule for this subcommand: its verb still says what it does.
        if service && !hit && heuristics::names_deletion(command) {
            let why = format!("`{base}` is told to delete");
            self.add(Tier::FromBackup, "delete", "something", &why, command.span, None, Origin::Default);
        }
    }

    /// What a command runs that stands elsewhere.
    fn opaque(&mut self, rule: &Rule, command: &Command, analysis: &Analysis) {
        // A wrapper whose command is known was looked into.
        if analysis.commands.iter().any(|inner| inner.words != command.words && wraps(command, inner)) {
            return;
        }
        let words = command.words.iter().filter_map(text_of).filter(|word| !word.starts_with('-')).take(3);
        let what = words.collect::<Vec<_>>().join(" ");
        if self.seen.insert((rule.id.clone(), command.span.start, command.span.end)) {
            self.not_looked_into(&what, rule.why, rule.target, command.span);
            if let Some(mutation) = self.mutations.last_mut() {
                mutation.intent.metadata.rule.get_or_insert_with(|| rule.id.clone());
            }
        }
    }

    /// Whether git has all the named files as they are, so that putting them back loses nothing.
    fn are_clean(&self, targets: &[String]) -> bool {
        let Some(cwd) = self.env.cwd.as_deref() else { return false };
        let clean = |target: &String| {
            let known = !target.contains(['\u{1}', '*', '?', '[', ':', '~']);
            let place = if target.starts_with('/') { target.clone() } else { format!("{cwd}/{target}") };
            known && self.probe.look(&place).git == Some(Git::Clean)
        };
        !targets.is_empty() && targets.iter().all(clean)
    }

    /// An interpreter that reads its code from a here-document, as if the code stood in its arguments.
    fn fed(&self, command: &Command, analysis: &Analysis) -> Option<Command> {
        let plain = |word: &Word| word.literal().is_some_and(|word| word.starts_with('-'));
        if !heuristics::runs_code(command) || !command.words.iter().skip(1).all(plain) {
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
        for path in words.iter().filter(|word| !word.is_empty() && !word.starts_with('-') && !here.contains(*word)) {
            let place = Place { path, tree, glob: path.contains('*'), cwd: None, home: None };
            let found = judge(PathOperation::Delete, &place, crate::paths::Seen::default());
            if found.tier > Tier::WithEffort {
                let kind = if tree { "folder" } else { "file" };
                self.add(found.tier, "delete", kind, &found.why, command.span, Some(path.clone()), Origin::Rules);
            }
        }
    }

    fn rule(&mut self, rule: &Rule, tier: Tier, targets: &[String], span: Span) {
        let unknown = targets.iter().any(|target| target.contains(rules::UNKNOWN));
        let key = if unknown { format!("{}?", rule.id) } else { rule.id.clone() };
        if !self.seen.insert((key, span.start, span.end)) {
            return;
        }
        let id = targets.first().filter(|_| !unknown).cloned();
        let tier = self.raised(rule, tier, targets);
        let mut mutation = self.mutation(tier, rule.action, rule.target, rule.why, span, id, Origin::Rules);
        if tier == Tier::NeedsReview && unknown {
            let text = self.line.get(span.start..span.end).unwrap_or_default();
            let description = format!("what `{text}` is aimed at");
            let effect = Effect::RequiresReview;
            mutation.missing.push(Missing { key: "target".to_owned(), description, effect });
        }
        mutation.intent.metadata.rule.get_or_insert_with(|| rule.id.clone());
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
    fn unlisted_programs(&mut self, analysis: &Analysis) {
        for command in &analysis.commands {
            let Some(program) = command.words.first().and_then(Word::literal) else { continue };
            let base = program.rsplit('/').next().unwrap_or_default();
            if nested::RUNS.contains(&base) {
                self.nested(command);
            }
            if writ_shell::is_known(base)
                || rules::of(&rules::name_of(base)).next().is_some()
                || nested::BUILTINS.contains(&base)
            {
                continue;
            }
            if analysis.commands.iter().any(|other| wraps(command, other)) {
                continue;
            }
            let before = self.mutations.len();
            self.nested(command);
            if self.mutations.len() > before {
                continue;
            }
            if heuristics::names_deletion(command) {
                let why = format!("`{base}` is not known here, and is told to delete");
                self.add(Tier::FromBackup, "delete", "something", &why, command.span, None, Origin::Default);
                continue;
            }
            let why = format!("`{base}` is not known here");
            self.unseen(base, "the program is not known here");
            if self.mutations.is_empty() {
                let id = Some(base.to_owned());
                let mut mutation =
                    self.mutation(Tier::Reversible, "run", "program", &why, command.span, id, Origin::Default);
                mutation.recoverability.confidence = Confidence::Low;
                self.mutations.push(mutation);
            }
        }
    }

    /// Where a finding stands.
    #[expect(clippy::unused_self, reason = "spans are of the line that is evaluated")]
    fn span(&self, span: Span) -> Metadata {
        Metadata { span: Some(span), ..Metadata::default() }
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
        let metadata = self.span(span);
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
