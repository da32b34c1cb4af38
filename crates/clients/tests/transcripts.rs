//! Each client's transcripts: calls and what became of them, usage, prompts, the agents of a session.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use writ_clients::transcript::{Told, Transcripts};
use writ_clients::usage::Spoken;

/// A file with these lines.
fn file(folder: &Path, name: &str, lines: &[&str]) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

/// What a transcript tells of calls, one word each.
fn told(client: &str, path: &Path) -> Vec<String> {
    let (mut calls, mut out) = (Vec::new(), Vec::new());
    let reach = of(client).read(path, 0, &mut |told| match told {
        Told::Call(call) => {
            let side = if call.server_side { " by the provider" } else { "" };
            out.push(format!("{} {}{side}", call.call_id, call.tool));
            calls.push((call.call_id, call.tool));
        }
        Told::Result { call_id, outcome } => {
            let tool = calls.iter().rfind(|(id, _)| id == call_id).map_or("", |(_, tool)| tool);
            out.push(format!("{call_id}: {:?}", outcome(tool)));
        }
        Told::Unreadable => out.push("?".to_owned()),
    });
    assert_eq!(reach.unwrap().end, path.metadata().unwrap().len());
    out
}

fn of(client: &str) -> &'static dyn Transcripts {
    writ_clients::named(client).unwrap().transcripts().unwrap()
}

/// Models and what they used: read past caches, written, read from them.
fn used(client: &str, path: &Path, from: u64) -> Vec<(String, u64, u64, u64)> {
    let mut out = Vec::new();
    let read = of(client).usage(path, from, &mut |spoken| {
        if let Spoken::Message { rate, tokens, .. } = spoken {
            out.push((rate.model, tokens.input, tokens.output, tokens.cache_read));
        }
    });
    assert!(read.is_ok());
    out
}

fn prompts(client: &str, path: &Path) -> usize {
    let mut count = 0;
    let read = of(client).lines(path, 0, &mut |line| count += usize::from(line.prompt.is_some()));
    assert!(read.is_ok());
    count
}

#[test]
fn codex() {
    let folder = tempfile::tempdir().unwrap();
    let (root, child) = ("01a20102-5a0c-74e1-af05-523f741a7321", "01a20102-c988-7900-9a68-f0bfe9a864ec");
    let meta = format!(r#"{{"type":"session_meta","payload":{{"id":"{root}","session_id":"{root}"}}}}"#);
    let lines = [
        meta.as_str(),
        r#"{"type":"turn_context","payload":{"model":"gpt-x"}}"#,
        r#"{"timestamp":"2026-01-18T10:30:00.000Z","type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","id":"u"}}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"a"}}"#,
        r#"{"type":"token_usage_record","payload":{"response_id":"r","usage":{"input_tokens":100,"cached_input_tokens":30,"output_tokens":20}}}"#,
        r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"a","command":["bash","-lc","ls"],"status":"completed"}}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"Process exited with code 1\n"}}"#,
        r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"b"}}"#,
        r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"b","output":"Command blocked by PreToolUse hook: no. Command: x"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"no_such","arguments":"{}","call_id":"c"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"unsupported call: no_such"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","namespace":"mcp__s","name":"t","arguments":"{}","call_id":"d"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"write_stdin","arguments":"{\"session_id\":1,\"chars\":\"\"}","call_id":"e"}}"#,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"write_stdin","arguments":"{\"session_id\":1,\"chars\":\"x\\n\"}","call_id":"f"}}"#,
        r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"exec","input":"await tools.x()","call_id":"g"}}"#,
        r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"McpToolCall","id":"exec-1","server":"s","tool":"t","arguments":{},"status":"failed"}}}"#,
        r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"WebSearch","id":"w","action":{}}}}"#,
        "not json",
    ];
    let main = file(folder.path(), &format!("sessions/2026/01/18/rollout-2026-01-18T10-30-00-{root}.jsonl"), &lines);
    let expected = [
        "a Bash",
        "a: Failed",
        "b apply_patch",
        "b: DeniedByHook",
        "c no_such",
        "c: NoSuchTool",
        "d mcp__s__t",
        "f write_stdin",
        "exec-1 mcp__s__t",
        "exec-1: Failed",
        "w web_search by the provider",
        "?",
    ];
    assert_eq!(told("codex", &main), expected);
    assert_eq!(prompts("codex", &main), 1);
    let usage = vec![("gpt-x".to_owned(), 70, 20, 30)];
    assert_eq!(used("codex", &main, 0), usage);
    // The model stands before the place where reading goes on.
    let from = lines.iter().take(3).map(|line| line.len() as u64 + 1).sum();
    assert_eq!(used("codex", &main, from), usage);

    let theirs = format!(
        r#"{{"type":"session_meta","payload":{{"id":"{child}","session_id":"{root}","parent_thread_id":"{root}"}}}}"#
    );
    let other = r#"{"type":"session_meta","payload":{"id":"x","session_id":"x"}}"#;
    let later =
        file(folder.path(), &format!("sessions/2026/02/01/rollout-2026-02-01T00-00-00-{child}.jsonl"), &[&theirs]);
    file(
        folder.path(),
        "sessions/2026/02/01/rollout-2026-02-01T00-00-01-01a20102-0000-7900-9a68-f0bfe9a864ec.jsonl",
        &[other],
    );
    let listing = of("codex").files(&main).unwrap();
    assert_eq!(listing.files, [("main".to_owned(), main), (child.to_owned(), later.clone())]);
    assert_eq!(of("codex").note(&later).kind.as_deref(), Some("default"));
}

