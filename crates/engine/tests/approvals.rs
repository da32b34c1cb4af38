//! A human's word is for one action, once or as long as they said, and counts only as they signed it: whatever else is done to it,
//! the call asks anew and the record shows it.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use writ_clients::Client as _;
use writ_clients::claude_code::ClaudeCode;
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, Timestamp};
use writ_engine::decide::approvals::signed::{self, Place, Presence};
use writ_engine::decide::approvals::{self, ApprovalError, Grant, Lasts, Waiting, Word};
use writ_engine::governing::Trust;
use writ_engine::session::state::{Given, State, Uses};
use writ_engine::verify::{self, Options, Outcome, Phase};
use writ_engine::{Home, hook};
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::row::{Draft, Row, RowDecision};
use writ_store::Store;

const POLICY: &str = r#"{"version":"1.0","name":"ask","tools":{"requireApproval":["Bash:make*","Write"]}}"#;

struct Lab {
    folder: tempfile::TempDir,
    home: Home,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let user = folder.path().join("home");
        fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        fs::create_dir_all(folder.path().join("repo/src")).unwrap();
        fs::create_dir_all(&user).unwrap();
        fs::write(folder.path().join("repo/.aflock"), POLICY).unwrap();
        let home = Home { state: Some(user.join("state")), user: Some(user), ..Home::default() };
        Self { folder, home }
    }

    fn send(&self, payload: &str) -> String {
        ClaudeCode.render(&hook::answer(payload.as_bytes(), &ClaudeCode, &self.home, Path::new("/")))
    }

    /// A call of the session `s` in the repository, with `change` made to its payload.
    fn call(&self, call: &str, change: (&str, &str)) -> String {
        let payload = format!(
            r#"{{"session_id":"s","cwd":"{}/repo","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"make all"}},"tool_use_id":"{call}"}}"#,
            self.folder.path().display()
        );
        let changed = payload.replace(change.0, change.1);
        assert!(change.0.is_empty() || changed != payload, "{change:?}");
        self.send(&changed)
    }

    fn asks(&self, call: &str) -> bool {
        self.call(call, ("", "")).contains(r#""permissionDecision":"ask""#)
    }

    fn runs(&self, call: &str) -> bool {
        self.call(call, ("", "")).contains(r#""permissionDecision":"allow""#)
    }

    fn store(&self) -> Store {
        Store::open(self.home.state.clone().unwrap()).unwrap()
    }

    fn waiting(&self) -> Vec<Waiting> {
        approvals::waiting(&self.store(), &id(), Timestamp::now()).unwrap()
    }

    /// A human's word on the newest call that waits.
    fn word(&self, word: &Word<'_>) -> Result<Grant, ApprovalError> {
        let name = self.waiting().last().unwrap().name();
        approvals::answer(&self.store(), &id(), &name, word, &self.home).map(|(_, grant)| grant)
    }

    fn phases(&self) -> Vec<Phase> {
        self.send(r#"{"session_id":"s","cwd":"/","hook_event_name":"Stop","stop_hook_active":false}"#);
        verify::session(&self.store(), &id(), &self.home, &Options::default()).unwrap().phases
    }

    fn phase(&self, name: &str) -> (Outcome, String) {
        let phases = self.phases();
        let phase = phases.iter().find(|phase| phase.name == name).unwrap();
        (phase.outcome, format!("{} {}", phase.summary, phase.findings.join("; ")))
    }

    /// Every decision and every word holds.
    fn holds(&self) {
        let failed: Vec<_> = self.phases().into_iter().filter(|phase| phase.outcome == Outcome::Failed).collect();
        assert!(failed.is_empty(), "{failed:?}");
    }

    fn rows(&self) -> Vec<Row> {
        self.store().rows(&id()).unwrap()
    }

    /// What a process does that may write the ledger: a row of a grant, and a state that has it.
    fn forge(&self, grant: &Grant, signed: Option<Value>) {
        self.forge_at(grant, signed, Timestamp::now());
    }

    fn forge_at(&self, grant: &Grant, signed: Option<Value>, at: Timestamp) {
        let mut guard = self.store().session(&id()).unwrap().lock(Duration::from_secs(5)).unwrap();
        let mut state = State::from_detail(&guard.last().unwrap().detail).unwrap();
        state.give(grant.action, grant.given(), Timestamp::now()).unwrap();
        let signed = signed.map_or_else(String::new, |signed| format!(r#","signed":{}"#, json::canonical(&signed)));
        let detail = format!(
            r#"{{"event":"grant","grant":{},"rule":"writ:approved","state":{}{signed}}}"#,
            json::to_canonical(grant),
            json::to_canonical(&state)
        );
        let draft = Draft {
            timestamp: at,
            call_id: None,
            tool_name: None,
            decision: RowDecision::Checkpoint,
            denial_reason: None,
            result_hash: None,
            detail: json::parse(detail.as_bytes()).unwrap(),
        };
        guard.append(draft).unwrap();
    }

    /// The grant that would let the newest waiting call run, its action's statement signed with this key.
    fn forged(&self, key: &SigningKey) -> (Grant, Value) {
        let call = self.waiting().pop().unwrap();
        let given = Given { uses: Uses::Once, until: None };
        let place = Place { at: Timestamp::now(), follows: self.rows().last().unwrap().entry_hash };
        let signed = signed::sign(call.action(&id(), &call.flows()), given, Presence::Terminal, &place, key).unwrap();
        let grant = Grant { tool: call.tool, input: call.input, action: call.action, uses: Uses::Once, until: None };
        (grant, signed)
    }

    fn voided(&self) -> Vec<String> {
        let voided = |row: &Row| {
            let is = row.detail.get("event").and_then(Value::as_str) == Some("grant-void");
            is.then(|| row.detail.get("why").and_then(Value::as_str).unwrap().to_owned())
        };
        self.rows().iter().filter_map(voided).collect()
    }
}

fn id() -> SessionId {
    SessionId::new("s")
}

#[test]
fn each_altered_field_asks_anew() {
    let lab = Lab::new();
    assert!(lab.asks("1"));
    lab.word(&Word { lasts: Some(Lasts::Session), ..Word::YES }).unwrap();
    let place = lab.folder.path().join("repo");
    let (repo, src) = (format!("{}\",\"hook", place.display()), format!("{}/src\",\"hook", place.display()));
    for (at, change) in [
        (r#""command":"make all""#, r#""command":"make  all""#),
        (r#""command":"make all""#, r#""command":"make all","timeout":5"#),
        (
            r#""tool_name":"Bash","tool_input":{"command":"make all"}"#,
            r#""tool_name":"Write","tool_input":{"file_path":"x","content":"make all"}"#,
        ),
        (repo.as_str(), src.as_str()),
        (r#""hook_event_name""#, r#""agent_id":"a1","agent_type":"worker","hook_event_name""#),
        (r#""session_id":"s""#, r#""session_id":"other""#),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = lab.call(&format!("changed-{at}"), change);
        assert!(answer.contains(r#""permissionDecision":"ask""#), "{change:?}: {answer}");
    }
    assert!(lab.runs("same"));
    fs::write(place.join(".aflock"), POLICY.replace("\"ask\"", "\"next\"")).unwrap();
    approvals::accept(&lab.store(), &id(), &lab.home).unwrap();
    assert!(lab.asks("policy"), "another policy's is another action");
    lab.holds();
}

#[test]
fn a_word_lasts_as_long_as_was_said() {
    let lab = Lab::new();
    assert!(lab.asks("1"));
    let once = lab.word(&Word::YES).unwrap();
    assert!(lab.waiting().is_empty(), "it has its answer");
    assert!(lab.runs("2") && lab.asks("3"), "once");
    assert_eq!((once.uses, once.until.is_some()), (Uses::Once, true));
    lab.word(&Word { lasts: Some(Lasts::Millis(1500)), ..Word::YES }).unwrap();
    assert!(lab.runs("4") && lab.runs("5"), "as often as it is called");
    std::thread::sleep(Duration::from_millis(1600));
    assert!(lab.asks("6"), "expired");
    let session = lab.word(&Word { lasts: Some(Lasts::Session), ..Word::YES }).unwrap();
    assert!(session.until.is_none() && lab.runs("7") && lab.runs("8"));
    approvals::revoke(&lab.store(), &id(), &session.name(), &lab.home).unwrap();
    assert!(lab.asks("9"), "taken back");
    let no = lab.word(&Word::NO).unwrap();
    let denied = lab.call("10", ("", ""));
    assert!(denied.contains(r#""permissionDecision":"deny""#) && denied.contains("a human said no"), "{denied}");
    assert!(lab.waiting().is_empty(), "what was refused does not wait");
    approvals::revoke(&lab.store(), &id(), &no.name(), &lab.home).unwrap();
    assert!(lab.asks("11"));
    let (outcome, told) = lab.phase("approvals");
    assert_eq!(outcome, Outcome::Passed, "{told}");
    assert!(
        told.contains("4 words of humans") && told.contains("used in row") && told.contains("this ledger's key"),
        "{told}"
    );
    lab.holds();
}

#[test]
fn a_key_of_ones_own_counts_while_it_is_pinned() {
    let lab = Lab::new();
    let key = SigningKey::generate(Algorithm::Ed25519).unwrap();
    let trust = Trust::open(lab.home.state.as_deref());
    assert!(lab.asks("1"));
    let word = Word { key: Some(&key), ..Word::YES };
    assert!(matches!(lab.word(&word), Err(ApprovalError::NotTrusted { .. })));
    trust.pin(&key.public().to_pem(), Path::new("me.pub")).unwrap();
    lab.word(&word).unwrap();
    assert!(lab.runs("2") && lab.asks("3"));
    let (outcome, told) = lab.phase("approvals");
    assert!(
        outcome == Outcome::Passed && told.contains(&format!("the pinned key {}", key.public().key_id())),
        "{told}"
    );
    lab.word(&word).unwrap();
    trust.unpin(&key.public().key_id().hex()).unwrap();
    assert!(lab.asks("4"), "the key does not count any more");
    assert_eq!(lab.voided(), ["no key that is known here signed it"]);
    let (outcome, told) = lab.phase("approvals");
    assert!(outcome == Outcome::Absent && told.contains("by no key known here"), "{told}");
    lab.holds();
}

/// Where the policy names keys, the machine's own gives no yes, neither by command nor by a row of the ledger.
#[test]
fn a_policy_says_whose_yes_counts() {
    let lab = Lab::new();
    let key = SigningKey::generate(Algorithm::P256).unwrap();
    let named = format!(r#""name":"ask","approvals":{{"keys":["{}"]}}"#, key.public().key_id());
    fs::write(lab.folder.path().join("repo/.aflock"), POLICY.replace(r#""name":"ask""#, &named)).unwrap();
    assert!(lab.asks("1"));
    assert!(matches!(lab.word(&Word::YES), Err(ApprovalError::NotAccepted { .. })));
    let machine = lab.store().ledger_key().unwrap();
    let call = lab.waiting().pop().unwrap();
    let follows = lab.rows().last().unwrap().entry_hash;
    let place = Place { at: Timestamp::now(), follows };
    let signed =
        signed::sign(call.action(&id(), &call.flows()), Given::default(), Presence::Terminal, &place, &machine)
            .unwrap();
    let grant = Grant { tool: call.tool, input: call.input, action: call.action, uses: Uses::Once, until: None };
    lab.forge_at(&grant, Some(signed), place.at);
    assert!(lab.asks("2"), "signed with the machine's key, at its place");
    assert!(lab.voided()[0].contains("wants it signed with one of the keys"), "{:?}", lab.voided());
    assert_eq!(lab.phase("approvals").0, Outcome::Failed);

    let lab = Lab::new();
    fs::write(lab.folder.path().join("repo/.aflock"), POLICY.replace(r#""name":"ask""#, &named)).unwrap();
    Trust::open(lab.home.state.as_deref()).pin(&key.public().to_pem(), Path::new("me.pub")).unwrap();
    assert!(lab.asks("1"));
    lab.word(&Word { key: Some(&key), ..Word::YES }).unwrap();
    assert!(lab.runs("2") && lab.asks("3"));
    lab.word(&Word::NO).unwrap();
    assert!(lab.call("4", ("", "")).contains(r#""permissionDecision":"deny""#), "anybody's no counts");
    assert_eq!(lab.phase("approvals").0, Outcome::Passed);
    lab.holds();
}

/// Whoever may write the ledger and has no key gives no word: not unsigned, not signed by a stranger, not with another's signature.
#[test]
fn forged_words_let_nothing_run() {
    let lab = Lab::new();
    assert!(lab.asks("1"));
    let stranger = SigningKey::generate(Algorithm::Ed25519).unwrap();
    let (grant, by_stranger) = lab.forged(&stranger);
    lab.forge(&grant, None);
    assert!(lab.asks("2"), "unsigned");
    lab.forge(&grant, Some(by_stranger));
    assert!(lab.asks("3"), "a stranger's");
    // Signed by the machine for another action, or another place.
    let machine = lab.store().ledger_key().unwrap();
    let (grant, elsewhere) = lab.forged(&machine);
    assert!(lab.asks("4"));
    lab.forge(&grant, Some(elsewhere));
    assert!(lab.asks("5"), "signed for another place");
    let (_, own) = lab.forged(&machine);
    lab.forge(&Grant { action: Digest::of(b"other"), ..grant.clone() }, Some(own.clone()));
    lab.forge(&Grant { uses: Uses::Any, ..grant.clone() }, Some(own));
    assert!(lab.asks("6"), "signed for once");
    assert_eq!(lab.voided().len(), 4, "{:?}", lab.voided());
    let (outcome, told) = lab.phase("approvals");
    assert!(outcome == Outcome::Failed, "{told}");
    // A state that has it, and no row that gives it.
    let rows = lab.rows().len();
    let mut guard = lab.store().session(&id()).unwrap().lock(Duration::from_secs(5)).unwrap();
    let last = guard.last().unwrap().clone();
    let mut state = State::from_detail(&last.detail).unwrap();
    state.give(Digest::of(b"another"), Given::default(), Timestamp::now()).unwrap();
    state.grants.clear();
    let call = lab.waiting().pop().unwrap();
    state.give(call.action, Given::default(), Timestamp::now()).unwrap();
    let detail = format!(r#"{{"event":"prompt","state":{}}}"#, json::to_canonical(&state));
    let (call_id, tool_name, denial_reason, result_hash) = (None, None, None, None);
    let (timestamp, decision) = (Timestamp::now(), RowDecision::Checkpoint);
    let detail = json::parse(detail.as_bytes()).unwrap();
    guard.append(Draft { timestamp, call_id, tool_name, decision, denial_reason, result_hash, detail }).unwrap();
    drop(guard);
    assert_eq!(lab.rows().len(), rows + 1);
    assert!(lab.asks("7"), "nobody gave it");
}

/// A word that was used is not used again, by putting its row in once more.
#[test]
fn replayed_words_let_nothing_run() {
    let lab = Lab::new();
    assert!(lab.asks("1"));
    let grant = lab.word(&Word { lasts: None, ..Word::YES }).unwrap();
    assert!(lab.runs("2"));
    let given = lab.rows().into_iter().find(|row| row.detail.get("signed").is_some()).unwrap();
    let signed = given.detail.get("signed").unwrap().clone();
    lab.forge(&grant, Some(signed));
    assert!(lab.asks("3"));
    assert_eq!(lab.voided(), ["it was signed for another place of the record"]);
    assert_eq!(lab.phase("approvals").0, Outcome::Failed);
}

/// The list follows the ledger and has a bound; what ran at the client's own prompt does not wait.
#[test]
fn what_waits_is_what_the_rows_say() {
    let lab = Lab::new();
    assert!(lab.asks("1"));
    let after = format!(
        r#"{{"session_id":"s","cwd":"{}/repo","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{{"command":"make all"}},"tool_response":"done","tool_use_id":"1"}}"#,
        lab.folder.path().display()
    );
    assert_eq!(lab.waiting().len(), 1);
    lab.send(&after);
    assert!(lab.waiting().is_empty(), "somebody said yes at the prompt");
    for number in 0..70 {
        lab.call(&format!("n-{number}"), ("make all", &format!("make part-{number}")));
    }
    let waiting = lab.waiting();
    assert_eq!(waiting.len(), approvals::pending::MOST);
    assert!(lab.asks("last") && lab.waiting().last().unwrap().shown.programs == ["make"]);
    let everywhere = approvals::everywhere(&lab.store(), Timestamp::now()).unwrap();
    assert_eq!(everywhere.len(), 1);
    let tomorrow = Timestamp::from_millis(Timestamp::now().millis() + 25 * 60 * 60 * 1000);
    assert!(approvals::everywhere(&lab.store(), tomorrow).unwrap().is_empty());
    assert!(approvals::waiting(&lab.store(), &id(), tomorrow).unwrap().is_empty(), "a request waits for a day");
    assert_eq!(waiting[0].rules, ["ask `Bash:make*`, /tools/requireApproval/0"]);
}

/// No more words are open at once than each row can repeat.
#[test]
fn words_that_are_open_have_a_bound() {
    let lab = Lab::new();
    let mut given = 0;
    for number in 0..20 {
        lab.call(&format!("n-{number}"), ("make all", &format!("make part-{number}")));
        match lab.word(&Word { lasts: Some(Lasts::Session), ..Word::YES }) {
            Ok(_) => given += 1,
            Err(error) => assert!(matches!(error, ApprovalError::TooMany), "{error}"),
        }
    }
    assert_eq!(given, writ_engine::session::state::MAX_GRANTS);
    lab.holds();
}
