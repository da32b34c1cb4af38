//! The attestations of turns: each against its row, its signature, what rows tell, and the transcript.
//!
//! Two questions. Whether every statement is there, signed by the session's key, and says what the rows say, in an unbroken order; and
//! whether its place in the session's tree is that of the transcript as it is now. A client rewrites its transcripts at times, so that
//! accuses nobody; what cannot be read again is not spoken for. Page: `spec/turns.md`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use writ_clients::Client;
use writ_clients::transcript::{Line, MAIN, Transcripts};
use writ_core::{Agent, Digest, SessionId};
use writ_evidence::dsse::Envelope;
use writ_evidence::keys::PublicKey;
use writ_evidence::merkle::{Digest512, NodeHash};
use writ_evidence::row::Row;
use writ_evidence::session_tree::Binding;
use writ_evidence::tally::{Tally, listed};

use super::report::{BINDING, LEFT_OUT, Outcome, Phase, Standing, TURNS};
use super::sources::{Hidden, Sources};
use crate::limits::meter::prices_of;
use crate::session::state::State;
use crate::turns::FOLDER;
use crate::turns::attest::{Named, agent_of};
use crate::turns::gathered::{self, Gathered};
use crate::turns::predicate::{Cumulative, Metrics, PREDICATE_TYPE, RUN, TREE, Turn, Usd};
use crate::turns::reading::{Pending, Reader, metrics};

/// Most turns that a report tells one by one.
const MOST: usize = 20;
/// Digits of the names of attestations that are no turns'.
const DIGITS: usize = 64;

/// What a policy wants of the order of turns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Most turns from one that is attested to the next.
    pub distance: Option<u64>,
    /// None is left out.
    pub contiguous: bool,
}

/// One statement, as far as the transcript is to be asked about it.
struct Checked {
    row: u64,
    turn: u64,
    rewritten: bool,
    from: u64,
    to: u64,
    binding: Binding,
    metrics: Metrics,
    told_late: writ_evidence::session_tree::Metrics,
    model: Option<String>,
    prices: Option<Digest>,
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
}

/// All statements of a session.
pub struct Turns<'a> {
    folder: &'a Path,
    client: Option<&'static dyn Client>,
    session: Option<String>,
    genesis: Digest,
    asked: bool,
    agents: BTreeMap<String, OfAgent>,
    names: HashSet<String>,
    gaps: Vec<(u64, String)>,
    late: u64,
    unpublished: Tally,
    wrong: Tally,
    count: u64,
}

impl<'a> Turns<'a> {
    /// Statements that lie in `folder`, of the session of that id.
    pub fn of(folder: &'a Path, session: Option<String>) -> Self {
        Self {
            folder,
            client: None,
            session,
            genesis: Digest::ZERO,
            asked: false,
            agents: BTreeMap::new(),
            names: HashSet::new(),
            gaps: Vec::new(),
            late: 0,
            unpublished: Tally::new(),
            wrong: Tally::new(),
            count: 0,
        }
    }

    /// Takes the next row, the state it holds, and the key that signs there.
    pub fn row(&mut self, row: &Row, state: Option<&State>, key: Option<&PublicKey>) {
        if row.sequence == 0 {
            self.genesis = row.entry_hash;
            self.client = crate::session::rows::client(&row.detail).ok();
        }
        let Some(policy) = state.and_then(|state| state.policy.as_ref()) else { return };
        // As whoever signs does: rows from before anybody asked are nobody's.
        self.asked |= policy.attests;
        if !self.asked {
            return;
        }
        let agent = gathered::agent(row).to_owned();
        match Named::of(row) {
            None => {
                let own = self.agents.entry(agent).or_default();
                gathered::take(&mut own.open, row, policy.root());
                let kind = row.detail.get("agent").and_then(|agent| agent.get("type"));
                own.kind = own.kind.take().or_else(|| kind.and_then(|kind| kind.as_str().map(str::to_owned)));
            }
            Some(named) => {
                self.count += 1;
                let named = named.map_err(|error| format!("it names no attestation of a turn: {error}"));
                if let Err(why) = named.and_then(|named| self.check(row, &agent, named, key)) {
                    self.wrong.add(row.sequence, &why);
                }
            }
        }
    }

