//! A policy about one principal and one resource → a condition on the context, and when that errs.
//!
//! Owns what errors mean to a solver: in Cedar a policy that errs is passed over, here it denies (R5). Invariant: what is rewritten never
//! reads a member that is not there; when the policy itself would, is told beside it.

use std::collections::BTreeSet;

use cedar_policy::Policy;
use serde_json::{Map, Value, json};
use writ_agentfile::cedar::{Action, Kind};

use super::ranges;

/// Most parts of one rewritten policy.
const MAX_PARTS: usize = 20_000;
/// Deepest nesting of one.
const MAX_DEPTH: usize = 2_000;

/// Who asks for what: the names that the policies compare with.
pub(super) struct About<'a> {
    pub action: &'static Action,
    pub principal: &'a str,
    pub resource: &'a str,
    /// What the resource lies in, itself not among them.
    pub within: &'a BTreeSet<String>,
}

/// A policy in its own JSON form.
pub(super) struct Written {
    whole: Value,
    permits: bool,
}

/// A policy whose head holds.
pub(super) struct Rewritten {
    pub permits: bool,
    /// When it applies.
    pub applies: Value,
    /// When it does not read what is not there, and computes no number that is too large.
    pub holds: Value,
}

/// The member of a context that says what the resource is.
pub(super) fn own_member(action: &Action) -> Option<&'static str> {
    match action.resource {
        "Path" => Some("path"),
        "Host" => Some("host"),
        _ => None,
    }
}

/// Whether every request has this member.
pub(super) fn is_required(action: &Action, member: &str) -> bool {
    member == "rate_exceeded" || own_member(action) == Some(member)
}

pub(super) fn truth(value: bool) -> Value {
    json!({ "Value": value })
}

fn known(value: &Value) -> Option<bool> {
    value.get("Value").and_then(Value::as_bool)
}

pub(super) fn is_true(value: &Value) -> bool {
    known(value) == Some(true)
}

pub(super) fn not(value: Value) -> Value {
    known(&value).map_or_else(|| json!({ "!": { "arg": value } }), |value| truth(!value))
}

pub(super) fn and(left: Value, right: Value) -> Value {
    match (known(&left), known(&right)) {
        (Some(true), _) => right,
        (Some(false), _) => left,
        (None, Some(true)) => left,
        (None, _) => json!({ "&&": { "left": left, "right": right } }),
    }
}

fn or(left: Value, right: Value) -> Value {
    match (known(&left), known(&right)) {
        (Some(false), _) => right,
        (Some(true), _) => left,
        (None, Some(false)) => left,
        (None, _) => json!({ "||": { "left": left, "right": right } }),
    }
}

/// `left ⇒ right`.
fn implied(left: Value, right: Value) -> Value {
    if is_true(&right) { right } else { or(not(left), right) }
}

impl Written {
    /// A policy to be rewritten.
    pub(super) fn of(policy: &Policy) -> Result<Self, String> {
        let whole = policy.to_json().map_err(|error| error.to_string())?;
        let permits = whole.get("effect").and_then(Value::as_str) == Some("permit");
        Ok(Self { whole, permits })
    }

    /// Whether it may speak on an action.
    pub(super) fn speaks(&self, action: &str) -> bool {
        let Some(head) = self.whole.get("action") else { return true };
        let is = |entity: &Value| entity.get("id").and_then(Value::as_str) == Some(action);
        match head.get("op").and_then(Value::as_str) {
            Some("==") => head.get("entity").is_none_or(is),
            Some("in") => match head.get("entities").and_then(Value::as_array) {
                Some(of) => of.iter().any(is),
                None => head.get("entity").is_none_or(is),
            },
            _ => true,
        }
    }

    /// The names of one type of entities that it holds.
    pub(super) fn names(&self, kind: &str, out: &mut BTreeSet<String>) {
        let named = format!("AgentRC::{kind}");
        let mut todo = vec![&self.whole];
        while let Some(value) = todo.pop() {
            let is_one = value.get("type").and_then(Value::as_str) == Some(named.as_str());
            if let Some(id) = value.get("id").and_then(Value::as_str).filter(|_| is_one) {
                out.insert(id.to_owned());
            }
            match value {
                Value::Array(of) => todo.extend(of),
                Value::Object(of) => todo.extend(of.values()),
                _ => {}
            }
        }
    }

