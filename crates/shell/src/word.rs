//! Words as the shell would pass them on: what of their text is certain, and what is known of the rest (R70).
//!
//! Owns the types that everything else of the crate is made of. Page: `spec/shell.md`.

use std::borrow::Cow;

use writ_core::Span;

/// Stands for the letters of a name that `mktemp` makes. Only for telling places apart: text is never made of it.
pub const FRESH: &str = "writ-mktemp";

/// One piece of a word after quotes, escapes and known expansions are gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Text that is certain.
    Text(String),
    /// Unquoted glob text (`*`, `?`, `[a-z]`) that the shell would try to match against files.
    Glob(String),
    /// Text that is not known before the line runs.
    Unknown(Source),
}

impl Part {
    /// Whether it is text that is not known.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

/// A word the shell would pass on. A word that has several known values occurs as several commands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// Pieces in order; neighbours of the same kind are joined.
    pub parts: Vec<Part>,
    /// Where it stands in the line.
    pub span: Span,
}

impl Word {
    /// The word's text when all of it is certain. Glob characters count as text: a shell passes them on when no file
    /// matches.
    pub fn literal(&self) -> Option<String> {
        self.text().map(Cow::into_owned)
    }

    /// The same, borrowed where it is one piece.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        if let [Part::Text(text) | Part::Glob(text)] = self.parts.as_slice() {
            return Some(Cow::Borrowed(text));
        }
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) | Part::Glob(text) => out.push_str(text),
                Part::Unknown(_) => return None,
            }
        }
        Some(Cow::Owned(out))
    }

    /// The same, with [`FRESH`] for letters that `mktemp` chooses: a place of its own, whatever it will be called.
    pub fn place(&self) -> Option<String> {
        let text = |part: &Part| match part {
            Part::Text(text) | Part::Glob(text) => Some(text.clone()),
            Part::Unknown(Source::Fresh) => Some(FRESH.to_owned()),
            Part::Unknown(_) => None,
        };
        self.parts.iter().map(text).collect()
    }

    /// Whether the shell would try to match it against files.
    pub fn is_glob(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Glob(_)))
    }
}

/// Where text that is not known comes from, which says what it can be (R70).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// Letters, digits, `-`, `_` and `:`, at least one: arithmetic, `$?`, `date +%s`, a commit's name. No dot, no slash.
    Number,
    /// Letters and digits that `mktemp` chose, so that nothing had the name before: whoever wrote the line cannot know them.
    Fresh,
    /// The name of a file: no slash, neither `.` nor `..`, perhaps empty.
    Name,
    /// A value from outside the line, as of a variable that nobody in it assigned: anything without `..` in it.
    Outside,
    /// Each of the names of a listing, by its place in [`Analysis::listings`].
    Listed(u16),
    /// Any text, in one word: what the line itself decodes, reads or makes.
    Any,
    /// The same without quotes: any number of words.
    Words,
    /// Shell code by which a known program sets up the shell for itself (`ssh-agent -s`); any text where it is no code.
    Setup,
}

impl Source {
    /// What text of both, one behind the other, can be; also what is either of the two.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Listed(_), _) | (_, Self::Listed(_)) => Self::Any,
            // What is left of chosen letters may be any.
            (Self::Fresh, other) | (other, Self::Fresh) => {
                Self::Number.with(if other == Self::Fresh { Self::Number } else { other })
            }
            (Self::Setup, other) | (other, Self::Setup) => {
                if other == Self::Words {
                    other
                } else {
                    Self::Any
                }
            }
            (one, other) if one.width() >= other.width() => one,
            (_, other) => other,
        }
    }

    const fn width(self) -> u8 {
        match self {
            Self::Number | Self::Fresh => 0,
            Self::Name => 1,
            Self::Outside => 2,
            Self::Listed(_) | Self::Any | Self::Setup => 3,
            Self::Words => 4,
        }
    }

    /// Whether the line itself may have made it to be what it likes.
    #[must_use]
    pub const fn is_made(self) -> bool {
        matches!(self, Self::Any | Self::Words | Self::Setup)
    }
}

/// A directory that a relative path may hang off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dir {
    /// The directory the line starts in, then this path (empty: that directory itself; absolute: just this path).
    /// `..` is not folded.
    Start(String),
    /// A path that is not fully known, from the directory the line starts in (`cd s*t`, `cd "$X"`).
    Open(Vec<Part>),
    /// A directory that is not known.
    Unknown,
}
