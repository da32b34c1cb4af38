//! A server over streamable HTTP: each line of the client's is a request's body, each event of an answer a line.
//!
//! Owns the session that the server names, and the stream of what it says unasked. Follows no redirects. The protocol's older transport,
//! with an event stream of its own for answers, is refused by what it answers. Line breaks between the words of a body become spaces,
//! since a message is one line here; every other byte goes on as it came.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::{Agent, Body};
use writ_core::json::Value;
use writ_core::secret::hide;

use super::message::{self, Kind, Line, Message};
use super::relay::Relay;
use super::{Client, each_line, when_stopped};
use crate::mcp::MAX_MESSAGE;
use crate::mcp::line_transport::{Next, next};
use crate::network::{agent, authorities};

/// How long an answer may take. Calls may be long.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// How long answers are waited for when the client has nothing more to say.
const GRACE: Duration = Duration::from_secs(5);
/// Most requests that have a thread of their own.
const AT_ONCE: usize = 64;
/// The headers of the protocol.
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// Where a message says its version since there is no handshake any more.
const VERSION_MEMBER: &str = "io.modelcontextprotocol/protocolVersion";
const EVENTS: &str = "text/event-stream";

/// A header that goes with every request.
pub type Header = (String, String);

/// Why there is no way to a server.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The pipes to the client, or a thread.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A server behind a URL.
struct Server<W> {
    agent: Agent,
    url: String,
    headers: Vec<Header>,
    relay: Relay,
    client: Client<W>,
    agreed: Mutex<Agreed>,
    busy: AtomicUsize,
    listens: AtomicBool,
}

/// What the server has said of the session.
#[derive(Clone, Default)]
struct Agreed {
    session: Option<String>,
    version: Option<String>,
}

/// Relays until the client has nothing more to say.
pub fn run<W: Write + Send + 'static>(
    relay: Relay,
    url: &str,
    headers: Vec<Header>,
    input: impl Read,
    output: W,
    tell: fn(&str),
) -> Result<(), HttpError> {
    let server = Arc::new(Server {
        agent: agent(authorities(), TIMEOUT),
        url: url.to_owned(),
        headers,
        relay,
        client: Client::new(output, tell),
        agreed: Mutex::default(),
        busy: AtomicUsize::new(0),
        listens: AtomicBool::new(false),
    });
    let stopped = Arc::clone(&server);
    when_stopped(move || {
        stopped.end();
        // Reading from the client cannot be broken off; nothing is lost that this process still had to do.
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap_or_default();
    })?;
    let read = each_line(BufReader::new(input), &server.client, |line| Server::send(&server, line));
    let until = Instant::now() + GRACE;
    while server.busy.load(Ordering::Acquire) > 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    server.end();
    Ok(read?)
}

