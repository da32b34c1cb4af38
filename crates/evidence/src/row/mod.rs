//! One row of a ledger: what was decided, what came of it, sealed to the row before (R40, R41).
//!
//! Owns the row's line and its hashes. The line is written and taken apart by hand: the hook writes one on each call, and
//! verification reads it at the speed of hashing, without a value in between. Refuses a line that is not byte for byte what
//! [`Row::to_line`] writes. Invariant: a [`Row`] that was sealed or parsed carries the `entryHash` of its own members. Page:
//! `spec/ledger.md`.

pub(crate) mod raw;

use std::fmt;

use serde::{Deserialize, Serialize};
use writ_core::json::{self, FormatError, JsonError, Value, canonical, write_string};
use writ_core::{Digest, Timestamp};

use raw::RawRow;

/// Largest line, without its line break: a tiled log takes entries up to 65,535 bytes.
pub const MAX_LINE: usize = 60_000;
/// What a line ends in: 64 digits, a quote, a brace.
const SEAL_LEN: usize = 66;

/// What a row says of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RowDecision {
    /// It was allowed, before it ran.
    Approved,
    /// It was denied.
    Denied,
    /// A human was to be asked.
    Asked,
    /// There is no such tool.
    Hallucinated,
    /// It ran and gave a result.
    Completed,
    /// It ran and failed.
    Failed,
    /// No call: something happened to the session itself.
    Checkpoint,
}

impl RowDecision {
    /// The word in the row.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }
}

impl fmt::Display for RowDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A row before it has its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// When.
    pub timestamp: Timestamp,
    /// The client's id of the call.
    pub call_id: Option<String>,
    /// The tool.
    pub tool_name: Option<String>,
    /// What is said of the call.
    pub decision: RowDecision,
    /// Why it was denied or asked.
    pub denial_reason: Option<String>,
    /// Digest of its result, or of its error.
    pub result_hash: Option<Digest>,
    /// Everything else; `Null` when there is nothing. Integers in it stay within ±(2^53 − 1).
    pub detail: Value,
}

/// A row in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its place, from 0.
    pub sequence: u64,
    /// When.
    pub timestamp: Timestamp,
    /// The client's id of the call.
    pub call_id: Option<String>,
    /// The tool.
    pub tool_name: Option<String>,
    /// What is said of the call.
    pub decision: RowDecision,
    /// Why it was denied or asked.
    pub denial_reason: Option<String>,
    /// Digest of its result, or of its error.
    pub result_hash: Option<Digest>,
    /// Everything else.
    pub detail: Value,
    /// `entryHash` of the row before; zeros for the first.
    pub prev_hash: Digest,
    /// Seals all of the above.
    pub entry_hash: Digest,
}

/// Why a line is no row, or a draft makes none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] JsonError),
    /// JSON, but not byte for byte what Writ writes.
    #[error("not in the form a row is written in")]
    NotCanonical,
    /// `entryHash` does not seal the members.
    #[error("edited: its entryHash does not fit its content")]
    Edited,
    /// Longer than [`MAX_LINE`].
    #[error("{len} bytes, a row has at most {MAX_LINE}")]
    TooLong {
        /// How long.
        len: usize,
    },
    /// A draft that would not read back.
    #[error(
        "no row can hold it: a number beyond ±(2^53 − 1), deeper nesting than 64, a repeated member, or no year of four digits"
    )]
    Unwritable,
}

impl Row {
    /// Puts a draft behind `prev` and seals it.
    pub fn seal(prev: Option<&Self>, draft: Draft) -> Result<Self, RowError> {
        Self::seal_line(prev, draft).map(|(row, _)| row)
    }

