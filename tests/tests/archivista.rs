//! Signed statements in an Archivista: a stand-in that keeps what it is given, made from its published API, and one that does not.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use workplace::{SESSION, Workplace};
use writ_core::Digest;

/// `POST /v1/upload`, `GET /v1/download/ID`, `POST /v1/query`: a store in memory. One that `lies` gives other bytes than it was given.
#[derive(Clone, Default)]
struct Store {
    kept: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    lies: bool,
}

/// The id of a blob in a repository of SHA-256, as git says.
fn gitoid(bytes: &[u8]) -> String {
    Digest::of(&[format!("blob {}\0", bytes.len()).as_bytes(), bytes].concat()).hex()
}

impl Store {
    fn start(lies: bool) -> (Self, String) {
        let (store, listener) = (Self { lies, ..Self::default() }, TcpListener::bind("127.0.0.1:0").unwrap());
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = store.clone();
        thread::spawn(move || listener.incoming().for_each(|stream| served.serve(stream.unwrap())));
        (store, url)
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            if let Some(told) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = told.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let (status, answer) = self.answer(&first, body);
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
        let mut stream = stream;
        stream.write_all(&[head.as_bytes(), &answer].concat()).unwrap_or_default();
    }

    fn answer(&self, request: &str, body: Vec<u8>) -> (&'static str, Vec<u8>) {
        let mut kept = self.kept.lock().unwrap();
        match request.split(' ').collect::<Vec<_>>().as_slice() {
            ["POST", "/v1/upload", ..] => {
                let mut id = gitoid(&body);
                kept.insert(id.clone(), body);
                if self.lies {
                    id = "0".repeat(64);
                }
                ("200 OK", json!({"gitoid": id}).to_string().into_bytes())
            }
            ["GET", path, ..] => match path.strip_prefix("/v1/download/").and_then(|id| kept.get(id)) {
                Some(bytes) if self.lies => ("200 OK", [bytes.as_slice(), b" "].concat()),
                Some(bytes) => ("200 OK", bytes.clone()),
                None => ("404 Not Found", b"not found".to_vec()),
            },
            ["POST", "/v1/query", ..] => {
                let asked: Value = serde_json::from_slice(&body).unwrap();
                assert!(
                    asked["query"].as_str().unwrap().contains("hasSubjectDigestsWith: {value: $digest}"),
                    "{asked}"
                );
                let digest = asked["variables"]["digest"].as_str().unwrap();
                let statement = |bytes: &Vec<u8>| -> Value {
                    let envelope: Value = serde_json::from_slice(bytes).unwrap();
                    serde_json::from_slice(&BASE64.decode(envelope["payload"].as_str().unwrap()).unwrap()).unwrap()
                };
                let about = |statement: &Value| statement["subject"].to_string().contains(digest);
                let edges: Vec<Value> = kept
                    .iter()
                    .map(|(id, bytes)| (id, statement(bytes)))
                    .filter(|(_, statement)| about(statement))
                    .map(|(id, statement)| json!({"node": {"gitoidSha256": id, "statement": {"predicate": statement["predicateType"]}}}))
                    .collect();
                ("200 OK", json!({"data": {"dsses": {"edges": edges}}}).to_string().into_bytes())
            }
            _ => ("400 Bad Request", Vec::new()),
        }
    }
}

fn recorded(name: &str) -> Workplace {
    let place = Workplace::new(name);
    let policy =
        json!({"version": "1.0", "name": "kept", "files": {"allow": ["src/**"]}, "requiredAttestations": ["qc"]});
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    place.start();
    place.answer(&place.payload("UserPromptSubmit", r#","prompt":"write""#));
    place.allowed("one");
    let step = place.command(&["step", "run", "qc", "--", "true"]).env("PATH", "/usr/bin:/bin").output().unwrap();
    assert!(step.status.success(), "{}", String::from_utf8_lossy(&step.stderr));
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    place
}

/// `writ` as a human runs it.
fn writ(place: &Workplace, args: &[&str]) -> (i32, String, String) {
    let output = place.writ(args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn statements_are_stored_found_and_fetched() {
    let place = recorded("archivista");
    let (store, url) = Store::start(false);
    let (code, said, error) = writ(&place, &["attestation", "push", SESSION, "--to", &url, "--format", "json"]);
    assert_eq!(code, 0, "{error}");
    let stored: Value = serde_json::from_str(&said).unwrap();
    let names: Vec<&str> = stored.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["qc", "turn-1"]);
    assert_eq!(store.kept.lock().unwrap().len(), 2);
    // What is about the session is found by the seal of its first row, and is byte for byte what was signed.
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let first: Value = serde_json::from_str(ledger.lines().next().unwrap()).unwrap();
    let seal = first["entryHash"].as_str().unwrap();
    let (code, found, _) = writ(&place, &["attestation", "search", seal, "--at", &url]);
    assert!(code == 0 && found.lines().count() == 2, "{found}");
    assert!(found.contains("attestation/link/v0.3") && found.contains("attestation/turn/v0.1"), "{found}");
    let turn = stored[1]["gitoid"].as_str().unwrap();
    let to = place.folder.join("turn.json");
    let (code, _, error) = writ(&place, &["attestation", "fetch", turn, "--from", &url, "-o", to.to_str().unwrap()]);
    assert_eq!(code, 0, "{error}");
    assert_eq!(fs::read(&to).unwrap(), fs::read(place.session().join("attestations/turn-1.json")).unwrap());
    for (id, why) in [("0".repeat(64), "404"), ("../secret".to_owned(), "is no git object id")] {
        let (code, _, error) = writ(&place, &["attestation", "fetch", &id, "--from", &url]);
        assert!(code == 1 && error.contains(why), "{code} {error}");
    }
    // git gives the file the same id.
    let git = place.folder.join("sha256");
    assert!(Command::new("git").args(["init", "-q", "--object-format=sha256"]).arg(&git).status().unwrap().success());
    let hashed = Command::new("git").arg("-C").arg(&git).arg("hash-object").arg(&to).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&hashed.stdout).trim(), turn);
}

#[test]
fn a_store_that_changes_what_it_keeps_is_found_out() {
    let place = recorded("archivista-lies");
    let (store, url) = Store::start(true);
    let (code, _, error) = writ(&place, &["attestation", "push", SESSION, "--to", &url]);
    assert!(code == 1 && error.contains("it was changed"), "{code} {error}");
    let id = store.kept.lock().unwrap().keys().next().unwrap().clone();
    let to = place.folder.join("one.json");
    let (code, _, error) = writ(&place, &["attestation", "fetch", &id, "--from", &url, "-o", to.to_str().unwrap()]);
    assert!(code == 1 && error.contains("it was changed") && !to.exists(), "{code} {error}");
    // Nobody there.
    let (code, _, error) = writ(&place, &["attestation", "push", SESSION, "--to", "http://127.0.0.1:9"]);
    assert!(code == 1 && error.contains("127.0.0.1:9"), "{code} {error}");
    // One of the statements was changed here.
    fs::write(place.session().join("attestations/turn-1.json"), "{}").unwrap();
    let (_, url) = Store::start(false);
    let (code, _, error) = writ(&place, &["attestation", "push", SESSION, "--to", &url]);
    assert!(code == 1 && error.contains("not what its row names"), "{code} {error}");
}
