//! `writ run --learn`: the policy for what a command did lets it do that again, and no more.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use workplace::Workplace;

/// Whom an ordinary user's commands are run as, where the tests are root's.
const USER: &str = "65532";

struct Lab {
    place: Workplace,
    /// Whether everything is an ordinary user's.
    user: bool,
    server: u16,
}

impl Lab {
    /// A repository that no policy governs, and a server on loopback.
    fn new(name: &str, user: bool) -> Self {
        let place = Workplace::new(name);
        let lab = Self { place, user, server: serve() };
        let repository = lab.repository();
        fs::remove_file(repository.join(".aflock")).unwrap();
        fs::write(repository.join(".env"), "KEY=secret\n").unwrap();
        for folder in ["docs", "deep/er", "../outside"] {
            fs::create_dir_all(repository.join(folder)).unwrap();
        }
        fs::write(repository.join("main.py"), "open('made.txt', 'w').write(open('src/data').read())\n").unwrap();
        for file in
            ["src/data", "src/other", "docs/one", "docs/two", "deep/er/file", "../outside/read", "../outside/not"]
        {
            fs::write(repository.join(file), format!("{file}\n")).unwrap();
        }
        let outside = lab.place.folder.join("outside");
        lab.script("", &outside);
        fs::write(lab.place.folder.join(".gitconfig"), "[user]\nname = a\nemail = a@b\n[safe]\ndirectory = *\n")
            .unwrap();
        assert!(lab.git(&["add", "main.py", "src", "docs"]) && lab.git(&["commit", "-qm", "first"]));
        lab.hand_over();
        lab
    }

    fn script(&self, more: &str, outside: &Path) {
        let script = format!(
            "set -e\npython3 main.py\ncat {}/read\ngit add made.txt\ngit commit -qm made\ncurl -sS http://127.0.0.1:{}/\n{more}\n",
            outside.display(),
            self.server
        );
        fs::write(self.repository().join("job.sh"), script).unwrap();
    }

    /// As it was before the run.
    fn reset(&self) {
        assert!(self.git(&["reset", "-q", "--hard", "HEAD~1"]));
        self.hand_over();
    }

    fn hand_over(&self) {
        if self.user && is_root() {
            assert!(Command::new("chown").args(["-R", USER]).arg(&self.place.folder).status().unwrap().success());
        }
    }

