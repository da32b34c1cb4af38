//! From a call to facts: what it would run, touch and contact.
//!
//! Looks at the world and at the text; applies no rule but the matching of text patterns, because the facts keep no text. Page:
//! `spec/policy.md`.

use writ_core::json::Value;
use writ_core::{Span, Subject, ToolCall, Verdict};
use writ_shell::{Access, Analysis, Command, Dir, Env, FileUse, NetTarget, NetUse, Part, Word, analyze};

use crate::command::Candidate;
use crate::facts::{Facts, Host, HostFact, PathFact, PathKind, SEARCH, SYNTAX, TextFact, UnresolvedFact, kind_word};
use crate::glob::{Glob, unfold};
use crate::judge::judge;
use crate::policy::Policy;
use crate::protect::{Setting, is_reserved};
use crate::rules::{Acting, PathRule, Reading, ToolRule, last_word, text_matches};
use crate::url::{self, Target};
use crate::world::{Search, World, expand, find_below, fold};

/// Stands for an unknown part of a path. Holds no slash and no dot.
const UNKNOWN: &str = "writ-unknown";

/// Most paths, and most texts, of one verdict that facts keep.
const MOST: usize = 64;

/// Finds out what a call would touch. Beyond 64 paths or commands of one verdict the rest are left out: they would add
/// reasons, and change nothing.
pub fn survey(policy: &Policy, call: &ToolCall, setting: &Setting, world: &dyn World) -> Facts {
    let facts = Facts { tool: call.tool.clone(), ..Facts::default() };
    let mut survey = Survey { policy, call, setting, world, facts };
    if let Err(why) = survey.call() {
        survey.facts.malformed = Some(why);
    }
    survey.shorten();
    survey.facts
}

struct Survey<'a> {
    policy: &'a Policy,
    call: &'a ToolCall,
    setting: &'a Setting,
    world: &'a dyn World,
    facts: Facts,
}

