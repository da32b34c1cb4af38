//! `${ … }` expanded: what a parameter may hold, and what is done with it.
//!
//! What is not computed exactly becomes something not known, never empty and never the text itself.

use crate::action::UnresolvedKind;
use crate::eval::Eval;
use crate::eval::words::expand::{MAX_VALUES, Piece};
use crate::eval::words::pattern::Pattern;
use crate::parser::syntax::{Param, ParamOp, RawPart};
use crate::text::{Fields, Text, literal, source_of_altered};
use crate::word::{Part, Source};

impl Eval<'_> {
    /// What a parameter may turn out as, and whether that is a guess at a name nobody assigned.
    pub(crate) fn param(&mut self, param: &Param, alone: bool) -> Vec<(Piece, bool)> {
        let key = param.key.as_ref().map(|key| self.key_text(&param.name, key));
        let known = if param.indirect {
            Some(self.indirect(&param.name, key.as_ref()))
        } else {
            self.lookup(&param.name, key.as_ref())
        };
        if !param.indirect {
            self.outside_read(&param.name, known.is_some());
        }
        let list = param.name == "@" || param.name.ends_with("[@]");
        let star = param.name == "*" || param.name.ends_with("[*]");
        let mut values = self.operated(param, known, alone, list || star);
        if values.len() > MAX_VALUES {
            values.truncate(MAX_VALUES);
            values.push((unknown(), false));
            self.limit("a variable that may be too many things");
        }
        let between = self.separators().map(|all| all.first().map(char::to_string).unwrap_or_default());
        let between = between.map_or(Part::Unknown(Source::Any), Part::Text);
        let piece = |eval: &Self, fields: Fields| match (param.quoted, list) {
            (true, true) => Piece::Fields(fields),
            (true, false) => Piece::Quoted(fields.join(&between)),
            (false, _) => eval.split(&fields),
        };
        values.into_iter().map(|(fields, guess)| (piece(self, fields), guess)).collect()
    }

    fn operated(&mut self, param: &Param, known: Option<Vec<Fields>>, alone: bool, list: bool) -> Vec<(Fields, bool)> {
        let sure = |values: Vec<Fields>| values.into_iter().map(|value| (value, false)).collect();
        match &param.op {
            ParamOp::None | ParamOp::Needed(_) => {
                if let ParamOp::Needed(parts) = &param.op {
                    self.expand_text(parts);
                }
                match known {
                    Some(values) => sure(values),
                    None if alone || list || self.is_environment(&param.name) => {
                        vec![(of_source(outside(&param.name)), false)]
                    }
                    // A name nobody assigned is most likely empty: `cu${x}rl` runs curl.
                    None => vec![(Vec::new(), false), (of_source(Source::Outside), true)],
                }
            }
            ParamOp::Default(parts, assigns) => {
                let instead: Vec<Fields> = self.expand_text(parts).into_iter().map(|text| vec![text]).collect();
                if *assigns {
                    self.conditionally(|eval| eval.set(&param.name, instead.clone(), false, eval.here));
                }
                sure(known.unwrap_or_default().into_iter().chain(instead).collect())
            }
            ParamOp::Alternative(parts) => {
                let mut values: Vec<Fields> = self.expand_text(parts).into_iter().map(|text| vec![text]).collect();
                values.push(Vec::new());
                sure(values)
            }
            ParamOp::Prompt => {
                match known {
                    None => self.unresolved(UnresolvedKind::Script, &format!("${{{}@P}}", param.name), self.here),
                    Some(values) => values.iter().flatten().for_each(|text| self.reevaluate(text, "@P")),
                }
                sure(vec![unknown()])
            }
            ParamOp::Other(parts) => {
                self.expand_text(parts);
                let changed = |fields: &Fields| fields.iter().map(left).collect();
                sure(match known {
                    // `${#x}`
                    _ if parts.is_empty() => vec![of_source(Source::Number)],
                    Some(values) => values.iter().map(changed).collect(),
                    None => vec![of_source(outside(&param.name))],
                })
            }
            ParamOp::Slice(offset, length) => {
                let offset = self.integer(offset);
                let length = length.as_ref().map(|length| self.integer(length));
                let positional = matches!(param.name.as_str(), "@" | "*");
                let cut = |fields: Fields| {
                    let rest = vec![left(&fields.concat())];
                    slice(fields, offset, length, list, positional).unwrap_or(rest)
                };
                let none = || vec![of_source(outside(&param.name))];
                sure(known.map_or_else(none, |values| values.into_iter().map(cut).collect()))
            }
            ParamOp::Strip { .. } | ParamOp::Replace { .. } | ParamOp::Case { .. } => {
                let operation = self.operation(&param.op);
                let Some(values) = known else { return sure(vec![of_source(outside(&param.name))]) };
                sure(values.into_iter().map(|fields| self.each_field(fields, operation.as_ref())).collect())
            }
        }
    }

    /// The operation with its patterns expanded; `None` where they are not known.
    fn operation(&mut self, op: &ParamOp) -> Option<Operation> {
        match op {
            ParamOp::Strip { pattern, suffix, longest } => {
                Some(Operation::Strip(self.pattern(pattern)?, *suffix, *longest))
            }
            ParamOp::Replace { how, pattern, with } => {
                let pattern = self.pattern(pattern);
                let with = self.expand_text(with);
                let [with] = with.as_slice() else { return None };
                Some(Operation::Replace(pattern?, literal(with)?, *how))
            }
            ParamOp::Case { upper, all } => Some(Operation::Case(*upper, *all)),
            ParamOp::None
            | ParamOp::Default(..)
            | ParamOp::Alternative(_)
            | ParamOp::Needed(_)
            | ParamOp::Slice(..)
            | ParamOp::Prompt
            | ParamOp::Other(_) => None,
        }
    }

    fn pattern(&mut self, parts: &[RawPart]) -> Option<Pattern> {
        match self.expand_pattern(parts).as_slice() {
            [] => Pattern::of(&Vec::new()),
            [only] => Pattern::of(only),
            _ => None,
        }
    }

    fn each_field(&mut self, fields: Fields, operation: Option<&Operation>) -> Fields {
        let Some(operation) = operation else { return fields.iter().map(left).collect() };
        let one = |text: &Text| {
            if literal(text).is_none() || text.iter().any(|part| matches!(part, Part::Glob(_))) {
                return Some(operation.of_unknown(text).unwrap_or_else(|| left(text)));
            }
            let text = literal(text)?;
            if let Operation::Strip(pattern, ..) | Operation::Replace(pattern, ..) = operation
                && !self.spend(pattern.cost(&text.chars().take(256).collect::<String>()))
            {
                return None;
            }
            Some(vec![Part::Text(operation.apply(&text)?)])
        };
        fields.iter().map(one).collect::<Option<Fields>>().unwrap_or_else(unknown)
    }

    /// Notes that a value from outside the line is read, where it may be one.
    pub(crate) fn outside_read(&mut self, name: &str, assigned: bool) {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(letter);
        let counts = self.counters.iter().any(|counter| counter == name);
        if named && !counts && (!assigned || self.unsure.contains(name)) {
            self.variable_read(name);
        }
    }

    /// An offset or a length, when it is a plain number.
    fn integer(&mut self, parts: &[RawPart]) -> Option<i64> {
        let text = self.expand_text(parts);
        text.iter().for_each(|text| self.computed(text));
        let [only] = text.as_slice() else { return None };
        literal(only)?.trim().parse().ok()
    }

    /// `${!name}`: what the variables it names hold.
    fn indirect(&mut self, name: &str, key: Option<&Text>) -> Vec<Fields> {
        if name.ends_with(']') || matches!(name, "@" | "*") {
            return vec![unknown()];
        }
        if name == "#" {
            let last = self.arguments.as_ref().and_then(|words| words.last().cloned());
            return vec![last.map_or_else(unknown, |word| vec![word.parts])];
        }
        let mut out = Vec::new();
        for fields in self.lookup(name, key).unwrap_or_else(|| vec![unknown()]) {
            let text = fields.concat();
            self.subscripts(&text);
            let found =
                literal(&text).and_then(|name| match name.strip_suffix(']').and_then(|it| it.split_once('[')) {
                    Some((name, "@" | "*")) => self.lookup(&format!("{name}[@]"), None),
                    Some((name, key)) => self.lookup(name, Some(&vec![Part::Text(key.to_owned())])),
                    None => {
                        let held = self.lookup(&name, None);
                        self.outside_read(&name, held.is_some());
                        held
                    }
                });
            if literal(&text).is_none() {
                self.variable_read("");
            }
            out.extend(found.unwrap_or_else(|| vec![unknown()]));
        }
        out
    }
}

