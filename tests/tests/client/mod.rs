//! The real client, a place to run it in, and the scripted API it talks to.

pub mod mock;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// The client's version everything here was measured with.
pub const VERSION: &str = "2.1.329";

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

/// A repository, a home and a state folder for one run.
pub struct Place {
    pub root: PathBuf,
    pub work: PathBuf,
    /// The client's MCP servers; `null` where its own files say.
    pub servers: Value,
    /// The tools that need no permission.
    pub allowed: &'static str,
    /// Whether the client runs under `writ run`.
    pub confined: bool,
    /// More arguments of the client's.
    pub arguments: Vec<String>,
}

impl Place {
    pub fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let work = root.join("work");
        for folder in ["work/secrets", "home", "config", "tmp"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(work.join("hello.txt"), "hello world\n").unwrap();
        fs::write(work.join("secrets/key.pem"), "not a key\n").unwrap();
        fs::write(root.join("mcp.js"), MCP_SERVER).unwrap();
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&work).status();
        assert!(git.expect("this test needs git").success());
        let servers = json!({ "echo": { "command": "node", "args": [root.join("mcp.js")] } });
        Self { root, work, servers, allowed: "Bash(echo *),mcp__echo__echo", confined: false, arguments: Vec::new() }
    }

    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.work).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.root.join("home")).env("TMPDIR", self.root.join("tmp"));
        command.env("CLAUDE_CONFIG_DIR", self.root.join("config")).env("WRIT_STATE_DIR", self.root.join("state"));
        command
    }

    pub fn writ(&self, arguments: &[&str]) -> Output {
        let output = self.command(&binary()).args(arguments).output().unwrap();
        assert!(output.status.success(), "writ {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Runs the client to its end, with its standard input holding `prompt`.
    pub fn run_client(&self, client: &Path, port: u16, prompt: &str, more: &[(&str, &str)]) -> Output {
        let servers = json!({ "mcpServers": self.servers });
        let named = (!self.servers.is_null()).then(|| self.root.join("mcp.json"));
        if let Some(file) = &named {
            fs::write(file, servers.to_string()).unwrap();
        }
        let mut command = if self.confined { self.command(&binary()) } else { self.command(client) };
        if self.confined {
            command.args(["run", "--"]).arg(client);
        }
        command
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("ANTHROPIC_API_KEY", "no-key")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("DISABLE_TELEMETRY", "1")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .args(["-p", "--output-format", "stream-json", "--verbose", "--model", "claude-sonnet-4-5"])
            .args(["--permission-mode", "acceptEdits", "--allowedTools", self.allowed])
            .args(
                named
                    .iter()
                    .flat_map(|file| ["--strict-mcp-config".as_ref(), "--mcp-config".as_ref(), file.as_os_str()]),
            )
            .args(&self.arguments)
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the client starts");
        child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }
}

/// The `writ` under test: the one `cargo xtask test` built, or the one in the target folder.
pub fn binary() -> PathBuf {
    let named = std::env::var_os("WRIT_BIN").map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|test| Some(test.parent()?.parent()?.join("writ")));
    let found = named.or(beside).filter(|path| path.is_file());
    found.expect("no `writ` to test: run `cargo build -p writ` first, or `cargo xtask test`")
}

/// The client, installed from npm into the repository's cache once.
pub fn client() -> PathBuf {
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
