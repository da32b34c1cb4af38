//! PHP: listed functions, called by their names; a function is given as `fn` or `function`, never as a text.

use crate::action::Access;
use crate::code::token::{Cursor, Kind, Token, arguments, inside, is_number, is_word};
use crate::code::{Around, Reading, Value, known, table, text_of};
use crate::programs::entries::words::{Effect, List};
use crate::word::Part;

const LANGUAGE: &str = "php";
const SIGNS: [&str; 55] = [
    "<=>", "===", "!==", "**=", "??=", "...", "<<=", ">>=", "?->", "=>", "->", "==", "!=", "<=", ">=", "&&", "||",
    "??", "++", "--", "+=", "-=", "*=", "/=", ".=", "%=", "|=", "&=", "^=", "**", "<<", ">>", "::", "+", "-", "*", "/",
    "%", "=", "<", ">", "!", ".", ",", ";", "(", ")", "[", "]", "{", "}", "?", ":", "&", "|",
];

/// Reads a program.
pub fn read(text: &str, _around: &Around<'_>) -> Reading {
    let Some(tokens) = tokens(text) else { return Reading::default() };
    let mut out = Reading { harmless: true, ..Reading::default() };
    for at in 0..tokens.len() {
        if token(&tokens, at, &mut out).is_none() {
            out.harmless = false;
        }
    }
    out
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    if text.contains("?>") || text.contains("<<<") {
        return None;
    }
    let mut cursor = Cursor::new(text)?;
    let mut out = Vec::new();
    while let Some(c) = cursor.peek() {
        match c {
            c if c.is_whitespace() => cursor.at += 1,
            '#' => cursor.skip_line(),
            '/' if cursor.starts_with("//") => cursor.skip_line(),
            '/' if cursor.starts_with("/*") => {
                cursor.at += 2;
                while !cursor.take("*/") {
                    cursor.next()?;
                }
            }
            '\'' | '"' => out.push(quoted(&mut cursor)?),
            '$' => {
                cursor.at += 1;
                let name = cursor.while_(is_word);
                // `$$name`, `${…}`
                (!name.is_empty() && name != "GLOBALS").then_some(())?;
                out.push(Token::new(Kind::Mixed(Vec::new()), name));
            }
            c if c.is_ascii_digit() => {
                let mut number = cursor.while_(is_word);
                if cursor.peek() == Some('.') && cursor.ahead(1).is_some_and(|c| c.is_ascii_digit()) {
                    cursor.at += 1;
                    number = format!("{number}.{}", cursor.while_(is_word));
                }
                is_number(&number).then_some(())?;
                out.push(Token::new(Kind::Value, number));
            }
            c if is_word(c) => {
                let name = cursor.while_(is_word);
                out.push(Token::new(Kind::Name, name));
            }
            _ => {
                let sign = cursor.sign(&SIGNS)?;
                out.push(Token::new(Kind::Sign, sign));
            }
        }
    }
    Some(out)
}

/// A text; in double quotes only plain variables may stand.
fn quoted(cursor: &mut Cursor) -> Option<Token> {
    let quote = cursor.next()?;
    let (mut text, mut whole) = (String::new(), true);
    loop {
        match cursor.next()? {
            c if c == quote => break,
            '\\' => match cursor.next()? {
                c if c == quote || c == '\\' => text.push(c),
                'n' if quote == '"' => text.push('\n'),
                't' if quote == '"' => text.push('\t'),
                c if quote == '"' && (c.is_ascii_digit() || matches!(c, 'x' | 'u')) => whole = false,
                c => text.extend(['\\', c]),
            },
            '{' if quote == '"' && cursor.peek() == Some('$') => {
                // `{$a}`, `{$a['b']}`, `{$a->b}`
                whole = false;
                let inner = cursor.while_(|c| is_word(c) || matches!(c, '$' | '[' | ']' | '\'' | '-' | '>'));
                (cursor.take("}") && !inner.get(1..)?.contains('$')).then_some(())?;
            }
            '$' if quote == '"' && cursor.peek() == Some('{') => return None,
            '$' if quote == '"' && cursor.peek().is_some_and(is_word) => whole = false,
            c => text.push(c),
        }
    }
    Some(if whole { Token::new(Kind::Text, text) } else { Token::new(Kind::Value, "text") })
}

