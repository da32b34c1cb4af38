//! Many processes at once, and processes killed at any moment. The children are this test binary itself.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use writ_core::json::{Object, Value};
use writ_core::{SessionId, Timestamp};
use writ_evidence::ledger::verify_ledger;
use writ_evidence::row::{Draft, RowDecision};
use writ_store::Store;

const ROOT: &str = "WRIT_TEST_ROOT";
const CALLS: &str = "WRIT_TEST_CALLS";
const WAIT: Duration = Duration::from_secs(60);

fn id() -> SessionId {
    SessionId::new("shared")
}

/// Starts this binary again as a process that appends `calls` rows and prints each row's number once it is durable.
fn child(root: &Path, calls: u64) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "appends_as_a_child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ROOT, root)
        .env(CALLS, calls.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The numbers a child printed.
fn answers(child: &mut Child) -> Vec<u64> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("row ")?.parse().ok()).collect()
}

#[test]
#[ignore = "a child process of the tests beside it"]
fn appends_as_a_child() {
    let store = Store::open(env::var_os(ROOT).unwrap().into()).unwrap();
    let calls: u64 = env::var(CALLS).unwrap().parse().unwrap();
    let mut out = std::io::stdout();
    // The test harness has begun a line of its own.
    out.write_all(b"\n").unwrap();
    for number in 0..calls {
        let mut detail = Object::new();
        detail.push("process", Value::from(u64::from(std::process::id())));
        detail.push("number", Value::from(number));
        let draft = Draft {
            timestamp: Timestamp::now(),
            call_id: Some(format!("{}-{number}", std::process::id())),
            tool_name: Some("Read".to_owned()),
            decision: RowDecision::Approved,
            denial_reason: None,
            result_hash: None,
            detail: Value::Object(detail),
        };
        let mut guard = store.session(&id()).unwrap().lock(WAIT).unwrap();
        let sequence = guard.append(draft).unwrap().sequence;
        drop(guard);
        // One write: a killed child prints a whole line or none.
        out.write_all(format!("row {sequence}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

fn intact(root: &Path) -> u64 {
    let store = Store::open(root.to_owned()).unwrap();
    let bytes = fs::read(store.folder(&id()).join("ledger.jsonl")).unwrap();
    let report = verify_ledger(&bytes, b"", None, None, None);
    assert_eq!(report.problems, Vec::<String>::new());
    report.rows
}

/// 64 processes, 200 calls each: every answer has its row, every row its answer.
#[test]
fn many_processes_share_one_session() {
    let root = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let children: Vec<Child> = (0..64).map(|_| child(root.path(), 200)).collect();
    let readers: Vec<_> = children
        .into_iter()
        .map(|mut child| {
            thread::spawn(move || {
                let rows = answers(&mut child);
                assert!(child.wait().unwrap().success());
                rows
            })
        })
        .collect();
    let mut rows: Vec<u64> = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    println!("12,800 appends by 64 processes in {:?}", start.elapsed());
    rows.sort_unstable();
    assert!(rows.iter().copied().eq(0..12_800), "{} answers", rows.len());
    assert_eq!(intact(root.path()), 12_800);
}

/// Two processes append while they are killed at 500 random moments: no answered row is ever missing, and the next
/// process always finds a ledger it can go on with.
#[test]
fn killed_processes_lose_no_answered_row() {
    let root = tempfile::tempdir().unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut answered = 0;
    for _ in 0..250 {
        let mut pair = [child(root.path(), u64::MAX), child(root.path(), u64::MAX)];
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        thread::sleep(Duration::from_micros(1500 + seed % 9000));
        for child in &mut pair {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let rows: Vec<u64> = pair.iter_mut().flat_map(answers).collect();
        answered += rows.len() as u64;
        let store = Store::open(root.path().to_owned()).unwrap();
        let guard = store.session(&id()).unwrap().lock(WAIT).unwrap();
        let last = guard.last().map(|row| row.sequence);
        assert!(rows.iter().max() <= last.as_ref(), "answered {rows:?}, on record up to {last:?}");
    }
    println!("{answered} rows answered across 500 kills");
    assert!(answered > 500, "the children were killed before they did anything: {answered}");
    assert!(intact(root.path()) >= answered);
}

/// A write that stops half-way, as on a full disk: the row is taken back at once, what was answered stays.
#[test]
fn a_row_that_does_not_fit_is_taken_back() {
    let root = tempfile::tempdir().unwrap();
    // 16 blocks of 512 bytes; without the trap the signal would end the process before it saw the error.
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" --exact appends_as_a_child --ignored --nocapture"])
        .arg(env::current_exe().unwrap())
        .env(ROOT, root.path())
        .env(CALLS, "1000")
        .output()
        .unwrap();
    assert!(!limited.status.success());
    let said = [limited.stdout.as_slice(), &limited.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("append to") && said.contains("FileTooLarge"), "{said}");
    let answered = said.lines().filter(|line| line.starts_with("row ")).count() as u64;
    assert!(answered > 5 && answered < 1000, "{answered}");
    // Nobody has locked the ledger since: the failing process itself left it whole.
    assert_eq!(intact(root.path()), answered);
    let store = Store::open(root.path().to_owned()).unwrap();
    let guard = store.session(&id()).unwrap().lock(WAIT).unwrap();
    assert!(guard.recovered().is_none());
}

/// Processes that make the ledger key at the same time get the same one.
#[test]
fn one_key_for_all() {
    let root = tempfile::tempdir().unwrap();
    let makers: Vec<_> = (0..16)
        .map(|_| {
            let store = Store::open(root.path().join("state")).unwrap();
            thread::spawn(move || store.ledger_key().unwrap().public().key_id())
        })
        .collect();
    let ids: Vec<_> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]));
}
