//! Commands that end processes which they find by a name or a pattern: whether Writ's own may be among them.
//!
//! Owns what `pkill`, `killall` and `fuser` may mean, and a `kill` of what a search of the same line found. Does not know which
//! process a number is: one that is read from elsewhere is anybody's. Page: `spec/policy.md`.

use writ_core::Span;
use writ_shell::{Analysis, Command, Part, Word};

use crate::command::Candidate;

/// What a process of Writ's is called, and its whole lines.
const NAME: &str = "writ";
const LINES: [&str; 3] = ["writ notary run", "writ hook --client", "writ mcp proxy"];
/// Programs that print what they find of a name, among other things.
const FINDERS: [&str; 13] =
    ["grep", "egrep", "rg", "awk", "gawk", "sed", "cat", "head", "lsof", "fuser", "systemctl", "ss", "ps"];
/// Programs that end, stop or slow the process whose number they are given.
const ENDERS: [&str; 7] = ["kill", "skill", "gdb", "lldb", "prlimit", "renice", "strace"];
/// What ends a unit of systemd's.
const STOPS: [&str; 8] = ["stop", "kill", "disable", "mask", "restart", "try-restart", "freeze", "condstop"];
/// Options of `pkill` and `pgrep` whose value is no pattern.
const VALUES: [&str; 16] = [
    "-u",
    "-U",
    "-G",
    "-P",
    "-g",
    "-s",
    "-t",
    "-F",
    "--euid",
    "--uid",
    "--group",
    "--parent",
    "--pgroup",
    "--session",
    "--terminal",
    "--signal",
];

/// Whether a command ends processes of Writ's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    Others,
    /// It ends every process of a kind, and Writ's may be of that kind.
    Perhaps,
    Own,
}

/// Whether a command may end a process of Writ's.
pub fn ends_own(command: &Command, candidate: &Candidate, analysis: &Analysis) -> Ends {
    let own = match candidate.program() {
        "pkill" => return pattern_of(command).ends(),
        "killall" => kills_all(candidate),
        "skill" if operands(candidate).any(|name| name == NAME) => true,
        "fuser" if flag(candidate, 'k', "--kill") => operands(candidate).any(|text| names_own(&text)),
        "systemctl" | "service" => stops_unit(candidate),
        "kill" if signals_all(command) => return Ends::Perhaps,
        program if ENDERS.contains(&program) => {
            let piped = command.via.iter().any(|via| matches!(via.as_str(), "xargs" | "gxargs" | "parallel"));
            if !piped && command.words.iter().all(|word| word.literal().is_some()) {
                return Ends::Others;
            }
            let through = piped || analysis.commands.iter().any(looks_at_processes);
            analysis.commands.iter().any(|other| {
                let found = Candidate::of(other);
                match found.program() {
                    "pgrep" => pattern_of(other).ends() == Ends::Own,
                    "pidof" => operands(&found).any(|text| names_own(&text)),
                    finder if FINDERS.contains(&finder) && (through || is_inside(other.span, command.span)) => {
                        operands(&found).any(|text| names_own(&text.replace(['[', ']'], "")))
                    }
                    _ => false,
                }
            })
        }
        _ => false,
    };
    if own { Ends::Own } else { Ends::Others }
}

fn operands(candidate: &Candidate) -> impl Iterator<Item = String> {
    candidate.operands().flatten()
}

/// Whether a text has a name of Writ's in it as a word of its own: `write` and `rewrite` are others.
fn names_own(text: &str) -> bool {
    [NAME, "notary"].iter().any(|name| {
        text.match_indices(name).any(|(at, _)| {
            let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
            let (front, behind) = (text.get(..at).unwrap_or_default(), text.get(at + name.len()..).unwrap_or_default());
            !letter(front.chars().next_back()) && !letter(behind.chars().next())
        })
    })
}

/// Whether a command prints processes of this machine, or the names of these.
fn looks_at_processes(command: &Command) -> bool {
    let shows = |part: &Part| {
        let (Part::Text(text) | Part::Glob(text)) = part else { return false };
        text.contains("/proc/") || text.ends_with("/comm") || text.ends_with("/cmdline")
    };
    let program = command.words.first().and_then(Word::literal);
    program.is_some_and(|name| name.rsplit('/').next() == Some("ps"))
        || command.words.iter().any(|word| word.parts.iter().any(shows))
}

fn kills_all(candidate: &Candidate) -> bool {
    let any_case = candidate.flags().iter().any(|flag| flag == "-I" || flag == "--ignore-case");
    let regex = flag(candidate, 'r', "--regexp");
    operands(candidate).any(|name| {
        let name = if any_case { name.to_lowercase() } else { name };
        if regex { may_match(&name, NAME) } else { name.rsplit('/').next() == Some(NAME) }
    })
}

/// `kill -9 -1`: every process that may be signalled.
fn signals_all(command: &Command) -> bool {
    command.words.iter().skip(2).any(|word| word.literal().as_deref() == Some("-1"))
}

