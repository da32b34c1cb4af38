//! `kill -9` of whatever holds a call or a run, at any moment: nothing is left behind, and the next session works and verifies.
//!
//! `WRIT_KILLS=5000 cargo nextest run -p writ-tests --test kills_confined --no-capture` tries more than the usual number.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workplace::Workplace;

/// As many as stay below two minutes on two processors.
const KILLS: u32 = 500;
/// A session has so many, so that self-tests and keepers are hit too.
const EACH_SESSION: u32 = 20;

struct Lab {
    place: Workplace,
    calls: Cell<u32>,
    random: Cell<u64>,
    session: String,
}

impl Lab {
    fn new() -> Self {
        let place = Workplace::new("kills-confined");
        let policy = json!({"version": "1.0", "name": "killed", "enforce": "calls",
                            "files": {"deny": ["**/.env"]}, "domains": {"allow": ["a.example"]}});
        fs::write(place.folder.join("repository/.aflock"), policy.to_string()).unwrap();
        fs::write(place.folder.join("repository/.env"), "KEY=secret\n").unwrap();
        fs::create_dir(place.folder.join("temporary")).unwrap();
        Self { place, calls: Cell::new(0), random: Cell::new(0x9e37_79b9_7f4a_7c15), session: String::new() }
    }

    /// xorshift64*.
    fn below(&self, most: u64) -> u64 {
        let mut state = self.random.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.set(state);
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % most
    }

    fn repository(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.env("TMPDIR", self.place.folder.join("temporary")).env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    fn hook(&self, event: &str, members: &Value) -> Child {
        let cwd = self.repository();
        // Outside of what calls may write: there its name would be reserved as long as one of them runs.
        let transcript = self.place.folder.join("none.jsonl");
        let mut payload = json!({"session_id": self.session, "transcript_path": transcript, "cwd": cwd,
                                 "permission_mode": "default", "hook_event_name": event});
        payload.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let mut hook = self.command(&["hook"]).spawn().unwrap();
        // One that was killed does not read.
        hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap_or_default();
        hook
    }

    fn told(&self, event: &str, members: &Value) -> Value {
        serde_json::from_slice(&self.hook(event, members).wait_with_output().unwrap().stdout).unwrap()
    }

    fn call(&self, line: &str) -> Value {
        self.calls.set(self.calls.get() + 1);
        json!({"tool_name": "Bash", "tool_use_id": format!("call-{}", self.calls.get()), "tool_input": {"command": line}})
    }

    /// What the hook has the client's shell run.
    fn shell(&self, line: &str) -> (Value, Command) {
        let call = self.call(line);
        let answer = self.told("PreToolUse", &call);
        let line = answer["hookSpecificOutput"]["updatedInput"]["command"].as_str();
        let line = line.unwrap_or_else(|| panic!("{line:?}: {answer}")).to_owned();
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", &line]).current_dir(self.repository()).env_clear().stdin(Stdio::null());
        shell.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", &self.place.folder);
        shell.env("WRIT_STATE_DIR", self.place.folder.join("state")).env("TMPDIR", self.place.folder.join("temporary"));
        (call, shell)
    }

    fn begin(&mut self, number: u32) {
        if !self.session.is_empty() {
            self.told("SessionEnd", &json!({"reason": "other"}));
        }
        self.session = format!("killed-{number}");
        self.told("SessionStart", &json!({"source": "startup"}));
    }

    /// Everything that came of this test: what has its state in its environment, its folder in its arguments, and all children.
    fn processes(&self) -> BTreeSet<u32> {
        let folder = self.place.folder.to_string_lossy().into_owned();
        let mut parents = BTreeMap::new();
        let mut ours = BTreeSet::new();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
            let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
            if fields.next() == Some("Z") {
                continue;
            }
            parents.insert(pid, fields.next().unwrap().parse::<u32>().unwrap());
            let holds = |name: &str| {
                let text = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                String::from_utf8_lossy(&text).contains(&folder)
            };
            if pid != std::process::id() && (holds("environ") || holds("cmdline")) {
                ours.insert(pid);
            }
        }
        loop {
            let before = ours.len();
            let children: Vec<u32> =
                parents.iter().filter(|(_, parent)| ours.contains(parent)).map(|(pid, _)| *pid).collect();
            ours.extend(children);
            if ours.len() == before {
                return ours;
            }
        }
    }

    /// Kills one of them, whichever it is.
    fn kill(&self) {
        let all: Vec<u32> = self.processes().into_iter().collect();
        if all.is_empty() {
            return;
        }
        let victim = all[usize::try_from(self.below(all.len() as u64)).unwrap()];
        // It may have ended meanwhile.
        Command::new("kill").args(["-9", &victim.to_string()]).stderr(Stdio::null()).status().unwrap();
    }

