//! One row of a ledger: what was decided, what came of it, sealed to the row before (R40, R41).
//!
//! Owns the row's line and its hashes. Refuses a line that is not byte for byte what [`Row::to_line`] writes. Invariant: a
//! [`Row`] that was sealed or parsed carries the `entryHash` of its own members. Page: `spec/ledger.md`.

use std::fmt;

use writ_core::json::{self, JsonError, Limits, Value, canonical, write_string};
use writ_core::{Digest, DigestError, TimeError, Timestamp};

use crate::raw::RawRow;

/// Largest line, without its line break: a tiled log takes entries up to 65,535 bytes.
pub const MAX_LINE: usize = 60_000;

/// What a row says of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    const ALL: [Self; 7] =
        [Self::Approved, Self::Denied, Self::Asked, Self::Hallucinated, Self::Completed, Self::Failed, Self::Checkpoint];

    /// The word in the row.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "APPROVED",
            Self::Denied => "DENIED",
            Self::Asked => "ASKED",
            Self::Hallucinated => "HALLUCINATED",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Checkpoint => "CHECKPOINT",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == word)
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

/// Why a line is no row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] JsonError),
    /// A member is missing, superfluous, out of order or of the wrong kind.
    #[error("`{0}` is not as a row has it")]
    Member(&'static str),
    /// A hash that is none.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// A time that is none.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// The line says the same in other bytes than Writ writes.
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
}

impl Row {
    /// Puts a draft behind `prev` and seals it.
    pub fn seal(prev: Option<&Self>, draft: Draft) -> Result<Self, RowError> {
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
        row.entry_hash = row.hash();
        let len = row.to_line().len();
        if len > MAX_LINE { Err(RowError::TooLong { len }) } else { Ok(row) }
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
        push(&mut out, "entryHash", Some(&self.entry_hash.hex()));
        out.push('}');
        out
    }

    /// Reads a line and checks that it is canonical and sealed by its own `entryHash`.
    pub fn parse(line: &[u8]) -> Result<Self, RowError> {
        if line.len() > MAX_LINE {
            return Err(RowError::TooLong { len: line.len() });
        }
        let value = json::parse_with(line, Limits::OURS)?;
        let row = Self {
            sequence: value.get("sequence").and_then(Value::as_u64).ok_or(RowError::Member("sequence"))?,
            timestamp: Timestamp::parse(&text(&value, "timestamp")?.ok_or(RowError::Member("timestamp"))?)?,
            call_id: text(&value, "callId")?,
            tool_name: text(&value, "toolName")?,
            decision: text(&value, "decision")?.as_deref().and_then(RowDecision::parse).ok_or(RowError::Member("decision"))?,
            denial_reason: text(&value, "denialReason")?,
            result_hash: text(&value, "resultHash")?.map(|hex| Digest::from_hex(&hex)).transpose()?,
            detail: value.get("detail").cloned().ok_or(RowError::Member("detail"))?,
            prev_hash: Digest::from_hex(&text(&value, "prevHash")?.ok_or(RowError::Member("prevHash"))?)?,
            entry_hash: Digest::from_hex(&text(&value, "entryHash")?.ok_or(RowError::Member("entryHash"))?)?,
        };
        if row.to_line().as_bytes() != line {
            return Err(RowError::NotCanonical);
        }
        if row.hash() == row.entry_hash { Ok(row) } else { Err(RowError::Edited) }
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

    /// SHA-256 of the canonical array `[prevHash, sequence, callId, toolName, decision, denialReason, resultHash,
    /// timestamp, detailHash]` (R40).
    fn hash(&self) -> Digest {
        let detail = match &self.detail {
            Value::Null => Value::Null,
            detail => Value::from(Digest::of(canonical(detail).as_bytes()).hex()),
        };
        let items = vec![
            Value::from(self.prev_hash.hex()),
            Value::from(self.sequence),
            Value::from(self.call_id.as_deref()),
            Value::from(self.tool_name.as_deref()),
            Value::from(self.decision.as_str()),
            Value::from(self.denial_reason.as_deref()),
            Value::from(self.result_hash.map(|digest| digest.hex())),
            Value::from(self.timestamp.to_string()),
            detail,
        ];
        Digest::of(canonical(&Value::Array(items)).as_bytes())
    }
}

/// The call id in a row's line, read without building the row; `None` when there is none or the line is no row.
pub fn call_id(line: &[u8]) -> Option<String> {
    let row = RawRow::scan(line)?;
    json::parse(row.call_id()).ok()?.as_str().map(str::to_owned)
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

fn text(value: &Value, name: &'static str) -> Result<Option<String>, RowError> {
    match value.get(name) {
        Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        _ => Err(RowError::Member(name)),
    }
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

    #[test]
    fn rows_are_bounded() {
        let long = Draft { denial_reason: Some("x".repeat(MAX_LINE)), ..draft("Read") };
        assert!(matches!(Row::seal(None, long), Err(RowError::TooLong { .. })));
    }
}
