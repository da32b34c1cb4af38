//! What a process of the agent's own user, and another user, try against a notary: to read its key as it starts, to answer in its place, to
//! keep it busy.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workplace::{SESSION, Workplace};

/// A process that is ended, at the latest, when the test ends.
struct Running(Child);

impl Running {
    /// Once it says on standard output what it is to say.
    fn saying(mut command: Command, wanted: &str) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(wanted), "{line}");
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn notary(place: &Workplace, args: &[&str]) -> Running {
    Running::saying(place.command(&[&["notary", "run"], args].concat()), "notary answers")
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t")
}

/// A place of an ordinary user's, with a copy of `writ` that this user can run.
fn of_a_user(name: &str) -> (Workplace, PathBuf) {
    let mut place = Workplace::new(name);
    let program = place.folder.join("writ");
    fs::copy(place.command(&[]).get_program(), &program).unwrap();
    place.give();
    (place, program)
}

/// Python of that user: it tries what no shell can.
fn python(place: &Workplace, script: &str, program: &Path) -> std::process::Output {
    let mut command = place.program(Path::new("/usr/bin/env"));
    command.args(["python3", "-c", script]).arg(program).current_dir(place.folder.join("repository"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", &place.folder);
    command.env("WRIT_STATE_DIR", place.folder.join("state")).stdin(Stdio::null()).output().unwrap()
}

/// A descriptor of a process's memory, got before that could close itself, stays good for as long as the process goes on. This one does not
/// go on: it begins anew. The twin is a process that only closes itself.
#[test]
fn who_opened_the_memory_of_a_notary_that_starts_reads_nothing() {
    let script = r#"
import ctypes, os, subprocess, sys
def first(words):
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    while True:
        try: memory = os.open(f'/proc/{child.pid}/mem', os.O_RDONLY); maps = open(f'/proc/{child.pid}/maps').read(); break
        except OSError as error:
            if child.poll() is not None: raise
    return child, memory, maps
def readable(memory, maps):
    total = 0
    for line in maps.splitlines():
        start = int(line.split('-')[0], 16)
        try: total += len(os.pread(memory, 16, start))
        except (OSError, OverflowError): pass
    return total
closes = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print('closed', flush=True); time.sleep(20)"
child, memory, maps = first([sys.executable, '-c', closes])
child.stdout.readline()
print('twin', readable(memory, maps) > 0); child.kill()
child, memory, maps = first([sys.argv[1], 'notary', 'run'])
print(child.stdout.readline().decode().strip())
print('notary', readable(memory, maps))
for file in ('mem', 'maps', 'environ'):
    try: open(f'/proc/{child.pid}/{file}', 'rb').read(1); print(file, 'read')
    except OSError as error: print(file, 'refused')
print('name', open(f'/proc/{child.pid}/comm').read().strip())
child.kill(); child.wait()
"#;
    if !is_root() {
        eprintln!("not root: the twin needs a user without rights, and the notary too");
        return;
    }
    let (place, program) = of_a_user("attacks-memory");
    let output = python(&place, script, &program);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("twin True") && said.contains("(custody: process-memory)"), "{said}");
    assert!(said.contains("notary 0\nmem refused\nmaps refused\nenviron refused\nname writ"), "{said}");
}

#[test]
fn a_notary_that_is_traced_makes_no_key() {
    let script = r"
import ctypes, os, signal, sys
child = os.fork()
if child == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.execv(sys.argv[1], [sys.argv[1], 'notary', 'run'])
while True:
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status): print('exit', os.WEXITSTATUS(status)); break
    signal_ = os.WSTOPSIG(status)
    ctypes.CDLL(None).ptrace(7, child, 0, 0 if signal_ == signal.SIGTRAP else signal_)
";
    let (place, program) = of_a_user("attacks-traced");
    let output = python(&place, script, &program);
    assert!(text(&output).contains("another process traces this one"), "{}", text(&output));
    assert!(text(&output).contains("exit 1"), "{}", text(&output));
}

