//! The `tools` lists against facts (R15, R16).

use writ_core::{Matched, Subject, Verdict};

use super::{Judge, kind, matched, path_match, reason, text_match};
use crate::enforce::Enforce;
use crate::facts::{PathFact, SEARCH};
use crate::glob::name::is_pattern;
use crate::policy::Policy;
use crate::rules::{PathRule, Reading, ToolPattern, ToolRule};

impl Policy {
    /// Whether every call of a tool is denied, whatever its input: an agent has no use for it.
    pub fn never_allows(&self, tool: &str) -> bool {
        let rules = &self.tools;
        let whole = |rule: &ToolRule| rule.subject.is_none() && rule.is_about(tool, Reading::Wide);
        let listed = |rules: &Vec<ToolRule>| rules.iter().any(|rule| rule.is_about(tool, Reading::Narrow));
        self.enforce() == Enforce::Decide
            && (rules.deny.iter().any(whole) || rules.allow.as_ref().is_some_and(|allow| !listed(allow)))
    }
}

impl Judge<'_> {
    pub(super) fn tools(&mut self) {
        let tools = &self.policy.tools;
        for (rules, verdict) in [(&tools.deny, Verdict::Deny), (&tools.approval, Verdict::Ask)] {
            let facts = self.facts;
            let about = |rule: &ToolRule| {
                rule.is_about_any(facts.names(), Reading::Wide) || (facts.shell && rule.is_about("Bash", Reading::Wide))
            };
            let taken_back = |rule: &&ToolRule| rule.path().is_some_and(|path| path.negated);
            for rule in rules.iter().filter(|rule| about(rule) && !taken_back(rule)) {
                self.against(rule, rules, verdict);
            }
        }
        if let Some(rules) = &tools.allow {
            self.allow_list(rules);
        }
    }

    /// A `deny` or `requireApproval` rule about this tool.
    fn against(&mut self, rule: &ToolRule, rules: &[ToolRule], verdict: Verdict) {
        let word = if verdict == Verdict::Deny { "is denied" } else { "needs approval" };
        let instead = format!("remove the rule at {}", rule.pointer);
        let facts = self.facts;
        let tool = &facts.tool;
        match &rule.subject {
            None => {
                let whole = matched(Subject::Tool, tool, None);
                self.say(verdict, &rule.pointer, whole, format!("tool `{tool}` {word}"), instead);
            }
            Some(ToolPattern::Text(_)) => self.against_texts(rule, verdict, word, &instead),
            Some(ToolPattern::Path(path)) => {
                let home = self.home();
                let taken_back = |it: &str| {
                    let later = rules.iter().skip_while(|other| other.pointer != rule.pointer);
                    let own = later.filter(|other| other.tool == rule.tool);
                    own.filter_map(ToolRule::path).any(|other| other.negated && other.matches(it, home))
                };
                let hit = |fact: &&PathFact| {
                    [&fact.written, &fact.resolved].iter().any(|it| path.matches(it, home) && !taken_back(it))
                        || (fact.tree && path.is_anchored_below(&fact.resolved, home))
                };
                for fact in facts.paths.iter().filter(|fact| fact.subject).filter(hit) {
                    let message = format!("{tool} of `{}` {word}", fact.resolved);
                    self.reasons.push(reason(verdict, &rule.pointer, path_match(fact), message, instead.clone()));
                }
            }
        }
    }

    fn against_texts(&mut self, rule: &ToolRule, verdict: Verdict, word: &str, instead: &str) {
        let facts = self.facts;
        for text in &facts.texts {
            let Some((_, sure)) = text.hits.iter().find(|(pointer, _)| *pointer == rule.pointer) else { continue };
            let what = format!("{} `{}`", kind(text), text.name);
            if *sure {
                self.say(verdict, &rule.pointer, text_match(text), format!("{what} {word}"), instead.to_owned());
            } else {
                let message = format!("{what} has parts that are not known yet, and might match");
                self.say(Verdict::Ask, &rule.pointer, text_match(text), message, "write the arguments out".to_owned());
            }
        }
    }

    fn allow_list(&mut self, rules: &[ToolRule]) {
        let facts = self.facts;
        let tool = &facts.tool;
        let about: Vec<&ToolRule> =
            rules.iter().filter(|rule| rule.is_about_any(facts.names(), Reading::Narrow)).collect();
        let whole = matched(Subject::Tool, tool, None);
        // Advice holds for every client: it goes by the name that rules have for the tool.
        let [_, known_as] = facts.names();
        let whole_tool = (!tool.contains('*')).then_some(known_as);
        if let Some(rule) = about.iter().find(|rule| rule.subject.is_none()) {
            let message = format!("tool `{tool}` is allowed");
            return self.say(Verdict::Allow, &rule.pointer, whole, message, String::new());
        }
        if about.is_empty() {
            return self.not_allowed(whole, &format!("tool `{tool}`"), whole_tool);
        }
        let paths: Vec<&PathRule> = about
            .iter()
            .filter_map(|rule| if let Some(ToolPattern::Path(path)) = &rule.subject { Some(path) } else { None })
            .collect();
        let mut named = if paths.is_empty() { None } else { self.allowed_paths(&paths) };
        if paths.is_empty() && facts.texts.is_empty() && facts.unresolved.is_empty() && known_as != "Bash" {
            self.not_allowed(whole.clone(), &format!("tool `{tool}` without anything to match"), whole_tool);
        }
        for text in &facts.texts {
            match text.allowed.as_deref() {
                Some(rule) if rule.starts_with('/') => named = Some(rule),
                Some(_) => {}
                None => {
                    let named = text.place.as_ref().unwrap_or(&text.name);
                    let add = format!("{known_as}:{named}{}", if text.subject == Subject::Command { " *" } else { "" });
                    let add = (!named.contains('*')).then_some(add.as_str());
                    self.not_allowed(text_match(text), &format!("{} `{}`", kind(text), text.name), add);
                }
            }
        }
        for open in facts.unresolved.iter().filter(|open| open.kind != SEARCH) {
            let place = matched(Subject::Unresolved, &open.what, open.span);
            self.not_allowed(place, &format!("what is not known before it runs ({})", open.kind), whole_tool);
        }
        if let Some(rule) = named {
            let message = format!("`{tool}` is allowed for this");
            self.say(Verdict::Allow, rule, whole, message, String::new());
        }
    }

    /// The rule that allows the last of the tool's own paths; refuses those that none allows.
    fn allowed_paths<'b>(&mut self, rules: &[&'b PathRule]) -> Option<&'b str> {
        let mut named = None;
        let facts = self.facts;
        for fact in facts.paths.iter().filter(|fact| fact.subject) {
            let last = rules.iter().rfind(|rule| rule.matches(&fact.resolved, self.home()));
            match last.filter(|rule| !rule.negated) {
                Some(rule) => named = Some(rule.pointer.as_str()),
                None => {
                    let what = format!("{} of `{}`", facts.tool, fact.resolved);
                    let [_, known_as] = facts.names();
                    let add = (!is_pattern(&fact.resolved)).then(|| format!("{known_as}:{}", fact.resolved));
                    self.not_allowed(path_match(fact), &what, add.as_deref());
                }
            }
        }
        named
    }

    /// Refuses what no entry allows, with the entry to add. None where the agent's own words would be a pattern, and allow more than they are.
    fn not_allowed(&mut self, matched: Matched, what: &str, add: Option<&str>) {
        let message = format!("{what} is not among the allowed");
        let instead = match add {
            Some(add) => format!("add `{add}` to /tools/allow"),
            None => "write an entry for it into /tools/allow: its name has signs of patterns".to_owned(),
        };
        self.say(Verdict::Deny, "/tools/allow", matched, message, instead);
    }
}