#[test]
fn qwen() {
    let folder = tempfile::tempdir().unwrap();
    let main = file(
        folder.path(),
        "p/chats/s.jsonl",
        &[
            r#"{"type":"user","provenance":"real_user","message":{"parts":[{"text":"do it"}]}}"#,
            r#"{"uuid":"1","type":"assistant","model":"m","message":{"parts":[{"functionCall":{"id":"a","name":"tool_call","args":{"name":"mcp__s__t","arguments":{"x":1}}}}]},"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":20,"thoughtsTokenCount":5,"cachedContentTokenCount":40}}"#,
            r#"{"type":"tool_result","message":{"parts":[{"functionResponse":{"id":"a","name":"tool_call","response":{"output":"x"}}}]},"toolCallResult":{"status":"success","executionStatus":"success"}}"#,
            r#"{"uuid":"2","type":"assistant","model":"m","message":{"parts":[{"functionCall":{"id":"b","name":"zz","args":{}}},{"functionCall":{"id":"c","name":"edit","args":{}}}]}}"#,
            r#"{"type":"tool_result","message":{"parts":[{"functionResponse":{"id":"b","name":"zz","response":{"error":"x"}}}]},"toolCallResult":{"status":"error","executionStatus":"not_started","errorType":"tool_not_registered"}}"#,
            r#"{"type":"tool_result","message":{"parts":[{"functionResponse":{"id":"c","name":"edit","response":{"error":"x"}}}]},"toolCallResult":{"status":"error","executionStatus":"not_started","errorType":"execution_denied"}}"#,
        ],
    );
    let expected = ["a mcp__s__t", "a: Completed", "b zz", "c edit", "b: NoSuchTool", "c: DeniedByHook"];
    assert_eq!(told("qwen", &main), expected);
    assert_eq!((prompts("qwen", &main), used("qwen", &main, 0)), (1, vec![("m".to_owned(), 60, 25, 40)]));
    let line = r#"{"type":"user","agentName":"general-purpose","isSidechain":true,"message":{"parts":[{"text":"x"}]}}"#;
    let theirs = file(folder.path(), "p/subagents/s/agent-g-1.jsonl", &[line]);
    assert_eq!(of("qwen").files(&main).unwrap().files.last(), Some(&("g-1".to_owned(), theirs.clone())));
    assert_eq!(of("qwen").note(&theirs).kind.as_deref(), Some("general-purpose"));
    assert_eq!(of("qwen").model(&main, Some("b")).as_deref(), Some("m"));
}

