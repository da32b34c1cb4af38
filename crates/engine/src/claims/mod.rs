//! An agent's DONE beside what git and its own transcript say: snapshot at its start, verdict at its stop.
//!
//! Owns the order of things. What takes time — git, transcripts — happens before the session's ledger is locked; then the
//! counters are read, the verdict passes the gates, and its row is on disk before a block leaves. Fails open: whatever is in
//! doubt lets the agent stop (R6, R50). Page: `spec/claims.md`.

mod acts;
pub mod blocks;
pub mod capture;
mod cast_db;
mod enforced;
mod messages;
mod record;
pub mod tests_run;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use writ_claims::{
    Act, Claim, Delta, Facts, Finding, Limits, Only, Repository, Snapshot, Source, Status, Stop, Verdict, decide, judge,
};
use writ_clients::Client;
use writ_clients::transcript::Transcripts;
use writ_core::{Answer, Digest, Event, EventKind, Reply, SessionId, Timestamp, json};
use writ_store::{Store, regular_file};

use crate::Home;
use crate::governing::layers::Caller;
use crate::governing::{self, Governing, Trust, kept};
use crate::session::rows::Who;
use crate::session::state::State;
use crate::session::{Session, SessionError};

pub use crate::claim_settings::{ClaimSettings, MAIN};
pub use crate::session::ungoverned;
use blocks::AgentBlocks;
pub use enforced::{Enforced, enforced};
pub use record::PREDICATE_TYPE;
use tests_run::{TestRuns, Tests};

/// The acts a transcript tells of; none when it cannot be read.
pub fn acts_of(transcript: &Path, client: &dyn Client, home: &Home) -> Vec<Act> {
    let work = client.transcripts().and_then(|transcripts| transcripts.work(transcript));
    work.map(|work| acts::of(&work, home.user_text().as_deref())).unwrap_or_default()
}

/// Longest kept snapshot.
const MAX_SNAPSHOT: u64 = 64 << 20;

/// Most other agents of a session whose work is read.
const MAX_OTHERS: usize = 256;

/// What was found out before the ledger was locked.
pub enum Prepared {
    /// Nothing to do with claims.
    Nothing,
    /// An agent begins.
    Began {
        /// Its key.
        agent: String,
        /// The state it begins from, or why there is none.
        snapshot: Result<Box<Start>, String>,
    },
    /// An agent wants to stop.
    Stopping(Box<Stopping>),
}

/// The state an agent begins from.
pub struct Start {
    root: PathBuf,
    snapshot: Snapshot,
    /// When it was kept.
    since: Option<SystemTime>,
}

/// A stop, laid beside the facts.
pub struct Stopping {
    agent: Option<String>,
    kind: String,
    again: bool,
    claim: Claim,
    /// `payload` or `transcript`.
    source: &'static str,
    judged: Result<Judged, NoVerdict>,
    policy: writ_policy::Claims,
}

/// A verdict with the state it rests on.
struct Judged {
    verdict: Verdict,
    after: Snapshot,
    root: PathBuf,
}

/// Why there is no verdict.
enum NoVerdict {
    /// No snapshot of the agent's start was kept.
    NoSnapshot,
    /// git did not answer, then or now.
    Unreliable(String),
}

/// The key an agent's snapshot and counters go by.
fn key(input: &Event) -> Option<String> {
    input.agent.as_ref().map(|agent| agent.id.clone()).filter(|id| !id.is_empty())
}

/// Where an agent's snapshot is kept, in its session's folder.
fn kept_as(agent: &str) -> String {
    let digest = Digest::of(agent.as_bytes()).hex();
    format!("agents/{}.json", digest.get(..24).unwrap_or(&digest))
}

