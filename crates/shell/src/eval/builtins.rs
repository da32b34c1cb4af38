//! Bash's own commands: what they change in the shell, and the code they run.

use writ_core::Span;

use crate::action::{Part, Source, UnresolvedKind, Word};
use crate::eval::command::{is_flag, joined, text_word};
use crate::eval::{Eval, Input, literal};
use crate::parser::syntax::Assignment;
use crate::programs::interpreters;

impl Eval<'_> {
    pub(crate) fn builtin(&mut self, base: &str, arguments: &[Word], span: Span, input: &Input) -> bool {
        if EVALUATING.contains(&base) {
            arguments.iter().for_each(|word| self.subscripts(&word.parts));
        }
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
                    if let Some((name, value)) = word.literal().as_deref().and_then(|text| text.split_once('=')) {
                        self.aliases.insert(name.to_owned(), value.to_owned());
                        let code = text_word(value, word.span);
                        self.code(&code, None, "alias");
                    }
                }
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                let flag = |text: String| text.starts_with('-') && text.contains('x');
                let exports = base == "export" || arguments.iter().filter_map(Word::literal).any(flag);
                self.exports += usize::from(exports);
                self.declare(&plain, span);
                self.exports -= usize::from(exports);
            }
            "read" => self.read(arguments, span, input),
            "mapfile" | "readarray" => self.map_file(arguments, span, input),
            "getopts" => plain.iter().skip(1).take(1).for_each(|word| self.forget(word, span)),
            "let" => arguments.iter().for_each(|word| self.number(&word.parts, 0)),
            "unset" => plain.iter().filter_map(|word| word.literal()).for_each(|name| self.unset(&name)),
            "shift" => {
                let count = plain.first().map_or(Some(1), |word| word.literal()?.parse().ok());
                self.shift(count);
            }
            "set" => self.set_options(arguments, span),
            "hash" => self.hash(arguments),
            "compgen" | "complete" => self.completion(arguments, base),
            "enable" if arguments.iter().any(|word| word.literal().as_deref() == Some("-f")) => {
                self.unresolved(UnresolvedKind::Environment, "enable -f", span);
            }
            "printf" => self.print_into(arguments, span),
            "." | "source" => {
                if let Some(script) = plain.first() {
                    interpreters::script(self, script, base, input);
                }
            }
            "echo" | "true" | "false" | ":" | "pwd" | "exit" | "return" | "wait" | "break" | "continue" | "umask"
            | "ulimit" | "jobs" | "fg" | "bg" | "disown" | "type" | "shopt" | "times" | "which" | "whoami"
            | "sleep" | "seq" | "uname" | "id" | "yes" | "kill" | "pkill" | "killall" | "pgrep" | "ps" | "expr"
            | "basename" | "dirname" | "tty" | "clear" | "history" | "help" | "nproc" | "free" | "uptime" | "tr" => {}
            _ => return false,
        }
        true
    }

    /// `hash -p path name`
    fn hash(&mut self, arguments: &[Word]) {
        if let [flag, path, names @ ..] = arguments
            && flag.literal().as_deref() == Some("-p")
            && let Some(path) = path.literal()
        {
            names.iter().filter_map(Word::literal).for_each(|name| self.note_program(&path, &name));
        }
    }

    /// `export NAME=value` and its like.
    fn declare(&mut self, words: &[&Word], span: Span) {
        for word in words {
            if let Some((name, value)) = word.literal().as_deref().and_then(|text| text.split_once('=')) {
                let value = vec![vec![vec![Part::Text(value.to_owned())]]];
                self.set(name.trim_end_matches('+'), value, name.ends_with('+'), span);
            } else if let Some((Part::Text(start), rest)) = word.parts.split_first()
                && let Some((name, value)) = start.split_once('=')
            {
                let value = [&[Part::Text(value.to_owned())], rest].concat();
                self.set(name.trim_end_matches('+'), vec![vec![value]], name.ends_with('+'), span);
            }
        }
    }

    /// What flags of `declare` do to the assignments beside it: `-i`, `-l` and `-u` change
    /// them, `-n` makes names of them, `-r` keeps them.
    pub(crate) fn declared(&mut self, words: &[Word], assignments: &[Assignment]) {
        let flag = |letter: char| {
            let has = |text: String| text.starts_with('-') && !text.starts_with("--") && text.contains(letter);
            words.iter().skip(1).any(|word| word.literal().is_some_and(has))
        };
        let declares = words.first().and_then(Word::literal);
        let Some("declare" | "typeset" | "local" | "readonly") = declares.as_deref() else { return };
        let plain = words.iter().skip(1).filter(|word| !is_flag(word)).filter_map(Word::literal);
        let mut names: Vec<String> = assignments.iter().map(|assignment| assignment.name.clone()).collect();
        names.extend(plain.map(|text| text.split('=').next().unwrap_or_default().to_owned()));
        for name in names {
            if declares.as_deref() == Some("readonly") || flag('r') {
                self.frozen.insert(name.clone());
            }
            let values = self.lookup(&name, None).unwrap_or_default();
            if ['i', 'l', 'u', 'c'].into_iter().any(flag) || (flag('n') && values.is_empty()) {
                self.shaped.insert(name.clone());
                if !values.is_empty() {
                    self.set_all(&name, values.clone(), None, self.here);
                }
            }
            for value in values.into_iter().flatten() {
                if flag('i') || flag('n') {
                    self.number(&value, 0);
                }
                if let Some(target) = literal(&value).filter(|_| flag('n')) {
                    self.references.insert(name.clone(), target);
                }
            }
        }
    }

    /// `printf -v NAME FORMAT …`
    fn print_into(&mut self, arguments: &[Word], span: Span) {
        if let [flag, name, rest @ ..] = arguments
            && flag.literal().as_deref() == Some("-v")
            && let Some(name) = name.literal()
        {
            let text = crate::eval::output::printf(rest);
            let value = text.map_or(Part::Unknown(Source::Any), Part::Text);
            self.set(&name, vec![vec![vec![value]]], false, span);
        }
    }

    fn forget(&mut self, name: &Word, span: Span) {
        if let Some(name) = name.literal() {
            self.set(&name, vec![vec![vec![Part::Unknown(Source::Any)]]], false, span);
        }
    }

    /// `read`: of known text, each line may be the one.
    fn read(&mut self, arguments: &[Word], span: Span, input: &Input) {
        let mut at = 0;
        let (mut simple, mut array) = (true, None);
        while let Some(text) = arguments.get(at).and_then(Word::literal).filter(|text| text.starts_with('-')) {
            at += 1;
            match text.trim_start_matches('-').trim_start_matches(['r', 's', 'e']) {
                "" => {}
                "a" => {
                    array = arguments.get(at);
                    at += 1;
                }
                "p" | "t" => at += 1,
                "n" | "N" | "d" | "i" | "u" => {
                    at += 1;
                    simple = false;
                }
                other => simple &= other.starts_with(['p', 't']),
            }
        }
        let names: Vec<&Word> = arguments.get(at..).unwrap_or_default().iter().collect();
        let separators = self.separators();
        let (Input::Text(text), true, Some(separators)) = (input, simple, separators) else {
            return names.into_iter().chain(array).for_each(|name| self.forget(name, span));
        };
        if text.contains('\\') || text.lines().count() > 64 {
            return names.into_iter().chain(array).for_each(|name| self.forget(name, span));
        }
        let blank = |c: char| separators.contains(&c) && c.is_whitespace();
        let part = |text: &str| vec![Part::Text(text.trim_matches(blank).to_owned())];
        let lines: Vec<&str> = text.lines().collect();
        if let Some(name) = array.and_then(Word::literal) {
            let fields =
                |line: &&str| line.split(separators.as_slice()).filter(|it| !it.is_empty()).map(part).collect();
            return self.set(&name, lines.iter().map(fields).collect(), false, span);
        }
        for (index, name) in names.iter().enumerate() {
            let last = index + 1 == names.len();
            let field = |line: &&str| {
                let line = line.trim_start_matches(blank);
                if names.len() == 1 {
                    return vec![part(line)];
                }
                let limit = if last { index + 1 } else { index + 2 };
                vec![line.splitn(limit, separators.as_slice()).nth(index).map(part).unwrap_or_default()]
            };
            let values = lines.iter().map(field).collect();
            if let Some(name) = name.literal() {
                self.set(&name, values, false, span);
            }
        }
    }

    /// `mapfile -t a < file`, `mapfile -C code`
    fn map_file(&mut self, arguments: &[Word], span: Span, input: &Input) {
        let mut pairs = arguments.iter().zip(arguments.iter().skip(1));
        if let Some((_, code)) = pairs.find(|(flag, _)| flag.literal().as_deref() == Some("-C")) {
            self.code(code, None, "mapfile");
        }
        let Some(name) = arguments.last().filter(|name| !is_flag(name)).and_then(Word::literal) else { return };
        let value = match input {
            Input::Text(text) => text.lines().map(|line| vec![Part::Text(line.to_owned())]).collect(),
            Input::None | Input::Paths(..) | Input::Unknown => vec![vec![Part::Unknown(Source::Any)]],
        };
        self.set(&name, vec![value], false, span);
    }

    /// `compgen -C code`, `-W text`
    fn completion(&mut self, arguments: &[Word], base: &str) {
        for (flag, value) in arguments.iter().zip(arguments.iter().skip(1)) {
            match flag.literal().as_deref() {
                Some("-C") => self.code(value, None, base),
                Some("-W") if value.literal().is_some() => self.again(&value.parts, base),
                _ => {}
            }
        }
    }

    /// `set -- a b`, `set a b`
    fn set_options(&mut self, arguments: &[Word], span: Span) {
        let mut at = 0;
        let mut given = false;
        while let Some(text) = arguments.get(at).and_then(Word::literal).filter(|text| text.starts_with(['-', '+'])) {
            at += 1;
            if text == "--" {
                given = true;
                break;
            }
            at += usize::from(matches!(text.as_str(), "-o" | "+o"));
        }
        let rest = arguments.get(at..).unwrap_or_default();
        if given || !rest.is_empty() {
            self.set_arguments(std::iter::once(text_word("sh", span)).chain(rest.iter().cloned()).collect());
        }
    }
}

/// Builtins that read a subscript in a name they are given.
const EVALUATING: [&str; 14] = [
    "test",
    "[",
    "let",
    "read",
    "printf",
    "unset",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "mapfile",
    "readarray",
    "wait",
];
