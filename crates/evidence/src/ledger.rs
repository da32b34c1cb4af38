//! A whole ledger and its checkpoints, checked: chain, tree, signatures, consistency, uncovered tail (R40, R42).
//!
//! Pure over bytes. Names the first row that is wrong and why. Never believes a checkpoint that no given key signed. Invariant: a
//! [`Checker`] keeps no row, so its memory is that of the piece it was last given. Page: `spec/ledger.md`.

use std::collections::BTreeMap;
use std::thread;

use writ_core::Digest;

use crate::checkpoint::{Checkpoint, NoteError};
use crate::custody::{Kept, Keyring};
use crate::keys::PublicKey;
use crate::merkle::{Tree, leaf_in};
use crate::row::Row;
use crate::row::raw::RawRow;
use crate::tally::{MOST, Tally};

/// Most lines that are checked at once. No piece of rows has as many; one of line feeds has a hundred times more, and of each line there is
/// some hundred bytes to keep while it is checked.
const AT_ONCE: usize = 4096;
/// Most lines that are no rows. Behind so many nothing is looked at: the ledger is broken, and how long telling that takes is not for who
/// broke it to say.
const MOST_BROKEN: u64 = 100_000;
/// From this size on, the rows of a piece are checked on two threads.
const PARALLEL_BYTES: usize = 1 << 18;
/// Checkpoints that are checked at once, on two threads from so many on.
const NOTES_AT_ONCE: usize = 4096;
const FEW_NOTES: usize = 16;

/// A note's checkpoint and what is said to keep its key.
type Verified = Result<(Checkpoint, Option<Kept>), NoteError>;

/// What a ledger and its checkpoints are worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerReport {
    /// How many whole lines there are.
    pub rows: u64,
    /// What is wrong with rows, first row first.
    pub problems: Vec<String>,
    /// How many checkpoints hold.
    pub checkpoints: usize,
    /// How many checkpoints another key than the given one signed, or would have, where none was given.
    pub strangers: usize,
    /// What is wrong with checkpoints.
    pub checkpoint_problems: Vec<String>,
    /// Where the history disagrees with a checkpoint, or with one seen before.
    pub consistency_problems: Vec<String>,
    /// The largest size that a good checkpoint covers.
    pub covered: u64,
}

/// One line's share of the work: its place in the chain, its hashes, the row where it is wanted.
struct Checked<'a> {
    raw: Option<RawRow<'a>>,
    sealed: bool,
    leaf: Digest,
    row: Option<Row>,
}

/// Checks a ledger. `seen` is the last checkpoint that was seen of it, wherever that was kept.
pub fn verify_ledger(
    bytes: &[u8],
    notes: &[u8],
    key: Option<&PublicKey>,
    origin: Option<&str>,
    seen: Option<&[u8]>,
) -> LedgerReport {
    let mut checker = Checker::new(notes, origin, seen);
    let (whole, torn) = bytes.split_at(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
    checker.piece(whole, None);
    checker.finish(!torn.is_empty(), &Keyring::of(key))
}

/// A ledger that is checked piece by piece, with its checkpoints.
#[derive(Debug)]
pub struct Checker<'n> {
    report: LedgerReport,
    problems: Tally,
    /// The checkpoints, of which nobody knows yet whether their signatures hold.
    notes: &'n [u8],
    /// The session's origin, where it is known.
    origin: Option<String>,
    /// The checkpoint last seen: nothing where it is no text.
    seen: Option<Option<String>>,
    /// The sizes whose roots are wanted; the roots as they are come by.
    roots: BTreeMap<u64, Option<Digest>>,
    tree: Tree,
    /// The seal and the number that the next row has to follow.
    before: Vec<u8>,
    expected: u64,
    /// Whether every line so far was a row.
    readable: bool,
    /// How many lines were none.
    broken: u64,
}

