//! Names that are kept while nothing is there, and files that come and go between calls: held in every call, whatever happened since the
//! last; nothing is left of that in the repository.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::Lab;
use serde_json::{Value, json};

const WHO: [bool; 2] = [false, true];

fn policy() -> Value {
    json!({"version": "1.0", "name": "names", "enforce": "calls", "files": {"deny": ["**/.env", "**/*.key"]}})
}

fn lab(name: &str, user: bool) -> Lab {
    Lab::of(name, &policy(), user, |lab| {
        let made = Command::new("git").args(["init", "-q"]).current_dir(lab.repository()).status().unwrap();
        assert!(made.success());
    })
}

fn said(lab: &Lab, line: &str) -> String {
    lab.run(line).1
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Lays a script out, which no reading tells anything of, and gives the line that runs it.
fn script(lab: &Lab, name: &str, text: &str) -> String {
    fs::write(lab.repository().join("src").join(name), text).unwrap();
    format!("sh src/{name}")
}

/// Makes what clients obey, says what it could make, and that it is over.
const MAKES: &str = "for f in .mcp.json .envrc; do echo x > $f && echo ESCAPED $f; done
mkdir -p .claude .vscode; for f in .claude/settings.json .vscode/tasks.json; do echo x > $f && echo ESCAPED $f; done
echo ../src > .git/commondir && echo ESCAPED commondir; mv .claude c2 && echo ESCAPED c2
rm -rf .vscode; mkdir .vscode && echo ESCAPED .vscode";

fn wait(what: &str, until: impl Fn() -> bool) {
    let start = Instant::now();
    while !until() {
        assert!(start.elapsed() < Duration::from_secs(15), "{what}");
        sleep(Duration::from_millis(5));
    }
}

fn end(lab: &Lab, before: &BTreeSet<String>, own: &[&str]) {
    lab.place.answer(&lab.place.payload("SessionEnd", r#","reason":"other""#));
    let more: BTreeSet<String> = before.iter().cloned().chain(own.iter().map(|name| (*name).to_owned())).collect();
    wait("names are left", || names(&lab.repository()) == more);
}

#[test]
fn what_a_call_has_left_running_makes_nothing_that_is_kept() {
    for user in WHO {
        let lab = lab("names-left", user);
        let before = names(&lab.repository());
        let line =
            script(&lab, "late", &format!("sleep 0.7\n{{ {MAKES}\n}} > src/said 2>/dev/null\necho done > src/over"));
        lab.run(&format!("{line} >/dev/null 2>&1 &"));
        wait("it does not end", || lab.repository().join("src/over").exists());
        assert_eq!(fs::read_to_string(lab.repository().join("src/said")).unwrap(), "", "user {user}");
        // Files go with the last process that they are kept from; folders stay a while.
        wait("files are left", || lab.repository().join(".mcp.json").symlink_metadata().is_err());
        assert!(fs::read_dir(lab.repository().join(".claude")).is_ok_and(|entries| entries.count() == 0));
        end(&lab, &before, &[]);
    }
}

#[test]
fn calls_at_once_keep_names_for_each_other() {
    for user in WHO {
        let lab = lab("names-at-once", user);
        let before = names(&lab.repository());
        let long = script(&lab, "long", &format!("sleep 0.8\n{MAKES}"));
        // The first ends while the others run, which have found what it keeps.
        let calls = ["sleep 0.3", &long, &long].map(|line| {
            let (_, mut shell) = lab.shell(line);
            let call = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            sleep(Duration::from_millis(100));
            call
        });
        for call in calls {
            let said = String::from_utf8(call.wait_with_output().unwrap().stdout).unwrap();
            assert_eq!(said, "", "user {user}");
        }
        end(&lab, &before, &[]);
    }
}

/// A file that was removed and made anew has lost its mount; one that came since has none; one whose folder was moved is elsewhere.
#[test]
fn what_comes_and_goes_between_calls_is_held_in_the_next() {
    for user in WHO {
        let lab = lab("names-between", user);
        let before = names(&lab.repository());
        let at = |name: &str| lab.repository().join(name);
        let show = script(&lab, "show", "cat .env sub/.env sub/a.key moved/.env moved/a.key other/.env; true");
        fs::write(at(".env"), "CANARY\n").unwrap();
        assert!(!said(&lab, &show).contains("CANARY"));
        fs::remove_file(at(".env")).unwrap();
        fs::write(at(".env"), "CANARY\n").unwrap();
        assert!(!said(&lab, &show).contains("CANARY"), "removed and made anew");
        fs::create_dir(at("sub")).unwrap();
        for name in ["sub/.env", "sub/a.key"] {
            fs::write(at(name), "CANARY\n").unwrap();
        }
        assert!(!said(&lab, &show).contains("CANARY"), "come since");
        fs::rename(at("sub"), at("moved")).unwrap();
        assert!(!said(&lab, &show).contains("CANARY"), "moved with its folder");
        fs::remove_file(at(".env")).unwrap();
        std::os::unix::fs::symlink("moved/.env", at(".env")).unwrap();
        fs::create_dir(at("other")).unwrap();
        std::os::unix::fs::symlink("../moved/a.key", at("other/.env")).unwrap();
        assert!(!said(&lab, &show).contains("CANARY"), "by a link");
        // The control: what is not denied is shown.
        fs::write(at("plain"), "CANARY\n").unwrap();
        let plain = script(&lab, "plain", "cat plain");
        assert!(said(&lab, &plain).contains("CANARY"));
        end(&lab, &before, &["moved", "other", "plain", ".env"]);
    }
}

/// What somebody puts into a folder that only keeps its name is theirs: calls see it, none changes it, and it stays.
#[test]
fn a_folder_that_keeps_a_name_may_be_used() {
    for user in WHO {
        let lab = lab("names-used", user);
        let before = names(&lab.repository());
        assert_eq!(said(&lab, "echo one"), "one\n");
        let folder = lab.repository().join(".vscode");
        wait("it does not stay", || folder.is_dir());
        fs::write(folder.join("tasks.json"), "theirs\n").unwrap();
        let tries = script(
            &lab,
            "tries",
            "cat .vscode/tasks.json; echo x > .vscode/tasks.json; rm -rf .vscode; mv .vscode v2; true",
        );
        for _ in 0..2 {
            assert!(said(&lab, &tries).starts_with("theirs\n"), "user {user}");
            assert_eq!(fs::read_to_string(folder.join("tasks.json")).unwrap(), "theirs\n");
        }
        end(&lab, &before, &[".vscode"]);
    }
}

#[test]
fn a_keeper_that_is_killed_between_calls_leaves_nothing_for_long() {
    for user in WHO {
        let lab = lab("names-killed", user);
        let before = names(&lab.repository());
        let makes = script(&lab, "makes", MAKES);
        for _ in 0..3 {
            assert!(!said(&lab, &makes).contains("ESCAPED"), "user {user}");
            let keepers = keepers(&lab);
            assert!(!keepers.is_empty());
            for pid in keepers {
                Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
            }
        }
        assert!(!said(&lab, &makes).contains("ESCAPED"), "user {user}");
        end(&lab, &before, &[]);
    }
}

/// The processes that hold what this lab's calls share.
fn keepers(lab: &Lab) -> Vec<u32> {
    let state = lab.place.folder.join("state").to_string_lossy().into_owned();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: u32, name: &str, part: &str| {
        let text = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(part)
    };
    all.filter(|pid| has(*pid, "cmdline", "\0keep\0") && has(*pid, "environ", &state)).collect()
}
