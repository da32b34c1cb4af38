//! A turn's attestation: made, signed, kept, named by a row.
//!
//! Owns the order: what rows and transcript tell, the statement under the session's key, the file, the row. Refuses nobody's stop: what
//! cannot be attested has a row that says why. Invariant: the file is on disk before the row that names it, and no name is used twice.
//! Page: `spec/turns.md`.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_clients::Client;
use writ_clients::meter::AgentUse;
use writ_clients::transcript::MAIN;
use writ_core::{Agent, Digest, Event, EventKind, SessionId};
use writ_evidence::intoto::{self, ResourceDescriptor, Statement};
use writ_evidence::merkle::{Digest512, NodeHash};
use writ_store::{Store, regular_file};

use super::gathered::Gathered;
use super::named::Named;
use super::predicate::{AgentOf, Cumulative, Lines, Metrics, PREDICATE_TYPE, RUN, TREE, Turn, Usd, WorkTreeOf};
use super::reading::{Pending, Reader, metrics};
use super::since::Since;
use super::work_tree::{self, WorkTree};
use super::{FOLDER, TURN, name, wants_sha512};
use crate::governing::kept::PolicyRef;
use crate::identity::environment::Standing;
use crate::identity::{Document, file_name};
use crate::lag;
use crate::limits::meter::{prices_file, prices_of};
use crate::limits::prices::Prices;
use crate::session::rows::{IdentityRef, Who};
use crate::session::state::State;
use crate::session::statements::publish;
use crate::session::{Session, SessionError};

/// Largest document of an identity, and largest place of a reading.
const MAX_FILE: u64 = 64 << 20;

/// The work tree's hash, taken before the ledger is locked, where the session attests its turns.
pub fn prepare(input: &Event, store: &Store, id: &SessionId, home: Option<&Path>) -> Option<Result<WorkTree, String>> {
    let ends =
        matches!(input.kind, EventKind::Stop { .. } | EventKind::SessionEnd { .. } | EventKind::SubagentStop { .. });
    let row = if ends { store.last_row(id).ok()?? } else { return None };
    let policy = State::from_detail(&row.detail)?.policy.filter(|policy| policy.attests)?;
    wait_for_last_message(input);
    Some(work_tree::of(policy.root(), home).map_err(|error| error.to_string()))
}

/// Waits a little for what the agent said at its end: its client asks its hooks before it writes that down.
fn wait_for_last_message(input: &Event) {
    let said = match &input.kind {
        EventKind::SubagentStop { transcript, last_message, .. } => transcript.as_deref().zip(last_message.as_deref()),
        EventKind::Stop { last_message, .. } => input.transcript.as_deref().zip(last_message.as_deref()),
        _ => None,
    };
    let transcripts = writ_clients::named(input.client).and_then(Client::transcripts);
    let Some(((path, said), transcripts)) = said.zip(transcripts) else { return };
    let _told = lag::wait_for(|| transcripts.tells_of(Path::new(path), said).then_some(()));
}

#[derive(Serialize)]
struct Detail<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    #[serde(flatten)]
    named: Named,
}

/// Attests what is new of an agent's turns, where its policy asks for that.
pub fn attest(
    session: &mut Session<'_>,
    input: &Event,
    tree: Option<Result<WorkTree, String>>,
) -> Result<(), SessionError> {
    let ends =
        matches!(input.kind, EventKind::Stop { .. } | EventKind::SessionEnd { .. } | EventKind::SubagentStop { .. });
    let Some(policy) = session.state.policy.clone().filter(|policy| ends && policy.attests) else { return Ok(()) };
    let sha512 = session.policy().is_ok_and(|in_force| wants_sha512(&in_force.accepted.policy));
    if sha512 {
        Maker::<Digest512>::of(session, input, &policy, tree).and_then(|maker| maker.make(session))
    } else {
        Maker::<Digest>::of(session, input, &policy, tree).and_then(|maker| maker.make(session))
    }
}

/// What was found out before the first statement.
struct Maker<'i, H> {
    input: &'i Event,
    agent: Option<&'i Agent>,
    tree: Option<Result<WorkTree, String>>,
    transcript: Option<PathBuf>,
    /// The attestation before, and names that were used.
    last: Option<Named>,
    used: HashSet<String>,
    genesis: Digest,
    turns: Vec<Gathered>,
    end: u64,
    reader: Option<Reader<H>>,
    rewritten: bool,
    prices: Result<Prices, String>,
}

impl<'i, H: NodeHash> Maker<'i, H> {
    fn of(
        session: &Session<'_>,
        input: &'i Event,
        policy: &PolicyRef,
        tree: Option<Result<WorkTree, String>>,
    ) -> Result<Self, SessionError> {
        let agent = input.agent.as_ref();
        let name = agent.map_or(MAIN, |agent| agent.id.as_str());
        let Since { last, used, genesis, turns, end } = match agent {
            None => Since::of_main(session, policy)?,
            Some(_) => Since::of(session, name, policy)?,
        };
        let transcript = transcript(session, input, name);
        let prices = match session.state.prices {
            Some(digest) => prices_of(&session.store.folder(&session.id), digest),
            None => Prices::open(session.store.root()).map_err(|error| error.to_string()),
        };
        let (reader, rewritten) = (None, false);
        Ok(Self { input, agent, tree, transcript, last, used, genesis, turns, end, reader, rewritten, prices })
    }

