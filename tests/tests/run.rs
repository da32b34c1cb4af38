//! `writ run`: a whole client, the real one, in one sandbox and one session.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod client;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, client};
use serde_json::{Value, json};

/// Thirty calls: files written, changed and read, lines of a shell that goes from folder to folder.
fn thirty(work: &Path) -> Vec<Vec<Value>> {
    let at = |name: &str| work.join(name).to_string_lossy().into_owned();
    let bash = |line: &str| tool("Bash", json!({ "command": line, "description": "x" }));
    let mut turns: Vec<Vec<Value>> = Vec::new();
    for number in 0..6 {
        let file = at(&format!("part{number}.txt"));
        turns.push(vec![tool("Write", json!({ "file_path": file, "content": format!("part {number}\n") }))]);
        turns.push(vec![tool("Read", json!({ "file_path": file }))]);
        turns.push(vec![tool("Edit", json!({ "file_path": file, "old_string": "part", "new_string": "piece" }))]);
        turns.push(vec![bash(&format!("mkdir -p d{number} && cd d{number} && echo $((6 * 7)) > made && pwd"))]);
        turns.push(vec![bash("cd .. && cat part*.txt | wc -l && export LATER=1 && ls")]);
    }
    assert_eq!(turns.len(), 30);
    turns.push(vec![text("All thirty done.")]);
    turns
}

/// Every file below a folder, by its path from there.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut out, mut rest) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = rest.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => rest.push(path),
                kind if kind.is_file() => {
                    let bytes = fs::read(&path).unwrap();
                    out.push((path.strip_prefix(folder).unwrap().to_owned(), bytes));
                }
                _ => {}
            }
        }
    }
    out.sort();
    out
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// What the client said at its end.
fn result(ran: &Output) -> Value {
    let out = String::from_utf8_lossy(&ran.stdout);
    let last =
        out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).rfind(|line| line["type"] == "result");
    last.unwrap_or_else(|| panic!("{out}{}", String::from_utf8_lossy(&ran.stderr)))
}

