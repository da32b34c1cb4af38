//! Whether a child's policies ever allow what its base's do not: asked of Cedar's symbolic compiler and an SMT solver (`cvc5`).
//!
//! Owns the question and what the answer is worth. Decides nothing. Invariant: *proved* is said only where the solver found every kind of
//! request impossible, and a counterexample is called one only where both levels decide it so. Page: `spec/agentfile.md`.

mod classes;
mod ranges;
mod rewrite;

use std::collections::{BTreeSet, HashSet};

use cedar_policy::{EntityId, EntityTypeName, EntityUid, Policy, PolicyId, PolicySet, RequestEnv, Schema};
use cedar_policy_symcc::solver::LocalSolver;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicy, CompiledPolicySet, Env};
use serde::Serialize;
use writ_agentfile::cedar::{ACTIONS, Action, Kind, Request};
use writ_agentfile::ceiling::Level;
use writ_core::json::{self, Object, Value};

use classes::{Class, bound, classes, quoted};
use rewrite::{About, Rewritten, Written, computes, is_required, is_true, not, own_member, truth};

/// How long the solver may think about one kind of request, in milliseconds.
const LIMIT: &str = "--tlimit-per=20000";
/// Most questions about one action.
const MAX_QUESTIONS: usize = 400;
/// How often a solver that answers with a request which nobody can make is asked for another.
const AGAIN: usize = 4;
/// A caller whom no policy names.
const NOBODY: &str = "any-other";

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// No solver.
    #[error(
        "the solver `cvc5` cannot be started: {0}; it is the Debian package `cvc5`, or the program that `$CVC5` names"
    )]
    Solver(String),
    /// The policies cannot be read as one set.
    #[error("{0}")]
    Policies(String),
    /// The runtime.
    #[error("{0}")]
    Runtime(#[from] std::io::Error),
}

/// What is known of one kind of request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `tool.invoke`.
    pub action: String,
    /// `proved`, `refuted` or `unknown`.
    pub result: &'static str,
    /// The request that the child allows and the base does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Value>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Every kind of request, in the order of their names.
pub fn prove(child: &Level, base: &Level) -> Result<Vec<Answer>, ProveError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(all(child, base))
}

async fn all(child: &Level, base: &Level) -> Result<Vec<Answer>, ProveError> {
    let (schema, _warnings) = Schema::from_cedarschema_str(&schema_text()).map_err(|error| policies(&error))?;
    let written = |level: &Level| level.rules.policies().map(Written::of).collect::<Result<Vec<_>, _>>();
    let sets = (written(child).map_err(|why| policies(&why))?, written(base).map_err(|why| policies(&why))?);
    let solver =
        LocalSolver::cvc5_with_args(["--strings-exp", LIMIT]).map_err(|error| ProveError::Solver(error.to_string()))?;
    let mut compiler = CedarSymCompiler::new(solver).map_err(|error| ProveError::Solver(error.to_string()))?;
    let mut out = Vec::new();
    for env in schema.request_envs() {
        let Some(action) = ACTIONS.iter().find(|action| action.name == env.action().id().unescaped()) else { continue };
        let question = Question { action, child, base, sets: (&sets.0, &sets.1), env: &env, schema: &schema };
        out.push(question.answer(&mut compiler).await);
    }
    out.sort_by(|a, b| a.action.cmp(&b.action));
    Ok(out)
}

fn policies(error: &dyn std::fmt::Display) -> ProveError {
    ProveError::Policies(error.to_string())
}

