//! `enforce.limits` and the host's own loopback: what a run may use up, and which of the host's ports it reaches.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lab::Lab;
use serde_json::{Value, json};

fn policy(limits: &Value) -> Value {
    json!({"version": "1.0", "name": "limits", "enforce": {"calls": true, "limits": limits}})
}

/// The group of this process that can be limited, where it is root and the machine has version 1.
fn group() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = own.lines().find_map(|line| line.split_once(":memory:"))?.1.to_owned();
    let folder = PathBuf::from(format!("/sys/fs/cgroup/memory{path}"));
    let writable = fs::OpenOptions::new().write(true).open(folder.join("cgroup.procs")).is_ok();
    writable.then_some(folder)
}

/// Groups that runs made.
fn groups(parent: &PathBuf) -> Vec<String> {
    let names = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("writ-run-")).collect()
}

const HOG: &str = "python3 -c 'x = bytearray(400 << 20); print(len(x))'";

#[test]
fn time_ends_everything_and_says_so() {
    let lab = Lab::new("limits-time", &policy(&json!({"wallTimeSeconds": 1})), &[]);
    let begun = Instant::now();
    let (code, said) = lab.run("echo begun; sleep 30 & sleep 30");
    assert_eq!(code, Some(124), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(10) && said.starts_with("begun\n"), "{said}");
    assert!(said.contains("writ: the time of 1 s is up (/enforce/limits/wallTimeSeconds)"), "{said}");
    let rows = lab.rows("confined");
    assert_eq!(rows[0]["ended"], json!({"time-up": {}}), "{rows:#?}");
    assert_eq!(rows[0]["limits"], json!({"wallTime": 1000}), "{rows:#?}");
    let phase = lab.phase("sandbox");
    assert_eq!(phase["outcome"], "passed", "{phase}");
    assert!(phase["summary"].as_str().unwrap().contains("limits 1 s of wall time"), "{phase}");
}

#[test]
fn each_process_is_limited() {
    let limits =
        json!({"cpuTimeSeconds": 1, "processMemoryMiB": 256, "processes": 60, "fileSizeMiB": 1, "openFiles": 40});
    let lab = Lab::new("limits-each", &policy(&limits), &[]);
    assert_eq!(lab.run("ulimit -n").1, "40\n");
    let (code, said) = lab.run("head -c 3000000 /dev/zero > big; stat -c %s big");
    assert!(said.contains("1048576"), "{code:?} {said}");
    let (code, said) = lab.run(HOG);
    assert!(code != Some(0) && said.contains("MemoryError"), "{code:?} {said}");
    let (code, said) = lab.run("i=0; while [ $i -lt 90 ]; do sleep 5 & i=$((i+1)); done; echo finished");
    assert!(code != Some(0) && !said.contains("finished"), "{code:?} {said}");
    let (code, _) = lab.run("while :; do :; done");
    assert!(matches!(code, Some(137 | 152)), "{code:?}");
    let rows = lab.rows("confined");
    assert_eq!(rows[0]["memory"], json!({"heldBy": "each-process", "killed": 0}), "{rows:#?}");
}

/// The memory of all processes together is a control group's, or the call does not run.
#[test]
fn the_memory_of_a_tree_is_a_groups() {
    let lab = Lab::new("limits-memory", &policy(&json!({"memoryMiB": 128})), &[]);
    let Some(parent) = group() else {
        let (_, answer) = lab.ask("echo one");
        assert_eq!(answer["permissionDecision"], "deny", "{answer}");
        assert!(answer["permissionDecisionReason"].as_str().unwrap().contains("processMemoryMiB"), "{answer}");
        return;
    };
    let (code, said) = lab.run(&format!("{HOG}; echo after $?"));
    assert!(said.contains("after 137"), "{code:?} {said}");
    assert!(
        said.contains("writ: the memory of 128 MiB is used up (/enforce/limits/memoryMiB): 1 process was"),
        "{said}"
    );
    let rows = lab.rows("confined");
    assert_eq!(rows[0]["memory"], json!({"heldBy": "group", "killed": 1}), "{rows:#?}");
    // Two halves are as much as a whole.
    let half = "python3 -c 'import time; x = bytearray(80 << 20); time.sleep(1); print(1)'";
    let (_, said) = lab.run(&format!("{half} & {half} & wait"));
    assert!(said.contains("is used up"), "{said}");
    let own = |name: &String| {
        fs::read_to_string(parent.join(name).join("memory.limit_in_bytes")).unwrap().trim() == "134217728"
    };
    assert_eq!(groups(&parent).iter().filter(|name| own(name)).count(), 0);
    // A killed Writ leaves its group, and the next run removes it.
    let (id, mut shell) = lab.shell("echo ready > /tmp/ready; sleep 60");
    let mut child = shell.spawn().unwrap();
    let ready = lab.place.session().join("tmp/ready");
    let begun = Instant::now();
    while !ready.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{id}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let left: Vec<String> = groups(&parent).into_iter().filter(own).collect();
    let [left] = left.as_slice() else { panic!("{left:?}") };
    let number = left.trim_start_matches("writ-run-");
    assert!(std::process::Command::new("kill").args(["-9", number]).status().unwrap().success());
    child.wait().unwrap();
    let (_, said) = lab.run("echo next");
    assert_eq!(said, "next\n");
    assert!(!parent.join(left).exists());
}

/// A local database, or a server that a test started: reached at the address that programs expect.
#[test]
fn ports_of_the_hosts_loopback_are_handed_in() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 4];
            stream.read_exact(&mut bytes).unwrap();
            stream.write_all(b"from outside\n").unwrap();
        }
    });
    let policy = json!({"version": "1.0", "name": "loopback", "domains": {"allow": []},
        "enforce": {"calls": true, "network": {"loopback": [port]}}});
    let lab = Lab::new("loopback", &policy, &[]);
    let talk = |port: u16| format!("exec 3<>/dev/tcp/127.0.0.1/{port} && printf ping >&3 && cat <&3");
    assert_eq!(lab.run(&talk(port)).1, "from outside\n");
    let (code, said) = lab.run(&talk(other.local_addr().unwrap().port()));
    assert!(code != Some(0) && said.contains("refused"), "{said}");
    let rows = lab.rows("connection");
    let connection = &rows[0]["connection"];
    assert_eq!((&connection["road"], &connection["port"]), (&json!("loopback"), &json!(port)), "{rows:#?}");
    assert_eq!(connection["rule"], "/enforce/network/loopback/0");
    // What is served inside is reached inside, whatever the variables say of a proxy.
    let serve = "python3 -m http.server 8099 --bind 127.0.0.1 2>/dev/null & p=$!";
    let (_, said) = lab.run(&format!("{serve}; for i in 1 2 3 4 5 6 7 8 9; do curl -sS -m 5 http://localhost:8099/.aflock && break; sleep 0.3; done; kill $p"));
    assert!(said.contains("\"loopback\""), "{said}");
    let plan = String::from_utf8(lab.writ(&["sandbox", "plan"]).stdout).unwrap();
    assert!(plan.contains(&format!("127.0.0.1:{port} is the host's")), "{plan}");
}
