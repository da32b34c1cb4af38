//! Sessions that are over, as their clients' transcripts tell them, judged under a policy of today.
//!
//! Owns which transcripts are meant and what a policy makes of their calls; each call is decided by [`crate::decide::Sessionless`], as
//! `writ why` decides it. Records nothing, changes nothing. Invariant: what of a transcript was not judged is counted and named. Page:
//! `spec/replay.md`.

pub mod cases;
pub mod denied;
pub mod diff;
pub mod replay;

use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_clients::past::{Past, PastCall, Unseen};
use writ_clients::transcript::TranscriptError;
use writ_clients::{CLIENTS, Client};
use writ_core::{ToolCall, ToolKind, secret};

use crate::Home;
use crate::governing::layers::Caller;

/// Longest description of a call, in letters.
const LONGEST: usize = 200;

/// A transcript of a main conversation, and whose it is.
#[derive(Clone)]
pub struct Transcript {
    /// The file.
    pub path: PathBuf,
    /// The client that wrote it.
    pub client: &'static dyn Client,
    past: &'static dyn Past,
}

/// The calls of a session that is over.
#[derive(Debug, Default)]
pub struct PastSession {
    /// The calls, the main conversation's first.
    pub calls: Vec<PastCall>,
    /// What tells of no call that can be judged.
    pub unseen: Unseen,
}

/// Why there is nothing to look back at.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// No client that is known writes such files.
    #[error("{}: no transcript of a client whose past calls can be read ({known})", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The clients.
        known: String,
    },
    /// It cannot be read.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
    /// No client keeps a transcript of this project.
    #[error("no transcript of a session in {}: name the files (clients whose own are found: {known})", project.display())]
    None {
        /// The project.
        project: PathBuf,
        /// The clients.
        known: String,
    },
}

/// The clients whose past calls can be read.
fn readable() -> impl Iterator<Item = (&'static dyn Client, &'static dyn Past)> {
    CLIENTS.into_iter().filter_map(|client| Some((client, client.past()?)))
}

fn known() -> String {
    readable().map(|(client, _)| client.name()).collect::<Vec<_>>().join(", ")
}

impl Transcript {
    /// The transcript in a file.
    pub fn at(path: &Path) -> Result<Self, PastError> {
        if let Err(source) = path.metadata() {
            return Err(TranscriptError::Io { path: path.to_owned(), source }.into());
        }
        let found = readable().find(|(_, past)| past.is_one(path));
        let (client, past) = found.ok_or_else(|| PastError::Unknown { path: path.to_owned(), known: known() })?;
        Ok(Self { path: path.to_owned(), client, past })
    }

    /// The transcripts that the clients on this machine keep of a project.
    pub fn of_project(project: &Path, home: &Home) -> Result<Vec<Self>, PastError> {
        let mut out = Vec::new();
        for (client, past) in readable() {
            let folder = home.folder(client);
            let Some(user) = home.user.as_deref().or(folder) else { continue };
            let kept = past.kept(project, user, folder);
            out.extend(kept.into_iter().map(|path| Self { path, client, past }));
        }
        if out.is_empty() {
            return Err(PastError::None { project: project.to_owned(), known: known() });
        }
        Ok(out)
    }

    /// Its calls, and those of its sub-agents.
    pub fn session(&self) -> Result<PastSession, PastError> {
        let mut calls = Vec::new();
        let unseen = self.past.calls(&self.path, &mut |call| calls.push(call))?;
        Ok(PastSession { calls, unseen })
    }
}

/// Who made a past call.
pub fn caller(call: &PastCall) -> Caller<'_> {
    match &call.agent {
        None => Caller::Main,
        Some(agent) => Caller::typed(agent.kind.as_deref()),
    }
}

/// What a call is about, on one line without secrets: its line, its paths, its address.
pub fn what(call: &ToolCall) -> String {
    let text = match &call.kind {
        ToolKind::Shell { command } => command.clone(),
        ToolKind::Read { paths } | ToolKind::Write { paths } | ToolKind::Edit { paths, .. } => paths.join(", "),
        ToolKind::Fetch { url } => url.clone(),
        ToolKind::Delegate { subagent } => subagent.clone(),
        ToolKind::Search(search) => search.paths().join(", "),
        ToolKind::WebSearch | ToolKind::Mcp { .. } | ToolKind::Own | ToolKind::Other | ToolKind::Malformed { .. } => {
            String::new()
        }
    };
    let masked = secret::mask(&text);
    let mut words = masked.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = words.char_indices().nth(LONGEST) {
        words.truncate(at);
        words.push('…');
    }
    words
}

/// A call of a session that is over, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Example {
    /// The transcript.
    #[serde(with = "writ_core::json::path")]
    pub transcript: PathBuf,
    /// The call's id there.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What it was about.
    pub what: String,
    /// What the rule says of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether it was stopped then, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped_then: bool,
}

impl Example {
    fn of(transcript: &Transcript, call: &PastCall, message: &str) -> Self {
        Self {
            transcript: transcript.path.clone(),
            call_id: secret::mask_id(&call.id).into_owned(),
            tool: secret::mask_id(&call.call.tool).into_owned(),
            what: what(&call.call),
            message: message.to_owned(),
            stopped_then: call.was_stopped(),
        }
    }
}
