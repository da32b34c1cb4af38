//! Bytes → an [`Agent`] and what is wrong with them.
//!
//! Owns blocks, unknown names, the later dialect. Never fails: what cannot be read is a finding, and the rest of the file is read all
//! the same. Invariant: without an error among the findings, every line of the file is blank, a comment, in a block, or an entry.
//! Page: `spec/agentfile.md`.

use writ_core::visible;

use crate::agent::{Agent, Entry};
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::directive::{self, Block, DIRECTIVES, Directive, Sop, known};
use crate::lines::{Line, Token, lines, readable};
use crate::reference::is_name;

/// Names of the later dialect (R60).
const LATER: [&str; 2] = ["IDENTITY", "CAPABILITY"];
/// Most findings of one file: more would tell nothing.
const MAX_FOUND: usize = 1000;

/// What is read beyond the specification.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Vendors whose `X-<vendor>-<NAME>` directives may stand in the file.
    pub extensions: Vec<String>,
}

/// Reads an Agentfile. `name` is what messages call it.
pub fn parse(bytes: &[u8], name: &str) -> (Agent, Vec<Diagnostic>) {
    parse_with(bytes, name, &Options::default())
}

/// The same, with extensions.
pub fn parse_with(bytes: &[u8], name: &str, options: &Options) -> (Agent, Vec<Diagnostic>) {
    let mut agent = Agent { file: name.to_owned(), ..Agent::default() };
    let text = match readable(bytes) {
        Ok(text) => text,
        Err(error) => return (agent, vec![error]),
    };
    text.clone_into(&mut agent.text);
    let mut reader = Reader { options, agent, found: Vec::new(), open: None, unseen: false };
    for line in lines(text) {
        if reader.found.len() > MAX_FOUND {
            break;
        }
        reader.line(&line);
    }
    if let Some(open) = reader.open.take() {
        let message = format!("the block of `{}` is not closed", open.keyword.text);
        let help = "a line with `END` alone closes it";
        reader.found.push(Diagnostic::error("unterminated-block", open.keyword.place, message, help));
    }
    (reader.agent, reader.found)
}

/// A block that is being read.
struct Open {
    keyword: Token,
    words: Vec<Token>,
    block: Block,
    /// Lines that look like its end, which are told once it has another.
    unclear: Vec<Diagnostic>,
}

struct Reader<'a> {
    options: &'a Options,
    agent: Agent,
    found: Vec<Diagnostic>,
    open: Option<Open>,
    /// Whether letters that are not seen were told of a procedure.
    unseen: bool,
}

