//! The strict parser.

use super::value::{Object, Value};

/// How much a document may ask of the parser.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest document, in bytes.
    pub bytes: usize,
    /// Deepest nesting of arrays and objects.
    pub depth: usize,
    /// Which integers beyond ±(2^53 − 1) are taken.
    pub integers: Integers,
}

/// Integers beyond ±(2^53 − 1), which a double may round: two of them could canonicalise alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Integers {
    /// None of them: formats of our own.
    Exact,
    /// Those written as their canonical form is, so that no two canonicalise alike: signed documents that hold foreign values.
    Canonical,
    /// All, rounded: foreign tool input.
    Any,
}

impl Limits {
    /// For formats of our own: 16 MiB, 64 levels, exact integers.
    pub const OURS: Self = Self { bytes: 16 << 20, depth: 64, integers: Integers::Exact };
    /// For what clients and agents send: 64 MiB, 256 levels, any number.
    pub const FOREIGN: Self = Self { bytes: 64 << 20, depth: 256, integers: Integers::Any };
    /// For signed documents that quote foreign ones: 64 MiB, 256 levels, canonical integers.
    pub const SIGNED: Self = Self { bytes: 64 << 20, depth: 256, integers: Integers::Canonical };
}

/// Why bytes are not acceptable JSON. Offsets are byte offsets into the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The document is larger than [`Limits::bytes`].
    #[error("{len} bytes of JSON, the limit is {limit}")]
    TooLarge {
        /// Size of the document.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// Nested deeper than [`Limits::depth`].
    #[error("nested deeper than {limit} levels at byte {at}")]
    TooDeep {
        /// Where.
        at: usize,
        /// The limit.
        limit: usize,
    },
    /// Not UTF-8.
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Where.
        at: usize,
    },
    /// Something else stood where `expected` should.
    #[error("expected {expected} at byte {at}")]
    Expected {
        /// What should stand there.
        expected: &'static str,
        /// Where.
        at: usize,
    },
    /// The same member name twice in one object.
    #[error("duplicate member `{name}` at byte {at}")]
    Duplicate {
        /// The name.
        name: String,
        /// The end of the object that holds both.
        at: usize,
    },
    /// `\uD800`–`\uDFFF` without its partner.
    #[error("lone surrogate at byte {at}")]
    LoneSurrogate {
        /// Where.
        at: usize,
    },
    /// A number no double can hold, or an integer that a double would round (see [`Integers`]).
    #[error("number out of range at byte {at}")]
    NumberRange {
        /// Where.
        at: usize,
    },
    /// Bytes after the document.
    #[error("unexpected text after the document at byte {at}")]
    Trailing {
        /// Where.
        at: usize,
    },
}

impl JsonError {
    /// The byte offset at which the document went wrong; 0 when it is the document as a whole.
    pub const fn offset(&self) -> usize {
        match self {
            Self::TooLarge { .. } => 0,
            Self::TooDeep { at, .. }
            | Self::NotUtf8 { at }
            | Self::Expected { at, .. }
            | Self::Duplicate { at, .. }
            | Self::LoneSurrogate { at }
            | Self::NumberRange { at }
            | Self::Trailing { at } => *at,
        }
    }
}

/// Parses one document under [`Limits::OURS`].
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    parse_with(bytes, Limits::OURS)
}

