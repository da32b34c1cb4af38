//! `writ run`: any command in one sandbox and one session, its hooks, its terminal, its end.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod client;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workplace::Workplace;

/// A repository under a policy, and what is run in it.
struct Lab {
    place: Workplace,
}

impl Lab {
    fn new(name: &str, policy: &Value) -> Self {
        let lab = Self { place: Workplace::new(name) };
        fs::write(lab.repository().join(".aflock"), policy.to_string()).unwrap();
        fs::write(lab.repository().join(".env"), "KEY=secret\n").unwrap();
        lab
    }

    fn repository(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command(&[]);
        command.arg("run").arg("--").args(words).env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let ran = self.command(words).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ran.status.code(), text(ran.stdout), text(ran.stderr))
    }

    /// A script in the repository, so that no rule reads it.
    fn script(&self, text: &str) -> String {
        fs::write(self.repository().join("script.sh"), text).unwrap();
        "./script.sh".to_owned()
    }

    fn report(&self) -> Value {
        serde_json::from_slice(&self.place.writ(&["verify", "--format", "json"]).stdout).unwrap()
    }

    fn phase(&self, name: &str) -> Value {
        self.report()["phases"]
            .as_array()
            .unwrap()
            .iter()
            .find(|phase| phase["name"] == name)
            .cloned()
            .unwrap_or_default()
    }

    fn rows(&self) -> Vec<Value> {
        let shown = self.place.writ(&["session", "show", "--format", "json"]);
        serde_json::from_slice::<Value>(&shown.stdout).unwrap().as_array().cloned().unwrap()
    }
}

fn policy() -> Value {
    json!({"version": "1.0", "name": "run", "files": {"deny": ["**/.env"], "readOnly": ["kept/**"]}})
}

#[test]
fn any_command_is_a_session() {
    let lab = Lab::new("run-command", &policy());
    let script = lab.script("cat .e*; echo out; echo err >&2; cat; exit 7");
    let (code, out, err) = lab.run(&["sh", &script]);
    assert_eq!((code, out.as_str()), (Some(7), "out\n"));
    assert!(err.contains("err") && !err.contains("secret"), "{err}");
    let report = lab.report();
    assert_eq!(report["verified"], true, "{report:#}");
    assert_eq!(lab.phase("sandbox")["outcome"], "passed", "{report:#}");
    assert_eq!(lab.rows().last().unwrap()["detail"]["event"], "run-ended");
    // Names that are no text are held as others.
    let odd = lab.repository().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join(".env"), "KEY=other-secret\n").unwrap();
    let script = lab.script("(cat caf*/.env; grep -ar KEY .) 2>/dev/null");
    let (_, out, _) = lab.run(&["sh", &script]);
    assert!(!out.contains("secret"), "{out}");
    // Ends of other kinds.
    let script = lab.script("kill -TERM $$");
    assert_eq!(lab.run(&["sh", &script]).0, Some(128 + 15));
    assert_eq!(lab.report()["verified"], true);
    assert_eq!(lab.run(&["no-such-program"]).0, Some(127));
    assert_eq!(lab.report()["verified"], true, "it did not run, and the last row says so: {:#}", lab.report());
    let (code, _, err) = lab.run(&["cat", ".env"]);
    assert_eq!(code, Some(126));
    assert!(err.contains("it did not run") && err.contains("/files/deny/0"), "{err}");
    assert_eq!(lab.report()["verified"], true);
    // One inside the other cannot be.
    let writ = client::binary();
    let (code, _, err) = lab.run(&[writ.to_str().unwrap(), "run", "--", "true"]);
    assert_ne!(code, Some(0), "{err}");
}

