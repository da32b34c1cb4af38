//! The real Claude Code client, under hooks that `writ init` installed, against a scripted Messages API on 127.0.0.1.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

/// The client's version everything here was measured with.
const VERSION: &str = "2.1.329";
/// Longest request that the mock reads.
const MAX_BODY: u64 = 64 << 20;

/// A stdio MCP server with one tool that echoes.
const MCP_SERVER: &str = r#"
const lines = require('readline').createInterface({ input: process.stdin });
const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n');
lines.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'echo', version: '1' } });
  else if (method === 'tools/list') send(id, { tools: [{ name: 'echo', description: 'echo', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }] });
  else if (method === 'tools/call') send(id, { content: [{ type: 'text', text: String(params.arguments.text) }] });
  else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } }) + '\n');
});
"#;

fn tool(name: &str, input: Value) -> Value {
    json!({ "type": "tool_use", "name": name, "input": input })
}

/// What the model does: one list of content blocks a turn.
fn main_script(work: &Path) -> Vec<Vec<Value>> {
    let at = |name: &str| work.join(name).to_string_lossy().into_owned();
    vec![
        vec![tool("Read", json!({ "file_path": at("hello.txt") }))],
        vec![tool("Edit", json!({ "file_path": at("hello.txt"), "old_string": "world", "new_string": "writ" }))],
        vec![tool("Write", json!({ "file_path": at(".env"), "content": "KEY=stolen\n" }))],
        vec![tool(
            "Bash",
            json!({ "command": "echo begin > ran.txt && cat secrets/\"key\".pem", "description": "sneak" }),
        )],
        vec![
            tool("Bash", json!({ "command": "echo one", "description": "one" })),
            tool("Bash", json!({ "command": "echo two", "description": "two" })),
        ],
        vec![tool("NoSuchTool", json!({ "a": 1 }))],
        vec![tool(
            "Agent",
            json!({ "description": "sub", "prompt": "WORKER: write it", "subagent_type": "general-purpose", "run_in_background": false }),
        )],
        vec![tool("mcp__echo__echo", json!({ "text": "hi" }))],
        vec![json!({ "type": "text", "text": "All done." })],
    ]
}

fn worker_script(work: &Path) -> Vec<Vec<Value>> {
    let file = work.join("feature.py").to_string_lossy().into_owned();
    vec![
        vec![tool("Write", json!({ "file_path": file, "content": "VALUE = 1\n" }))],
        vec![json!({ "type": "text", "text": "Written." })],
    ]
}

#[test]
fn a_session_under_policy_is_enforced_recorded_and_verified() {
    let client = client();
    let place = Place::new();
    place.writ(&["init", "--client-version", VERSION]);
    let port = serve(main_script(&place.work), worker_script(&place.work));
    let ran = place.run_client(&client, port);
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");

    let read = |name: &str| fs::read_to_string(place.work.join(name)).ok();
    assert_eq!(read("hello.txt").as_deref(), Some("hello writ\n"), "the allowed edit happened: {said}");
    assert_eq!(read(".env"), None, "the denied write did not");
    assert_eq!(read("ran.txt"), None, "no part of the compound command ran");
    assert_eq!(read("feature.py").as_deref(), Some("VALUE = 1\n"), "the subagent's write happened");

    let rows: Value = serde_json::from_slice(&place.writ(&["session", "show", "--format", "json"]).stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let has =
        |decision: &str, tool: &str| rows.iter().any(|row| row["decision"] == decision && row["toolName"] == tool);
    for (decision, tool) in [
        ("COMPLETED", "Edit"),
        ("DENIED", "Write"),
        ("DENIED", "Bash"),
        ("COMPLETED", "Bash"),
        ("HALLUCINATED", "NoSuchTool"),
        ("COMPLETED", "Agent"),
        ("COMPLETED", "Write"),
        ("COMPLETED", "mcp__echo__echo"),
    ] {
        assert!(has(decision, tool), "no row {decision} {tool} in {rows:#?}");
    }
    let denied = rows.iter().filter(|row| row["decision"] == "DENIED");
    assert!(
        denied.clone().all(|row| row["denialReason"].as_str().is_some_and(|why| why.starts_with("/files/deny/"))),
        "{rows:#?}"
    );
    assert!(
        rows.iter().any(|row| row["detail"]["agent"]["id"].is_string() && row["toolName"] == "Write"),
        "the subagent's call names it"
    );

    let report: Value = serde_json::from_slice(&place.writ(&["verify", "--format", "json"]).stdout).unwrap();
    assert_eq!(report["verified"], true, "{report:#}");
    assert_eq!(report["coverage"]["unobserved"], json!([]), "{report:#}");
    assert!(report["phases"].as_array().unwrap().iter().all(|phase| phase["outcome"] == "passed"), "{report:#}");

    place.writ(&["init", "--undo"]);
    assert!(!place.work.join(".claude/settings.json").exists(), "undo takes the settings file away again");
    fs::remove_dir_all(&place.root).unwrap();
}

/// A repository, a home and a state folder for one run.
struct Place {
    root: PathBuf,
    work: PathBuf,
}

impl Place {
    fn new() -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("real-client-{}", std::process::id()));
        let work = root.join("work");
        for folder in ["work/secrets", "home", "config", "tmp"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(work.join("hello.txt"), "hello world\n").unwrap();
        fs::write(work.join("secrets/key.pem"), "not a key\n").unwrap();
        fs::write(root.join("mcp.js"), MCP_SERVER).unwrap();
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&work).status();
        assert!(git.expect("this test needs git").success());
        Self { root, work }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.work).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.root.join("home")).env("TMPDIR", self.root.join("tmp"));
        command.env("CLAUDE_CONFIG_DIR", self.root.join("config")).env("WRIT_STATE_DIR", self.root.join("state"));
        command
    }

    fn writ(&self, arguments: &[&str]) -> Output {
        let output = self.command(&binary()).args(arguments).output().unwrap();
        assert!(output.status.success(), "writ {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn run_client(&self, client: &Path, port: u16) -> Output {
        let servers = json!({ "mcpServers": { "echo": { "command": "node", "args": [self.root.join("mcp.js")] } } });
        fs::write(self.root.join("mcp.json"), servers.to_string()).unwrap();
        let mut command = self.command(client);
        command
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("ANTHROPIC_API_KEY", "no-key")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("DISABLE_TELEMETRY", "1")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .args(["-p", "--output-format", "stream-json", "--verbose", "--model", "claude-sonnet-4-5"])
            .args([
                "--permission-mode",
                "acceptEdits",
                "--allowedTools",
                "Bash(echo *),mcp__echo__echo",
                "--strict-mcp-config",
                "--mcp-config",
            ])
            .arg(self.root.join("mcp.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the client starts");
        child.stdin.take().unwrap().write_all(b"WRIT: do the work").unwrap();
        child.wait_with_output().unwrap()
    }
}

/// The `writ` under test: the one `cargo xtask test` built, or the one in the target folder.
fn binary() -> PathBuf {
    let named = std::env::var_os("WRIT_BIN").map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|test| Some(test.parent()?.parent()?.join("writ")));
    let found = named.or(beside).filter(|path| path.is_file());
    found.expect("no `writ` to test: run `cargo build -p writ` first, or `cargo xtask test`")
}

