//! The real client at everyday work: the same thirty calls without Writ, under `"enforce": "calls"`, and under `writ run`.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod client;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use client::mock::{Script, serve, text, tool};
use client::{Place, VERSION, client};
use serde_json::{Value, json};

/// What is in a variable and in a file that is denied.
const SECRETS: [&str; 2] = ["CANARY-variable", "CANARY-file"];

/// Edits, reads, and lines of a shell that go from folder to folder, fail, are ended, and go on in the background.
fn thirty(work: &Path) -> Vec<Vec<Value>> {
    let at = |name: &str| work.join(name).to_string_lossy().into_owned();
    let bash = |line: &str| vec![tool("Bash", json!({ "command": line, "description": "x" }))];
    let mut turns = vec![
        vec![tool("Write", json!({ "file_path": at("notes.txt"), "content": "one\ntwo\n" }))],
        vec![tool("Read", json!({ "file_path": at("notes.txt") }))],
        vec![tool("Edit", json!({ "file_path": at("notes.txt"), "old_string": "two", "new_string": "three" }))],
    ];
    turns.extend(
        [
            "mkdir -p src/deep && cd src && pwd",
            "pwd; cd deep",
            "cd ../..; pwd; ls *.txt",
            "export LATER=1; echo ${LATER}",
            "echo later ${LATER:-gone}; later=2",
            "exit 3",
            "echo out; echo error >&2; false",
            "false | true; echo ${PIPESTATUS[*]}",
            "kill -TERM $$",
            "seq 9 | tac | head -2 | xargs echo",
            "nosuchprogram --help",
            "cat <<'END' > here.txt\nit's \"quoted\" $HOME `x`\nEND\ncat here.txt",
            "f() { echo in $1; }; f function; shopt -s nullglob; echo *.none; set -o pipefail; false | cat",
            "git add notes.txt hello.txt && git -c user.name=a -c user.email=a@b.example commit -qm one && git log --format=%s",
            "echo four >> notes.txt; git diff --stat; git status --short -- notes.txt",
            "git checkout -q -- notes.txt && cat notes.txt | wc -l",
            "node -e 'setTimeout(() => { console.log(\"node\"); process.exit(4); }, 20)'",
            "(sleep 0.2; echo left > left.txt) & echo started",
            "until [ -s left.txt ]; do sleep 0.05; done; cat left.txt",
            "trap 'echo trapped' EXIT; echo before",
            "printf 'a\\tb\\\\n%s\\n' \"$(printf 'x\\ny')\"; echo -e '\\u00e4'",
        ]
        .map(bash),
    );
    let timed = |line: &str| tool("Bash", json!({ "command": line, "description": "x", "timeout": 1500 }));
    // The client ends the first when its time is up, and lets the second go on behind.
    turns.push(vec![timed("sleep 1; sleep 20")]);
    turns.push(vec![timed("python3 -c 'import time; time.sleep(4)'; echo late")]);
    turns.push(vec![tool(
        "Bash",
        json!({ "command": "sleep 0.3; echo behind", "description": "x", "run_in_background": true }),
    )]);
    turns.push(vec![tool("Read", json!({ "file_path": at("hello.txt") }))]);
    turns.push(vec![tool("Edit", json!({ "file_path": at("hello.txt"), "old_string": "world", "new_string": "all" }))]);
    turns.push(bash("cat hello.txt; rm -r src here.txt left.txt; ls *.txt"));
    assert_eq!(turns.len(), 30);
    turns.push(vec![text("All thirty done.")]);
    turns
}

/// Every file below a folder, by its path from there.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut out, mut rest) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = rest.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                rest.push(path);
            } else if kind.is_file() {
                let bytes = fs::read(&path).unwrap();
                out.push((path.strip_prefix(folder).unwrap().to_owned(), bytes));
            }
        }
    }
    out.sort();
    out
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

enum How {
    Plain,
    Hooks,
    Run,
}

/// A session's place, and what its client wrote.
fn session(name: &str, how: &How, policy: &Value, turns: impl Fn(&Path) -> Vec<Vec<Value>>) -> (Place, Output) {
    let mut place = Place::new(name);
    (place.confined, place.allowed) = (matches!(how, How::Run), "Bash(*)");
    fs::write(place.work.join(".env"), "KEY=CANARY-file\n").unwrap();
    if !matches!(how, How::Plain) {
        place.writ(&["init", "--client-version", VERSION]);
        fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
    }
    let port = serve(vec![Script { word: "THIRTY:", turns: turns(&place.work) }]);
    if policy["domains"].is_object() {
        let mut policy = policy.clone();
        policy["enforce"] = json!({"calls": true, "network": {"loopback": [port]}});
        fs::write(place.work.join(".aflock"), policy.to_string()).unwrap();
    }
    let ran = place.run_client(&client(), port, "THIRTY: go", &[("OTHER_TOKEN", "CANARY-variable")]);
    (place, ran)
}

