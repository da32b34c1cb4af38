//! Policies in an editor: what is wrong with one, what a member is for, what could stand there.
//!
//! Everything comes from the table that parsing uses ([`writ_policy::lookup`]) and from parsing itself. A text that is being typed is no JSON:
//! where one stands in it is found by reading it from its beginning ([`Place`]), which refuses nothing.

use std::fs;
use std::io::Read;
use std::path::Path;

use writ_core::Span;
use writ_core::json::{self, locate};
use writ_policy::{Policy, lookup};

use super::{Document, Finding, Hovered, Kind, Level, Suggestion};

/// Largest file that a policy names.
const MAX_FILE: u64 = 4 << 20;
/// The lists whose entries are tools.
const TOOL_LISTS: [&str; 5] =
    ["/tools/allow", "/tools/deny", "/tools/requireApproval", "/identity/requiredTools", "/identity/deniedTools"];

/// A policy.
#[derive(Clone, Copy, Debug)]
pub struct Aflock;

impl Kind for Aflock {
    fn is(&self, name: &str, language: &str) -> bool {
        language == "aflock" || name == ".aflock" || name.ends_with(".aflock") || name == ".aflock.json"
    }

    fn check(&self, document: &Document<'_>) -> Vec<Finding> {
        let root = document.path.and_then(Path::parent).unwrap_or(Path::new("/"));
        let policy = match Policy::parse(document.text.as_bytes(), &root.to_string_lossy()) {
            Ok(policy) => policy,
            Err(error) => return error.problems().iter().map(finding).collect(),
        };
        let mut out = Vec::new();
        if document.path.is_some()
            && let Err(error) = policy.check_files_by(
                document.text.as_bytes(),
                |file| read(&root.join(file)),
                |bytes, root| {
                    if writ_agentfile::is_agentfile(bytes) {
                        writ_agentfile::policy(bytes, "Agentfile", root)
                    } else {
                        Policy::parse(bytes, root)
                    }
                },
            )
        {
            out.extend(error.problems().iter().map(finding));
        }
        let at =
            |pointer: &str| locate(document.text, pointer, json::Place::Value).unwrap_or(Span { start: 0, end: 1 });
        for warning in policy.warnings() {
            // A warning begins with the pointer of what it is about, where it is about one place.
            let pointer = warning.split_once(": ").map(|(pointer, _)| pointer).filter(|text| text.starts_with('/'));
            let span = at(pointer.unwrap_or_default());
            let message =
                pointer.map_or(warning.as_str(), |pointer| warning.get(pointer.len() + 2..).unwrap_or(warning));
            out.push(Finding {
                span,
                level: Level::Warning,
                code: "warning".to_owned(),
                message: message.to_owned(),
                help: String::new(),
            });
        }
        out.extend(policy.not_enforced().iter().map(|pointer| Finding {
            span: at(pointer),
            level: Level::Note,
            code: "not-enforced".to_owned(),
            message: "nothing enforces this yet".to_owned(),
            help: String::new(),
        }));
        out
    }

    fn hover(&self, document: &Document<'_>, at: usize) -> Option<Hovered> {
        let place = Place::find(document.text, at);
        let span = place.token?;
        let pointer = place.pointer();
        let member = lookup::member(&pointer)?;
        let required = if member.required { ", required" } else { "" };
        let markdown = format!("**{}** — {}{required}\n\n{}", member.name, member.kind, member.doc);
        Some(Hovered { span, markdown })
    }

    fn complete(&self, document: &Document<'_>, at: usize) -> Vec<Suggestion> {
        let place = Place::find(document.text, at);
        let replace =
            place.token.filter(|token| token.start < at || token.end > at).unwrap_or(Span { start: at, end: at });
        let pointer = place.pointer();
        if place.is_name {
            let object = pointer.rsplit_once('/').map_or("", |(object, _)| object);
            return members(document.text, object, replace);
        }
        let quoted = |word: &str| match word {
            "true" | "false" => word.to_owned(),
            word => format!("\"{word}\""),
        };
        let suggestion = |word: &str, detail: &str| Suggestion {
            label: word.to_owned(),
            insert: quoted(word),
            replace,
            detail: detail.to_owned(),
            markdown: String::new(),
        };
        let words = lookup::words(&pointer);
        if !words.is_empty() {
            return words.into_iter().map(|word| suggestion(word, "")).collect();
        }
        if TOOL_LISTS.iter().any(|list| pointer.strip_prefix(list).is_some_and(|rest| rest.starts_with('/'))) {
            return Policy::tools().map(|tool| suggestion(tool, "tool")).collect();
        }
        Vec::new()
    }
}