    /// What it says about one principal and one resource; nothing where its head is not about them.
    pub(super) fn rewrite(&self, about: &About) -> Result<Option<Rewritten>, String> {
        let none = BTreeSet::new();
        let asks = self.speaks(about.action.name)
            && head(self.whole.get("principal"), "Agent", about.principal, &none)
            && head(self.whole.get("resource"), about.action.resource, about.resource, about.within);
        if !asks {
            return Ok(None);
        }
        let mut walk = Walk { about, parts: 0 };
        let (mut applies, mut holds) = (truth(true), truth(true));
        for condition in self.whole.get("conditions").and_then(Value::as_array).into_iter().flatten() {
            let body = condition.get("body").ok_or("a condition without a body")?;
            let (value, kept) = walk.expression(body, 0)?;
            let unless = condition.get("kind").and_then(Value::as_str) == Some("unless");
            holds = and(holds, implied(applies.clone(), kept));
            applies = and(applies, if unless { not(value) } else { value });
        }
        Ok(Some(Rewritten { permits: self.permits, applies, holds }))
    }
}

/// Whether a head is about the one who is named.
fn head(head: Option<&Value>, kind: &str, id: &str, within: &BTreeSet<String>) -> bool {
    let Some(head) = head else { return true };
    let is = |entity: Option<&Value>| entity.is_none_or(|entity| is_in(kind, id, within, entity));
    let same = |entity: &Value| is_in(kind, id, &BTreeSet::new(), entity);
    match head.get("op").and_then(Value::as_str) {
        Some("==") => head.get("entity").is_none_or(same),
        Some("in") => is(head.get("entity")),
        Some("is") => {
            let named = head.get("entity_type").and_then(Value::as_str);
            named == Some(format!("AgentRC::{kind}").as_str())
                && head.get("in").is_none_or(|within| is(within.get("entity")))
        }
        _ => true,
    }
}

/// Whether an entity is, or lies in, another.
fn is_in(kind: &str, id: &str, within: &BTreeSet<String>, other: &Value) -> bool {
    let member = |name: &str| other.get(name).and_then(Value::as_str).unwrap_or_default();
    member("type") == format!("AgentRC::{kind}") && (member("id") == id || within.contains(member("id")))
}

fn entity(value: &Value) -> Option<&Value> {
    value.get("Value")?.get("__entity")
}

struct Walk<'a> {
    about: &'a About<'a>,
    parts: usize,
}

