//! Bash's own commands: what they change in the shell, and the code they run.

use writ_core::Span;

use crate::action::UnresolvedKind;
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::parser::syntax::Assignment;
use crate::shape::{is_flag, joined, text_word};
use crate::text::literal;
use crate::word::{Part, Source, Word};

impl Eval<'_> {
    pub(crate) fn builtin(&mut self, base: &str, arguments: &[Word], span: Span, input: &Input) -> bool {
        if EVALUATING.contains(&base) {
            arguments.iter().for_each(|word| self.subscripts(&word.parts));
            self.computed_subscripts(base, arguments);
        }
        let plain: Vec<&Word> = arguments.iter().filter(|word| !is_flag(word)).collect();
        match base {
            "cd" | "pushd" => self.change_directory(arguments, plain.first().copied(), span),
            // A word of other shells.
            "chdir" => self.conditionally(|eval| eval.change_directory(arguments, plain.first().copied(), span)),
            "popd" => self.return_dir(),
            "shopt" => self.shell_options(arguments),
            "eval" => {
                let dashes = arguments.first().and_then(Word::literal).is_some_and(|text| text == "--");
                let arguments = arguments.get(usize::from(dashes)..).unwrap_or_default();
                let code = joined(arguments, span);
                let setup =
                    !code.parts.is_empty() && code.parts.iter().all(|part| *part == Part::Unknown(Source::Setup));
                if !arguments.is_empty() && !setup {
                    self.code(&code, None, "eval");
                }
            }
            "trap" => {
                // It runs at the end, with what the variables hold then.
                if let Some(code) = plain.first() {
                    self.trap(code);
                    // These run between the commands that follow.
                    let between = |word: &Word| {
                        let name = word.literal().unwrap_or_default().to_ascii_uppercase();
                        matches!(name.trim_start_matches("SIG"), "" | "DEBUG" | "ERR" | "RETURN")
                    };
                    if plain.iter().skip(1).copied().any(between) {
                        self.code(code, None, "trap");
                    }
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
            "let" => arguments.iter().for_each(|word| {
                self.computed(&word.parts);
                self.number_set(&word.parts);
            }),
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
            "echo" | "true" | "false" | ":" | "pwd" | "exit" | "return" | "wait" | "break" | "continue" | "umask"
            | "ulimit" | "jobs" | "fg" | "bg" | "disown" | "type" | "times" | "which" | "whoami" | "sleep" | "seq"
            | "uname" | "id" | "yes" | "kill" | "pkill" | "killall" | "pgrep" | "ps" | "expr" | "basename"
            | "dirname" | "tty" | "clear" | "history" | "help" | "nproc" | "free" | "uptime" | "tr" => {}
            _ => return false,
        }
        true
    }

    /// `cd folder`, `cd -`, `cd`
    fn change_directory(&mut self, arguments: &[Word], to: Option<&Word>, span: Span) {
        let back = |word: &Word| word.literal().as_deref() == Some("-");
        let physical = |word: &Word| is_flag(word) && word.literal().is_some_and(|text| text.contains('P'));
        self.physical |= arguments.iter().any(physical);
        match to {
            _ if arguments.iter().any(back) => self.return_dir(),
            None => {
                let home = self.home().map(|home| text_word(&home, span));
                self.change_dir(home.as_ref());
            }
            Some(to) => self.change_dir(Some(to)),
        }
    }

    /// `trap code signal`: it runs at the end, with what the variables hold then.
    fn trap(&mut self, code: &Word) {
        if self.conditional == 0 && self.other_shell == 0 && self.fixed.is_none() && self.quiet == 0 {
            self.traps.push(code.clone());
        } else {
            self.code(code, None, "trap");
        }
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

    /// `declare -A`: subscripts of these arrays are texts.
    pub(crate) fn keys_declared(&mut self, words: &[Word], assignments: &[Assignment]) {
        let declares = words.first().and_then(Word::literal);
        let Some("declare" | "typeset" | "local") = declares.as_deref() else { return };
        let texts: Vec<String> = words.iter().skip(1).filter_map(Word::literal).collect();
        if texts.iter().any(|text| text.starts_with('-') && text.contains('A')) {
            self.keyed.extend(assignments.iter().map(|assignment| assignment.name.clone()));
            self.keyed.extend(texts);
        }
    }

    /// The subscripts of names that a builtin is given are computed: `unset "a[x]"` reads `x`.
    fn computed_subscripts(&mut self, base: &str, arguments: &[Word]) {
        // The others take most of their words for text.
        let flag = match base {
            "test" | "[" | "printf" => Some("-v"),
            "wait" => Some("-p"),
            _ => None,
        };
        for (at, word) in arguments.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| arguments.get(at)).and_then(Word::literal);
            if flag.is_some() && before.as_deref() != flag {
                continue;
            }
            let Some(text) = word.literal() else { continue };
            if let Some((_, key)) = text.split('=').next().and_then(|name| name.strip_suffix(']')?.split_once('[')) {
                self.computed(&vec![Part::Text(key.to_owned())]);
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
            if flag('i') {
                self.integers.insert(name.clone());
            }
            let values = self.lookup(&name, None).unwrap_or_default();
            if ['i', 'l', 'u', 'c'].into_iter().any(flag) || (flag('n') && values.is_empty()) {
                self.shaped.insert(name.clone());
                if !values.is_empty() {
                    self.set_all(&name, values.clone(), None, self.here);
                }
            }
            // What is put into it later, or cannot be told, is a name all the same.
            if flag('n') && values.is_empty() {
                self.references.insert(name.clone(), None);
            }
            for value in values.into_iter().flatten() {
                if flag('i') {
                    self.computed(&value);
                } else if flag('n') {
                    self.number(&value, 0);
                }
                if flag('n') {
                    self.references.insert(name.clone(), literal(&value));
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
            let text = crate::eval::echo::printf(rest);
            let value = text.unwrap_or_else(|| vec![Part::Unknown(Source::Any)]);
            self.set(&name, vec![vec![value]], false, span);
        }
    }

    fn forget(&mut self, name: &Word, span: Span) {
        if let Some(name) = name.literal() {
            self.set(&name, vec![vec![vec![Part::Unknown(Source::Any)]]], false, span);
        }
    }

    /// `compgen -C code`, `-W text`
    fn completion(&mut self, arguments: &[Word], base: &str) {
        for (flag, value) in arguments.iter().zip(arguments.iter().skip(1)) {
            match flag.literal().as_deref() {
                Some("-C") => self.code(value, None, base),
                Some("-W") if value.literal().is_some() => self.reevaluate(&value.parts, base),
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
            self.physical |= text.starts_with('-') && text.contains('P');
            if matches!(text.as_str(), "-o" | "+o") {
                let named = arguments.get(at).and_then(Word::literal);
                self.physical |= named.is_none_or(|name| name == "physical");
                at += 1;
            }
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
