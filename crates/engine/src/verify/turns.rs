//! The attestations of turns: each against its row, its signature, what rows tell, and the transcript.
//!
//! Owns the first question: whether every statement is there, signed by the session's key, and says what the rows say, in an unbroken
//! order; [`binding`] has the second, on the transcripts. Refuses a name that its agent's statements cannot have. Invariant: each row that
//! names a statement is checked, and each file that none names is found. Page: `spec/turns.md`.

mod binding;
mod statement;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

use writ_clients::Client;
use writ_clients::transcript::MAIN;
use writ_core::{Agent, Digest, SessionId, Timestamp};
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;
use writ_evidence::tally::{Tally, listed};

use super::phase::{Outcome, Phase, Standing};
use super::phase_names::TURNS;
use super::policies::{self, Kept};
use crate::governing::in_force::PolicyRef;
use crate::governing::layers::LayerRef;
use crate::identity::environment::Standing as PartStanding;
use crate::session::rows::{ENDED, IdentityRef, PROMPT, RESUMED, event};
use crate::session::state::State;
use crate::turns::attest::{agent_of, standing_of};
use crate::turns::gathered::{self, Gathered};
use crate::turns::named::Named;
use crate::turns::predicate::{Cumulative, Turn};
use crate::turns::{FOLDER, name};
use binding::{Behind, Checked};
use statement::{Ahead, Place, Reader};

/// Most turns that a report tells one by one.
const MOST: usize = 20;
/// Most documents of identities whose standing is remembered.
const MOST_STANDINGS: usize = 10_000;

/// What a policy wants of the order of turns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Most turns from one that is attested to the next.
    pub distance: Option<u64>,
    /// None is left out.
    pub contiguous: bool,
}

impl Order {
    /// What both want.
    pub fn and(self, other: Self) -> Self {
        let distance = self.distance.into_iter().chain(other.distance).min();
        Self { distance, contiguous: self.contiguous || other.contiguous }
    }
}

/// What is known of one agent's turns.
#[derive(Default)]
pub struct OfAgent {
    /// Rows that no attestation speaks for yet.
    open: Vec<Gathered>,
    last: Option<Named>,
    checked: Vec<Checked>,
    /// Turns that spawned sub-agents, by the types of these.
    spawned: Vec<(u64, String)>,
    unbound: u64,
    /// The type of the agent, where its client says it.
    kind: Option<String>,
    /// The hash of the last attested work tree.
    tree: Option<String>,
    /// Its first row, and when its last was written.
    first: Option<u64>,
    ended: Option<Timestamp>,
    /// What the transcript tells behind the last turn that is attested.
    behind: Cell<Behind>,
}

/// All statements of a session.
pub struct Turns<'a> {
    folder: &'a Path,
    kept: &'a Kept,
    /// The layers of the policy that governed last, with the digest of their list.
    layers: Option<(Digest, Vec<LayerRef>)>,
    client: Option<&'static dyn Client>,
    session: Option<String>,
    genesis: Digest,
    asked: bool,
    agents: BTreeMap<String, OfAgent>,
    names: HashSet<String>,
    /// Statements of rows that come next.
    ahead: Ahead,
    /// What identities' documents say of standing.
    standings: HashMap<Digest, BTreeMap<String, PartStanding>>,
    /// Turns that do not follow each other: whose, how far apart, and the words for it.
    gaps: Vec<(String, u64, String)>,
    late: u64,
    unpublished: Tally,
    wrong: Tally,
    count: u64,
    /// The session came to its end, and nothing happened in it since.
    ended: bool,
}

impl<'a> Turns<'a> {
    /// Statements that lie in `folder`, of the session of that id, which keeps these policies.
    pub fn of(folder: &'a Path, session: Option<String>, kept: &'a Kept) -> Self {
        Self {
            folder,
            kept,
            layers: None,
            client: None,
            session,
            genesis: Digest::ZERO,
            asked: false,
            agents: BTreeMap::new(),
            names: HashSet::new(),
            ahead: Ahead::default(),
            standings: HashMap::new(),
            gaps: Vec::new(),
            late: 0,
            unpublished: Tally::new(),
            wrong: Tally::new(),
            count: 0,
            ended: false,
        }
    }