/// Does what can be done without the ledger. Never fails: doubt is part of the answer. Where `only` names a work tree, git is asked of
/// no other: the agent can have made one whose settings run programs.
pub fn prepare(input: &Event, home: &Home, store: &Store, id: &SessionId, only: Option<&Path>) -> Prepared {
    let began = |agent: String| began(agent, Path::new(&input.cwd), home, only);
    match &input.kind {
        EventKind::SubagentStart => key(input).map_or(Prepared::Nothing, began),
        EventKind::UserPromptSubmit { .. } if home.claims.includes_main(Some(&policy(input, store, id))) => {
            began(MAIN.to_owned())
        }
        EventKind::SubagentStop { transcript, last_message, again } => {
            let kind = input.agent.as_ref().and_then(|agent| agent.kind.clone()).unwrap_or_default();
            let words =
                Words { said: last_message.as_deref(), own: transcript.as_deref(), main: input.transcript.as_deref() };
            Prepared::Stopping(Box::new(stopping(input, home, (store, id, only), (key(input), kind, *again), words)))
        }
        EventKind::Stop { last_message, again } if home.claims.includes_main(Some(&policy(input, store, id))) => {
            let words = Words { said: last_message.as_deref(), own: input.transcript.as_deref(), main: None };
            let agent = (Some(MAIN.to_owned()), MAIN.to_owned(), *again);
            Prepared::Stopping(Box::new(stopping(input, home, (store, id, only), agent, words)))
        }
        _ => Prepared::Nothing,
    }
}

/// The word on claims of the policy that the session was begun under, or that a human accepted since: the copy kept under its
/// digest, wherever the agent works now and whatever became of the file. A session that has yet to begin has the one it will
/// begin under. Nothing where none governs, or it cannot be read: this check fails open.
fn policy(input: &Event, store: &Store, id: &SessionId) -> writ_policy::Claims {
    let caller = Caller::of(input.agent.as_ref());
    accepted(store, id, caller).or_else(|| found(Path::new(&input.cwd), caller)).unwrap_or_default()
}

/// The word of the policy in a session's last state; `None` when the session has not begun.
fn accepted(store: &Store, id: &SessionId, caller: Caller<'_>) -> Option<writ_policy::Claims> {
    let row = store.last_row(id).ok().flatten()?;
    let Some(accepted) = State::from_detail(&row.detail)?.policy else { return Some(writ_policy::Claims::default()) };
    let governing = kept::open(&accepted, &store.folder(id), &Trust::open(None)).ok();
    Some(governing.map(|governing| claims_of(&governing, caller)).unwrap_or_default())
}

/// The word of the policy that governs a folder.
fn found(cwd: &Path, caller: Caller<'_>) -> Option<writ_policy::Claims> {
    let path = governing::find(cwd)?;
    let governing = governing::open(&path, None, &Trust::open(None)).ok()?;
    Some(claims_of(&governing, caller))
}

fn claims_of(governing: &Governing, caller: Caller<'_>) -> writ_policy::Claims {
    writ_policy::Claims::strictest(governing.policies(caller).into_iter().map(writ_policy::Policy::claims))
}

fn limits(home: &Home, only: Option<&Path>) -> Limits {
    let default = Limits { only: only.map(Only::at), ..Limits::default() };
    Limits { max_hash_bytes: home.claims.max_hash_bytes.unwrap_or(default.max_hash_bytes), ..default }
}

/// Where git is asked.
fn place(cwd: &Path, only: Option<&Path>) -> PathBuf {
    let other = only.filter(|only| !Repository::containing(cwd).is_ok_and(|found| Only::at(only).is(&found)));
    other.unwrap_or(cwd).to_owned()
}

fn began(agent: String, cwd: &Path, home: &Home, only: Option<&Path>) -> Prepared {
    let taken = Snapshot::take(&place(cwd, only), &limits(home, only));
    let start = taken.map(|(snapshot, repository)| Box::new(Start { root: repository.root, snapshot, since: None }));
    Prepared::Began { agent, snapshot: start.map_err(|error| error.to_string()) }
}

/// Where the words of a claim may stand.
#[derive(Clone, Copy)]
struct Words<'a> {
    said: Option<&'a str>,
    own: Option<&'a str>,
    main: Option<&'a str>,
}

