//! The policies of an Agentfile, parsed and type-checked, each by the line it stands on.
//!
//! Owns the set that decides, and every finding about it. Invariant: a set with errors among its findings decides nothing.

use std::collections::{HashMap, HashSet};

use cedar_policy::{
    ActionConstraint, Effect, EntityUid, Policy, PolicyId, PolicySet, PrincipalConstraint, ResourceConstraint,
    ValidationError, ValidationMode, ValidationResult, ValidationWarning, Validator,
};
use writ_core::Digest;

use super::by_action::{ByAction, speaks};
use super::lower;
use super::many::{Written, halves, together};
use super::schema::{ACTIONS, Action, known_action, schema};
use super::split::{place_at, split, without_names, words};
use crate::agent::Agent;
use crate::diagnostic::{Diagnostic, Place};
use crate::names::{Names, Resolved};
use crate::reference::{absolute_path, is_host};

/// Most policies of one file.
const MAX_POLICIES: usize = 2000;
/// Most signs of a policy that may make it deeper: the validator says nothing of one that is deeper than its stack.
const MAX_SIGNS: usize = 2000;
/// As many need no stack of their own: whoever asks has room for them.
const SHALLOW: usize = 100;
/// The stack that others have: enough for the most.
const STACK: usize = 64 << 20;
pub(super) const NAMESPACE: &str = "AgentRC::";

/// One policy of the set.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Where it stands; of a lowered one, the directive.
    pub place: Place,
    /// Whether it permits.
    pub permits: bool,
    /// Its text; of a lowered one, what the directive means.
    pub text: String,
    /// The directive it was lowered from; nothing where it stands in a block.
    pub directive: Option<String>,
    /// What `@id` calls it.
    pub label: Option<String>,
}

/// The policies of an Agentfile.
#[derive(Debug, Default)]
pub struct Rules {
    pub(super) all: PolicySet,
    /// Those that may speak on an action: fewer are asked for each request.
    pub(super) by_action: ByAction,
    pub(super) rules: HashMap<PolicyId, Rule>,
    order: Vec<PolicyId>,
    /// Whether one of them may be deep.
    deep: bool,
    /// Whether they may decide.
    pub(super) broken: bool,
}

