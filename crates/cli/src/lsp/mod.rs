//! `writ lsp`: what editors ask of documents that Writ knows, over the Language Server Protocol.
//!
//! Owns the loop and the protocol; what a document says is its kind's ([`Kind`]). Refuses to touch the disk: a document is what the editor says
//! it is. Invariant: a message that does not read gets an error and ends nothing, and positions are the client's (UTF-16) on the way in and out.

mod aflock;
mod agentfile;
mod text;
mod wire;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lsp_server::{Connection, ErrorCode, ExtractError, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{Completion, Formatting, HoverRequest, Request as _};
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionOptions, CompletionParams, CompletionResponse, CompletionTextEdit,
    Diagnostic, DiagnosticSeverity, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DocumentFormattingParams, Documentation, Hover, HoverContents, HoverParams, HoverProviderCapability, MarkupContent,
    MarkupKind, NumberOrString, OneOf, PublishDiagnosticsParams, ServerCapabilities, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextEdit, Uri,
};
use serde::de::DeserializeOwned;
use writ_core::Span;

use crate::exit::Failure;

/// Longest document that is looked at, in bytes.
const LONGEST: usize = 4 << 20;
/// Most documents that are open at once.
const MOST: usize = 256;

/// The kinds of documents that `writ lsp` knows.
const KINDS: [&dyn Kind; 2] = [&aflock::Aflock, &agentfile::Agentfile];

/// A kind of document. Places are bytes of its text.
trait Kind {
    /// Whether a document is one, by the last part of its path and by what the client calls its language.
    fn is(&self, name: &str, language: &str) -> bool;
    /// What is wrong with it.
    fn check(&self, document: &Document<'_>) -> Vec<Finding>;
    /// What is known of the place at a byte.
    fn hover(&self, document: &Document<'_>, at: usize) -> Option<Hovered>;
    /// What could stand at a byte.
    fn complete(&self, document: &Document<'_>, at: usize) -> Vec<Suggestion>;
    /// Its text in the form that everybody's has; `None` where it has no such form, or does not read.
    fn format(&self, _document: &Document<'_>) -> Option<String> {
        None
    }
}

/// A document that is open.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its file, where it has one.
    pub path: Option<&'a Path>,
    /// Its text as the editor has it.
    pub text: &'a str,
}

/// How much something weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The document is none of its kind with that.
    Error,
    /// It is valid, and looks like a mistake.
    Warning,
    /// It is said by the way.
    Note,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub span: Span,
    /// How much it weighs.
    pub level: Level,
    /// A word for its kind that stays the same.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
}

/// What is known of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hovered {
    /// What it is about.
    pub span: Span,
    /// Markdown.
    pub markdown: String,
}

/// What could stand at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// What people choose.
    pub label: String,
    /// What is written.
    pub insert: String,
    /// In place of what.
    pub replace: Span,
    /// A few words beside the label.
    pub detail: String,
    /// More of it, as Markdown.
    pub markdown: String,
}

/// Answers an editor on standard input and output until it says that it is done.
pub fn serve() -> Result<(), Failure> {
    let (connection, threads) = wire::connect()?;
    let capabilities = ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec!["\"".to_owned(), ":".to_owned(), " ".to_owned()]),
            ..CompletionOptions::default()
        }),
        document_formatting_provider: Some(OneOf::Left(true)),
        ..ServerCapabilities::default()
    };
    let (id, _) = connection.initialize_start().map_err(Failure::could_not)?;
    let answer = serde_json::json!({
        "capabilities": capabilities,
        "serverInfo": {"name": "writ", "version": env!("CARGO_PKG_VERSION")},
    });
    connection.initialize_finish(id, answer).map_err(Failure::could_not)?;
    let ended = Server { connection: &connection, open: HashMap::new() }.run();
    drop(connection);
    ended.and_then(|()| {
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(done) => done.map_err(Failure::could_not),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// A document with its kind.
struct Open {
    text: String,
    path: Option<PathBuf>,
    kind: &'static dyn Kind,
}

impl Open {
    fn document(&self) -> Document<'_> {
        Document { path: self.path.as_deref(), text: &self.text }
    }
}

struct Server<'a> {
    connection: &'a Connection,
    open: HashMap<String, Open>,
}

