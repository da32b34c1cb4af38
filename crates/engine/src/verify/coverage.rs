//! The client's transcript against the ledger: which calls did no row see?
//!
//! The transcript is the client's own word and can be edited, so it proves nothing by itself; it can only accuse. A call that
//! it holds and the ledger does not was not observed. Neither file is held in memory: of a call there are 32 bytes.

use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use writ_clients::cursor::Reading;
use writ_clients::transcript::{Call, Told, TranscriptError, tell};
use writ_clients::{Client, keys};
use writ_core::json::{self, Value};
use writ_core::secret::mask_id;
use writ_core::{Digest, Outcome};
use writ_evidence::row::{Row, RowDecision};
use writ_evidence::tally::Tally;

use super::phase_names::DENIALS;
use super::read::Stretches;
use super::report::{self, Phase, Standing, Unobserved};
use super::sources::Sources;
use crate::confine::supervise::CONFINED;
use crate::session::rows::{BEGAN, COMMAND, ENDED, RUN, SESSION_END, STARTED, event};

/// Most calls without a row whose repetition is noticed: a transcript may be anything.
const ROOM: usize = 1 << 16;
/// Most unobserved calls that a report names.
const MOST: usize = 1000;

/// What the ledger knows of calls.
#[derive(Default)]
pub struct Seen {
    /// Calls with a row from before they ran, or one that says they never could.
    decided: HashMap<Name, Decided>,
    /// Those of ids that were a call of another tool before: some models number their calls anew in each message.
    again: HashMap<(Name, u32), Decided>,
    /// Names of tools, and the number each has in `decided`.
    tools: HashMap<String, u32>,
    /// Calls that were denied, or that nobody was asked about, and have a result all the same.
    ran_unasked: Tally,
    /// What hooks read of the transcripts.
    pub read: Stretches,
    /// Whether something ran as a whole, and whether a client said that it began.
    ran: bool,
    began: bool,
    /// The transcripts of clients that began in a run, and those in which a resumed session went on.
    mains: BTreeSet<PathBuf>,
    /// Whether the first row names a transcript.
    named: bool,
    /// Of clients that tell no ids: how often each call was decided, and which time each id was.
    keyed: HashMap<Name, u64>,
    times: HashMap<Name, String>,
}

/// What a row says of a call, and what the transcript says of it.
struct Decided {
    tool: u32,
    denied: bool,
    /// Whether a call of that id and tool has a result on record: then the transcript's may be that one's.
    ran: bool,
    /// Whether a result of it was told.
    settled: bool,
    /// What call the transcript tells of, as a digest's beginning; 0 before it does.
    told: u64,
}

/// About how many bytes of a ledger there are for each call: what rows before and after it take at least.
const BYTES_A_CALL: u64 = 1536;

