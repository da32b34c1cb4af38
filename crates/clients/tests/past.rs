//! Each client's past calls: where its transcripts are found, and what they tell with whole inputs.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use writ_clients::past::{Past, PastCall, Unseen};
use writ_core::ToolKind;

const CLIENTS: [&str; 5] = ["claude-code", "codex", "copilot", "gemini", "qwen"];

fn file(path: &Path, lines: &[&str]) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, lines.join("\n") + "\n").unwrap();
    path.to_owned()
}

fn of(client: &str) -> &'static dyn Past {
    writ_clients::named(client).unwrap().past().unwrap()
}

/// The only client that takes a file for its own.
fn whose(path: &Path) -> Vec<&'static str> {
    CLIENTS.into_iter().filter(|client| of(client).is_one(path)).collect()
}

/// Each call in a few words: its id, its kind's word, its folder, who made it, what became of it.
fn told(client: &str, main: &Path) -> (Vec<String>, Unseen) {
    let mut out = Vec::new();
    let unseen = of(client).calls(main, &mut |call: PastCall| {
        let kind = match &call.call.kind {
            ToolKind::Shell { command } => format!("$ {command}"),
            ToolKind::Write { paths } | ToolKind::Edit { paths, .. } => format!("> {}", paths.join(",")),
            ToolKind::Read { paths } => format!("< {}", paths.join(",")),
            ToolKind::Mcp { server, tool } => format!("{server}/{tool}"),
            other => format!("{other:?}"),
        };
        let agent = call.agent.map_or_else(String::new, |agent| format!(" by {}", agent.kind.unwrap_or(agent.id)));
        let became = call.outcome.map_or_else(String::new, |outcome| format!(": {outcome:?}"));
        out.push(format!("{} {kind} in {}{agent}{became}", call.id, call.call.cwd));
    });
    (out, unseen.unwrap())
}

#[test]
fn codex() {
    let user = tempfile::tempdir().unwrap();
    let (root, child) = ("01a20102-5a0c-74e1-af05-523f741a7321", "01a20102-c988-7900-9a68-f0bfe9a864ec");
    let day = user.path().join(".codex/sessions/2026/01/18");
    let meta = |id: &str, more: &str| {
        format!(
            r#"{{"timestamp":"2026-01-18T10:30:00.000Z","type":"session_meta","payload":{{"id":"{id}","session_id":"{root}","cwd":"/w/app","cli_version":"0.169.0"{more}}}}}"#
        )
    };
    let main = file(
        &day.join(format!("rollout-2026-01-18T10-30-00-{root}.jsonl")),
        &[
            &meta(root, ""),
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\",\"workdir\":\"src\"}","call_id":"a"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"Process exited with code 0\n"}}"#,
            r#"{"type":"turn_context","payload":{"cwd":"/w/app/sub","model":"gpt-x"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"git push\"]}","call_id":"b"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"rm\",\"a b\"]}","call_id":"c"}}"#,
            r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch\n*** Update File: x.rs\n@@\n-a\n+b\n*** End Patch","call_id":"d"}}"#,
            r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"d","output":"Command blocked by PreToolUse hook: no. Command: x"}}"#,
            r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"WebSearch","id":"w","action":{}}}}"#,
            "{broken",
        ],
    );
    file(
        &day.join(format!("rollout-2026-01-18T10-31-00-{child}.jsonl")),
        &[
            &meta(child, &format!(r#","parent_thread_id":"{root}","agent_role":"reviewer""#)),
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"wc x\"}","call_id":"e"}}"#,
        ],
    );
    assert_eq!(of("codex").kept(Path::new("/w/app"), user.path(), None), std::slice::from_ref(&main));
    assert!(of("codex").kept(Path::new("/w/ap"), user.path(), None).is_empty());
    assert_eq!(whose(&main), ["codex"]);
    let (calls, unseen) = told("codex", &main);
    let expected = [
        "a $ ls in /w/app/src: Completed",
        "b $ git push in /w/app/sub",
        "c $ 'rm' 'a b' in /w/app/sub",
        "d > x.rs in /w/app/sub: DeniedByHook",
        "e $ wc x in /w/app by reviewer",
    ];
    assert_eq!(calls, expected);
    assert_eq!(unseen, Unseen { unreadable: 1, server_side: 1, agents: 0 });
}