impl Survey<'_> {
    fn call(&mut self) -> Result<(), String> {
        match self.call.tool.as_str() {
            "Bash" => {
                let command = self.needed("command")?.to_owned();
                self.shell(&command);
            }
            "Read" | "Write" | "Edit" | "MultiEdit" => self.file("file_path", true)?,
            "NotebookEdit" | "NotebookRead" => self.file("notebook_path", true)?,
            "Glob" | "Grep" | "LS" => self.search()?,
            "WebFetch" => {
                let url = self.needed("url")?.to_owned();
                self.fetch(&url);
            }
            "Task" | "Agent" => {
                let kind = self.optional("subagent_type")?.unwrap_or_default().to_owned();
                self.text(Subject::Tool, kind.clone(), &kind);
            }
            tool if tool.starts_with("mcp__") => {}
            _ => self.stranger()?,
        }
        Ok(())
    }

    /// A tool not known here: whatever in its input looks like a command, a path or a URL is treated as one.
    fn stranger(&mut self) -> Result<(), String> {
        if let Some(command) = self.call.text("command") {
            let command = command.to_owned();
            self.shell(&command);
        }
        for name in ["file_path", "notebook_path", "path", "filePath"] {
            if self.call.input.get(name).is_some() {
                self.file(name, false)?;
            }
        }
        if let Some(url) = self.call.text("url") {
            let url = url.to_owned();
            self.fetch(&url);
        }
        Ok(())
    }

    /// Keeps the record small without changing what it decides: each fact is judged alone, and the first of each verdict stay.
    fn shorten(&mut self) {
        let (policy, setting, tool) = (self.policy, self.setting, self.call.tool.clone());
        let alone = |facts: Facts| judge(policy, setting, &Facts { tool: tool.clone(), ..facts }).verdict;
        if self.facts.paths.len() > MOST {
            let verdict = |fact: &PathFact| alone(Facts { paths: vec![fact.clone()], ..Facts::default() });
            keep_first(&mut self.facts.paths, verdict);
        }
        if self.facts.texts.len() > MOST {
            let verdict = |fact: &TextFact| alone(Facts { texts: vec![fact.clone()], ..Facts::default() });
            keep_first(&mut self.facts.texts, verdict);
        }
    }

    fn needed(&self, name: &'static str) -> Result<&str, String> {
        self.call.text(name).ok_or_else(|| format!("`{}` without a text `{name}`", self.call.tool))
    }

    fn optional(&self, name: &'static str) -> Result<Option<&str>, String> {
        match self.call.input.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| format!("`{name}` is not a text")),
        }
    }

    fn file(&mut self, name: &'static str, needed: bool) -> Result<(), String> {
        let path = match self.optional(name)? {
            Some(path) => path.to_owned(),
            None if needed => return Err(format!("`{}` without a text `{name}`", self.call.tool)),
            None => return Ok(()),
        };
        let access = match self.call.tool.as_str() {
            "Read" | "NotebookRead" | "LSP" => Access::Read,
            _ => Access::Write,
        };
        if path.is_empty() || path.contains('\0') {
            return Err(format!("`{name}` is no path"));
        }
        let absolute = self.absolute(&self.call.cwd, &path);
        let mut fact = self.path(&absolute, access, None);
        fact.subject = true;
        self.facts.paths.push(fact);
        Ok(())
    }

    fn search(&mut self) -> Result<(), String> {
        let path = self.optional("path")?.unwrap_or(".").to_owned();
        let absolute = self.absolute(&self.call.cwd, &path);
        let access = if self.call.tool == "Grep" { Access::Read } else { Access::List };
        let mut fact = self.path(&absolute, access, None);
        fact.subject = true;
        fact.tree = access == Access::Read;
        if self.call.tool == "Glob" {
            self.glob_pattern(&absolute)?;
        }
        let only = if self.call.tool == "Grep" { self.optional("glob")?.map(str::to_owned) } else { None };
        self.tree(&fact, only.as_deref());
        self.facts.paths.push(fact);
        Ok(())
    }

    /// Where a Glob pattern itself leads away from its folder: the folder it then starts from.
    fn glob_pattern(&mut self, folder: &str) -> Result<(), String> {
        let pattern = self.needed("pattern")?;
        if !(pattern.starts_with(['/', '~']) || pattern.contains("..")) {
            return Ok(());
        }
        for one in unfold(pattern).map_err(|error| format!("`pattern` is no glob: {error}"))? {
            let whole = fold(&self.absolute(folder, &one));
            let fixed: Vec<&str> = whole.split('/').take_while(|part| !part.contains(['*', '?', '['])).collect();
            let listed = self.path(&fixed.join("/"), Access::List, None);
            self.facts.paths.push(listed);
        }
        Ok(())
    }

    fn fetch(&mut self, text: &str) {
        match url::read(text) {
            Target::File(path) => {
                let fact = self.path(&path, Access::Read, None);
                self.facts.paths.push(fact);
                self.text(Subject::Host, "file".to_owned(), text);
            }
            Target::Host(host) => {
                let name = if let Host::Name(name) = &host { name.clone() } else { String::new() };
                self.text(Subject::Host, name, text);
                self.facts.hosts.push(HostFact { host, mentioned: false, span: None });
            }
        }
    }

    /// A text that `Tool:pattern` rules see: a URL (with its host as a second text), a subagent's type.
    fn text(&mut self, subject: Subject, name: String, text: &str) {
        let tool = self.call.tool.as_str();
        let matches =
            |pattern: &str| text_matches(pattern, text) || text_matches(pattern, &name) || host_pattern(pattern, &name);
        let hits = hits(self.policy, tool, |pattern| matches(pattern).then_some(true));
        let allowed = allowed(self.policy, tool, matches);
        let text = name.clone();
        self.facts.texts.push(TextFact { subject, name, span: None, hits, allowed, reserved: false, text });
    }

    fn shell(&mut self, line: &str) {
        let env = Env { home: self.setting.home.clone(), cwd: Some(self.call.cwd.clone()) };
        let analysis = analyze(line, &env);
        if let Some((message, span)) = &analysis.syntax_error {
            let what = message.clone();
            self.facts.unresolved.push(UnresolvedFact { kind: SYNTAX.to_owned(), what, span: Some(*span) });
        }
        for command in &analysis.commands {
            self.command(command, &analysis);
        }
        for file in &analysis.files {
            self.file_use(file);
        }
        for net in &analysis.nets {
            self.net(net, &analysis);
        }
        for open in &analysis.unresolved {
            let kind = kind_word(open.kind).to_owned();
            self.facts.unresolved.push(UnresolvedFact { kind, what: open.what.clone(), span: Some(open.span) });
            for word in &open.mentions {
                self.mention(word);
            }
        }
    }

    fn net(&mut self, net: &NetUse, analysis: &Analysis) {
        let host = match &net.target {
            NetTarget::Unknown => Host::Unknown,
            NetTarget::Host(word) => word.literal().map_or(Host::Unknown, |text| url::read_host(&text)),
            NetTarget::Url(word) => match word.literal().map(|text| url::read(&text)) {
                None => self.partly_known(word),
                Some(Target::Host(host)) => host,
                Some(Target::File(path)) => {
                    let fact = self.path(&path, Access::Read, Some(net.span));
                    return self.facts.paths.push(fact);
                }
            },
        };
        // An expansion that may be empty gives the word twice; without its host it is no URL, and says nothing.
        let twice = |other: &NetUse| other.span == net.span && !is_known(&other.target);
        if host == Host::Ambiguous && is_known(&net.target) && analysis.nets.iter().any(twice) {
            return;
        }
        self.facts.hosts.push(HostFact { host, mentioned: false, span: Some(net.span) });
    }

    /// A URL whose host is certain although its path is not (`https://x.com/$P`).
    fn partly_known(&self, word: &Word) -> Host {
        let known: String = word
            .parts
            .iter()
            .map_while(|part| match part {
                Part::Text(text) | Part::Glob(text) => Some(text.as_str()),
                Part::Unknown => None,
            })
            .collect();
        let whole_host = known.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        match url::read(&known) {
            Target::Host(host) if whole_host => host,
            _ => Host::Unknown,
        }
    }

    fn command(&mut self, command: &Command, analysis: &Analysis) {
        let candidate = Candidate::of(command);
        let tool = self.call.tool.as_str();
        let mut found = hits(self.policy, tool, |pattern| candidate.denied_by(pattern));
        found.dedup();
        let named = allowed(self.policy, tool, |pattern| candidate.allowed_by(pattern));
        let needless = candidate.is_harmless() || candidate.is_wrapper_of(command, &analysis.commands);
        self.facts.texts.push(TextFact {
            subject: Subject::Command,
            name: candidate.program().to_owned(),
            span: Some(command.span),
            hits: found,
            allowed: named.or_else(|| needless.then(|| "writ:builtin".to_owned())),
            reserved: is_reserved(&candidate),
            text: candidate.text(),
        });
    }

    fn file_use(&mut self, file: &FileUse) {
        let Some(text) = path_text(&file.path) else { return };
        for dir in &file.dirs {
            let base = match dir {
                Dir::Start(dir) => self.absolute(&self.call.cwd, dir),
                Dir::Unknown if text.starts_with('/') || text.starts_with("~/") => "/".to_owned(),
                Dir::Unknown => continue,
            };
            let absolute = self.absolute(&base, &text);
            if is_harmless_device(&absolute) {
                continue;
            }
            let mut fact = self.path(&absolute, file.access, Some(file.span));
            fact.tree = file.tree;
            if file.path.is_glob() {
                self.glob(&absolute, &mut fact);
            }
            self.tree(&fact, None);
            self.facts.paths.push(fact);
        }
    }

    fn glob(&mut self, absolute: &str, fact: &mut PathFact) {
        fact.kind = PathKind::Glob;
        let expansion = match expand(self.world, absolute) {
            Search::Done(found) => found,
            Search::TooLarge => return self.too_large(fact),
        };
        if !expansion.is_empty() {
            fact.kind = PathKind::ExpandedGlob;
        }
        for path in expansion {
            let mut found = self.path(&path, fact.access, fact.span);
            found.kind = PathKind::Found;
            found.tree = fact.tree;
            self.tree(&found, None);
            self.facts.paths.push(found);
        }
    }

    /// The first denied file on disk below a tree, as a fact of its own.
    fn tree(&mut self, fact: &PathFact, only: Option<&str>) {
        let reads = matches!(fact.access, Access::Read | Access::Write);
        let files = &self.policy.files;
        if !fact.tree || !reads || (files.deny.is_empty() && files.read_only.is_empty()) {
            return;
        }
        let home = self.setting.home.as_deref();
        let only = only.and_then(|glob| {
            Glob::parse(glob.trim_start_matches('!')).ok().map(|parsed| (glob.starts_with('!'), parsed))
        });
        let searched = |path: &str| {
            only.as_ref().is_none_or(|(negated, glob)| {
                let name = path.rsplit('/').next().unwrap_or_default();
                (glob.matches(name) || glob.matches(path.strip_prefix(fact.resolved.as_str()).unwrap_or(path)))
                    != *negated
            })
        };
        let denied = |path: &str| {
            let forbidden = last_word(&files.deny, path, home).is_some()
                || (fact.access == Access::Write && last_word(&files.read_only, path, home).is_some());
            forbidden && searched(path)
        };
        let found = match find_below(self.world, &fact.resolved, &denied) {
            Search::Done(found) => found,
            Search::TooLarge => return self.too_large(fact),
        };
        if let Some(path) = found {
            let mut found = self.path(&path, fact.access, fact.span);
            found.kind = PathKind::Found;
            self.facts.paths.push(found);
        }
    }

    fn too_large(&mut self, fact: &PathFact) {
        let what = fact.written.clone();
        self.facts.unresolved.push(UnresolvedFact { kind: SEARCH.to_owned(), what, span: fact.span });
    }

    /// Text in foreign code. Kept only where a deny rule hits it: the rest may be anything, secrets included (R8).
    fn mention(&mut self, word: &Word) {
        let Some(text) = word.literal() else { return };
        let host = match text.contains("://").then(|| url::read(&text)) {
            Some(Target::Host(Host::Name(name))) => name,
            Some(_) => return,
            None => return self.mentioned_path(&text, word.span),
        };
        let fact = HostFact { host: Host::Name(host), mentioned: true, span: Some(word.span) };
        if self.policy.domains.refusal(&fact).is_some() {
            self.facts.hosts.push(fact);
        }
    }

    fn mentioned_path(&mut self, text: &str, span: Span) {
        let mut fact = self.path(&self.absolute(&self.call.cwd, text), Access::Read, Some(span));
        fact.kind = PathKind::Mentioned;
        let home = self.setting.home.as_deref();
        let deny = &self.policy.files.deny;
        if [&fact.written, &fact.resolved].iter().any(|path| last_word(deny, path, home).is_some()) {
            self.facts.paths.push(fact);
        }
    }

    fn path(&self, absolute: &str, access: Access, span: Option<Span>) -> PathFact {
        let absolute = &self.without_proc(absolute);
        let resolved = self.world.resolve(absolute).path;
        PathFact { written: fold(absolute), resolved, access, tree: false, subject: false, kind: PathKind::Named, span }
    }

    /// `/proc/<process>/cwd` and `/proc/<process>/root` lead to folders that are known; the links themselves are another
    /// process's by the time they are looked at.
    fn without_proc(&self, path: &str) -> String {
        let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
        if parts.next() != Some("proc") || parts.next().is_none() {
            return path.to_owned();
        }
        let mut link = parts.next();
        while link == Some("task") && parts.next().is_some() {
            link = parts.next();
        }
        let folder = match link {
            Some("cwd") => self.call.cwd.as_str(),
            Some("root") => "",
            _ => return path.to_owned(),
        };
        self.without_proc(&format!("{folder}/{}", parts.collect::<Vec<_>>().join("/")))
    }

    /// `path` as seen from `base`, not folded: symlinks decide what `..` means.
    fn absolute(&self, base: &str, path: &str) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        match (path.strip_prefix('~'), self.setting.home.as_deref()) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => format!("{base}/{path}"),
        }
    }
}

