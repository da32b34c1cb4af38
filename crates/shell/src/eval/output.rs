//! What a command prints, as far as that is certain before it runs: `echo`, `printf`, `pwd`, `which`, the names of a listing.
//!
//! Of others the entry says of which kind it is (`prints`). Page: `spec/shell.md`.

use crate::action::{FRESH, Part, Word};
use crate::eval::asked;
use crate::eval::command::is_system;
use crate::eval::echo::{MAX, echo, printf};
use crate::eval::expand::{Text, tidy};
use crate::eval::{Eval, Input, blurred};
use crate::listing::Source;
use crate::parser::syntax::{Next, Node, RawPart, Redirect, RedirectKind, Simple};
use crate::programs::entries::entry;
use crate::programs::words::Prints;

/// Programs that print what their arguments say.
const PRINTERS: [&str; 28] = [
    "echo", "printf", "pwd", "which", "command", "type", "hash", "basename", "dirname", "realpath", "readlink", "git",
    "expr", "mktemp", "date", "ls", "dir", "vdir", "ll", "la", "find", "gfind", "fd", "fdfind", "zgrep", "ag", "ack",
    "rg",
];
/// Programs that print what they read.
const FILTERS: [&str; 19] = [
    "cat", "tac", "sort", "uniq", "shuf", "head", "tail", "tee", "cut", "awk", "gawk", "tr", "grep", "egrep", "fgrep",
    "rg", "nl", "sed", "xargs",
];

/// Most outputs that a command may have.
const MOST: usize = 8;

/// Commands that print nothing, and may change where the next one runs.
const SILENT: [&str; 14] =
    ["cd", "set", "shopt", "export", "test", "[", "true", "false", ":", "declare", "local", "mkdir", "sleep", "umask"];

