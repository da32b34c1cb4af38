//! The `files` and `domains` lists against facts (R12–R14).

use std::net::IpAddr;

use writ_core::{Subject, Verdict};
use writ_shell::Access;

use super::{Judge, matched, path_match};
use crate::facts::{Host, HostFact, PathFact, PathKind, access_word};
use crate::glob::Glob;
use crate::grants::Kind;
use crate::protect::{self, is_below};
use crate::rules::{PathRule, last_word, last_word_of};
use crate::scope::Scope;

const AMBIGUOUS: &str = "writ:ambiguous-url";
/// What no rule of a list of hosts names.
const NOT_ALLOWED: &str = "/domains/allow";

impl Judge<'_> {
    pub(super) fn path(&mut self, fact: &PathFact) {
        match fact.kind {
            PathKind::Listing => return,
            PathKind::Open | PathKind::Any => return self.open_path(fact),
            PathKind::Perhaps => return self.perhaps(fact),
            _ => {}
        }
        let (files, facts) = (&self.policy.files, self.facts);
        // What is read of a whole tree the kernel gives or hides, file by file: below the policy's folder, where all that rules name is known.
        let stored = matches!(fact.kind, PathKind::Stored | PathKind::PerhapsStored);
        let held = facts.held.files && !stored && fact.access == Access::Read && is_below(&fact.resolved, &files.root);
        if held && fact.kind == PathKind::Found {
            return;
        }
        let names = facts.names();
        let spellings = fact.spellings();
        let home = self.home();
        let named = |rules| {
            spellings.iter().find_map(|path| last_word_of(rules, path, home, |scope| rule_applies(names, scope, fact)))
        };
        if fact.kind == PathKind::Into {
            self.might_overwrite(fact);
        }
        let reaches = |rules| self.reaches(fact, rules).filter(|_| !held);
        let made = fact.kind == PathKind::Copied;
        let denied = named(&files.deny).or_else(|| reaches(&files.deny)).filter(|_| !made);
        if let Some(rule) = denied {
            let pointer = rule.pointer.clone();
            let message = format!("`{}` is denied ({})", fact.resolved, access_word(fact.access));
            let certain = !matches!(fact.kind, PathKind::Text | PathKind::Maybe);
            let instead = format!("remove the rule at {pointer}, or leave this path out");
            if fact.kind == PathKind::PerhapsStored {
                return self.doubt(false, &pointer, path_match(fact), message, instead);
            }
            return self.deny_or_doubt(certain, &pointer, path_match(fact), message, instead);
        }
        if matches!(fact.kind, PathKind::Mentioned | PathKind::Text) {
            return;
        }
        let read_only = named(&files.read_only);
        if let Some(rule) = read_only.or_else(|| reaches(&files.read_only)) {
            if fact.access == Access::Write {
                let pointer = rule.pointer.clone();
                let message = format!("`{}` is read-only", fact.resolved);
                // Whether a program or a tool of unknown doings writes is not known.
                let only_perhaps = matches!(
                    fact.kind,
                    PathKind::Argument | PathKind::Operand | PathKind::Maybe | PathKind::PerhapsStored
                );
                let instead = format!("remove the rule at {pointer}");
                return self.deny_or_doubt(!only_perhaps, &pointer, path_match(fact), message, instead);
            }
            if read_only.is_some() {
                return;
            }
        }
        let above_all = fact.tree && is_below(&files.root, &fact.resolved);
        let reached = || reaches(&files.approval).filter(|_| !above_all);
        if let Some(rule) = named(&files.approval).or_else(reached) {
            let pointer = rule.pointer.clone();
            self.path_asks(fact, &pointer);
        }
        if !matches!(fact.kind, PathKind::Argument | PathKind::Operand | PathKind::Maybe | PathKind::PerhapsStored) {
            self.path_allowed(fact);
        }
    }

    fn path_asks(&mut self, fact: &PathFact, pointer: &str) {
        let message = format!("`{}` needs approval ({})", fact.resolved, access_word(fact.access));
        let instead = format!("remove the rule at {pointer}, or leave this path out");
        self.say(Verdict::Ask, pointer, path_match(fact), message, instead);
    }

    /// A path that is not fully known, against each rule that it may break (R70). Names and existence are not asked about.
    fn open_path(&mut self, fact: &PathFact) {
        if !matches!(fact.access, Access::Read | Access::Write) {
            return;
        }
        let (home, files) = (self.home(), &self.policy.files);
        let (written, resolved) = (Glob::parse(&fact.written), Glob::parse(&fact.resolved));
        let patterns = [written.ok(), resolved.ok()];
        // What does not read as a pattern may be anything. What the line makes may lie below what a rule names.
        let narrow = fact.kind == PathKind::Open;
        let meant = |rule: &&PathRule| {
            patterns.iter().any(|pattern| pattern.as_ref().is_none_or(|pattern| rule.may_name(pattern, narrow, home)))
        };
        let writes = fact.access == Access::Write;
        let named = files.deny.iter().chain(&files.approval).filter(|rule| rule.scope.covers(fact.access)).find(meant);
        let rule = named.or_else(|| files.read_only.iter().filter(|_| writes).find(meant));
        let free = fact.written.starts_with("/**");
        let rule = rule.map(|rule| rule.pointer.as_str());
        if let Some(rule) = rule.or((files.allow.is_some() && free).then_some("/files/allow")) {
            self.not_known(fact, rule);
        }
    }

    /// A path that is on disk, ruled, and perhaps meant.
    fn perhaps(&mut self, fact: &PathFact) {
        if self.facts.held.files {
            return;
        }
        let sure = PathFact { kind: PathKind::Found, ..fact.clone() };
        let before = self.reasons.len();
        self.path(&sure);
        for reason in self.reasons.iter_mut().skip(before) {
            reason.verdict = Verdict::Ask;
            reason.message = format!("{}, and may be meant", reason.message);
        }
    }

    /// What is used is not known, and a rule may have something to say about it.
    pub(super) fn not_known(&mut self, fact: &PathFact, rule: &str) {
        let shown = fact.written.replace("{*,*/**/*}", "…").replace('\u{1}', "…");
        let what = if shown == "/**" { "any path".to_owned() } else { format!("`{shown}`") };
        let message =
            format!("which file is used ({}) is not known before it runs: it may be {what}", access_word(fact.access));
        self.doubt(self.facts.held.files, rule, path_match(fact), message, "write the path out".to_owned());
    }

    /// Files whose names nobody knows, into a folder that has something below it which may not be written.
    fn might_overwrite(&mut self, fact: &PathFact) {
        let home = self.home();
        let (files, facts) = (&self.policy.files, self.facts);
        let names = facts.names();
        let approval = files.approval.iter().filter(|_| !is_below(&files.root, &fact.resolved));
        let rules = files.deny.iter().chain(&files.read_only).chain(approval);
        let below = rules
            .filter(|rule| rule_applies(names, rule.scope, fact) && rule.is_anchored_below(&fact.resolved, home))
            .map(|rule| rule.pointer.as_str());
        let protected = self.setting.protected_below(&fact.resolved).map(|_| protect::RULE);
        for rule in below.chain(protected) {
            let message =
                format!("what is written into `{}` is not known, and might replace what is kept there", fact.resolved);
            let instead = "name the files, or another folder".to_owned();
            self.doubt(facts.held.files, rule, path_match(fact), message, instead);
        }
    }

    /// A tree or a shell glob that takes in something the list names.
    fn reaches<'b>(&self, fact: &PathFact, rules: &'b [PathRule]) -> Option<&'b PathRule> {
        let (home, names) = (self.home(), self.facts.names());
        let content = matches!(fact.access, Access::Read | Access::Write);
        if fact.kind == PathKind::Into {
            return None;
        }
        if fact.tree
            && content
            && let Some(rule) = rules
                .iter()
                .find(|rule| rule_applies(names, rule.scope, fact) && rule.is_anchored_below(&fact.resolved, home))
        {
            return Some(rule);
        }
        if !matches!(fact.kind, PathKind::Glob | PathKind::ExpandedGlob) {
            return None;
        }
        let word = Glob::parse(&fact.written).ok()?;
        rules.iter().find(|rule| rule_applies(names, rule.scope, fact) && rule.meets(&word, home))
    }

    fn path_allowed(&mut self, fact: &PathFact) {
        let Some(rules) = &self.policy.files.allow else { return };
        let home = self.home();
        let inside = last_word(rules, &fact.resolved, home).is_some();
        // A confined call has a folder of its own there.
        let root = &self.policy.files.root;
        let own = self.facts.held.files && is_below(&fact.resolved, "/tmp") && !is_below(&fact.resolved, root);
        let fine = inside
            || own
            || fact.kind == PathKind::Unlikely
            || match fact.access {
                Access::Exec => true,
                Access::List => rules.iter().any(|rule| rule.leads_through(&fact.resolved, home)),
                Access::Read | Access::Write => fact.kind == PathKind::ExpandedGlob,
            };
        if !fine {
            let message = format!("`{}` is not among the allowed files ({})", fact.resolved, access_word(fact.access));
            let instead = format!("add a pattern for `{}` to /files/allow", fact.resolved);
            self.say(Verdict::Deny, "/files/allow", path_match(fact), message, instead);
        }
    }

    pub(super) fn host(&mut self, fact: &HostFact) {
        let domains = &self.policy.domains;
        // A URL that programs read in different ways is held against no list of URLs either.
        let unreadable = fact.host == Host::Ambiguous && self.policy.grants.of(Kind::Apis).any();
        if !domains.any() && !unreadable {
            return;
        }
        let name = match &fact.host {
            Host::Name(name) => name,
            Host::Ambiguous => {
                let matched = matched(Subject::Host, "", fact.span);
                let message = "programs read this URL in different ways".to_owned();
                return self.say(
                    Verdict::Deny,
                    AMBIGUOUS,
                    matched,
                    message,
                    "a plain URL: scheme://host/path".to_owned(),
                );
            }
            Host::Unknown => {
                let matched = matched(Subject::Host, "", fact.span);
                let message = "which host is contacted is not known before it runs".to_owned();
                return self.doubt(
                    self.facts.held.hosts,
                    "/domains",
                    matched,
                    message,
                    "write the host out".to_owned(),
                );
            }
        };
        if let Some(rule) = domains.refuses(fact) {
            if self.facts.held.hosts && rule == NOT_ALLOWED && is_own(name) {
                return;
            }
            let rule = rule.to_owned();
            let matched = matched(Subject::Host, name, fact.span);
            let instead = match name.contains('*') {
                false => format!("add `{name}` to /domains/allow"),
                true => "write an entry for it into /domains/allow: its name has signs of patterns".to_owned(),
            };
            self.say(Verdict::Deny, &rule, matched, format!("host `{name}` is not allowed"), instead);
        }
    }
}

/// Whether a rule of this scope is about this use by a tool of these names. What a tool acts on is held against the rules that name
/// the tool elsewhere ([`Judge::tools`]). An editing tool does not write whole files; any other change of a file that is there is one.
fn rule_applies(names: [&str; 2], scope: Scope, fact: &PathFact) -> bool {
    let named = |tools: &[&str]| fact.subject && names.iter().any(|name| tools.contains(name));
    scope.covers(fact.access)
        && match scope {
            Scope::Any | Scope::Reads => true,
            Scope::Writes => !named(&["Write", "Edit", "MultiEdit", "NotebookEdit"]),
            Scope::Changes => !fact.new && !named(&["Edit", "MultiEdit"]),
        }
}

/// Whether a host is the machine itself: where the kernel holds the network, that is one of the session's own, where nobody else listens.
fn is_own(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