impl Reader<'_> {
    fn line(&mut self, line: &Line<'_>) {
        if let Some(open) = &mut self.open {
            line.check_nul(&mut self.found);
            if open.words.is_empty() {
                line.check_unseen(Severity::Error, &mut self.found);
            } else if !self.unseen {
                // A procedure may be in a language that is written from right to left. Told once: many findings end the reading.
                let before = self.found.len();
                line.check_unseen(Severity::Warning, &mut self.found);
                self.unseen = self.found.len() > before;
            }
            if line.text.trim_matches([' ', '\t']) == "END" {
                self.close();
            } else {
                if looks_like_end(line.text) {
                    let message = "this line looks like `END`, and is one of the block's";
                    let help =
                        "`END` alone on its line closes the block; write the line in another way if it is to stay";
                    open.unclear.push(Diagnostic::error("unclear-end", line.whole(), message, help));
                }
                open.block.text.push_str(line.text);
                open.block.text.push('\n');
            }
            return;
        }
        let tokens = line.tokens();
        if tokens.is_empty() {
            line.check(&[], &mut self.found);
            self.comment(line);
            return;
        }
        let before = self.found.len();
        line.check(&tokens, &mut self.found);
        let Some((keyword, words)) = tokens.split_first() else { return };
        // A line that is no line of words has said enough.
        if self.found.len() > before && keyword.text != "POLICY" {
            return;
        }
        self.directive(line, keyword, words);
    }

    /// `# syntax=agentrc.agentfile/v0.1`
    fn comment(&mut self, line: &Line<'_>) {
        let Some(version) =
            line.comment().and_then(|comment| comment.trim_start_matches('#').trim_start().strip_prefix("syntax="))
        else {
            return;
        };
        let version = version.trim();
        if self.agent.syntax.is_none() && self.agent.entries.is_empty() {
            if version != SYNTAX {
                let message = format!("the file says it is `{}`", version.chars().take(60).collect::<String>());
                let help = format!("what is read here is `{SYNTAX}`");
                self.found.push(Diagnostic::warning("syntax-version", line.whole(), message, help));
            }
            self.agent.syntax = Some(version.to_owned());
        }
    }

    fn directive(&mut self, line: &Line<'_>, keyword: &Token, words: &[Token]) {
        match keyword.text.as_str() {
            "END" => {
                let help = if words.is_empty() {
                    "take it out: no block is open"
                } else {
                    "`END` stands alone on its line, and closes a block"
                };
                self.found.push(Diagnostic::error("stray-end", keyword.place, "`END` without a block", help));
            }
            "POLICY" => self.policy(line, keyword, words),
            "SOP" if words.len() == 1 && words.first().is_some_and(|word| !directive::sop_is_reference(&word.text)) => {
                if !words.first().is_some_and(|word| is_name(&word.text)) {
                    let place = words.first().map_or(keyword.place, |word| word.place);
                    self.found.push(Diagnostic::error(
                        "bad-name",
                        place,
                        "a procedure's name has letters, digits, `_`, `.`, `-`",
                        "`SOP code-review`",
                    ));
                }
                self.begin(line, keyword, words);
            }
            name if name.starts_with("X-") => self.extension(keyword, words),
            name if LATER.contains(&name) => self.later(keyword.place, &format!("`{name}`")),
            name if known(name).is_some() => match directive::read(keyword, words) {
                Ok(directive) => self.push(directive, keyword.clone(), words.to_vec()),
                Err(error) => self.found.push(error),
            },
            name => {
                let help = unknown_help(name);
                let message = format!("unknown directive `{}`", name.chars().take(60).collect::<String>());
                self.found.push(Diagnostic::error("unknown-directive", keyword.place, message, help));
            }
        }
    }

    fn policy(&mut self, line: &Line<'_>, keyword: &Token, words: &[Token]) {
        match words {
            [] => self.begin(line, keyword, words),
            [first, ..] => self.later(first.place, "`POLICY` with words behind it"),
        }
    }

    fn later(&mut self, place: Place, what: &str) {
        let message = format!("{what} belongs to a later dialect than 0.1.0-draft.4, which is the one read here");
        let help =
            "0.1.0-draft.4 declares with `AGENT`, `TOOL`, `MOUNT`, `URL`, `CRED`, and `POLICY … END` blocks of Cedar";
        self.found.push(Diagnostic::error("later-dialect", place, message, help));
    }

    fn extension(&mut self, keyword: &Token, words: &[Token]) {
        let parts = keyword.text.strip_prefix("X-").and_then(|rest| rest.rsplit_once('-'));
        let upper = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        };
        let Some((vendor, _)) = parts.filter(|(vendor, name)| is_name(vendor) && upper(name)) else {
            let message = format!("`{}` is no extension", keyword.text);
            self.found.push(Diagnostic::error("unknown-directive", keyword.place, message, "`X-<vendor>-<NAME>`"));
            return;
        };
        if !self.options.extensions.iter().any(|known| known == vendor) {
            let help = format!("`--extension {vendor}` takes them as they are; nothing of Writ acts on them");
            let message = format!("extensions of `{vendor}` are not enabled");
            self.found.push(Diagnostic::error("unknown-directive", keyword.place, message, help));
            return;
        }
        let arguments = words.iter().map(|word| word.text.clone()).collect();
        self.push(Directive::Extension { name: keyword.text.clone(), arguments }, keyword.clone(), words.to_vec());
    }

    fn begin(&mut self, line: &Line<'_>, keyword: &Token, words: &[Token]) {
        // The body begins behind the line's end, which is one byte or two.
        let end = line.start + line.text.len();
        let start = self
            .agent
            .text
            .get(end..)
            .and_then(|rest| rest.find('\n'))
            .map_or(self.agent.text.len(), |at| end + at + 1);
        let block = Block { text: String::new(), first_line: line.number + 1, start };
        self.open = Some(Open { keyword: keyword.clone(), words: words.to_vec(), block, unclear: Vec::new() });
    }

    fn close(&mut self) {
        let Some(Open { keyword, words, block, unclear }) = self.open.take() else { return };
        self.found.extend(unclear);
        let directive = match words.first() {
            None => Directive::Policy(block),
            Some(name) => Directive::Sop(Sop::Inline { name: name.text.clone(), block }),
        };
        self.push(directive, keyword, words);
    }

    fn push(&mut self, directive: Directive, keyword: Token, words: Vec<Token>) {
        self.agent.entries.push(Entry { directive, keyword, words });
    }
}