impl Rules {
    /// The policies as Cedar has them.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.all.policies()
    }

    /// The policies of an Agentfile and what is wrong with them.
    pub fn of(agent: &Agent) -> (Self, Vec<Diagnostic>) {
        let mut out = Self::default();
        let (mut found, mut written) = (Vec::new(), Vec::new());
        let names = Names::of(agent);
        for entry in &agent.entries {
            if let crate::directive::Directive::Policy(block) = &entry.directive {
                let statements = split(agent, block, &mut found).into_iter();
                written.extend(statements.map(|one| Written { text: one.text, place: one.place, directive: None }));
            } else if let Some(text) = lower::lower(agent, &names, entry) {
                written.push(Written { text, place: entry.keyword.place, directive: Some(entry.quoted()) });
            }
        }
        if let Some(beyond) = written.get(MAX_POLICIES) {
            let message = format!("more than {MAX_POLICIES} policies");
            found.push(Diagnostic::error("too-large", beyond.place, message, "fewer, broader policies"));
            written.truncate(MAX_POLICIES);
        }
        let mut parsed = together(&written).map(Vec::into_iter);
        for one in written {
            let known = parsed.as_mut().and_then(Iterator::next);
            out.add(agent, one, known, &mut found);
        }
        out.validate(agent, &mut found);
        out.names(agent, &mut found);
        out.broken = found.iter().any(Diagnostic::is_error);
        if !out.broken {
            out.by_action = ByAction::of(&out.all);
        }
        (out, found)
    }

    fn add(&mut self, agent: &Agent, written: Written, known: Option<Policy>, found: &mut Vec<Diagnostic>) {
        let Written { text, place, directive } = written;
        let mut id = PolicyId::new(format!("Agentfile:{}", place.line));
        if self.rules.contains_key(&id) {
            id = PolicyId::new(format!("Agentfile:{}:{}", place.line, place.column));
        }
        let signs = signs(&text);
        self.deep |= signs > SHALLOW;
        if signs > MAX_SIGNS {
            let message = format!("a policy has at most {MAX_SIGNS} operators, members and brackets");
            found.push(Diagnostic::error("too-large", place, message, "several policies"));
            return;
        }
        let parsed = match known {
            Some(policy) => Ok(policy.new_id(id.clone())),
            None => Policy::parse(Some(id.clone()), &text),
        };
        match parsed {
            Ok(policy) => {
                // To ask for it by its name has the name parsed each time.
                let label = policy.annotations().find(|(name, _)| *name == "id").map(|(_, label)| label.to_owned());
                let rule = Rule { place, permits: policy.effect() == Effect::Permit, text, directive, label };
                if self.all.add(policy).is_ok() {
                    self.order.push(id.clone());
                    self.rules.insert(id, rule);
                }
            }
            // A trap that was told says better what is wrong.
            Err(_) if found.iter().any(|known| inside(known.place, place)) => {}
            Err(error) => {
                let message = error.to_string();
                let place = pinpoint(agent, place, &text, &message);
                let help = if text.contains("?principal") || text.contains("?resource") {
                    "slots belong to templates: write the entity"
                } else {
                    "the policies are Cedar: `permit(principal == …, action == …, resource == …) when { … };`"
                };
                found.push(Diagnostic::error("cedar-syntax", place, first_line(&message), help));
            }
        }
    }

    /// Strict validation, and policies that can never apply.
    fn validate(&self, agent: &Agent, found: &mut Vec<Diagnostic>) {
        let Some(schema) = schema() else {
            found.push(Diagnostic::error("internal", Place::START, "the schema cannot be read", "report this"));
            return;
        };
        let Some(results) = self.validated(&Validator::new(schema.clone())) else {
            found.push(Diagnostic::error("internal", Place::START, "the policies are no set", "report this"));
            return;
        };
        let mut told: Vec<Diagnostic> = Vec::new();
        for error in results.iter().flat_map(ValidationResult::validation_errors) {
            let Some(rule) = self.rules.get(error.policy_id()) else { continue };
            let message = first_line(&tidy(&error.to_string()));
            let place = pinpoint(agent, rule.place, &rule.text, &message);
            told.push(Diagnostic::error("cedar-type", place, message, type_help(error)));
        }
        for warning in results.iter().flat_map(ValidationResult::validation_warnings) {
            let Some(rule) = self.rules.get(warning.policy_id()) else { continue };
            let message = first_line(&tidy(&warning.to_string()));
            told.push(match warning {
                ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_) => {
                    let why = "this policy can never apply: no request has such an action, resource and context";
                    Diagnostic::warning("never-applies", rule.place, why, never_help())
                }
                _ => Diagnostic::warning(
                    "cedar-text",
                    rule.place,
                    message,
                    "letters of one script, without signs that change the direction",
                ),
            });
        }
        told.sort_by_key(|told| (told.place, told.code));
        told.dedup_by(|a, b| a.place == b.place && a.code == b.code);
        // One that errs says it once.
        let errs: Vec<usize> = told.iter().filter(|told| told.is_error()).map(|told| told.place.line).collect();
        told.retain(|told| told.is_error() || !errs.contains(&told.place.line));
        found.extend(told);
    }

    /// What the validator says. Of policies that differ in names alone it is asked about one, and about the others where it has something
    /// to say about that one.
    fn validated(&self, validator: &Validator) -> Option<Vec<ValidationResult>> {
        let mut first: HashMap<String, &PolicyId> = HashMap::new();
        let (mut asked, mut others) = (Vec::new(), Vec::new());
        for policy in self.all.policies() {
            let like = self.shape(policy).map(|shape| *first.entry(shape).or_insert(policy.id()));
            match like.filter(|first| *first != policy.id()) {
                Some(first) => others.push((first, policy)),
                None => asked.push(policy.clone()),
            }
        }
        let mut results = validate(validator, &asked, self.deep)?;
        let told: HashSet<&PolicyId> = results.iter().flat_map(told_of).collect();
        let more: Vec<Policy> =
            others.into_iter().filter(|(first, _)| told.contains(first)).map(|(_, policy)| policy.clone()).collect();
        results.extend(validate(validator, &more, self.deep)?);
        Some(results)
    }

    /// A policy but for the names in it, where those change nothing about its types: it has no condition, or one that a directive lowers to.
    fn shape(&self, policy: &Policy) -> Option<String> {
        let rule = self.rules.get(policy.id())?;
        (rule.directive.is_some() || !policy.has_non_scope_constraint()).then(|| without_names(&rule.text))
    }

    /// Tools by names that are ambiguous, or longer than they have to be (R65), and permits of tools that are not declared.
    fn names(&self, agent: &Agent, found: &mut Vec<Diagnostic>) {
        let names = Names::of(agent);
        for (id, rule) in self.each() {
            let Some(policy) = self.all.policy(id).filter(|_| rule.directive.is_none()) else { continue };
            self.spellings((agent, rule), policy, found);
            let mut tools: Vec<String> = policy.entity_literals().iter().filter_map(|uid| id_of(uid, "Tool")).collect();
            tools.sort();
            tools.dedup();
            for word in tools {
                let place = pinpoint(agent, rule.place, &rule.text, &format!("`{}`", lower::quoted(&word)));
                match names.resolve(&word) {
                    Resolved::Tool(tool) if names.tool_name(&tool) != word => {
                        let message = format!(
                            "`{word}` is called `{}` in policies, since no other tool has that name",
                            tool.name
                        );
                        let help = format!("`AgentRC::Tool::{}`", lower::quoted(&tool.name));
                        found.push(Diagnostic::error("tool-name", place, message, help));
                    }
                    Resolved::Ambiguous(tools) => {
                        let names: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
                        let message = format!("`{word}` may be any of {}", names.join(", "));
                        found.push(Diagnostic::error("ambiguous-tool", place, message, "write the namespace, too"));
                    }
                    Resolved::Unknown if rule.permits && is_exact(policy, &word) => {
                        let message = format!("the policy permits `{word}`, which is not declared: it grants nothing");
                        found.push(Diagnostic::warning(
                            "never-applies",
                            place,
                            message,
                            format!("`TOOL utcp:{word}`, or take it out"),
                        ));
                    }
                    Resolved::Tool(_) | Resolved::Later(_) | Resolved::Unknown => {}
                }
            }
        }
    }

    /// Paths and hosts that are spelled as nothing is that is asked about: a policy on one would never apply.
    fn spellings(&self, (agent, rule): (&Agent, &Rule), policy: &Policy, found: &mut Vec<Diagnostic>) {
        let exact = match policy.resource_constraint() {
            ResourceConstraint::Eq(uid) => id_of(&uid, "Host").filter(|id| id.starts_with("*.")),
            _ => None,
        };
        if let Some(word) = exact {
            let place = pinpoint(agent, rule.place, &rule.text, &format!("`{}`", lower::quoted(&word)));
            let message = format!("no request is about `{word}` itself, so that a policy on it never applies");
            let help = "write `resource in …` for the hosts in it";
            found.push(Diagnostic::warning("never-applies", place, message, help));
        }
        for uid in policy.entity_literals() {
            let path = id_of(&uid, "Path").filter(|id| absolute_path(id).as_ref() != Ok(id) || id.contains('*'));
            let host = id_of(&uid, "Host").filter(|id| {
                let name = id.strip_prefix("*.").unwrap_or(id);
                !is_host(name) || *id != id.to_ascii_lowercase()
            });
            let (code, word, kind, form) = match (path, host) {
                (Some(path), _) => {
                    ("path-name", path, "path", "an absolute path without `.`, `..`, `//`, `*` and a slash at its end")
                }
                (None, Some(host)) => (
                    "host-name",
                    host,
                    "host",
                    "a host's name in small letters, without scheme, port and a dot at its end",
                ),
                (None, None) => continue,
            };
            let place = pinpoint(agent, rule.place, &rule.text, &format!("`{}`", lower::quoted(&word)));
            let message = format!("`{word}` is no {kind} as one is asked about, so that a policy on it never applies");
            found.push(Diagnostic::error(code, place, message, format!("write {form}")));
        }
    }

    /// Tools that no policy permits.
    pub(crate) fn unpermitted(&self, agent: &Agent, found: &mut Vec<Diagnostic>) {
        let permits = self.all.policies().filter(|policy| policy.effect() == Effect::Permit);
        let for_it = permits.filter(|policy| match policy.principal_constraint() {
            PrincipalConstraint::Eq(uid) | PrincipalConstraint::In(uid) | PrincipalConstraint::IsIn(_, uid) => {
                agent.name().is_none() || id_of(&uid, "Agent").as_deref() == agent.name()
            }
            PrincipalConstraint::Any | PrincipalConstraint::Is(_) => true,
        });
        let (mut all, mut permitted) = (false, HashSet::new());
        for policy in for_it.filter(|policy| speaks(policy, "tool.invoke")) {
            match policy.resource_constraint() {
                ResourceConstraint::Any => all = true,
                ResourceConstraint::Is(kind) => all |= kind.to_string() == "AgentRC::Tool",
                ResourceConstraint::Eq(uid) | ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) => {
                    permitted.extend(id_of(&uid, "Tool"));
                }
            }
        }
        let names = Names::of(agent);
        for (entry, tool) in agent.tools().filter(|_| !all) {
            if !permitted.contains(&names.tool_name(tool)) {
                let help = format!("`ALLOW invoke {tool}`, or a `permit` in a `POLICY` block");
                let message = format!("no policy permits the tool `{tool}`: it can never be invoked");
                found.push(Diagnostic::warning("unpermitted-tool", entry.argument(0), message, help));
            }
        }
    }

    /// The policies in the order of the file.
    pub fn each(&self) -> impl Iterator<Item = (&PolicyId, &Rule)> {
        self.order.iter().filter_map(|id| Some((id, self.rules.get(id)?)))
    }

    /// The lines of permits without a word on who, what or which.
    pub(crate) fn boundless(&self) -> impl Iterator<Item = usize> {
        self.each()
            .filter(|(id, rule)| {
                let open = |policy: &Policy| {
                    matches!(policy.action_constraint(), ActionConstraint::Any)
                        && matches!(policy.resource_constraint(), ResourceConstraint::Any)
                        && !policy.has_non_scope_constraint()
                };
                rule.permits && self.all.policy(id).is_some_and(open)
            })
            .map(|(_, rule)| rule.place.line)
    }

    /// The text of the policy on a line.
    pub(crate) fn text_at(&self, line: usize) -> Option<String> {
        self.each().find(|(_, rule)| rule.place.line == line).map(|(_, rule)| rule.text.clone())
    }

    /// Whether the policy on a line may look at a request's context.
    pub(crate) fn reads_context(&self, line: usize) -> bool {
        self.text_at(line).is_some_and(|text| words(&text).into_iter().any(|(_, word)| word == "context"))
    }

    /// The one action and the one resource that a policy's head names.
    pub(crate) fn exact(&self, id: &PolicyId) -> Option<(&'static Action, String)> {
        let policy = self.all.policy(id)?;
        let uid = match policy.action_constraint() {
            ActionConstraint::Eq(uid) => uid,
            ActionConstraint::In(uids) => uids.into_iter().next()?,
            ActionConstraint::Any => return None,
        };
        Some((known_action(uid.id().unescaped())?, self.exact_resource(id)?))
    }

    /// The one resource that a policy's head names.
    pub(crate) fn exact_resource(&self, id: &PolicyId) -> Option<String> {
        match self.all.policy(id)?.resource_constraint() {
            ResourceConstraint::Eq(uid) => Some(uid.id().unescaped().to_owned()),
            _ => None,
        }
    }

    /// The ids of one type of entities that policies hold.
    pub(crate) fn literals<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = String> + 'a {
        self.all.policies().flat_map(Policy::entity_literals).filter_map(move |uid| id_of(&uid, kind))
    }

    /// Whether some permit may speak for an action on a resource, or on what that lies in, whatever its conditions.
    pub(crate) fn may_permit_in(&self, action: &str, resource: &str) -> bool {
        self.all.policies().any(|policy| {
            let on = match policy.resource_constraint() {
                ResourceConstraint::Eq(uid) => uid.id().unescaped() == resource,
                _ => true,
            };
            policy.effect() == Effect::Permit && on && speaks(policy, action)
        })
    }

    /// Whether some permit may speak for an action on a resource, whatever its conditions, and no forbid without a condition does that is
    /// about one of those who ask.
    pub(crate) fn may_permit(&self, action: &str, resource: &str, who: &[&str]) -> bool {
        let on = |policy: &Policy| match policy.resource_constraint() {
            ResourceConstraint::Any | ResourceConstraint::Is(_) => true,
            ResourceConstraint::Eq(uid) | ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) => {
                uid.id().unescaped() == resource
            }
        };
        let speaking = |effect| {
            self.all.policies().filter(move |policy| policy.effect() == effect && speaks(policy, action) && on(policy))
        };
        let about = |policy: &Policy| match policy.principal_constraint() {
            PrincipalConstraint::Any | PrincipalConstraint::Is(_) => true,
            PrincipalConstraint::Eq(uid) | PrincipalConstraint::In(uid) | PrincipalConstraint::IsIn(_, uid) => {
                who.contains(&uid.id().unescaped())
            }
        };
        let forbidden = speaking(Effect::Forbid).any(|policy| !policy.has_non_scope_constraint() && about(policy));
        !forbidden && speaking(Effect::Permit).next().is_some()
    }

    /// The whole set, for Cedar's own tools.
    pub const fn set(&self) -> &PolicySet {
        &self.all
    }

    /// The policies as one text of Cedar, each with its line as `@id`: what a package carries.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (id, rule) in self.each() {
            let named = rule.label.is_some();
            if !named {
                out.push_str(&format!("@id({})\n", lower::quoted(id.as_ref())));
            }
            out.push_str(&rule.text.replace("\r\n", "\n"));
            out.push_str("\n\n");
        }
        out
    }

    /// Digest of [`Rules::text`].
    pub fn digest(&self) -> Digest {
        Digest::of(self.text().as_bytes())
    }
}

