//! A long session is verified in the memory of a short one: the ledger is read piece by piece.
//!
//! `WRIT_LEDGER_ROWS=500000 cargo nextest run -p writ-tests --test long_ledger --no-capture` measures a whole one.

#[cfg(test)]
mod measured;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use measured::measured;
use workplace::{SESSION, Workplace};
use writ_core::json::{self, Object, Value};
use writ_core::{Digest, SessionId};
use writ_evidence::checkpoint::{Checkpoint, origin};
use writ_evidence::keys::SigningKey;
use writ_evidence::merkle::Tree;
use writ_evidence::row::{Draft, Row, RowDecision};

/// Most memory that verifying may take, in kilobytes, however long the ledger.
const MOST_KILOBYTES: u64 = 64 << 10;

fn with(detail: &Value, name: &str, value: Value) -> Value {
    let members = detail.as_object().unwrap().iter().filter(|(known, _)| *known != name);
    let mut out: Object = members.map(|(known, value)| (known.to_owned(), value.clone())).collect();
    out.push(name, value);
    Value::Object(out)
}

/// Makes a session of `rows` rows out of a real one of a call and its result, with a transcript of all its calls, sealed.
fn session(place: &Workplace, rows: u64) {
    place.start();
    place.allowed("first");
    assert_eq!(place.approved(), ["first"]);
    let result = r#","tool_name":"Write","tool_input":{"file_path":"x"},"tool_use_id":"first","tool_response":"ok""#;
    place.answer(&place.payload("PostToolUse", result));
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let folder = place.session();
    let (mut real, wrong) = Row::parse_all(&fs::read(folder.join("ledger.jsonl")).unwrap());
    assert!(wrong.is_none() && real.len() == 5, "{wrong:?}");
    // A call and its result between the first and the last row.
    real.remove(1);
    let key = place.folder.join("state/keys/ledger.pem");
    let key = SigningKey::from_pem(&fs::read_to_string(key).unwrap()).unwrap();
    let mut ledger = BufWriter::new(fs::File::create(folder.join("ledger.jsonl")).unwrap());
    let told = PathBuf::from(real[0].detail.get("transcript").and_then(Value::as_str).unwrap());
    let mut transcript = BufWriter::new(fs::File::create(&told).unwrap());
    let (mut tree, mut last) = (Tree::default(), None);
    let draft = |row: &Row, call: u64| {
        let state = row.detail.get("state").unwrap();
        Draft {
            timestamp: row.timestamp,
            call_id: row.call_id.as_ref().map(|_| format!("toolu_{call:020}")),
            tool_name: row.tool_name.clone(),
            decision: row.decision,
            denial_reason: None,
            result_hash: row.result_hash,
            detail: with(&row.detail, "state", with(state, "calls", Value::from(call))),
        }
    };
    for number in 0..rows {
        let (row, call) = match number {
            0 => (&real[0], 0),
            last if last + 1 == rows => (&real[3], (rows - 2).div_ceil(2)),
            odd if odd % 2 == 1 => (&real[1], odd.div_ceil(2)),
            even => (&real[2], even / 2),
        };
        let mut draft = draft(row, call);
        if number + 1 == rows {
            // The stop read what the client had written.
            transcript.flush().unwrap();
            let bytes = fs::read(&told).unwrap();
            let (digest, to) = (Digest::of(&bytes), bytes.len());
            let read = format!(r#"{{"read":[{{"digest":"{digest}","file":"main","from":0,"to":{to}}}]}}"#);
            draft.detail = with(&draft.detail, "transcripts", json::parse(read.as_bytes()).unwrap());
        }
        let (sealed, mut line) = Row::seal_line(last.as_ref(), draft).unwrap();
        tree.push(line.as_bytes());
        line.push('\n');
        ledger.write_all(line.as_bytes()).unwrap();
        if sealed.decision == RowDecision::Approved {
            let id = sealed.call_id.as_deref().unwrap();
            let block =
                format!(r#"{{"type":"tool_use","id":"{id}","name":"Write","input":{{"file_path":"x{call}"}}}}"#);
            writeln!(transcript, r#"{{"type":"assistant","message":{{"content":[{block}]}}}}"#).unwrap();
        }
        last = Some(sealed);
    }
    let origin = origin(&SessionId::new(SESSION));
    let note = Checkpoint { origin, size: tree.size(), root: tree.root(), kept: None }.sign(&key).unwrap();
    fs::write(folder.join("checkpoints"), &note).unwrap();
    fs::write(place.folder.join("state/heads").join(SESSION), &note).unwrap();
}

#[test]
fn a_long_ledger_needs_no_more_memory_than_a_short_one() {
    let rows = std::env::var("WRIT_LEDGER_ROWS").map_or(6000, |rows| rows.parse().unwrap());
    let place = Workplace::new("long-ledger");
    session(&place, rows);
    let (code, said, took, most) = measured(&place, &["verify", SESSION]);
    let bytes = fs::metadata(place.session().join("ledger.jsonl")).unwrap().len();
    println!("{rows} rows, {bytes} bytes: {took:?}, {most} kB");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("{rows} rows")) && said.contains("calls of the transcript are on record"), "{said}");
    assert!(most < MOST_KILOBYTES, "{most} kB: {said}");
    // One byte in the middle: the same findings many times are one line.
    let ledger = place.session().join("ledger.jsonl");
    let mut bytes = fs::read(&ledger).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&ledger, bytes).unwrap();
    let (code, said, _, most) = measured(&place, &["verify", SESSION]);
    assert_eq!(code, Some(3), "{said}");
    assert!(most < MOST_KILOBYTES && said.lines().count() < 120, "{most} kB: {said}");
    assert_eq!(place.writ(&["ledger", "verify", ledger.to_str().unwrap()]).status.code(), Some(3));
}
