//! The whole record of a session, checked again by someone who was not there.
//!
//! Reads a folder of evidence and answers seven questions: is it the policy, are the rows unbroken, do the checkpoints hold,
//! do they agree with each other and with the last one seen, what is not covered, does every decision come out the same,
//! and which calls did nobody see. Never repairs. Page: `spec/verify.md`.

pub mod claims;
mod coverage;
mod decisions;
mod policies;
pub mod report;
mod verdicts;

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use writ_core::json::Value;
use writ_core::{Digest, SessionId};
use writ_evidence::checkpoint::origin;
use writ_evidence::keys::PublicKey;
use writ_evidence::ledger::{LedgerReport, verify_ledger};
use writ_evidence::row::Row;
use writ_store::{Store, StoreError, plain};

use crate::Home;
use crate::session::PUBLIC_KEY;
use crate::state::State;
pub use report::{Outcome, Phase, Report, Standing};

/// Largest ledger that is read: about five million rows.
const MAX_LEDGER: u64 = 4 << 30;
/// Largest file of checkpoints, key or policy.
const MAX_FILE: u64 = 64 << 20;

/// What the verifier brings along.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The key the checkpoints must be signed with.
    pub key: Option<PublicKey>,
    /// Where the transcript is, when it is not where the session says.
    pub transcript: Option<PathBuf>,
}

