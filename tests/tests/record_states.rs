//! What a record is worth: each state of `writ verify` with the twin that is not in it.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use workplace::{SESSION, Workplace};

const PROMPT: &str = r#","prompt":"write""#;
const STOP: &str = r#","stop_hook_active":false"#;

/// A session with an allowed call, sealed.
fn recorded(name: &str) -> Workplace {
    let place = Workplace::new(name);
    whole(&place);
    place
}

fn whole(place: &Workplace) {
    place.start();
    place.answer(&place.payload("UserPromptSubmit", PROMPT));
    place.allowed("one");
    place.answer(&place.payload("Stop", STOP));
}

fn copy(place: &Workplace, name: &str) -> PathBuf {
    let to = place.folder.join(name);
    assert!(Command::new("cp").arg("-r").arg(place.session()).arg(&to).status().unwrap().success());
    to
}

/// The exit code and the last line.
fn verify(place: &Workplace, args: &[&str]) -> (i32, String) {
    let output = place.writ(&[&["verify"], args].concat());
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    (output.status.code().unwrap(), said.lines().last().unwrap_or_default().to_owned())
}

fn report(place: &Workplace, args: &[&str]) -> Value {
    serde_json::from_slice(&place.writ(&[&["verify", "--format", "json"], args].concat()).stdout).unwrap()
}

/// Another machine's state: it knows neither the session nor its key.
fn auditor(place: &Workplace, args: &[&str]) -> (i32, String) {
    let mut command = place.command(&[&["verify"], args].concat());
    let output = command.env("WRIT_STATE_DIR", place.folder.join("auditor")).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), said.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn verified_needs_a_signature_by_a_key_that_is_known_here() {
    let place = recorded("states-signed");
    assert_eq!(verify(&place, &[SESSION]), (0, "verified".to_owned()));
    assert_eq!(report(&place, &[SESSION])["pinned"], true);
    let folder = copy(&place, "evidence");
    let path = folder.to_str().unwrap();
    let key = folder.join("ledger.pub");
    let key = key.to_str().unwrap();
    assert_eq!(auditor(&place, &[path, "--key", key]), (0, "verified".to_owned()));
    let (code, last) = auditor(&place, &[path]);
    assert!(code == 3 && last.starts_with("NOT VERIFIED: unknown key"), "{code} {last}");

    // Unsigned, with every key.
    fs::write(folder.join("checkpoints"), "").unwrap();
    for args in [vec![path], vec![path, "--key", key]] {
        let (code, last) = auditor(&place, &args);
        assert!(code == 3 && last.starts_with("NOT VERIFIED: unsigned"), "{code} {last}");
    }
    let ledger = folder.join("ledger.jsonl");
    let chain = place.writ(&["ledger", "verify", ledger.to_str().unwrap()]);
    assert!(!String::from_utf8_lossy(&chain.stdout).lines().any(|line| line.starts_with("verified")));

    // A key that another holds.
    place.writ(&["keys", "generate", place.folder.join("other").to_str().unwrap()]);
    let other = place.folder.join("other.pub");
    let (code, last) = auditor(&place, &[place.session().to_str().unwrap(), "--key", other.to_str().unwrap()]);
    assert!(code == 3 && last.starts_with("NOT VERIFIED: unknown key"), "{code} {last}");
}

#[test]
fn an_open_session_is_verified_as_far_as_it_is_signed() {
    let place = recorded("states-open");
    place.allowed("two");
    assert_eq!(place.approved(), ["one", "two"]);
    let (code, last) = verify(&place, &[SESSION]);
    assert_eq!((code, last.as_str()), (0, "verified up to row 4: the session is still open"));
    let fresh = Workplace::new("states-unsealed");
    fresh.start();
    fresh.allowed("one");
    let (code, last) = verify(&fresh, &[SESSION]);
    assert!(code == 3 && last.starts_with("NOT VERIFIED: unsigned"), "{code} {last}");
}

