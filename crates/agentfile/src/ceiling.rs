//! What an agent may not exceed: the packages that it is built on (§16).
//!
//! Owns the seven MUST NOTs, each told with both sides, and decisions through several levels: every level is asked by its own policies,
//! and all must allow (R62). Fetches no package. Invariant: an agent that passes against a chain grants nothing that a member of the
//! chain does not. Page: `spec/agentfile.md`.

mod granted;
mod network;
mod sets;
mod taken;

use serde::Serialize;

use crate::agent::{Agent, Entry};
use crate::cedar::{Decided, Request, Rules};
use crate::diagnostic::{Diagnostic, Place};
use crate::directive::{Audit, Cred, Directive, Inject, Mode, Rate};
use crate::lint::Linted;
use crate::lock::Lock;
use crate::names::{Resolved, resolve, tool_name};
use crate::placed::Placed;
use crate::reference::{host_within, path_within};
pub use granted::{declared, request};
pub use taken::taken;

/// An agent that another is built on.
#[derive(Debug)]
pub struct Level {
    /// As it was read.
    pub agent: Agent,
    /// Its policies.
    pub rules: Rules,
    /// What its references were, where that is known.
    pub lock: Option<Lock>,
}

impl Level {
    /// An agent with its policies.
    pub fn new(agent: Agent, lock: Option<Lock>) -> Self {
        let (rules, _found) = Rules::of(&agent);
        Self { agent, rules, lock }
    }

    /// An agent that was linted.
    pub fn of(linted: Linted) -> Self {
        Self { agent: linted.agent, rules: linted.rules, lock: None }
    }

    /// The same with its lock: what its sets of tools bring is declared, too.
    pub fn locked(linted: Linted, lock: Lock) -> Self {
        let tools = lock.brought(&linted.agent);
        Self::bringing(linted, Some(lock), tools)
    }

    /// The same, where it is known which tools its sets bring.
    pub fn bringing(linted: Linted, lock: Option<Lock>, tools: Vec<String>) -> Self {
        let whole = if tools.is_empty() {
            linted
        } else {
            Placed { agentfile: linted.agent.text, tools, ..Placed::default() }.linted(&linted.agent.file)
        };
        Self { lock, ..Self::of(whole) }
    }

    /// Asks its policies and its declarations, as itself; what it forbids to the child by name is forbidden, too.
    pub fn decide(&self, child: &str, request: &Request) -> Decided {
        let own = Request { principal: None, ..request.clone() };
        let decided = self.rules.decide(&self.agent, &own);
        if !decided.is_allowed() {
            return decided;
        }
        // As its policies name what is asked for, where it was asked for by another of its names.
        let known = own.declared_by(&self.agent).unwrap_or(own);
        let named = self.rules.ask(child, &Request { principal: request.principal.clone(), ..known });
        if named.errors.is_empty() && !named.rules.iter().any(|said| said.effect == "forbid") { decided } else { named }
    }
}

/// A side of a comparison: a line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The file.
    pub file: String,
    /// The line; `None` where the file has none that says it.
    pub line: Option<usize>,
    /// The line's text, or what its absence means.
    pub text: String,
}

impl Side {
    fn of(agent: &Agent, entry: &Entry) -> Self {
        Self { file: agent.file.clone(), line: Some(entry.line()), text: entry.quoted() }
    }

    fn absent(agent: &Agent, text: impl Into<String>) -> Self {
        Self { file: agent.file.clone(), line: None, text: text.into() }
    }

    fn shown(&self) -> String {
        self.line.map_or_else(
            || format!("{}: {}", self.file, self.text),
            |line| format!("{}:{line}: `{}`", self.file, self.text),
        )
    }
}

/// Which MUST NOT of §16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MustNot {
    /// 1: remove inherited denies.
    RemoveDeny,
    /// 2: widen network access.
    WidenNetwork,
    /// 3: widen filesystem access.
    WidenFiles,
    /// 4: expose credentials.
    ExposeCredential,
    /// 5: disable audit.
    LowerAudit,
    /// 6: increase authority: tools and delegation.
    IncreaseAuthority,
    /// 7: weaken limits.
    WeakenLimit,
}

