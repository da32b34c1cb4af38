//! Sub-agents' policies verified as their parent's is: their statements, evaluators, steps, limits; and what all agents used together.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod talk;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;

use serde_json::{Value, json};
use talk::{Talk, phase};
use workplace::SESSION;

/// A session whose first turn starts two sub-agents. `worker` is more of their policy, `root` more of their parent's.
fn session(name: &str, worker: &Value, root: &Value) -> Talk {
    let mut policy = json!({"version": "1.0", "name": "worker", "files": {"allow": ["src/**"]}});
    policy.as_object_mut().unwrap().extend(worker.as_object().unwrap().clone());
    let mut more = json!({"sublayouts": [{"name": "research", "policy": policy, "attestationPrefix": "research-"},
        {"name": "idle", "policy": {"version": "1.0", "name": "idle", "requiredAttestations": ["never"]}}]});
    more.as_object_mut().unwrap().extend(root.as_object().unwrap().clone());
    let talk = Talk::new(name, &more);
    talk.asks("prompt 1");
    talk.spawns("spawn", &["a1", "b2"]);
    talk.stops();
    talk
}

fn step(talk: &Talk, name: &str, code: &str) {
    let ran = talk.place.command(&["step", "run", name, "--", "sh", "-c", code]).env("PATH", "/usr/bin:/bin").output();
    assert!(ran.unwrap().status.code().is_some());
}

/// The phase of a sublayout.
fn inner(report: &Value, name: &str) -> Value {
    phase(&report["sublayouts"][0], name)
}

#[test]
fn a_sublayout_is_verified_as_its_parent_is_and_so_in_a_bundle() {
    let rule = "package p\nimport rego.v1\ndeny contains msg if { count(input.attestationsFrom[\"turn-*\"]) != 2; msg := \"two agents, a turn each\" }";
    let worker = json!({"attestationsFrom": ["turn-*"], "evaluators": {"rego": [{"name": "few", "policy": rule}]},
        "requiredAttestations": ["quality"], "limits": {"maxTokensIn": {"value": 30, "enforcement": "post-hoc"}}});
    let talk =
        session("sub-good", &worker, &json!({"limits": {"maxTokensIn": {"value": 100, "enforcement": "post-hoc"}}}));
    // What the sublayout wants is not there yet.
    let (code, report) = talk.verify();
    assert_eq!((code, report["status"].as_str()), (Some(3), Some("breached")), "{report:#}");
    let (summed, missing) = (phase(&report, "sublayouts"), inner(&report, "required"));
    assert_eq!(
        (summed["outcome"].as_str(), missing["outcome"].as_str()),
        (Some("failed"), Some("failed")),
        "{report:#}"
    );
    assert!(missing["findings"][0].as_str().unwrap().contains("writ step run research-quality"), "{missing:#}");
    for told in ["rule", "evidence", "remedy"] {
        assert!(summed[told].is_string() && missing[told].is_string(), "{told}: {summed:#} {missing:#}");
    }
    step(&talk, "research-quality", "exit 0");
    let (code, report) = talk.verify();
    assert_eq!((code, &report["verified"]), (Some(0), &json!(true)), "{report:#}");
    let own = &report["sublayouts"][0];
    assert_eq!(
        (&own["name"], &own["agents"], &own["statements"]),
        (&json!("research"), &json!(2), &json!(2)),
        "{own:#}"
    );
    assert_eq!((&own["used"]["tokensIn"], &own["used"]["toolCalls"]), (&json!(26), &json!(2)), "{own:#}");
    for name in ["policy", "turns", "evaluators", "required", "limits"] {
        assert_eq!(inner(&report, name)["outcome"], "passed", "{name}: {own:#}");
    }
    // Of one whose agents never ran nothing is owed, and nothing said.
    let idle = &report["sublayouts"][1];
    assert_eq!((&idle["agents"], idle["phases"].as_array().unwrap().len()), (&json!(0), 2), "{idle:#}");
    let told = phase(&report, "sublayouts")["findings"].to_string();
    assert!(told.contains("in all, by the statements: 39 tokens in"), "{told}");
    let human = String::from_utf8(talk.place.writ(&["verify", SESSION]).stdout).unwrap();
    assert!(human.contains("\nsublayout research") && human.contains("\nverified"), "{human}");
    // The same in a bundle, which tells of no other machine's folder.
    let bundle = talk.place.folder.join("run.tar");
    assert!(talk.place.writ(&["export", SESSION, "-o", bundle.to_str().unwrap(), "--transcripts"]).status.success());
    let key = talk.place.session().join("ledger.pub");
    let args = ["verify", bundle.to_str().unwrap(), "--trust", key.to_str().unwrap(), "--format", "json"];
    let mut elsewhere = talk.place.command(&args);
    let output = elsewhere.env("WRIT_STATE_DIR", talk.place.folder.join("auditor")).output().unwrap();
    let there: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &there["sublayouts"]), (Some(0), &report["sublayouts"]), "{there:#}");
}

