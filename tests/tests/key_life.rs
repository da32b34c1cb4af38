//! The life of the keys that attest: many processes at once, killed at any moment, always leave a legal registry.

#[cfg(test)]
#[expect(dead_code, reason = "no session is recorded here")]
mod workplace;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use workplace::Workplace;
use writ_core::Timestamp;
use writ_evidence::registry::{KeyState, Registry};

fn history(place: &Workplace) -> Vec<Registry> {
    let output = place.writ(&["keys", "registry", "--history"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| Registry::parse(line.as_bytes()).unwrap()).collect()
}

/// Every version follows the one before, no id ever named two keys, and every private key is its owner's alone.
fn legal(place: &Workplace) -> Vec<Registry> {
    let history = history(place);
    let mut known: HashMap<String, [u8; 32]> = HashMap::new();
    for pair in history.windows(2) {
        assert_eq!(pair[1].version(), pair[0].version() + 1);
        pair[1].may_follow(&pair[0]).unwrap();
    }
    for key in history.iter().flat_map(Registry::keys) {
        assert_eq!(*known.entry(key.id.clone()).or_insert(key.public), key.public, "{}", key.id);
    }
    for entry in fs::read_dir(place.folder.join("state/keys")).unwrap().map(Result::unwrap) {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
    history
}

#[test]
fn rotations_that_are_killed_leave_a_legal_registry() {
    let place = Workplace::new("killed-rotations");
    assert!(place.writ(&["keys", "rotate"]).status.success());
    for round in 0..24 {
        let mut running: Vec<_> = (0..3).map(|_| place.command(&["keys", "rotate"]).spawn().unwrap()).collect();
        std::thread::sleep(Duration::from_millis(round * 2));
        for child in &mut running {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    let before = legal(&place).len();
    assert!(place.writ(&["keys", "rotate"]).status.success());
    let after = legal(&place);
    assert!(after.len() > before);
    assert!(after.last().unwrap().active().is_some());
    let output = place.writ(&["evaluate", "shell", "ls", "--attest", "--attest-to", "a.json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(place.writ(&["attestation", "verify", "a.json"]).status.success());
}

#[test]
fn a_planned_rotation_happens_by_itself_and_when_it_was_planned() {
    let place = Workplace::new("planned");
    assert!(place.writ(&["keys", "rotate", "--at", "2001-01-01T00:00:00Z"]).status.code() != Some(0));
    assert!(place.writ(&["evaluate", "shell", "ls", "--attest", "--attest-to", "before.json"]).status.success());
    let at = Timestamp::from_millis(Timestamp::now().millis() + 2500).to_string();
    assert!(place.writ(&["keys", "rotate", "--at", &at]).status.success());
    let planned = history(&place).pop().unwrap();
    assert_eq!(planned.keys().iter().map(|key| key.state).collect::<Vec<_>>(), [KeyState::Active, KeyState::Pending]);
    std::thread::sleep(Duration::from_millis(2600));
    assert!(place.writ(&["evaluate", "shell", "ls", "--attest", "--attest-to", "after.json"]).status.success());
    let rotated = legal(&place).pop().unwrap();
    assert_eq!(
        rotated.keys().iter().map(|key| key.state).collect::<Vec<_>>(),
        [KeyState::Deprecated, KeyState::Active]
    );
    assert_eq!(rotated.keys()[0].deprecated_at.unwrap().to_string(), at);
    assert_eq!(rotated.keys()[1].valid_from.unwrap().to_string(), at);
    for file in ["before.json", "after.json"] {
        assert!(place.writ(&["attestation", "verify", file]).status.success(), "{file}");
    }
    let (old, new) = (rotated.keys()[0].id.clone(), rotated.keys()[1].id.clone());
    assert!(place.writ(&["keys", "retire", &new]).status.code() != Some(0), "an active key is not retired");
    assert!(place.writ(&["keys", "retire", &old]).status.success());
    assert!(place.writ(&["attestation", "verify", "before.json"]).status.success(), "a retired key's word counts");
    assert!(place.writ(&["keys", "compromise", &new]).status.success());
    assert_eq!(place.writ(&["attestation", "verify", "after.json"]).status.code(), Some(3));
    let none = place.writ(&["evaluate", "shell", "ls", "--attest"]);
    assert_eq!(none.status.code(), Some(1), "no key, no verdict that only looks attested");
    assert!(none.stdout.is_empty());
    legal(&place);
}

/// What makes an instance where there was none: the first attestation.
const FIRST: &[&str] = &["evaluate", "shell", "ls", "--attest"];

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_key_that_is_not_the_published_one_signs_nothing() {
    let place = Workplace::new("other-key");
    assert!(place.writ(&["keys", "rotate"]).status.success());
    let registry = history(&place).pop().unwrap();
    let file = |key: usize| place.folder.join(format!("state/keys/{}.pem", registry.keys()[key].id));
    let right = fs::read(file(1)).unwrap();
    fs::copy(file(0), file(1)).unwrap();
    let refused = place.writ(&["evaluate", "shell", "ls", "--attest"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(refused.stdout.is_empty());
    assert!(said(&refused).contains(&format!("{} holds another key", file(1).display())), "{}", said(&refused));
    assert!(said(&refused).contains("put the right file back"));
    fs::write(file(1), right).unwrap();
    assert!(place.writ(&["evaluate", "shell", "ls", "--attest"]).status.success());
}

#[test]
fn a_first_start_that_is_killed_is_taken_up() {
    for round in 0..16 {
        let place = Workplace::new(&format!("killed-first-{round}"));
        let mut running: Vec<_> = (0..2).map(|_| place.command(FIRST).spawn().unwrap()).collect();
        std::thread::sleep(Duration::from_millis(round * 3));
        for child in &mut running {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let output = place.writ(&["evaluate", "shell", "ls", "--attest"]);
        assert!(output.status.success(), "round {round}: {}", said(&output));
        legal(&place);
    }
    // Exactly between the key and the registry that names it.
    let place = Workplace::new("killed-between");
    assert!(place.writ(FIRST).status.success());
    let key = legal(&place).pop().unwrap().keys()[0].clone();
    emptied(&place, "DELETE FROM registry");
    assert!(place.writ(&["evaluate", "shell", "ls", "--attest"]).status.success());
    assert_eq!(legal(&place).pop().unwrap().keys()[0].public, key.public);
    // And between the registry that names it and the one that lets it sign.
    emptied(&place, "DELETE FROM registry WHERE version > 1");
    assert!(place.writ(&["evaluate", "shell", "ls", "--attest"]).status.success());
    assert_eq!(legal(&place).pop().unwrap().active().unwrap().public, key.public);
}

/// Changes the database as no command does.
fn emptied(place: &Workplace, statement: &str) {
    let database = rusqlite::Connection::open(place.folder.join("state/attestations.db")).unwrap();
    database.execute_batch(statement).unwrap();
}

#[test]
fn a_key_whose_database_is_lost_does_not_come_back() {
    let place = Workplace::new("lost-database");
    assert!(place.writ(&["keys", "rotate"]).status.success());
    let key = history(&place).pop().unwrap().active().unwrap().id.clone();
    assert!(place.writ(&["keys", "compromise", &key]).status.success());
    let state = place.folder.join("state");
    let refused = || {
        let output = place.writ(&["evaluate", "shell", "ls", "--attest"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(output.stdout.is_empty());
        let said = said(&output);
        assert!(said.contains("put the database back") && said.contains(".pem"), "{said}");
    };
    // The registry alone is gone.
    emptied(&place, "DELETE FROM registry");
    refused();
    emptied(&place, "DELETE FROM instance");
    refused();
    refused();
    for file in ["attestations.db", "attestations.db-wal", "attestations.db-shm"] {
        drop(fs::remove_file(state.join(file)));
    }
    refused();
    let serve =
        place.writ(&["serve", "--attest", "--listen", "127.0.0.1:0", "--instance", key.strip_suffix("-2").unwrap()]);
    assert_eq!(serve.status.code(), Some(1), "{}", said(&serve));
    fs::write(state.join("attestations.db"), "").unwrap();
    fs::set_permissions(state.join("attestations.db"), fs::Permissions::from_mode(0o600)).unwrap();
    refused();
    fs::rename(state.join("keys"), state.join("old-keys")).unwrap();
    assert!(place.writ(&["evaluate", "shell", "ls", "--attest"]).status.success());
}

#[test]
fn what_others_can_write_is_not_used() {
    let place = Workplace::new("writable");
    assert!(place.writ(&["evaluate", "shell", "ls", "--attest"]).status.success());
    let state = place.folder.join("state");
    for (path, mode, remedy) in [
        (state.clone(), 0o777, "chmod 700"),
        (state.join("keys"), 0o720, "chmod 700"),
        (state.join("attestations.db"), 0o602, "chmod 600"),
    ] {
        let right = path.metadata().unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let output = place.writ(&["evaluate", "shell", "ls", "--attest"]);
        assert_eq!(output.status.code(), Some(1), "{}", path.display());
        let said: String = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&format!("{remedy} {}", path.display())), "{said}");
        // What others can only read is as it was.
        let only_read = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(only_read)).unwrap();
        assert!(place.writ(&["evaluate", "shell", "ls", "--attest"]).status.success(), "{}", path.display());
        fs::set_permissions(&path, right).unwrap();
    }
}

#[test]
fn a_rotation_that_cannot_be_planned_changes_nothing() {
    let place = Workplace::new("unplannable");
    assert!(place.writ(FIRST).status.success());
    let key = history(&place).pop().unwrap().active().unwrap().id.clone();
    assert!(place.writ(&["keys", "compromise", &key]).status.success());
    let before = history(&place);
    let refused = place.writ(&["keys", "rotate", "--at", "2999-01-01T00:00:00Z"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("run `writ keys rotate` without `--at`"), "{}", said(&refused));
    assert_eq!(history(&place), before);
}

#[test]
fn a_planned_rotation_survives_its_keys() {
    let place = Workplace::new("plans");
    let attests = || place.writ(&["evaluate", "shell", "ls", "--attest"]).status.success();
    let plan = || {
        let at = Timestamp::from_millis(Timestamp::now().millis() + 2000).to_string();
        assert!(place.writ(&["keys", "rotate", "--at", &at]).status.success());
        let registry = history(&place).pop().unwrap();
        (registry.active().unwrap().id.clone(), registry.next_in_line().unwrap().id.clone())
    };
    // Without its successor the active key goes on, and says so.
    let (active, next) = plan();
    assert!(place.writ(&["keys", "deprecate", &next]).status.success());
    assert_eq!(history(&place).pop().unwrap().active().unwrap().valid_until, None);
    std::thread::sleep(Duration::from_millis(2100));
    assert!(attests());
    assert_eq!(history(&place).pop().unwrap().active().unwrap().id, active);
    // Without the active key its successor signs.
    let (active, next) = plan();
    assert!(place.writ(&["keys", "compromise", &active]).status.success());
    assert!(attests());
    assert_eq!(legal(&place).pop().unwrap().active().unwrap().id, next);
}

#[test]
fn a_listing_makes_nothing() {
    let place = Workplace::new("listing");
    for arguments in [&["keys", "list"][..], &["keys", "list", "--format", "json"]] {
        let output = place.writ(arguments);
        assert!(output.status.success(), "{}", said(&output));
        assert!(!place.folder.join("state").exists(), "{arguments:?}");
    }
    assert!(place.writ(&["evaluate", "shell", "ls", "--attest"]).status.success());
    let listed = String::from_utf8(place.writ(&["keys", "list"]).stdout).unwrap();
    assert!(listed.contains("ledger key   none yet") && listed.contains("attests "), "{listed}");
    assert!(!place.folder.join("state/keys/ledger.pem").exists());
}

#[test]
fn what_ended_is_forgotten_and_what_holds_is_not() {
    let place = Workplace::new("pruned");
    for (file, time) in [("short.json", "1s"), ("long.json", "1h")] {
        let made = place.writ(&["evaluate", "shell", "ls", "--attest", "--expires", time, "--attest-to", file]);
        assert!(made.status.success(), "{}", said(&made));
    }
    let listed = || String::from_utf8(place.writ(&["attestation", "list"]).stdout).unwrap();
    assert_eq!(listed().lines().filter(|line| line.contains("allow")).count(), 2, "{}", listed());
    std::thread::sleep(Duration::from_millis(2200));
    let prune = |args: &[&str]| {
        let output = place.writ(&[&["attestation", "prune", "--ended", "1s"], args].concat());
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(prune(&["--dry-run"]).contains("1 would be deleted"));
    assert_eq!(listed().lines().filter(|line| line.contains("allow")).count(), 2, "a trial forgets nothing");
    let agent = place.command(&["attestation", "prune", "--ended", "1s"]).env("CLAUDECODE", "1").output().unwrap();
    assert!(!agent.status.success(), "an agent forgets nothing");
    assert!(prune(&[]).contains("1 deleted"));
    assert_eq!(listed().lines().filter(|line| line.contains("allow")).count(), 1, "{}", listed());
    assert!(place.writ(&["attestation", "verify", "long.json"]).status.success());
    assert_eq!(place.writ(&["attestation", "verify", "short.json"]).status.code(), Some(3), "a copy is still read");
    assert!(prune(&[]).contains("0 deleted"));
}

#[test]
fn a_key_that_is_retired_early_is_warned_of() {
    let place = Workplace::new("retired-early");
    assert!(place.writ(FIRST).status.success());
    assert!(place.writ(&["keys", "rotate"]).status.success());
    let old = history(&place).pop().unwrap().keys()[0].id.clone();
    let retired = place.writ(&["keys", "retire", &old]);
    assert!(retired.status.success(), "{}", said(&retired));
    assert!(said(&retired).contains("0 days ago") && said(&retired).contains("90"), "{}", said(&retired));
    let state = history(&place).pop().unwrap().keys()[0].state;
    assert_eq!(state, KeyState::Retired);
    let again = place.writ(&["keys", "retire", &old]);
    assert!(!again.status.success() && !said(&again).contains("days ago"), "{}", said(&again));
}
