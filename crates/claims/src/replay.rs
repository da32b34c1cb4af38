//! What an agent did to files, by its own transcript, replayed: what that proves about a file on disk.
//!
//! The transcript is the agent's word that a write succeeded; the disk is the fact. A write is proven lost only when the file
//! still is what it was at an earlier point of that transcript, and nothing in the transcript could have put it back.

use std::path::{Path, PathBuf};

/// One thing an agent did. Its paths are as [`crate::resolved`] gives them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// A tool reported that it wrote the whole file.
    Wrote {
        /// The file.
        path: PathBuf,
        /// All of it.
        content: String,
    },
    /// A tool reported that it replaced text in the file.
    Edited {
        /// The file.
        path: PathBuf,
        /// The replacements in order.
        edits: Vec<Edit>,
    },
    /// A command that changed these files or folders in a way that is not known, and nothing else.
    Touched {
        /// Each with what is below it.
        paths: Vec<PathBuf>,
    },
    /// A command that may have changed anything.
    Unknown,
}

impl Act {
    /// The file that a tool reported as written.
    pub fn written(&self) -> Option<&Path> {
        match self {
            Self::Wrote { path, .. } | Self::Edited { path, .. } => Some(path),
            Self::Touched { .. } | Self::Unknown => None,
        }
    }

    /// The files and folders that a command changed in a way that is not known.
    pub fn touched(&self) -> Option<&[PathBuf]> {
        match self {
            Self::Touched { paths } => Some(paths),
            Self::Wrote { .. } | Self::Edited { .. } | Self::Unknown => None,
        }
    }
}

/// One replacement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// What was there.
    pub old: String,
    /// What is there now.
    pub new: String,
    /// Everywhere, or just once.
    pub all: bool,
}

/// What the acts say about a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// They do not name it.
    NotNamed,
    /// What was written last is what is there.
    Kept,
    /// A write was reported, and the file is as if it had not been.
    Lost,
    /// A write was reported, and what came of it cannot be told.
    Unclear,
}

/// Replays the acts on `path`. `disk` is what is there now, `None` when there is nothing; `unchanged` says that this is also
/// what was there before the first act.
pub fn replay(acts: &[Act], path: &Path, disk: Option<&[u8]>, unchanged: bool) -> Replay {
    let Some(found) = Held::of(disk) else {
        return if names(acts, path) { Replay::Unclear } else { Replay::NotNamed };
    };
    let before = if unchanged { found.clone() } else { Held::Unknown };
    let states = states(acts, path, before);
    match states.split_last() {
        _ if !names(acts, path) => Replay::NotNamed,
        Some((Held::Unknown, _)) | None => Replay::Unclear,
        Some((last, _)) if *last == found => Replay::Kept,
        // A formatter is nobody's loss.
        Some((last, _)) if last.differs_only_in_format(&found) => Replay::Unclear,
        Some((_, earlier)) if found == Held::Nothing || earlier.contains(&found) => Replay::Lost,
        Some(_) => Replay::Unclear,
    }
}

/// Whether the acts left `path` with this content, when it held `before` at their start.
pub fn ended_as(acts: &[Act], path: &Path, before: Option<&[u8]>, content: &[u8]) -> bool {
    let (Some(before), Some(content)) = (Held::of(before), Held::of(Some(content))) else { return true };
    states(acts, path, before).last().is_some_and(|last| *last == content || last.differs_only_in_format(&content))
}

/// What the file held after each act, as far as it is known; the first is what it held before.
fn states(acts: &[Act], path: &Path, before: Held) -> Vec<Held> {
    let mut states = vec![before];
    for act in acts {
        let now = match act {
            Act::Wrote { path: own, content } if own == path => Held::Text(even(content)),
            Act::Edited { path: own, edits } if own == path => {
                states.last().map_or(Held::Unknown, |held| held.edited(edits))
            }
            Act::Touched { paths } if paths.iter().any(|touched| path.starts_with(touched)) => Held::Unknown,
            Act::Unknown => Held::Unknown,
            Act::Wrote { .. } | Act::Edited { .. } | Act::Touched { .. } => continue,
        };
        states.push(now);
    }
    states
}