    fn repository(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    fn git(&self, words: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.args(words).current_dir(self.repository()).env("HOME", &self.place.folder).status().unwrap().success()
    }

    fn writ(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let mut plain = self.place.command(words);
        plain.env("PATH", std::env::var_os("PATH").unwrap());
        let mut command = if self.user && is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
            command.arg(plain.get_program()).args(plain.get_args()).current_dir(self.repository()).env_clear();
            for (name, value) in plain.get_envs() {
                command.env(name, value.unwrap());
            }
            command
        } else {
            plain
        };
        let ran = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ran.status.code(), text(ran.stdout), text(ran.stderr))
    }

    /// Learns of a command: the policy, what it said, and what Writ said.
    fn learn(&self, words: &[&str]) -> (Value, String, String) {
        let file = self.place.folder.join("learnt.json");
        fs::remove_file(&file).ok();
        let (code, out, err) = self.writ(&[&["run", "--learn", "-o", file.to_str().unwrap(), "--"], words].concat());
        assert_eq!(code, Some(0), "{out}{err}");
        let (code, out_of_check, _) = self.writ(&["policy", "check", file.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{out_of_check}");
        (serde_json::from_slice(&fs::read(&file).unwrap()).unwrap(), out, err)
    }

    fn govern(&self, policy: &Value) {
        fs::write(self.repository().join(".aflock"), policy.to_string()).unwrap();
        self.hand_over();
    }

    fn report(&self) -> Value {
        serde_json::from_slice(&self.place.writ(&["verify", "--format", "json"]).stdout).unwrap()
    }

    fn rows(&self) -> Vec<Value> {
        let shown = self.place.writ(&["session", "show", "--format", "json"]);
        serde_json::from_slice::<Value>(&shown.stdout).unwrap().as_array().cloned().unwrap()
    }

    fn event(&self, name: &str) -> Value {
        self.rows().into_iter().find(|row| row["detail"]["event"] == name).unwrap_or_default()["detail"].clone()
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// Says hello to everybody, until the test ends.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _request = stream.read(&mut [0; 4096]);
            let _answer = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
        }
    });
    port
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Learns, runs the same under what was learnt, and then something else.
fn learns(lab: &Lab) {
    let (policy, out, err) = lab.learn(&["sh", "job.sh"]);
    assert!(out.ends_with("hello\n") && out.contains("outside/read"), "{out}{err}");
    assert!(err.contains("not observed"), "{err}");
    let outside = lab.place.folder.join("outside");
    let allow = texts(&policy["files"]["allow"]);
    assert!(allow.len() <= 40 && !allow.contains(&"**"), "{policy:#}");
    assert!(!policy.to_string().contains("deep") && !policy.to_string().contains("outside/not"), "{policy:#}");
    let read_only = texts(&policy["files"]["readOnly"]);
    for pattern in ["job.sh", "main.py", "src/**", "docs/**", "~/outside/read"] {
        assert!(read_only.contains(&pattern), "{pattern}: {policy:#}");
    }
    assert!(texts(&policy["files"]["deny"]).contains(&"**/.env"), "{policy:#}");
    assert_eq!(policy["domains"]["allow"], json!([]), "{policy:#}");
    assert_eq!(policy["enforce"], json!({"calls": true, "network": {"loopback": [lab.server]}}));
    let report = lab.report();
    assert_eq!(report["verified"], true, "{report:#}");
    assert!(report.to_string().contains("a policy was learnt from it: sha256:"), "{report:#}");
    let row = lab.event("policy-learnt");
    assert!(row["paths"].as_u64().unwrap() > 5 && row["hosts"] == 1, "{row}");
    // The same again is the same.
    lab.reset();
    let (again, ..) = lab.learn(&["sh", "job.sh"]);
    assert_eq!(again, policy);
    // Under it the same runs, and is refused nothing.
    lab.reset();
    lab.govern(&policy);
    let (code, under, err) = lab.writ(&["run", "--", "sh", "job.sh"]);
    assert_eq!((code, &under), (Some(0), &out), "{err}");
    let row = lab.event("confined");
    assert!(row["files"].is_null() && row["refused"] == 0 && row["connections"] == 1, "{row}");
    assert_eq!(lab.report()["verified"], true, "{:#}", lab.report());
    // One file more is refused, and one host.
    for (more, word) in [("cat ../outside/not", "outside/not"), ("cat deep/er/file", "deep/er"), ("cat .env", ".env")] {
        lab.script(&format!("echo more > made.txt; {more}"), &outside);
        fs::write(lab.repository().join("job.sh"), format!("{more}\n")).unwrap();
        let (code, out, err) = lab.writ(&["run", "--", "sh", "job.sh"]);
        assert!(
            code != Some(0) && out.is_empty() && err.contains("denied to open") && err.contains(word),
            "{more}: {err}"
        );
    }
    fs::write(lab.repository().join("job.sh"), "echo x > src/data; curl -fsS -m 5 http://other.example/\n").unwrap();
    let (code, _, err) = lab.writ(&["run", "--", "sh", "job.sh"]);
    assert!(code != Some(0) && err.contains("denied to change `src/data` (/files/readOnly"), "{err}");
    assert!(err.contains("other.example"), "{err}");
}

#[test]
fn what_was_learnt_lets_the_same_run() {
    learns(&Lab::new("learn", false));
}

#[test]
fn an_ordinary_user_learns_as_root_does() {
    learns(&Lab::new("learn-user", true));
}

