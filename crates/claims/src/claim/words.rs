//! The small change of Markdown and English: bullets, symbols, words that stand for nothing or are no file's name.

/// Words that say the list is empty.
const NOTHING: &[&str] = &[
    "none",
    "nothing",
    "n/a",
    "na",
    "nil",
    "null",
    "empty",
    "zero",
    "no",
    "not applicable",
    "n.a",
    "none changed",
    "no-op",
];

/// Single words that people write in a list of files and that name no file.
const NO_NAME: &[&str] = &[
    "a",
    "above",
    "all",
    "also",
    "an",
    "and",
    "and/or",
    "any",
    "as",
    "below",
    "both",
    "but",
    "code",
    "configuration",
    "complete",
    "dependencies",
    "documentation",
    "done",
    "e.g",
    "etc",
    "everything",
    "few",
    "file",
    "filename",
    "files",
    "following",
    "for",
    "from",
    "here",
    "i",
    "i.e",
    "i/o",
    "in",
    "it",
    "later",
    "list",
    "many",
    "misc",
    "more",
    "most",
    "multiple",
    "my",
    "not",
    "of",
    "on",
    "only",
    "or",
    "other",
    "others",
    "path",
    "paths",
    "pending",
    "same",
    "see",
    "several",
    "some",
    "something",
    "tbd",
    "test",
    "tests",
    "that",
    "the",
    "them",
    "these",
    "this",
    "those",
    "to",
    "todo",
    "true",
    "false",
    "unchanged",
    "unknown",
    "untouched",
    "various",
    "was",
    "we",
    "were",
    "wip",
    "with",
    "yes",
];

/// What a remark on a changed file opens with.
const CHANGE: &[&str] = &[
    "new",
    "newly",
    "added",
    "adds",
    "add",
    "created",
    "modified",
    "updated",
    "edited",
    "changed",
    "deleted",
    "removed",
    "renamed",
    "moved",
    "fixed",
    "refactored",
    "rewritten",
    "rewrote",
    "extended",
    "dropped",
    "wrote",
    "written",
    "reworked",
    "touched",
    "line",
    "lines",
    "lint",
    "formatted",
];

/// What a remark opens with that takes the claim back.
const RETRACTIONS: &[&str] = &[
    "unchanged",
    "untouched",
    "unmodified",
    "no change",
    "not changed",
    "not modified",
    "not created",
    "not written",
    "not touched",
    "not edited",
    "not updated",
    "not added",
    "not needed",
    "not done",
    "not implemented",
    "not found",
    "not yet",
    "todo",
    "to do",
    "to be ",
    "tbd",
    "pending",
    "planned",
    "skipped",
    "will be",
    "would be",
    "should be",
    "was not",
    "is not",
    "has not",
    "wasn't",
    "read only",
    "read-only",
    "only read",
    "still needs",
    "does not exist",
    "already exist",
    "missing",
];

/// Names that are files although they have neither a folder nor an extension.
const NAMES: &[&str] = &[
    "makefile",
    "gnumakefile",
    "dockerfile",
    "containerfile",
    "license",
    "licence",
    "copying",
    "notice",
    "readme",
    "changelog",
    "contributing",
    "codeowners",
    "gemfile",
    "rakefile",
    "procfile",
    "vagrantfile",
    "jenkinsfile",
    "justfile",
    "brewfile",
    "podfile",
    "fastfile",
    "agentfile",
    "go.mod",
    "go.sum",
    "py.typed",
];

pub(super) fn among(words: &[&str], text: &str) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Whether a whole entry says that there is nothing.
pub(super) fn nothing(text: &str) -> bool {
    let word = text.trim_matches(|c: char| !c.is_alphanumeric());
    if word.is_empty() {
        return !text.trim().starts_with(['*', '?', '.', '…', '~', '/', '\\']);
    }
    if among(NOTHING, word) {
        return true;
    }
    // `none (read-only task)`, `None - only research`, `no files were changed`.
    let (first, rest) = word.split_once(|c: char| c.is_whitespace() || ":;,(".contains(c)).unwrap_or((word, ""));
    let next = rest.trim_start().split(char::is_whitespace).next().unwrap_or_default();
    let next = next.trim_matches(|c: char| c.is_ascii_punctuation());
    match first.to_ascii_lowercase().as_str() {
        "none" | "n/a" | "nothing" => true,
        "no" => among(
            &[
                "file",
                "files",
                "change",
                "changes",
                "code",
                "source",
                "modifications",
                "edits",
                "other",
                "further",
                "more",
            ],
            next,
        ),
        _ => false,
    }
}

/// Whether a single word names no file, for all that it stands where a file should.
pub(super) fn names_nothing(word: &str) -> bool {
    if is_ticket(word) || is_release(word) {
        return true;
    }
    let number = word
        .trim_start_matches('v')
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-' | '%' | '/'));
    number || among(NO_NAME, word) || among(CHANGE, word)
}

/// `JIRA-123`.
fn is_ticket(word: &str) -> bool {
    word.split_once('-').is_some_and(|(project, number)| {
        let key = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
        project.len() > 1
            && project.starts_with(|c: char| c.is_ascii_uppercase())
            && project.chars().all(key)
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
    })
}

/// `requests==2.32.0`, `react@18`, `serde~=1.0`: a package with its version.
fn is_release(word: &str) -> bool {
    let version = |text: &str| text.trim_start_matches(['^', '~', 'v', '=']).starts_with(|c: char| c.is_ascii_digit());
    let at = |mark: &str| word.rsplit_once(mark).is_some_and(|(name, rest)| !name.is_empty() && version(rest));
    at("==")
        || at("~=")
        || (at("@")
            && !word.contains('/')
            && !word.rsplit_once('@').is_some_and(|(_, rest)| rest.chars().any(char::is_alphabetic)))
}

/// Whether the word is one that remarks open with, such as `added` or `lines`.
pub(super) fn is_change(word: &str) -> bool {
    among(CHANGE, word.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// Whether a remark says that the file was not changed after all.
pub(super) fn retracts(remark: &str) -> bool {
    let remark = remark.trim_start_matches(|c: char| !c.is_alphanumeric());
    RETRACTIONS.iter().any(|phrase| remark.get(..phrase.len()).is_some_and(|head| head.eq_ignore_ascii_case(phrase)))
}

/// Whether the name is a file's by itself.
pub(super) fn known_name(name: &str) -> bool {
    among(NAMES, name)
}

/// Arrows, dingbats and pictures: decoration wherever they stand at an end.
pub(super) fn is_symbol(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}' | '\u{200d}')
}

/// What stands behind a bullet, a number or a lone dash; `None` without one.
pub(super) fn bullet(body: &str) -> Option<&str> {
    let rest = body.strip_prefix(['-', '*', '+', '•', '‣', '▪', '◦', '·', '–', '—']).or_else(|| {
        let rest = body.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = body.len() - rest.len();
        if (1..=9).contains(&digits) { rest.strip_prefix(['.', ')']) } else { None }
    })?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest)
}

/// The close of a quote that opens with `c`.
pub(super) const fn closing_quote(c: char) -> Option<char> {
    match c {
        '`' | '"' | '\'' => Some(c),
        '“' => Some('”'),
        '‘' => Some('’'),
        '«' => Some('»'),
        '„' => Some('“'),
        _ => None,
    }
}