fn stopping(
    input: &Event,
    home: &Home,
    (store, id, only): (&Store, &SessionId, Option<&Path>),
    (agent, kind, again): (Option<String>, String, bool),
    words: Words<'_>,
) -> Stopping {
    let transcripts = writ_clients::named(input.client).and_then(Client::transcripts);
    let work = |path: Option<&str>| transcripts?.work(Path::new(path?));
    let own = work(words.own);
    let from_transcript =
        || own.as_ref().and_then(|own| own.last_message.clone()).or_else(|| work(words.main)?.last_message);
    let (text, source) = match words.said.filter(|text| !text.trim().is_empty()) {
        Some(said) => (said.to_owned(), "payload"),
        None => (from_transcript().unwrap_or_default(), "transcript"),
    };
    let claim = Claim::parse(&text);
    let user = home.user_text();
    let acts = own.as_ref().map(|own| acts::of(own, user.as_deref())).unwrap_or_default();
    let worked_in = own.map(|own| acts::folders(&own, user.as_deref())).unwrap_or_default();
    let folders = [PathBuf::from(&input.cwd)].into_iter().chain(worked_in).collect();
    let judged = match agent.as_deref().map(|agent| kept(store, id, agent)) {
        None | Some(None) => Err(NoVerdict::NoSnapshot),
        Some(Some(Err(why))) => Err(NoVerdict::Unreliable(why)),
        Some(Some(Ok(start))) => {
            let limits = limits(home, only);
            let case =
                Case { input, home, limits, transcripts, start: &start, claim: &claim, acts: &acts, folders, words };
            case.judge().map_err(|error| NoVerdict::Unreliable(error.to_string()))
        }
    };
    Stopping { agent, kind, again, claim, source, judged, policy: policy(input, store, id) }
}

/// Everything of a case but its verdict.
struct Case<'a> {
    input: &'a Event,
    home: &'a Home,
    limits: Limits,
    transcripts: Option<&'a dyn Transcripts>,
    start: &'a Start,
    claim: &'a Claim,
    acts: &'a [Act],
    /// Where a relative path may start, besides the top.
    folders: Vec<PathBuf>,
    words: Words<'a>,
}

impl Case<'_> {
    fn judge(&self) -> Result<Judged, writ_claims::GitError> {
        let limits = self.limits;
        let (after, repository) = Snapshot::take(&self.start.root, &limits)?;
        let delta = Delta::between(&self.start.snapshot, &after, &repository.root, &limits)?;
        let against = |acts: &[Act], others: &BTreeSet<PathBuf>| {
            let facts = Facts {
                before: &self.start.snapshot,
                since: self.start.since,
                after: &after,
                delta: &delta,
                repository: &repository,
                folders: &self.folders,
                home: self.home.user.as_deref(),
                acts,
                others,
                limits: &limits,
            };
            judge(self.claim, &facts)
        };
        let mut verdict = against(self.acts, &BTreeSet::new());
        if verdict.proven {
            // Somebody else may have written the same file since, or have taken it back.
            let others = self.others();
            let unknown = others.unknown.then_some(Act::Unknown);
            verdict = against(&self.acts.iter().cloned().chain(unknown).collect::<Vec<_>>(), &others.written);
        }
        let Repository { root, .. } = repository;
        Ok(Judged { verdict, after, root })
    }

    /// The start, with room for coarse clocks.
    fn since(&self) -> Option<Timestamp> {
        let since = self.start.since?.duration_since(UNIX_EPOCH).ok()?.as_millis();
        Some(Timestamp::from_millis(i64::try_from(since).ok()?.saturating_sub(2_000)))
    }

    /// What the session's other agents did meanwhile.
    fn others(&self) -> acts::Others {
        let (Some(transcripts), Some(main)) = (self.transcripts, self.input.transcript.as_deref()) else {
            return acts::Others::default();
        };
        let files = transcripts.files(Path::new(main)).unwrap_or_default().files.into_iter().map(|(_, path)| path);
        let others = files.filter(|path| Some(path.as_path()) != self.words.own.map(Path::new)).take(MAX_OTHERS);
        let works = others.filter_map(|path| transcripts.work(&path));
        acts::others(works, self.home.user_text().as_deref(), self.since())
    }
}

/// The start of an agent as it is kept in the session's folder.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Kept {
    /// git did not answer.
    Failed { error: String },
    /// The work tree.
    Tree {
        #[serde(with = "json::path")]
        root: PathBuf,
        files: Snapshot,
    },
}

