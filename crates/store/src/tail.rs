//! The end of a ledger: its last row, and whatever a crash left behind it.
//!
//! Reads as little of the file as will do; changes nothing. Invariant: `whole` is the length of the file up to and with the
//! line end of `last`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use writ_evidence::row::Row;

use crate::error::{StoreError, io};

/// Bytes read at first: most rows are far smaller.
const FIRST_WINDOW: u64 = 8 << 10;
/// Bytes read at once where more rows are wanted.
const WINDOW: u64 = 256 << 10;
/// Bytes in which a row is looked for.
const SEARCHED: u64 = 4 << 20;
/// Most bytes behind the last line end that are taken for a torn row rather than for damage.
const MAX_TORN: u64 = 1 << 20;

/// What a ledger ends in.
pub struct Tail {
    /// The last whole row.
    pub last: Option<Row>,
    /// Length of the file up to the end of `last`.
    pub whole: u64,
    /// Bytes after it: a row that was being written when the process or the machine died.
    pub torn: Vec<u8>,
}

/// Reads the end of `file`.
pub fn read(file: &File, path: &Path) -> Result<Tail, StoreError> {
    let len = file.metadata().map_err(io("read", path))?.len();
    let mut window = FIRST_WINDOW;
    loop {
        let start = len.saturating_sub(window);
        let bytes = read_from(file, start, len).map_err(io("read", path))?;
        if let Some((line, torn_at)) = split(&bytes, start == 0) {
            let row = |line: &[u8]| Row::parse(line).map_err(|error| damaged(path, format!("last row: {error}")));
            let torn = bytes.get(torn_at..).unwrap_or_default().to_vec();
            return Ok(Tail { last: line.map(row).transpose()?, whole: len - torn.len() as u64, torn });
        }
        if window > MAX_TORN {
            return Err(damaged(path, format!("no line ends within its last {window} bytes")));
        }
        window *= 8;
    }
}

/// The last row that is as wanted, among those that end within [`SEARCHED`] of the end. Lines that are no rows are passed over.
pub fn find(file: &File, path: &Path, wanted: impl Fn(&Row) -> bool) -> Result<Option<Row>, StoreError> {
    let len = file.metadata().map_err(io("read", path))?.len();
    let mut window = FIRST_WINDOW;
    loop {
        let start = len.saturating_sub(window);
        let bytes = read_from(file, start, len).map_err(io("read", path))?;
        // The first line may have begun earlier.
        let whole = if start == 0 { Some(0) } else { bytes.iter().position(|&byte| byte == b'\n').map(|at| at + 1) };
        let lines = bytes.get(whole.unwrap_or(bytes.len())..).unwrap_or_default();
        let rows = lines.split(|&byte| byte == b'\n').rev().filter_map(|line| Row::parse(line).ok());
        if let Some(found) = rows.into_iter().find(|row| wanted(row)) {
            return Ok(Some(found));
        }
        if start == 0 || window > SEARCHED {
            return Ok(None);
        }
        window *= 8;
    }
}

/// Gives the rows from the last to the first, until `take` says that it has enough. A row that is just being written is not there yet.
pub fn rows_back(file: &File, path: &Path, mut take: impl FnMut(Row) -> bool) -> Result<(), StoreError> {
    back(file, path, |line| Ok(take(Row::parse(line).map_err(|error| damaged(path, format!("a row: {error}")))?)))
}

/// Gives the lines of rows from the last to the first, until `take` says that it has enough.
pub fn back(
    file: &File,
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let mut end = read(file, path)?.whole;
    let mut window = FIRST_WINDOW;
    while end > 0 {
        let start = end.saturating_sub(window);
        let bytes = read_from(file, start, end).map_err(io("read", path))?;
        // The first line may have begun earlier.
        let whole = if start == 0 { Some(0) } else { bytes.iter().position(|&byte| byte == b'\n').map(|at| at + 1) };
        let lines = bytes.get(whole.unwrap_or(bytes.len())..).unwrap_or_default();
        let Some(lines) = lines.strip_suffix(b"\n") else {
            if window > MAX_TORN {
                return Err(damaged(path, format!("no line ends within {window} bytes before byte {end}")));
            }
            window *= 8;
            continue;
        };
        for line in lines.rsplit(|&byte| byte == b'\n') {
            if !take(line)? {
                return Ok(());
            }
        }
        end = start + whole.unwrap_or_default() as u64;
        window = WINDOW;
    }
    Ok(())
}

/// The line that ends right before byte `end`, if one does and is no longer than a row is now and then.
pub fn line_before(file: &File, end: u64) -> std::io::Result<Option<Vec<u8>>> {
    let start = end.saturating_sub(WINDOW);
    let bytes = read_from(file, start, end)?;
    let Some(line) = bytes.strip_suffix(b"\n") else { return Ok(None) };
    let before = line.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1).or((start == 0).then_some(0));
    Ok(before.and_then(|at| line.get(at..)).map(<[u8]>::to_vec))
}

/// The last whole line and where the torn bytes begin; `None` when more of the file is needed to tell.
///
/// A line with a NUL byte counts as torn though it has its end: some file systems fill unwritten blocks with zeros after a
/// power cut, and no row holds a raw NUL.
fn split(bytes: &[u8], from_start: bool) -> Option<(Option<&[u8]>, usize)> {
    let mut end = bytes.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1);
    loop {
        let Some(after) = end else {
            return from_start.then_some((None, 0));
        };
        let line_end = after - 1;
        let before = bytes.get(..line_end)?.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1);
        let line = match before {
            Some(start) => bytes.get(start..line_end)?,
            None if from_start => bytes.get(..line_end)?,
            None => return None,
        };
        if !line.contains(&0) {
            return Some((Some(line), after));
        }
        end = before;
    }
}

fn read_from(file: &File, start: u64, end: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

fn damaged(path: &Path, why: String) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_the_last_whole_line() {
        let none: Option<&[u8]> = None;
        assert_eq!(split(b"", true), Some((none, 0)));
        assert_eq!(split(b"ab", true), Some((none, 0)));
        assert_eq!(split(b"ab\n", true), Some((Some(b"ab".as_slice()), 3)));
        assert_eq!(split(b"ab\ncd", true), Some((Some(b"ab".as_slice()), 3)));
        assert_eq!(split(b"ab\nc\0d\n", true), Some((Some(b"ab".as_slice()), 3)));
        assert_eq!(split(b"\0\0\n\0", true), Some((none, 0)));
    }

    #[test]
    fn asks_for_more_when_the_line_began_earlier() {
        assert_eq!(split(b"ab", false), None);
        assert_eq!(split(b"ab\ncd", false), None);
        assert_eq!(split(b"x\nab\ncd", false), Some((Some(b"ab".as_slice()), 5)));
    }
}
