//! A statement's words: what is code in any of the dialects, and what is text or a comment.
//!
//! Owns quotes, comments and nothing of what words mean. Linear in the text, without recursion; what does not end ends with the text.

/// One token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// A word that is not quoted: a keyword, a name, a number.
    Word(String),
    /// A name in quotes of its own.
    Name(String),
    /// A text: its content.
    Text(String),
    /// Anything else.
    Sign(char),
}

impl Token {
    /// Whether it is this keyword, in any case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// What it says.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Word(text) | Self::Name(text) | Self::Text(text) => text.clone(),
            Self::Sign(sign) => sign.to_string(),
        }
    }
}

/// Whether a backslash before a quote makes it a letter: MySQL says so, the standard does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Backslash {
    Escapes,
    IsText,
}

/// Reads a text.
pub(super) fn tokens(text: &str, backslash: Backslash) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        rest = match first {
            _ if first.is_whitespace() => after,
            '-' if after.starts_with('-') => after.split_once('\n').map_or("", |(_, rest)| rest),
            '#' if after.starts_with([' ', '\t']) => after.split_once('\n').map_or("", |(_, rest)| rest),
            // MySQL runs what stands in `/*! … */`.
            '/' if after.starts_with("*!") => {
                after.get(2..).unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_digit())
            }
            '/' if after.starts_with('*') => after.split_once("*/").map_or("", |(_, rest)| rest),
            '*' if after.starts_with('/') => after.get(1..).unwrap_or_default(),
            '\'' => quoted(after, '\'', backslash, &mut out, Token::Text),
            '"' | '`' => quoted(after, first, Backslash::IsText, &mut out, Token::Name),
            '[' if after.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                quoted(after, ']', Backslash::IsText, &mut out, Token::Name)
            }
            '$' => dollar(after, &mut out),
            _ if is_word(first) || first == '#' => {
                let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
                let (word, rest) = after.split_at(end);
                out.push(Token::Word(format!("{first}{word}")));
                rest
            }
            _ => {
                out.push(Token::Sign(first));
                after
            }
        };
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '@' | '$')
}

/// Up to the closing quote; a doubled one stands for itself.
fn quoted<'a>(
    rest: &'a str,
    close: char,
    backslash: Backslash,
    out: &mut Vec<Token>,
    kind: fn(String) -> Token,
) -> &'a str {
    let mut text = String::new();
    let mut letters = rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        let after = rest.get(at + letter.len_utf8()..).unwrap_or_default();
        if letter == '\\' && backslash == Backslash::Escapes {
            text.extend(letters.next().map(|(_, letter)| letter));
        } else if letter == close && after.starts_with(close) {
            text.push(close);
            letters.next();
        } else if letter == close {
            out.push(kind(text));
            return after;
        } else {
            text.push(letter);
        }
    }
    out.push(kind(text));
    ""
}

/// `$$ … $$`, `$tag$ … $tag$`, or a placeholder.
fn dollar<'a>(rest: &'a str, out: &mut Vec<Token>) -> &'a str {
    let tag = rest.find('$').and_then(|end| rest.get(..end));
    let Some(tag) = tag.filter(|tag| tag.chars().all(|c| c.is_alphanumeric() || c == '_')) else {
        out.push(Token::Sign('$'));
        return rest;
    };
    let body = rest.get(tag.len() + 1..).unwrap_or_default();
    let (body, rest) = body.split_once(&format!("${tag}$")).unwrap_or((body, ""));
    out.push(Token::Text(body.to_owned()));
    rest
}

/// The statements of a text: tokens between semicolons, and between the lines that say `GO`.
pub(super) fn statements(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    tokens.split(|token| *token == Token::Sign(';') || token.is("GO")).filter(|statement| !statement.is_empty())
}
