//! Servers on 127.0.0.1 that the sample repositories work with: a registry of packages, and a host of git's.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use serde_json::json;

/// Longest request that is read.
const MAX_BODY: u64 = 64 << 20;

struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &TcpStream) -> std::io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            let (name, value) = line.trim().split_once(':').unwrap_or_default();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let (path, query) = (path.to_owned(), query.to_owned());
        let mut request = Self { method, path, query, headers, body: Vec::new() };
        let length = request.header("content-length").parse().unwrap_or(0);
        reader.take(MAX_BODY.min(length)).read_to_end(&mut request.body)?;
        Ok(request)
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }
}

/// Answers each request with a head, without its first line's version, and a body; its threads end with the test.
fn serve(answer: impl Fn(&Request) -> (String, Vec<u8>) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                let Ok(request) = Request::read(&stream) else { return };
                let (head, body) = answer(&request);
                let length = body.len();
                let head = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
                // Who asked may be gone.
                drop(stream.write_all(&[head.into_bytes(), body].concat()));
            });
        }
    });
    port
}

/// A registry that has one package, `greeting`. `folder` is for the making of its archive.
pub fn registry(folder: &Path) -> u16 {
    let package = folder.join("package");
    fs::create_dir_all(&package).unwrap();
    let manifest = json!({"name": "greeting", "version": "1.0.0", "main": "index.js"});
    fs::write(package.join("package.json"), manifest.to_string()).unwrap();
    fs::write(package.join("index.js"), "module.exports = name => `hello ${name}`;\n").unwrap();
    let mut tar = Command::new("tar");
    tar.args(["-cz", "--mtime=2026-01-01", "--owner=0", "--group=0", "package"]);
    let archive = tar.current_dir(folder).output().unwrap().stdout;
    fs::remove_dir_all(package).unwrap();
    serve(move |request| match request.path.as_str() {
        "/greeting" => {
            let tarball = format!("http://{}/greeting/-/greeting-1.0.0.tgz", request.header("host"));
            let mut version = manifest.clone();
            version["dist"] = json!({ "tarball": tarball });
            let all = json!({"name": "greeting", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}});
            ("200 OK\r\ncontent-type: application/json".to_owned(), all.to_string().into_bytes())
        }
        "/greeting/-/greeting-1.0.0.tgz" => {
            ("200 OK\r\ncontent-type: application/octet-stream".to_owned(), archive.clone())
        }
        _ => ("404 Not Found\r\ncontent-type: application/json".to_owned(), b"{}".to_vec()),
    })
}

/// Git's own program for hosts, on the repositories in a folder.
pub fn git_host(folder: PathBuf) -> u16 {
    serve(move |request| {
        let mut backend = Command::new("git");
        backend.arg("http-backend").env("GIT_PROJECT_ROOT", &folder).env("GIT_HTTP_EXPORT_ALL", "1");
        backend.env("REQUEST_METHOD", &request.method).env("PATH_INFO", &request.path);
        backend.env("QUERY_STRING", &request.query).env("REMOTE_ADDR", "127.0.0.1");
        backend.env("CONTENT_TYPE", request.header("content-type"));
        backend.env("CONTENT_LENGTH", request.body.len().to_string());
        backend.env("HTTP_CONTENT_ENCODING", request.header("content-encoding"));
        backend.env("GIT_PROTOCOL", request.header("git-protocol"));
        // Its repositories may be another user's.
        backend.env("GIT_CONFIG_COUNT", "2").env("GIT_CONFIG_KEY_0", "safe.directory").env("GIT_CONFIG_VALUE_0", "*");
        backend.env("GIT_CONFIG_KEY_1", "http.receivepack").env("GIT_CONFIG_VALUE_1", "true");
        let mut backend = backend.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut stdin, body) = (backend.stdin.take().unwrap(), request.body.clone());
        let feed = thread::spawn(move || stdin.write_all(&body));
        let said = backend.wait_with_output().unwrap().stdout;
        drop(feed.join());
        let end = said.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(said.len());
        let head = String::from_utf8_lossy(&said[..end]).into_owned();
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
        let rest: Vec<&str> = head.lines().filter(|line| !line.starts_with("Status:")).collect();
        (format!("{status}\r\n{}", rest.join("\r\n")), said.get(end + 4..).unwrap_or_default().to_vec())
    })
}
