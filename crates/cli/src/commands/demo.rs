//! `writ demo`: a scripted agent, a real repository, the real hook path, a real verification.
//!
//! Nothing here decides or records: each call goes to [`writ_engine::hook::answer`] as the client's own JSON, and what is
//! allowed really runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use writ_clients::claude_code::ClaudeCode;
use writ_core::Reply;
use writ_core::json::{self, Object, Value};
use writ_core::{SessionId, Verdict};
use writ_engine::steps::{self, Step};
use writ_engine::{Home, hook, verify};

use crate::args::DemoArgs;
use crate::commands::verify::human;
use crate::exit::Failure;
use crate::output;

/// The policy the agent is held to.
const POLICY: &str = include_str!("../../../../examples/feature-search.aflock");
/// What the agent does, one call a line.
const SCRIPT: &str = include_str!("../../../../examples/demo-script.jsonl");
/// The session's id.
const SESSION: &str = "demo";

/// What its policy wants attested, and how this demo makes it.
const STEPS: [(&str, &[&str]); 2] = [
    ("task-complete", &["grep", "-q", "search", "src/search.ts"]),
    ("quality-check", &["git", "diff", "--quiet", "--", "package.json"]),
];

/// The repository's files before the agent comes.
const FILES: [(&str, &str); 5] = [
    ("src/search.ts", "export function search(query: string) {\n  return [];\n}\n"),
    ("src/old.ts", "export const unused = 1;\n"),
    ("tests/search.test.ts", "// no test yet\n"),
    ("package.json", "{ \"name\": \"demo\" }\n"),
    (".env", "API_KEY=not-a-real-key\n"),
];

/// Runs it.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    let folder = Folder::make(args.keep.as_deref())?;
    let demo = Demo::set_up(&folder.path)?;
    output::line(format!("{}  a repository under examples/feature-search.aflock\n", output::bold("declare")));
    demo.session()?;
    let store = writ_store::Store::open(demo.state.clone()).map_err(Failure::could_not)?;
    let id = SessionId::new(SESSION);
    output::line(format!("\n{}", output::bold("verify")));
    let report = verify::session(&store, &id, &demo.home, &verify::Options::default()).map_err(Failure::could_not)?;
    human(&report);
    let caught = demo.tamper(&store.folder(&id))?;
    if args.keep.is_some() {
        output::line(format!("\nkept: {}\n      writ verify {}", folder.path.display(), store.folder(&id).display()));
    }
    // The example's policy has fields that nothing enforces; the report says so, and the record holds.
    if report.holds() && caught { Ok(()) } else { Err(Failure::No) }
}

