//! The other verifiers of attestations: the TypeScript library in Node and in Chromium, the Python script, OpenSSL by itself. All must say
//! what the Rust code says.

mod attested;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use attested::browser::{Pages, Server};
use attested::{Case, Dice, Issuer, issued, library, object, succession};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use writ_core::json::Value as Plain;
use writ_evidence::attestation::Attestation;
use writ_evidence::keys::PublicKey;
use writ_evidence::registry::Registry;

const ATTESTATIONS: usize = 4000;
const SUCCESSIONS: usize = 1500;

fn vectors(folder: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

/// A member that is a text, or the base64 of what is none.
fn bytes(vector: &Value, member: &str) -> Vec<u8> {
    match vector[member].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(vector[format!("{member}_base64")].as_str().unwrap()).unwrap(),
    }
}

/// Compares, shows the first that differ, and checks that every answer came up often enough to mean something.
fn agree(ours: &[String], theirs: &[String], show: impl Fn(usize) -> String, often: &[(&str, usize)]) {
    assert_eq!(ours.len(), theirs.len());
    let differ: Vec<usize> = (0..ours.len()).filter(|&at| ours[at] != theirs[at]).collect();
    let shown =
        differ.iter().take(3).map(|&at| format!("Rust: {}\nTypeScript: {}\n{}\n", ours[at], theirs[at], show(at)));
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), shown.collect::<String>());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for answer in ours {
        *counts.entry(answer.split(' ').next().unwrap()).or_default() += 1;
    }
    for (answer, least) in often {
        assert!(counts.get(answer).is_some_and(|count| count >= least), "{answer} is rare: {counts:?}");
    }
}

#[test]
fn rust_and_typescript_agree_on_attestations() {
    let (issuer, mut dice) = (Issuer::new(), Dice(1));
    let cases: Vec<Case> = (0..ATTESTATIONS).map(|_| issuer.case(&mut dice)).collect();
    let line = |case: &Case| {
        json!({
            "attestation": STANDARD.encode(&case.attestation), "registry": STANDARD.encode(&case.registry),
            "trusted": case.trusted, "now": case.now.millis(),
        })
    };
    let theirs = library::answers(&cases.iter().map(line).collect::<Vec<_>>());
    let ours: Vec<String> = cases.iter().map(Case::outcome).collect();
    let show = |at: usize| {
        let case: &Case = &cases[at];
        let [attestation, registry] = [&case.attestation, &case.registry].map(|bytes| bytes.escape_ascii().to_string());
        format!("{attestation}\n{registry}\n{:?} {}", case.trusted, case.now)
    };
    let often = [
        ("valid", 400),
        ("invalid_attestation", 400),
        ("signature_invalid", 40),
        ("key_not_found", 40),
        ("key_pending", 40),
        ("key_compromised", 40),
        ("instance_not_trusted", 40),
        ("network_error", 40),
        ("expired", 40),
    ];
    agree(&ours, &theirs, show, &often);
}

#[test]
fn rust_and_typescript_agree_on_registries() {
    let (issuer, mut dice) = (Issuer::new(), Dice(2));
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..SUCCESSIONS).map(|_| issuer.pair(&mut dice)).collect();
    pairs.extend([4096, 4097].map(|count| (issuer.many(count), issuer.many(count))));
    let line = |(known, fetched): &(Vec<u8>, Vec<u8>)| json!({ "known": STANDARD.encode(known), "fetched": STANDARD.encode(fetched) });
    let theirs = library::answers(&pairs.iter().map(line).collect::<Vec<_>>());
    let ours: Vec<String> = pairs.iter().map(|(known, fetched)| succession(known, fetched)).collect();
    assert_eq!(ours.last_chunk(), Some(&["keep".to_owned(), "invalid".to_owned()]));
    let show = |at: usize| format!("{}\n{}", pairs[at].0.escape_ascii(), pairs[at].1.escape_ascii());
    agree(&ours, &theirs, show, &[("take", 150), ("keep", 150), ("registry_rollback", 150), ("invalid", 50)]);
}

#[test]
fn the_library_passes_its_own_tests() {
    library::built();
    let said = library::run(Command::new("node").args(["--test", "test/"]));
    let passed = said
        .lines()
        .find_map(|line| line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix("pass ")?.parse::<usize>().ok());
    assert!(passed.is_some_and(|passed| passed >= 20), "{said}");
}

/// The script leaves out trust and the registry's form; everything else has to be as the vectors expect.
#[test]
fn the_python_script_says_what_the_vectors_expect() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verifiers/python/verify.py");
    assert!(fs::read_to_string(&script).unwrap().lines().count() <= 160);
    let mut cases = vectors("attestation");
    cases.retain(|vector| !["instance_not_trusted", "network_error"].contains(&vector["expect"].as_str().unwrap()));
    assert!(cases.len() >= 300, "only {}", cases.len());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{}", std::process::id()));
    let names: Vec<&str> = cases.iter().map(|vector| vector["name"].as_str().unwrap()).collect();
    for (vector, name) in cases.iter().zip(&names) {
        fs::create_dir_all(folder.join(name)).unwrap();
        for member in ["attestation", "registry"] {
            fs::write(folder.join(name).join(member), bytes(vector, member)).unwrap();
        }
        fs::write(folder.join(name).join("now"), vector["now"].as_str().unwrap()).unwrap();
    }
    // One interpreter for many: starting it is what takes the time.
    let all = "import os, sys