impl<'n> Checker<'n> {
    /// Looks at which sizes there are checkpoints; the rows come after, and the keys, which rows may introduce, at the end.
    pub fn new(notes: &'n [u8], origin: Option<&str>, seen: Option<&[u8]>) -> Self {
        let mut report = LedgerReport::default();
        let seen = seen.map(|seen| std::str::from_utf8(seen).ok().map(str::to_owned));
        let mut each = Notes(notes);
        let size = |note: &str| Some(Checkpoint::read(note).ok()?.size);
        let mut roots: BTreeMap<u64, Option<Digest>> =
            each.by_ref().filter_map(size).map(|size| (size, None)).collect();
        roots.extend(seen.iter().flatten().filter_map(|note| size(note)).map(|size| (size, None)));
        if !each.0.is_empty() {
            report.checkpoint_problems.push("the checkpoints end in bytes that are no checkpoint".to_owned());
        }
        let tree = Tree::default();
        roots.entry(0).and_modify(|root| *root = Some(tree.root()));
        Self {
            report,
            problems: Tally::default(),
            notes,
            origin: origin.map(str::to_owned),
            seen,
            roots,
            tree,
            before: "0".repeat(64).into_bytes(),
            expected: 0,
            readable: true,
            broken: 0,
        }
    }

    /// Takes the next lines, each with its end. Adds their rows to `rows`, up to the first line that is none.
    pub fn piece(&mut self, bytes: &[u8], mut rows: Option<&mut Vec<Row>>) {
        let mut rest = bytes;
        while self.broken <= MOST_BROKEN {
            let (next, behind) = lines(rest, AT_ONCE);
            if next.is_empty() {
                return;
            }
            self.batch(rest.len() - behind.len(), &next, rows.as_deref_mut());
            rest = behind;
        }
    }

    /// The same of lines that have so many bytes together.
    fn batch(&mut self, size: usize, lines: &[&[u8]], rows: Option<&mut Vec<Row>>) {
        let work = Work { tree: !self.roots.is_empty(), rows: rows.is_some() && self.readable };
        let mut checked = check_all(size, lines, work);
        self.chain(&checked);
        if work.tree {
            for line in &checked {
                self.tree.push_leaf(line.leaf);
                let size = self.tree.size();
                if let Some(root) = self.roots.get_mut(&size) {
                    *root = Some(self.tree.root());
                }
            }
        }
        let whole = checked.iter().take_while(|line| line.row.is_some()).count();
        self.readable &= !work.rows || whole == checked.len();
        if let Some(rows) = rows {
            rows.extend(checked.iter_mut().take(whole).filter_map(|line| line.row.take()));
        }
    }

    /// A line that is longer than any row may be: nothing behind it is looked at.
    pub fn endless(&mut self) {
        self.report.problems.push(format!("line {}: longer than a row may be", self.report.rows + 1));
    }

    /// How many whole lines there were so far.
    pub const fn rows(&self) -> u64 {
        self.report.rows
    }

    /// What it all comes to under these keys. `torn` says that bytes without a line end came last.
    pub fn finish(mut self, torn: bool, keys: &Keyring) -> LedgerReport {
        if torn {
            self.report.problems.push(format!("line {}: cut off before its end", self.report.rows + 1));
        }
        self.report.problems.splice(0..0, self.problems.texts());
        self.consistency(keys);
        self.against_seen(keys);
        self.report.checkpoint_problems.truncate(MOST);
        self.report.consistency_problems.truncate(MOST);
        self.report
    }