impl Seen {
    /// Before the first row of a ledger of so many bytes. Making room at once keeps the old table and the new one from lying side
    /// by side when it grows.
    pub fn of(ledger: u64) -> Self {
        let calls = usize::try_from(ledger / BYTES_A_CALL).unwrap_or_default();
        Self { decided: HashMap::with_capacity(calls), ..Self::default() }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: &Row) {
        self.named |= row.sequence == 0 && row.detail.get("transcript").is_some();
        if let Some(reading) = row.detail.get("transcripts").and_then(|read| json::from_value::<Reading>(read).ok()) {
            // A client that begins a new file when a session is resumed goes on there. A record that names none from its start is of
            // claims alone.
            let other = reading.main.as_ref().filter(|_| self.named && self.mains.len() < MOST);
            self.mains.extend(other.map(PathBuf::from));
            self.read.add(row.sequence, reading);
        }
        if matches!(event(row), "stop" | SESSION_END | ENDED) {
            self.read.stop(row.sequence);
        }
        self.ran |= event(row) == CONFINED;
        self.began |= event(row) == STARTED;
        if event(row) == STARTED
            && let Some(main) = row.detail.get("transcript").and_then(Value::as_str)
            && self.mains.len() < MOST
        {
            self.mains.insert(PathBuf::from(main));
        }
        // What a human runs is in no transcript.
        let Some(id) = row.call_id.as_ref().filter(|_| event(row) != RUN) else { return };
        let id = &self.told_as(id, row.decision);
        match row.decision {
            RowDecision::Completed | RowDecision::Failed => {
                let tool = row.tool_name.as_deref().unwrap_or("?");
                let number = self.tool(tool);
                let again = self.again.get_mut(&(name(id), number));
                match again.or_else(|| self.decided.get_mut(&name(id))) {
                    Some(decided) if decided.denied => {
                        self.ran_unasked.apart(format!("{tool} {id}: denied, and it ran all the same"));
                    }
                    Some(decided) => decided.ran = true,
                    // One that failed may never have been run.
                    None if row.decision == RowDecision::Completed => {
                        self.ran_unasked.apart(format!("{tool} {id}: it ran, and nobody was asked before"));
                    }
                    None => {}
                }
            }
            RowDecision::Approved | RowDecision::Asked | RowDecision::Denied | RowDecision::Hallucinated => {
                let tool = self.tool(row.tool_name.as_deref().unwrap_or_default());
                let denied = row.decision == RowDecision::Denied;
                let id = name(id);
                let first = self.decided.get(&id);
                let earlier = match first {
                    Some(first) if first.tool != tool => self.again.get(&(id, tool)),
                    first => first,
                };
                let ran = earlier.is_some_and(|earlier| earlier.ran);
                let decided = Decided { tool, denied, ran, settled: false, told: 0 };
                if first.is_some_and(|first| first.tool != tool) {
                    self.again.insert((id, tool), decided);
                } else {
                    self.decided.insert(id, decided);
                }
            }
            RowDecision::Checkpoint => {}
        }
    }

    /// What stands for a call where the client tells no ids: what it is, and which time. Transcripts have no more.
    fn told_as(&mut self, id: &str, decision: RowDecision) -> String {
        let Some(key) = keys::key_of(id) else { return id.to_owned() };
        if matches!(decision, RowDecision::Completed | RowDecision::Failed) {
            return self.times.get(&name(id)).cloned().unwrap_or_else(|| id.to_owned());
        }
        let time = self.keyed.entry(name(key)).or_default();
        *time += 1;
        let told = keys::numbered(key, *time);
        self.times.insert(name(id), told.clone());
        told
    }

    /// A client that was run and never asked a hook: it has none, or could not read where they are.
    pub fn unasked(&self, genesis: Option<&Row>) -> Option<Phase> {
        let text = |name| genesis?.detail.get(name).and_then(Value::as_str);
        let is_client = text("began") == Some(BEGAN) && text("client") != Some(COMMAND);
        (is_client && self.ran && !self.began).then(|| Phase {
            name: "beginning",
            outcome: report::Outcome::Absent,
            standing: Standing::Observed,
            summary: "the client that was run never asked a hook: nothing is known of its calls".to_owned(),
            findings: Vec::new(),
        })
    }

    /// The number of a tool, under its canonical name.
    fn tool(&mut self, tool: &str) -> u32 {
        let tool = if tool == "Task" { "Agent" } else { tool };
        if let Some(number) = self.tools.get(tool) {
            return *number;
        }
        let number = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
        self.tools.insert(tool.to_owned(), number);
        number
    }
}

/// The 128 bits that stand for a call id: whoever finds two ids with the same finds collisions of SHA-256.
// Two halves, because an aligned `u128` makes every entry half as large again.
type Name = [u64; 2];

fn name(id: &str) -> Name {
    let digest = Digest::of(mask_id(id).as_bytes());
    let (halves, _) = digest.as_bytes().as_chunks::<8>();
    let half = |at: usize| halves.get(at).map_or(0, |half| u64::from_le_bytes(*half));
    [half(0), half(1)]
}

