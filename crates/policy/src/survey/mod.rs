//! From a call to facts: what it would run, touch and contact.
//!
//! Owns the reading of tool inputs. Applies no rule but the matching of text patterns, because the facts keep no text.
//! Invariant: an input that cannot be read is in [`Facts`] as malformed, and nothing it names is left out in silence. Page:
//! `spec/policy.md`.

mod arrivals;
mod asks;
mod changes;
mod endings;
mod flows;
mod github;
mod input;
mod line;
mod open;
mod paths;
mod pattern;
mod plain_text;
mod programs;
mod remotes;
mod repository;
mod resources;
mod runners;
mod stores;
mod template;
mod tool;
mod touched;
mod unknown_use;
mod vault;
mod walk;

use self::changes::Changes;
use self::paths::{Below, TOO_LONG};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use writ_core::json::{self, Value};
use writ_core::{Span, Subject, ToolCall, ToolKind, Verdict, secret};
use writ_shell::{Access, Dir, Listing, NetTarget, Part};

use crate::facts::{Facts, Host, HostFact, PathFact, ResourceFact, TextFact, UnresolvedFact};
use crate::glob::unfold;
use crate::judge::judge_alone;
use crate::limits::Tally;
use crate::policy::Policy;
use crate::protect::Setting;
use crate::rules::{Reading, ToolPattern, ToolRule, text_matches};
use crate::url::{self, Target};
use crate::world::{MAX_ENTRIES, MAX_LINKS, Search, World, fold};

/// Most paths, and most texts, of one verdict that facts keep.
const MOST: usize = 64;

/// Stands for the host of a `file:` URL.
const FILE_HOST: &str = "file:";

/// Most trees that one call is searched for.
const MOST_TREES: usize = 64;
/// Most paths that all globs of one call expand to.
const MOST_FOUND: usize = 20_000;

/// Finds out what a call would touch. Beyond 64 paths or commands of one verdict the rest are left out: they would add
/// reasons, and change nothing.
pub fn survey(policy: &Policy, call: &ToolCall, setting: &Setting, world: &dyn World) -> Facts {
    let facts = Facts { tool: call.tool.clone(), known_as: call.known_as(), ..Facts::default() };
    let (found, expanded) = (HashMap::new(), HashSet::new());
    let (listings, listed) = (Vec::new(), HashSet::new());
    let mut survey = Survey {
        policy,
        call,
        setting,
        world,
        facts,
        found,
        links: MAX_LINKS,
        expanded,
        listings,
        listed,
        left: MOST_FOUND,
        entries: MAX_ENTRIES,
        trees: 0,
        removals: Vec::new(),
        made: Vec::new(),
        changes: Changes::default(),
        gits: Vec::new(),
        removing: false,
        inside_alias: false,
        through: Cell::default(),
    };
    if let Err(why) = survey.call() {
        survey.facts.malformed = Some(why);
    }
    survey.file_resources();
    survey.flows();
    survey.facts.token = policy.tokens.is_some() && survey.shows_token();
    survey.shorten();
    survey.facts.mask();
    survey.facts
}

/// A use of a listing's entries: which listing, from which folder, the text around, what happens, everything below too.
type Entries = (u16, Dir, Vec<Part>, Vec<Part>, Access, bool);

struct Survey<'a> {
    policy: &'a Policy,
    call: &'a ToolCall,
    setting: &'a Setting,
    world: &'a dyn World,
    facts: Facts,
    /// What stands behind a process's own folder or files in the path that was looked at last.
    through: Cell<Option<String>>,
    /// What was found below a tree, by its path, what happens to it, and whether it is only removed.
    found: HashMap<(String, Access, bool), Search<Option<Below>>>,
    /// How many more symlinks in trees may be followed.
    links: usize,
    /// Globs that were expanded, with what happens to the paths.
    expanded: HashSet<(String, Access, bool)>,
    /// What the shell line lists.
    listings: Vec<Listing>,
    /// Which uses of a listing's entries were looked at.
    listed: HashSet<Entries>,
    /// How many trees were searched for what has a label.
    trees: usize,
    /// How many more paths globs may expand to.
    left: usize,
    /// How many more folders and names may be looked at for globs.
    entries: usize,
    /// Where the line removes whole trees.
    removals: Vec<Span>,
    /// Folders that the line makes.
    made: Vec<String>,
    /// What the line makes of git's settings, branches and remotes.
    changes: Changes,
    /// Where the line runs git.
    gits: Vec<Span>,
    /// What is looked at is removed, not kept elsewhere or changed.
    removing: bool,
    /// What is looked at stands for one of git's subcommands.
    inside_alias: bool,
}

