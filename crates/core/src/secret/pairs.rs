//! Names with their values, wherever they stand: `PASSWORD=…`, `"password": "…"`, `?token=…`, `Authorization: …`, `PASSWORD '…'`.

use super::MASK;
use super::names::{is_secret, is_secret_parameter};

/// How far before a value its name is looked for.
const NEAR: usize = 128;
/// Functions that are given secrets, and `auth=(…)`.
const CALLS: [&str; 6] = ["auth", "login", "authenticate", "PDO", "mysqli", "mysqli_connect"];

/// The text with the values of such names masked.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    let logs_in = text.contains("login ");
    while let Some(at) = rest.find(is_name) {
        out.push_str(rest.get(..at).unwrap_or_default());
        before = rest.get(..at).and_then(|skipped| skipped.chars().next_back()).unwrap_or(before);
        rest = rest.get(at..).unwrap_or_default();
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        out.push_str(name);
        let parameter = matches!(before, '?' | '&' | '#') && is_secret_parameter(name);
        let name = name.trim_start_matches('-');
        // `db.auth("me", "…")`, `login(…)`: what stands in the call.
        let called = after.strip_prefix('=').unwrap_or(after).starts_with('(');
        if called && CALLS.contains(&name.rsplit('.').next().unwrap_or_default()) {
            rest = texts(after, ')', &mut out);
            before = ' ';
            continue;
        }
        // `<password>…</password>`
        if before == '<' && after.starts_with('>') && is_secret(name) {
            let (body, more) = after.split_at(after.find('<').unwrap_or(after.len()));
            out.push_str(if body.len() > 1 { ">" } else { body });
            out.push_str(if body.len() > 1 { MASK } else { "" });
            rest = more;
            before = ' ';
            continue;
        }
        let member = name == "auth" && is_login(after)
            || name == "pwd" && after.trim_start_matches(['"', '\'']).starts_with(':');
        let netrc = name == "password" && after.starts_with(' ') && logs_in;
        if netrc {
            out.push(' ');
            rest = masked_value(after.trim_start(), false, &mut out);
            before = ' ';
            continue;
        }
        // `"name": "API_KEY", "value": "…"`
        let listed = matches!(name, "value" | "Value") && names_before(text, text.len() - after.len());
        rest = if parameter || member || listed || is_secret(name) || name == "IDENTIFIED" || name == "identified" {
            value(name, after, &mut out)
        } else {
            after
        };
        before = out.chars().next_back().unwrap_or(' ');
    }
    out.push_str(rest);
    out
}

/// Whether it is `": "…"` with something in Base64, as files of logins have it (`"auth": "dXNlcjpwYXNz"`).
fn is_login(after: &str) -> bool {
    let Some(value) = after.trim_start_matches(['\\', '"', '\'']).strip_prefix(':') else { return false };
    let value = value.trim_start_matches([' ', '\\', '"', '\'']);
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '=')).unwrap_or(value.len());
    end >= 12 && end % 4 == 0
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether the member before this one says the name of a secret.
fn names_before(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let near = before.char_indices().rev().nth(NEAR).map_or(0, |(at, _)| at);
    let near = before.get(near..).unwrap_or_default();
    let start = near.rfind(['{', '(']).unwrap_or(0);
    let names = near.get(start..).unwrap_or_default().split(|c| !is_name(c));
    names.filter(|name| name.contains('_')).any(is_secret)
}

/// Masks the texts among a call's arguments, or in a list; returns what comes after it.
fn texts<'a>(after: &'a str, close: char, out: &mut String) -> &'a str {
    let end = after.find(close).unwrap_or(after.len());
    let (mut inner, rest) = after.split_at(end);
    while let Some(at) = inner.find(['"', '\'']) {
        // `\"…\"`
        let escaped = inner.get(at..).is_some_and(|text| text.starts_with('"'))
            && inner.get(..at).is_some_and(|front| front.ends_with('\\'));
        let (at, quote) = if escaped { (at - 1, 2) } else { (at, 1) };
        out.push_str(inner.get(..at).unwrap_or_default());
        inner = masked_value(inner.get(at..).unwrap_or_default(), false, out);
        let (closed, rest) = inner.split_at_checked(quote).unwrap_or((inner, ""));
        out.push_str(closed);
        inner = rest;
    }
    out.push_str(inner);
    rest
}