#[test]
fn gemini() {
    let folder = tempfile::tempdir().unwrap();
    let (session, head) =
        ("ac9534c6-9e6c-47e4-abb7-7d88f45f9907", |id: &str| format!(r#"{{"sessionId":"{id}","kind":"main"}}"#));
    let call = |more: &str| {
        format!(
            r#"{{"id":"m","type":"gemini","model":"g","content":"","tokens":{{"input":100,"output":20,"cached":10,"thoughts":1,"tool":0}},"toolCalls":[{{"id":"w__1","name":"write_file","args":{{"nope":1}}{more}}}]}}"#
        )
    };
    let lines = [
        head(session),
        r#"{"id":"u","type":"user","content":[{"text":"do it"}]}"#.to_owned(),
        call(""),
        call(
            r#","status":"error","result":[{"functionResponse":{"response":{"error":"params must have required property 'file_path'"}}}]"#,
        ),
        r#"{"id":"v","type":"user","content":[{"functionResponse":{"id":"w__1"}}]}"#.to_owned(),
    ];
    let main =
        file(folder.path(), "chats/session-2026-01-18T10-30-ac9534c6.jsonl", &lines.each_ref().map(String::as_str));
    assert_eq!(told("gemini", &main), ["w__1 write_file", "w__1 write_file", "w__1: Refused"]);
    assert_eq!(prompts("gemini", &main), 1);
    let told_once = vec![("g".to_owned(), 90, 21, 10); 2];
    assert_eq!(used("gemini", &main, 0), told_once, "a message is told again under the same id");
    let again = file(folder.path(), "chats/session-2026-01-19T10-30-ac9534c6.jsonl", &[&head(session)]);
    file(folder.path(), "chats/session-2026-01-19T10-31-ac9534c6.jsonl", &[&head("ac9534c6-other")]);
    let theirs = file(folder.path(), &format!("chats/{session}/child.jsonl"), &[&head("child")]);
    let files: Vec<PathBuf> = of("gemini").files(&main).unwrap().files.into_iter().map(|(_, path)| path).collect();
    assert_eq!(files, [main, theirs, again]);
}

#[test]
fn copilot() {
    let folder = tempfile::tempdir().unwrap();
    let main = file(
        folder.path(),
        "events.jsonl",
        &[
            r#"{"type":"user.message","id":"1","data":{"content":"do it"},"timestamp":"2026-01-18T10:30:00.000Z"}"#,
            r#"{"type":"session.usage_record","id":"2","data":{"usage":{"model":"g","inputTokens":100,"outputTokens":20,"cacheReadTokens":10,"cacheWriteTokens":0}}}"#,
            r#"{"type":"tool.execution_start","id":"3","data":{"toolCallId":"a","toolName":"bash","arguments":{"command":"ls"}}}"#,
            r#"{"type":"tool.execution_complete","id":"4","data":{"toolCallId":"a","success":true}}"#,
            r#"{"type":"tool.execution_start","id":"5","agentId":"x","data":{"toolCallId":"b","toolName":"create","arguments":{}}}"#,
            r#"{"type":"tool.execution_complete","id":"6","data":{"toolCallId":"b","success":false,"error":{"message":"Denied by preToolUse hook: no","code":"denied"}}}"#,
            // What the client asks by itself is no call of the model's.
            r#"{"type":"tool.execution_start","id":"7","data":{"toolCallId":"4120f36c-93ad-4f9a-8b3e-7f1a4a1a9c55","toolName":"read_bash","arguments":{"shellId":"s"}}}"#,
        ],
    );
    assert_eq!(told("copilot", &main), ["a bash", "a: Completed", "b create", "b: DeniedByHook"]);
    assert_eq!((prompts("copilot", &main), used("copilot", &main, 0)), (1, vec![("g".to_owned(), 90, 20, 10)]));
}
