//! Languages of which only the plainest part is known: every name and every `a.b` is on the list, or the program's own.

use std::collections::HashSet;

use crate::code::token::{Cursor, Kind, Token, is_number, is_word};
use crate::code::{Language, Reading, table};
use crate::programs::entries::words::List;

const SIGNS: [&str; 34] = [
    "<-", "->", "==", "~=", "!=", "<=", ">=", "..", "//", "&&", "||", "+", "-", "*", "/", "%", "^", "#", "<", ">", "=",
    "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "!", "&", "|",
];

/// Reads a program.
pub fn read(language: Language, text: &str) -> Reading {
    let name = language.name();
    let harmless = tokens(language, text).is_some_and(|tokens| {
        let own = own_names(&tokens);
        (0..tokens.len()).all(|at| is_harmless(name, &tokens, at, &own))
    });
    Reading { harmless, ..Reading::default() }
}

fn tokens(language: Language, text: &str) -> Option<Vec<Token>> {
    let mut cursor = Cursor::new(text)?;
    let mut out = Vec::new();
    while let Some(c) = cursor.peek() {
        match c {
            c if c.is_whitespace() => cursor.at += 1,
            '-' if language == Language::Lua && cursor.starts_with("--") => {
                // Long comments begin so too.
                (cursor.ahead(2) != Some('[')).then_some(())?;
                cursor.skip_line();
            }
            '#' if language == Language::R => cursor.skip_line(),
            '[' if language == Language::Lua && matches!(cursor.ahead(1), Some('[' | '=')) => return None,
            '\'' | '"' => {
                cursor.at += 1;
                loop {
                    match cursor.next()? {
                        '\\' => drop(cursor.next()?),
                        end if end == c => break,
                        '\n' if language == Language::Lua => return None,
                        _ => {}
                    }
                }
                out.push(Token::new(Kind::Text, ""));
            }
            c if c.is_ascii_digit() => {
                let mut number = cursor.while_(is_word);
                if cursor.peek() == Some('.') && cursor.ahead(1).is_some_and(|c| c.is_ascii_digit()) {
                    cursor.at += 1;
                    number = format!("{number}.{}", cursor.while_(is_word));
                }
                is_number(number.trim_end_matches('L')).then_some(())?;
                out.push(Token::new(Kind::Value, number));
            }
            c if is_word(c) || (c == '.' && language == Language::R) => {
                let dots = language == Language::R;
                let name = cursor.while_(|c| is_word(c) || (dots && c == '.'));
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

/// Names that the program assigns.
fn own_names(tokens: &[Token]) -> HashSet<&str> {
    let mut own = HashSet::new();
    let mut local = false;
    let mut depth = 0i32;
    for (at, token) in tokens.iter().enumerate() {
        depth += i32::from(token.is("(")) - i32::from(token.is(")"));
        let Some(name) = token.name() else {
            local &= token.is(",");
            continue;
        };
        let next = tokens.get(at + 1);
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let member = before.is_some_and(|before| before.is(".") || before.is(":"));
        // In brackets it names an argument.
        let assigned = next.is_some_and(|next| (next.is("=") && depth == 0) || next.is("<-"));
        if (assigned || local) && !member {
            own.insert(name);
        }
        local = matches!(name, "local" | "for") || (local && next.is_some_and(|next| next.is(",")));
    }
    own
}

fn is_harmless(language: &'static str, tokens: &[Token], at: usize, own: &HashSet<&str>) -> bool {
    let Some(token) = tokens.get(at) else { return true };
    let before = at.checked_sub(1).and_then(|at| tokens.get(at));
    let called = tokens.get(at + 1).is_some_and(|next| next.is("(") || next.kind == Kind::Text);
    let Some(name) = token.name() else { return true };
    let member = before.is_some_and(|before| before.is(".") || before.is(":"));
    if member {
        let object = at.checked_sub(2).and_then(|at| tokens.get(at)).and_then(Token::name).unwrap_or_default();
        let listed = table::member(language, object, name).is_some() && !own.contains(object);
        let method = table::has(language, List::Methods, name);
        let data = own.contains(object) && !called && tokens.get(at + 1).is_none_or(|next| !next.is(":"));
        return listed || method || data;
    }
    if tokens.get(at + 1).is_some_and(|next| next.is("="))
        && before.is_some_and(|it| it.is("(") || it.is(","))
        && table::has(language, List::Arguments, name)
    {
        return true;
    }
    let module = table::is_module(language, name);
    if module {
        return !own.contains(name) && tokens.get(at + 1).is_some_and(|dot| dot.is("."));
    }
    let listed = table::has(language, List::Keywords, name) || table::has(language, List::Names, name);
    if own.contains(name) { !listed && !called } else { listed }
}
