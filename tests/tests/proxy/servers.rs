//! The reference servers of npm behind the proxy.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::place::{Client, Place, refusal};

const VERSION: &str = "2026.8.31";

/// The program of one of the servers, installed from npm once.
fn server(name: &str) -> PathBuf {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mcp-servers-{VERSION}"));
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap();
    let package = |name: &str| format!("@modelcontextprotocol/server-{name}");
    let program = cache.join("node_modules").join(package(name)).join("dist/index.js");
    if !program.is_file() {
        let dependencies = json!({ package("filesystem"): VERSION, package("everything"): VERSION });
        let manifest = json!({ "name": "servers", "private": true, "version": "0.0.0", "dependencies": dependencies });
        fs::write(cache.join("package.json"), manifest.to_string()).unwrap();
        let npm = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
            .current_dir(&cache)
            .output()
            .expect("npm is needed to install the servers");
        assert!(npm.status.success(), "the servers cannot be installed: {}", String::from_utf8_lossy(&npm.stderr));
    }
    assert!(program.is_file(), "the servers' packages hold other files than they did");
    program
}

#[test]
fn the_filesystem_server_obeys_the_policy() {
    let place = Place::new(
        "files",
        &json!({ "version": "1.0", "name": "p", "files": { "deny": ["secrets/**"], "readOnly": ["src/a.txt"] },
            "tools": { "deny": ["mcp__fs__move_file"], "requireApproval": ["mcp__fs__create_directory"] } }),
    );
    let repository = place.repository();
    let path = |below: &str| repository.join(below).to_string_lossy().into_owned();
    let program = server("filesystem");
    let arguments = ["--name", "fs", "--", "node", program.to_str().unwrap(), repository.to_str().unwrap()];
    let mut client = place.proxy(&arguments);
    client.begin();
    let tools = client.tools();
    assert!(tools.len() > 8 && !tools.iter().any(|tool| tool == "move_file"), "{tools:?}");
    let read = client.call("read_text_file", json!({ "path": path("src/a.txt") }));
    assert_eq!(read["result"]["structuredContent"]["content"], "in src\n", "{read}");
    for (tool, arguments, rule) in [
        ("read_text_file", json!({ "path": path("secrets/key") }), "/files/deny/0"),
        ("read_text_file", json!({ "path": "src/../secrets/key" }), "/files/deny/0"),
        ("read_multiple_files", json!({ "paths": [path("src/a.txt"), path("secrets/key")] }), "/files/deny/0"),
        ("write_file", json!({ "path": path("src/a.txt"), "content": "x" }), "/files/readOnly/0"),
        ("write_file", json!({ "path": path(".aflock"), "content": "{}" }), "writ:self-protection"),
        ("move_file", json!({ "source": path("src/a.txt"), "destination": path("b") }), "/tools/deny/0"),
    ] {
        let (verdict, why) = refusal(&client.call(tool, arguments));
        assert!(verdict == "deny" && why.contains(rule) && why.contains("To allow it"), "{tool}: {why}");
    }
    let made = json!({ "path": path("made") });
    let (verdict, why) = refusal(&client.call("create_directory", made.clone()));
    assert_eq!(verdict, "ask");
    let call = why.split("writ approve ").nth(1).unwrap().split('`').next().unwrap();
    let session = why.split("--session ").nth(1).unwrap().split('`').next().unwrap();
    place.human(&format!("approve {call} --session {session}"));
    refusal(&client.call("create_directory", json!({ "path": path("other") })));
    assert!(
        client.call("create_directory", made.clone())["result"].is_object() && place.repository().join("made").is_dir()
    );
    let (verdict, _) = refusal(&client.call("create_directory", made));
    assert_eq!(verdict, "ask", "an approval is for once");
    assert_eq!(fs::read_to_string(place.repository().join("src/a.txt")).unwrap(), "in src\n");
    assert_eq!(client.end(), Some(0));
    let rows = place.rows();
    let of = |decision: &str| rows.iter().filter(|(own, _)| own == decision).count();
    assert_eq!((of("APPROVED"), of("COMPLETED"), of("DENIED"), of("ASKED")), (2, 2, 6, 3), "{rows:?}");
    let verified = place.writ(&["verify"]);
    let report = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(verified.status.success() && report.contains("11 decisions come out the same"), "{report}");
}