#[test]
fn without_a_policy_nothing_runs() {
    let lab = Lab::new("run-none", &policy());
    fs::remove_file(lab.repository().join(".aflock")).unwrap();
    let (code, _, err) = lab.run(&["echo", "x"]);
    assert_eq!(code, Some(125));
    assert!(err.contains("writ init") && err.contains("--policy"), "{err}");
    let elsewhere = lab.place.folder.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("p.aflock"), policy().to_string()).unwrap();
    let named = |path: &Path| {
        let mut command = lab.place.command(&[]);
        command.args(["run", "--policy", path.to_str().unwrap(), "--", "/bin/cat", "named"]).stdin(Stdio::null());
        command.output().unwrap()
    };
    let told = named(&elsewhere.join("p.aflock"));
    assert_eq!(told.status.code(), Some(125), "{}", String::from_utf8_lossy(&told.stderr));
    let own = lab.repository().join("own.policy");
    fs::write(lab.repository().join("named"), "hello\n").unwrap();
    fs::write(&own, policy().to_string()).unwrap();
    assert_eq!(named(&own).stdout, b"hello\n");
    fs::write(&own, json!({"version": "1.0", "name": "n", "files": {"deny": ["named"]}}).to_string()).unwrap();
    assert_eq!(named(&own).status.code(), Some(126));
}

/// An agent of any kind, whose hooks are asked inside: with the host's network, and with one of its own.
#[test]
fn hooks_are_answered_by_the_supervisor() {
    for domains in [false, true] {
        let mut policy = policy();
        if domains {
            policy["domains"] = json!({"allow": ["allowed.example"]});
        }
        let lab = Lab::new(if domains { "run-hooks-own" } else { "run-hooks" }, &policy);
        let writ = client::binary();
        let writ = writ.display();
        let ask = |event: &str, id: &str, line: &str| {
            let call = json!({"id": id, "tool": "shell", "does": {"shell": {"command": line}}});
            let payload = json!({"event": event, "session": "the-clients", "cwd": lab.repository(), "call": call});
            format!("printf '%s' '{payload}' | {writ} hook --client generic; echo\n")
        };
        let start = json!({"event": "session-start", "session": "the-clients", "cwd": lab.repository()});
        let script = format!(
            "printf '%s' '{start}' | {writ} hook --client generic; echo\n{}{}{}WRIT_RUN=127.0.0.1:1/x {writ} hook --client generic < payload; echo\n\
             WRIT_RUN=${{WRIT_RUN%/*}}/0123 {writ} hook --client generic < payload; echo\n",
            ask("before-call", "1", "echo one"),
            ask("before-call", "2", "cat .env"),
            ask("after-call", "1", "echo one"),
        );
        let call = json!({"id": "3", "tool": "shell", "does": {"shell": {"command": "echo three"}}});
        let payload = json!({"event": "before-call", "session": "the-clients", "cwd": lab.repository(), "call": call});
        fs::write(lab.repository().join("payload"), payload.to_string()).unwrap();
        let script = lab.script(&script);
        let (code, out, err) = lab.run(&["sh", &script]);
        assert_eq!(code, Some(0), "{err}");
        let answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let verdicts: Vec<&Value> = answers.iter().map(|answer| &answer["verdict"]).collect();
        assert_eq!(
            verdicts,
            [&json!(null), &json!(null), &json!("deny"), &json!(null), &json!("deny"), &json!("deny")],
            "{out}"
        );
        assert!(answers[4]["reason"].as_str().unwrap().contains("supervisor"), "{out}");
        let rows = lab.rows();
        assert!(rows.iter().all(|row| row["callId"] != "3"), "who shows no token gets no row: {rows:#?}");
        let of = |id: &str, decision: &str| rows.iter().any(|row| row["callId"] == id && row["decision"] == decision);
        assert!(of("1", "APPROVED") && of("1", "COMPLETED") && of("2", "DENIED"), "{rows:#?}");
        let report = lab.report();
        assert_eq!(report["verified"], true, "{report:#}");
        assert!(!lab.place.folder.join("state/sessions/the-clients").exists(), "one session");
    }
}

/// Processes of which a word of the command line is `marker`.
fn alive(marker: &str) -> usize {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())).count()
}

