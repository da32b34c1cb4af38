//! sed's scripts: which commands they run, which files they read and write.
//!
//! A reader of the script language as GNU sed has it, addresses included. What it cannot read is left to be asked about.

use std::str::Chars;

use writ_core::Span;

use crate::action::{Access, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::options::Options;
use crate::programs::entries::own;
use crate::programs::entries::words::Role;
use crate::programs::foreign::{MARK, Script, marked, past_regex, script_text, unmarked};
use crate::shape::text_word;
use crate::word::Word;

/// Follows the scripts of a call of sed.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span, input: &Input) {
    let options = Options::read(arguments, own("sed"), true);
    let mut texts: Vec<(String, Span)> = Vec::new();
    for (_, role, value) in &options.values {
        if *role == Role::Code {
            texts.push((marked(value), value.span));
        } else if *role == Role::Script {
            match script_text(eval, value, input) {
                Script::Text(text) => texts.push((text, value.span)),
                Script::File => {}
                Script::Unknown => eval.unresolved(UnresolvedKind::Script, &format!("{base} -f"), value.span),
            }
        }
    }
    if !options.values.iter().any(|(_, role, _)| matches!(role, Role::Code | Role::Script)) {
        let mut plain = options.operands.iter().filter_map(|at| arguments.get(*at));
        let Some(script) = plain.next() else { return };
        texts.push((marked(script), script.span));
        // `sed -i '' s/a/b/ file`, as BSD has it.
        if script.literal().is_some_and(|text| text.is_empty())
            && let Some(script) = plain.next()
        {
            texts.push((marked(script), script.span));
        }
    }
    let Some(first) = texts.first() else { return };
    let span = if texts.len() == 1 { first.1 } else { span };
    let text: Vec<&str> = texts.iter().map(|(text, _)| text.as_str()).collect();
    let text = text.join("\n");
    let mut script = Reader { eval, base, chars: text.chars(), span };
    if script.commands().is_none() {
        eval.unresolved(UnresolvedKind::Code, base, span);
    }
}

struct Reader<'r, 'e, 't> {
    eval: &'r mut Eval<'e>,
    base: &'r str,
    chars: Chars<'t>,
    span: Span,
}

impl Reader<'_, '_, '_> {
    /// The whole script; `None` where it cannot be read.
    fn commands(&mut self) -> Option<()> {
        loop {
            self.skip(|c| c.is_whitespace() || matches!(c, ';' | '}'));
            if self.peek().is_none() {
                return Some(());
            }
            let unknown = self.peek() == Some(MARK);
            if self.address()? {
                self.blanks();
                if self.next_if(|c| c == ',').is_some() {
                    self.blanks();
                    if !self.address()? {
                        // sed refuses the script.
                        return Some(());
                    }
                }
            }
            self.skip(|c| c.is_whitespace() || c == '!');
            match self.chars.next() {
                // sed refuses an address without a command; one that is not known may hold the command.
                None | Some(',') if !unknown => return Some(()),
                command => self.command(command?)?,
            }
        }
    }

    fn command(&mut self, command: char) -> Option<()> {
        match command {
            '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'F' | 'z' => {}
            '#' | 'v' => drop(self.line()),
            'e' => {
                let code = self.line();
                self.run(code.trim());
            }
            's' => self.substitution()?,
            'y' => {
                let delimiter = self.chars.next()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
            }
            'a' | 'i' | 'c' => self.text(),
            'r' | 'R' => {
                let file = self.line();
                self.file(file.trim(), Access::Read);
            }
            'w' | 'W' => {
                let file = self.line();
                self.file(file.trim(), Access::Write);
            }
            ':' | 'b' | 't' | 'T' | 'q' | 'Q' | 'l' | 'L' => self.skip(|c| !matches!(c, ';' | '\n' | '}')),
            _ => return None,
        }
        Some(())
    }

    /// One address; false when there is none.
    fn address(&mut self) -> Option<bool> {
        match self.peek() {
            Some('/') => {
                self.chars.next();
                past_regex(&mut self.chars, '/', false)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            Some('\\') => {
                self.chars.next();
                let delimiter = self.chars.next()?;
                past_regex(&mut self.chars, delimiter, false)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '$' | '+' | '~' | MARK) => {
                self.skip(|c| c.is_ascii_digit() || matches!(c, '$' | '+' | '~' | MARK));
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn substitution(&mut self) -> Option<()> {
        let delimiter = self.chars.next()?;
        past_regex(&mut self.chars, delimiter, false)?;
        self.until(delimiter)?;
        while let Some(flag) = self.peek() {
            match flag {
                'e' => self.eval.unresolved(UnresolvedKind::Code, &format!("{} s///e", self.base), self.span),
                'w' => {
                    self.chars.next();
                    let file = self.line();
                    self.file(file.trim(), Access::Write);
                    return Some(());
                }
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' | ' ' | '\t' | MARK => {}
                _ => return Some(()),
            }
            self.chars.next();
        }
        Some(())
    }

    /// The text of `a`, `i` and `c`: to the end of the line, further where that is escaped.
    fn text(&mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => drop(self.chars.next()),
                '\n' => return,
                _ => {}
            }
        }
    }

    /// Past a delimiter that is not escaped.
    fn until(&mut self, delimiter: char) -> Option<()> {
        loop {
            match self.chars.next()? {
                c if c == delimiter => return Some(()),
                '\\' => drop(self.chars.next()?),
                _ => {}
            }
        }
    }

    fn run(&mut self, code: &str) {
        if code.is_empty() {
            // The pattern space is run.
            return self.eval.unresolved(UnresolvedKind::Code, &format!("{} e", self.base), self.span);
        }
        let code = unmarked(code, self.span);
        self.eval.code(&code, None, &format!("{} e", self.base));
    }

    fn file(&mut self, file: &str, access: Access) {
        if !file.is_empty() && !matches!(file, "/dev/stdin" | "/dev/stdout" | "/dev/stderr") {
            let word = if file.contains(MARK) { unmarked(file, self.span) } else { text_word(file, self.span) };
            self.eval.file(word, access, false);
        }
    }

    fn line(&mut self) -> String {
        let mut out = String::new();
        while let Some(c) = self.next_if(|c| c != '\n') {
            out.push(c);
        }
        out
    }

    fn peek(&self) -> Option<char> {
        self.chars.clone().next()
    }

    fn next_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let next = self.peek().filter(|c| wanted(*c))?;
        self.chars.next();
        Some(next)
    }

    fn blanks(&mut self) {
        self.skip(|c| matches!(c, ' ' | '\t'));
    }

    fn skip(&mut self, over: impl Fn(char) -> bool) {
        while self.next_if(&over).is_some() {}
    }
}
