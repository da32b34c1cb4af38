//! A ledger line taken apart without building a value: verification runs at the speed of hashing.
//!
//! Owns the scanner for the one form a row is written in. Accepts exactly the lines that [`crate::row::Row::parse`] accepts,
//! but for the calendar check of the timestamp; a property test compares the two. Page: `spec/ledger.md`.

use writ_core::{Digest, json};

/// Deepest nesting of `detail`.
const MAX_DEPTH: usize = 64;

/// The pieces of a line, as they stand in it.
pub struct RawRow<'a> {
    /// The row's place.
    pub sequence: u64,
    /// 64 hexadecimal digits.
    pub prev_hash: &'a [u8],
    /// 64 hexadecimal digits.
    pub entry_hash: &'a [u8],
    /// What the entry hash is made of, in the hash's order; `detail` comes last and is hashed first.
    pieces: [&'a [u8]; 7],
    detail: &'a [u8],
}

impl<'a> RawRow<'a> {
    /// Takes a line apart; `None` when it is not in the form a row is written in.
    pub fn scan(line: &'a [u8]) -> Option<Self> {
        let mut scan = Scan { line, at: 0 };
        scan.literal(b"{\"sequence\":")?;
        let sequence = scan.piece(Scan::integer)?;
        scan.literal(b",\"timestamp\":")?;
        let timestamp = scan.piece(Scan::string)?;
        scan.literal(b",\"callId\":")?;
        let call_id = scan.piece(Scan::string_or_null)?;
        scan.literal(b",\"toolName\":")?;
        let tool_name = scan.piece(Scan::string_or_null)?;
        scan.literal(b",\"decision\":")?;
        let decision = scan.piece(Scan::string)?;
        scan.literal(b",\"denialReason\":")?;
        let denial_reason = scan.piece(Scan::string_or_null)?;
        scan.literal(b",\"resultHash\":")?;
        let result_hash = scan.piece(Scan::string_or_null)?;
        scan.literal(b",\"detail\":")?;
        let detail = scan.piece(|scan| scan.value(0))?;
        scan.literal(b",\"prevHash\":\"")?;
        let prev_hash = scan.piece(Scan::hash)?;
        scan.literal(b"\",\"entryHash\":\"")?;
        let entry_hash = scan.piece(Scan::hash)?;
        scan.literal(b"\"}")?;
        let number = std::str::from_utf8(sequence).ok()?.parse().ok()?;
        let pieces = [sequence, call_id, tool_name, decision, denial_reason, result_hash, timestamp];
        (scan.at == line.len()).then_some(Self { sequence: number, prev_hash, entry_hash, pieces, detail })
    }

    /// `callId` as it stands in the line: a JSON string or `null`.
    pub const fn call_id(&self) -> &'a [u8] {
        let [_, call_id, ..] = self.pieces;
        call_id
    }

    /// Whether `entryHash` seals the row. `room` is scratch space.
    pub fn is_sealed(&self, room: &mut Vec<u8>) -> bool {
        room.clear();
        room.extend_from_slice(b"[\"");
        room.extend_from_slice(self.prev_hash);
        room.push(b'"');
        for piece in self.pieces {
            room.push(b',');
            room.extend_from_slice(piece);
        }
        if self.detail == b"null" {
            room.extend_from_slice(b",null]");
        } else {
            room.extend_from_slice(b",\"");
            room.extend_from_slice(Digest::of(self.detail).hex().as_bytes());
            room.extend_from_slice(b"\"]");
        }
        Digest::of(room).hex().as_bytes() == self.entry_hash
    }
}

struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.line.get(self.at..)?.starts_with(text).then(|| self.at += text.len())
    }

    fn piece(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<&'a [u8]> {
        let start = self.at;
        read(self)?;
        self.line.get(start..self.at)
    }

    fn integer(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = self.line.get(start..self.at)?;
        let plain = digits == b"0" || (!digits.is_empty() && digits.first() != Some(&b'0') && digits.len() <= 15);
        plain.then_some(())
    }

    fn hash(&mut self) -> Option<()> {
        let digits = self.line.get(self.at..self.at + 64)?;
        digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then(|| self.at += 64)
    }

    fn string_or_null(&mut self) -> Option<()> {
        if self.peek() == Some(b'n') { self.literal(b"null") } else { self.string() }
    }

    /// A string with exactly the escapes of RFC 8785.
    fn string(&mut self) -> Option<()> {
        self.literal(b"\"")?;
        loop {
            let rest = self.line.get(self.at..)?;
            self.at += rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)?;
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        self.at += 1;
        let letter = self.peek()?;
        self.at += 1;
        if letter != b'u' {
            return matches!(letter, b'"' | b'\\' | b'b' | b't' | b'n' | b'f' | b'r').then_some(());
        }
        let hex = self.line.get(self.at..self.at + 4)?;
        self.at += 4;
        let [b'0', b'0', high @ (b'0' | b'1'), low @ (b'0'..=b'9' | b'a'..=b'f')] = hex else { return None };
        let short = *high == b'0' && matches!(low, b'8' | b'9' | b'a' | b'c' | b'd');
        (!short).then_some(())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e')) {
            self.at += 1;
        }
        let text = self.line.get(start..self.at)?;
        let digits = text.len() <= 15 && text.iter().all(u8::is_ascii_digit);
        if digits && (text == b"0" || matches!(text.first(), Some(b'1'..=b'9'))) {
            return Some(());
        }
        let value = json::parse(text).ok()?;
        (json::canonical(&value).as_bytes() == text).then_some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.items(depth, b']', |scan, depth| scan.value(depth))
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let mut before: Option<&'a [u8]> = None;
        self.items(depth, b'}', |scan, depth| {
            let name = scan.piece(Self::string)?;
            if before.is_some_and(|before| !ordered(before, name)) {
                return None;
            }
            before = Some(name);
            scan.literal(b":")?;
            scan.value(depth)
        })
    }

    fn items(&mut self, depth: usize, close: u8, mut item: impl FnMut(&mut Self, usize) -> Option<()>) -> Option<()> {
        if depth >= MAX_DEPTH {
            return None;
        }
        self.at += 1;
        if self.peek()? == close {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self, depth + 1)?;
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b',' => {}
                byte if byte == close => return Some(()),
                _ => return None,
            }
        }
    }
}

/// Whether two member names, quotes included, stand in canonical order.
fn ordered(before: &[u8], name: &[u8]) -> bool {
    let plain = |name: &[u8]| name.is_ascii() && !name.contains(&b'\\');
    if plain(before) && plain(name) {
        // The closing quote sorts below every character but space and `!`, so it is left out of the comparison.
        return before.split_last().map(|(_, text)| text) < name.split_last().map(|(_, text)| text);
    }
    let decode = |name: &[u8]| json::parse(name).ok()?.as_str().map(|text| text.encode_utf16().collect::<Vec<_>>());
    matches!((decode(before), decode(name)), (Some(before), Some(name)) if before < name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Draft, Row, RowDecision};
    use proptest::prelude::*;
    use writ_core::Timestamp;
    use writ_core::json::{Object, Value};

    fn line(text: &str, number: f64) -> String {
        let mut inner = Object::new();
        inner.push(text, Value::Number(number));
        inner.push(format!("{text}z"), Value::Array(vec![Value::from(text), Value::Bool(true)]));
        let draft = Draft {
            timestamp: Timestamp::from_millis(1),
            call_id: Some(text.to_owned()),
            tool_name: None,
            decision: RowDecision::Denied,
            denial_reason: Some(text.to_owned()),
            result_hash: Some(Digest::of(b"r")),
            detail: Value::Object(inner),
        };
        Row::seal(None, draft).unwrap().to_line()
    }

    proptest! {
        #[test]
        fn scans_what_rows_write(text in ".{0,12}", number in -9.0e15..9.0e15f64) {
            let line = line(&text, number);
            let row = RawRow::scan(line.as_bytes()).unwrap();
            prop_assert!(row.is_sealed(&mut Vec::new()));
        }

        #[test]
        fn agrees_with_the_parser_on_changed_lines(text in "[a-z\\\\\"é\n]{0,6}", at in 0usize..300, byte in any::<u8>()) {
            let mut bent = line(&text, 2.5).into_bytes();
            let at = at % bent.len();
            prop_assume!(bent[at] != byte);
            bent[at] = byte;
            let scanned = RawRow::scan(&bent).is_some_and(|row| row.is_sealed(&mut Vec::new()));
            prop_assert!(!scanned && Row::parse(&bent).is_err());
        }
    }

    #[test]
    fn refuses_other_spellings() {
        let line = line("a", 1.0);
        for (from, to) in [("\"a\"", "\"\\u0061\""), (":1,", ":1.0,"), (":1,", ":1e0,"), ("{\"a\"", "{ \"a\"")] {
            let other = line.replacen(from, to, 1);
            assert!(other != line && RawRow::scan(other.as_bytes()).is_none_or(|row| !row.is_sealed(&mut Vec::new())), "{other}");
        }
    }
}
