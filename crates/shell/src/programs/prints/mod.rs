//! What a command prints, as far as that is certain before it runs: `echo`, `printf`, `pwd`, `which`, the names of a listing.
//!
//! Of others the entry says of which kind it is (`prints`). Page: `spec/shell.md`.

mod listed;
mod mktemp;
mod name_pattern;

use crate::eval::Eval;
use crate::eval::command::Output;
use crate::eval::echo::{echo, printf};
use crate::eval::input::Input;
use crate::programs::entries::entry;
use crate::programs::entries::words::Prints;
use crate::shape::is_system;
use crate::text::{Text, source_of_altered, split_at, tidy};
use crate::word::{Part, Source, Word};

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

/// How much is known of what a program prints.
pub fn output(base: &str) -> Output {
    match base {
        filter if FILTERS.contains(&filter) => Output::OfInput,
        base if PRINTERS.contains(&base) || !kinds(base).is_empty() => Output::OfArguments,
        _ => Output::Unknown,
    }
}

/// What a command prints; `None` where it may be any text.
pub fn printed(eval: &mut Eval<'_>, words: &[Word], input: &Input) -> Option<Text> {
    let (program, arguments) = words.split_first()?;
    let program = program.literal()?;
    let base = program.rsplit('/').next()?;
    let known = |name: &String| eval.functions.contains_key(name) || eval.aliases.contains_key(name);
    // Where brew is installed, its own set-up names it by its path.
    let brew = ["/opt/homebrew/bin/brew", "/home/linuxbrew/.linuxbrew/bin/brew"].contains(&program.as_str());
    let other = program.contains('/') && !is_system(&program) && !brew;
    if other || known(&program) || eval.linked_program(words.first()?).is_some() {
        return None;
    }
    let text = |text: String| Some(vec![Part::Text(text)]);
    match (base, arguments) {
        ("echo", arguments) => Some(echo(arguments)),
        ("printf", _) => printf(arguments),
        ("pwd", _) => match eval.dirs.as_slice() {
            [crate::word::Dir::Open(parts)] => {
                let away = matches!(parts.first(), Some(Part::Text(text)) if text.starts_with('/'));
                let start = if away { None } else { Some(Part::Text(format!("{}/", eval.start_dir()?))) };
                Some(tidy(start.into_iter().chain(parts.iter().cloned()).chain([line_end()]).collect()))
            }
            _ => eval.cwd().or_else(|| eval.only_folder()).and_then(|cwd| text(format!("{cwd}\n"))),
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
            match eval.toplevel().filter(|_| toplevel) {
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
            eval.text_in(file).or_else(|| eval.path_list(file)).map(|text| vec![Part::Text(text)])
        }
        ("mktemp", _) => mktemp::made_name(eval, arguments),
        ("date", _) => date(arguments),
        (filter, _) if FILTERS.contains(&filter) && !matches!(input, Input::None) => {
            filtered(eval, base, arguments, input)
        }
        _ => listed::listed(eval, base, arguments)
            .or_else(|| kind_of(base, arguments))
            .filter(|text| !is_setup(text) || is_plain(eval)),
    }
}

/// Whether no variable of the line holds what might become code where a program prints it.
fn is_plain(eval: &Eval<'_>) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':' | '@' | '+' | ',' | '=');
    let known = |part: &Part| match part {
        Part::Text(text) => text.chars().all(plain),
        Part::Unknown(source) => *source == Source::Outside || *source == Source::Number,
        Part::Glob(_) => false,
    };
    eval.vars.values().flatten().flatten().flatten().all(known)
}

/// What a program makes of the lines it reads.
fn filtered(eval: &mut Eval<'_>, base: &str, arguments: &[Word], input: &Input) -> Option<Text> {
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
            (!prints).then(|| eval.narrowed(&lines, name_pattern::names(&texts).as_ref()))
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
        "tr" if texts.first().is_some_and(|text| text == "-d") => Some(vec![Part::Unknown(source_of_altered(&lines))]),
        _ => None,
    }
}

fn flags(texts: &[String]) -> usize {
    texts.iter().filter(|text| text.starts_with('-')).count()
}

fn line_end() -> Part {
    Part::Text("\n".to_owned())
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
        return Some(vec![Part::Unknown(source_of_altered(&path.parts)), line_end()]);
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

    #[test]
    fn patterns() {
        assert!(fits("*", "") && fits("a *", "a b c") && fits("a*c", "abc") && fits("* b *", "a b c"));
        assert!(!fits("-l", "-l x") && !fits("* b *", "a bc") && !fits("a*c", "ab"));
    }
}