#[test]
fn a_supervisor_that_is_killed_leaves_nothing() {
    let lab = Lab::new("run-killed", &policy());
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
    let (marker, before) = (format!("7{}", std::process::id()), mounts());
    let script = lab.script(&format!("(setsid sleep {marker} &); echo there; sleep {marker}"));
    let mut child = lab.command(&["sh", &script]).stdin(Stdio::null()).spawn().unwrap();
    let mut there = [0; 6];
    child.stdout.take().unwrap().read_exact(&mut there).unwrap();
    let until = |count: usize| {
        let start = Instant::now();
        while alive(&marker) != count {
            assert!(start.elapsed() < Duration::from_secs(5), "{} processes, not {count}", alive(&marker));
            sleep(Duration::from_millis(5));
        }
    };
    until(2);
    child.kill().unwrap();
    child.wait().unwrap();
    until(0);
    assert_eq!(mounts(), before);
    let phase = lab.phase("sandbox");
    assert_eq!(phase["outcome"], "failed", "what was granted and has no row is told: {phase}");
    // The next one removes what was kept for it, and runs.
    let (_, out, err) = lab.run(&["echo", "next"]);
    assert_eq!(out, "next\n", "{err}");
    assert_eq!(fs::read_dir(lab.place.folder.join("state/runs")).unwrap().count(), 1);
    let left: Vec<_> = fs::read_dir(lab.repository()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name != ".envrc" && name != ".mcp.json"), "{left:?}");
}

/// As an ordinary user, where the tests are root's.
#[test]
fn an_ordinary_user_runs_as_root_does() {
    let lab = Lab::new("run-user", &policy());
    let script = lab.script("id -u; cat .e*; echo made > made; exit 3");
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        assert_eq!(lab.run(&["sh", &script]).0, Some(3));
        return;
    }
    const USER: &str = "65532";
    let chown = Command::new("chown").args(["-R", USER]).arg(&lab.place.folder).status().unwrap();
    assert!(chown.success());
    let plain = lab.command(&["sh", &script]);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(lab.repository()).env_clear();
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap());
    }
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(3), "{text}");
    assert!(text.starts_with(USER) && !text.contains("secret"), "{text}");
    assert_eq!(fs::read_to_string(lab.repository().join("made")).unwrap(), "made\n");
    assert_eq!(lab.report()["verified"], true, "{:#}", lab.report());
}

/// What runs on a terminal: it says what size that has, and when it is interrupted.
const ON_A_TERMINAL: &str = r#"
import os, signal, sys, time
def say(text):
    os.write(1, text.encode() + b"\n")
def size(*_):
    found = os.get_terminal_size(0)
    say(f"size {found.lines} {found.columns}")
def interrupted(*_):
    say("interrupted")
    sys.exit(9)
signal.signal(signal.SIGWINCH, size)
signal.signal(signal.SIGINT, interrupted)
say("there")
while True:
    time.sleep(0.05)
"#;

