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

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use writ_core::json::Value;
use writ_core::{Digest, SessionId};
use writ_evidence::checkpoint::origin;
use writ_evidence::keys::PublicKey;
use writ_evidence::ledger::{LedgerReport, verify_ledger};
use writ_evidence::row::Row;
use writ_store::{Store, StoreError};

use crate::session::PUBLIC_KEY;
use crate::state::State;
use crate::{Home, plain};
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

/// Verifies a session on record here.
pub fn session(store: &Store, id: &SessionId, home: &Home, options: &Options) -> Result<Report, VerifyError> {
    folder(&store.folder(id), home, options)
}

/// Verifies a ledger file and the checkpoints in `folder`: chain, checkpoints and tail, nothing else.
pub fn ledger(file: &Path, folder: &Path, home: &Home) -> Result<Report, VerifyError> {
    let evidence = Evidence::read(file, folder, home, &Options::default())?;
    let phases = evidence.chain_phases();
    Ok(Report { session: evidence.id(), rows: evidence.report.rows, unobserved: Vec::new(), phases })
}

/// Verifies a folder of evidence.
pub fn folder(folder: &Path, home: &Home, options: &Options) -> Result<Report, VerifyError> {
    let evidence = Evidence::read(&folder.join("ledger.jsonl"), folder, home, options)?;
    let policies = policies::read(folder);
    let mut phases = vec![policies::check(&evidence.rows, &policies, home)];
    phases.extend(evidence.chain_phases());
    phases.push(evidence.decisions(&policies.kept));
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
}

/// Which key the checkpoints were checked with, and why that one.
enum KeyUsed {
    Given(Digest),
    Machine(Digest),
    Folder(Digest),
    None,
}

impl Evidence {
    fn read(file: &Path, folder: &Path, home: &Home, options: &Options) -> Result<Self, VerifyError> {
        let bytes = match read(file, MAX_LEDGER) {
            Err(VerifyError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Err(VerifyError::NoLedger { path: folder.to_owned() });
            }
            other => other?,
        };
        let notes = optional(&folder.join("checkpoints"))?.unwrap_or_default();
        let (rows, _) = Row::parse_all(&bytes);
        let id = rows.first().and_then(session_id);
        let seen = id.as_ref().and_then(|id| last_seen(home, id));
        let (key, used) = pick_key(folder, home, options, seen.is_some())?;
        let expected = id.as_ref().map(origin);
        let report = verify_ledger(&bytes, &notes, key.as_ref(), expected.as_deref(), seen.as_deref());
        Ok(Self { rows, report, key: used, public: key })
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
        let summary = if consistent {
            "each checkpoint extends the one before, and the last one seen here"
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
        } else {
            (Outcome::Absent, format!("tail not covered since row {covered}: the session is still open"))
        };
        Phase { name: "tail", outcome, standing: Standing::Observed, summary, findings: Vec::new() }
    }

    /// Whether some row says that the session ended.
    fn ended(&self) -> bool {
        self.rows.iter().any(|row| decisions::event(row) == "session-end")
    }

    fn decisions(&self, policies: &HashMap<Digest, Vec<u8>>) -> Phase {
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
        Phase { name: "decisions", outcome, standing: Standing::Advised, summary, findings: replay.findings }
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
    seen_here: bool,
) -> Result<(Option<PublicKey>, KeyUsed), VerifyError> {
    if let Some(key) = &options.key {
        return Ok((Some(key.clone()), KeyUsed::Given(key.key_id())));
    }
    let machine = home.state().ok().and_then(|state| Store::open(state.to_owned()).ok()?.public_key());
    let brought = optional(&folder.join(PUBLIC_KEY))?.and_then(|pem| String::from_utf8(pem).ok());
    let brought = brought.and_then(|pem| PublicKey::from_pem(&pem).ok());
    Ok(match (machine, brought) {
        (Some(machine), brought) if seen_here || brought.as_ref() == Some(&machine) => {
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
fn last_seen(home: &Home, id: &SessionId) -> Option<Vec<u8>> {
    Store::open(home.state().ok()?.to_owned()).ok()?.head(id).ok().flatten()
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