/// The schema of requests as they come: only what Writ always says is in each context.
fn schema_text() -> String {
    let kinds: BTreeSet<&str> = ACTIONS.iter().map(|action| action.resource).chain(["Agent"]).collect();
    let mut out = String::from("namespace AgentRC {\n");
    for kind in kinds {
        out.push_str(&format!("  entity {kind} in [{kind}];\n"));
    }
    for action in &ACTIONS {
        let member = |(name, kind): &(&str, Kind)| {
            let sign = if is_required(action, name) { "" } else { "?" };
            let kind = match kind {
                Kind::Text => "String",
                Kind::Number => "Long",
                Kind::Truth => "Bool",
            };
            format!("{name}{sign}: {kind}")
        };
        let context: Vec<String> = action.context.iter().map(member).collect();
        let (name, resource) = (action.name, action.resource);
        let context = context.join(", ");
        out.push_str(&format!(
            "  action \"{name}\" appliesTo {{ principal: Agent, resource: {resource}, context: {{ {context} }} }};\n"
        ));
    }
    out + "}\n"
}

/// One action, on both levels.
struct Question<'a> {
    action: &'static Action,
    child: &'a Level,
    base: &'a Level,
    sets: (&'a [Written], &'a [Written]),
    env: &'a RequestEnv,
    schema: &'a Schema,
}

/// What is left of a level's policies about one class of requests.
#[derive(Default)]
struct Left {
    /// Their effects and conditions.
    policies: Vec<(&'static str, serde_json::Value)>,
    /// Whether anything permits.
    permits: bool,
    /// Whether something permits without a condition, and nothing forbids or errs.
    allows: bool,
}

impl Left {
    fn of(said: Vec<Rewritten>) -> Self {
        let mut out = Self { allows: true, ..Self::default() };
        let mut whole = false;
        for one in said {
            if !is_true(&one.holds) {
                out.allows = false;
                out.policies.push(("forbid", not(one.holds)));
            }
            if one.applies == truth(false) {
                continue;
            }
            whole |= one.permits && is_true(&one.applies);
            out.permits |= one.permits;
            out.allows &= one.permits;
            out.policies.push((if one.permits { "permit" } else { "forbid" }, one.applies));
        }
        out.allows &= whole && !out.policies.iter().any(|(_, when)| computes(when));
        out
    }

    fn set(&self, unless: &[String]) -> Result<PolicySet, String> {
        let mut out = PolicySet::new();
        let mut add = |policy: Policy| out.add(policy).map_err(|error| error.to_string());
        for (at, (effect, when)) in self.policies.iter().enumerate() {
            add(policy(&format!("p{at}"), effect, std::slice::from_ref(when))?)?;
        }
        for (at, condition) in unless.iter().enumerate() {
            add(policy(&format!("c{at}"), "forbid", &[not(self::condition(condition)?)])?)?;
        }
        Ok(out)
    }
}

/// A policy about whatever is asked, by its conditions.
fn policy(id: &str, effect: &str, when: &[serde_json::Value]) -> Result<Policy, String> {
    let all = serde_json::json!({ "op": "All" });
    let when: Vec<_> = when.iter().map(|body| serde_json::json!({ "kind": "when", "body": body })).collect();
    let whole = serde_json::json!({
        "effect": effect, "principal": all, "action": all, "resource": all, "conditions": when,
    });
    Policy::from_json(Some(PolicyId::new(id)), whole).map_err(|error| error.to_string())
}

type Compiler = CedarSymCompiler<LocalSolver>;

impl Question<'_> {
    async fn answer(&self, compiler: &mut Compiler) -> Answer {
        let (mut unknown, mut asked) = (None, HashSet::new());
        let (written, callers) = self.named();
        for class in classes(self.action, self.child, self.base, &written) {
            for caller in &callers {
                match self.class(&class, caller, &mut asked, compiler).await {
                    Ok(None) => {}
                    Ok(Some(answer)) if answer.result == "refuted" => return answer,
                    Ok(Some(answer)) => unknown = Some(answer),
                    Err(why) => unknown = Some(self.said("unknown", None, Some(why))),
                }
            }
        }
        unknown.unwrap_or_else(|| self.said("proved", None, None))
    }

    /// The policies of both, and the callers that the child's tell apart.
    fn named(&self) -> (Vec<&Written>, BTreeSet<String>) {
        let mut callers = BTreeSet::from([self.child.agent.name_or_default().to_owned(), NOBODY.to_owned()]);
        for policy in self.sets.0.iter().filter(|policy| policy.speaks(self.action.name)) {
            policy.names("Agent", &mut callers);
        }
        (self.sets.0.iter().chain(self.sets.1).collect(), callers)
    }