/// Masks what follows a name, if it is its value; returns what comes after.
fn value<'a>(name: &str, after: &'a str, out: &mut String) -> &'a str {
    // What closes the name: a quote, perhaps escaped, a bracket.
    let sign = after.trim_start_matches(['"', '\'', '\\', ']', ')']);
    let sign = sign.trim_start_matches(' ');
    let quoted_next = after.trim_start().starts_with('\'') && after.starts_with(char::is_whitespace);
    let (skipped, value) = match sign.chars().next() {
        Some(':' | '=') => {
            let value = sign.trim_start_matches([':', '=', '>', '~']).trim_start_matches([' ', '\t']);
            let value = below(value).unwrap_or(value);
            (after.len() - value.len(), value)
        }
        // `PASSWORD 'x'`, `IDENTIFIED BY 'x'` of SQL.
        _ if quoted_next => (after.len() - after.trim_start().len(), after.trim_start()),
        // `PASSWORD('x')`, `SET PASSWORD FOR 'a'@'b' = 'x'` of SQL.
        Some('(') if sign.get(1..).is_some_and(|value| value.starts_with('\'')) => {
            (after.len() - sign.len() + 1, sign.get(1..).unwrap_or_default())
        }
        _ if after.get(..5).is_some_and(|word| word.eq_ignore_ascii_case(" for ")) && after.contains("= ") => {
            let value = after.split_once("= ").map_or("", |(_, value)| value);
            (after.len() - value.len(), value)
        }
        _ => {
            let by = after.strip_prefix(" BY ").or(after.strip_prefix(" by "));
            let Some(value) = by.filter(|value| value.starts_with(['\'', '"'])) else { return after };
            (4, value)
        }
    };
    // `IDENTIFIED = …`, and a name with nothing behind it.
    if name.eq_ignore_ascii_case("identified") && !value.starts_with(['\'', '"']) || value.is_empty() {
        return after;
    }
    out.push_str(after.get(..skipped).unwrap_or_default());
    // `"passwords": ["…", "…"]`
    if value.get(1..).is_some_and(|list| value.starts_with('[') && list.trim_start().starts_with(['"', '\'', '\\'])) {
        return texts(value, ']', out);
    }
    let header = name.eq_ignore_ascii_case("authorization") || name.to_ascii_lowercase().ends_with("cookie");
    masked_value(value, header, out)
}

/// The value on the next line, as YAML has it (`password: |`, and the value below it, further in): one word, or one in quotes.
fn below(value: &str) -> Option<&str> {
    let next = value.trim_start_matches(['|', '>', '-', '+', '\r']).strip_prefix('\n')?;
    let line = next.lines().next()?.trim_end();
    let word = line.trim_start_matches([' ', '\t']);
    let is_value = word.len() < line.len()
        && !word.is_empty()
        && !word.starts_with(['-', '#', '{', '[', '<'])
        && !word.ends_with(':')
        && (word.starts_with(['"', '\'']) && !word.contains(": ") || !word.contains(char::is_whitespace));
    is_value.then(|| next.trim_start_matches([' ', '\t']))
}

fn masked_value<'a>(value: &'a str, header: bool, out: &mut String) -> &'a str {
    // `"…"`, `'…'`, `\"…\"`
    let escaped = value.starts_with("\\\"");
    let open = if escaped { "\\\"" } else { value.get(..1).filter(|first| matches!(*first, "\"" | "'")).unwrap_or("") };
    if !open.is_empty() {
        let body = value.get(open.len()..).unwrap_or_default();
        let end = closing(body, open);
        let (body, rest) = body.split_at(end.unwrap_or(body.len()));
        out.push_str(open);
        out.push_str(if body.is_empty() || is_expansion(body) && open == "\"" { body } else { MASK });
        return rest;
    }
    if is_expansion(value) {
        return value;
    }
    let ends = |c: char| match header {
        true => matches!(c, '"' | '\'' | '\n' | '\r'),
        false => {
            c.is_whitespace()
                || matches!(c, '"' | '\'' | ',' | ';' | '&' | '|' | ')' | '}' | ']' | '\\' | '<' | '>' | '`')
        }
    };
    let end = value.find(ends).unwrap_or(value.len());
    let (body, rest) = value.split_at(end);
    let nothing =
        matches!(body, "" | "true" | "false" | "null" | "none" | "None" | "yes" | "no" | "[secret]" | "{" | "[" | "*");
    out.push_str(if nothing || body.starts_with(['{', '[']) && !body.starts_with("[secret]") { body } else { MASK });
    // `s/password: .*/password: 'x'/`: what was taken for the value ends in the name of another.
    if body.len() > 1 && body.ends_with([':', '=']) && rest.starts_with([' ', '\'', '"']) {
        let next = rest.trim_start_matches(' ');
        out.push(' ');
        return masked_value(next, header, out);
    }
    rest
}

/// Where a quoted value ends.
fn closing(body: &str, open: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = body.get(from..)?.find(open) {
        let at = from + at;
        let escaped = open == "\"" && body.get(..at)?.ends_with('\\');
        if !escaped {
            return Some(at);
        }
        from = at + open.len();
    }
    None
}

/// `$X`, `${X}`, `$(…)`: no value, but where it comes from.
fn is_expansion(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next() == Some('$')
        && letters.next().is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '{' | '('))
}