/// An operation on one text.
enum Operation {
    /// Without what matches: at the end, as much as does; the pattern as text.
    Strip(Pattern, bool, bool),
    Replace(Pattern, String, char),
    Case(bool, bool),
}

impl Operation {
    /// The same on a text that is not fully known; `None` where nothing is left that is certain.
    fn of_unknown(&self, text: &Text) -> Option<Text> {
        let Self::Strip(pattern, suffix, longest) = self else { return None };
        let name = |part: &Part| match part {
            Part::Text(text) => !text.contains('/'),
            Part::Glob(glob) => !glob.contains('/'),
            Part::Unknown(source) => matches!(source, Source::Number | Source::Fresh | Source::Name),
        };
        // What a glob or a listing gives is one name from here on.
        let kept = |parts: &[Part]| -> Text { parts.iter().map(as_name).collect() };
        let (first, last) = (text.first()?, text.last()?);
        match (first, last) {
            (Part::Text(known), _) if !*suffix && !longest => {
                let rest = pattern.strip(known, false, false).filter(|rest| rest != known)?;
                Some([&[Part::Text(rest)], kept(text.get(1..)?).as_slice()].concat())
            }
            // `##*/`
            _ if !*suffix && pattern.is_any_then('/') => {
                let cut = text.iter().rposition(|part| matches!(part, Part::Text(text) if text.contains('/')));
                let behind = text.get(cut.map_or(0, |at| at + 1)..)?;
                let start = cut.and_then(|at| text.get(at)).and_then(|part| match part {
                    Part::Text(text) => text.rsplit('/').next(),
                    Part::Glob(_) | Part::Unknown(_) => None,
                });
                let start = Part::Text(start.unwrap_or_default().to_owned());
                if behind.iter().all(name) {
                    Some([&[start], kept(behind).as_slice()].concat())
                } else {
                    Some(vec![Part::Unknown(Source::Name)])
                }
            }
            (_, Part::Text(known)) if *suffix && !longest => {
                let rest = pattern.strip(known, true, false).filter(|rest| rest != known)?;
                Some([kept(text.get(..text.len() - 1)?).as_slice(), &[Part::Text(rest)]].concat())
            }
            _ => None,
        }
    }