    fn pause(&self, most: u64) {
        sleep(Duration::from_micros(self.below(most * 1000)));
    }

    fn wait(&self, mut child: Child, what: &str) {
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{what} goes on: {:?}", self.processes());
            sleep(Duration::from_millis(2));
        }
    }

    /// A hook, with the self-test where it is a session's first; a call; or a whole run.
    fn round(&self, number: u32) {
        let lines = [
            "for i in $(seq 200); do echo $i > f$i; done; rm -f f*",
            "sleep 1 & setsid sleep 1 & sleep 0.05; true",
            "ls -R /usr/lib >/dev/null",
            "bash -c 'bash -c \"sleep 0.5; true\"; true'",
        ];
        let line = lines[usize::try_from(self.below(lines.len() as u64)).unwrap()];
        match number % 5 {
            0 => {
                let hook = self.hook("PreToolUse", &self.call(line));
                self.pause(90);
                self.kill();
                self.wait(hook, "a hook");
            }
            1 => {
                let mut run = self.command(&["run", "--", "sh", "-c", line]);
                let run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
                let run = run.spawn().unwrap();
                self.pause(200);
                self.kill();
                self.wait(run, "a run");
            }
            _ => {
                let (_, mut shell) = self.shell(line);
                let shell = shell.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
                self.pause(70);
                self.kill();
                self.wait(shell, "a call");
            }
        }
    }

    /// A session of its own, as the next user has it.
    fn works(&mut self, number: u32) {
        self.begin(number);
        let (call, mut shell) = self.shell("echo works; f=.$(echo vne | rev); cat $f");
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(said.starts_with("works\n") && !said.contains("secret"), "{said}");
        let error = json!({"error": "Exit code 1", "is_interrupt": false});
        let mut result = call;
        result.as_object_mut().unwrap().extend(error.as_object().unwrap().clone());
        self.told("PostToolUseFailure", &result);
        self.told("Stop", &json!({"stop_hook_active": false}));
        let report =
            self.command(&["verify", &self.session, "--format", "json"]).stdin(Stdio::null()).output().unwrap();
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        let wrong: Vec<&Value> =
            report["phases"].as_array().unwrap().iter().filter(|phase| phase["outcome"] == "failed").collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        let sandbox = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "sandbox").unwrap();
        assert_eq!(sandbox["outcome"], "passed", "{sandbox}");
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Control groups of runs whose process is gone.
fn groups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let gone = |number: &str| !Path::new("/proc").join(number).exists();
            if name.strip_prefix("writ-run-").is_some_and(gone) {
                found.push(entry.path());
            }
            folders.push(entry.path());
        }
    }
    found
}

/// Shared memory, queues and semaphores of self-tests whose process is gone.
fn shared() -> Vec<(String, i64)> {
    let keys = |kind: &str| -> Vec<(String, i64)> {
        let table = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap();
        let keys = table.lines().filter_map(|line| line.split_whitespace().next()?.parse::<i64>().ok());
        let ours = keys.filter(|key| {
            key & !0x3f_ffff == 0x5700_0000 && !Path::new(&format!("/proc/{}", key & 0x3f_ffff)).exists()
        });
        ours.map(|key| (kind.to_owned(), key)).collect()
    };
    ["shm", "msg", "sem"].into_iter().flat_map(keys).collect()
}

#[test]
fn nothing_is_left_and_the_next_session_works() {
    let kills = std::env::var("WRIT_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let begun = Instant::now();
    let mut lab = Lab::new();
    let before = names(&lab.repository());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
    for number in 0..kills {
        if number % EACH_SESSION == 0 {
            lab.begin(number);
        }
        if number % 50 == 49 {
            lab.works(number);
            lab.begin(number + 1_000_000);
        }
        lab.round(number);
    }
    lab.works(kills + 1);
    lab.told("SessionEnd", &json!({"reason": "other"}));
    let ended = Instant::now();
    while !lab.processes().is_empty() && ended.elapsed() < Duration::from_secs(5) {
        sleep(Duration::from_millis(20));
    }
    let left: Vec<String> = lab
        .processes()
        .iter()
        .map(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default())
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count(), mounts);
    let mut after = names(&lab.repository());
    // What a killed line was about to remove is the line's.
    after.retain(|name| name.strip_prefix('f').is_none_or(|rest| rest.parse::<u32>().is_err()));
    assert_eq!(after, before);
    assert_eq!(names(&lab.place.folder.join("state/reserved")), BTreeSet::from(["lock".to_owned()]));
    assert_eq!(names(&lab.place.folder.join("temporary")), BTreeSet::new());
    assert_eq!(names(&lab.place.folder.join("state/sessions").join(&lab.session).join("tmp")), BTreeSet::new());
    assert_eq!((groups(), shared()), (Vec::new(), Vec::new()));
    println!("{kills} kills in {:?}", begun.elapsed());
}