impl<W: Write + Send + 'static> Server<W> {
    fn send(this: &Arc<Self>, line: &[u8]) -> io::Result<()> {
        let step = this.relay.from_client(line);
        this.client.note(step.note.as_deref());
        this.client.lines(&step.back)?;
        let Some(bytes) = step.on else { return Ok(()) };
        let asks =
            matches!(message::read(&bytes, false), Ok(Line::Messages { messages, .. }) if messages.iter().any(asks));
        // What wants no answer keeps its place in the order.
        if !asks || this.busy.load(Ordering::Acquire) >= AT_ONCE {
            return this.post(&bytes);
        }
        this.busy.fetch_add(1, Ordering::AcqRel);
        let server = Arc::clone(this);
        thread::Builder::new().spawn(move || {
            // A client that is gone wants no answer.
            let _gone = server.post(&bytes).is_err();
            server.busy.fetch_sub(1, Ordering::AcqRel);
        })?;
        if !this.listens.swap(this.agreed().is_begun(), Ordering::AcqRel) && this.listens.load(Ordering::Acquire) {
            let server = Arc::clone(this);
            thread::Builder::new().name("events".to_owned()).spawn(move || server.listen())?;
        }
        Ok(())
    }

    /// Hands the server a line, and the client what comes of it.
    fn post(&self, line: &[u8]) -> io::Result<()> {
        let body = line.trim_ascii();
        let (method, name, version) = frame(body);
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        let Agreed { session, version: agreed } = self.agreed().clone();
        for (header, value) in
            [(SESSION, session), (VERSION, version.or(agreed)), ("mcp-method", method), ("mcp-name", name)]
        {
            if let Some(value) = value.filter(|value| plain(value)) {
                request = request.header(header, value);
            }
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match request.send(body) {
            Ok(response) => self.answer(line, response),
            Err(error) => self.failed(line, &format!("the server cannot be asked: {error}")),
        }
    }

    fn answer(&self, line: &[u8], mut response: Response<Body>) -> io::Result<()> {
        let status = response.status().as_u16();
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        if let (Some(session), 200..300) = (header(SESSION).filter(|session| plain(session)), status) {
            self.agreed().session = Some(session);
        }
        let kind = header("content-type").unwrap_or_default().to_ascii_lowercase();
        let reader = response.body_mut().as_reader();
        if status == 202 {
            return Ok(());
        }
        if kind.starts_with(EVENTS) && (200..300).contains(&status) {
            let read = self.events(BufReader::new(reader));
            return read.and_then(|()| self.failed(line, "the server's answer ended before it was one"));
        }
        let mut body = Vec::new();
        let read = reader.take(MAX_MESSAGE as u64 + 1).read_to_end(&mut body);
        if read.is_err() || body.len() > MAX_MESSAGE {
            return self.failed(line, "the server's answer is cut off, or too long");
        }
        if kind.starts_with("application/json") && !body.trim_ascii().is_empty() {
            self.relay(&mut body)?;
        }
        // What has had its answer is told nothing more.
        let what = if status == 200 {
            "what the server answers cannot be used".to_owned()
        } else {
            format!("the server answers HTTP {status}")
        };
        self.failed(line, &what)
    }

    /// Relays one message of the server's.
    fn relay(&self, message: &mut Vec<u8>) -> io::Result<()> {
        message.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        message.push(b'\n');
        if let Ok(Line::Messages { messages, .. }) = message::read(message, true) {
            let version = messages.iter().find_map(|it| it.body.get("result")?.get("protocolVersion")?.as_str());
            if let Some(version) = version {
                self.agreed().version = Some(version.to_owned());
            }
        }
        let step = self.relay.from_server(message);
        self.client.note(step.note.as_deref());
        step.on.map_or(Ok(()), |bytes| self.client.write(&bytes))
    }

    /// Relays the messages of an event stream until it ends.
    fn events(&self, mut input: impl BufRead) -> io::Result<()> {
        let (mut line, mut data) = (Vec::new(), Vec::new());
        loop {
            match next(&mut input, &mut line) {
                Ok(Next::End) | Err(_) => return Ok(()),
                Ok(Next::TooLong) => {
                    self.client.note(Some("an event of the server's is too long and is not relayed"));
                    data.clear();
                }
                Ok(Next::Line) => {
                    let text = line.trim_ascii_end();
                    if text.is_empty() {
                        if !data.trim_ascii().is_empty() {
                            self.relay(&mut data)?;
                        }
                        data.clear();
                    } else if let Some(value) = text.strip_prefix(b"data:")
                        && data.len() + value.len() <= MAX_MESSAGE
                    {
                        if !data.is_empty() {
                            data.push(b' ');
                        }
                        data.extend(value.strip_prefix(b" ").unwrap_or(value));
                    }
                }
            }
        }
    }

    /// What the server says unasked, where it offers that.
    fn listen(&self) {
        let mut pause = Duration::from_secs(1);
        loop {
            let mut request = self.agent.get(&self.url).header("accept", EVENTS);
            let Agreed { session, version } = self.agreed().clone();
            for (header, value) in [(SESSION, session), (VERSION, version)] {
                if let Some(value) = value {
                    request = request.header(header, value);
                }
            }
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            match request.call() {
                Ok(mut response) if response.status().as_u16() == 200 => {
                    if self.events(BufReader::new(response.body_mut().as_reader())).is_err() {
                        return;
                    }
                    pause = Duration::from_secs(1);
                }
                Ok(_) => return,
                Err(_) => pause = (pause * 2).min(Duration::from_secs(60)),
            }
            thread::sleep(pause);
        }
    }

    fn failed(&self, line: &[u8], why: &str) -> io::Result<()> {
        self.client.lines(&self.relay.failed(line, &hide(why)))
    }

    /// Ends the sessions: the record's, and the server's.
    fn end(&self) {
        let _gone = self.client.lines(&self.relay.gone("the proxy has ended")).is_err();
        self.relay.gate().close();
        if let Some(session) = self.agreed().session.take() {
            let mut request = self.agent.delete(&self.url).header(SESSION, session);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            // A server may not know this.
            let _told = request.config().timeout_global(Some(Duration::from_secs(1))).build().call().is_ok();
        }
    }

    fn agreed(&self) -> MutexGuard<'_, Agreed> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agreed {
    const fn is_begun(&self) -> bool {
        self.session.is_some() || self.version.is_some()
    }
}

fn asks(message: &Message) -> bool {
    matches!(message.kind, Kind::Request(_))
}

/// The method, the name and the version that a message says, for the headers that repeat them.
fn frame(body: &[u8]) -> (Option<String>, Option<String>, Option<String>) {
    let Ok(Line::Messages { messages, batch: false }) = message::read(body, false) else { return (None, None, None) };
    let Some(message) = messages.first() else { return (None, None, None) };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let method = match &message.kind {
        Kind::Request(method) | Kind::Notification(method) => Some(method.clone()),
        Kind::Answer => None,
    };
    let name = text(message.param("name").or_else(|| message.param("uri")));
    let version = text(message.param("_meta").and_then(|meta| meta.get(VERSION_MEMBER)));
    (method, name, version)
}

/// Whether a text may stand in a header.
fn plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 4096 && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}