/// Why there is nothing to verify.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The folder holds no ledger.
    #[error("{} holds no ledger.jsonl: it is no folder of evidence", path.display())]
    NoLedger {
        /// The folder.
        path: PathBuf,
    },
    /// There was one here.
    #[error("the record of this session is gone, although a checkpoint of it was signed here: {} holds no rows", path.display())]
    Lost {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Verifies a session on record here: it has to be this one, sealed with this machine's key.
pub fn session(store: &Store, id: &SessionId, home: &Home, options: &Options) -> Result<Report, VerifyError> {
    let at = store.folder(id);
    if store.was_sealed(id) && !store.exists(id) {
        return Err(VerifyError::Lost { path: at });
    }
    verify(&at, home, options, Some(id))
}

/// Verifies a ledger file and the checkpoints in `folder`: chain, checkpoints and tail, nothing else.
pub fn ledger(file: &Path, folder: &Path, home: &Home) -> Result<Report, VerifyError> {
    let evidence = Evidence::read(file, folder, home, &Options::default(), None)?;
    let phases = evidence.chain_phases();
    Ok(Report { session: evidence.id(), rows: evidence.report.rows, unobserved: Vec::new(), phases })
}

/// Verifies a folder of evidence.
pub fn folder(folder: &Path, home: &Home, options: &Options) -> Result<Report, VerifyError> {
    verify(folder, home, options, None)
}

fn verify(folder: &Path, home: &Home, options: &Options, id: Option<&SessionId>) -> Result<Report, VerifyError> {
    if let Some(path) = options.transcript.as_deref() {
        plain::open(path).map_err(|source| VerifyError::Io { path: path.to_owned(), source })?;
    }
    let evidence = Evidence::read(&folder.join("ledger.jsonl"), folder, home, options, id)?;
    let policies = policies::read(folder);
    let mut phases = vec![policies::check(&evidence.rows, &policies, home)];
    phases.extend(evidence.chain_phases());
    phases.extend(evidence.decisions(&policies.kept));
    let own = verdicts::Own::of(home, id.is_some() || evidence.seen);
    phases.extend(verdicts::check(&evidence.rows, folder, evidence.id().as_deref(), &own));
    phases.extend(claims::check(&evidence.rows, folder, evidence.public.as_ref()));
    let (covered, unobserved) = evidence.coverage(options);
    phases.push(covered);
    Ok(Report { session: evidence.id(), rows: evidence.report.rows, unobserved, phases })
}

/// The bytes of a session, and what the codecs say of them.
struct Evidence {
    rows: Vec<Row>,
    report: LedgerReport,
    key: KeyUsed,
    public: Option<PublicKey>,
    /// Whether an earlier checkpoint of it was signed on this machine.
    seen: bool,
}

/// Which key the checkpoints were checked with, and why that one.
enum KeyUsed {
    Given(Digest),
    Machine(Digest),
    Folder(Digest),
    None,
}

impl Evidence {
    fn read(
        file: &Path,
        folder: &Path,
        home: &Home,
        options: &Options,
        expected: Option<&SessionId>,
    ) -> Result<Self, VerifyError> {
        let bytes = match read(file, MAX_LEDGER) {
            Err(VerifyError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Err(VerifyError::NoLedger { path: folder.to_owned() });
            }
            other => other?,
        };
        let notes = optional(&folder.join("checkpoints"))?.unwrap_or_default();
        let (rows, _) = Row::parse_all(&bytes);
        let own = rows.first().and_then(session_id);
        let id = expected.cloned().or_else(|| own.clone());
        let seen = id.as_ref().map_or(Ok(None), |id| last_seen(home, id));
        let here = expected.is_some() || !matches!(seen, Ok(None));
        let (key, used) = pick_key(folder, home, options, here)?;
        let name = id.as_ref().map(origin);
        let head = seen.as_ref().ok().and_then(Option::as_deref);
        let mut report = verify_ledger(&bytes, &notes, key.as_ref(), name.as_deref(), head);
        if let Err(error) = &seen {
            report.consistency_problems.push(format!("the last checkpoint seen here cannot be read: {error}"));
        }
        if let (Some(expected), Some(own)) = (expected, &own)
            && expected != own
        {
            report.problems.push(format!("this is the record of session {own}, not of {expected}"));
        }
        report.checkpoint_problems.extend(other_key(folder, rows.first(), key.as_ref(), &used)?);
        Ok(Self { rows, report, key: used, public: key, seen: matches!(seen, Ok(Some(_))) })
    }

    fn id(&self) -> Option<String> {
        self.rows.first().and_then(session_id).map(|id| id.to_string())
    }

    fn chain_phases(&self) -> Vec<Phase> {
        let report = &self.report;
        let observed =
            |name, outcome, summary, findings| Phase { name, outcome, standing: Standing::Observed, summary, findings };
        let outcome = |good| if good { Outcome::Passed } else { Outcome::Failed };
        let rows_good = report.problems.is_empty() && report.rows > 0;
        let rows = if rows_good {
            format!("{} rows, each sealed to the one before", report.rows)
        } else {
            "the chain is broken".to_owned()
        };
        let mut phases = vec![observed("rows", outcome(rows_good), rows, report.problems.clone())];
        let notes = report.checkpoints;
        phases.push(if notes == 0 && report.checkpoint_problems.is_empty() {
            observed(
                "checkpoints",
                if self.ended() { Outcome::Failed } else { Outcome::Absent },
                "no checkpoint".to_owned(),
                Vec::new(),
            )
        } else {
            let good = report.checkpoint_problems.is_empty();
            let summary = if good {
                format!("{notes} signed {}", self.key)
            } else {
                format!("not every checkpoint holds ({})", self.key)
            };
            observed("checkpoints", outcome(good), summary, report.checkpoint_problems.clone())
        });
        let consistent = report.consistency_problems.is_empty();
        let summary = if consistent && self.seen {
            "each checkpoint extends the one before, and the last one seen here"
        } else if consistent {
            "each checkpoint extends the one before; none was seen here before"
        } else {
            "history was rewritten"
        };
        phases.push(observed(
            "consistency",
            if notes == 0 && consistent { Outcome::Absent } else { outcome(consistent) },
            summary.to_owned(),
            report.consistency_problems.clone(),
        ));
        phases.push(self.tail());
        phases
    }

    fn tail(&self) -> Phase {
        let (rows, covered) = (self.report.rows, self.report.covered);
        let (outcome, summary) = if covered >= rows {
            (Outcome::Passed, "every row is covered by a checkpoint".to_owned())
        } else if self.ended() {
            (Outcome::Failed, format!("tail not covered since row {covered}, though the session ended"))
        } else if let Some(stop) = self.unsealed_stop(covered) {
            (
                Outcome::Failed,
                format!("tail not covered since row {covered}, though the agent stopped at row {stop} and went on"),
            )
        } else {
            (Outcome::Absent, format!("tail not covered since row {covered}: the session is still open"))
        };
        Phase { name: "tail", outcome, standing: Standing::Observed, summary, findings: Vec::new() }
    }

    /// A stop that no checkpoint covers although the session went on after it: every stop is sealed before that.
    fn unsealed_stop(&self, covered: u64) -> Option<u64> {
        let mut rows = self.rows.iter().skip_while(|row| row.sequence < covered);
        let stop = rows.by_ref().find(|row| decisions::event(row) == "stop")?;
        rows.any(|row| matches!(decisions::event(row), "prompt" | "tool-call")).then_some(stop.sequence)
    }

    /// Whether some row says that the session ended.
    fn ended(&self) -> bool {
        self.rows.iter().any(|row| decisions::event(row) == "session-end")
    }

    /// The decisions, and what a policy that observes let run although it would have been stopped.
    fn decisions(&self, policies: &HashMap<Digest, Vec<u8>>) -> Vec<Phase> {
        let mut replay = decisions::Replay::new(policies);
        self.rows.iter().for_each(|row| replay.row(row));
        let good = replay.findings.is_empty();
        let state = self.rows.last().and_then(|row| State::from_detail(&row.detail));
        let counts = state.map_or_else(String::new, |state| {
            format!(" ({} allowed, {} asked, {} denied)", state.calls, state.asked, state.denied)
        });
        let summary = if good {
            format!("{} decisions come out the same{counts}", replay.decided)
        } else {
            format!("{} rows do not follow from the record", replay.findings.len())
        };
        let outcome = if good { Outcome::Passed } else { Outcome::Failed };
        let observed = replay.observed.any.then(|| Phase {
            name: "enforcement",
            outcome: Outcome::Absent,
            standing: Standing::Observed,
            summary: replay.observed.summary(),
            findings: replay.observed.lines(),
        });
        let decisions =
            Phase { name: "decisions", outcome, standing: Standing::Advised, summary, findings: replay.findings };
        std::iter::once(decisions).chain(observed).collect()
    }

    fn coverage(&self, options: &Options) -> (Phase, Vec<String>) {
        let mut seen = coverage::Seen::default();
        self.rows.iter().for_each(|row| seen.row(row));
        let recorded = self.rows.first().and_then(coverage::recorded_path).map(PathBuf::from);
        coverage::check(options.transcript.clone().or(recorded).as_deref(), &seen)
    }
}

impl std::fmt::Display for KeyUsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Given(id) => write!(f, "by the given key {}", id),
            Self::Machine(id) => write!(f, "by this machine's ledger key {id} (custody: file of the agent's own user)"),
            Self::Folder(id) => write!(f, "by key {id}, which the folder itself brings: give --key to pin it"),
            Self::None => f.write_str("by no key that is known here"),
        }
    }
}