/// The members that an object does not have yet.
fn members(text: &str, object: &str, replace: Span) -> Vec<Suggestion> {
    let there = |name: &str| {
        let pointer = format!("{object}/{name}");
        locate(text, &pointer, json::Place::Name).is_some_and(|span| span.start != replace.start)
    };
    let known = lookup::members(object).into_iter().filter(|member| !there(member.name));
    let colon = text.get(replace.end..).unwrap_or_default().trim_start().starts_with(':');
    let insert = |member: &lookup::Member| match colon {
        true => format!("\"{}\"", member.name),
        false => format!("\"{}\": {}", member.name, member.empty),
    };
    known
        .map(|member| Suggestion {
            label: member.name.to_owned(),
            insert: insert(&member),
            replace,
            detail: member.kind.clone(),
            markdown: member.doc.to_owned(),
        })
        .collect()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn finding(problem: &writ_policy::Problem) -> Finding {
    Finding {
        span: problem.span,
        level: Level::Error,
        code: problem.rule.to_owned(),
        message: problem.message.clone(),
        help: problem.help.clone(),
    }
}

/// Where one stands in a text that may be half of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    /// The containers around it, outermost first: a member's name, or an element's number.
    steps: Vec<Step>,
    /// The text or word that one stands in, or at the end of, with its quotation marks.
    token: Option<Span>,
    /// One stands where an object's member begins.
    is_name: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// An object, the member that is being written, and whether its colon was there.
    Member(String, bool),
    /// A list, and how many elements came before.
    Element(usize),
}

impl Place {
    /// Reads a text from its beginning up to the token at a byte.
    fn find(text: &str, at: usize) -> Self {
        let mut place = Self::default();
        let bytes = text.as_bytes();
        let mut byte = 0;
        while let Some(&sign) = bytes.get(byte).filter(|_| byte <= at) {
            match sign {
                b'"' => {
                    let end = end_of_text(bytes, byte);
                    if byte < at && (at < end || at == end && !is_closed(bytes, byte, end)) || byte == at {
                        return place.standing(text, Span { start: byte, end });
                    }
                    // Behind a text is no longer within it, and hovering over its last letter is.
                    place.take_text(text, byte, end);
                    byte = end;
                    continue;
                }
                _ if sign.is_ascii_alphanumeric() => {
                    let end = word_end(bytes, byte);
                    if at <= end {
                        return place.standing(text, Span { start: byte, end });
                    }
                    byte = end;
                    continue;
                }
                _ if byte >= at => break,
                b'{' => place.steps.push(Step::Member(String::new(), false)),
                b'[' => place.steps.push(Step::Element(0)),
                b'}' | b']' => drop(place.steps.pop()),
                b':' => {
                    if let Some(Step::Member(_, colon)) = place.steps.last_mut() {
                        *colon = true;
                    }
                }
                b',' => match place.steps.last_mut() {
                    Some(Step::Member(name, colon)) => (*name, *colon) = (String::new(), false),
                    Some(Step::Element(count)) => *count += 1,
                    None => {}
                },
                _ => {}
            }
            byte += 1;
        }
        place.is_name = place.at_name();
        place
    }

    fn at_name(&self) -> bool {
        matches!(self.steps.last(), Some(Step::Member(_, false)))
    }

    fn standing(mut self, text: &str, token: Span) -> Self {
        self.is_name = self.at_name();
        self.take_text(text, token.start, token.end);
        self.token = Some(token);
        self
    }

    /// A text is a member's name where no colon came yet.
    fn take_text(&mut self, text: &str, start: usize, end: usize) {
        if let Some(Step::Member(name, false)) = self.steps.last_mut() {
            let inner = text.get(start..end).unwrap_or_default();
            inner.trim_matches('"').clone_into(name);
        }
    }

    /// The JSON pointer of what one stands in.
    fn pointer(&self) -> String {
        let step = |step: &Step| match step {
            Step::Member(name, _) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            Step::Element(at) => format!("/{at}"),
        };
        self.steps.iter().map(step).collect()
    }
}