#[test]
fn a_client_works_as_without_and_its_record_is_whole() {
    let client = client();
    let session = |name: &str, confined: bool| {
        let mut place = Place::new(name);
        (place.confined, place.allowed) = (confined, "Bash(*)");
        if confined {
            place.writ(&["init", "--client-version", VERSION]);
            let policy =
                json!({"version": "1.0", "name": "run", "files": {"deny": ["**/.env"], "readOnly": ["kept/**"]}});
            fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
        }
        let port = serve(vec![Script { word: "THIRTY:", turns: thirty(&place.work) }]);
        let ran = place.run_client(&client, port, "THIRTY: go", &[("ANTHROPIC_API_KEY", "CANARY-login")]);
        (place, ran)
    };
    let (without, plain) = session("run-without", false);
    let (place, ran) = session("run-thirty", true);
    for member in ["is_error", "num_turns", "result", "subtype"] {
        assert_eq!(result(&plain)[member], result(&ran)[member], "{member}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    assert_eq!(result(&ran)["result"], "All thirty done.");
    let own = |path: &Path| !path.starts_with(".git") && !path.starts_with(".claude") && path != Path::new(".aflock");
    let made = |place: &Place| -> Vec<_> { files(&place.work).into_iter().filter(|(path, _)| own(path)).collect() };
    assert_eq!(made(&without), made(&place));

    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let count = |decision: &str| rows.iter().filter(|row| row["decision"] == decision).count();
    assert_eq!((count("APPROVED"), count("COMPLETED"), count("DENIED")), (31, 30, 0), "the run and its thirty calls");
    let calls = || rows.iter().filter(|row| row["detail"]["event"] == "tool-call");
    assert!(calls().all(|row| row["detail"]["run"].is_string() && row["detail"]["clientSession"].is_string()));
    let report: Value = serde_json::from_slice(&place.writ(&["verify", "--format", "json"]).stdout).unwrap();
    assert_eq!(report["verified"], true, "{report:#}");
    assert!(report["phases"].as_array().unwrap().iter().all(|phase| phase["outcome"] == "passed"), "{report:#}");
    assert!(files(&place.root.join("state")).iter().all(|(_, bytes)| !contains(bytes, "CANARY")), "on no record");
    for place in [without, place] {
        fs::remove_dir_all(&place.root).unwrap();
    }
}

/// What no reading of a line can know is held, and what a later session obeys is not changed.
#[test]
fn a_client_and_its_children_are_held() {
    let client = client();
    let mut place = Place::new("run-held");
    (place.confined, place.allowed) = (true, "Bash(*)");
    place.writ(&["init", "--client-version", VERSION]);
    let policy = json!({"version": "1.0", "name": "run", "enforce": "calls", "files": {"deny": ["**/.env"], "readOnly": ["kept/**"]}});
    let write = |name: &str, text: &str| {
        fs::create_dir_all(place.root.join(name).parent().unwrap()).unwrap();
        fs::write(place.root.join(name), text).unwrap();
    };
    write("work/.aflock", &policy.to_string());
    write("work/.env", "CANARY-file\n");
    write("work/kept/file", "as it was\n");
    write("home/.ssh/id_ed25519", "CANARY-key\n");
    write("config/.credentials.json", "{}\n");
    write("config/statusline.sh", "echo status\n");
    write("config/.claude.json", "{\"mcpServers\":{}}\n");
    write("outside", "as it was\n");
    let bash = |line: &str| vec![tool("Bash", json!({ "command": line, "description": "x" }))];
    let config = place.root.join("config");
    let config = config.display();
    let turns = vec![
        bash("f=.$(echo vne | rev); cat $f; echo one"),
        bash("cat ~/.ssh/id*; cat $HOME/.s*/*; env; echo two"),
        bash("d=$(echo tpek | rev); echo changed > $d/file; echo changed > ../outside; echo three"),
        bash(&format!(
            "c={config}; for n in settings.json skills/x statusline.sh CLAUDE.md; do n=$n; echo x > $c/$n; done; echo four"
        )),
        bash(&format!(
            "j=nosj; echo '{{\"mcpServers\":{{\"x\":{{\"command\":\"CANARY\"}}}}}}' > {config}/.claude.$(echo $j | rev); echo five"
        )),
        bash("echo '{}' | writ hook; writ approve x; echo six"),
        vec![text("Done.")],
    ];
    let port = serve(vec![Script { word: "HELD:", turns }]);
    let ran = place.run_client(&client, port, "HELD: go", &[("OTHER_TOKEN", "CANARY-variable")]);
    assert_eq!(result(&ran)["result"], "Done.");
    let all = |folder: &str| files(&place.root.join(folder));
    let transcripts: Vec<_> = all("config").into_iter().filter(|(path, _)| path.starts_with("projects")).collect();
    for said in ["one", "two", "three", "four"] {
        assert!(transcripts.iter().any(|(_, bytes)| contains(bytes, said)), "{said}");
    }
    for secret in ["CANARY-file", "CANARY-key", "CANARY-variable"] {
        assert!(transcripts.iter().all(|(_, bytes)| !contains(bytes, secret)), "{secret}");
    }
    assert!(all("state").iter().all(|(_, bytes)| !contains(bytes, "CANARY")), "on no record");
    let read = |name: &str| fs::read_to_string(place.root.join(name)).unwrap_or_default();
    assert_eq!((read("work/kept/file"), read("outside")), ("as it was\n".to_owned(), "as it was\n".to_owned()));
    assert_eq!(read("config/statusline.sh"), "echo status\n");
    assert_eq!(read("config/.claude.json"), "{\"mcpServers\":{}}\n");
    for name in ["settings.json", "skills", "CLAUDE.md"] {
        assert!(place.root.join("config").join(name).symlink_metadata().is_err(), "{name}");
    }
    assert!(fs::read_dir(place.root.join("state/runs")).unwrap().count() == 1, "only the lock of all runs is left");
    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let asked = rows.as_array().unwrap().iter().filter(|row| row["decision"] == "ASKED").count();
    assert_eq!(asked, 0, "what the kernel holds needs no question");
    let report = place.command(&client::binary()).args(["verify", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["verified"], true, "{report:#}");
    fs::remove_dir_all(&place.root).unwrap();
}

/// Where the policy names its files, the client still reads where its hooks are; one that has none is told of.
#[test]
fn a_client_that_asks_no_hook_is_no_record() {
    let client = client().canonicalize().unwrap();
    let mut place = Place::new("run-named");
    (place.confined, place.allowed, place.servers) = (true, "Bash(*)", Value::Null);
    let policy = json!({"version": "1.0", "name": "named", "files": {"allow": ["src/**"]}});
    fs::create_dir(place.work.join("src")).unwrap();
    fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
    let turns = || {
        vec![vec![tool("Bash", json!({ "command": "echo x > src/made; ls", "description": "x" }))], vec![text("Done.")]]
    };
    let session = || {
        let port = serve(vec![Script { word: "NAMED:", turns: turns() }]);
        let ran = place.run_client(&client, port, "NAMED: go", &[]);
        assert_eq!(result(&ran)["result"], "Done.");
        let report = place.command(&client::binary()).args(["verify", "--format", "json"]).output().unwrap();
        let told = String::from_utf8(ran.stderr).unwrap();
        (serde_json::from_slice::<Value>(&report.stdout).unwrap(), told)
    };
    let (report, told) = session();
    assert!(told.contains("hooks are not installed"), "{told}");
    assert_eq!((&report["verified"], &report["status"]), (&json!(false), &json!("verified")), "{report:#}");
    assert!(report["except"][0].as_str().unwrap().contains("never asked a hook"), "{report:#}");
    place.writ(&["init", "--client-version", VERSION]);
    let (report, told) = session();
    assert_eq!(report["verified"], true, "{told} {report:#}");
    assert!(
        report["phases"]
            .as_array()
            .unwrap()
            .iter()
            .any(|phase| phase["summary"].as_str().unwrap().contains("all 1 calls"))
    );
    fs::remove_dir_all(&place.root).unwrap();
}