/// The version of the syntax that is read.
pub const SYNTAX: &str = "agentrc.agentfile/v0.1";

/// Whether a line of a block shows as the word that closes it, and is another text: blanks of other scripts, letters that are not seen, a
/// comment behind it.
fn looks_like_end(text: &str) -> bool {
    let seen: String = text.chars().filter(|c| !c.is_whitespace() && !visible::is_unseen(*c)).collect();
    seen == "END" || seen.starts_with("END#")
}

fn unknown_help(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    if let Some(known) = known(&upper) {
        return format!("directives are written in capitals: `{}`", known.name);
    }
    // A missing space: `TOOLutcp:a`.
    let glued = DIRECTIVES.iter().find_map(|known| Some((known.name, name.strip_prefix(known.name)?)));
    if let Some((known, rest)) = glued.filter(|(_, rest)| !rest.starts_with(|c: char| c.is_ascii_uppercase())) {
        return format!(
            "white space stands between a directive and its words: `{known} {}`",
            rest.trim_start_matches(':')
        );
    }
    let near = DIRECTIVES.iter().map(|known| (strsim::damerau_levenshtein(&upper, known.name), known.name)).min();
    match near {
        Some((distance, near)) if distance <= 2 => format!("did you mean `{near}`?"),
        _ => "the directives are in `spec/agentfile.md`; others are `X-<vendor>-<NAME>`, where enabled".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unseen(text: &str) -> Vec<(Severity, usize, usize)> {
        let (_, found) = parse(text.as_bytes(), "Agentfile");
        let told = found.into_iter().filter(|one| one.code == "unseen-character");
        told.map(|one| (one.severity, one.place.line, one.place.column)).collect()
    }

    /// Who reads a file sees where a block ends.
    #[test]
    fn a_line_that_shows_as_the_end_of_a_block_is_told() {
        let told = |line: &str| {
            let (_, found) = parse(format!("SOP x\nhi\n{line}\nmore\nEND\n").as_bytes(), "Agentfile");
            found.iter().filter(|one| one.code == "unclear-end" && one.is_error() && one.place.line == 3).count()
        };
        for line in ["END\u{a0}", "\u{2003}END", "END\u{200d}", "E\u{200b}ND", "END # done", "END#"] {
            assert_eq!(told(line), 1, "{line:?}");
        }
        for line in ["END", "\tEND ", "End", "THE END", "END.", "ENDED", "# END", "end of it"] {
            assert_eq!(told(line), 0, "{line:?}");
        }
    }

    /// What people see of a file is what is read of it.
    #[test]
    fn letters_that_are_not_seen_are_told() {
        for c in ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}', '\u{2028}', '\u{200b}', '\u{feff}', '\u{e0041}'] {
            assert_eq!(unseen(&format!("AGENT a\n# x{c}y\n")), [(Severity::Error, 2, 4)], "{c:?}");
            assert_eq!(unseen(&format!("AGENT a # {c}\n")), [(Severity::Error, 1, 11)], "{c:?}");
            assert_eq!(unseen(&format!("AGENT a{c}\n")), [(Severity::Error, 1, 8)], "{c:?}");
            assert_eq!(
                unseen(&format!("POLICY\n// {c}\n\"{c}\"\nEND\n")),
                [(Severity::Error, 2, 4), (Severity::Error, 3, 2)]
            );
            assert_eq!(unseen(&format!("SOP x\nhi\n{c}{c}\n{c}\nEND\n")), [(Severity::Warning, 3, 1)]);
        }
        for text in ["\u{feff}AGENT a\n", "# Grüße, 日本 👩\u{200d}🚀 שלום\n", "SOP x\nن\u{200c}م\nEND\n"]
        {
            assert_eq!(unseen(text), [], "{text}");
        }
        // Many of them hide no directive behind them.
        let many = "SOP x\n\u{200f}\nEND\n".repeat(2 * MAX_FOUND);
        let (agent, found) = parse(format!("{many}AGENT a\n").as_bytes(), "Agentfile");
        assert!(agent.name() == Some("a") && found.len() == 1, "{found:?}");
    }
}
