//! The specification's chapter on verification, sentence by sentence: what does not hold is rejected, and its twin is not.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod talk;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use talk::{Talk, phase};
use workplace::SESSION;
use writ_evidence::dsse::Envelope;
use writ_evidence::keys::PublicKey;

/// What the chapter's rules share.
const SHARED: &str = "package agentflow
import rego.v1
turns := [t | some t in input.attestationsFrom[\"turn-*\"]]
sum_spend := sum([t.predicate.metrics.costUSD | some t in turns])
sum_tokens_in := sum([t.predicate.metrics.tokensIn | some t in turns])
sum_tool_calls := sum([count(t.predicate.tools) | some t in turns])
";
/// The rules, each with a name.
const RULES: [(&str, &str); 5] = [
    (
        "spend",
        "deny contains msg if {
  sum_spend > input.policy.limits.maxSpendUSD.value
  msg := sprintf(\"Cumulative spend $%.2f exceeds limit $%.2f\", [sum_spend, input.policy.limits.maxSpendUSD.value])
}",
    ),
    (
        "tokens",
        "deny contains msg if {
  sum_tokens_in > input.policy.limits.maxTokensIn.value
  msg := sprintf(\"Cumulative input tokens %d exceeds limit %d\", [sum_tokens_in, input.policy.limits.maxTokensIn.value])
}",
    ),
    (
        "turns",
        "deny contains msg if {
  count(turns) > input.policy.limits.maxTurns.value
  msg := sprintf(\"Turn count %d exceeds limit %d\", [count(turns), input.policy.limits.maxTurns.value])
}",
    ),
    (
        "tools",
        "deny contains msg if {
  some t in turns
  some tool in t.predicate.tools
  not tool.allowed
  msg := sprintf(\"Turn %d used disallowed tool %s\", [t.predicate.turn, tool.name])
}",
    ),
    (
        "files",
        "deny contains msg if {
  some t in turns
  some f in t.predicate.files.written
  file_denied(f)
  msg := sprintf(\"Turn %d wrote to denied path %s\", [t.predicate.turn, f])
}
file_denied(path) if {
  some pattern in input.policy.files.deny
  glob.match(pattern, [], path)
}",
    ),
];

/// Two turns under a rule of the chapter; in the second one call is denied where that is wanted.
fn ruled(name: &str, rule: &str, more: &Value, denied: bool) -> Value {
    let mut policy = json!({"attestationsFrom": ["turn-*"],
        "evaluators": {"rego": [{"name": "chapter", "policy": format!("{SHARED}{rule}")}]}});
    policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let talk = Talk::new(name, &policy);
    talk.turn(1);
    talk.asks("prompt 2");
    talk.writes(None, "two", if denied { "elsewhere.rs" } else { "src/2.rs" });
    talk.stops();
    phase(&talk.verify().1, "evaluators")
}

#[test]
fn each_rule_of_the_chapter_denies_what_it_is_about() {
    let limit = |name: &str, value: f64| json!({"limits": {name: {"value": value, "enforcement": "post-hoc"}}});
    // OPA's `*` stops at a dot where no other delimiter is given.
    let observed = json!({"enforce": "observe", "files": {"allow": ["src/**"], "deny": ["src/2.*"]}});
    for (name, rule) in RULES {
        let (bad, good) = match name {
            "spend" => (limit("maxSpendUSD", 0.000_01), limit("maxSpendUSD", 5.0)),
            "tokens" => (limit("maxTokensIn", 10.0), limit("maxTokensIn", 1000.0)),
            "turns" => (limit("maxTurns", 1.0), limit("maxTurns", 2.0)),
            "files" => (observed.clone(), json!({"files": {"allow": ["src/**"], "deny": ["src/9.*"]}})),
            _ => (json!({}), json!({})),
        };
        let found = ruled(&format!("sentence-{name}-bad"), rule, &bad, name == "tools");
        let told = found["findings"].to_string();
        assert_eq!(found["outcome"], "failed", "{name}: {found:#}");
        assert!(told.contains("exceeds limit") || told.contains("Turn 2 "), "{name}: {told}");
        let found = ruled(&format!("sentence-{name}-good"), rule, &good, false);
        assert_eq!(found["outcome"], "passed", "{name}: {found:#}");
    }
    // A pattern that matches nothing: a rule that saw nothing passes nothing.
    let none = json!({"attestationsFrom": ["turn-*", "control-*"]});
    let rule = "deny contains \"x\" if { some t in input.attestationsFrom[\"control-*\"]; not t.predicate.controlId }";
    let found = ruled("sentence-none", rule, &none, false);
    assert!(
        found["outcome"] == "failed" && found.to_string().contains("no attestation of the session matches it"),
        "{found:#}"
    );
}

#[test]
fn turns_that_are_too_far_apart_are_rejected() {
    for (name, constraints, outcome) in [
        ("near", json!({"maxTurnDistance": 2}), "failed"),
        ("contiguous", json!({"requireContiguousTurns": true}), "failed"),
        ("far", json!({"maxTurnDistance": 3}), "passed"),
    ] {
        let talk = Talk::new(
            &format!("sentence-{name}"),
            &json!({"materialsFrom": {"session": {"constraints": constraints}}}),
        );
        talk.turn(1);
        // Two turns that no hook saw.
        for unseen in ["x", "y"] {
            let said = json!({"type": "user", "message": {"role": "user", "content": unseen}});
            talk.add(talk.main(), &said);
        }
        talk.turn(4);
        let (_, report) = talk.verify();
        assert_eq!(phase(&report, "turns")["outcome"], "passed", "{name}: {report:#}");
        let phases = report["phases"].as_array().unwrap();
        let found = phases.iter().find(|phase| phase["name"] == "materials").unwrap();
        assert_eq!(found["outcome"], outcome, "{name}: {report:#}");
        if outcome == "failed" {
            assert!(found.to_string().contains("turn 4 comes after turn 1"), "{found:#}");
            assert_eq!(report["status"], "breached", "{report:#}");
        }
    }
}

#[test]
fn what_evaluators_said_is_signed() {
    let rule = |most: u64| {
        format!(
            "package p\nimport rego.v1\ndeny contains \"many turns\" if count(input.attestationsFrom[\"turn-*\"]) > {most}\n"
        )
    };
    for (name, most, result) in [("warned", 3, "WARNED"), ("failed", 0, "FAILED")] {
        let talk = Talk::new(
            &format!("sentence-{name}"),
            &json!({"attestationsFrom": ["turn-*"], "evaluators": {
            "rego": [{"name": "few", "policy": rule(most)}], "ai": [{"name": "quality", "prompt": "PASS if good."}]}}),
        );
        talk.turn(1);
        let folder = &talk.place.folder;
        let signer = folder.join("auditor");
        talk.place.writ(&["keys", "generate", signer.to_str().unwrap()]);
        let pem = [signer.clone(), folder.join("auditor.pem")].into_iter().find(|path| path.exists()).unwrap();
        let public = PublicKey::from_pem(&fs::read_to_string(folder.join("auditor.pub")).unwrap()).unwrap();
        let to = folder.join("results.json");
        let words = ["verify", SESSION, "--results", to.to_str().unwrap(), "--vsa-key", pem.to_str().unwrap()];
        assert_eq!(talk.place.writ(&words).status.code(), Some(3));
        let envelope = Envelope::parse(&fs::read(&to).unwrap()).unwrap();
        let payload = envelope.verify(std::slice::from_ref(&public)).unwrap().into_payload();
        let said: Value = serde_json::from_slice(&payload).unwrap();
        assert_eq!(said["predicateType"], "https://in-toto.io/attestation/test-result/v0.1", "{said:#}");
        assert_eq!(said["subject"][0]["name"], format!("agentflow:run:{SESSION}"), "{said:#}");
        let predicate = &said["predicate"];
        let list = if most == 0 { "failedTests" } else { "passedTests" };
        assert_eq!((&predicate["result"], &predicate[list]), (&json!(result), &json!(["few"])), "{said:#}");
        assert_eq!(predicate["warnedTests"], json!(["quality"]), "one that was not asked passed nothing");
        assert!(predicate["configuration"][0]["digest"]["sha256"].is_string(), "{said:#}");
        assert_eq!(talk.place.writ(&["verify", SESSION, "--results", "x.json"]).status.code(), Some(2));
        assert_eq!(talk.place.writ(&["verify", SESSION, "--vsa-key", pem.to_str().unwrap()]).status.code(), Some(2));
    }
}

/// The page's table: each test that it names is there.
#[test]
fn each_sentence_names_a_test_that_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("spec/verify.md")).unwrap();
    let table = page.split_once("| sentence | phase | rejected in |").unwrap().1;
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 25, "{}", rows.len());
    for row in rows {
        let last = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        let mut text = String::new();
        for word in last.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                let path = if word.contains('/') { root.join(word) } else { root.join("tests/tests").join(word) };
                text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{row}: {}: {error}", path.display()));
            } else {
                assert!(text.contains(&format!("fn {word}()")), "{row}: `{word}` is not there");
            }
        }
        assert!(!text.is_empty(), "{row} names no test");
    }
}
