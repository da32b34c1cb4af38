//! What a program gets although nothing says what it does with it: any of it may be a command or a file (R70).

use writ_core::{Span, Subject};
use writ_shell::{Access, Command, Dir, Part, UnknownUse, UnknownUseKind, Word};

use super::paths::PATH_MAX;
use super::{Survey, hits, text_rules};
use crate::command::Candidate;
use crate::facts::{HostFact, PathFact, PathKind, TEXT_HOST, TextFact, UnresolvedFact};
use crate::protect::{is_client, is_reserved};
use crate::rules::Reading;
use crate::url;

/// Longest text that is looked through.
const MAX_TEXT: usize = 64 << 10;
/// Most pieces of one text that may be paths or commands.
const MAX_PIECES: usize = 256;

/// Words behind which a text's next word is a command.
const RUNS: [&str; 36] = [
    "sy", "pso", "syscmd", "esyscmd", "write18", "pi", "exec", "system", "spawn", "run", "shell", "popen", "do",
    "then", "else", "env", "sudo", "doas", "nohup", "time", "call", "command", "eval", "xargs", "execute", "start",
    "fork", "sh", "bash", "cmd", "-c", "-e", "-exec", "pipe", "script", "!",
];

/// How names of hosts end that are no names of files, modules or types.
const ENDINGS: [&str; 42] = [
    "com", "net", "org", "edu", "gov", "mil", "int", "info", "biz", "io", "dev", "xyz", "example", "test", "invalid",
    "onion", "online", "site", "cloud", "tech", "store", "top", "ru", "cn", "uk", "de", "fr", "eu", "jp", "kr", "br",
    "ca", "ch", "nl", "se", "us", "au", "pw", "su", "club", "live", "zone",
];

