//! A report as SARIF 2.1.0, for code scanning: a rule for each kind of finding, a place for each finding.

use writ_consequence::{Mutation, Report, Verdict, rules};
use writ_core::json::Value;

use crate::output;

/// What was evaluated, as a place in a log names it.
pub struct Place<'a> {
    /// The file, or a word for what is none.
    pub uri: &'a str,
    /// Its text, where findings name bytes of it.
    pub text: Option<&'a str>,
}

/// A result for each finding above `allow`.
pub fn log(report: &Report, place: &Place<'_>) -> Value {
    let found: Vec<&Mutation> =
        report.mutations.iter().filter(|found| found.recoverability.tier.verdict() > Verdict::Allow).collect();
    let mut known: Vec<&str> = Vec::new();
    for id in found.iter().map(|found| rule(found)) {
        if !known.contains(&id) {
            known.push(id);
        }
    }
    let results = found.iter().map(|found| result(found, known.iter().position(|id| *id == rule(found)), place));
    document(known.iter().map(|id| described(id)).collect(), results.collect())
}

/// A log of one run, by its rules and what they found.
pub fn document(rules: Vec<Value>, results: Vec<Value>) -> Value {
    let driver = object([
        ("name", Value::from("writ")),
        ("version", Value::from(env!("CARGO_PKG_VERSION"))),
        ("informationUri", Value::from(env!("CARGO_PKG_REPOSITORY"))),
        ("rules", Value::Array(rules)),
    ]);
    let run = object([
        ("tool", object([("driver", driver)])),
        ("columnKind", Value::from("unicodeCodePoints")),
        ("results", Value::Array(results)),
    ]);
    object([
        ("$schema", Value::from("https://json.schemastore.org/sarif-2.1.0.json")),
        ("version", Value::from("2.1.0")),
        ("runs", Value::Array(vec![run])),
    ])
}

/// What is hit, in a word or two.
pub fn target(mutation: &Mutation) -> String {
    let target = &mutation.intent.target;
    let kind = target.kind.as_deref().unwrap_or("something");
    output::plain(&target.id.as_deref().map_or_else(|| kind.to_owned(), |id| format!("{kind} {id}")))
}

fn rule(found: &Mutation) -> &str {
    found.intent.metadata.rule.as_deref().unwrap_or("writ/consequence")
}

fn described(id: &str) -> Value {
    let known = rules::find(id);
    let short = known.map_or_else(|| id.to_owned(), |rule| format!("{} {}", rule.action, rule.target));
    let mut out = vec![("id", Value::from(id)), ("shortDescription", text(short))];
    if let Some(rule) = known {
        out.push(("fullDescription", text(rule.why.to_owned())));
        if !rule.undo.is_empty() {
            out.push(("help", text(rule.undo.to_owned())));
        }
    }
    object(out)
}

fn result(found: &Mutation, index: Option<usize>, place: &Place<'_>) -> Value {
    let level = match found.recoverability.tier.verdict() {
        Verdict::Allow => "none",
        Verdict::Warn => "warning",
        Verdict::Escalate | Verdict::Block => "error",
    };
    let target = target(found);
    let said = format!("{} {target}: {}", found.intent.action, found.recoverability.reasoning);
    let mut physical = vec![("artifactLocation", object([("uri", Value::from(place.uri))]))];
    physical.extend(region(found, place.text).map(|region| ("region", region)));
    let logical = object([("fullyQualifiedName", Value::from(target))]);
    let location = object([("physicalLocation", object(physical)), ("logicalLocations", Value::Array(vec![logical]))]);
    object([
        ("ruleId", Value::from(rule(found))),
        ("ruleIndex", Value::from(index.unwrap_or_default())),
        ("level", Value::from(level)),
        ("message", text(said)),
        ("locations", Value::Array(vec![location])),
    ])
}

/// Lines and columns, both from 1, of the bytes that a finding names.
fn region(found: &Mutation, text: Option<&str>) -> Option<Value> {
    let span = found.intent.metadata.span?;
    let point = |end: usize| {
        let before = text?.get(..end)?;
        let line = before.matches('\n').count() + 1;
        Some((line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1))
    };
    let ((line, column), (end_line, end_column)) = (point(span.start)?, point(span.end)?);
    Some(object([
        ("startLine", Value::from(line)),
        ("startColumn", Value::from(column)),
        ("endLine", Value::from(end_line)),
        ("endColumn", Value::from(end_column)),
    ]))
}

fn text(text: String) -> Value {
    object([("text", Value::from(text))])
}

/// An object of these members.
pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
