//! The gate for CI, by hand and as the action runs it.

#[cfg(test)]
#[expect(dead_code, reason = "no session is recorded here")]
mod workplace;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use workplace::Workplace;
use writ_core::json::{canonical, parse, to_canonical};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::Draft;
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::registry::{Change, Registry};

/// A workplace with an attested command, and the registry that speaks for it.
fn attested(name: &str, line: &str, more: &[&str]) -> Workplace {
    let place = Workplace::new(name);
    let args = ["evaluate", "shell", line, "--attest", "--attest-to", "a.json", "--fail-on", "block"];
    let output = place.writ(&[&args, more].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
    let registry = place.writ(&["keys", "registry"]).stdout;
    fs::write(file(&place, "registry.json"), registry).unwrap();
    place
}

fn file(place: &Workplace, name: &str) -> PathBuf {
    place.folder.join("repository").join(name)
}

fn gate(place: &Workplace, words: &[&str]) -> i32 {
    place.writ(&[&["gate", "--require-attestation", "a.json"], words].concat()).status.code().unwrap()
}

#[test]
fn exactly_this_command_at_this_risk_and_age() {
    let place = attested("gate", "git push --force", &[]);
    let line = ["--command", "git push --force"];
    assert_eq!(gate(&place, &[&line[..], &["--max-risk", "warn"]].concat()), 0);
    for (words, code) in [
        (vec!["--command", "git push --force"], 3),
        (vec!["--command", "git push --force ", "--max-risk", "block"], 3),
        (vec!["--plan", "a.json", "--max-risk", "block"], 3),
        (vec!["--command", "git push --force", "--plan-json", "a.json", "--max-risk", "block"], 3),
        (vec!["--command", "git push --force", "--max-risk", "warn", "--registry", "registry.json"], 0),
        (vec!["--max-risk", "warn"], 2),
        (vec!["--command", "git push --force", "--max-age", "soon"], 2),
    ] {
        assert_eq!(gate(&place, &words), code, "{words:?}");
    }
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(gate(&place, &[&line[..], &["--max-risk", "warn", "--max-age", "1s"]].concat()), 3);
}

#[test]
fn once_is_once() {
    let place = attested("gate-once", "ls", &[]);
    assert_eq!(gate(&place, &["--command", "ls"]), 0);
    assert_eq!(gate(&place, &["--command", "rm -rf /", "--once"]), 3, "another command costs nothing");
    assert_eq!(gate(&place, &["--command", "ls", "--plan", "missing", "--once"]), 3);
    assert_eq!(gate(&place, &["--command", "ls", "--once"]), 0);
    for words in [&["--once"][..], &[], &["--registry", "registry.json"], &["--registry", "registry.json", "--once"]] {
        assert_eq!(gate(&place, &[&["--command", "ls"], words].concat()), 3, "{words:?}");
    }
    assert_eq!(verify(&place, &["a.json"]).status.code(), Some(0), "looking is another matter");
    assert_eq!(verify(&place, &["a.json", "--once"]).status.code(), Some(3));
    let place = attested("gate-once-offline", "ls", &[]);
    assert_eq!(gate(&place, &["--command", "ls", "--once", "--registry", "registry.json"]), 0);
    assert_eq!(gate(&place, &["--command", "ls", "--once", "--registry", "registry.json"]), 3);
}

fn verify(place: &Workplace, words: &[&str]) -> Output {
    place.writ(&[&["attestation", "verify"], words].concat())
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// An attestation of `ls` in this folder by a key of the test's own, from whatever instance, and the registry that speaks for it.
fn foreign(place: &Workplace, instance: &str, nonce: Option<u128>) {
    let cwd = place.folder.join("repository");
    let hash = Digest::of(b"ls").to_string();
    attests(place, instance, nonce, &json!({ "source": "shell", "hash": hash, "cwd": cwd.to_str().unwrap() }));
}

fn attests(place: &Workplace, instance: &str, nonce: Option<u128>, input: &Value) {
    let key = SigningKey::generate(Algorithm::Ed25519).unwrap();
    let now = Timestamp::now();
    let public = key.public().raw().try_into().unwrap();
    let registry = Registry::empty("writ", now).changed(&Change::Publish { public }, now).unwrap();
    let registry = registry.changed(&Change::Activate { id: "writ-1".to_owned() }, now).unwrap();
    let draft = Draft {
        // The members have to be in their canonical order.
        input: canonical(&parse(input.to_string().as_bytes()).unwrap()),
        output: json!({ "riskAssessment": "allow" }).to_string(),
        evaluator: "writ:consequence:0.1.0".to_owned(),
        timestamp: now.to_string(),
        expires_at: Some(Timestamp::from_millis(now.millis() + 600_000)),
        nonce,
        chain_id: None,
        parent: None,
    };
    let pending = draft.pend("writ-1", instance);
    let signature = key.sign(pending.payload().as_bytes()).unwrap().try_into().unwrap();
    fs::write(file(place, "a.json"), pending.signed(&signature)).unwrap();
    fs::write(file(place, "registry.json"), to_canonical(&registry)).unwrap();
}

#[test]
fn a_registry_at_hand_takes_no_check_away() {
    let place = Workplace::new("gate-registry");
    let offline = ["--command", "ls", "--registry", "registry.json"];
    let with = |words: &[&str]| gate(&place, &[&offline[..], words].concat());
    foreign(&place, "https://w.example", Some(1));
    assert_eq!(with(&[]), 0);
    assert_eq!(with(&["--trust", "https://W.example:443"]), 0);
    assert_eq!(with(&["--trust", "https://other.example"]), 3);
    assert_eq!(with(&["--trust", "http://127.1"]), 2);
    assert_eq!(with(&["--cross-check"]), 2);
    assert_eq!(verify(&place, &["a.json", "--registry", "registry.json", "--cross-check"]).status.code(), Some(2));
    let other = verify(&place, &["a.json", "--registry", "registry.json", "--trust", "https://other.example"]);
    assert!(other.status.code() == Some(3) && said(&other).contains("instance_not_trusted"), "{}", said(&other));
    for host in ["http://127.1", "https://2130706433", "https://w.example.", "http://a..b"] {
        foreign(&place, host, None);
        assert_eq!(with(&[]), 3, "{host}");
        let checked = verify(&place, &["a.json", "--registry", "registry.json"]);
        assert!(said(&checked).contains("invalid_attestation"), "{}", said(&checked));
    }
    foreign(&place, "https://w.example", None);
    assert_eq!(with(&[]), 0);
    assert_eq!(with(&["--once"]), 3, "nothing holds it to one use");
    assert_eq!(verify(&place, &["a.json", "--registry", "registry.json", "--once"]).status.code(), Some(3));
}

#[test]
fn a_command_counts_in_its_folder() {
    let place = attested("gate-folder", "rm -rf data", &[]);
    let there = place.folder.join("repository");
    let other = there.join("src");
    let run = |folder: &Path, words: &[&str]| {
        let mut command = place.command(&["gate", "--require-attestation"]);
        command.arg(there.join("a.json")).args(["--command", "rm -rf data", "--max-risk", "block"]).args(words);
        command.current_dir(folder).output().unwrap()
    };
    assert_eq!(run(&there, &[]).status.code(), Some(0));
    let moved = run(&other, &[]);
    assert!(moved.status.code() == Some(3) && said(&moved).contains("is about the folder"), "{}", said(&moved));
    assert_eq!(run(&other, &["--cwd", ".."]).status.code(), Some(0));
    assert_eq!(run(&there, &["--cwd", "/elsewhere"]).status.code(), Some(3));
    let input = place.writ(&["evaluate", "shell", "ls", "--cwd", "src", "--attest", "--attest-to", "a.json"]);
    assert!(input.status.success());
    assert_eq!(run(&there, &[]).status.code(), Some(3));
    assert_eq!(gate(&place, &["--command", "ls", "--cwd", "src"]), 0);
}

#[test]
fn what_names_no_folder_covers_no_command() {
    let place = Workplace::new("gate-nowhere");
    let (line, call) = (Digest::of(b"ls"), Digest::of(br#"{"arguments":null,"server":null,"tool":"x"}"#));
    fs::write(file(&place, "call.json"), r#"{"tool":"x"}"#).unwrap();
    let here = place.folder.join("repository");
    for (input, command, called) in [
        (json!({ "source": "shell", "hash": line.to_string(), "cwd": here.to_str().unwrap() }), 0, 3),
        (json!({ "source": "shell", "hash": line.to_string() }), 3, 3),
        (json!({ "source": "shell", "hash": line.to_string(), "cwd": 1 }), 3, 3),
        (json!({ "source": "mcp", "hash": call.to_string() }), 3, 0),
        (json!({ "source": "mcp", "hash": call.to_string(), "cwd": here.to_str().unwrap() }), 3, 0),
        (json!({ "source": "mcp", "hash": call.to_string(), "cwd": "/elsewhere" }), 3, 3),
    ] {
        attests(&place, "https://w.example", None, &input);
        let registry = ["--registry", "registry.json"];
        assert_eq!(gate(&place, &[&registry[..], &["--command", "ls"]].concat()), command, "{input}");
        assert_eq!(gate(&place, &[&registry[..], &["--call", "call.json"]].concat()), called, "{input}");
    }
}

/// A stranger's server: answers every request with a 200 and this body, and counts.
struct Stranger {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Stranger {
    fn serves(body: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, asked) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                let mut seen = [0; 4096];
                drop(stream.read(&mut seen));
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)));
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

#[test]
fn nobody_else_answers_for_the_own_instance() {
    let place = Workplace::new("gate-spelling");
    foreign(&place, "http://localhost", Some(2));
    let stranger = Stranger::serves(fs::read(file(&place, "registry.json")).unwrap());
    let own = format!("http://localhost:{}", stranger.port);
    // The own instance gets this base URL.
    let args = ["serve", "--attest", "--listen", "127.0.0.1:0", "--base-url", &own];
    let mut service = place.command(&args).spawn().unwrap();
    let issue = ["evaluate", "shell", "ls", "--attest", "--attest-to", "a.json"];
    let is_own = || {
        place.folder.join("state/attestations.db").exists()
            && place.writ(&issue).status.success()
            && fs::read_to_string(file(&place, "a.json")).unwrap().contains(&own)
    };
    assert!((0..200).any(|_| is_own() || {
        std::thread::sleep(Duration::from_millis(50));
        false
    }));
    service.kill().unwrap();
    service.wait().unwrap();
    for spelled in [own.clone(), own.replace("localhost", "LOCALHOST"), own.replace("localhost", "LocalHost")] {
        foreign(&place, &spelled, Some(3));
        assert_eq!(gate(&place, &["--command", "ls"]), 3, "{spelled}");
        assert_eq!(stranger.asked(), 0, "{spelled}");
        let url = format!("{spelled}/.well-known/attestations/{}.json", "0".repeat(32));
        let output = place.writ(&["gate", "--require-attestation", &url, "--command", "ls"]);
        assert_eq!((output.status.code(), stranger.asked()), (Some(3), 0), "{}", said(&output));
    }
    // A copy is compared with what the network says, or the database would be compared with itself.
    assert!(is_own());
    assert_eq!(verify(&place, &["a.json"]).status.code(), Some(0));
    let compared = verify(&place, &["a.json", "--cross-check"]);
    assert!(said(&compared).contains("cross_check_mismatch"), "{}", said(&compared));
    assert_eq!(stranger.asked(), 1);
}

#[test]
fn a_cross_check_of_what_nobody_serves_fails() {
    let place = attested("gate-cross", "ls", &[]);
    let compared = verify(&place, &["a.json", "--cross-check", "--retries", "0"]);
    assert!(compared.status.code() == Some(1) && said(&compared).contains("network_error"), "{}", said(&compared));
    assert_eq!(gate(&place, &["--command", "ls", "--cross-check"]), 1);
}

#[test]
fn a_body_that_is_too_large_is_asked_for_once() {
    let place = Workplace::new("gate-large");
    let stranger = Stranger::serves(vec![b' '; (4 << 20) + 1]);
    let instance = format!("http://127.0.0.1:{}", stranger.port);
    foreign(&place, &instance, None);
    assert_eq!(gate(&place, &["--command", "ls", "--trust", &instance]), 1);
    assert_eq!(stranger.asked(), 1);
}

#[test]
fn a_report_by_its_mode() {
    let place = Workplace::new("gate-modes");
    let report = place.writ(&["evaluate", "shell", "git push --force", "--attest", "--format", "json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let write = |name: &str, value: &Value| fs::write(file(&place, name), value.to_string()).unwrap();
    write("report.json", &report);
    let mut bent = report.clone();
    bent["riskAssessment"] = json!("allow");
    write("bent.json", &bent);
    bent.as_object_mut().unwrap().remove("attestation");
    write("bare.json", &bent);
    let mut forged = report.clone();
    forged["attestation"]["output"]["riskAssessment"] = json!("allow");
    write("forged.json", &forged);
    let judged = |name: &str, mode: &str| {
        let output = verify(&place, &[name, "--mode", mode, "--ttl", "1h", "--retries", "1", "--format", "json"]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), said["code"].clone(), said["warnings"].clone())
    };
    for mode in ["ignore", "log", "verify", "require"] {
        let verifies = ["verify", "require"].contains(&mode);
        assert_eq!(judged("report.json", mode), (0, Value::Null, json!([])), "{mode}");
        let differs = if verifies { json!(["report_differs"]) } else { json!([]) };
        assert_eq!(judged("bent.json", mode), (0, Value::Null, differs), "{mode}");
        let (code, failure, _) = judged("forged.json", mode);
        let expected = if verifies { (3, json!("invalid_attestation")) } else { (0, Value::Null) };
        assert_eq!((code, failure), expected, "{mode}");
    }
    assert_eq!(judged("bare.json", "ignore"), (0, Value::Null, json!([])));
    assert_eq!(judged("bare.json", "log"), (0, Value::Null, json!(["attestation_absent"])));
    assert_eq!(judged("bare.json", "verify"), (0, Value::Null, json!(["attestation_absent"])));
    assert_eq!(judged("bare.json", "require"), (3, json!("attestation_absent"), json!([])));
    let absent = verify(&place, &["bare.json"]);
    assert!(said(&absent).contains("there is none in it") && said(&absent).contains("--attest"), "{}", said(&absent));
    let differs = verify(&place, &["bent.json"]);
    assert!(said(&differs).contains("valid ") && said(&differs).contains("not the one that was signed"));
    assert_eq!(gate(&place, &["--command", "git push --force"]), 3, "no such file");
    let events = fs::read_to_string(place.folder.join("state/verifier/events.jsonl")).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    let counts = ["attestation_seen", "attestation_verified", "attestation_failed", "attestation_absent"].map(count);
    assert_eq!(counts, [3, 5, 2, 5], "{events:?}");
}

#[test]
fn exit_codes_tell_no_from_could_not() {
    let place = attested("gate-codes", "ls", &[]);
    assert_eq!(gate(&place, &["--command", "ls", "--registry", "missing.json"]), 1);
    fs::write(file(&place, "bad.json"), "{").unwrap();
    assert_eq!(gate(&place, &["--command", "ls", "--registry", "bad.json"]), 4);
    assert_eq!(gate(&place, &["--plan-json", "bad.json"]), 4);
    for words in [["--plan", "missing"], ["--plan-json", "missing"], ["--call", "missing"]] {
        assert_eq!(gate(&place, &words), 3, "{words:?}");
    }
    for name in ["missing.json", "bad.json", "."] {
        let output = place.writ(&["gate", "--require-attestation", name, "--command", "ls"]);
        assert_eq!(output.status.code(), Some(3), "{name}: {}", said(&output));
    }
    assert_eq!(gate(&place, &["--command", "ls"]), 0);
    for entry in fs::read_dir(place.folder.join("state/verifier/registries")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            fs::write(path, "damaged").unwrap();
        }
    }
    assert_eq!(gate(&place, &["--command", "ls"]), 1, "Writ's own files");
}

#[test]
fn strangers_forgeries_and_the_dead_do_not_pass() {
    let (place, stranger) = (attested("gate-own", "ls", &[]), attested("gate-stranger", "ls", &[]));
    let genuine = fs::read_to_string(file(&place, "a.json")).unwrap();
    fs::copy(file(&stranger, "a.json"), file(&place, "a.json")).unwrap();
    assert_eq!(gate(&place, &["--command", "ls"]), 3, "another instance's key");
    fs::write(file(&place, "a.json"), genuine.replace("\"allow\"", "\"Allow\"")).unwrap();
    assert_eq!(gate(&place, &["--command", "ls", "--max-risk", "block"]), 3, "an edited verdict");
    fs::write(file(&place, "a.json"), "{}").unwrap();
    assert_eq!(gate(&place, &["--command", "ls"]), 3, "no attestation at all");
    fs::remove_file(file(&place, "a.json")).unwrap();
    assert_eq!(gate(&place, &["--command", "ls"]), 3);
    let place = attested("gate-ended", "ls", &["--expires", "1s"]);
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(gate(&place, &["--command", "ls"]), 3);
    assert_eq!(gate(&place, &["--command", "ls", "--trust", "https://127.0.0.1:9"]), 3, "not even with others trusted");
}

/// The action's script on these inputs.
fn action(place: &Workplace, inputs: &[(&str, &str)]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../action/gate.sh");
    let writ = place.command(&[]);
    let mut command = Command::new("bash");
    command.arg(script).current_dir(place.folder.join("repository")).env_clear().env("PATH", "/usr/bin:/bin");
    command.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("GATE_WRIT", writ.get_program()).env("GITHUB_OUTPUT", place.folder.join("output"));
    command.envs(inputs.iter().copied()).output().unwrap()
}

#[test]
fn the_action_fails_closed() {
    let place = attested("action", "make deploy; echo \"$(id)\" 'x'", &[]);
    let line = ("GATE_COMMAND", "make deploy; echo \"$(id)\" 'x'");
    let named = ("GATE_ATTESTATION", "a.json");
    let block = ("GATE_MAX_RISK", "block");
    let passed = action(&place, &[named, line, block]);
    assert!(passed.status.success(), "{}", String::from_utf8_lossy(&passed.stderr));
    let output = fs::read_to_string(place.folder.join("output")).unwrap();
    assert!(
        output.starts_with("result={") && output.contains("\"passes\": true") && output.lines().count() == 1,
        "{output}"
    );
    for inputs in [
        vec![line],
        vec![named],
        vec![named, ("GATE_COMMAND", "make deploy")],
        vec![named, line, ("GATE_MAX_RISK", "none")],
        vec![named, line, ("GATE_CROSS_CHECK", "maybe")],
        vec![named, line, ("GATE_REGISTRY", "missing.json")],
        vec![named, line, block, ("GATE_REGISTRY", "registry.json"), ("GATE_CROSS_CHECK", "true")],
        vec![named, line, block, ("GATE_REGISTRY", "registry.json"), ("GATE_TRUST", "http://127.1")],
        vec![named, line, block, ("GATE_CWD", "/elsewhere")],
        vec![named, line, block, ("GATE_ONCE", "maybe")],
        vec![named, line, ("GATE_WRIT", "no-such-program")],
        vec![named, ("GATE_PLAN", "a.json")],
    ] {
        assert!(!action(&place, &inputs).status.success(), "{inputs:?}");
    }
    let once = [named, line, block, ("GATE_ONCE", "true"), ("GATE_CWD", "."), ("GATE_REGISTRY", "registry.json")];
    assert!(action(&place, &once).status.success());
    assert!(!action(&place, &once).status.success());
    assert!(!action(&place, &[named, line, block]).status.success(), "its nonce is used up");
}
