//! The strict parser.

use std::borrow::Cow;

use super::value::{EXACT, Value};

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
    let mut parser = Parser::new(bytes, limits)?;
    let value = parser.value(0)?;
    parser.end()?;
    Ok(value)
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) limits: Limits,
}

impl<'a> Parser<'a> {
    pub(super) fn new(bytes: &'a [u8], limits: Limits) -> Result<Self, JsonError> {
        if bytes.len() > limits.bytes {
            return Err(JsonError::TooLarge { len: bytes.len(), limit: limits.bytes });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| JsonError::NotUtf8 { at: error.valid_up_to() })?;
        Ok(Self { text, at: 0, limits })
    }

    /// Nothing but white space may follow the document.
    pub(super) fn end(&mut self) -> Result<(), JsonError> {
        self.space();
        if self.at < self.text.len() { Err(JsonError::Trailing { at: self.at }) } else { Ok(()) }
    }

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
            Some(b'"') => Ok(Value::String(self.string()?.into_owned())),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b't') => self.word("true").map(|()| Value::Bool(true)),
            Some(b'f') => self.word("false").map(|()| Value::Bool(false)),
            Some(b'n') => self.word("null").map(|()| Value::Null),
            _ => self.number().map(Value::Number),
        }
    }

    pub(super) fn word(&mut self, word: &'static str) -> Result<(), JsonError> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            self.at += word.len();
            return Ok(());
        }
        Err(JsonError::Expected { expected: "a JSON value", at: self.at })
    }

    /// Steps into the array or object that begins here: the depth inside it.
    pub(super) fn open(&mut self, depth: usize) -> Result<usize, JsonError> {
        if depth >= self.limits.depth {
            return Err(JsonError::TooDeep { at: self.at, limit: self.limits.depth });
        }
        self.at += 1;
        Ok(depth + 1)
    }

    /// Whether another element follows, after its comma where it is not the first; steps over `close` when none does.
    pub(super) fn another(&mut self, first: bool, close: u8) -> Result<bool, JsonError> {
        self.space();
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                Ok(true)
            }
            _ if first => Ok(true),
            _ => {
                let expected = if close == b']' { "`,` or `]`" } else { "`,` or `}`" };
                Err(JsonError::Expected { expected, at: self.at })
            }
        }
    }

    /// A member's name and its colon.
    pub(super) fn name(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.space();
        if self.peek() != Some(b'"') {
            return Err(JsonError::Expected { expected: "a member name in double quotes", at: self.at });
        }
        let name = self.string()?;
        self.space();
        self.expect(b':', "`:`")?;
        Ok(name)
    }

    /// Goes past a value and holds it to all that [`Self::value`] does.
    pub(super) fn skip(&mut self, depth: usize) -> Result<(), JsonError> {
        self.space();
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'[') => {
                let (depth, mut first) = (self.open(depth)?, true);
                while self.another(first, b']')? {
                    self.skip(depth)?;
                    first = false;
                }
                Ok(())
            }
            Some(b'{') => {
                let (depth, mut names) = (self.open(depth)?, Vec::new());
                while self.another(names.is_empty(), b'}')? {
                    names.push(self.name()?);
                    self.skip(depth)?;
                }
                let again = twice(&names, |name| name).map(str::to_owned);
                again.map_or(Ok(()), |name| Err(JsonError::Duplicate { name, at: self.at }))
            }
            _ => self.value(depth).map(drop),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        let depth = self.open(depth)?;
        let mut items = Vec::new();
        while self.another(items.is_empty(), b']')? {
            items.push(self.value(depth)?);
        }
        Ok(Value::Array(items))
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let depth = self.open(depth)?;
        let mut members: Vec<(String, Value)> = Vec::new();
        while self.another(members.is_empty(), b'}')? {
            let name = self.name()?.into_owned();
            members.push((name, self.value(depth)?));
        }
        match twice(&members, |(name, _)| name) {
            Some(name) => Err(JsonError::Duplicate { name: name.to_owned(), at: self.at }),
            None => Ok(Value::Object(members.into_iter().collect())),
        }
    }

    /// A string; borrowed where it has no escapes.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.expect(b'"', "`\"`")?;
        let mut out = Cow::Borrowed("");
        loop {
            let start = self.at;
            let rest = self.text.as_bytes().get(start..).unwrap_or_default();
            let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20));
            self.at += end.unwrap_or(rest.len());
            out += self.text.get(start..self.at).unwrap_or_default();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(out.to_mut())?,
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

    pub(super) fn number(&mut self) -> Result<f64, JsonError> {
        let start = self.at;
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(JsonError::Expected { expected: "a JSON value", at: start });
        }
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
        let taken = number.abs() <= EXACT
            || match self.limits.integers {
                // Up to there the canonical form is an integer, however this one is written.
                Integers::Exact => !integer && number.abs() >= 1e21,
                Integers::Canonical => !integer || ryu_js::Buffer::new().format(number) == text,
                Integers::Any => true,
            };
        if number.is_finite() && taken { Ok(number) } else { Err(range) }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(JsonError::Expected { expected: "a digit", at: start }) } else { Ok(()) }
    }
}

/// The first name that occurs twice. Few members are compared pairwise, many are sorted first.
pub(super) fn twice<T>(members: &[T], name: impl Fn(&T) -> &str) -> Option<&str> {
    if members.len() <= 16 {
        let earlier = |index: usize, member: &T| members.iter().take(index).any(|one| name(one) == name(member));
        return members.iter().enumerate().find(|(index, member)| earlier(*index, member)).map(|(_, one)| name(one));
    }
    let mut names: Vec<&str> = members.iter().map(name).collect();
    names.sort_unstable();
    names.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some(*a),
        _ => None,
    })
}