    fn name(&self) -> &str {
        self.agent.map_or(MAIN, |agent| agent.id.as_str())
    }

    /// Where a reading's place is kept.
    fn place(&self) -> String {
        format!("turns/{}", Digest::of(self.name().as_bytes()).hex())
    }

    fn make(mut self, session: &mut Session<'_>) -> Result<(), SessionError> {
        let pending = self.read(session);
        let count = pending.len();
        if count == 0 {
            return self.make_unbound(session);
        }
        // Turns of before the record began are nobody's here.
        let most = if self.agent.is_some() { count } else { self.turns.len().clamp(1, count) };
        for (at, pending) in pending.into_iter().skip(count - most).enumerate() {
            let left = most - at - 1;
            // The last turn has the last prompt; what rows are left over belong to the first.
            let rest = if self.agent.is_some() { 0 } else { left.min(self.turns.len().saturating_sub(1)) };
            let own = if left == 0 { 0 } else { rest };
            let later = self.turns.split_off(self.turns.len().saturating_sub(own));
            let mine = std::mem::replace(&mut self.turns, later);
            let end = self.turns.first().map_or(self.end, |next| next.first.saturating_sub(1));
            let has_calls = mine.iter().any(Gathered::has_calls);
            if pending.again && !has_calls && pending.used.tokens().is_nothing() {
                return Ok(());
            }
            self.one(session, Some(&pending), mine, end)?;
        }
        let kept =
            self.reader.as_ref().zip(self.transcript.as_deref()).and_then(|(reader, path)| reader.to_bytes(path));
        if let Some(bytes) = kept {
            session.keep(&self.place(), &bytes)?;
        }
        Ok(())
    }

    /// What is new in the transcript; nothing where it cannot be read.
    fn read(&mut self, session: &Session<'_>) -> Vec<Pending> {
        let transcripts = session.client.and_then(Client::transcripts);
        let Some((transcripts, path)) = transcripts.zip(self.transcript.clone()) else { return Vec::new() };
        let to = self.last.as_ref().and_then(|last| last.to);
        let kept = regular_file::read(&session.store.folder(&session.id).join(self.place()), MAX_FILE).ok();
        let mut reader = match to {
            None => Reader::default(),
            Some(to) => {
                let known = kept.and_then(|bytes| Reader::resume(&bytes, &path, to));
                known.or_else(|| Reader::again(transcripts, &path, to)).unwrap_or_else(|| {
                    self.rewritten = true;
                    Reader::default()
                })
            }
        };
        if reader.read(transcripts, &path).is_err() {
            return Vec::new();
        }
        let mut pending = if self.rewritten { Vec::new() } else { reader.closed() };
        pending.extend(reader.take());
        self.reader = Some(reader);
        pending
    }

    /// A statement without a transcript.
    fn make_unbound(mut self, session: &mut Session<'_>) -> Result<(), SessionError> {
        let mine = std::mem::take(&mut self.turns);
        let new = mine.iter().any(|turn| turn.prompted || turn.has_calls());
        if !new {
            return Ok(());
        }
        let end = self.end;
        self.one(session, None, mine, end)
    }

