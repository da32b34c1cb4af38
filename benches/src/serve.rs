//! The service: evaluations over HTTP that are signed and durable, against signing the same bytes alone on one core.
//!
//! The load runs on the same cores. First as fast as it gets answers; then at fixed rates, each request at its own moment, from
//! which its time is counted however late it could be sent.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use writ_core::json::{self, Value};
use writ_evidence::attestation::Attestation;
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::registry::{PATH, Registry};

use crate::measure::{Bar, Figure, per_call, percentile};

const BODY: &str =
    r#"{"source":"shell","input":"git push --force origin main && rm -rf build","options":{"cwd":"/work"}}"#;
/// Connections of the load without pause, and the threads that serve them in turns.
const CONNECTIONS: usize = 128;
const THREADS: usize = 2;
/// Connections of the load at a fixed rate, a thread each.
const PACED: usize = 32;
const WARM_UP: Duration = Duration::from_secs(1);
const TIME: Duration = Duration::from_secs(6);

/// Measures both loads.
pub fn run() -> Result<Vec<Figure>> {
    let server = Server::start()?;
    let payload = server.payload()?;
    let key = SigningKey::generate(Algorithm::Ed25519)?;
    let alone = ("signing the same bytes, one core", per_call(|| key.sign(payload.as_bytes())));
    let ours = server.flood()?;
    // A twentieth of the signing rate is half of the load that the bar asks for.
    let tail = |name: &str, apart: Duration, bar: Bar| {
        let mut times = server.paced(apart)?;
        let half = percentile(&mut times, 50);
        Ok::<_, anyhow::Error>(Figure::time(name, percentile(&mut times, 99), ("its p50", half), bar))
    };
    Ok(vec![
        tail("serve: p99 at half the load of the bar", alone.1 * 20, Bar::AtMost(Duration::from_millis(20)))?,
        tail("serve: p99 at half of its own load", ours * 2, Bar::AtMost(Duration::from_millis(20)))?,
        Figure::time("serve: signed and durable, a request", ours, alone, Bar::SpeedOfBaseline(0.1)),
    ])
}

struct Server {
    address: String,
    child: Child,
    _folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Server {
    fn start() -> Result<Self> {
        let writ = env::var_os("WRIT_BIN").map(PathBuf::from);
        let writ = writ.context("WRIT_BIN does not say where the release `writ` is; run `cargo xtask bench`")?;
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        let child = Command::new(writ)
            .args(["serve", "--attest", "--rate", "0", "--listen", "127.0.0.1:0", "--log", "json"])
            .env("WRIT_STATE_DIR", folder.path().join("state"))
            .stdin(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut server = Self { address: String::new(), child, _folder: folder };
        server.address = listening(&log)?;
        Ok(server)
    }

    fn client(&self) -> Result<Client> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let head = format!(
            "POST /api/evaluate HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            BODY.len()
        );
        Ok(Client { stream, request: format!("{head}{BODY}").into_bytes(), answer: vec![0; 64 << 10] })
    }

    /// What is signed, from an answer whose signature holds.
    fn payload(&self) -> Result<String> {
        let mut client = self.client()?;
        client.send()?;
        let answer = json::parse(client.receive()?)?;
        let attestation = answer.get("attestation").cloned().context("no attestation")?;
        let attestation = Attestation::from_value(attestation)?;
        client.request = format!("GET {PATH} HTTP/1.1\r\nhost: bench\r\n\r\n").into_bytes();
        client.send()?;
        Registry::parse(client.receive()?)?.check(&attestation)?;
        Ok(attestation.payload())
    }

    /// Time a request takes from all of them, when every connection always waits for an answer.
    fn flood(&self) -> Result<Duration> {
        let answered = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| self.rounds())).collect();
            threads.into_iter().map(joined).sum::<Result<u32>>()
        })?;
        Ok(TIME / answered.max(1))
    }

    fn rounds(&self) -> Result<u32> {
        let mut clients = (0..CONNECTIONS / THREADS).map(|_| self.client()).collect::<Result<Vec<_>>>()?;
        clients.iter_mut().try_for_each(Client::send)?;
        let (start, mut answered) = (Instant::now(), 0);
        while start.elapsed() < WARM_UP + TIME {
            for client in &mut clients {
                client.receive()?;
                answered += u32::from(start.elapsed() >= WARM_UP);
                client.send()?;
            }
        }
        for client in &mut clients {
            client.receive()?;
        }
        Ok(answered)
    }

    /// How long each request took whose turn came every `apart`.
    fn paced(&self, apart: Duration) -> Result<Vec<Duration>> {
        let start = Instant::now() + Duration::from_millis(100);
        thread::scope(|scope| {
            let first = |number: usize| start + apart * u32::try_from(number).unwrap_or(0);
            let threads: Vec<_> =
                (0..PACED).map(|number| scope.spawn(move || self.turns(first(number), apart * PACED as u32))).collect();
            let times = threads.into_iter().map(joined).collect::<Result<Vec<_>>>()?;
            Ok(times.concat())
        })
    }

    fn turns(&self, mut turn: Instant, apart: Duration) -> Result<Vec<Duration>> {
        let (mut client, mut times, end) = (self.client()?, Vec::new(), turn + WARM_UP + TIME);
        let measured = turn + WARM_UP;
        while turn < end {
            thread::sleep(turn.saturating_duration_since(Instant::now()));
            client.send()?;
            client.receive()?;
            if turn >= measured {
                times.push(turn.elapsed());
            }
            turn += apart;
        }
        Ok(times)
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_panic| bail!("a thread of the load panicked"))
}

/// The address in the log's first line.
fn listening(log: &Path) -> Result<String> {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(log)?;
        if let Some((line, _)) = text.split_once('\n') {
            let event = json::parse(line.as_bytes()).with_context(|| text.clone())?;
            let address = event.get("address").and_then(Value::as_str).context("no address")?;
            return Ok(address.trim_start_matches("http://").to_owned());
        }
        ensure!(start.elapsed() < Duration::from_secs(10), "the service does not start: {text}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// One connection.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Client {
    fn send(&mut self) -> Result<()> {
        Ok(self.stream.write_all(&self.request)?)
    }

    /// The body of an answer that says 200.
    fn receive(&mut self) -> Result<&[u8]> {
        let mut filled = 0;
        loop {
            let room = self.answer.get_mut(filled..).context("the answer is too long")?;
            let read = self.stream.read(room)?;
            ensure!(read > 0, "the service closed the connection");
            filled += read;
            let got = self.answer.get(..filled).unwrap_or_default();
            let Some(head) = got.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
            if head + 4 + length(got.get(..head).unwrap_or_default())? == filled {
                return self.answer.get(head + 4..filled).context("no body");
            }
        }
    }
}

fn length(head: &[u8]) -> Result<usize> {
    let head = std::str::from_utf8(head)?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).context("no length")?;
    Ok(length.parse()?)
}
