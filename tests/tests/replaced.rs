//! Protected files that somebody outside replaces while a command runs: the new ones are protected as the old ones were.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::Lab;
use serde_json::{Value, json};
use workplace::Workplace;

/// Waits for the file `go`, then tries to write and to read what was replaced.
const SCRIPT: &str = "touch started\nwhile [ ! -e go ]; do sleep 0.05; done\nsleep 0.3\n\
                      echo evil >> x.lock; echo evil >> .git/config; echo evil >> .aflock; cat .env; echo fine > src/new\n";

/// As whoever owns the old one does it.
fn replace(path: &Path, text: &str) {
    let (new, old) = (path.with_extension("new"), fs::metadata(path).unwrap());
    fs::write(&new, text).unwrap();
    chown(&new, Some(old.uid()), Some(old.gid())).unwrap();
    fs::rename(&new, path).unwrap();
}

fn until(path: &Path) {
    let end = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < end, "{} does not come", path.display());
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_is_replaced_is_protected_again() {
    is_protected_again("replaced", false);
}

/// Nobody but root may look into each process.
#[test]
fn for_an_ordinary_user_too() {
    is_protected_again("replaced-user", true);
}

fn is_protected_again(name: &str, user: bool) {
    let mut place = Workplace::new(name);
    let folder = place.folder.join("repository");
    let at = |name: &str| folder.join(name);
    let policy =
        json!({"version": "1.0", "name": "r", "files": {"deny": ["**/.env"], "readOnly": ["x.lock"]}}).to_string();
    for (name, text) in [(".aflock", policy.as_str()), ("x.lock", "one\n"), (".env", "K=first\n"), ("t.sh", SCRIPT)] {
        fs::write(at(name), text).unwrap();
    }
    let config = fs::read_to_string(at(".git/config")).unwrap();
    if user {
        place.give();
    }
    let mut command = place.command(&["run", "--", "sh", "./t.sh"]);
    command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
    let child = command.spawn().unwrap();
    until(&at("started"));
    replace(&at("x.lock"), "two\n");
    replace(&at(".git/config"), &format!("{config}[user]\n\tname = somebody\n"));
    replace(&at(".aflock"), &policy);
    replace(&at(".env"), "K=second\n");
    fs::write(at("go"), "").unwrap();
    let ran = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let read = |name: &str| fs::read_to_string(at(name)).unwrap();
    assert_eq!((read("x.lock").as_str(), read("src/new").as_str()), ("two\n", "fine\n"), "{err}");
    assert!(read(".git/config").ends_with("somebody\n") && read(".aflock") == policy, "{err}");
    assert!(!out.contains("second") && !out.contains("first"), "{out}");
    assert!(err.contains("was replaced from outside while this ran"), "{err}");
    let report: Value = serde_json::from_slice(&place.writ(&["verify", "--format", "json"]).stdout).unwrap();
    let phases = report["phases"].as_array().unwrap();
    let sandbox = phases.iter().find(|phase| phase["name"] == "sandbox").unwrap();
    assert!(sandbox["summary"].as_str().unwrap().contains("replaced from outside"), "{report:#}");
}

/// As soon as a call begins, and while it is made ready: however early a protected file is replaced, the new one is found to be bare.
#[test]
fn what_is_replaced_as_a_call_begins_is_protected_too() {
    let policy = json!({"version": "1.0", "name": "r", "enforce": "calls", "files": {"deny": ["**/.env"], "readOnly": ["x.lock"]}});
    let lab = Lab::new("replaced-early", &policy, &[]);
    let at = |name: &str| lab.repository().join(name);
    fs::create_dir_all(at("src")).unwrap();
    // The line itself names neither.
    fs::write(at("src/names"), ".env\nx.lock\n").unwrap();
    fs::write(at(".env"), "K=first\n").unwrap();
    fs::write(at("x.lock"), "one\n").unwrap();
    let line = "touch src/go; sleep 0.1; for f in $(cat src/names); do cat $f; echo evil >> $f; done 2>/dev/null; true";
    assert!(lab.run(line).1.starts_with("one\nwrit: denied"));
    for wait in 0..16 {
        drop(fs::remove_file(at("src/go")));
        let (_, mut shell) = lab.shell(line);
        let running = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        if wait < 8 {
            // While it is made ready.
            sleep(Duration::from_millis(2 * wait));
        } else {
            until(&at("src/go"));
            sleep(Duration::from_millis(wait - 8));
        }
        replace(&at(".env"), "K=second\n");
        replace(&at("x.lock"), "two\n");
        let said = String::from_utf8(running.wait_with_output().unwrap().stdout).unwrap();
        assert!(!said.contains("K="), "{wait}: {said}");
        assert_eq!(fs::read_to_string(at("x.lock")).unwrap(), "two\n", "{wait}");
    }
}