    fn place(&self) -> Place<'_> {
        Place { folder: self.folder, session: self.session.as_deref(), genesis: self.genesis }
    }

    /// Whoever reads statements before their rows come, on another thread.
    pub fn reader(&self) -> Reader<'a> {
        Reader::of(self.folder, self.session.clone())
    }

    /// Takes what was read of the next rows, which come one by one after this.
    pub fn ahead(&mut self, ahead: Ahead) {
        self.ahead = ahead;
    }

    /// The standing of the parts of an identity, by its document.
    fn standing(&mut self, identity: Option<IdentityRef>) -> BTreeMap<String, PartStanding> {
        let Some(identity) = identity else { return BTreeMap::new() };
        if let Some(known) = self.standings.get(&identity.document) {
            return known.clone();
        }
        let Some(read) = standing_of(self.folder, identity) else { return BTreeMap::new() };
        if self.standings.len() < MOST_STANDINGS {
            self.standings.insert(identity.document, read.clone());
        }
        read
    }

    /// Takes the next row, the state it holds, and the key that signs there.
    pub fn row(&mut self, row: &Row, state: Option<&State>, key: Option<&PublicKey>) {
        if row.sequence == 0 {
            self.genesis = row.entry_hash;
            self.client = crate::session::rows::client(&row.detail).ok();
        }
        self.ended = match event(row) {
            "session-end" | ENDED => true,
            PROMPT | "tool-call" | RESUMED => false,
            _ => self.ended,
        };
        let Some(policy) = state.and_then(|state| state.policy.as_ref()) else { return };
        let agent = gathered::agent(row).to_owned();
        let own = self.agents.entry(agent.clone()).or_default();
        own.first = own.first.or(Some(row.sequence));
        own.ended = Some(row.timestamp);
        if own.kind.is_none() {
            let kind = row.detail.get("agent").and_then(|agent| agent.get("type"));
            own.kind = kind.and_then(|kind| kind.as_str().map(str::to_owned));
        }
        // As whoever signs does: rows from before anybody asked are nobody's.
        self.asked |= policy.attests;
        if !self.asked {
            return;
        }
        match Named::of(row) {
            None => {
                let own = self.agents.entry(agent).or_default();
                gathered::take(&mut own.open, row, policy.root());
            }
            Some(named) => {
                self.count += 1;
                let named = named.map_err(|error| format!("it names no attestation of a turn: {error}"));
                if let Err(why) = named.and_then(|named| self.check(row, &agent, named, (policy, key))) {
                    self.wrong.add(row.sequence, &why);
                }
            }
        }
    }

    /// A statement is called as those of its agent are: a sub-agent's begin with what its sublayout says.
    fn own_name(&mut self, named: &Named, agent: &str, policy: &PolicyRef) -> Result<(), String> {
        let mut prefix = None;
        if agent != MAIN {
            if self.layers.as_ref().map(|(digest, _)| *digest) != policy.layers {
                let list = policies::list(policy, self.kept)?;
                self.layers = policy.layers.map(|digest| (digest, list));
            }
            let kind = self.agents.get(agent).and_then(|own| own.kind.as_deref());
            prefix = self.layers.as_ref().and_then(|(_, list)| name::prefix(list, kind));
        }
        let sub = (agent != MAIN).then_some(agent);
        if name::is_of(&named.name, sub, prefix.as_deref(), named.turn, named.part) {
            return Ok(());
        }
        Err(format!("{} is no name of a statement of {agent}'s turn {}", named.name, named.turn))
    }

    fn check(
        &mut self,
        row: &Row,
        agent: &str,
        named: Named,
        (policy, key): (&PolicyRef, Option<&PublicKey>),
    ) -> Result<(), String> {
        if !self.names.insert(named.name.clone()) {
            return Err(format!("its name {} was used before", named.name));
        }
        let called = self.own_name(&named, agent, policy);
        let mut own = self.agents.remove(agent).unwrap_or_default();
        let checked = self.one(row, agent, &named, key, &mut own);
        if let Some(why) = &named.unpublished {
            self.unpublished.add(row.sequence, why);
        }
        own.last = Some(named);
        self.agents.insert(agent.to_owned(), own);
        checked.and(called)
    }

    fn one(
        &mut self,
        row: &Row,
        agent: &str,
        named: &Named,
        key: Option<&PublicKey>,
        own: &mut OfAgent,
    ) -> Result<(), String> {
        let ahead = self.ahead.take(row.sequence, key);
        let (turn, tree) = ahead.unwrap_or_else(|| self.place().read(named, key))?;
        let end = named.rows[1];
        let at = own.open.iter().position(|open| open.first > end).unwrap_or(own.open.len());
        let later = own.open.split_off(at);
        let mine = std::mem::replace(&mut own.open, later).into_iter().reduce(Gathered::then).unwrap_or_default();
        let first = own.last.as_ref().map_or(0, |last| last.rows[1] + 1);
        if turn.rows != named.rows || turn.rows[0] != first || end < first || end >= row.sequence {
            return Err("it speaks for other rows than those since the attestation before".to_owned());
        }
        let same = (turn.turn, turn.part, turn.cumulative) == (named.turn, named.part, named.cumulative);
        let to = turn.lines.as_ref().map(|lines| lines.to).or_else(|| own.last.as_ref()?.to);
        if !same || to != named.to || turn.timestamp != row.timestamp {
            return Err("it says something else than the row that names it".to_owned());
        }
        if Some(turn.run_id.as_str()) != self.session.as_deref() {
            return Err("it is about another session".to_owned());
        }
        let told = mine.told();
        let rows = (&turn.tools, &turn.files, &turn.domains, &turn.approvals, turn.metrics.duration_ms);
        if rows != (&told.tools, &told.files, &told.domains, &told.approvals, told.duration_ms) {
            return Err("it tells of other calls, files, hosts or approvals than the rows".to_owned());
        }
        let sub = (agent != MAIN).then(|| Agent { id: agent.to_owned(), kind: turn.agent.kind.clone() });
        let session = SessionId::new(turn.run_id.clone());
        let standing = self.standing(mine.identity);
        let expected = agent_of(self.client, standing, sub.as_ref(), &mine, turn.model.clone(), &session);
        if turn.agent != expected || turn.agent.kind.is_some() && turn.agent.kind != own.kind {
            return Err("it tells of another agent than the rows".to_owned());
        }
        self.ordered(row, &turn, own)?;
        let before = own.last.as_ref().map_or_else(Cumulative::begin, |last| last.cumulative);
        if turn.cumulative != before.with(&turn.metrics, turn.part.is_none(), told.allowed) {
            return Err("what was used so far is not what was used before and in it".to_owned());
        }
        // A call that was let and did nothing has started nobody: it came to its end, or an agent of that type was heard of first in this turn.
        let began = |kind: &str| {
            let of_type = self.agents.values().filter(|other| other.kind.as_deref() == Some(kind));
            of_type.filter_map(|other| other.first).any(|first| (turn.rows[0]..=turn.rows[1]).contains(&first))
        };
        let started = mine.started().filter(|(kind, completed)| *completed || began(kind));
        own.spawned.extend(started.map(|(kind, _)| (turn.turn, kind.to_owned())));
        own.tree = tree.or(own.tree.take());
        self.late += u64::from(turn.late);
        own.bind(row.sequence, turn)
    }

    /// Turns follow each other, and so do the parts of one.
    fn ordered(&mut self, row: &Row, turn: &Turn, own: &OfAgent) -> Result<(), String> {
        let Some(last) = &own.last else {
            if turn.turn > 1 {
                let words = format!("row {}: turn {} is the first that is attested", row.sequence, turn.turn);
                self.gaps.push((gathered::agent(row).to_owned(), turn.turn, words));
            }
            return if turn.part.is_none() { Ok(()) } else { Err("it goes on with a turn that none began".to_owned()) };
        };
        let goes_on = turn.turn == last.turn && turn.part == Some(last.part.unwrap_or(1) + 1);
        if !goes_on && (turn.turn <= last.turn || turn.part.is_some()) {
            return Err(format!("turn {} does not come after turn {}", turn.turn, last.turn));
        }
        let distance = turn.turn - last.turn;
        if distance > 1 {
            let words = format!("row {}: turn {} comes after turn {}", row.sequence, turn.turn, last.turn);
            self.gaps.push((gathered::agent(row).to_owned(), distance, words));
        }
        Ok(())
    }

    /// Turns of these agents that are further apart than a policy wants.
    pub fn gaps(&self, order: Order, whose: &dyn Fn(&str) -> bool) -> Vec<String> {
        let far = |distance: u64| order.contiguous || order.distance.is_some_and(|most| distance > most);
        let broken = self.gaps.iter().filter(|(agent, distance, _)| whose(agent) && far(*distance));
        let theirs =
            self.agents.iter().filter(|(agent, own)| whose(agent) && far(own.behind.get().over(self.ended) + 1));
        let beyond = theirs.filter_map(|(agent, own)| own.told_behind(agent, self.ended));
        let broken = broken.map(|(.., words)| words.clone()).chain(beyond);
        broken.map(|words| format!("{words}, and the policy wants them nearer")).collect()
    }

    /// Turns of these agents that came to their end and for which nothing speaks.
    pub fn unattested(&self, whose: &dyn Fn(&str) -> bool) -> Vec<String> {
        let theirs = self.agents.iter().filter(|(agent, _)| whose(agent));
        theirs.filter_map(|(agent, own)| own.unattested(agent, self.ended)).collect()
    }

    /// One phase on the statements; nothing where no policy asks for any.
    pub fn phase(&mut self) -> Option<Phase> {
        if !self.asked && self.count == 0 {
            return None;
        }
        for name in fs::read_dir(self.folder.join(FOLDER)).into_iter().flatten().flatten() {
            let name = name.file_name().to_string_lossy().into_owned();
            // Verdicts lie there too, under their digests.
            let other = name.strip_suffix(".json").is_some_and(|stem| Digest::from_hex(stem).is_ok());
            if !self.names.contains(&name) && !other && !name.starts_with(".draft-") {
                self.wrong.apart(format!("{FOLDER}/{name} is named by no row: it was added, or its row is gone"));
            }
        }
        let open = self.unattested(&|_agent| true);
        let (outcome, summary, findings) = if self.wrong.total() > 0 {
            let why = "the attestations of turns do not hold".to_owned();
            (Outcome::Failed, why, std::mem::replace(&mut self.wrong, Tally::new()).texts())
        } else if self.count == 0 {
            (Outcome::Absent, "no turn was attested".to_owned(), open)
        } else if !open.is_empty() {
            (Outcome::Absent, "a turn has ended and is not attested".to_owned(), open)
        } else {
            let late = if self.late > 0 { format!(", {} of them late", self.late) } else { String::new() };
            let mut told = Vec::new();
            for (agent, own) in self.agents.iter().filter(|(_, own)| own.last.is_some()) {
                told.extend(own.last.as_ref().map(|last| format!("{agent}: {} turns", last.cumulative.turns)));
            }
            let all = told.len() as u64;
            let mut findings = listed(told.into_iter().take(MOST).collect(), all);
            findings.extend(std::mem::replace(&mut self.unpublished, Tally::new()).texts());
            (
                Outcome::Passed,
                format!("{} attestations of turns, signed and as the rows say{late}", self.count),
                findings,
            )
        };
        Some(Phase { name: TURNS, outcome, standing: Standing::Observed, summary, findings })
    }

    /// The turns of the main agent in which a sub-agent of a type was started, and how many were attested.
    pub fn spawned(&self, kind: &str) -> (Vec<u64>, u64) {
        let Some(main) = self.agents.get(MAIN) else { return (Vec::new(), 0) };
        let turns = main.spawned.iter().filter(|(_, agent)| agent == kind).map(|(turn, _)| *turn).collect();
        (turns, main.last.as_ref().map_or(0, |last| last.turn))
    }

    /// The agents of a type.
    pub fn agents_of<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = &'s str> {
        let is = move |own: &OfAgent| own.kind.as_deref() == Some(kind);
        self.agents.iter().filter(move |(_, own)| is(own)).map(|(agent, _)| agent.as_str())
    }

    /// Whose turns there are statements of, or were to be: each agent, what it used by its last statement, and when its last row was
    /// written.
    pub fn agents(&self) -> impl Iterator<Item = (&str, Option<&Cumulative>, Option<Timestamp>)> {
        self.agents
            .iter()
            .map(|(agent, own)| (agent.as_str(), own.last.as_ref().map(|last| &last.cumulative), own.ended))
    }

    /// The hash of the work tree that was attested last.
    pub fn tree(&self) -> Option<&str> {
        self.agents.get(MAIN)?.tree.as_deref()
    }
}