/// A folder that goes away with the demo, unless it is to be kept.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn make(keep: Option<&Path>) -> Result<Self, Failure> {
        let path = match keep {
            Some(path) => std::path::absolute(path)?,
            None => std::env::temp_dir().join(format!("writ-demo-{}", std::process::id())),
        };
        fs::create_dir_all(&path)?;
        if fs::read_dir(&path)?.next().is_some() {
            return Err(Failure::Usage(format!("{} is not empty", path.display())));
        }
        // The policy's root has no symlink in it, so that written and resolved paths read alike.
        Ok(Self { path: fs::canonicalize(&path)?, keep: keep.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

struct Demo {
    repository: PathBuf,
    state: PathBuf,
    transcript: PathBuf,
    home: Home,
}

impl Demo {
    fn set_up(folder: &Path) -> Result<Self, Failure> {
        let (repository, state) = (folder.join("repository"), folder.join("state"));
        for (name, text) in FILES.into_iter().chain([(".aflock", POLICY)]) {
            let path = repository.join(name);
            fs::create_dir_all(path.parent().unwrap_or(&repository))?;
            fs::write(path, text)?;
        }
        let program = std::env::current_exe().ok();
        let home = Home { state: Some(state.clone()), user: Some(folder.to_owned()), program, ..Home::default() };
        let demo = Self { repository, state, transcript: folder.join("transcript.jsonl"), home };
        demo.bash("git init -q -b main && git config user.name demo && git config user.email demo@example.invalid && git add . && git commit -q -m start")?;
        Ok(demo)
    }

    /// The whole session, event by event.
    fn session(&self) -> Result<(), Failure> {
        output::line(format!("{} the agent's calls, one by one", output::bold("decide, enforce, record")));
        self.hook("SessionStart", &[("source", Value::from("startup"))])?;
        self.hook("UserPromptSubmit", &[("prompt", Value::from("Implement the search"))])?;
        for (index, line) in SCRIPT.lines().enumerate() {
            let call = json::parse(line.as_bytes()).map_err(Failure::malformed)?;
            self.call(&call, &format!("toolu_demo_{index:02}"))?;
        }
        self.hook("Stop", &[("stop_hook_active", Value::from(false))])?;
        output::line(format!("\n{} what the policy's `requiredAttestations` name", output::bold("attest")));
        STEPS.into_iter().try_for_each(|(name, command)| self.step(name, command))?;
        self.hook("SessionEnd", &[("reason", Value::from("other"))])?;
        Ok(())
    }

    /// A step that the policy wants.
    fn step(&self, name: &str, command: &[&str]) -> Result<(), Failure> {
        let store = writ_store::Store::open(self.state.clone()).map_err(Failure::could_not)?;
        let step = Step {
            name: name.to_owned(),
            command: command.iter().map(Into::into).collect(),
            materials: vec!["src".into()],
            products: Vec::new(),
            cwd: self.repository.clone(),
        };
        let ran = steps::run(&store, &SessionId::new(SESSION), &self.home, &step).map_err(Failure::could_not)?;
        output::line(format!("  {:<14} `{}` ended with {}", name, command.join(" "), ran.code));
        Ok(())
    }

    fn call(&self, call: &Value, id: &str) -> Result<(), Failure> {
        let tool = call.get("tool").and_then(Value::as_str).unwrap_or_default();
        let input = call.get("input").cloned().unwrap_or(Value::Null);
        let members =
            [("tool_name", Value::from(tool)), ("tool_input", input.clone()), ("tool_use_id", Value::from(id))];
        self.say(
            "assistant",
            block("tool_use", &[("id", Value::from(id)), ("name", Value::from(tool)), ("input", input.clone())]),
        )?;
        let answer = self.hook("PreToolUse", &members)?;
        let (verdict, reason) = match answer {
            Reply::Decided { verdict, reason } => (verdict, reason),
            _ => (Verdict::Allow, String::new()),
        };
        show(call, verdict, &reason);
        let response = if verdict == Verdict::Allow {
            let response = Value::from(self.perform(tool, &input)?);
            let mut members = members.to_vec();
            members.push(("tool_response", response.clone()));
            self.hook("PostToolUse", &members)?;
            response
        } else {
            Value::from(reason)
        };
        let refused = Value::from(verdict != Verdict::Allow);
        self.say(
            "user",
            block("tool_result", &[("tool_use_id", Value::from(id)), ("content", response), ("is_error", refused)]),
        )
    }

    /// Sends one event down the client's road.
    fn hook(&self, event: &str, members: &[(&str, Value)]) -> Result<Reply, Failure> {
        let mut payload = Object::from([
            ("session_id", Value::from(SESSION)),
            ("transcript_path", Value::from(self.transcript.to_string_lossy().as_ref())),
            ("cwd", Value::from(self.repository.to_string_lossy().as_ref())),
            ("permission_mode", Value::from("default")),
            ("hook_event_name", Value::from(event)),
        ]);
        payload.extend(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let bytes = json::compact(&Value::Object(payload));
        let answer = hook::answer(bytes.as_bytes(), &ClaudeCode, &self.home, &self.repository);
        match answer.message {
            Some(message) if event != "SessionStart" => Err(Failure::could_not(message)),
            _ => Ok(answer.reply),
        }
    }

    /// Does what the client's tool would do.
    fn perform(&self, tool: &str, input: &Value) -> Result<String, Failure> {
        let text = |name| input.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = self.repository.join(text("file_path"));
        match tool {
            "Read" => Ok(fs::read_to_string(path)?),
            "Write" => fs::write(path, text("content")).map(|()| "written".to_owned()).map_err(Into::into),
            "Edit" => {
                let before = fs::read_to_string(&path)?;
                fs::write(path, before.replacen(text("old_string"), text("new_string"), 1))?;
                Ok("edited".to_owned())
            }
            "Bash" => self.bash(text("command")),
            other => Err(Failure::could_not(format!("the demo has no tool `{other}`"))),
        }
    }

    fn bash(&self, line: &str) -> Result<String, Failure> {
        let out = Command::new("bash")
            .args(["-c", line])
            .current_dir(&self.repository)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Failure::could_not(format!("cannot run bash: {error}")))?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
        }
        Err(Failure::could_not(format!("`{line}` failed: {}", String::from_utf8_lossy(&out.stderr))))
    }

    /// The transcript as the client writes it: one block a line.
    fn say(&self, kind: &str, content: Value) -> Result<(), Failure> {
        let message = Object::from([("role", Value::from(kind)), ("content", Value::Array(vec![content]))]);
        let line = Object::from([
            ("type", Value::from(kind)),
            ("sessionId", Value::from(SESSION)),
            ("message", Value::Object(message)),
        ]);
        let mut text = fs::read_to_string(&self.transcript).unwrap_or_default();
        text.push_str(&json::compact(&Value::Object(line)));
        text.push('\n');
        fs::write(&self.transcript, text).map_err(Into::into)
    }

    /// Flips one bit of a copy and verifies that. Whether it was noticed.
    fn tamper(&self, evidence: &Path) -> Result<bool, Failure> {
        let copy = self.state.join("tampered");
        copy_folder(evidence, &copy)?;
        let ledger = copy.join("ledger.jsonl");
        let mut bytes = fs::read(&ledger)?;
        let at = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1;
        }
        fs::write(&ledger, bytes)?;
        output::line(format!("\n{} one bit of byte {at} in a copy of the ledger", output::bold("tamper")));
        let report = verify::folder(&copy, &self.home, &verify::Options::default()).map_err(Failure::could_not)?;
        fs::remove_dir_all(&copy)?;
        let finding = report.phases.iter().flat_map(|phase| &phase.findings).next().cloned().unwrap_or_default();
        if report.holds() {
            output::line(format!("{} it went unnoticed", output::bad('✗')));
        } else {
            output::line(format!("{} noticed: {finding}", output::good('✓')));
        }
        Ok(!report.holds())
    }
}

fn block(kind: &str, members: &[(&str, Value)]) -> Value {
    let mut out = Object::from([("type", Value::from(kind))]);
    out.extend(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Value::Object(out)
}

fn show(call: &Value, verdict: Verdict, reason: &str) {
    let text = |name| call.get(name).and_then(Value::as_str).unwrap_or_default();
    let input = call.get("input").map(|input| {
        ["command", "file_path", "url", "description"]
            .into_iter()
            .find_map(|name| input.get(name).and_then(Value::as_str))
            .unwrap_or_default()
    });
    let word = match verdict {
        Verdict::Allow => output::good("allow"),
        Verdict::Ask => output::warn("ask  "),
        Verdict::Deny => output::bad("deny "),
    };
    output::line(format!("  {word}  {:<5} {}", text("tool"), input.unwrap_or_default()));
    if verdict != Verdict::Allow {
        let first = reason.lines().next().unwrap_or_default();
        output::line(format!("         {}", output::dim(first.strip_prefix("writ: ").unwrap_or(first))));
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