impl Eval<'_> {
    /// Every output that a substitution may have, trailing line breaks removed; none where it may be any text.
    pub(crate) fn outputs(&mut self, node: &Node) -> Vec<Text> {
        self.quiet += 1;
        let texts = self.output_of(node, &Input::None).unwrap_or_default();
        self.quiet -= 1;
        texts.into_iter().map(trimmed).collect()
    }

    /// The output of a command that reads `input`; `None` where it may be any text.
    pub(crate) fn output_from(&mut self, node: &Node, input: &Input) -> Option<Text> {
        self.quiet += 1;
        let text = self.only_output(node, input);
        self.quiet -= 1;
        text
    }

    /// The same where all of it is certain.
    pub(crate) fn static_output_from(&mut self, node: &Node, input: &Input) -> Option<String> {
        if let Input::Text(text) = Input::of(self.output_from(node, input)?) { Some(text) } else { None }
    }

    fn only_output(&mut self, node: &Node, input: &Input) -> Option<Text> {
        let mut texts = self.output_of(node, input)?;
        texts.pop().filter(|_| texts.is_empty())
    }

    fn output_of(&mut self, node: &Node, input: &Input) -> Option<Vec<Text>> {
        if !self.spend(1) {
            return None;
        }
        match node {
            Node::List(items) => match items.as_slice() {
                [(only, Next::Always)] => self.output_of(only, input),
                items => {
                    let mut out = None;
                    self.scoped(|eval| out = eval.outputs_of(items, input));
                    out
                }
            },
            Node::Subshell(inner) => self.output_of(inner, input),
            Node::Redirected(inner, redirects) => {
                let input = self.redirected(redirects, input);
                self.output_of(inner, &input)
            }
            Node::Pipe(stages) => {
                let mut input = input.clone();
                for stage in stages {
                    input = Input::of(self.only_output(stage, &input)?);
                }
                Some(vec![input.text()?])
            }
            Node::Simple(simple) => self.output_of_simple(simple, input),
            Node::Branches(_)
            | Node::Loop(_)
            | Node::For { .. }
            | Node::Function { .. }
            | Node::Words(_)
            | Node::Test(_) => None,
        }
    }

    /// What several commands print, one behind the other; behind `||` one of two.
    fn outputs_of(&mut self, items: &[(Node, Next)], input: &Input) -> Option<Vec<Text>> {
        let mut all: Vec<Text> = vec![Text::new()];
        let mut instead = false;
        for (node, next) in items {
            let here = if is_silent(node) {
                self.silent(node, input);
                vec![Text::new()]
            } else {
                self.output_of(node, input)?
            };
            if instead {
                all.extend(here);
            } else {
                all = all.iter().flat_map(|text| here.iter().map(|more| [text.as_slice(), more].concat())).collect();
            }
            if all.len() > MOST || *next == Next::Background {
                return None;
            }
            instead = *next == Next::OnFailure;
        }
        Some(all.into_iter().map(tidy).collect())
    }

    /// What a command that prints nothing changes for the next.
    fn silent(&mut self, node: &Node, input: &Input) {
        let Node::Simple(simple) = node else { return };
        if simple.words.is_empty() {
            return self.node(node, input);
        }
        let words = self.only_words(simple).unwrap_or_default();
        match (
            words.first().and_then(Word::literal).as_deref(),
            words.iter().rfind(|word| !crate::eval::command::is_flag(word)),
        ) {
            (Some("cd"), Some(folder)) if words.len() > 1 && folder.literal().as_deref() != Some("-") => {
                self.change_dir(Some(folder));
            }
            (Some("cd") | None, _) => self.change_dir(None),
            _ => {}
        }
    }

    fn output_of_simple(&mut self, simple: &Simple, input: &Input) -> Option<Vec<Text>> {
        // Most programs print nothing that is known: their words need not be looked at.
        if plain_program(simple).is_some_and(|base| !prints(base)) {
            return None;
        }
        let input = self.redirected(&simple.redirects, input);
        let words = self.only_words(simple)?;
        let short = |text: &Text| crate::eval::budget::size(text) <= MAX;
        Some(vec![self.printed(&words, &input).filter(short)?])
    }

    /// Standard input after these redirections.
    fn redirected(&mut self, redirects: &[Redirect], input: &Input) -> Input {
        let mut input = input.clone();
        // What another descriptor gets is not what standard input gives.
        for redirect in redirects.iter().filter(|redirect| !redirect.other) {
            match (redirect.kind, redirect.word.parts.as_slice()) {
                (RedirectKind::Text, parts) => {
                    let mut texts = self.expand_text(parts);
                    let only = texts.pop().filter(|_| texts.is_empty());
                    input = only.map_or(Input::Unknown, Input::of);
                }
                (RedirectKind::Read, [RawPart::Process(node)]) => {
                    input = self.output_from(node, &Input::None).map_or(Input::Unknown, Input::of);
                }
                (RedirectKind::Read | RedirectKind::ReadWrite, _) => input = Input::Unknown,
                (RedirectKind::Write | RedirectKind::Duplicate, _) => {}
            }
        }
        input
    }

    /// A command's words, when they can be only one thing.
    fn only_words(&mut self, simple: &Simple) -> Option<Vec<Word>> {
        let mut words: Vec<Word> = Vec::new();
        for raw in &simple.words {
            let mut alternatives = self.expand(raw);
            if alternatives.len() > 1 {
                // What nobody assigned takes in the empty text too.
                let open = |fields: &Vec<Word>| fields.iter().any(|word| word.literal().is_none());
                alternatives.retain(open);
            }
            if alternatives.len() != 1 {
                return None;
            }
            words.append(&mut alternatives.pop()?);
        }
        Some(words)
    }

    fn printed(&mut self, words: &[Word], input: &Input) -> Option<Text> {
        let (program, arguments) = words.split_first()?;
        let program = program.literal()?;
        let base = program.rsplit('/').next()?;
        let known = |name: &String| self.functions.contains_key(name) || self.aliases.contains_key(name);
        // Where brew is installed, its own set-up names it by its path.
        let brew = ["/opt/homebrew/bin/brew", "/home/linuxbrew/.linuxbrew/bin/brew"].contains(&program.as_str());
        let other = program.contains('/') && !is_system(&program) && !brew;
        if other || known(&program) || self.linked_program(words.first()?).is_some() {
            return None;
        }
        let text = |text: String| Some(vec![Part::Text(text)]);
        match (base, arguments) {
            ("echo", arguments) => Some(echo(arguments)),
            ("printf", _) => printf(arguments),
            ("pwd", _) => match self.dirs.as_slice() {
                [crate::action::Dir::Open(parts)] => {
                    let away = matches!(parts.first(), Some(Part::Text(text)) if text.starts_with('/'));
                    let start = if away { None } else { Some(Part::Text(format!("{}/", self.start_dir()?))) };
                    Some(tidy(start.into_iter().chain(parts.iter().cloned()).chain([line_end()]).collect()))
                }
                _ => self.cwd().or_else(|| self.only_folder()).and_then(|cwd| {
                    text(format!(
                        "{cwd}
"
                    ))
                }),
            },
            ("which" | "command" | "type" | "hash", [.., name]) => {
                let name = name.literal().filter(|name| !name.starts_with('-'))?;
                // Where Writ itself lies is protected; whose folder it is does not matter.
                let folder = if name == "writ" { "/usr/local/bin/" } else { "" };
                text(format!("{folder}{name}\n"))
            }
            ("basename", [path, ..]) => base_name(path, arguments.len() > 1),
            ("dirname", [path]) => folder_of(path),
            ("realpath" | "readlink", [.., path]) => Some([path.parts.as_slice(), &[line_end()]].concat()),
            ("git", [sub, flag]) if sub.literal().as_deref() == Some("rev-parse") => {
                let toplevel = flag.literal().as_deref() == Some("--show-toplevel");
                match self.toplevel().filter(|_| toplevel) {
                    Some(folder) => text(format!("{folder}\n")),
                    None => kind_of(base, arguments),
                }
            }
            ("expr", _) => {
                let counts = |word: &Word| match word.literal() {
                    Some(text) => text.chars().all(|c| c.is_ascii_digit() || "+-*/%()".contains(c)),
                    None => word.parts.iter().all(|part| *part == Part::Unknown(Source::Number)),
                };
                arguments.iter().all(counts).then(|| vec![Part::Unknown(Source::Number)])
            }
            ("cat", [file]) if matches!(input, Input::None) => {
                self.text_in(file).or_else(|| self.names_in(file)).map(|text| vec![Part::Text(text)])
            }
            ("mktemp", _) => self.made_name(arguments),
            ("date", _) => date(arguments),
            (filter, _) if FILTERS.contains(&filter) && !matches!(input, Input::None) => {
                self.filtered(base, arguments, input)
            }
            _ => self
                .listed(base, arguments)
                .or_else(|| kind_of(base, arguments))
                .filter(|text| !is_setup(text) || self.is_plain()),
        }
    }

    /// Whether no variable of the line holds what might become code where a program prints it.
    fn is_plain(&self) -> bool {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':' | '@' | '+' | ',' | '=');
        let known = |part: &Part| match part {
            Part::Text(text) => text.chars().all(plain),
            Part::Unknown(source) => *source == Source::Outside || *source == Source::Number,
            Part::Glob(_) => false,
        };
        self.vars.values().flatten().flatten().flatten().all(known)
    }

    pub(crate) fn only_folder(&self) -> Option<String> {
        match self.dirs.as_slice() {
            // A name that `mktemp` made is not known.
            [crate::action::Dir::Start(dir)] if !dir.contains(FRESH) => {
                Some(crate::eval::dirs::below(&self.start_dir()?, dir))
            }
            _ => None,
        }
    }

    /// What a program makes of the lines it reads.
    fn filtered(&mut self, base: &str, arguments: &[Word], input: &Input) -> Option<Text> {
        let texts: Vec<String> = arguments.iter().map(|word| word.literal().unwrap_or_default()).collect();
        let alone = texts.iter().all(|text| text.starts_with('-'));
        let known = matches!(input, Input::Text(_));
        let lines = input.text()?;
        match base {
            "cat" if alone && texts.iter().all(|text| text == "-") => Some(lines),
            "xargs" if arguments.is_empty() => Some(lines),
            // Fewer lines, or in another order: whoever takes each for possible loses nothing.
            "tac" | "sort" | "uniq" | "shuf" | "tee" if !known && alone => Some(lines),
            "head" | "tail" if !known && texts.iter().all(|text| !text.contains('c')) => Some(lines),
            "grep" | "egrep" | "fgrep" | "rg" if !known && arguments.len() - flags(&texts) == 1 => {
                let prints = texts.iter().any(|text| text.starts_with('-') && text.contains(['o', 'c', 'n', 'H', 'l']));
                (!prints).then(|| self.narrowed(&lines, asked::names(&texts).as_ref()))
            }
            "awk" | "gawk" => {
                let at = texts.first()?.strip_prefix("{print $")?.strip_suffix('}')?;
                let at = if at == "NF" { usize::MAX } else { at.parse().ok()? };
                (texts.len() == 1).then(|| columns(&lines, at, None)).flatten()
            }
            "cut" => {
                let mark = texts.iter().find_map(|text| text.strip_prefix("-d")).and_then(|text| text.chars().next());
                let at = texts.iter().find_map(|text| text.strip_prefix("-f"))?.parse().ok()?;
                columns(&lines, at, Some(mark.unwrap_or('\t')))
            }
            "tr" if texts.first().is_some_and(|text| text == "-d") => Some(vec![Part::Unknown(blurred(&lines))]),
            _ => None,
        }
    }
}

