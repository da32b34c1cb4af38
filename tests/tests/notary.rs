//! Hooks that a notary answers: the same decisions on the same record, and nothing lost when it is killed.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod parcel;
#[cfg(test)]
mod terminal;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;
use terminal::at_a_terminal;
use workplace::{SESSION, Workplace};

/// A notary that is killed, at the latest, when the test ends.
struct Notary(Child);

impl Notary {
    fn run(place: &Workplace, args: &[&str]) -> Self {
        let words = [&["notary", "run"], args].concat();
        let mut child = place.command(&words).stdin(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("notary answers"), "{line}");
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Notary {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// Ends the agent's turn, which seals the record.
fn stop(place: &Workplace) {
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
}

/// The key in its file, as without a notary.
const FILE: [&str; 2] = ["--custody", "file"];

/// The rows without what differs from run to run.
fn rows(place: &Workplace) -> Vec<String> {
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let ledger = ledger.replace(&place.folder.display().to_string(), "");
    let told = |row: &str| {
        let value: serde_json::Value = serde_json::from_str(row).unwrap();
        let event = value["detail"]["event"].as_str().unwrap_or_default().to_owned();
        format!("{} {} {} {} {}", value["sequence"], value["callId"], value["decision"], value["denialReason"], event)
    };
    ledger.lines().map(told).collect()
}

fn day(place: &Workplace) -> Vec<String> {
    place.start();
    let mut answers = vec![place.answer(&place.write_call("one", "src/module.rs"))];
    answers.push(place.answer(&place.write_call("two", ".env")));
    answers.push(place.answer(&place.payload(
        "PreToolUse",
        r#","tool_name":"Bash","tool_use_id":"three","tool_input":{"command":"cat ~/.env; rm -rf ~"}"#,
    )));
    answers.push(place.answer(r#"{"session_id":"workplace","hook_event_name":"PreToolUse""#));
    answers.push(place.answer(&place.payload("Stop", r#","stop_hook_active":false"#)));
    let folder = place.folder.display().to_string();
    answers.into_iter().map(|answer| answer.replace(&folder, "")).collect()
}

/// The twin of every other test of decisions: with the notary each answer and each row is the same as without.
#[test]
fn what_a_notary_answers_is_what_the_hook_would_have() {
    let alone = Workplace::new("notary-without");
    let with = Workplace::new("notary-with");
    let notary = Notary::run(&with, &FILE);
    assert_eq!(day(&alone), day(&with));
    assert_eq!(rows(&alone), rows(&with));
    let status = with.writ(&["notary", "status", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["answered"], 6, "{status}");
    let verified = with.writ(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", text(&verified));
    let none = alone.writ(&["notary", "status"]);
    assert_eq!(none.status.code(), Some(3), "{}", text(&none));
    drop(notary);
}

#[test]
fn one_notary_has_a_state_folder_and_a_killed_one_leaves_it_free() {
    let place = Workplace::new("notary-one");
    let first = Notary::run(&place, &[]);
    let second = place.writ(&["notary", "run"]);
    assert!(!second.status.success() && text(&second).contains("running already"), "{}", text(&second));
    first.kill();
    // The name is still there, and nobody answers: the hook decides by itself.
    assert!(place.folder.join("state/notary.sock").exists());
    place.start();
    place.allowed("alone");
    let next = Notary::run(&place, &[]);
    place.allowed("answered");
    let stopped = place.writ(&["notary", "stop"]);
    assert!(stopped.status.success(), "{}", text(&stopped));
    drop(next);
    place.allowed("alone-again");
    assert_eq!(place.approved(), ["alone", "answered", "alone-again"]);
}

/// Whoever takes the notary's place and hangs up, or says nothing that a notary says, decides nothing: calls are denied, stops go on.
#[test]
fn an_answer_that_does_not_come_denies() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    let place = Workplace::new("notary-broken");
    place.start();
    for said in [b"".as_slice(), b"x", b"a\0\0\0\xffno", b"a\xff\xff\xff\xff"] {
        let path = place.folder.join("state/notary.sock");
        drop(fs::remove_file(&path));
        let listener = UnixListener::bind(&path).unwrap();
        let serving = thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = [0; 4096];
                let _read = stream.read(&mut question).unwrap();
                drop(stream.write_all(said));
            }
        });
        let denied = place.answer(&place.write_call("denied", "src/module.rs"));
        assert!(denied.contains(r#""permissionDecision":"deny""#) && denied.contains("notary"), "{denied}");
        let stopped = place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
        assert!(!stopped.contains(r#""decision":"block""#), "{stopped}");
        serving.join().unwrap();
    }
    assert!(place.approved().is_empty());
}

/// What the calls of four hooks at a time came to.
#[derive(Default)]
struct Came {
    allowed: Vec<String>,
    /// An answer that did not come.
    broken: u64,
    /// Denied because the custody was not what the policy wants.
    closed: u64,
}

/// Calls of four hooks at a time, while the notary is killed and run again.
fn kills(place: &Workplace, args: &[&str]) -> Came {
    let kills: u64 = env::var("WRIT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(40);
    let over = AtomicBool::new(false);
    let mut came = Came::default();
    thread::scope(|scope| {
        let calls = |hook: u64, over: &AtomicBool| {
            let mut came = Came::default();
            for call in 0_u64.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let id = format!("{hook}-{call}");
                let answer = place.answer(&place.write_call(&id, "src/module.rs"));
                match (answer.contains("the notary, which may have recorded"), answer.contains("/custody")) {
                    (true, _) => came.broken += 1,
                    (false, true) => came.closed += 1,
                    (false, false) => {
                        assert!(!answer.contains("deny"), "{answer}");
                        came.allowed.push(id);
                    }
                }
            }
            came
        };
        let hooks: Vec<_> = (0..4)
            .map(|hook| {
                scope.spawn({
                    let over = &over;
                    move || calls(hook, over)
                })
            })
            .collect();
        let mut moment = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..kills {
            let notary = Notary::run(place, args);
            moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            thread::sleep(Duration::from_micros((moment >> 33) % 40_000));
            notary.kill();
        }
        over.store(true, Ordering::Relaxed);
        for hook in hooks {
            let one = hook.join().unwrap();
            came.allowed.extend(one.allowed);
            (came.broken, came.closed) = (came.broken + one.broken, came.closed + one.closed);
        }
    });
    let rows = place.approved();
    let once: BTreeSet<&String> = rows.iter().collect();
    assert_eq!(once.len(), rows.len(), "a call has two rows");
    let lost: Vec<&String> = came.allowed.iter().filter(|id| !once.contains(id)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    eprintln!("{kills} kills: {} let through, {} broken, {} closed", came.allowed.len(), came.broken, came.closed);
    came
}

#[test]
fn no_answered_call_is_lost_to_kills_of_the_notary() {
    let place = Workplace::new("notary-killed");
    place.start();
    assert_eq!(kills(&place, &FILE).closed, 0);
    stop(&place);
    let verified = place.writ(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", text(&verified));
}

/// A policy that wants more than a file is closed while no notary answers, and each key that was lost on the way is on record.
#[test]
fn a_policy_that_wants_a_notary_is_closed_without_one() {
    let place = Workplace::new("notary-closed");
    let policy = r#"{"version":"1.0","name":"kept","custody":"process-memory"}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    place.start();
    let closed = place.answer(&place.write_call("closed", "src/module.rs"));
    assert!(closed.contains("writ notary run --custody process-memory"), "{closed}");
    let weak = Notary::run(&place, &FILE);
    assert!(place.answer(&place.write_call("weak", "src/module.rs")).contains("/custody"));
    weak.kill();
    let came = kills(&place, &[]);
    assert!(came.closed > 0 && !came.allowed.is_empty());
    stop(&place);
    let verified = place.writ(&["verify", SESSION]);
    assert_eq!(verified.status.code(), Some(3), "{}", text(&verified));
    assert!(text(&verified).contains("custody broke"), "{}", text(&verified));
    let allowed = place.writ(&["verify", SESSION, "--allow-absent"]);
    assert!(allowed.status.success(), "{}", text(&allowed));
}

/// The key of a session's last custody row, as PEM.
fn key(place: &Workplace) -> String {
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let mut keys = ledger.lines().filter_map(|row| {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        row["detail"]["custody"]["key"].as_str().map(str::to_owned)
    });
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", keys.next_back().unwrap())
}

#[test]
fn a_key_in_memory_is_named_and_its_loss_is_on_record() {
    let place = Workplace::new("notary-memory");
    let first = Notary::run(&place, &[]);
    place.start();
    place.allowed("one");
    stop(&place);
    let notes = fs::read_to_string(place.session().join("checkpoints")).unwrap();
    assert!(notes.contains("\ncustody process-memory sha256:"), "{notes}");
    let verified = place.writ(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", text(&verified));
    assert!(text(&verified).contains("no process of the agent's own user can read it"), "{}", text(&verified));
    // The notary's own key, pinned by somebody who saw it: nothing in a file can stand in for it.
    let pem = place.folder.join("seen.pem");
    fs::write(&pem, key(&place)).unwrap();
    let pinned = ["verify", SESSION, "--key", pem.to_str().unwrap()];
    assert!(place.writ(&pinned).status.success(), "{}", text(&place.writ(&pinned)));
    first.kill();
    let second = Notary::run(&place, &[]);
    place.allowed("two");
    second.kill();
    place.allowed("three");
    stop(&place);
    let verified = place.writ(&["verify", SESSION]);
    assert!(text(&verified).contains("custody broke 2 times; now `file`"), "{}", text(&verified));
    assert_eq!(verified.status.code(), Some(3));
    assert!(!place.writ(&pinned).status.success(), "a key that was lost signs for nothing that came after");
}

/// Whoever can use the ledger key signs a manifest anew, and can hide a line of a transcript behind its mask: what it was is that key's word.
#[test]
fn a_bundle_says_whose_word_its_transcripts_are() {
    let place = Workplace::new("notary-bundle");
    let _notary = Notary::run(&place, &[]);
    place.start();
    place.allowed("one");
    let said = |content: serde_json::Value| json!({"type": "assistant", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}, "content": content}});
    let user = json!({"type": "user", "message": {"content": "write"}}).to_string();
    let input = json!({"file_path": place.folder.join("repository/src/module.rs"), "content": "text"});
    let seen = said(json!([{"type": "tool_use", "id": "one", "name": "Write", "input": input}])).to_string();
    let beside =
        said(json!([{"type": "tool_use", "id": "two", "name": "Bash", "input": {"command": "rm -rf /"}}])).to_string();
    fs::write(place.folder.join("repository/none.jsonl"), format!("{user}\n{seen}\n{beside}\n")).unwrap();
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    place.answer(&place.payload("SessionEnd", r#","reason":"other""#));
    let notarys = place.folder.join("seen.pem");
    fs::write(&notarys, key(&place)).unwrap();
    let honest = parcel::export(&place, "honest.tar", &["--transcripts"]);
    let (code, told) = parcel::writ(&place, &honest, &notarys);
    assert!(code == 3 && told.contains("NOT VERIFIED: broken"), "{told}");
    let mut files = parcel::files(&honest);
    let path = files.keys().find(|path| path.starts_with("transcripts/")).unwrap().clone();
    let harmless = said(json!([{"type": "text", "text": "done"}]));
    files.insert(path, format!("{user}\n{seen}\n{harmless}\n").into_bytes());
    let leaf = writ_core::Digest::of(&[b"\0", beside.as_bytes()].concat()).hex();
    let forged = parcel::packed_as(&place, "forged.tar", files, &|manifest| {
        manifest["transcripts"][0]["masked"] = json!([[2, leaf, beside.len()]]);
        parcel::sorted(manifest)
    });
    let (code, told) = parcel::writ(&place, &forged, &notarys);
    assert!(code == 3 && told.contains("is the word of another key than the trusted one"), "{told}");
    let (code, told) = parcel::python(&forged, &notarys);
    assert!(code == 3 && told.contains("verified, except"), "{told}");
}

/// Appends a row that is sealed as any other, as a process past the policy can.
fn append(place: &Workplace, change: impl FnOnce(&mut serde_json::Value)) {
    use writ_evidence::row::{Draft, Row, RowDecision};
    let path = place.session().join("ledger.jsonl");
    let ledger = fs::read_to_string(&path).unwrap();
    let last = Row::parse(ledger.lines().last().unwrap().as_bytes()).unwrap();
    let mut detail = serde_json::json!({ "event": "made-up" });
    let state = serde_json::from_str::<serde_json::Value>(ledger.lines().last().unwrap()).unwrap();
    detail["state"] = state["detail"]["state"].clone();
    change(&mut detail);
    let draft = Draft {
        timestamp: last.timestamp,
        call_id: None,
        tool_name: None,
        decision: RowDecision::Checkpoint,
        denial_reason: None,
        result_hash: None,
        detail: writ_core::json::parse(detail.to_string().as_bytes()).unwrap(),
    };
    let (_, line) = Row::seal_line(Some(&last), draft).unwrap();
    fs::write(&path, format!("{ledger}{line}\n")).unwrap();
}

#[test]
fn what_another_process_wrote_beside_the_notary_is_named() {
    let place = Workplace::new("notary-beside");
    let notary = Notary::run(&place, &[]);
    place.start();
    place.allowed("one");
    append(&place, |_detail| {});
    place.allowed("two");
    stop(&place);
    let verified = place.writ(&["verify", SESSION]);
    assert!(text(&verified).contains("1 rows were written by other processes"), "{}", text(&verified));
    assert!(verified.status.success(), "{}", text(&verified));
    drop(notary);
}

/// What a human says after the session's end is sealed by the notary that has its key; without one, custody breaks.
#[test]
fn what_a_human_says_after_the_end_is_sealed_by_the_notary() {
    let place = Workplace::new("notary-late");
    let policy = r#"{"version":"1.0","name":"x","limits":{"maxToolCalls":{"value":1}}}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    let notary = Notary::run(&place, &[]);
    place.start();
    place.allowed("one");
    stop(&place);
    place.answer(&place.payload("SessionEnd", r#","reason":"other""#));
    let raise = |to: u32| {
        let (done, said) =
            at_a_terminal(&place, &[], &format!("limits raise maxToolCalls {to} --session {SESSION}"), "");
        assert!(done, "{said}");
        text(&place.writ(&["verify", SESSION]))
    };
    let verified = raise(5);
    assert!(verified.trim_end().ends_with("\nverified") && !verified.contains("custody broke"), "{verified}");
    assert!(verified.contains("1 rows were written by other processes"), "{verified}");
    notary.kill();
    let verified = raise(6);
    assert!(verified.contains("custody broke 1 times; now `file`"), "{verified}");
}

/// A key is believed only where the machine's own key signed for it at this very row.
#[test]
fn a_key_that_nobody_introduced_signs_for_nothing() {
    let place = Workplace::new("notary-forged");
    let notary = Notary::run(&place, &[]);
    place.start();
    stop(&place);
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let genesis: serde_json::Value = serde_json::from_str(ledger.lines().next().unwrap()).unwrap();
    let held = genesis["detail"]["state"]["custody"]["key"].clone();
    assert!(place.writ(&["verify", SESSION]).status.success());
    // The introduction of the first row, played again at a later one.
    append(&place, |detail| {
        detail["event"] = "custody".into();
        detail["custody"] = genesis["detail"]["custody"].clone();
        detail["custody"]["before"] = held;
    });
    let verified = place.writ(&["verify", SESSION]);
    assert!(
        text(&verified).contains("is not signed for by the one that the record is checked with"),
        "{}",
        text(&verified)
    );
    assert_eq!(verified.status.code(), Some(3));
    drop(notary);
}

/// As the same user: the key cannot be read out of the process. As another: the process cannot be reached at all.
#[test]
fn nobody_reads_the_key_out_of_the_notary() {
    if !fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t") {
        eprintln!("not root: who else could try it is not here");
        return;
    }
    let place = Workplace::new("notary-users");
    let own = std::process::Command::new("chown").args(["-R", "12345:12345"]).arg(&place.folder).status().unwrap();
    assert!(own.success());
    let words = |uid: &str, line: &str| {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", uid, "--regid", uid, "--clear-groups", "sh", "-c", line]);
        command.env_clear().env("PATH", env::var_os("PATH").unwrap());
        command.env("HOME", &place.folder).env("WRIT_STATE_DIR", place.folder.join("state"));
        command.current_dir(&place.folder);
        command
    };
    let writ = place.command(&[]).get_program().to_owned();
    // A folder of root's is not in the way of what is tried.
    let program = place.folder.join("writ");
    fs::copy(writ, &program).unwrap();
    let run = format!("exec {} notary run", program.display());
    let mut child = words("12345", &run).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let notary = Notary(child);
    assert!(line.contains("process-memory"), "{line}");
    let (process, socket) = (notary.0.id(), place.folder.join("state/notary.sock"));
    let refused = |uid: &str, line: &str| {
        let output = words(uid, line).output().unwrap();
        assert!(!output.status.success(), "{uid}: {line}: {}", text(&output));
    };
    for uid in ["12345", "12346"] {
        refused(uid, &format!("head -c 1 /proc/{process}/mem"));
        refused(uid, &format!("cat /proc/{process}/maps | grep ."));
        refused(uid, &format!("ls /proc/{process}/fd/"));
        refused(uid, &format!("cat /proc/{process}/environ | grep ."));
        refused(uid, &format!("cat /proc/{process}/syscall"));
    }
    refused("12346", &format!("kill -9 {process}"));
    refused("12346", &format!("mv {0} {0}.old", socket.display()));
    refused("12346", &format!("{} notary status", program.display()));
    let core = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let core = core.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    // Their own user they cannot be kept from: it is on record instead.
    assert!(words("12345", &format!("kill -9 {process}")).status().unwrap().success());
}

/// Posts a payload as a client does, and gives status and answer.
fn post(port: u16, path: &str, token: Option<&str>, payload: &str) -> (String, String) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = payload.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{token}");
    write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{payload}").unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

/// A client lets a tool run when the answer to its post is no success: so whoever may not ask is told so with a success that denies.
#[test]
fn hooks_that_are_posted_are_answered_with_success_and_denied_without_the_token() {
    let place = Workplace::new("notary-http");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let notary = Notary::run(&place, &["--http", &format!("127.0.0.1:{port}")]);
    place.start();
    let token = fs::read_to_string(place.folder.join("state/notary.token")).unwrap();
    let hook = "/hook/claude-code";
    let (status, allowed) = post(port, hook, Some(&token), &place.write_call("posted", "src/module.rs"));
    assert!(status.contains("200") && !allowed.contains("deny"), "{status} {allowed}");
    let (status, denied) = post(port, hook, Some(&token), &place.write_call("denied", ".env"));
    assert!(status.contains("200") && denied.contains(r#""permissionDecision":"deny""#), "{status} {denied}");
    for wrong in [None, Some("wrong"), Some("")] {
        let (status, denied) = post(port, hook, wrong, &place.write_call("stranger", "src/module.rs"));
        assert!(status.contains("200") && denied.contains(r#""decision":"block""#), "{status} {denied}");
        assert!(denied.contains("notary.token"), "{denied}");
    }
    assert!(post(port, "/hook/nobody", Some(&token), "{}").0.contains("404"));
    assert_eq!(place.approved(), ["posted"]);
    drop(notary);
    let elsewhere = place.writ(&["notary", "run", "--http", "0.0.0.0:0"]);
    assert_eq!(elsewhere.status.code(), Some(2), "{}", text(&elsewhere));
}

/// What an agent's user can try against a notary that is another user.
struct Users {
    place: Workplace,
    /// A folder that is root's alone.
    folder: std::path::PathBuf,
}

impl Users {
    const AGENT: &str = "23451";
    const NOTARY: &str = "23452";

    fn new(name: &str) -> Option<Self> {
        if !fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t") {
            eprintln!("not root: nobody else can be made a notary");
            return None;
        }
        let place = Workplace::new(name);
        let folder = std::path::PathBuf::from(format!("/run/{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::copy(place.command(&[]).get_program(), folder.join("writ")).unwrap();
        let policy = r#"{"version":"1.0","name":"other","custody":"other-user","files":{"deny":["**/.env"]}}"#;
        fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
        let chown = std::process::Command::new("chown").args(["-R", "23451:23451"]).arg(&place.folder).status();
        assert!(chown.unwrap().success());
        // Only its own user can look into the agent's home.
        fs::set_permissions(&place.folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        Some(Self { place, folder })
    }

    fn run(&self) -> Notary {
        let (socket, state) = (self.folder.join("agent.sock"), self.folder.join("state"));
        let words = ["--for", Self::AGENT, "--as", Self::NOTARY];
        let paths = ["--socket", socket.to_str().unwrap(), "--state", state.to_str().unwrap()];
        Notary::run(&self.place, &[&words[..], &paths].concat())
    }

    fn sh(&self, uid: &str, line: &str) -> std::process::Output {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", uid, "--regid", uid, "--clear-groups", "sh", "-c", line]).env_clear();
        command.env("PATH", env::var_os("PATH").unwrap()).env("WRIT", self.folder.join("writ"));
        command.env("HOME", &self.place.folder).env("WRIT_STATE_DIR", self.place.folder.join("state"));
        command.env("WRIT_NOTARY", self.folder.join("agent.sock")).current_dir("/");
        command.output().unwrap()
    }

    fn hook(&self, payload: &str) -> String {
        let file = self.place.folder.join("payload");
        fs::write(&file, payload).unwrap();
        text(&self.sh(Self::AGENT, &format!("\"$WRIT\" hook < {}", file.display())))
    }

    fn call(&self, id: &str) -> String {
        self.hook(&self.place.write_call(id, "src/module.rs"))
    }

    fn root(&self, words: &[&str]) -> std::process::Output {
        self.place
            .command(words)
            .env("WRIT_STATE_DIR", self.folder.join("state"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

#[test]
fn a_notary_of_another_user_cannot_be_reached_into_or_replaced() {
    let Some(users) = Users::new("notary-other") else { return };
    let closed = users.call("closed");
    assert!(closed.contains("/custody"), "{closed}");
    let notary = users.run();
    users.hook(&users.place.payload("SessionStart", r#","source":"startup""#));
    let allowed = users.call("one");
    assert!(!allowed.contains("deny"), "{allowed}");
    let denied = users.hook(&users.place.write_call("two", ".env"));
    assert!(denied.contains(r#""permissionDecision":"deny""#) && denied.contains("/files/deny"), "{denied}");
    users.hook(&users.place.payload("Stop", r#","stop_hook_active":false"#));

    let (process, folder) = (notary.0.id(), users.folder.display());
    let socket = users.folder.join("agent.sock").display().to_string();
    let own = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    assert!(own.contains("\nUid:\t23452\t23452\t23452\t23452\n") && own.contains("\nNoNewPrivs:\t1\n"), "{own}");
    assert!(own.contains("\nCapEff:\t0000000000000004\n") && own.contains("\nCapPrm:\t0000000000000004\n"), "{own}");
    for line in [
        format!("head -c 1 /proc/{process}/mem"),
        format!("cat /proc/{process}/maps | grep ."),
        format!("ls /proc/{process}/fd/"),
        format!("kill -9 {process}"),
        format!("kill -STOP {process}"),
        format!("rm -f {socket}"),
        format!("mv {socket} {socket}.old"),
        format!("ln -sf /tmp/x {socket}"),
        format!("touch {folder}/new"),
        format!("mv {folder} {folder}.old"),
        format!("cat {folder}/state/keys/ledger.pem"),
        format!("ls {folder}/state"),
        format!("echo >> {folder}/state/sessions/{SESSION}/ledger.jsonl"),
        format!("\"$WRIT\" notary run --for {}", Users::AGENT),
        "\"$WRIT\" notary stop".to_owned(),
    ] {
        let tried = users.sh(Users::AGENT, &line);
        assert!(!tried.status.success(), "{line}: {}", text(&tried));
    }
    // A third user is no hook of it, even where the socket would let it.
    assert!(users.sh(Users::AGENT, &format!("chmod 666 {socket}")).status.success());
    assert!(!users.sh("23453", "\"$WRIT\" notary status").status.success());
    assert!(users.sh(Users::AGENT, "\"$WRIT\" notary status").status.success());
    assert!(!users.call("three").contains("deny"));
    users.hook(&users.place.payload("Stop", r#","stop_hook_active":false"#));
    let verified = users.root(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", text(&verified));
    assert!(text(&verified).contains("`other-user`"), "{}", text(&verified));
    let notes = fs::read_to_string(users.folder.join(format!("state/sessions/{SESSION}/checkpoints"))).unwrap();
    assert!(notes.contains("\ncustody other-user\n"), "{notes}");

    // The same key signs when it is run again: nothing broke.
    notary.kill();
    assert!(users.call("closed-again").contains("/custody"));
    let again = users.run();
    assert!(!users.call("four").contains("deny"));
    users.hook(&users.place.payload("Stop", r#","stop_hook_active":false"#));
    let verified = users.root(&["verify", SESSION]);
    assert!(verified.status.success() && !text(&verified).contains("broke"), "{}", text(&verified));
    drop(again);
}

/// A socket that the agent's own user could have put there is no notary of another user, and neither is one that this user answers.
#[test]
fn a_notary_that_the_agent_made_itself_is_none() {
    let Some(users) = Users::new("notary-made-up") else { return };
    let made = users.place.folder.join("made.sock");
    let line = format!(
        "WRIT_NOTARY={} exec \"$WRIT\" hook < {}",
        made.display(),
        users.place.folder.join("payload").display()
    );
    fs::write(users.place.folder.join("payload"), users.place.write_call("made", "src/module.rs")).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&made).unwrap();
    let denied = text(&users.sh(Users::AGENT, &line));
    assert!(denied.contains("/custody"), "{denied}");
    drop(listener);
    for (of, user) in [("23451", "23451"), ("23451", "0")] {
        let socket = users.folder.join("x.sock");
        let words = ["notary", "run", "--for", of, "--as", user, "--socket", socket.to_str().unwrap()];
        let refused = users.root(&[&words[..], &["--state", users.folder.join("s").to_str().unwrap()]].concat());
        assert!(!refused.status.success(), "{}", text(&refused));
    }
    // A folder of the agent's own is no place for its socket.
    let words = ["notary", "run", "--for", Users::AGENT, "--as", Users::NOTARY, "--socket", made.to_str().unwrap()];
    let refused = users.root(&[&words[..], &["--state", users.folder.join("s").to_str().unwrap()]].concat());
    assert!(!refused.status.success() && text(&refused).contains("only root"), "{}", text(&refused));
}

/// Runs `writ token` and gives its exit code and what it prints.
fn token(place: &Workplace, words: &[&str]) -> (Option<i32>, String) {
    let output = place.writ(&[&["token"], words].concat());
    (output.status.code(), text(&output).trim().to_owned())
}

/// Tokens hold for their session, under its policy, until they are revoked or the notary ends; PyJWT reads them where it is there.
#[test]
fn tokens_hold_for_their_session_until_they_are_revoked() {
    let place = Workplace::new("notary-token");
    let policy =
        r#"{"version":"1.0","name":"t","tools":{"deny":["WebFetch"]},"limits":{"maxWallTimeSeconds":{"value":600}}}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    assert_eq!(token(&place, &["key"]).0, Some(1), "nobody issues tokens without a notary");
    let notary = Notary::run(&place, &[]);
    place.start();
    place.allowed("one");
    let (code, issued) = token(&place, &["issue", "--session", SESSION]);
    assert_eq!(code, Some(0), "{issued}");
    let (code, claims) = token(&place, &["check", &issued, "--session", SESSION]);
    assert_eq!(code, Some(0), "{claims}");
    let claims: serde_json::Value = serde_json::from_str(&claims).unwrap();
    assert_eq!(
        (&claims["iss"], &claims["aud"][0], &claims["jti"]),
        (&"aflock".into(), &SESSION.into(), &SESSION.into())
    );
    let life = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    assert!((540..=600).contains(&life), "what is left of the wall time: {life}");
    assert!(
        claims["sub"].as_str().unwrap().starts_with("spiffe://") && claims["sub"] == claims["agent_id"],
        "{claims}"
    );
    assert_eq!(claims["denied_tools"][0], "WebFetch");
    assert!(claims["allowed_tools"].as_array().unwrap().contains(&"Read".into()), "{claims}");
    assert_eq!(claims["limits"]["maxWallTimeSeconds"]["value"], 600);
    let digest = |name: &str| claims[name].as_str().unwrap().starts_with("sha256:");
    assert!(digest("identity_hash") && digest("policy_digest"), "{claims}");
    let (_, refreshed) = token(&place, &["refresh", &issued, "--session", SESSION]);
    assert_eq!(token(&place, &["check", &refreshed, "--session", SESSION]).0, Some(0), "{refreshed}");
    pyjwt(&place, &issued);

    let refused = |token_text: &str, session: &str, why: &str| {
        let (code, said) = token(&place, &["check", token_text, "--session", session]);
        assert!(code == Some(3) && said.contains(why), "{code:?} {said}");
    };
    refused(&issued, "another", "another session");
    refused("a.b.c", SESSION, "no token");
    assert!(token(&place, &["issue", "--session", SESSION, "--agent", "nobody"]).1.contains("no row"));
    assert_eq!(token(&place, &["revoke", "--session", SESSION]).1, "revoked");
    refused(&issued, SESSION, "revoked");
    refused(&refreshed, SESSION, "revoked");
    assert_eq!(token(&place, &["refresh", &issued, "--session", SESSION]).0, Some(3));
    let (_, later) = token(&place, &["issue", "--session", SESSION]);
    assert_eq!(token(&place, &["check", &later, "--session", SESSION]).0, Some(0), "issued after it: {later}");
    let file = place.folder.join("repository/.aflock");
    fs::write(&file, policy.replace("WebFetch", "WebSearch")).unwrap();
    refused(&later, SESSION, "policy is another now");
    let (code, said) = token(&place, &["issue", "--session", SESSION]);
    assert!(code == Some(3) && said.contains("when its turn has ended"), "{code:?} {said}");
    fs::write(&file, policy).unwrap();
    assert_eq!(token(&place, &["check", &later, "--session", SESSION]).0, Some(0), "{later}");
    stop(&place);
    let verified = place.writ(&["verify", SESSION]);
    assert!(verified.status.success(), "{}", text(&verified));
    notary.kill();
    let again = Notary::run(&place, &[]);
    refused(&issued, SESSION, "another key");
    drop(again);
}

/// What an agent's process asks for at the socket is refused as it is at the command; and with the session its tokens end.
#[test]
fn no_agent_revokes_and_no_token_outlives_its_session() {
    let place = Workplace::new("notary-token-ends");
    let _notary = Notary::run(&place, &FILE);
    place.start();
    let (_, issued) = token(&place, &["issue", "--session", SESSION]);
    let holds = || token(&place, &["check", &issued, "--session", SESSION]);
    assert_eq!(holds().0, Some(0), "{issued}");
    let client = place.folder.join("claude");
    std::os::unix::fs::symlink("/bin/bash", &client).unwrap();
    let asks = r#"import socket,struct,sys
s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); q=b'{"do":"revoke","session":"workplace"}'
s.sendall(b'writ-notary-2\nt'+struct.pack('>I',len(q))+q); print(s.recv(4096).decode())"#;
    fs::write(place.folder.join("ask.py"), asks).unwrap();
    let mut below = std::process::Command::new(&client);
    below.args(["-c", "python3 ../ask.py ../state/notary.sock; true"]).current_dir(place.folder.join("repository"));
    let output = below.output().unwrap();
    assert!(text(&output).contains("an agent's client runs this"), "{}", text(&output));
    assert_eq!(holds().0, Some(0));
    place.answer(&place.payload("SessionEnd", r#","reason":"exit""#));
    assert!(holds().1.contains("has ended"));
    assert!(token(&place, &["issue", "--session", SESSION]).1.contains("has ended"));
    place.answer(&place.payload("SessionStart", r#","source":"resume""#));
    assert_eq!(holds().0, Some(0), "it goes on");
}

#[test]
fn no_token_outlives_the_wall_time() {
    let place = Workplace::new("notary-token-time");
    let policy = r#"{"version":"1.0","name":"t","limits":{"maxWallTimeSeconds":{"value":3}}}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    let _notary = Notary::run(&place, &FILE);
    place.start();
    let (code, issued) = token(&place, &["issue", "--session", SESSION]);
    assert_eq!(code, Some(0), "{issued}");
    thread::sleep(Duration::from_millis(3200));
    for words in [&["issue"][..], &["refresh", &issued], &["check", &issued]] {
        let (code, said) = token(&place, &[words, &["--session", SESSION]].concat());
        assert!(
            code == Some(3) && (said.contains("for as long as its policy lets it") || said.contains("expired")),
            "{said}"
        );
    }
}

/// Has PyJWT check a token with the notary's public key, and refuse it for another audience.
fn pyjwt(place: &Workplace, issued: &str) {
    let script = r#"
import sys
import jwt
token, key, session = sys.argv[1:]
claims = jwt.decode(token, key, algorithms=["ES256"], audience=session, issuer="aflock", options={"require": ["exp", "iat", "aud", "iss", "sub", "jti"]})
assert claims["jti"] == session
try:
    jwt.decode(token, key, algorithms=["ES256"], audience="another")
    sys.exit(1)
except jwt.InvalidAudienceError:
    print("agreed")
"#;
    let (_, key) = token(place, &["key"]);
    let output =
        std::process::Command::new("/usr/bin/python3").args(["-c", script, issued, &key, SESSION]).output().unwrap();
    assert!(text(&output).contains("agreed"), "{}", text(&output));
}

/// The rows about statements.
fn attested(place: &Workplace) -> Vec<serde_json::Value> {
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let rows = ledger.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap()["detail"].clone());
    rows.filter(|detail| detail["event"] == "attested").collect()
}

fn step(place: &Workplace, words: &[&str]) -> std::process::Output {
    let mut command = place.command(&[&["step", "run"], words].concat());
    command.env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap()
}

/// What the notary did not see it does not sign as seen: what goes in and comes out it looks at itself, how the command ended it is told.
#[test]
fn a_step_is_signed_by_the_notary_and_says_whose_word_it_is() {
    let place = Workplace::new("notary-steps");
    let policy = r#"{"version":"1.0","name":"kept","custody":"process-memory","requiredAttestations":["qc"]}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    let notary = Notary::run(&place, &[]);
    place.start();
    place.allowed("one");
    stop(&place);
    fs::write(place.folder.join("repository/in"), "before").unwrap();
    let line = "echo after > in; echo made > out; exit 3";
    let failed = step(&place, &["qc", "-m", "in", "-p", "out", "--", "sh", "-c", line]);
    assert_eq!(failed.status.code(), Some(3), "{}", text(&failed));
    let verified = place.writ(&["verify", SESSION]);
    assert!(text(&verified).contains("ended with 3") && text(&verified).contains("breached"), "{}", text(&verified));
    let ran = step(&place, &["qc", "-m", "in", "-p", "out", "--", "true"]);
    assert!(ran.status.success(), "{}", text(&ran));
    let verified = place.writ(&["verify", SESSION, "--allow-absent"]);
    assert!(verified.status.success(), "{}", text(&verified));
    assert!(text(&verified).contains("1 of them as the processes tell that ran them"), "{}", text(&verified));
    assert!(!text(&verified).contains("other processes") && !text(&verified).contains("custody broke"));
    let rows = attested(&place);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        assert_eq!(row["attested"]["standing"], "reported by the process that ran it");
    }
    let name = rows[0]["attested"]["digest"].as_str().unwrap().trim_start_matches("sha256:");
    let file = place.session().join(format!("statements/{name}.json"));
    let envelope: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let payload = envelope["payload"].as_str().unwrap();
    let mut decode = std::process::Command::new("base64");
    let mut child = decode.arg("-d").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), payload.as_bytes()).unwrap();
    let statement = child.wait_with_output().unwrap().stdout;
    let statement: serde_json::Value = serde_json::from_slice(&statement).unwrap();
    let byproducts = &statement["predicate"]["byproducts"];
    assert_eq!(byproducts["standing"], "reported by the process that ran it", "{statement}");
    // SHA-256 of `before`: it was looked at before the command changed it.
    let materials = statement["predicate"]["materials"].to_string();
    assert!(materials.contains(&sha256("before")), "{materials}");
    assert!(statement["subject"].to_string().contains(&sha256("made\n")), "{statement}");
    // A row that calls it observed is found.
    let ledger = place.session().join("ledger.jsonl");
    let good = fs::read_to_string(&ledger).unwrap();
    fs::write(&ledger, good.replace("reported by the process that ran it", "observed")).unwrap();
    assert_eq!(place.writ(&["verify", SESSION]).status.code(), Some(3));
    fs::write(&ledger, good).unwrap();
    // A notary that is gone by the end attests nothing, and one that is not there runs nothing.
    let process = notary.0.id();
    let killed = step(&place, &["qc", "--", "sh", "-c", &format!("kill -9 {process}; touch ran")]);
    assert!(text(&killed).contains("does not answer") && !killed.status.success(), "{}", text(&killed));
    assert!(place.folder.join("repository/ran").exists());
    let none = step(&place, &["qc", "--", "touch", "never"]);
    assert!(text(&none).contains("writ notary run") && !none.status.success(), "{}", text(&none));
    assert!(!place.folder.join("repository/never").exists());
    assert_eq!(attested(&place).len(), 2);
    drop(notary);
}

fn sha256(content: &str) -> String {
    let mut child =
        std::process::Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), content.as_bytes()).unwrap();
    let said = child.wait_with_output().unwrap().stdout;
    String::from_utf8(said).unwrap().split(' ').next().unwrap().to_owned()
}

/// What another program tells of a step is not taken, and what it sends is read within limits.
#[test]
fn another_program_tells_the_notary_of_no_step() {
    let place = Workplace::new("notary-forged");
    let _notary = Notary::run(&place, &[]);
    place.start();
    place.allowed("one");
    let request = format!(
        r#"{{"step":{{"session":"{SESSION}","name":"qc","command":["cargo","test"],"materials":[],"products":[],"cwd":"/"}}}}"#
    );
    let ask = |request: &str| {
        let script = r#"
import socket, struct, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(20)
body = sys.argv[2].encode()
s.sendall(b'writ-notary-2\np' + struct.pack('>I', len(body)) + body)
answer = b''
while True:
    piece = s.recv(65536)
    if not piece: break
    answer += piece
    if len(answer) > 5 and len(answer) >= 5 + struct.unpack('>I', answer[1:5])[0]: break
print(answer[:1] + answer[5:])
"#;
        let socket = place.folder.join("state/notary.sock");
        let mut command = std::process::Command::new("python3");
        let output = command.args(["-c", script]).arg(socket).arg(request).output().unwrap();
        text(&output)
    };
    let told = ask(&request);
    assert!(told.contains("own program tells the notary of a step"), "{told}");
    for odd in ["{}", "[]", "{\"step\":{}}", "{\"step\":{\"session\":\"../x\"}}", "\u{1}", "{\"said\":null}"] {
        let told = ask(odd);
        assert!(told.contains("cannot be read"), "{odd}: {told}");
    }
    assert_eq!(attested(&place).len(), 0);
    place.allowed("two");
}
