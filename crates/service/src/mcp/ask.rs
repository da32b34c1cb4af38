//! An MCP server, asked as a client: what tools it shows, and a call of one. A program's pipes, or streamable HTTP.
//!
//! Owns the messages that this takes. Decides no call: whoever asks has had it decided. Refuses answers that are too long, too late or no
//! answers. Invariant: what it returns is what the server answered, its list to the end. For `writ lock` and `writ tool`.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ureq::tls::Certificate;
use writ_core::json::{self, Limits, Object, Value};

use crate::network::{agent, authorities};

/// How long a server may take for all of it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer.
const MAX_BYTES: u64 = 16 << 20;
/// Most pages of a list.
const MAX_PAGES: usize = 100;
/// The version that is asked for; a server answers with its own.
const VERSION: &str = "2025-06-18";

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its version.
    pub version: String,
    /// Its tools' definitions.
    pub tools: Vec<Value>,
}

/// Where messages go and answers come from.
trait Wire {
    /// Sends a message; its answer where it has an id, within a time.
    fn send(&mut self, message: &Value, id: Option<u64>, time: Duration) -> Result<Value, String>;
}

/// A server that is spoken to.
pub struct Server {
    wire: Box<dyn Wire>,
    version: String,
    next: u64,
    // Ended when nobody speaks to it any more.
    child: Option<Child>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Server {
    /// Starts a program that speaks on its pipes.
    pub fn start(command: &str, args: &[String], cwd: &std::path::Path) -> Result<Self, String> {
        let mut child = Command::new(command)
            .args(args)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("`{command}` cannot be started: {error}"))?;
        match Pipes::of(&mut child) {
            Ok(pipes) => Self { wire: Box::new(pipes), version: String::new(), next: 1, child: Some(child) }.greeted(),
            Err(why) => {
                drop(child.kill());
                drop(child.wait());
                Err(why)
            }
        }
    }

    /// Speaks to a server behind an address.
    pub fn at(url: &str) -> Result<Self, String> {
        let wire = Http { roots: authorities(), url: url.to_owned(), session: None };
        Self { wire: Box::new(wire), version: String::new(), next: 1, child: None }.greeted()
    }

    fn greeted(mut self) -> Result<Self, String> {
        let client = object([("name", Value::from("writ")), ("version", Value::from(env!("CARGO_PKG_VERSION")))]);
        let hello =
            object([("protocolVersion", Value::from(VERSION)), ("capabilities", object([])), ("clientInfo", client)]);
        let answer = self.ask("initialize", hello, TIMEOUT)?;
        let version = answer.get("serverInfo").and_then(|info| info.get("version")).and_then(Value::as_str);
        self.version = version.unwrap_or_default().to_owned();
        let ready = object([("jsonrpc", Value::from("2.0")), ("method", Value::from("notifications/initialized"))]);
        self.wire.send(&ready, None, TIMEOUT)?;
        Ok(self)
    }

    fn ask(&mut self, method: &str, parameters: Value, time: Duration) -> Result<Value, String> {
        let id = self.next;
        self.next += 1;
        self.wire.send(&request(id, method, parameters), Some(id), time)
    }

    /// The tools that it shows.
    pub fn listed(&mut self) -> Result<Listed, String> {
        let (mut tools, mut cursor) = (Vec::new(), None::<String>);
        for _page in 0..MAX_PAGES {
            let parameters =
                cursor.as_ref().map_or_else(|| object([]), |cursor| object([("cursor", Value::from(cursor.as_str()))]));
            let answer = self.ask("tools/list", parameters, TIMEOUT)?;
            let listed = answer.get("tools").and_then(Value::as_array).ok_or("its list of tools is none")?;
            tools.extend_from_slice(listed);
            cursor = answer.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                return Ok(Listed { version: self.version.clone(), tools });
            }
        }
        Err(format!("its list of tools has more than {MAX_PAGES} pages"))
    }

    /// Calls a tool; gives what the server answers, an error of the tool's too.
    pub fn call(&mut self, tool: &str, arguments: &Object, time: Duration) -> Result<Value, String> {
        let arguments = Value::Object(arguments.clone());
        self.ask("tools/call", object([("name", Value::from(tool)), ("arguments", arguments)]), time)
    }
}

