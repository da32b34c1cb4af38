//! A line's characters with what quoting makes of each.

use writ_core::Span;

/// What a character is to the shell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Not quoted.
    Plain,
    /// Between double quotes, where expansions happen.
    Double,
    /// Quoted, escaped, in a comment, or in a here-document that is taken as it stands.
    Quoted,
}

/// A line, character by character.
pub struct Marked {
    chars: Vec<(usize, char, Mark)>,
    /// The line with `\u{1}` for each quoted character.
    blank: String,
    /// Where each character begins in `blank`.
    offsets: Vec<usize>,
    original: String,
}

/// A here-document that the line has announced.
struct Pending {
    end: String,
    quoted: bool,
}

impl Marked {
    /// Marks a line as bash quotes it.
    pub fn of(line: &str) -> Self {
        Self::with(line, marks(line))
    }

    /// Marks everything as plain: what an `eval` would see of it.
    pub fn bare(line: &str) -> Self {
        let plain = |c: char| if matches!(c, '\'' | '"') { Mark::Quoted } else { Mark::Plain };
        Self::with(line, line.chars().map(plain).collect())
    }

    fn with(line: &str, marks: Vec<Mark>) -> Self {
        let chars: Vec<_> = line.char_indices().zip(marks).map(|((at, c), mark)| (at, c, mark)).collect();
        let mut blank = String::with_capacity(line.len());
        let mut offsets = Vec::with_capacity(chars.len());
        // Of a double-quoted expansion the text inside stays: it is looked at.
        for (_, c, mark) in &chars {
            offsets.push(blank.len());
            blank.push(if *mark == Mark::Quoted && *c != '\n' { '\u{1}' } else { *c });
        }
        Self { chars, blank, offsets, original: line.to_owned() }
    }

    pub fn len(&self) -> usize {
        self.chars.len()
    }

    /// A character and its mark; past the end, a quoted line break.
    pub fn at(&self, at: usize) -> (char, Mark) {
        self.chars.get(at).map_or(('\n', Mark::Quoted), |(_, c, mark)| (*c, *mark))
    }

    /// The rest of the line from a character on, quoted characters blanked out.
    pub fn text(&self, at: usize) -> &str {
        self.offsets.get(at).and_then(|offset| self.blank.get(*offset..)).unwrap_or_default()
    }

    pub fn span(&self, at: usize) -> Span {
        let start = self.chars.get(at).map_or(self.original.len(), |(start, _, _)| *start);
        Span { start, end: (start + self.at(at).0.len_utf8()).min(self.original.len()) }
    }

    /// The characters as they were written.
    pub fn original(&self, at: usize, count: usize) -> String {
        self.chars.iter().skip(at).take(count).map(|(_, c, _)| *c).collect()
    }

