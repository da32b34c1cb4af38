//! What a crash, a full disk or a meddler leaves behind, and what the next lock makes of it.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use writ_core::json::{Object, Value};
use writ_core::{SessionId, Timestamp};
use writ_evidence::checkpoint::{Checkpoint, origin};
use writ_evidence::ledger::verify_ledger;
use writ_evidence::row::{Draft, RowDecision};
use writ_store::{LedgerGuard, Store, StoreError};

const WAIT: Duration = Duration::from_secs(5);

fn draft(number: u64) -> Draft {
    let mut detail = Object::new();
    detail.push("number", Value::from(number));
    Draft {
        timestamp: Timestamp::from_millis(1_768_732_200_000),
        call_id: Some(format!("call-{number}")),
        tool_name: Some("Bash".to_owned()),
        decision: RowDecision::Approved,
        denial_reason: None,
        result_hash: None,
        detail: Value::Object(detail),
    }
}

fn id() -> SessionId {
    SessionId::new("s1")
}

fn lock(store: &Store) -> LedgerGuard {
    store.session(&id()).unwrap().lock(WAIT).unwrap()
}

fn store_with(rows: u64) -> (tempfile::TempDir, Store) {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(root.path().join("state")).unwrap();
    let mut guard = lock(&store);
    for number in 0..rows {
        assert_eq!(guard.append(draft(number)).unwrap().sequence, number);
    }
    (root, store)
}

fn seal(store: &Store, guard: &mut LedgerGuard) {
    let tree = guard.tree().unwrap();
    let checkpoint = Checkpoint { origin: origin(&id()), size: tree.size(), root: tree.root(), kept: None };
    guard.keep_checkpoint(&checkpoint.sign(&store.ledger_key().unwrap()).unwrap(), &tree).unwrap();
}

fn problems(store: &Store) -> Vec<String> {
    let folder = store.folder(&id());
    let bytes = fs::read(folder.join("ledger.jsonl")).unwrap();
    let notes = fs::read(folder.join("checkpoints")).unwrap_or_default();
    let head = store.head(&id()).unwrap();
    let report = verify_ledger(&bytes, &notes, store.public_key().as_ref(), Some(&origin(&id())), head.as_deref());
    [report.problems, report.checkpoint_problems, report.consistency_problems].concat()
}

#[test]
fn rows_survive_and_chain() {
    let (_root, store) = store_with(3);
    let mut guard = lock(&store);
    assert_eq!(guard.last().unwrap().sequence, 2);
    let last = guard.last().unwrap().entry_hash;
    assert_eq!(guard.append(draft(3)).unwrap().prev_hash, last);
    assert_eq!(guard.call_ids().unwrap().len(), 4);
    assert_eq!(guard.recorded(["call-0", "call-3", "other"].into()).unwrap(), ["call-0", "call-3"].into());
    drop(guard);
    assert_eq!(store.rows(&id()).unwrap().len(), 4);
    assert_eq!(store.first_row(&id()).unwrap().unwrap().sequence, 0);
    assert_eq!(store.last_row(&id()).unwrap().unwrap().sequence, 3);
    assert_eq!(store.sessions().unwrap(), [id()]);
    assert!(store.exists(&id()) && !store.exists(&SessionId::new("s2")));
    assert_eq!(problems(&store), Vec::<String>::new());
}

/// A crash can cut the row being written at any byte: what was answered before stays, what was torn is kept aside.
#[test]
fn a_row_cut_at_any_byte_is_put_aside() {
    let (_root, store) = store_with(3);
    let path = store.folder(&id()).join("ledger.jsonl");
    let whole = fs::read(&path).unwrap();
    let second_end = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0 + 1;
    for cut in second_end..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let mut guard = lock(&store);
        assert_eq!(guard.last().unwrap().sequence, 1, "cut at {cut}");
        match guard.recovered() {
            None => assert_eq!(cut, second_end),
            Some(torn) => {
                assert_eq!(torn.len, cut - second_end);
                let kept = fs::read(store.folder(&id()).join(&torn.kept)).unwrap();
                assert_eq!(kept, &whole[second_end..cut]);
            }
        }
        assert_eq!(guard.append(draft(2)).unwrap().sequence, 2);
        assert!(guard.recovered().is_none(), "said once");
        drop(guard);
        assert_eq!(problems(&store), Vec::<String>::new());
    }
}

/// The same for the first row, where nothing comes before it.
#[test]
fn a_torn_genesis_leaves_an_empty_ledger() {
    let (_root, store) = store_with(1);
    let path = store.folder(&id()).join("ledger.jsonl");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let mut guard = lock(&store);
    assert!(guard.last().is_none() && guard.recovered().is_some());
    assert_eq!(guard.append(draft(0)).unwrap().sequence, 0);
}