/// The client, installed from npm into the repository's cache once.
fn client() -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../.cache/claude-code-{VERSION}"));
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap();
    let find = || {
        let packages = fs::read_dir(cache.join("node_modules/@anthropic-ai")).ok()?;
        packages.flatten().map(|package| package.path().join("claude")).find(|path| path.is_file())
    };
    if find().is_none() {
        let manifest = json!({ "name": "client", "private": true, "version": "0.0.0", "dependencies": { "@anthropic-ai/claude-code": VERSION } });
        fs::write(cache.join("package.json"), manifest.to_string()).unwrap();
        let npm = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
            .current_dir(&cache)
            .output();
        let npm = npm.expect("npm is needed to install the client");
        assert!(npm.status.success(), "the client cannot be installed: {}", String::from_utf8_lossy(&npm.stderr));
    }
    find().expect("the client's package holds its binary")
}

/// Starts the mock on a free port; its threads end with the test.
fn serve(main: Vec<Vec<Value>>, worker: Vec<Vec<Value>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let scripts = Arc::new((main, worker));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let scripts = Arc::clone(&scripts);
            thread::spawn(move || drop(answer(stream, &scripts.0, &scripts.1)));
        }
    });
    port
}

fn answer(stream: TcpStream, main: &[Vec<Value>], worker: &[Vec<Value>]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(length.min(MAX_BODY)).read_to_end(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = request.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let (status, kind, text) = if path.ends_with("/count_tokens") {
        ("200 OK", "application/json", json!({ "input_tokens": 100 }).to_string())
    } else if path.ends_with("/v1/messages") {
        let message = message(&body, main, worker);
        if body["stream"] == true {
            ("200 OK", "text/event-stream", events(&message))
        } else {
            ("200 OK", "application/json", message.to_string())
        }
    } else {
        ("404 Not Found", "application/json", "{}".to_owned())
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The script's turn is the number of assistant messages so far: a retry gets the same answer.
fn message(body: &Value, main: &[Vec<Value>], worker: &[Vec<Value>]) -> Value {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let first = messages
        .iter()
        .find(|message| message["role"] == "user")
        .map(|message| message["content"].to_string())
        .unwrap_or_default();
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let (name, script) = if first.contains("WORKER:") { ("worker", worker) } else { ("main", main) };
    let known = body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
        && (first.contains("WORKER:") || first.contains("WRIT:"));
    let mut content =
        script.get(turn).filter(|_| known).cloned().unwrap_or_else(|| vec![json!({ "type": "text", "text": "ok" })]);
    for (index, block) in content.iter_mut().enumerate() {
        if block["type"] == "tool_use" {
            block["id"] = json!(format!("toolu_{name}_{turn}_{index}"));
        }
    }
    let stop = if content.iter().any(|block| block["type"] == "tool_use") { "tool_use" } else { "end_turn" };
    json!({ "id": format!("msg_{name}_{turn}"), "type": "message", "role": "assistant", "model": body["model"], "content": content,
        "stop_reason": stop, "stop_sequence": null, "usage": { "input_tokens": 100, "output_tokens": 20,
        "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0 } })
}

/// A message as the server-sent events it streams as.
fn events(message: &Value) -> String {
    let mut out = String::new();
    let mut send = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        out.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    };
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    send("message_start", json!({ "message": start }));
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let (mut head, delta) = if block["type"] == "tool_use" {
            (block.clone(), json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }))
        } else {
            (block.clone(), json!({ "type": "text_delta", "text": block["text"] }))
        };
        head[if block["type"] == "tool_use" { "input" } else { "text" }] =
            if block["type"] == "tool_use" { json!({}) } else { json!("") };
        send("content_block_start", json!({ "index": index, "content_block": head }));
        send("content_block_delta", json!({ "index": index, "delta": delta }));
        send("content_block_stop", json!({ "index": index }));
    }
    send(
        "message_delta",
        json!({ "delta": { "stop_reason": message["stop_reason"], "stop_sequence": null }, "usage": message["usage"] }),
    );
    send("message_stop", json!({}));
    out
}
