//! What a command prints, where that is certain before it runs: `echo`, `printf`, `cat` of a here-document, `pwd`, `which`.

use crate::action::Word;
use crate::eval::dirs::below;
use crate::eval::{Eval, Input};
use crate::parser::syntax::{Next, Node, RedirectKind, Simple};

/// Longest output that is followed.
const MAX: usize = 64 << 10;

impl Eval<'_> {
    /// The output of a substitution, trailing line breaks removed.
    pub(crate) fn static_output(&mut self, node: &Node) -> Option<String> {
        let text = self.static_output_from(node, &Input::None)?;
        Some(text.trim_end_matches('\n').to_owned())
    }

    /// The output of a command that reads `input`.
    pub(crate) fn static_output_from(&mut self, node: &Node, input: &Input) -> Option<String> {
        self.quiet += 1;
        let text = self.output_of(node, input);
        self.quiet -= 1;
        text
    }

    fn output_of(&mut self, node: &Node, input: &Input) -> Option<String> {
        if !self.spend(1) {
            return None;
        }
        match node {
            Node::List(items) => match items.as_slice() {
                [(only, Next::Always)] => self.output_of(only, input),
                [(first, Next::Always | Next::OnSuccess), (last, Next::Always)] => self.place_after(first, last),
                _ => None,
            },
            Node::Pipe(stages) => {
                let mut input = input.clone();
                for stage in stages {
                    input = Input::Text(self.output_of(stage, &input)?);
                }
                if let Input::Text(text) = input { Some(text) } else { None }
            }
            Node::Simple(simple) if simple.assignments.is_empty() => {
                let mut input = input.clone();
                for redirect in &simple.redirects {
                    if redirect.kind != RedirectKind::Text || redirect.other {
                        return None;
                    }
                    let text = self.expand_text(&redirect.word.parts);
                    let [only] = text.as_slice() else { return None };
                    input = Input::Text(crate::eval::literal(only)?);
                }
                let words = self.only_words(simple)?;
                self.printed(&words, &input).filter(|text| text.len() <= MAX)
            }
            _ => None,
        }
    }

    /// A command's words, when they can be only one thing.
    fn only_words(&mut self, simple: &Simple) -> Option<Vec<Word>> {
        let mut words: Vec<Word> = Vec::new();
        for raw in &simple.words {
            let mut alternatives = self.expand(raw);
            if alternatives.len() != 1 {
                return None;
            }
            words.append(&mut alternatives.pop()?);
        }
        Some(words)
    }

    /// `cd folder && pwd`
    fn place_after(&mut self, first: &Node, last: &Node) -> Option<String> {
        let (Node::Simple(first), Node::Simple(last)) = (first, last) else { return None };
        let (first, last) = (self.only_words(first)?, self.only_words(last)?);
        let texts = |words: &[Word]| words.iter().map(Word::literal).collect::<Option<Vec<String>>>();
        let (first, last) = (texts(&first)?, texts(&last)?);
        let [cd, folder] = first.as_slice() else { return None };
        if cd != "cd" || folder.starts_with('-') || last.first().is_none_or(|pwd| pwd != "pwd") {
            return None;
        }
        Some(format!("{}\n", below(&self.cwd()?, folder)))
    }

    fn printed(&self, words: &[Word], input: &Input) -> Option<String> {
        let texts: Vec<String> = words.iter().map(Word::literal).collect::<Option<_>>()?;
        let (program, arguments) = texts.split_first()?;
        match (program.rsplit('/').next()?, arguments) {
            ("echo", arguments) => Some(echo(arguments)),
            ("printf", _) => printf(words.get(1..)?),
            ("pwd", []) => self.cwd(),
            ("cat", []) | ("cat", [_]) if arguments.iter().all(|word| word == "-") => match input {
                Input::Text(text) => Some(text.clone()),
                _ => None,
            },
            ("which", [name]) | ("command", [_, name]) | ("type", [_, name]) if !name.starts_with('-') => {
                Some(format!("{name}\n"))
            }
            ("basename", [path]) => Some(format!("{}\n", path.trim_end_matches('/').rsplit('/').next()?)),
            ("dirname", [path]) => Some(match path.trim_end_matches('/').rsplit_once('/') {
                Some(("", _)) => "/\n".to_owned(),
                Some((folder, _)) => format!("{folder}\n"),
                None => ".\n".to_owned(),
            }),
            _ => None,
        }
    }
}

fn echo(arguments: &[String]) -> String {
    let flag = |word: &&String| {
        word.len() > 1
            && word.starts_with('-')
            && word.get(1..).is_some_and(|rest| rest.chars().all(|c| matches!(c, 'n' | 'e' | 'E')))
    };
    let flags: Vec<&String> = arguments.iter().take_while(flag).collect();
    let text = arguments.get(flags.len()..).unwrap_or_default().join(" ");
    let escapes = flags.iter().any(|word| word.contains('e'));
    let text = if escapes { unescape(&text) } else { text };
    if flags.iter().any(|word| word.contains('n')) { text } else { text + "\n" }
}

/// `printf format arguments…` with `%s`, `%b`, `%d`, `%%` and escapes; anything else is not known.
pub fn printf(words: &[Word]) -> Option<String> {
    let texts: Vec<String> = words.iter().map(Word::literal).collect::<Option<_>>()?;
    let (format, arguments) = texts.strip_prefix(&["--".to_owned()]).unwrap_or(&texts).split_first()?;
    let mut arguments = arguments.iter();
    let mut out = String::new();
    loop {
        let before = arguments.len();
        let mut chars = format.chars().peekable();
        let mut plain = String::new();
        while let Some(c) = chars.next() {
            if c != '%' {
                plain.push(c);
                if c == '\\' {
                    plain.extend(chars.next());
                }
                continue;
            }
            out.push_str(&unescape(&std::mem::take(&mut plain)));
            match chars.next()? {
                '%' => out.push('%'),
                's' | 'd' | 'i' => out.push_str(arguments.next().map_or("", String::as_str)),
                'b' => out.push_str(&unescape(arguments.next().map_or("", String::as_str))),
                _ => return None,
            }
        }
        out.push_str(&unescape(&plain));
        if arguments.len() == 0 || arguments.len() == before || out.len() > MAX {
            return Some(out);
        }
    }
}

fn unescape(text: &str) -> String {
    let mut out: Vec<u8> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        match chars.next() {
            Some('n') => out.push(b'\n'),
            Some('t') => out.push(b'\t'),
            Some('r') => out.push(b'\r'),
            Some('\\') => out.push(b'\\'),
            Some('x') => {
                let mut value = 0u32;
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)) else { break };
                    value = value * 16 + digit;
                    chars.next();
                }
                out.push(u8::try_from(value & 255).unwrap_or(b'?'));
            }
            Some(first @ '0'..='7') => {
                let mut value = first.to_digit(8).unwrap_or(0);
                for _ in 0..3 {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    chars.next();
                }
                out.push(u8::try_from(value & 255).unwrap_or(b'?'));
            }
            Some(other) => {
                out.push(b'\\');
                out.extend(other.encode_utf8(&mut [0; 4]).bytes());
            }
            None => out.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
