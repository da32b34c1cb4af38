//! Command patterns against commands: certain, possible or no match.
//!
//! `deny` and `requireApproval` read wide: by the text, by the program's base name, and by what the command means whatever
//! its spelling ([`writ_shell::normal`]). `allow` reads narrow: the text, and a program found where the system keeps its own, or exactly
//! where the pattern says.
//! Page: `spec/policy.md`.

use writ_core::Span;
use writ_shell::{Command, Normal, Part, Word, normal};

use crate::rules::text_matches;

/// Stands for text that is not known, in a text that is otherwise literal. No pattern's literal part can match it.
const UNKNOWN: &str = "\u{1}";
/// Stands for what is blank inside of a word.
const BLANK: &str = "\u{2}";

/// Folders whose programs go by their base name also in `allow`.
const SYSTEM: [&str; 6] = ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// Builtins that do nothing by themselves; `allow` lists need not name them.
const HARMLESS: [&str; 24] = [
    "cd", "pushd", "popd", "true", "false", ":", "test", "[", "[[", "pwd", "exit", "return", "set", "unset", "export",
    "local", "declare", "typeset", "readonly", "shift", "echo", "printf", "wait", "read",
];

/// Wrappers that only run what they wrap, as the same user on the same machine.
const TRANSPARENT: [&str; 12] =
    ["env", "timeout", "nice", "nohup", "time", "command", "builtin", "stdbuf", "ionice", "xargs", "setsid", "exec"];

/// A command made ready for comparing.
pub struct Candidate {
    /// Words joined by single spaces, unknown parts replaced.
    text: String,
    /// The same with the program's base name.
    base_text: String,
    /// What follows the program, with another sign for what is blank inside of a word.
    rest: String,
    normal: Normal,
    known_program: bool,
    /// Some of its text is not known.
    open: bool,
    /// Which file a program is that is named by its path: by its name, and where that leads.
    places: Vec<String>,
}

/// Whether the program is named by a path, and not one of a folder where the system keeps its own.
pub fn is_by_path(program: &str) -> bool {
    program.rsplit_once('/').is_some_and(|(folder, _)| !SYSTEM.contains(&folder))
}

impl Candidate {
    /// Reads a command once, for any number of rules.
    pub fn of(command: &Command) -> Self {
        let text = join(&command.words);
        let first = text.split(' ').next().unwrap_or_default();
        let base_text = match first.rsplit_once('/') {
            Some((_, base)) => format!("{base}{}", text.get(first.len()..).unwrap_or_default()),
            None => text.clone(),
        };
        let words = command.words.iter().skip(1).map(|word| {
            let word = join(std::slice::from_ref(word));
            format!(" {}", word.replace(char::is_whitespace, BLANK))
        });
        let rest = words.collect();
        // A name with a blank in it would be another one, and an argument, to a pattern.
        let plain = |name: String| !name.contains(char::is_whitespace);
        let known_program = command.words.first().and_then(Word::literal).is_some_and(plain);
        let open = base_text.contains(UNKNOWN);
        Self { text, base_text, rest, normal: normal(&command.words), known_program, open, places: Vec::new() }
    }

    /// The same where it is known which file the program is.
    pub fn at(self, places: Vec<String>) -> Self {
        Self { places, ..self }
    }

    /// The command as the shell would run it, for the answer.
    pub fn text(&self) -> String {
        self.text.replace(UNKNOWN, "…")
    }

    /// The same with another name of the program.
    pub fn text_as(&self, program: &str) -> String {
        format!("{program}{}", self.arguments()).replace(UNKNOWN, "…")
    }

