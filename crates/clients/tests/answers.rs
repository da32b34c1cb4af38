//! What clients make of a hook's answer, as measured, and that nothing Writ answers is among what lets a denied tool run.
//!
//! `vectors/answers.jsonl` holds what was handed to the real clients before a call (standard output, exit code, standard error) and whether the
//! call was kept from running. The rules in [`denies`] are held against each of them, and then Writ's own answers against the rules.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use proptest::prelude::*;
use writ_clients::guard;
use writ_core::json::{self, Value};
use writ_core::{Answer, Reply, Verdict};

/// What a hook leaves behind.
struct Left<'a> {
    out: &'a str,
    exit: i64,
    err: &'a str,
}

fn parsed(text: &str) -> Option<Value> {
    json::parse(text.trim().as_bytes()).ok().filter(|value| value.as_object().is_some())
}

fn word<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().try_fold(value, |value, name| value.get(name)).and_then(Value::as_str)
}

fn members(value: &Value) -> Vec<&str> {
    value.as_object().map(|object| object.iter().map(|(name, _)| name).collect()).unwrap_or_default()
}

fn says(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.trim().is_empty())
}

/// Whether the client keeps the tool from running.
fn denies(client: &str, left: &Left<'_>) -> bool {
    match client {
        "codex" => codex(left),
        "qwen" => qwen(left),
        "gemini" => gemini(left),
        "copilot" => copilot(left),
        // As their documents say, or their programs' texts: nobody measured these.
        "droid" => left.exit == 2 || said(left, &["hookSpecificOutput", "permissionDecision"]),
        "crush" => left.exit == 2 || left.exit == 0 && said(left, &["decision"]),
        "cursor" => left.exit == 2 || left.exit == 0 && said(left, &["permission"]),
        _ => false,
    }
}

/// Whether a member says no.
fn said(left: &Left<'_>, names: &[&str]) -> bool {
    parsed(left.out).is_some_and(|value| word(&value, names) == Some("deny"))
}

/// Every member has to be known, none unsupported, and the reason has to say something.
fn codex(left: &Left<'_>) -> bool {
    if left.exit == 2 {
        return says(Some(left.err));
    }
    let Some(value) = parsed(left.out).filter(|_| left.exit == 0 && !left.out.starts_with('\u{feff}')) else {
        return false;
    };
    let top = ["hookSpecificOutput", "systemMessage", "decision", "reason"];
    let inner = ["hookEventName", "permissionDecision", "permissionDecisionReason"];
    let specific = value.get("hookSpecificOutput");
    let known = members(&value).iter().all(|name| top.contains(name))
        && specific.is_none_or(|specific| members(specific).iter().all(|name| inner.contains(name)));
    let specific = specific.is_some_and(|specific| {
        word(specific, &["hookEventName"]).is_some()
            && word(specific, &["permissionDecision"]) == Some("deny")
            && says(word(specific, &["permissionDecisionReason"]))
    });
    let legacy = word(&value, &["decision"]) == Some("block") && says(word(&value, &["reason"]));
    known && (specific || legacy)
}

/// JSON counts with exit codes up to 2; 2 without it denies where standard error says something.
fn qwen(left: &Left<'_>) -> bool {
    match parsed(left.out.trim_start_matches('\u{feff}')).filter(|_| left.exit <= 2) {
        Some(value) => {
            matches!(word(&value, &["hookSpecificOutput", "permissionDecision"]), Some("deny" | "ask"))
                || matches!(word(&value, &["decision"]), Some("block" | "deny"))
                || value.get("continue").and_then(Value::as_bool) == Some(false)
        }
        None => left.exit == 2 && says(Some(left.err)),
    }
}

/// JSON beats the exit code, wherever it stands; without it 2 and more deny where something is said.
fn gemini(left: &Left<'_>) -> bool {
    let text = if says(Some(left.out)) { left.out } else { left.err };
    let text = text.trim_start_matches('\u{feff}');
    match parsed(text) {
        // A question hangs: nothing runs, and nothing goes on.
        Some(value) => {
            matches!(word(&value, &["decision"]), Some("deny" | "block" | "ask"))
                || value.get("continue").and_then(Value::as_bool) == Some(false)
        }
        None => left.exit >= 2 && says(Some(text)),
    }
}

fn copilot(left: &Left<'_>) -> bool {
    let value = parsed(left.out.trim_start_matches('\u{feff}')).unwrap_or(Value::Null);
    left.exit != 0 || matches!(word(&value, &["permissionDecision"]), Some("deny" | "ask"))
}

fn vectors() -> Vec<Value> {
    let lines = include_str!("vectors/answers.jsonl").lines();
    lines.map(|line| json::parse_with(line.as_bytes(), json::Limits::FOREIGN).unwrap()).collect()
}