fn stops_unit(candidate: &Candidate) -> bool {
    let words: Vec<String> = operands(candidate).collect();
    let unit = |text: &String| names_own(text) || text.contains('*') && may_match(text, "writ-notary.service");
    words.iter().any(|word| STOPS.contains(&word.as_str())) && words.iter().any(unit)
}

/// What `pkill` or `pgrep` looks for.
struct Pattern {
    /// None where it selects by something else alone.
    texts: Vec<String>,
    whole: bool,
    exact: bool,
    any_case: bool,
    inverse: bool,
    by_user: bool,
}

fn pattern_of(command: &Command) -> Pattern {
    let mut out =
        Pattern { texts: Vec::new(), whole: false, exact: false, any_case: false, inverse: false, by_user: false };
    let mut words = command.words.iter().skip(1);
    let mut plain = false;
    let long = |flag: &str, option: &str| flag.len() > 3 && option.starts_with(flag);
    while let Some(word) = words.next() {
        let Some(text) = word.literal() else { continue };
        if plain || !text.starts_with('-') || text.len() < 2 {
            out.texts.push(text);
            continue;
        }
        plain = text == "--";
        let name = text.split('=').next().unwrap_or_default();
        out.by_user |= text.starts_with("-u") || text.starts_with("-U") || name.ends_with("uid");
        if VALUES.contains(&text.as_str()) {
            words.next();
        } else if name.starts_with("--") {
            out.whole |= long(name, "--full");
            out.exact |= long(name, "--exact");
            out.any_case |= long(name, "--ignore-case");
            out.inverse |= long(name, "--inverse");
        } else if !name.contains(|c: char| c.is_ascii_uppercase()) {
            // A signal by its name is no cluster.
            out.whole |= name.contains('f');
            out.exact |= name.contains('x');
            out.any_case |= name.contains('i');
            out.inverse |= name.contains('v');
        }
    }
    out
}

impl Pattern {
    fn ends(&self) -> Ends {
        let everyone = self.inverse || (self.texts.is_empty() && self.by_user);
        if everyone || self.texts.iter().any(String::is_empty) {
            return Ends::Perhaps;
        }
        let texts: &[&str] = if self.whole { &LINES } else { &[NAME] };
        let found = |pattern: &str| {
            // Writ's program may be named by any folder of its own.
            let (folder, own) = pattern.rsplit_once('/').unwrap_or(("", pattern));
            texts.iter().any(|text| match (self.exact, folder.is_empty()) {
                (true, _) => own == *text,
                (false, true) => may_match(own, text),
                (false, false) => own.get(..1).is_some_and(|first| text.starts_with(first)) && may_match(own, text),
            })
        };
        let lower = |pattern: &String| if self.any_case { pattern.to_lowercase() } else { pattern.clone() };
        if self.texts.iter().map(lower).any(|pattern| found(&pattern)) { Ends::Own } else { Ends::Others }
    }
}

/// Whether a pattern may match in a text: what of it is certain stands in the text, in order.
fn may_match(pattern: &str, text: &str) -> bool {
    let grouped = pattern.contains('(');
    let alternatives: Vec<&str> = if grouped { vec![pattern] } else { pattern.split('|').collect() };
    alternatives.into_iter().any(|one| {
        let mut rest = text;
        !one.is_empty()
            && certain(one).iter().all(|piece| match rest.find(piece.as_str()) {
                Some(at) => {
                    rest = rest.get(at + piece.len()..).unwrap_or_default();
                    true
                }
                None => false,
            })
    })
}

/// The pieces of an extended regular expression that stand in whatever it matches.
fn certain(pattern: &str) -> Vec<String> {
    let (mut out, mut depth) = (vec![String::new()], 0usize);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let literal = match c {
            '(' => {
                depth += 1;
                None
            }
            ')' => {
                depth = depth.saturating_sub(1);
                None
            }
            '[' => {
                let set: String = chars.by_ref().skip_while(|c| *c == '^').take_while(|c| *c != ']').collect();
                // `[w]rit` is how a search is kept from finding itself.
                Some(set).filter(|set| set.chars().count() == 1).and_then(|set| set.chars().next())
            }
            '\\' => chars.next().filter(|c| !c.is_alphanumeric()),
            '{' => {
                chars.by_ref().find(|c| *c == '}');
                None
            }
            '.' | '*' | '+' | '?' | '^' | '$' | '|' => None,
            c => Some(c),
        };
        let optional = matches!(chars.peek(), Some('*' | '?' | '{'));
        match (literal.filter(|_| depth == 0 && !optional), out.last_mut()) {
            (Some(c), Some(last)) => last.push(c),
            _ => out.push(String::new()),
        }
    }
    out
}

fn flag(candidate: &Candidate, letter: char, long: &str) -> bool {
    candidate.flags().iter().any(|flag| match flag.strip_prefix("--") {
        Some(_) => flag.len() > 3 && long.starts_with(flag.as_str()),
        // A signal by its name is no cluster.
        None => flag.contains(letter) && !flag.contains(|c: char| c.is_ascii_uppercase()),
    })
}

fn is_inside(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
