//! Tokens that the readers of all languages share, and how to walk them.

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A name or keyword.
    Name,
    /// A text that is certain, decoded.
    Text,
    /// A text with code in it (f-strings, templates, interpolation).
    Mixed(Vec<Piece>),
    /// A number, a regular expression: an operand that can hide nothing.
    Value,
    /// An operator or bracket.
    Sign,
    /// The end of a line that ends a statement.
    Line,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// Code whose value stands here.
    Code(Vec<Token>),
}

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// A name, a decoded text, an operator.
    pub text: String,
}

impl Token {
    /// A token.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Whether it is this operator or bracket.
    pub fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Whether it is this name.
    pub fn named(&self, name: &str) -> bool {
        self.kind == Kind::Name && self.text == name
    }

    /// The name, if it is one.
    pub fn name(&self) -> Option<&str> {
        (self.kind == Kind::Name).then_some(self.text.as_str())
    }
}

/// Longest code that is read, in bytes.
pub const MAX_CODE: usize = 128 << 10;
/// Deepest nesting of texts with code in them, and of expressions.
pub const MAX_NESTING: usize = 12;

/// Characters with a place.
pub struct Cursor {
    chars: Vec<char>,
    /// Where the next one stands.
    pub at: usize,
}

impl Cursor {
    /// `None` for text that is too long.
    pub fn new(text: &str) -> Option<Self> {
        (text.len() <= MAX_CODE).then(|| Self { chars: text.chars().collect(), at: 0 })
    }

    /// The character so many further on.
    pub fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    /// The character at a place.
    pub fn char_at(&self, at: usize) -> Option<char> {
        self.chars.get(at).copied()
    }

    /// The next one.
    pub fn peek(&self) -> Option<char> {
        self.ahead(0)
    }

    /// Takes the next one.
    pub fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    /// Whether this comes next.
    pub fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(by, c)| self.ahead(by) == Some(c))
    }

    /// Takes this text if it comes next.
    pub fn take(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// Takes characters while they are such.
    pub fn while_(&mut self, fits: impl Fn(char) -> bool) -> String {
        let mut out = String::new();
        while let Some(c) = self.peek().filter(|c| fits(*c)) {
            out.push(c);
            self.at += 1;
        }
        out
    }

    /// Up to the end of the line.
    pub fn skip_line(&mut self) {
        while self.peek().is_some_and(|c| !matches!(c, '\n' | '\r')) {
            self.at += 1;
        }
    }

    /// The longest of these operators that comes next.
    pub fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let found = signs.iter().filter(|sign| self.starts_with(sign)).max_by_key(|sign| sign.len()).copied()?;
        self.at += found.len();
        Some(found)
    }

    /// So many hexadecimal digits.
    pub fn hex(&mut self, digits: usize) -> Option<u32> {
        let mut value = 0u32;
        for _ in 0..digits {
            value = value.checked_mul(16)? + self.next()?.to_digit(16)?;
        }
        Some(value)
    }
}

/// Whether all of a text is one number. What is glued to one may be a keyword or a member.
pub fn is_number(text: &str) -> bool {
    let lower = text.to_ascii_lowercase().replace('_', "");
    let lower = lower.strip_suffix(['j', 'n']).unwrap_or(&lower);
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            return !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        }
    }
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((lower, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    mantissa.len() > usize::from(mantissa.contains('.'))
        && digits(whole)
        && digits(fraction)
        && !exponent.is_empty()
        && digits(exponent)
}

/// Letters that names of code are read from; a name with any other letter is refused, because languages fold them.
pub const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The place behind the bracket that closes the one at `open`.
pub fn past_bracket(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.kind == Kind::Sign {
            match token.text.as_str() {
                "(" | "[" | "{" | "${" | "@{" | "%{" | "#{" => depth += 1,
                ")" | "]" | "}" => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

/// What stands between the bracket at `open` and its end.
pub fn inside(tokens: &[Token], open: usize) -> Option<&[Token]> {
    let end = past_bracket(tokens, open)?;
    tokens.get(open + 1..end - 1)
}

/// Where such a token first stands outside all brackets, or a bracket closes that is not open.
pub fn outside(tokens: &[Token], fits: impl Fn(&Token) -> bool) -> Option<usize> {
    let mut depth = 0i32;
    tokens.iter().position(|token| {
        let found = depth == 0 && fits(token);
        if token.kind == Kind::Sign {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
        }
        found || depth < 0
    })
}

/// Tokens cut at an operator outside all brackets.
pub fn split<'t>(tokens: &'t [Token], sign: &str) -> Vec<&'t [Token]> {
    let mut out = Vec::new();
    let (mut depth, mut start) = (0i32, 0usize);
    for (at, token) in tokens.iter().enumerate() {
        if token.kind != Kind::Sign {
            continue;
        }
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            other if depth == 0 && other == sign => {
                out.push(tokens.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(tokens.get(start..).unwrap_or_default());
    out
}

/// Arguments: cut at commas, the empty one behind the last comma left out.
pub fn arguments(tokens: &[Token]) -> Vec<&[Token]> {
    let mut out = split(tokens, ",");
    if out.last().is_some_and(|last| last.iter().all(|token| token.kind == Kind::Line)) {
        out.pop();
    }
    out
}