fn token(tokens: &[Token], at: usize, out: &mut Reading) -> Option<()> {
    let token = tokens.get(at)?;
    let before = at.checked_sub(1).and_then(|at| tokens.get(at));
    let next = tokens.get(at + 1);
    let called = next.is_some_and(|next| next.is("("));
    match &token.kind {
        // A value that is called is any function by its name.
        Kind::Mixed(_) | Kind::Text | Kind::Value => (!called && !next.is_some_and(|next| next.is("::"))).then_some(()),
        Kind::Sign => match token.text.as_str() {
            ")" | "]" | "}" => (!called || token.text == "}").then_some(()),
            "::" => None,
            _ => Some(()),
        },
        Kind::Line => Some(()),
        Kind::Name => {
            let name = token.text.to_ascii_lowercase();
            if before.is_some_and(|before| before.is("->") || before.is("?->")) {
                return (!called || table::has(LANGUAGE, List::Methods, &token.text)).then_some(());
            }
            if before.is_some_and(|before| before.named("new")) {
                return table::has(LANGUAGE, List::Classes, &token.text).then_some(());
            }
            // An alias gives a listed name another meaning; a closure's `use` stands behind its brackets.
            if name == "use" && !before.is_some_and(|before| before.is(")")) {
                return None;
            }
            if table::has(LANGUAGE, List::Keywords, &name)
                || (!called && table::has(LANGUAGE, List::Constants, &token.text))
            {
                return Some(());
            }
            let role = table::role(LANGUAGE, List::Names, &name).filter(|_| called)?;
            if role == Effect::Harmless {
                return Some(());
            }
            touch(role, &arguments(inside(tokens, at + 1)?), out)
        }
    }
}

fn touch(role: Effect, given: &[&[Token]], out: &mut Reading) -> Option<()> {
    let writes = |mode: &&[Token]| !matches!(mode, [text] if text.kind == Kind::Text && matches!(text.text.as_str(), "r" | "rb"));
    let access = match role {
        Effect::Opens if given.get(1).is_some_and(writes) => Access::Write,
        Effect::Reads | Effect::Opens => Access::Read,
        Effect::Writes => Access::Write,
        Effect::Lists => return Some(()),
        // The function comes first, or second, and is written out.
        Effect::Callback | Effect::SecondCallback => {
            let place = usize::from(role == Effect::SecondCallback);
            let function = given.get(place);
            let own = function
                .and_then(|words| words.first())
                .is_some_and(|first| first.named("fn") || first.named("function") || first.named("static"));
            let spread = given.iter().any(|words| words.first().is_some_and(|first| first.is("...")));
            let none = function.is_none() && role == Effect::SecondCallback && !spread;
            return (own || none).then_some(());
        }
        _ => return None,
    };
    let path = value(given.first()?)?;
    let text = text_of(&path)?;
    match text.split_once("://") {
        Some(("php", "stdin" | "stdout" | "stderr" | "output" | "input")) => return Some(()),
        Some(("http" | "https", _)) if access == Access::Read => out.urls.push(path),
        Some(_) => return None,
        None if text.contains(':') => return None,
        None => out.files.push((path, access, false)),
    }
    Some(())
}

fn value(tokens: &[Token]) -> Option<Value> {
    match tokens {
        [text] if text.kind == Kind::Text => Some(known(&text.text)),
        [first, dot, rest @ ..] if first.kind == Kind::Text && dot.is(".") => {
            let rest = text_of(&value(rest)?)?;
            Some(vec![Part::Text(format!("{}{rest}", first.text))])
        }
        _ => None,
    }
}
