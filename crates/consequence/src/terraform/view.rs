//! A resource's attributes with what Terraform says of them: sensitive, or not known before the apply.

use writ_core::json::Value;

/// How deep lists may nest on the way to an attribute.
const MAX_NESTING: usize = 12;

/// Longest text that is shown: a policy is told by its length.
const MAX_SHOWN: usize = 120;

/// One side of a change.
#[derive(Clone, Copy, Debug, Default)]
pub struct View<'a> {
    /// `before` or `after`.
    pub values: Option<&'a Value>,
    /// `before_sensitive` or `after_sensitive`.
    pub sensitive: Option<&'a Value>,
    /// `after_unknown`.
    pub unknown: Option<&'a Value>,
    /// The prior state's values and `sensitive_values`: read where `values` has no such attribute.
    pub state: Option<(&'a Value, Option<&'a Value>)>,
}

/// What is at a path: several values when lists are on the way.
#[derive(Debug, Default)]
pub struct Found<'a> {
    /// The values, and whether each is sensitive.
    pub values: Vec<(&'a Value, bool)>,
    /// Known only after the apply.
    pub unknown: bool,
}

impl<'a> View<'a> {
    /// What is at `path`; nothing when the attribute is absent.
    pub fn find(&self, path: &str) -> Found<'a> {
        let unknown = self.unknown.is_some_and(|mask| marked(mask, path, 0));
        let mut found = Found { values: Vec::new(), unknown };
        if let Some(values) = self.values {
            walk(values, self.sensitive, path, 0, &mut found.values);
        }
        let top = path.split('.').next().unwrap_or(path);
        let has = self.values.is_some_and(|values| values.get(top).is_some());
        if let (false, Some((values, sensitive))) = (has, self.state) {
            walk(values, sensitive, path, 0, &mut found.values);
        }
        found
    }

    /// A text attribute that is not empty.
    pub fn text(&self, path: &str) -> Option<&'a str> {
        self.find(path).values.iter().find_map(|(value, _)| value.as_str()).filter(|text| !text.is_empty())
    }

    /// What may be shown of an attribute: no sensitive value (R8), no long text.
    pub fn shown(&self, path: &str) -> Option<Value> {
        let found = self.find(path);
        if found.unknown {
            return Some(Value::from("(known after apply)"));
        }
        match found.values.as_slice() {
            [] => None,
            [one] => Some(show(one)),
            many => Some(Value::Array(many.iter().take(8).map(show).collect())),
        }
    }
}

fn show((value, hidden): &(&Value, bool)) -> Value {
    if *hidden {
        return Value::from("(sensitive)");
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => (*value).clone(),
        Value::String(text) if text.len() <= MAX_SHOWN => (*value).clone(),
        Value::String(text) => Value::String(format!("({} bytes)", text.len())),
        Value::Array(items) => Value::String(format!("({} elements)", items.len())),
        Value::Object(object) => Value::String(format!("({} members)", object.len())),
    }
}

/// Walks values and their mask side by side; a mask of `true` covers all below it.
fn walk<'a>(value: &'a Value, mask: Option<&'a Value>, path: &str, depth: usize, out: &mut Vec<(&'a Value, bool)>) {
    if depth > MAX_NESTING {
        return;
    }
    let all = mask.and_then(Value::as_bool) == Some(true);
    if path.is_empty() {
        out.push((value, all || mask.is_some_and(|mask| covers(mask, 0))));
        return;
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let mask = if all { mask } else { mask.and_then(Value::as_array).and_then(|masks| masks.get(index)) };
                walk(item, mask, path, depth + 1, out);
            }
        }
        Value::Object(object) => {
            let (name, rest) = path.split_once('.').unwrap_or((path, ""));
            if let Some(value) = object.get(name) {
                let mask = if all { mask } else { mask.and_then(|mask| mask.get(name)) };
                walk(value, mask, rest, depth + 1, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a mask has `true` at a path, above it or below it.
fn marked(mask: &Value, path: &str, depth: usize) -> bool {
    match mask {
        _ if path.is_empty() => covers(mask, depth),
        _ if depth > MAX_NESTING => true,
        Value::Array(items) => items.iter().any(|item| marked(item, path, depth + 1)),
        Value::Object(object) => {
            let (name, rest) = path.split_once('.').unwrap_or((path, ""));
            object.get(name).is_some_and(|mask| marked(mask, rest, depth + 1))
        }
        Value::Bool(truth) => *truth,
        Value::Null | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether anything in a mask is `true`.
fn covers(mask: &Value, depth: usize) -> bool {
    match mask {
        Value::Bool(truth) => *truth,
        _ if depth > MAX_NESTING => true,
        Value::Array(items) => items.iter().any(|item| covers(item, depth + 1)),
        Value::Object(object) => object.iter().any(|(_, item)| covers(item, depth + 1)),
        Value::Null | Value::Number(_) | Value::String(_) => false,
    }
}
