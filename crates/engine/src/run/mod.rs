//! What people run as a whole in a sandbox: an agent's client with all its children, or any command.
//!
//! Owns a run from the session that it begins to the row and the seal that end it. Decides nothing: the run is a shell call like any
//! other, and each call inside it is decided by the hook's own road. Invariant: everything of a run is in one session, and once its last
//! row is written nothing of it is left. Page: `spec/sandbox.md`.

pub mod copies;
pub mod exchange;
mod hooks;
pub mod learn;

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_agentfile::placed::START;
use writ_clients::Client;
use writ_clients::program::Needs;
use writ_core::json::{Object, Value};
use writ_core::{Event, EventKind, SessionId, Timestamp, ToolCall, ToolUse};
use writ_evidence::keys::{KeyError, random};
use writ_policy::Grant;
use writ_sandbox::{Command, Network};
use writ_store::{Store, StoreError};

use crate::Home;
use crate::confine::client::{self, NeedsError};
use crate::confine::order::{Prepared, Whole};
use crate::confine::record::Recorder;
use crate::confine::supervise::{Ran, SuperviseError, supervise};
use crate::confine::{copy, layers};
use crate::copy::CopyError;
use crate::decide::approvals;
use crate::decide::call::{self, DecidedRun};
use crate::governing::{self, in_force};
use crate::hook::Inside;
use crate::session::rows::{BEGAN, COMMAND, ENDED, LEARNT};
use crate::session::{Session, SessionError, Wanted, Within, seal};
use copies::Copies;
use learn::Learnt;

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The command and its arguments.
    pub words: &'a [OsString],
    /// Where it starts.
    pub cwd: &'a Path,
    /// The policy that a human named.
    pub policy: Option<&'a Path>,
    /// What an agent is held to, and where its Agentfile stands: then neither is looked for.
    pub agent: Option<(&'a [u8], &'a Path)>,
    /// Whether a policy is to be learnt from it; then none need govern.
    pub learn: bool,
    /// Whether what it writes to the policy's folder goes to a layer.
    pub copy: bool,
}

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing says what it may do.
    #[error(
        "no policy governs here, so nothing says what it may do: `writ init` or `writ policy init` makes one, `--policy` names one"
    )]
    NoPolicy,
    /// It starts where the policy says nothing.
    #[error("the policy {} is about {} and what is below it: start there, or copy the policy here", policy.display(), folder.display())]
    Elsewhere {
        /// The policy.
        policy: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// A word that no rule can be held against.
    #[error("a word of the command is no UTF-8 text")]
    NotText,
    /// There is no command.
    #[error("there is no command")]
    Empty,
    /// The right is for something else.
    #[error("what was granted is not what is to run")]
    NotGranted,
    /// The session or its record.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no chance to be had.
    #[error(transparent)]
    Random(#[from] KeyError),
    /// What the client needs.
    #[error(transparent)]
    Needs(#[from] NeedsError),
    /// What its copy begins from.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The run.
    #[error(transparent)]
    Run(#[from] SuperviseError),
    /// The system.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl RunError {
    /// The exit code, as a shell would have it: 127 for a program that is not there, 125 for what is Writ's own.
    pub fn exit_code(&self) -> u8 {
        if let Self::Run(error) = self { error.exit_code() } else { 125 }
    }

    /// Whether it ran all the same.
    pub const fn ran(&self) -> bool {
        matches!(self, Self::Run(SuperviseError::Unrecorded(_)))
    }
}

/// A run, whose session has begun.
pub struct Run<'a> {
    /// The session.
    pub session: SessionId,
    /// The store that it is in.
    pub store: Store,
    /// The client that is run, if it is one.
    pub client: Option<&'static dyn Client>,
    home: &'a Home,
    wish: Wish<'a>,
    line: String,
    call: String,
    program: Option<PathBuf>,
    needs: Option<Needs>,
    copies: Copies,
    made: Cell<bool>,
}

impl<'a> Run<'a> {
    /// Begins the session of a run.
    pub fn begin(wish: Wish<'a>, home: &'a Home) -> Result<Self, RunError> {
        let words: Option<Vec<&str>> = wish.words.iter().map(|word| word.to_str()).collect();
        let words = words.ok_or(RunError::NotText)?;
        let name = words.first().copied().ok_or(RunError::Empty)?;
        let store = Store::open(home.state().map_err(SessionError::from)?.to_owned())?;
        let own = own_policy(&wish, &store)?;
        let session = SessionId::new(format!("run-{:032x}", random()?));
        let client = writ_clients::of_program(name.rsplit('/').next().unwrap_or(name));
        let needs = client.and_then(|client| {
            let folder = home.folder(client);
            Some(client.program()?.needs(home.user.as_deref().or(folder)?, folder))
        });
        let run = Self {
            copies: Copies::begin(&store, &session)?,
            call: session.to_string(),
            session,
            store,
            client,
            home,
            wish,
            line: words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            program: found(name, wish.cwd, &home.search),
            needs,
            made: Cell::new(false),
        };
        let (input, now) = (run.event(), Timestamp::now());
        let learning = wish.cwd.join(governing::NAMES[0]);
        let wanted = match (wish.agent, &own, wish.policy) {
            (Some((bytes, path)), ..) => Wanted::Own(bytes, path),
            (None, Some(own), _) => Wanted::Own(own, &learning),
            (None, None, Some(path)) => Wanted::File(path),
            (None, None, None) => Wanted::Found,
        };
        Session::open_under(&run.store, &run.session, &input, home, now, wanted)?;
        Ok(run)
    }

    fn event(&self) -> Event {
        Event {
            client: self.client.map_or(COMMAND, Client::name),
            session: self.session.clone(),
            client_session: None,
            transcript: None,
            cwd: self.wish.cwd.to_string_lossy().into_owned(),
            agent: None,
            permission_mode: None,
            prompt_id: None,
            kind: EventKind::SessionStart { source: Some(BEGAN.to_owned()) },
        }
    }

    /// Decides it, and records that. A human's yes in between makes another decision of it.
    pub fn decide(&self) -> Result<DecidedRun, RunError> {
        // Its sandbox is tested with it, before it is decided.
        if let Some(needs) = self.needs.as_ref().filter(|_| !self.made.replace(true)) {
            client::make(needs, self.copies.folder(), self.wish.cwd)?;
        }
        let mut session = Session::resume(&self.store, &self.session, self.home, Timestamp::now())?;
        let input = [("command".to_owned(), Value::from(self.line.as_str()))];
        let input = Value::Object(input.into_iter().collect::<Object>());
        let mut call = ToolCall::new("Bash", input, self.wish.cwd.to_string_lossy());
        if self.wish.agent.is_some() {
            // What an Agentfile starts is declared, whether or not it declares a shell.
            START.clone_into(&mut call.tool);
        }
        let used = ToolUse { id: self.call.clone(), call };
        let whole = Whole {
            needs: self.needs.as_ref(),
            copies: self.copies.folder(),
            program: self.program.as_deref(),
            copy: self.wish.copy,
        };
        Ok(call::whole(&mut session, &self.event(), &used, &whole)?)
    }

    /// Runs it in what was granted.
    pub fn carry_out(&self, grant: &Grant, prepared: &Prepared) -> Result<Ran, RunError> {
        let order = prepared.order();
        if !grant.covers(order.digest(), &self.line) {
            return Err(RunError::NotGranted);
        }
        let (program, arguments) = self.wish.words.split_first().ok_or(RunError::Empty)?;
        if copy::is_one(&order.confinement) {
            let mut session = Session::resume(&self.store, &self.session, self.home, Timestamp::now())?;
            crate::copy::begin(&mut session, &self.call, order)?;
        }
        let inside_port = match &order.confinement.network {
            Network::Proxied(ports) => ports.hooks,
            Network::Open | Network::Closed => None,
        };
        let listener = if inside_port.is_none() { Some(TcpListener::bind("127.0.0.1:0")?) } else { None };
        let own = listener.as_ref().map(|listener| listener.local_addr().map(|address| address.port())).transpose()?;
        let token = format!("{:032x}", random()?);
        let port = inside_port.or(own).unwrap_or_default();
        let variable = (exchange::VARIABLE.into(), exchange::variable(port, &token).into());
        let command = Command::new(program.clone(), arguments.iter().cloned());
        let command = Command { environment: vec![variable], noted: self.wish.learn, ..command };
        let recorder = Recorder {
            store: self.store.clone(),
            home: self.home.clone(),
            session: self.session.clone(),
            call: Some(self.call.clone()),
            after: None,
        };
        let inside = Inside {
            session: self.session.clone(),
            within: Within {
                run: self.call.clone(),
                held: prepared.held,
                repository: governing::repository(self.wish.cwd).to_owned(),
            },
            transcripts: self.needs.iter().map(|needs| needs.folder.clone()).collect(),
        };
        Ok(supervise(&recorder, grant, order, command, |made| {
            let listener = made.or(listener).ok_or_else(|| io::Error::other("no socket for hooks was made"))?;
            hooks::serve(listener, &token, self.home.clone(), inside)
        })?)
    }

    /// The policy for what it did, which its row names; nothing where that was not wanted.
    pub fn learn(&self, ran: &Ran, prepared: &Prepared) -> Result<Option<Learnt>, RunError> {
        let Some(observed) = &ran.observed else { return Ok(None) };
        let mut session = Session::resume(&self.store, &self.session, self.home, Timestamp::now())?;
        let root = session.state.policy.as_ref().map_or(self.wish.cwd, |policy| policy.root()).to_owned();
        let learnt = learn::learn(observed, prepared.order(), &root, self.home);
        let mut draft = session.event(LEARNT, learnt.row());
        draft.call_id = Some(self.call.clone());
        session.append(draft)?;
        Ok(Some(learnt))
    }

    /// Ends the session: its last row, and the seal over all of them. Gives how many calls it had.
    pub fn end(self, code: u8, why: Option<&str>) -> Result<u64, RunError> {
        let mut session = Session::resume(&self.store, &self.session, self.home, Timestamp::now())?;
        let mut draft = session.event(ENDED, Ended { code, why, standing: "observed" });
        draft.call_id = Some(self.call.clone());
        session.state.over = true;
        session.append(draft)?;
        seal::seal(&mut session)?;
        // A copy waits for its human; caches and temporary files wait for nobody.
        layers::remove(&self.store, &self.session);
        approvals::text::forget_all(&self.store.folder(&self.session));
        Ok(session.state.calls + session.state.asked)
    }
}

/// What the last row says.
#[derive(Serialize)]
struct Ended<'a> {
    code: u8,
    /// Why it did not run, or how its record is not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    standing: &'static str,
}

/// The policy of Writ's own where none governs and one is to be learnt. One that is gone is not replaced.
fn own_policy(wish: &Wish<'_>, store: &Store) -> Result<Option<Vec<u8>>, RunError> {
    let nobody_says = wish.learn && wish.policy.is_none() && governing::find(wish.cwd).is_none();
    if nobody_says && !in_force::is_lost(store, wish.cwd) {
        return Ok(Some(learn::unwritten()));
    }
    about(wish).map(|()| None)
}

/// Whether some policy is about the folder that it starts in.
fn about(wish: &Wish<'_>) -> Result<(), RunError> {
    let Some(policy) = wish.policy.or(wish.agent.map(|(_, path)| path)) else {
        return governing::find(wish.cwd).map(drop).ok_or(RunError::NoPolicy);
    };
    let folder = policy.parent().unwrap_or(Path::new("/"));
    if wish.cwd.starts_with(folder) {
        return Ok(());
    }
    Err(RunError::Elsewhere { policy: policy.to_owned(), folder: folder.to_owned() })
}

/// A word as a shell reads it again.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Where a program lies.
fn found(name: &str, cwd: &Path, search: &[PathBuf]) -> Option<PathBuf> {
    let places =
        if name.contains('/') { vec![cwd.join(name)] } else { search.iter().map(|dir| dir.join(name)).collect() };
    places.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_one_line_that_reads_as_they_are() {
        let line: Vec<String> = ["claude", "-p", "it's", "", "a b", "$x", "~", "A=1"].map(quoted).into();
        assert_eq!(line.join(" "), r"claude -p 'it'\''s' '' 'a b' '$x' '~' 'A=1'");
    }
}