/// Parses one document. Time and memory are linear in its size.
pub fn parse_with(bytes: &[u8], limits: Limits) -> Result<Value, JsonError> {
    if bytes.len() > limits.bytes {
        return Err(JsonError::TooLarge { len: bytes.len(), limit: limits.bytes });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError::NotUtf8 { at: error.valid_up_to() })?;
    let mut parser = Parser { text, at: 0, limits };
    let value = parser.value(0)?;
    parser.space();
    if parser.at < text.len() { Err(JsonError::Trailing { at: parser.at }) } else { Ok(value) }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) limits: Limits,
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), JsonError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(JsonError::Expected { expected, at: self.at })
    }

    pub(super) fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.space();
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(JsonError::Expected { expected: "a JSON value", at: self.at }),
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, JsonError> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(value);
        }
        Err(JsonError::Expected { expected: "a JSON value", at: self.at })
    }

    fn deeper(&self, depth: usize) -> Result<usize, JsonError> {
        if depth >= self.limits.depth {
            return Err(JsonError::TooDeep { at: self.at, limit: self.limits.depth });
        }
        Ok(depth + 1)
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.space();
            if self.peek() == Some(b',') {
                self.at += 1;
                continue;
            }
            self.expect(b']', "`,` or `]`")?;
            return Ok(Value::Array(items));
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        let mut members: Vec<(String, Value)> = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(Object::new()));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(JsonError::Expected { expected: "a member name in double quotes", at: self.at });
            }
            let name = self.string()?;
            self.space();
            self.expect(b':', "`:`")?;
            let value = self.value(depth)?;
            members.push((name, value));
            self.space();
            if self.peek() == Some(b',') {
                self.at += 1;
                continue;
            }
            self.expect(b'}', "`,` or `}`")?;
            return match duplicate(&members) {
                Some(name) => Err(JsonError::Duplicate { name, at: self.at }),
                None => Ok(Value::Object(members.into_iter().collect())),
            };
        }
    }

    pub(super) fn string(&mut self) -> Result<String, JsonError> {
        self.expect(b'"', "`\"`")?;
        let mut out = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= 0x20) {
                self.at += 1;
            }
            out.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(_) => return Err(JsonError::Expected { expected: "an escaped control character", at: self.at }),
                None => return Err(JsonError::Expected { expected: "a closing `\"`", at: self.at }),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let at = self.at;
        self.at += 1;
        let plain = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                out.push(self.code_point(at)?);
                return Ok(());
            }
            _ => return Err(JsonError::Expected { expected: "a valid escape", at }),
        };
        self.at += 1;
        out.push(plain);
        Ok(())
    }

    fn code_point(&mut self, at: usize) -> Result<char, JsonError> {
        let first = self.four_hex()?;
        if !(0xD800..0xE000).contains(&first) {
            return char::from_u32(first).ok_or(JsonError::LoneSurrogate { at });
        }
        let pair = self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u"));
        if first >= 0xDC00 || !pair {
            return Err(JsonError::LoneSurrogate { at });
        }
        self.at += 2;
        let second = self.four_hex()?;
        if !(0xDC00..0xE000).contains(&second) {
            return Err(JsonError::LoneSurrogate { at });
        }
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or(JsonError::LoneSurrogate { at })
    }

    fn four_hex(&mut self) -> Result<u32, JsonError> {
        let bad = JsonError::Expected { expected: "four hexadecimal digits", at: self.at };
        let digits = self.text.get(self.at..self.at + 4).ok_or_else(|| bad.clone())?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad);
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_never| bad)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let range = JsonError::NumberRange { at: start };
        let text = self.text.get(start..self.at).unwrap_or_default();
        let number: f64 = text.parse().map_err(|_never| range.clone())?;
        let beyond = integer && number.abs() > 9_007_199_254_740_991.0;
        let taken = !beyond
            || match self.limits.integers {
                Integers::Exact => false,
                Integers::Canonical => ryu_js::Buffer::new().format(number) == text,
                Integers::Any => true,
            };
        if number.is_finite() && taken { Ok(Value::Number(number)) } else { Err(range) }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(JsonError::Expected { expected: "a digit", at: start }) } else { Ok(()) }
    }
}

/// The first member name that occurs twice. Few members are compared pairwise, many are sorted first.
fn duplicate(members: &[(String, Value)]) -> Option<String> {
    if members.len() <= 16 {
        let twice = |(index, (name, _)): (usize, &(String, Value))| {
            members.iter().take(index).any(|(earlier, _)| earlier == name).then(|| name.clone())
        };
        return members.iter().enumerate().find_map(twice);
    }
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some((*a).to_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_json() {
        for good in ["null", " [1, -0, 2.5e3 ] ", "{\"a\":{\"b\":[]}}", "\"\\ud83d\\ude00\"", "1e308"] {
            assert!(parse(good.as_bytes()).is_ok(), "{good}");
        }
    }

    #[test]
    fn refuses_what_is_ambiguous() {
        let deep = "[".repeat(70) + &"]".repeat(70);
        for bad in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,\"a\":2}",
            "{\"a\":1,\"\\u0061\":2}",
            "\"\\ud800\"",
            "\"\\udc00\\ud800\"",
            "NaN",
            "Infinity",
            "1e999",
            "01",
            "1.",
            "+1",
            ".5",
            "9007199254740993",
            "1 2",
            "'a'",
            "\"\t\"",
            "{a:1}",
            "\u{feff}1",
            "\"\\x\"",
            "tru",
            &deep,
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(parse(b"\"\xff\"").is_err());
        let many: String = (0..40).map(|n| format!("\"k{n}\":0,")).collect();
        assert!(parse(format!("{{{many}\"k7\":1}}").as_bytes()).is_err());
        assert!(parse(format!("{{{many}\"x\":1}}").as_bytes()).is_ok());
    }

    #[test]
    fn foreign_documents_may_hold_large_integers() {
        assert!(parse_with(b"9007199254740993", Limits::FOREIGN).is_ok());
    }

    #[test]
    fn signed_documents_may_hold_large_integers_in_one_form() {
        for good in ["9007199254740992", "-9007199254740994", "12345678901234567000", "1e+21"] {
            assert!(parse_with(good.as_bytes(), Limits::SIGNED).is_ok(), "{good}");
        }
        for bad in ["9007199254740993", "12345678901234567168", "1000000000000000000000"] {
            assert!(parse_with(bad.as_bytes(), Limits::SIGNED).is_err(), "{bad}");
        }
    }
}