#[test]
fn what_a_sublayout_wants_and_does_not_have_breaks_its_parents_report() {
    let deny = "package p\nimport rego.v1\ndeny contains msg if { some t in input.attestationsFrom[\"turn-*\"]; msg := sprintf(\"%v\", [t.predicate.agent.type]) }";
    let post = |most: u64| json!({"limits": {"maxTokensIn": {"value": most, "enforcement": "post-hoc"}}});
    let loose = post(1000);
    for (name, worker, root, failing, told) in [
        (
            "rule",
            json!({"attestationsFrom": ["turn-*"], "evaluators": {"rego": [{"name": "none", "policy": deny}]}}),
            json!({}),
            "evaluators",
            "research",
        ),
        ("limit", post(20), loose.clone(), "limits", "26 of 20"),
        ("step", json!({"requiredAttestations": ["x"]}), json!({}), "required", "`research-x`"),
    ] {
        let (code, report) = session(&format!("sub-{name}"), &worker, &root).verify();
        assert_eq!((code, report["status"].as_str()), (Some(3), Some("breached")), "{name}: {report:#}");
        let found = inner(&report, failing);
        assert_eq!(found["outcome"], "failed", "{name}: {report:#}");
        assert!(found.to_string().contains(told), "{name}: {found:#}");
        assert_eq!(phase(&report, "sublayouts")["outcome"], "failed", "{name}");
    }
    // Sub-agents' use counts for the parent: 13 of its own, and 26 of theirs.
    let (code, report) = session("sub-total", &json!({}), &post(30)).verify();
    let (summed, limits) = (phase(&report, "sublayouts"), phase(&report, "limits"));
    assert_eq!((code, report["status"].as_str()), (Some(3), Some("breached")), "{report:#}");
    assert_eq!(
        (summed["outcome"].as_str(), limits["outcome"].as_str()),
        (Some("failed"), Some("failed")),
        "{report:#}"
    );
    assert!(summed.to_string().contains("in all: ") && summed.to_string().contains("39 of 30"), "{summed:#}");
    let (code, report) = session("sub-total-good", &json!({}), &post(40)).verify();
    assert_eq!((code, phase(&report, "sublayouts")["outcome"].as_str()), (Some(0), Some("passed")), "{report:#}");
}

/// A parent's wishes are its children's: what a base policy requires is asked of whoever extends it.
#[test]
fn what_a_base_policy_wants_is_asked_of_whoever_extends_it() {
    let talk = Talk::with_files(
        "sub-base",
        &json!({"extends": "./base.aflock"}),
        &[(
            "base.aflock",
            r#"{"version":"1.0","name":"base","requiredAttestations":["audit"],"expires":"2099-01-01T00:00:00Z"}"#,
        )],
    );
    talk.turn(1);
    let (code, report) = talk.verify();
    let required = phase(&report, "required");
    assert_eq!((code, required["outcome"].as_str()), (Some(3), Some("failed")), "{report:#}");
    assert!(required["findings"][0].as_str().unwrap().contains("`audit`"), "{required:#}");
    step(&talk, "audit", "exit 0");
    let (code, report) = talk.verify();
    assert_eq!((code, phase(&report, "required")["outcome"].as_str()), (Some(0), Some("passed")), "{report:#}");
}

#[test]
fn a_sublayouts_policy_and_its_agents_names_are_the_recorded_ones() {
    let talk = session("sub-changed", &json!({}), &json!({}));
    let (code, report) = talk.verify();
    assert_eq!((code, inner(&report, "policy")["outcome"].as_str()), (Some(0), Some("passed")), "{report:#}");
    let policies = talk.place.session().join("policies");
    let files = fs::read_dir(&policies).unwrap().map(|entry| entry.unwrap().path());
    let kept = files.into_iter().find(|path| {
        let policy: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        policy["name"] == "worker"
    });
    let kept = kept.unwrap();
    let text = fs::read_to_string(&kept).unwrap();
    fs::write(&kept, text.replace("worker", "walker")).unwrap();
    let (code, report) = talk.verify();
    assert_eq!((code, report["status"].as_str()), (Some(3), Some("broken")), "{report:#}");
    assert_eq!(inner(&report, "policy")["outcome"], "failed", "{report:#}");
    fs::write(&kept, text).unwrap();
    // A statement under a name that its agent's cannot have, and one that is gone.
    let (from, to) = (talk.kept().join("research-turn-1.json"), talk.kept().join("turn-9.json"));
    fs::rename(&from, &to).unwrap();
    talk.fails("turns", "under another name");
    fs::rename(&to, &from).unwrap();
    talk.passes();
}
