//! Perl: listed functions, variables of the program, texts that interpolate nothing but variables.
//!
//! Perl cannot be told into tokens without running it; what needs more than what stands before it is refused. With `-n`, `-p`
//! and `<>` the operands are opened as Perl opens names, where a `|` runs a command.

mod text;

use crate::action::Access;
use crate::code::token::{Cursor, MAX_NESTING, is_number, is_word};
use crate::code::{Around, Reading, table};
use crate::programs::entries::words::List;
use crate::word::{Part, Source, Word};

const LANGUAGE: &str = "perl";
/// Operators, longest first where one begins another.
const SIGNS: [&str; 57] = [
    "<=>", "**=", "||=", "&&=", "//=", "...", "<<=", ">>=", "=>", "->", "==", "!=", "=~", "!~", "<=", ">=", "&&", "||",
    "//", "++", "--", "+=", "-=", "*=", "/=", ".=", "%=", "x=", "&=", "|=", "^=", "..", "::", "**", "<<", ">>", "+",
    "-", "*", "/", "%", "=", "<", ">", "!", "~", "\\", "?", ":", ".", ",", ";", "(", ")", "[", "]", "^",
];
/// Variables by a sign that nothing is opened or run by.
const SPECIAL: &str = "_&+./,;!@\\\"0";

/// Reads a program.
pub fn read(text: &str, around: &Around<'_>) -> Reading {
    let switches = &around.switches;
    let Some(mut cursor) = Cursor::new(text) else { return Reading::default() };
    let loops = switches.contains(['n', 'p', 'i']);
    let mut reader = Reader {
        cursor: &mut cursor,
        loops,
        refs: false,
        arguments: false,
        before: Before::Start,
        own: own_subs(text),
        strict: switches.contains('M'),
    };
    let harmless = reader.code(None, 0).is_some() && reader.cursor.peek().is_none();
    let (opens, refs, uses) = (reader.loops, reader.refs, reader.arguments);
    let mut out = Reading { harmless: harmless && !(opens && (refs || uses)), ..Reading::default() };
    if opens {
        out.harmless &= around.arguments.iter().all(is_plain_name);
        let access = if switches.contains('i') { Access::Write } else { Access::Read };
        out.files.extend(
            around
                .arguments
                .iter()
                .filter(|word| word.literal().as_deref() != Some("-"))
                .map(|word| (word.parts.clone(), access, false)),
        );
    }
    out
}

/// Whether Perl opens exactly the file of this name.
pub(crate) fn is_plain_name(word: &Word) -> bool {
    let sure = word.parts.iter().all(|part| !matches!(part, Part::Unknown(Source::Any | Source::Words)));
    let text: String = word
        .parts
        .iter()
        .map(|part| if let Part::Text(text) | Part::Glob(text) = part { text.as_str() } else { "x" })
        .collect();
    sure && !text.starts_with(['<', '>', '|', '+', '&', ' ', '\t', '\n'])
        && !text.ends_with(['|', ' ', '\t', '\n', '\0'])
}

/// Names of the program's own functions. One that Perl has itself stays Perl's.
fn own_subs(text: &str) -> Vec<String> {
    let named = text.match_indices("sub ").filter_map(|(at, sub)| {
        let rest = text.get(at + sub.len()..)?.trim_start();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty() && !table::has(LANGUAGE, List::Reserved, name))
    });
    named.take(32).map(str::to_owned).collect()
}

/// What stands before the next token.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Nothing, an operator, an opening bracket.
    Start,
    /// A value.
    Operand,
    /// `->`
    Arrow,
    /// `{` behind a value: a key may stand there.
    Key,
    /// The name of a function that takes values.
    Function,
    /// The end of a block, or of something that looks like one.
    Block,
}

struct Reader<'c> {
    cursor: &'c mut Cursor,
    /// The operands are opened as files.
    loops: bool,
    /// References are followed, which may be names.
    refs: bool,
    /// `@ARGV` is named.
    arguments: bool,
    before: Before,
    own: Vec<String>,
    strict: bool,
}

