//! `writ conformance`, and decisions of Agentfiles that are on record.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;

use serde_json::Value;
use workplace::Workplace;

#[test]
fn every_profile_holds() {
    let place = Workplace::new("conformance");
    let ran = place.writ(&["conformance", "--format", "json"]);
    let told: Value = serde_json::from_slice(&ran.stdout).unwrap();
    for profile in told.as_array().unwrap() {
        assert_eq!(profile["held"], true, "{profile:#}");
        assert!(profile["cases"].as_u64().unwrap() > 10, "{profile:#}");
    }
    assert_eq!((ran.status.code(), told.as_array().unwrap().len()), (Some(0), 4));
    let people = String::from_utf8(place.writ(&["conformance"]).stdout).unwrap();
    assert!(people.contains("OCI Package") && people.contains("Tool Projection") && people.contains("of"), "{people}");
}

const AGENTFILE: &str =
    "AGENT a\nCMD true\nAUDIT all\nTOOL utcp:read\nTOOL utcp:shell\nALLOW invoke read\nDENY invoke shell\n";

#[test]
fn decisions_are_on_record_unless_that_is_not_wanted() {
    let place = Workplace::new("decisions");
    let file = place.folder.join("repository/Agentfile");
    fs::write(&file, AGENTFILE).unwrap();
    let sessions = || fs::read_dir(place.folder.join("state/sessions")).map_or(0, Iterator::count);
    let one = ["agentfile", "decide", "--action", "tool.invoke", "--resource", "read"];
    let ran = place.writ(&[&one[..], &["--no-record"]].concat());
    assert_eq!((ran.status.code(), sessions()), (Some(0), 0), "{}", String::from_utf8_lossy(&ran.stderr));
    let ran = place.writ(&one);
    let told = String::from_utf8(ran.stderr).unwrap();
    let id = told.split_whitespace().last().unwrap().to_owned();
    assert!(ran.status.success() && id.starts_with("decisions-"), "{told}");
    // Many at once, into the same session: answered in order, an answer a line.
    let mut child = place.command(&["agentfile", "decide", "--session", &id]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for at in 0..50 {
        let tool = if at % 2 == 0 { "read" } else { "shell" };
        let context = r#"{"path":"/w/c4n4ry"}"#;
        writeln!(stdin, r#"{{"action":"tool.invoke","resource":"{tool}","context":{context}}}"#).unwrap();
    }
    drop(stdin);
    let ran = child.wait_with_output().unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    let answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ran.status.code(), answers.len()), (Some(3), 50), "{out}");
    assert!(answers.iter().enumerate().all(|(at, answer)| answer["decision"] == ["allow", "deny"][at % 2]));
    let shown = place.writ(&["session", "show", &id, "--format", "json"]);
    let rows: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let rows: Vec<&Value> =
        rows.as_array().unwrap().iter().filter(|row| row["detail"]["event"] == "request-decided").collect();
    assert_eq!(rows.len(), 51);
    assert_eq!(
        (&rows[2]["detail"]["decision"], &rows[2]["detail"]["rules"][0]),
        (&"deny".into(), &"Agentfile:7".into())
    );
    let ledger = fs::read_to_string(place.folder.join("state/sessions").join(&id).join("ledger.jsonl")).unwrap();
    assert!(!ledger.contains("c4n4ry"));
    // The record holds; it is not said that its requests were decided again.
    let verified = place.writ(&["verify", &id, "--allow-absent"]);
    let told = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.status.success() && told.contains("except: 51 requests were not decided again"), "{told}");
    assert_eq!(place.writ(&["verify", &id]).status.code(), Some(3));
    // Another Agentfile's decisions do not go there, nor does anything into a session of something else.
    fs::write(&file, AGENTFILE.replace("DENY invoke shell", "ALLOW invoke shell")).unwrap();
    let other = place.writ(&[&one[..], &["--session", &id]].concat());
    assert!(other.status.code() == Some(1) && String::from_utf8_lossy(&other.stderr).contains("something else"));
    // Nobody who names no session means it.
    assert!(!place.writ(&["verify"]).status.success());
}
