//! From facts to a decision: pure, and the same for a live call and for a recorded one.
//!
//! Owns the reasons: each rule that speaks becomes one; deny beats ask beats allow (R5). Looks at nothing but policy, setting
//! and facts. Invariant: facts read back from the record get the same verdict from the same rules. Page: `spec/policy.md`.

mod flows;
mod identity;
mod limits;
mod places;
mod resources;
mod tools;

use std::collections::HashSet;

use writ_core::{Decision, Matched, Reason, Span, Subject, Verdict};

use crate::also;
use crate::facts::{Apply, Facts, LIMIT, OTHER_SHELL, PathFact, PathKind, SEARCH, SYNTAX, TEXT_HOST, TextFact};
use crate::limits::{Action, Tally};
use crate::policy::Policy;
use crate::protect::{self, Setting};
use crate::rules::Reading;

pub use flows::flow_refusals;
pub use identity::missing_tools;
pub use limits::{near, near_of_type, refusals, refusals_of_agents};

/// Rules that are Writ's own.
const MALFORMED: &str = "writ:malformed-input";
const NO_SHELL: &str = "writ:shell-syntax";
const OTHER_SHELL_RULE: &str = "writ:other-shell";
const REDEFINED: &str = "writ:tool-redefined";

/// Applies one policy to facts; its limits only where there is something counted for them.
pub fn judge_alone(policy: &Policy, setting: &Setting, facts: &Facts, tally: Option<Tally<'_>>) -> Decision {
    let mut judge = Judge { policy, setting, facts, reasons: Vec::new() };
    judge.expiry();
    if let Some(tally) = tally {
        judge.limits(tally);
    }
    judge.malformed();
    judge.self_protection();
    judge.identity();
    judge.tools();
    judge.unresolved();
    facts.paths.iter().for_each(|fact| judge.path(fact));
    facts.hosts.iter().for_each(|fact| judge.host(fact));
    facts.resources.iter().for_each(|fact| judge.resource(fact));
    judge.loss();
    judge.token();
    judge.unattested();
    judge.unconfined();
    judge.redefined();
    facts.applies.iter().for_each(|apply| judge.apply(apply));
    judge.reasons.extend(policy.also.iter().flat_map(|also| also::objections(&**also, facts)));
    let mut seen = HashSet::new();
    let mut reasons = judge.reasons;
    reasons.retain(|reason| seen.insert(dedup_key(reason)));
    Decision::from_reasons(reasons)
}

/// Reasons alike in this say the same. The text of a command is left out: the record does not keep it.
fn dedup_key(reason: &Reason) -> (String, Verdict, Subject, Option<Span>, String) {
    let matched = &reason.matched;
    let keeps_text = !matches!(matched.subject, Subject::Command | Subject::Unresolved);
    let text = if keeps_text { matched.text.clone() } else { String::new() };
    (reason.rule.clone(), reason.verdict, matched.subject, matched.span, text)
}

struct Judge<'a> {
    policy: &'a Policy,
    setting: &'a Setting,
    facts: &'a Facts,
    reasons: Vec<Reason>,
}

impl<'a> Judge<'a> {
    fn say(&mut self, verdict: Verdict, rule: &str, matched: Matched, message: String, instead: String) {
        self.reasons.push(reason(verdict, rule, matched, message, instead));
    }

    fn home(&self) -> Option<&'a str> {
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

    /// What comes after the last that the policy lets a session use (R17).
    fn limits(&mut self, tally: Tally<'_>) {
        self.reasons.extend(limits::refusals(self.policy, tally, Action::Call));
    }

    /// What would be lost, against the tiers the policy names.
    fn loss(&mut self) {
        let Some(loss) = &self.facts.loss else { return };
        let limits = self.policy.consequences();
        let reached =
            |limit: Option<u8>| limit.is_some_and(|limit| severity(loss.tier) >= severity(limit) && loss.tier > 2);
        let (verdict, rule) = match (reached(limits.deny), reached(limits.ask)) {
            (true, _) => (Verdict::Deny, "/consequences/deny"),
            (false, true) => (Verdict::Ask, "/consequences/ask"),
            (false, false) => return,
        };
        let (what, matched) = (loss.rule.clone(), matched(Subject::Tool, &self.facts.tool, None));
        let message = format!("what it would do is tier {} ({what})", loss.tier);
        self.say(
            verdict,
            rule,
            matched,
            message,
            "an action that can be undone: `writ evaluate --explain` says what is lost".to_owned(),
        );
    }