/// A terminal, a shell on it that has one job, and somebody who types.
const AT_A_TERMINAL: &str = r#"
import fcntl, os, pty, select, signal, struct, sys, termios, time
shell, terminal = pty.fork()
if shell == 0:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(sys.argv[1], sys.argv[1:])
    _, status = os.waitpid(job, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    print("stopped", os.WIFSTOPPED(status), flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
    _, status = os.waitpid(job, 0)
    os.tcsetpgrp(0, os.getpgrp())
    print("code", os.WEXITSTATUS(status), flush=True)
    os._exit(0)
seen = b""
def see(words):
    global seen
    end = time.time() + 20
    while words not in seen:
        assert time.time() < end, (words, seen)
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 4096)
    seen = seen.split(words, 1)[1]
def resize(rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
see(b"there")
resize(33, 77)
see(b"size 33 77")
os.write(terminal, b"\x1a")
see(b"stopped True")
os.write(terminal, b"\n")
time.sleep(0.3)
resize(34, 78)
see(b"size 34 78")
os.write(terminal, b"\x03")
see(b"interrupted")
see(b"writ: 0 calls, 0 refused connections; `writ verify run-")
see(b"code 9")
os.waitpid(shell, 0)
print("as without")
"#;

#[test]
fn a_terminal_works_as_without() {
    let lab = Lab::new("run-terminal", &policy());
    let script = lab.script(ON_A_TERMINAL);
    let plain = lab.command(&["python3", &script]);
    let mut command = Command::new("python3");
    command.arg("-c").arg(AT_A_TERMINAL).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(lab.repository()).env_clear();
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap());
    }
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(ran.stdout, b"as without\n", "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(lab.report()["verified"], true, "{:#}", lab.report());
}

/// Git runs programs that a repository's settings name, and the supervisor asks git outside: it asks about no repository that an agent
/// made, whatever an agent says of where it works.
#[test]
fn repositories_that_an_agent_made_are_not_asked_about() {
    let lab = Lab::new("run-git", &policy());
    let escaped = lab.place.folder.join("escaped");
    let writ = client::binary();
    let event = |event: &str, cwd: &Path, agent: &str| {
        let payload = json!({"event": event, "session": "s", "cwd": cwd, "agent": {"id": agent}, "text": "DONE"});
        format!("printf '%s' '{payload}' | {} hook --client generic\n", writ.display())
    };
    let (top, inside) = (lab.repository(), lab.repository().join("sub"));
    let script = format!(
        "set -e; git init -q sub; cd sub; echo '*.t filter=e' > .gitattributes; echo 1 > a.t; git add -A\n\
         git -c user.email=a@b -c user.name=a commit -qm x; git config filter.e.clean 'touch {escaped}; cat'; echo 2 > a.t\n\
         cd ..; git add sub 2> hints; cp -r .git evil; git config -f evil/config filter.e.clean 'touch {escaped}; cat'\n\
         echo '*.q filter=e' > .gitattributes; echo 1 > b.q; git add b.q; echo 2 > b.q; (echo \"$PWD/evil\" > .git/commondir) || true\n{}{}{}{}",
        event("subagent-start", &top, "one"),
        event("subagent-start", &inside, "two"),
        event("subagent-stop", &top, "one"),
        event("subagent-stop", &inside, "two"),
        escaped = escaped.display(),
    );
    let script = lab.script(&script);
    let (code, _, err) = lab.run(&["sh", &script]);
    assert_eq!(code, Some(0), "{err}");
    assert!(lab.rows().iter().any(|row| row["detail"]["event"] == "subagent-start"), "{:#?}", lab.rows());
    assert!(!escaped.exists());
    let asked = Command::new("git").args(["status", "--short"]).current_dir(&inside).output().unwrap();
    assert!(!escaped.exists(), "{asked:?}");
    // The trap was one: whoever asks git plainly steps into it.
    fs::rename(inside.join(".git/config.set-aside"), inside.join(".git/config")).unwrap();
    let asked = Command::new("git").args(["status", "--short"]).current_dir(&inside).output().unwrap();
    assert!(escaped.exists(), "{asked:?}");
}

/// A folder on a standard stream would lead past what is masked.
#[test]
fn a_folder_is_no_stream() {
    let lab = Lab::new("run-folder-stream", &policy());
    let folder = fs::File::open(lab.repository()).unwrap();
    let ran = lab.command(&["cat"]).stdin(folder).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.code() == Some(125) && ran.stdout.is_empty() && err.contains("standard input is a folder"),
        "{err}"
    );
}

/// What comes in on standard input goes to the command as it is.
#[test]
fn streams_are_the_commands_own() {
    let lab = Lab::new("run-streams", &policy());
    let mut child = lab.command(&["cat"]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let data: Vec<u8> = (0..3_000_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sent = data.clone();
    let feeding = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    assert!(output.stdout == data && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder that is moved into place brings what runs later, as files do that are written there.
#[test]
fn what_is_moved_into_place_runs_later() {
    let lab = Lab::new("run-moved", &policy());
    let script = lab.script(
        "mkdir -p a/workflows b src/pkg; echo evil > a/workflows/ci.yml; mv a .github\n\
         echo all: > b/Makefile; echo {} > b/x.code-workspace; echo x > b/notes.txt; mv b src/pkg/sub; echo x > AGENTS.md\n",
    );
    let (code, _, err) = lab.run(&["sh", &script]);
    assert_eq!(code, Some(0), "{err}");
    let rows = lab.rows();
    let later = rows.iter().find_map(|row| row["detail"].get("later")).unwrap_or_else(|| panic!("{rows:#?}"));
    let first = later["first"].as_array().unwrap().iter();
    let names: Vec<&str> = first.map(|one| one[0].as_str().unwrap().split("/repository/").nth(1).unwrap()).collect();
    for name in [".github/workflows/ci.yml", "src/pkg/sub/Makefile", "src/pkg/sub/x.code-workspace", "AGENTS.md"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.ends_with("notes.txt")), "{names:?}");
}
