//! What a policy wants of a session: steps that Writ ran, and rules, models and services that judge what it attests.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod grpc;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workplace::{SESSION, Workplace};
use writ_core::Timestamp;

/// A session under a policy: a prompt, an allowed call, a stop.
fn recorded(name: &str, more: &Value) -> Workplace {
    recorded_with(name, more, &[])
}

/// The same with files in the repository.
fn recorded_with(name: &str, more: &Value, files: &[(&str, &str)]) -> Workplace {
    let place = Workplace::new(name);
    for (file, text) in files {
        fs::write(place.folder.join("repository").join(file), text).unwrap();
    }
    let mut policy =
        json!({"version": "1.0", "name": "wants", "files": {"allow": ["src/**", "out/**"], "deny": ["**/.env"]}});
    policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    place.start();
    place.answer(&place.payload("UserPromptSubmit", r#","prompt":"write""#));
    place.allowed("one");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    place
}

/// Another stop seals what came after the last one.
fn seal(place: &Workplace) {
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
}

fn report(place: &Workplace, more: &[&str], variables: &[(&str, &str)]) -> (i32, Value) {
    let mut command = place.command(&[&["verify", SESSION, "--format", "json"], more].concat());
    let output = command.envs(variables.iter().copied()).stdin(Stdio::null()).output().unwrap();
    (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap())
}

fn phase<'a>(report: &'a Value, name: &str) -> &'a Value {
    let found = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name);
    found.unwrap_or_else(|| panic!("no phase {name}: {report}"))
}