#[test]
fn what_governs_stays_and_is_held() {
    let lab = Lab::new("learn-governed", false);
    let policy = json!({"version": "1.0", "name": "there", "files": {"deny": ["**/.env"], "readOnly": ["docs/**"]}});
    lab.govern(&policy);
    // No file is written over, whatever it is.
    let (code, _, err) = lab.writ(&["run", "--learn", "-o", ".aflock", "--", "true"]);
    assert!(code == Some(125) && err.contains("may govern"), "{err}");
    assert_eq!(fs::read_to_string(lab.repository().join(".aflock")).unwrap(), policy.to_string());
    // What it forbids is refused, and not learnt.
    let script = "cat .env docs/one; echo x > docs/one; cat src/data; echo new > src/new; true";
    fs::write(lab.repository().join("job.sh"), script).unwrap();
    let (learnt, out, err) = lab.learn(&["sh", "job.sh"]);
    assert!(out.contains("docs/one") && out.contains("src/data") && !out.contains("secret"), "{out}");
    assert!(err.contains("2 uses were refused") && err.contains("hosts were not observed"), "{err}");
    assert_eq!(texts(&learnt["files"]["allow"]), ["docs/one", "job.sh", "src/*"], "{learnt:#}");
    assert_eq!(texts(&learnt["files"]["readOnly"]), ["docs/one", "job.sh", "src/data"], "{learnt:#}");
    assert!(learnt["domains"].is_null() && texts(&learnt["files"]["deny"]).contains(&"**/.env"), "{learnt:#}");
    // Without a file to write, it is printed last.
    fs::write(lab.repository().join("job.sh"), "echo out").unwrap();
    let (_, out, _) = lab.writ(&["run", "--learn", "--", "sh", "job.sh"]);
    let policy = out.strip_prefix("out\n").unwrap();
    assert_eq!(serde_json::from_str::<Value>(policy).unwrap()["files"]["allow"], json!(["job.sh"]));
}

#[test]
fn many_files_become_their_folders() {
    let lab = Lab::new("learn-many", false);
    for folder in 0..60 {
        let folder = lab.repository().join(format!("many/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..10 {
            fs::write(folder.join(file.to_string()), "x").unwrap();
        }
    }
    fs::create_dir(lab.repository().join("odd [x]")).unwrap();
    fs::write(lab.repository().join("odd [x]/{a,b}!"), "odd").unwrap();
    let script = "for i in $(seq 0 59); do cat many/$i/3; done; for i in $(seq 400); do echo > src/n$i; done; mkdir new; \
                  echo > new/file; cat 'odd [x]/{a,b}!' .env; rm -r new; mv docs/one docs/three";
    fs::write(lab.repository().join("job.sh"), script).unwrap();
    let (policy, ..) = lab.learn(&["sh", "job.sh"]);
    let allow = texts(&policy["files"]["allow"]);
    for pattern in ["many/**", "src/**", "docs/*", r"odd \[x\]/\{a,b\}\!"] {
        assert!(allow.contains(&pattern), "{pattern}: {policy:#}");
    }
    assert!(texts(&policy["files"]["readOnly"]).contains(&"many/**"), "{policy:#}");
    assert!(!texts(&policy["files"]["deny"]).contains(&"**/.env"), "what was read is not denied: {policy:#}");
    lab.govern(&policy);
    fs::rename(lab.repository().join("docs/three"), lab.repository().join("docs/one")).unwrap();
    let (code, _, err) = lab.writ(&["run", "--", "sh", "job.sh"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(lab.event("confined")["files"].is_null(), "{}", lab.event("confined"));
}

/// Git works in a folder of which everything was only read, for root too.
#[test]
fn a_folder_that_is_only_read_stays_gits() {
    let lab = Lab::new("learn-status", false);
    fs::remove_dir_all(lab.repository().join("deep")).unwrap();
    let script = "cat main.py src/* docs/* .env job.sh; git status --short; git log --oneline";
    fs::write(lab.repository().join("job.sh"), script).unwrap();
    let (policy, out, _) = lab.learn(&["sh", "job.sh"]);
    assert_eq!(policy["files"]["allow"], json!(["**"]), "{policy:#}");
    let read_only = texts(&policy["files"]["readOnly"]);
    assert!(["src/**", "docs/**", "main.py"].iter().all(|pattern| read_only.contains(pattern)), "{policy:#}");
    lab.govern(&policy);
    let (code, under, err) = lab.writ(&["run", "--", "sh", "job.sh"]);
    assert_eq!((code, under.replace("?? .aflock\n", "")), (Some(0), out), "{err}");
}
