//! From an attested verdict to a decision, to what came of it, and to the verification of all three.

#[cfg(test)]
#[expect(dead_code, reason = "these tests bring a policy of their own")]
mod workplace;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use workplace::{SESSION, Workplace};
use writ_core::json::Value;
use writ_evidence::row::{Draft, Row};

/// Stands for Terraform, which cannot be installed everywhere: shows a plan file as the document that lies beside it.
const TERRAFORM: &str = "#!/bin/sh\nexec cat \"$3.json\"\n";
const CREATES: &str = r#"{"format_version":"1.2","terraform_version":"1.9.0","resource_changes":[{"address":"aws_sqs_queue.q","mode":"managed","type":"aws_sqs_queue","name":"q","provider_name":"registry.terraform.io/hashicorp/aws","change":{"actions":["create"],"before":null,"after":{},"after_unknown":{}}}]}"#;

/// A workplace whose policy lets only attested plans be applied.
fn workplace(name: &str, consequences: &str) -> Workplace {
    let place = Workplace::new(name);
    let policy = format!(r#"{{"version":"1.0","name":"verdicts","consequences":{consequences}}}"#);
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    place.start();
    place
}

fn plan(place: &Workplace, name: &str, document: &str) -> PathBuf {
    let bin = place.folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("terraform"), TERRAFORM).unwrap();
    fs::set_permissions(bin.join("terraform"), fs::Permissions::from_mode(0o755)).unwrap();
    let file = place.folder.join("repository").join(name);
    fs::write(&file, format!("PK\u{3}\u{4} the plan file {name}")).unwrap();
    fs::write(file.with_extension("json"), document).unwrap();
    file
}

