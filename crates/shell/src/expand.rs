//! Expansion: from raw words to the words a program could get.
//!
//! A variable has a set of possible values; a word therefore has alternatives, and each alternative is a list of fields.
//! Everything that might happen is kept, up to a bound beyond which a value counts as unknown. Page: `spec/shell.md`.

use writ_core::Span;

use crate::action::{Part, Word};
use crate::eval::Eval;
use crate::syntax::{ParamOp, RawPart, RawWord};

/// Most alternatives of one word, and of one command.
pub const MAX_ALTERNATIVES: usize = 24;
/// Most words that braces unfold to.
const MAX_BRACES: usize = 64;

/// A value: its pieces.
pub type Text = Vec<Part>;
/// One way a word may turn out: the fields it becomes.
pub type Fields = Vec<Text>;

impl Eval<'_> {
    /// Every way a word may turn out.
    pub fn expand(&mut self, raw: &RawWord) -> Vec<Vec<Word>> {
        let span = raw.span.unwrap_or(Span { start: 0, end: 0 });
        let mut out: Vec<Fields> = vec![Vec::new()];
        for parts in braces(&raw.parts) {
            let here = self.fields(&parts);
            out = product(out, &here, &vec![Part::Unknown]);
        }
        let cost = out.iter().flatten().map(|text| 8 + text.iter().map(part_size).sum::<usize>()).sum();
        if !self.spend(cost, span) {
            out = vec![vec![vec![Part::Unknown]]];
        }
        let word = |parts: Text| Word { parts: tidy(parts), span: self.span(span) };
        out.into_iter().map(|fields| fields.into_iter().map(word).collect()).collect()
    }

    /// The one text a word certainly is, as in an assignment or a here-document: not split.
    pub fn expand_text(&mut self, parts: &[RawPart]) -> Vec<Text> {
        let quoted: Vec<RawPart> = parts.iter().cloned().map(quote).collect();
        let fields = self.fields(&quoted);
        fields.into_iter().map(|fields| tidy(fields.into_iter().flatten().collect())).collect()
    }

    fn fields(&mut self, parts: &[RawPart]) -> Vec<Fields> {
        let mut building: Vec<Building> = vec![Building::default()];
        let only_param = parts.len() == 1;
        for (index, part) in parts.iter().enumerate() {
            let values = self.part(part, index == 0, only_param);
            if let [only] = values.as_slice() {
                // The everyday case: nothing is copied.
                building.iter_mut().for_each(|base| base.take(only));
                continue;
            }
            let mut next = Vec::new();
            for base in &building {
                for value in &values {
                    if next.len() < MAX_ALTERNATIVES {
                        next.push(base.with(value));
                    }
                }
            }
            if building.len() * values.len() > MAX_ALTERNATIVES {
                next.truncate(MAX_ALTERNATIVES - 1);
                next.extend(building.first().map(|base| base.with(&Piece::Joined(vec![Part::Unknown]))));
            }
            building = next;
        }
        building.into_iter().map(Building::finish).collect()
    }

    /// What one piece may turn out as.
    fn part(&mut self, part: &RawPart, first: bool, alone: bool) -> Vec<Piece> {
        match part {
            RawPart::Plain(text) => vec![Piece::Joined(self.plain(text, first))],
            RawPart::Quoted(text) => vec![Piece::Quoted(vec![Part::Text(text.clone())])],
            RawPart::Process(node) => {
                self.isolated(node);
                vec![Piece::Joined(vec![Part::Text("/dev/fd/63".to_owned())])]
            }
            RawPart::Arithmetic(parts) => {
                self.fields(parts);
                vec![Piece::Quoted(vec![Part::Unknown])]
            }
            RawPart::Command(node, quoted) => {
                let value = self.static_output(node);
                self.isolated(node);
                let value = value.map_or_else(|| vec![Part::Unknown], |text| vec![Part::Text(text)]);
                vec![if *quoted { Piece::Quoted(value) } else { split(&value) }]
            }
            RawPart::Param { name, op, quoted } => self.param(name, op, *quoted, alone),
        }
    }

    fn param(&mut self, name: &str, op: &ParamOp, quoted: bool, alone: bool) -> Vec<Piece> {
        let known = self.values(name);
        let mut values: Vec<Fields> = match op {
            ParamOp::None => match known {
                Some(values) => values,
                None if alone || self.is_environment(name) => vec![vec![vec![Part::Unknown]]],
                // A name nobody assigned is most likely empty: `cu${x}rl` runs curl.
                None => vec![Vec::new(), vec![vec![Part::Unknown]]],
            },
            ParamOp::Default(parts) => {
                let mut values = known.unwrap_or_default();
                values.extend(self.expand_text(parts).into_iter().map(|text| vec![text]));
                values
            }
            ParamOp::Alternative(parts) => {
                let mut values: Vec<Fields> = self.expand_text(parts).into_iter().map(|text| vec![text]).collect();
                values.push(Vec::new());
                values
            }
            ParamOp::Other(parts) => {
                let changed = self.expand_text(parts).first().and_then(crate::eval::literal);
                changed.zip(known).and_then(|(op, values)| transformed(name, &op, &values)).unwrap_or_else(unknown)
            }
        };
        crate::eval::cut(&mut values);
        let list = name == "@" || name.ends_with("[@]");
        values
            .into_iter()
            .map(|fields| match (quoted, list) {
                (true, true) => Piece::Fields(fields),
                (true, false) => Piece::Quoted(fields.join(&Part::Text(" ".to_owned()))),
                (false, true) if !self.has_ifs() => split(&fields.join(&Part::Text(" ".to_owned()))),
                (false, _) => self.split(&fields.join(&Part::Text(" ".to_owned()))),
            })
            .collect()
    }

    /// Splits at what `IFS` says.
    fn split(&self, text: &[Part]) -> Piece {
        if !self.has_ifs() {
            return split(text);
        }
        let separators = self.values("IFS").and_then(|values| match values.as_slice() {
            [only] => only.first().map_or(Some(String::new()), crate::eval::literal),
            _ => None,
        });
        let Some(separators) = separators else { return Piece::Joined(vec![Part::Unknown]) };
        let blank = |part: &Part| match part {
            Part::Text(text) => {
                // What is no separator here must not become one.
                let kept = |c: char| {
                    if separators.contains(c) {
                        ' '
                    } else if c.is_ascii_whitespace() {
                        '\u{a0}'
                    } else {
                        c
                    }
                };
                Part::Text(text.chars().map(kept).collect())
            }
            other => other.clone(),
        };
        split(&text.iter().map(blank).collect::<Vec<_>>())
    }

    /// Unquoted text: `~`, globs.
    fn plain(&self, text: &str, first: bool) -> Text {
        let mut out = Vec::new();
        let mut rest = text;
        if first && let Some(tail) = text.strip_prefix('~') {
            let user = tail.split('/').next().unwrap_or_default();
            if user.is_empty() {
                out.push(self.home().map_or(Part::Unknown, Part::Text));
                rest = tail;
            } else if user == "+" {
                out.push(Part::Text(".".to_owned()));
                rest = tail.get(1..).unwrap_or_default();
            }
        }
        while let Some(at) = rest.find(['*', '?', '[']) {
            let (before, wild) = rest.split_at(at);
            out.push(Part::Text(before.to_owned()));
            let end = if wild.starts_with('[') { wild.find(']').map_or(0, |end| end + 1) } else { 1 };
            if end == 0 {
                out.push(Part::Text(wild.to_owned()));
                return out;
            }
            let (glob, after) = wild.split_at(end);
            out.push(Part::Glob(glob.to_owned()));
            rest = after;
        }
        out.push(Part::Text(rest.to_owned()));
        out
    }
}