/// Calls without a row that, as the transcript says, never ran.
#[derive(Default)]
struct NotRun {
    /// By the client itself, before it asked anybody.
    refused: usize,
    /// By a hook, whose row is elsewhere.
    denied: usize,
}

/// A transcript on its way past the ledger.
struct Pass<'a> {
    seen: &'a mut Seen,
    /// Calls that the ledger does not have, which a resumed conversation may repeat.
    unknown: HashMap<Name, u64>,
    calls: u64,
    server_side: u64,
    unobserved: Unobserved,
    findings: Tally,
    /// Of clients that tell no ids: how often each call was told, and what stands for each.
    keyed: HashMap<Name, u64>,
    times: HashMap<Name, String>,
    /// Calls without a row, until it is known how they ended; and what all results of such a call say, where they say the same.
    waiting: Vec<(Name, String, bool)>,
    ended: HashMap<Name, Option<Outcome>>,
    /// The tool of the last call of an id that several tools' calls have.
    last: HashMap<Name, u32>,
}

impl Pass<'_> {
    /// What stands for a call; one that is told again is the same.
    fn told_as(&mut self, call: &Call) -> String {
        let Some(key) = call.key.as_deref() else { return call.call_id.clone() };
        if let Some(told) = self.times.get(&name(&call.call_id)) {
            return told.clone();
        }
        let time = self.keyed.entry(name(key)).or_default();
        *time += 1;
        let told = keys::numbered(key, *time);
        if self.times.len() < ROOM {
            self.times.insert(name(&call.call_id), told.clone());
        }
        told
    }

    fn call(&mut self, call: &Call) {
        let id = name(&self.told_as(call));
        let what = Digest::of(format!("{} {}", call.tool, call.input).as_bytes());
        let what = u64::from_le_bytes(what.as_bytes().first_chunk().copied().unwrap_or_default()).max(1);
        let tool = self.seen.tool(&call.tool);
        let again = self.seen.again.contains_key(&(id, tool));
        if again || self.last.contains_key(&id) {
            self.last.insert(id, tool);
        }
        let decided = if again { self.seen.again.get_mut(&(id, tool)) } else { self.seen.decided.get_mut(&id) };
        let known = decided.as_ref().map(|decided| decided.tool);
        let room = self.unknown.len() < ROOM || self.unknown.contains_key(&id);
        let told = match decided {
            Some(decided) => Some(&mut decided.told),
            None => room.then(|| self.unknown.entry(id).or_default()),
        };
        if told.is_some_and(|told| std::mem::replace(told, what) == what) {
            return;
        }
        self.calls += 1;
        if call.server_side {
            self.server_side += 1;
            return;
        }
        if known != Some(tool) {
            let text = format!("{} {}", call.tool, call.call_id);
            if self.waiting.len() < ROOM {
                self.waiting.push((id, text, known.is_some()));
            } else {
                self.accuse(text, known.is_some());
            }
        }
    }

    fn accuse(&mut self, text: String, is_another: bool) {
        self.unobserved.count += 1;
        if is_another {
            self.findings.apart(format!("{text}: that id is on record as a call of another tool"));
        }
        self.findings.apart(format!("unobserved: {text}"));
        if self.unobserved.calls.len() < MOST {
            self.unobserved.calls.push(text);
        }
    }

    /// Every transcript is told: what waits is accused, but for what never began.
    fn settle(&mut self) -> NotRun {
        let mut not_run = NotRun::default();
        for (id, text, is_another) in std::mem::take(&mut self.waiting) {
            match self.ended.get(&id) {
                Some(Some(Outcome::Refused)) if !is_another => not_run.refused += 1,
                Some(Some(Outcome::DeniedByHook)) if !is_another => not_run.denied += 1,
                _ => self.accuse(text, is_another),
            }
        }
        not_run
    }

    fn result(&mut self, call_id: &str, outcome: Outcome) {
        let id = self.times.get(&name(call_id)).map_or_else(|| name(call_id), |told| name(told));
        let completed = outcome == Outcome::Completed;
        let again = self.last.get(&id).and_then(|tool| self.seen.again.get_mut(&(id, *tool)));
        let Some(decided) = again.or_else(|| self.seen.decided.get_mut(&id)) else {
            if self.ended.len() < ROOM || self.ended.contains_key(&id) {
                let ended = self.ended.entry(id).or_insert(Some(outcome));
                *ended = ended.filter(|before| *before == outcome);
            }
            return;
        };
        if decided.told == 0 || std::mem::replace(&mut decided.settled, true) || !decided.denied || decided.ran {
            return;
        }
        let number = decided.tool;
        if completed {
            let tool = self.seen.tools.iter().find(|(_, known)| **known == number).map_or("?", |(tool, _)| tool);
            self.findings.apart(format!("{tool} {call_id}: denied, but the transcript shows a result"));
        }
    }
}