/// Answers as a notary would, whatever is asked.
fn squat(place: &Workplace, answer: &'static str, times: usize) -> thread::JoinHandle<()> {
    let path = place.folder.join("state/notary.sock");
    drop(fs::remove_file(&path));
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for _ in 0..times {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 1 << 16];
            let _read = stream.read(&mut question).unwrap();
            let length = u32::try_from(answer.len()).unwrap().to_be_bytes();
            drop(stream.write_all(&[b"a".as_slice(), &length, answer.as_bytes()].concat()));
        }
    })
}

const ALLOW: &str = r#"{"message":null,"notes":[],"reply":{"decided":{"reason":"","verdict":"allow"}}}"#;
const SILENT: &str = r#"{"message":null,"notes":[],"reply":"silent"}"#;
const ASK: &str = r#"{"message":null,"notes":[],"reply":{"decided":{"reason":"","verdict":"ask"}}}"#;

/// Whoever takes the notary's place has to write the rows, which are decided again when the record is verified.
#[test]
fn an_answer_without_a_row_lets_nothing_run() {
    let place = Workplace::new("attacks-squat");
    place.start();
    place.allowed("before");
    for answer in [ALLOW, SILENT, ASK] {
        let serving = squat(&place, answer, 3);
        for (id, file, why) in [
            ("new", "src/module.rs", "is not on record"),
            ("denied", ".env", "is not on record"),
            // The id of a call that ran, and another input.
            ("before", "src/other.rs", "is not on record"),
        ] {
            let denied = place.answer(&place.write_call(id, file));
            assert!(denied.contains(r#""permissionDecision":"deny""#) && denied.contains(why), "{answer}: {denied}");
        }
        serving.join().unwrap();
    }
    // What a row denies, no answer lets run.
    fs::remove_file(place.folder.join("state/notary.sock")).unwrap();
    assert!(place.answer(&place.write_call("row", ".env")).contains("deny"));
    let serving = squat(&place, ALLOW, 1);
    let denied = place.answer(&place.write_call("row", ".env"));
    assert!(denied.contains("deny") && denied.contains("says `DENIED`"), "{denied}");
    serving.join().unwrap();
    // Where no policy governs, nobody lets a call run past the client's own question.
    fs::remove_file(place.folder.join("repository/.aflock")).unwrap();
    let elsewhere = place.write_call("free", "src/x").replace(SESSION, "elsewhere");
    let serving = squat(&place, ALLOW, 1);
    let denied = place.answer(&elsewhere);
    assert!(denied.contains("where no policy governs"), "{denied}");
    serving.join().unwrap();
    let serving = squat(&place, SILENT, 1);
    assert_eq!(place.answer(&elsewhere), "{}");
    serving.join().unwrap();
    assert_eq!(place.approved(), ["before"]);
}

/// Stands between hooks and the notary, which lies at another name then, and puts another question than it was asked.
fn relay(place: &Workplace, change: fn(&mut Value, &Path), times: usize) -> thread::JoinHandle<()> {
    let path = place.folder.join("state/notary.sock");
    let real = path.with_extension("real");
    fs::rename(&path, &real).unwrap();
    let (listener, repository) = (UnixListener::bind(path).unwrap(), place.folder.join("repository"));
    let one = |stream: &mut UnixStream| {
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut field = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut field).unwrap();
        field
    };
    thread::spawn(move || {
        for _ in 0..times {
            let (mut asker, _) = listener.accept().unwrap();
            let mut begin = [0; 15];
            asker.read_exact(&mut begin).unwrap();
            let mut fields = [one(&mut asker), one(&mut asker), one(&mut asker)];
            let mut payload: Value = serde_json::from_slice(&fields[2]).unwrap();
            change(&mut payload, &repository);
            fields[2] = payload.to_string().into_bytes();
            let mut notary = UnixStream::connect(&real).unwrap();
            notary.write_all(&begin).unwrap();
            for field in fields {
                notary.write_all(&u32::try_from(field.len()).unwrap().to_be_bytes()).unwrap();
                notary.write_all(&field).unwrap();
            }
            let mut answer = Vec::new();
            notary.read_to_end(&mut answer).unwrap();
            drop(asker.write_all(&answer));
        }
    })
}

/// An answer is about the call that the hook asked about: of the same folder, by the same agent.
#[test]
fn a_question_that_was_changed_on_its_way_lets_nothing_run() {
    let place = Workplace::new("attacks-relay");
    let policy = json!({"version": "1.0", "name": "relay", "files": {"deny": ["secrets/**"]},
        "sublayouts": [{"name": "Strict", "policy": {"version": "1.0", "name": "strict", "tools": {"deny": ["Read"]}}}]});
    fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
    fs::create_dir_all(place.folder.join("repository/public")).unwrap();
    let running = notary(&place, &[]);
    place.start();
    let call = |id: &str, tool: &str, input: Value, more: &str| {
        let more = format!(r#","tool_name":"{tool}","tool_input":{input},"tool_use_id":"{id}"{more}"#);
        place.payload("PreToolUse", &more)
    };
    let shell = |id: &str| call(id, "Bash", json!({"command": "cat secrets/key"}), "");
    let strict = |id: &str| {
        let read = json!({"file_path": place.folder.join("repository/public/key")});
        call(id, "Read", read, r#","agent_id":"a1","agent_type":"Strict""#)
    };
    type Change = fn(&mut Value, &Path);
    let (folder, agent): (Change, Change) = (
        |payload, repository| payload["cwd"] = json!(repository.join("public")),
        |payload, _| payload.as_object_mut().unwrap().retain(|name, _| !name.starts_with("agent_")),
    );
    for (payload, change) in [(shell("folder"), folder), (strict("agent"), agent)] {
        let serving = relay(&place, change, 1);
        let denied = place.answer(&payload);
        assert!(denied.contains(r#""permissionDecision":"deny""#), "{denied}");
        assert!(denied.contains("is of another folder, agent, mode, client"), "{denied}");
        serving.join().unwrap();
        let path = place.folder.join("state/notary.sock");
        fs::rename(path.with_extension("real"), path).unwrap();
    }
    // Passed on as it is, it is answered as ever.
    let serving = relay(&place, |_, _| {}, 2);
    assert!(!place.answer(&call("plain", "Bash", json!({"command": "ls"}), "")).contains("deny"));
    assert!(place.answer(&strict("again")).contains("deny"));
    serving.join().unwrap();
    drop(running);
}

/// A call whose notary is gone before it answers is denied, and on record as denied.
#[test]
fn a_call_that_nobody_answered_is_on_record() {
    let place = Workplace::new("attacks-unanswered");
    place.start();
    let path = place.folder.join("state/notary.sock");
    drop(fs::remove_file(&path));
    let listener = UnixListener::bind(&path).unwrap();
    let gone = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _read = stream.read(&mut [0; 64]).unwrap();
    });
    let denied = place.answer(&place.write_call("lost", "src/module.rs"));
    assert!(denied.contains(r#""permissionDecision":"deny""#) && denied.contains("make the call again"), "{denied}");
    gone.join().unwrap();
    fs::remove_file(&path).unwrap();
    let transcript = json!({"type": "assistant", "message": {"id": "m1", "model": "claude-sonnet-4-5",
        "usage": {"input_tokens": 3, "output_tokens": 5}, "content": [{"type": "tool_use", "id": "lost", "name": "Write", "input": {}}]}});
    fs::write(place.folder.join("repository/none.jsonl"), format!("{transcript}\n")).unwrap();
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let output = place.writ(&["verify", SESSION, "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verified"], true, "{report:#}");
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    assert!(ledger.contains(r#""denialReason":"writ:unanswered""#), "{ledger}");
}

/// A limit of prompts holds, however many slow connections the notary has, and where it does not answer at all.
#[test]
fn prompts_are_held_to_their_limit_while_the_notary_is_slow() {
    let place = Workplace::new("attacks-slow");
    let policy = r#"{"version":"1.0","name":"kept","limits":{"maxTurns":{"value":1,"enforcement":"fail-fast"}}}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    let running = notary(&place, &["--custody", "file"]);
    place.start();
    let prompt = place.payload("UserPromptSubmit", r#","prompt":"go on""#);
    assert!(!place.answer(&prompt).contains(r#""decision":"block""#));
    let socket = place.folder.join("state/notary.sock");
    let slow: Vec<UnixStream> = (0..100)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(b"w").unwrap();
            stream
        })
        .collect();
    let before = Instant::now();
    assert!(place.answer(&prompt).contains(r#""decision":"block""#));
    assert!(before.elapsed() < Duration::from_secs(4), "it waited for the slow ones");
    // Each has its time in all, however it is cut into pieces.
    let (mut stream, began) = (UnixStream::connect(&socket).unwrap(), Instant::now());
    let mut pieces = b"writ-notary-2\nh".iter();
    stream.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    loop {
        let cut = pieces.next().is_none_or(|byte| stream.write_all(&[*byte]).is_err());
        match stream.read(&mut [0]) {
            Ok(0) => break,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) && !cut => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            other => panic!("{other:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(9), "it waits for ever");
    }
    drop((slow, running));
    let path = place.folder.join("state/notary.sock");
    drop(fs::remove_file(&path));
    let silent = UnixListener::bind(&path).unwrap();
    assert!(place.answer(&prompt).contains(r#""decision":"block""#), "it decides by itself");
    drop(silent);
    let serving = squat(&place, SILENT, 1);
    assert!(place.answer(&prompt).contains(r#""decision":"block""#), "no row takes it");
    serving.join().unwrap();
}

fn post(port: u16, token: &str, payload: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head =
        format!("POST /hook/claude-code HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{payload}", payload.len()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    all.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Over HTTP: what cannot be read is refused, the client that posts is on record, and another user is not heard, with the token neither.
#[test]
fn posts_are_of_this_user_and_their_client_is_on_record() {
    let place = Workplace::new("attacks-http");
    let policy = r#"{"version":"1.0","name":"ask","tools":{"requireApproval":["Bash:make*"]}}"#;
    fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let running = notary(&place, &["--http", &format!("127.0.0.1:{port}")]);
    let path = place.folder.join("state/notary.token");
    while !path.exists() {
        thread::sleep(Duration::from_millis(10));
    }
    let token = fs::read_to_string(&path).unwrap();
    let garbage = post(port, &token, "no JSON at all");
    assert!(garbage.contains(r#""decision":"block""#), "{garbage}");
    let members = r#","tool_name":"Bash","tool_input":{"command":"make all"},"tool_use_id":"1""#;
    let asked = post(port, &token, &place.payload("PreToolUse", members));
    assert!(asked.contains(r#""permissionDecision":"ask""#), "{asked}");
    let ledger = fs::read_to_string(place.session().join("ledger.jsonl")).unwrap();
    let seen = ledger.lines().find(|row| row.contains(r#""event":"client-seen""#)).unwrap();
    assert!(seen.contains(&format!(r#""process":{{"id":{},"#, std::process::id())), "{seen}");
    // This process is the client now: what it starts gives no word.
    let waiting = place.writ(&["approvals", "--format", "json"]);
    let waiting: serde_json::Value = serde_json::from_slice(&waiting.stdout).unwrap();
    assert_eq!(waiting[0]["text"], "make all", "{waiting}");
    let writ = place.command(&[]);
    let line = format!("{} approve {}", writ.get_program().display(), waiting[0]["id"].as_str().unwrap());
    let mut command = Command::new("script");
    command.args(["-qefc", &line, "/dev/null"]).current_dir(place.folder.join("repository"));
    command.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let refused = command.stdin(Stdio::null()).output().expect("script(1)");
    assert!(text(&refused).contains("the client of this session runs this"), "{}", text(&refused));
    if is_root() {
        let script = format!(
            "import socket\nS=[]\nfor i in range(300):\n  s=socket.create_connection(('127.0.0.1',{port})); s.settimeout(5)\n  \
             try: s.sendall(b'POST /hook/claude-code HTTP/1.1\\r\\n'); S.append(s)\n  except OSError: pass\n\
             closed=0\nfor s in S:\n  try: closed+=s.recv(1)==b''\n  except ConnectionError: closed+=1\nprint('closed',closed==len(S))"
        );
        let mut other = Command::new("setpriv");
        other.args([
            "--reuid",
            "12346",
            "--regid",
            "12346",
            "--clear-groups",
            "/usr/bin/env",
            "python3",
            "-c",
            &script,
        ]);
        let output = other.output().unwrap();
        assert!(text(&output).contains("closed True"), "{}", text(&output));
        let asked = post(port, &token, &place.payload("PreToolUse", &members.replace('1', "2")));
        assert!(asked.contains(r#""permissionDecision":"ask""#), "its own user is answered all the while: {asked}");
    }
    drop(running);
    let verified = place.writ(&["verify", SESSION, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
    let decisions = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "decisions").unwrap();
    assert_eq!(decisions["outcome"], "passed", "{report}");
}

/// A notary that is another user may read every file, and tells nothing of those that its user may not read.
#[test]
fn the_other_user_reads_for_its_user_alone() {
    if !is_root() {
        eprintln!("not root: nobody else can be made a notary");
        return;
    }
    let (place, program) = of_a_user("attacks-reader");
    let roots = PathBuf::from(format!("/run/attacks-reader-{}", std::process::id()));
    fs::create_dir(&roots).unwrap();
    let (socket, state) = (roots.join("a.sock"), roots.join("state"));
    let secret = roots.join("secret.json");
    fs::write(&secret, r#"{"version":"1.0","name":"x","expires":"hunter2-secret"}"#).unwrap();
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut run = Command::new(&program);
    run.args(["notary", "run", "--for", "12345", "--as", "12346"]).arg("--socket").arg(&socket);
    run.arg("--state").arg(&state).env_clear().env("PATH", "/usr/bin:/bin");
    let running = Running::saying(run, "notary answers user 12345");
    let policy = place.folder.join("repository/.aflock");
    fs::remove_file(&policy).unwrap();
    std::os::unix::fs::symlink(&secret, &policy).unwrap();
    let ask = |id: &str| {
        let mut hook = place.program(&program);
        hook.arg("hook").env_clear().env("HOME", &place.folder).env("WRIT_NOTARY", &socket);
        hook.env("WRIT_STATE_DIR", place.folder.join("state")).current_dir(place.folder.join("repository"));
        let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(place.write_call(id, "src/x").as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let denied = ask("1");
    assert!(denied.contains("deny") && denied.contains("user 12345 may not read it"), "{denied}");
    assert!(!denied.contains("hunter2"), "{denied}");
    // The twin: what that user may read is told.
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    assert!(ask("2").contains("hunter2"));
    drop(running);
    fs::remove_dir_all(&roots).unwrap();
}

/// A state folder that another user owns is not written to: they could put another record in its place.
#[test]
fn the_state_of_another_user_is_not_used() {
    if !is_root() {
        return;
    }
    let (place, program) = of_a_user("attacks-state");
    let state = place.folder.join("state");
    fs::create_dir(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(23456), Some(23456)).unwrap();
    fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let denied = place.answer(&place.write_call("1", "src/x"));
    assert!(denied.contains("deny") && denied.contains("belongs to user 23456"), "{denied}");
    let mut run = place.program(&program);
    run.args(["notary", "run"]).env_clear().env("HOME", &place.folder).env("WRIT_STATE_DIR", &state);
    let refused = run.stdin(Stdio::null()).output().unwrap();
    assert!(!refused.status.success() && text(&refused).contains("belongs to user"), "{}", text(&refused));
}
