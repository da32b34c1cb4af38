//! A whole ledger and its checkpoints, checked: chain, tree, signatures, consistency, uncovered tail (R40, R42).
//!
//! Pure over bytes. Names the first row that is wrong and why. Never believes a checkpoint that no given key signed. Page:
//! `spec/ledger.md`.

use std::thread;

use writ_core::Digest;

use crate::checkpoint::Checkpoint;
use crate::keys::PublicKey;
use crate::merkle::{Tree, leaf_in};
use crate::raw::RawRow;

/// From this size on, rows are checked on two threads.
const PARALLEL_BYTES: usize = 1 << 20;
/// Most findings of one kind in a report.
const MAX_FINDINGS: usize = 20;

/// What a ledger and its checkpoints are worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerReport {
    /// How many whole lines there are.
    pub rows: u64,
    /// What is wrong with rows, first row first.
    pub problems: Vec<String>,
    /// How many checkpoints hold.
    pub checkpoints: usize,
    /// What is wrong with checkpoints.
    pub checkpoint_problems: Vec<String>,
    /// Where the history disagrees with a checkpoint, or with one seen before.
    pub consistency_problems: Vec<String>,
    /// The largest size that a good checkpoint covers.
    pub covered: u64,
}

/// One line's share of the work: its place in the chain, its hashes.
struct Checked<'a> {
    row: Option<RawRow<'a>>,
    sealed: bool,
    leaf: Digest,
}

/// Checks a ledger. `seen` is the last checkpoint that was seen of it, wherever that was kept.
pub fn verify_ledger(
    bytes: &[u8],
    notes: &[u8],
    key: Option<&PublicKey>,
    origin: Option<&str>,
    seen: Option<&[u8]>,
) -> LedgerReport {
    let mut report = LedgerReport::default();
    let (lines, torn) = lines(bytes);
    let tree = !notes.is_empty() || seen.is_some();
    let checked = check_all(bytes.len(), &lines, tree);
    report.rows = checked.len() as u64;
    chain(&checked, &mut report.problems);
    if !torn.is_empty() {
        report.problems.push(format!("line {}: cut off before its end", checked.len() + 1));
    }
    report.problems.truncate(MAX_FINDINGS);
    let leaves: Vec<Digest> = checked.iter().map(|line| line.leaf).collect();
    checkpoints(&mut report, &leaves, notes, key, origin);
    if let Some(seen) = seen {
        against_seen(&mut report, &leaves, seen, key);
    }
    report
}

/// The whole lines, without their ends, and what comes after the last line end.
fn lines(bytes: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some((line, tail)) = line_end(rest).and_then(|end| rest.split_at_checked(end)) {
        lines.push(line);
        rest = tail.get(1..).unwrap_or_default();
    }
    (lines, rest)
}

/// Where the first line break is. Whole blocks are skipped in a loop without early exit, which compiles to wide comparisons.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let (blocks, _) = bytes.as_chunks::<64>();
    let skipped =
        blocks.iter().take_while(|block| !block.iter().fold(false, |any, &byte| any | (byte == b'\n'))).count();
    let rest = bytes.get(skipped * 64..)?;
    Some(skipped * 64 + rest.iter().position(|&byte| byte == b'\n')?)
}

fn check_all<'a>(size: usize, lines: &[&'a [u8]], tree: bool) -> Vec<Checked<'a>> {
    if size < PARALLEL_BYTES {
        return check(lines, tree);
    }
    let (front, back) = lines.split_at(lines.len() / 2);
    thread::scope(|scope| {
        let back_half = scope.spawn(|| check(back, tree));
        let mut all = check(front, tree);
        match back_half.join() {
            Ok(rest) => all.extend(rest),
            Err(_) => all.extend(check(back, tree)),
        }
        all
    })
}

/// Checks lines by themselves. The leaf hashes, a third of the work, are left out where no checkpoint needs them.
fn check<'a>(lines: &[&'a [u8]], tree: bool) -> Vec<Checked<'a>> {
    let mut room = Vec::new();
    let one = |line: &&'a [u8]| {
        let row = RawRow::scan(line);
        let sealed = row.as_ref().is_some_and(|row| row.is_sealed(&mut room));
        let leaf = if tree { leaf_in(line, &mut room) } else { Digest::ZERO };
        Checked { row, sealed, leaf }
    };
    lines.iter().map(one).collect()
}