fn flags(texts: &[String]) -> usize {
    texts.iter().filter(|text| text.starts_with('-')).count()
}

fn line_end() -> Part {
    Part::Text("\n".to_owned())
}

fn is_silent(node: &Node) -> bool {
    let Node::Simple(simple) = node else { return false };
    match simple.words.first().map(|word| word.parts.as_slice()) {
        None => true,
        Some([RawPart::Plain(name)]) => SILENT.contains(&name.as_str()),
        Some(_) => false,
    }
}

/// Without line breaks at the end.
fn trimmed(mut text: Text) -> Text {
    if let Some(Part::Text(last)) = text.last_mut() {
        last.truncate(last.trim_end_matches('\n').len());
    }
    tidy(text)
}

/// The column of each line, counted from 1; blanks divide columns, or this mark.
fn columns(lines: &Text, at: usize, mark: Option<char>) -> Option<Text> {
    let mut out = Text::new();
    for line in split_at(lines, |c| c == '\n') {
        let is_mark = |c: char| mark.map_or_else(|| c == ' ' || c == '\t', |mark| c == mark);
        let fields: Vec<Text> = split_at(&line, is_mark);
        let field = if at == usize::MAX { fields.last() } else { fields.get(at.checked_sub(1)?) };
        // A text that is not known may hold blanks of its own.
        if line.iter().any(|part| matches!(part, Part::Unknown(source) if source.is_made())) {
            return None;
        }
        out.extend(field.into_iter().flatten().cloned());
        out.push(line_end());
    }
    Some(tidy(out))
}

