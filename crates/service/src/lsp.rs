//! A language server for Agentfiles: findings, completion, hover, formatting.
//!
//! Owns the protocol on standard input and output, and positions in UTF-16 as it wants them. Judges nothing: what it says is what `writ
//! agentfile lint` says. Invariant: a message that it cannot read ends nothing but itself. Page: `spec/agentfile.md`.

use std::collections::HashMap;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{Completion, Formatting, HoverRequest, Request as _};
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionOptions, CompletionParams, Diagnostic, DiagnosticSeverity,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentFormattingParams,
    Hover, HoverContents, HoverParams, HoverProviderCapability, MarkupContent, MarkupKind, NumberOrString, OneOf,
    Position, PublishDiagnosticsParams, Range, ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextEdit, Uri,
};
use writ_agentfile::cedar::ACTIONS;
use writ_agentfile::directive::{DIRECTIVES, known};
use writ_agentfile::{Agent, Options, Severity, lint, parse};

/// Why the server ended otherwise than asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LspError(String);

impl LspError {
    fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Serves on standard input and output until the client ends it.
pub fn run() -> Result<(), LspError> {
    let (connection, threads) = Connection::stdio();
    let capabilities = ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![" ".to_owned(), ":".to_owned(), "\"".to_owned()]),
            ..CompletionOptions::default()
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        ..ServerCapabilities::default()
    };
    let capabilities = serde_json::to_value(capabilities).map_err(LspError::of)?;
    connection.initialize(capabilities).map_err(LspError::of)?;
    let mut server = Server { connection: &connection, texts: HashMap::new() };
    for message in &connection.receiver {
        match message {
            Message::Request(request) if connection.handle_shutdown(&request).map_err(LspError::of)? => break,
            Message::Request(request) => server.answer(request)?,
            Message::Notification(told) => server.told(told)?,
            Message::Response(_) => {}
        }
    }
    drop(connection);
    threads.join().map_err(LspError::of)
}

struct Server<'a> {
    connection: &'a Connection,
    texts: HashMap<String, String>,
}

impl Server<'_> {
    fn send(&self, message: Message) -> Result<(), LspError> {
        self.connection.sender.send(message).map_err(LspError::of)
    }

    fn told(&mut self, told: Notification) -> Result<(), LspError> {
        match told.method.as_str() {
            DidOpenTextDocument::METHOD => {
                let Ok(told) = serde_json::from_value::<DidOpenTextDocumentParams>(told.params) else { return Ok(()) };
                self.changed(told.text_document.uri, told.text_document.text)
            }
            DidChangeTextDocument::METHOD => {
                let Ok(mut told) = serde_json::from_value::<DidChangeTextDocumentParams>(told.params) else {
                    return Ok(());
                };
                let Some(last) = told.content_changes.pop() else { return Ok(()) };
                self.changed(told.text_document.uri, last.text)
            }
            DidCloseTextDocument::METHOD => {
                let Ok(told) = serde_json::from_value::<DidCloseTextDocumentParams>(told.params) else { return Ok(()) };
                self.texts.remove(told.text_document.uri.as_str());
                self.publish(told.text_document.uri, Vec::new())
            }
            _ => Ok(()),
        }
    }

    fn changed(&mut self, uri: Uri, text: String) -> Result<(), LspError> {
        let linted = lint(text.as_bytes(), uri.as_str(), &Options::default());
        let found = linted.found.iter().map(|found| Diagnostic {
            range: range(&text, found.place.span.start, found.place.span.end),
            severity: Some(match found.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(found.code.to_owned())),
            source: Some("writ".to_owned()),
            message: if found.help.is_empty() {
                found.message.clone()
            } else {
                format!("{}\nhelp: {}", found.message, found.help)
            },
            ..Diagnostic::default()
        });
        let found = found.collect();
        self.texts.insert(uri.as_str().to_owned(), text);
        self.publish(uri, found)
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<Diagnostic>) -> Result<(), LspError> {
        let told = PublishDiagnosticsParams { uri, diagnostics, version: None };
        self.send(Message::Notification(Notification::new(PublishDiagnostics::METHOD.to_owned(), told)))
    }

    fn answer(&self, request: Request) -> Result<(), LspError> {
        let Request { id, method, params } = request;
        let text = |uri: &Uri| self.texts.get(uri.as_str()).map_or("", String::as_str);
        let answer = match method.as_str() {
            Completion::METHOD => serde_json::from_value::<CompletionParams>(params).map(|asked| {
                let at = asked.text_document_position;
                serde_json::to_value(completion(text(&at.text_document.uri), at.position))
            }),
            HoverRequest::METHOD => serde_json::from_value::<HoverParams>(params).map(|asked| {
                let at = asked.text_document_position_params;
                serde_json::to_value(hover(text(&at.text_document.uri), at.position))
            }),
            Formatting::METHOD => serde_json::from_value::<DocumentFormattingParams>(params)
                .map(|asked| serde_json::to_value(formatted(text(&asked.text_document.uri)))),
            _ => {
                let response = Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("no method `{method}`"));
                return self.send(Message::Response(response));
            }
        };
        let response = match answer {
            Ok(Ok(value)) => Response::new_ok(id, value),
            Ok(Err(error)) => Response::new_err(id, ErrorCode::InternalError as i32, error.to_string()),
            Err(error) => Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string()),
        };
        self.send(Message::Response(response))
    }
}

