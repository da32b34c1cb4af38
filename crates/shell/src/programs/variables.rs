//! Variables that make other programs run code or contact a host: `data/variables.txt`, and `PATH`.

use writ_core::Span;

use crate::action::{NetTarget, Part, UnresolvedKind, Word};
use crate::eval::command::{host, is_system, text_word};
use crate::eval::{Eval, Input};
use crate::options::Options;
use crate::programs::effects;
use crate::programs::foreign::marked;
use crate::programs::runs::{self, Place};

const TABLE: &str = include_str!("../../data/variables.txt");

/// What a variable's value is.
fn role(name: &str) -> Option<&'static str> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" | "));
    lines.into_iter().find_map(|(names, role)| {
        let same = |known: &str| match known.split_once('*') {
            Some((start, end)) => name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
            None => known == name,
        };
        names.split(',').any(same).then_some(role.trim())
    })
}

impl Eval<'_> {
    /// What an assignment does beyond naming a value.
    pub(crate) fn judge_assignment(&mut self, name: &str, values: &[Vec<Vec<Part>>], span: Span) {
        let steers = name.starts_with("BASH_FUNC")
            || (name.starts_with("GIT_CONFIG") && name != "GIT_CONFIG_NOSYSTEM" && !is_null(values))
            || (name == "PATH" && !values.iter().all(|fields| is_tame_path(&fields.concat(), self.home().as_deref())));
        if steers {
            self.unresolved(UnresolvedKind::Environment, name, span);
        }
        if matches!(name, "PS0" | "PS1" | "PS2" | "PS4") {
            values.iter().for_each(|fields| self.again(&fields.concat(), name));
        }
        let Some(role) = role(name) else { return };
        for fields in values {
            let value = Word { parts: fields.concat(), span };
            if !value.parts.is_empty() {
                self.variable(name, role, &value);
            }
        }
    }

    fn variable(&mut self, name: &str, role: &'static str, value: &Word) {
        let span = value.span;
        match role.split_once(' ').unwrap_or((role, "")) {
            ("s", _) => self.code(value, None, name),
            ("S", _) => {
                self.code(value, None, name);
                if value.literal().is_none_or(|text| text.contains('/') && !is_system(&text)) {
                    self.unresolved(UnresolvedKind::Environment, name, span);
                }
            }
            ("pipe", _) => {
                let text = marked(value);
                let code = text.trim_start_matches(['|', '-']).replace("%s", "");
                self.code(&crate::programs::foreign::revived(&code, span), None, name);
            }
            ("x", _) => self.unresolved(UnresolvedKind::Environment, name, span),
            ("~", signs) => {
                let text = value.literal();
                if text.is_none_or(|text| signs.split(',').any(|sign| text.contains(sign))) {
                    self.unresolved(UnresolvedKind::Environment, name, span);
                }
            }
            ("o", program) => {
                let Some(program_line) = runs::lookup(program) else { return };
                let words: Vec<Word> = match value.literal() {
                    Some(text) => split(&text).iter().map(|piece| text_word(piece, span)).collect(),
                    None => return self.unresolved(UnresolvedKind::Environment, name, span),
                };
                let options = Options::read(&words, program_line.options, true);
                effects::options(self, &options, &Place { base: program, via: &[], span, input: &Input::None });
            }
            ("u", _) => match value.literal() {
                None => self.net(NetTarget::Unknown, span),
                Some(text) => {
                    text.split([',', '|']).filter(|text| !matches!(*text, "" | "direct" | "off")).for_each(|text| {
                        if text.contains("://") {
                            self.net(NetTarget::Url(text_word(text, span)), span);
                        } else if !text.starts_with('/') {
                            self.net(host(text.split([':', '/']).next().unwrap_or_default(), span), span);
                        }
                    })
                }
            },
            _ => {}
        }
    }
}

/// Words as `MAKEFLAGS` and its like hold them: blanks part, quotes keep together.
fn split(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quote = None;
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '\'' | '"' if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            c if c.is_whitespace() && quote.is_none() && depth == 0 => out.push(String::new()),
            _ => {
                depth = if c == '(' { depth + 1 } else { depth.saturating_sub(usize::from(c == ')')) };
                if let Some(last) = out.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

fn is_null(values: &[Vec<Vec<Part>>]) -> bool {
    values
        .iter()
        .all(|fields| matches!(fields.concat().as_slice(), [Part::Text(text)] if text == "/dev/null" || text == "1"))
}

/// Folders a `PATH` may name without changing what everyday commands mean: the system's, the home directory's, and those
/// behind `$PATH` itself.
fn is_tame_path(parts: &[Part], home: Option<&str>) -> bool {
    const TAME: [&str; 9] = [
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/sbin",
        "/usr/sbin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
        "/usr/lib",
        "/usr/local",
    ];
    for part in parts {
        let Part::Text(text) = part else { return true };
        for folder in text.split(':').filter(|folder| !folder.is_empty()) {
            let at_home = home.is_some_and(|home| {
                folder.strip_prefix(home).is_some_and(|rest| rest.starts_with("/.") || rest.starts_with("/go/"))
            });
            let tame = TAME
                .iter()
                .any(|tame| folder == *tame || folder.strip_prefix(tame).is_some_and(|rest| rest.starts_with('/')));
            if folder.contains("..") || !(tame || at_home) {
                return false;
            }
        }
    }
    true
}