    /// The same, with the row's line, which was written for its seal anyway. What is returned reads back: the line went
    /// through the scanner that every reader uses.
    pub fn seal_line(prev: Option<&Self>, draft: Draft) -> Result<(Self, String), RowError> {
        let mut row = Self {
            sequence: prev.map_or(0, |row| row.sequence + 1),
            timestamp: draft.timestamp,
            call_id: draft.call_id,
            tool_name: draft.tool_name,
            decision: draft.decision,
            denial_reason: draft.denial_reason,
            result_hash: draft.result_hash,
            detail: draft.detail,
            prev_hash: prev.map_or(Digest::ZERO, |row| row.entry_hash),
            entry_hash: Digest::ZERO,
        };
        let mut line = row.to_line();
        if line.len() > MAX_LINE {
            return Err(RowError::TooLong { len: line.len() });
        }
        row.entry_hash = RawRow::scan(line.as_bytes()).ok_or(RowError::Unwritable)?.seal(&mut Vec::new());
        line.truncate(line.len() - SEAL_LEN);
        row.push_seal(&mut line);
        Ok((row, line))
    }

    /// The row as its line, without the line break: members in R40's order, no white space, `detail` canonical.
    pub fn to_line(&self) -> String {
        let mut out = format!("{{\"sequence\":{},\"timestamp\":\"{}\"", self.sequence, self.timestamp);
        for (name, value) in [("callId", &self.call_id), ("toolName", &self.tool_name)] {
            push(&mut out, name, value.as_deref());
        }
        push(&mut out, "decision", Some(self.decision.as_str()));
        push(&mut out, "denialReason", self.denial_reason.as_deref());
        push(&mut out, "resultHash", self.result_hash.map(|digest| digest.hex()).as_deref());
        out.push_str(",\"detail\":");
        out.push_str(&canonical(&self.detail));
        push(&mut out, "prevHash", Some(&self.prev_hash.hex()));
        out.push_str(",\"entryHash\":\"");
        self.push_seal(&mut out);
        out
    }

    fn push_seal(&self, out: &mut String) {
        out.push_str(&self.entry_hash.hex());
        out.push_str("\"}");
    }

    /// Reads a line and checks that it is canonical and sealed by its own `entryHash`.
    pub fn parse(line: &[u8]) -> Result<Self, RowError> {
        if line.len() > MAX_LINE {
            return Err(RowError::TooLong { len: line.len() });
        }
        let Some(raw) = RawRow::scan(line) else {
            return Err(json::parse(line).err().map_or(RowError::NotCanonical, RowError::Json));
        };
        if !raw.is_sealed(&mut Vec::new()) {
            return Err(RowError::Edited);
        }
        Self::from_raw(&raw)
    }

    /// The row that a line's pieces make. Whether they are sealed is the caller's affair.
    pub(crate) fn from_raw(raw: &RawRow<'_>) -> Result<Self, RowError> {
        Ok(Self {
            sequence: raw.sequence,
            timestamp: piece(raw.timestamp)?,
            call_id: piece(raw.call_id)?,
            tool_name: piece(raw.tool_name)?,
            decision: raw.decision,
            denial_reason: piece(raw.denial_reason)?,
            result_hash: piece::<Option<String>>(raw.result_hash)?.map(|digits| hash(digits.as_bytes())).transpose()?,
            detail: json::parse(raw.detail)?,
            prev_hash: hash(raw.prev_hash)?,
            entry_hash: hash(raw.entry_hash)?,
        })
    }

    /// Reads every line that is a row, up to the first that is none.
    pub fn parse_all(bytes: &[u8]) -> (Vec<Self>, Option<String>) {
        let mut rows = Vec::new();
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let number = index + 1;
            let Some(line) = line.strip_suffix(b"\n") else {
                return (rows, Some(format!("line {number} is cut off")));
            };
            match Self::parse(line) {
                Ok(row) => rows.push(row),
                Err(error) => return (rows, Some(format!("line {number}: {error}"))),
            }
        }
        (rows, None)
    }

    /// The row as JSON, for showing.
    pub fn to_json(&self) -> Value {
        json::parse(self.to_line().as_bytes()).unwrap_or(Value::Null)
    }
}

