//! Policy documents: what is accepted, what is refused, and where the finger points.

use writ_core::json;
use writ_policy::Policy;

/// Document, then pointer, line, column and a word of the message and help.
const REFUSED: &[(&str, &str, usize, &str)] = &[
    (r#"{"version":"1.0"}"#, "", 1, "missing field `name`"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\n \"tool\":{}}", "/tool", 2, "did you mean `tools`?"),
    ("{\"version\":\"2\",\"name\":\"x\"}", "/version", 1, "write \"1.0\""),
    ("{\"version\":\"1.0\",\"name\":7}", "/name", 1, "expected a string"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"expires\":\"tomorrow\"}", "/expires", 1, "RFC 3339"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"files\":{\"deny\":[\"ok\",\"[a\"]}}", "/files/deny/1", 1, "bad glob"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"tools\":{\"deny\":[\"Bsh\"]}}", "/tools/deny/0", 1, "did you mean `Bash`?"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"tools\":{\"alow\":[]}}", "/tools/alow", 1, "did you mean `allow`?"),
    (
        "{\"version\":\"1.0\",\"name\":\"x\",\"domains\":{\"allow\":[\"https://x.com\"]}}",
        "/domains/allow/0",
        1,
        "bad domain",
    ),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"limits\":{\"maxTurns\":-1}}", "/limits/maxTurns", 1, "whole number"),
    (
        "{\"version\":\"1.0\",\"name\":\"x\",\"limits\":{\"maxTurns\":{\"value\":1,\"enforcement\":\"failfast\"}}}",
        "/limits/maxTurns/enforcement",
        1,
        "did you mean `fail-fast`?",
    ),
    (
        "{\"version\":\"1.0\",\"name\":\"x\",\"limits\":{\"maxSpendUSD\":10},\"sublayouts\":[{\"name\":\"a\",\"policy\":\"p\",\"limits\":{\"maxSpendUSD\":{\"value\":15}}}]}",
        "/sublayouts/0/limits/maxSpendUSD",
        1,
        "looser",
    ),
    (
        "{\"version\":\"1.0\",\"name\":\"x\",\"functionaries\":[{\"type\":\"keyles\"}]}",
        "/functionaries/0/type",
        1,
        "did you mean `keyless`?",
    ),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"name\":\"y\"}", "", 1, "duplicate"),
    ("{\"version\":\"1.0\",\n\"name\":\"x\",}", "", 2, "strict JSON"),
    ("[]", "", 1, "expected an object"),
    ("", "", 1, "JSON"),
];

#[test]
fn refusals_name_place_and_remedy() {
    for (document, pointer, line, word) in REFUSED {
        let error = Policy::parse(document.as_bytes(), "/w").expect_err(document);
        let problem = error
            .problems()
            .iter()
            .find(|problem| problem.pointer == *pointer)
            .unwrap_or_else(|| panic!("{document}: {error}"));
        assert_eq!(problem.line, *line, "{document}: {error}");
        assert!(problem.message.contains(word) || problem.help.contains(word), "{document}: {problem:?}");
    }
}

#[test]
fn every_problem_is_reported_at_once() {
    let error =
        Policy::parse(br#"{"version":"3","nam":"x","files":{"deny":["{"]}}"#, "/w").expect_err("three problems");
    assert!(error.problems().len() >= 4, "{error}");
}

/// The twin of every refusal: the same document put right.
#[test]
fn the_whole_schema_is_accepted() {
    let example = include_bytes!("../../../examples/feature-search.aflock");
    let policy = Policy::parse(example, "/w").unwrap();
    assert_eq!(policy.name(), "feature-search-implementation");
    let pending = policy.not_enforced();
    for field in
        ["/limits", "/evaluators", "/functionaries", "/requiredAttestations", "/attestationDir", "/attestationsFrom"]
    {
        assert!(pending.iter().any(|known| known == field), "{field} is ignored in silence");
    }
    assert!(!pending.iter().any(|known| ["/tools", "/files", "/domains", "/expires"].contains(&known.as_str())));
    let full = br#"{"$schema":"x","version":"1.0","name":"x","extends":"base.aflock","identity":{"allowedModels":["m"],"deniedTools":["Bash"]},
        "grants":{"secrets":{"allow":["vault:x"]}},"materialsFrom":{"session":{"path":"p","merkleRoot":"r","algorithm":"sha512",
        "constraints":{"maxTurnDistance":5,"requireContiguousTurns":true}},"git":{"treeHash":"t","branch":"b"},
        "artifacts":[{"name":"a","digest":{"sha256":"x"},"uri":"file:x"}],"sublayoutSessions":{"a":{"merkleRoot":"r","spawnedAtTurn":2}}},
        "limits":{"maxTurns":3,"maxSpendUSD":{"value":1.5,"enforcement":"post-hoc"}},
        "sublayouts":[{"name":"a","policy":{"version":"1.0","name":"in"},"policyDigest":{"sha256":"x"},"limits":{"maxTurns":2},"inherit":["files"]}]}"#;
    Policy::parse(full, "/w").unwrap();
}

#[test]
fn the_shipped_schema_is_the_generated_one() {
    let shipped = include_str!("../../../spec/policy.schema.json");
    let same = json::pretty(&Policy::schema()) + "\n" == shipped;
    assert!(same, "run `writ policy schema > spec/policy.schema.json`");
}
