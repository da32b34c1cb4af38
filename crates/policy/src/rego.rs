//! What can be told of Rego without running it.
//!
//! Owns a reading of its words: closed strings, brackets that match, a package at the head, operators with something on both
//! sides. Refuses to know what a rule means, and refuses nothing that some version of Rego takes. The real parser comes with
//! the evaluators. Page: `spec/policy.md`.

/// Words that join what stands beside them.
const KEYWORDS: [&str; 12] =
    ["package", "import", "default", "as", "some", "in", "every", "if", "else", "contains", "not", "with"];

/// Operators, longer ones first.
const OPERATORS: [&str; 15] = [":=", "==", "!=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "%", "|", "&"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'a> {
    /// A name, with the names behind its points.
    Word(&'a str),
    Number(&'a str),
    Text,
    Operator(&'a str),
    Open(char),
    Close(char),
    /// `,`, `;`, `:` and a point behind a bracket.
    Mark(char),
}

impl Token<'_> {
    /// Whether it is a value by itself, and no word that joins.
    fn is_value(&self) -> bool {
        match self {
            Self::Word(word) => !KEYWORDS.contains(word),
            Self::Number(_) | Self::Text => true,
            Self::Operator(_) | Self::Open(_) | Self::Close(_) | Self::Mark(_) => false,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Word(text) | Self::Number(text) | Self::Operator(text) => format!("`{text}`"),
            Self::Text => "a string".to_owned(),
            Self::Open(c) | Self::Close(c) | Self::Mark(c) => format!("`{c}`"),
        }
    }
}

/// Whether a text reads as Rego, as far as that can be told.
pub fn check(text: &str) -> Result<(), String> {
    let tokens = read(text)?;
    brackets(&tokens)?;
    match tokens.as_slice() {
        [(Token::Word("package"), _), (Token::Word(name), _), ..] if !KEYWORDS.contains(name) => {}
        _ => return Err("it does not begin with a package".to_owned()),
    }
    neighbours(&tokens)
}

/// The words of a text, each with its line.
fn read(text: &str) -> Result<Vec<(Token<'_>, usize)>, String> {
    let mut out = Vec::new();
    let (mut rest, mut line) = (text.trim_start_matches('\u{feff}'), 1);
    while let Some(c) = rest.chars().next() {
        let (token, length) = match c {
            '\n' => {
                line += 1;
                (None, 1)
            }
            _ if c.is_whitespace() => (None, c.len_utf8()),
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            '"' => (Some(Token::Text), quoted(rest)?),
            '`' => {
                let length = 2 + rest
                    .split('`')
                    .nth(1)
                    .filter(|_| rest.matches('`').count() > 1)
                    .map_or(Err("a raw string is not closed"), |inside| Ok(inside.len()))?;
                (Some(Token::Text), length)
            }
            // `$"…"` holds expressions, in newer versions.
            '$' if rest.starts_with("$\"") || rest.starts_with("$`") => (None, 1),
            '(' | '[' | '{' => (Some(Token::Open(c)), 1),
            ')' | ']' | '}' => (Some(Token::Close(c)), 1),
            _ if c.is_ascii_digit() => {
                let length = number(rest);
                (rest.get(..length).map(Token::Number), length)
            }
            _ if is_letter(c) => {
                let length = word(rest);
                (rest.get(..length).map(Token::Word), length)
            }
            _ => match OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
                Some(operator) => (Some(Token::Operator(operator)), operator.len()),
                None if matches!(c, ',' | ';' | ':' | '.') => (Some(Token::Mark(c)), 1),
                None => return Err(format!("line {line}: `{c}` is no sign of Rego")),
            },
        };
        out.extend(token.map(|token| (token, line)));
        line +=
            if token == Some(Token::Text) { rest.get(..length).unwrap_or_default().matches('\n').count() } else { 0 };
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(out)
}

/// The length of the string that a text begins with.
fn quoted(text: &str) -> Result<usize, String> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Ok(at + 1),
            '\n' => break,
            _ => {}
        }
    }
    Err("a string is not closed".to_owned())
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// The length of the name that a text begins with: `input.request.user`.
fn word(text: &str) -> usize {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let goes_on = if before == '.' { is_letter(c) } else { is_letter(c) || c.is_alphanumeric() || c == '.' };
        if !goes_on {
            return if before == '.' { at - 1 } else { at };
        }
        before = c;
    }
    text.len()
}