/// Behind a text's last quotation mark, or the end of its line.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => return at + 1,
            b'\n' => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn is_closed(bytes: &[u8], start: usize, end: usize) -> bool {
    end > start + 1 && bytes.get(end - 1) == Some(&b'"')
}

fn word_end(bytes: &[u8], start: usize) -> usize {
    let word =
        bytes.iter().skip(start).take_while(|byte| byte.is_ascii_alphanumeric() || matches!(**byte, b'.' | b'-'));
    start + word.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document, with `|` where one stands.
    fn stands(marked: &str) -> (String, usize) {
        let at = marked.find('|').unwrap();
        (marked.replacen('|', "", 1), at)
    }

    fn labels(marked: &str) -> Vec<String> {
        let (text, at) = stands(marked);
        let found = Aflock.complete(&Document { path: None, text: &text }, at);
        found.into_iter().map(|suggestion| suggestion.label).collect()
    }

    #[test]
    fn what_could_stand_there_is_offered() {
        assert!(labels("{|}").contains(&"tools".to_owned()));
        assert!(labels("{\"version\":\"1.0\",\"t|").contains(&"tools".to_owned()));
        assert!(!labels("{\"version\":\"1.0\",\"|\"}").contains(&"version".to_owned()));
        assert_eq!(labels("{\"tools\":{\"|\"}}"), ["allow", "deny", "requireApproval"]);
        assert_eq!(labels("{\"tools\":{\"allow\":[],|}}"), ["deny", "requireApproval"]);
        assert_eq!(labels("{\"enforce\":|"), ["decide", "observe", "calls"]);
        assert_eq!(labels("{\"enforce\":\"o|\"}"), ["decide", "observe", "calls"]);
        assert!(labels("{\"tools\":{\"deny\":[\"Bash:rm *\",\"|\"]}}").contains(&"WebFetch".to_owned()));
        assert!(labels("{\"files\":{\"deny\":[\"|\"]}}").is_empty());
        assert!(labels("|").is_empty());
    }

    #[test]
    fn a_suggestion_takes_the_place_of_what_was_typed() {
        let (text, at) = stands("{\"to|\": {}}");
        let found = Aflock.complete(&Document { path: None, text: &text }, at);
        let tools = found.iter().find(|suggestion| suggestion.label == "tools").unwrap();
        assert_eq!((tools.replace, tools.insert.as_str()), (Span { start: 1, end: 5 }, "\"tools\""));
        let (text, at) = stands("{\"fi|");
        let found = Aflock.complete(&Document { path: None, text: &text }, at);
        let files = found.iter().find(|suggestion| suggestion.label == "files").unwrap();
        assert_eq!((files.replace, files.insert.as_str()), (Span { start: 1, end: 4 }, "\"files\": {}"));
    }

    #[test]
    fn members_and_entries_say_what_they_are_for() {
        let hover = |marked: &str| {
            let (text, at) = stands(marked);
            Aflock.hover(&Document { path: None, text: &text }, at).map(|found| found.markdown)
        };
        assert!(hover("{\"too|ls\":{}}").unwrap().contains("Tool access"));
        assert!(hover("{\"tools\":{\"deny\":[\"Ba|sh\"]}}").unwrap().contains("must not use"));
        assert!(hover("{\"limits\":{\"maxTurns\":1|0}}").unwrap().contains("turns"));
        assert_eq!(hover("{\"nothing|\":1}"), None);
        assert_eq!(hover("{  |  }"), None);
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let check = |text: &str| Aflock.check(&Document { path: None, text });
        let text = r#"{"version":"1.0","name":"x","tools":{"deny":["Bsh"]}}"#;
        let found = check(text);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.code.as_str(), one.level), ("unknown-tool", Level::Error));
        assert_eq!(text.get(one.span.start..one.span.end), Some("\"Bsh\""));
        assert!(one.help.contains("Bash"));
        assert!(check(r#"{"version":"1.0","name":"x"}"#).is_empty());
        assert_eq!(check("{").first().unwrap().code, "json");
        let warned = check(r#"{"version":"1.0","name":"x","tools":{"deny":["Zebra"]}}"#);
        assert!(warned.iter().all(|finding| finding.level == Level::Warning) && warned.len() == 1, "{warned:?}");
    }
}
