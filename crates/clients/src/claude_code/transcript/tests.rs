use super::*;

fn used(agent: &str, blocks: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"agentId\":{agent},\"timestamp\":\"2026-11-21T04:37:16.871Z\",\
         \"message\":{{\"content\":[{blocks}]}}}}\n"
    )
}

fn tool(id: &str, name: &str, input: &str) -> String {
    format!("{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"{name}\",\"input\":{input}}}")
}

fn result(id: &str, error: bool, text: &str, decision: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"permissionDecision\":{decision},\"message\":{{\"content\":[{{\"type\":\"tool_result\",\
         \"tool_use_id\":\"{id}\",\"is_error\":{error},\"content\":\"{text}\"}}]}}}}\n"
    )
}

fn read_text(text: &str) -> Transcript {
    read(text.as_bytes()).unwrap()
}

const ACCEPT: &str = r#"{"decision":"accept","source":"config"}"#;

/// The shapes that version 2.1.329 writes.
#[test]
fn finds_every_call_and_what_became_of_it() {
    let hook = r#"{"decision":"reject","source":"hook","reasonType":"hook","reasonCode":"hook:PreToolUse"}"#;
    let rule = r#"{"decision":"reject","source":"config","reasonCode":"workingDir"}"#;
    let gone = "<tool_use_error>Error: No such tool available: Ghost</tool_use_error>";
    let unread = "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>";
    let cases = [
        ("c1", "Write", false, "ok", ACCEPT, Outcome::Completed),
        ("c2", "Bash", true, "Exit code 3", ACCEPT, Outcome::Failed),
        ("c3", "Write", true, "PreToolUse:Write hook error: no", hook, Outcome::DeniedByHook),
        ("c4", "Write", true, "you haven't granted it yet", rule, Outcome::DeniedByClient),
        ("c5", "Ghost", true, gone, "null", Outcome::NoSuchTool),
        ("c6", "Write", true, unread, "null", Outcome::Refused),
        ("c7", "Bash", true, gone, ACCEPT, Outcome::Failed),
    ];
    let mut text = String::from("{\"type\":\"last-prompt\"}\n");
    for (id, name, error, said, decision, _) in cases {
        text += &used("null", &tool(id, name, "{\"b\":1,\"a\":2}"));
        text += &result(id, error, said, decision);
    }
    text += &used("\"a1\"", &tool("c8", "Read", "{}"));
    let transcript = read_text(&text);
    assert_eq!((transcript.lines, transcript.unreadable.len(), transcript.torn), (16, 0, false));
    for (call, (id, name, _, _, _, outcome)) in transcript.calls.iter().zip(cases) {
        assert_eq!((call.call_id.as_str(), call.tool.as_str(), call.outcome), (id, name, Some(outcome)));
        assert_eq!(call.input, Digest::of(b"{\"a\":2,\"b\":1}"));
    }
    let last = transcript.calls.last().unwrap();
    assert_eq!((last.agent.as_deref(), last.outcome, last.line), (Some("a1"), None, 16));
    assert_eq!(last.at.unwrap().to_string(), "2026-11-21T04:37:16.871Z");
}

#[test]
fn finds_parallel_and_server_side_calls_once() {
    let blocks = [tool("c1", "A", "{}"), tool("c2", "B", "{}").replace("tool_use", "server_tool_use")].join(",");
    let line = used("null", &blocks);
    let transcript = read_text(&(line.clone() + &line));
    let seen: Vec<_> = transcript.calls.iter().map(|call| (call.tool.as_str(), call.server_side)).collect();
    assert_eq!(seen, [("A", false), ("B", true)]);
}

#[test]
fn says_what_it_cannot_read() {
    let good = used("null", &tool("c1", "A", "{}"));
    let torn = read_text(&(good.clone() + "{\"type\":\"assist"));
    assert!(torn.torn && torn.unreadable.is_empty() && torn.calls.len() == 1);
    let unterminated = read_text(good.trim_end());
    assert!(!unterminated.torn && unterminated.calls.len() == 1);
    let middle = read_text(&format!("{{\"type\"\n[]\n\n{good}"));
    assert_eq!((middle.unreadable, middle.torn, middle.calls.len()), (vec![1, 2], false, 1));
    let nameless = read_text(&good.replace("\"name\"", "\"nom\""));
    assert_eq!((nameless.unreadable, nameless.calls.len()), (vec![1], 0));
    assert_eq!(read_text(""), Transcript::default());
}

#[test]
fn a_line_beyond_the_limit_is_passed_over() {
    let long = usize::try_from(LINE_LIMIT).unwrap() + 5;
    let good = used("null", &tool("c1", "A", "{}"));
    let text = format!("\"{}\"\n{good}", "x".repeat(long));
    let transcript = read_text(&text);
    assert_eq!((transcript.unreadable, transcript.lines, transcript.calls.len()), (vec![1], 2, 1));
}

#[test]
fn reads_the_subagents_beside_the_main_transcript() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("s1.jsonl");
    fs::write(&main, used("null", &tool("c1", "Agent", "{}"))).unwrap();
    assert!(read_session(&main).unwrap().subagents.is_empty());
    let beside = folder.path().join("s1/subagents");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("agent-b.jsonl"), used("\"b\"", &tool("c3", "Read", "{}"))).unwrap();
    fs::write(beside.join("agent-a.jsonl"), used("\"a\"", &tool("c2", "Read", "{}"))).unwrap();
    fs::write(beside.join("agent-a.meta.json"), r#"{"agentType":"general-purpose","toolUseId":"c1"}"#).unwrap();
    let session = read_session(&main).unwrap();
    assert_eq!(session.calls().map(|call| call.call_id.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c3"]);
    let [a, b] = session.subagents.as_slice() else { unreachable!("two files were written") };
    assert_eq!((a.kind.as_deref(), a.spawned_by.as_deref()), (Some("general-purpose"), Some("c1")));
    assert_eq!((b.id.as_str(), b.spawned_by.as_deref()), ("b", None));
    assert!(session.is_whole());
    fs::write(beside.join("agent-c.jsonl"), "{\n").unwrap();
    assert!(!read_session(&main).unwrap().is_whole());
}

#[test]
fn refuses_what_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    assert!(read_file(folder.path()).is_err());
    assert!(read_session(&folder.path().join("none.jsonl")).is_err());
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "[{}\\[\\]\",:a-z0-9\n]{0,120}") {
        let transcript = read_text(&text);
        proptest::prop_assert!(transcript.unreadable.len() as u64 <= transcript.lines);
    }
}