fn step(place: &Workplace, args: &[&str]) -> (i32, String) {
    let output = place.command(&[&["step", "run"], args].concat()).env("PATH", "/usr/bin:/bin").output().unwrap();
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn a_step_that_the_policy_wants_has_to_have_run_and_ended_well() {
    let place = recorded("steps-wanted", &json!({"requiredAttestations": ["quality-check"]}));
    let (code, missing) = report(&place, &[], &[]);
    let required = phase(&missing, "required");
    assert!(code == 3 && missing["status"] == "breached" && required["outcome"] == "failed", "{missing}");
    assert!(required["findings"][0].as_str().unwrap().contains("writ step run quality-check"), "{required}");
    // One that fails does not do; it left no product, and is on record all the same.
    let (code, said) = step(&place, &["quality-check", "-p", "out", "--", "sh", "-c", "exit 7"]);
    assert!(code == 7 && said.contains("ended with 7"), "{code} {said}");
    seal(&place);
    let (code, failed) = report(&place, &[], &[]);
    assert!(
        code == 3 && phase(&failed, "required")["findings"][0].as_str().unwrap().contains("ended with 7"),
        "{failed}"
    );
    fs::create_dir_all(place.folder.join("repository/out")).unwrap();
    let line = "cp src/module.rs out/built 2>/dev/null || echo made > out/built";
    let (code, said) = step(&place, &["quality-check", "-m", ".aflock", "-p", "out", "--", "sh", "-c", line]);
    assert!(code == 0, "{said}");
    seal(&place);
    let (code, good) = report(&place, &["--allow-absent"], &[]);
    assert!(code == 0 && good["status"] == "verified", "{good}");
    assert_eq!(phase(&good, "required")["outcome"], "passed");
    // The statement is an in-toto link about this run and its products.
    let folder = place.session().join("statements");
    let links: Vec<Value> =
        fs::read_dir(&folder).unwrap().map(|entry| statement(&fs::read(entry.unwrap().path()).unwrap())).collect();
    let link = links.iter().find(|link| link["predicate"]["byproducts"]["return-value"] == 0).unwrap();
    assert_eq!(link["predicateType"], "https://in-toto.io/attestation/link/v0.3");
    let subjects: Vec<&str> =
        link["subject"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(subjects, [format!("agentflow:run:{SESSION}").as_str(), "out/built"]);
    assert!(link["predicate"]["materials"].as_array().unwrap().iter().any(|one| one["name"] == ".aflock"), "{link}");
    // A changed or missing statement is noticed.
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, [bytes.as_slice(), b" "].concat()).unwrap();
    assert_eq!(report(&place, &[], &[]).1["status"], "broken");
    fs::remove_file(&file).unwrap();
    assert_eq!(report(&place, &[], &[]).1["status"], "broken");
    // A link is not followed.
    std::os::unix::fs::symlink("../.env", place.folder.join("repository/out/link")).unwrap();
    let (code, said) = step(&place, &["quality-check", "-p", "out/link", "--", "true"]);
    assert!(code != 0 && said.contains("is a symbolic link"), "{code} {said}");
    // Nor one that the path leads through, whatever is behind it; what is below a folder that was named by its own path is taken.
    std::os::unix::fs::symlink("out", place.folder.join("repository/door")).unwrap();
    for path in ["door/built", "./door/built", "out/../door/built"] {
        let (code, said) = step(&place, &["quality-check", "-m", path, "--", "true"]);
        assert!(code == 1 && said.contains("is a symbolic link"), "{path}: {code} {said}");
    }
    assert_eq!(step(&place, &["quality-check", "-m", "out/../out/built", "-p", ".", "--", "true"]).0, 0);
    // Two names that are no text could be told as one.
    use std::os::unix::ffi::OsStrExt;
    fs::write(place.folder.join("repository/out").join(std::ffi::OsStr::from_bytes(b"a\xff")), "x").unwrap();
    let (code, said) = step(&place, &["quality-check", "-m", "out", "--", "true"]);
    assert!(code == 1 && said.contains("is not UTF-8"), "{code} {said}");
    // Names of turns, and names that lead elsewhere, are no steps'.
    for name in ["turn-1", "turn-1-part-2", "turn-x", "research-turn-2", "../x", ""] {
        assert_eq!(step(&place, &[name, "--", "true"]).0, 2, "{name}");
    }
}

/// What comes after the session's end is signed for too: the remedy that `writ verify` names then does not break the record.
#[test]
fn a_step_can_follow_the_sessions_end() {
    let place = recorded("steps-late", &json!({"requiredAttestations": ["qc"]}));
    place.answer(&place.payload("SessionEnd", r#","reason":"exit""#));
    assert_eq!(report(&place, &[], &[]).1["status"], "breached");
    // Only of a record that somebody known signed for it is said that it holds.
    let checkpoints = place.session().join("checkpoints");
    let signed = fs::read(&checkpoints).unwrap();
    fs::write(&checkpoints, "").unwrap();
    assert_eq!(report(&place, &[], &[]).1["status"], "broken");
    let folder = place.folder.join("evidence");
    assert!(Command::new("cp").arg("-r").arg(place.session()).arg(&folder).status().unwrap().success());
    let key = folder.join("ledger.pub");
    // Somebody elsewhere, who never saw a checkpoint of it.
    let args = ["verify", folder.to_str().unwrap(), "--key", key.to_str().unwrap(), "--format", "json"];
    let given = place.command(&args).env("WRIT_STATE_DIR", place.folder.join("auditor")).output().unwrap();
    let given: Value = serde_json::from_slice(&given.stdout).unwrap();
    assert_eq!((&given["status"], &phase(&given, "required")["outcome"]), (&json!("unsigned"), &json!("failed")));
    fs::write(&checkpoints, signed).unwrap();
    assert_eq!(step(&place, &["qc", "--", "true"]).0, 0);
    let (code, good) = report(&place, &["--allow-absent"], &[]);
    assert!(code == 0 && good["status"] == "verified", "{good}");
    assert_eq!(phase(&good, "tail")["outcome"], "passed", "{good}");
}

fn statement(envelope: &[u8]) -> Value {
    use base64::Engine as _;
    let envelope: Value = serde_json::from_slice(envelope).unwrap();
    let payload = base64::engine::general_purpose::STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&payload).unwrap()
}

#[test]
fn an_agent_runs_no_denied_program_as_a_step() {
    let place = recorded("steps-denied", &json!({"tools": {"deny": ["Bash:rm *"]}, "requiredAttestations": ["x"]}));
    let call = |id: &str, line: &str| {
        let members = format!(r#","tool_name":"Bash","tool_use_id":"{id}","tool_input":{{"command":"{line}"}}"#);
        place.answer(&place.payload("PreToolUse", &members))
    };
    assert!(call("two", "writ step run x -- rm -rf src").contains(r#""deny""#));
    assert!(!call("three", "writ step run x -- true").contains(r#""deny""#));
}

/// Rego over the turns of the session.
fn rule(body: &str) -> Value {
    let module = format!(
        "package agentflow\nimport rego.v1\nturns := [t | some t in input.attestationsFrom[\"turn-*\"]]\n{body}"
    );
    json!({"attestationsFrom": ["turn-*"], "evaluators": {"rego": [{"name": "rule", "policy": module}]}})
}

#[test]
fn rules_judge_the_turns_that_the_session_attests() {
    let good = recorded("rego-good", &rule("deny contains msg if { count(turns) > 3; msg := \"many\" }"));
    let (code, passed) = report(&good, &[], &[]);
    assert_eq!(phase(&passed, "evaluators")["outcome"], "passed", "{passed}");
    assert!(matches!(code, 0 | 3) && passed["status"] == "verified", "{passed}");
    for (name, body, told) in [
        (
            "rego-denied",
            "deny contains msg if { some t in turns; msg := sprintf(\"turn %d\", [t.predicate.turn]) }",
            "turn 1",
        ),
        ("rego-error", "deny contains msg if {\n some i in range(1, 2)\n msg := \"x\"\n}", "numbers.range"),
        (
            "rego-endless",
            "deny contains msg if { some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i * j < 0; msg := \"x\" }",
            "10 s",
        ),
        (
            "rego-bomb",
            "deny contains msg if { x := [concat(\"\", [y | some i in numbers.range(1, 3000000); y := \"0123456789abcdef0123456789abcdef0123456789abcdef\"]) | some k in numbers.range(1, 100)]; count(x) > 1; msg := \"x\" }",
            "",
        ),
    ] {
        let place = recorded(name, &rule(body));
        let (code, failed) = report(&place, &[], &[]);
        let found = phase(&failed, "evaluators");
        assert!(code == 3 && failed["status"] == "breached" && found["outcome"] == "failed", "{name}: {failed}");
        assert!(found["findings"].to_string().contains(told), "{name}: {found}");
    }
}

/// The rules of a session share their time: what is left of them then has judged nothing, and that is no pass.
#[test]
fn endless_rules_have_one_time_together() {
    let endless = "deny contains msg if { some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i * j < 0; msg := \"x\" }";
    let rego: Vec<Value> = (0..8)
        .map(|number| json!({"name": format!("r{number}"), "policy": format!("package p{number}\nimport rego.v1\n{endless}\n")}))
        .collect();
    let place = recorded("rego-together", &json!({"evaluators": {"rego": rego}}));
    let began = Instant::now();
    let (code, failed) = report(&place, &[], &[]);
    let took = began.elapsed();
    let findings = phase(&failed, "evaluators")["findings"].to_string();
    assert!(code == 3 && took < Duration::from_secs(45), "{took:?} {findings}");
    for number in 3..8 {
        assert!(findings.contains(&format!("`r{number}`: could not be run")), "{findings}");
        assert!(!findings.contains(&format!("`r{number}`: PASS")), "{findings}");
    }
}

/// No rule's reasons crowd out another's word, however many and long they are.
#[test]
fn each_evaluator_has_its_word_in_the_report() {
    let rules = [
        ("many", "deny contains i if some i in numbers.range(1, 2000)"),
        ("long", "deny contains concat(\"\", [\"x\" | some i in numbers.range(1, 100000)])"),
        ("last", "deny contains \"told\" if true"),
    ];
    let rego =
        rules.map(|(name, rule)| json!({"name": name, "policy": format!("package p\nimport rego.v1\n{rule}\n")}));
    let place = recorded("rego-words", &json!({"evaluators": {"rego": rego}}));
    let (_, failed) = report(&place, &[], &[]);
    let findings = phase(&failed, "evaluators")["findings"].as_array().unwrap();
    let told = |start: &str| findings.iter().filter(|text| text.as_str().unwrap().starts_with(start)).count();
    assert!(told("`last`: FAIL") == 1 && told("`last`: told") == 1 && told("`many`: and ") == 1, "{findings:#?}");
    assert!(findings.iter().all(|text| text.as_str().unwrap().len() < 3000) && told("`many`") < 30);
}

/// A policy has to be in force as long as the session goes on; that it expires later takes nothing from the record.
#[test]
fn a_session_ends_before_its_policy_does() {
    let soon = Timestamp::from_millis(Timestamp::now().millis() + 4000);
    let place = recorded("expiry", &json!({"expires": soon.to_string()}));
    let (_, good) = report(&place, &[], &[]);
    let found = phase(&good, "expiry");
    assert!(found["outcome"] == "passed" && found["summary"].to_string().contains("expires on"), "{found}");
    thread::sleep(Duration::from_millis(u64::try_from(soon.millis() - Timestamp::now().millis()).unwrap_or(0) + 50));
    let (_, past) = report(&place, &[], &[]);
    let found = phase(&past, "expiry");
    assert!(found["outcome"] == "passed" && found["summary"].to_string().contains("expired since"), "{found}");
    place.answer(&place.payload("UserPromptSubmit", r#","prompt":"more""#));
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let (code, late) = report(&place, &[], &[]);
    assert!(code == 3 && late["status"] == "breached" && phase(&late, "expiry")["outcome"] == "failed", "{late}");
}

/// A rule in a file of its own is the policy's: as it was when the policy was accepted, and out of the agent's reach.
#[test]
fn a_rule_in_a_file_is_kept_with_the_policy() {
    let named = json!({"files": {"allow": ["**"]}, "attestationsFrom": ["turn-*"],
        "evaluators": {"rego": [{"name": "rule", "policy": "./few.rego"}]}});
    let module = "package p\nimport rego.v1\ndeny contains \"many\" if count(input.attestationsFrom[\"turn-*\"]) > 3\n";
    let place = recorded_with("rego-file", &named, &[("few.rego", module)]);
    let write = place.answer(&place.write_call("two", "few.rego"));
    assert!(write.contains(r#""deny""#) && write.contains("a rule of the policy"), "{write}");
    fs::remove_file(place.folder.join("repository/few.rego")).unwrap();
    let (_, good) = report(&place, &[], &[]);
    assert_eq!(
        (phase(&good, "evaluators")["outcome"].as_str(), good["status"].as_str()),
        (Some("passed"), Some("verified")),
        "{good}"
    );
    // What is kept of it cannot be another.
    let kept = fs::read_dir(place.session().join("policies")).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.into_iter().find(|path| fs::read_to_string(path).unwrap() == module).unwrap();
    fs::write(&kept, module.replace("> 3", "> 9")).unwrap();
    let (_, changed) = report(&place, &[], &[]);
    assert_ne!(changed["status"], "verified", "{changed}");
    fs::remove_file(&kept).unwrap();
    for (code, gone) in [(3, changed), report(&place, &["--allow-absent"], &[])] {
        assert_eq!((code, phase(&gone, "evaluators")["outcome"].as_str()), (3, Some("failed")), "{gone}");
    }
    // One that denies, with its own place; and one that was not there.
    let place = recorded_with("rego-file-denies", &named, &[("few.rego", &module.replace("> 3", "> 0"))]);
    assert_eq!(report(&place, &[], &[]).1["status"], "breached");
    let place = recorded_with(
        "rego-file-error",
        &named,
        &[("few.rego", "package p\nimport rego.v1\ndeny contains 1 if range(1, 2)\n")],
    );
    assert!(phase(&report(&place, &[], &[]).1, "evaluators").to_string().contains("./few.rego:3:"));
}

/// A server that gives one answer to whoever posts, and tells what it was sent.
fn model(answer: impl Into<String>) -> (String, thread::JoinHandle<String>) {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut piece) = (String::new(), [0; 4096]);
        loop {
            let length = stream.read(&mut piece).unwrap();
            request.push_str(&String::from_utf8_lossy(&piece[..length]));
            let whole = request.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                let told = head
                    .lines()
                    .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
                told.is_some_and(|told| body.len() >= told.parse().unwrap())
            });
            if whole || length == 0 {
                break;
            }
        }
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}", answer.len())
            .unwrap();
        request
    });
    (url, served)
}

#[test]
fn models_are_asked_only_when_the_verifier_wants_it() {
    let ai = json!({"attestationsFrom": ["turn-*"], "evaluators": {"ai": [{"name": "quality", "prompt": "PASS if a turn is attested."}]}});
    let place = recorded("models", &ai);
    let (code, absent) = report(&place, &[], &[]);
    assert!(code == 3 && phase(&absent, "evaluators")["outcome"] == "absent", "{absent}");
    let good = r#"{"content":[{"type":"text","text":"{\"status\":\"PASS\",\"reason\":\"one is\"}"}],"stop_reason":"end_turn"}"#;
    let (url, served) = model(good);
    let keys = [("ANTHROPIC_BASE_URL", url.as_str()), ("ANTHROPIC_API_KEY", "k-of-the-verifier")];
    let (_, passed) = report(&place, &["--evaluators"], &keys);
    assert_eq!(phase(&passed, "evaluators")["outcome"], "passed", "{passed}");
    assert!(!passed.to_string().contains("k-of-the-verifier"));
    let request = served.join().unwrap();
    assert!(
        request.starts_with("POST /v1/messages ") && request.contains("turn-*") && request.contains("PASS if a turn"),
        "{request}"
    );
    let chat = r#"{"choices":[{"message":{"content":"{\"status\":\"FAIL\",\"reason\":\"none is\"}"},"finish_reason":"stop"}]}"#;
    let (url, served) = model(chat);
    let (code, failed) = report(&place, &["--evaluators"], &[("WRIT_EVALUATOR_URL", url.as_str())]);
    assert!(
        code == 3 && failed["status"] == "breached" && phase(&failed, "evaluators").to_string().contains("none is"),
        "{failed}"
    );
    assert!(served.join().unwrap().contains("claude-sonnet-4-20250514"));
    // Several answers are none: nobody said which of them counts.
    let choice = r#"{"message":{"content":"{\"status\":\"PASS\",\"reason\":\"one is\"}"},"finish_reason":"stop"}"#;
    for (choices, outcome) in [(choice.to_owned(), "passed"), (format!("{choice},{choice}"), "absent")] {
        let answer = format!(r#"{{"choices":[{choices}]}}"#);
        let (url, served) = model(answer);
        let (_, said) = report(&place, &["--evaluators"], &[("WRIT_EVALUATOR_URL", url.as_str())]);
        assert_eq!(phase(&said, "evaluators")["outcome"], outcome, "{said}");
        served.join().unwrap();
    }
    let (code, nowhere) = report(&place, &["--evaluators"], &[]);
    assert!(code == 3 && phase(&nowhere, "evaluators").to_string().contains("ANTHROPIC_API_KEY"), "{nowhere}");
}

/// A service in Python, made from the `.proto` that Writ ships.
const SERVICE: &str = "import sys
from concurrent import futures
import grpc, grpc_tools.protoc as protoc
proto, out, word = sys.argv[1], sys.argv[2], sys.argv[3]
assert protoc.main(['', '-I', proto, '--python_out', out, '--grpc_python_out', out, proto + '/writ/evaluator/v1/evaluator.proto']) == 0
sys.path.insert(0, out)
from writ.evaluator.v1 import evaluator_pb2 as m, evaluator_pb2_grpc as g
class Service(g.EvaluatorServicer):
    def Evaluate(self, request, context):
        assert request.name == 'custom' and 'turn-*' in request.input
        return m.EvaluateResponse(status=word, reason='said so')
server = grpc.server(futures.ThreadPoolExecutor(2))
g.add_EvaluatorServicer_to_server(Service(), server)
port = server.add_insecure_port('127.0.0.1:0')
server.start()
print(port, flush=True)
sys.stdin.read()
";

#[test]
fn a_service_in_another_language_judges_too() {
    let python = grpc::python();
    for (word, outcome) in [("PASS", "passed"), ("FAIL", "failed"), ("maybe", "failed")] {
        let out = std::env::temp_dir().join(format!("writ-grpc-{}-{word}", std::process::id()));
        fs::create_dir_all(&out).unwrap();
        let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/evaluators/proto");
        let mut service = Command::new(&python);
        service.args(["-c", SERVICE, proto]).arg(&out).arg(word).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut service = service.spawn().unwrap();
        let mut port = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(service.stdout.take().unwrap()), &mut port).unwrap();
        assert!(!port.is_empty(), "the service did not start: are grpcio and grpcio-tools there?");
        let endpoint = format!("127.0.0.1:{}", port.trim());
        let policy =
            json!({"attestationsFrom": ["turn-*"], "evaluators": {"grpc": [{"name": "custom", "endpoint": endpoint}]}});
        let place = recorded(&format!("service-{word}"), &policy);
        let (_, said) = report(&place, &["--evaluators"], &[]);
        assert_eq!(phase(&said, "evaluators")["outcome"], outcome, "{said}");
        drop(service.stdin.take());
        service.wait().unwrap();
        // Nobody answers there any more.
        let (code, nobody) = report(&place, &["--evaluators"], &[]);
        assert!(code == 3 && phase(&nobody, "evaluators")["outcome"] == "absent", "{nobody}");
        fs::remove_dir_all(&out).unwrap();
    }
}