    /// Whether a word begins here.
    pub fn starts_word(&self, at: usize) -> bool {
        let Some((before, mark)) = at.checked_sub(1).map(|before| self.at(before)) else { return true };
        mark == Mark::Plain
            && (before.is_whitespace() || matches!(before, ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`'))
    }

    /// Whether the next character is plain and fits.
    pub fn follows(&self, at: usize, fits: impl Fn(char) -> bool) -> bool {
        let (next, mark) = self.at(at + 1);
        mark == Mark::Plain && fits(next)
    }

    /// Whether nothing but space lies between here and the end of a command.
    pub fn ends_command(&self, at: usize) -> bool {
        let rest = self.text(at).trim_start_matches([' ', '\t']);
        rest.is_empty() || rest.starts_with([';', '\n', '&', '|', ')'])
    }

    /// Whether this stands in `[[ … ]]`.
    pub fn in_test(&self, at: usize) -> bool {
        self.within(at, "[[", "]]")
    }

    /// Whether this stands in `(( … ))`.
    pub fn in_arithmetic(&self, at: usize) -> bool {
        self.within(at, "((", "))")
    }

    fn within(&self, at: usize, open: &str, close: &str) -> bool {
        let head = self.offsets.get(at).and_then(|offset| self.blank.get(..*offset)).unwrap_or_default();
        head.rfind(open).is_some_and(|opened| head.rfind(close).is_none_or(|closed| closed < opened))
    }

    /// Whether something takes what the line prints.
    pub fn is_taken(&self) -> bool {
        self.chars.iter().any(|(_, c, mark)| *mark == Mark::Plain && matches!(c, '|' | '>' | '`'))
            || self.blank.contains("$(")
            || self.blank.contains("<(")
    }

    /// The words, quoted characters blanked out, with where each begins.
    pub fn words(&self) -> Vec<(usize, String)> {
        let mut out: Vec<(usize, String)> = Vec::new();
        let mut open = false;
        for at in 0..self.len() {
            let (c, mark) = self.at(at);
            let shown = if mark == Mark::Plain { c } else { '\u{1}' };
            if mark == Mark::Plain && (c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '`')) {
                open = false;
            } else if open {
                if let Some((_, word)) = out.last_mut() {
                    word.push(shown);
                }
            } else {
                out.push((at, shown.to_string()));
                open = true;
            }
        }
        out
    }
}

/// What each character of a line is.
fn marks(line: &str) -> Vec<Mark> {
    let chars: Vec<char> = line.chars().collect();
    let get = |at: usize| chars.get(at).copied().unwrap_or('\0');
    let mut out = Vec::with_capacity(chars.len());
    // Parentheses that opened below a double quote: where they close, the quote goes on.
    let mut quotes: Vec<usize> = Vec::new();
    let (mut depth, mut double) = (0_usize, false);
    let mut pending: Vec<Pending> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = get(at);
        let own = if double { Mark::Double } else { Mark::Plain };
        match c {
            '\\' => {
                out.extend([Mark::Quoted, Mark::Quoted]);
                at += 2;
                continue;
            }
            '\'' if !double => {
                let ansi = at > 0 && get(at - 1) == '$';
                at = quoted(&chars, at, ansi, &mut out);
                continue;
            }
            '"' => {
                double = !double;
                out.push(Mark::Quoted);
            }
            '(' if double && at > 0 && get(at - 1) == '$' => {
                quotes.push(depth);
                (depth, double) = (0, false);
                out.push(Mark::Plain);
            }
            '(' if !double => {
                depth += 1;
                out.push(own);
            }
            ')' if !double => {
                if depth == 0
                    && let Some(outer) = quotes.pop()
                {
                    (depth, double) = (outer, true);
                } else {
                    depth = depth.saturating_sub(1);
                }
                out.push(Mark::Plain);
            }
            '#' if !double
                && (at == 0 || get(at - 1).is_whitespace() || matches!(get(at - 1), ';' | '|' | '&' | '(')) =>
            {
                let length = chars.iter().skip(at).take_while(|c| **c != '\n').count();
                out.extend(std::iter::repeat_n(Mark::Quoted, length));
                at += length;
                continue;
            }
            '<' if !double && get(at + 1) == '<' && get(at + 2) != '<' && (at == 0 || get(at - 1) != '<') => {
                pending.extend(document(&chars, at + 2));
                out.push(own);
            }
            '\n' if !double && !pending.is_empty() => {
                out.push(Mark::Plain);
                at += 1;
                for one in std::mem::take(&mut pending) {
                    at = skip(&chars, at, &one, &mut out);
                }
                continue;
            }
            _ => out.push(own),
        }
        at += 1;
    }
    out.truncate(chars.len());
    out
}

/// Single quotes, up to their end.
fn quoted(chars: &[char], start: usize, ansi: bool, out: &mut Vec<Mark>) -> usize {
    let mut at = start + 1;
    out.push(Mark::Quoted);
    while let Some(c) = chars.get(at) {
        out.push(Mark::Quoted);
        at += 1;
        if ansi && *c == '\\' && at < chars.len() {
            out.push(Mark::Quoted);
            at += 1;
        } else if *c == '\'' {
            break;
        }
    }
    at
}

/// The word behind `<<`.
fn document(chars: &[char], from: usize) -> Option<Pending> {
    let rest: String = chars.get(from..)?.iter().collect();
    let rest = rest.strip_prefix('-').unwrap_or(&rest).trim_start_matches([' ', '\t']);
    let word: String =
        rest.chars().take_while(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | '<' | '>' | ')')).collect();
    let end: String = word.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let quoted = end.len() != word.len();
    (!end.is_empty()).then_some(Pending { quoted, end })
}

/// A here-document's lines, its end included.
fn skip(chars: &[char], from: usize, pending: &Pending, out: &mut Vec<Mark>) -> usize {
    let mut at = from;
    while at < chars.len() {
        let line: String = chars.iter().skip(at).take_while(|c| **c != '\n').collect();
        let count = line.chars().count();
        let ends = line.trim_start_matches('\t') == pending.end;
        let mark = if pending.quoted || ends { Mark::Quoted } else { Mark::Double };
        out.extend(std::iter::repeat_n(mark, count));
        at += count;
        if at < chars.len() {
            out.push(if ends { Mark::Plain } else { Mark::Quoted });
            at += 1;
        }
        if ends {
            break;
        }
    }
    at
}
