//! The shell lines that a call is the twin of: `s3.delete_bucket` is `aws s3api delete-bucket`, `kubectl {args}` is `kubectl …`.
//!
//! Owns how a tool's name and arguments become a program's words. A line that no program would take finds nothing.

use writ_core::json::Value;

use super::{Call, is};

/// Most words of one line.
const MAX_WORDS: usize = 64;

/// The lines.
pub(super) fn lines(call: &Call<'_>, words: &[String], reads: bool) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(at) = words.iter().position(|word| is("programs", word)) {
        let program = words.get(at).map_or("", String::as_str);
        let given = given(call.arguments);
        out.extend(given.iter().map(|given| format!("{program} {given}")));
        // `git_reset {mode: hard}`, `docker_volume_rm`.
        let rest: Vec<&str> = words.iter().skip(at + 1).map(String::as_str).collect();
        if !rest.is_empty() {
            out.push(format!("{program} {} {}", rest.join(" "), switches(call.arguments)));
        }
    }
    // The name of a tool that only reads, or that is about what it shows itself, says nothing more.
    if reads || words.iter().any(|word| is("own", word)) {
        return out;
    }
    let plain = call.tool.rsplit("__").next().unwrap_or(call.tool);
    let named: Vec<&str> = match plain.split_once(['.', ':', '/']) {
        Some((service, operation)) => vec![service, operation],
        None => plain.split_once('_').map_or_else(Vec::new, |(service, operation)| vec![service, operation]),
    };
    if let [service, operation] = named.as_slice() {
        let operation = super::words(operation).join("-");
        let service = service.to_lowercase();
        out.push(format!("aws {service} {operation}"));
        if service == "s3" {
            out.push(format!("aws s3api {operation}"));
        }
    }
    // `delete_namespace`, `drain_node`.
    if let [verb, kind] = words
        && is("objects", kind)
    {
        let verb = if verb == "remove" || verb == "destroy" { "delete" } else { verb };
        out.push(format!("kubectl {verb} {kind} x"));
    }
    out
}

/// What the arguments say a program's words are.
fn given(arguments: &Value) -> Vec<String> {
    let Some(members) = arguments.as_object() else { return Vec::new() };
    let words = members.iter().filter(|(name, _)| is("words", name));
    words
        .filter_map(|(_, value)| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(items) => {
                let items = items.iter().take(MAX_WORDS).filter_map(Value::as_str);
                Some(items.map(quoted).collect::<Vec<_>>().join(" "))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        })
        .collect()
}

/// Switches that are on, and the mode that is chosen, as options.
fn switches(arguments: &Value) -> String {
    let Some(members) = arguments.as_object() else { return String::new() };
    let option = |(name, value): (&str, &Value)| match value {
        Value::Bool(true) => Some(format!("--{}", name.replace('_', "-"))),
        Value::String(text) if name == "mode" => Some(format!("--{}", text.trim_start_matches('-'))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    };
    members.iter().take(MAX_WORDS).filter_map(option).map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