#[test]
fn copilot() {
    let user = tempfile::tempdir().unwrap();
    let main = file(
        &user.path().join(".copilot/session-state/s1/events.jsonl"),
        &[
            r#"{"type":"session.start","data":{"sessionId":"s1","producer":"copilot-agent","context":{"cwd":"/w/app"}},"id":"0","timestamp":"2026-01-18T10:30:00.000Z"}"#,
            r#"{"type":"tool.execution_start","data":{"toolCallId":"a","toolName":"bash","arguments":{"command":"ls"}},"id":"1"}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"a","success":true},"id":"2"}"#,
            r#"{"type":"tool.execution_start","agentId":"x1","data":{"toolCallId":"b","toolName":"create","arguments":{"path":"/w/app/.env","file_text":"k"}},"id":"3"}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"b","success":false,"error":{"code":"denied","message":"Denied by preToolUse hook: no"}},"id":"4"}"#,
            r#"{"type":"tool.execution_start","data":{"toolCallId":"c"},"id":"5"}"#,
        ],
    );
    assert_eq!(of("copilot").kept(Path::new("/w"), user.path(), None), std::slice::from_ref(&main));
    assert!(of("copilot").kept(Path::new("/x"), user.path(), None).is_empty());
    assert_eq!(whose(&main), ["copilot"]);
    let (calls, unseen) = told("copilot", &main);
    assert_eq!(calls, ["a $ ls in /w/app: Completed", "b > /w/app/.env in /w/app by x1: DeniedByHook"]);
    assert_eq!(unseen.unreadable, 1);
}

#[test]
fn gemini() {
    let user = tempfile::tempdir().unwrap();
    let own = user.path().join(".gemini/tmp/app");
    file(&own.join(".project_root"), &["/w/app"]);
    let head =
        r#"{"sessionId":"d588fedc-b0eb","projectHash":"eb","startTime":"2026-01-18T10:30:00.000Z","kind":"main"}"#;
    let call = r#"{"id":"m1","timestamp":"2026-01-18T10:30:01.000Z","type":"gemini","content":"","toolCalls":[{"id":"a","name":"run_shell_command","args":{"command":"ls","dir_path":"src"}},{"id":"b","name":"mcp_probe_echo","args":{}}]}"#;
    let done = r#"{"id":"m1","timestamp":"2026-01-18T10:30:01.000Z","type":"gemini","content":"","toolCalls":[{"id":"a","name":"run_shell_command","args":{"command":"ls","dir_path":"src"},"status":"success","result":[]}]}"#;
    let main = file(&own.join("chats/session-2026-01-18T10-30-d588fedc.jsonl"), &[head, call, done]);
    // A resumed session begins with all that was.
    let more = r#"{"id":"m2","type":"gemini","toolCalls":[{"id":"c","name":"write_file","args":{"file_path":"x","content":""}}]}"#;
    file(&own.join("chats/session-2026-01-18T11-30-d588fedc.jsonl"), &[head, call, more]);
    let agent = r#"{"id":"m3","type":"gemini","toolCalls":[{"id":"d","name":"read_file","args":{"file_path":"y"}}]}"#;
    let sub = r#"{"sessionId":"d588fedc-b0eb","projectHash":"eb","kind":"subagent"}"#;
    file(&own.join("chats/d588fedc-b0eb/fc86.jsonl"), &[sub, agent]);
    let kept = of("gemini").kept(Path::new("/w/app"), user.path(), None);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(of("gemini").kept(Path::new("/w/other"), user.path(), None).is_empty());
    assert_eq!(whose(&main), ["gemini"]);
    let (calls, unseen) = told("gemini", &main);
    let expected =
        ["a $ ls in /w/app/src: Completed", "b probe/echo in /w/app", "d < y in /w/app by fc86", "c > x in /w/app"];
    assert_eq!(calls, expected);
    assert_eq!(unseen, Unseen::default());
}

#[test]
fn qwen() {
    let user = tempfile::tempdir().unwrap();
    let own = user.path().join(".qwen/projects/-w-app");
    let line = |kind: &str, parts: &str, more: &str| {
        format!(
            r#"{{"uuid":"u","parentUuid":null,"sessionId":"s1","timestamp":"2026-01-18T10:30:00.000Z","type":"{kind}","provenance":"real_user","cwd":"/w/app"{more},"message":{{"role":"x","parts":[{parts}]}}}}"#
        )
    };
    let main = file(
        &own.join("chats/s1.jsonl"),
        &[
            &line("user", r#"{"text":"go"}"#, ""),
            &line("assistant", r#"{"functionCall":{"id":"a","name":"run_shell_command","args":{"command":"ls"}}}"#, ""),
            &line(
                "tool_result",
                r#"{"functionResponse":{"id":"a","response":{"error":"no"}}}"#,
                r#","toolCallResult":{"executionStatus":"not_started","errorType":"execution_denied"}"#,
            ),
            &line(
                "assistant",
                r#"{"functionCall":{"id":"b","name":"tool_call","args":{"name":"web_fetch","arguments":{"url":"https://x.example"}}}}"#,
                "",
            ),
        ],
    );
    file(
        &own.join("subagents/s1/agent-x.jsonl"),
        &[&line(
            "assistant",
            r#"{"functionCall":{"id":"c","name":"edit","args":{"file_path":"z"}}}"#,
            r#","agentName":"tester""#,
        )],
    );
    assert_eq!(of("qwen").kept(Path::new("/w"), user.path(), None), std::slice::from_ref(&main));
    assert_eq!(whose(&main), ["qwen"]);
    let (calls, _) = told("qwen", &main);
    let expected = [
        "a $ ls in /w/app: DeniedByHook",
        "b Fetch { url: \"https://x.example\" } in /w/app",
        "c > z in /w/app by tester",
    ];
    assert_eq!(calls, expected);
}
