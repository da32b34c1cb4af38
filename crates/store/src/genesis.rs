//! The first rows of sessions, which every event of a session asks for.
//!
//! Owns what this process remembers of them: a row is taken apart once, and again only where its line has become another. Refuses to
//! remember many. Invariant: a row is given out for the bytes that were read just now, never for a file's name. Page: `spec/ledger.md`.

use std::sync::{Arc, Mutex, PoisonError};

use writ_evidence::row::{Row, RowError};

/// Most rows that are remembered: a process that serves many sessions reads the others again.
const MOST: usize = 16;

/// A line and the row that it is.
type Known = (Box<[u8]>, Arc<Row>);

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The row of a line.
pub fn row(line: &[u8]) -> Result<Arc<Row>, RowError> {
    let find = |known: &[Known]| known.iter().find(|(known, _)| **known == *line).map(|(_, row)| Arc::clone(row));
    if let Some(row) = find(&KNOWN.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(row);
    }
    let row = Arc::new(Row::parse(line)?);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if find(&known).is_none() {
        known.truncate(MOST - 1);
        known.insert(0, (line.into(), Arc::clone(&row)));
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_core::Timestamp;
    use writ_core::json::Value;
    use writ_evidence::row::{Draft, RowDecision};

    fn line(tool: &str) -> String {
        let draft = Draft {
            timestamp: Timestamp::from_millis(0),
            call_id: None,
            tool_name: Some(tool.to_owned()),
            decision: RowDecision::Checkpoint,
            denial_reason: None,
            result_hash: None,
            detail: Value::Null,
        };
        Row::seal(None, draft).unwrap().to_line()
    }

    #[test]
    fn a_row_is_that_of_its_line_however_many_were_asked_for() {
        let lines: Vec<String> = (0..3 * MOST).map(|number| line(&format!("tool-{number}"))).collect();
        for line in lines.iter().chain(lines.iter().rev()) {
            assert_eq!(row(line.as_bytes()).unwrap().to_line(), *line);
            let mut bent = line.clone().into_bytes();
            bent[2] ^= 1;
            assert!(row(&bent).is_err());
        }
        assert!(KNOWN.lock().unwrap().len() <= MOST);
    }
}