impl Survey<'_> {
    pub(super) fn unknown_use(&mut self, given: &UnknownUse) {
        match given.kind {
            UnknownUseKind::Arguments => {
                for at in 0..given.words.len() {
                    self.possible_command(given.words.get(at..).unwrap_or_default(), given.span);
                }
                for word in &given.words {
                    self.commands_in(word);
                    self.possible_paths(word, given, Access::Write);
                    self.possible_hosts(word);
                }
            }
            UnknownUseKind::Option => {
                self.possible_command(&given.words, given.span);
                for word in &given.words {
                    self.commands_in(word);
                    self.possible_paths(word, given, Access::Read);
                    self.possible_hosts(word);
                }
            }
            UnknownUseKind::Operands => {
                for word in &given.words {
                    self.possible_paths(word, given, Access::Read);
                    self.possible_hosts(word);
                }
            }
            UnknownUseKind::Files => {
                given.words.iter().for_each(|word| self.possible_paths(word, given, Access::Write));
            }
            UnknownUseKind::Command => {
                for word in &given.words {
                    let words: Vec<Word> = word
                        .literal()
                        .unwrap_or_default()
                        .split_whitespace()
                        .take(32)
                        .map(|text| Word { parts: vec![Part::Text(text.to_owned())], span: word.span })
                        .collect();
                    self.possible_command(&words, given.span);
                    self.commands_in(word);
                }
            }
            UnknownUseKind::Text => {
                for word in &given.words {
                    let alone = word.literal().is_some_and(|text| !text.contains(char::is_whitespace));
                    if alone {
                        self.possible_command(std::slice::from_ref(word), given.span);
                    }
                    self.commands_in(word);
                    self.paths_in(word, given);
                }
            }
        }
    }

    /// Whether a rule, or what is reserved, could be about a program.
    fn is_interesting(&self, name: &str) -> bool {
        let base = name.rsplit('/').next().unwrap_or_default();
        if base.is_empty() || base.starts_with('-') {
            return false;
        }
        let tools = &self.policy.tools;
        let rules = [&tools.deny, &tools.approval].into_iter();
        let named = |pattern: &str| {
            let program = pattern.split([' ', '*']).next().unwrap_or_default();
            let program = program.rsplit('/').next().unwrap_or_default();
            let open = pattern.get(program.len()..).is_some_and(|rest| rest.starts_with('*'));
            !program.is_empty() && (base == program || (open && base.starts_with(program)))
        };
        base == "writ"
            || is_client(base)
            || rules.flat_map(|rules| text_rules(rules, self.facts.names(), Reading::Wide)).any(|(_, it)| named(it))
    }

    /// A command that may begin here.
    fn possible_command(&mut self, words: &[Word], span: Span) {
        let Some(name) = words.first().and_then(Word::literal).filter(|name| self.is_interesting(name)) else { return };
        let command = Command { words: words.to_vec(), span, via: Vec::new(), dirs: Vec::new(), assigns: false };
        let candidate = Candidate::of(&command);
        let found = hits(self.policy, self.facts.names(), |pattern| candidate.denied_by(pattern).map(|_| false));
        let reserved = is_reserved(&candidate);
        if found.is_empty() && !reserved {
            return;
        }
        let base = name.rsplit('/').next().unwrap_or_default().to_owned();
        self.facts.texts.push(TextFact {
            subject: Subject::Command,
            name: base.clone(),
            place: None,
            span: Some(span),
            hits: found,
            allowed: Some("writ:possible".to_owned()),
            reserved,
            possible: true,
            text: base,
        });
    }

    /// Commands at the places in a text where code has commands.
    fn commands_in(&mut self, word: &Word) {
        let Some(text) = word.literal().filter(|text| text.len() <= MAX_TEXT) else { return };
        let letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@');
        if text.chars().all(letter) {
            return;
        }
        let mut at = 0;
        for piece in text.split(|c| !letter(c)) {
            let start = at;
            at += piece.len();
            let rest = text.get(at..).unwrap_or_default();
            at += rest.chars().next().map_or(0, char::len_utf8);
            if !self.is_interesting(piece) || !is_command_place(text.get(..start).unwrap_or_default()) {
                continue;
            }
            let code = text.get(start..).and_then(|code| code.split(['\n', ';']).next()).unwrap_or_default();
            let quiet = |c: char| if letter(c) || matches!(c, ':' | '=' | '*' | '~' | '$') { c } else { ' ' };
            let plain: String = code.chars().take(1024).map(quiet).collect();
            let part = |text: &str| Word { parts: vec![Part::Text(text.to_owned())], span: word.span };
            let words: Vec<Word> = plain.split_whitespace().take(32).map(part).collect();
            self.possible_command(&words, word.span);
        }
    }

    /// A word, and the sides of it that may be a path.
    fn possible_paths(&mut self, word: &Word, given: &UnknownUse, access: Access) {
        let Some(text) = word.literal().filter(|text| text.len() <= MAX_TEXT) else { return };
        if text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | '<' | '{' | ';')) {
            if !matches!(given.kind, UnknownUseKind::Operands | UnknownUseKind::Files) {
                self.paths_in(word, given);
            }
            return;
        }
        for (place, piece) in sides(&text).into_iter().enumerate() {
            self.possible_path(piece, word.span, &given.dirs, access, place == 0);
        }
    }

    /// A word, or a side of it, that reads as a host's name although nothing says that it is one.
    fn possible_hosts(&mut self, word: &Word) {
        let Some(text) = word.literal().filter(|text| self.policy.domains.any() && text.len() < PATH_MAX) else {
            return;
        };
        let pieces = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';'));
        for piece in pieces.take(MAX_PIECES).flat_map(sides) {
            let name = piece.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
            if !is_host(name) {
                continue;
            }
            let fact = HostFact { host: url::read_host(name), mentioned: false, span: Some(word.span) };
            let there = self.exists(&self.absolute(&self.call.cwd, name));
            if !there && self.policy.domains.refuses(&fact).is_some() {
                let what = name.chars().take(80).collect();
                self.facts.unresolved.push(UnresolvedFact { kind: TEXT_HOST.to_owned(), what, span: Some(word.span) });
                return;
            }
        }
    }

    /// Pieces of a text that may be paths: they only ask.
    fn paths_in(&mut self, word: &Word, given: &UnknownUse) {
        let Some(text) = word.literal().filter(|text| text.len() <= MAX_TEXT) else { return };
        let stop = |c: char| {
            c.is_whitespace()
                || matches!(c, '"' | '\'' | '`' | '(' | ')' | '<' | '>' | '[' | ']' | '{' | '}' | ';' | '|' | '&')
        };
        let pieces = text.split(stop).filter(|piece| piece.contains(['/', '.', '~']));
        for piece in pieces.take(MAX_PIECES) {
            for side in sides(piece) {
                for place in self.folders(&given.dirs, side) {
                    let mut fact = self.path_as_written(&place, Access::Write, word.span);
                    if self.is_named(&fact) {
                        fact.kind = PathKind::Maybe;
                        self.facts.paths.push(fact);
                    }
                }
            }
        }
    }

    fn possible_path(&mut self, piece: &str, span: Span, dirs: &[Dir], access: Access, whole: bool) {
        let bare = !piece.contains(['/', '.', '~']);
        if piece.len() > PATH_MAX || piece.is_empty() || piece.contains("://") || (bare && access == Access::Read) {
            return;
        }
        for place in self.folders(dirs, piece) {
            let mut fact = self.path_as_written(&place, access, span);
            if !whole && !self.is_named(&fact) {
                continue;
            }
            fact = self.path(&place, access, Some(span));
            if !self.is_named(&fact) || (bare && !self.exists(&fact.written)) {
                continue;
            }
            fact.kind = if bare { PathKind::Maybe } else { PathKind::Operand };
            self.facts.paths.push(fact);
        }
    }

    /// Where a path may lie.
    fn folders(&self, dirs: &[Dir], path: &str) -> Vec<String> {
        let base = |dir: &Dir| match dir {
            Dir::Start(dir) => Some(self.absolute(&self.call.cwd, dir)),
            Dir::Open(_) | Dir::Unknown => path.starts_with(['/', '~']).then(|| "/".to_owned()),
        };
        dirs.iter().filter_map(base).map(|base| self.absolute(&base, path)).collect()
    }

    fn path_as_written(&self, place: &str, access: Access, span: Span) -> PathFact {
        let written = crate::world::fold(place);
        let resolved = written.clone();
        PathFact {
            written,
            resolved,
            access,
            tree: false,
            subject: false,
            new: false,
            kind: PathKind::Maybe,
            span: Some(span),
        }
    }
}

