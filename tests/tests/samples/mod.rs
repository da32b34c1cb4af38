//! Sample repositories, worked in as an agent's client does it: without Writ, and in its sandboxes.

pub mod repositories;
pub mod servers;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// The user who works there where the tests are root's and an ordinary one is meant.
const USER: &str = "65532";
/// The only session.
const SESSION: &str = "everyday";

/// Folders whose names are never twice the same.
const UNLIKE: [&str; 3] = [".git/objects", "target", ".venv"];

/// Names that are held while a call runs, and seen by who lists the folder.
const HELD: [&str; 20] = [
    ".aflock.lock",
    ".aflock.signed",
    "policy.aflock.signed",
    ".aflock.json.signed",
    ".claude",
    ".mcp.json",
    ".codex",
    ".gemini",
    ".qwen",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".cursor",
    ".vscode",
    ".idea",
    ".zed",
    ".envrc",
    ".mise.toml",
    "mise.toml",
    ".gitignore",
];

/// A repository, and what is done in it.
pub struct Sample {
    pub name: &'static str,
    /// Fills it. It is given the place, and gives the ports of the host's loopback that are needed.
    pub make: fn(&Place) -> Vec<u16>,
    /// Lines of a shell, one call each. `PORT0` is the first of the ports.
    pub lines: &'static [&'static str],
}

/// A home with a repository in it.
pub struct Place {
    pub home: PathBuf,
    user: bool,
    ports: Vec<u16>,
    /// The folder that the next line begins in.
    folder: PathBuf,
    calls: u32,
}

/// What came of a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Said {
    line: &'static str,
    code: Option<i32>,
    folder: String,
    out: String,
    error: String,
}

impl fmt::Display for Said {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, code, folder, out, error } = self;
        write!(to, "`{line}` {code:?} in {folder}\n    {out:?}\n    {error:?}")
    }
}

/// What came of a sample: what its lines said, and what lies in its repository afterwards.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub said: Vec<Said>,
    pub names: BTreeMap<String, String>,
}

impl Place {
    pub fn repository(&self) -> PathBuf {
        self.home.join("repository")
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program as who works here, with the variables of their shell.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(if self.user { "setpriv".as_ref() } else { program });
        if self.user {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(program);
        }
        command.current_dir(&self.folder).env_clear().env("HOME", &self.home).env("PATH", self.path());
        command.env("LANG", "C.UTF-8").env("WRIT_STATE_DIR", self.home.join("state"));
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn path(&self) -> OsString {
        let mut path = self.home.join(".rustup/toolchains/sample/bin").into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        path
    }

    /// Runs a line as the client does: the folder that it ends in is the next one's.
    fn run(&mut self, line: &'static str, text: &str) -> Said {
        let told = self.home.join("folder");
        let quoted = text.replace('\'', "'\"'\"'");
        let script = format!("true && eval '{quoted}' && pwd -P >| {}", told.display());
        let Output { status, stdout, stderr } =
            self.command(Path::new("/bin/bash")).args(["-c", &script]).output().unwrap();
        if let Ok(folder) = fs::read_to_string(&told) {
            self.folder = PathBuf::from(folder.trim_end());
        }
        let text = |bytes: &[u8]| self.normal(&String::from_utf8_lossy(bytes));
        let folder = self.normal(&self.folder.to_string_lossy());
        // A shell that Writ runs says a signal in its code, as any shell says its children's.
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Said { line, code, folder, out: text(&stdout), error: text(&stderr) }
    }

    /// Without what differs from place to place and from time to time.
    fn normal(&self, text: &str) -> String {
        let home = self.home.to_string_lossy().into_owned();
        let mut text = text.replace(&home, "HOME");
        for (number, port) in self.ports.iter().enumerate() {
            text = text.replace(&format!(":{port}"), &format!(":PORT{number}"));
        }
        let timed = |word: &str| {
            let plain = word.trim_matches(|letter: char| letter.is_ascii_punctuation());
            let number = plain.strip_suffix("ms").or_else(|| plain.strip_suffix('s')).unwrap_or("x");
            if number.parse::<f64>().is_ok() { word.replace(plain, "TIME") } else { word.to_owned() }
        };
        let is_held = |line: &str| {
            let name = line.rsplit(' ').next().unwrap_or_default().trim_matches(['"', ',', '/', '\n']);
            HELD.contains(&name.strip_prefix("./").unwrap_or(name))
                || HELD.iter().any(|held| name.strip_suffix("/.gitignore").is_some_and(|name| name.ends_with(held)))
        };
        let lines = text.split_inclusive('\n').filter(|line| !is_held(line));
        lines.flat_map(|line| line.split_inclusive([' ', '\n'])).map(|word| timed_word(word, &timed)).collect()
    }

    fn hook(&self, event: &str, members: &Value) -> Value {
        let mut payload = json!({"session_id": SESSION, "transcript_path": "/none.jsonl", "cwd": self.folder,
            "permission_mode": "default", "hook_event_name": event});
        payload.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let mut hook = self.command(&binary()).arg("hook").stdin(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let said = hook.wait_with_output().unwrap();
        serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&said.stderr)))
    }

    /// Runs a line as the client does that asks its hooks.
    fn call(&mut self, line: &'static str, text: &str) -> Said {
        self.calls += 1;
        let call = json!({"tool_name": "Bash", "tool_use_id": format!("call-{}", self.calls),
            "tool_input": {"command": text}, "tool_response": "", "error": ""});
        let answer = self.hook("PreToolUse", &call)["hookSpecificOutput"].clone();
        assert!(answer["permissionDecision"] != "ask" && answer["permissionDecision"] != "deny", "{line}: {answer}");
        let wrapped = answer["updatedInput"]["command"].as_str().unwrap_or_else(|| panic!("{line}: {answer}"));
        let said = self.run(line, wrapped);
        self.hook(if said.code == Some(0) { "PostToolUse" } else { "PostToolUseFailure" }, &call);
        said
    }

    /// Every name in the repository, with what it is.
    fn names(&self) -> BTreeMap<String, String> {
        let (mut names, mut rest) = (BTreeMap::new(), vec![self.repository()]);
        while let Some(folder) = rest.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let found = entry.path().symlink_metadata().unwrap();
                if found.is_dir() && !UNLIKE.iter().any(|name| entry.path().ends_with(name)) {
                    rest.push(entry.path());
                }
                let kind = if found.is_file() { "file" } else { "other" };
                let kind = if found.is_dir() { "folder" } else { kind };
                names.insert(
                    entry.path().strip_prefix(self.repository()).unwrap().to_string_lossy().into_owned(),
                    format!("{kind} {:o} {}", found.mode() & 0o777, if found.is_file() { found.nlink() } else { 0 }),
                );
            }
        }
        names
    }
}