script, *folders = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
import verify
for folder in folders:
    read = lambda name: open(os.path.join(folder, name), 'rb').read()
    try:
        verify.verify(read('attestation'), read('registry'), verify.moment(read('now').decode()))
        print('valid')
    except verify.Refused as refused: print(refused.code)";
    let ask = |names: &[&str]| {
        let script = script.canonicalize().unwrap();
        let mut python = Command::new("python3");
        let output = python.args(["-c", all]).arg(script).args(names).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (front, back) = names.split_at(names.len() / 2);
    let said = thread::scope(|scope| {
        let front = scope.spawn(|| ask(front));
        let back = ask(back);
        [front.join().unwrap(), back].concat()
    });
    assert_eq!(said.len(), cases.len());
    for (said, vector) in said.iter().zip(&cases) {
        assert_eq!(Some(said.as_str()), vector["expect"].as_str(), "{}", vector["name"]);
    }
    for (name, holds) in [("accept-bare", true), ("reject-other-key", false)] {
        let mut python = Command::new("python3");
        let status = python.arg(&script).args(["attestation", "registry"]).current_dir(folder.join(name)).output();
        assert_eq!(status.unwrap().status.success(), holds, "{name}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Nothing but the documents and OpenSSL: the payload is the canonical document without its signature.
#[test]
fn plain_openssl_verifies_an_attestation() {
    let (text, registry) = issued("https://writ.example", &object([("riskAssessment", Plain::from("block"))]));
    let registry = Registry::parse(registry.as_bytes()).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("openssl-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    // A canonical document's payload is the document with one member cut out.
    let start = text.find(",\"signature\":\"").unwrap();
    let (head, rest) = text.split_at(start);
    let (signature, tail) = rest.strip_prefix(",\"signature\":\"").unwrap().split_once('"').unwrap();
    let payload = format!("{head}{tail}");
    assert_eq!(payload, Attestation::parse(text.as_bytes()).unwrap().payload());
    let standard = format!("{}==", signature.replace('-', "+").replace('_', "/"));
    let key =
        [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00".as_slice(), &registry.active().unwrap().public].concat();
    let key = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(key));
    assert_eq!(PublicKey::from_pem(&key).unwrap().raw(), registry.active().unwrap().public);
    fs::write(folder.join("key.pem"), key).unwrap();
    fs::write(folder.join("signature"), STANDARD.decode(standard).unwrap()).unwrap();
    let verify = |payload: &str| {
        fs::write(folder.join("payload"), payload).unwrap();
        let mut openssl = Command::new("openssl");
        openssl.args([
            "pkeyutl",
            "-verify",
            "-pubin",
            "-inkey",
            "key.pem",
            "-rawin",
            "-in",
            "payload",
            "-sigfile",
            "signature",
        ]);
        openssl.current_dir(&folder).stdin(Stdio::null()).output().unwrap()
    };
    let good = verify(&payload);
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    assert!(!verify(&payload.replace("block", "allow")).status.success());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_browser_verifies_what_is_served() {
    let dist = library::built();
    let [attestation, canonical] = ["attestation", "canonical"].map(vectors);
    let count = attestation.len() + canonical.len();
    let server = Server::start(|origin| {
        let mut pages = Pages::new();
        let (text, registry) = issued(origin, &object([("riskAssessment", Plain::from("block"))]));
        let uri = Attestation::parse(text.as_bytes()).unwrap().uri().to_owned();
        let path = uri.strip_prefix(origin).unwrap().to_owned();
        pages.insert("/path".to_owned(), ("text/plain", path.clone().into_bytes()));
        pages.insert(path, ("application/json", text.into_bytes()));
        pages.insert("/.well-known/recourse-keys.json".to_owned(), ("application/json", registry.into_bytes()));
        let vectors = json!({ "attestation": attestation, "canonical": canonical });
        pages.insert("/vectors.json".to_owned(), ("application/json", vectors.to_string().into_bytes()));
        pages.insert("/".to_owned(), ("text/html", include_bytes!("attested/page.html").to_vec()));
        for entry in fs::read_dir(&dist).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_str().unwrap().to_owned();
            pages.insert(format!("/verify/{name}"), ("text/javascript", fs::read(entry).unwrap()));
        }
        pages
    });
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chromium-{}", std::process::id()));
    fs::create_dir_all(&profile).unwrap();
    let said: Value = serde_json::from_str(&server.visit("/", &profile)).unwrap();
    // What it wrote last may still be on its way to the disk.
    drop(fs::remove_dir_all(profile));
    let good = json!({ "proceed": true, "keyState": "active", "crossCheck": "same", "verdict": "block" });
    assert_eq!(said["good"], good, "{said}");
    assert_eq!(said["report"], good);
    assert_eq!(said["bent"], json!({ "proceed": false, "code": "signature_invalid" }));
    assert_eq!(said["absent"], json!({ "proceed": false, "code": "attestation_absent" }));
    assert_eq!(said["elsewhere"], json!({ "proceed": false, "code": "instance_not_trusted" }));
    assert_eq!(said["events"], json!(["attestation_failed", "attestation_absent"]));
    assert_eq!(said["wrong"], json!([]));
    assert_eq!(said["vectors"], json!(count));
}
