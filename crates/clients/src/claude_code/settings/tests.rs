use writ_core::json::{Object, parse_with, pretty};

use super::*;
use crate::hooks_file::{Emptied, LIMITS, OURS_LIMIT};

fn without(body: String, which: impl Fn(&Found<'_>) -> bool, emptied: Emptied) -> Result<String, SettingsError> {
    hooks_file::without(body, which, emptied, &FORM)
}

fn spec() -> HookSpec {
    HookSpec { command: "/opt/bin/writ".to_owned(), on_failure_block: true, name: None }
}

fn installed(text: &str) -> String {
    install(Some(text), &spec()).unwrap().text
}

const OTHERS: &str = r#"{
    "zzz": 1e3,   "model" : "opus",
    "hooks": {
        "PreToolUse": [
            { "matcher": "Bash",
              "hooks": [ {"type": "command", "command": "/usr/bin/lint hook.sh"} ] }
        ],
        "Notification": []
    }
}
"#;

/// Texts that installing and removing brings back to the byte.
const TEXTS: [&str; 11] = [
    "{}",
    "{}\n",
    OTHERS,
    "{\"model\":\"opus\"}",
    "{\n\t\"model\": \"opus\"\n}\n",
    "{\r\n  \"model\": \"opus\"\r\n}\r\n",
    "\u{feff}{\n  \"model\": \"opus\"\n}",
    "{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]\n  }\n}",
    "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]},\"a/b~c\":\"€\"}",
    "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls)\"\n    ]\n  },\n  \"env\": {}\n}\n",
    "  { \"model\" : \"opus\" }  ",
];

#[test]
fn puts_in_takes_out_and_changes_nothing_else() {
    for text in TEXTS {
        let once = installed(text);
        let again = install(Some(&once), &spec()).unwrap();
        assert_eq!((again.text.as_str(), again.changed.len()), (once.as_str(), 0), "{text}");
        let found = inspect(Some(&once)).unwrap();
        assert!(found.complete() && found.fails_open.is_empty(), "{text}\n{once}\n{found:?}");
        let back = remove(&once).unwrap();
        assert_eq!(back.text, text, "{once}");
        assert_eq!(back.changed, EVENTS);
        assert!(remove(text).unwrap().changed.is_empty());
    }
}

#[test]
fn keeps_the_layout_and_other_peoples_hooks() {
    let text = installed(OTHERS);
    assert!(text.starts_with("{\n    \"zzz\": 1e3,   \"model\" : \"opus\",\n"));
    assert!(text.contains("[ {\"type\": \"command\", \"command\": \"/usr/bin/lint hook.sh\"} ] }"));
    assert_eq!(inspect(Some(&text)).unwrap().others, 1);
    assert!(text.contains("\n            {\n                \"matcher\": \"*\",\n"), "{text}");
    assert!(installed("{\n\t\"model\": \"opus\"\n}\n").contains("\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t{\n"));
    let one_line = installed("{\"model\":\"opus\"}");
    assert!(one_line.starts_with("{\"model\":\"opus\", \"hooks\": {") && !one_line.contains('\n'), "{one_line}");
}

#[test]
fn a_missing_file_is_written_whole() {
    let text = install(None, &spec()).unwrap().text;
    assert!(text.starts_with("{\n  \"hooks\": {\n    \"PreToolUse\": [\n") && text.ends_with("}\n"));
    assert_eq!(installed(&text), text);
    assert_eq!(remove(&text).unwrap().text, "{}\n");
    assert_eq!(installed("{}\n"), text);
}

#[test]
fn the_entry_has_the_exec_form() {
    let value = parse_with(installed("{}").as_bytes(), LIMITS).unwrap();
    let group = &value.get("hooks").and_then(|hooks| hooks.get("PreToolUse")).and_then(Value::as_array).unwrap()[0];
    assert_eq!(group.get("matcher").and_then(Value::as_str), Some("*"));
    assert_eq!(
        writ_core::json::compact(&group.get("hooks").and_then(Value::as_array).unwrap()[0]),
        r#"{"type":"command","command":"/opt/bin/writ","args":["hook"],"timeout":30,"onFailure":"block"}"#
    );
    let old = HookSpec { on_failure_block: false, ..spec() };
    let text = install(None, &old).unwrap().text;
    assert!(!text.contains("onFailure"));
    assert_eq!(inspect(Some(&text)).unwrap().fails_open, EVENTS);
    assert_eq!(install(Some(&text), &spec()).unwrap().text, install(None, &spec()).unwrap().text);
}