fn unknown() -> Vec<Fields> {
    vec![vec![vec![Part::Unknown]]]
}

fn part_size(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Glob(text) => text.len(),
        Part::Unknown => 1,
    }
}

/// `${name op}` where values and operation are certain.
fn transformed(name: &str, op: &str, values: &[Fields]) -> Option<Vec<Fields>> {
    let list = matches!(name, "@" | "*") || name.ends_with("[@]");
    if let Some(from) = op.strip_prefix(':').filter(|_| list) {
        let from: usize = from.trim().parse().ok()?;
        // `${@:1}` begins at the first argument, `${a[@]:1}` behind the first element.
        let skip = if name.ends_with("[@]") { from } else { from.saturating_sub(1) };
        return Some(values.iter().map(|fields| fields.iter().skip(skip).cloned().collect()).collect());
    }
    let one = |fields: &Fields| {
        let each = fields
            .iter()
            .map(|text| Some(vec![Part::Text(crate::transform::apply(op, &crate::eval::literal(text)?)?)]));
        each.collect::<Option<Fields>>()
    };
    values.iter().map(one).collect()
}

/// What one piece of a word contributes.
enum Piece {
    /// Goes on with the current field; nothing if empty.
    Joined(Text),
    /// Goes on with the current field, which then exists even when empty.
    Quoted(Text),
    /// Each is a field; the first goes on with the current one.
    Fields(Fields),
}