fn keep_first<T>(facts: &mut Vec<T>, verdict: impl Fn(&T) -> Verdict) {
    let mut kept: [(Verdict, usize); 3] = [(Verdict::Allow, 0), (Verdict::Ask, 0), (Verdict::Deny, 0)];
    facts.retain(|fact| {
        let own = verdict(fact);
        kept.iter_mut().find(|(known, _)| *known == own).is_some_and(|(_, count)| {
            *count += 1;
            *count <= MOST
        })
    });
}

fn is_known(target: &NetTarget) -> bool {
    matches!(target, NetTarget::Url(word) | NetTarget::Host(word) if word.literal().is_some())
}

fn is_harmless_device(path: &str) -> bool {
    matches!(
        path,
        "/dev/null"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/stdin"
            | "/dev/tty"
            | "/dev/zero"
            | "/dev/random"
            | "/dev/urandom"
    )
}

/// A path operand as text; `None` when nothing of it is known.
fn path_text(word: &Word) -> Option<String> {
    if word.parts.iter().all(|part| *part == Part::Unknown) {
        return None;
    }
    Some(
        word.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) | Part::Glob(text) => text.as_str(),
                Part::Unknown => UNKNOWN,
            })
            .collect(),
    )
}

/// `WebFetch:github.com` and `WebFetch:domain:github.com` name a host.
fn host_pattern(pattern: &str, host: &str) -> bool {
    let pattern = pattern.strip_prefix("domain:").unwrap_or(pattern);
    !host.is_empty() && text_matches(pattern, host)
}

