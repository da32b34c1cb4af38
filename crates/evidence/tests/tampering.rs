//! Every way to change a ledger or its checkpoints is noticed, and named.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]
#![expect(clippy::indexing_slicing, reason = "an index out of range fails the test")]

use writ_core::json::{Object, Value};
use writ_core::{SessionId, Timestamp};
use writ_evidence::checkpoint::{Checkpoint, origin};
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::ledger::{LedgerReport, verify_ledger};
use writ_evidence::merkle::Tree;
use writ_evidence::row::{Draft, Row, RowDecision};

/// A session of ten rows with checkpoints over 4, 7 and 10 of them.
struct Evidence {
    key: SigningKey,
    lines: Vec<String>,
    notes: Vec<String>,
}

fn draft(number: u64) -> Draft {
    let mut detail = Object::new();
    detail.push("number", Value::from(number));
    detail.push("text", Value::from("a \"quoted\" word\n"));
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

impl Evidence {
    fn new() -> Self {
        let key = SigningKey::generate(Algorithm::Ed25519).unwrap();
        let (mut lines, mut notes, mut tree, mut last) = (Vec::new(), Vec::new(), Tree::default(), None);
        for number in 0..10 {
            let row = Row::seal(last.as_ref(), draft(number)).unwrap();
            tree.push(row.to_line().as_bytes());
            lines.push(row.to_line() + "\n");
            last = Some(row);
            if [3, 6, 9].contains(&number) {
                let here = Checkpoint {
                    origin: origin(&SessionId::new("s")),
                    size: tree.size(),
                    root: tree.root(),
                    kept: None,
                };
                notes.push(here.sign(&key).unwrap());
            }
        }
        Self { key, lines, notes }
    }

    fn check(&self, ledger: &[u8], notes: &[u8]) -> LedgerReport {
        let head = self.notes[2].as_bytes();
        verify_ledger(ledger, notes, Some(self.key.public()), Some("writ/session/s"), Some(head))
    }

    fn notes(&self) -> Vec<u8> {
        self.notes.concat().into_bytes()
    }
}

fn findings(report: &LedgerReport) -> Vec<String> {
    [&report.problems[..], &report.checkpoint_problems, &report.consistency_problems].concat()
}

fn noticed(report: &LedgerReport) -> bool {
    !findings(report).is_empty()
}

#[test]
fn what_was_not_touched_verifies() {
    let evidence = Evidence::new();
    let report = evidence.check(evidence.lines.concat().as_bytes(), &evidence.notes());
    assert_eq!(findings(&report), Vec::<String>::new());
    assert_eq!((report.rows, report.checkpoints, report.covered), (10, 3, 10));
}

#[test]
fn every_byte_of_the_ledger_counts() {
    let evidence = Evidence::new();
    let ledger = evidence.lines.concat().into_bytes();
    let row_of = |at: usize| ledger[..at].iter().filter(|byte| **byte == b'\n').count();
    for at in 0..ledger.len() {
        for bits in [0x01, 0x20, 0x80, 0xff] {
            let mut bent = ledger.clone();
            bent[at] ^= bits;
            // Without checkpoints too: the chain alone names the row.
            let report = verify_ledger(&bent, b"", None, None, None);
            let first = report.problems.first().unwrap_or_else(|| unreachable!("byte {at} ^ {bits:#x} went unnoticed"));
            let (row, line) = (format!("row {}", row_of(at)), format!("line {}", row_of(at) + 1));
            assert!(first.contains(&row) || first.contains(&line), "byte {at} of {row}: {first}");
            assert!(noticed(&evidence.check(&bent, &evidence.notes())));
        }
    }
}

#[test]
fn every_byte_of_the_checkpoints_counts() {
    let evidence = Evidence::new();
    let (ledger, notes) = (evidence.lines.concat().into_bytes(), evidence.notes());
    for at in 0..notes.len() {
        for bits in [0x01, 0x20, 0xff] {
            let mut bent = notes.clone();
            bent[at] ^= bits;
            assert!(noticed(&evidence.check(&ledger, &bent)), "byte {at} ^ {bits:#x}");
        }
    }
    for end in 0..notes.len() {
        assert!(noticed(&evidence.check(&ledger, &notes[..end])), "checkpoints cut at {end}");
    }
}

#[test]
fn rows_deleted_doubled_or_swapped_are_named() {
    let evidence = Evidence::new();
    for at in 0..10 {
        let mut deleted = evidence.lines.clone();
        deleted.remove(at);
        let report = evidence.check(deleted.concat().as_bytes(), &evidence.notes());
        assert!(noticed(&report));
        if at < 9 {
            assert!(
                report.problems[0].contains(&format!("row {}", at + 1)) && report.problems[0].contains("deleted"),
                "{report:?}"
            );
        }
        let mut doubled = evidence.lines.clone();
        doubled.insert(at, evidence.lines[at].clone());
        let report = evidence.check(doubled.concat().as_bytes(), &evidence.notes());
        assert!(
            report.problems[0].contains(&format!("row {at}")) && report.problems[0].contains("duplicated"),
            "{report:?}"
        );
        for other in at + 1..10 {
            let mut swapped = evidence.lines.clone();
            swapped.swap(at, other);
            let report = evidence.check(swapped.concat().as_bytes(), &evidence.notes());
            assert!(report.problems[0].contains(&format!("line {}", at + 1)), "{report:?}");
        }
    }
}

#[test]
fn a_cut_tail_is_noticed_at_every_byte() {
    let evidence = Evidence::new();
    let ledger = evidence.lines.concat().into_bytes();
    for end in 0..ledger.len() {
        let report = evidence.check(&ledger[..end], &evidence.notes());
        assert!(noticed(&report), "cut at {end}");
        let torn = end > 0 && ledger[end - 1] != b'\n';
        assert_eq!(report.problems.iter().any(|problem| problem.contains("cut off")), torn);
    }
}

/// Rows and checkpoints of an earlier moment, put back together: only the head kept elsewhere tells.
#[test]
fn an_older_pair_is_noticed_by_the_head() {
    let evidence = Evidence::new();
    let (ledger, notes) = (evidence.lines[..7].concat(), evidence.notes[..2].concat());
    assert!(noticed(&evidence.check(ledger.as_bytes(), notes.as_bytes())));
    let alone = verify_ledger(ledger.as_bytes(), notes.as_bytes(), Some(evidence.key.public()), None, None);
    assert_eq!(findings(&alone), Vec::<String>::new());
}

/// A whole new history, correctly chained, by someone without the key.
#[test]
fn a_rewritten_history_is_noticed() {
    let evidence = Evidence::new();
    let mut last = None;
    let mut ledger = String::new();
    for number in 0..10 {
        let changed = Draft { decision: RowDecision::Denied, ..draft(number) };
        let row = Row::seal(last.as_ref(), if number == 5 { changed } else { draft(number) }).unwrap();
        ledger.push_str(&(row.to_line() + "\n"));
        last = Some(row);
    }
    let report = evidence.check(ledger.as_bytes(), &evidence.notes());
    assert!(report.problems.is_empty() && report.covered == 4, "{report:?}");
    assert_eq!(report.consistency_problems.len(), 3, "checkpoints over 7 and 10 rows, and the head: {report:?}");
}

#[test]
fn checkpoints_of_another_key_or_session_do_not_count() {
    let (evidence, other) = (Evidence::new(), Evidence::new());
    let ledger = evidence.lines.concat();
    let strange = evidence.check(ledger.as_bytes(), &other.notes());
    assert_eq!((strange.checkpoints, strange.covered, strange.checkpoint_problems.len()), (0, 0, 4));
    let origin =
        verify_ledger(ledger.as_bytes(), &evidence.notes(), Some(evidence.key.public()), Some("writ/session/t"), None);
    assert_eq!((origin.checkpoints, origin.checkpoint_problems.len()), (0, 3));
    let keyless = verify_ledger(ledger.as_bytes(), &evidence.notes(), None, None, None);
    assert_eq!((keyless.checkpoints, keyless.checkpoint_problems.len()), (0, 3));
}

#[test]
fn checkpoints_out_of_order_are_noticed() {
    let evidence = Evidence::new();
    let notes = [&evidence.notes[1], &evidence.notes[0], &evidence.notes[2]].map(String::as_str).concat();
    assert!(noticed(&evidence.check(evidence.lines.concat().as_bytes(), notes.as_bytes())));
}

#[test]
fn an_uncovered_tail_is_counted() {
    let evidence = Evidence::new();
    let notes = evidence.notes[..2].concat();
    let key = Some(evidence.key.public());
    let report = verify_ledger(evidence.lines.concat().as_bytes(), notes.as_bytes(), key, None, None);
    assert_eq!((report.rows, report.covered), (10, 7));
    assert_eq!(findings(&report), Vec::<String>::new());
}

/// More than a megabyte is checked on two threads, and so many rows at once: the seams between them must hold too.
#[test]
fn two_threads_find_what_one_does() {
    let mut last: Option<Row> = None;
    let mut lines = Vec::new();
    for number in 0..6000 {
        let row = Row::seal(last.as_ref(), draft(number)).unwrap();
        lines.push(row.to_line() + "\n");
        last = Some(row);
    }
    assert!(lines.concat().len() > 1 << 20);
    assert_eq!(findings(&verify_ledger(lines.concat().as_bytes(), b"", None, None, None)), Vec::<String>::new());
    for gone in [1, 2047, 2048, 2049, 4095, 4096, 5998] {
        let mut fewer = lines.clone();
        fewer.remove(gone);
        let report = verify_ledger(fewer.concat().as_bytes(), b"", None, None, None);
        assert!(report.problems[0].contains(&format!("line {}", gone + 1)), "{report:?}");
    }
}

/// Lines that are no rows are counted up to a point, and what stands behind it is not looked at.
#[test]
fn a_ledger_of_line_feeds_comes_to_its_end() {
    let of = |lines: usize| verify_ledger(&vec![b'\n'; lines], b"", None, None, None);
    let (few, many) = (of(100_000), of(1_000_000));
    let ends =
        |report: &LedgerReport| report.problems.iter().any(|problem| problem.contains("nothing behind is looked at"));
    assert!(few.rows == 100_000 && !ends(&few) && !few.problems.is_empty(), "{few:?}");
    assert!(many.rows < 110_000 && ends(&many) && many.problems.len() < 5, "{many:?}");
    // Notes that are none are told up to a point, too.
    let notes = verify_ledger(b"", &vec![b'\n'; 300_000], None, None, None);
    assert!((1..=20).contains(&notes.checkpoint_problems.len()), "{}", notes.checkpoint_problems.len());
}
