//! A folder of evidence: whose key it is checked with, and its ledger on its way through the codecs.
//!
//! Owns the reading of the ledger. Refuses to hold it: a piece is checked on threads of its own while the rows of the piece before
//! are followed. Invariant: a key counts as pinned only when the verifier, not the folder, brought it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use writ_core::SessionId;
use writ_core::json::Value;
use writ_evidence::checkpoint::origin;
use writ_evidence::keys::PublicKey;
use writ_evidence::ledger::{Checker, LedgerReport};
use writ_evidence::row::{MAX_LINE, Row};
use writ_store::{Store, StoreError, regular_file};

use super::custody::Keys;
use super::key::{self, KeyUsed, NOT_THERE};
use super::report::{Outcome, Phase, Report, Standing, Status, Unobserved, WANTED};
use super::{Options, VerifyError, optional, optional_within, session_id};
use crate::Home;
use crate::bundle::MAX_NOTES;
use crate::session::PUBLIC_KEY;
use crate::session::rows::{ENDED, PROMPT, RESUMED, SESSION_END, STARTED, begins_whole, event};

/// Largest ledger that is read: about three million rows.
const MAX_LEDGER: u64 = 4 << 30;
/// Bytes read at once; far more than a line may have.
const PIECE: usize = 512 << 10;

/// What lies in the folder, and what is known of it here.
pub struct Evidence {
    path: PathBuf,
    file: File,
    len: u64,
    genesis: Option<Row>,
    notes: Vec<u8>,
    /// The last checkpoint of it that was signed on this machine.
    head: Result<Option<Vec<u8>>, String>,
    key: Option<PublicKey>,
    used: KeyUsed,
    /// What is wrong with the key that the folder brings.
    key_problems: Vec<String>,
    /// The session it should be, where it was asked for by its id.
    expected: Option<SessionId>,
    /// Whether the folder holds nothing that says there ever was a row.
    bare: bool,
    progress: Option<fn(u64, u64)>,
}

/// What came of reading the ledger.
pub struct Checked {
    report: LedgerReport,
    events: Events,
    /// Nothing is on record, and nothing says there ever was.
    empty: bool,
    keys: Keys,
}

impl Checked {
    /// How many rows good checkpoints cover.
    pub const fn covered(&self) -> u64 {
        self.report.covered
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.report.rows == 0
    }
}

/// The rows that tell how the session stands.
#[derive(Default)]
struct Events {
    /// The numbers of the rows in which the agent stopped.
    stops: Vec<u64>,
    /// The last row that shows the session going on.
    last_act: Option<u64>,
    ended: bool,
    /// The first row since then that shows somebody going on with it. Without one, or where nobody signed for that one, the end stands.
    reopened: Option<u64>,
    /// It came to its end, and nothing happened in it since.
    over: bool,
}

impl Events {
    fn row(&mut self, row: &Row) {
        match event(row) {
            "stop" => self.stops.push(row.sequence),
            PROMPT | "tool-call" => (self.last_act, self.over) = (Some(row.sequence), false),
            SESSION_END | ENDED => (self.ended, self.over, self.reopened) = (true, true, None),
            RESUMED => self.over = false,
            _ => {}
        }
        if self.ended && matches!(event(row), PROMPT | STARTED | RESUMED) {
            self.reopened.get_or_insert(row.sequence);
        }
    }

    /// Whether it has ended, as far as anybody signed for.
    fn stays_ended(&self, covered: u64) -> bool {
        self.ended && self.reopened.is_none_or(|row| row >= covered)
    }

    /// A stop that no checkpoint covers although the session went on after it: every stop is sealed before that.
    fn unsealed_stop(&self, covered: u64) -> Option<u64> {
        let stop = *self.stops.iter().find(|stop| **stop >= covered)?;
        self.last_act.is_some_and(|act| act > stop).then_some(stop)
    }
}

/// What is given of a ledger that is read.
pub enum Taken<'a, T> {
    /// What was made of the rows that come next, one by one.
    Next(T),
    /// A row, with the key that signs there.
    Row(&'a Row, Option<&'a PublicKey>),
}

/// What is made of rows before they are followed, on the thread that reads them; with the key that signs before the first of them.
pub type Before<'a, T> = dyn FnMut(&[Row], Option<&PublicKey>) -> T + Send + 'a;

