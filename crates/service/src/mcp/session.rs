//! Tools about the agent's own session: its policy, what a call would come to, what it has come to so far.
//!
//! Refuses to make up what is not known: what is absent is said to be, and why.

use writ_core::json::{self, Object, Value};
use writ_engine::mcp::Gate;

use super::arguments::Refusal;
use super::guarded::{named, object};

/// The policy that governs, as it is written.
pub fn policy(gate: &Gate) -> Result<Value, Refusal> {
    let governing = gate.policy().map_err(|error| Refusal(error.to_string()))?;
    let Some(governing) = governing else { return Ok(object([("governed", Value::Bool(false))])) };
    Ok(object([
        ("governed", Value::Bool(true)),
        ("name", Value::from(governing.policy.name())),
        ("path", Value::from(governing.path.to_string_lossy().into_owned())),
        ("digest", Value::from(governing.policy.digest().to_string())),
        ("signed", Value::from(governing.signed.as_str())),
        ("policy", governing.policy.document().clone()),
    ]))
}

/// What a call would come to. Nothing is recorded.
pub fn check(gate: &Gate, arguments: &Object) -> Result<Value, Refusal> {
    let call = named(gate, arguments)?;
    match gate.ask(&call).map_err(|error| Refusal(error.to_string()))? {
        Some(decision) => Ok(json::to_value(&decision)),
        None => Ok(object([("decision", Value::from("allow")), ("governed", Value::Bool(false))])),
    }
}

/// What the session has come to so far.
pub fn session(gate: &Gate) -> Value {
    let (id, state) = (gate.session_id(), gate.state());
    let count = |count: u64| Value::Number(count as f64);
    let mut out = Object::new();
    out.push("session", Value::from(id.as_str()));
    out.push("recorded", Value::Bool(state.is_some()));
    if let Some(state) = state {
        for (name, number) in [("allowed", state.calls), ("asked", state.asked), ("denied", state.denied)] {
            out.push(name, count(number));
        }
        let policy = state.policy.map_or(Value::Null, |policy| Value::from(policy.digest.to_string()));
        out.push("policyDigest", policy);
    }
    Value::Object(out)
}

/// Who the session's agents are, as far as its record tells.
pub fn identity(gate: &Gate) -> Result<Value, Refusal> {
    let agents = gate.identities().map_err(|error| Refusal(error.to_string()))?;
    if agents.is_empty() {
        return Ok(absent("identity", gate));
    }
    let session = gate.session_id();
    Ok(object([
        ("available", Value::Bool(true)),
        ("session", Value::from(session.as_str())),
        ("agents", json::to_value(&agents)),
    ]))
}

/// A token for the main agent of the session, from the notary that runs here.
pub fn token(gate: &Gate) -> Value {
    let Some(told) = gate.token() else {
        return without("no notary answers here, and only one issues tokens: `writ notary run`", gate);
    };
    let (Some(token), Some(claims)) = (told.token, told.claims) else {
        return without(&told.refused.unwrap_or_default(), gate);
    };
    object([("available", Value::Bool(true)), ("token", Value::from(token)), ("claims", json::to_value(&claims))])
}

/// What cannot be had: said, not made up.
pub fn absent(what: &str, gate: &Gate) -> Value {
    without(&format!("this version of Writ has no {what} here: nothing may be taken for one"), gate)
}

fn without(why: &str, gate: &Gate) -> Value {
    let session = gate.session_id();
    object([("available", Value::Bool(false)), ("why", Value::from(why)), ("session", Value::from(session.as_str()))])
}