/// Unwritten blocks read as zeros on some file systems, with or without the line end behind them.
#[test]
fn zeros_are_torn_bytes() {
    for tail in [&b"\0\0\0"[..], b"{\"sequence\":3\0\0\0\n", b"\0\0\n\0\0\n"] {
        let (_root, store) = store_with(3);
        let path = store.folder(&id()).join("ledger.jsonl");
        OpenOptions::new().append(true).open(&path).unwrap().write_all(tail).unwrap();
        let guard = lock(&store);
        assert_eq!(guard.last().unwrap().sequence, 2);
        assert_eq!(guard.recovered().unwrap().len, tail.len());
    }
}

/// A whole last line that is no row was not torn by a crash: somebody wrote it.
#[test]
fn a_changed_last_row_is_damage() {
    let (_root, store) = store_with(3);
    let path = store.folder(&id()).join("ledger.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("call-2", "call-9")).unwrap();
    let error = store.session(&id()).unwrap().lock(WAIT).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(store.rows(&id()).is_err() && store.last_row(&id()).is_err());
}

#[test]
fn a_link_in_the_ledgers_place_is_refused() {
    let (root, store) = store_with(1);
    let path = store.folder(&id()).join("ledger.jsonl");
    let elsewhere = root.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    assert!(matches!(store.session(&id()).unwrap().lock(WAIT), Err(StoreError::NotPlain { .. })));
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
    fs::remove_file(&elsewhere).unwrap();
    assert!(store.session(&id()).is_err());
    assert!(!elsewhere.exists(), "nothing is created through a link");
}

#[test]
fn a_replaced_ledger_is_noticed() {
    let (_root, store) = store_with(1);
    let path = store.folder(&id()).join("ledger.jsonl");
    let session = store.session(&id()).unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    assert!(matches!(session.lock(WAIT), Err(StoreError::Replaced { .. })));
}

#[test]
fn waiting_has_an_end() {
    let (_root, store) = store_with(1);
    let held = lock(&store);
    let error = store.session(&id()).unwrap().lock(Duration::from_millis(30)).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    drop(held);
    assert!(store.session(&id()).unwrap().lock(Duration::ZERO).is_ok());
}

/// A draft that makes no row leaves no trace.
#[test]
fn what_is_too_large_is_not_written() {
    let (_root, store) = store_with(1);
    let path = store.folder(&id()).join("ledger.jsonl");
    let before = fs::read(&path).unwrap();
    let mut guard = lock(&store);
    let large = Draft { denial_reason: Some("x".repeat(70_000)), ..draft(1) };
    assert!(matches!(guard.append(large), Err(StoreError::Row(_))));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(guard.append(draft(1)).unwrap().sequence, 1);
}

#[test]
fn the_largest_row_is_found_again() {
    let (_root, store) = store_with(1);
    let mut guard = lock(&store);
    guard.append(Draft { denial_reason: Some("x".repeat(59_000)), ..draft(1) }).unwrap();
    let written = guard.last().cloned();
    drop(guard);
    assert_eq!(lock(&store).last().cloned(), written);
    assert_eq!(store.last_row(&id()).unwrap(), written);
}

#[test]
fn checkpoints_cover_and_heads_remember() {
    let (_root, store) = store_with(2);
    let folder = store.folder(&id());
    let mut guard = lock(&store);
    seal(&store, &mut guard);
    let early = (fs::read(folder.join("ledger.jsonl")).unwrap(), fs::read(folder.join("checkpoints")).unwrap());
    guard.append(draft(2)).unwrap();
    seal(&store, &mut guard);
    drop(guard);
    assert_eq!(problems(&store), Vec::<String>::new());
    assert_eq!(fs::read_to_string(folder.join("ledger.pub")).unwrap(), store.public_key().unwrap().to_pem());
    // An older pair, perfectly consistent in itself, is put back.
    fs::write(folder.join("ledger.jsonl"), early.0).unwrap();
    fs::write(folder.join("checkpoints"), early.1).unwrap();
    assert_ne!(problems(&store), Vec::<String>::new());
}

/// A note torn by a crash is put aside and the next one stands alone.
#[test]
fn a_torn_note_is_put_aside() {
    let (_root, store) = store_with(2);
    let path = store.folder(&id()).join("checkpoints");
    seal(&store, &mut lock(&store));
    let whole = fs::read(&path).unwrap();
    for cut in 1..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        seal(&store, &mut lock(&store));
        assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
    }
}

