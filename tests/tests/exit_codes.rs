//! What commands end with and say where a policy leads to another that cannot be had, is another, or is looser; where a limit is elsewhere;
//! and where a file lies among statements that nobody recorded.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "these sessions need less of it")]
mod workplace;

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use workplace::{SESSION, Workplace};

fn place(name: &str, policy: &Value) -> Workplace {
    let place = Workplace::new(name);
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    place
}

fn said(place: &Workplace, args: &[&str]) -> (i32, String) {
    let output = place.command(args).env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_policy_that_leads_to_another() {
    let explore = |policy: &Value| json!({"version": "1.0", "name": "root", "limits": {"maxToolCalls": 5}, "sublayouts": [policy]});
    let pinned =
        explore(&json!({"name": "Explore", "policy": "child.aflock", "policyDigest": {"sha256": "a".repeat(64)}}));
    let text = json!({"version": "1.0", "name": "child", "limits": {"maxToolCalls": 9}}).to_string();
    let looser = explore(&json!({"name": "Explore", "policy": text}));
    let away = json!({"version": "1.0", "name": "root", "extends": "https://127.0.0.1:9/base.aflock"});
    for (name, policy, command, code, words) in [
        ("pinned", &pinned, "check", 3, "is not the file that is pinned"),
        ("looser", &looser, "check", 4, "(/sublayouts/0/policy) [looser-limit]"),
        ("away", &away, "lock", 1, "https://127.0.0.1:9/base.aflock"),
    ] {
        let place = place(&format!("codes-{name}"), policy);
        fs::write(place.folder.join("repository/child.aflock"), r#"{"version":"1.0","name":"child"}"#).unwrap();
        let (ended, text) = said(&place, &["policy", command]);
        assert!(
            ended == code && text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words),
            "{name}: {ended} {text}"
        );
    }
}

#[test]
fn a_session_under_an_invalid_policy_is_told_at_its_start() {
    let place = place("codes-invalid", &json!({"version": "1.0", "name": "x", "tols": 1}));
    let told = place.answer(&place.payload("SessionStart", r#","source":"startup""#));
    assert!(told.contains("unknown field `tols`") && told.contains("every call is denied"), "{told}");
}

#[test]
fn a_file_that_no_row_names_is_no_statement() {
    let place = place("codes-stray", &json!({"version": "1.0", "name": "x"}));
    place.start();
    place.allowed("one");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let phase = || {
        let (code, report) = said(&place, &["verify", SESSION, "--format", "json"]);
        let report: Value = serde_json::from_str(&report).unwrap();
        let phase = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "attestations").cloned();
        (code, phase)
    };
    assert_eq!(phase(), (0, None));
    fs::create_dir_all(place.session().join("statements")).unwrap();
    fs::write(place.session().join("statements/added.json"), "{}").unwrap();
    let (code, found) = phase();
    let found = found.unwrap();
    assert!(code == 3 && found["outcome"] == "absent", "{found:#}");
    assert_eq!(found["findings"], json!(["statements/added.json"]));
}
