//! A page for a browser, served on this machine, and the browser.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// What is served, by path: type and body.
pub type Pages = HashMap<String, (&'static str, Vec<u8>)>;

/// A server for `pages`, and what is posted to it. It lives as long as the test's process.
pub struct Server {
    pub origin: String,
    posts: Receiver<String>,
}

impl Server {
    /// Serves what `pages` makes for the server's origin.
    pub fn start(pages: impl FnOnce(&str) -> Pages) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let pages = Arc::new(pages(&origin));
        let (sender, posts) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (pages, sender) = (Arc::clone(&pages), sender.clone());
                // A browser opens connections it may never use.
                thread::spawn(move || serve(stream, &pages, &sender));
            }
        });
        Self { origin, posts }
    }

    /// Opens a page in a headless Chromium and waits for what it posts.
    pub fn visit(&self, path: &str, profile: &Path) -> String {
        let mut chromium = Command::new("chromium");
        chromium.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
        chromium.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        chromium.arg(format!("--user-data-dir={}", profile.display())).arg(format!("{}{path}", self.origin));
        chromium.env("HOME", profile).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = chromium.spawn().expect("chromium starts");
        let posted = self.posts.recv_timeout(Duration::from_secs(120));
        child.kill().unwrap();
        child.wait().unwrap();
        posted.expect("the page posts its result")
    }
}

fn serve(stream: TcpStream, pages: &Pages, posts: &Sender<String>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, (kind, content)) = match pages.get(&path) {
        _ if method == "POST" => {
            posts.send(String::from_utf8(body).ok()?).ok()?;
            ("204 No Content", ("text/plain", Vec::new()))
        }
        Some(page) => ("200 OK", page.clone()),
        None => ("404 Not Found", ("text/plain", Vec::new())),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&content).ok()
}