    fn one(
        &mut self,
        session: &mut Session<'_>,
        pending: Option<&Pending>,
        mine: Vec<Gathered>,
        end: u64,
    ) -> Result<(), SessionError> {
        let mine = mine.into_iter().reduce(Gathered::then).unwrap_or_default();
        let (turn, part) = self.number(pending, &mine);
        let told = mine.told();
        let used = pending.map(|pending| pending.used.clone()).unwrap_or_default();
        let metrics = self.metrics(&used, told.duration_ms);
        let before = self.last.as_ref().map_or_else(Cumulative::begin, |last| last.cumulative);
        let cumulative = before.with(&metrics, part.is_none(), told.allowed);
        let prices = self.prices.as_ref().ok().map(|prices| (prices.digest(), prices.to_bytes()));
        let priced = prices.as_ref().map(|(digest, _)| *digest);
        let late = pending.is_some_and(|pending| pending.closed);
        let model = pending.and_then(|pending| pending.model.clone());
        let lines = pending.map(|pending| Lines {
            file: self.name().to_owned(),
            from: pending.from,
            to: pending.to,
            rewritten: self.rewritten,
        });
        let first = self.last.as_ref().map_or(0, |last| last.rows[1] + 1);
        let folder = session.store.folder(&session.id);
        let predicate = Turn {
            turn,
            part,
            run_id: session.id.to_string(),
            timestamp: session.now,
            late,
            rows: [first, end],
            metrics,
            told_late: pending.map(|pending| pending.told_late).filter(|told| *told != Default::default()),
            cumulative,
            prices: priced,
            agent: agent_of(
                session.client,
                mine.identity.and_then(|identity| standing_of(&folder, identity)).unwrap_or_default(),
                self.agent,
                &mine,
                model.clone(),
                &session.id,
            ),
            model,
            tools: told.tools,
            files: told.files,
            domains: told.domains,
            approvals: told.approvals,
            work_tree: if late { None } else { self.tree.as_ref().map(about) },
            session_binding: pending.map(|pending| pending.binding.clone()),
            lines,
        };
        if let Some((digest, bytes)) = prices {
            session.keep(&prices_file(digest), &bytes)?;
        }
        let to = pending.map(|pending| pending.to).or_else(|| self.last.as_ref()?.to);
        let mut subject = vec![ResourceDescriptor::sha256(format!("{RUN}{}", session.id), self.genesis)];
        if let Some(Ok(tree)) = self.tree.as_ref().filter(|_| !late) {
            subject.push(ResourceDescriptor::new(TREE, tree.algorithm, tree.hash.clone()));
        }
        session.take_custody()?;
        let key = session.signer()?;
        let envelope = intoto::sign(&Statement::new(subject, PREDICATE_TYPE, predicate), &[&key]);
        let bytes = envelope?.to_bytes();
        let list = session.policy().map(|in_force| in_force.accepted.list()).unwrap_or_default();
        let name = name::fresh(&self.used, self.agent, &list, self.last.is_none(), (turn, part));
        session.keep(&format!("{FOLDER}/{name}"), &bytes)?;
        let unpublished = publish(session, &name, &bytes);
        let attestation = Digest::of(&bytes);
        let (name_of_file, rows) = (name.clone(), [first, end]);
        let named =
            Named { turn, part, name: name_of_file, attestation, rows, to, cumulative, unpublished, prices: priced };
        let draft = session.event(TURN, Detail { who: Who::of(self.input), named: named.clone() });
        session.append(draft)?;
        self.used.insert(name);
        self.last = Some(named);
        Ok(())
    }

    /// The turn's number, and which statement about it this is.
    fn number(&self, pending: Option<&Pending>, mine: &Gathered) -> (u64, Option<u64>) {
        let Some(last) = &self.last else {
            return (pending.map_or(1, |pending| pending.binding.turn_index + 1), None);
        };
        let again = match pending {
            Some(pending) if !self.rewritten => pending.again,
            _ => !mine.prompted,
        };
        let index = pending.filter(|_| !self.rewritten).map(|pending| pending.binding.turn_index + 1);
        if again {
            (last.turn, Some(last.part.unwrap_or(1) + 1))
        } else {
            (index.unwrap_or(0).max(last.turn + 1), None)
        }
    }

    fn metrics(&self, used: &AgentUse, duration_ms: u64) -> Metrics {
        let tokens = metrics(used.tokens());
        Metrics {
            tokens_in: tokens.tokens_in,
            tokens_out: tokens.tokens_out,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            cost_usd: self.prices.as_ref().ok().and_then(|prices| prices.cost(used).ok()).map(Usd),
            duration_ms,
        }
    }
}

fn about(tree: &Result<WorkTree, String>) -> WorkTreeOf {
    match tree {
        Ok(tree) => WorkTreeOf { branch: tree.branch.clone(), filters_not_applied: tree.filtered, unknown: None },
        Err(why) => {
            WorkTreeOf { branch: None, filters_not_applied: false, unknown: Some(why.chars().take(200).collect()) }
        }
    }
}

/// Who the agent is, from its rows and the document that they name.
pub fn agent_of(
    client: Option<&dyn Client>,
    standing: BTreeMap<String, Standing>,
    agent: Option<&Agent>,
    mine: &Gathered,
    model: Option<String>,
    session: &SessionId,
) -> AgentOf {
    let named = mine.identity;
    AgentOf {
        provider: client.and_then(Client::provider).map(str::to_owned),
        model,
        session_id: session.to_string(),
        id: agent.map(|agent| agent.id.clone()),
        kind: agent.and_then(|agent| agent.kind.clone()),
        identity: named.map(|named| named.hash),
        identity_document: named.map(|named| named.document),
        standing,
    }
}

/// The standing of the parts of an identity, as its document in a session's folder says.
pub fn standing_of(folder: &Path, identity: IdentityRef) -> Option<BTreeMap<String, Standing>> {
    let bytes = regular_file::read(&folder.join(file_name(identity.document)), MAX_FILE).ok()?;
    Some(Document::parse(&bytes, identity.document)?.standing)
}

/// The transcript of the agent that an event is about.
fn transcript(session: &Session<'_>, input: &Event, name: &str) -> Option<PathBuf> {
    let main = input.transcript.as_deref().map(PathBuf::from);
    if name == MAIN {
        return main;
    }
    if let EventKind::SubagentStop { transcript: Some(path), .. } = &input.kind {
        return Some(PathBuf::from(path));
    }
    let files = session.client.and_then(Client::transcripts)?.files(&main?).ok()?.files;
    files.into_iter().find(|(file, _)| file == name).map(|(_, path)| path)
}
