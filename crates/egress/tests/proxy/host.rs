//! Hosts on this machine: HTTP, plain or TLS, that keep what they were sent.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// One request as it came.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    /// A field's value.
    pub fn field(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    }
}

/// What a host answers: bytes, head and all.
pub type Answers = Arc<dyn Fn(&Seen) -> Vec<u8> + Send + Sync>;

/// A host.
pub struct Host {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    accepted: Arc<Mutex<usize>>,
}

/// An authority for hosts, which nobody knows but the proxy.
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

impl TestAuthority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { issuer: Issuer::new(params, key), pem: certificate.pem() }
    }

    /// TLS as `names`.
    pub fn server(&self, names: &[&str]) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap())
    }
}

/// An answer with a body and its length.
pub fn text(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Answers with what was sent.
pub fn echo() -> Answers {
    Arc::new(|seen| text(&format!("{}{}", seen.head, String::from_utf8_lossy(&seen.body))))
}

impl Host {
    pub fn plain(answers: Answers) -> Self {
        Self::listen(None, answers)
    }

    pub fn tls(config: Arc<ServerConfig>, answers: Answers) -> Self {
        Self::listen(Some(config), answers)
    }

    fn listen(config: Option<Arc<ServerConfig>>, answers: Answers) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, accepted) = (Arc::<Mutex<Vec<Seen>>>::default(), Arc::<Mutex<usize>>::default());
        let (kept, counted) = (Arc::clone(&seen), Arc::clone(&accepted));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                *counted.lock().unwrap() += 1;
                let (config, answers, kept) = (config.clone(), Arc::clone(&answers), Arc::clone(&kept));
                thread::spawn(move || {
                    stream.set_nodelay(true).ok();
                    match config {
                        Some(config) => {
                            let tls = ServerConnection::new(config).unwrap();
                            speak(StreamOwned::new(tls, stream), &answers, &kept);
                        }
                        None => speak(stream, &answers, &kept),
                    }
                });
            }
        });
        Self { port, seen, accepted }
    }

    /// What it was sent so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many connections it took.
    pub fn accepted(&self) -> usize {
        *self.accepted.lock().unwrap()
    }
}

fn speak(mut stream: impl Read + Write, answers: &Answers, kept: &Mutex<Vec<Seen>>) {
    let mut buffer = Vec::new();
    loop {
        let Some(seen) = read(&mut stream, &mut buffer) else { return };
        kept.lock().unwrap().push(seen.clone());
        let answer = answers(&seen);
        if stream.write_all(&answer).and_then(|()| stream.flush()).is_err() {
            return;
        }
        if answer.starts_with(b"HTTP/1.1 101") {
            // Whatever was agreed on: what comes is said again.
            let mut piece = [0; 4096];
            while let Ok(length) = stream.read(&mut piece) {
                if length == 0 || stream.write_all(&piece[..length]).and_then(|()| stream.flush()).is_err() {
                    return;
                }
            }
            return;
        }
        let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        if head.contains("connection: close") || seen.head.to_ascii_lowercase().contains("connection: close") {
            return;
        }
    }
}

/// Reads one request; HTTP as simple as it may be read by a host that trusts whom it talks to.
pub fn read(stream: &mut impl Read, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, buffer)?;
    };
    let head = String::from_utf8_lossy(&buffer.drain(..end).collect::<Vec<_>>()).into_owned();
    let mut seen = Seen { head, body: Vec::new() };
    if seen.field("transfer-encoding").is_some() {
        loop {
            let line = loop {
                if let Some(at) = buffer.windows(2).position(|two| two == b"\r\n") {
                    break buffer.drain(..at + 2).collect::<Vec<_>>();
                }
                more(stream, buffer)?;
            };
            let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).unwrap();
            while buffer.len() < size + 2 {
                more(stream, buffer)?;
            }
            seen.body.extend(buffer.drain(..size));
            buffer.drain(..2);
            if size == 0 {
                return Some(seen);
            }
        }
    }
    let length: usize = seen.field("content-length").map_or(0, |length| length.parse().unwrap());
    while buffer.len() < length {
        more(stream, buffer)?;
    }
    seen.body.extend(buffer.drain(..length));
    Some(seen)
}

fn more(stream: &mut impl Read, buffer: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 16 << 10];
    let length = stream.read(&mut piece).ok().filter(|length| *length > 0)?;
    buffer.extend(&piece[..length]);
    Some(())
}

/// Sends bytes and reads until the other end has no more to say.
pub fn talk(mut stream: TcpStream, bytes: &[u8]) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    // Who refuses may have closed already: what it said is still there to be read.
    stream.write_all(bytes).ok();
    let mut out = Vec::new();
    // A reset after the words is as good as an end.
    stream.read_to_end(&mut out).ok();
    String::from_utf8_lossy(&out).into_owned()
}
