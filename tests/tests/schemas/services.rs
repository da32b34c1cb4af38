//! What is said of statements in a store, of a notary and its tokens, of MCP servers, and of sandboxes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use writ_core::Digest;

use crate::outputs::{Outputs, policy, put, stop};
use crate::workplace::{SESSION, Workplace};

pub const SERVICES: [&str; 7] = [
    "attestation-list",
    "attestation-push",
    "attestation-search",
    "mcp-pins",
    "notary-status",
    "step-run",
    "token-check",
];
pub const CONFINED: [&str; 3] = ["sandbox-diff", "sandbox-plan", "sandbox-test"];

/// An Archivista of a few lines: it takes statements, and says for any digest that all are about it.
fn archivista() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut kept: Vec<(String, Value)> = Vec::new();
        listener.incoming().for_each(|stream| answer(stream.unwrap(), &mut kept));
    });
    url
}

fn answer(mut stream: TcpStream, kept: &mut Vec<(String, Value)>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    while reader.read_line(&mut head).unwrap() > 2 {}
    for line in head.to_ascii_lowercase().lines() {
        if let Some(told) = line.strip_prefix("content-length:") {
            length = told.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let document: Value = serde_json::from_slice(&body).unwrap();
    let answer = if head.starts_with("POST /v1/upload") {
        let id = Digest::of(&[format!("blob {length}\0").as_bytes(), &body].concat()).hex();
        let payload = BASE64.decode(document["payload"].as_str().unwrap()).unwrap();
        let statement: Value = serde_json::from_slice(&payload).unwrap();
        kept.push((id.clone(), statement["predicateType"].clone()));
        json!({"gitoid": id})
    } else {
        let edge =
            |(id, kind): &(String, Value)| json!({"node": {"gitoidSha256": id, "statement": {"predicate": kind}}});
        json!({"data": {"dsses": {"edges": kept.iter().map(edge).collect::<Vec<_>>()}}})
    };
    let answer = answer.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
    stream.write_all((head + &answer).as_bytes()).unwrap();
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// An MCP server of two tools.
const SERVER: &str = r#"while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
*'tools/list'*) echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"x","inputSchema":{"type":"object"}},{"name":"b","description":"y","inputSchema":{"type":"object"}}]}}';;
esac; done"#;

#[test]
fn what_is_said_of_services() {
    let mut out = Outputs::new(Workplace::new("schemas-services"));
    policy(
        &out,
        &json!({"version": "1.0", "name": "served", "requiredAttestations": ["qc"], "limits": {"maxToolCalls": 10}}),
    );
    out.place.start();
    out.place.answer(&out.place.payload("UserPromptSubmit", r#","prompt":"do it""#));
    out.place.allowed("1");
    out.always(&["step", "run", "qc", "--format", "json", "--", "true"], "", 0);
    stop(&out.place);
    assert_eq!(out.json(&["attestation", "list"], 0).as_array().unwrap().len(), 1);
    let url = archivista();
    assert_eq!(out.json(&["attestation", "push", SESSION, "--to", &url], 0).as_array().unwrap().len(), 2);
    out.json(&["attestation", "search", &"0".repeat(64), "--at", &url], 0);
    assert_eq!(out.json(&["notary", "status"], 3), Value::Null);
    let mut notary = Running(out.place.command(&["notary", "run"]).spawn().unwrap());
    let mut said = String::new();
    BufReader::new(notary.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("notary answers"), "{said}");
    out.json(&["notary", "status"], 0);
    let token = out.good(&["token", "issue", "--session", SESSION]);
    out.always(&["token", "check", token.trim(), "--session", SESSION], "", 0);
    drop(notary);
    let mut proxy = out.place.command(&["mcp", "proxy", "--name", "s", "--", "/bin/sh", "-c", SERVER]);
    let mut proxy = Running(proxy.env("PATH", "/usr/bin:/bin").stderr(Stdio::inherit()).spawn().unwrap());
    let (mut input, mut answers) = (proxy.0.stdin.take().unwrap(), BufReader::new(proxy.0.stdout.take().unwrap()));
    for message in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    ] {
        writeln!(input, "{message}").unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert!(line.contains("result"), "{line}");
    }
    drop(input);
    assert!(proxy.0.wait().unwrap().success());
    let pins = out.json(&["mcp", "pins", "list"], 0);
    assert!(pins[0]["tools"]["a"]["accepted"]["digest"].is_string(), "{pins}");
    out.json(&["mcp", "pins"], 0);
    out.check(&SERVICES);
}

#[test]
fn what_is_said_of_sandboxes() {
    let mut out = Outputs::new(Workplace::new("schemas-sandbox"));
    let enforce = json!({
        "calls": true, "limits": {"memoryMiB": 2000, "wallTimeSeconds": 100},
        "network": {"ports": [{"hosts": ["db.example"], "port": 5432, "protocol": "opaque"}], "private": [{"range": "10.0.0.0/8", "hosts": ["in.example"]}]},
    });
    policy(
        &out,
        &json!({
            "version": "1.0", "name": "held", "enforce": enforce, "files": {"allow": ["src/**"], "deny": ["**/.env"]}, "domains": {"allow": ["api.example"]},
            "grants": {"secrets": {"bind": [{"name": "K", "from": "env:K", "hosts": ["api.example"], "inject": "header"}]}},
        }),
    );
    let plan = out.json(&["sandbox", "plan"], 0);
    assert!(plan["egress"]["secrets"].is_array() && plan["confinement"]["limits"]["memory"].is_number(), "{plan:#}");
    out.json(&["sandbox", "test", "--quick"], 0);
    policy(&out, &json!({"version": "1.0", "name": "held", "enforce": "calls"}));
    out.json(&["sandbox", "plan"], 0);
    put(&out, "repository/a", "a\n");
    put(&out, "repository/gone", "a\n");
    let line = "echo b >> a; echo c > src/c; ln -s c src/l; rm gone; mkdir x; echo x > x/Makefile";
    out.good(&["run", "--copy", "--", "sh", "-c", line]);
    assert_eq!(out.json(&["sandbox", "diff"], 0)["changes"].as_array().unwrap().len(), 6);
    out.check(&CONFINED);
}