    fn apply(&self, text: &str) -> Option<String> {
        match self {
            Self::Strip(pattern, suffix, longest) => pattern.strip(text, *suffix, *longest),
            Self::Replace(pattern, with, how) => pattern.replace(text, with, *how),
            Self::Case(upper, all) => {
                let turned = |text: &str| if *upper { text.to_uppercase() } else { text.to_lowercase() };
                let first = if *all { text.len() } else { text.chars().next().map_or(0, char::len_utf8) };
                Some(format!("{}{}", turned(text.get(..first)?), text.get(first..)?))
            }
        }
    }
}

/// A glob's matches, changed at the other end.
fn as_name(part: &Part) -> Part {
    match part {
        Part::Glob(glob) if glob.contains('/') => Part::Unknown(Source::Outside),
        Part::Glob(_) => Part::Unknown(Source::Name),
        Part::Unknown(Source::Listed(_)) => Part::Unknown(Source::Outside),
        other => other.clone(),
    }
}

/// What a text is that was changed in a way that is not followed.
fn left(text: &Text) -> Text {
    vec![Part::Unknown(source_of_altered(text))]
}

fn unknown() -> Fields {
    of_source(Source::Any)
}

fn of_source(source: Source) -> Fields {
    vec![vec![Part::Unknown(source)]]
}

/// What a parameter holds that nobody in the line assigned.
fn outside(name: &str) -> Source {
    match name {
        "?" | "$" | "!" | "#" | "-" | "RANDOM" | "SRANDOM" | "SECONDS" | "LINENO" | "UID" | "EUID" | "PPID"
        | "BASHPID" | "EPOCHSECONDS" => Source::Number,
        "HOSTNAME" | "USER" | "LOGNAME" | "EPOCHREALTIME" => Source::Name,
        "@" | "*" | "_" | "OLDPWD" | "DIRSTACK" | "BASH_COMMAND" | "BASH_EXECUTION_STRING" | "BASH_ARGV" | "REPLY" => {
            Source::Any
        }
        _ => Source::Outside,
    }
}

/// `:offset:length` of a text's characters, or of a list's elements.
fn slice(
    fields: Fields,
    offset: Option<i64>,
    length: Option<Option<i64>>,
    list: bool,
    positional: bool,
) -> Option<Fields> {
    let chars: Vec<char> = if list { Vec::new() } else { literal(&fields.concat())?.chars().collect() };
    let len = i64::try_from(if list { fields.len() } else { chars.len() }).ok()?;
    let mut from = offset?;
    if positional && from > 0 {
        from -= 1;
    }
    let from = if from < 0 { from + len } else { from };
    let to = match length {
        None => len,
        Some(length) => match length? {
            back if back < 0 => len + back,
            length => from.saturating_add(length),
        },
    };
    let range = usize::try_from(from.clamp(0, len)).ok()?..usize::try_from(to.clamp(from.clamp(0, len), len)).ok()?;
    if list {
        return fields.get(range).map(<[Text]>::to_vec);
    }
    Some(vec![vec![Part::Text(chars.get(range)?.iter().collect())]])
}