    fn said(&self, result: &'static str, counterexample: Option<Value>, why: Option<String>) -> Answer {
        Answer { action: self.action.name.to_owned(), result, counterexample, why }
    }

    /// One class of requests by one caller: nothing where it is proved.
    async fn class(
        &self,
        class: &Class,
        caller: &str,
        asked: &mut HashSet<String>,
        compiler: &mut Compiler,
    ) -> Result<Option<Answer>, String> {
        let mut one = class.one.clone();
        one.principal = Some(caller.to_owned());
        // What is not declared here, no policy is asked about.
        let Ok(own) = one.declared_by(&self.child.agent) else { return Ok(None) };
        let about = About { action: self.action, principal: caller, resource: &own.resource, within: &class.within };
        let child = Left::of(rewritten(self.sets.0, &about)?);
        if !child.permits {
            return Ok(None);
        }
        if self.is_refuted(&one) {
            return Ok(Some(self.said("refuted", Some(shown(&one)), None)));
        }
        let base = self.held(&one, &class.within)?;
        let mine = bound(self.action, &self.child.agent, &own.resource);
        let theirs = bound(self.action, &self.base.agent, &own.resource);
        if base.allows && mine == theirs {
            return Ok(None);
        }
        let (mut domain, mut ceiling) = (class.when.clone(), Vec::new());
        domain.extend(mine);
        ceiling.extend(theirs);
        // Names that all policies leave alone are one question.
        if !asked.insert(format!("{:?}{:?}{domain:?}{ceiling:?}", child.policies, base.policies)) {
            return Ok(None);
        }
        if asked.len() > MAX_QUESTIONS {
            return Err(format!("there are more than {MAX_QUESTIONS} kinds of requests to ask about"));
        }
        let held = base.set(&ceiling)?;
        let mut last = None;
        for _ in 0..AGAIN {
            let Some(found) = self.ask(&child.set(&domain)?, &held, compiler).await? else {
                return match last {
                    None => self.errs(&base, &domain, compiler).await,
                    Some(unreal) => Ok(Some(self.unreal(&unreal))),
                };
            };
            let request = self.read(&found, &one)?;
            if self.is_refuted(&request) {
                return Ok(Some(self.said("refuted", Some(shown(&request)), None)));
            }
            domain.push(other_than(&request));
            last = Some(request);
        }
        Ok(last.map(|unreal| self.unreal(&unreal)))
    }

    fn unreal(&self, request: &Request) -> Answer {
        let why = "the solver's request is none that could be made, or is decided otherwise by the levels themselves";
        self.said("unknown", Some(shown(request)), Some(why.to_owned()))
    }

    /// What the base holds of a request: its own answer as itself, and what it forbids to the child by name.
    fn held(&self, one: &Request, within: &BTreeSet<String>) -> Result<Left, String> {
        let resource = match one.declared_by(&self.base.agent) {
            Ok(own) => own.resource,
            // Which hosts it is bound to is asked with the context.
            Err(_) if bound(self.action, &self.base.agent, &one.resource).is_some() => one.resource.clone(),
            Err(_) => return Ok(Left::default()),
        };
        let (name, child) = (self.base.agent.name_or_default(), self.child.agent.name_or_default());
        let own = About { action: self.action, principal: name, resource: &resource, within };
        let mut said = rewritten(self.sets.1, &own)?;
        let named = About { action: self.action, principal: child, resource: &one.resource, within };
        for one in rewritten(self.sets.1, &named)? {
            let applies = if one.permits { truth(false) } else { one.applies };
            said.push(Rewritten { permits: one.permits, applies, holds: one.holds });
        }
        Ok(Left::of(said))
    }

    /// Whether the child allows it, and the base does not.
    fn is_refuted(&self, request: &Request) -> bool {
        let child = self.child.rules.decide(&self.child.agent, request).is_allowed();
        child && !self.base.decide(self.child.agent.name_or_default(), request).is_allowed()
    }

