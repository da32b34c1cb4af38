//! A run of the proxy with hosts behind it.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;
use writ_egress::{
    Addresses, Authority, Direct, Inject, Listeners, PortRule, PrivateRange, Protocol, Record, Resolve, Rules,
    SecretRule, SecretValue, Serving, Setup, Stage, Trust, placeholder, serve,
};
use writ_policy::{Domains, HostRule};

use crate::host::{Answers, Host, TestAuthority};

/// The value of every test's secret.
pub const VALUE: &str = "hunter2-s3cr3t/value+0123456789";

/// Names and their addresses; a name that is not there is not found.
#[derive(Clone, Default)]
pub struct Names(pub Arc<Mutex<HashMap<String, Vec<Vec<IpAddr>>>>>);

impl Names {
    /// What a name leads to, one list after the other; the last stays.
    pub fn set(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers.iter().map(|list| list.iter().map(|one| one.parse().unwrap()).collect()).collect();
        self.0.lock().unwrap().insert(name.to_owned(), answers);
    }
}

impl Resolve for Names {
    fn addresses<'a>(&'a self, name: &'a str) -> Addresses<'a> {
        Box::pin(async move {
            let mut names = self.0.lock().unwrap();
            let answers = names.get_mut(name).ok_or_else(|| std::io::Error::other("no such name"))?;
            Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
        })
    }
}

pub fn patterns(texts: &[&str]) -> Vec<HostRule> {
    texts.iter().map(|text| HostRule::parse(format!("/domains/allow/{text}"), text).unwrap()).collect()
}

pub fn secret(name: &str, hosts: &[&str]) -> SecretRule {
    SecretRule {
        name: name.to_owned(),
        placeholder: placeholder().unwrap(),
        hosts: patterns(hosts),
        inject: Inject::Header,
        headers: vec!["private-token".to_owned()],
    }
}

/// What a test begins with.
pub struct World {
    pub rules: Rules,
    pub names: Names,
    pub hosts: TestAuthority,
    direct: Vec<u16>,
}

/// A run.
pub struct Run {
    pub serving: Serving,
    pub proxy: u16,
    pub direct: HashMap<u16, u16>,
    pub dns: SocketAddr,
    pub records: Arc<Mutex<Vec<Record>>>,
    pub authority: Arc<Authority>,
    pub folder: TempDir,
}

impl World {
    /// `allow` may be reached, and lead to this machine.
    pub fn new(allow: &[&str]) -> Self {
        let domains = Domains { allow: Some(patterns(allow)), deny: Vec::new() };
        let private = vec![PrivateRange { range: "127.0.0.1".parse().unwrap(), hosts: patterns(allow) }];
        let rules = Rules { domains: vec![domains], private, ..Rules::default() };
        Self { rules, names: Names::default(), hosts: TestAuthority::new(), direct: Vec::new() }
    }

    /// A host that speaks TLS as `names`.
    pub fn tls(&mut self, names: &[&str], answers: Answers) -> Host {
        let host = Host::tls(self.hosts.server(names), answers);
        self.port(names, host.port, Protocol::Tls);
        host
    }

    /// A host that speaks HTTP in the clear.
    pub fn plain(&mut self, names: &[&str], answers: Answers) -> Host {
        let host = Host::plain(answers);
        self.port(names, host.port, Protocol::Http);
        host
    }

    /// Names that are here, and a port they have.
    pub fn port(&mut self, names: &[&str], port: u16, protocol: Protocol) {
        for name in names {
            self.names.set(name, &[&["127.0.0.1"]]);
        }
        self.rules.ports.push(PortRule { hosts: patterns(names), port, protocol });
        if !self.direct.contains(&port) {
            self.direct.push(port);
        }
    }

    /// A secret for `hosts`: its placeholder.
    pub fn secret(&mut self, hosts: &[&str]) -> String {
        let rule = secret("token", hosts);
        let mark = rule.placeholder.clone();
        self.rules.secrets.push(rule);
        mark
    }

    pub fn run(self) -> Run {
        let records = Arc::<Mutex<Vec<Record>>>::default();
        let kept = Arc::clone(&records);
        self.run_with(
            records,
            Box::new(move |record| {
                kept.lock().unwrap().push(record);
                Ok(())
            }),
        )
    }