    fn chain(&mut self, lines: &[Checked<'_>]) {
        for line in lines {
            let index = self.report.rows;
            self.report.rows += 1;
            let Some(row) = &line.raw else {
                self.problems.add(index, "edited: not in the form a row is written in");
                self.expected += 1;
                self.broken += 1;
                if self.broken == MOST_BROKEN + 1 {
                    let why = format!(
                        "line {}: more than {MOST_BROKEN} lines are no rows, and nothing behind is looked at",
                        index + 1
                    );
                    self.report.problems.push(why);
                }
                continue;
            };
            if row.sequence != self.expected {
                self.problems.apart(out_of_place(index, row.sequence, self.expected));
            } else if row.prev_hash != self.before {
                self.problems.add(index, "does not follow the row before it: one of the two was edited");
            }
            if !line.sealed {
                self.problems.add(index, "edited: its entryHash does not fit its content");
            }
            self.before.clear();
            self.before.extend_from_slice(row.entry_hash);
            self.expected = row.sequence.saturating_add(1);
        }
    }

    /// The signed checkpoints against the rows, and against each other.
    fn consistency(&mut self, keys: &Keyring) {
        let (mut notes, mut before, mut number) = (Notes(self.notes), 0, 0_u64);
        let mut next = || {
            let notes: Vec<&str> = notes.by_ref().take(NOTES_AT_ONCE).collect();
            let verified = verify_all(&notes, keys);
            (!notes.is_empty()).then(|| notes.into_iter().zip(verified))
        };
        for (note, verified) in std::iter::from_fn(&mut next).flatten() {
            number += 1;
            let found = match self.signed(note, verified) {
                Ok(found) => found,
                Err(problem) => {
                    told(&mut self.report.checkpoint_problems, || format!("checkpoint {number}: {problem}"));
                    continue;
                }
            };
            let shrunk = (found.size < before).then(|| format!("covers fewer rows than the one before ({before})"));
            match self.disagreement(&found).or(shrunk) {
                Some(why) => {
                    let problem = || format!("checkpoint {number} over {} rows: {why}", found.size);
                    told(&mut self.report.consistency_problems, problem);
                }
                None => {
                    self.report.checkpoints += 1;
                    self.report.covered = self.report.covered.max(found.size);
                }
            }
            before = before.max(found.size);
        }
    }

    /// The checkpoint in a note whose signature holds and that is of this log; or why it is none.
    fn signed(&mut self, note: &str, verified: Option<Verified>) -> Result<Checkpoint, String> {
        match verified {
            None => {
                self.report.strangers += usize::from(Checkpoint::read(note).is_ok());
                Err("no key is known to check it with".to_owned())
            }
            Some(Err(error)) => {
                self.report.strangers += usize::from(error == NoteError::OtherKey);
                Err(error.to_string())
            }
            Some(Ok((found, _))) if self.origin.as_ref().is_some_and(|origin| *origin != found.origin) => {
                Err(format!("belongs to `{}`", found.origin))
            }
            // A note of before custody was named names none.
            Some(Ok((found, Some(kept)))) if found.kept.unwrap_or_default() != kept => {
                Err(format!("names another custody or successor of its key than the record (`{}`)", kept.custody))
            }
            Some(Ok((found, _))) => Ok(found),
        }
    }

    fn against_seen(&mut self, keys: &Keyring) {
        let Some(seen) = self.seen.take() else { return };
        let Some(seen) = seen.and_then(|note| Some(verify(&note, keys)?.ok()?.0)) else {
            let problem = "the checkpoint last seen here cannot be checked";
            return self.report.consistency_problems.push(problem.to_owned());
        };
        let which = format!("the checkpoint over {} rows that was", seen.size);
        if let Some(why) = self.disagreement(&seen) {
            self.report.consistency_problems.push(format!("{which} last seen here: {why}"));
        } else if self.report.covered < seen.size {
            self.report.checkpoint_problems.push(format!("{which} seen here is missing"));
        }
    }

    fn disagreement(&self, found: &Checkpoint) -> Option<String> {
        if found.size > self.report.rows {
            return Some(format!("the ledger has only {}: its tail was cut", self.report.rows));
        }
        let root = self.roots.get(&found.size).copied().flatten();
        (root != Some(found.root)).then(|| "another root: rows it covers were changed".to_owned())
    }
}

/// Adds a problem where a report has room for one more.
fn told(problems: &mut Vec<String>, problem: impl FnOnce() -> String) {
    if problems.len() < MOST {
        problems.push(problem());
    }
}

/// The first whole lines, at most so many, without their ends; and what comes after them.
fn lines(bytes: &[u8], most: usize) -> (Vec<&[u8]>, &[u8]) {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while lines.len() < most
        && let Some((line, tail)) = line_end(rest).and_then(|end| rest.split_at_checked(end))
    {
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

/// What is wanted of each line beside its place in the chain.
#[derive(Clone, Copy)]
struct Work {
    /// Its leaf hash, a third of the work, which is left out where no checkpoint needs it.
    tree: bool,
    /// The row it holds.
    rows: bool,
}

fn check_all<'a>(size: usize, lines: &[&'a [u8]], work: Work) -> Vec<Checked<'a>> {
    if size < PARALLEL_BYTES {
        return check(lines, work);
    }
    let (front, back) = lines.split_at(lines.len() / 2);
    thread::scope(|scope| {
        let back_half = scope.spawn(|| check(back, work));
        let mut all = check(front, work);
        match back_half.join() {
            Ok(rest) => all.extend(rest),
            Err(_) => all.extend(check(back, work)),
        }
        all
    })
}

