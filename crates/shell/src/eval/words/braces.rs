//! `{a,b}` and `{1..3}` unfolded: the first thing that happens to a word.

use crate::parser::syntax::RawPart;

/// Most words that one word unfolds to.
const MOST: usize = 1024;
/// Longest word that is unfolded, in characters.
const LONGEST: usize = 2048;

#[derive(Clone)]
enum Token {
    Char(char),
    Part(RawPart),
}

/// The words a word unfolds to.
pub struct Unfolded {
    pub words: Vec<Vec<RawPart>>,
    /// What was looked at, in characters.
    pub cost: usize,
    /// Some are missing.
    pub cut: bool,
}

/// Unfolds a word; `None` where there is nothing to unfold.
pub fn unfold(parts: &[RawPart]) -> Option<Unfolded> {
    let brace = |part: &RawPart| matches!(part, RawPart::Plain(text) if text.contains('{'));
    if !parts.iter().any(brace) {
        return None;
    }
    let mut tokens = Vec::new();
    for part in parts {
        match part {
            RawPart::Plain(text) => tokens.extend(text.chars().map(Token::Char)),
            other => tokens.push(Token::Part(other.clone())),
        }
    }
    if tokens.len() > LONGEST {
        return Some(Unfolded { words: vec![parts.to_vec()], cost: tokens.len(), cut: true });
    }
    let mut out = Unfolded { words: Vec::new(), cost: 0, cut: false };
    each(tokens, 0, &mut out);
    Some(out)
}

fn each(tokens: Vec<Token>, depth: usize, out: &mut Unfolded) {
    out.cost += tokens.len();
    if out.words.len() >= MOST || out.cost > MOST * LONGEST {
        out.cut = true;
        return;
    }
    let Some((open, close, choices)) = first(&tokens) else { return out.words.push(assemble(&tokens)) };
    if depth >= 16 {
        out.cut = true;
        return out.words.push(assemble(&tokens));
    }
    let (before, after) = (tokens.get(..open).unwrap_or_default(), tokens.get(close + 1..).unwrap_or_default());
    for choice in choices {
        each([before, &choice, after].concat(), depth + 1, out);
    }
}

/// The first brace that unfolds: where it opens and closes, and its choices.
fn first(tokens: &[Token]) -> Option<(usize, usize, Vec<Vec<Token>>)> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut found: Vec<(usize, usize, Vec<usize>)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Char('{') => open.push((at, Vec::new())),
            Token::Char(',') => open.last_mut().into_iter().for_each(|(_, commas)| commas.push(at)),
            Token::Char('}') => found.extend(open.pop().map(|(start, commas)| (start, at, commas))),
            Token::Char(_) | Token::Part(_) => {}
        }
    }
    found.sort_unstable_by_key(|(start, ..)| *start);
    found.into_iter().find_map(|(start, close, commas)| {
        let choices = if commas.is_empty() {
            range(tokens.get(start + 1..close).unwrap_or_default())?
        } else {
            let ends = commas.iter().copied().chain([close]);
            let starts = std::iter::once(start + 1).chain(commas.iter().map(|comma| comma + 1));
            starts.zip(ends).map(|(from, to)| tokens.get(from..to).unwrap_or_default().to_vec()).collect()
        };
        Some((start, close, choices))
    })
}

fn assemble(tokens: &[Token]) -> Vec<RawPart> {
    let mut out: Vec<RawPart> = Vec::new();
    for token in tokens {
        match token {
            Token::Char(c) => match out.last_mut() {
                Some(RawPart::Plain(text)) => text.push(*c),
                _ => out.push(RawPart::Plain(c.to_string())),
            },
            Token::Part(part) => out.push(part.clone()),
        }
    }
    out
}

/// `1..3`, `a..c`, `01..10..3`. Beyond a bound, a number that is not known stands for the rest.
fn range(inner: &[Token]) -> Option<Vec<Vec<Token>>> {
    let text: Option<String> =
        inner.iter().map(|token| if let Token::Char(c) = token { Some(*c) } else { None }).collect();
    let text = text?;
    let (from, rest) = text.split_once("..")?;
    let (to, step) = rest.split_once("..").unwrap_or((rest, "1"));
    let step = step.parse::<i64>().ok()?.unsigned_abs().max(1);
    let step = usize::try_from(step).ok()?;
    let one = |text: String| text.chars().map(Token::Char).collect::<Vec<_>>();
    if let (Ok(low), Ok(high)) = (from.parse::<i64>(), to.parse::<i64>()) {
        let padded =
            |text: &str| text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0');
        let width = if padded(from) || padded(to) { from.len().max(to.len()) } else { 0 };
        let numbers: Box<dyn Iterator<Item = i64>> =
            if low <= high { Box::new(low..=high) } else { Box::new((high..=low).rev()) };
        let mut numbers = numbers.step_by(step);
        let mut out: Vec<_> = numbers.by_ref().take(MOST / 2).map(|n| one(format!("{n:0width$}"))).collect();
        if numbers.next().is_some() {
            out.push(vec![Token::Part(RawPart::Arithmetic(Vec::new()))]);
        }
        return Some(out);
    }
    let (mut a, mut b) = (from.chars(), to.chars());
    let (Some(from), None, Some(to), None) = (a.next(), a.next(), b.next(), b.next()) else { return None };
    let letters = (from.min(to)..=from.max(to)).step_by(step);
    Some(letters.take(MOST).map(|c| vec![Token::Char(c)]).collect())
}
