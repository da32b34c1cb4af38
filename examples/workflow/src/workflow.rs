//! What a workflow engine needs of Writ: a session under a policy, an agent whose calls are asked about, steps, and a report.
//!
//! Owns the words between a workflow and the engine: events in the JSON of `spec/clients/generic.md`, which any program can write.
//! Refuses to make a call that was not allowed. Invariant: an answer that lets a call be made has its row on disk.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use writ_clients::generic::Generic;
use writ_core::json::{self, Value};
use writ_core::{Reply, SessionId, Verdict};
use writ_engine::steps::{self, Step};
use writ_engine::verify::{self, Options, Report};
use writ_engine::{Home, governing, hook};
use writ_store::Store;

use super::absolute;

/// A workflow's session.
pub struct Workflow {
    home: Home,
    store: Store,
    session: SessionId,
    repository: PathBuf,
    calls: Cell<u64>,
}

/// An agent in it.
pub struct Agent<'w> {
    workflow: &'w Workflow,
}

/// What an agent is told of a call that was not made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Denied(String);

/// What came of a call.
type Made<T> = Result<std::result::Result<T, Denied>>;

impl Workflow {
    /// Begins a session of the repository under the policy that is found there. `state` is where the record is kept.
    pub fn new(name: &str, state: &Path, repository: &Path) -> Result<Self> {
        fs::create_dir_all(state)?;
        let home = Home {
            state: Some(absolute(state)?),
            user: Some(absolute(repository)?),
            program: std::env::current_exe().ok(),
            search: vec!["/usr/bin".into(), "/bin".into()],
            ..Home::default()
        };
        let store = Store::open(absolute(state)?)?;
        let workflow =
            Self { home, store, session: SessionId::new(name), repository: absolute(repository)?, calls: Cell::new(0) };
        workflow.told("session-start", r#","source":"startup""#)?;
        Ok(workflow)
    }

    /// The policy that governs: its name and digest.
    pub fn policy(&self) -> Result<String> {
        let path = governing::find(&self.repository).context("no policy is in reach")?;
        let governing = governing::open(&path, None, &governing::Trust::open(self.home.state.as_deref()))?;
        Ok(format!("`{}` {}", governing.policy.name(), governing.policy.digest()))
    }

    /// Runs an agent as a step. What it did is attested turn by turn; that it came to its end is the step's own statement.
    pub fn run(&self, step: &str, agent: impl FnOnce(&mut Agent<'_>) -> Result<()>) -> Result<()> {
        agent(&mut Agent { workflow: self })?;
        self.step(step, &["true"])
    }

    /// Runs a command as a step, which is attested with its exit code.
    pub fn step(&self, name: &str, command: &[&str]) -> Result<()> {
        let step = Step {
            name: name.to_owned(),
            command: command.iter().map(Into::into).collect(),
            materials: vec!["src".into()],
            products: Vec::new(),
            cwd: self.repository.clone(),
        };
        let ran = steps::run(&self.store, &self.session, &self.home, &step)?;
        ensure!(ran.code == 0, "the step `{name}` ended with {}", ran.code);
        Ok(())
    }

    /// The session's end, which is sealed.
    pub fn finish(&self) -> Result<()> {
        self.told("session-end", "")
    }

    /// The whole record, checked again.
    pub fn verify(&self) -> Result<Report> {
        Ok(verify::session(&self.store, &self.session, &self.home, &Options::default())?)
    }

    /// Tells of an event that needs no answer.
    fn told(&self, event: &str, members: &str) -> Result<()> {
        self.answer(event, members).map(drop)
    }

    fn answer(&self, event: &str, members: &str) -> Result<Reply> {
        let text = |text: &str| json::to_compact(text);
        let (session, cwd) = (text(self.session.as_str()), text(&self.repository.to_string_lossy()));
        let payload = format!(r#"{{"event":"{event}","session":{session},"cwd":{cwd}{members}}}"#);
        Ok(hook::answer(payload.as_bytes(), &Generic, &self.home, &self.repository).reply)
    }
}

impl Agent<'_> {
    /// The repository it works in.
    pub fn repository(&self) -> &Path {
        &self.workflow.repository
    }

    /// A human's prompt: a turn begins.
    pub fn prompted(&mut self, text: &str) -> Result<()> {
        self.workflow.told("prompt", &format!(r#","text":{}"#, json::to_compact(text)))
    }

    /// The turn's end, which is attested.
    pub fn stops(&mut self) -> Result<()> {
        self.workflow.told("stop", "")
    }

    /// Writes a file, if the policy lets it.
    pub fn write(&mut self, path: &Path, text: &str) -> Made<()> {
        let does = format!(r#"{{"write":{{"paths":[{}]}}}}"#, json::to_compact(&*path.to_string_lossy()));
        self.made("write_file", &does, || Ok(fs::write(path, text)?))
    }

    /// Runs a shell line, if the policy lets it.
    pub fn shell(&mut self, line: &str) -> Made<i32> {
        let does = format!(r#"{{"shell":{{"command":{}}}}}"#, json::to_compact(line));
        let repository = self.workflow.repository.clone();
        self.made("shell", &does, || {
            let status = Command::new("sh").args(["-c", line]).current_dir(repository).status()?;
            Ok(status.code().unwrap_or(1))
        })
    }

    /// Asks about a call, makes it where it is allowed, and tells what came of it.
    fn made<T>(&mut self, tool: &str, does: &str, make: impl FnOnce() -> Result<T>) -> Made<T> {
        let number = self.workflow.calls.get() + 1;
        self.workflow.calls.set(number);
        let call = format!(r#","call":{{"id":"call-{number}","tool":"{tool}","input":{does},"does":{does}}}"#);
        match self.workflow.answer("before-call", &call)? {
            // No rule speaks on it, or one allows it.
            Reply::Silent | Reply::Context { .. } | Reply::Decided { verdict: Verdict::Allow, .. } => {}
            // Nobody here can be asked, so what wants a human's word is not made.
            Reply::Decided { reason, .. } | Reply::DenyPermission { reason } | Reply::Block { reason } => {
                return Ok(Err(Denied(reason)));
            }
        }
        let made = make();
        let told = made.is_ok();
        let response = json::to_compact(&Value::Bool(told));
        self.workflow.told("after-call", &format!(r#"{call},"response":{response}"#))?;
        made.map(Ok)
    }
}