/// A row that comes late is sealed by whoever writes it; a session is open again once somebody signed for that.
#[test]
fn what_comes_after_the_end_breaks_nothing_that_is_signed() {
    let place = recorded("states-late");
    let end = || place.answer(&place.payload("SessionEnd", r#","reason":"other""#));
    end();
    let signed = fs::read(place.session().join("checkpoints")).unwrap();
    let mut rows = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap().lines().count();
    let file = place.folder.join("repository/src/module.rs");
    let input = format!(r#"{{"file_path":"{}","content":"text"}}"#, file.display());
    for late in [
        place.payload("SubagentStop", r#","agent_id":"a1","agent_type":"Plan","stop_hook_active":false"#),
        place.write_call("late", "src/module.rs"),
        place.payload(
            "PostToolUse",
            &format!(r#","tool_name":"Write","tool_input":{input},"tool_response":{{}},"tool_use_id":"one""#),
        ),
        place.payload("SessionEnd", r#","reason":"other""#),
        place.payload("SessionStart", r#","source":"resume""#),
    ] {
        place.answer(&late);
        let now = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap().lines().count();
        assert!(std::mem::replace(&mut rows, now) < now, "{late} has a row");
        assert_eq!(verify(&place, &[SESSION]), (0, "verified".to_owned()), "{late}");
    }
    place.allowed("two");
    let (code, last) = verify(&place, &[SESSION]);
    assert_eq!((code, last), (0, format!("verified up to row {}: the session is still open", rows - 1)));
    // Rows that nobody signed for open nothing.
    let folder = copy(&place, "evidence");
    fs::write(folder.join("checkpoints"), signed).unwrap();
    let (path, key) = (folder.to_str().unwrap(), folder.join("ledger.pub"));
    let (code, last) = auditor(&place, &[path, "--key", key.to_str().unwrap()]);
    assert!(code == 3 && last.starts_with("NOT VERIFIED: broken"), "{code} {last}");
    // Nor do those behind an end that is signed.
    end();
    assert_eq!(verify(&place, &[SESSION]), (0, "verified".to_owned()));
}

#[test]
fn a_call_that_nobody_was_asked_about_and_that_ran_is_no_verified_record() {
    let place = recorded("states-unasked");
    let result = |event: &str| {
        let more = r#","tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":{},"error":"x","tool_use_id":"#;
        place.payload(event, &format!("{more}\"{event}\""))
    };
    // One that failed may never have been run.
    place.answer(&result("PostToolUseFailure"));
    place.answer(&place.payload("Stop", STOP));
    assert_eq!(verify(&place, &[SESSION]).0, 0);
    place.answer(&result("PostToolUse"));
    place.answer(&place.payload("Stop", STOP));
    let (code, last) = verify(&place, &[SESSION]);
    assert!(code == 3 && last.contains("broken"), "{code} {last}");
    let said = place.writ(&["verify", SESSION]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("nobody was asked before"));
}

#[test]
fn the_key_beside_the_ledger_is_the_one_pinned_at_the_start_byte_for_byte() {
    let place = recorded("states-key");
    let folder = copy(&place, "evidence");
    let file = folder.join("ledger.pub");
    let good = fs::read(&file).unwrap();
    let changes: [&dyn Fn() -> Option<Vec<u8>>; 5] = [
        &|| Some(vec![0xff; 9]),
        &|| Some([good.as_slice(), b"\n"].concat()),
        &|| Some(String::from_utf8(good.clone()).unwrap().replace('\n', "\r\n").into_bytes()),
        &|| Some(Vec::new()),
        &|| None,
    ];
    for (number, change) in changes.iter().enumerate() {
        match change() {
            Some(bytes) => fs::write(&file, bytes).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        assert_eq!(verify(&place, &[folder.to_str().unwrap()]).0, 3, "change {number}");
    }
    fs::write(&file, good).unwrap();
    assert_eq!(verify(&place, &[folder.to_str().unwrap()]).0, 0);
}

#[test]
fn a_lost_session_is_never_taken_for_an_older_one() {
    let place = recorded("states-lost");
    let second = |event: &str, more: &str| place.payload(event, more).replace(SESSION, "second");
    place.answer(&second("SessionStart", r#","source":"startup""#));
    assert!(verify(&place, &[]).1.starts_with("NOT VERIFIED: unsigned"), "the newest session, open");
    place.answer(&second("Stop", STOP));
    assert_eq!(verify(&place, &[]), (0, "verified".to_owned()));
    let state = place.folder.join("state");
    fs::rename(state.join("sessions/second"), place.folder.join("aside")).unwrap();
    for args in [&[][..], &["second"]] {
        let (code, last) = verify(&place, args);
        assert!(code == 4 && last.contains("lost"), "{code} {last}");
    }
    assert_eq!(report(&place, &[])["status"], "lost");
    assert_eq!(verify(&place, &[SESSION]).0, 0, "the older one, when it is named");
    // What is known apart from the head is enough, and so is the head alone.
    fs::rename(state.join("heads/second"), place.folder.join("head")).unwrap();
    assert_eq!(verify(&place, &[]).0, 4);
    fs::rename(place.folder.join("head"), state.join("heads/second")).unwrap();
    fs::remove_file(state.join("begun/second")).unwrap();
    assert_eq!(verify(&place, &[]).0, 4);
    // Another record in its place is not its own, and neither is one that cannot be read taken for nothing.
    let older = place.session();
    assert!(Command::new("cp").arg("-rp").arg(&older).arg(state.join("sessions/second")).status().unwrap().success());
    assert_eq!(verify(&place, &[]).0, 4);
    fs::remove_dir_all(state.join("sessions/second")).unwrap();
    assert!(
        Command::new("cp")
            .arg("-rp")
            .arg(place.folder.join("aside"))
            .arg(state.join("sessions/second"))
            .status()
            .unwrap()
            .success()
    );
    let ledger = state.join("sessions/second/ledger.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    fs::write(&ledger, text.replacen("sequence", "Sequence", 1)).unwrap();
    assert!(Command::new("touch").args(["-d", "2001-01-01"]).arg(&ledger).status().unwrap().success());
    assert_eq!(verify(&place, &[]).0, 3);
    fs::remove_dir_all(state.join("sessions/second")).unwrap();
    // It cannot begin anew either.
    let again = place.answer(&second("PreToolUse", r#","tool_name":"Read","tool_input":{},"tool_use_id":"x""#));
    assert!(again.contains(r#""permissionDecision":"deny""#), "{again}");
    fs::remove_dir_all(state.join("sessions/second")).unwrap();
    fs::rename(place.folder.join("aside"), state.join("sessions/second")).unwrap();
    assert_eq!(verify(&place, &[]).0, 0);
}

/// What a command says, and its exit code.
fn said(place: &Workplace, args: &[&str]) -> (i32, String) {
    let output = place.writ(args);
    (output.status.code().unwrap(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn every_command_tells_a_lost_session() {
    let place = recorded("states-told");
    assert_eq!(said(&place, &["session", "show", SESSION]).0, 0);
    assert_eq!(said(&place, &["claims"]).0, 0);
    fs::remove_dir_all(place.session()).unwrap();
    let commands: [&[&str]; 5] =
        [&["session", "show", SESSION], &["session", "show"], &["claims"], &["approve"], &["verify"]];
    for args in commands {
        let (code, text) = said(&place, args);
        assert!(code == 4 && text.contains("lost"), "{args:?}: {code} {text}");
    }
    for args in [&["status"][..], &["session", "list"]] {
        let (code, text) = said(&place, args);
        assert!(code == 0 && text.contains(SESSION) && text.contains("lost"), "{args:?}: {code} {text}");
    }
    assert!(said(&place, &["doctor"]).1.contains("lost"));
}

#[test]
fn one_broken_session_hides_no_other() {
    let place = recorded("states-beside");
    let other = place.folder.join("state/sessions/other");
    assert!(Command::new("cp").arg("-r").arg(place.session()).arg(&other).status().unwrap().success());
    fs::write(other.join("ledger.jsonl"), "{}\n").unwrap();
    for args in [&["status"][..], &["session", "list"]] {
        let (code, text) = said(&place, args);
        assert!(code == 0 && text.contains(SESSION), "{args:?}: {code} {text}");
    }
    assert!(said(&place, &["session", "list"]).1.contains("damaged"));
    assert_eq!(said(&place, &["session", "show", "other"]).0, 1);
}

#[test]
fn a_ledger_that_is_no_plain_file_is_not_lost() {
    let place = recorded("states-pipe");
    let ledger = place.session().join("ledger.jsonl");
    fs::remove_file(&ledger).unwrap();
    assert!(Command::new("mkfifo").arg(&ledger).status().unwrap().success());
    for args in [&["verify"][..], &["verify", SESSION]] {
        let (code, text) = said(&place, args);
        assert!(code == 1 && text.contains("not a plain file"), "{args:?}: {code} {text}");
    }
    let (code, text) = said(&place, &["ledger", "verify", "/nowhere/ledger.jsonl"]);
    assert!(code == 1 && text.contains("cannot read /nowhere/ledger.jsonl"), "{code} {text}");
}

#[test]
fn without_a_session_there_is_nothing_to_verify() {
    let place = Workplace::new("states-none");
    assert_eq!((verify(&place, &[]).0, verify(&place, &["nobody"]).0), (4, 1));
    assert!(!place.folder.join("state").exists(), "looking makes nothing");
}

#[test]
fn a_record_that_begins_in_the_middle_is_told() {
    let place = recorded("states-anew");
    fs::remove_dir_all(place.folder.join("state")).unwrap();
    place.allowed("two");
    place.answer(&place.payload("Stop", STOP));
    let (code, last) = verify(&place, &[SESSION]);
    assert!(code == 3 && last.starts_with("verified, except: the record begins in the middle"), "{code} {last}");
    assert_eq!(verify(&place, &[SESSION, "--allow-absent"]).0, 0);
    // A new session of the same repository is whole.
    let fresh = recorded("states-anew-not");
    assert_eq!(verify(&fresh, &[SESSION]).0, 0);
}

#[test]
fn a_field_that_nothing_enforces_is_an_exception() {
    let policy =
        r#"{"version":"1.0","name":"x","files":{"deny":["**/.env"]},"enforce":{"calls":false,"atLeast":"full"}}"#;
    let place = Workplace::new("states-absent");
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    whole(&place);
    let (code, last) = verify(&place, &[SESSION]);
    assert_eq!((code, last.as_str()), (3, "verified, except: nothing in this session enforced `/enforce/atLeast`"));
    assert_eq!(verify(&place, &[SESSION, "--allow-absent"]).0, 0);
    let told = report(&place, &[SESSION]);
    assert_eq!((&told["verified"], &told["status"]), (&Value::Bool(false), &Value::from("verified")));
    // A broken record is broken with and without the switch.
    let ledger = place.session().join("ledger.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    fs::write(&ledger, text.replacen("APPROVED", "DENIED", 1)).unwrap();
    let (code, last) = verify(&place, &[SESSION, "--allow-absent"]);
    assert!(code == 3 && last.starts_with("NOT VERIFIED: broken"), "{code} {last}");
}

/// What parses and nothing enforces, at whatever depth, is told where a human looks and in the report; what is enforced is not.
#[test]
fn what_is_not_enforced_is_told_everywhere() {
    let policy = r#"{"version":"1.0","name":"x","files":{"deny":["**/.env"]},
        "tools":{"deny":["TodoWrite:x","Bash:rm *"]},"enforce":{"calls":false,"atLeast":"full"},
        "functionaries":[{"type":"keyless","issuer":"i","subject":"s"}]}"#;
    let place = Workplace::new("states-idle");
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    let fields = ["/functionaries", "/enforce/atLeast", "/tools/deny/0"];
    let told = place.answer(&place.payload("SessionStart", r#","source":"startup""#));
    let status = String::from_utf8(place.writ(&["status"]).stdout).unwrap();
    let check = String::from_utf8(place.writ(&["policy", "check"]).stdout).unwrap();
    place.answer(&place.payload("UserPromptSubmit", PROMPT));
    place.allowed("one");
    place.answer(&place.payload("Stop", STOP));
    let (code, last) = verify(&place, &[SESSION]);
    assert_eq!((code, verify(&place, &[SESSION, "--allow-absent"]).0), (3, 0));
    for field in fields {
        let short = field.trim_start_matches('/');
        let name = if short.contains('/') { field } else { short };
        assert!(last.contains(&format!("`{name}`")), "{field}: {last}");
        assert!(
            told.contains(field) && status.contains(field) && check.contains(field),
            "{field}: {told} {status} {check}"
        );
    }
    for text in [&told, &status, &check, &last] {
        assert!(!text.contains("/tools/deny/1") && !text.contains("/files"), "{text}");
    }
    // Of clients that tell of single calls alone.
    let policy = r#"{"version":"1.0","name":"x","claims":{"enforce":true},"limits":{"maxTurns":3}}"#;
    fs::write(place.folder.join("repository/other.aflock"), policy).unwrap();
    let check = String::from_utf8(place.writ(&["policy", "check", "other.aflock"]).stdout).unwrap();
    assert!(check.contains("/limits/maxTurns: not enforced in sessions of `mcp`"), "{check}");
    let check = place.writ(&["policy", "check", "other.aflock", "--format", "json"]).stdout;
    let check: Value = serde_json::from_slice(&check).unwrap();
    assert_eq!(check["notEnforcedYet"], Value::Array(Vec::new()));
    assert_eq!(check["notEnforcedWith"]["mcp"], serde_json::json!(["/claims", "/limits/maxTurns"]));
}

#[test]
fn a_claim_that_is_false_and_stands_is_an_exception() {
    let git = |place: &Workplace, args: &[&str]| {
        let at = place.folder.join("repository");
        let who = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"];
        assert!(Command::new("git").current_dir(at).args(who).args(args).status().unwrap().success());
    };
    for (name, files, code) in [("false", "src/never.rs", 3), ("true", "src/new.rs", 0)] {
        let place = Workplace::new(&format!("states-claim-{name}"));
        git(&place, &["add", "-A"]);
        git(&place, &["commit", "-qm", "one"]);
        place.start();
        let agent = r#","agent_id":"a1","agent_type":"worker""#;
        place.answer(&place.payload("SubagentStart", agent));
        fs::write(place.folder.join("repository/src/new.rs"), "x\n").unwrap();
        let words = format!(r"Status: DONE\nFiles changed: {files}");
        let stop = format!(r#"{agent},"stop_hook_active":false,"last_assistant_message":"{words}""#);
        place.answer(&place.payload("SubagentStop", &stop));
        place.answer(&place.payload("Stop", STOP));
        let (found, last) = verify(&place, &[SESSION]);
        assert_eq!(found, code, "{name}: {last}");
        assert_eq!(last.contains("claims are false"), code == 3, "{name}: {last}");
    }
}

#[test]
fn an_empty_ledger_is_what_it_is() {
    let place = recorded("states-empty");
    let folder = place.folder.join("empty");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("ledger.jsonl"), "").unwrap();
    let ledger = folder.join("ledger.jsonl");
    assert_eq!(place.writ(&["ledger", "verify", ledger.to_str().unwrap()]).status.code(), Some(0));
    let (code, last) = verify(&place, &[folder.to_str().unwrap()]);
    assert!(code == 0 && last.starts_with("empty"), "{code} {last}");
    // One whose rows were taken away is not empty.
    let robbed = copy(&place, "robbed");
    fs::write(robbed.join("ledger.jsonl"), "").unwrap();
    assert_eq!(verify(&place, &[robbed.to_str().unwrap()]).0, 3);
    let key = place.session().join("ledger.pub");
    assert_eq!(verify(&place, &[folder.to_str().unwrap(), "--key", key.to_str().unwrap()]).0, 3);
}

#[test]
fn a_payload_that_cannot_be_read_is_denied_and_on_record() {
    let place = Workplace::new("states-unreadable");
    place.start();
    place.allowed("one");
    let whole = place.write_call("two", "src/x.rs");
    let whole = whole.as_str();
    let rest = whole.strip_suffix('}').unwrap();
    let deep = format!("{rest},\"x\":{}1{}}}", "[".repeat(3000), "]".repeat(3000));
    let utf16: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let broken: Vec<Vec<u8>> = vec![
        rest.as_bytes().to_vec(),
        format!("\u{feff}{rest}").into_bytes(),
        format!("{whole} {whole}").into_bytes(),
        format!("{rest},\"cwd\":\"/\"}}").into_bytes(),
        format!("{rest},\"x\":\"\\ud800\"}}").into_bytes(),
        deep.into_bytes(),
        format!("[{whole}]").into_bytes(),
        format!("{rest},\"x\":\"\0\"}}").into_bytes(),
        [rest.as_bytes(), b",\"x\":\"\xff\"}"].concat(),
        [b"\xff\xfe".as_slice(), &utf16].concat(),
    ];
    // Where no policy is to be found above the client's folder, the session is still known.
    let nested = place.folder.join("repository/src/nested");
    fs::create_dir_all(nested.join(".git")).unwrap();
    for (number, bytes) in broken.iter().enumerate() {
        let text = bytes_answer(&place, bytes, &nested);
        assert!(text.contains("deny") || text.contains(r#""decision":"block""#), "{number}: {text}");
    }
    let rows = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let told = rows.matches(r#""event":"unreadable-payload""#).count();
    assert_eq!(told, broken.len(), "{rows}");
    place.answer(&place.payload("Stop", STOP));
    assert_eq!(verify(&place, &[SESSION]), (0, "verified".to_owned()));

    // Without a session that can be read the folder finds the policy; where there is none, nothing is said.
    let repository = place.folder.join("repository");
    assert!(bytes_answer(&place, b"{", &repository).contains("block"));
    assert_eq!(bytes_answer(&place, b"{", &nested), "{}");
}

/// A prompt that cannot be counted is not taken where turns are; what came after a call stops nothing that a limit does not hold.
#[test]
fn limits_hold_what_cannot_be_read() {
    for (name, limits, blocks) in [("limited", r#","limits":{"maxTurns":{"value":2}}"#, true), ("free", "", false)] {
        let place = Workplace::new(&format!("states-prompt-{name}"));
        let repository = place.folder.join("repository");
        fs::write(repository.join(".aflock"), format!(r#"{{"version":"1.0","name":"x"{limits}}}"#)).unwrap();
        place.start();
        for event in ["UserPromptSubmit", "PostToolBatch"] {
            let whole = place.payload(event, r#","prompt":"x""#);
            let broken = format!("{},\"x\":\"\\ud800\"}}", whole.strip_suffix('}').unwrap());
            let text = bytes_answer(&place, broken.as_bytes(), &repository);
            assert_eq!(text.contains(r#""decision":"block""#), blocks, "{name} {event}: {text}");
            assert!(text.contains("cannot read"), "{name} {event}: {text}");
        }
    }
}

fn bytes_answer(place: &Workplace, payload: &[u8], at: &Path) -> String {
    use std::io::Write;
    let mut child = place.command(&["hook"]).current_dir(at).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_is_no_plain_file_ends_in_an_error_that_names_it() {
    let place = recorded("states-files");
    let pipe = place.folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    let folder = copy(&place, "evidence");
    let evidence = folder.to_str().unwrap();
    for other in [pipe, "/dev/zero", "/proc/self/pagemap", evidence] {
        for args in [
            vec!["verify", SESSION, "--transcript", other],
            vec!["verify", SESSION, "--key", other],
            vec!["ledger", "show", other],
            vec!["ledger", "verify", other],
            vec!["policy", "check", other],
            vec!["policy", "verify", other],
            vec!["keys", "trust", other],
            vec!["evaluate", "terraform", other],
            vec!["evaluate", "mcp", other],
            vec!["attestation", "verify", other],
            vec!["gate", "--require-attestation", other, "--command", "x"],
            vec!["claim", "verify", "--claim-file", other, "--before", other],
            vec!["decide", "--policy", other, "--tool", "Read", "--input", "{}"],
        ] {
            let output = place.writ(&args);
            let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert!(!output.status.success() && said.contains(other), "{args:?}: {said}");
        }
    }
    for name in ["ledger.jsonl", "checkpoints", "ledger.pub"] {
        let file = folder.join(name);
        let good = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        let (code, last) = verify(&place, &[evidence]);
        assert!(code == 1 && last.contains(name), "{code} {last}");
        fs::remove_file(&file).unwrap();
        fs::write(&file, good).unwrap();
    }
    assert_eq!(verify(&place, &[evidence]).0, 0);
    // What the process was given open is no stranger's pipe.
    let words = "\"$WRIT\" evaluate mcp <(echo '{\"tool\":\"read\",\"arguments\":{}}')";
    let writ = place.command(&[]).get_program().to_owned();
    let own = Command::new("bash").args(["-c", words]).env("WRIT", writ).output().unwrap();
    assert!(own.status.success(), "{}", String::from_utf8_lossy(&own.stderr));
}

#[test]
fn a_key_that_only_is_asked_for_is_not_made() {
    let place = Workplace::new("states-prints");
    for args in [
        &["keys", "registry"][..],
        &["keys", "registry", "--history"],
        &["keys", "retire", "typo"],
        &["keys", "list"],
        &["attestation", "show", "typo"],
        &["status"],
        &["session", "list"],
    ] {
        place.writ(args);
        assert!(!place.folder.join("state").exists(), "{args:?}");
    }
    assert!(place.writ(&["keys", "rotate"]).status.success());
    assert!(place.writ(&["keys", "registry"]).status.success());
    let relative = place.command(&["keys", "rotate"]).env("WRIT_STATE_DIR", "here").output().unwrap();
    assert!(!relative.status.success() && !place.folder.join("repository/here").exists());
    assert!(String::from_utf8_lossy(&relative.stderr).contains("WRIT_STATE_DIR to an absolute path"));
}

#[test]
fn names_paint_nothing() {
    let policy = r#"{"version":"1.0","name":"x\n\u001b[2J\u009b2J\u202everified","files":{"deny":["**/.env"]}}"#;
    let place = Workplace::new("states-escapes");
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    whole(&place);
    let denied = place.answer(&place.write_call("two", ".env"));
    assert!(denied.contains("deny") && !denied.chars().any(|c| c.is_control() || c == '\u{202e}'), "{denied}");
    fs::write(place.folder.join("bad.aflock"), "{\"version\":\"1.0\",\"name\":\"\u{9b}2J\u{202e}\",\"nope\":1}")
        .unwrap();
    let bad = place.folder.join("bad.aflock");
    for args in [
        &["verify", SESSION][..],
        &["status"],
        &["session", "list"],
        &["session", "show"],
        &["policy", "check"],
        &["policy", "check", bad.to_str().unwrap()],
        &["why", "cat \u{1b}[2J.env"],
        &["verify", "\u{1b}[2J"],
        &["\u{1b}[2J"],
        &["decide", "--policy", ".aflock", "--tool", "Read", "--input", "\u{1b}[2J"],
    ] {
        let output = place.writ(&[&["--color", "always"], args].concat());
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let unseen = |c: char| matches!(c, '\u{9b}' | '\u{202e}');
        assert!(!said.contains("\u{1b}[2J") && !said.chars().any(unseen), "{args:?}: {said:?}");
        assert!(!said.lines().any(|line| line.starts_with("verified")) || args == ["verify", SESSION], "{said}");
        let plain = place.writ(&[&["--color", "never"], args].concat());
        assert!(![plain.stdout, plain.stderr].concat().contains(&0x1b), "{args:?}");
    }
    let help = place.writ(&["--color=never", "verify", "--help"]);
    assert!(help.status.success() && !help.stdout.contains(&0x1b));
    let help = place.writ(&["verify", "--help", "--color", "always"]);
    assert!(help.stdout.contains(&0x1b));
}

#[test]
fn answers_for_programs_have_what_programs_need() {
    let place = Workplace::new("states-formats");
    let why = place.writ(&["why", "--format", "json", "cat .env"]);
    let why: Value = serde_json::from_slice(&why.stdout).unwrap();
    assert_eq!((why["decision"].as_str(), why["tool"].as_str()), (Some("deny"), Some("Bash")), "{why}");
    let sarif = place.writ(&["evaluate", "shell", "--format", "sarif", "echo é; git push --force"]);
    let sarif: Value = serde_json::from_slice(&sarif.stdout).unwrap();
    let run = &sarif["runs"][0];
    let result = &run["results"][0];
    let rule = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    let place_of = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place_of["region"]["startLine"], &place_of["region"]["startColumn"]),
        (&1.into(), &9.into()),
        "{result}"
    );
    assert!(place_of["artifactLocation"]["uri"].is_string());
    let nope = place.writ(&["decide", "--policy", ".aflock", "--tool", "Read", "--input", "nope"]);
    assert!(String::from_utf8_lossy(&nope.stderr).contains("`nope`"), "{}", String::from_utf8_lossy(&nope.stderr));
}

/// The row of a stop says which bytes of the transcript were read; who changes them later is noticed, by the next stop and by
/// whoever verifies. A transcript that only grew is as it was.
#[test]
fn a_transcript_that_was_rewritten_is_noticed() {
    let place = Workplace::new("states-transcript");
    let transcript = place.folder.join("repository/none.jsonl");
    let write = |lines: &[&str]| fs::write(&transcript, lines.concat()).unwrap();
    let line = |text: &str| format!("{{\"type\":\"note\",\"text\":\"{text}\"}}\n");
    let (first, second, third) = (line("first"), line("second"), line("third"));
    let coverage = || {
        let report = report(&place, &[SESSION]);
        report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "coverage").unwrap().clone()
    };
    place.start();
    write(&[&first]);
    place.answer(&place.payload("Stop", STOP));
    write(&[&first, &second]);
    place.answer(&place.payload("Stop", STOP));
    assert_eq!(coverage()["outcome"], "passed", "{}", coverage());
    write(&[&first, &second, &third]);
    assert_eq!(coverage()["outcome"], "passed", "{}", coverage());
    // Of the same length, so that only the content tells.
    write(&[&first, &line("secund"), &third]);
    let found = coverage();
    assert_eq!(found["outcome"], "absent", "{found}");
    assert!(found["findings"][0].as_str().unwrap().contains("are not those that row"), "{found}");
    place.answer(&place.payload("Stop", STOP));
    let rows = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let last: Value = serde_json::from_str(rows.lines().last().unwrap()).unwrap();
    assert_eq!(last["detail"]["transcripts"]["read"][0]["rewritten"], true, "{last}");
    let found = coverage();
    assert!(found["findings"][0].as_str().unwrap().contains("no longer held what was read"), "{found}");
}

/// While a stop reads a long transcript, calls of the same session are decided.
#[test]
fn a_long_transcript_holds_up_no_call() {
    let place = Workplace::new("states-slow");
    place.start();
    let line = format!("{{\"type\":\"note\",\"text\":\"{}\"}}\n", "x".repeat(1 << 20));
    fs::write(place.folder.join("repository/none.jsonl"), line.repeat(256)).unwrap();
    let stop = place.payload("Stop", STOP);
    let mut child = place.command(&["hook"]).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), stop.as_bytes()).unwrap();
    let mut calls = 0;
    while child.try_wait().unwrap().is_none() {
        place.allowed(&format!("call-{calls}"));
        calls += 1;
    }
    let rows = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let stop = rows.lines().position(|row| row.contains(r#""event":"stop""#)).unwrap();
    assert!(stop > 2, "no call was recorded while the stop read: {calls} calls, the stop is row {stop}");
}
