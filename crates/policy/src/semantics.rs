//! What a policy may not say although its shape is right: names twice or empty, digests that are none, Rego that does not read.
//!
//! Rego is checked for what can be told without running it: a package at its head, closed strings, brackets that match. Page:
//! `spec/policy.md`.

use std::collections::HashSet;

use writ_core::json::{Object, Value};

use crate::error::Found;
use crate::schema::join;

/// Digest algorithms and how many hexadecimal digits each has.
const ALGORITHMS: [(&str, usize); 5] = [("sha1", 40), ("sha256", 64), ("sha384", 96), ("sha512", 128), ("gitoid", 64)];

/// Checks a whole document; `base` is the pointer of the policy it is.
pub fn check(document: &Value, base: &str, out: &mut Vec<Found>) {
    if let Some(name) = document.get("name").and_then(Value::as_str).filter(|name| name.trim().is_empty()) {
        out.push(empty(&format!("{base}/name"), name));
    }
    for list in ["sublayouts", "evaluators/rego", "evaluators/ai", "evaluators/grpc", "materialsFrom/artifacts"] {
        names(member(document, list), &format!("{base}/{list}"), out);
    }
    for (at, rule) in items(member(document, "evaluators/rego")).enumerate() {
        let Some(text) = rule.get("policy").and_then(Value::as_str) else { continue };
        if !is_file(text)
            && let Err(why) = rego(text)
        {
            let pointer = format!("{base}/evaluators/rego/{at}/policy");
            let help = "Rego begins with `package NAME`; a text that ends in `.rego` is the path of a file";
            out.push(Found::value(&pointer, format!("not readable as Rego: {why}"), help).rule("bad-rego"));
        }
    }
    for (at, child) in items(document.get("sublayouts")).enumerate() {
        let place = format!("{base}/sublayouts/{at}");
        digests(child.get("policyDigest"), &format!("{place}/policyDigest"), out);
        if let Some(inline) = child.get("policy").filter(|policy| policy.as_object().is_some()) {
            check(inline, &format!("{place}/policy"), out);
        }
    }
    materials(document.get("materialsFrom"), &format!("{base}/materialsFrom"), out);
    amounts(document, base, out);
}

/// The files that a document names beside itself, with their pointers.
pub fn files(document: &Value) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let is_path = |text: &str| {
        !text.contains("://") && (text.starts_with(['.', '/']) || text.ends_with(".aflock") || text.ends_with(".json"))
    };
    out.extend(text(document.get("extends")).filter(|text| is_path(text)).map(|text| ("/extends".to_owned(), text)));
    for (at, rule) in items(member(document, "evaluators/rego")).enumerate() {
        let file = text(rule.get("policy")).filter(|text| is_file(text));
        out.extend(file.map(|file| (format!("/evaluators/rego/{at}/policy"), file)));
    }
    for (at, child) in items(document.get("sublayouts")).enumerate() {
        out.extend(text(child.get("policy")).map(|file| (format!("/sublayouts/{at}/policy"), file)));
    }
    out
}

fn member<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').try_fold(document, |value, name| value.get(name))
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).unwrap_or_default().iter()
}

fn empty(pointer: &str, name: &str) -> Found {
    Found::value(pointer, format!("the name `{name}` is empty"), "a name that people can say").rule("empty-name")
}

/// Names of a list's items: none empty, none twice.
fn names(list: Option<&Value>, place: &str, out: &mut Vec<Found>) {
    let mut seen = HashSet::new();
    for (at, item) in items(list).enumerate() {
        let Some(name) = item.get("name").and_then(Value::as_str) else { continue };
        let pointer = format!("{place}/{at}/name");
        if name.trim().is_empty() {
            out.push(empty(&pointer, name));
        } else if !seen.insert(name) {
            out.push(Found::value(&pointer, format!("the name `{name}` is there twice"), "").rule("duplicate-name"));
        }
    }
}

/// A map of digests by algorithm.
fn digests(map: Option<&Value>, place: &str, out: &mut Vec<Found>) {
    for (algorithm, value) in map.and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        let pointer = join(place, algorithm);
        match ALGORITHMS.iter().find(|(name, _)| *name == algorithm) {
            Some((_, digits)) => digest(value.as_str().unwrap_or_default(), &[*digits], &pointer, out),
            None => {
                let known = ALGORITHMS.map(|(name, _)| name).join(", ");
                let message = format!("unknown digest algorithm `{algorithm}`");
                out.push(Found::name(&pointer, message, format!("one of {known}")).rule("bad-digest"));
            }
        }
    }
}

fn digest(text: &str, digits: &[usize], pointer: &str, out: &mut Vec<Found>) {
    let bare = text.split_once(':').map_or(text, |(_, bare)| bare);
    if !digits.contains(&bare.len()) || !bare.chars().all(|c| c.is_ascii_hexdigit()) {
        let lengths = digits.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        let message = format!("`{text}` is no digest");
        out.push(Found::value(pointer, message, format!("{lengths} hexadecimal digits")).rule("bad-digest"));
    }
}

