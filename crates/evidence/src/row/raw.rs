//! A ledger line taken apart without building a value: verification runs at the speed of hashing.
//!
//! Owns the one form a row is written in (R40) and its seal; writing, reading and verifying all go through here. Refuses any
//! other spelling of the same row. Invariant: a line that scans is canonical, so its bytes can be hashed as they stand. Page:
//! `spec/ledger.md`.

use writ_core::{Digest, json};

use super::{MAX_LINE, RowDecision};

/// Deepest nesting of `detail`: what the strict parser takes.
const MAX_DEPTH: usize = json::Limits::OURS.depth;

/// The pieces of a line, as they stand in it.
pub struct RawRow<'a> {
    /// The row's place.
    pub sequence: u64,
    /// An RFC 3339 moment in quotes.
    pub timestamp: &'a [u8],
    /// A JSON string or `null`.
    pub call_id: &'a [u8],
    /// A JSON string or `null`.
    pub tool_name: &'a [u8],
    /// What is said of the call.
    pub decision: RowDecision,
    /// A JSON string or `null`.
    pub denial_reason: &'a [u8],
    /// 64 hexadecimal digits in quotes, or `null`.
    pub result_hash: &'a [u8],
    /// Canonical JSON.
    pub detail: &'a [u8],
    /// 64 hexadecimal digits.
    pub prev_hash: &'a [u8],
    /// 64 hexadecimal digits.
    pub entry_hash: &'a [u8],
    number: &'a [u8],
    /// `decision` in its quotes.
    word: &'a [u8],
}

impl<'a> RawRow<'a> {
    /// Takes a line apart; `None` when it is not in the form a row is written in.
    pub fn scan(line: &'a [u8]) -> Option<Self> {
        if line.len() > MAX_LINE || std::str::from_utf8(line).is_err() {
            return None;
        }
        let mut scan = Scan { line, at: 0 };
        let number = scan.member(b"{\"sequence\":", Scan::integer)?;
        let timestamp = scan.member(b",\"timestamp\":", Scan::timestamp)?;
        let call_id = scan.member(b",\"callId\":", Scan::string_or_null)?;
        let tool_name = scan.member(b",\"toolName\":", Scan::string_or_null)?;
        let decision = scan.member(b",\"decision\":", Scan::string)?;
        let denial_reason = scan.member(b",\"denialReason\":", Scan::string_or_null)?;
        let result_hash = scan.member(b",\"resultHash\":", Scan::hash_or_null)?;
        let detail = scan.member(b",\"detail\":", |scan| scan.value(0))?;
        let prev_hash = scan.member(b",\"prevHash\":\"", Scan::hash)?;
        let entry_hash = scan.member(b"\",\"entryHash\":\"", Scan::hash)?;
        scan.literal(b"\"}")?;
        if scan.at < line.len() {
            return None;
        }
        let sequence = std::str::from_utf8(number).ok()?.parse().ok()?;
        let word = decision;
        let decision = json::from_slice(word).ok()?;
        Some(Self {
            sequence,
            timestamp,
            call_id,
            tool_name,
            decision,
            denial_reason,
            result_hash,
            detail,
            prev_hash,
            entry_hash,
            number,
            word,
        })
    }

    /// The hash that seals the row: SHA-256 of the canonical array `[prevHash, sequence, callId, toolName, decision,
    /// denialReason, resultHash, timestamp, detailHash]` (R40). The pieces are canonical already, so the array is put
    /// together from them. `room` is scratch space.
    pub fn seal(&self, room: &mut Vec<u8>) -> Digest {
        room.clear();
        room.extend_from_slice(b"[\"");
        room.extend_from_slice(self.prev_hash);
        room.push(b'"');
        for piece in
            [self.number, self.call_id, self.tool_name, self.word, self.denial_reason, self.result_hash, self.timestamp]
        {
            room.push(b',');
            room.extend_from_slice(piece);
        }
        if self.detail == b"null" {
            room.extend_from_slice(b",null]");
        } else {
            room.extend_from_slice(b",\"");
            room.extend_from_slice(&hex(Digest::of(self.detail)));
            room.extend_from_slice(b"\"]");
        }
        Digest::of(room)
    }

    /// Whether `entryHash` seals the row.
    pub fn is_sealed(&self, room: &mut Vec<u8>) -> bool {
        hex(self.seal(room)) == *self.entry_hash
    }
}

/// The digest's 64 lower-case digits, without a string on the heap.
fn hex(digest: Digest) -> [u8; 64] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
    let mut out = [0; 64];
    for (pair, byte) in out.chunks_exact_mut(2).zip(digest.as_bytes()) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    out
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

    fn member(&mut self, name: &[u8], read: impl FnOnce(&mut Self) -> Option<()>) -> Option<&'a [u8]> {
        self.literal(name)?;
        self.piece(read)
    }

    fn integer(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        is_small_integer(self.line.get(start..self.at)?).then_some(())
    }

    fn hash(&mut self) -> Option<()> {
        let digits = self.line.get(self.at..self.at + 64)?;
        // No early exit: the loop is one the compiler turns into wide comparisons.
        let good = |byte: &u8| byte.is_ascii_digit() | (b'a'..=b'f').contains(byte);
        digits.iter().fold(true, |all, byte| all & good(byte)).then(|| self.at += 64)
    }

    fn hash_or_null(&mut self) -> Option<()> {
        if self.peek() == Some(b'n') {
            return self.literal(b"null");
        }
        self.literal(b"\"")?;
        self.hash()?;
        self.literal(b"\"")
    }

    /// `"2026-01-18T10:30:00.000Z"`, a day that exists.
    fn timestamp(&mut self) -> Option<()> {
        const SHAPE: &[u8; 26] = b"\"0000-00-00T00:00:00.000Z\"";
        let text = self.line.get(self.at..self.at + SHAPE.len())?;
        let fits = |(byte, shape): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
        if !text.iter().zip(SHAPE).all(fits) {
            return None;
        }
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to).unwrap_or_default();
            digits.iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'))
        };
        let (year, month, day) = (number(1, 5), number(6, 8), number(9, 11));
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(leap),
            _ => return None,
        };
        let exists = (1..=days).contains(&day) && number(12, 14) < 24 && number(15, 17) < 60 && number(18, 20) < 60;
        exists.then(|| self.at += SHAPE.len())
    }

    fn string_or_null(&mut self) -> Option<()> {
        if self.peek() == Some(b'n') { self.literal(b"null") } else { self.string() }
    }

    /// A string with exactly the escapes of RFC 8785.
    fn string(&mut self) -> Option<()> {
        self.literal(b"\"")?;
        loop {
            self.at += plain_text(self.line.get(self.at..)?);
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
        if is_small_integer(text) {
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

/// Whether this is a canonical integer of at most 15 digits, which every double holds exactly.
fn is_small_integer(text: &[u8]) -> bool {
    let plain = text == b"0" || matches!(text.first(), Some(b'1'..=b'9'));
    plain && text.len() <= 15 && text.iter().all(u8::is_ascii_digit)
}

/// How many bytes of `text` come before the first quote, backslash or control character. Looks at eight bytes at once.
fn plain_text(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // A byte's high bit is set in `below(x, n)` when it is less than n; above the first such byte there may be false ones.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let mut at = 0;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = below(word, 0x20) | quote | backslash;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20).unwrap_or(rest.len())
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
mod tests;
