//! What a statement of somebody else's tells of the step that it is about: its name, and whether it went well.
//!
//! Owns the predicates that are read for it: in-toto links and test results, witness's collections, aflock's actions, SLSA's verification
//! summaries. Signs and believes nothing. Invariant: a predicate that is read and does not say that it went well is one that did not. Page:
//! `spec/statements.md`.

use writ_core::json::Value;

/// How the types of collections begin, whose predicate names the step (`name`).
const COLLECTIONS: [&str; 3] = [
    "https://witness.testifysec.com/attestation-collection/",
    "https://witness.dev/attestation-collection/",
    "https://aflock.ai/attestation-collection/",
];
/// What the type of an attestation on a command that ran has in its path.
const RAN: &str = "/command-run/";
/// How the types of links begin.
const LINKS: [&str; 2] = ["https://in-toto.io/attestation/link/", "https://in-toto.io/Link/"];
const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/";
/// How the type of what the Go aflock says of one call begins.
const ACTION: &str = "https://aflock.ai/attestations/action/";
const SUMMARY: &str = "https://slsa.dev/verification_summary/";

fn is_of(kind: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| kind.starts_with(beginning))
}

/// Whether it is the type of a link.
pub fn is_link(kind: &str) -> bool {
    is_of(kind, &LINKS)
}

/// The step that the predicate itself names.
pub fn step<'a>(kind: &str, predicate: &'a Value) -> Option<&'a str> {
    let named = is_of(kind, &COLLECTIONS) || is_link(kind);
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
    if (is_link(kind) || is_of(kind, &COLLECTIONS)) && step(kind, predicate).is_none() {
        return Some("it names no step".to_owned());
    }
    if is_link(kind) {
        let byproducts = predicate.get("byproducts");
        let code = |name: &str| byproducts.and_then(|byproducts| byproducts.get(name));
        return ended(code("return-value").or_else(|| code("return_value")));
    }
    if is_of(kind, &COLLECTIONS) {
        let parts = predicate.get("attestations").and_then(Value::as_array).unwrap_or_default();
        let of = |part: &&Value| part.get("type").and_then(Value::as_str).is_some_and(|kind| kind.contains(RAN));
        let mut ran = parts.iter().filter(of).map(|part| part.get("attestation").and_then(|run| run.get("exitcode")));
        // One on files or commits alone says of no command that it went well.
        return match ran.next() {
            None => Some("it holds no attestation on a command that ran".to_owned()),
            Some(first) => ended(first).or_else(|| ran.find_map(ended)),
        };
    }
    match kind {
        kind if kind.starts_with(TEST_RESULT) => passed("result"),
        kind if kind.starts_with(ACTION) => match word("decision") {
            Some("allow") => None,
            Some(other) => Some(format!("its `decision` is {}", writ_core::visible::line(other))),
            None => Some("it has no `decision`".to_owned()),
        },
        kind if kind.starts_with(SUMMARY) => passed("verificationResult"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_core::json;

    fn told(kind: &str, predicate: &str) -> (Option<String>, Option<String>) {
        let predicate = json::parse(predicate.as_bytes()).unwrap();
        (step(kind, &predicate).map(str::to_owned), failure(kind, &predicate))
    }

    #[test]
    fn a_step_is_good_where_its_statement_says_so() {
        let (link, old) = ("https://in-toto.io/attestation/link/v0.3", "https://in-toto.io/Link/v0.2");
        let witness = "https://witness.testifysec.com/attestation-collection/v0.1";
        let ran = |code: &str| {
            format!(
                r#"{{"name":"b","attestations":[{{"type":"https://witness.dev/attestations/git/v0.1","attestation":{{}}}},{{"type":"https://witness.dev/attestations/command-run/v0.1","attestation":{{"exitcode":{code}}}}}]}}"#
            )
        };
        let action = "https://aflock.ai/attestations/action/v0.1";
        let (result, summary) =
            ("https://in-toto.io/attestation/test-result/v0.1", "https://slsa.dev/verification_summary/v1");
        for (kind, predicate, named, good) in [
            (link, r#"{"name":"b","byproducts":{"return-value":0}}"#.to_owned(), true, true),
            (old, r#"{"name":"b","byproducts":{"return_value":0}}"#.to_owned(), true, true),
            (link, r#"{"name":"b","byproducts":{"return-value":7,"return_value":0}}"#.to_owned(), true, false),
            (link, r#"{"name":"b","byproducts":{"return-value":"0"}}"#.to_owned(), true, false),
            (link, r#"{"name":"b","byproducts":{"return-value":false}}"#.to_owned(), true, false),
            (link, r#"{"name":"b","byproducts":{}}"#.to_owned(), true, false),
            (link, r#"{"name":"b"}"#.to_owned(), true, false),
            (link, r#"{"byproducts":{"return-value":0}}"#.to_owned(), false, false),
            (link, "null".to_owned(), false, false),
            (witness, ran("0"), true, true),
            (witness, ran("7"), true, false),
            (witness, ran("null"), true, false),
            (
                witness,
                r#"{"name":"b","attestations":[{"type":"https://witness.dev/attestations/git/v0.1"}]}"#.to_owned(),
                true,
                false,
            ),
            ("https://witness.dev/attestation-collection/v0.1", ran("0"), true, true),
            ("https://witness.dev/attestation-collection/v0.1", ran("1"), true, false),
            (witness, ran("0").replace("command-run", "COMMAND-RUN"), true, false),
            (witness, r#"{"name":"b","attestations":[]}"#.to_owned(), true, false),
            (witness, r#"{"name":"b","attestations":null}"#.to_owned(), true, false),
            (witness, r#"{"name":"b"}"#.to_owned(), true, false),
            (witness, r#"{"attestations":[]}"#.to_owned(), false, false),
            (result, r#"{"result":"PASSED"}"#.to_owned(), false, true),
            (result, r#"{"result":"WARNED"}"#.to_owned(), false, false),
            (result, "{}".to_owned(), false, false),
            (summary, r#"{"verificationResult":"PASSED"}"#.to_owned(), false, true),
            (summary, r#"{"verificationResult":"FAILED"}"#.to_owned(), false, false),
            (action, r#"{"decision":"allow"}"#.to_owned(), false, true),
            (action, r#"{"decision":"deny"}"#.to_owned(), false, false),
            (action, "{}".to_owned(), false, false),
            ("https://slsa.dev/provenance/v1", r#"{"name":"other"}"#.to_owned(), false, true),
        ] {
            let (step, failed) = told(kind, &predicate);
            assert_eq!((step.is_some(), failed.is_none()), (named, good), "{kind} {predicate}: {failed:?}");
        }
    }
}
