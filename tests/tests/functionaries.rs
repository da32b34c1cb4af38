//! Whose word makes a step good beside Writ's own: a functionary's, of a policy that somebody trusted signed.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod parcel;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parcel::{export, files, key, packed, python, writ};
use serde_json::{Value, json};
use workplace::{SESSION, Workplace};
use writ_evidence::keys::{Algorithm, SigningKey};

const RULE: &str =
    "package p\nimport rego.v1\ndeny contains \"no build\" if count(input.attestationsFrom[\"build\"]) == 0\n";

/// The holders of keys: one signs policies, one steps, and one nobody named.
struct Keys {
    team: SigningKey,
    ci: SigningKey,
    agent: SigningKey,
}

fn keys() -> Keys {
    let new = || SigningKey::generate(Algorithm::Ed25519).unwrap();
    Keys { team: new(), ci: new(), agent: new() }
}

/// A session under a policy that wants `build`, and names these functionaries; `signed` by the team.
fn recorded(name: &str, keys: &Keys, named: &[&SigningKey], signed: bool) -> Workplace {
    let place = Workplace::new(name);
    let id = |key: &&SigningKey| json!({"type": "publickey", "publickeyid": key.public().key_id().to_string()});
    let policy = json!({"version": "1.0", "name": "wants", "files": {"allow": ["src/**"]}, "requiredAttestations": ["build"],
        "functionaries": named.iter().map(id).collect::<Vec<_>>(), "attestationsFrom": ["build"],
        "evaluators": {"rego": [{"name": "built", "policy": RULE}]}});
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    for (name, key) in [("team", &keys.team), ("ci", &keys.ci), ("agent", &keys.agent)] {
        fs::write(place.folder.join(format!("{name}.pub")), key.public().to_pem()).unwrap();
    }
    if signed {
        let pem = place.folder.join("team.pem");
        fs::write(&pem, keys.team.to_pem()).unwrap();
        for args in [
            ["keys", "trust", place.folder.join("team.pub").to_str().unwrap()].as_slice(),
            &["policy", "sign", ".aflock", "--key", pem.to_str().unwrap()],
        ] {
            let output = place.writ(args);
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    place.start();
    place.answer(&place.payload("UserPromptSubmit", r#","prompt":"write""#));
    place.allowed("one");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    place
}

/// Has a link of the step `build`, which this key signs, taken into the record.
fn import(place: &Workplace, name: &str, by: &SigningKey, code: i32) -> (i32, String) {
    let kind = "application/vnd.in-toto+json";
    let link = json!({"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "app", "digest": {"sha256": "00"}}],
        "predicateType": "https://in-toto.io/attestation/link/v0.3", "predicate": {"name": "build", "command": ["make"],
        "materials": [], "environment": {}, "byproducts": {"return-value": code, "started": "2026-01-18T10:30:00.000Z",
        "finished": "2026-01-18T10:30:00.000Z"}}});
    let body = link.to_string().into_bytes();
    let words = [format!("DSSEv1 {} {kind} {} ", kind.len(), body.len()).as_bytes(), &body].concat();
    let sig = BASE64.encode(by.sign(&words).unwrap());
    let envelope = json!({"payloadType": kind, "payload": BASE64.encode(&body), "signatures": [{"sig": sig}]});
    let file = place.folder.join("build.json");
    fs::write(&file, envelope.to_string()).unwrap();
    let key = place.folder.join(format!("{name}.pub"));
    let args = ["attestation", "import", file.to_str().unwrap(), "--key", key.to_str().unwrap(), "--name", "build"];
    let output = place.writ(&args);
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn report(place: &Workplace) -> Value {
    let mut command = place.command(&["verify", SESSION, "--format", "json", "--allow-absent"]);
    serde_json::from_slice(&command.stdin(Stdio::null()).output().unwrap().stdout).unwrap()
}

fn phase<'a>(report: &'a Value, name: &str) -> &'a Value {
    let found = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name);
    found.unwrap_or_else(|| panic!("no phase {name}: {report}"))
}

#[test]
fn a_statement_that_no_functionary_signed_makes_no_step_good() {
    let keys = keys();
    let (both, team) = ([&keys.team, &keys.ci], [&keys.team]);
    for (name, named, signed, by) in [
        ("unsigned", both.as_slice(), false, ("ci", &keys.ci)),
        ("not-named", team.as_slice(), true, ("ci", &keys.ci)),
        ("agents", both.as_slice(), true, ("agent", &keys.agent)),
        ("nobody", [].as_slice(), true, ("ci", &keys.ci)),
    ] {
        let place = recorded(&format!("functionaries-{name}"), &keys, named, signed);
        let (code, said) = import(&place, by.0, by.1, 0);
        assert!(code == 0 && said.contains("functionaries"), "{name}: {said}");
        let report = report(&place);
        assert_eq!(report["status"], "breached", "{name}: {report:#}");
        let found = phase(&report, "required").to_string();
        let id = by.1.public().key_id().to_string();
        assert!(found.contains(&id) && found.contains("no functionary"), "{name}: {found}");
        assert_eq!(phase(&report, "evaluators")["outcome"], "failed", "{name}: {report:#}");
        assert_eq!(phase(&report, "attestations")["outcome"], "passed", "{name}: {report:#}");
    }
}

#[test]
fn a_functionarys_statement_makes_a_step_good_and_what_writ_saw_counts_before_it() {
    let keys = keys();
    let place = recorded("functionaries-good", &keys, &[&keys.team, &keys.ci], true);
    // One who is none does not stand in the way of one who is.
    assert_eq!(import(&place, "ci", &keys.ci, 0).0, 0);
    assert_eq!(import(&place, "agent", &keys.agent, 7).0, 0);
    let good = report(&place);
    let required = phase(&good, "required");
    assert_eq!((&good["status"], &required["outcome"]), (&json!("verified"), &json!("passed")), "{good:#}");
    let said = required.to_string();
    assert!(said.contains("signed by the functionary") && !said.contains("the agent's own word"), "{said}");
    assert_eq!(phase(&good, "evaluators")["outcome"], "passed", "{good:#}");
    let (bundle, key) = (export(&place, "good.tar", &[]), key(&place));
    let (own, other) = (writ(&place, &bundle, &key), python(&bundle, &key));
    assert!(own.1.contains("signed by the functionary") && other.0 == 0, "{} {}", own.1, other.1);
    // It counts for nobody who trusts no signer of the policy, elsewhere or here.
    let last = own.1.lines().find(|line| line.starts_with("verified, except: ")).unwrap_or_else(|| panic!("{}", own.1));
    assert!(own.0 == 3 && last.contains("whom a policy names that nobody you trust signed"), "{last}");
    let team = place.folder.join("team.pub");
    let mut trusts = place.command(&["keys", "trust", team.to_str().unwrap()]);
    assert!(trusts.env("WRIT_STATE_DIR", place.folder.join("auditor")).status().unwrap().success());
    let (_, said) = writ(&place, &bundle, &key);
    assert!(said.contains("✓ required") && !said.contains("nobody you trust"), "{said}");
    let id = keys.team.public().key_id().to_string();
    assert!(place.writ(&["keys", "distrust", &id]).status.success());
    let doubted = report(&place);
    for name in ["required", "evaluators"] {
        assert_eq!(phase(&doubted, name)["outcome"], "absent", "{doubted:#}");
    }
    assert!(place.writ(&["keys", "trust", team.to_str().unwrap()]).status.success());
    // The same bytes under another key in the row are no statement of that one.
    let mut files = files(&bundle);
    let der = |key: &SigningKey| BASE64.encode(key.public().to_der());
    let ledger = String::from_utf8(files["ledger.jsonl"].clone()).unwrap();
    assert!(ledger.contains(&der(&keys.ci)));
    files.insert("ledger.jsonl".to_owned(), ledger.replace(&der(&keys.ci), &der(&keys.agent)).into_bytes());
    let bad = packed(&place, "bad.tar", files);
    assert_eq!((writ(&place, &bad, &key).0, python(&bad, &key).0), (3, 3));
    // A step that ended badly, by their word or as Writ saw it.
    assert_eq!(import(&place, "ci", &keys.ci, 7).0, 0);
    let failed = report(&place);
    assert!(failed["status"] == "breached" && phase(&failed, "required").to_string().contains("ended with 7"));
    // What is on record already is not taken again, of whatever kind: a second row for it would break the record.
    let (code, said) = import(&place, "ci", &keys.ci, 0);
    assert!(code == 1 && said.contains("names it already"), "{code} {said}");
    let turn = place.session().join("attestations/turn-1.json");
    let own = ["attestation", "import", turn.to_str().unwrap(), "--key", key.to_str().unwrap(), "--name", "again"];
    let output = place.writ(&own);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && said.contains("of what Writ sees itself"), "{said}");
    assert_eq!(python(&export(&place, "again.tar", &[]), &key).0, 0);
    let ran = place.command(&["step", "run", "build", "--", "false"]).env("PATH", "/usr/bin:/bin").output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let failed = report(&place);
    assert!(failed["status"] == "breached" && phase(&failed, "required").to_string().contains("ended with 1"));
}