/// The length of the number that a text begins with.
fn number(text: &str) -> usize {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        if !(c.is_ascii_digit() || sign || matches!(c, '.' | 'e' | 'E')) {
            return at;
        }
        before = c;
    }
    text.len()
}

fn brackets(tokens: &[(Token<'_>, usize)]) -> Result<(), String> {
    let mut open = Vec::new();
    for (token, line) in tokens {
        match token {
            Token::Open(c) => open.push((*c, line)),
            Token::Close(c) => {
                let matching =
                    matches!((open.pop().map(|(c, _)| c), c), (Some('('), ')') | (Some('['), ']') | (Some('{'), '}'));
                if !matching {
                    return Err(format!("line {line}: `{c}` closes nothing"));
                }
            }
            Token::Word(_) | Token::Number(_) | Token::Text | Token::Operator(_) | Token::Mark(_) => {}
        }
    }
    open.pop().map_or(Ok(()), |(c, line)| Err(format!("line {line}: `{c}` is not closed")))
}

/// What may not stand beside each other: two values on a line, and an operator without a value on both sides.
fn neighbours(tokens: &[(Token<'_>, usize)]) -> Result<(), String> {
    let ended = (Token::Mark(';'), 0);
    let behind = tokens.iter().skip(1).chain(std::iter::once(&ended));
    for ((left, line), (right, next)) in tokens.iter().zip(behind) {
        let bound = |token: &Token<'_>| matches!(token, Token::Operator(word) if *word != "-");
        let wrong = match (left, right) {
            (Token::Operator(_), Token::Close(_) | Token::Mark(_)) => true,
            (Token::Operator(_), right) if bound(right) => true,
            (Token::Open(_) | Token::Mark(_), right) if bound(right) => true,
            _ => line == next && left.is_value() && right.is_value(),
        };
        if wrong {
            let (left, right) = (left.shown(), right.shown());
            let right = if *next == 0 { "the end".to_owned() } else { right };
            return Err(format!("line {line}: {right} cannot stand behind {left}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rego_is_read_as_far_as_that_goes() {
        for good in [
            "package a\ndeny[msg] { input.x == 1; msg := \"no {\" }",
            "# note\npackage a.b\n\ndefault allow := false\nallow if { count(input.x) < 3 }\n",
            "package a\nx := `raw { ( `",
            "package a.b[\"c-d\"]\nimport rego.v1\nimport data.lib.x as y\n",
            "package a\ndeny contains msg if {\n  some i, step in input.steps\n  step.cost > -1.5e-3\n  msg := sprintf(\"%v\", [i])\n}",
            "package a\ntotal := sum([t.predicate.metrics.costUSD | some t in input.attestationsFrom[\"turn-*\"]])\n",
            "package a\nallow if {\n  not input.bad\n  x := {\"a\": 1, \"b\": [1, 2]}\n  x.a ==\n    1\n} else := false\n",
            "package a\nf(x) = y { y := x * -2 }\np = {x | x = input.l[_]} & {1} | {2}\nq { r with input as {} }",
            "package a\nimport future.keywords.in\nevery_one if every k, v in input.m { v[_].name != k }\n",
            "package a\nm := `two\nlines`\nn := $\"v {x}\"\n",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "package",
            "deny[msg] { true }",
            "package a\ndeny { ",
            "package a\nx := \"open",
            "package a\nx := `open",
            "package a\n}",
            "package 1",
            "package a\n(]",
            "package a\nthis is not rego at all",
            "package a\ndeny[msg] { msg := }",
            "package a\nallow { input.x === 1 }",
            "package a\nallow { == 1 }",
            "package a\nallow { x = 1 2 }",
            "package a\nx :=",
            "package a\nallow { a && b }",
            "package a\nallow { !x }",
            "package a\nallow { 'x' }",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