    pub fn run_with(self, records: Arc<Mutex<Vec<Record>>>, sink: writ_egress::Sink) -> Run {
        let listen = || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let number = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let ports = self.direct.iter().copied().chain([80, 443]);
        let mut direct: Vec<Direct> = ports.map(|port| Direct { port, listener: listen() }).collect();
        let reached = direct.iter().map(|direct| (direct.port, number(&direct.listener))).collect();
        // The first name's address, at the very ports of the hosts: for programs that cannot be told another port.
        for port in self.direct {
            // Another run of the same test may have it; only the tests with programs need it.
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::new(127, 7, 0, 1), port)) {
                direct.push(Direct { port, listener });
            }
        }
        let dns = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let authority = Arc::new(Authority::new().unwrap());
        let folder = TempDir::new().unwrap();
        let (proxy_port, dns_at) = (number(&proxy), dns.local_addr().unwrap());
        let value = |rule: &SecretRule| SecretValue::new(rule.name.clone(), VALUE.as_bytes().to_vec()).unwrap();
        let setup = Setup {
            secrets: self.rules.secrets.iter().map(value).collect(),
            rules: self.rules,
            authority: Some(Arc::clone(&authority)),
            resolver: Arc::new(self.names),
            extra_authorities: self.hosts.pem.clone().into_bytes(),
            sink,
        };
        std::fs::write(folder.path().join("hosts.pem"), &self.hosts.pem).unwrap();
        let serving = serve(Listeners { proxy: Some(proxy), direct, dns: Some(dns) }, setup).unwrap();
        Run { serving, proxy: proxy_port, direct: reached, dns: dns_at, records, authority, folder }
    }
}

/// TLS on a connection.
pub type Secure = StreamOwned<ClientConnection, TcpStream>;

impl Run {
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.proxy)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// A tunnel to `host:port`, or the answer that refuses it.
    pub fn tunnel(&self, target: &str) -> Result<TcpStream, String> {
        let mut stream = self.connect();
        write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).unwrap_or(0) == 0 {
                break;
            }
            answer.push(byte[0]);
        }
        let answer = String::from_utf8(answer).unwrap();
        if answer.starts_with("HTTP/1.1 200") { Ok(stream) } else { Err(answer) }
    }

    /// TLS over a connection, as a program inside that trusts the run's authority, or the hosts' own.
    pub fn secure(&self, stream: TcpStream, name: &str) -> Result<Secure, String> {
        let mut roots = RootCertStore::empty();
        let hosts = CertificateDer::pem_file_iter(self.folder.path().join("hosts.pem")).unwrap();
        let own = CertificateDer::pem_slice_iter(self.authority.certificate().pem().as_bytes());
        roots.add_parsable_certificates(hosts.chain(own).map(Result::unwrap));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let mut client = ClientConnection::new(Arc::new(config), name.to_owned().try_into().unwrap()).unwrap();
        let mut stream = stream;
        while client.is_handshaking() {
            client.complete_io(&mut stream).map_err(|error| error.to_string())?;
        }
        Ok(StreamOwned::new(client, stream))
    }

    /// A tunnel with TLS in it.
    pub fn open(&self, host: &str, port: u16) -> Secure {
        self.secure(self.tunnel(&format!("{host}:{port}")).unwrap(), host).unwrap()
    }

    /// One request over TLS, and everything that comes back.
    pub fn ask(&self, host: &str, port: u16, request: &str) -> String {
        say(&mut self.open(host, port), request.as_bytes())
    }

    /// Where the environment and files of a program inside point.
    pub fn trust(&self) -> (PathBuf, PathBuf, PathBuf) {
        let trust = Trust::new(self.authority.certificate());
        let at = |name: &str| self.folder.path().join(name);
        std::fs::write(at("ca.pem"), &trust.authority).unwrap();
        std::fs::write(at("bundle.pem"), &trust.bundle).unwrap();
        std::fs::write(at("cacerts"), &trust.java).unwrap();
        (at("ca.pem"), at("bundle.pem"), at("cacerts"))
    }

    /// The last record of each connection, once there are `count`.
    pub fn records(&self, count: usize) -> Vec<Record> {
        let begun = Instant::now();
        loop {
            let records = self.records.lock().unwrap();
            let last: Vec<Record> = records.iter().filter(|one| one.stage != Stage::Opened).cloned().collect();
            if last.len() >= count {
                return last;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{records:#?}");
            drop(records);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Why the only connection so far was refused.
    pub fn refusal(&self) -> String {
        self.records(1)[0].refusal.clone().map(|refusal| refusal.word).unwrap_or_default()
    }
}

/// Sends bytes, and reads until nothing more comes.
pub fn say(stream: &mut (impl Read + Write), bytes: &[u8]) -> String {
    stream.write_all(bytes).unwrap();
    stream.flush().unwrap();
    let mut out = Vec::new();
    stream.read_to_end(&mut out).ok();
    String::from_utf8_lossy(&out).into_owned()
}