/// Checks lines by themselves.
fn check<'a>(lines: &[&'a [u8]], work: Work) -> Vec<Checked<'a>> {
    let mut room = Vec::new();
    let one = |line: &&'a [u8]| {
        let raw = RawRow::scan(line);
        let sealed = raw.as_ref().is_some_and(|raw| raw.is_sealed(&mut room));
        let leaf = if work.tree { leaf_in(line, &mut room) } else { Digest::ZERO };
        let row = raw.as_ref().filter(|_| work.rows && sealed).and_then(|raw| Row::from_raw(raw).ok());
        Checked { raw, sealed, leaf, row }
    };
    lines.iter().map(one).collect()
}

fn out_of_place(index: u64, found: u64, expected: u64) -> String {
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

/// A note under the key that signs for so many rows, and what is said to keep that; `None` where there is no key.
fn verify(note: &str, keys: &Keyring) -> Option<Verified> {
    let size = match Checkpoint::read(note) {
        Ok(read) => read.size,
        Err(_) if keys.is_empty() => return None,
        Err(error) => return Some(Err(error)),
    };
    let (key, kept) = keys.at(size)?;
    Some(Checkpoint::verify(note, key).map(|found| (found, kept)))
}

/// The same of many, by two threads: signatures are what takes longest.
fn verify_all(notes: &[&str], keys: &Keyring) -> Vec<Option<Verified>> {
    let all = |notes: &[&str]| -> Vec<_> { notes.iter().map(|note| verify(note, keys)).collect() };
    if notes.len() < FEW_NOTES {
        return all(notes);
    }
    let (front, back) = notes.split_at(notes.len() / 2);
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || all(back)).ok();
        let mut verified = all(front);
        verified.extend(other.and_then(|other| other.join().ok()).unwrap_or_else(|| all(back)));
        verified
    })
}

/// The notes in a file of them, and what is left over: a note torn by a crash.
pub fn split_notes(bytes: &[u8]) -> (Vec<&str>, &[u8]) {
    let mut each = Notes(bytes);
    let notes = each.by_ref().collect();
    (notes, each.0)
}

/// One note after the other; in the end what is left over.
struct Notes<'n>(&'n [u8]);

impl<'n> Iterator for Notes<'n> {
    type Item = &'n str;

    fn next(&mut self) -> Option<&'n str> {
        let (note, rest) = self.0.split_at_checked(note_end(self.0)?)?;
        let note = std::str::from_utf8(note).ok()?;
        self.0 = rest;
        Some(note)
    }
}

fn note_end(bytes: &[u8]) -> Option<usize> {
    let blank = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let signature = bytes.get(blank + 2..)?.iter().position(|&byte| byte == b'\n')?;
    Some(blank + 2 + signature + 1)
}