#[derive(Clone, Default)]
struct Building {
    done: Fields,
    current: Text,
    /// The current field exists, even if nothing is in it.
    exists: bool,
}

impl Building {
    fn with(&self, piece: &Piece) -> Self {
        let mut out = self.clone();
        out.take(piece);
        out
    }

    fn take(&mut self, piece: &Piece) {
        let out = self;
        match piece {
            Piece::Joined(text) => {
                out.exists |= text.iter().any(|part| !matches!(part, Part::Text(text) if text.is_empty()));
                out.current.extend_from_slice(text);
            }
            Piece::Quoted(text) => {
                out.exists = true;
                out.current.extend_from_slice(text);
            }
            Piece::Fields(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    if index > 0 {
                        out.close();
                    }
                    out.exists = true;
                    out.current.extend_from_slice(field);
                }
            }
        }
    }

    fn close(&mut self) {
        if self.exists {
            self.done.push(std::mem::take(&mut self.current));
        }
        self.exists = false;
        self.current.clear();
    }

    fn finish(mut self) -> Fields {
        self.close();
        self.done
    }
}

/// An unquoted value, split at white space; globs in it count.
fn split(text: &[Part]) -> Piece {
    let mut fields: Fields = Vec::new();
    let mut current: Text = Vec::new();
    for part in text {
        let Part::Text(text) = part else {
            current.push(part.clone());
            continue;
        };
        for (index, piece) in text.split([' ', '\t', '\n']).enumerate() {
            if index > 0 && !current.is_empty() {
                fields.push(std::mem::take(&mut current));
            }
            if !piece.is_empty() {
                let glob = piece.contains(['*', '?', '[']);
                current.push(if glob { Part::Glob(piece.to_owned()) } else { Part::Text(piece.to_owned()) });
            }
        }
        // White space at the end, as in `$IFS`, separates what follows.
        if text.ends_with([' ', '\t', '\n']) {
            if !current.is_empty() {
                fields.push(std::mem::take(&mut current));
            }
            fields.push(Vec::new());
        }
    }
    let blank_first = matches!(text.first(), Some(Part::Text(text)) if text.starts_with([' ', '\t', '\n']));
    if blank_first && fields.first().is_some_and(|first| !first.is_empty()) {
        fields.insert(0, Vec::new());
    }
    if !current.is_empty() {
        fields.push(current);
    }
    match fields.len() {
        0 => Piece::Joined(Vec::new()),
        1 => Piece::Joined(fields.pop().unwrap_or_default()),
        _ => Piece::Fields(fields),
    }
}

fn quote(part: RawPart) -> RawPart {
    match part {
        RawPart::Plain(text) if !text.starts_with('~') => RawPart::Quoted(text),
        RawPart::Param { name, op, .. } => RawPart::Param { name, op, quoted: true },
        RawPart::Command(node, _) => RawPart::Command(node, true),
        other => other,
    }
}

/// Neighbours of a kind joined, empty text dropped.
fn tidy(parts: Text) -> Text {
    let mut out: Text = Vec::new();
    for part in parts {
        match (out.last_mut(), part) {
            (_, Part::Text(text)) if text.is_empty() => {}
            (Some(Part::Text(last)), Part::Text(text)) | (Some(Part::Glob(last)), Part::Glob(text)) => {
                last.push_str(&text)
            }
            (Some(Part::Unknown), Part::Unknown) => {}
            (_, part) => out.push(part),
        }
    }
    out
}