impl Survey<'_> {
    fn call(&mut self) -> Result<(), String> {
        match &self.call.kind {
            ToolKind::Shell { command } => {
                self.shell(command);
                self.own_arguments();
            }
            ToolKind::Read { paths } => return paths.iter().try_for_each(|path| self.file(path, Access::Read)),
            ToolKind::Write { paths } | ToolKind::Edit { paths, searched: false } => {
                return paths.iter().try_for_each(|path| self.file(path, Access::Write));
            }
            ToolKind::Edit { paths, searched: true } => {
                self.is_there(paths)?;
                return paths.iter().try_for_each(|path| self.file(path, Access::Write));
            }
            ToolKind::Search(search) => return self.search(search),
            ToolKind::Fetch { url } => {
                self.fetch(url);
                self.put_in();
            }
            ToolKind::Delegate { subagent } => {
                self.facts.starts = Some(subagent.clone());
                self.text(Subject::Tool, subagent.clone(), subagent);
            }
            // Its command is one of the client's own, not the shell's.
            ToolKind::Own if matches!(self.call.tool.as_str(), "SlashCommand" | "Skill") => {}
            ToolKind::WebSearch | ToolKind::Own => return self.unrecognised_tool(),
            ToolKind::Mcp { .. } => self.foreign_input(),
            ToolKind::Other => {
                self.unrecognised_tool()?;
                self.foreign_input();
            }
            ToolKind::Malformed { why } => return Err(why.clone()),
        }
        Ok(())
    }

    /// A file that the client would look for elsewhere: which one it would find is not known.
    fn is_there(&self, paths: &[String]) -> Result<(), String> {
        let is_missing = |path: &String| self.world.is_missing(&self.absolute(&self.call.cwd, path));
        match paths.first().filter(|first| !first.starts_with('/') && paths.iter().all(is_missing)) {
            Some(path) if !self.world.is_missing(&self.call.cwd) => Err(format!(
                "`{path}` is not there, and the client would change another file whose name ends so; \
                 name the file by its whole path"
            )),
            _ => Ok(()),
        }
    }

    /// A tool that is no server's: what its input names as a path or a URL is what it acts on.
    fn unrecognised_tool(&mut self) -> Result<(), String> {
        for name in ["file_path", "notebook_path", "path", "filePath"] {
            match self.call.input.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(path)) => self.file(path, Access::Write)?,
                Some(_) => return Err(format!("`{name}` is not a text")),
            }
        }
        if let Some(url) = self.call.text("url") {
            let url = url.to_owned();
            self.fetch(&url);
        }
        Ok(())
    }

    /// Whether a token stands where others get to see it: in a command, a URL, a search, the input of a server's tool, its names. What is
    /// written into a file or said to a subagent stays here.
    fn shows_token(&self) -> bool {
        let local = matches!(
            self.call.kind,
            ToolKind::Read { .. }
                | ToolKind::Write { .. }
                | ToolKind::Edit { .. }
                | ToolKind::Search(_)
                | ToolKind::Delegate { .. }
        ) || (self.call.kind == ToolKind::Own && self.call.tool == "TodoWrite");
        let said =
            || secret::mask_id(&self.call.tool) != self.call.tool || holds_token(&json::to_value(&self.call.kind));
        !local && (holds_token(&self.call.input) || said())
    }

    /// Keeps the record small without changing what it decides: each fact is judged alone, and the first of each verdict stay.
    fn shorten(&mut self) {
        let (policy, setting) = (self.policy, self.setting);
        let (tool, known_as) = (self.facts.tool.clone(), self.facts.known_as.clone());
        let alone = |facts: Facts| {
            let facts = Facts { tool: tool.clone(), known_as: known_as.clone(), ..facts };
            judge_alone(policy, setting, &facts, Some(Tally::default())).verdict
        };
        if self.facts.paths.len() > MOST {
            let verdict = |fact: &PathFact| alone(Facts { paths: vec![fact.clone()], ..Facts::default() });
            keep_first(&mut self.facts.paths, verdict);
        }
        if self.facts.texts.len() > MOST {
            let verdict = |fact: &TextFact| alone(Facts { texts: vec![fact.clone()], ..Facts::default() });
            keep_first(&mut self.facts.texts, verdict);
        }
        if self.facts.hosts.len() > MOST {
            let verdict = |fact: &HostFact| alone(Facts { hosts: vec![fact.clone()], ..Facts::default() });
            keep_first(&mut self.facts.hosts, verdict);
        }
        if self.facts.resources.len() > MOST {
            let verdict = |fact: &ResourceFact| alone(Facts { resources: vec![fact.clone()], ..Facts::default() });
            keep_first(&mut self.facts.resources, verdict);
        }
        if self.facts.unresolved.len() > MOST {
            let verdict = |fact: &UnresolvedFact| alone(Facts { unresolved: vec![fact.clone()], ..Facts::default() });
            keep_first(&mut self.facts.unresolved, verdict);
        }
    }

    fn file(&mut self, path: &str, access: Access) -> Result<(), String> {
        if path.is_empty() || path.contains('\0') {
            return Err(format!("`{path}` is no path"));
        }
        if self.is_too_long(path) {
            return Err(TOO_LONG.to_owned());
        }
        let absolute = self.absolute(&self.call.cwd, path);
        let mut fact = self.path(&absolute, access, None);
        fact.subject = true;
        self.facts.paths.push(fact);
        if access == Access::Write {
            self.written_settings(&absolute);
        }
        Ok(())
    }

    /// The hosts in a file of settings that a tool writes, as if a shell line had written it.
    fn written_settings(&mut self, path: &str) {
        let mut texts: Vec<&str> = ["content", "new_string"].iter().filter_map(|name| self.call.text(name)).collect();
        let edits = self.call.input.get("edits").and_then(Value::as_array).unwrap_or_default();
        texts.extend(edits.iter().filter_map(|edit| edit.get("new_string")?.as_str()));
        for net in writ_shell::settings_hosts(path, &texts.join("\n")) {
            let host = match &net {
                NetTarget::Unknown => Host::Unknown,
                NetTarget::Host(word) => word.literal().map_or(Host::Unknown, |text| url::read_host(&text)),
                NetTarget::Url(word) => match word.literal().map(|text| url::read(&text)) {
                    Some(Target::Host(host)) => host,
                    Some(Target::File(_)) => continue,
                    None => Host::Unknown,
                },
            };
            self.facts.hosts.push(HostFact { host, mentioned: false, span: None });
        }
    }

    /// Where a Glob pattern itself leads away from its folder: the folder it then starts from.
    fn glob_pattern(&mut self, folder: &str, pattern: &str) -> Result<(), String> {
        if self.is_too_long(pattern) {
            return Err(TOO_LONG.to_owned());
        }
        let away = pattern.starts_with(['/', '~']) || pattern.contains("..");
        if !away && !self.has_path_rules() {
            return Ok(());
        }
        for one in unfold(pattern).map_err(|error| format!("`pattern` is no glob: {error}"))? {
            let whole = fold(&self.absolute(folder, &one));
            self.glob_reach(&whole);
            if away || !one.starts_with(['*', '?', '[']) {
                let fixed: Vec<&str> = whole.split('/').take_while(|part| !part.contains(['*', '?', '['])).collect();
                let listed = self.path(&fixed.join("/"), Access::List, None);
                self.facts.paths.push(listed);
            }
        }
        Ok(())
    }

    fn fetch(&mut self, text: &str) {
        self.url_text(text, None);
        match url::read(text) {
            Target::File(path) => {
                let fact = self.path(&path, Access::Read, None);
                self.facts.paths.push(fact);
                self.text(Subject::Host, "file".to_owned(), text);
                // No `domains` entry can name it: whoever lists hosts has not listed this machine's files (R81).
                let host = Host::Name(FILE_HOST.to_owned());
                self.facts.hosts.push(HostFact { host, mentioned: false, span: None });
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
        let matches =
            |pattern: &str| text_matches(pattern, text) || text_matches(pattern, &name) || host_pattern(pattern, &name);
        // What forbids it forbids each of its spellings.
        let others = if subject == Subject::Host { url::spellings(text) } else { Vec::new() };
        let wide = |pattern: &str| matches(pattern) || others.iter().any(|text| text_matches(pattern, text));
        let hits = hits(self.policy, self.facts.names(), |pattern| wide(pattern).then_some(true));
        self.label_text(|pattern| wide(pattern).then_some(true));
        let allowed = allowed(self.policy, self.facts.names(), matches);
        let text = name.clone();
        self.facts.texts.push(TextFact {
            subject,
            name,
            place: None,
            span: None,
            hits,
            allowed,
            reserved: false,
            possible: false,
            text,
        });
    }
}

fn holds_token(input: &Value) -> bool {
    match input {
        Value::String(text) => secret::has_token(text),
        Value::Array(items) => items.iter().any(holds_token),
        Value::Object(members) => members.iter().any(|(name, member)| secret::has_token(name) || holds_token(member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
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

/// `WebFetch:github.com` and `WebFetch:domain:github.com` name a host.
fn host_pattern(pattern: &str, host: &str) -> bool {
    let pattern = pattern.strip_prefix("domain:").unwrap_or(pattern);
    !host.is_empty() && text_matches(pattern, host)
}

fn text_rules<'a>(
    rules: &'a [ToolRule],
    names: [&'a str; 2],
    reading: Reading,
) -> impl Iterator<Item = (&'a ToolRule, &'a str)> {
    rules.iter().filter(move |rule| rule.is_about_any(names, reading)).filter_map(|rule| match &rule.subject {
        Some(ToolPattern::Text(pattern)) => Some((rule, pattern.as_str())),
        Some(ToolPattern::Path(_)) | None => None,
    })
}

fn hits(policy: &Policy, names: [&str; 2], matches: impl Fn(&str) -> Option<bool>) -> Vec<(String, bool)> {
    let rules = text_rules(&policy.tools.deny, names, Reading::Wide).chain(text_rules(
        &policy.tools.approval,
        names,
        Reading::Wide,
    ));
    rules.filter_map(|(rule, pattern)| matches(pattern).map(|certain| (rule.pointer.clone(), certain))).collect()
}

fn allowed(policy: &Policy, names: [&str; 2], matches: impl Fn(&str) -> bool) -> Option<String> {
    let rules = policy.tools.allow.as_deref().unwrap_or_default();
    text_rules(rules, names, Reading::Narrow)
        .find(|(_, pattern)| matches(pattern))
        .map(|(rule, _)| rule.pointer.clone())
}
