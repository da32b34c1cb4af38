//! `echo` and `printf`: texts put together, whose pieces need not be known.

use crate::text::{Text, tidy};
use crate::word::{Part, Word};

/// Longest output that is followed.
pub const MAX: usize = 64 << 10;

/// `echo [-neE] words…`
pub fn echo(arguments: &[Word]) -> Text {
    let flag = |word: &&Word| {
        word.literal().is_some_and(|text| {
            text.len() > 1
                && text.starts_with('-')
                && text.get(1..).is_some_and(|rest| rest.chars().all(|c| matches!(c, 'n' | 'e' | 'E')))
        })
    };
    let flags: Vec<String> = arguments.iter().take_while(flag).filter_map(Word::literal).collect();
    let mut out = Text::new();
    for (at, word) in arguments.iter().skip(flags.len()).enumerate() {
        if at > 0 {
            out.push(Part::Text(" ".to_owned()));
        }
        out.extend(word.parts.iter().cloned());
    }
    if flags.iter().any(|word| word.contains('e')) {
        out = out
            .into_iter()
            .map(|part| if let Part::Text(text) = part { Part::Text(unescape(&text)) } else { part })
            .collect();
    }
    if !flags.iter().any(|word| word.contains('n')) {
        out.push(Part::Text("\n".to_owned()));
    }
    tidy(out)
}

/// `printf format arguments…` with `%s`, `%b`, `%d`, `%%` and escapes; anything else is not known.
pub fn printf(words: &[Word]) -> Option<Text> {
    let dashes = words.first().and_then(Word::literal).is_some_and(|text| text == "--");
    let (format, arguments) = words.get(usize::from(dashes)..)?.split_first()?;
    let format = format.literal()?;
    let mut arguments = arguments.iter();
    let mut out = Text::new();
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
            out.push(Part::Text(unescape(&std::mem::take(&mut plain))));
            match chars.next()? {
                '%' => out.push(Part::Text("%".to_owned())),
                's' | 'd' | 'i' => out.extend(arguments.next().into_iter().flat_map(|word| word.parts.iter().cloned())),
                'b' => {
                    let text = arguments.next().map_or(Some(String::new()), Word::literal)?;
                    out.push(Part::Text(unescape(&text)));
                }
                _ => return None,
            }
        }
        out.push(Part::Text(unescape(&plain)));
        if arguments.len() == 0 || arguments.len() == before || crate::text::size(&out) > MAX {
            return Some(tidy(out));
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