/// Every way to continue each of `lists` with one of `more`; with `unknown` where that would be too many.
pub fn product<T: Clone>(mut lists: Vec<Vec<T>>, more: &[Vec<T>], unknown: &T) -> Vec<Vec<T>> {
    // The everyday case, one way only, must not copy what is there already: a line may have many words.
    if let [only] = more {
        lists.iter_mut().for_each(|list| list.extend_from_slice(only));
        return lists;
    }
    if lists.len() * more.len() > MAX_ALTERNATIVES {
        lists.iter_mut().for_each(|list| list.push(unknown.clone()));
        return lists;
    }
    let with = |list: &Vec<T>| more.iter().map(|tail| [list.clone(), tail.clone()].concat()).collect::<Vec<_>>();
    lists.iter().flat_map(with).collect()
}

#[derive(Clone)]
enum Token {
    Char(char),
    Part(RawPart),
}

/// `{a,b}` and `{1..3}` unfolded.
fn braces(parts: &[RawPart]) -> Vec<Vec<RawPart>> {
    let plain_brace = |part: &RawPart| matches!(part, RawPart::Plain(text) if text.contains('{'));
    if !parts.iter().any(plain_brace) {
        return vec![parts.to_vec()];
    }
    let mut tokens = Vec::new();
    for part in parts {
        match part {
            RawPart::Plain(text) => tokens.extend(text.chars().map(Token::Char)),
            other => tokens.push(Token::Part(other.clone())),
        }
    }
    unfold(&tokens, 0).into_iter().map(|tokens| assemble(&tokens)).collect()
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

fn unfold(tokens: &[Token], depth: usize) -> Vec<Vec<Token>> {
    let is = |at: usize, c: char| matches!(tokens.get(at), Some(Token::Char(own)) if *own == c);
    for open in (0..tokens.len()).filter(|&at| is(at, '{')) {
        let Some((close, commas)) = matching(tokens, open) else { continue };
        let inner = tokens.get(open + 1..close).unwrap_or_default();
        let choices: Vec<Vec<Token>> = if commas.is_empty() {
            match range(inner) {
                Some(choices) => choices,
                None => continue,
            }
        } else {
            let mut ends = commas.clone();
            ends.push(close);
            let starts = std::iter::once(open + 1).chain(commas.iter().map(|comma| comma + 1));
            starts.zip(ends).map(|(from, to)| tokens.get(from..to).unwrap_or_default().to_vec()).collect()
        };
        let (before, after) = (tokens.get(..open).unwrap_or_default(), tokens.get(close + 1..).unwrap_or_default());
        let mut out = Vec::new();
        for choice in choices {
            let whole = [before, &choice, after].concat();
            let more = if depth < 8 { unfold(&whole, depth + 1) } else { vec![whole] };
            out.extend(more);
            if out.len() >= MAX_BRACES {
                out.truncate(MAX_BRACES);
                break;
            }
        }
        return out;
    }
    vec![tokens.to_vec()]
}

/// Where the brace at `open` closes, and the commas at its own level.
fn matching(tokens: &[Token], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0usize;
    let mut commas = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Char('{') => depth += 1,
            Token::Char(',') if depth == 1 => commas.push(at),
            Token::Char('}') if depth == 1 => return Some((at, commas)),
            Token::Char('}') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `1..3`, `a..c`.
fn range(inner: &[Token]) -> Option<Vec<Vec<Token>>> {
    let text: Option<String> =
        inner.iter().map(|token| if let Token::Char(c) = token { Some(*c) } else { None }).collect();
    let text = text?;
    let (from, to) = text.split_once("..")?;
    let one = |text: String| text.chars().map(Token::Char).collect::<Vec<_>>();
    if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
        let (low, high) = (from.min(to), from.max(to));
        let most = i64::try_from(MAX_BRACES).unwrap_or(64);
        return Some((low..=high.min(low.saturating_add(most))).map(|n| one(n.to_string())).collect());
    }
    let (mut a, mut b) = (from.chars(), to.chars());
    let (Some(from), None, Some(to), None) = (a.next(), a.next(), b.next(), b.next()) else { return None };
    Some((from.min(to)..=from.max(to)).take(MAX_BRACES).map(|c| vec![Token::Char(c)]).collect())
}