    /// A token that the call would show to whoever reads its command, URL or arguments.
    fn token(&mut self) {
        let Some(verdict) = self.policy.tokens.filter(|_| self.facts.token) else { return };
        let matched = matched(Subject::Tool, &self.facts.tool, None);
        let message = "a token of a known shape stands in what it sends or runs".to_owned();
        let instead = "a variable, or the program's own login, in the token's place".to_owned();
        self.say(verdict, "/tokens", matched, message, instead);
    }

    /// A plan is applied only with a verdict on exactly this file that holds now.
    fn apply(&mut self, apply: &Apply) {
        let Some(limit) = self.policy.consequences().attested_apply else { return };
        let why = match (&apply.plan, &apply.verdict) {
            (None, _) => "it applies no plan file that is known".to_owned(),
            (Some(plan), _) if apply.company.is_some() => {
                let company = apply.company.as_deref().unwrap_or_default();
                self.deny_apply(
                    apply,
                    format!("`{company}` in the same line may change the plan file `{plan}` first"),
                    "apply it in a line of its own",
                );
                return;
            }
            (Some(plan), None) => format!("no attested verdict speaks for the plan file `{plan}` as it is now"),
            (_, Some(verdict)) if self.setting.now >= verdict.until => {
                format!("the verdict on its plan ended at {}", verdict.until)
            }
            (_, Some(verdict)) if severity(verdict.tier) > severity(limit) => {
                format!(
                    "the verdict on its plan is tier {}, and tier {limit} is the worst that may be applied",
                    verdict.tier
                )
            }
            _ => return,
        };
        let instead = "make a plan file (`terraform plan -out=tfplan`) and have a human or CI attest it (`writ evaluate terraform tfplan \
                       --attest`)";
        self.deny_apply(apply, why, instead);
    }

    fn deny_apply(&mut self, apply: &Apply, why: String, instead: &str) {
        let matched = matched(Subject::Command, "apply", Some(apply.span));
        self.say(Verdict::Deny, "/consequences/attestedApply", matched, why, instead.to_owned());
    }

    /// A verdict that the policy wants attested, and that could not be.
    fn unattested(&mut self) {
        let Some(why) = self.facts.unattested.as_ref().filter(|_| self.policy.consequences().attest) else { return };
        let message = format!("its verdict could not be attested: {why}");
        let matched = matched(Subject::Tool, &self.facts.tool, None);
        let instead = "an instance that can sign: see `writ keys list`".to_owned();
        self.say(Verdict::Deny, "/consequences/attest", matched, message, instead);
    }

    /// A call that is wanted in a sandbox, and that cannot be put into one.
    fn unconfined(&mut self) {
        let Some(why) = &self.facts.unconfined else { return };
        let message = format!("it cannot be run in a sandbox: {why}");
        let matched = matched(Subject::Tool, &self.facts.tool, None);
        let instead = "what `writ doctor` says of sandboxes".to_owned();
        self.say(Verdict::Deny, "/enforce", matched, message, instead);
    }

    /// A tool that is no longer what it was when it was let in: its new words may be meant for the model.
    fn redefined(&mut self) {
        if !self.facts.redefined {
            return;
        }
        let message = format!("its server has changed what `{}` is, and no human has accepted that", self.facts.tool);
        let matched = matched(Subject::Tool, &self.facts.tool, None);
        let instead = "a human looks at `writ mcp pins`, then runs `writ mcp pins accept`".to_owned();
        self.say(Verdict::Ask, REDEFINED, matched, message, instead);
    }

    /// Asks because something is not known, unless the kernel holds it anyway (R70).
    fn doubt(&mut self, held: bool, rule: &str, matched: Matched, message: String, instead: String) {
        if !held {
            self.say(Verdict::Ask, rule, matched, message, instead);
        }
    }

