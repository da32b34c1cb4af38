//! The starter policy in eight kinds of repositories: daily work passes, and what must be stopped is.
//!
//! `starter/NAME.jsonl` holds a repository and its calls, one object a line: `{tracked, text}` is a file that is committed,
//! `{loose, text}` one that is not, `{expect, call: {tool, input}}` a call that must `pass`, or must `stop` (be asked about or
//! denied).

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use writ_core::json::{self, Limits, Value};
use writ_core::{ToolCall, Verdict};
use writ_engine::governing::layers::Caller;
use writ_engine::governing::{self, Trust, starter};
use writ_engine::{Home, decide};

const REPOSITORIES: [&str; 8] = ["rust", "node", "python", "go", "java", "terraform", "monorepo", "empty"];
/// Most calls of one repository's daily work that may be stopped.
const NEEDLESS: usize = 2;

fn lines(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/starter").join(format!("{name}.jsonl"));
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| json::parse_with(line.as_bytes(), Limits::FOREIGN).unwrap()).collect()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn write(folder: &Path, lines: &[Value], kind: &str) {
    for line in lines {
        if let Some(path) = text(line, kind).map(|path| folder.join(path)) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text(line, "text").unwrap()).unwrap();
        }
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", folder)
        .status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

/// A repository with its user's home beside it. Not below the system's folder for temporary files, where nothing is kept.
fn repository(below: &Path, name: &str, lines: &[Value]) -> (PathBuf, Home) {
    let (root, user) = (below.join(name), below.join("home"));
    fs::create_dir_all(&root).unwrap();
    write(&user, &self::lines("home"), "file");
    git(&root, &["init", "-q", "-b", "main"]);
    write(&root, lines, "tracked");
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "--allow-empty", "-m", "one"]);
    write(&root, lines, "loose");
    let bin = below.join("bin");
    write(&bin, &[json::parse_with(br#"{"program": "writ", "text": ""}"#, Limits::FOREIGN).unwrap()], "program");
    let (state, program) = (Some(user.join(".local/state/writ")), Some(bin.join("writ")));
    (root, Home { state, user: Some(user), program, search: vec![bin], ..Home::default() })
}

/// How a call was decided, and why.
struct Answer {
    call: String,
    expect: String,
    verdict: Verdict,
    why: String,
}

fn answers(below: &Path, name: &str) -> Vec<Answer> {
    let lines = lines(name);
    let (root, home) = repository(below, name, &lines);
    let policy = root.join(".aflock");
    fs::write(&policy, starter::starter(&root, false).text).unwrap();
    let governing = governing::open(&policy, None, &Trust::open(None)).unwrap();
    assert_eq!(governing.policy.warnings(), &[] as &[String], "{name}");
    assert_eq!(governing.policy.not_enforced(), [] as [String; 0], "{name}");
    let answer = |line: &Value| {
        let call = line.get("call")?;
        let (tool, input) = (text(call, "tool").unwrap(), call.get("input").cloned().unwrap());
        let call = ToolCall::new(tool, input, root.to_string_lossy().into_owned());
        let decision = decide::now(&governing, &call, Caller::Main, writ_clients::DEFAULT, &home);
        let first = decision.reasons.first();
        Some(Answer {
            call: format!("{} {}", call.tool, json::compact(&call.input)),
            expect: text(line, "expect").unwrap(),
            verdict: decision.verdict,
            why: first.map_or_else(String::new, |reason| format!("{} {}", reason.rule, reason.message)),
        })
    };
    lines.iter().filter_map(answer).collect()
}

fn below(name: &str) -> tempfile::TempDir {
    tempfile::Builder::new().prefix(name).tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn daily_work_passes_and_dangers_are_stopped() {
    let folder = below("starter-calls");
    let mut wrong = Vec::new();
    for name in REPOSITORIES {
        let answers = answers(folder.path(), name);
        let (mut needless, mut daily, mut dangers) = (Vec::new(), 0, 0);
        for answer in &answers {
            let stopped = answer.verdict > Verdict::Allow;
            match answer.expect.as_str() {
                "pass" => {
                    daily += 1;
                    if stopped {
                        needless.push(format!("  {} {}: {}", answer.verdict, answer.call, answer.why));
                    }
                }
                "stop" => {
                    dangers += 1;
                    if !stopped {
                        wrong.push(format!("{name} lets it run: {}", answer.call));
                    }
                }
                other => panic!("{name}: no expectation `{other}`"),
            }
        }
        assert!(daily >= 50 && dangers >= 18, "{name}: {daily} daily calls, {dangers} dangers");
        if needless.len() > NEEDLESS {
            wrong.push(format!("{name} stops daily work:\n{}", needless.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The twin: a policy that allows everything stops none of the dangers, so that it is the starter's rules that do.
#[test]
fn without_rules_only_the_record_is_safe() {
    let folder = below("starter-bare");
    let lines = lines("rust");
    let (root, home) = repository(folder.path(), "rust", &lines);
    let policy = root.join(".aflock");
    fs::write(&policy, r#"{"version":"1.0","name":"bare"}"#).unwrap();
    let governing = governing::open(&policy, None, &Trust::open(None)).unwrap();
    for line in lines.iter().filter(|line| text(line, "expect").as_deref() == Some("stop")) {
        let call = line.get("call").unwrap();
        let (tool, input) = (text(call, "tool").unwrap(), call.get("input").cloned().unwrap());
        let call = ToolCall::new(tool, input, root.to_string_lossy().into_owned());
        let decision = decide::now(&governing, &call, Caller::Main, writ_clients::DEFAULT, &home);
        assert!(decision.reasons.iter().all(|reason| reason.rule.starts_with("writ:")), "{:?}", decision.reasons);
    }
}

#[test]
fn packages_below_add_their_rules() {
    let folder = below("starter-packages");
    let (root, _) = repository(folder.path(), "monorepo", &lines("monorepo"));
    let starter = starter::starter(&root, true);
    for found in ["JavaScript", "Go", "Python", "Rust", "Terraform", "secrets", "5 packages below"] {
        assert!(starter.found.iter().any(|known| known == found), "{found}: {:?}", starter.found);
    }
    for rule in ["Bash:npm publish", "Bash:cargo publish", "Bash:uv publish", "Bash:terraform apply", "**/secrets/**"] {
        assert!(starter.text.contains(&format!("\"{rule}\"")), "{rule}");
    }
    assert!(starter.text.contains("\"enforce\": \"observe\""));
    fs::remove_dir_all(root.join("crates")).unwrap();
    let less = starter::starter(&root, false);
    assert!(!less.text.contains("cargo publish") && !less.text.contains("observe"), "{}", less.text);
    assert!(less.found.iter().any(|found| found == "4 packages below"), "{:?}", less.found);
}
