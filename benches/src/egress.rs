//! The egress proxy: a request on a tunnel that is kept, one whose TLS ends at the proxy, bytes in bulk, and a run that connects
//! with nothing. The baseline of each is the same without the proxy, or through a relay that does nothing but copy.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use writ_egress::{Listeners, PortRule, PrivateRange, Protocol, Resolve, Rules, Serving, Setup, SystemResolver, serve};
use writ_policy::{Domains, HostRule};

use crate::measure::{Bar, Figure, per_call, percentile};

/// Bytes of one measurement in bulk.
const BULK: usize = 1 << 30;
/// Times that bulk is measured, for each way in turn.
const TIMES: usize = 5;

const REQUEST: &[u8] = b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Measures requests, bulk and the beginning.
pub fn run() -> Result<Vec<Figure>> {
    // The proxy reads what is said to the first, and copies for the others.
    let (reading, answering) = (listen(answer)?, listen(answer)?);
    let sending = listen(|stream| pour(stream, BULK))?;
    let serving = Proxy::start(reading, [answering, sending])?;
    let direct = per_request(TcpStream::connect(answering)?)?;
    let tunnel = per_request(serving.tunnel(answering)?)?;
    let read = per_request_at(serving.connect()?, &ask(reading))?;
    let relay = relay(sending)?;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        bare.push(drain(TcpStream::connect(relay)?)?);
        ours.push(drain(serving.tunnel(sending)?)?);
    }
    let bulk = Figure {
        bytes: Some(BULK),
        ..Figure::time(
            "egress: relayed on loopback",
            percentile(&mut ours, 50),
            ("a relay that only copies", percentile(&mut bare, 50)),
            Bar::SpeedOfBaseline(0.5),
        )
    };
    let idle = per_call(|| begin(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()));
    let alone = per_call(|| black_box(thread::spawn(|| ()).join().is_ok()));
    let request = Bar::AtMost(direct + Duration::from_micros(300));
    Ok(vec![
        Figure::time("egress: a request, kept tunnel", tunnel, ("without a proxy", direct), request),
        Figure::time("egress: a request that is read", read, ("without a proxy", direct), request),
        bulk,
        Figure::time(
            "egress: a run without connections",
            idle,
            ("a thread begun and ended", alone),
            Bar::AtMost(Duration::from_micros(200)),
        ),
    ])
}

/// Serves nothing, and ends.
fn begin(proxy: Option<TcpListener>) -> bool {
    let listeners = Listeners { proxy, ..Listeners::default() };
    serve(listeners, setup(Rules::default())).is_ok_and(|serving| serving.end().is_ok())
}

fn setup(rules: Rules) -> Setup {
    let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver);
    let sink = Box::new(|_| Ok(()));
    Setup { rules, secrets: Vec::new(), authority: None, resolver, extra_authorities: Vec::new(), sink }
}

struct Proxy {
    address: SocketAddr,
    _serving: Serving,
}

impl Proxy {
    /// A proxy that reads HTTP at one address and copies at the others.
    fn start(reading: SocketAddr, copying: [SocketAddr; 2]) -> Result<Self> {
        let hosts = || HostRule::parse("/domains/allow/0".to_owned(), "127.0.0.1").into_iter().collect::<Vec<_>>();
        let port = |at: SocketAddr, protocol: Protocol| PortRule { hosts: hosts(), port: at.port(), protocol };
        let rules = Rules {
            domains: vec![Domains { allow: Some(hosts()), deny: Vec::new() }],
            private: vec![PrivateRange { range: "127.0.0.1".parse()?, hosts: hosts() }],
            ports: std::iter::once(port(reading, Protocol::Http))
                .chain(copying.map(|at| port(at, Protocol::Opaque)))
                .collect(),
            ..Rules::default()
        };
        let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = proxy.local_addr()?;
        let listeners = Listeners { proxy: Some(proxy), ..Listeners::default() };
        Ok(Self { address, _serving: serve(listeners, setup(rules))? })
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn tunnel(&self, to: SocketAddr) -> Result<TcpStream> {
        let mut stream = self.connect()?;
        write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n")?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        ensure!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
        Ok(stream)
    }
}

/// A request for an absolute URL.
fn ask(to: SocketAddr) -> Vec<u8> {
    format!("GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\n\r\n").into_bytes()
}

/// A server, a thread for each connection.
fn listen(serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static) -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    Ok(address)
}

/// Answers each head that comes.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let length = stream.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(piece.get(..length).unwrap_or_default());
        if buffer.ends_with(b"\r\n\r\n") {
            buffer.clear();
            stream.write_all(ANSWER)?;
        }
    }
}

fn pour(mut stream: TcpStream, mut left: usize) -> io::Result<()> {
    let piece = vec![7; 256 << 10];
    while left > 0 {
        stream.write_all(&piece)?;
        left = left.saturating_sub(piece.len());
    }
    stream.shutdown(std::net::Shutdown::Write)
}

/// A relay that only copies: one thread a direction, the same size of piece.
fn relay(to: SocketAddr) -> Result<SocketAddr> {
    listen(move |mut down| {
        let mut up = TcpStream::connect(to)?;
        let mut piece = vec![0; 256 << 10];
        loop {
            let length = up.read(&mut piece)?;
            if length == 0 {
                return down.shutdown(std::net::Shutdown::Write);
            }
            down.write_all(piece.get(..length).unwrap_or_default())?;
        }
    })
}

fn drain(mut stream: TcpStream) -> Result<Duration> {
    let begun = Instant::now();
    let (mut piece, mut got) = (vec![0; 256 << 10], 0);
    loop {
        let length = stream.read(&mut piece)?;
        got += length;
        if length == 0 {
            ensure!(got == BULK, "{got} bytes came of {BULK}");
            return Ok(begun.elapsed());
        }
    }
}

fn per_request(stream: TcpStream) -> Result<Duration> {
    per_request_at(stream, REQUEST)
}

/// How long a request takes on a connection that is kept.
fn per_request_at(mut stream: TcpStream, request: &[u8]) -> Result<Duration> {
    stream.set_nodelay(true)?;
    let mut ask = || -> io::Result<bool> {
        stream.write_all(request)?;
        let mut answer = Vec::with_capacity(256);
        let mut piece = [0; 256];
        while !answer.ends_with(b"ok") {
            let length = stream.read(&mut piece)?;
            answer.extend_from_slice(piece.get(..length).unwrap_or_default());
            if length == 0 {
                return Ok(false);
            }
        }
        Ok(answer.starts_with(b"HTTP/1.1 200 "))
    };
    ensure!(ask().context("the first request")?, "the first request is refused");
    Ok(per_call(|| ask().is_ok_and(|good| good)))
}