    fn check(&mut self, row: &Row, agent: &str, named: Named, key: Option<&PublicKey>) -> Result<(), String> {
        if !self.names.insert(named.name.clone()) {
            return Err(format!("its name {} was used before", named.name));
        }
        let mut own = self.agents.remove(agent).unwrap_or_default();
        let checked = self.one(row, agent, &named, key, &mut own);
        if let Some(why) = &named.unpublished {
            self.unpublished.add(row.sequence, why);
        }
        own.last = Some(named);
        self.agents.insert(agent.to_owned(), own);
        checked
    }

    fn one(
        &mut self,
        row: &Row,
        agent: &str,
        named: &Named,
        key: Option<&PublicKey>,
        own: &mut OfAgent,
    ) -> Result<(), String> {
        let (turn, tree) = self.statement(named, key)?;
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
        let expected = agent_of(self.client, self.folder, sub.as_ref(), &mine, turn.model.clone(), &session);
        if turn.agent != expected || turn.agent.kind.is_some() && turn.agent.kind != own.kind {
            return Err("it tells of another agent than the rows".to_owned());
        }
        self.ordered(row, &turn, own)?;
        let before = own.last.as_ref().map_or_else(Cumulative::begin, |last| last.cumulative);
        if turn.cumulative != before.with(&turn.metrics, turn.part.is_none(), told.allowed) {
            return Err("what was used so far is not what was used before and in it".to_owned());
        }
        for tool in told.tools.iter().filter(|tool| tool.allowed) {
            own.spawned.extend(tool.agent.clone().map(|agent| (turn.turn, agent)));
        }
        own.tree = tree.or(own.tree.take());
        self.late += u64::from(turn.late);
        own.bind(row.sequence, turn)
    }

    /// The statement that a row names, its signature checked, and the work tree's hash.
    fn statement(&self, named: &Named, key: Option<&PublicKey>) -> Result<(Turn, Option<String>), String> {
        let plain = Path::new(&named.name).file_name().is_some_and(|name| name == named.name.as_str());
        if !plain {
            return Err("its name is no file's".to_owned());
        }
        let path = self.folder.join(FOLDER).join(&named.name);
        let bytes = super::optional(&path).ok().flatten();
        let bytes = bytes.ok_or_else(|| format!("{FOLDER}/{} is not there: put it back from a copy", named.name))?;
        if Digest::of(&bytes) != named.attestation {
            return Err(format!("{FOLDER}/{} was changed", named.name));
        }
        let key = key.ok_or("no key is known that it could be checked with")?;
        let envelope = Envelope::parse(&bytes).map_err(|error| format!("{}: {error}", named.name))?;
        let statement = envelope.verify_statement_of::<Turn>(PREDICATE_TYPE, std::slice::from_ref(key));
        let statement = statement.map_err(|error| format!("{}: {error}", named.name))?.into_payload();
        let subject = statement.subject();
        let run = subject.iter().find(|subject| subject.name.starts_with(RUN));
        let session = self.session.as_deref().unwrap_or_default();
        let ours = |subject: &&writ_evidence::intoto::ResourceDescriptor| {
            subject.name == format!("{RUN}{session}") && subject.digest() == Some(self.genesis)
        };
        if run.filter(ours).is_none() {
            return Err(format!("{} is about another run", named.name));
        }
        let tree = subject.iter().find(|subject| subject.name == TREE);
        let tree = tree.and_then(|tree| tree.digest.values().next().cloned());
        Ok((statement.into_predicate(), tree))
    }

    /// Turns follow each other, and so do the parts of one.
    fn ordered(&mut self, row: &Row, turn: &Turn, own: &OfAgent) -> Result<(), String> {
        let Some(last) = &own.last else {
            return if turn.part.is_none() { Ok(()) } else { Err("it goes on with a turn that none began".to_owned()) };
        };
        let goes_on = turn.turn == last.turn && turn.part == Some(last.part.unwrap_or(1) + 1);
        if !goes_on && (turn.turn <= last.turn || turn.part.is_some()) {
            return Err(format!("turn {} does not come after turn {}", turn.turn, last.turn));
        }
        let distance = turn.turn - last.turn;
        if distance > 1 {
            self.gaps
                .push((distance, format!("row {}: turn {} comes after turn {}", row.sequence, turn.turn, last.turn)));
        }
        Ok(())
    }

