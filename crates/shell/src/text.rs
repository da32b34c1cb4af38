//! Texts whose pieces need not all be known.
//!
//! Owns how such a text is put together, cut up and measured. Page: `spec/shell.md`.

use crate::word::{Part, Source};

/// A value: its pieces.
pub type Text = Vec<Part>;

/// One way a word may turn out: the fields it becomes.
pub type Fields = Vec<Text>;

/// Neighbours of a kind joined, empty text dropped.
pub fn tidy(parts: Text) -> Text {
    let mut out: Text = Vec::new();
    for part in parts {
        match (out.last_mut(), part) {
            (_, Part::Text(text)) if text.is_empty() => {}
            (Some(Part::Text(last)), Part::Text(text)) | (Some(Part::Glob(last)), Part::Glob(text)) => {
                last.push_str(&text)
            }
            (Some(Part::Unknown(last)), Part::Unknown(source)) => *last = last.with(source),
            (_, part) => out.push(part),
        }
    }
    out
}

/// A value that is certain.
pub fn literal(text: &Text) -> Option<String> {
    text.iter()
        .map(|part| match part {
            Part::Text(text) | Part::Glob(text) => Some(text.as_str()),
            Part::Unknown(_) => None,
        })
        .collect()
}

/// Bytes of text.
pub fn size(text: &Text) -> usize {
    let bytes = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.len(),
        Part::Unknown(_) => 1,
    };
    text.iter().map(bytes).sum()
}

/// What is left of a text when some of it is taken away, or its letters are changed.
pub fn source_of_altered(text: &Text) -> Source {
    let made = text.iter().all(|part| matches!(part, Part::Text(_)));
    let one = |part: &Part| match part {
        Part::Text(text) if text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '\n')) => {
            Source::Number
        }
        // A text of the line's own may become `..`.
        Part::Text(_) if made => Source::Any,
        Part::Text(text) | Part::Glob(text) if text.contains('/') => Source::Outside,
        Part::Text(_) | Part::Glob(_) => Source::Name,
        Part::Unknown(Source::Listed(_)) => Source::Outside,
        Part::Unknown(source) => *source,
    };
    text.iter().map(one).fold(Source::Number, Source::with)
}

/// The pieces of a text between such characters, without empty ones.
pub fn split_at(text: &Text, ends: impl Fn(char) -> bool) -> Vec<Text> {
    let mut out: Vec<Text> = vec![Text::new()];
    for part in text {
        let Part::Text(known) = part else {
            out.last_mut().into_iter().for_each(|last| last.push(part.clone()));
            continue;
        };
        for (at, piece) in known.split(&ends).enumerate() {
            if at > 0 {
                out.push(Text::new());
            }
            if !piece.is_empty() {
                out.last_mut().into_iter().for_each(|last| last.push(Part::Text(piece.to_owned())));
            }
        }
    }
    out.retain(|piece| !piece.is_empty());
    out
}

/// Without line breaks at the end.
pub fn trimmed(mut text: Text) -> Text {
    if let Some(Part::Text(last)) = text.last_mut() {
        last.truncate(last.trim_end_matches('\n').len());
    }
    tidy(text)
}

/// How the names of such variables begin.
const PLACEHOLDER: &str = "__unknown_";

/// The name of a variable that stands for text that is not known, where code is read that holds it.
pub fn placeholder(source: Source) -> String {
    match source {
        Source::Listed(at) => format!("{PLACEHOLDER}{at}"),
        Source::Number
        | Source::Fresh
        | Source::Name
        | Source::Outside
        | Source::Any
        | Source::Words
        | Source::Setup => {
            format!("{PLACEHOLDER}{source:?}")
        }
    }
}

/// The source that a variable's name stands for.
pub fn stood_for(name: &str) -> Option<Source> {
    Some(match name.strip_prefix(PLACEHOLDER)? {
        "Number" => Source::Number,
        "Fresh" => Source::Fresh,
        "Name" => Source::Name,
        "Outside" => Source::Outside,
        "Any" | "Setup" => Source::Any,
        at => at.parse().map_or(Source::Words, Source::Listed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_stay_known() {
        assert_eq!(literal(&trimmed(vec![Part::Text("a\n\n".to_owned())])).as_deref(), Some("a"));
    }
}