/// What the row of an agent's start says.
#[derive(Serialize)]
struct Began<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    /// Digest of what is kept.
    snapshot: Digest,
}

/// The kept start of an agent: `None` when there is none, an error when git did not answer then.
fn kept(store: &Store, id: &SessionId, agent: &str) -> Option<Result<Start, String>> {
    let path = store.folder(id).join(kept_as(agent));
    let found = fs::metadata(&path).ok()?;
    let bytes = regular_file::read(&path, MAX_SNAPSHOT).ok()?;
    Some(match json::from_slice_with(&bytes, json::Limits::FOREIGN).ok()? {
        Kept::Failed { error } => Err(error),
        Kept::Tree { root, files } => Ok(Start { root, snapshot: files, since: found.modified().ok() }),
    })
}

/// Puts what was prepared on record and answers.
pub fn record(session: &mut Session<'_>, input: &Event, prepared: Prepared) -> Result<Answer, SessionError> {
    match prepared {
        Prepared::Nothing => Ok(Reply::Silent.into()),
        Prepared::Began { agent, snapshot } => {
            let kept = match snapshot {
                Ok(start) => {
                    let Start { root, snapshot: files, .. } = *start;
                    Kept::Tree { root, files }
                }
                Err(error) => Kept::Failed { error },
            };
            let bytes = json::to_canonical(&kept);
            session.keep(&kept_as(&agent), bytes.as_bytes())?;
            let detail = Began { who: Who::of(input), snapshot: Digest::of(bytes.as_bytes()) };
            let name = if agent == MAIN { "main-start" } else { "subagent-start" };
            let draft = session.event(name, detail);
            session.append(draft)?;
            Ok(Reply::Silent.into())
        }
        Prepared::Stopping(stopping) => stopped(session, input, *stopping),
    }
}

fn stopped(session: &mut Session<'_>, input: &Event, stopping: Stopping) -> Result<Answer, SessionError> {
    let enforcement = session.home.claims.with(Some(&stopping.policy));
    let agent = stopping.agent.clone().unwrap_or_default();
    let tests = stopping.claim.ran_tests.then(|| {
        let mut runs = TestRuns::of((agent != MAIN).then_some(agent.as_str()));
        // What cannot be read tells of no run, as before it was written.
        let _whole = session.each_row(|row| runs.row(row)).is_ok();
        runs.outcome()
    });
    let done = stopping.claim.status == Some(Status::Done);
    let false_tests = done && stopping.policy.tests && matches!(tests, Some(Tests::Failed | Tests::NoneRan));
    let mut counts = AgentBlocks::kept(session);
    let stop = Stop {
        agent: stopping.agent.as_deref(),
        kind: &stopping.kind,
        hook_active: stopping.again,
        // Where the counts are lost, the agent may stop.
        agent_blocks: counts.as_ref().map_or(u64::MAX, |counts| counts.of(&agent)),
        session_blocks: session.state.blocks.map_or(0, |blocks| blocks.total),
    };
    let finding = match &stopping.judged {
        _ if false_tests => Finding::FalseTests,
        Ok(judged) => Finding::Judged(&judged.verdict),
        Err(NoVerdict::NoSnapshot) => Finding::NoDelta { done: false },
        Err(NoVerdict::Unreliable(_)) => Finding::NoDelta { done: done && !stopping.claim.files.is_empty() },
    };
    let code = decide(&enforcement, &stop, finding);
    if code.blocks()
        && let Some(counts) = &mut counts
    {
        counts.record(session, &agent)?;
    }
    let notes = messages::report(&stopping, code, enforcement.on);
    let claim = record::Claim::of(&stopping, code, tests);
    record::append(session, input, &stopping, &claim)?;
    cast_db::mirror(session.home, input.session.as_str(), &claim, session.now);
    let mut answer = Answer::from(if code.blocks() {
        Reply::Block { reason: messages::reason(&stopping, tests.filter(|_| false_tests)) }
    } else {
        Reply::Silent
    });
    if stopping.claim.source != Source::None {
        answer.message = Some(notes.join("\n"));
    }
    answer.notes = notes;
    Ok(answer)
}