/// What the client said, line by line.
fn said(ran: &Output) -> Vec<Value> {
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The results of the calls as the model has them, without what differs from place to place.
fn results(place: &Place, ran: &Output) -> Vec<String> {
    let root = place.root.to_string_lossy().into_owned();
    let said = said(ran);
    let blocks =
        said.iter().filter(|line| line["type"] == "user").flat_map(|line| line["message"]["content"].as_array());
    let results = blocks.flatten().filter(|block| block["type"] == "tool_result");
    let text = |block: &Value| {
        let words = block["content"].to_string().replace(&root, "ROOT");
        // A task in the background has a name and a file of its own.
        let words = match (words.split_once("ID: "), words.split_once("/tasks/")) {
            (Some((before, _)), Some(_)) => before.to_owned(),
            _ => words,
        };
        format!("{} {words}", block["is_error"] == true)
    };
    results.map(text).collect()
}

fn result(ran: &Output) -> Value {
    let last = said(ran).into_iter().rfind(|line| line["type"] == "result");
    last.unwrap_or_else(|| panic!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)))
}

/// The record is complete and verified, and the secrets are nowhere.
fn is_whole(place: &Place, ran: &Output, calls: usize) {
    let report: Value = serde_json::from_slice(
        &place.command(&client::binary()).args(["verify", "--format", "json"]).output().unwrap().stdout,
    )
    .unwrap();
    assert_eq!(report["verified"], true, "{report:#}");
    assert!(report["phases"].as_array().unwrap().iter().all(|phase| phase["outcome"] == "passed"), "{report:#}");
    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let called = |row: &&Value| row["detail"]["event"] == "tool-call";
    let count = |decision: &str| rows.iter().filter(called).filter(|row| row["decision"] == decision).count();
    assert_eq!((count("APPROVED"), count("ASKED"), count("DENIED")), (calls, 0, 0), "{rows:#?}");
    for secret in SECRETS {
        assert!(!contains(&ran.stdout, secret) && !contains(&ran.stderr, secret), "{secret} was told");
        let env = place.work.join(".env");
        let holds = files(&place.root)
            .into_iter()
            .filter(|(path, bytes)| place.root.join(path) != env && contains(bytes, secret));
        let holds: Vec<PathBuf> = holds.map(|(path, _)| path).collect();
        assert_eq!(holds, Vec::<PathBuf>::new(), "{secret}");
    }
}

#[test]
fn thirty_calls_end_as_without_writ() {
    let policy = json!({"version": "1.0", "name": "held", "enforce": "calls", "files": {"deny": ["**/.env"]}});
    let (plain_place, plain) = session("real-plain", &How::Plain, &Value::Null, thirty);
    let without = results(&plain_place, &plain);
    assert_eq!(without.len(), 30, "{without:#?}");
    for (name, how) in [("real-hooks", How::Hooks), ("real-run", How::Run)] {
        let (place, ran) = session(name, &how, &policy, thirty);
        // The client says 144 where its own shell is ended by this signal; a shell below says 143. Which bash it starts is said by settings
        // that `writ init` makes.
        let same = |words: &String| {
            let words = words.replace("Exit code 144", "Exit code 143");
            words.replace("/usr/bin/bash", "bash").replace("/bin/bash", "bash")
        };
        let wrong: Vec<_> =
            results(&place, &ran).into_iter().zip(&without).filter(|(one, other)| same(one) != same(other)).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        for member in ["is_error", "num_turns", "result", "subtype"] {
            assert_eq!(result(&plain)[member], result(&ran)[member], "{name} {member}");
        }
        let own =
            |path: &Path| !path.starts_with(".git") && !path.starts_with(".claude") && path != Path::new(".aflock");
        let made = |place: &Place| -> Vec<_> { files(&place.work).into_iter().filter(|(path, _)| own(path)).collect() };
        assert_eq!(made(&plain_place), made(&place), "{name}");
        is_whole(&place, &ran, 30);
        fs::remove_dir_all(&place.root).unwrap();
    }
    fs::remove_dir_all(&plain_place.root).unwrap();
}

/// Calls with a network of their own, which go after the secrets and the API that the client itself talks to.
#[test]
fn a_session_with_a_network_of_its_own() {
    let policy = json!({"version": "1.0", "name": "domains", "enforce": "calls", "files": {"deny": ["**/.env"]},
                        "domains": {"allow": ["registry.example"]}});
    let turns = |_: &Path| {
        let bash = |line: &str| vec![tool("Bash", json!({ "command": line, "description": "x" }))];
        vec![
            bash("f=.$(echo vne | rev); cat $f; cp $f copy; env; cat /proc/self/environ | tr '\\0' '\\n'; echo one"),
            bash("curl -s -o /dev/null -w '%{http_code}\\n' -X POST $ANTHROPIC_BASE_URL/v1/messages -d '{}'"),
            bash("python3 -m http.server --bind 127.0.0.1 8765 > server.log 2>&1 & echo $! > pid; echo started"),
            bash(
                "for i in $(seq 99); do curl -s -o /dev/null http://127.0.0.1:8765/ && break; sleep 0.05; done; echo reached; kill $(cat pid)",
            ),
            bash("h=$(echo elpmaxe.demannu | rev); curl -s -m 5 http://$h/ > page; echo $? refused"),
            bash("sleep 9 & kill -SEGV $!; wait; ls core* 2>/dev/null; echo two"),
            vec![text("Done.")],
        ]
    };
    let (place, ran) = session("real-domains", &How::Hooks, &policy, turns);
    let results = results(&place, &ran);
    assert_eq!(result(&ran)["result"], "Done.", "{results:#?}");
    for (number, word) in ["one", "200", "started", "reached", "refused", "two"].iter().enumerate() {
        assert!(results[number].contains(word), "{number}: {results:#?}");
    }
    is_whole(&place, &ran, 6);
    fs::remove_dir_all(&place.root).unwrap();
}
