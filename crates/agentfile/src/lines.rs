//! Bytes of an Agentfile → lines of bare tokens, each with its place.
//!
//! Owns the lexical rules: line ends, the byte order mark, comments, white space, what may not stand in a token. Knows no directive.
//! Invariant: what stands in a token stands in the file at the token's span, byte for byte. Page: `spec/agentfile.md`.

use writ_core::{Span, visible};

use crate::diagnostic::{Diagnostic, Place, Severity};

/// Largest file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Most lines.
pub const MAX_LINES: usize = 20_000;
/// Longest line outside of blocks, in bytes.
pub const MAX_LINE: usize = 16 << 10;
const BOM: &str = "\u{feff}";

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// As it stands.
    pub text: String,
    /// Where.
    pub place: Place,
}

/// One line, without its end.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// From 1.
    pub number: usize,
    /// Its text.
    pub text: &'a str,
    /// Where it begins, in bytes of the file.
    pub start: usize,
}

/// Why bytes are no text at all, or too much of it.
pub fn readable(bytes: &[u8]) -> Result<&str, Diagnostic> {
    if bytes.len() > MAX_BYTES {
        let message = format!("the file has {} bytes, and may have {MAX_BYTES}", bytes.len());
        return Err(Diagnostic::error(
            "too-large",
            Place::START,
            message,
            "keep instructions in files of their own: `SOP ./sops/NAME.md`",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default()).into_owned();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let at = error.valid_up_to();
        let place = Place { line, column, span: Span { start: at, end: at + 1 } };
        Diagnostic::error("not-utf8", place, "the file is not UTF-8 text", "save it as UTF-8")
    })?;
    if text.matches('\n').count() >= MAX_LINES {
        let message = format!("the file has more than {MAX_LINES} lines");
        return Err(Diagnostic::error("too-large", Place::START, message, "keep instructions in files of their own"));
    }
    Ok(text)
}

/// The lines of a text, without a byte order mark.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let body = text.strip_prefix(BOM).unwrap_or(text);
    let mut start = text.len() - body.len();
    let count = body.split('\n').count();
    body.split('\n').enumerate().filter_map(move |(at, whole)| {
        let line = Line { number: at + 1, text: whole.trim_end_matches('\r'), start };
        start += whole.len() + 1;
        // What follows the last line end is no line.
        (at + 1 < count || !whole.is_empty()).then_some(line)
    })
}

impl Line<'_> {
    /// The place of some bytes of this line.
    pub fn place(&self, from: usize, to: usize) -> Place {
        let column = self.text.get(..from).map_or(from, |before| before.chars().count()) + 1;
        Place { line: self.number, column, span: Span { start: self.start + from, end: self.start + to } }
    }

    /// The whole line's place, without the white space around it.
    pub fn whole(&self) -> Place {
        let from = self.text.len() - self.text.trim_start().len();
        self.place(from, self.text.trim_end().len().max(from))
    }

    /// Its words, without comments.
    pub fn tokens(&self) -> Vec<Token> {
        let mut out = Vec::new();
        let (mut begun, mut fresh) = (None, true);
        for (at, c) in self.text.char_indices() {
            if c == ' ' || c == '\t' {
                out.extend(begun.take().map(|from| self.token(from, at)));
                fresh = true;
            } else if c == '#' && fresh {
                return out;
            } else {
                begun = begun.or(Some(at));
                fresh = false;
            }
        }
        out.extend(begun.map(|from| self.token(from, self.text.len())));
        out
    }

    fn token(&self, from: usize, to: usize) -> Token {
        Token { text: self.text.get(from..to).unwrap_or_default().to_owned(), place: self.place(from, to) }
    }

    /// The comment at its end, with the sign.
    pub fn comment(&self) -> Option<&str> {
        let mut fresh = true;
        for (at, c) in self.text.char_indices() {
            if c == '#' && fresh {
                return self.text.get(at..).map(str::trim_end);
            }
            fresh = c == ' ' || c == '\t';
        }
        None
    }

    /// What may not stand in a line that is no body of a block.
    pub fn check(&self, tokens: &[Token], found: &mut Vec<Diagnostic>) {
        if self.text.len() > MAX_LINE {
            let message = format!("the line has {} bytes, and may have {MAX_LINE}", self.text.len());
            found.push(Diagnostic::error("too-large", self.place(0, 0), message, "one directive a line"));
        }
        self.check_nul(found);
        let control = |c: char| c.is_control() && c != '\t' && c != '\0';
        if let Some((at, c)) = self.text.char_indices().find(|(_, c)| control(*c)) {
            let message = format!("a control character, U+{:04X}, in the line", u32::from(c));
            found.push(Diagnostic::error(
                "control-character",
                self.place(at, at + c.len_utf8()),
                message,
                "take it out",
            ));
        }
        self.check_unseen(Severity::Error, found);
        for token in tokens {
            if let Some((at, sign)) = token.text.char_indices().find(|(_, c)| matches!(c, '"' | '\'' | '`')) {
                let place = Place {
                    column: token.place.column + token.text.get(..at).map_or(0, |before| before.chars().count()),
                    span: Span { start: token.place.span.start + at, end: token.place.span.start + at + 1 },
                    ..token.place
                };
                let help = "words are bare: put what needs quoting into a script, and name that";
                found.push(Diagnostic::error(
                    "quoting",
                    place,
                    format!("`{sign}` is reserved: there is no quoting"),
                    help,
                ));
            }
            if token.text.ends_with('\\') {
                let help = "a directive is one line: write it without `\\`";
                let message = "`\\` at the end of a word is reserved: no line continues on the next";
                found.push(Diagnostic::error("continuation", token.place, message, help));
            }
        }
    }

    /// Letters that show the text around them in another order or on another line than it is read, or are not seen at all.
    pub fn check_unseen(&self, severity: Severity, found: &mut Vec<Diagnostic>) {
        // These two join letters of scripts and pictures: they move nothing.
        let misleads = |c: char| visible::is_unseen(c) && !c.is_control() && !matches!(c, '\u{200c}' | '\u{200d}');
        let Some((at, c)) = self.text.char_indices().find(|(_, c)| misleads(*c)) else { return };
        let message = format!("U+{:04X}, which is not seen and may show the text as another", u32::from(c));
        let help = "take it out: who reviews the file sees something else than what is read";
        let place = self.place(at, at + c.len_utf8());
        found.push(Diagnostic { code: "unseen-character", severity, place, message, help: help.to_owned() });
    }

    /// NUL, which may stand nowhere.
    pub fn check_nul(&self, found: &mut Vec<Diagnostic>) {
        if let Some(at) = self.text.find('\0') {
            found.push(Diagnostic::error("nul", self.place(at, at + 1), "a NUL byte in the text", "take it out"));
        }
    }
}
