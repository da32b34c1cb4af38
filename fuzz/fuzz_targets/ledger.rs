//! Verification takes any bytes, and two readers of the same ledger agree.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_evidence::ledger::verify_ledger;
use writ_evidence::row::Row;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (ledger, notes) = input;
    let report = verify_ledger(ledger, notes, None, None, None);
    let (_, problem) = Row::parse_all(ledger);
    assert!(problem.is_none() || !report.problems.is_empty(), "a line that is no row passed: {problem:?}");
});
