//! Agentfiles in an editor: what `writ agentfile lint` says, what a directive is for, what could stand there.
//!
//! Everything comes from the tables that parsing uses.

use writ_agentfile::cedar::ACTIONS;
use writ_agentfile::directive::{DIRECTIVES, known};
use writ_agentfile::{Agent, Options, Severity, lint, parse, tool_name};
use writ_core::Span;

use super::{Document, Finding, Hovered, Kind, Level, Suggestion};

/// An Agentfile.
#[derive(Clone, Copy, Debug)]
pub struct Agentfile;

impl Kind for Agentfile {
    fn is(&self, name: &str, language: &str) -> bool {
        language == "agentfile" || name == "Agentfile" || name.ends_with(".Agentfile") || name.ends_with(".agentfile")
    }

    fn check(&self, document: &Document<'_>) -> Vec<Finding> {
        let name = document.path.map_or_else(String::new, |path| path.display().to_string());
        let found = lint(document.text.as_bytes(), &name, &Options::default()).found.into_iter();
        found
            .map(|found| Finding {
                span: first_line(document.text, found.place.span),
                level: match found.severity {
                    Severity::Error => Level::Error,
                    Severity::Warning => Level::Warning,
                },
                code: found.code.to_owned(),
                message: found.message,
                help: found.help,
            })
            .collect()
    }

    fn hover(&self, document: &Document<'_>, at: usize) -> Option<Hovered> {
        let line = Line::of(document.text, at);
        let (agent, _) = parse(document.text.as_bytes(), "");
        if line.block(&agent, document.text).is_some() {
            return None;
        }
        let word = line.text.split_whitespace().next()?;
        let known = known(word)?;
        let start = line.start + line.text.find(word)?;
        let markdown = format!("```\n{}\n```\n{}", known.usage, known.about);
        Some(Hovered { span: Span { start, end: start + word.len() }, markdown })
    }

    fn complete(&self, document: &Document<'_>, at: usize) -> Vec<Suggestion> {
        let line = Line::of(document.text, at);
        let (agent, _) = parse(document.text.as_bytes(), "");
        let before = line.text.get(..at.saturating_sub(line.start)).unwrap_or(line.text);
        let begun = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let replace = Span { start: at.saturating_sub(begun.len()), end: at };
        let offer = |label: String, detail: &str| Suggestion {
            insert: label.clone(),
            label,
            replace,
            detail: detail.to_owned(),
            markdown: String::new(),
        };
        match line.block(&agent, document.text) {
            Some(Block::Cedar) => return cedar(&agent, offer),
            Some(Block::Other) => return Vec::new(),
            None => {}
        }
        let words: Vec<&str> = before.split_whitespace().collect();
        let place = words.len() - usize::from(!begun.is_empty());
        let choices = |words: &[&str]| words.iter().map(|word| offer((*word).to_owned(), "")).collect();
        match (words.first().copied().unwrap_or_default(), place) {
            (_, 0) => DIRECTIVES.iter().map(|known| offer(known.name.to_owned(), known.about)).collect(),
            ("AUDIT", 1) => choices(&["off", "basic", "all", "compliance"]),
            ("MOUNT", 2) => choices(&["ro", "rw"]),
            ("BIND", 3) => choices(&["copy", "direct", "ro", "rw"]),
            ("ISOLATION", 1) => choices(&["local", "container", "microvm", "ssh"]),
            ("BROKER", 1) => choices(&["vault", "local"]),
            ("TRACE", 1) => choices(&["on", "otlp://"]),
            ("FROM", 1) => choices(&["scratch"]),
            ("CRED", 2) => choices(&["env:", "vault://", "keyring:"]),
            ("CRED", 3..) => choices(&["host:", "inject:header", "inject:query"]),
            ("ALLOW" | "DENY", 1) => choices(&["invoke"]),
            ("ALLOW" | "DENY", 2) | ("RATELIMIT", 1) => {
                agent.tools().map(|(_, tool)| offer(tool.to_string(), "tool")).collect()
            }
            _ => Vec::new(),
        }
    }

    fn format(&self, document: &Document<'_>) -> Option<String> {
        writ_agentfile::format(document.text)
    }
}

fn cedar(agent: &Agent, offer: impl Fn(String, &str) -> Suggestion) -> Vec<Suggestion> {
    let actions = ACTIONS.iter().map(|action| offer(format!("AgentRC::Action::\"{}\"", action.name), "action"));
    let tools = agent.tools().map(|(_, tool)| offer(format!("AgentRC::Tool::\"{}\"", tool_name(agent, tool)), "tool"));
    let itself = offer(format!("AgentRC::Agent::\"{}\"", agent.name_or_default()), "agent");
    actions.chain(tools).chain([itself]).collect()
}

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Cedar,
    Other,
}

/// The line that a byte is in.
struct Line<'a> {
    /// From 1.
    number: usize,
    start: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn of(text: &'a str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        Self { number: before.bytes().filter(|byte| *byte == b'\n').count() + 1, start, text: line }
    }

    /// The block whose body it lies in.
    fn block(&self, agent: &Agent, text: &str) -> Option<Block> {
        agent.entries.iter().filter(|entry| entry.opens_block() && entry.line() < self.number).find_map(|entry| {
            let end = text.lines().enumerate().skip(entry.line()).find(|(_, line)| line.trim() == "END")?.0 + 1;
            (self.number < end).then_some(if entry.words.is_empty() { Block::Cedar } else { Block::Other })
        })
    }
}

/// A finding about several lines is shown on its first.
fn first_line(text: &str, span: Span) -> Span {
    let first = text.get(span.start..span.end).unwrap_or_default().lines().next().unwrap_or_default();
    Span { start: span.start, end: span.start + first.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "AGENT a\nTOOL utcp:read\nALLOW invoke \nPOLICY\n\nEND\nAUDIT \n\n";

    fn labels(at: usize) -> Vec<String> {
        let document = Document { path: None, text: TEXT };
        Agentfile.complete(&document, at).into_iter().map(|offered| offered.label).collect()
    }

    fn after(part: &str) -> usize {
        TEXT.find(part).map_or(0, |at| at + part.len())
    }

    #[test]
    fn what_is_offered_depends_on_the_place() {
        assert!(labels(TEXT.len()).contains(&"MOUNT".to_owned()));
        assert_eq!(labels(after("ALLOW invoke ")), ["utcp:read"]);
        assert!(labels(after("POLICY\n")).contains(&"AgentRC::Tool::\"read\"".to_owned()));
        assert_eq!(labels(after("AUDIT ")), ["off", "basic", "all", "compliance"]);
    }

    #[test]
    fn directives_are_explained_and_blocks_are_not() {
        let document = Document { path: None, text: TEXT };
        assert!(Agentfile.hover(&document, after("\nAUD")).is_some());
        assert!(Agentfile.hover(&document, after("POLICY\n")).is_none());
    }
}