impl MustNot {
    /// The finding's code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::RemoveDeny => "removes-deny",
            Self::WidenNetwork => "widens-network",
            Self::WidenFiles => "widens-files",
            Self::ExposeCredential => "exposes-credential",
            Self::LowerAudit => "lowers-audit",
            Self::IncreaseAuthority => "increases-authority",
            Self::WeakenLimit => "weakens-limit",
        }
    }
}

/// Something that the child may not do, with both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which of the seven.
    pub rule: MustNot,
    /// What is wrong.
    pub message: String,
    /// The child's side.
    pub child: Side,
    /// The parent's side.
    pub parent: Side,
}

impl Violation {
    /// The same as a finding about the child's file.
    pub fn diagnostic(&self, child: &Agent) -> Diagnostic {
        // Of a base that exceeds its own base, the line is in another file.
        let own = self.child.line.filter(|_| self.child.file == child.file);
        let place = own.map_or(Place::START, |line| child.line_place(line));
        let message = format!("{}: here {}, in the base {}", self.message, self.child.shown(), self.parent.shown());
        Diagnostic::error(self.rule.code(), place, message, "stay within the base, or have its owners widen it")
    }
}

/// Everything in which a child exceeds one parent, in the order of the seven. Its lock says what its references are, where there is one.
pub fn violations(child: &Agent, lock: Option<&Lock>, parent: &Level) -> Vec<Violation> {
    let mut check = Check { child, lock, parent, found: Vec::new() };
    check.denies();
    check.network();
    check.files();
    check.credentials();
    check.audit();
    check.authority();
    check.limits();
    check.sets();
    check.granted();
    check.found.sort_by_key(|found| (found.rule, found.child.line));
    check.found
}

/// The same against a whole chain, the nearest parent first. Each parent is held against its own parents, too.
pub fn chain_violations(child: &Agent, lock: Option<&Lock>, chain: &[Level]) -> Vec<Violation> {
    let mut out = Vec::new();
    for (at, parent) in chain.iter().enumerate() {
        out.extend(violations(child, lock, parent));
        for above in chain.iter().skip(at + 1) {
            out.extend(violations(&parent.agent, parent.lock.as_ref(), above));
        }
    }
    out
}

/// Decides through all levels: the child's own word, then each parent's. The first that denies is the answer.
pub fn decide(child: &Level, chain: &[Level], request: &Request) -> (Decided, Option<usize>) {
    let own = child.rules.decide(&child.agent, request);
    if !own.is_allowed() {
        return (own, None);
    }
    let request = named(&child.agent, request);
    for (at, parent) in chain.iter().enumerate() {
        let held = parent.decide(child.agent.name_or_default(), &request);
        if !held.is_allowed() {
            return (held, Some(at));
        }
    }
    (own, None)
}

/// A request with its tool by its whole name: by a short one each file means its own.
fn named(child: &Agent, request: &Request) -> Request {
    match resolve(child, &request.resource) {
        Resolved::Tool(tool) | Resolved::Later(tool) if request.action.resource == "Tool" => {
            Request { resource: tool.to_string(), ..request.clone() }
        }
        _ => request.clone(),
    }
}

struct Check<'a> {
    child: &'a Agent,
    lock: Option<&'a Lock>,
    parent: &'a Level,
    found: Vec<Violation>,
}

