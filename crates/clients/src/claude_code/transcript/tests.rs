use super::*;
use crate::transcript::tell;
use writ_core::Outcome;

/// What a transcript says, kept.
#[derive(Default, Debug, PartialEq, Eq)]
struct Said {
    calls: Vec<(Call, Option<Outcome>)>,
    unreadable: usize,
    end: u64,
    torn: bool,
}

impl Said {
    fn take(&mut self, told: Told<'_>) {
        match told {
            Told::Call(call) => self.calls.push((call, None)),
            Told::Result { call_id, outcome } => {
                let call = self.calls.iter_mut().find(|(call, _)| call.call_id == call_id);
                let (call, ended) = call.unwrap();
                *ended = Some(outcome(&call.tool));
            }
            Told::Unreadable => self.unreadable += 1,
        }
    }
}

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

fn read_text(text: &str) -> Said {
    let mut said = Said::default();
    (said.end, said.torn) = walk(text.as_bytes(), &mut |told| said.take(told)).unwrap();
    said
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
    let said = read_text(&text);
    assert_eq!((said.end, said.unreadable, said.torn), (text.len() as u64, 0, false));
    for ((call, ended), (id, name, _, _, _, outcome)) in said.calls.iter().zip(cases) {
        assert_eq!((call.call_id.as_str(), call.tool.as_str(), *ended), (id, name, Some(outcome)));
        assert_eq!(call.input, Digest::of(b"{\"a\":2,\"b\":1}"));
    }
    let (last, ended) = said.calls.last().unwrap();
    assert_eq!((last.agent.as_deref(), *ended), (Some("a1"), None));
}

#[test]
fn finds_parallel_and_server_side_calls() {
    let blocks = [tool("c1", "A", "{}"), tool("c2", "B", "{}").replace("tool_use", "server_tool_use")].join(",");
    let said = read_text(&used("null", &blocks));
    let seen: Vec<_> = said.calls.iter().map(|(call, _)| (call.tool.as_str(), call.server_side)).collect();
    assert_eq!(seen, [("A", false), ("B", true)]);
}

#[test]
fn says_what_it_cannot_read() {
    let good = used("null", &tool("c1", "A", "{}"));
    let torn = read_text(&(good.clone() + "{\"type\":\"assist"));
    assert_eq!((torn.torn, torn.unreadable, torn.calls.len(), torn.end), (true, 0, 1, good.len() as u64));
    let unterminated = read_text(good.trim_end());
    assert_eq!((unterminated.torn, unterminated.calls.len(), unterminated.end), (false, 1, 0));
    let middle = read_text(&format!("{{\"type\"\n[]\n\n{good}"));
    assert_eq!((middle.unreadable, middle.torn, middle.calls.len()), (2, false, 1));
    let nameless = read_text(&good.replace("\"name\"", "\"nom\""));
    assert_eq!((nameless.unreadable, nameless.calls.len()), (1, 0));
    assert_eq!(read_text(""), Said::default());
}

#[test]
fn a_line_beyond_the_limit_is_passed_over() {
    let long = usize::try_from(LINE_LIMIT).unwrap() + 5;
    let good = used("null", &tool("c1", "A", "{}"));
    let text = format!("\"{}\"\n{good}", "x".repeat(long));
    let said = read_text(&text);
    assert_eq!((said.unreadable, said.calls.len(), said.end), (1, 1, text.len() as u64));
}

#[test]
fn reads_the_subagents_beside_the_main_transcript() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("s1.jsonl");
    fs::write(&main, used("null", &tool("c1", "Agent", "{}"))).unwrap();
    assert_eq!(files(&main).unwrap().files, [("main".to_owned(), main.clone())]);
    let beside = folder.path().join("s1/subagents");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("agent-b.jsonl"), used("\"b\"", &tool("c3", "Read", "{}"))).unwrap();
    fs::write(beside.join("agent-a.jsonl"), used("\"a\"", &tool("c2", "Read", "{}"))).unwrap();
    fs::write(beside.join("agent-a.meta.json"), "{}").unwrap();
    let names: Vec<String> = files(&main).unwrap().files.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["main", "a", "b"]);
    // Those of workflows lie deeper, and may have an id that is taken.
    let workflow = beside.join("workflows/wf-1");
    fs::create_dir_all(&workflow).unwrap();
    for name in ["agent-w.jsonl", "agent-a.jsonl"] {
        fs::write(workflow.join(name), "").unwrap();
    }
    let found = files(&main).unwrap().files;
    assert_eq!(found.get(1), Some(&("a".to_owned(), beside.join("agent-a.jsonl"))));
    assert!(found.contains(&("w".to_owned(), workflow.join("agent-w.jsonl"))), "{found:?}");
    assert!(found.contains(&("workflows/wf-1/a".to_owned(), workflow.join("agent-a.jsonl"))), "{found:?}");
    fs::remove_dir_all(beside.join("workflows")).unwrap();
    let mut said = Said::default();
    assert!(tell(&super::super::ClaudeCode, &main, &mut |told| said.take(told)).unwrap());
    assert_eq!(said.calls.iter().map(|(call, _)| call.call_id.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c3"]);
    fs::write(beside.join("agent-c.jsonl"), "{\n").unwrap();
    assert!(!tell(&super::super::ClaudeCode, &main, &mut |_| {}).unwrap());
}

#[test]
fn refuses_what_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    assert!(read(folder.path(), 0, &mut |_| {}).is_err());
    assert!(read(&folder.path().join("none.jsonl"), 0, &mut |_| {}).is_err());
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "[{}\\[\\]\",:a-z0-9\n]{0,120}") {
        let said = read_text(&text);
        proptest::prop_assert!(said.end <= text.len() as u64);
    }
}