impl Reader<'_> {
    /// Up to the end, or to the bracket that closes what is around.
    fn code(&mut self, close: Option<char>, depth: usize) -> Option<()> {
        if depth > 4 * MAX_NESTING {
            return None;
        }
        while let Some(c) = self.cursor.peek() {
            if Some(c) == close {
                self.cursor.at += 1;
                return Some(());
            }
            self.token(c, depth)?;
        }
        close.is_none().then_some(())
    }

    fn token(&mut self, c: char, depth: usize) -> Option<()> {
        let term = self.before != Before::Operand;
        if self.before == Before::Block && matches!(c, '/' | '?' | '<' | '%' | '&' | '*' | '.' | '-' | '=') {
            return None;
        }
        match c {
            c if c.is_whitespace() => {
                let line = c == '\n';
                self.cursor.at += 1;
                // Documentation, which begins at a line's start.
                if line && self.cursor.peek() == Some('=') {
                    return None;
                }
                return Some(());
            }
            '#' => {
                self.cursor.skip_line();
                return Some(());
            }
            '\'' => drop(self.quoted('\'')?),
            '"' => {
                let text = self.quoted('"')?;
                self.interpolated(&text, false)?;
            }
            '`' => return None,
            '$' | '@' => self.variable(c, depth)?,
            '%' | '&' | '*' if term => {
                // `%h`, `%$ref`; no globs, no calls by `&`.
                (c == '%').then_some(())?;
                self.variable(c, depth)?;
            }
            '<' if term => {
                if self.cursor.take("<STDIN>") {
                } else if self.cursor.take("<>") {
                    self.loops = true;
                } else {
                    return None;
                }
            }
            '/' if term => {
                let regex = self.quoted('/')?;
                self.pattern(&regex)?;
                self.flags()?;
            }
            '?' if term => return None,
            '{' | '(' | '[' => return self.bracket(c, depth),
            c if c.is_ascii_digit() => self.number()?,
            c if is_word(c) => return self.word(depth),
            _ => {
                let sign = self.cursor.sign(&SIGNS)?;
                let post = matches!(sign, "++" | "--") && self.before == Before::Operand;
                if matches!(sign, ")" | "]") || (sign == "=" && term) {
                    return None;
                }
                self.before = match sign {
                    "->" => Before::Arrow,
                    _ if post => Before::Operand,
                    _ => Before::Start,
                };
                return Some(());
            }
        }
        self.before = Before::Operand;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let mut text = self.cursor.while_(is_word);
        if self.cursor.peek() == Some('.') && self.cursor.ahead(1).is_some_and(|c| c.is_ascii_digit()) {
            self.cursor.at += 1;
            text = format!("{text}.{}", self.cursor.while_(is_word));
        }
        is_number(&text).then_some(())
    }

    fn bracket(&mut self, c: char, depth: usize) -> Option<()> {
        self.cursor.at += 1;
        let close = match c {
            '{' => '}',
            '(' => ')',
            _ => ']',
        };
        let (operand, arrow) = (self.before == Before::Operand, self.before == Before::Arrow);
        // `"name"->()` calls a function by its name.
        (!(arrow && c == '(')).then_some(())?;
        self.refs |= arrow;
        self.before = if c == '{' && (operand || arrow) { Before::Key } else { Before::Start };
        self.code(Some(close), depth + 1)?;
        // A block ends a statement; behind all else an operator follows.
        self.before = if c == '{' && !operand && !arrow { Before::Block } else { Before::Operand };
        // `$h{a}[0]` follows a reference too.
        if operand && c != '(' {
            self.refs |= matches!(self.cursor.peek(), Some('[' | '{')) && !self.strict;
        }
        Some(())
    }

    /// `$x`, `@x`, `$$x`, `@$x`, `@{$x}`, `$#x`
    fn variable(&mut self, sigil: char, depth: usize) -> Option<()> {
        self.cursor.at += 1;
        if sigil == '$' && self.cursor.starts_with("#") {
            self.cursor.at += 1;
        }
        while self.cursor.peek() == Some('$')
            && self.cursor.ahead(1).is_some_and(|c| is_word(c) || c == '$' || c == '{')
        {
            self.refs = true;
            self.cursor.at += 1;
        }
        match self.cursor.peek()? {
            '{' => {
                self.refs = true;
                self.cursor.at += 1;
                // A reference in a variable, no name in a text.
                (self.cursor.peek() == Some('$')).then_some(())?;
                self.before = Before::Start;
                self.code(Some('}'), depth + 1)?;
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let name = self.cursor.while_(is_word);
                if self.cursor.starts_with("::") || ["SIG", "INC", "ISA", "ARGVOUT"].contains(&name.as_str()) {
                    return None;
                }
                if name == "ARGV" && !(sigil == '$' && self.cursor.peek() != Some('[')) {
                    self.arguments = true;
                }
            }
            '$' if sigil == '$' => self.cursor.at += 1,
            c if SPECIAL.contains(c) && sigil == '$' => self.cursor.at += 1,
            _ => return None,
        }
        self.before = Before::Operand;
        Some(())
    }

    fn word(&mut self, depth: usize) -> Option<()> {
        let before = self.before;
        let mut name = self.cursor.while_(is_word);
        while self.cursor.starts_with("::") && self.cursor.ahead(2).is_some_and(is_word) {
            self.cursor.at += 2;
            name = format!("{name}::{}", self.cursor.while_(is_word));
        }
        let blank = self.blanks();
        self.before = Before::Operand;
        // A text: a key, or before a fat comma.
        if self.cursor.starts_with("=>") || (before == Before::Key && self.cursor.peek() == Some('}')) {
            return Some(());
        }
        if before == Before::Arrow {
            return table::has(LANGUAGE, List::Methods, &name).then_some(());
        }
        if matches!(name.as_str(), "q" | "qq" | "qw" | "m" | "qr" | "s" | "tr" | "y") {
            let open = self
                .cursor
                .peek()
                .filter(|c| !(is_word(*c) || (blank && *c == '#') || matches!(c, ',' | ';' | ')')))?;
            return self.quote_like(&name, open, depth);
        }
        match name.as_str() {
            "x" | "eq" | "ne" | "lt" | "gt" | "le" | "ge" | "cmp" | "and" | "or" | "xor" => {
                self.before = Before::Start;
                return matches!(before, Before::Operand | Before::Block).then_some(());
            }
            "not" => self.before = Before::Start,
            "eval" | "do" => {
                self.before = Before::Start;
                return (self.cursor.peek() == Some('{')).then_some(());
            }
            "use" | "no" | "require" => return self.module(),
            "sub" => {
                self.cursor.while_(is_word);
                self.before = Before::Start;
            }
            _ if table::has(LANGUAGE, List::Classes, &name) && self.cursor.starts_with("->") => {}
            "time" | "wantarray" => {}
            _ if table::has(LANGUAGE, List::Names, &name) => self.before = Before::Function,
            // What may divide or match behind such a name is not known.
            _ if self.own.contains(&name) => {
                return self.cursor.peek().is_none_or(|c| "(;,)}$@'\"".contains(c)).then_some(());
            }
            _ => return None,
        }
        Some(())
    }

    /// `use Name qw(a b);`
    fn module(&mut self) -> Option<()> {
        let name = self.cursor.while_(|c| is_word(c) || matches!(c, ':' | '.'));
        let version = name.trim_start_matches('v').chars().all(|c| c.is_ascii_digit() || c == '.' || c == '_')
            && !name.is_empty();
        self.strict |= name == "strict";
        self.before = Before::Start;
        (version || table::has(LANGUAGE, List::Requires, &name)).then_some(())
    }

    fn blanks(&mut self) -> bool {
        let start = self.cursor.at;
        self.cursor.while_(char::is_whitespace);
        self.cursor.at > start
    }
}
