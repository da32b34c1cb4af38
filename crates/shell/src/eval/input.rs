//! What a command reads on standard input.

use crate::eval::Eval;
use crate::text::{Text, literal, split_at};
use crate::word::{Part, Source, Word};

/// What a command reads on standard input.
#[derive(Clone, Debug)]
pub enum Input {
    /// Nothing from this line.
    None,
    /// This text.
    Text(String),
    /// Text of which some is not known (`find … |`).
    Partly(Text),
    /// Something not known.
    Unknown,
}

impl Input {
    /// A text as input.
    pub fn of(text: Text) -> Self {
        match literal(&text) {
            Some(known) if !text.iter().any(|part| matches!(part, Part::Glob(_))) => Self::Text(known),
            _ if text.iter().all(|part| matches!(part, Part::Unknown(source) if source.is_made())) => Self::Unknown,
            _ => Self::Partly(text),
        }
    }

    /// The text; `None` where it may be any, or nobody gives one.
    pub fn text(&self) -> Option<Text> {
        match self {
            Self::Text(text) => Some(vec![Part::Text(text.clone())]),
            Self::Partly(text) => Some(text.clone()),
            Self::None | Self::Unknown => None,
        }
    }
}

impl Eval<'_> {
    /// The names in a list: standard input where the line knows it, else any.
    pub(crate) fn listed_names(&self, list: &Word) -> Vec<Word> {
        let span = list.span;
        let piped = matches!(list.literal().as_deref(), Some("-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"));
        let word = |parts: Text| Word { parts, span };
        match self.stdin.text().filter(|_| piped) {
            Some(text) => split_at(&text, |c| c == '\0' || c == '\n').into_iter().map(word).collect(),
            None => vec![word(vec![Part::Unknown(Source::Any)])],
        }
    }
}
