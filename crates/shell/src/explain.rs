//! A line explained: its syntax tree and everything it would do, for people and as JSON.

use writ_core::Span;
use writ_core::json::{Object, Value};

use crate::action::{Access, Analysis, Dir, Env, FileUse, NetTarget, Part, Word};
use crate::parser::tree::Tree;
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
                access(file.access),
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

    /// As JSON. Shape: `spec/shell.md`.
    pub fn to_json(&self) -> Value {
        let analysis = &self.analysis;
        let mut out = Object::new();
        out.push("line", Value::from(self.line.as_str()));
        out.push("tree", self.tree.as_ref().map_or(Value::Null, Tree::to_json));
        let commands = analysis.commands.iter().map(|command| {
            let mut item = spanned(command.span);
            item.push("words", Value::Array(command.words.iter().map(|word| Value::from(show(word))).collect()));
            item.push("via", Value::Array(command.via.iter().map(|via| Value::from(via.as_str())).collect()));
            Value::Object(item)
        });
        out.push("commands", Value::Array(commands.collect()));
        let files = touched(analysis).map(|file| {
            let mut item = spanned(file.span);
            let (path, tree) = self.named(file);
            item.push("path", Value::from(path));
            item.push("access", Value::from(access(file.access)));
            item.push("tree", Value::from(tree));
            let dirs = file.dirs.iter().map(|dir| match dir {
                Dir::Start(dir) => Value::from(dir.as_str()),
                Dir::Open(parts) => Value::from(shown(parts)),
                Dir::Unknown => Value::Null,
            });
            item.push("dirs", Value::Array(dirs.collect()));
            Value::Object(item)
        });
        out.push("files", Value::Array(files.collect()));
        let nets = analysis.nets.iter().map(|net| {
            let mut item = spanned(net.span);
            item.push("target", Value::from(target(&net.target)));
            Value::Object(item)
        });
        out.push("hosts", Value::Array(nets.collect()));
        let open = analysis.unresolved.iter().map(|open| {
            let mut item = spanned(open.span);
            item.push("kind", Value::from(format!("{:?}", open.kind).to_lowercase()));
            item.push("what", Value::from(open.what.as_str()));
            Value::Object(item)
        });
        out.push("unresolved", Value::Array(open.collect()));
        out.push("syntaxError", Value::from(self.syntax_error()));
        Value::Object(out)
    }
}

impl Explained {
    /// A file's path, and whether everything below it is meant; of a listing's entries, the glob that comes near.
    fn named(&self, file: &FileUse) -> (String, bool) {
        match self.analysis.listing_of(&file.path) {
            Some(listing) => {
                let (words, tree) = listing.rough();
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

fn spanned(span: Span) -> Object {
    let mut out = Object::new();
    out.push("span", Value::Array(vec![Value::from(span.start), Value::from(span.end)]));
    out
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

const fn access(access: Access) -> &'static str {
    match access {
        Access::List => "list",
        Access::Exec => "exec",
        Access::Read => "read",
        Access::Write => "write",
    }
}
