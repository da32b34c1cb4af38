//! A hook call that the notary answers, over its socket and over HTTP, against the flush that no answer goes without.
//!
//! The time is the asker's: from the first byte of the question to the last of the answer. Starting a process is the figure of `hook`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use writ_engine::Home;
use writ_engine::notary::{Asked, ask};

use crate::hook::Bench;
use crate::measure::{Bar, Figure, percentile};

/// Measured calls of each kind.
const RUNS: usize = 2000;
/// Calls before that.
const WARM_UP: usize = 50;
/// Who asks at the same time when a rate is measured, each for a session of its own.
const ASKERS: usize = 4;
/// About as long as a call's row.
const ROW: [u8; 1500] = [b'x'; 1500];

/// Measures allowed calls under 20 rules, each with its row on disk.
pub fn run() -> Result<Vec<Figure>> {
    let bench = Bench::new()?;
    let notary = Notary::start(&bench)?;
    let home = Home { state: Some(bench.state()), ..Home::default() };
    let mut http = Http::open(&bench, &notary.address)?;
    let mut flushed = File::create(bench.repository().join("flushed"))?;
    let (mut socket, mut posts, mut flushes) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..WARM_UP + RUNS {
        let times = [
            over_socket(&bench, &home, "one", number)?,
            http.post(&bench.payload_of("two", number))?,
            flush(&mut flushed)?,
        ];
        if number >= WARM_UP {
            for (all, time) in [&mut socket, &mut posts, &mut flushes].into_iter().zip(times) {
                all.push(time);
            }
        }
    }
    let all_at_once = rate(&bench, &home)?;
    drop(notary);
    let flush = percentile(&mut flushes, 50);
    let baseline = ("a row's write and fdatasync, p50", flush);
    let bar = Bar::AboveBaseline(Duration::from_micros(500));
    Ok(vec![
        Figure::time("notary: over its socket, p50", percentile(&mut socket, 50), baseline, bar),
        Figure::time("notary: over HTTP, p50", percentile(&mut posts, 50), baseline, bar),
        Figure::time(
            "notary: a call, four asking at once",
            all_at_once,
            baseline,
            Bar::AtMost(Duration::from_millis(1)),
        ),
    ])
}

/// A call's share of the time that several askers take.
fn rate(bench: &Bench, home: &Home) -> Result<Duration> {
    let start = Instant::now();
    thread::scope(|scope| {
        let ask_all = |asker: usize| -> Result<()> {
            let session = format!("asker{asker}");
            (0..RUNS / ASKERS).try_for_each(|number| over_socket(bench, home, &session, number).map(drop))
        };
        let asking: Vec<_> = (0..ASKERS).map(|asker| scope.spawn(move || ask_all(asker))).collect();
        asking.into_iter().try_for_each(|asker| asker.join().unwrap_or_else(|_| bail!("an asker panicked")))
    })?;
    Ok(start.elapsed() / RUNS as u32)
}

fn over_socket(bench: &Bench, home: &Home, session: &str, number: usize) -> Result<Duration> {
    let payload = bench.payload_of(session, number);
    let start = Instant::now();
    match ask(home, writ_clients::DEFAULT, &bench.repository(), payload.as_bytes()) {
        Asked::Told(told) => {
            let took = start.elapsed();
            allowed(&writ_clients::DEFAULT.render(&told))?;
            Ok(took)
        }
        Asked::NotThere(why) => bail!("the notary does not answer here: {why}"),
        Asked::Broken(error) => bail!("the notary's answer did not come: {error}"),
    }
}

fn flush(file: &mut File) -> Result<Duration> {
    let start = Instant::now();
    file.write_all(&ROW)?;
    file.sync_data()?;
    Ok(start.elapsed())
}

fn allowed(answer: &str) -> Result<()> {
    ensure!(answer.starts_with('{') && !answer.contains("\"deny\""), "the notary does not allow the call: {answer}");
    Ok(())
}

/// A notary that ends with the bench.
struct Notary {
    child: Child,
    /// Where it takes posts.
    address: String,
}

impl Notary {
    fn start(bench: &Bench) -> Result<Self> {
        let mut command = bench.command_of(&["notary", "run", "--http", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (told, said) = (child.stderr.take().context("no pipe")?, child.stdout.take().context("no pipe")?);
        let (mut posted, mut answers) = (String::new(), String::new());
        BufReader::new(told).read_line(&mut posted)?;
        BufReader::new(said).read_line(&mut answers)?;
        let address = posted.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address =
            address.with_context(|| format!("the notary does not say where it takes posts: {posted}{answers}"))?;
        Ok(Self { address: address.to_owned(), child })
    }
}

impl Drop for Notary {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A connection that is kept, as a client's.
struct Http {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Http {
    fn open(bench: &Bench, address: &str) -> Result<Self> {
        let token = std::fs::read_to_string(bench.state().join("notary.token"))?;
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /hook/claude-code HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            token.trim()
        );
        Ok(Self { stream: BufReader::new(stream), head })
    }

    fn post(&mut self, payload: &str) -> Result<Duration> {
        let request = format!("{}Content-Length: {}\r\n\r\n{payload}", self.head, payload.len());
        let start = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            ensure!(self.stream.read_line(&mut line)? > 0, "the notary hung up");
            let line = line.trim_end().to_ascii_lowercase();
            match line.strip_prefix("content-length:") {
                Some(number) => length = number.trim().parse()?,
                None if line.is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let took = start.elapsed();
        allowed(&String::from_utf8_lossy(&body))?;
        Ok(took)
    }
}
