//! From facts to a decision: pure, and the same for a live call and for a recorded one.
//!
//! Each rule that speaks becomes a reason; deny beats ask beats allow (R5). Page: `spec/policy.md`.

use writ_core::{Decision, Matched, Reason, Span, Subject, Verdict};
use writ_shell::Access;

use crate::facts::{Facts, Host, HostFact, PathFact, PathKind, SEARCH, SYNTAX, TextFact, access_word};
use crate::glob::Glob;
use crate::policy::Policy;
use crate::protect::{self, Setting};
use crate::rules::{PathRule, Reading, ToolRule, last_word};
use crate::survey::path_rules;

/// Rules that are Writ's own.
const MALFORMED: &str = "writ:malformed-input";
const NO_SHELL: &str = "writ:shell-syntax";
const AMBIGUOUS: &str = "writ:ambiguous-url";

/// Applies a policy to facts.
pub fn judge(policy: &Policy, setting: &Setting, facts: &Facts) -> Decision {
    let mut judge = Judge { policy, setting, facts, reasons: Vec::new() };
    judge.expiry();
    judge.malformed();
    judge.self_protection();
    judge.tools();
    judge.unresolved();
    facts.paths.iter().for_each(|fact| judge.path(fact));
    facts.hosts.iter().for_each(|fact| judge.host(fact));
    let mut reasons: Vec<Reason> = Vec::new();
    for reason in judge.reasons {
        if !reasons.iter().any(|known| is_same(known, &reason)) {
            reasons.push(reason);
        }
    }
    Decision::from_reasons(reasons)
}

/// Whether two reasons say the same. The text of a command is left out: the record does not keep it.
fn is_same(one: &Reason, other: &Reason) -> bool {
    let place = |reason: &Reason| (reason.verdict, reason.matched.subject, reason.matched.span);
    let keeps_text = !matches!(one.matched.subject, Subject::Command | Subject::Unresolved);
    one.rule == other.rule && place(one) == place(other) && (!keeps_text || one.matched.text == other.matched.text)
}

struct Judge<'a> {
    policy: &'a Policy,
    setting: &'a Setting,
    facts: &'a Facts,
    reasons: Vec<Reason>,
}