impl Walk<'_> {
    /// An expression that never errs for what is not there, and when the one it was made from does not.
    fn expression(&mut self, value: &Value, depth: usize) -> Result<(Value, Value), String> {
        self.parts += 1;
        if self.parts > MAX_PARTS || depth > MAX_DEPTH {
            return Err("a policy is too large".to_owned());
        }
        let Some((name, of)) = value.as_object().and_then(|of| of.iter().next()) else {
            return Err("a policy's JSON form is not known".to_owned());
        };
        let part = |name: &str| of.get(name).ok_or_else(|| format!("`{name}` is missing in a policy's JSON form"));
        let deeper = depth + 1;
        Ok(match name.as_str() {
            "Value" => (value.clone(), truth(true)),
            "Var" => {
                let literal = |kind: &str, id: &str| json!({ "Value": { "__entity": { "type": format!("AgentRC::{kind}"), "id": id } } });
                let stands = match of.as_str() {
                    Some("principal") => literal("Agent", self.about.principal),
                    Some("resource") => literal(self.about.action.resource, self.about.resource),
                    _ => value.clone(),
                };
                (stands, truth(true))
            }
            "." => {
                let member = part("attr")?.as_str().unwrap_or_default();
                if part("left")?.get("Var").and_then(Value::as_str) != Some("context") {
                    return Err("a policy reads a member of something other than the context".to_owned());
                }
                if is_required(self.about.action, member) {
                    return Ok((value.clone(), truth(true)));
                }
                let kind = self.about.action.context.iter().find(|(name, _)| *name == member).map(|(_, kind)| *kind);
                let instead = match kind {
                    Some(Kind::Text) => json!({ "Value": "" }),
                    Some(Kind::Number) => json!({ "Value": 0 }),
                    Some(Kind::Truth) => truth(false),
                    None => return Err(format!("the context has no `{member}`")),
                };
                let has = json!({ "has": { "left": { "Var": "context" }, "attr": member } });
                (json!({ "if-then-else": { "if": has, "then": value, "else": instead } }), has)
            }
            "&&" | "||" => {
                let (left, left_holds) = self.expression(part("left")?, deeper)?;
                let (right, right_holds) = self.expression(part("right")?, deeper)?;
                let reached = if name == "&&" { left.clone() } else { not(left.clone()) };
                let holds = and(left_holds, implied(reached, right_holds));
                (if name == "&&" { and(left, right) } else { or(left, right) }, holds)
            }
            "if-then-else" => {
                let (test, test_holds) = self.expression(part("if")?, deeper)?;
                let (then, then_holds) = self.expression(part("then")?, deeper)?;
                let (other, other_holds) = self.expression(part("else")?, deeper)?;
                let branches = and(implied(test.clone(), then_holds), implied(not(test.clone()), other_holds));
                let whole = match known(&test) {
                    Some(true) => then,
                    Some(false) => other,
                    None => json!({ "if-then-else": { "if": test, "then": then, "else": other } }),
                };
                (whole, and(test_holds, branches))
            }
            "!" => {
                let (value, holds) = self.expression(part("arg")?, deeper)?;
                (not(value), holds)
            }
            _ => {
                let mut holds = truth(true);
                let rewritten = self.parts_of(of, deeper, &mut holds)?;
                if let Some(in_range) = ranges::condition(name, &rewritten) {
                    // Both operands stand in it twice.
                    self.parts += ranges::size(&in_range);
                    holds = and(holds, in_range);
                }
                let mut out = Map::new();
                out.insert(name.clone(), rewritten);
                let out = Value::Object(out);
                (self.settled(name, &out).map_or(out, truth), holds)
            }
        })
    }

    /// The operands of what is not looked into.
    fn parts_of(&mut self, of: &Value, depth: usize, holds: &mut Value) -> Result<Value, String> {
        let mut one = |value: &Value| {
            let (value, kept) = self.expression(value, depth)?;
            *holds = and(holds.take(), kept);
            Ok::<Value, String>(value)
        };
        match of {
            Value::Array(of) => of.iter().map(one).collect::<Result<Vec<_>, _>>().map(Value::Array),
            Value::Object(of) => {
                let mut out = Map::new();
                for (name, value) in of {
                    let is_expression = matches!(name.as_str(), "left" | "right" | "arg" | "in");
                    out.insert(name.clone(), if is_expression { one(value)? } else { value.clone() });
                }
                Ok(Value::Object(out))
            }
            other => Ok(other.clone()),
        }
    }

    /// What is known of entities by their names alone.
    fn settled(&self, name: &str, value: &Value) -> Option<bool> {
        let of = value.get(name)?;
        let left = entity(of.get("left")?)?;
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let (kind, id) = (text(left, "type")?, text(left, "id")?);
        let resource = format!("AgentRC::{}", self.about.action.resource);
        let none = BTreeSet::new();
        let within = if kind == resource && id == self.about.resource { self.about.within } else { &none };
        let lies_in = |other: &Value| is_in(kind.strip_prefix("AgentRC::").unwrap_or(&kind), &id, within, other);
        let right = of.get("right");
        match name {
            "==" => Some(entity(right?)? == left),
            "!=" => Some(entity(right?)? != left),
            "in" => match right?.get("Set").and_then(Value::as_array) {
                Some(all) => {
                    let all: Option<Vec<&Value>> = all.iter().map(entity).collect();
                    Some(all?.into_iter().any(lies_in))
                }
                None => entity(right?).map(lies_in),
            },
            "is" => {
                let is = text(of, "entity_type").as_deref() == Some(kind.as_str());
                match of.get("in") {
                    None => Some(is),
                    Some(other) => Some(is && lies_in(entity(other)?)),
                }
            }
            _ => None,
        }
    }
}

/// Whether an expression may err by what it computes, and nothing beside it says when: a product of two that are not known, a text that
/// is no address.
pub(super) fn computes(value: &Value) -> bool {
    match value {
        Value::Array(of) => of.iter().any(computes),
        Value::Object(of) => of.iter().any(|(name, value)| {
            // When such a sum errs is told beside it.
            if ranges::condition(name, value).is_some() {
                return computes(value);
            }
            let plain = [
                "Value",
                "Var",
                ".",
                "&&",
                "||",
                "!",
                "if-then-else",
                "has",
                "like",
                "is",
                "==",
                "!=",
                "in",
                "<",
                "<=",
                ">",
                ">=",
            ];
            let set = ["Set", "contains", "containsAll", "containsAny", "isEmpty", "Record"];
            let part = ["left", "right", "arg", "if", "then", "else", "attr", "pattern", "entity_type"];
            if name == "Value" || name == "Var" {
                return false;
            }
            !(plain.contains(&name.as_str()) || set.contains(&name.as_str()) || part.contains(&name.as_str()))
                || computes(value)
        }),
        _ => false,
    }
}
