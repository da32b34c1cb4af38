//! Policy documents and address ranges: what means everybody, and what means everything.

use std::borrow::Cow;

use writ_core::json::{self, Integers, Limits, Value};

/// Longest policy document that is read; AWS's own limit is 20 KiB.
const LIMITS: Limits = Limits { bytes: 256 << 10, depth: 32, integers: Integers::Any };

/// An address range, tag or principal that means everybody.
pub fn is_world(value: &Value) -> bool {
    const WORLD: [&str; 10] = [
        "0.0.0.0/0",
        "::/0",
        "*",
        "0.0.0.0",
        "Internet",
        "Any",
        "any",
        "allUsers",
        "allAuthenticatedUsers",
        "system:unauthenticated",
    ];
    match value {
        Value::String(text) => WORLD.contains(&text.as_str()) || halves(text),
        Value::Array(items) => items.iter().any(|item| item.as_str().is_some() && is_world(item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Half of the Internet is as good as all of it: `0.0.0.0/1` and `128.0.0.0/1`, and the same spelled otherwise.
fn halves(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let wide = bits.parse::<u8>().is_ok_and(|bits| bits <= 1);
    wide && address.parse::<std::net::IpAddr>().is_ok()
}

/// A policy that allows every action on everything, or `iam:*`: who has that can give itself the rest.
pub fn is_admin(value: &Value) -> bool {
    any_statement(value, |statement| {
        let all = |name: &str, names: &[&str]| has(statement.get(name), names);
        let but = statement.get("NotAction").is_some() && statement.get("Action").is_none();
        (all("Action", &["*", "*:*", "iam:*"]) || but)
            && (all("Resource", &["*"]) || statement.get("NotResource").is_some())
    })
}

/// A policy that allows everybody something, without a condition that narrows it: as AWS or as Google write one.
pub fn is_public(value: &Value) -> bool {
    any_binding(value)
        || any_statement(value, |statement| {
            let everybody = match statement.get("Principal") {
                Some(Value::Object(principals)) => principals.iter().any(|(_, who)| has(Some(who), &["*"])),
                principal => has(principal, &["*"]),
            };
            let narrowed = statement.get("Condition").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
            (everybody || statement.get("NotPrincipal").is_some()) && !narrowed
        })
}

/// A Google policy with a binding whose members are all users.
fn any_binding(value: &Value) -> bool {
    let document = document(value);
    let bindings = document.get("bindings").and_then(Value::as_array).unwrap_or_default();
    let open = |binding: &Value| {
        let narrowed = binding.get("condition").is_some_and(|condition| *condition != Value::Null);
        !narrowed && has(binding.get("members"), &["allUsers", "allAuthenticatedUsers"])
    };
    bindings.iter().any(open)
}

/// A policy's document, which is most often a text within the plan.
fn document(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) => Cow::Owned(json::parse_with(text.as_bytes(), LIMITS).unwrap_or(Value::Null)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Cow::Borrowed(value),
    }
}

fn any_statement(value: &Value, test: impl Fn(&Value) -> bool) -> bool {
    let document = document(value);
    let allows = |statement: &Value| statement.get("Effect").and_then(Value::as_str) == Some("Allow");
    match document.get("Statement") {
        Some(Value::Array(all)) => all.iter().any(|statement| allows(statement) && test(statement)),
        Some(one) => allows(one) && test(one),
        None => false,
    }
}

/// Whether a text or list of texts has one of `names`.
fn has(value: Option<&Value>, names: &[&str]) -> bool {
    match value {
        Some(Value::String(text)) => names.contains(&text.as_str()),
        Some(Value::Array(items)) => items.iter().any(|item| item.as_str().is_some_and(|text| names.contains(&text))),
        _ => false,
    }
}
