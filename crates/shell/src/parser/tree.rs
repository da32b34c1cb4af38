//! The syntax tree of a line with its spans, to be shown.
//!
//! Owns nothing but the view: what `writ shell explain` prints is what the parser built. A node's span runs from the first to
//! the last thing in it that has a place of its own.

use serde::Serialize;
use writ_core::Span;

use crate::parser::syntax::{Next, Node, RawPart, RawWord, Redirect, RedirectKind, Simple};

/// A node to show.
#[derive(Clone, Debug, Serialize)]
pub struct Tree {
    kind: &'static str,
    /// What the kind leaves open: a variable's or a function's name, the sign between two commands.
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Tree>,
}

impl Tree {
    /// The view of `node`.
    pub fn of(node: &Node) -> Self {
        match node {
            Node::Simple(simple) => command(simple),
            Node::Pipe(nodes) => inner("pipeline", nodes.iter().map(Self::of)),
            Node::List(items) => match items.as_slice() {
                [(only, Next::Always)] => Self::of(only),
                _ => inner("list", items.iter().flat_map(|(node, next)| [Some(Self::of(node)), sign(*next)]).flatten()),
            },
            Node::Subshell(node) => inner("subshell", [Self::of(node)]),
            Node::Branches(nodes) => inner("branches", nodes.iter().map(Self::of)),
            Node::Loop(nodes) => inner("loop", nodes.iter().map(Self::of)),
            Node::For { name, words, body } => {
                let words = words.iter().flatten().flat_map(word);
                inner("for", words.chain([Self::of(body)])).named(name)
            }
            Node::Function { name, body } => inner("function", [Self::of(body)]).named(name),
            Node::Words(words) | Node::Test(words) => inner("words", words.iter().flat_map(word)),
            Node::Redirected(node, redirects) => {
                inner("redirected", [Self::of(node)].into_iter().chain(redirects.iter().map(redirect)))
            }
        }
    }

    fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// A line a node, deeper ones further in; `line` is the text the spans are of.
    pub fn to_text(&self, line: &str) -> String {
        let mut out = String::new();
        self.write(line, 1, &mut out);
        out
    }

    fn write(&self, line: &str, depth: usize, out: &mut String) {
        let place = self.span.map_or_else(String::new, |span| format!("{}..{}", span.start, span.end));
        let text = match (self.span, self.children.is_empty()) {
            (Some(span), true) => line.get(span.start..span.end).unwrap_or_default(),
            _ => "",
        };
        let label = [self.kind, &self.name, text].into_iter().filter(|part| !part.is_empty());
        out.push_str(&format!("\n{place:>9} {}{}", "  ".repeat(depth), label.collect::<Vec<_>>().join(" ")));
        for child in &self.children {
            child.write(line, depth + 1, out);
        }
    }
}

fn leaf(kind: &'static str, span: Option<Span>) -> Tree {
    Tree { kind, name: String::new(), span, children: Vec::new() }
}

/// A node whose span is that of its children.
fn inner(kind: &'static str, children: impl IntoIterator<Item = Tree>) -> Tree {
    let children: Vec<Tree> = children.into_iter().collect();
    let spans = || children.iter().filter_map(|child| child.span);
    let start = spans().map(|span| span.start).min();
    let end = spans().map(|span| span.end).max();
    let span = start.zip(end).map(|(start, end)| Span { start, end });
    Tree { kind, name: String::new(), span, children }
}

fn sign(next: Next) -> Option<Tree> {
    let text = match next {
        Next::Always => return None,
        Next::OnSuccess => "&&",
        Next::OnFailure => "||",
        Next::Background => "&",
    };
    Some(leaf("operator", None).named(text))
}

fn command(simple: &Simple) -> Tree {
    let assignments = simple.assignments.iter().map(|assignment| {
        let values = assignment.values.iter().flat_map(|(_, value)| word(value));
        inner("assignment", values).named(&assignment.name)
    });
    let words = simple.words.iter().flat_map(word);
    let redirects = simple.redirects.iter().map(redirect);
    let mut tree = inner("command", assignments.chain(words).chain(redirects));
    tree.span = Some(simple.span);
    tree
}

fn redirect(redirect: &Redirect) -> Tree {
    let kind = match redirect.kind {
        RedirectKind::Read => "read from",
        RedirectKind::Write => "write to",
        RedirectKind::ReadWrite => "read and write",
        RedirectKind::Duplicate => "duplicate",
        RedirectKind::Text => "text",
    };
    inner(kind, word(&redirect.word))
}

/// A word, with the commands inside it below.
fn word(raw: &RawWord) -> Option<Tree> {
    let mut tree = leaf("word", raw.span);
    nested(&raw.parts, &mut tree.children);
    (tree.span.is_some() || !tree.children.is_empty()).then_some(tree)
}

fn nested(parts: &[RawPart], out: &mut Vec<Tree>) {
    for part in parts {
        match part {
            RawPart::Command(node, _) => out.push(inner("substitution", [Tree::of(node)])),
            RawPart::Process(node) => out.push(inner("process substitution", [Tree::of(node)])),
            RawPart::Arithmetic(parts) => nested(parts, out),
            RawPart::Param(param) => {
                param.key.iter().for_each(|key| nested(key, out));
                param.op.words().into_iter().for_each(|parts| nested(parts, out));
            }
            RawPart::Plain(_) | RawPart::Quoted(_) => {}
        }
    }
}