fn materials(materials: Option<&Value>, place: &str, out: &mut Vec<Found>) {
    let Some(materials) = materials else { return };
    let session = materials.get("session");
    let wide = session.and_then(|session| session.get("algorithm")).and_then(Value::as_str) == Some("sha512");
    if let Some(root) = session.and_then(|session| session.get("merkleRoot")).and_then(Value::as_str) {
        digest(root, if wide { &[128] } else { &[64] }, &format!("{place}/session/merkleRoot"), out);
    }
    if let Some(tree) = member(materials, "git/treeHash").and_then(Value::as_str) {
        digest(tree, &[40, 64], &format!("{place}/git/treeHash"), out);
    }
    for (at, artifact) in items(materials.get("artifacts")).enumerate() {
        digests(artifact.get("digest"), &format!("{place}/artifacts/{at}/digest"), out);
    }
    let sessions = materials.get("sublayoutSessions").and_then(Value::as_object);
    for (name, session) in sessions.into_iter().flat_map(Object::iter) {
        if let Some(root) = session.get("merkleRoot").and_then(Value::as_str) {
            digest(root, &[64, 128], &format!("{}/merkleRoot", join(&format!("{place}/sublayoutSessions"), name)), out);
        }
    }
}

/// Money is counted in micro-dollars (R26): a finer amount would be another one.
fn amounts(document: &Value, base: &str, out: &mut Vec<Found>) {
    let mut check = |limit: Option<&Value>, pointer: String| {
        let plain = limit.filter(|limit| limit.as_object().is_none());
        let nested = limit.and_then(|limit| limit.get("value"));
        let (Some(amount), pointer) =
            (plain.or(nested).and_then(Value::as_f64), if nested.is_some() { pointer + "/value" } else { pointer })
        else {
            return;
        };
        let micros = amount * 1e6;
        if micros < 1e12 && (micros - micros.round()).abs() > 1e-3 {
            let message = format!("{amount} is finer than a micro-dollar");
            out.push(Found::value(&pointer, message, "at most six digits behind the point").rule("bad-amount"));
        }
    };
    check(member(document, "limits/maxSpendUSD"), format!("{base}/limits/maxSpendUSD"));
    for (at, child) in items(document.get("sublayouts")).enumerate() {
        check(member(child, "limits/maxSpendUSD"), format!("{base}/sublayouts/{at}/limits/maxSpendUSD"));
    }
}

/// Whether a Rego rule is the path of a file rather than the rule itself.
fn is_file(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.ends_with(".rego")
}

/// What can be told of Rego without running it.
fn rego(text: &str) -> Result<(), String> {
    let mut open: Vec<char> = Vec::new();
    let mut chars = text.chars().peekable();
    let mut code = String::new();
    while let Some(c) = chars.next() {
        match c {
            '#' => {
                chars.by_ref().find(|c| *c == '\n');
                code.push('\n');
            }
            '"' => {
                loop {
                    match chars.next() {
                        Some('\\') => drop(chars.next()),
                        Some('"') => break,
                        None | Some('\n') => return Err("a string is not closed".to_owned()),
                        Some(_) => {}
                    }
                }
                code.push('"');
            }
            '`' => {
                chars.by_ref().find(|c| *c == '`').ok_or("a raw string is not closed")?;
                code.push('"');
            }
            '(' | '[' | '{' => {
                open.push(c);
                code.push(c);
            }
            ')' | ']' | '}' => {
                let matching = matches!((open.pop(), c), (Some('('), ')') | (Some('['), ']') | (Some('{'), '}'));
                if !matching {
                    return Err(format!("`{c}` closes nothing"));
                }
                code.push(c);
            }
            _ => code.push(c),
        }
    }
    if let Some(c) = open.pop() {
        return Err(format!("`{c}` is not closed"));
    }
    let mut words = code.split_whitespace();
    let name = if words.next() == Some("package") { words.next() } else { None };
    let good = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '"'))
    };
    if name.is_some_and(good) { Ok(()) } else { Err("it does not begin with a package".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rego_is_read_as_far_as_that_goes() {
        for good in [
            "package a\ndeny[msg] { input.x == 1; msg := \"no {\" }",
            "# note\npackage a.b\n\ndefault allow := false\nallow if { count(input.x) < 3 }\n",
            "package a\nx := `raw { ( `",
        ] {
            assert_eq!(rego(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "deny[msg] { true }",
            "package a\ndeny { ",
            "package a\nx := \"open",
            "package a\n}",
            "package 1",
            "package a\n(]",
        ] {
            assert!(rego(bad).is_err(), "{bad}");
        }
    }
}