/// A byte's position: its line, and its column in UTF-16.
fn position(text: &str, at: usize) -> Position {
    let before = text.get(..at.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    Position::new(u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

fn range(text: &str, start: usize, end: usize) -> Range {
    // A finding about several lines is shown on its first.
    let whole = text.get(start..end).unwrap_or_default();
    let line = whole.lines().next().unwrap_or_default();
    Range::new(position(text, start), position(text, start + line.len()))
}

/// The line of a position up to it, and the whole line.
fn line(text: &str, at: Position) -> (&str, &str) {
    let whole = text.lines().nth(usize::try_from(at.line).unwrap_or(usize::MAX)).unwrap_or_default();
    let mut units = 0;
    let end = whole.char_indices().find(|(_, c)| {
        let reached = units >= at.character as usize;
        units += c.len_utf16();
        reached
    });
    (whole.get(..end.map_or(whole.len(), |(at, _)| at)).unwrap_or_default(), whole)
}

/// Whether a line lies in the body of a block.
fn in_block(agent: &Agent, text: &str, at: Position) -> Option<bool> {
    let number = at.line as usize + 1;
    agent.entries.iter().filter(|entry| entry.opens_block() && entry.line() < number).find_map(|entry| {
        let end =
            text.lines().enumerate().skip(entry.line()).find(|(_, line)| line.trim() == "END").map(|(at, _)| at + 1);
        end.is_some_and(|end| number < end).then_some(entry.words.is_empty())
    })
}

fn completion(text: &str, at: Position) -> Vec<CompletionItem> {
    let (agent, _) = parse(text.as_bytes(), "");
    let (before, _) = line(text, at);
    let item = |label: String, detail: &str, kind| CompletionItem {
        label,
        detail: Some(detail.to_owned()),
        kind: Some(kind),
        ..CompletionItem::default()
    };
    match in_block(&agent, text, at) {
        Some(true) => {
            let mut out: Vec<CompletionItem> = ACTIONS
                .iter()
                .map(|action| {
                    item(format!("AgentRC::Action::\"{}\"", action.name), "action", CompletionItemKind::CONSTANT)
                })
                .collect();
            out.extend(agent.tools().map(|(_, tool)| {
                item(
                    format!("AgentRC::Tool::\"{}\"", writ_agentfile::tool_name(&agent, tool)),
                    "tool",
                    CompletionItemKind::REFERENCE,
                )
            }));
            out.push(item(
                format!("AgentRC::Agent::\"{}\"", agent.name_or_default()),
                "agent",
                CompletionItemKind::REFERENCE,
            ));
            return out;
        }
        Some(false) => return Vec::new(),
        None => {}
    }
    let words: Vec<&str> = before.split_whitespace().collect();
    let begun = usize::from(!before.ends_with(' ') && !before.is_empty());
    match words.len().saturating_sub(begun) {
        0 => DIRECTIVES
            .iter()
            .map(|known| item(known.name.to_owned(), known.about, CompletionItemKind::KEYWORD))
            .collect(),
        place => {
            let tools = || {
                agent.tools().map(|(_, tool)| item(tool.to_string(), "tool", CompletionItemKind::REFERENCE)).collect()
            };
            let choices = |words: &[&str]| {
                words.iter().map(|word| item((*word).to_owned(), "", CompletionItemKind::ENUM_MEMBER)).collect()
            };
            match (words.first().copied().unwrap_or_default(), place) {
                ("AUDIT", 1) => choices(&["off", "basic", "all", "compliance"]),
                ("MOUNT", 2) => choices(&["ro", "rw"]),
                ("BIND", 3) => choices(&["copy", "direct", "ro", "rw"]),
                ("ISOLATION", 1) => choices(&["local", "container", "microvm", "ssh"]),
                ("BROKER", 1) => choices(&["vault", "local"]),
                ("TRACE", 1) => choices(&["on", "otlp://"]),
                ("FROM", 1) => choices(&["scratch"]),
                ("CRED", 2) => choices(&["env:", "vault://", "keyring:"]),
                ("CRED", _) => choices(&["host:", "inject:header", "inject:query"]),
                ("ALLOW" | "DENY", 1) => choices(&["invoke"]),
                ("ALLOW" | "DENY", 2) | ("RATELIMIT", 1) => tools(),
                _ => Vec::new(),
            }
        }
    }
}

fn hover(text: &str, at: Position) -> Option<Hover> {
    let (agent, _) = parse(text.as_bytes(), "");
    if in_block(&agent, text, at).is_some() {
        return None;
    }
    let (_, whole) = line(text, at);
    let known = known(whole.split_whitespace().next()?)?;
    let value = format!("```\n{}\n```\n{}", known.usage, known.about);
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: None })
}

fn formatted(text: &str) -> Option<Vec<TextEdit>> {
    let new_text = writ_agentfile::format(text)?;
    Some(vec![TextEdit { range: Range::new(Position::new(0, 0), position(text, text.len())), new_text }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_in_utf16() {
        assert_eq!(position("a𝄞b\nc", "a𝄞".len()), Position::new(0, 3));
        assert_eq!(line("a𝄞b\nc", Position::new(0, 3)).0, "a𝄞");
        assert_eq!(position("a\r\nb", 3), Position::new(1, 0));
    }

    #[test]
    fn what_is_offered_depends_on_the_place() {
        let labels = |text: &str, line, column| {
            completion(text, Position::new(line, column)).into_iter().map(|item| item.label).collect::<Vec<_>>()
        };
        let text = "AGENT a\nTOOL utcp:read\nALLOW invoke \nPOLICY\n\nEND\nAUDIT \n\n";
        assert!(labels(text, 7, 0).contains(&"MOUNT".to_owned()));
        assert_eq!(labels(text, 2, 13), ["utcp:read"]);
        assert!(labels(text, 4, 0).contains(&"AgentRC::Tool::\"read\"".to_owned()));
        assert_eq!(labels(text, 6, 6), ["off", "basic", "all", "compliance"]);
        assert!(hover(text, Position::new(6, 1)).is_some() && hover(text, Position::new(4, 0)).is_none());
    }
}
