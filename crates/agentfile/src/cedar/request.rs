//! A request: who wants to do what with which, and what is known of it.
//!
//! Owns the JSON form of a request and its check against the schema's types. Refuses what does not fit. Invariant: a context holds what
//! was given and nothing else, but that a rate is not exceeded unless the runner says so; a policy that asks for more errs, which denies.

use cedar_policy::{Context, EntityId, EntityTypeName, EntityUid, RestrictedExpression};
use serde::Deserialize;
use writ_core::json::{self, Limits, Object, Value};

use super::rules::NAMESPACE;
use super::schema::{Action, Kind, known_action};

/// Longest request as JSON, in bytes.
pub const MAX_REQUEST: usize = 1 << 20;

/// Largest whole number in a request, and, below zero, the smallest: JSON holds it exactly.
pub const MAX_NUMBER: i64 = 9_007_199_254_740_991;

/// Why a request is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRequest(pub String);

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The agent's name; the Agentfile's own where it is absent.
    pub principal: Option<String>,
    /// `tool.invoke`.
    pub action: &'static Action,
    /// The resource's id.
    pub resource: String,
    /// What is known.
    pub context: Object,
}

/// A request as JSON: entities as Cedar writes them, as `{type, id}`, or the bare id.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(default)]
    principal: Option<Value>,
    action: Value,
    resource: Value,
    #[serde(default)]
    context: Option<Object>,
}

impl Request {
    /// A request with nothing known of it.
    pub fn new(action: &'static Action, resource: impl Into<String>) -> Self {
        Self { principal: None, action, resource: resource.into(), context: Object::default() }
    }

    /// Reads a request's JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        if bytes.len() > MAX_REQUEST {
            return Err(BadRequest(format!("a request has at most {MAX_REQUEST} bytes")));
        }
        let wire: Wire =
            json::from_slice_with(bytes, Limits::OURS).map_err(|error| BadRequest(format!("no request: {error}")))?;
        let action = entity(&wire.action, "Action")?;
        let action = known_action(&action).ok_or_else(|| BadRequest(format!("unknown action `{action}`")))?;
        let principal = wire.principal.as_ref().map(|value| entity(value, "Agent")).transpose()?;
        let resource = entity(&wire.resource, action.resource)?;
        let out = Self { principal, action, resource, context: wire.context.unwrap_or_default() };
        out.context().map(|_context| out)
    }

    /// A member of the context that is text.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.context.get(member).and_then(Value::as_str)
    }

    /// The context for Cedar.
    pub(super) fn context(&self) -> Result<Context, BadRequest> {
        let mut pairs = Vec::with_capacity(self.context.len() + 1);
        for (name, value) in self.context.iter() {
            let kind = self.action.context.iter().find(|(member, _)| *member == name).map(|(_, kind)| *kind);
            let kind =
                kind.ok_or_else(|| BadRequest(format!("the context of `{}` has no `{name}`", self.action.name)))?;
            let expression = match kind {
                Kind::Text => value.as_str().map(|text| RestrictedExpression::new_string(text.to_owned())),
                Kind::Number => whole(value).map(RestrictedExpression::new_long),
                Kind::Truth => value.as_bool().map(RestrictedExpression::new_bool),
            };
            let what = match kind {
                Kind::Text => "text",
                Kind::Number => "a whole number",
                Kind::Truth => "true or false",
            };
            pairs.push((
                name.to_owned(),
                expression.ok_or_else(|| BadRequest(format!("`{name}` in the context has to be {what}")))?,
            ));
        }
        let rated = self.action.context.iter().any(|(member, _)| *member == "rate_exceeded");
        if rated && self.context.get("rate_exceeded").is_none() {
            pairs.push(("rate_exceeded".to_owned(), RestrictedExpression::new_bool(false)));
        }
        Context::from_pairs(pairs).map_err(|error| BadRequest(error.to_string()))
    }
}

/// A whole number that JSON holds exactly.
pub(super) fn whole(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    format!("{number:.0}").parse().ok().filter(|number: &i64| (-MAX_NUMBER..=MAX_NUMBER).contains(number))
}

/// An entity's id: `AgentRC::Tool::"x"`, `Tool::"x"`, `{"type": "Tool", "id": "x"}` or `x`.
fn entity(value: &Value, kind: &str) -> Result<String, BadRequest> {
    let wrong = |found: &str| BadRequest(format!("`{found}` is no `{kind}`"));
    if let Some(object) = value.as_object() {
        let object = object.get("__entity").and_then(Value::as_object).unwrap_or(object);
        let member = |name: &str| object.get(name).and_then(Value::as_str);
        let named = member("type").ok_or_else(|| BadRequest("an entity has a `type`".to_owned()))?;
        if named.strip_prefix(NAMESPACE).unwrap_or(named) != kind {
            return Err(wrong(named));
        }
        return member("id").map(str::to_owned).ok_or_else(|| BadRequest("an entity has an `id`".to_owned()));
    }
    let text =
        value.as_str().ok_or_else(|| BadRequest(format!("a `{kind}` is text, or an object with `type` and `id`")))?;
    text_entity(text, kind)
}

/// The same from text.
pub(super) fn text_entity(text: &str, kind: &str) -> Result<String, BadRequest> {
    // `AgentRC::Tool::"x"` splits at the quote, not at the first colons.
    let Some((named, id)) = text.strip_suffix('"').and_then(|text| text.split_once("::\"")) else {
        return Ok(text.to_owned());
    };
    if named.strip_prefix(NAMESPACE).unwrap_or(named) == kind {
        Ok(id.replace("\\\"", "\"").replace("\\\\", "\\"))
    } else {
        Err(BadRequest(format!("`{named}` is no `{kind}`")))
    }
}

/// An entity of the schema.
pub(super) fn uid(kind: &str, id: &str) -> Result<EntityUid, BadRequest> {
    let named: EntityTypeName =
        format!("{NAMESPACE}{kind}").parse().map_err(|_error| BadRequest(format!("no type `{kind}`")))?;
    Ok(EntityUid::from_type_name_and_id(named, EntityId::new(id)))
}

impl Request {
    /// A request from the words of a command line.
    pub fn from_words(
        principal: Option<&str>,
        action: &str,
        resource: &str,
        context: Object,
    ) -> Result<Self, BadRequest> {
        let action = text_entity(action, "Action")?;
        let action = known_action(&action).ok_or_else(|| BadRequest(format!("unknown action `{action}`")))?;
        let principal = principal.map(|text| text_entity(text, "Agent")).transpose()?;
        let out = Self { principal, action, resource: text_entity(resource, action.resource)?, context };
        out.context().map(|_context| out)
    }
}