    /// One phase on the statements; nothing where no policy asks for any.
    pub fn phase(&mut self, order: Order) -> Option<Phase> {
        if !self.asked && self.count == 0 {
            return None;
        }
        let broken = self
            .gaps
            .iter()
            .filter(|(distance, _)| order.contiguous || order.distance.is_some_and(|most| *distance > most));
        let broken: Vec<String> = broken.map(|(_, text)| format!("{text}, and the policy wants them nearer")).collect();
        broken.into_iter().for_each(|text| self.wrong.apart(text));
        for name in fs::read_dir(self.folder.join(FOLDER)).into_iter().flatten().flatten() {
            let name = name.file_name().to_string_lossy().into_owned();
            let other = name.strip_suffix(".json").is_some_and(|stem| stem.len() == DIGITS);
            if !self.names.contains(&name) && !other && !name.starts_with(".draft-") {
                self.wrong.apart(format!("{FOLDER}/{name} is named by no row: it was added, or its row is gone"));
            }
        }
        let open: Vec<String> = self.agents.iter().filter_map(|(agent, own)| own.unattested(agent)).collect();
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

    /// One phase on their place in the session's tree, held against the transcripts as they are.
    pub fn binding(
        &self,
        transcripts: Option<&dyn Transcripts>,
        main: Option<&Path>,
        sources: &Sources,
    ) -> Option<Phase> {
        if self.count == 0 {
            return None;
        }
        if sources.withheld() {
            let summary =
                "the transcripts are not in the bundle; proofs and roots were checked with the turns".to_owned();
            return Some(Phase {
                name: LEFT_OUT,
                outcome: Outcome::Absent,
                standing: Standing::Reported,
                summary,
                findings: Vec::new(),
            });
        }
        let mut found = Found::default();
        let listed =
            transcripts.zip(main).map(|(kept, main)| kept.files(main).map(|all| all.files).unwrap_or_default());
        let files: HashMap<String, PathBuf> = listed.unwrap_or_default().into_iter().collect();
        for (agent, own) in self.agents.iter().filter(|(_, own)| own.last.is_some()) {
            if own.unbound > 0 {
                found.doubts.apart(format!("{agent}: {} statements name no place in a transcript", own.unbound));
            }
            let Some((kept, path)) = transcripts.zip(files.get(agent).filter(|path| path.exists())) else {
                if !own.checked.is_empty() {
                    found.doubts.apart(format!("{agent}: its transcript is gone, or cannot be read here"));
                }
                continue;
            };
            let sha512 = own.checked.first().is_some_and(|one| one.binding.algorithm == Digest512::NAME);
            if sha512 {
                if sources.is_masked(path) {
                    found.doubts.apart(format!("{agent}: a bundle keeps no SHA-512 of lines that it masks"));
                    continue;
                }
                own.reread::<Digest512>(self.folder, kept, path, agent, &|_| None, &mut found);
            } else {
                let hidden = |line| sources.hidden(path)?.get(&line).copied();
                own.reread::<Digest>(self.folder, kept, path, agent, &hidden, &mut found);
            }
        }
        let (outcome, summary) = match (found.wrong.total(), found.doubts.total()) {
            (0, 0) => {
                (Outcome::Passed, format!("{} statements are where the transcripts have their turns", found.good))
            }
            (0, _) => (Outcome::Absent, "not every statement can be held against its transcript".to_owned()),
            _ => (Outcome::Failed, "a statement says something else than the lines that it is bound to".to_owned()),
        };
        let findings = found.wrong.texts().into_iter().chain(found.doubts.texts()).collect();
        Some(Phase { name: BINDING, outcome, standing: Standing::Reported, summary, findings })
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

    /// The hash of the work tree that was attested last.
    pub fn tree(&self) -> Option<&str> {
        self.agents.get(MAIN)?.tree.as_deref()
    }
}

/// What a second look at the transcripts found.
struct Found {
    good: u64,
    wrong: Tally,
    doubts: Tally,
}

impl Default for Found {
    fn default() -> Self {
        Self { good: 0, wrong: Tally::new(), doubts: Tally::new() }
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
    fn unattested(&self, agent: &str) -> Option<String> {
        let open = self.open.iter().find(|open| open.stopped && (open.prompted || open.has_calls()))?;
        Some(format!("{agent}: no attestation speaks for the rows from {} on", open.first))
    }

    /// Reads the transcript again and holds each statement against it.
    fn reread<H: NodeHash>(
        &self,
        folder: &Path,
        kept: &dyn Transcripts,
        path: &Path,
        agent: &str,
        hidden: &dyn Fn(u64) -> Option<Hidden>,
        found: &mut Found,
    ) {
        // What stood in a transcript before it was rewritten nobody can read again.
        let begin = self.checked.iter().rposition(|one| one.rewritten).unwrap_or(0);
        if begin > 0 {
            found.doubts.apart(format!("{agent}: the transcript was rewritten after {begin} statements spoke for it"));
        }
        let mut marks = self.checked.iter().skip(begin).peekable();
        let mut reader = Reader::<H>::default();
        // Masked lines have other lengths than those that statements count.
        let (mut number, mut length, mut longer, mut shorter) = (0, 0_u64, 0_u64, 0_u64);
        let read = kept.lines(path, 0, &mut |line| {
            length += line.bytes.len() as u64;
            let masked = hidden(number);
            if line.ends {
                if let Some(masked) = masked {
                    longer += masked.length.saturating_sub(length);
                    shorter += length.saturating_sub(masked.length);
                }
                (number, length) = (number + 1, 0);
            }
            let line = Line { end: (line.end + longer).saturating_sub(shorter), ..line };
            reader.line_or(&line, masked.and_then(|masked| H::new(masked.hash.as_bytes())));
            while let Some(one) = marks.next_if(|one| line.ends && one.to == line.end) {
                match reader.take() {
                    Some(pending) => one.compare(folder, agent, &pending, found),
                    None => found.doubts.apart(format!("{agent}: turn {} is not there any more", one.turn)),
                }
            }
        });
        if let Err(error) = read {
            found.doubts.apart(format!("{agent}: {error}"));
        }
        for one in marks {
            found.doubts.apart(format!("row {}: {agent}: no line ends where turn {} did", one.row, one.turn));
        }
    }
}

impl Checked {
    fn compare(&self, folder: &Path, agent: &str, pending: &Pending, found: &mut Found) {
        let Self { row, turn, .. } = self;
        if pending.binding.leaf.content_hash != self.binding.leaf.content_hash
            || pending.binding.previous_turn_hash != self.binding.previous_turn_hash
            || pending.binding.merkle_root != self.binding.merkle_root && pending.binding.leaf == self.binding.leaf
        {
            let why = "the transcript was rewritten after it was read";
            return found.doubts.apart(format!("row {row}: {agent}, turn {turn}: {why}"));
        }
        let tokens = metrics(pending.used.tokens());
        let cost = self.prices.map_or(Ok(None), |prices| {
            prices_of(folder, prices).map(|prices| prices.cost(&pending.used).ok().map(Usd))
        });
        let Ok(cost_usd) = cost else {
            return found.wrong.apart(format!("row {row}: {agent}, turn {turn}: the prices that it names are gone"));
        };
        let counted = Metrics {
            tokens_in: tokens.tokens_in,
            tokens_out: tokens.tokens_out,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            cost_usd,
            duration_ms: self.metrics.duration_ms,
        };
        let same = counted == self.metrics && pending.told_late == self.told_late && pending.model == self.model;
        if !same || pending.binding != self.binding || pending.from != self.from {
            let why = "its lines, counted again, say something else";
            return found.wrong.apart(format!("row {row}: {agent}, turn {turn}: {why}"));
        }
        found.good += 1;
    }
}