/// The pieces of a text between such characters, without empty ones.
pub fn split_at(text: &Text, ends: impl Fn(char) -> bool) -> Vec<Text> {
    let mut out: Vec<Text> = vec![Text::new()];
    for part in text {
        let Part::Text(known) = part else {
            out.last_mut().into_iter().for_each(|last| last.push(part.clone()));
            continue;
        };
        for (at, piece) in known.split(&ends).enumerate() {
            if at > 0 {
                out.push(Text::new());
            }
            if !piece.is_empty() {
                out.last_mut().into_iter().for_each(|last| last.push(Part::Text(piece.to_owned())));
            }
        }
    }
    out.retain(|piece| !piece.is_empty());
    out
}

/// `basename path [suffix]`
fn base_name(path: &Word, cut: bool) -> Option<Text> {
    let name = match path.literal().filter(|_| !path.is_glob()) {
        Some(known) if !cut => {
            return Some(vec![Part::Text(format!("{}\n", known.trim_end_matches('/').rsplit('/').next()?))]);
        }
        Some(_) => return None,
        None if path.parts.len() == 1 && matches!(path.parts.first(), Some(Part::Unknown(Source::Number))) => {
            Source::Number
        }
        None => Source::Name,
    };
    Some(vec![Part::Unknown(name), line_end()])
}

fn folder_of(path: &Word) -> Option<Text> {
    let Some(path) = path.literal().filter(|_| !path.is_glob()) else {
        return Some(vec![Part::Unknown(blurred(&path.parts)), line_end()]);
    };
    Some(vec![Part::Text(match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/\n".to_owned(),
        Some((folder, _)) => format!("{folder}\n"),
        None => ".\n".to_owned(),
    })])
}