impl Check<'_> {
    fn say(&mut self, rule: MustNot, message: impl Into<String>, child: Side, parent: Side) {
        self.found.push(Violation { rule, message: message.into(), child, parent });
    }

    /// A parent's forbids stay in force whatever the child says; that it permits what they forbid is refused all the same.
    fn denies(&mut self) {
        let (child, parent) = (self.child, self.parent);
        for entry in &child.entries {
            let Directive::Allow(word) = &entry.directive else { continue };
            for base in &parent.agent.entries {
                let Directive::Deny(denied) = &base.directive else { continue };
                if same_tool(child, word, &parent.agent, denied) {
                    let (mine, theirs) = (Side::of(child, entry), Side::of(&parent.agent, base));
                    self.say(MustNot::RemoveDeny, format!("`{word}` is allowed, which the base denies"), mine, theirs);
                }
            }
        }
        let (rules, _found) = Rules::of(child);
        for (id, rule) in rules.each().filter(|(_, rule)| rule.permits && rule.directive.is_none()) {
            let Some((action, resource)) = rules.exact(id) else { continue };
            let said = parent.rules.ask(parent.agent.name_or_default(), &Request::new(action, &*resource));
            let Some(forbid) = said.rules.iter().find(|said| said.effect == "forbid") else { continue };
            let text = forbid.directive.clone().or_else(|| parent.rules.text_at(forbid.line)).unwrap_or_default();
            let mine = Side { file: child.file.clone(), line: Some(rule.place.line), text: one_line(&rule.text) };
            let theirs = Side { file: parent.agent.file.clone(), line: Some(forbid.line), text: one_line(&text) };
            self.say(
                MustNot::RemoveDeny,
                format!("`{}` on `{resource}` is permitted, which the base forbids", action.name),
                mine,
                theirs,
            );
        }
    }

    fn files(&mut self) {
        let (child, parent) = (self.child, &self.parent.agent);
        for (entry, (path, mode)) in child.mounts() {
            let nearest = parent
                .mounts()
                .filter(|(_, (base, _))| path_within(path, base))
                .max_by_key(|(_, (base, _))| base.len());
            let (message, theirs) = match nearest {
                None => (format!("`{path}` lies in no mount of the base"), Side::absent(parent, "no `MOUNT` of it")),
                Some((base, (_, Mode::Ro))) if mode == Mode::Rw => {
                    (format!("`{path}` may be written"), Side::of(parent, base))
                }
                Some(_) => {
                    // A path below that the base keeps read-only stays so.
                    let below = parent
                        .mounts()
                        .find(|(_, (base, held))| *held == Mode::Ro && mode == Mode::Rw && path_within(base, path));
                    let covered = |base: &str| child.mounts().any(|(_, (own, mode))| own == base && mode == Mode::Ro);
                    match below.filter(|(_, (base, _))| !covered(base)) {
                        Some((base, (held, _))) => (format!("`{held}` in it may be written"), Side::of(parent, base)),
                        None => continue,
                    }
                }
            };
            self.say(MustNot::WidenFiles, message, Side::of(child, entry), theirs);
        }
    }

    fn credentials(&mut self) {
        let (child, parent) = (self.child, &self.parent.agent);
        for (entry, cred) in child.creds() {
            let base = parent.creds().find(|(_, base)| base.name == cred.name);
            let (message, theirs) = match base {
                None => (
                    format!("the secret `{}` is none of the base's", cred.name),
                    Side::absent(parent, format!("no `CRED {}`", cred.name)),
                ),
                Some((line, base)) => match exposes(cred, base) {
                    Some(message) => (message, Side::of(parent, line)),
                    None => continue,
                },
            };
            self.say(MustNot::ExposeCredential, message, Side::of(child, entry), theirs);
        }
    }

    fn audit(&mut self) {
        let (child, parent) = (self.child, &self.parent.agent);
        let pick = |directive: &Directive| if let Directive::Audit(audit) = directive { Some(*audit) } else { None };
        let Some((base, held)) = parent.each(pick).next() else { return };
        // A child without one inherits the base's.
        if let Some((entry, audit)) = child.each(pick).next().filter(|(_, audit)| *audit < held) {
            let message = format!("audit is `{}`, and `{}` in the base", Audit::as_str(audit), held.as_str());
            self.say(MustNot::LowerAudit, message, Side::of(child, entry), Side::of(parent, base));
        }
    }

    /// Tools have to be permitted by the base.
    fn authority(&mut self) {
        let (child, parent) = (self.child, self.parent);
        for (entry, tool) in child.tools() {
            if let Resolved::Tool(base) = resolve(&parent.agent, &tool.to_string()) {
                let who = [parent.agent.name_or_default(), child.name_or_default()];
                if parent.rules.may_permit("tool.invoke", &tool_name(&parent.agent, &base), &who) {
                    continue;
                }
                let line = parent.agent.tools().find(|(_, known)| **known == base);
                let theirs = line.map_or_else(
                    || Side::absent(&parent.agent, "not permitted"),
                    |(entry, _)| Side::of(&parent.agent, entry),
                );
                self.say(
                    MustNot::IncreaseAuthority,
                    format!("the base permits `{tool}` by no policy"),
                    Side::of(child, entry),
                    theirs,
                );
            } else {
                let theirs = Side::absent(&parent.agent, format!("no `TOOL {tool}`"));
                self.say(
                    MustNot::IncreaseAuthority,
                    format!("the tool `{tool}` is none of the base's"),
                    Side::of(child, entry),
                    theirs,
                );
            }
        }
    }

    /// What no comparison of lines has found: requests that the child allows, and the base does not.
    fn granted(&mut self) {
        let (rules, _found) = Rules::of(self.child);
        let beyond = granted::beyond(self.child, &rules, self.parent);
        let told: Vec<Option<usize>> = self.found.iter().map(|found| found.child.line).collect();
        self.found.extend(beyond.into_iter().filter(|found| !told.contains(&found.child.line)));
    }

    fn limits(&mut self) {
        let (child, parent) = (self.child, &self.parent.agent);
        for entry in &child.entries {
            match &entry.directive {
                Directive::RateLimit { tool, rate } => {
                    for base in &parent.entries {
                        let Directive::RateLimit { tool: held, rate: most } = &base.directive else { continue };
                        if same_tool(child, tool, parent, held) && looser(*rate, *most) {
                            self.say(
                                MustNot::WeakenLimit,
                                format!("`{tool}` may be called more often"),
                                Side::of(child, entry),
                                Side::of(parent, base),
                            );
                        }
                    }
                }
                Directive::Timeout(seconds) => {
                    let base = parent
                        .each(|directive| if let Directive::Timeout(most) = directive { Some(*most) } else { None })
                        .next();
                    if let Some((base, _)) = base.filter(|(_, most)| seconds > most) {
                        self.say(
                            MustNot::WeakenLimit,
                            "it may run longer",
                            Side::of(child, entry),
                            Side::of(parent, base),
                        );
                    }
                }
                Directive::Limit { name, count, unit } => {
                    for base in &parent.entries {
                        let Directive::Limit { name: held, count: most, unit: per } = &base.directive else { continue };
                        let wider = match (unit, per) {
                            (Some(unit), Some(per)) => {
                                looser(Rate { count: *count, unit: *unit }, Rate { count: *most, unit: *per })
                            }
                            (None, None) => count > most,
                            _ => continue,
                        };
                        if name == held && wider {
                            self.say(
                                MustNot::WeakenLimit,
                                format!("the limit `{name}` is higher"),
                                Side::of(child, entry),
                                Side::of(parent, base),
                            );
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a rate allows more: in its own time, or on the whole.
fn looser(child: Rate, parent: Rate) -> bool {
    let (child, parent) = (
        (u128::from(child.count), u128::from(child.unit.seconds())),
        (u128::from(parent.count), u128::from(parent.unit.seconds())),
    );
    child.0 * parent.1 > parent.0 * child.1
}

fn same_tool(child: &Agent, word: &str, parent: &Agent, other: &str) -> bool {
    let full = |agent: &Agent, word: &str| match resolve(agent, word) {
        Resolved::Tool(tool) | Resolved::Later(tool) => Some(tool),
        Resolved::Ambiguous(_) | Resolved::Unknown => None,
    };
    match (full(child, word), full(parent, other)) {
        (Some(one), Some(other)) => one == other,
        _ => word == other,
    }
}

/// In what a secret is exposed beyond the base.
fn exposes(cred: &Cred, base: &Cred) -> Option<String> {
    let name = &cred.name;
    if let Some(host) = cred.hosts.iter().find(|host| !base.hosts.iter().any(|held| host_within(host, held))) {
        return Some(format!("the secret `{name}` may be sent to `{host}`"));
    }
    if cred.source != base.source {
        return Some(format!("the secret `{name}` comes from elsewhere"));
    }
    (cred.inject == Inject::Query && base.inject == Inject::Header)
        .then(|| format!("the secret `{name}` goes into queries"))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 160 { line } else { format!("{}…", line.chars().take(160).collect::<String>()) }
}