    async fn ask(&self, child: &PolicySet, base: &PolicySet, compiler: &mut Compiler) -> Result<Option<Env>, String> {
        let compiled = |set| CompiledPolicySet::compile(set, self.env, self.schema).map_err(|error| error.to_string());
        let (child, base) = (compiled(child)?, compiled(base)?);
        compiler.check_implies_with_counterexample_opt(&child, &base).await.map_err(|error| error.to_string())
    }

    /// A base's policy that may err in what it computes denies then, which the solver is not told.
    async fn errs(&self, base: &Left, domain: &[String], compiler: &mut Compiler) -> Result<Option<Answer>, String> {
        let domain = domain.iter().map(|text| condition(text)).collect::<Result<Vec<_>, _>>()?;
        for (effect, when) in base.policies.iter().filter(|(_, when)| computes(when)) {
            let within = policy("p", effect, &[domain.as_slice(), std::slice::from_ref(when)].concat())?;
            let policy = CompiledPolicy::compile(&within, self.env, self.schema).map_err(|error| error.to_string())?;
            if !compiler.check_never_errors_opt(&policy).await.map_err(|error| error.to_string())? {
                let why = "a policy of the base computes something that may err, which denies";
                return Ok(Some(self.said("unknown", None, Some(why.to_owned()))));
            }
        }
        Ok(None)
    }

    /// The solver's request.
    fn read(&self, found: &Env, class: &Request) -> Result<Request, String> {
        let unread = || "the solver's request cannot be read".to_owned();
        let context = found.request.context().ok_or_else(unread)?;
        let text = context.to_json_value().map_err(|error| error.to_string())?.to_string();
        let Ok(Value::Object(context)) = json::parse(text.as_bytes()) else { return Err(unread()) };
        let mut out = class.clone();
        if let Some(own) = own_member(self.action).and_then(|own| context.get(own)).and_then(Value::as_str) {
            out.resource = own.to_owned();
        }
        out.context = context;
        Ok(out)
    }
}

fn rewritten(policies: &[Written], about: &About) -> Result<Vec<Rewritten>, String> {
    policies.iter().filter_map(|policy| policy.rewrite(about).transpose()).collect()
}

/// A condition in Cedar as its JSON form.
fn condition(text: &str) -> Result<serde_json::Value, String> {
    let whole = Policy::parse(None, format!("permit(principal, action, resource) when {{ {text} }};"));
    let json = whole.map_err(|error| error.to_string())?.to_json().map_err(|error| error.to_string())?;
    let body = json.pointer("/conditions/0/body").cloned();
    body.ok_or_else(|| "a condition without a body".to_owned())
}

/// Any other context than this one, in Cedar.
fn other_than(request: &Request) -> String {
    let member = |(name, value): (&str, &Value)| {
        let text = value.as_str().map_or_else(|| json::compact(value), quoted);
        let is = format!("context.{name} == {text}");
        if is_required(request.action, name) { is } else { format!("context has {name} && {is}") }
    };
    let all: Vec<String> = request.context.iter().map(member).collect();
    format!("!({})", if all.is_empty() { "true".to_owned() } else { all.join(" && ") })
}

/// A request as Cedar names who and what it is about.
fn shown(request: &Request) -> Value {
    let entity = |kind: &str, id: &str| {
        let named: Option<EntityTypeName> = format!("AgentRC::{kind}").parse().ok();
        named.map(|named| EntityUid::from_type_name_and_id(named, EntityId::new(id)).to_string()).unwrap_or_default()
    };
    let mut out = Object::default();
    out.push("principal", Value::from(entity("Agent", request.principal.as_deref().unwrap_or_default())));
    out.push("action", Value::from(entity("Action", request.action.name)));
    out.push("resource", Value::from(entity(request.action.resource, &request.resource)));
    out.push("context", Value::Object(request.context.clone()));
    Value::Object(out)
}
