//! Commands and words of an analysis as the findings need them: whose operand a path is, what stands in what, what is known.

use std::collections::HashMap;

use writ_shell::{Analysis, Command, Part, Word};

use crate::rules;

/// What a line prints of its own.
pub(super) fn printed(analysis: &Analysis) -> Vec<String> {
    let prints =
        |other: &&Command| matches!(other.words.first().and_then(Word::literal).as_deref(), Some("echo" | "printf"));
    analysis
        .commands
        .iter()
        .filter(prints)
        .flat_map(|other| other.words.iter().skip(1).filter_map(Word::literal))
        .collect()
}

/// The command whose operand a path is; a redirection's target is nobody's.
pub(super) fn owners(analysis: &Analysis) -> HashMap<(usize, usize, String), &Command> {
    let words =
        analysis.commands.iter().flat_map(|command| command.words.iter().skip(1).map(move |word| (word, command)));
    words.map(|(word, command)| ((word.span.start, word.span.end, shown(word)), command)).collect()
}

/// Whether a command is another with a value that is not known put as nothing: the unset variable. Its rules are asked of the other.
pub(super) fn is_other_value(command: &Command, analysis: &Analysis) -> bool {
    let unknown = |command: &Command| command.words.iter().any(|word| word.parts.iter().any(Part::is_unknown));
    let same = |other: &&Command| other.span == command.span && other.words.first() == command.words.first();
    !unknown(command) && analysis.commands.iter().filter(same).any(unknown)
}

/// Whether one command stands in the words of another.
pub(super) fn wraps(outer: &Command, inner: &Command) -> bool {
    inner.words.first().is_some_and(|first| outer.words.iter().skip(1).any(|word| word.span == first.span))
}

/// A word's text, with a mark for what is not known of it.
pub(super) fn shown(word: &Word) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.clone(),
        Part::Unknown(_) => rules::UNKNOWN.to_owned(),
    };
    word.parts.iter().map(part).collect()
}

/// A path's text; `None` when part of it is not known.
pub(super) fn text_of(word: &Word) -> Option<String> {
    let known = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => Some(text.clone()),
        Part::Unknown(_) => None,
    };
    word.parts.iter().map(known).collect()
}