fn request(id: u64, method: &str, parameters: Value) -> Value {
    object([
        ("jsonrpc", Value::from("2.0")),
        ("id", Value::from(id)),
        ("method", Value::from(method)),
        ("params", parameters),
    ])
}

fn object<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let mut out = Object::default();
    members.into_iter().for_each(|(name, value)| out.push(name, value));
    Value::Object(out)
}

/// The result in an answer; what else a server sends is not for us.
fn result(message: &Value, id: u64) -> Option<Result<Value, String>> {
    if message.get("id").and_then(Value::as_u64) != Some(id) || message.get("method").is_some() {
        return None;
    }
    if let Some(error) = message.get("error") {
        let why = error.get("message").and_then(Value::as_str).unwrap_or("an error");
        return Some(Err(format!("it answers: {}", why.chars().take(200).collect::<String>())));
    }
    message.get("result").cloned().map(Ok)
}

fn parse(bytes: &[u8]) -> Result<Value, String> {
    json::parse_with(bytes, Limits::FOREIGN).map_err(|error| format!("it answers with no JSON: {error}"))
}

struct Pipes {
    into: ChildStdin,
    lines: mpsc::Receiver<Vec<u8>>,
}

impl Pipes {
    fn of(child: &mut Child) -> Result<Self, String> {
        let out = child.stdout.take().ok_or("its output cannot be read")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(out.take(MAX_BYTES));
            loop {
                let mut line = Vec::new();
                match reader.read_until(b'\n', &mut line) {
                    Ok(count) if count > 0 && sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        Ok(Self { into: child.stdin.take().ok_or("its input cannot be written")?, lines })
    }
}

impl Wire for Pipes {
    fn send(&mut self, message: &Value, id: Option<u64>, time: Duration) -> Result<Value, String> {
        let until = Instant::now() + time;
        let line = json::compact(message) + "\n";
        self.into
            .write_all(line.as_bytes())
            .and_then(|()| self.into.flush())
            .map_err(|error| format!("it takes no message: {error}"))?;
        let Some(id) = id else { return Ok(Value::Null) };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|error| match error {
                mpsc::RecvTimeoutError::Timeout => format!("it did not answer within {} s", time.as_secs()),
                mpsc::RecvTimeoutError::Disconnected => "it ended without an answer".to_owned(),
            })?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(result) = result(&parse(&line)?, id) {
                return result;
            }
        }
    }
}

struct Http {
    roots: Vec<Certificate<'static>>,
    url: String,
    session: Option<String>,
}

impl Wire for Http {
    fn send(&mut self, message: &Value, id: Option<u64>, time: Duration) -> Result<Value, String> {
        let mut asked = agent(self.roots.clone(), time)
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", VERSION);
        if let Some(session) = &self.session {
            asked = asked.header("Mcp-Session-Id", session);
        }
        let mut answer = asked.send(json::compact(message).as_bytes()).map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("it answers {}", answer.status().as_u16()));
        }
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        self.session = header("mcp-session-id").or(self.session.take());
        let events = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let Some(id) = id else { return Ok(Value::Null) };
        let reader = BufReader::new(answer.body_mut().as_reader().take(MAX_BYTES));
        if events { from_events(reader, id) } else { from_body(reader, id) }
    }
}

fn from_body(mut reader: impl Read, id: u64) -> Result<Value, String> {
    let mut body = Vec::new();
    reader.read_to_end(&mut body).map_err(|error| error.to_string())?;
    result(&parse(&body)?, id).unwrap_or_else(|| Err("it answers something else".to_owned()))
}

/// The answer among server-sent events: the stream may stay open after it.
fn from_events(reader: impl BufRead, id: u64) -> Result<Value, String> {
    let mut data = String::new();
    for line in reader.lines() {
        let line = line.map_err(|error| error.to_string())?;
        if let Some(rest) = line.strip_prefix("data:") {
            data.push_str(rest.strip_prefix(' ').unwrap_or(rest));
        } else if line.is_empty() && !data.is_empty() {
            if let Some(result) = result(&parse(data.as_bytes())?, id) {
                return result;
            }
            data.clear();
        }
    }
    Err("it ended without an answer".to_owned())
}
