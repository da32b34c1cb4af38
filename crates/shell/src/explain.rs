//! A line explained: its syntax tree and everything it would do, for people and as JSON.

use serde::{Serialize, Serializer};
use writ_core::{Span, json};

use crate::action::{Access, Analysis, Env, FileUse, NetTarget, UnresolvedKind};
use crate::parser::tree::Tree;
use crate::word::{Dir, Part, Word};
use crate::{analyze, parser};

/// A line and what it would do.
#[derive(Clone, Debug)]
pub struct Explained {
    line: String,
    tree: Option<Tree>,
    analysis: Analysis,
}

/// Explains a line.
pub fn explain(line: &str, env: &Env) -> Explained {
    let tree = parser::parse(line, None, 0).ok().map(|node| Tree::of(&node));
    Explained { line: line.to_owned(), tree, analysis: analyze(line, env) }
}

impl Explained {
    /// Why the line is no shell program, with the place.
    pub fn syntax_error(&self) -> Option<String> {
        self.analysis.syntax_error.as_ref().map(|(message, span)| format!("byte {}: {message}", span.start))
    }

    /// For people: one line a finding, each with its span.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}\n", self.line);
        if let Some(tree) = &self.tree {
            out.push_str(&format!("\nthe tree{}\n\nwhat it would do", tree.to_text(&self.line)));
        }
        for command in &self.analysis.commands {
            let depth = self.analysis.commands.iter().filter(|outer| holds(outer.span, command.span)).count();
            let words: Vec<String> = command.words.iter().map(show).collect();
            let via = if command.via.is_empty() {
                String::new()
            } else {
                format!("   (under {})", command.via.join(" › "))
            };
            out.push_str(&format!("\n{}{} {}{via}", "  ".repeat(depth + 1), place(command.span), words.join(" ")));
        }
        for file in touched(&self.analysis) {
            let (path, tree) = self.named(file);
            let tree = if tree { " and below" } else { "" };
            let dirs: Vec<String> = file
                .dirs
                .iter()
                .filter_map(|dir| match dir {
                    Dir::Start(dir) if dir.is_empty() => None,
                    Dir::Start(dir) => Some(format!(" in {dir}")),
                    Dir::Open(parts) => Some(format!(" in {}", shown(parts))),
                    Dir::Unknown => Some(" in a folder not known".to_owned()),
                })
                .collect();
            out.push_str(&format!(
                "\n  {} {:<6} {}{tree}{}",
                place(file.span),
                json::word(&file.access),
                path,
                dirs.join(",")
            ));
        }
        for net in &self.analysis.nets {
            out.push_str(&format!("\n  {} contact {}", place(net.span), target(&net.target)));
        }
        for open in &self.analysis.unresolved {
            out.push_str(&format!("\n  {} not known: {} ({:?})", place(open.span), open.what, open.kind));
        }
        if let Some(error) = self.syntax_error() {
            out.push_str(&format!("\n  syntax error at {error}"));
        }
        out
    }
}

/// An explanation as JSON. Shape: `spec/shell.md`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    line: &'a str,
    tree: Option<&'a Tree>,
    commands: Vec<Command<'a>>,
    files: Vec<File>,
    hosts: Vec<Host>,
    unresolved: Vec<Open<'a>>,
    syntax_error: Option<String>,
}

#[derive(Serialize)]
struct Command<'a> {
    span: Span,
    words: Vec<String>,
    via: &'a [String],
}

#[derive(Serialize)]
struct File {
    span: Span,
    path: String,
    access: Access,
    /// Whether everything below it is meant.
    tree: bool,
    /// The folders it may hang off; `null` is one that is not known.
    dirs: Vec<Option<String>>,
}

#[derive(Serialize)]
struct Host {
    span: Span,
    target: String,
}

#[derive(Serialize)]
struct Open<'a> {
    span: Span,
    kind: UnresolvedKind,
    what: &'a str,
}

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let commands = self.analysis.commands.iter();
        let nets = self.analysis.nets.iter();
        let unresolved = self.analysis.unresolved.iter();
        let document = Document {
            line: &self.line,
            tree: self.tree.as_ref(),
            commands: commands
                .map(|command| Command {
                    span: command.span,
                    words: command.words.iter().map(show).collect(),
                    via: &command.via,
                })
                .collect(),
            files: touched(&self.analysis).map(|file| self.file(file)).collect(),
            hosts: nets.map(|net| Host { span: net.span, target: target(&net.target) }).collect(),
            unresolved: unresolved.map(|open| Open { span: open.span, kind: open.kind, what: &open.what }).collect(),
            syntax_error: self.syntax_error(),
        };
        document.serialize(serializer)
    }
}

impl Explained {
    fn file(&self, file: &FileUse) -> File {
        let (path, tree) = self.named(file);
        let dirs = file.dirs.iter().map(|dir| match dir {
            Dir::Start(dir) => Some(dir.clone()),
            Dir::Open(parts) => Some(shown(parts)),
            Dir::Unknown => None,
        });
        File { span: file.span, path, access: file.access, tree, dirs: dirs.collect() }
    }

    /// A file's path, and whether everything below it is meant; of a listing's entries, the glob that comes near.
    fn named(&self, file: &FileUse) -> (String, bool) {
        match self.analysis.listing_of(&file.path) {
            Some(listing) => {
                let (words, tree) = listing.as_globs();
                (words.iter().map(show).collect::<Vec<_>>().join(" "), tree || file.tree)
            }
            None => (show(&file.path), file.tree),
        }
    }
}

/// Files, and the targets of what lands in folders.
fn touched(analysis: &Analysis) -> impl Iterator<Item = &FileUse> {
    analysis.files.iter().chain(analysis.arrivals.iter().map(|arrival| &arrival.target))
}

fn holds(outer: Span, inner: Span) -> bool {
    outer != inner && outer.start <= inner.start && outer.end >= inner.end
}

fn place(span: Span) -> String {
    format!("{:>9}", format!("{}..{}", span.start, span.end))
}

fn show(word: &Word) -> String {
    shown(&word.parts)
}

fn shown(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.clone(),
        Part::Unknown(_) => "…".to_owned(),
    };
    parts.iter().map(part).collect()
}

fn target(target: &NetTarget) -> String {
    match target {
        NetTarget::Url(word) | NetTarget::Host(word) => show(word),
        NetTarget::Unknown => "a host not known".to_owned(),
    }
}