impl Evidence {
    /// Opens a ledger and what lies beside it. A ledger that is verified whole brings the key that was pinned at its start.
    pub fn open(
        file: &Path,
        folder: &Path,
        home: &Home,
        options: &Options,
        expected: Option<&SessionId>,
    ) -> Result<Self, VerifyError> {
        let io = |source| VerifyError::Io { path: file.to_owned(), source };
        let open = match regular_file::open(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(VerifyError::NoLedger { path: folder.to_owned() });
            }
            other => other.map_err(io)?,
        };
        let len = open.metadata().map_err(io)?.len();
        if len > MAX_LEDGER {
            let why = format!("larger than {} GiB", MAX_LEDGER >> 30);
            return Err(io(std::io::Error::new(ErrorKind::FileTooLarge, why)));
        }
        let genesis = first_row(file).map_err(io)?;
        let own = genesis.as_ref().and_then(session_id);
        let id = expected.cloned().or(own);
        let head = id.as_ref().map_or(Ok(None), |id| last_seen(home, id)).map_err(|error| error.to_string());
        let here = expected.is_some() || !matches!(head, Ok(None));
        let brought = optional(&folder.join(PUBLIC_KEY))?;
        let notes = optional_within(&folder.join("checkpoints"), MAX_NOTES)?;
        let bare = brought.is_none() && notes.is_none() && head == Ok(None) && options.key.is_none();
        let bare = bare && !folder.join("policies").exists();
        let (key, used) = key::pick(brought.as_deref(), home, options, here);
        let mut key_problems = Vec::new();
        if let Some(genesis) = &genesis {
            key_problems = key::problems(genesis, brought.as_deref(), key.as_ref());
        }
        Ok(Self {
            path: file.to_owned(),
            file: open,
            len,
            genesis,
            notes: notes.unwrap_or_default(),
            head,
            key,
            used,
            key_problems,
            expected: expected.cloned(),
            bare,
            progress: options.progress,
        })
    }

    /// Reads the ledger to its end, up to the first line that is no row: gives what `before` makes of the rows that come next, then each of
    /// them. `key_file` says that the key has to lie beside the ledger.
    pub fn read<T: Send>(
        &self,
        key_file: bool,
        before: &mut Before<'_, T>,
        take: &mut dyn FnMut(Taken<'_, T>),
    ) -> Result<Checked, VerifyError> {
        let name = self.expected.clone().or_else(|| self.genesis.as_ref().and_then(session_id));
        let name = name.as_ref().map(origin);
        let head = self.head.as_ref().ok().and_then(Option::as_deref);
        let mut checker = Checker::new(&self.notes, name.as_deref(), head);
        let [mut keys, mut ahead] = [name.clone(), name].map(|name| Keys::of(name, self.key.as_ref()));
        let mut events = Events::default();
        let torn = thread::scope(|scope| {
            // One piece waits while another is followed, so that neither thread waits for the other for long.
            let (send, receive) = mpsc::sync_channel(1);
            let checker = &mut checker;
            let mut made = move |rows: &[Row]| {
                let made = before(rows, ahead.now());
                rows.iter().for_each(|row| ahead.row(row));
                made
            };
            let reading = scope.spawn(move || {
                self.pieces(checker, &mut |done, rows| {
                    let made = made(&rows);
                    send.send((done, rows, made)).is_ok()
                })
            });
            for (done, rows, made) in receive {
                take(Taken::Next(made));
                for row in &rows {
                    events.row(row);
                    keys.row(row);
                    take(Taken::Row(row, keys.now()));
                }
                if let Some(progress) = self.progress {
                    progress(done, self.len);
                }
            }
            reading.join().unwrap_or_else(|_| Err(std::io::Error::other("the reading thread ended")))
        });
        let torn = torn.map_err(|source| VerifyError::Io { path: self.path.clone(), source })?;
        let mut report = checker.finish(torn, keys.ring());
        if let Err(error) = &self.head {
            report.consistency_problems.push(format!("the last checkpoint seen here cannot be read: {error}"));
        }
        let own = self.genesis.as_ref().and_then(session_id);
        if let (Some(expected), Some(own)) = (&self.expected, &own)
            && expected != own
        {
            report.problems.push(format!("this is the record of session {own}, not of {expected}"));
        }
        let optional = |problem: &&String| key_file || !problem.ends_with(NOT_THERE);
        report.checkpoint_problems.extend(self.key_problems.iter().filter(optional).cloned());
        let empty = report.rows == 0 && self.bare && report.problems.is_empty();
        Ok(Checked { report, events, empty, keys })
    }

    /// Checks piece after piece and sends their rows, as long as they are taken. Returns whether the last line has no end.
    fn pieces(&self, checker: &mut Checker<'_>, send: &mut dyn FnMut(u64, Vec<Row>) -> bool) -> std::io::Result<bool> {
        let mut reader = (&self.file).take(self.len);
        let mut piece: Vec<u8> = Vec::with_capacity(PIECE + MAX_LINE);
        let mut done = 0;
        loop {
            let read = reader.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
            done += read as u64;
            let whole = piece.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            let mut rows = Vec::new();
            checker.piece(piece.get(..whole).unwrap_or_default(), Some(&mut rows));
            piece.drain(..whole);
            if !send(done, rows) || read == 0 {
                return Ok(!piece.is_empty());
            }
            if piece.len() > MAX_LINE {
                checker.endless();
                return Ok(false);
            }
        }
    }

    /// How many bytes the ledger has.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// The first row.
    pub const fn genesis(&self) -> Option<&Row> {
        self.genesis.as_ref()
    }

    /// The session's id.
    pub fn id(&self) -> Option<String> {
        self.genesis.as_ref().and_then(session_id).map(|id| id.to_string())
    }

    /// The key it is checked with.
    pub const fn key(&self) -> Option<&PublicKey> {
        self.key.as_ref()
    }

    /// Whether an earlier checkpoint of it was signed on this machine.
    pub const fn is_seen(&self) -> bool {
        matches!(self.head, Ok(Some(_)))
    }

    /// The report that these phases make.
    pub fn report(&self, checked: &Checked, phases: Vec<Phase>) -> Report {
        let status = self.status(checked, &phases);
        let open = (checked.report.covered < checked.report.rows).then_some(checked.report.covered);
        Report {
            session: self.id(),
            run: self.genesis().map(|genesis| genesis.entry_hash),
            policy: None,
            rows: checked.report.rows,
            status,
            key: self.used.id().map(|id| id.to_string()),
            pinned: self.used.is_pinned(),
            open,
            chain_only: false,
            over: checked.events.over,
            bundled: None,
            unobserved: Unobserved::default(),
            phases,
            sublayouts: Vec::new(),
            evaluations: Vec::new(),
        }
    }

    /// A signature counts when it is there and its key is pinned (R76).
    fn status(&self, checked: &Checked, phases: &[Phase]) -> Status {
        let report = &checked.report;
        let failed = |phase: &&Phase| phase.outcome == Outcome::Failed;
        let about_key = |phase: &&Phase| matches!(phase.name, "checkpoints" | "tail");
        if checked.empty {
            return Status::Empty;
        }
        let wanted = |phase: &&Phase| WANTED.contains(&phase.name);
        if phases.iter().filter(failed).any(|phase| !about_key(&phase) && !wanted(&phase)) {
            return Status::Broken;
        }
        if report.checkpoints == 0 && report.strangers > 0 {
            return Status::UnknownKey;
        }
        if report.covered == 0 && report.rows > 0 && report.checkpoint_problems.is_empty()
            || report.checkpoints == 0 && report.checkpoint_problems.is_empty()
        {
            return Status::Unsigned;
        }
        // That the record holds is said only of one that somebody known signed for as a whole.
        match phases.iter().filter(failed).map(|phase| wanted(&phase)).min() {
            Some(false) => Status::Broken,
            _ if !self.used.is_pinned() => Status::UnknownKey,
            Some(true) => Status::Breached,
            None => Status::Verified,
        }
    }

    /// A record that begins in the middle of its session: what came before was not recorded, or was taken away with all that knew
    /// of it.
    pub fn beginning(&self) -> Option<Phase> {
        let began = self.genesis.as_ref()?.detail.get("began").and_then(Value::as_str)?;
        if begins_whole(&self.genesis.as_ref()?.detail) {
            return None;
        }
        Some(Phase {
            name: "beginning",
            outcome: Outcome::Absent,
            standing: Standing::Observed,
            summary: format!(
                "the record begins in the middle of the session (`{began}`): nothing is known of what came before"
            ),
            findings: Vec::new(),
        })
    }

    /// The questions that the codecs answer.
    pub fn chain_phases(&self, checked: &Checked) -> Vec<Phase> {
        let custody = checked.keys.phase();
        let mut phases = vec![rows(&checked.report), self.checkpoints(checked)];
        phases.extend(custody);
        phases.extend([self.consistency(&checked.report), tail(checked)]);
        phases
    }

    fn checkpoints(&self, checked: &Checked) -> Phase {
        let Checked { report, events, .. } = checked;
        let notes = report.checkpoints;
        let (outcome, summary) = if !report.checkpoint_problems.is_empty() {
            (Outcome::Failed, format!("not every checkpoint holds ({})", self.used))
        } else if notes == 0 {
            let outcome = if events.ended { Outcome::Failed } else { Outcome::Absent };
            (outcome, "no checkpoint: nobody signed for this record".to_owned())
        } else {
            let outcome = if self.used.is_pinned() { Outcome::Passed } else { Outcome::Absent };
            let of_file = checked.keys.of_file() && matches!(self.used, KeyUsed::Machine(_));
            let by = if checked.keys.others() { "by keys that rows introduce, which are vouched for " } else { "" };
            let custody = if of_file { " (custody: file of the agent's own user)" } else { "" };
            (outcome, format!("{notes} signed {by}{}{custody}", self.used))
        };
        observed("checkpoints", outcome, summary, report.checkpoint_problems.clone())
    }

    fn consistency(&self, report: &LedgerReport) -> Phase {
        let consistent = report.consistency_problems.is_empty();
        let (outcome, summary) = match (consistent, report.checkpoints) {
            (false, _) => (Outcome::Failed, "history was rewritten"),
            (true, 0) => (Outcome::Absent, "there are no checkpoints to compare"),
            (true, _) if self.is_seen() => {
                (Outcome::Passed, "each checkpoint extends the one before, and the last one seen here")
            }
            (true, _) => (Outcome::Passed, "each checkpoint extends the one before; none was seen here before"),
        };
        observed("consistency", outcome, summary.to_owned(), report.consistency_problems.clone())
    }
}