    /// Denies what is certain, and asks about what is only possible and not held.
    fn deny_or_doubt(&mut self, certain: bool, rule: &str, matched: Matched, message: String, instead: String) {
        if certain {
            self.say(Verdict::Deny, rule, matched, message, instead);
        } else {
            self.doubt(self.facts.held.files, rule, matched, message, instead);
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
            if matches!(fact.kind, PathKind::Open | PathKind::Any) {
                if self.setting.may_violate(fact) {
                    self.not_known(fact, protect::RULE);
                }
            } else if let Some(protected) = self.setting.violated(fact) {
                if fact.kind == PathKind::Perhaps {
                    self.not_known(fact, protect::RULE);
                    continue;
                }
                let message = format!("`{}` is {}, which the agent may not touch", protected.path, protected.what);
                let only_perhaps = matches!(fact.kind, PathKind::Text | PathKind::Operand | PathKind::Maybe);
                let instead = "a human changes it outside the session".to_owned();
                self.deny_or_doubt(!only_perhaps, protect::RULE, path_match(fact), message, instead);
            }
        }
        for text in self.facts.texts.iter().filter(|text| text.reserved) {
            let message = format!("`{}` would change what binds the agent", text.name);
            self.say(
                if text.possible { Verdict::Ask } else { Verdict::Deny },
                protect::RULE,
                text_match(text),
                message,
                "a human runs it in a terminal".to_owned(),
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
                    self.doubt(facts.held.files, "/files", matched, message, "name a smaller folder".to_owned());
                }
            } else if open.kind == SYNTAX {
                if ruled.is_some()
                    || self.policy.files.any() && !facts.held.files
                    || self.policy.domains.any() && !facts.held.hosts
                {
                    let message = format!("not readable as a shell command: {}", open.what);
                    self.say(Verdict::Deny, NO_SHELL, matched, message, "a command that bash accepts".to_owned());
                }
            } else if open.kind == TEXT_HOST {
                let message = format!("its input holds the address `{}`, whose host is not allowed", open.what);
                self.doubt(facts.held.hosts, "/domains", matched, message, "leave the address out".to_owned());
            } else if open.kind == OTHER_SHELL {
                let message =
                    format!("the shell that runs here is zsh, which reads {} differently from bash", open.what);
                let instead = "`writ init`, which has the client run bash, or plainer words".to_owned();
                let held = ruled.is_none() && !self.reads_lines();
                self.doubt(held, OTHER_SHELL_RULE, matched, message, instead);
            } else if open.kind == LIMIT && ruled.is_none() {
                if let Some(rule) = self.in_doubt() {
                    let message = format!("too large to be followed to its end: {}", open.what);
                    self.say(Verdict::Ask, rule, matched, message, "a shorter command".to_owned());
                }
            } else if let Some(pointer) = ruled.map(|rule| rule.pointer.as_str()).or_else(|| self.may_break(&open.kind))
            {
                let pointer = pointer.to_owned();
                let what = if open.what.is_empty() { String::new() } else { format!(" `{}`", open.what) };
                let message = format!("what{what} does is not known before it runs ({})", open.kind);
                let instead = "plain commands, or a script file".to_owned();
                self.say(Verdict::Ask, &pointer, matched, message, instead);
            }
        }
    }

    /// The rules about files or hosts that what runs unknown may break (R70).
    fn may_break(&self, kind: &str) -> Option<&'static str> {
        if matches!(kind, "code" | "script" | "program" | "environment") { self.in_doubt() } else { None }
    }

    /// Whether anything hangs on what a line says that the kernel does not hold, beside refusals of programs. The record and what else
    /// protects it is held where files are.
    fn reads_lines(&self) -> bool {
        let policy = self.policy;
        let mut allowed = policy.tools.allow.iter().flatten();
        !self.facts.held.files
            || self.in_doubt().is_some()
            || allowed.any(|rule| rule.subject.is_some() && rule.is_about("Bash", Reading::Wide))
            || policy.consequences().any()
            || policy.tokens.is_some()
            || policy.flow.any()
    }

    /// The first rules about files, hosts or what is granted that the kernel does not hold.
    fn in_doubt(&self) -> Option<&'static str> {
        let (held, policy) = (self.facts.held, self.policy);
        let files = (policy.files.any() && !held.files).then_some("/files");
        let domains = || (policy.domains.any() && !held.hosts).then_some("/domains");
        files.or_else(domains).or_else(|| policy.grants.any().then_some("/grants"))
    }
}

/// How much a tier weighs: what is gone outranks what nobody can tell (R34).
const fn severity(tier: u8) -> u8 {
    match tier {
        4 => 5,
        5 => 4,
        other => other,
    }
}

fn reason(verdict: Verdict, rule: &str, matched: Matched, message: String, instead: String) -> Reason {
    Reason { verdict, rule: rule.to_owned(), matched, message, instead }
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
        Subject::Tool | Subject::Path | Subject::Unresolved | Subject::Policy => "kind",
    }
}