/// The call id in a row's line, read without building the row; `None` when there is none or the line is no row.
pub fn call_id(line: &[u8]) -> Option<String> {
    piece(RawRow::scan(line)?.call_id).ok()?
}

fn push(out: &mut String, name: &str, value: Option<&str>) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
    match value {
        Some(text) => write_string(text, out),
        None => out.push_str("null"),
    }
}

/// A piece of the line as what it says.
fn piece<'a, T: Deserialize<'a>>(piece: &'a [u8]) -> Result<T, RowError> {
    json::from_slice(piece).map_err(|error| match error {
        FormatError::Json(error) => RowError::Json(error),
        FormatError::Shape { .. } => RowError::NotCanonical,
    })
}

fn hash(digits: &[u8]) -> Result<Digest, RowError> {
    std::str::from_utf8(digits).ok().and_then(|digits| Digest::from_hex(digits).ok()).ok_or(RowError::NotCanonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(tool: &str) -> Draft {
        Draft {
            timestamp: Timestamp::from_millis(1_768_732_200_000),
            call_id: Some("c\"1".to_owned()),
            tool_name: Some(tool.to_owned()),
            decision: RowDecision::Approved,
            denial_reason: None,
            result_hash: None,
            detail: json::parse(br#"{"b":1,"a":"x"}"#).unwrap(),
        }
    }

    #[test]
    fn a_sealed_row_reads_back() {
        let first = Row::seal(None, draft("Read")).unwrap();
        let second = Row::seal(Some(&first), Draft { detail: Value::Null, ..draft("Write") }).unwrap();
        assert_eq!(second.prev_hash, first.entry_hash);
        for row in [&first, &second] {
            let again = Row::parse(row.to_line().as_bytes()).unwrap();
            assert_eq!((again.to_line(), again.entry_hash), (row.to_line(), row.entry_hash));
        }
        assert!(first.to_line().contains(r#""detail":{"a":"x","b":1}"#));
    }

    #[test]
    fn any_changed_byte_is_refused() {
        let line = Row::seal(None, draft("Read")).unwrap().to_line();
        for at in 0..line.len() {
            for bit in [1u8, 32] {
                let mut bent = line.clone().into_bytes();
                bent[at] ^= bit;
                assert!(Row::parse(&bent).is_err(), "byte {at}");
            }
        }
        assert_eq!(Row::parse(line.replace(",\"detail\"", ", \"detail\"").as_bytes()), Err(RowError::NotCanonical));
    }

    /// What would not read back is refused before it is written.
    #[test]
    fn drafts_that_would_not_read_back_are_refused() {
        let mut twice = json::Object::new();
        twice.push("a", Value::Null);
        twice.push("a", Value::Null);
        let deep = (0..65).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        for detail in
            [Value::Number(f64::NAN), Value::Number(f64::INFINITY), Value::Number(1e17), Value::Object(twice), deep]
        {
            assert_eq!(Row::seal(None, Draft { detail, ..draft("Read") }), Err(RowError::Unwritable));
        }
        let late = Draft { timestamp: Timestamp::from_millis(i64::MAX), ..draft("Read") };
        assert_eq!(Row::seal(None, late), Err(RowError::Unwritable));
        let deep = (0..64).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let row = Row::seal(None, Draft { detail: deep, ..draft("Read") }).unwrap();
        assert_eq!(Row::parse(row.to_line().as_bytes()), Ok(row));
    }

    #[test]
    fn the_line_of_a_seal_is_the_rows_line() {
        let (row, line) = Row::seal_line(None, draft("Read")).unwrap();
        assert_eq!(row.to_line(), line);
        assert_eq!(call_id(line.as_bytes()).as_deref(), Some("c\"1"));
        assert_eq!(call_id(b"{}"), None);
    }

    #[test]
    fn rows_are_bounded() {
        let long = Draft { denial_reason: Some("x".repeat(MAX_LINE)), ..draft("Read") };
        assert!(matches!(Row::seal(None, long), Err(RowError::TooLong { .. })));
    }
}
