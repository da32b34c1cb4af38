//! The real Claude Code client, whose call waits until a human lets it run from another terminal.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod client;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, binary, client};

fn bash(line: &str) -> Vec<Value> {
    vec![tool("Bash", json!({ "command": line, "description": "work" }))]
}

/// `writ` with these words at a terminal of its own.
fn human(place: &Place, words: &str) -> String {
    let writ = place.command(&binary());
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{} {words}", binary().display()), "/dev/null"]).current_dir("/").env_clear();
    script.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    String::from_utf8_lossy(&script.stdin(Stdio::null()).output().unwrap().stdout).into_owned()
}

/// The first call that waits, once one does.
fn waiting(place: &Place) -> Value {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        let output = place.command(&binary()).args(["approvals", "--format", "json"]).output().unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if let Some(first) = listed.get(0) {
            return first.clone();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("nothing waited");
}

#[test]
fn a_human_at_another_terminal_lets_the_client_go_on() {
    let client = client();
    let mut place = Place::new("real-approvals");
    place.allowed = "Bash(echo *),Bash(sh *)";
    place.writ(&["init", "--client-version", VERSION]);
    let policy = json!({"version": "1.0", "name": "ask", "tools": {"requireApproval": ["Bash:echo release*"]}});
    fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
    fs::write(
        place.work.join("wait.sh"),
        "for i in $(seq 600); do [ -e approved ] && exit 0; sleep 0.1; done; exit 1\n",
    )
    .unwrap();
    let turns = vec![
        bash("echo release >> said.txt"),
        // The client goes on with other work until a human has spoken.
        bash("sh wait.sh"),
        bash("echo release >> said.txt"),
        bash("echo release >> said.txt"),
        vec![text("All done.")],
    ];
    let port = serve(vec![Script { word: "RELEASE:", turns }]);
    let ran = std::thread::scope(|scope| {
        let ran = scope.spawn(|| place.run_client(&client, port, "RELEASE: do it", &[]));
        let call = waiting(&place);
        assert_eq!((&call["tool"], &call["programs"]), (&"Bash".into(), &json!(["echo"])));
        assert!(!place.work.join("said.txt").exists(), "it waits");
        let told = human(&place, &format!("approve {}", call["id"].as_str().unwrap()));
        assert!(told.contains("may run once"), "{told}");
        fs::write(place.work.join("approved"), "").unwrap();
        ran.join().unwrap()
    });
    let output = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(fs::read_to_string(place.work.join("said.txt")).unwrap_or_default(), "release\n", "{output}");
    assert!(output.contains("writ approve "), "the client was told how: {output}");
    let shown = place.writ(&["session", "show", "--format", "json"]);
    let rows: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let of = |decision: &str| rows.as_array().unwrap().iter().filter(|row| row["decision"] == decision).count();
    assert_eq!((of("ASKED"), of("APPROVED"), of("COMPLETED")), (2, 2, 2), "{rows}");
    let verified = place.command(&binary()).args(["verify", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    let phase = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "approvals").unwrap();
    assert_eq!(phase["outcome"], "passed", "{report}");
    fs::remove_dir_all(&place.root).unwrap();
}
