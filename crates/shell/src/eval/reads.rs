//! `read` and `mapfile`: what a variable holds that is read from text.

use writ_core::Span;

use crate::eval::Eval;
use crate::eval::input::Input;
use crate::shape::is_flag;
use crate::text::{Fields, Text, literal, split_at};
use crate::word::{Part, Source, Word};

/// Most values that are followed.
const MOST: usize = 64;

/// The options of `read`, and the names behind them.
#[derive(Default)]
struct Flags {
    array: Option<Word>,
    /// `-d`: what ends a line.
    end: Option<char>,
    /// `-n`, `-N`: at most, or exactly so many letters.
    letters: Option<(usize, bool)>,
    /// Something that is not followed.
    odd: bool,
    names: Vec<Word>,
}

impl Flags {
    fn of(arguments: &[Word]) -> Self {
        let mut out = Self::default();
        let mut words = arguments.iter().peekable();
        while let Some(text) = words.peek().and_then(|word| word.literal()).filter(|text| text.starts_with('-')) {
            words.next();
            let Some(at) = text.find(['a', 'd', 'n', 'N', 'p', 't', 'i', 'u']).filter(|_| text.len() > 1) else {
                continue;
            };
            let (flag, glued) = (text.get(at..at + 1).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
            let value = if glued.is_empty() {
                words.next().cloned()
            } else {
                Some(crate::shape::text_word(glued, Span { start: 0, end: 0 }))
            };
            let value_text = value.as_ref().and_then(Word::literal);
            match flag {
                "a" => out.array = value,
                "d" => match value_text {
                    Some(text) => out.end = Some(text.chars().next().unwrap_or('\0')),
                    None => out.odd = true,
                },
                "n" | "N" => match value_text.and_then(|text| text.parse().ok()) {
                    Some(count) => out.letters = Some((count, flag == "N")),
                    None => out.odd = true,
                },
                "i" | "u" => out.odd = true,
                _ => {}
            }
        }
        out.names = words.cloned().collect();
        out
    }
}

impl Eval<'_> {
    /// `read`: of known text, each line may be the one.
    pub(crate) fn read(&mut self, arguments: &[Word], span: Span, input: &Input) {
        let flags = Flags::of(arguments);
        let values = self.separators().filter(|_| !flags.odd).and_then(|separators| lines(input, &flags, &separators));
        let names: Vec<String> = flags.names.iter().filter_map(Word::literal).collect();
        let array = flags.array.as_ref().and_then(Word::literal);
        let Some((lines, separators)) = values else {
            let reply = names.is_empty() && array.is_none();
            let names = names.into_iter().chain(array).chain(reply.then(|| "REPLY".to_owned()));
            return names.for_each(|name| self.set(&name, vec![vec![vec![Part::Unknown(Source::Any)]]], false, span));
        };
        if let Some(name) = array {
            let fields = lines.iter().map(|line| fields(line, &separators)).collect();
            return self.set(&name, fields, false, span);
        }
        if names.is_empty() {
            return self.set("REPLY", lines.into_iter().map(|line| vec![line]).collect(), false, span);
        }
        for (index, name) in names.iter().enumerate() {
            let value = |line: &Text| -> Fields {
                if names.len() == 1 || flags.letters.is_some_and(|(_, exactly)| exactly) {
                    return vec![if index == 0 { line.clone() } else { Text::new() }];
                }
                let mut pieces = fields(line, &separators).into_iter();
                if index + 1 < names.len() {
                    return vec![pieces.nth(index).unwrap_or_default()];
                }
                let blank = separators.first().copied().unwrap_or(' ').to_string();
                let rest: Vec<Text> = pieces.skip(index).collect();
                vec![rest.join(&Part::Text(blank))]
            };
            let values = lines.iter().map(value).collect();
            self.set(name, values, false, span);
        }
    }

    /// `mapfile -t a < file`, `mapfile -C code`
    pub(crate) fn map_file(&mut self, arguments: &[Word], span: Span, input: &Input) {
        let mut pairs = arguments.iter().zip(arguments.iter().skip(1));
        if let Some((_, code)) = pairs.find(|(flag, _)| flag.literal().as_deref() == Some("-C")) {
            self.code(code, None, "mapfile");
        }
        let end =
            arguments.iter().zip(arguments.iter().skip(1)).find(|(flag, _)| flag.literal().as_deref() == Some("-d"));
        let end = end.map(|(_, end)| end.literal().unwrap_or_default().chars().next().unwrap_or('\0'));
        let named = arguments.last().filter(|name| !is_flag(name)).and_then(Word::literal);
        let name = named.unwrap_or_else(|| "MAPFILE".to_owned());
        let value = match input.text() {
            Some(text) => split_at(&text, |c| c == end.unwrap_or('\n')),
            None => vec![vec![Part::Unknown(Source::Words)]],
        };
        self.set(&name, vec![value], false, span);
    }
}

/// The lines that may be read, and what divides their fields; `None` where they may be any text.
fn lines(input: &Input, flags: &Flags, separators: &[char]) -> Option<(Vec<Text>, Vec<char>)> {
    let text = input.text()?;
    if literal(&text).is_some_and(|text| text.contains('\\')) {
        return None;
    }
    let end = flags.end.unwrap_or('\n');
    let mut lines = split_at(&text, |c| c == end);
    if let Some((count, exactly)) = flags.letters {
        lines = chunks(if exactly { vec![text] } else { lines }, count)?;
    }
    let blank = |c: char| separators.contains(&c) && c.is_whitespace();
    if flags.letters.is_none_or(|(_, exactly)| !exactly) {
        lines.iter_mut().for_each(|line| trim(line, blank));
    }
    (lines.len() <= MOST).then(|| (lines, separators.to_vec()))
}

/// So many letters at a time.
fn chunks(lines: Vec<Text>, count: usize) -> Option<Vec<Text>> {
    let mut out = Vec::new();
    for line in lines {
        let letters: Vec<char> = literal(&line)?.chars().collect();
        let chunk = |chunk: &[char]| vec![Part::Text(chunk.iter().collect())];
        out.extend(letters.chunks(count.max(1)).map(chunk));
    }
    Some(out)
}

fn trim(line: &mut Text, blank: impl Fn(char) -> bool) {
    if let Some(Part::Text(first)) = line.first_mut() {
        *first = first.trim_start_matches(&blank).to_owned();
    }
    if let Some(Part::Text(last)) = line.last_mut() {
        *last = last.trim_end_matches(&blank).to_owned();
    }
    line.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
}

/// A line's fields. A text that is not known may hold several.
fn fields(line: &Text, separators: &[char]) -> Fields {
    if line.iter().any(|part| matches!(part, Part::Unknown(source) if source.is_made())) {
        return vec![vec![Part::Unknown(Source::Any)]; 8];
    }
    split_at(line, |c| separators.contains(&c))
}