impl Judge<'_> {
    fn say(&mut self, verdict: Verdict, rule: &str, matched: Matched, message: String, instead: String) {
        self.reasons.push(Reason { verdict, rule: rule.to_owned(), matched, message, instead });
    }

    fn home(&self) -> Option<&str> {
        self.setting.home.as_deref()
    }

    fn expiry(&mut self) {
        let Some((moment, text)) = &self.policy.expires else { return };
        if self.setting.now > *moment {
            let (text, matched) = (text.clone(), matched(Subject::Policy, self.policy.name(), None));
            self.say(
                Verdict::Deny,
                "/expires",
                matched,
                format!("the policy expired on {text}"),
                "a policy with a later `expires`".to_owned(),
            );
        }
    }

    fn malformed(&mut self) {
        if let Some(why) = &self.facts.malformed {
            let (why, matched) = (why.clone(), matched(Subject::Tool, &self.facts.tool, None));
            self.say(
                Verdict::Deny,
                MALFORMED,
                matched,
                format!("the input cannot be judged: {why}"),
                "input in the tool's own shape".to_owned(),
            );
        }
    }

    fn self_protection(&mut self) {
        for fact in self.facts.paths.iter().filter(|fact| fact.kind != PathKind::Mentioned) {
            if let Some(protected) = self.setting.violated(fact) {
                let message = format!("`{}` is {}, which the agent may not touch", protected.path, protected.what);
                self.say(
                    Verdict::Deny,
                    protect::RULE,
                    path_match(fact),
                    message,
                    "a human changes it outside the session".to_owned(),
                );
            }
        }
        for text in self.facts.texts.iter().filter(|text| text.reserved) {
            let message = format!("`{}` would change what binds the agent", text.name);
            self.say(
                Verdict::Deny,
                protect::RULE,
                text_match(text),
                message,
                "a human runs it in a terminal".to_owned(),
            );
        }
    }

    fn tools(&mut self) {
        let tools = &self.policy.tools;
        for (rules, verdict) in [(&tools.deny, Verdict::Deny), (&tools.approval, Verdict::Ask)] {
            for rule in rules.iter().filter(|rule| rule.is_about(&self.facts.tool, Reading::Wide)) {
                self.against(rule, verdict);
            }
        }
        if let Some(rules) = &tools.allow {
            self.allow_list(rules);
        }
    }

    /// A `deny` or `requireApproval` rule about this tool.
    fn against(&mut self, rule: &ToolRule, verdict: Verdict) {
        let instead = || format!("remove the rule at {}", rule.pointer);
        let word = if verdict == Verdict::Deny { "is denied" } else { "needs approval" };
        if rule.subject.is_none() {
            let tool = &self.facts.tool;
            self.say(
                verdict,
                &rule.pointer,
                matched(Subject::Tool, tool, None),
                format!("tool `{tool}` {word}"),
                instead(),
            );
            return;
        }
        let facts = self.facts;
        for text in &facts.texts {
            let Some((_, sure)) = text.hits.iter().find(|(pointer, _)| *pointer == rule.pointer) else { continue };
            if *sure {
                self.say(
                    verdict,
                    &rule.pointer,
                    text_match(text),
                    format!("{} `{}` {word}", kind(text), text.name),
                    instead(),
                );
            } else {
                let message =
                    format!("{} `{}` has parts that are not known yet, and might match", kind(text), text.name);
                self.say(Verdict::Ask, &rule.pointer, text_match(text), message, "write the arguments out".to_owned());
            }
        }
        let Some((_, path_rule)) = path_rules(std::slice::from_ref(rule), &facts.tool, Reading::Wide).next() else {
            return;
        };
        for fact in facts.paths.iter().filter(|fact| fact.subject) {
            if self.rule_hits(path_rule, fact) {
                self.say(
                    verdict,
                    &rule.pointer,
                    path_match(fact),
                    format!("{} of `{}` {word}", facts.tool, fact.resolved),
                    instead(),
                );
            }
        }
    }

    fn rule_hits(&self, rule: &PathRule, fact: &PathFact) -> bool {
        [&fact.written, &fact.resolved].iter().any(|path| rule.matches(path, self.home()))
    }

    fn allow_list(&mut self, rules: &[ToolRule]) {
        let facts = self.facts;
        let tool = &facts.tool;
        let about: Vec<&ToolRule> = rules.iter().filter(|rule| rule.is_about(tool, Reading::Narrow)).collect();
        if let Some(rule) = about.iter().find(|rule| rule.subject.is_none()) {
            self.say(
                Verdict::Allow,
                &rule.pointer,
                matched(Subject::Tool, tool, None),
                format!("tool `{tool}` is allowed"),
                String::new(),
            );
            return;
        }
        let deny = |judge: &mut Self, matched: Matched, what: String, add: String| {
            judge.say(
                Verdict::Deny,
                "/tools/allow",
                matched,
                format!("{what} is not among the allowed"),
                format!("add `{add}` to /tools/allow"),
            );
        };
        if about.is_empty() {
            return deny(self, matched(Subject::Tool, tool, None), format!("tool `{tool}`"), tool.clone());
        }
        let mut named: Option<&str> = None;
        let path_allows: Vec<&PathRule> = path_rules(rules, tool, Reading::Narrow).map(|(_, rule)| rule).collect();
        let subjects: Vec<&PathFact> = facts.paths.iter().filter(|fact| fact.subject).collect();
        if !path_allows.is_empty() {
            for fact in &subjects {
                match path_allows
                    .iter()
                    .rfind(|rule| rule.matches(&fact.resolved, self.home()))
                    .filter(|rule| !rule.negated)
                {
                    Some(rule) => named = Some(&rule.pointer),
                    None => deny(
                        self,
                        path_match(fact),
                        format!("{tool} of `{}`", fact.resolved),
                        format!("{tool}:{}", fact.resolved),
                    ),
                }
            }
        } else if facts.texts.is_empty() && facts.unresolved.is_empty() && tool != "Bash" {
            deny(
                self,
                matched(Subject::Tool, tool, None),
                format!("tool `{tool}` without anything to match"),
                tool.clone(),
            );
        }
        for text in &facts.texts {
            match text.allowed.as_deref() {
                Some(rule) if rule.starts_with('/') => named = Some(rule),
                Some(_) => {}
                None => deny(
                    self,
                    text_match(text),
                    format!("{} `{}`", kind(text), text.name),
                    format!("{tool}:{} *", text.name),
                ),
            }
        }
        for open in facts.unresolved.iter().filter(|open| open.kind != SEARCH) {
            let matched = matched(Subject::Unresolved, &open.what, open.span);
            deny(self, matched, format!("what is not known before it runs ({})", open.kind), tool.clone());
        }
        if let Some(rule) = named {
            let rule = rule.to_owned();
            self.say(
                Verdict::Allow,
                &rule,
                matched(Subject::Tool, tool, None),
                format!("`{tool}` is allowed for this"),
                String::new(),
            );
        }
    }

    /// R20: what cannot be known asks wherever some rule could have something to say about it.
    fn unresolved(&mut self) {
        let facts = self.facts;
        let tools = &self.policy.tools;
        let ruled = tools.deny.iter().chain(&tools.approval).find(|rule| rule.is_about("Bash", Reading::Wide));
        for open in &facts.unresolved {
            let matched = matched(Subject::Unresolved, &open.what, open.span);
            if open.kind == SEARCH {
                if self.policy.files.any() {
                    let message = format!("`{}` holds too much to look for denied files in", open.what);
                    self.say(Verdict::Ask, "/files", matched, message, "name a smaller folder".to_owned());
                }
            } else if open.kind == SYNTAX {
                if ruled.is_some() || self.policy.files.any() || self.policy.domains.any() {
                    let message = format!("not readable as a shell command: {}", open.what);
                    self.say(Verdict::Deny, NO_SHELL, matched, message, "a command that bash accepts".to_owned());
                }
            } else if let Some(rule) = ruled {
                let what = if open.what.is_empty() { String::new() } else { format!(" `{}`", open.what) };
                let message = format!("what{what} does is not known before it runs ({})", open.kind);
                let instead = "plain commands, or a script file".to_owned();
                self.say(Verdict::Ask, &rule.pointer, matched, message, instead);
            }
        }
    }

    fn path(&mut self, fact: &PathFact) {
        let files = &self.policy.files;
        let both = [&fact.written, &fact.resolved];
        let home = self.home();
        let denied =
            both.iter().find_map(|path| last_word(&files.deny, path, home)).or_else(|| self.reaches(fact, &files.deny));
        if let Some(rule) = denied {
            let pointer = rule.pointer.clone();
            let message = format!("`{}` is denied ({})", fact.resolved, access_word(fact.access));
            return self.say(
                Verdict::Deny,
                &pointer,
                path_match(fact),
                message,
                format!("remove the rule at {pointer}, or leave this path out"),
            );
        }
        if fact.kind == PathKind::Mentioned {
            return;
        }
        let read_only = both
            .iter()
            .find_map(|path| last_word(&files.read_only, path, home))
            .or_else(|| self.reaches(fact, &files.read_only));
        if let Some(rule) = read_only {
            if fact.access == Access::Write {
                let pointer = rule.pointer.clone();
                let message = format!("`{}` is read-only", fact.resolved);
                return self.say(
                    Verdict::Deny,
                    &pointer,
                    path_match(fact),
                    message,
                    format!("remove the rule at {pointer}"),
                );
            }
            if both.iter().any(|path| last_word(&files.read_only, path, home).is_some()) {
                return;
            }
        }
        self.path_allowed(fact);
    }

    /// A tree or a shell glob that takes in something the list names.
    fn reaches<'b>(&self, fact: &PathFact, rules: &'b [PathRule]) -> Option<&'b PathRule> {
        let home = self.home();
        let content = matches!(fact.access, Access::Read | Access::Write);
        if fact.tree
            && content
            && let Some(rule) = rules.iter().find(|rule| rule.is_anchored_below(&fact.resolved, home))
        {
            return Some(rule);
        }
        if !matches!(fact.kind, PathKind::Glob | PathKind::ExpandedGlob) {
            return None;
        }
        let word = Glob::parse(&fact.written).ok()?;
        rules.iter().find(|rule| rule.meets(&word, home))
    }

    fn path_allowed(&mut self, fact: &PathFact) {
        let Some(rules) = &self.policy.files.allow else { return };
        let home = self.home();
        let inside = last_word(rules, &fact.resolved, home).is_some();
        let fine = inside
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

    fn host(&mut self, fact: &HostFact) {
        let domains = &self.policy.domains;
        if !domains.any() {
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
                return self.say(Verdict::Ask, "/domains", matched, message, "write the host out".to_owned());
            }
        };
        if let Some(rule) = domains.refusal(fact) {
            let rule = rule.to_owned();
            let matched = matched(Subject::Host, name, fact.span);
            self.say(
                Verdict::Deny,
                &rule,
                matched,
                format!("host `{name}` is not allowed"),
                format!("add `{name}` to /domains/allow"),
            );
        }
    }
}

fn matched(subject: Subject, text: &str, span: Option<Span>) -> Matched {
    Matched { subject, text: text.to_owned(), span }
}

fn path_match(fact: &PathFact) -> Matched {
    matched(Subject::Path, &fact.resolved, fact.span)
}

fn text_match(fact: &TextFact) -> Matched {
    matched(fact.subject, &fact.text, fact.span)
}

const fn kind(fact: &TextFact) -> &'static str {
    match fact.subject {
        Subject::Command => "command",
        Subject::Host => "URL on",
        _ => "kind",
    }
}
