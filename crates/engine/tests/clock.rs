//! Time that a session used does not fall where the clock is put back, and the record shows it.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use writ_clients::Client as _;
use writ_clients::claude_code::ClaudeCode;
use writ_core::{SessionId, Timestamp, json};
use writ_engine::session::state::State;
use writ_engine::verify::{self, Options, Outcome};
use writ_engine::{Home, hook};
use writ_evidence::row::{Draft, RowDecision};
use writ_store::Store;

const HOUR: i64 = 3_600_000;

struct Lab {
    folder: tempfile::TempDir,
    home: Home,
    id: SessionId,
}

impl Lab {
    fn new(policy: &str) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let user = folder.path().join("home");
        fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        fs::create_dir_all(&user).unwrap();
        fs::write(folder.path().join("repo/.aflock"), policy).unwrap();
        let home = Home { state: Some(user.join("state")), user: Some(user), ..Home::default() };
        let lab = Self { folder, home, id: SessionId::new("s") };
        lab.send("SessionStart", r#","source":"startup""#);
        lab
    }

    fn send(&self, event: &str, more: &str) -> String {
        let cwd = self.folder.path().join("repo");
        let payload =
            format!(r#"{{"session_id":"s","cwd":"{}","hook_event_name":"{event}"{more}}}"#, cwd.to_string_lossy());
        ClaudeCode.render(&hook::answer(payload.as_bytes(), &ClaudeCode, &self.home, Path::new("/")))
    }

    fn call(&self, number: u8, agent: &str) -> String {
        let more =
            format!(r#","tool_name":"Bash","tool_input":{{"command":"echo"}},"tool_use_id":"call-{number}"{agent}"#);
        self.send("PreToolUse", &more)
    }

    fn store(&self) -> Store {
        Store::open(self.home.state.clone().unwrap()).unwrap()
    }

    fn state(&self) -> State {
        State::from_detail(&self.store().last_row(&self.id).unwrap().unwrap().detail).unwrap()
    }

    /// A row at another moment than now: the clock is put back behind it.
    fn row_in(&self, millis: i64) {
        let detail = format!(r#"{{"event":"note","state":{}}}"#, json::to_canonical(&self.state()));
        let mut guard = self.store().session(&self.id).unwrap().lock(Duration::from_secs(5)).unwrap();
        let draft = Draft {
            timestamp: Timestamp::from_millis(Timestamp::now().millis() + millis),
            call_id: None,
            tool_name: None,
            decision: RowDecision::Checkpoint,
            denial_reason: None,
            result_hash: None,
            detail: json::parse(detail.as_bytes()).unwrap(),
        };
        guard.append(draft).unwrap();
    }

    fn decisions(&self) -> (Outcome, String) {
        let report = verify::session(&self.store(), &self.id, &self.home, &Options::default()).unwrap();
        let phase = report.phases.into_iter().find(|phase| phase.name == "decisions").unwrap();
        (phase.outcome, phase.findings.join("; "))
    }
}

const LIMITED: &str = r#"{"version":"1.0","name":"x","limits":{"maxWallTimeSeconds":3600}}"#;

#[test]
fn a_clock_that_is_put_back_gives_no_time_back() {
    let lab = Lab::new(LIMITED);
    assert!(!lab.call(1, "").contains("deny"));
    lab.row_in(2 * HOUR);
    let said = lab.call(2, "");
    assert!(said.contains("deny") && said.contains("/limits/maxWallTimeSeconds"), "{said}");
    assert!(lab.send("UserPromptSubmit", r#","prompt":"go on""#).contains("block"));
    let back = i64::try_from(lab.state().back).unwrap();
    assert!((2 * HOUR - 60_000..=2 * HOUR).contains(&back), "{back}");
    assert_eq!(lab.decisions(), (Outcome::Passed, String::new()));
}

#[test]
fn what_a_clock_takes_back_by_less_than_is_left_stops_nothing() {
    let lab = Lab::new(LIMITED);
    lab.row_in(HOUR / 2);
    assert!(!lab.call(1, "").contains("deny"));
    assert_eq!(lab.decisions(), (Outcome::Passed, String::new()));
    // Twice as much is more than there was.
    lab.row_in(HOUR / 2 + 60_000);
    assert!(lab.call(2, "").contains("deny"));
    assert_eq!(lab.decisions(), (Outcome::Passed, String::new()));
}

#[test]
fn the_time_of_sub_agents_of_a_type_does_not_fall_either() {
    let policy = r#"{"version":"1.0","name":"x","sublayouts":[{"name":"Explore",
        "policy":{"version":"1.0","name":"e","limits":{"maxWallTimeSeconds":3600}}}]}"#;
    let lab = Lab::new(policy);
    let agent = r#","agent_id":"a1","agent_type":"Explore""#;
    assert!(!lab.call(1, agent).contains("deny"));
    lab.row_in(2 * HOUR);
    let said = lab.call(2, agent);
    assert!(said.contains("deny") && said.contains("e:/limits/maxWallTimeSeconds"), "{said}");
    assert!(!lab.call(3, "").contains("deny"), "the main agent has no such limit");
    assert_eq!(lab.decisions(), (Outcome::Passed, String::new()));
}
