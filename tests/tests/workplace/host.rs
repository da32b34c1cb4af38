//! A host that speaks TLS, and what it was sent.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::lab::Lab;

/// The secret's value, which must be seen nowhere but at its host.
pub const CANARY: &str = "c4n4ry-9f1e/7b2d+0a5c";

/// A host that speaks TLS and says what it was sent; what it saw is in its file.
const HOST: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        open(sys.argv[2], 'a').write(self.path + '\n' + str(self.headers))
        sent = self.headers.get('authorization', '')
        body = 'hello ' + sent
        if self.path == '/cargo/config.json':
            body = '{"dl":"https://%s/dl","auth-required":true}' % self.headers['host']
        if self.path == '/cargo/mo/ck/mock-dep':
            body = '{"name":"mock-dep","vers":"1.0.0","deps":[],"cksum":"' + '0' * 64 + '","features":{},"yanked":false}\n'
        if self.path.startswith('/repo.git/info/refs'):
            if not sent:
                self.send_response(401); self.send_header('www-authenticate', 'Basic realm="x"')
                self.send_header('content-length', '0'); self.end_headers(); return
            refs = '001e# service=git-upload-pack\n0000' + '003f' + '1' * 40 + ' refs/heads/mock-head\n' + '0000'
            body = refs.replace('003f', '%04x' % (4 + 40 + 1 + len('refs/heads/mock-head\n')))
        self.send_response(200)
        kind = 'application/x-git-upload-pack-advertisement' if 'repo.git' in self.path else 'text/plain'
        self.send_header('content-type', kind); self.send_header('content-length', str(len(body))); self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + '/host.pem', sys.argv[1] + '/host.key')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A host, with the authority that vouches for it.
pub struct Host {
    child: Child,
    pub port: u16,
    pub folder: PathBuf,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// A name that leads to this machine and is not `localhost`, which programs never ask a proxy for.
pub fn name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_lowercase();
    let here =
        (name.as_str(), 0).to_socket_addrs().is_ok_and(|mut found| found.any(|at| at.ip().to_string() == "127.0.0.1"));
    let without = std::env::var("WRIT_TESTS_WITHOUT").unwrap_or_default();
    assert!(
        here || without.split(',').any(|one| one == "hostname"),
        "`{name}` does not lead to 127.0.0.1; WRIT_TESTS_WITHOUT=hostname asks by the name `localhost` instead"
    );
    if here { name } else { "localhost".to_owned() }
}

impl Host {
    pub fn start(test: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-host-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("names"), format!("subjectAltName=DNS:{},DNS:localhost\n", name())).unwrap();
        let make = "set -e; new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'; \
            openssl req -x509 $new -keyout ca.key -out ca.pem -subj '/CN=Test authority' -days 30; \
            openssl req $new -keyout host.key -out host.csr -subj /CN=host; \
            openssl x509 -req -in host.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out host.pem -days 30";
        let made = Command::new("sh").args(["-c", make]).current_dir(&folder).stderr(Stdio::null()).status().unwrap();
        assert!(made.success());
        let mut child = Command::new("python3");
        child
            .args(["-c", HOST])
            .arg(&folder)
            .arg(folder.join("seen"))
            .stdout(Stdio::piped())
            .env_remove("SSL_CERT_FILE");
        let mut child = child.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap(), folder }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}:{}{path}", name(), self.port)
    }

    /// What it was sent since this was last asked.
    pub fn seen(&self) -> String {
        let seen = fs::read_to_string(self.folder.join("seen")).unwrap_or_default();
        fs::write(self.folder.join("seen"), "").unwrap();
        seen
    }

    pub fn policy(&self) -> Value {
        json!({
            "version": "1.0", "name": "secrets", "domains": {"allow": [name(), "localhost"]},
            "grants": {"secrets": {"allow": ["env:*", "file:~/*"], "bind": [
                {"name": "API_TOKEN", "from": "env:MY_VALUE", "hosts": [name()], "headers": ["private-token"]}]}},
            "enforce": {"calls": true, "network": {
                "ports": [{"hosts": [name(), "localhost"], "port": self.port, "protocol": "tls"}],
                "private": [{"range": "127.0.0.0/8", "hosts": [name(), "localhost"]}]}},
        })
    }

    pub fn lab(&self, test: &str, policy: &Value) -> Lab {
        let authority = self.folder.join("ca.pem");
        // In Base64 behind a user's name, and in hexadecimal digits.
        let basic = "dXNlcjpjNG40cnktOWYxZS83YjJkKzBhNWM=";
        let digits = "63346E3472792D396631652F376232642B30613563";
        let copies = [("COPY", CANARY), ("COPY_BASIC", basic), ("COPY_DIGITS", digits)];
        let mut variables = vec![("MY_VALUE", CANARY), ("SSL_CERT_FILE", authority.to_str().unwrap())];
        variables.extend(copies);
        Lab::new(test, policy, &variables)
    }
}
