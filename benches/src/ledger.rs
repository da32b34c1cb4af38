//! A ledger: verifying it, against hashing its bytes once.

use std::hint::black_box;

use anyhow::{Result, ensure};
use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, Timestamp};
use writ_evidence::checkpoint::{Checkpoint, origin};
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::ledger::verify_ledger;
use writ_evidence::merkle::Tree;
use writ_evidence::row::{Draft, Row, RowDecision};

use crate::measure::{Bar, Figure, per_call};

/// Rows in the ledger: a long working day of an agent.
const ROWS: usize = 20_000;

/// Measures verification of a ledger that one checkpoint covers.
pub fn run() -> Result<Vec<Figure>> {
    let key = SigningKey::generate(Algorithm::Ed25519)?;
    let origin = origin(&SessionId::new("bench"));
    let (bytes, tree) = ledger()?;
    let note = Checkpoint { origin: origin.clone(), size: tree.size(), root: tree.root(), kept: None }.sign(&key)?;
    let verify = || verify_ledger(black_box(&bytes), note.as_bytes(), Some(key.public()), Some(&origin), None);
    let report = verify();
    ensure!(report.problems.is_empty() && report.covered == ROWS as u64, "the ledger does not verify: {report:?}");
    let figure = Figure::time(
        format!("ledger: verify {ROWS} rows"),
        per_call(verify),
        ("SHA-256 of the same bytes", per_call(|| Digest::of(black_box(&bytes)))),
        Bar::SpeedOfBaseline(0.2),
    );
    Ok(vec![Figure { bytes: Some(bytes.len()), ..figure }])
}

fn ledger() -> Result<(Vec<u8>, Tree)> {
    let (mut bytes, mut tree) = (Vec::new(), Tree::default());
    let mut last: Option<Row> = None;
    for number in 0..ROWS {
        let row = Row::seal(last.as_ref(), draft(number)?)?;
        let line = row.to_line();
        tree.push(line.as_bytes());
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        last = Some(row);
    }
    Ok((bytes, tree))
}

/// A row of the size that a file call leaves.
fn draft(number: usize) -> Result<Draft> {
    Ok(Draft {
        timestamp: Timestamp::from_millis(1_768_732_200_000 + number as i64),
        call_id: Some(format!("toolu_01bench{number:012}")),
        tool_name: Some("Edit".to_owned()),
        decision: RowDecision::Approved,
        denial_reason: None,
        result_hash: None,
        detail: detail(number)?,
    })
}

fn detail(number: usize) -> Result<Value> {
    let digest = Digest::of(&number.to_le_bytes());
    let text = format!(
        r#"{{"agent":null,"input":"{digest}","policy":"{digest}","rules":["/files/allow/{}"],
"facts":{{"tool":"Edit","paths":[{{"access":"write","resolved":"/work/src/dir{number}/module.rs","tree":false,
"written":"/work/src/dir{number}/module.rs"}}]}},"state":{{"calls":{number},"denied":0,"turn":{}}}}}"#,
        number % 30,
        number / 40,
    );
    Ok(json::parse(text.as_bytes())?)
}