fn text_rules<'a>(
    rules: &'a [ToolRule],
    tool: &'a str,
    reading: Reading,
) -> impl Iterator<Item = (&'a ToolRule, &'a str)> {
    rules.iter().filter(move |rule| rule.is_about(tool, reading)).filter_map(|rule| match &rule.subject {
        Some(Acting::Text(pattern)) => Some((rule, pattern.as_str())),
        Some(Acting::Path(_)) | None => None,
    })
}

fn hits(policy: &Policy, tool: &str, matches: impl Fn(&str) -> Option<bool>) -> Vec<(String, bool)> {
    let rules = text_rules(&policy.tools.deny, tool, Reading::Wide).chain(text_rules(
        &policy.tools.approval,
        tool,
        Reading::Wide,
    ));
    rules.filter_map(|(rule, pattern)| Some((rule.pointer.clone(), matches(pattern)?))).collect()
}

fn allowed(policy: &Policy, tool: &str, matches: impl Fn(&str) -> bool) -> Option<String> {
    let rules = policy.tools.allow.as_deref().unwrap_or_default();
    text_rules(rules, tool, Reading::Narrow).find(|(_, pattern)| matches(pattern)).map(|(rule, _)| rule.pointer.clone())
}

/// Path rules of a tool's list, for [`crate::judge`].
pub(crate) fn path_rules<'a>(
    rules: &'a [ToolRule],
    tool: &'a str,
    reading: Reading,
) -> impl Iterator<Item = (&'a ToolRule, &'a PathRule)> {
    rules.iter().filter(move |rule| rule.is_about(tool, reading)).filter_map(|rule| match &rule.subject {
        Some(Acting::Path(path)) => Some((rule, path)),
        Some(Acting::Text(_)) | None => None,
    })
}
