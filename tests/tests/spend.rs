//! Limits of a session, end to end: counted from rows and transcripts, held by the hook, raised by a human, verified.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::thread;

use serde_json::{Value, json};
use workplace::{SESSION, Workplace};

/// A session whose client writes a transcript.
struct Talk {
    place: Workplace,
}

impl Talk {
    fn new(name: &str, limits: &Value) -> Self {
        Self::under(name, &json!({"version": "1.0", "name": "spend", "limits": limits}))
    }

    fn under(name: &str, policy: &Value) -> Self {
        let place = Workplace::new(name);
        fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
        let talk = Self { place };
        talk.place.start();
        talk
    }

    fn main(&self) -> PathBuf {
        self.place.folder.join("repository/none.jsonl")
    }

    fn add(&self, agent: Option<&str>, text: &str) {
        let folder = self.main().with_extension("").join("subagents");
        let path = agent.map_or_else(|| self.main(), |agent| folder.join(format!("agent-{agent}.jsonl")));
        fs::create_dir_all(folder).unwrap();
        OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// A message of the model's that makes calls.
    fn says(&self, agent: Option<&str>, id: &str, model: &str, tokens: [u64; 2], calls: &[&str]) {
        let input = json!({"file_path": self.place.folder.join("repository/src/module.rs"), "content": "text"});
        let block = |call: &&str| json!({"type": "tool_use", "id": call, "name": "Write", "input": input});
        let text = vec![json!({"type": "text", "text": "so"})];
        let blocks: Vec<Value> = if calls.is_empty() { text } else { calls.iter().map(block).collect() };
        for block in blocks {
            let usage = json!({"input_tokens": tokens[0], "output_tokens": tokens[1]});
            let message = json!({"id": id, "model": model, "role": "assistant", "content": [block], "usage": usage});
            let line = json!({"type": "assistant", "agentId": agent, "message": message});
            self.add(agent, &format!("{line}\n"));
        }
    }

    fn call(&self, id: &str) -> Value {
        let answer: Value =
            serde_json::from_str(&self.place.answer(&self.place.write_call(id, "src/module.rs"))).unwrap();
        answer["hookSpecificOutput"].clone()
    }

    fn is_let(&self, id: &str) -> bool {
        self.call(id)["permissionDecision"] != "deny"
    }

    fn event(&self, event: &str, members: &str) -> Value {
        serde_json::from_str(&self.place.answer(&self.place.payload(event, members))).unwrap()
    }

    fn prompt(&self) -> Value {
        self.event("UserPromptSubmit", r#","prompt":"go on""#)
    }

    fn batch(&self) -> Value {
        self.event("PostToolBatch", r#","tool_calls":[]"#)
    }

    fn stop(&self) {
        self.event("Stop", r#","stop_hook_active":false"#);
        self.event("SessionEnd", r#","reason":"other""#);
    }

    /// `writ` with these words at a terminal of its own.
    fn human(&self, words: &str) -> (bool, String) {
        let writ = self.place.command(&[]).get_program().to_string_lossy().into_owned();
        let (folder, state) = (self.place.folder.clone(), self.place.folder.join("state"));
        let mut script = std::process::Command::new("script");
        script.args(["-qec", &format!("'{writ}' {words}"), "/dev/null"]).current_dir(folder.join("repository"));
        script
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", folder)
            .env("WRIT_STATE_DIR", state);
        let output = script.stdin(std::process::Stdio::null()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.place.writ(&[args, &["--format", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    }

    fn verify(&self) -> Value {
        self.json(&["verify"])
    }

    fn phase(&self, name: &str) -> Value {
        let report = self.verify();
        let phase = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).cloned();
        phase.unwrap_or_else(|| panic!("no {name} in {report:#}"))
    }

    fn limit(&self, name: &str) -> Value {
        let shown = self.json(&["limits", "show"]);
        shown["limits"].as_array().unwrap().iter().find(|limit| limit["limit"] == name).cloned().unwrap()
    }
}

fn reason(answer: &Value) -> String {
    answer["reason"].as_str().or(answer["permissionDecisionReason"].as_str()).unwrap_or_default().to_owned()
}

const MODEL: &str = "claude-sonnet-4-5";

#[test]
fn past_its_spend_a_session_is_stopped_for_good_until_a_human_raises_it() {
    let talk = Talk::new("spend-stop", &json!({"maxSpendUSD": 0.01}));
    assert_eq!(talk.prompt(), json!({}));
    // $3 and $15 a million: 100 × 3 + 20 × 15 = 600 micro-dollars a message.
    talk.says(None, "m1", MODEL, [100, 20], &["c1", "c2"]);
    assert!(talk.is_let("c1") && talk.is_let("c2"));
    assert_eq!(talk.batch(), json!({}));
    assert_eq!(talk.limit("maxSpendUSD")["used"], 600);
    // Four fifths, once.
    talk.says(None, "m2", MODEL, [2000, 100], &["c3"]);
    assert!(talk.is_let("c3"));
    let told = talk.batch();
    let text = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("$0.0081 of $0.01 are used"), "{told}");
    assert_eq!(talk.batch(), json!({}));
    // A subagent's messages count, and the call that its message makes is refused.
    talk.says(Some("x"), "m3", MODEL, [1000, 0], &["c4"]);
    let denied = talk.call("c4");
    let why = reason(&denied);
    assert!(denied["permissionDecision"] == "deny" && why.contains("/limits/maxSpendUSD"), "{denied}");
    assert!(
        why.contains("spent $0.0111 of the $0.01") && why.contains("writ limits raise maxSpendUSD 0.0211"),
        "{why}"
    );
    for answer in [talk.batch(), talk.prompt(), talk.prompt()] {
        assert!(answer["decision"] == "block" && reason(&answer).contains("writ limits raise"), "{answer}");
    }
    // A human goes on.
    assert!(!talk.place.writ(&["limits", "raise", "maxSpendUSD", "1"]).status.success(), "no terminal, no human");
    let (done, text) = talk.human("limits raise maxSpendUSD 0.01");
    assert!(!done && text.contains("already"), "{text}");
    let (done, text) = talk.human("limits raise maxSpendUSD 1");
    assert!(done && text.contains("$1.00 instead of $0.01"), "{text}");
    assert!(talk.prompt() == json!({}) && talk.is_let("c4") && talk.batch() == json!({}));
    talk.stop();
    let report = talk.verify();
    assert_eq!(report["status"], "verified", "{report:#}");
    let phase = talk.phase("limits");
    assert_eq!((&phase["outcome"], &phase["summary"]), (&json!("passed"), &json!("$0.0111 of $1.00")), "{phase}");
    assert_eq!(phase["standing"], "reported by the agent");
    let shown = talk.json(&["status"]);
    let agents = &shown["limits"]["agents"];
    assert_eq!((&agents[0]["agent"], &agents[0]["spend"]), (&json!("main"), &json!(8100)), "{shown:#}");
    assert_eq!((&agents[1]["agent"], &agents[1]["spend"]), (&json!("x"), &json!(3000)), "{shown:#}");
}

#[test]
fn a_model_without_a_price_is_an_error_until_it_has_one() {
    let talk = Talk::new("spend-price", &json!({"maxSpendUSD": 5}));
    talk.prompt();
    talk.says(None, "m1", "nobody-1", [1_000_000, 0], &["c1"]);
    let why = reason(&talk.call("c1"));
    assert!(why.contains("no price for the model `nobody-1`") && why.contains("writ prices set"), "{why}");
    assert_eq!(talk.prompt()["decision"], "block");
    assert_eq!(talk.limit("maxSpendUSD")["used"], Value::Null);
    assert!(talk.place.writ(&["prices", "set", "nobody-1", "--input", "2", "--output", "4"]).status.success());
    assert!(talk.is_let("c1"));
    assert_eq!(talk.limit("maxSpendUSD")["used"], 2_000_000);
    let prices = talk.json(&["prices", "show", "nobody-1"]);
    assert_eq!((&prices["models"][0]["own"], &prices["models"][0]["cacheWrite"]), (&json!(true), &json!("2.50")));
    talk.stop();
    assert_eq!(talk.verify()["status"], "verified", "{:#}", talk.verify());
    assert!(talk.place.writ(&["prices", "remove", "nobody-1"]).status.success());
    assert_eq!(talk.phase("limits")["outcome"], "passed", "it is counted with the prices of then");
}

#[test]
fn post_hoc_limits_stop_nothing_and_break_the_report() {
    let limits = json!({"maxTokensOut": 50, "maxToolCalls": 1, "maxTurns": 1, "maxTokensIn": {"value": 500, "enforcement": "post-hoc"}});
    let talk = Talk::new("spend-post-hoc", &limits);
    talk.prompt();
    talk.says(None, "m1", "any", [300, 30], &["c1", "c2"]);
    assert!(talk.is_let("c1") && talk.is_let("c2"));
    talk.says(None, "m2", "any", [200, 30], &[]);
    talk.stop();
    let report = talk.verify();
    assert_eq!((&report["status"], &report["verified"]), (&json!("breached"), &json!(false)), "{report:#}");
    let phase = talk.phase("limits");
    assert_eq!(phase["summary"], "more was used than the policy gives: 60 of 50 tokens, 2 of 1 tool call");
    assert_eq!(talk.phase("decisions")["outcome"], "passed", "{report:#}");
}

#[test]
fn a_late_line_is_caught_up_with_and_nothing_counts_twice() {
    let talk = Talk::new("spend-late", &json!({"maxTokensIn": 1000}));
    talk.prompt();
    talk.says(None, "m1", "any", [100, 1], &["c1"]);
    assert!(talk.is_let("c1"));
    // The rest of a message's line, and a repeated conversation, come later; what was kept of the count is lost.
    talk.add(None, r#"{"type":"assistant","message":{"id":"m2","model":"any","#);
    talk.says(Some("x"), "m1", "any", [100, 1], &[]);
    assert!(talk.is_let("c2") && talk.limit("maxTokensIn")["used"] == 100);
    talk.add(None, "\"usage\":{\"input_tokens\":250,\"output_tokens\":1}}}\n");
    fs::remove_file(talk.place.session().join("usage")).unwrap();
    assert!(talk.is_let("c3") && talk.limit("maxTokensIn")["used"] == 350);
    fs::write(talk.place.session().join("usage"), "{}").unwrap();
    talk.says(None, "m3", "any", [100, 1], &[]);
    assert!(talk.is_let("c4") && talk.limit("maxTokensIn")["used"] == 450);
    // A transcript that is gone lowers nothing, and leaves a doubt.
    talk.says(None, "m4", "any", [549, 1], &[]);
    assert!(talk.is_let("c5"));
    let text = fs::read_to_string(talk.main()).unwrap();
    fs::write(talk.main(), text.lines().take(2).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    assert!(talk.is_let("c6") && talk.limit("maxTokensIn")["used"] == 999);
    talk.stop();
    let phase = talk.phase("limits");
    assert_eq!(phase["outcome"], "absent", "{phase}");
    assert!(phase["findings"][0].as_str().unwrap().contains("the rows say 999 tokens"), "{phase}");
    fs::write(talk.main(), text).unwrap();
    let phase = talk.phase("limits");
    assert_eq!((&phase["outcome"], &phase["summary"]), (&json!("passed"), &json!("999 of 1,000 tokens")), "{phase}");
}

/// What a client wrote last counts though it was ended before the line's end; of a line that is cut off nobody knows what it told.
#[test]
fn the_last_line_counts_and_one_that_is_cut_off_leaves_a_doubt() {
    let talk = Talk::new("spend-last", &json!({"maxTokensOut": {"value": 1000, "enforcement": "post-hoc"}}));
    talk.prompt();
    talk.says(None, "m1", "any", [1, 600], &["c1"]);
    assert!(talk.is_let("c1"));
    talk.says(None, "m2", "any", [1, 500], &[]);
    let whole = fs::read_to_string(talk.main()).unwrap();
    fs::write(talk.main(), whole.trim_end()).unwrap();
    talk.stop();
    assert_eq!(talk.phase("limits")["summary"], "more was used than the policy gives: 1,100 of 1,000 tokens");
    let other = Talk::new("spend-cut", &json!({"maxTokensOut": {"value": 1000, "enforcement": "post-hoc"}}));
    other.prompt();
    other.add(None, whole.split_at(whole.len() - 30).0);
    assert!(other.is_let("c1"));
    other.stop();
    let phase = other.phase("limits");
    assert!(phase["outcome"] == "absent" && phase.to_string().contains("cut off"), "{phase}");
}

/// A text that was cut in the middle of a letter, as the client may write it, hides nothing and stops nothing.
#[test]
fn a_text_that_was_cut_in_a_letter_stops_no_session() {
    let talk = Talk::new("spend-letter", &json!({"maxTokensOut": {"value": 1000, "enforcement": "fail-fast"}}));
    talk.prompt();
    talk.says(None, "m1", "any", [1, 600], &["c1"]);
    let result = r#"{"type":"tool_result","tool_use_id":"c1","content":"cut in \ud83d"}"#;
    let usage = r#""toolUseResult":{"content":"\ud83d","usage":{"output_tokens":1}}"#;
    talk.add(None, &format!("{{\"type\":\"user\",\"message\":{{\"content\":[{result}]}},{usage}}}\n"));
    assert!(talk.is_let("c2") && talk.limit("maxTokensOut")["used"] == 600);
    talk.says(None, "m2", "any", [1, 400], &[]);
    assert!(!talk.is_let("c3"));
}

#[test]
fn what_cannot_be_counted_is_refused_where_it_is_limited() {
    let talk = Talk::new("spend-unknown", &json!({"maxTokensIn": 1000}));
    assert_eq!(talk.prompt(), json!({}), "before the first answer there is no transcript");
    let why = reason(&talk.call("c1"));
    assert!(why.contains("not known") && why.contains("/limits/maxTokensIn"), "{why}");
    talk.add(None, "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":\"x\"}}}\n");
    assert!(!talk.is_let("c2"));
    // Of what no transcript is needed for, everything is known.
    let calls = Talk::new("spend-no-transcript", &json!({"maxToolCalls": {"value": 2}}));
    assert!(calls.is_let("c1") && calls.is_let("c2") && !calls.is_let("c3"));
    assert!(!calls.place.session().join("usage").exists());
    let generic =
        r#"{"event":"before-call","session":"g","cwd":"@","call":{"id":"1","tool":"Read","input":{"file_path":"a"}}}"#;
    let cwd = talk.place.folder.join("repository");
    let mut hook = talk.place.command(&["hook", "--client", "generic"]).spawn().unwrap();
    hook.stdin.take().unwrap().write_all(generic.replace('@', cwd.to_str().unwrap()).as_bytes()).unwrap();
    let said = String::from_utf8(hook.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("deny") && said.contains("keeps no transcript"), "{said}");
}

/// A record that cannot be written counts nothing: where something is limited, the model is not asked again.
#[test]
fn without_a_record_nothing_limited_goes_on() {
    for (name, limits, stops) in
        [("spend-damaged", json!({"maxToolCalls": {"value": 5}}), true), ("spend-damaged-free", json!({}), false)]
    {
        let talk = Talk::new(name, &limits);
        assert!(talk.prompt()["decision"] == Value::Null && talk.is_let("c1"));
        let ledger = talk.place.session().join("ledger.jsonl");
        let whole = fs::read(&ledger).unwrap();
        fs::write(&ledger, [whole.as_slice(), b"{}\n"].concat()).unwrap();
        assert!(!talk.is_let("c2"));
        for answer in [talk.prompt(), talk.batch()] {
            assert_eq!(answer["decision"] == "block", stops, "{name}: {answer}");
            assert!(answer.to_string().contains("writ"), "{name}: {answer}");
        }
        fs::write(&ledger, whole).unwrap();
        assert!(talk.prompt()["decision"] == Value::Null && talk.is_let("c3"));
    }
}

#[test]
fn turns_and_time_end_a_session_too() {
    let talk = Talk::new("spend-turns", &json!({"maxTurns": {"value": 2}}));
    assert!(talk.prompt() == json!({}) && talk.prompt()["decision"] == Value::Null && talk.is_let("c1"));
    let refused = talk.prompt();
    assert!(refused["decision"] == "block" && reason(&refused).contains("the 2 turns"), "{refused}");
    assert!(!talk.is_let("c2"), "a client that goes on all the same is in the next turn");
    assert_eq!(talk.batch()["decision"], "block");
    let (done, text) = talk.human("limits raise maxTurns 3");
    assert!(done && talk.prompt()["decision"] == Value::Null && talk.is_let("c3"), "{text}");
    talk.stop();
    assert_eq!(talk.phase("limits")["summary"], "3 of 3 turns (reached)");

    let talk = Talk::new("spend-time", &json!({"maxWallTimeSeconds": 2}));
    assert!(talk.is_let("c1"));
    thread::sleep(std::time::Duration::from_millis(2100));
    assert!(!talk.is_let("c2") && talk.prompt()["decision"] == "block" && talk.batch()["decision"] == "block");
    talk.stop();
    assert_eq!(talk.phase("decisions")["outcome"], "passed");
}

#[test]
fn a_policy_that_observes_stops_nothing_and_says_what_it_would_have() {
    let policy = json!({"version": "1.0", "name": "o", "enforce": "observe", "limits": {"maxTurns": {"value": 1}, "maxToolCalls": {"value": 1}}});
    let talk = Talk::under("spend-observe", &policy);
    for _ in 0..3 {
        assert_eq!(talk.prompt()["decision"], Value::Null);
    }
    assert!(talk.is_let("c1") && talk.is_let("c2"));
    talk.stop();
    assert_eq!(talk.phase("decisions")["outcome"], "passed", "{:#}", talk.verify());
    assert!(talk.phase("enforcement")["findings"][0].as_str().unwrap().contains("/limits/"));
}

/// Whoever asks first, of many at once: calls are counted one by one, and tokens once.
#[test]
fn sixteen_processes_at_once_count_right() {
    let talk = Talk::new("spend-many", &json!({"maxToolCalls": {"value": 20}, "maxSpendUSD": 5}));
    talk.prompt();
    for number in 0..40 {
        talk.says(None, &format!("m{number}"), MODEL, [1000, 10], &[]);
    }
    thread::scope(|scope| {
        for process in 0..16 {
            let talk = &talk;
            scope.spawn(move || (0..4).for_each(|call| drop(talk.call(&format!("{process}-{call}")))));
        }
    });
    assert_eq!(talk.place.approved().len(), 20);
    assert_eq!(talk.limit("maxSpendUSD")["used"], 40 * 3150);
    talk.event("Stop", r#","stop_hook_active":false"#);
    let report = String::from_utf8(talk.place.writ(&["verify", SESSION]).stdout).unwrap();
    assert!(report.contains("64 decisions come out the same (20 allowed, 0 asked, 44 denied)"), "{report}");
}

/// A session without limits reads no transcript and keeps nothing of it.
#[test]
fn without_limits_nothing_is_counted() {
    let place = Workplace::new("spend-none");
    place.start();
    place.allowed("c1");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    assert!(!place.session().join("usage").exists() && !place.session().join("prices").exists());
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    assert!(!ledger.contains("limited") && !ledger.contains("usage"), "{ledger}");
}
