//! `writ mcp serve` as a child process, on its pipes or on a socket.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The names of the members that every request of the newest protocol has.
const META: [&str; 3] = ["protocolVersion", "clientInfo", "clientCapabilities"];

/// The `writ` under test.
pub fn binary() -> PathBuf {
    let named = std::env::var_os("WRIT_BIN").map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|test| Some(test.parent()?.parent()?.join("writ")));
    let found = named.or(beside).filter(|path| path.is_file());
    found.expect("no `writ` to test: run `cargo build -p writ` first, or `cargo xtask test`")
}

/// A fresh folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mcp-{name}-{}", std::process::id()));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(folder.join("work")).unwrap();
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command
        .current_dir(folder.join("work"))
        .env_clear()
        .env("HOME", folder)
        .env("WRIT_STATE_DIR", folder.join("state"));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).args(["mcp", "serve"]).args(arguments);
    command
}

/// A server on pipes.
pub struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
    last: u64,
}

impl Pipes {
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child =
            command(folder, arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("writ starts");
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, answers) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                let line = line.unwrap();
                let answer = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if send.send(answer).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, answers, last: 0 }
    }

    /// A server whose session is open, by `initialize`.
    pub fn open(folder: &Path, arguments: &[&str]) -> Self {
        let mut pipes = Self::start(folder, arguments);
        let answer = pipes.ask("initialize", initialize());
        assert_eq!(answer["result"]["serverInfo"]["name"], "writ", "{answer:#}");
        pipes.line(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        pipes
    }

    pub fn line(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).and_then(|()| input.write_all(b"\n")).expect("the server reads");
    }

    pub fn next(&mut self) -> Value {
        self.answers.recv_timeout(PATIENCE).expect("an answer")
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.line(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().as_bytes());
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer:#}");
        answer
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    /// Closes the input, and gives what was still said and whether all ended well.
    pub fn end(mut self) -> (Vec<Value>, bool) {
        drop(self.input.take());
        let rest = self.answers.iter().collect();
        (rest, self.child.wait().unwrap().success())
    }
}

/// Parameters of `initialize`.
pub fn initialize() -> Value {
    json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

/// `_meta` of a request of the newest protocol.
pub fn meta() -> Value {
    let values = [json!("2026-07-28"), json!({ "name": "test", "version": "1" }), json!({})];
    let members = META.iter().zip(values).map(|(name, value)| (format!("io.modelcontextprotocol/{name}"), value));
    Value::Object(members.collect())
}

/// A server on a socket.
pub struct Http {
    pub child: Child,
    pub port: u16,
}

impl Http {
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = command(folder, &[&["--http", "127.0.0.1:0"], arguments].concat())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("writ starts");
        let mut first = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
        let port = first.trim_end().strip_suffix("/mcp").and_then(|url| url.rsplit(':').next());
        let port = port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no address in `{first}`"));
        Self { child, port }
    }

    /// Status and body of one POST. Headers given replace the usual ones of that name.
    pub fn post(&self, body: &[u8], headers: &[(&str, &str)]) -> (u16, String) {
        let host = format!("127.0.0.1:{}", self.port);
        let mut all = vec![
            ("Host", host.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.retain(|(name, _)| headers.iter().all(|(given, _)| given != name));
        all.extend(headers);
        let mut request = String::from("POST /mcp HTTP/1.1\r\nConnection: close\r\n");
        all.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
        request.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        // A body that is too long is answered before it is read to its end.
        drop(stream.write_all(body));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8(answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    /// Status and body of one GET.
    pub fn get(&self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port);
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer));
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    pub fn ask(&self, message: &Value, headers: &[(&str, &str)]) -> Value {
        let (status, body) = self.post(message.to_string().as_bytes(), headers);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    /// Asks it to stop, and says whether it ended well.
    pub fn stop(&mut self) -> bool {
        let killed = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(killed.success());
        self.child.wait().unwrap().success()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