/// Has a plan file attested, as a human would from a terminal of their own.
fn attest(place: &Workplace, plan: &str, more: &[&str]) -> i32 {
    let path = format!("{}:/usr/bin:/bin", place.folder.join("bin").display());
    let mut command = place.command(&["evaluate", "terraform", plan, "--attest"]);
    let output = command.args(more).env("PATH", path).output().unwrap();
    output.status.code().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn bash(place: &Workplace, id: &str, line: &str) -> String {
    let input = serde_json::json!({ "command": line });
    let members = format!(r#","tool_name":"Bash","tool_input":{input},"tool_use_id":"{id}""#);
    place.answer(&place.payload("PreToolUse", &members))
}

fn denied(answer: &str) -> bool {
    answer.contains(r#""permissionDecision":"deny""#)
}

/// Verifies what a stop has sealed.
fn verified(place: &Workplace) -> (bool, String) {
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    checked(place)
}

/// Verifies the record as it stands.
fn checked(place: &Workplace) -> (bool, String) {
    let output = place.writ(&["verify", SESSION]);
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A human's word on the only call that waits, given at a terminal.
fn approve(place: &Workplace) {
    let waiting = String::from_utf8(place.writ(&["approve"]).stdout).unwrap();
    let call = waiting.split_whitespace().next().unwrap();
    let writ = place.command(&["approve", call]);
    let line = format!("{} approve {call}", writ.get_program().display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).current_dir(place.folder.join("repository"));
    terminal.env_clear().env("PATH", "/usr/bin:/bin");
    terminal.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = terminal.output().expect("this test needs script(1)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The active key got out.
fn compromise(place: &Workplace) {
    let keys = String::from_utf8(place.writ(&["keys", "list"]).stdout).unwrap();
    let id = keys.lines().find_map(|line| line.strip_prefix("attests")?.split_whitespace().next()).unwrap().to_owned();
    assert!(place.writ(&["keys", "compromise", &id]).status.success());
}

#[test]
fn only_the_plan_that_was_attested_is_applied() {
    let place = workplace("bound", r#"{"attestedApply":3}"#);
    let file = plan(&place, "tfplan", CREATES);
    let refused = bash(&place, "1", "terraform apply tfplan");
    assert!(denied(&refused) && refused.contains("attestedApply"), "{refused}");
    assert_eq!(attest(&place, "tfplan", &[]), 0);
    for (id, line) in [("2", "terraform apply tfplan"), ("3", "cd . && sudo tofu apply -auto-approve ./tfplan")] {
        let answer = bash(&place, id, line);
        assert!(!denied(&answer), "{line}: {answer}");
    }
    for line in [
        "terraform apply",
        "terraform apply $PLAN",
        "terraform destroy",
        "terra''form apply",
        "tofu '' apply -auto-approve",
    ] {
        assert!(denied(&bash(&place, "4", line)), "{line}");
    }
    let exchanged = bash(&place, "4a", "cp evil tfplan && terraform apply tfplan");
    assert!(denied(&exchanged) && exchanged.contains("a line of its own"), "{exchanged}");
    let (good, text) = verified(&place);
    assert!(good && text.contains("verdicts"), "{text}");

    let attestation = place.folder.join("repository/tfplan.attestation.json");
    let genuine = fs::read_to_string(&attestation).unwrap();
    fs::write(&attestation, genuine.replace("\"totalMutations\":1", "\"totalMutations\":0")).unwrap();
    assert!(denied(&bash(&place, "5", "terraform apply tfplan")), "an attestation that was edited");
    fs::write(&attestation, &genuine).unwrap();
    assert!(!denied(&bash(&place, "6", "terraform apply tfplan")));
    fs::write(&file, "PK\u{3}\u{4} another plan").unwrap();
    assert!(denied(&bash(&place, "7", "terraform apply tfplan")), "a plan file that was swapped");
}

#[test]
fn a_verdict_ends_and_a_bad_one_never_counts() {
    let place = workplace("ended", r#"{"attestedApply":3}"#);
    plan(&place, "short", CREATES);
    assert_eq!(attest(&place, "short", &["--expires", "1s"]), 0);
    std::thread::sleep(Duration::from_millis(1100));
    let answer = bash(&place, "1", "terraform apply short");
    assert!(denied(&answer) && answer.contains("ended"), "{answer}");

    let deletes = CREATES.replace(r#"["create"]"#, r#"["delete"]"#).replace("aws_sqs_queue", "aws_s3_bucket");
    plan(&place, "bad", &deletes);
    assert_eq!(attest(&place, "bad", &[]), 3);
    let answer = bash(&place, "2", "terraform apply bad");
    assert!(denied(&answer) && answer.contains("tier 4"), "{answer}");

    plan(&place, "good", CREATES);
    assert_eq!(attest(&place, "good", &[]), 0);
    assert!(!denied(&bash(&place, "3", "terraform apply good")));
    compromise(&place);
    assert!(denied(&bash(&place, "4", "terraform apply good")), "a compromised key's verdict");
}

#[test]
fn an_agent_cannot_have_its_own_plan_attested() {
    let place = workplace("own", r#"{"attestedApply":3}"#);
    plan(&place, "tfplan", CREATES);
    let path = format!("{}:/usr/bin:/bin", place.folder.join("bin").display());
    let mut command = place.command(&["evaluate", "terraform", "tfplan", "--attest"]);
    let output = command.env("PATH", path).env("CLAUDECODE", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!place.folder.join("repository/tfplan.attestation.json").exists());
    let hidden = "CLAUDECODE= PATH=/tmp/bin setsid -f writ evaluate terraform tfplan --attest";
    assert!(denied(&bash(&place, "1", hidden)));
}

#[test]
fn evaluation_decision_and_execution_are_one_chain() {
    let place = workplace("chain", r#"{"ask":3,"deny":4,"attest":true}"#);
    assert!(!denied(&bash(&place, "1", "ls -la")));
    assert!(denied(&bash(&place, "2", "rm -rf /")));
    let asked = bash(&place, "3", "git push --force");
    assert!(asked.contains(r#""permissionDecision":"ask""#), "{asked}");
    let done =
        r#","tool_name":"Bash","tool_input":{"command":"ls -la"},"tool_response":{"stdout":""},"tool_use_id":"1""#;
    place.answer(&place.payload("PostToolUse", done));
    approve(&place);
    assert!(!denied(&bash(&place, "4", "git push --force")));
    let (good, text) = verified(&place);
    assert!(good && text.contains("verdicts"), "{text}");
    let full = String::from_utf8(place.writ(&["verify", SESSION, "--format", "json"]).stdout).unwrap();
    for part in
        ["verdict allow", "APPROVED, ran", "verdict block", "DENIED", "verdict warn", "ASKED", "approval of Bash"]
    {
        assert!(full.contains(part), "{part}: {full}");
    }
    let folder = place.session().join("attestations");
    let kept: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 5);
    for kept in &kept {
        let text = fs::read_to_string(kept).unwrap();
        let changed = text.replacen(r#""session":"workplace""#, r#""session":"workplacf""#, 1);
        assert_ne!(changed, text, "{}", kept.display());
        fs::write(kept, changed).unwrap();
        assert!(!verified(&place).0, "a kept attestation that was changed: {text}");
        fs::write(kept, &text).unwrap();
    }
    assert!(verified(&place).0);
    fs::rename(&kept[1], folder.join("elsewhere")).unwrap();
    assert!(!verified(&place).0, "a kept attestation that is gone");
    fs::rename(folder.join("elsewhere"), &kept[1]).unwrap();
    assert!(verified(&place).0);
    let database = place.folder.join("state/attestations.db");
    let bytes = fs::read(&database).unwrap();
    fs::write(&database, "no database").unwrap();
    let (good, text) = verified(&place);
    assert!(!good && text.contains("instance cannot be asked"), "what may know of a key that got out: {text}");
    fs::write(&database, bytes).unwrap();
    assert!(verified(&place).0);
    compromise(&place);
    let (good, text) = verified(&place);
    assert!(!good && text.contains("compromised"), "what a key signed before it got out: {text}");
}

#[test]
fn a_verdict_that_the_policy_wants_and_no_row_names() {
    let place = workplace("dropped", r#"{"attest":true}"#);
    assert!(!denied(&bash(&place, "1", "ls")));
    let (_, text) = checked(&place);
    assert!(text.contains("unsigned") && !text.contains('✗'), "{text}");
    // Rows that no checkpoint covers can be chained anew; what they say must still fit together.
    let ledger = place.session().join("ledger.jsonl");
    let (rows, _) = Row::parse_all(&fs::read(&ledger).unwrap());
    let mut rechained: Vec<Row> = Vec::new();
    for row in rows {
        let Value::Object(detail) = row.detail else { panic!("{row:?}") };
        let detail = detail.into_iter().filter(|(name, _)| name != "attestation").collect();
        let draft = Draft {
            timestamp: row.timestamp,
            call_id: row.call_id,
            tool_name: row.tool_name,
            decision: row.decision,
            denial_reason: row.denial_reason,
            result_hash: row.result_hash,
            detail: Value::Object(detail),
        };
        rechained.push(Row::seal(rechained.last(), draft).unwrap());
    }
    fs::write(&ledger, rechained.iter().map(|row| row.to_line() + "\n").collect::<String>()).unwrap();
    let (good, text) = checked(&place);
    assert!(!good && text.contains("it names none"), "{text}");
}

#[test]
fn what_cannot_be_attested_does_not_run() {
    let place = workplace("unsigned", r#"{"attest":true}"#);
    assert!(!denied(&bash(&place, "1", "ls")));
    let keys = place.folder.join("state/keys");
    for entry in fs::read_dir(&keys).unwrap().map(|entry| entry.unwrap().path()) {
        if !entry.ends_with("ledger.pem") {
            fs::remove_file(entry).unwrap();
        }
    }
    let answer = bash(&place, "2", "ls");
    assert!(denied(&answer) && answer.contains("could not be attested"), "{answer}");
    let (good, text) = verified(&place);
    assert!(good, "{text}");
}
