//! What a statement of somebody else's tells of the step that it is about: its name, and whether it went well.
//!
//! Owns the predicates that are read for it: in-toto links and test results, witness's collections, SLSA's verification summaries. Signs and
//! believes nothing. Invariant: a predicate that is read and does not say that it went well is one that did not. Page:
//! `spec/statements.md`.

use writ_core::json::Value;

/// How the types of collections begin, whose predicate names the step (`name`).
pub const COLLECTIONS: [&str; 2] =
    ["https://witness.testifysec.com/attestation-collection/", "https://aflock.ai/attestation-collection/"];
/// How the types of links begin.
const LINKS: [&str; 2] = ["https://in-toto.io/attestation/link/", "https://in-toto.io/Link/"];
const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/";
const SUMMARY: &str = "https://slsa.dev/verification_summary/";

fn is_of(kind: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| kind.starts_with(beginning))
}

/// The step that the predicate itself names.
pub fn step<'a>(kind: &str, predicate: &'a Value) -> Option<&'a str> {
    let named = is_of(kind, &COLLECTIONS) || is_of(kind, &LINKS);
    named.then(|| predicate.get("name").and_then(Value::as_str)).flatten()
}

/// What a predicate tells that did not go well; nothing of one that went well, or that tells of no outcome.
pub fn failure(kind: &str, predicate: &Value) -> Option<String> {
    let word = |name: &str| predicate.get(name).and_then(Value::as_str);
    let passed = |name: &str| match word(name) {
        Some("PASSED") => None,
        Some(other) => Some(format!("its `{name}` is {}", writ_core::visible::line(other))),
        None => Some(format!("it has no `{name}`")),
    };
    let ended = |code: Option<&Value>| match code {
        Some(code) if code.as_u64() == Some(0) => None,
        Some(Value::Number(code)) => Some(format!("the command ended with {code}")),
        _ => Some("it does not say how its command ended".to_owned()),
    };
    if is_of(kind, &LINKS) {
        let byproducts = predicate.get("byproducts");
        let code = |name: &str| byproducts.and_then(|byproducts| byproducts.get(name));
        return ended(code("return-value").or_else(|| code("return_value")));
    }
    if is_of(kind, &COLLECTIONS) {
        let parts = predicate.get("attestations").and_then(Value::as_array).unwrap_or_default();
        let ran =
            |part: &&Value| part.get("type").and_then(Value::as_str).is_some_and(|kind| kind.contains("/command-run/"));
        return parts
            .iter()
            .filter(ran)
            .find_map(|part| ended(part.get("attestation").and_then(|run| run.get("exitcode"))));
    }
    match kind {
        kind if kind.starts_with(TEST_RESULT) => passed("result"),
        kind if kind.starts_with(SUMMARY) => passed("verificationResult"),
        _ => None,
    }
}
