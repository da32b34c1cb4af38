//! A repository with a policy, and a client's side of the proxy in it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

/// A folder of its own for one test; removed when the test passes.
pub struct Place {
    pub folder: PathBuf,
}

/// A client at the proxy.
pub struct Client {
    pub child: Child,
    pub input: Option<ChildStdin>,
    pub output: BufReader<ChildStdout>,
    pub others: Vec<Value>,
    next: u64,
}

impl Place {
    pub fn new(name: &str, policy: &Value) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("proxy-{name}-{}", std::process::id()));
        for below in ["repository/src", "repository/secrets", "home"] {
            fs::create_dir_all(folder.join(below)).unwrap();
        }
        let place = Self { folder };
        fs::write(place.repository().join("src/a.txt"), "in src\n").unwrap();
        fs::write(place.repository().join("secrets/key"), "not a key\n").unwrap();
        fs::write(place.repository().join(".aflock"), policy.to_string()).unwrap();
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(place.repository()).status();
        assert!(git.expect("this test needs git").success());
        place
    }

    pub fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.repository()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.join("home")).env("WRIT_STATE_DIR", self.folder.join("state"));
        command
    }

    pub fn writ(&self, arguments: &[&str]) -> Output {
        self.command(&binary()).args(arguments).output().unwrap()
    }

    /// What a command printed.
    pub fn said(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.writ(arguments).stdout).unwrap()
    }

    /// Starts the proxy with these arguments.
    pub fn proxy(&self, arguments: &[&str]) -> Client {
        let all: Vec<&str> = ["mcp", "proxy"].iter().chain(arguments).copied().collect();
        self.start(&all)
    }

    /// Starts `writ` as a server.
    pub fn start(&self, arguments: &[&str]) -> Client {
        // Below a client of its own: the test itself is the human.
        let client = self.folder.join("client");
        fs::write(&client, "\"$@\"\nexit $?\n").unwrap();
        let mut command = self.command(Path::new("/bin/sh"));
        command.arg(client).arg(binary()).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Client { child, input, output, others: Vec::new(), next: 0 }
    }

    /// The newest session's rows: decision and tool.
    pub fn rows(&self) -> Vec<(String, String)> {
        let rows: Value = serde_json::from_str(&self.said(&["session", "show", "--format", "json"])).unwrap();
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let rows = rows.as_array().unwrap().iter().filter(|row| row["toolName"].is_string());
        rows.map(|row| (text(row, "decision"), text(row, "toolName"))).collect()
    }

    /// `writ` with these arguments as a human at a terminal runs it.
    pub fn human(&self, arguments: &str) {
        let line = format!("{} {arguments}", binary().display());
        let mut script = self.command(Path::new("script"));
        let output = script.args(["-qec", &line, "/dev/null"]).output().expect("this test needs script(1)");
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fs::remove_dir_all(&self.folder).unwrap();
        }
    }
}

/// What it started has ended too when the test ends: until then it writes into the test's folder.
impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.child.wait());
    }
}

impl Client {
    pub fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Asks, and answers what the server asks meanwhile.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "{method}: the proxy has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"].is_null() && message["id"] == id {
                return message;
            }
            if let (Some(asked), false) = (message["method"].as_str(), message["id"].is_null()) {
                let result = match asked {
                    "sampling/createMessage" => {
                        json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "sampled" } })
                    }
                    "elicitation/create" => json!({ "action": "accept", "content": { "name": "elicited" } }),
                    _ => json!({ "roots": [] }),
                };
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string());
            }
            self.others.push(message);
        }
    }

    pub fn begin(&mut self) {
        let about = json!({ "name": "test", "version": "1" });
        let can = json!({ "sampling": {}, "elicitation": {}, "roots": {} });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": can, "clientInfo": about });
        assert!(self.ask("initialize", params)["result"].is_object());
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": 7 } }))
    }

    /// The tools that are shown.
    pub fn tools(&mut self) -> Vec<String> {
        let list = self.ask("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Ends, as a client does that has nothing more to say.
    pub fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

/// Why a call was refused, and by what word.
pub fn refusal(answer: &Value) -> (String, String) {
    assert_eq!(answer["error"]["code"], -32050, "{answer}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&answer["error"]["data"]["verdict"]), text(&answer["error"]["message"]))
}

pub fn binary() -> PathBuf {
    let named = std::env::var_os("WRIT_BIN").map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|test| Some(test.parent()?.parent()?.join("writ")));
    let found = named.or(beside).filter(|path| path.is_file());
    found.expect("no `writ` to test: run `cargo build -p writ` first, or `cargo xtask test`")
}