impl Server<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let connection = self.connection;
        for message in &connection.receiver {
            match message {
                Message::Request(request) => {
                    if connection.handle_shutdown(&request).map_err(Failure::could_not)? {
                        return Ok(());
                    }
                    let response = self.request(request);
                    self.send(Message::Response(response))?;
                }
                Message::Notification(notification) => self.notification(notification)?,
                Message::Response(_) => {}
            }
        }
        Ok(())
    }

    fn send(&self, message: Message) -> Result<(), Failure> {
        self.connection.sender.send(message).map_err(Failure::could_not)
    }

    fn request(&self, request: Request) -> Response {
        let id = request.id.clone();
        match request.method.as_str() {
            HoverRequest::METHOD => answer(request, HoverRequest::METHOD, |params: HoverParams| {
                self.hover(&params.text_document_position_params)
            }),
            Completion::METHOD => answer(request, Completion::METHOD, |params: CompletionParams| {
                self.complete(&params.text_document_position)
            }),
            Formatting::METHOD => answer(request, Formatting::METHOD, |params: DocumentFormattingParams| {
                self.format(params.text_document.uri.as_str())
            }),
            other => Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("no method `{other}`")),
        }
    }

    fn notification(&mut self, notification: Notification) -> Result<(), Failure> {
        match notification.method.as_str() {
            DidOpenTextDocument::METHOD => {
                let Some(params) = read::<DidOpenTextDocumentParams>(notification) else { return Ok(()) };
                let document = params.text_document;
                self.take(&document.uri, document.text, &document.language_id)?;
            }
            DidChangeTextDocument::METHOD => {
                let Some(params) = read::<DidChangeTextDocumentParams>(notification) else { return Ok(()) };
                // Whole texts are agreed upon, so that the last one is what there is.
                if let Some(change) = params.content_changes.into_iter().next_back() {
                    self.change(&params.text_document.uri, change.text)?;
                }
            }
            DidCloseTextDocument::METHOD => {
                let Some(params) = read::<DidCloseTextDocumentParams>(notification) else { return Ok(()) };
                let uri = params.text_document.uri;
                if self.open.remove(uri.as_str()).is_some() {
                    self.publish(uri, Vec::new())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, uri: &Uri, text: String, language: &str) -> Result<(), Failure> {
        let path = text::path(uri.as_str());
        let name = path.as_ref().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy().into_owned();
        let Some(kind) = KINDS.into_iter().find(|kind| kind.is(&name, language)) else { return Ok(()) };
        if self.open.len() < MOST {
            self.open.insert(uri.as_str().to_owned(), Open { text: String::new(), path, kind });
            self.change(uri, text)?;
        }
        Ok(())
    }

    fn change(&mut self, uri: &Uri, text: String) -> Result<(), Failure> {
        let Some(open) = self.open.get_mut(uri.as_str()) else { return Ok(()) };
        open.text = text;
        if open.text.len() > LONGEST {
            let finding = Finding {
                span: Span { start: 0, end: 0 },
                level: Level::Error,
                code: "too-large".to_owned(),
                message: format!("larger than {} MiB", LONGEST >> 20),
                help: String::new(),
            };
            let found = vec![diagnostic("", finding)];
            return self.publish(uri.clone(), found);
        }
        let found =
            open.kind.check(&open.document()).into_iter().map(|finding| diagnostic(&open.text, finding)).collect();
        self.publish(uri.clone(), found)
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<Diagnostic>) -> Result<(), Failure> {
        let params = PublishDiagnosticsParams { uri, diagnostics, version: None };
        self.send(Message::Notification(Notification::new(PublishDiagnostics::METHOD.to_owned(), params)))
    }

    /// A document that is not too large to be looked at.
    fn open(&self, uri: &str) -> Option<&Open> {
        self.open.get(uri).filter(|open| open.text.len() <= LONGEST)
    }

    /// The document at a place, and the place in bytes.
    fn at(&self, place: &TextDocumentPositionParams) -> Option<(&Open, usize)> {
        let open = self.open(place.text_document.uri.as_str())?;
        Some((open, text::offset(&open.text, place.position)))
    }

    fn format(&self, uri: &str) -> Option<Vec<TextEdit>> {
        let open = self.open(uri)?;
        let new_text = open.kind.format(&open.document())?;
        let whole = Span { start: 0, end: open.text.len() };
        Some(vec![TextEdit { range: text::range(&open.text, whole), new_text }])
    }

    fn hover(&self, place: &TextDocumentPositionParams) -> Option<Hover> {
        let (open, at) = self.at(place)?;
        let found = open.kind.hover(&open.document(), at)?;
        let contents = HoverContents::Markup(markdown(found.markdown));
        Some(Hover { contents, range: Some(text::range(&open.text, found.span)) })
    }

    fn complete(&self, place: &TextDocumentPositionParams) -> Option<CompletionResponse> {
        let (open, at) = self.at(place)?;
        let found = open.kind.complete(&open.document(), at);
        let item = |suggestion: Suggestion| CompletionItem {
            label: suggestion.label,
            kind: Some(CompletionItemKind::FIELD),
            detail: Some(suggestion.detail),
            documentation: Some(Documentation::MarkupContent(markdown(suggestion.markdown))),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit {
                range: text::range(&open.text, suggestion.replace),
                new_text: suggestion.insert,
            })),
            ..CompletionItem::default()
        };
        Some(CompletionResponse::Array(found.into_iter().map(item).collect()))
    }
}

fn read<P: DeserializeOwned>(notification: Notification) -> Option<P> {
    serde_json::from_value(notification.params).ok()
}

fn answer<P: DeserializeOwned, R: serde::Serialize>(
    request: Request,
    method: &str,
    act: impl FnOnce(P) -> R,
) -> Response {
    let id = request.id.clone();
    match request.extract::<P>(method) {
        Ok((id, params)) => Response::new_ok(id, act(params)),
        Err(ExtractError::MethodMismatch(_) | ExtractError::JsonError { .. }) => {
            Response::new_err(id, ErrorCode::InvalidParams as i32, format!("the parameters of `{method}` do not read"))
        }
    }
}

fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

fn diagnostic(text: &str, finding: Finding) -> Diagnostic {
    let help = if finding.help.is_empty() { String::new() } else { format!("\n{}", finding.help) };
    Diagnostic {
        range: text::range(text, finding.span),
        severity: Some(match finding.level {
            Level::Error => DiagnosticSeverity::ERROR,
            Level::Warning => DiagnosticSeverity::WARNING,
            Level::Note => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(NumberOrString::String(finding.code)),
        source: Some("writ".to_owned()),
        message: format!("{}{help}", finding.message),
        ..Diagnostic::default()
    }
}
