//! Schemathesis on the API's own document: what is served is what the document says, nothing breaks, nothing leaks.

#[cfg(test)]
mod service_parts;
#[cfg(test)]
mod venv;

use std::fs;
use std::process::Command;

use service_parts::{Folder, LINE, Server};

const PACKAGE: &str = "schemathesis==4.32.5";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,unsupported_method,allow_header_conformance";
const SECONDS: &str = "35";

#[test]
fn the_document_holds_and_nothing_leaks() {
    let fuzzer = venv::programs(&[PACKAGE]).join("schemathesis");
    let folder = Folder::new("serve-fuzzed");
    let server = Server::start(&folder.state(), &["--attest", "--rate", "0"]);
    assert_eq!(server.client().evaluate(LINE).status, 200);
    let tape = folder.0.join("tape.yaml");
    let output = Command::new(fuzzer)
        .args(["run", &format!("http://{}/api/openapi.json", server.address)])
        .args(["--checks", CHECKS, "--max-time", SECONDS, "--seed", "7", "--suppress-health-check", "all"])
        .args(["--report", "vcr", "--output-sanitize", "false", "--report-vcr-path"])
        .arg(&tape)
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let health = server.client().get("/api/health");
    assert_eq!(health.status, 200);
    let log = server.stop();
    let answered = |status: &str| log.lines().filter(|line| line.contains(status)).count();
    assert!(answered(r#""status":200"#) > 20 && answered(r#""status":404"#) > 5, "little was asked: {said}");
    assert_eq!(answered(r#""status":5"#), 0, "{log}");

    // The first lines of the tape are the command, which names the folder.
    let tape = fs::read_to_string(tape).unwrap();
    let tape = tape.split_once("http_interactions:").unwrap().1;
    assert!(!tape.contains(folder.0.to_str().unwrap()), "a path of this machine");
    assert!(!tape.contains("SQLite format 3") && !tape.contains("PRIVATE KEY"), "a file of this machine");
    for key in fs::read_dir(folder.state().join("keys")).unwrap() {
        let pem = fs::read_to_string(key.unwrap().path()).unwrap();
        let secret = pem.lines().find(|line| !line.starts_with('-')).unwrap();
        assert!(secret.len() > 40 && !tape.contains(secret) && !log.contains(secret), "a private key");
    }
}