/// `date [-u] [+format]`
fn date(arguments: &[Word]) -> Option<Text> {
    let texts: Vec<String> = arguments.iter().map(|word| word.literal().unwrap_or_default()).collect();
    if texts.iter().any(|text| text.starts_with("-f") || text.starts_with("--f")) {
        return None;
    }
    let Some(format) = texts.iter().find_map(|text| text.strip_prefix('+')) else {
        return Some(vec![Part::Unknown(Source::Name), line_end()]);
    };
    let mut out = Text::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(Part::Text(c.to_string()));
            continue;
        }
        let directive = chars.by_ref().find(|c| !matches!(c, '-' | '_' | '0'..='9' | '^' | '#' | 'E' | 'O' | ':'))?;
        out.push(match directive {
            'D' | 'x' | 'c' => Part::Unknown(Source::Outside),
            '%' => Part::Text("%".to_owned()),
            'n' | 't' => Part::Text("\n".to_owned()),
            _ => Part::Unknown(Source::Number),
        });
    }
    out.push(line_end());
    Some(tidy(out))
}

/// The name of a command's program, where it is written out.
fn plain_program(simple: &Simple) -> Option<&str> {
    match simple.words.first()?.parts.as_slice() {
        [RawPart::Plain(program)] => program.rsplit('/').next(),
        _ => None,
    }
}

/// Whether a command's output may be a text that is known to the last letter.
pub fn may_be_static(simple: &Simple, input: &Input) -> bool {
    let own = |redirect: &Redirect| matches!(redirect.kind, RedirectKind::Text | RedirectKind::Read);
    let reads = matches!(input, Input::Text(_)) || simple.redirects.iter().any(own);
    plain_program(simple).is_none_or(|base| prints(base) && (reads || !FILTERS.contains(&base)))
}

/// Whether anything is known of what a program may print.
fn prints(base: &str) -> bool {
    PRINTERS.contains(&base) || FILTERS.contains(&base) || !kinds(base).is_empty()
}

/// What a program prints by its entry, for arguments in which `*` is any text.
fn kinds(base: &str) -> &'static [(&'static str, Prints)] {
    entry(base).map_or(&[], |entry| entry.prints)
}

fn is_setup(text: &Text) -> bool {
    text.contains(&Part::Unknown(Source::Setup))
}

/// The kind of what a program prints with these arguments.
fn kind_of(base: &str, arguments: &[Word]) -> Option<Text> {
    let kinds = kinds(base);
    if kinds.is_empty() {
        return None;
    }
    let said: Vec<String> = arguments.iter().map(|word| word.literal().unwrap_or_else(|| "\u{1}".to_owned())).collect();
    let said = said.join(" ");
    let (_, kind) =
        kinds.iter().filter(|(pattern, _)| fits(pattern, &said)).max_by_key(|(pattern, _)| pattern.len())?;
    let unknown = |source| Some(vec![Part::Unknown(source), line_end()]);
    match kind {
        Prints::Number => unknown(Source::Number),
        Prints::Name => unknown(Source::Name),
        Prints::Outside => unknown(Source::Outside),
        Prints::Setup => unknown(Source::Setup),
        Prints::Any => None,
        Prints::SumAndName => Some(vec![
            Part::Unknown(Source::Number),
            Part::Text("  ".to_owned()),
            Part::Unknown(Source::Outside),
            line_end(),
        ]),
    }
}

/// Whether a pattern in which `*` is any text, matches all of `text`.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, "")) => text.starts_with(before),
        Some((before, after)) => {
            let Some(rest) = text.strip_prefix(before) else { return false };
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| fits(after, rest.get(at..).unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::literal;

    #[test]
    fn patterns() {
        assert!(fits("*", "") && fits("a *", "a b c") && fits("a*c", "abc") && fits("* b *", "a b c"));
        assert!(!fits("-l", "-l x") && !fits("* b *", "a bc") && !fits("a*c", "ab"));
    }

    #[test]
    fn known_texts_stay_known() {
        assert_eq!(literal(&trimmed(vec![Part::Text("a\n\n".to_owned())])).as_deref(), Some("a"));
    }
}