fn timed_word(word: &str, timed: &dyn Fn(&str) -> String) -> String {
    let plain = word.trim_end_matches([' ', '\n']);
    timed(plain) + &word[plain.len()..]
}

/// Does a sample's work, by `policy` or without Writ.
pub fn work(sample: &Sample, policy: Option<(&str, &Value)>, user: bool) -> Outcome {
    let by = policy.map_or("plain", |(name, _)| name);
    let home = format!("everyday-{}-{by}-{}", sample.name, std::process::id());
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(home);
    fs::create_dir_all(home.join("repository")).unwrap();
    fs::write(home.join(".gitconfig"), "[user]\n\tname = A\n\temail = a@b.example\n[init]\n\tdefaultBranch = main\n")
        .unwrap();
    let mut place = Place { folder: home.join("repository"), home, user: false, ports: Vec::new(), calls: 0 };
    place.run("", "git init --quiet && echo .aflock > .git/info/exclude");
    place.ports = (sample.make)(&place);
    if let Some((_, policy)) = policy {
        let mut policy = policy.clone();
        if policy["domains"].is_object() {
            policy["enforce"] = json!({"calls": true, "network": {"loopback": place.ports}});
        }
        fs::write(place.repository().join(".aflock"), policy.to_string()).unwrap();
    } else {
        // So that both have the same names.
        fs::write(place.repository().join(".aflock"), "").unwrap();
    }
    if user {
        place.user = true;
        let chown = Command::new("chown").args(["-R", &format!("{USER}:{USER}")]).arg(&place.home).status();
        assert!(chown.unwrap().success());
    }
    let toolchain = place.home.join(".rustup/toolchains/sample");
    if sample.lines.iter().any(|line| line.contains("cargo")) {
        link_toolchain(&toolchain);
    }
    if policy.is_some() {
        place.hook("SessionStart", &json!({"source": "startup"}));
    }
    let mut said = Vec::new();
    for line in sample.lines {
        let mut text = (*line).to_owned();
        for (number, port) in place.ports.iter().enumerate() {
            text = text.replace(&format!("PORT{number}"), &port.to_string());
        }
        said.push(if policy.is_some() { place.call(line, &text) } else { place.run(line, &text) });
    }
    if policy.is_some() {
        place.hook("SessionEnd", &json!({"reason": "other"}));
        is_verified(&place);
    }
    let names = place.names();
    fs::remove_dir_all(&place.home).unwrap();
    Outcome { said, names }
}

fn is_verified(place: &Place) {
    let report = place.command(&binary()).args(["verify", SESSION, "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let phases = report["phases"].as_array().unwrap();
    let sandbox = phases.iter().find(|phase| phase["name"] == "sandbox").unwrap();
    assert_eq!(sandbox["outcome"], "passed", "{report:#}");
    assert!(phases.iter().all(|phase| phase["outcome"] != "failed"), "{report:#}");
}

/// The toolchain where a user's is, by hard links: an ordinary user cannot come to one in root's home.
fn link_toolchain(to: &Path) {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap().stdout;
    let sysroot = PathBuf::from(String::from_utf8(sysroot).unwrap().trim_end());
    fs::create_dir_all(to).unwrap();
    let from = ["bin", "lib"].map(|name| sysroot.join(name));
    let linked = Command::new("cp").arg("-al").args(&from).arg(to).stderr(Stdio::null()).status().unwrap().success();
    let copied = || Command::new("cp").arg("-a").args(&from).arg(to).status().unwrap().success();
    assert!(linked || copied(), "{}", sysroot.display());
}

pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// `$WRIT_BIN`, else the binary that cargo puts beside the tests.
fn binary() -> PathBuf {
    let beside = || std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("writ");
    let path = std::env::var_os("WRIT_BIN").map_or_else(beside, PathBuf::from);
    assert!(path.is_file(), "there is no `writ`: run `cargo build -p writ` or `cargo xtask test`");
    path
}