/// Words of a policy that may make it deeper by one. An operator of two signs is one.
fn signs(text: &str) -> usize {
    let plain = |word: &str| word.starts_with(|c: char| c.is_alphanumeric() || "_\"',;:)]}@".contains(c));
    let second = |at: usize| {
        let both = at.checked_sub(1).and_then(|before| text.get(before..=at));
        both.is_some_and(|both| ["==", "!=", "<=", ">=", "&&", "||"].contains(&both))
    };
    let deeper = |(at, word): &(usize, &str)| {
        (!plain(word) && !second(*at)) || matches!(*word, "if" | "has" | "like" | "in" | "is")
    };
    words(text).iter().filter(|one| deeper(one)).count()
}

/// What is said of each policy by itself: it does not matter which are together. A deep one gets a stack of its own.
fn validate(validator: &Validator, policies: &[Policy], deep: bool) -> Option<Vec<ValidationResult>> {
    if !deep {
        return validate_here(validator, policies);
    }
    std::thread::scope(|scope| {
        let all = || validate_here(validator, policies);
        std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, all).ok()?.join().ok()?
    })
}

fn validate_here(validator: &Validator, policies: &[Policy]) -> Option<Vec<ValidationResult>> {
    let results = halves(policies, |some| {
        let set = PolicySet::from_policies(some.iter().cloned()).ok()?;
        Some(validator.validate(&set, ValidationMode::Strict))
    });
    results.into_iter().collect()
}