#[test]
fn the_rules_are_what_was_measured() {
    let mut seen = 0;
    for vector in vectors() {
        let flag = |name: &str| vector.get(name).and_then(Value::as_bool) == Some(true);
        let (client, case) = (word(&vector, &["client"]).unwrap(), word(&vector, &["case"]).unwrap());
        let left = Left {
            out: word(&vector, &["stdout"]).unwrap_or_default(),
            exit: vector.get("exit").and_then(Value::as_f64).unwrap_or_default() as i64,
            err: word(&vector, &["stderr"]).unwrap_or_default(),
        };
        let told = match (flag("late"), flag("killed")) {
            (true, _) => false,
            (_, true) => client == "copilot",
            _ => denies(client, &left),
        };
        assert_eq!(told, flag("denied"), "{client} {case}: {}", left.out);
        seen += 1;
    }
    assert!(seen > 140, "{seen}");
}

/// Clients that start a command for each call, with their own name of the event before it.
const CLIENTS: [(&str, &str); 7] = [
    ("codex", "PreToolUse"),
    ("copilot", "preToolUse"),
    ("crush", "PreToolUse"),
    ("cursor", "preToolUse"),
    ("droid", "PreToolUse"),
    ("gemini", "BeforeTool"),
    ("qwen", "PreToolUse"),
];

/// What a client is left with when Writ answers.
fn left(client: &str, answer: &Answer) -> String {
    writ_clients::named(client).unwrap().render(answer)
}

fn is_denied(client: &str, answer: &Answer) -> Result<(), TestCaseError> {
    let out = left(client, answer);
    prop_assert!(denies(client, &Left { out: &out, exit: 0, err: "" }), "{client}: {out}");
    prop_assert!(!out.contains("\"ask\"") && !out.contains('\n'), "{client}: {out}");
    Ok(())
}

/// In each case in which somebody meant to deny, in whatever form, Writ's form of the same word denies.
#[test]
fn wherever_a_denial_was_meant_writs_denies() {
    let mut meant = 0;
    for vector in vectors() {
        let client = word(&vector, &["client"]).unwrap();
        let said = [word(&vector, &["stdout"]), word(&vector, &["stderr"])].concat_words();
        let case = word(&vector, &["case"]).unwrap();
        let denial = ["deny", "block", "ask", "exit", "killed", "timeout", "json", "bom", "plain-text", "continue"];
        if !CLIENTS.iter().any(|(name, _)| *name == client) || !denial.iter().any(|word| case.contains(word)) {
            continue;
        }
        meant += 1;
        for reason in [said.as_str(), "", " ", "\u{a0}\n\t"] {
            for answer in [
                Answer::refuse(Some("PreToolUse"), reason),
                Answer::refuse(None, reason),
                Reply::Decided { verdict: Verdict::Ask, reason: reason.to_owned() }.into(),
            ] {
                is_denied(client, &answer).unwrap();
            }
        }
    }
    assert!(meant > 40, "{meant}");
}

trait Words {
    fn concat_words(self) -> String;
}

impl Words for [Option<&str>; 2] {
    fn concat_words(self) -> String {
        self.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Something that a failure might put into an answer: with line breaks, escapes, nothing, or very long.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,80}",
        any::<String>(),
        Just(String::new()),
        "[ \t\r\n\u{a0}\u{2003}]{0,9}",
        "[\"{}\\\\:,a]{0,60}",
        (1_usize..20_000).prop_map(|length| "ü\u{1b}".repeat(length)),
    ]
}

fn refusals() -> impl Strategy<Value = Answer> {
    let reply = (texts(), 0_u8..5).prop_map(|(reason, form)| match form {
        0 => Answer::refuse(Some("PreToolUse"), &reason),
        1 => Answer::refuse(None, &reason),
        2 => Answer::refuse(Some("NoSuchEvent"), &reason),
        3 => Reply::Decided { verdict: Verdict::Ask, reason }.into(),
        _ => Reply::Decided { verdict: Verdict::Deny, reason }.into(),
    });
    let input =
        proptest::option::of(texts().prop_map(|text| Value::Object([("command", Value::from(text.as_str()))].into())));
    (reply, proptest::option::of(texts()), input, proptest::collection::vec(texts(), 0..2))
        .prop_map(|(answer, message, input, notes)| Answer { message, input, notes, ..answer })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    /// Whatever goes wrong inside, what is refused is never among what lets the tool run.
    #[test]
    fn no_failure_lets_a_tool_run(answer in refusals()) {
        for (client, _) in CLIENTS {
            is_denied(client, &answer)?;
        }
    }
}

/// What the settings start says no by itself where Writ cannot: a program that is not there, that dies, that says nothing.
#[test]
fn the_line_in_the_settings_denies_without_writ() {
    for (client, event) in CLIENTS {
        for program in ["/nowhere/writ", "/bin/false", "/dev/null"] {
            let line = guard::line(program, client, event);
            let output = std::process::Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let exit = output.status.code().unwrap().into();
            assert!(denies(client, &Left { out: &out, exit, err: &err }), "{line}: {exit} {err}");
        }
        assert!(!guard::is_guarded(&guard::line("writ", client, "Stop")), "a stop is not held by a hook that is gone");
    }
}