fn names(acts: &[Act], path: &Path) -> bool {
    acts.iter().any(|act| act.written() == Some(path))
}

#[derive(Clone, PartialEq, Eq)]
enum Held {
    Nothing,
    Text(String),
    Unknown,
}

impl Held {
    /// Nothing, or text; `None` for what is no text.
    fn of(disk: Option<&[u8]>) -> Option<Self> {
        match disk.map(std::str::from_utf8) {
            None => Some(Self::Nothing),
            Some(Ok(text)) => Some(Self::Text(even(text))),
            Some(Err(_)) => None,
        }
    }

    /// Whether both are texts that differ in nothing but what formatters choose.
    fn differs_only_in_format(&self, other: &Self) -> bool {
        let letters = |text: &str| -> String {
            text.chars().filter(|c| !c.is_whitespace() && !matches!(c, ',' | ';' | '"' | '\'' | '(' | ')')).collect()
        };
        matches!((self, other), (Self::Text(one), Self::Text(two)) if letters(one) == letters(two))
    }

    fn edited(&self, edits: &[Edit]) -> Self {
        let Self::Text(text) = self else { return Self::Unknown };
        let mut text = text.clone();
        for edit in edits {
            let (old, new) = (even(&edit.old), even(&edit.new));
            if !text.contains(&old) {
                return Self::Unknown;
            }
            text = if edit.all { text.replace(&old, &new) } else { text.replacen(&old, &new, 1) };
        }
        Self::Text(text)
    }
}

/// Text without the choices an editor makes by itself: line ends, a mark at the front, the last line break.
fn even(text: &str) -> String {
    text.trim_start_matches('\u{feff}').replace("\r\n", "\n").trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(content: &str) -> Act {
        Act::Wrote { path: PathBuf::from("/r/a"), content: content.to_owned() }
    }

    fn edited(old: &str, new: &str) -> Act {
        let edit = Edit { old: old.to_owned(), new: new.to_owned(), all: false };
        Act::Edited { path: PathBuf::from("/r/a"), edits: vec![edit] }
    }

    fn tell(acts: &[Act], disk: Option<&str>, unchanged: bool) -> Replay {
        replay(acts, Path::new("/r/a"), disk.map(str::as_bytes), unchanged)
    }

    #[test]
    fn a_lost_write_is_told_from_a_kept_one() {
        assert_eq!(tell(&[wrote("new")], Some("new\r\n"), false), Replay::Kept);
        assert_eq!(tell(&[wrote("old")], Some("old"), true), Replay::Kept);
        assert_eq!(tell(&[wrote("new")], Some("old"), true), Replay::Lost);
        assert_eq!(tell(&[wrote("new")], None, true), Replay::Lost);
        assert_eq!(tell(&[edited("o", "x")], Some("old"), true), Replay::Lost);
        assert_eq!(tell(&[wrote("one"), wrote("two")], Some("one"), false), Replay::Lost);
        assert_eq!(tell(&[wrote("one"), edited("one", "two")], Some("one"), false), Replay::Lost);
    }

    #[test]
    fn doubt_is_no_proof() {
        let moved = Act::Touched { paths: vec![PathBuf::from("/r")] };
        assert_eq!(tell(&[], Some("old"), true), Replay::NotNamed);
        assert_eq!(tell(&[wrote("new"), moved], Some("old"), true), Replay::Unclear);
        assert_eq!(tell(&[wrote("new"), Act::Unknown], None, true), Replay::Unclear);
        assert_eq!(tell(&[wrote("a=1")], Some("a = 1"), false), Replay::Unclear, "a formatter");
        assert_eq!(tell(&[edited("o", "x"), edited("x", "o")], Some("old"), true), Replay::Kept, "taken back");
        assert_eq!(tell(&[edited("gone", "x")], Some("old"), true), Replay::Unclear);
        assert_eq!(replay(&[wrote("x")], Path::new("/r/a"), Some(&[0xff]), true), Replay::Unclear);
        let elsewhere = Act::Touched { paths: vec![PathBuf::from("/r/b")] };
        assert_eq!(tell(&[wrote("new"), elsewhere], Some("old"), true), Replay::Lost);
    }
}
