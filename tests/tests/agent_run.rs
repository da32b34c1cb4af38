//! `writ run AGENTFILE | PACKAGE`: an agent held to its own Agentfile, by the kernel, the proxy and the ledger.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/host.rs"]
mod host;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use host::{CANARY, Host, name};
use serde_json::{Value, json};
use workplace::Workplace;

/// A folder with an agent.
struct Agent {
    place: Workplace,
    variables: Vec<(String, String)>,
}

impl Agent {
    fn new(name: &str, agentfile: &str) -> Self {
        let agent = Self { place: Workplace::new(name), variables: Vec::new() };
        fs::remove_file(agent.folder().join(".aflock")).unwrap();
        agent.write("Agentfile", agentfile);
        agent.write("work/kept.txt", "before\n");
        agent.write("private/secret.txt", "c4n4ry-file\n");
        agent
    }

    fn folder(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.folder().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder().join(file)).ok()
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = self.place.command(&["run"]);
        command.args(args).env("PATH", std::env::var_os("PATH").unwrap());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        said(&command.stdin(Stdio::null()).output().unwrap())
    }

    /// The session that a run named at its end, verified.
    fn report(&self, err: &str) -> Value {
        let session =
            err.split("writ verify ").nth(1).and_then(|rest| rest.split('`').next()).unwrap_or_else(|| panic!("{err}"));
        let verified = self.place.writ(&["verify", session, "--format", "json"]);
        serde_json::from_slice(&verified.stdout).unwrap()
    }

    /// Files of Writ's state that hold a text.
    fn state_holds(&self, text: &str) -> Vec<PathBuf> {
        let (mut out, mut rest) = (Vec::new(), vec![self.place.folder.join("state")]);
        while let Some(next) = rest.pop() {
            for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    rest.push(path);
                } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|at| at == text.as_bytes())) {
                    out.push(path);
                }
            }
        }
        out
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const HEAD: &str = "# syntax=agentrc.agentfile/v0.1\nAGENT worker\nFROM scratch\nAUDIT all\n";

fn agentfile(more: &str) -> String {
    format!("{HEAD}{more}")
}

#[test]
fn what_it_mounts_is_there_and_nothing_else() {
    let text = agentfile(
        "CMD sh work/script.sh\nBIND ./work /workspace rw\nMOUNT /workspace rw\nBIND ./given /given ro\nMOUNT /given ro\nTIMEOUT 600\n",
    );
    let agent = Agent::new("agent-mounts", &text);
    agent.write("given/input.txt", "input\n");
    agent.write(
        "work/script.sh",
        "cat /workspace/kept.txt /given/input.txt; echo \"$@\"; echo after > /workspace/made.txt\n\
         echo x > /given/made.txt; cat private/secret.txt; cat Agentfile; echo x >> Agentfile; exit 5\n",
    );
    let (code, out, err) = agent.run(&["Agentfile", "--", "further", "words"]);
    assert_eq!((code, out.as_str()), (Some(5), "before\ninput\nfurther words\n"), "{err}");
    // An option of Writ's that stands behind it is no word of its CMD.
    let (code, out, why) = agent.run(&["Agentfile", "--offline"]);
    assert!(code == Some(125) && out.is_empty() && why.contains("stand before the agent"), "{code:?} {out} {why}");
    assert_eq!(agent.read("work/made.txt").as_deref(), Some("after\n"));
    assert_eq!((agent.read("given/made.txt"), agent.read("Agentfile")), (None, Some(text)));
    assert!(!err.contains("c4n4ry"), "{err}");
    let report = agent.report(&err);
    assert_eq!(report["verified"], true, "{report:#}");
    let sandbox = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "sandbox").unwrap();
    assert_eq!(sandbox["outcome"], "passed", "{report:#}");
}