fn chain(rows: &[Checked<'_>], problems: &mut Vec<String>) {
    let zeros = "0".repeat(64).into_bytes();
    let mut prev_hash: &[u8] = &zeros;
    let mut expected = 0u64;
    for (index, line) in rows.iter().enumerate() {
        if problems.len() >= MAX_FINDINGS {
            return;
        }
        let Some(row) = &line.row else {
            problems.push(format!("row {index} (line {}): edited: not in the form a row is written in", index + 1));
            expected += 1;
            continue;
        };
        if row.sequence != expected {
            problems.push(out_of_place(index, row.sequence, expected));
        } else if row.prev_hash != prev_hash {
            problems.push(format!("row {index}: does not follow the row before it: one of the two was edited"));
        }
        if !line.sealed {
            problems.push(format!("row {index}: edited: its entryHash does not fit its content"));
        }
        prev_hash = row.entry_hash;
        expected = row.sequence.saturating_add(1);
    }
}

fn out_of_place(index: usize, found: u64, expected: u64) -> String {
    let line = index + 1;
    if found > expected {
        format!(
            "line {line}: row {found} stands where row {expected} should: {} deleted, or rows swapped",
            found - expected
        )
    } else {
        format!("line {line}: row {found} stands where row {expected} should: duplicated or swapped")
    }
}

fn checkpoints(
    report: &mut LedgerReport,
    leaves: &[Digest],
    notes: &[u8],
    key: Option<&PublicKey>,
    origin: Option<&str>,
) {
    let (notes, rest) = split_notes(notes);
    if !rest.is_empty() {
        report.checkpoint_problems.push("the checkpoints end in bytes that are no checkpoint".to_owned());
    }
    let mut good: Vec<(usize, Checkpoint)> = Vec::new();
    for (index, note) in notes.iter().enumerate() {
        let number = index + 1;
        let Some(key) = key else {
            report.checkpoint_problems.push(format!("checkpoint {number}: no key is known to check it with"));
            continue;
        };
        match Checkpoint::verify(note, key) {
            Err(error) => report.checkpoint_problems.push(format!("checkpoint {number}: {error}")),
            Ok(found) if origin.is_some_and(|origin| origin != found.origin) => {
                report.checkpoint_problems.push(format!("checkpoint {number}: belongs to `{}`", found.origin));
            }
            Ok(found) => good.push((number, found)),
        }
    }
    let roots = roots_at(leaves, good.iter().map(|(_, found)| found.size));
    let mut before = 0;
    for (number, found) in &good {
        let problem = disagreement(found, leaves.len() as u64, &roots);
        let shrunk = (found.size < before).then(|| format!("covers fewer rows than the one before ({before})"));
        match problem.or(shrunk) {
            Some(why) => {
                report.consistency_problems.push(format!("checkpoint {number} over {} rows: {why}", found.size))
            }
            None => {
                report.checkpoints += 1;
                report.covered = report.covered.max(found.size);
            }
        }
        before = before.max(found.size);
    }
    report.checkpoint_problems.truncate(MAX_FINDINGS);
    report.consistency_problems.truncate(MAX_FINDINGS);
}

fn against_seen(report: &mut LedgerReport, leaves: &[Digest], seen: &[u8], key: Option<&PublicKey>) {
    let Some(Ok(seen)) = std::str::from_utf8(seen).ok().zip(key).map(|(note, key)| Checkpoint::verify(note, key))
    else {
        report.consistency_problems.push("the checkpoint last seen here cannot be checked".to_owned());
        return;
    };
    let roots = roots_at(leaves, std::iter::once(seen.size));
    if let Some(why) = disagreement(&seen, leaves.len() as u64, &roots) {
        report
            .consistency_problems
            .push(format!("the checkpoint over {} rows that was last seen here: {why}", seen.size));
    } else if report.covered < seen.size {
        report
            .checkpoint_problems
            .push(format!("the checkpoint over {} rows that was seen here is missing", seen.size));
    }
}

fn disagreement(found: &Checkpoint, rows: u64, roots: &[(u64, Digest)]) -> Option<String> {
    if found.size > rows {
        return Some(format!("the ledger has only {rows}: its tail was cut"));
    }
    let root = roots.iter().find(|(size, _)| *size == found.size).map(|(_, root)| *root);
    (root != Some(found.root)).then(|| "another root: rows it covers were changed".to_owned())
}

/// The tree's roots at these sizes, in one pass over the leaves.
fn roots_at(leaves: &[Digest], sizes: impl Iterator<Item = u64>) -> Vec<(u64, Digest)> {
    let mut wanted: Vec<u64> = sizes.collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut tree = Tree::default();
    let mut leaves = leaves.iter();
    let mut out = Vec::new();
    for size in wanted {
        while tree.size() < size {
            match leaves.next() {
                Some(&leaf) => tree.push_leaf(leaf),
                None => return out,
            }
        }
        out.push((size, tree.root()));
    }
    out
}

/// The notes in a file of them, and what is left over: a note torn by a crash.
pub fn split_notes(bytes: &[u8]) -> (Vec<&str>, &[u8]) {
    let mut notes = Vec::new();
    let mut rest = bytes;
    while let Some(end) = note_end(rest) {
        let (note, tail) = rest.split_at(end);
        match std::str::from_utf8(note) {
            Ok(note) => notes.push(note),
            Err(_) => return (notes, rest),
        }
        rest = tail;
    }
    (notes, rest)
}

fn note_end(bytes: &[u8]) -> Option<usize> {
    let blank = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let signature = bytes.get(blank + 2..)?.iter().position(|&byte| byte == b'\n')?;
    Some(blank + 2 + signature + 1)
}
