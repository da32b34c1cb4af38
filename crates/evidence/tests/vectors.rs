//! The accept and reject files under `vectors/`. They were made with other tools (a scripting language's JSON and SHA-256,
//! OpenSSL's Ed25519), so reading them shows that the formats are as their pages say.
//!
//! A file is `name: value` lines, an empty line, and the bytes. `expect` is `accept` or `reject <part of the message>`.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use writ_evidence::checkpoint::{Checkpoint, parse_vkey};
use writ_evidence::dsse::Envelope;
use writ_evidence::keys::PublicKey;
use writ_evidence::ledger::verify_ledger;
use writ_evidence::row::Row;

struct Vector {
    name: String,
    head: HashMap<String, String>,
    body: Vec<u8>,
}

impl Vector {
    /// The files of one format; both kinds must be there.
    fn all(format: &str) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(format);
        let vectors: Vec<Self> =
            fs::read_dir(folder).unwrap().map(|entry| Self::read(&entry.unwrap().path())).collect();
        for kind in ["accept-", "reject-"] {
            assert!(vectors.iter().any(|vector| vector.name.starts_with(kind)), "{format} has no {kind} vector");
        }
        vectors
    }

    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap();
        let (head, body) = bytes.split_at(end);
        let head = String::from_utf8(head.to_vec()).unwrap();
        let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
        Self {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            head: head.lines().map(pair).collect(),
            body: body.strip_prefix(b"\n\n").unwrap().to_vec(),
        }
    }

    /// Compares what a reader said with what the file expects.
    fn check(&self, outcome: Result<(), String>) {
        let expected = self.head.get("expect").unwrap().as_str();
        match (expected.strip_prefix("reject "), outcome) {
            (None, outcome) => {
                assert_eq!(expected, "accept", "{}", self.name);
                assert_eq!(outcome, Ok(()), "{}", self.name);
            }
            (Some(why), Err(message)) => assert!(message.contains(why), "{}: {message}", self.name),
            (Some(_), Ok(())) => unreachable!("{} was accepted", self.name),
        }
    }
}

#[test]
fn rows() {
    for vector in Vector::all("row") {
        let outcome = Row::parse(&vector.body).map_err(|error| error.to_string());
        vector.check(outcome.map(|row| assert_eq!(row.to_line().as_bytes(), vector.body)));
    }
}

#[test]
fn checkpoints() {
    for vector in Vector::all("checkpoint") {
        let (name, key) = parse_vkey(vector.head.get("key").unwrap()).unwrap();
        let note = std::str::from_utf8(&vector.body).unwrap();
        let outcome = Checkpoint::verify(note, &key).map_err(|error| error.to_string());
        vector.check(outcome.map(|checkpoint| assert_eq!(checkpoint.origin, name)));
    }
}

#[test]
fn ledgers() {
    for vector in Vector::all("ledger") {
        let (name, key) = parse_vkey(vector.head.get("key").unwrap()).unwrap();
        let body = std::str::from_utf8(&vector.body).unwrap();
        let (rows, notes) = body.split_once("--\n").unwrap();
        let report = verify_ledger(rows.as_bytes(), notes.as_bytes(), Some(&key), Some(&name), None);
        let findings = [report.problems, report.checkpoint_problems, report.consistency_problems].concat();
        vector.check(if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) });
    }
}

#[test]
fn envelopes() {
    for vector in Vector::all("dsse") {
        let pem =
            format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", vector.head.get("key").unwrap());
        let key = PublicKey::from_pem(&pem).unwrap();
        let outcome = Envelope::parse(&vector.body).map_err(|error| error.to_string());
        vector
            .check(outcome.and_then(|envelope| envelope.verify(&[key]).map(|_| ()).map_err(|error| error.to_string())));
    }
}
