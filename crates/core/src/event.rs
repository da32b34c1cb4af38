//! What happens in an agent's session, and what its client is told, in words that fit every client.
//!
//! Each folder of `clients` turns a client's own form into these and back. Pages: `spec/clients/`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::json::Value;
use crate::{SessionId, ToolCall, Verdict, secret};

/// One event of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The client's name, as rows have it.
    pub client: &'static str,
    /// The session.
    pub session: SessionId,
    /// The client's own id of it, where it is one of several in a run.
    pub client_session: Option<SessionId>,
    /// The session's main transcript, absolute; also inside a subagent.
    pub transcript: Option<String>,
    /// The working directory, absolute.
    pub cwd: String,
    /// The subagent that the event happened in; `None` in the main conversation.
    pub agent: Option<Agent>,
    /// `default`, `acceptEdits`, `plan`, `bypassPermissions`, `dontAsk`, `auto`.
    pub permission_mode: Option<String>,
    /// The prompt that the event belongs to, from the first prompt on.
    pub prompt_id: Option<String>,
    /// What happened.
    pub kind: EventKind,
}

/// A subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The client's id for this run of it; its transcript is `agent-<id>.jsonl`.
    pub id: String,
    /// `general-purpose` and the like.
    pub kind: Option<String>,
}

/// A tool call with its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The call's id, the same in the transcript.
    pub id: String,
    /// The call.
    pub call: ToolCall,
}

/// One of the calls of a model's turn, also those that no other event told of. Name and input are as the model wrote them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchCall {
    /// The call.
    pub call: ToolUse,
    /// What became of it, where what the model was told says that it was stopped before any hook. `None` is a call that a hook
    /// knows of, or one that ran unseen.
    pub outcome: Option<Outcome>,
}

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ran and gave a result.
    Completed,
    /// It ran, or was let run, and gave an error.
    Failed,
    /// There is no such tool; nothing ran and no hook was asked.
    NoSuchTool,
    /// The client refused it before any hook was asked: bad input, or a condition such as "read it first".
    Refused,
    /// A hook denied it.
    DeniedByHook,
    /// The client's own rules, mode or user denied it.
    DeniedByClient,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A tool is about to run; the answer may stop it.
    PreToolUse(ToolUse),
    /// The client would ask its user; the payload has no call id.
    PermissionRequest {
        /// The call.
        call: ToolCall,
    },
    /// A tool has run.
    PostToolUse {
        /// The call.
        call: ToolUse,
        /// What the tool gave back, in the tool's own shape.
        response: Value,
        /// How long it ran, in milliseconds.
        duration_ms: Option<u64>,
    },
    /// A tool has run and failed. Denied calls do not come here.
    PostToolUseFailure {
        /// The call.
        call: ToolUse,
        /// The error's text.
        error: String,
        /// Whether the user interrupted it.
        interrupted: bool,
        /// How long it ran, in milliseconds.
        duration_ms: Option<u64>,
    },
    /// Every call of one model turn has been answered.
    PostToolBatch {
        /// The calls, in the model's order.
        calls: Vec<BatchCall>,
    },
    /// A prompt came in.
    UserPromptSubmit {
        /// Its text.
        prompt: String,
    },
    /// A session begins: `startup`, `resume`, `clear` or `compact`.
    SessionStart {
        /// Which of them.
        source: Option<String>,
    },
    /// A subagent begins; [`Event::agent`] says which.
    SubagentStart,
    /// A subagent wants to end; [`Event::agent`] says which.
    SubagentStop {
        /// Its own transcript, absolute.
        transcript: Option<String>,
        /// What it says at the end.
        last_message: Option<String>,
        /// Whether a hook has already sent it back to work.
        again: bool,
    },
    /// The agent wants to end its turn.
    Stop {
        /// What it says at the end.
        last_message: Option<String>,
        /// Whether a hook has already sent it back to work.
        again: bool,
    },
    /// The conversation is about to be compacted: `manual` or `auto`.
    PreCompact {
        /// Which of them.
        trigger: Option<String>,
    },
    /// The session ends.
    SessionEnd {
        /// Why, in the client's word.
        reason: Option<String>,
    },
    /// A settings file changed.
    ConfigChange {
        /// `project_settings`, `user_settings`, …
        source: Option<String>,
        /// Which file, absolute.
        file: Option<String>,
    },
    /// An event that Writ does not act on.
    Other(String),
}