#[test]
fn replaces_entries_that_say_something_else() {
    let moved = installed(OTHERS).replace("/opt/bin/writ", "/old/bin/writ");
    assert_eq!(inspect(Some(&moved)).unwrap().commands, ["/old/bin/writ"]);
    assert_eq!(installed(&moved), installed(OTHERS));
    let shared =
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"},{"type":"command","command":"writ hook"}]}]}}"#;
    let text = installed(shared);
    assert!(text.contains(r#"{"hooks":[{"type":"command","command":"a"}]}"#), "{text}");
    assert_eq!(inspect(Some(&text)).unwrap().commands, ["/opt/bin/writ"]);
}

#[test]
fn refuses_what_the_client_would_ignore() {
    for bad in [
        "",
        "// c\n{}",
        "{\"a\":1,}",
        "{/* c */}",
        "{'a':1}",
        "[]",
        "null",
        "{\"hooks\":[]}",
        "{\"hooks\":{\"Stop\":{}}}",
        "{\"hooks\":{},\"hooks\":{}}",
        "{} {}",
        "\u{feff}\u{feff}{}",
    ] {
        assert!(install(Some(bad), &spec()).is_err(), "{bad}");
        assert!(remove(bad).is_err(), "{bad}");
        assert!(inspect(Some(bad)).is_err(), "{bad}");
    }
}

#[test]
fn doctor_sees_what_is_wrong() {
    assert_eq!(inspect(None).unwrap().missing, EVENTS);
    let text = installed("{}");
    let without_stop = |text: &str| without(text.to_owned(), |found| found.event == "Stop", Emptied::Keep).unwrap();
    assert_eq!(inspect(Some(&without_stop(&text))).unwrap().missing, ["Stop"]);
    let narrowed = text.replacen("\"matcher\": \"*\"", "\"matcher\": \"Bash\"", 1);
    assert_eq!(inspect(Some(&narrowed)).unwrap().narrowed, ["/hooks/PreToolUse/0/hooks/0"]);
    assert_eq!(installed(&narrowed), text.clone());
    let asynchronous = text.replacen("\"timeout\": 30", "\"timeout\": 30, \"async\": true", 1);
    assert!(!inspect(Some(&asynchronous)).unwrap().complete());
    let disabled = text.replacen('{', "{\"disableAllHooks\": true, ", 1);
    assert!(inspect(Some(&disabled)).unwrap().disabled && !inspect(Some(&disabled)).unwrap().complete());
    let broken = installed(r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"weird"}]},{"matcher":5,"hooks":[]}]}}"#);
    assert_eq!(inspect(Some(&broken)).unwrap().rejected, ["/hooks/PreToolUse/0/hooks/0", "/hooks/PreToolUse/1"]);
}

#[test]
fn many_entries_of_ours_are_an_error() {
    let entry = r#"{"type":"command","command":"writ","args":["hook"]}"#;
    let text = format!("{{\"hooks\":{{\"Stop\":[{{\"hooks\":[{}]}}]}}}}", vec![entry; OURS_LIMIT + 1].join(","));
    assert_eq!(remove(&text), Err(SettingsError::TooMany { most: OURS_LIMIT }));
    let few = format!("{{\"hooks\":{{\"Stop\":[{{\"hooks\":[{}]}}]}}}}", [entry; 5].join(","));
    assert_eq!(remove(&few).unwrap().text, "{}");
    assert_eq!(inspect(Some(&few)).unwrap().twice, ["Stop"]);
}

proptest::proptest! {
    #[test]
    fn any_settings_come_back(keys in proptest::collection::vec("[a-z/~ ]{1,5}", 0..4), wide: bool, tail in "[ \n]{0,2}") {
        let mut keys = keys;
        keys.sort();
        keys.dedup();
        let members: Object = keys.into_iter().map(|key| (key, Value::Array(vec![Value::from(true)]))).collect();
        let value = Value::Object(members);
        let text = if wide { pretty(&value) } else { writ_core::json::compact(&value) } + &tail;
        proptest::prop_assert_eq!(remove(&installed(&text)).unwrap().text, text);
    }
}

#[test]
fn entries_that_post_to_a_notary_have_to_say_that_they_fail_closed() {
    let settings = |url: &str, more: &str| {
        format!(r#"{{"hooks":{{"PreToolUse":[{{"hooks":[{{"type":"http","url":"{url}"{more}}}]}}]}}}}"#)
    };
    let open = |text: String| inspect(Some(&text)).unwrap().posted_open;
    let ours = "http://127.0.0.1:7415/hook/claude-code";
    assert_eq!(open(settings(ours, "")), ["/hooks/PreToolUse/0/hooks/0"]);
    assert_eq!(open(settings(ours, r#","onFailure":"continue""#)), ["/hooks/PreToolUse/0/hooks/0"]);
    assert!(open(settings(ours, r#","onFailure":"block""#)).is_empty());
    assert!(open(settings("https://hooks.example/hook/x", "")).is_empty());
    assert!(open(settings("http://127.0.0.1:7415/other", "")).is_empty());
}