/// Whether a word reads as the name of a host.
pub(super) fn is_host(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    ENDINGS.contains(&ending.as_str()) && name.chars().all(plain) && !name.starts_with(['.', '-'])
}

/// Whether what follows this text would be a command, if it is code.
fn is_command_place(before: &str) -> bool {
    let trimmed = before.trim_end_matches([' ', '\t', '"', '\'', '\\']);
    if trimmed.is_empty()
        || trimmed.ends_with([';', '|', '&', '(', '{', '!', '\n', '=', ',', '[', '`', ':', '@', '%', '<'])
    {
        return true;
    }
    let last =
        trimmed.rsplit(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '!'))).next().unwrap_or_default();
    let lower = last.to_ascii_lowercase();
    RUNS.contains(&last)
        || (last.len() > 1 && last.starts_with('-'))
        || ["command", "cmd", "exec", "shell", "hook"].iter().any(|sign| lower.ends_with(sign))
}

/// A word, then what stands behind an option's letter, `=`, `@`, `:` and `,`.
fn sides(text: &str) -> Vec<&str> {
    let mut out = vec![text];
    let mut add = |piece| {
        if out.len() < 32 && !out.contains(&piece) {
            out.push(piece);
        }
    };
    if text.starts_with(['-', '+', '@', '<', '!']) && !text.starts_with("--") {
        add(text.trim_start_matches(['-', '+', '@', '<', '!']));
        add(text.get(2..).unwrap_or_default());
    }
    for (at, _) in text.match_indices(['=', '@', ':', ',']) {
        let rest = text.get(at + 1..).unwrap_or_default();
        add(rest);
        add(rest.split(['=', '@', ':', ',']).next().unwrap_or_default());
    }
    if let Some(first) = text.split([':', ',']).next() {
        add(first);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_commands() {
        for before in ["", "x; ", "os.system(\"", "exec ", "a && ", ":!", "['", "x=", "spawn(\"sh\", [\"-c\", \""] {
            assert!(is_command_place(before), "{before}");
        }
        for before in ["use ", "please do not ", "with\" ", "the program "] {
            assert!(!is_command_place(before), "{before}");
        }
    }

    #[test]
    fn sides_of_words() {
        for (text, side) in [
            ("--file=.env", ".env"),
            ("@.env", ".env"),
            ("-f.env", ".env"),
            ("a:b,.env", ".env"),
            ("x=@.env", ".env"),
            ("host:.env:ro", ".env"),
        ] {
            assert!(sides(text).contains(&side), "{text}: {:?}", sides(text));
        }
    }
}