/// The id in the genesis row.
pub fn session_id(genesis: &Row) -> Option<SessionId> {
    genesis.detail.get("session").and_then(Value::as_str).map(SessionId::new)
}

/// The given key, else this machine's where the session was seen here, else the folder's own.
fn pick_key(
    folder: &Path,
    home: &Home,
    options: &Options,
    here: bool,
) -> Result<(Option<PublicKey>, KeyUsed), VerifyError> {
    if let Some(key) = &options.key {
        return Ok((Some(key.clone()), KeyUsed::Given(key.key_id())));
    }
    let machine = home.state().ok().and_then(|state| Store::open(state.to_owned()).ok()?.public_key());
    let brought = optional(&folder.join(PUBLIC_KEY))?.and_then(|pem| String::from_utf8(pem).ok());
    let brought = brought.and_then(|pem| PublicKey::from_pem(&pem).ok());
    Ok(match (machine, brought) {
        (Some(machine), brought) if here || brought.as_ref() == Some(&machine) => {
            let id = machine.key_id();
            (Some(machine), KeyUsed::Machine(id))
        }
        (_, Some(brought)) => {
            let id = brought.key_id();
            (Some(brought), KeyUsed::Folder(id))
        }
        (_, None) => (None, KeyUsed::None),
    })
}

/// The last checkpoint of this session that was seen on this machine.
fn last_seen(home: &Home, id: &SessionId) -> Result<Option<Vec<u8>>, StoreError> {
    match home.state() {
        Ok(state) => Store::open(state.to_owned())?.head(id),
        Err(_) => Ok(None),
    }
}

/// The key that the genesis row names, and the one that lies beside the ledger, where they are not the one used.
fn other_key(
    folder: &Path,
    genesis: Option<&Row>,
    key: Option<&PublicKey>,
    used: &KeyUsed,
) -> Result<Vec<String>, VerifyError> {
    let Some(key) = key else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    let named = genesis.and_then(|row| row.detail.get("key")).and_then(Value::as_str);
    if named.is_some_and(|named| named != key.key_id().to_string()) {
        out.push(format!("the genesis row names another key: {}", named.unwrap_or_default()));
    }
    if matches!(used, KeyUsed::Machine(_)) {
        let beside = optional(&folder.join(PUBLIC_KEY))?.and_then(|pem| String::from_utf8(pem).ok());
        if beside.is_some_and(|pem| PublicKey::from_pem(&pem).ok().as_ref() != Some(key)) {
            out.push(format!("{PUBLIC_KEY} holds another key, or none"));
        }
    }
    Ok(out)
}

fn optional(path: &Path) -> Result<Option<Vec<u8>>, VerifyError> {
    match read(path, MAX_FILE) {
        Err(VerifyError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, VerifyError> {
    let io = |source| VerifyError::Io { path: path.to_owned(), source };
    plain::read(path, limit).map_err(io)
}
