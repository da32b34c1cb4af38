//! Perl's texts and patterns: where they end, and that only variables with plain subscripts stand in them.

use crate::code::perl::{Before, Reader, SPECIAL};
use crate::code::token::{Cursor, MAX_NESTING, is_word};

impl Reader<'_> {
    /// The text up to its end; brackets nest.
    pub(super) fn quoted(&mut self, open: char) -> Option<String> {
        self.cursor.at += 1;
        let close = match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            '<' => '>',
            other => other,
        };
        let (mut out, mut depth) = (String::new(), 1usize);
        loop {
            match self.cursor.next()? {
                '\\' => {
                    out.push('\\');
                    out.push(self.cursor.next()?);
                    continue;
                }
                c if c == close => depth -= 1,
                c if c == open => depth += 1,
                _ => {}
            }
            if depth == 0 {
                return Some(out);
            }
            out.extend(self.cursor.at.checked_sub(1).and_then(|at| self.cursor.char_at(at)));
        }
    }

    pub(super) fn quote_like(&mut self, kind: &str, open: char, depth: usize) -> Option<()> {
        let first = self.quoted(open)?;
        self.before = Before::Operand;
        match kind {
            "q" | "qw" => return Some(()),
            "qq" => return self.interpolated(&first, false),
            "m" | "qr" => {
                self.pattern(&first)?;
                return self.flags();
            }
            _ => {}
        }
        let paired = matches!(open, '(' | '[' | '{' | '<');
        if paired {
            self.blanks();
        } else {
            self.cursor.at -= 1;
        }
        let open = self.cursor.peek()?;
        let second = self.quoted(open)?;
        if kind != "s" {
            self.cursor.while_(|c| c.is_ascii_alphabetic());
            return Some(());
        }
        self.pattern(&first)?;
        let flags = self.cursor.while_(|c| c.is_ascii_alphabetic());
        match flags.matches('e').count() {
            0 => self.interpolated(&second, false),
            // The replacement is code.
            1 => {
                let mut inner = Cursor::new(&second)?;
                let mut reader = Reader {
                    cursor: &mut inner,
                    loops: self.loops,
                    refs: false,
                    arguments: false,
                    before: Before::Start,
                    own: self.own.clone(),
                    strict: self.strict,
                };
                reader.code(None, depth + MAX_NESTING)?;
                (self.refs, self.arguments, self.loops) =
                    (self.refs || reader.refs, self.arguments || reader.arguments, self.loops || reader.loops);
                Some(())
            }
            _ => None,
        }
    }

    pub(super) fn flags(&mut self) -> Option<()> {
        let flags = self.cursor.while_(|c| c.is_ascii_alphabetic());
        (!flags.contains('e')).then_some(())
    }

    /// A regular expression that runs no code.
    pub(super) fn pattern(&mut self, text: &str) -> Option<()> {
        let code = text.match_indices("(?").any(|(at, _)| {
            let next = text.get(at + 2..).and_then(|rest| rest.chars().next());
            !next.is_some_and(|next| ":=!<>|imsxn^#-P".contains(next))
        });
        if code || text.contains("(*{") || text.contains("(**{") {
            return None;
        }
        self.interpolated(text, true)
    }

    /// Only variables, with plain subscripts, stand in a text.
    pub(super) fn interpolated(&mut self, text: &str, pattern: bool) -> Option<()> {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '$' | '@' => {
                    let Some(next) = chars.peek().copied() else { continue };
                    if c == '@' && !(is_word(next) || matches!(next, '{' | '$')) {
                        continue;
                    }
                    if pattern && matches!(next, ')' | '|' | ' ' | '\n') {
                        continue;
                    }
                    let mut name = String::new();
                    if next == '{' {
                        chars.next();
                        while let Some(c) = chars.next_if(|c| *c != '}') {
                            name.push(c);
                        }
                        chars.next()?;
                        let own = name.strip_prefix('$').inspect(|_| self.refs = true).unwrap_or(&name);
                        (!own.is_empty() && own.chars().all(is_word)).then_some(())?;
                    } else {
                        while let Some(c) = chars.next_if(|c| *c == '$') {
                            name.push(c);
                            self.refs = true;
                        }
                        let start = name.len();
                        while let Some(c) = chars.next_if(|c| is_word(*c) || *c == ':') {
                            name.push(c);
                        }
                        if name.len() == start && c == '$' && start == 0 {
                            chars.next_if(|c| SPECIAL.contains(*c))?;
                        }
                    }
                    let argv = name.trim_start_matches('$').trim_end_matches(':') == "ARGV";
                    self.arguments |= argv && (c == '@' || chars.peek() == Some(&'['));
                    subscripts(&mut chars)?;
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// `[0]`, `[$i]`, `{key}`, `{$key}`, `->[0]` behind a variable in a text.
fn subscripts(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
    loop {
        let mut ahead = chars.clone();
        if ahead.next() == Some('-') && ahead.next() == Some('>') && matches!(ahead.peek(), Some('[' | '{')) {
            chars.nth(1);
        }
        let close = match chars.peek() {
            Some('[') => ']',
            Some('{') => '}',
            _ => return Some(()),
        };
        chars.next();
        let mut inner = String::new();
        loop {
            match chars.next()? {
                c if c == close => break,
                c => inner.push(c),
            }
        }
        let plain = inner.trim_matches(['\'', '"', '-']);
        let own = plain.strip_prefix('$').unwrap_or(plain);
        let simple = own.chars().all(|c| is_word(c) || (close == '}' && matches!(c, ' ' | ',')));
        let number = close == '}' || inner.starts_with('$') || plain.chars().all(|c| c.is_ascii_digit());
        // In a pattern, `[…]` behind a variable may be a set: letters alone run nothing there either, unless they name a function.
        (simple && number).then_some(())?;
    }
}