impl Event {
    /// The event with the tokens in its words masked, so that what is judged is what is recorded (R8). Ids and names of calls are
    /// masked where their rows are made: who judges them has to see them.
    #[must_use]
    pub fn masked(mut self) -> Self {
        if let Some(agent) = &mut self.agent {
            mask(&mut agent.id);
            agent.kind.iter_mut().for_each(mask);
        }
        self.permission_mode.iter_mut().for_each(mask);
        if let EventKind::SessionStart { source: word }
        | EventKind::PreCompact { trigger: word }
        | EventKind::SessionEnd { reason: word }
        | EventKind::ConfigChange { source: word, .. } = &mut self.kind
        {
            word.iter_mut().for_each(mask);
        }
        self
    }
}

fn mask(word: &mut String) {
    if let Cow::Owned(masked) = secret::mask_id(word) {
        *word = masked;
    }
}

impl EventKind {
    /// The event's name as policies, rows and pages spell it.
    pub fn name(&self) -> &str {
        match self {
            Self::PreToolUse(_) => "PreToolUse",
            Self::PermissionRequest { .. } => "PermissionRequest",
            Self::PostToolUse { .. } => "PostToolUse",
            Self::PostToolUseFailure { .. } => "PostToolUseFailure",
            Self::PostToolBatch { .. } => "PostToolBatch",
            Self::UserPromptSubmit { .. } => "UserPromptSubmit",
            Self::SessionStart { .. } => "SessionStart",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop { .. } => "SubagentStop",
            Self::Stop { .. } => "Stop",
            Self::PreCompact { .. } => "PreCompact",
            Self::SessionEnd { .. } => "SessionEnd",
            Self::ConfigChange { .. } => "ConfigChange",
            Self::Other(name) => name,
        }
    }
}

/// An answer to one event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What the client is to do.
    pub reply: Reply,
    /// Before a call: the input it runs with, in place of the model's. Whoever asked another process works it out again.
    #[serde(skip)]
    pub input: Option<Value>,
    /// Shown to the user, not to the model.
    pub message: Option<String>,
    /// Lines for standard error: neither user nor model see them unless they look.
    pub notes: Vec<String>,
}

/// What the client is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Nothing; go on.
    Silent,
    /// Before a call: let the tool run without the client's own question, ask the user, or do not let it run.
    Decided {
        /// What is to happen.
        verdict: Verdict,
        /// Why; the model sees it when the call is denied.
        reason: String,
    },
    /// At the client's own question: answer no in the user's stead.
    DenyPermission {
        /// Why; the model sees it.
        reason: String,
    },
    /// At a stop: send the agent back to work. At a prompt: do not take it. Behind a turn's calls: end the turn. Before a call:
    /// deny. The one refusal that holds when the event cannot be told.
    Block {
        /// Why.
        reason: String,
    },
    /// Tell the model something.
    Context {
        /// The event that is answered.
        event: String,
        /// What to tell.
        text: String,
    },
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self { reply, input: None, message: None, notes: Vec::new() }
    }
}

impl Answer {
    /// Whether a failure at this event must stop nothing: a stop that is refused sends the agent back to work, and a prompt that
    /// is refused keeps the user from repairing what is broken.
    pub fn fails_open(event: &str) -> bool {
        let open =
            ["Stop", "SubagentStop", "SubagentStart", "SessionStart", "SessionEnd", "UserPromptSubmit", "PreCompact"];
        open.contains(&event)
    }

    /// The answer that stops whatever `event` is about; for an event that is not known (`None`) the one that stops the most. Of
    /// an event that [fails open](Self::fails_open) the user is told.
    pub fn refuse(event: Option<&str>, reason: &str) -> Self {
        let reason = reason.to_owned();
        if event.is_some_and(Self::fails_open) {
            return Self::from(Reply::Silent).with_message(reason);
        }
        match event {
            Some("PreToolUse") => Reply::Decided { verdict: Verdict::Deny, reason },
            Some("PermissionRequest") => Reply::DenyPermission { reason },
            _ => Reply::Block { reason },
        }
        .into()
    }

    /// Adds a message to the user.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}