    fn first(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    fn arguments(&self) -> &str {
        self.text.get(self.first().len()..).unwrap_or_default()
    }

    /// The program's base name; empty when it is not known.
    pub fn program(&self) -> &str {
        &self.normal.program
    }

    /// What follows the program and is no flag; `None` for what is not known.
    pub fn operands(&self) -> impl Iterator<Item = Option<String>> {
        self.normal.operands.iter().map(Word::literal)
    }

    /// Its flags, in one spelling each.
    pub fn flags(&self) -> &[String] {
        &self.normal.flags
    }

    /// Wide: `Some(true)` for a certain match, `Some(false)` for a possible one.
    pub fn denied_by(&self, pattern: &str) -> Option<bool> {
        let based = self.text.len() != self.base_text.len() && line_matches(pattern, &self.base_text);
        if based || line_matches(pattern, &self.text) || self.means(pattern) {
            return Some(true);
        }
        (self.known_program && self.might_be(pattern)).then_some(false)
    }

    /// Wide: whether it is the file that a pattern names, by a path, which is absolute, or by the name of what it leads to.
    pub fn is_denied_at(&self, pattern: &str) -> Option<bool> {
        // By the name of what a link leads to, too.
        let base = |place: &String| place.rsplit('/').next().unwrap_or_default().to_owned();
        let bases = self.places.iter().map(base).filter(|base| *base != self.normal.program);
        let mut names = self.places.iter().cloned().chain(bases);
        names.any(|name| line_matches(pattern, &format!("{name}{}", self.arguments()))).then_some(true)
    }

    /// Whether it may be the file that a pattern names by a path: by the last name alone, before anybody looks at a disk.
    pub fn may_lie_at(&self, pattern: &str) -> bool {
        let named = pattern.split(' ').next().unwrap_or_default();
        let name = named.rsplit('/').next().unwrap_or_default();
        name.contains('*') && !self.places.is_empty() || self.places.iter().any(|place| place.ends_with(name))
    }

    /// Narrow: certainly exactly this, whatever the unknown parts become. A path in the pattern is absolute.
    pub fn allowed_by(&self, pattern: &str) -> bool {
        let program = self.first();
        if !self.known_program {
            return false;
        }
        if is_by_path(program) {
            return pattern.starts_with('/') && self.places.iter().any(|place| self.is_exactly(pattern, place));
        }
        let base = program.rsplit('/').next().unwrap_or_default();
        self.is_exactly(pattern, base) || program.contains('/') && self.is_exactly(pattern, program)
    }

    /// Whether it is what the pattern says, with this name of the program. A blank in a pattern parts words.
    fn is_exactly(&self, pattern: &str, program: &str) -> bool {
        line_matches(pattern, &format!("{program}{}", self.rest))
            || !pattern.contains('*') && pattern == format!("{program}{}", self.arguments())
    }

    /// Whether an `allow` list need not name it.
    pub fn is_harmless(&self) -> bool {
        self.text == self.base_text && HARMLESS.contains(&self.program())
    }

    /// Whether it only runs another command that is judged by itself.
    pub fn is_wrapper_of(&self, own: &Command, others: &[Command]) -> bool {
        let inside = |span: Span| span.start >= own.span.start && span.end <= own.span.end;
        let wraps = |other: &&Command| other.via.iter().any(|via| via == self.program()) && inside(other.span);
        TRANSPARENT.contains(&self.program()) && others.iter().any(|other| wraps(&other))
    }

    /// By meaning: the same program, all the pattern's flags, its operands in front.
    fn means(&self, pattern: &str) -> bool {
        // Most patterns name a program that begins with another letter.
        let (first, own) = (pattern.as_bytes().first(), self.normal.program.as_bytes().first());
        if first != own && first.is_some_and(u8::is_ascii_alphanumeric) && !pattern.as_bytes().contains(&b'/') {
            return false;
        }
        let named = pattern.split(|c: char| c.is_whitespace() || c == '*').next().unwrap_or_default();
        let named = named.rsplit('/').next().unwrap_or_default();
        if !self.normal.program.starts_with(named) {
            return false;
        }
        let Some(rule) = Meaning::of(pattern) else { return false };
        if self.normal.program.is_empty() || !text_matches(&rule.normal.program, &self.normal.program) {
            return false;
        }
        if !rule.normal.flags.iter().all(|flag| self.normal.flags.contains(flag)) {
            return false;
        }
        let last = rule.normal.operands.len().saturating_sub(1);
        rule.normal.operands.iter().enumerate().all(|(at, want)| {
            let (Some(want), Some(have)) = (want.literal(), self.normal.operands.get(at).and_then(Word::literal))
            else {
                return false;
            };
            if at == last && rule.open { text_matches(&format!("{want}*"), &have) } else { text_matches(&want, &have) }
        })
    }

    /// Whether some value of the unknown parts would make it match.
    fn might_be(&self, pattern: &str) -> bool {
        self.open && meet(pattern, &self.base_text)
    }
}

/// A pattern's words, and whether it goes on after them.
struct Meaning {
    normal: Normal,
    /// The pattern ends in `*`: its last word is only a beginning.
    open: bool,
}

impl Meaning {
    fn of(pattern: &str) -> Option<Self> {
        let open = pattern.ends_with('*') && !pattern.ends_with(" *");
        let body = pattern.trim_end_matches('*').trim_end();
        let words: Vec<Word> = body
            .split_whitespace()
            .map(|word| Word { parts: vec![Part::Text(word.to_owned())], span: Span { start: 0, end: 0 } })
            .collect();
        let only_program = words.len() == 1;
        // `curl*` is a beginning of a program's name, which the text comparison has already dealt with.
        if words.is_empty() || (only_program && open) {
            return None;
        }
        Some(Self { normal: normal(&words), open })
    }
}

/// R12: `*` matches any text, and a trailing ` *` also matches the bare command.
fn line_matches(pattern: &str, text: &str) -> bool {
    text_matches(pattern, text) || pattern.strip_suffix(" *").is_some_and(|bare| text_matches(bare, text))
}

fn join(words: &[Word]) -> String {
    let mut out = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        for part in &word.parts {
            match part {
                Part::Text(text) | Part::Glob(text) => out.push_str(text),
                Part::Unknown(_) => out.push_str(UNKNOWN),
            }
        }
    }
    out
}

/// Whether pattern and text, `*` and unknown parts being any text, have something in common. |pattern| × |text| steps.
fn meet(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().take(512).collect());
    let mut below: Vec<bool> = Vec::new();
    for i in (0..=pattern.len()).rev() {
        let mut row = vec![false; text.len() + 1];
        for j in (0..=text.len()).rev() {
            let at = |row: &[bool], j: usize| row.get(j).copied().unwrap_or(false);
            let common = match (pattern.get(i), text.get(j)) {
                (None, None) => true,
                (Some('*'), None) => at(&below, j),
                (None, Some('\u{1}')) => at(&row, j + 1),
                (Some('*'), Some(_)) | (Some(_), Some('\u{1}')) => at(&below, j) || at(&row, j + 1),
                (Some(a), Some(b)) => a == b && at(&below, j + 1),
                (Some(_), None) | (None, Some(_)) => false,
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = common;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}