/// Everything that servers and clients say to each other beside calls.
fn everything(place: &Place, client: &mut Client) {
    client.begin();
    let tools = client.tools();
    assert!(tools.iter().any(|tool| tool == "echo") && !tools.iter().any(|tool| tool == "get-env"), "{tools:?}");
    let echo = client.call("echo", json!({ "message": "h\u{e9} \u{2028} \u{1f600}" }));
    assert_eq!(echo["result"]["content"][0]["text"], "Echo: h\u{e9} \u{2028} \u{1f600}");
    client.call("trigger-long-running-operation", json!({ "duration": 1, "steps": 2 }));
    let told = |client: &Client, method: &str| client.others.iter().filter(|other| other["method"] == method).count();
    assert_eq!(told(client, "notifications/progress"), 2, "{:?}", client.others);
    refusal(&client.call("get-env", json!({})));
    let denied = client.ask("resources/read", json!({ "uri": place.repository().join("secrets/key") }));
    assert!(refusal(&denied).1.contains("/files/deny/0"), "{denied}");
    assert!(client.ask("resources/list", json!({}))["result"]["resources"].is_array());
    assert!(client.ask("prompts/get", json!({ "name": "simple-prompt" }))["result"]["messages"].is_array());
    assert_eq!(client.ask("no/such", json!({}))["error"]["code"], -32601, "the server's own word");
}

fn everything_place(name: &str) -> Place {
    let tools = json!({ "deny": ["mcp__every__get-env"] });
    Place::new(name, &json!({ "version": "1.0", "name": "p", "files": { "deny": ["secrets/**"] }, "tools": tools }))
}

#[test]
fn everything_passes_over_pipes() {
    let place = everything_place("everything");
    let program = server("everything");
    let mut client = place.proxy(&["--name", "every", "--", "node", program.to_str().unwrap(), "stdio"]);
    everything(&place, &mut client);
    let sampled = client.call("trigger-sampling-request", json!({ "prompt": "p" }));
    assert!(sampled.to_string().contains("sampled"), "{sampled}");
    let elicited = client.call("trigger-elicitation-request", json!({}));
    assert!(elicited.to_string().contains("elicited"), "{elicited}");
    // Taken back: the record says so, and what comes after goes on.
    client.send(r#"{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":60,"steps":60}}}"#);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}"#);
    assert!(client.call("echo", json!({ "message": "after" }))["result"].is_object());
    assert_eq!(client.end(), Some(0));
    let rows = place.rows();
    assert_eq!(rows.iter().filter(|(decision, _)| decision == "FAILED").count(), 2, "{rows:?}");
    assert!(place.writ(&["verify"]).status.success(), "{}", place.said(&["verify"]));
}

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn everything_passes_over_http() {
    let place = everything_place("http");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("node");
    command.arg(server("everything")).arg("streamableHttp").env("PORT", port.to_string());
    let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "the server does not listen");
        thread::sleep(Duration::from_millis(50));
    }
    let mut client = place.proxy(&["--name", "every", &format!("http://127.0.0.1:{port}/mcp")]);
    everything(&place, &mut client);
    drop(running);
    let gone = client.call("echo", json!({ "message": "late" }));
    assert_eq!(gone["error"]["code"], -32051, "{gone}");
    assert_eq!(client.end(), Some(0));
    let rows = place.rows();
    assert_eq!(rows.last().unwrap(), &("FAILED".to_owned(), "mcp__every__echo".to_owned()), "{rows:?}");
    assert!(place.writ(&["verify"]).status.success(), "{}", place.said(&["verify"]));
}