/// Its command needs no permit, and is none that a policy may not forbid.
#[test]
fn a_command_that_is_forbidden_does_not_run() {
    let invoke = r#"action == AgentRC::Action::"tool.invoke""#;
    for (name, policy, runs) in [
        ("itself", format!(r#"forbid(principal, {invoke}, resource == AgentRC::Tool::"CMD");"#), false),
        ("all", "forbid(principal, action, resource);".to_owned(), false),
        ("another", format!(r#"forbid(principal, {invoke}, resource == AgentRC::Tool::"x");"#), true),
        ("elsewhere", format!(r#"forbid(principal, {invoke}, resource) when {{ context.path like "/etc/*" }};"#), true),
    ] {
        let agent =
            Agent::new(&format!("agent-cmd-{name}"), &agentfile(&format!("CMD echo ran\nPOLICY\n{policy}\nEND\n")));
        let (code, out, err) = agent.run(&["Agentfile"]);
        assert_eq!((code == Some(0), out.as_str()), (runs, if runs { "ran\n" } else { "" }), "{name}: {err}");
    }
}

#[test]
fn a_bind_that_copies_leaves_what_is_there() {
    let text = agentfile("CMD sh /workspace/script.sh\nBIND ./work /workspace copy\nMOUNT /workspace rw\n");
    let agent = Agent::new("agent-copy", &text);
    agent.write("work/script.sh", "echo after > /workspace/kept.txt; cat /workspace/kept.txt\n");
    let (code, out, err) = agent.run(&["Agentfile"]);
    assert_eq!((code, out.as_str()), (Some(0), "after\n"), "{err}");
    assert_eq!(agent.read("work/kept.txt").as_deref(), Some("before\n"));
    assert_eq!(agent.report(&err)["verified"], true);
}

/// A host that is declared, one that is not, and a secret that is used and never seen.
#[test]
fn hosts_and_secrets_are_those_of_its_lines() {
    let host = Host::start("agent-hosts");
    let url = host.url("/");
    let text = agentfile(&format!(
        "CMD sh work/script.sh\nBIND ./work /workspace ro\nMOUNT /workspace ro\nURL {url}\nCRED API_TOKEN env:MY_VALUE host:{}\n",
        name()
    ));
    let mut agent = Agent::new("agent-hosts", &text);
    let authority = host.folder.join("ca.pem");
    agent.variables = vec![
        ("MY_VALUE".to_owned(), CANARY.to_owned()),
        ("COPY".to_owned(), CANARY.to_owned()),
        ("SSL_CERT_FILE".to_owned(), authority.to_str().unwrap().to_owned()),
    ];
    agent.write(
        "work/script.sh",
        &format!(
            "env\ncurl -sS --fail -H \"Authorization: Bearer $API_TOKEN\" {url} || exit 1\n\
             curl -sS -m 10 https://undeclared.example/ 2>/dev/null && exit 2\nexit 0\n"
        ),
    );
    let manifest = json!({"version": "1", "agent": "worker", "placement": ["BIND ./work /workspace ro"],
        "private": [{"range": "127.0.0.0/8", "hosts": [name()]}]});
    agent.write("run.json", &manifest.to_string());
    let (code, out, err) = agent.run(&["--manifest", "run.json", "Agentfile"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("hello Bearer ***") && out.contains("API_TOKEN=writ_secret_"), "{out}");
    assert!(!format!("{out}{err}").contains("c4n4ry"), "{out}{err}");
    assert!(host.seen().contains(&format!("Bearer {CANARY}")));
    assert_eq!(agent.state_holds("c4n4ry-9f1e"), [] as [PathBuf; 0]);
    assert_eq!(agent.report(&err)["verified"], true);
    // Without its value nothing runs.
    agent.variables.remove(0);
    let (code, _, err) = agent.run(&["--manifest", "run.json", "Agentfile"]);
    assert_eq!(code, Some(126));
    assert!(err.contains(":9: `CRED API_TOKEN env:MY_VALUE") && err.contains("`MY_VALUE` is not set"), "{err}");
}

#[test]
fn what_cannot_be_held_does_not_run_and_its_line_is_named() {
    for (line, why) in [
        ("HEALTHCHECK CMD true", "probes"),
        ("ISOLATION microvm", "microvm"),
        ("PLUGIN x", "plug-in"),
        ("BACKEND https://x.example", "remote end"),
        ("IMAGE ghcr.io/o/i:1", "image"),
        ("FROM ghcr.io/o/i:1", "ISOLATION local"),
        ("LIMIT shoe_size 5", "known are"),
        ("LIMIT turns 5", "hooks"),
        ("LIMIT tool_calls 5/min", "rate"),
        ("LIMIT tool_calls 5", "nobody asks about its calls"),
        ("RATELIMIT x 1/hour\nTOOL utcp:x", "nobody asks about its calls"),
        ("SHELL strands:shell@2026.5", "unsupported-shell"),
        ("SLICE cpu=2", "`cpu` is not held"),
        ("OPTIMIZER x", "optimizers"),
        ("TRACE https://otel.example/v1", "traces"),
        ("BROKER vault\nCRED t vault://a#b host:a.example\nURL https://a.example", "vault"),
        ("CRED t keyring:k host:a.example\nURL https://a.example", "keyring"),
        ("CRED t env:T host:a.example", "no URL reaches"),
        ("BIND ./work /w rw", "no MOUNT"),
        ("MOUNT /nowhere-at-all rw", "not there"),
    ] {
        let text = agentfile(&format!("CMD touch work/ran\n{line}\n"));
        let text = if line.starts_with("FROM") { text.replace("FROM scratch\n", "") } else { text };
        let agent = Agent::new("agent-unmet", &text);
        let (code, out, err) = agent.run(&["Agentfile"]);
        assert_eq!((code, out.as_str()), (Some(126), ""), "{line}: {err}");
        let number = text.lines().position(|other| other == line.lines().next().unwrap()).unwrap() + 1;
        assert!(err.contains(&format!("Agentfile:{number}: `{}", line.lines().next().unwrap())), "{line}: {err}");
        assert!(err.contains(why), "{line}: {err}");
        assert_eq!(agent.read("work/ran"), None);
    }
    let agent = Agent::new("agent-no-cmd", HEAD);
    assert!(agent.run(&["Agentfile"]).2.contains("no CMD"));
    let agent = Agent::new("agent-link", &agentfile("CMD touch work/ran\nMOUNT /w2 rw\nBIND ./link /w2 rw\n"));
    std::os::unix::fs::symlink(agent.folder().join("private"), agent.folder().join("link")).unwrap();
    let (code, _, err) = agent.run(&["Agentfile"]);
    assert!(code == Some(126) && err.contains("through a symbolic link") && agent.read("work/ran").is_none(), "{err}");
    let agent = Agent::new("agent-errors", &agentfile("CMD true\nNOPE\n"));
    assert!(agent.run(&["Agentfile"]).2.contains(":6: "));
}

#[test]
fn limits_end_it() {
    let text = agentfile("CMD sleep 60\nTIMEOUT 1\nLIMIT open_files 64\nLIMIT file_size 5\n");
    let agent = Agent::new("agent-limits", &text);
    let (code, _, err) = agent.run(&["Agentfile"]);
    assert_eq!(code, Some(124), "{err}");
    assert_eq!(agent.report(&err)["verified"], true);
}

/// A package in a layout, signed with a new key, whose public half is given too.
fn package(agent: &Agent) -> (PathBuf, PathBuf) {
    let out = agent.place.folder.join("out");
    let key = agent.place.folder.join("release.pem");
    let run = |args: &[&str]| {
        let (code, said, err) = said(&agent.place.writ(args));
        assert_eq!(code, Some(0), "{args:?}: {said}{err}");
    };
    run(&["lock"]);
    run(&["build", ".", "-o", text_of(&out), "--source", "agent"]);
    run(&["keys", "generate", text_of(&key)]);
    run(&["sign", text_of(&out), "--key", text_of(&key)]);
    (out, key.with_extension("pem.pub"))
}

fn text_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_package_is_verified_before_it_runs() {
    let text = agentfile("CMD sh agent/main.sh\nMOUNT /workspace rw\n");
    let agent = Agent::new("agent-package", &text);
    agent.write(
        "agent/main.sh",
        "cat agent/data.txt /agentrc/agent/data.txt; echo x > /workspace/made; echo y > agent/made; echo $1\n",
    );
    agent.write("agent/data.txt", "of the package\n");
    let (out, key) = package(&agent);
    let manifest =
        json!({"version": "1", "agent": "worker", "placement": ["ISOLATION local", "BIND ./work /workspace direct"]});
    agent.write("run.json", &manifest.to_string());
    let run = || agent.run(&["--manifest", "run.json", "--key", text_of(&key), text_of(&out), "--", "word"]);
    let (code, said, err) = run();
    assert_eq!((code, said.as_str()), (Some(0), "of the package\nof the package\nword\n"), "{err}");
    assert_eq!(agent.read("work/made").as_deref(), Some("x\n"));
    let report = agent.report(&err);
    assert_eq!(report["verified"], true, "{report:#}");
    assert!(report.to_string().contains("the Agentfile of the package sha256:"), "{report:#}");
    let rooms = fs::read_dir(agent.place.folder.join("state/unpacked")).unwrap().count();
    assert_eq!(rooms, 0, "nothing of it is left");
    // Nobody who is trusted signed it.
    let (code, said, err) = agent.run(&["--manifest", "run.json", text_of(&out)]);
    assert_eq!((code, said.as_str()), (Some(126), ""), "{err}");
    assert!(err.contains("NOT VERIFIED: unknown key"), "{err}");
    // A manifest for another agent, and one that says what an agent is.
    for (other, why) in [
        (json!({"version": "1", "agent": "other", "placement": []}), "for the agent `other`"),
        (json!({"version": "1", "agent": "worker", "placement": ["URL https://x.example"]}), "what an agent is"),
    ] {
        agent.write("other.json", &other.to_string());
        let (code, _, err) = agent.run(&["--manifest", "other.json", "--key", text_of(&key), text_of(&out)]);
        assert_eq!(code, Some(125), "{err}");
        assert!(err.contains(why), "{err}");
    }
    // One byte of any blob.
    let blobs: Vec<PathBuf> =
        fs::read_dir(out.join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(blobs.len() > 5);
    for blob in blobs {
        let good = fs::read(&blob).unwrap();
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        fs::write(&blob, bad).unwrap();
        drop(fs::remove_file(agent.folder().join("work/made")));
        let (code, said, err) = run();
        assert!(matches!(code, Some(125 | 126)) && said.is_empty(), "{}: {said}{err}", blob.display());
        assert_eq!(agent.read("work/made"), None);
        fs::write(&blob, good).unwrap();
    }
    assert_eq!(run().0, Some(0));
}

/// A tool's rate is what its calls, decided inside and recorded, have used.
#[test]
fn a_rate_is_held_for_hooks_too() {
    let text = agentfile("CMD true\nTOOL utcp:web_search\nALLOW invoke web_search\nRATELIMIT web_search 2/hour\n");
    let agent = Agent::new("agent-rate", &text);
    agent.write(".aflock", r#"{"version":"1.0","name":"w","extends":"./Agentfile"}"#);
    let ask = |id: &str| {
        let more = format!(r#","tool_name":"WebSearch","tool_use_id":"{id}","tool_input":{{"query":"x"}}"#);
        agent.place.answer(&agent.place.payload("PreToolUse", &more))
    };
    for id in ["a", "b"] {
        assert!(!ask(id).contains("deny"), "{}", ask(id));
    }
    let third = ask("c");
    assert!(third.contains("deny") && third.contains("line 8 of the Agentfile"), "{third}");
    // Counted again from the rows; a row that says otherwise is found.
    let decisions = || {
        let verified = agent.place.writ(&["verify", workplace::SESSION, "--format", "json"]);
        let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
        report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "decisions").cloned().unwrap()
    };
    assert_eq!(decisions()["outcome"], "passed", "{:#}", decisions());
    let ledger = fs::read_to_string(agent.place.session().join("ledger.jsonl")).unwrap();
    assert!(ledger.contains(r#""exceeded":["web_search"]"#), "{ledger}");
}

/// What a vault answers: the value for the right token alone.
const VAULT: &str = "import http.server, json\n\
    class H(http.server.BaseHTTPRequestHandler):\n \
    def do_GET(s):\n  \
    ok = s.headers.get('X-Vault-Token') == 'right' and s.path == '/v1/secret/data/gh'\n  \
    b = json.dumps({'data': {'data': {'token': 'c4n4ry-of-the-vault'}}}).encode()\n  \
    s.send_response(200 if ok else 403); s.send_header('Content-Length', str(len(b))); s.end_headers(); s.wfile.write(b)\n \
    def log_message(s, *a): pass\n\
    h = http.server.HTTPServer(('127.0.0.1', 0), H); print(h.server_port, flush=True); h.serve_forever()\n";

#[test]
fn a_secret_of_a_vault_is_fetched_before_and_never_inside() {
    let mut vault = Command::new("python3").args(["-c", VAULT]).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(vault.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let text = agentfile("CMD env\nURL https://api.example\nCRED GH vault://secret/data/gh#token host:api.example\n");
    let mut agent = Agent::new("agent-vault", &text);
    assert!(agent.run(&["Agentfile"]).2.contains("Agentfile:7: `CRED GH vault://"));
    agent.variables = vec![
        ("VAULT_ADDR".to_owned(), format!("http://127.0.0.1:{}", port.trim())),
        ("VAULT_TOKEN".to_owned(), "right".to_owned()),
    ];
    let (code, out, err) = agent.run(&["Agentfile"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("GH=writ_secret_") && !out.contains("VAULT_TOKEN") && !out.contains("WRIT_VAULT"), "{out}");
    assert!(!format!("{out}{err}").contains("c4n4ry"), "{out}{err}");
    assert_eq!(agent.state_holds("c4n4ry"), [] as [PathBuf; 0]);
    assert_eq!(agent.report(&err)["verified"], true);
    agent.variables.pop();
    agent.variables.push(("VAULT_TOKEN".to_owned(), "wrong".to_owned()));
    let (code, _, err) = agent.run(&["Agentfile"]);
    assert!(code == Some(126) && err.contains("answers 403"), "{err}");
    vault.kill().unwrap();
    vault.wait().unwrap();
}
