//! Whether a child's policies ever allow what its base's do not: asked of Cedar's symbolic compiler and an SMT solver (`cvc5`).
//!
//! Owns the question and what the answer is worth. Decides nothing. Invariant: *proved* is said only where the solver found every kind of
//! request impossible, and a counterexample is called one only where the policies themselves decide it so. Page: `spec/agentfile.md`.

use cedar_policy::{PolicySet, RequestEnv};
use cedar_policy_symcc::solver::LocalSolver;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicySet, Env};
use serde::Serialize;
use writ_agentfile::cedar::{Request, known_action, schema};
use writ_agentfile::ceiling::Level;
use writ_core::json::{self, Object, Value};

/// How long the solver may think about one kind of request, in milliseconds.
const LIMIT: &str = "--tlimit-per=20000";

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
    let schema = schema().ok_or_else(|| ProveError::Policies("the schema cannot be read".to_owned()))?;
    let (name, own) = (base.agent.name_or_default(), child.agent.name_or_default());
    let sets = (set(&child.rules.text())?, set(&as_agent(&base.rules.text(), name, own))?);
    let mut out = Vec::new();
    for env in schema.request_envs() {
        let action = env.action().id().unescaped().to_owned();
        out.push(match one(&sets, &env, schema).await? {
            Ok(None) => Answer { action, result: "proved", counterexample: None, why: None },
            Ok(Some(found)) => judged(action, &found, child, base),
            Err(why) => Answer { action, result: "unknown", counterexample: None, why: Some(why) },
        });
    }
    out.sort_by(|a, b| a.action.cmp(&b.action));
    Ok(out)
}

/// A counterexample for one kind of request.
async fn one(
    (child, base): &(PolicySet, PolicySet),
    env: &RequestEnv,
    schema: &cedar_policy::Schema,
) -> Result<Result<Option<Env>, String>, ProveError> {
    let compiled = |set| CompiledPolicySet::compile(set, env, schema).map_err(|error| error.to_string());
    let (child, base) = match (compiled(child), compiled(base)) {
        (Ok(child), Ok(base)) => (child, base),
        (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
    };
    let solver =
        LocalSolver::cvc5_with_args(["--strings-exp", LIMIT]).map_err(|error| ProveError::Solver(error.to_string()))?;
    let mut compiler = CedarSymCompiler::new(solver).map_err(|error| ProveError::Solver(error.to_string()))?;
    Ok(compiler.check_implies_with_counterexample_opt(&child, &base).await.map_err(|error| error.to_string()))
}

/// The base's policies as ones about the child: what they say of the base's own agent, they say of it.
fn as_agent(text: &str, base: &str, child: &str) -> String {
    let named = |name: &str| format!("AgentRC::Agent::\"{name}\"");
    text.replace(&named(base), &named(child))
}

fn set(text: &str) -> Result<PolicySet, ProveError> {
    text.parse().map_err(|error: cedar_policy::ParseErrors| ProveError::Policies(error.to_string()))
}

/// A solver's folders and domains need not lie in each other as real ones do: the policies themselves have the last word.
fn judged(action: String, found: &Env, child: &Level, base: &Level) -> Answer {
    let (request, principal) = read(found);
    let shown = shown(found);
    let Some(request) = request else {
        return Answer {
            action,
            result: "unknown",
            counterexample: Some(shown),
            why: Some("the solver's request cannot be read".to_owned()),
        };
    };
    let own = principal == child.agent.name_or_default();
    let held = if own { base.agent.name_or_default() } else { principal.as_str() };
    let real = child.rules.ask(&principal, &request).is_allowed() && !base.rules.ask(held, &request).is_allowed();
    let why = (!real).then(|| {
        "the solver's request is none that could be made: its path or host lies in others than its name says".to_owned()
    });
    Answer { action, result: if real { "refuted" } else { "unknown" }, counterexample: Some(shown), why }
}

fn read(found: &Env) -> (Option<Request>, String) {
    let request = &found.request;
    let id = |uid: Option<&cedar_policy::EntityUid>| uid.map(|uid| uid.id().unescaped().to_owned()).unwrap_or_default();
    let principal = id(request.principal());
    let Some(action) = known_action(&id(request.action())) else { return (None, principal) };
    let mut out = Request::new(action, id(request.resource()));
    let Some(Value::Object(context)) = context(found) else { return (None, principal) };
    out.context = context;
    (Some(out), principal)
}

/// The request's context as JSON; `None` where Cedar has a value in it that JSON has not.
fn context(found: &Env) -> Option<Value> {
    let Some(context) = found.request.context() else { return Some(Value::Object(Object::default())) };
    let text = context.to_json_value().ok()?.to_string();
    let Value::Object(members) = json::parse(text.as_bytes()).ok()? else { return None };
    // What the resource says itself the solver does not know to be the same in the context.
    let id = |uid: Option<&cedar_policy::EntityUid>| uid.map(|uid| uid.id().unescaped().to_owned()).unwrap_or_default();
    let action = known_action(&id(found.request.action()));
    let own = action.and_then(|action| match action.resource {
        "Path" => Some("path"),
        "Host" => Some("host"),
        _ => None,
    });
    let mut out = Object::default();
    for (name, value) in members.iter() {
        let value = if Some(name) == own { Value::from(id(found.request.resource())) } else { value.clone() };
        out.push(name, value);
    }
    Some(Value::Object(out))
}

fn shown(found: &Env) -> Value {
    let text = |uid: Option<&cedar_policy::EntityUid>| Value::from(uid.map(ToString::to_string).unwrap_or_default());
    let mut out = Object::default();
    out.push("principal", text(found.request.principal()));
    out.push("action", text(found.request.action()));
    out.push("resource", text(found.request.resource()));
    out.push("context", context(found).unwrap_or(Value::Null));
    Value::Object(out)
}
