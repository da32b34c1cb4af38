use writ_core::json::parse as json;

use super::*;

const COMMON: &str =
    r#""session_id":"s1","transcript_path":"/t.jsonl","cwd":"/p","permission_mode":"default","prompt_id":"q""#;

fn payload(rest: &str) -> Result<Event, PayloadError> {
    parse(format!("{{{COMMON},{rest}}}").as_bytes())
}

fn event(rest: &str) -> EventKind {
    payload(rest).unwrap().kind
}

fn write() -> ToolUse {
    let input = json(br#"{"file_path":"/p/a","content":"x"}"#).unwrap();
    ToolUse { id: "c1".to_owned(), call: ToolCall::new("Write", input, "/p") }
}

const CALL: &str = r#""tool_name":"Write","tool_input":{"file_path":"/p/a","content":"x"},"tool_use_id":"c1""#;

#[test]
fn reads_the_common_members() {
    let input = payload(r#""hook_event_name":"SubagentStart","agent_id":"a1","agent_type":"general-purpose""#).unwrap();
    assert_eq!(input.session.as_str(), "s1");
    assert_eq!((input.cwd.as_str(), input.transcript.as_deref()), ("/p", Some("/t.jsonl")));
    assert_eq!((input.permission_mode.as_deref(), input.prompt_id.as_deref()), (Some("default"), Some("q")));
    assert_eq!(input.agent, Some(Agent { id: "a1".to_owned(), kind: Some("general-purpose".to_owned()) }));
    for id in ["5", "[]", "{}", "false"] {
        assert!(payload(&format!(r#""hook_event_name":"SubagentStart","agent_id":{id}"#)).is_err(), "{id}");
    }
    assert_eq!(payload(r#""hook_event_name":"SubagentStart","agent_id":null"#).unwrap().agent, None);
    let bare = parse(br#"{"session_id":"s","cwd":"/","hook_event_name":"Stop"}"#).unwrap();
    assert_eq!((bare.agent, bare.transcript), (None, None));
    assert_eq!(bare.kind, EventKind::Stop { last_message: None, again: false });
}

#[test]
fn reads_the_tool_events() {
    assert_eq!(event(&format!("\"hook_event_name\":\"PreToolUse\",{CALL}")), EventKind::PreToolUse(write()));
    let ran = EventKind::PostToolUse {
        call: write(),
        response: json(br#"{"type":"create"}"#).unwrap(),
        duration_ms: Some(3),
    };
    let rest = r#""tool_response":{"type":"create"},"duration_ms":3"#;
    assert_eq!(event(&format!("\"hook_event_name\":\"PostToolUse\",{CALL},{rest}")), ran);
    let failed =
        EventKind::PostToolUseFailure { call: write(), error: "no".to_owned(), interrupted: true, duration_ms: None };
    let rest = r#""error":"no","is_interrupt":true"#;
    assert_eq!(event(&format!("\"hook_event_name\":\"PostToolUseFailure\",{CALL},{rest}")), failed);
    let asked = EventKind::PermissionRequest { call: write().call };
    assert_eq!(event(&format!("\"hook_event_name\":\"PermissionRequest\",{CALL}")), asked);
    let batch = format!("\"hook_event_name\":\"PostToolBatch\",\"tool_calls\":[{{{CALL},\"tool_response\":\"done\"}}]");
    let calls = vec![BatchCall { call: write(), outcome: None }];
    assert_eq!(event(&batch), EventKind::PostToolBatch { calls });
}

#[test]
fn reads_the_other_events() {
    let text = |text: &str| Some(text.to_owned());
    let last = r#""last_assistant_message":"done","stop_hook_active":true"#;
    for (rest, expected) in [
        (
            r#""hook_event_name":"UserPromptSubmit","prompt":"go""#,
            EventKind::UserPromptSubmit { prompt: "go".to_owned() },
        ),
        (r#""hook_event_name":"SessionStart","source":"resume""#, EventKind::SessionStart { source: text("resume") }),
        (
            &format!("\"hook_event_name\":\"SubagentStop\",\"agent_transcript_path\":\"/a.jsonl\",{last}"),
            EventKind::SubagentStop { transcript: text("/a.jsonl"), last_message: text("done"), again: true },
        ),
        (&format!("\"hook_event_name\":\"Stop\",{last}"), EventKind::Stop { last_message: text("done"), again: true }),
        (r#""hook_event_name":"PreCompact","trigger":"manual""#, EventKind::PreCompact { trigger: text("manual") }),
        (r#""hook_event_name":"SessionEnd","reason":"other""#, EventKind::SessionEnd { reason: text("other") }),
        (
            r#""hook_event_name":"ConfigChange","source":"project_settings","file_path":"/f""#,
            EventKind::ConfigChange { source: text("project_settings"), file: text("/f") },
        ),
        (r#""hook_event_name":"TeammateIdle","anything":[{}]"#, EventKind::Other("TeammateIdle".to_owned())),
    ] {
        let event = event(rest);
        assert!(rest.contains(event.name()));
        assert_eq!(event, expected);
    }
}

#[test]
fn refuses_what_it_cannot_act_on() {
    for bad in ["", "{}", "[]", "{\"session_id\":\"s\"", "\u{feff}{}", "null"] {
        assert!(parse(bad.as_bytes()).is_err(), "{bad}");
    }
    for rest in [
        r#""hook_event_name":5"#,
        r#""hook_event_name":"PreToolUse""#,
        r#""hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{}"#,
        r#""hook_event_name":"PreToolUse","tool_name":"Write","tool_use_id":"c""#,
        r#""hook_event_name":"PreToolUse","tool_name":"","tool_input":{},"tool_use_id":"c""#,
        r#""hook_event_name":"PostToolUse","tool_input":{},"tool_use_id":"c""#,
        r#""hook_event_name":"PermissionRequest","tool_name":"Write""#,
        r#""hook_event_name":"PostToolBatch","tool_calls":{}"#,
        r#""hook_event_name":"PostToolBatch","tool_calls":[{}]"#,
        r#""hook_event_name":"Stop","cwd":"/twice""#,
    ] {
        assert!(payload(rest).is_err(), "{rest}");
    }
}

#[test]
fn hints_at_the_event_of_a_broken_payload() {
    let hint = |text: &str| hints(text.as_bytes()).event;
    assert_eq!(hint(r#"{"hook_event_name": "PreToolUse", "tool_input": {"cut of"#).as_deref(), Some("PreToolUse"));
    assert_eq!(hint(r#"{"x":"\"hook_event_name\":\"Stop\"","hook_event_name":"PreToolUse"#), None);
    let forged = r#"{"x":"\"hook_event_name\":\"Stop\"","hook_event_name":"PreToolUse"}}"#;
    assert_eq!(hint(forged).as_deref(), Some("PreToolUse"));
    for none in ["", "{}", r#"{"hook_event_name":"#, r#"{"hook_event_name":5}"#, r#"{"hook_event_name":""}"#] {
        assert_eq!(hint(none), None, "{none}");
    }
    assert_eq!(hint(r#"{"hook_event_name":"Stop","tool_input":{"hook_event_name":"PreToolUse"}},"#), None);
}

proptest::proptest! {
    #[test]
    fn never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), cut in 0usize..400) {
        drop((parse(&bytes), hints(&bytes)));
        let whole = format!("{{{COMMON},\"hook_event_name\":\"PreToolUse\",{CALL}}}");
        let part = &whole.as_bytes()[..cut.min(whole.len())];
        proptest::prop_assert_eq!(parse(part).is_ok(), part.len() == whole.len());
        drop(hints(part));
    }
}
