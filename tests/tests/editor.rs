//! `writ lsp` asked by a real client library; manual pages by man(1); completions by bash.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod venv;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::path::Path;
use std::process::Command;

use workplace::{SESSION, Workplace};

const PACKAGES: [&str; 2] = ["pygls==2.1.1", "lsprotocol==2025.0.0"];

#[test]
fn an_editor_is_told_what_is_wrong_and_what_could_stand_there() {
    let place = Workplace::new("lsp");
    let writ = place.command(&[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editor_parts/client.py");
    let output = Command::new(venv::programs(&PACKAGES).join("python"))
        .arg(script)
        .arg(writ.get_program())
        .arg(&place.folder)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("11 checks hold"), "{out}{err}");
}

#[test]
fn what_does_not_read_ends_nothing() {
    let place = Workplace::new("lsp-odd");
    let message = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let start = message(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#)
        + &message(r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#);
    let odd = message("not json")
        + &message("[]")
        + &message("")
        + &message(&"[".repeat(5000))
        + &message(r#"{"jsonrpc":"2.0","id":2,"method":"textDocument/hover","params":{"textDocument":7}}"#)
        + &message(r#"{"jsonrpc":"2.0","id":3,"method":"no/such","params":{}}"#)
        + &message(r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}"#)
        + &message(
            r#"{"jsonrpc":"2.0","id":4,"method":"textDocument/hover","params":{"textDocument":{"uri":"file:///none/.aflock"},"position":{"line":9,"character":9}}}"#,
        );
    let end =
        message(r#"{"jsonrpc":"2.0","id":5,"method":"shutdown"}"#) + &message(r#"{"jsonrpc":"2.0","method":"exit"}"#);
    let mut child = place.command(&["lsp"]).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{start}{odd}{end}").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("\"id\":null").count(), 4, "{text}");
    for part in ["\"id\":2,\"error\"", "\"id\":3,\"error\"", "\"id\":4,\"result\":null", "\"id\":5,\"result\":null"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

/// A length that no message has makes no room for it, and one that is none ends with its reason.
#[test]
fn a_head_that_does_not_read_ends_with_its_reason() {
    let place = Workplace::new("lsp-head");
    for (head, why) in
        [("Content-Length: 99999999999\r\n\r\n", "end of file"), ("Content-Length: abc\r\n\r\n", "is no number")]
    {
        let mut child = place.command(&["lsp"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#;
        let ready = r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
        let start =
            format!("Content-Length: {}\r\n\r\n{text}Content-Length: {}\r\n\r\n{ready}", text.len(), ready.len());
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{start}{head}").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(why), "{:?} {said}", output.status);
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Workplace::new("man");
    let folder = place.folder.join("man/man1");
    let output = place.writ(&["man", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for page in ["writ.1", "writ-policy-learn.1", "writ-replay.1", "writ-session-open.1", "writ-report.1"] {
        let text = fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(".TH") && text.contains("Examples"), "{page}: {text}");
    }
}

/// What bash offers behind these words.
fn offered(place: &Workplace, words: &[&str]) -> String {
    let mut command = place.command(&[]);
    command.arg("--").arg("writ").args(words).env("WRIT_COMPLETE", "bash");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).env("_CLAP_IFS", "\n");
    let output = command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "false").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn completions_know_sessions_policies_and_keys() {
    let place = Workplace::new("complete");
    place.start();
    place.allowed("1");
    let repository = place.folder.join("repository");
    fs::write(repository.join("strict.aflock"), "{}").unwrap();
    fs::write(repository.join("team.pem"), "-----BEGIN PUBLIC KEY-----\n").unwrap();
    fs::write(repository.join("notes.txt"), "x").unwrap();
    assert!(offered(&place, &["report", ""]).contains(SESSION));
    assert!(offered(&place, &["verify", "work"]).contains(SESSION));
    let policies = offered(&place, &["replay", "--policy", "s"]);
    assert!(policies.contains("strict.aflock"), "{policies}");
    let keys = offered(&place, &["verify", "--key", ""]);
    assert!(keys.contains("team.pem") && !keys.contains("notes.txt"), "{keys}");
    assert!(offered(&place, &["policy", "le"]).contains("learn"));
    // The script is bash's own to read.
    let script = place.writ(&["completions", "bash"]);
    let text = String::from_utf8(script.stdout).unwrap();
    assert!(script.status.success() && text.contains("WRIT_COMPLETE"), "{text}");
    let file = place.folder.join("completion.bash");
    fs::write(&file, text).unwrap();
    assert!(Command::new("bash").arg("-n").arg(&file).status().unwrap().success());
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(place.writ(&["completions", shell]).status.success(), "{shell}");
    }
}