#[test]
fn the_state_folder_is_private() {
    let (_root, store) = store_with(1);
    seal(&store, &mut lock(&store));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let root = store.folder(&id()).ancestors().nth(2).unwrap().to_owned();
    for folder in [root.clone(), root.join("sessions"), root.join("keys"), root.join("heads"), store.folder(&id())] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
    for file in [root.join("keys/ledger.pem"), root.join("heads/s1"), store.folder(&id()).join("ledger.jsonl")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    assert!(store.exposed().is_empty());
    fs::set_permissions(root.join("sessions"), fs::Permissions::from_mode(0o770)).unwrap();
    assert_eq!(store.exposed(), [root.join("sessions")]);
}

#[test]
fn a_key_others_can_read_is_refused() {
    let (root, store) = store_with(1);
    let id = store.ledger_key().unwrap().public().key_id();
    assert_eq!(store.ledger_key().unwrap().public().key_id(), id);
    let path = root.path().join("state/keys/ledger.pem");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(store.ledger_key(), Err(StoreError::KeyExposed { .. })));
    assert!(store.public_key().is_none());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "no key").unwrap();
    assert!(matches!(store.ledger_key(), Err(StoreError::KeyFile { .. })));
}

#[test]
fn kept_names_stay_inside() {
    let (_root, store) = store_with(1);
    let guard = lock(&store);
    guard.keep("policies/abc", b"{}").unwrap();
    guard.keep("policies/abc", b"{}").unwrap();
    assert_eq!(fs::read(store.folder(&id()).join("policies/abc")).unwrap(), b"{}");
    for bad in ["", "..", "../x", "/etc/x", "policies/../../x", "ledger.jsonl", "./ledger.jsonl"] {
        assert!(matches!(guard.keep(bad, b""), Err(StoreError::Name { .. })), "{bad}");
    }
}

/// Ids that make no file name keep their own folder, and the list gives the ids back.
#[test]
fn odd_ids_are_listed_as_they_are() {
    let (_root, store) = store_with(1);
    let odd = SessionId::new("../a b");
    let mut detail = Object::new();
    detail.push("session", Value::from(odd.as_str()));
    let genesis = Draft { detail: Value::Object(detail), ..draft(0) };
    store.session(&odd).unwrap().lock(WAIT).unwrap().append(genesis).unwrap();
    let listed = store.sessions().unwrap();
    assert!(listed.len() == 2 && listed.contains(&odd), "{listed:?}");
    assert!(matches!(Store::open("relative".into()), Err(StoreError::NotAbsolute { .. })));
}

/// Of a long ledger only what is new is read for its tree, which is the same one; what was kept of it is believed as far as it
/// is the last checkpoint's.
#[test]
fn a_long_ledger_is_sealed_from_its_end() {
    let (_root, store) = store_with(1);
    let folder = store.folder(&id());
    let mut guard = lock(&store);
    let long = |number| {
        let mut draft = draft(number);
        draft.tool_name = Some("x".repeat(40_000));
        draft
    };
    for number in 1..60 {
        guard.append_unflushed(long(number)).unwrap();
    }
    seal(&store, &mut guard);
    let kept = fs::read_to_string(folder.join("tree.json")).unwrap();
    for number in 60..64 {
        guard.append_unflushed(long(number)).unwrap();
    }
    let from_end = guard.tree().unwrap();
    // Where nothing is kept, or another tree, or another place, all of it is read.
    for wrong in [String::new(), kept.replace("\"size\":60", "\"size\":61"), kept.replacen("sha256:", "sha256:0", 1)] {
        fs::write(folder.join("tree.json"), wrong).unwrap();
        assert_eq!(guard.tree().unwrap(), from_end);
    }
    let end = kept.split(['{', ':', ',']).nth(2).unwrap().to_owned();
    fs::write(folder.join("tree.json"), kept.replace(&end, &(end.parse::<u64>().unwrap() - 1).to_string())).unwrap();
    assert_eq!(guard.tree().unwrap(), from_end);
    // An early row that is no longer what was signed: what is signed next is the history as it was, and the file is not that.
    fs::write(folder.join("tree.json"), &kept).unwrap();
    let path = folder.join("ledger.jsonl");
    let rewritten = fs::read_to_string(&path).unwrap().replacen("call-0", "call-9", 1);
    OpenOptions::new().write(true).open(&path).unwrap().write_all(rewritten.as_bytes()).unwrap();
    assert_eq!(guard.tree().unwrap(), from_end);
    seal(&store, &mut guard);
    assert!(!problems(&store).is_empty());
    fs::remove_file(folder.join("tree.json")).unwrap();
    assert!(matches!(guard.tree(), Err(StoreError::Rewritten { size: 64, .. })));
}