/// The policies that something is said of.
fn told_of(result: &ValidationResult) -> impl Iterator<Item = &PolicyId> {
    let errors = result.validation_errors().map(ValidationError::policy_id);
    errors.chain(result.validation_warnings().map(ValidationWarning::policy_id))
}

fn is_exact(policy: &Policy, word: &str) -> bool {
    matches!(policy.resource_constraint(), ResourceConstraint::Eq(uid) if id_of(&uid, "Tool").as_deref() == Some(word))
}

/// The id of an entity of a type of the schema.
pub(super) fn id_of(uid: &EntityUid, kind: &str) -> Option<String> {
    let named = uid.type_name().to_string();
    (named.strip_prefix(NAMESPACE) == Some(kind)).then(|| uid.id().unescaped().to_owned())
}

fn inside(inner: Place, outer: Place) -> bool {
    outer.span.start <= inner.span.start && inner.span.start < outer.span.end
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// Cedar names the policy in front; the place says it better.
fn tidy(message: &str) -> String {
    message
        .strip_prefix("for policy ")
        .and_then(|rest| rest.split_once(", "))
        .map_or(message, |(_, rest)| rest)
        .to_owned()
}

/// The place of what a message quotes in a policy's text; of the policy where it quotes nothing of it.
fn pinpoint(agent: &Agent, place: Place, text: &str, message: &str) -> Place {
    let quoted = message.split('`').skip(1).step_by(2);
    let words = words(text);
    for quote in quoted {
        let last = quote.rsplit("::").next().unwrap_or(quote);
        let at = words.iter().find(|(_, word)| *word == quote || *word == last);
        // A lowered policy has no text of its own in the file.
        if let Some((at, word)) =
            at.filter(|_| agent.text.get(place.span.start..).is_some_and(|rest| rest.starts_with(text)))
        {
            let start = place.span.start + at;
            return place_at(agent, start, start + word.len());
        }
    }
    place
}

fn type_help(error: &ValidationError) -> String {
    let context = "what the context of each action holds is in `writ agentfile schema`";
    match error {
        ValidationError::UnrecognizedActionId(_) => {
            let names: Vec<&str> = ACTIONS.iter().map(|action| action.name).collect();
            format!("the actions are `{}`", names.join("`, `"))
        }
        ValidationError::UnrecognizedEntityType(_) => {
            "the types are `AgentRC::` and one of `Agent`, `Tool`, `Function`, `Skill`, `Credential`, `Host`, `Path`, `Memory`, `Server`".to_owned()
        }
        ValidationError::UnsafeAttributeAccess(_) => context.to_owned(),
        _ => format!("the policy does not fit the schema: {context}"),
    }
}

fn never_help() -> String {
    let pairs: Vec<String> =
        ACTIONS.iter().map(|action| format!("`{}` on `{}`", action.name, action.resource)).collect();
    format!("the actions go with these resources: {}", pairs.join(", "))
}