/// What is an exception of its own, beside what was covered.
#[derive(Default)]
struct Beside {
    altered: u64,
    denied: Option<String>,
}

/// Compares. `client` is the session's, or the name of one that nobody here knows. Returns the phases and the unobserved calls.
pub fn check(
    path: Option<&Path>,
    client: Result<&dyn Client, String>,
    seen: Seen,
    sources: &Sources,
) -> (Vec<Phase>, Unobserved) {
    let mut beside = Beside::default();
    let (covered, unobserved) = compare(path, client, seen, sources, &mut beside);
    let Beside { altered, denied } = beside;
    let exception = |name, standing, summary| Phase {
        name,
        outcome: report::Outcome::Absent,
        standing,
        summary,
        findings: Vec::new(),
    };
    let altered = (altered > 0).then(|| {
        let summary = format!("{altered} stretches of transcripts hold other bytes now than a stop read");
        exception("transcripts", Standing::Observed, summary)
    });
    let denied = denied.map(|summary| exception(DENIALS, Standing::Reported, summary));
    (altered.into_iter().chain(denied).chain([covered]).collect(), unobserved)
}

fn compare(
    path: Option<&Path>,
    client: Result<&dyn Client, String>,
    mut seen: Seen,
    sources: &Sources,
    beside: &mut Beside,
) -> (Phase, Unobserved) {
    let mut paths: Vec<PathBuf> = path.map(Path::to_owned).into_iter().collect();
    let others = std::mem::take(&mut seen.mains);
    paths.extend(others.iter().map(|main| sources.main(main)).filter(|main| path != Some(main.as_path())));
    let findings = std::mem::take(&mut seen.ran_unasked);
    let unobserved = Unobserved::default();
    // A transcript that cannot be had accuses nobody; what the rows themselves say stands.
    let without = |why: String, findings: &Tally| {
        if findings.total() == 0 { absent(why) } else { failed(why, findings, Unobserved::default()) }
    };
    let transcripts = match client.map(|client| client.transcripts().ok_or(client.name())) {
        Ok(Ok(transcripts)) => transcripts,
        Ok(Err(name)) => return without(format!("of the client `{name}` no transcript can be read"), &findings),
        Err(name) if name == COMMAND => return without("what was run is no agent's client".to_owned(), &findings),
        Err(name) => return without(format!("the session's client `{name}` is not known here"), &findings),
    };
    if sources.withheld() {
        return without("the bundle holds the transcripts' digests, not their text".to_owned(), &findings);
    }
    let Some(path) = paths.first().map(PathBuf::as_path) else {
        return without("the session names no transcript".to_owned(), &findings);
    };
    let (unknown, keyed, times) = (HashMap::new(), HashMap::new(), HashMap::new());
    let (waiting, ended) = (Vec::new(), HashMap::new());
    let mut pass = Pass {
        seen: &mut seen,
        unknown,
        calls: 0,
        server_side: 0,
        unobserved,
        findings,
        keyed,
        times,
        waiting,
        ended,
        last: HashMap::new(),
    };
    let told = paths.iter().try_fold(true, |whole, main| {
        let told = tell(transcripts, main, &mut |told| match told {
            Told::Call(call) => pass.call(&call),
            Told::Result { call_id, outcome } => pass.result(call_id, outcome("")),
            Told::Unreadable => {}
        });
        told.map(|all| whole && all)
    });
    // A bundle's conversations are not those of this machine.
    let now = paths.iter().filter(|_| matches!(sources, Sources::Here)).try_for_each(|main| {
        transcripts.now(main, &mut |told| {
            if let Told::Call(call) = told {
                pass.call(&call);
            }
        })
    });
    let not_run = pass.settle();
    let Pass { calls, server_side, unobserved, mut findings, .. } = pass;
    const UNREAD: &str = "parts of the transcript cannot be read";
    let whole = !matches!(told, Ok(false));
    match told {
        Ok(true) => {}
        Ok(false) => findings.apart(UNREAD.to_owned()),
        // One that never was, or was tidied away, is absent; one that cannot be read hides something.
        Err(TranscriptError::Io { path: at, source })
            if paths.contains(&at) && source.kind() == ErrorKind::NotFound =>
        {
            return without(format!("there is no transcript {}", at.display()), &findings);
        }
        Err(error) => {
            findings.apart(error.to_string());
            return failed("the transcript cannot be read".to_owned(), &findings, unobserved);
        }
    }
    let blind = || transcripts.unseen().iter().map(|what| format!("cannot be seen here: {what}"));
    let untold = seen.decided.values().chain(seen.again.values()).filter(|decided| decided.told == 0).count();
    if findings.total() > 0 {
        let summary = match unobserved.count {
            0 if !whole => UNREAD.to_owned(),
            0 => "the transcript says otherwise than the rows".to_owned(),
            count => format!("{count} of {calls} calls of the transcript have no row"),
        };
        blind().for_each(|what| findings.apart(what));
        return failed(summary, &findings, unobserved);
    }
    if let Some((why, findings, count)) = seen.read.differs(transcripts, path, sources) {
        beside.altered = count;
        return (phase(report::Outcome::Absent, why.to_owned(), findings), Unobserved::default());
    }
    match now {
        Err(TranscriptError::Io { path, source }) if source.kind() == ErrorKind::NotFound => {
            return absent(format!(
                "{} is not there: what the client did after it last asked is not known",
                path.display()
            ));
        }
        Err(error) => {
            findings.apart(error.to_string());
            return failed("what the client keeps cannot be read".to_owned(), &findings, Unobserved::default());
        }
        Ok(()) => {}
    }
    if untold > 0 {
        let why = format!("the transcript is not whole: it lacks {untold} calls that are on record");
        return absent(why);
    }
    if not_run.denied > 0 {
        let why = "were denied, as the transcript says, by a hook that did not reach whoever keeps this record";
        beside.denied = Some(format!("{} of {calls} calls {why}", not_run.denied));
        return absent("not all calls of the transcript are on record".to_owned());
    }
    let mut summary = format!("all {calls} calls of the transcript are on record");
    if server_side > 0 {
        summary.push_str(&format!(", {server_side} of them run by the model's provider, unseen by any hook"));
    }
    if not_run.refused > 0 {
        summary.push_str(&format!("; but for {} that the client refused before it asked, as it says", not_run.refused));
    }
    (phase(report::Outcome::Passed, summary, blind().collect()), unobserved)
}

fn absent(why: String) -> (Phase, Unobserved) {
    (phase(report::Outcome::Absent, why, Vec::new()), Unobserved::default())
}

fn failed(summary: String, findings: &Tally, unobserved: Unobserved) -> (Phase, Unobserved) {
    (phase(report::Outcome::Failed, summary, findings.texts()), unobserved)
}

const fn phase(outcome: report::Outcome, summary: String, findings: Vec<String>) -> Phase {
    Phase { name: "coverage", outcome, standing: Standing::Reported, summary, findings }
}

/// Where the genesis row says the transcript is.
pub fn recorded_path(genesis: &Row) -> Option<&str> {
    genesis.detail.get("transcript").and_then(Value::as_str)
}
