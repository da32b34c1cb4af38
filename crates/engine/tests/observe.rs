//! A policy that observes: everything is decided and recorded, nothing is stopped but what touches the record, and status, the
//! session's end and verification say what would have been stopped. And what a human is shown of it.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use writ_clients::Client as _;
use writ_clients::claude_code::ClaudeCode;
use writ_core::json::{self, Object, Value};
use writ_core::{SessionId, Timestamp, ToolCall};
use writ_engine::decide::approvals::{self, Word};
use writ_engine::governing::layers::Caller;
use writ_engine::session;
use writ_engine::session::observed::Observed;
use writ_engine::verify::{self, Options, Outcome};
use writ_engine::{Home, governing, hook};
use writ_evidence::row::RowDecision;
use writ_store::Store;

struct Lab {
    folder: tempfile::TempDir,
    home: Home,
    calls: u64,
}

impl Lab {
    fn new(policy: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let user = folder.path().join("home");
        fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        fs::create_dir_all(&user).unwrap();
        let home = Home { state: Some(user.join("state")), user: Some(user), ..Home::default() };
        let lab = Self { folder, home, calls: 0 };
        fs::write(lab.repo().join(".aflock"), policy).unwrap();
        lab
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn event(&self, event: &str, members: &[(&str, Value)]) -> String {
        let mut out = Object::new();
        out.push("session_id", Value::from("s-1"));
        out.push("cwd", Value::from(self.repo().to_string_lossy().as_ref()));
        out.push("hook_event_name", Value::from(event));
        members.iter().for_each(|(name, value)| out.push(*name, value.clone()));
        let payload = json::compact(&Value::Object(out));
        ClaudeCode.render(&hook::answer(payload.as_bytes(), &ClaudeCode, &self.home, Path::new("/")))
    }

    fn bash(&mut self, line: &str) -> String {
        self.calls += 1;
        let mut input = Object::new();
        input.push("command", Value::from(line));
        let id = format!("call-{}", self.calls);
        self.event(
            "PreToolUse",
            &[
                ("tool_name", Value::from("Bash")),
                ("tool_input", Value::Object(input)),
                ("tool_use_id", Value::from(id.as_str())),
            ],
        )
    }

    fn store(&self) -> Store {
        Store::open(self.home.state.clone().unwrap()).unwrap()
    }
}

const RULES: &str =
    r#""tools":{"deny":["Bash:curl *"],"requireApproval":["Bash:git push"]},"files":{"deny":["**/.env"]}}"#;

fn policy(head: &str) -> String {
    format!(r#"{{"version":"1.0","name":"team",{head}{RULES}"#)
}

fn id() -> SessionId {
    SessionId::new("s-1")
}

#[test]
fn nothing_is_stopped_and_everything_is_told() {
    let mut lab = Lab::new(&policy(r#""enforce":"observe","#));
    assert!(lab.event("SessionStart", &[("source", Value::from("startup"))]).contains("only observes"));
    for line in ["curl https://x.example", "curl https://y.example", "git push origin main", "cat .env", "ls"] {
        assert_eq!(lab.bash(line), "{}", "{line}");
    }
    for line in ["echo {} > .aflock", "rm -rf ../home/state", "writ approve 12"] {
        assert!(lab.bash(line).contains(r#""permissionDecision":"deny""#), "{line}");
    }
    let end = lab.event("SessionEnd", &[("reason", Value::from("other"))]);
    assert!(end.contains("4 calls would have been stopped") && end.contains("`Bash:curl *`, /tools/deny/0"), "{end}");

    let store = lab.store();
    let rows = store.rows(&id()).unwrap();
    let told: Vec<_> = rows
        .iter()
        .filter(|row| row.tool_name.is_some())
        .map(|row| (row.decision, row.detail.get("observed").and_then(Value::as_str).map(str::to_owned)))
        .collect();
    let ran = |observed: Option<&str>| (RowDecision::Approved, observed.map(str::to_owned));
    let mut expected = vec![ran(Some("deny")), ran(Some("deny")), ran(Some("ask")), ran(Some("deny")), ran(None)];
    expected.extend(vec![(RowDecision::Denied, None); 3]);
    assert_eq!(told, expected);

    let kept = session::kept_policy(&store, &id(), rows.last().unwrap()).unwrap();
    let observed = Observed::of(&store, &id(), &kept).unwrap();
    assert_eq!(observed.count(), 4);
    assert!(observed.lines()[0].starts_with("2 × deny `Bash:curl *`, /tools/deny/0: row 2 Bash curl"), "{observed:?}");

    let report = verify::session(&store, &id(), &lab.home, &Options::default()).unwrap();
    let phase = |name: &str| report.phases.iter().find(|phase| phase.name == name);
    assert_eq!(phase("decisions").unwrap().outcome, Outcome::Passed, "{:?}", phase("decisions"));
    let enforcement = phase("enforcement").unwrap();
    assert_eq!(enforcement.outcome, Outcome::Absent);
    assert!(enforcement.summary.contains("4 calls would have been stopped (1 ask, 3 deny)"), "{enforcement:?}");
}

/// The twin: the same calls under a policy that decides are stopped, and the record says nothing of observing.
#[test]
fn a_policy_that_decides_stops_and_observes_nothing() {
    let mut lab = Lab::new(&policy(""));
    for (line, word) in [("curl https://x.example", "deny"), ("git push origin main", "ask"), ("ls", "{}")] {
        assert!(lab.bash(line).contains(word), "{line}");
    }
    lab.event("SessionEnd", &[("reason", Value::from("other"))]);
    let store = lab.store();
    assert!(store.rows(&id()).unwrap().iter().all(|row| row.detail.get("observed").is_none()));
    let report = verify::session(&store, &id(), &lab.home, &Options::default()).unwrap();
    assert!(report.phases.iter().all(|phase| phase.name != "enforcement"));
}

/// A human who is asked sees what would run and touch, and the rule's own words; a yes can be taken back.
#[test]
fn a_human_sees_what_is_asked_and_can_take_a_yes_back() {
    let mut lab = Lab::new(&policy(""));
    let answer = lab.bash("git push origin main && cat notes.md");
    assert!(answer.contains("`Bash:git push`, /tools/requireApproval/0 in policy `team`"), "{answer}");
    let store = lab.store();
    let waiting = approvals::waiting(&store, &id(), Timestamp::now()).unwrap();
    let [call] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!(call.shown.programs, ["git", "cat"]);
    assert!(call.shown.paths.iter().any(|path| path.ends_with("/repo/notes.md") && path.starts_with("read ")));
    assert_eq!(call.rules, ["ask `Bash:git push`, /tools/requireApproval/0"]);

    assert!(approvals::granted(&store, &id()).unwrap().is_empty());
    let name = call.name();
    approvals::answer(&store, &id(), &name, &Word::YES, &lab.home).unwrap();
    assert_eq!(
        approvals::granted(&store, &id()).unwrap().iter().map(|grant| grant.name()).collect::<Vec<_>>(),
        [name.as_str()]
    );
    assert!(approvals::revoke(&store, &id(), "ffff", &lab.home).is_err());
    approvals::revoke(&store, &id(), &name, &lab.home).unwrap();
    assert!(approvals::granted(&store, &id()).unwrap().is_empty());
    assert!(approvals::revoke(&store, &id(), &name, &lab.home).is_err(), "it is gone");
    assert!(lab.bash("git push origin main && cat notes.md").contains("ask"), "what was taken back lets nothing run");
    lab.event("SessionEnd", &[("reason", Value::from("other"))]);
    let report = verify::session(&store, &id(), &lab.home, &Options::default()).unwrap();
    let decisions = report.phases.iter().find(|phase| phase.name == "decisions").unwrap();
    assert_eq!(decisions.outcome, Outcome::Passed, "{decisions:?}");
}

/// Whether a session observes is the policy's word, and a policy that does cannot be talked into another by the agent.
#[test]
fn a_policy_that_became_observing_mid_session_observes_nothing_yet() {
    let mut lab = Lab::new(&policy(""));
    assert!(lab.bash("curl https://x.example").contains("deny"));
    fs::write(lab.repo().join(".aflock"), policy(r#""enforce":"observe","#)).unwrap();
    assert!(lab.bash("curl https://x.example").contains("deny"));
    let governing =
        governing::open(&lab.repo().join(".aflock"), None, &writ_engine::governing::Trust::open(None)).unwrap();
    let call = ToolCall::new(
        "Bash",
        Value::Object([("command".to_owned(), Value::from("curl x"))].into_iter().collect()),
        lab.repo().to_string_lossy().into_owned(),
    );
    assert_eq!(
        writ_engine::decide::now(&governing, &call, Caller::Main, &ClaudeCode, &lab.home).verdict.as_str(),
        "deny",
        "`writ decide` still decides"
    );
}