impl OfAgent {
    /// Keeps what the transcript is to be asked.
    fn bind(&mut self, row: u64, turn: Turn) -> Result<(), String> {
        let (Some(binding), Some(lines)) = (turn.session_binding, turn.lines) else {
            self.unbound += 1;
            return Ok(());
        };
        binding.check().map_err(|error| error.to_string())?;
        if !lines.rewritten && turn.part.is_none() && turn.turn < binding.turn_index + 1 {
            return Err("its number is not that of its place in the tree".to_owned());
        }
        self.checked.push(Checked {
            row,
            turn: turn.turn,
            rewritten: lines.rewritten,
            from: lines.from,
            to: lines.to,
            binding,
            metrics: turn.metrics,
            told_late: turn.told_late.unwrap_or_default(),
            model: turn.model,
            prices: turn.prices,
        });
        Ok(())
    }

    /// A turn that came to its end and for which nothing speaks.
    fn unattested(&self, agent: &str, ended: bool) -> Option<String> {
        // A sub-agent that nobody heard of again has ended with its session.
        let over = |open: &&Gathered| open.stopped || ended && agent != MAIN;
        let open = self.open.iter().filter(over).find(|open| open.prompted || open.has_calls())?;
        Some(format!("{agent}: no attestation speaks for the rows from {} on", open.first))
    }

    fn told_behind(&self, agent: &str, ended: bool) -> Option<String> {
        let over = self.behind.get().over(ended);
        let turn = self.last.as_ref().map_or(0, |last| last.turn);
        let told =
            || format!("{agent}: {over} turns of the transcript are over behind turn {turn}, and none is attested");
        (over > 0).then(told)
    }
}
