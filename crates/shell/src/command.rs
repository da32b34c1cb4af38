//! One command: builtins, then wrappers peeled off, then interpreters, then the files and hosts of its operands.

use writ_core::Span;

use crate::action::{Access, NetTarget, Part, UnresolvedKind, Word};
use crate::eval::{Eval, Input, runs_again};
use crate::options::{lead, tail};
use crate::{interpreters, operands, wrappers};

impl Eval<'_> {
    /// Follows one command: records it, then whatever it would run, touch and contact.
    pub(crate) fn command(&mut self, words: Vec<Word>, via: &[String], span: Span, input: &Input) {
        let Some(first) = words.first() else { return };
        if !self.record(&words, via, span) {
            return;
        }
        let Some(name) = first.literal().filter(|name| !name.is_empty()) else {
            let what = interpreters::shown(first);
            return self.unresolved(UnresolvedKind::Program, &what, first.span);
        };
        if first.is_glob() {
            return self.unresolved(UnresolvedKind::Program, &name, first.span);
        }
        if self.call(&name, &words, input) {
            return;
        }
        let base = name.rsplit('/').next().unwrap_or_default().to_owned();
        if name.contains('/') && !is_system(&name) {
            self.file(first.clone(), Access::Exec, false);
        }
        let arguments = words.get(1..).unwrap_or_default();
        if self.builtin(&base, arguments, span, input) || self.wrapper(&base, &words, via, span, input) {
            return;
        }
        if interpreters::run(self, &base, arguments, span, input) {
            return;
        }
        operands::run(self, &base, arguments, span);
        if matches!(base.as_str(), "cat" | "tee" | "sort" | "uniq" | "head" | "tail" | "grep")
            && matches!(input, Input::Paths(..))
        {
            self.output = input.clone();
        }
    }

    /// The same for a command found inside another.
    pub(crate) fn inner(&mut self, words: Vec<Word>, via: &[String], wrapper: &str, span: Span, input: &Input) {
        let via = [via, &[wrapper.to_owned()]].concat();
        let span = match (words.first(), words.last()) {
            (Some(first), Some(last)) if first.span.start <= last.span.end => {
                Span { start: first.span.start, end: last.span.end }
            }
            _ => span,
        };
        if !self.deeper(|eval| eval.command(words, &via, span, input)) {
            self.unresolved(UnresolvedKind::Limit, "commands nested too deep", span);
        }
    }

    fn builtin(&mut self, base: &str, arguments: &[Word], span: Span, input: &Input) -> bool {
        let plain: Vec<&Word> = arguments.iter().filter(|word| !is_flag(word)).collect();
        match base {
            "cd" | "pushd" => match plain.first() {
                None if arguments.iter().any(|word| word.literal().as_deref() == Some("-")) => self.change_dir(None),
                None => {
                    let home = self.home();
                    self.change_dir(home.as_deref());
                }
                Some(to) => self.change_dir(to.literal().as_deref()),
            },
            "popd" => self.change_dir(None),
            "eval" => {
                let code = joined(arguments, span);
                if !arguments.is_empty() {
                    self.code(&code, None, "eval");
                }
            }
            "trap" => {
                if let Some(code) = plain.first() {
                    self.code(code, None, "trap");
                }
            }
            "alias" => {
                for word in plain {
                    if let Some((_, value)) = word.literal().as_deref().and_then(|text| text.split_once('=')) {
                        let code = text_word(value, word.span);
                        self.code(&code, None, "alias");
                    }
                }
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(&plain, span),
            "read" | "mapfile" | "readarray" | "getopts" => self.read(base, arguments, &plain, span, input),
            "set" => {
                let dashes = arguments.iter().position(|word| word.literal().as_deref() == Some("--")).map(|at| at + 1);
                if let Some(from) = dashes.or_else(|| arguments.iter().position(|word| !is_option(word))) {
                    let zero = text_word("sh", span);
                    self.set_arguments(std::iter::once(zero).chain(arguments.iter().skip(from).cloned()).collect());
                }
            }
            "shift" => {
                let by = plain.first().map_or(Some(1), |word| word.literal().and_then(|text| text.parse().ok()));
                self.shift(by.unwrap_or(usize::MAX >> 1));
            }
            "test" | "[" | "[[" | "let" | "unset" => self.again(arguments),
            "hash" => {
                if let [flag, path, name] = arguments
                    && flag.literal().as_deref() == Some("-p")
                {
                    self.stand_in(path, name);
                }
            }
            "compgen" | "complete" => {
                let takes = |word: &Word| matches!(word.literal().as_deref(), Some("-C" | "-W" | "-F"));
                let pairs = arguments.windows(2);
                let codes: Vec<Word> = pairs
                    .filter(|pair| pair.first().is_some_and(takes))
                    .filter_map(|pair| pair.get(1).cloned())
                    .collect();
                self.again(arguments);
                codes.iter().for_each(|code| self.code(code, None, base));
            }
            "printf" => self.print_into(arguments, span),
            "." | "source" => {
                if let Some(script) = plain.first() {
                    interpreters::script(self, script, base, input);
                }
            }
            "echo" | "true" | "false" | ":" | "pwd" | "exit" | "return" | "wait" | "break" | "continue" | "umask"
            | "ulimit" | "jobs" | "fg" | "bg" | "disown" | "type" | "shopt" | "times" | "which" | "whoami" | "date"
            | "sleep" | "seq" | "uname" | "id" | "hostname" | "yes" | "kill" | "pkill" | "killall" | "pgrep" | "ps"
            | "expr" | "basename" | "dirname" | "tty" | "clear" | "history" | "help" | "nproc" | "free" | "uptime"
            | "tr" => {}
            _ => return false,
        }
        true
    }

    /// `export NAME=value` and its like.
    fn declare(&mut self, words: &[&Word], span: Span) {
        for word in words {
            if let Some((name, value)) = word.literal().as_deref().and_then(|text| text.split_once('=')) {
                let value = vec![vec![vec![Part::Text(value.to_owned())]]];
                self.set(name.trim_end_matches('+'), value, false, span);
            }
        }
        self.again(&words.iter().map(|word| (*word).clone()).collect::<Vec<_>>());
    }

    /// Words that this builtin expands once more, as subscripts and arithmetic are.
    fn again(&mut self, words: &[Word]) {
        for word in words {
            if let Some(text) = word.literal().filter(|text| runs_again(text)) {
                self.run_again(&text, word.span);
            }
        }
    }

    /// `read NAME…`: a single name gets the line, when that is known.
    fn read(&mut self, base: &str, arguments: &[Word], plain: &[&Word], span: Span, input: &Input) {
        self.again(arguments);
        if let Some(at) = arguments.iter().position(|word| word.literal().as_deref() == Some("-C")) {
            arguments.get(at + 1).into_iter().for_each(|code| self.code(code, None, base));
        }
        let known = match (base, plain, input) {
            ("read", [_], Input::Text(text)) if text.len() < 4096 => {
                Some(text.lines().map(|line| vec![vec![Part::Text(line.trim().to_owned())]]).collect())
            }
            _ => None,
        };
        let values =
            known.filter(|values: &Vec<_>| !values.is_empty()).unwrap_or_else(|| vec![vec![vec![Part::Unknown]]]);
        for name in plain.iter().filter_map(|word| word.literal()) {
            self.set(&name, values.clone(), false, span);
        }
    }

    /// `hash -p PATH NAME`: the name runs the path.
    fn stand_in(&mut self, path: &Word, name: &Word) {
        let (Some(text), Some(name)) = (path.literal(), name.literal()) else {
            return self.unresolved(UnresolvedKind::Program, "hash -p", path.span);
        };
        if let Ok(body) = crate::parser::parse(&format!("{text} \"$@\""), Some(path.span), 0) {
            self.define(&name, body);
        }
    }

    /// `printf -v NAME FORMAT …`
    fn print_into(&mut self, arguments: &[Word], span: Span) {
        if let [flag, name, ..] = arguments
            && flag.literal().as_deref() == Some("-v")
            && let Some(name) = name.literal()
        {
            let format = arguments.iter().skip(2).filter(|word| word.literal().as_deref() != Some("--"));
            let text = crate::output::printf(&format.cloned().collect::<Vec<_>>());
            self.again(arguments.get(1..2).unwrap_or_default());
            let value = text.map_or(Part::Unknown, Part::Text);
            self.set(&name, vec![vec![vec![value]]], false, span);
        }
    }

    fn wrapper(&mut self, base: &str, words: &[Word], via: &[String], span: Span, input: &Input) -> bool {
        wrappers::peel(self, base, words, via, span, input)
    }
}

