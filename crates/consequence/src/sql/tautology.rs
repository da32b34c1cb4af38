//! Conditions that leave nothing out.

use super::tokens::Token;

/// Longest condition that is looked into, in tokens: what is longer is taken to leave something out.
const MAX_TOKENS: usize = 1000;

/// Whether every row fits a condition, as far as its words tell; also where there is none.
pub(super) fn is_tautology(condition: Option<&[Token]>) -> bool {
    condition.is_none_or(|tokens| {
        let end = tokens.iter().position(ends).unwrap_or(tokens.len());
        end <= MAX_TOKENS && any(tokens.get(..end).unwrap_or_default(), 0)
    })
}

fn ends(token: &Token) -> bool {
    ["RETURNING", "ORDER", "LIMIT", "ALLOW", "OPTION", "SETTINGS"].iter().any(|word| token.is(word))
}

/// One of the alternatives holds for every row.
fn any(tokens: &[Token], depth: usize) -> bool {
    let tokens = bare(tokens);
    parts(tokens, "OR").any(|part| parts(part, "AND").all(|atom| holds(bare(atom), depth)))
}

/// Without parentheses around the whole.
fn bare(mut tokens: &[Token]) -> &[Token] {
    while let [Token::Sign('('), inner @ .., Token::Sign(')')] = tokens
        && closes_at_end(inner)
    {
        tokens = inner;
    }
    tokens
}

/// Whether no parenthesis in it closes one before it.
fn closes_at_end(inner: &[Token]) -> bool {
    let mut depth = 0_usize;
    inner.iter().all(|token| match token {
        Token::Sign('(') => {
            depth += 1;
            true
        }
        Token::Sign(')') => depth.checked_sub(1).inspect(|less| depth = *less).is_some(),
        Token::Word(_) | Token::Name(_) | Token::Text(_) | Token::Sign(_) => true,
    })
}

/// Pieces between a keyword, outside of parentheses.
fn parts<'a>(tokens: &'a [Token], keyword: &'static str) -> impl Iterator<Item = &'a [Token]> {
    let mut depth = 0_usize;
    tokens.split(move |token| {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth = depth.saturating_sub(1),
            Token::Word(_) | Token::Name(_) | Token::Text(_) | Token::Sign(_) => {}
        }
        depth == 0 && token.is(keyword)
    })
}

/// Deepest nesting of conditions that is looked into.
const MAX_DEPTH: usize = 16;

fn holds(atom: &[Token], depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    if atom.iter().any(|token| token.is("OR") || token.is("AND")) {
        return !atom.iter().any(|token| token.is("BETWEEN") || token.is("SELECT")) && any(atom, depth + 1);
    }
    let number = |text: &str| text.parse::<f64>().ok();
    match atom {
        [only] if only.is("TRUE") => true,
        [Token::Word(word)] => number(word).is_some_and(|number| number != 0.0),
        [not, only] if not.is("NOT") => only.is("FALSE") || only.text() == "0",
        [_, is, not, null] if is.is("IS") && not.is("NOT") && null.is("NULL") => true,
        [_, like, Token::Text(pattern)] if like.is("LIKE") || like.is("ILIKE") => pattern.chars().all(|c| c == '%'),
        [left, Token::Sign(sign), right] => compared(left, *sign, false, right),
        [left, Token::Sign(sign), Token::Sign('=' | '>'), right] => compared(left, *sign, true, right),
        [left, Token::Sign('>'), Token::Sign('-'), _] => is_key(left),
        _ => false,
    }
}

/// `1=1`, `'a' = 'a'`, `x = x`, `id > 0`, `2 <> 3`.
fn compared(left: &Token, sign: char, wide: bool, right: &Token) -> bool {
    let (one, other) = (left.text(), right.text());
    let literal = |token: &Token| matches!(token, Token::Text(_)) || token.text().parse::<f64>().is_ok();
    let same = one.eq_ignore_ascii_case(&other);
    match sign {
        '=' => same,
        '!' => literal(left) && literal(right) && !same,
        '<' if wide && literal(left) && literal(right) => !same,
        '>' | '<' if literal(left) && literal(right) => {
            let (Ok(one), Ok(other)) = (one.parse::<f64>(), other.parse::<f64>()) else { return false };
            if sign == '>' { one > other || wide && same } else { one < other }
        }
        '>' => is_key(left) && other == "0" || wide && same,
        '<' => wide && (same || is_key(left) && other == "0"),
        _ => false,
    }
}

/// Keys begin at one.
fn is_key(token: &Token) -> bool {
    let name = token.text().to_ascii_lowercase();
    name == "id" || name.ends_with("_id") || name == "rowid"
}