fn rows(report: &LedgerReport) -> Phase {
    let (outcome, summary) = match (report.problems.is_empty(), report.rows) {
        (false, _) => (Outcome::Failed, "the chain is broken".to_owned()),
        (true, 0) => (Outcome::Absent, "no rows: nothing is on record".to_owned()),
        (true, rows) => (Outcome::Passed, format!("{rows} rows, each sealed to the one before")),
    };
    observed("rows", outcome, summary, report.problems.clone())
}

fn tail(Checked { report, events, .. }: &Checked) -> Phase {
    let (rows, covered) = (report.rows, report.covered);
    let (outcome, summary) = if covered >= rows {
        (Outcome::Passed, "every row is covered by a checkpoint".to_owned())
    } else if events.stays_ended(covered) {
        (Outcome::Failed, format!("tail not covered since row {covered}, though the session ended"))
    } else if let Some(stop) = events.unsealed_stop(covered) {
        let summary =
            format!("tail not covered since row {covered}, though the agent stopped at row {stop} and went on");
        (Outcome::Failed, summary)
    } else {
        (Outcome::Absent, format!("tail not covered since row {covered}: the session is still open"))
    };
    observed("tail", outcome, summary, Vec::new())
}

const fn observed(name: &'static str, outcome: Outcome, summary: String, findings: Vec<String>) -> Phase {
    Phase { name, outcome, standing: Standing::Observed, summary, findings }
}

/// The first line, where it is a row.
fn first_row(file: &Path) -> std::io::Result<Option<Row>> {
    let mut line = Vec::new();
    regular_file::open(file)?.take(MAX_LINE as u64 + 1).read_to_end(&mut line)?;
    Ok(line.iter().position(|&byte| byte == b'\n').and_then(|end| Row::parse(line.get(..end)?).ok()))
}

/// The last checkpoint of this session that was seen on this machine.
fn last_seen(home: &Home, id: &SessionId) -> Result<Option<Vec<u8>>, StoreError> {
    match home.state() {
        Ok(state) => Store::open(state.to_owned())?.head(id),
        Err(_) => Ok(None),
    }
}