/// `-e`, `+x`: what `set` takes before arguments.
fn is_option(word: &Word) -> bool {
    word.literal()
        .is_none_or(|text| text.starts_with(['-', '+']) || text == "pipefail" || text == "errexit" || text == "nounset")
}

/// Where a system keeps its own programs.
pub fn is_system(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    matches!(folder, "/bin" | "/usr/bin" | "/usr/local/bin" | "/sbin" | "/usr/sbin" | "/usr/local/sbin")
}

/// `-x`, `--x`; not `-` itself.
pub fn is_flag(word: &Word) -> bool {
    matches!(word.parts.first(), Some(Part::Text(text)) if text.len() > 1 && text.starts_with('-'))
}

/// Words as one, separated by spaces.
pub fn joined(words: &[Word], span: Span) -> Word {
    let mut parts = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            parts.push(Part::Text(" ".to_owned()));
        }
        parts.extend(word.parts.iter().cloned());
    }
    Word { parts, span }
}

/// A word of known text.
pub fn text_word(text: &str, span: Span) -> Word {
    Word { parts: vec![Part::Text(text.to_owned())], span }
}

/// A host word.
pub fn host(text: &str, span: Span) -> NetTarget {
    NetTarget::Host(text_word(text, span))
}

/// Whether a word begins as `NAME=`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// What `NAME=VALUE` in front of a command does.
pub fn assign(eval: &mut Eval<'_>, word: &Word, span: Span) {
    let lead = lead(word);
    if let Some((name, _)) = lead.split_once('=') {
        eval.judge_assignment(name, &[vec![tail(word, name.len() + 1).parts]], span);
    }
}
