//! `writ serve` as a process of its own, and an HTTP client that says exactly what a test wants said.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod postgres;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use writ_evidence::attestation::Attestation;
use writ_evidence::registry::Registry;

/// A shell line that is blocked.
pub const LINE: &str = r#"{"source":"shell","input":"mkfs.ext4 /dev/sda1"}"#;
pub const REGISTRY: &str = "/.well-known/recourse-keys.json";

/// A folder of its own for one test; removed when the test passes, kept for a look when it fails.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// A file that its owner alone can read.
    pub fn private(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(fs::remove_dir_all(&self.0));
        }
    }
}

/// `writ serve`, ready to start, with nothing of this process's environment.
pub fn command(state: &Path, args: &[&str]) -> Command {
    let writ = env::var_os("WRIT_BIN")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("../debug/writ"), PathBuf::from);
    assert!(writ.is_file(), "{} is not there: run `cargo xtask test`, or build it", writ.display());
    let mut command = Command::new(writ);
    command.arg("serve").args(args).env_clear().env("HOME", state).env("WRIT_STATE_DIR", state);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running service.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(state: &Path, args: &[&str]) -> Self {
        Self::started(command(state, &[&["--listen", "127.0.0.1:0", "--log", "json"], args].concat()))
    }

    pub fn started(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let event: Value = serde_json::from_str(&first).unwrap_or_else(|error| panic!("{error}: {first}"));
        assert_eq!(event["event"], "listening", "{first}");
        let address = event["address"].as_str().unwrap();
        let address = address.rsplit('/').next().unwrap().parse().unwrap();
        let log = Arc::new(Mutex::new(first));
        let kept = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self { child, address, log, reader: Some(reader) }
    }

    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    pub fn terminate(&self) {
        let kill = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    /// Its end, and everything it logged.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        let log = self.log.lock().unwrap().clone();
        (status, log)
    }

    pub fn stop(self) -> String {
        self.terminate();
        let (status, log) = self.wait();
        assert!(status.success(), "{status}: {log}");
        log
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn registry(&self) -> Registry {
        let answer = self.client().get(REGISTRY);
        assert_eq!(answer.status, 200, "{}", answer.text());
        Registry::parse(&answer.body).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// One connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The code of a refusal, whose form is checked too.
    pub fn code(&self) -> String {
        let body = self.json();
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert!(body["error"]["message"].is_string(), "{body}");
        body["error"]["code"].as_str().unwrap().to_owned()
    }

    /// The attestation of a report.
    pub fn attestation(&self) -> Attestation {
        assert_eq!(self.status, 200, "{}", self.text());
        let body = self.json();
        Attestation::parse(body["attestation"].to_string().as_bytes()).unwrap()
    }
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub fn read(&mut self, head: bool) -> std::io::Result<Answer> {
        let mut line = String::new();
        let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(cut)?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(cut());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
        let mut body = vec![0; if head || status == 304 { 0 } else { length }];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, headers, body })
    }

    pub fn try_request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> std::io::Result<Answer> {
        let length = if method == "POST" { format!("content-length: {}\r\n", body.len()) } else { String::new() };
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}{length}\r\n");
        self.send(&[head.as_bytes(), body].concat())?;
        self.read(method == "HEAD")
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        self.try_request(method, path, headers, body).unwrap()
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.request("GET", path, "", b"")
    }

    pub fn evaluate(&mut self, body: &str) -> Answer {
        self.request("POST", "/api/evaluate", "content-type: application/json\r\n", body.as_bytes())
    }

    pub fn try_evaluate(&mut self, body: &str) -> std::io::Result<Answer> {
        self.try_request("POST", "/api/evaluate", "content-type: application/json\r\n", body.as_bytes())
    }
}

/// The path of an attestation's URL.
pub fn path(attestation: &Attestation) -> String {
    attestation.uri().strip_prefix(attestation.instance()).unwrap().to_owned()
}
