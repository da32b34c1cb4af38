//! The whole record of a session, checked again by someone who was not there.
//!
//! Reads a folder of evidence and asks one question a phase: is it the policy, are the rows unbroken, do the checkpoints hold
//! and agree with each other and with the last one seen, what is not covered, does every decision come out the same, do verdicts
//! and claims rest on what they name, and which calls did nobody see. Never repairs. Invariant: the ledger is read once, piece by piece, and never held whole. Page:
//! `spec/verify.md`.

pub mod agentflow;
mod answered;
mod approvals;
mod bundle;
pub mod claims;
mod confined;
mod coverage;
mod custody;
mod decisions;
mod evaluators;
mod evidence;
mod explained;
mod identities;
mod key;
mod layers;
mod limits;
mod materials;
mod newest;
pub mod package;
mod phase;
mod phase_names;
mod policies;
mod read;
mod recorded;
pub mod report;
mod requests;
pub mod results;
mod sources;
mod speaking;
mod statements;
pub mod sublayouts;
pub mod summary;
mod turns;
mod verdicts;

use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use writ_clients::transcript::Transcripts;
use writ_core::json::Value;
use writ_core::{SessionId, Timestamp};
use writ_evaluators::rego;
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;
use writ_store::{Store, StoreError, regular_file};

use crate::Home;
use crate::governing::Trust;
use crate::governing::in_force::PolicyRef;
use crate::session::rows;
use crate::session::state::State;
pub use bundle::{BundleVerifyError, bundle};
pub use evaluators::{Evaluation, Judges};
use evidence::{Evidence, Taken};
pub use explained::Explained;
pub use newest::newest;
pub use report::{Outcome, Phase, Report, Standing, Status};
pub use sources::Sources;
use speaking::Policies;
pub use sublayouts::Sublayout;
use turns::Order;

/// Largest file of checkpoints, key or policy.
const MAX_FILE: u64 = 64 << 20;

/// What the verifier brings along.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The key the checkpoints must be signed with.
    pub key: Option<PublicKey>,
    /// Where the transcript is, when it is not where the session says.
    pub transcript: Option<PathBuf>,
    /// Where the transcripts are that rows name.
    pub sources: Sources,
    /// How models and services are asked that the policy names, where the verifier wants that.
    pub judges: Option<Judges>,
    /// Told now and then how many of how many bytes are read.
    pub progress: Option<fn(u64, u64)>,
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
    /// Nothing is on record.
    #[error("no session of {} is on record", path.display())]
    NoSession {
        /// The repository.
        path: PathBuf,
    },
    /// There was one here.
    #[error("lost: the record of session {session} is gone, although it began here: {} holds no rows", path.display())]
    Lost {
        /// The session, or the name of its folder.
        session: String,
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
    let path = store.folder(id);
    on_record(store, id)?;
    verify(&path, home, options, Some(id))
}

/// Whether the rows of a session that is known here are there.
pub fn on_record(store: &Store, id: &SessionId) -> Result<(), VerifyError> {
    if store.is_lost(id) {
        return Err(VerifyError::Lost { session: id.to_string(), path: store.folder(id) });
    }
    Ok(())
}

/// Verifies a ledger file and the checkpoints in `folder`: chain, checkpoints and tail, nothing else.
pub fn ledger(file: &Path, folder: &Path, home: &Home) -> Result<Report, VerifyError> {
    if let Err(source) = file.metadata() {
        return Err(VerifyError::Io { path: file.to_owned(), source });
    }
    let evidence = Evidence::open(file, folder, home, &Options::default(), None)?;
    let checked = evidence.read(false, &mut |_rows, _key| (), &mut |_taken| {})?;
    let mut report = evidence.report(&checked, evidence.chain_phases(&checked));
    report.chain_only = true;
    Ok(report)
}

/// Verifies a folder of evidence.
pub fn folder(folder: &Path, home: &Home, options: &Options) -> Result<Report, VerifyError> {
    verify(folder, home, options, None)
}

fn verify(folder: &Path, home: &Home, options: &Options, id: Option<&SessionId>) -> Result<Report, VerifyError> {
    if let Some(path) = options.transcript.as_deref() {
        regular_file::open(path).map_err(|source| VerifyError::Io { path: path.to_owned(), source })?;
    }
    let evidence = Evidence::open(&folder.join("ledger.jsonl"), folder, home, options, id)?;
    let kept = policies::read(folder);
    let own = verdicts::Own::of(home, id.is_some() || evidence.is_seen());
    let mut named = policies::Named::default();
    let mut replay = decisions::Replay::new(&kept);
    let mut chains = verdicts::Chains::of(folder, evidence.id(), &own);
    let mut claims = claims::Claims::of(folder);
    let mut approvals = approvals::Approvals::of(home, evidence.key(), &kept);
    let mut confined = confined::Confined::of(folder);
    let mut identities = identities::Identities::of(folder);
    let mut seen = coverage::Seen::of(evidence.len());
    let mut used = limits::Used::default();
    let mut requests = requests::Requests::default();
    let mut statements = statements::Statements::of(folder);
    let mut turns = turns::Turns::of(folder, evidence.id(), &kept);
    let mut last = None;
    let mut reader = turns.reader();
    let checked = evidence.read(true, &mut |rows, key| reader.read(rows, key), &mut |taken| {
        let (row, key) = match taken {
            Taken::Next(ahead) => return turns.ahead(ahead),
            Taken::Row(row, key) => (row, key),
        };
        last = Some(row.timestamp);
        let state = State::from_detail(&row.detail);
        if let Some(state) = &state {
            named.row(state, row.timestamp);
        }
        chains.row(row);
        claims.row(row, key);
        statements.row(row, key);
        approvals.row(row);
        confined.row(row);
        requests.row(row);
        seen.row(row);
        used.row(row, state.as_ref());
        identities.row(row, state.as_ref());
        turns.row(row, state.as_ref(), key);
        replay.row(row, state);
    })?;
    if checked.is_empty() {
        return Ok(evidence.report(&checked, evidence.chain_phases(&checked)));
    }
    statements.signed_for(checked.covered());
    let mut phases = vec![policies::check(&named, &kept, home)];
    phases.extend(evidence.chain_phases(&checked));
    phases.extend(replay.phases());
    phases.extend(requests.phase());
    phases.extend(confined.phase());
    phases.extend(identities.phase());
    phases.extend(approvals.phase());
    phases.extend(chains.phase());
    phases.extend(claims.phases());
    phases.extend(statements.phase());
    phases.extend(evidence.beginning());
    phases.extend(seen.unasked(evidence.genesis()));
    let recorded = evidence.genesis().and_then(coverage::recorded_path).map(PathBuf::from);
    let client = evidence.genesis().map_or(Err(String::new()), |genesis| rows::client(&genesis.detail));
    phases.extend(policies::absent(&named, &kept, client.as_ref().ok().copied()));
    let sources = &options.sources;
    let transcript = options.transcript.clone().or(recorded.as_deref().map(|main| sources.main(main)));
    let transcripts = client.as_ref().ok().and_then(|client| client.transcripts());
    // In a run each reading says of which transcript it is.
    let main = transcript.as_deref().unwrap_or(Path::new(""));
    let recorded = recorded.as_deref().unwrap_or(Path::new(""));
    phases.extend(transcripts.and_then(|kept| seen.read.lost(kept, main, recorded, sources)));
    let limited = named.last().map(|policy| limits::limited(policy, &kept)).unwrap_or_default();
    let wanted = Wanted {
        named: named.last(),
        since: named.since(),
        kept: &kept,
        limited: &limited,
        statements: &statements,
        last,
        transcripts,
        main: transcript.as_deref(),
        home,
        options,
    };
    // Both read the transcripts, and neither needs the other.
    let ((more, sublayouts, evaluations), used, (covered, unobserved)) = thread::scope(|scope| {
        let coverage = scope.spawn(|| coverage::check(transcript.as_deref(), client, seen, sources));
        let wanted = wanted.phases(&mut turns);
        let used = used.phase(&limited, folder, transcripts, options);
        (wanted, used, coverage.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    phases.extend(more);
    phases.extend(used);
    phases.extend(covered);
    let policy = named.last().map(|named| (named.name.clone(), named.file));
    Ok(Report { unobserved, policy, sublayouts, evaluations, ..evidence.report(&checked, phases) })
}

/// What the policy that governed last wants of its session: statements, what they are bound to, sub-agents, evaluators.
struct Wanted<'a> {
    named: Option<&'a PolicyRef>,
    since: Option<Timestamp>,
    kept: &'a policies::Kept,
    limited: &'a limits::Limited,
    statements: &'a statements::Statements,
    last: Option<Timestamp>,
    transcripts: Option<&'a dyn Transcripts>,
    main: Option<&'a Path>,
    home: &'a Home,
    options: &'a Options,
}

impl Wanted<'_> {
    /// The phases in the specification's order: attestations and what they are bound to, sublayouts, rules and models, and then what else has
    /// to be there. The limits, which count everybody, come after them.
    fn phases(&self, turns: &mut turns::Turns<'_>) -> (Vec<Phase>, Vec<Sublayout>, Vec<Evaluation>) {
        let named = self.named.filter(|named| policies::document(named, self.kept).is_ok());
        let list = named.and_then(|named| policies::list(named, self.kept).ok()).unwrap_or_default();
        let trust = Trust::open(self.home.state.as_deref());
        let since = self.since.or(self.last).unwrap_or_else(Timestamp::now);
        let policies = named.map(|named| Policies { named, kept: self.kept, list: &list, trust: &trust, since });
        let speaking = policies.map(|policies| policies.speaking(None)).unwrap_or_default();
        let order = speaking.iter().map(|(_, policy)| materials::order(policy)).fold(Order::default(), Order::and);
        let mut phases: Vec<Phase> = turns.phase().into_iter().collect();
        phases.extend(turns.binding(self.transcripts, self.main, &self.options.sources));
        let Some(policies) = policies else { return (phases, Vec::new(), Vec::new()) };
        let time = rego::Budget::default();
        let record = sublayouts::Record {
            policies,
            statements: self.statements,
            turns,
            home: self.home.user.as_deref(),
            program: self.home.program.as_deref(),
            main: self.main,
            transcripts: self.transcripts,
            options: self.options,
            time: &time,
        };
        let here = materials::Here {
            root: policies.named.root(),
            home: self.home.user.as_deref(),
            main: self.main,
            transcripts: self.transcripts,
        };
        phases.extend(materials::ordered(order, turns, &|_agent| true));
        phases.extend(speaking.iter().filter_map(|(_, policy)| materials::check(policy, &here, turns)));
        let (sublayouts, summed, mut evaluations) = sublayouts::check(&record, &self.limited.limits);
        phases.extend(summed);
        let (judged, mut own) = record.evaluated(&speaking, None, &|by| self.statements.named(by));
        phases.extend(judged);
        own.append(&mut evaluations);
        phases.extend(self.statements.required(&record.wanted(&speaking, None, None)));
        phases.extend(speaking.iter().filter_map(|(_, policy)| policies::expiry(policy, self.last)));
        (phases, sublayouts, own)
    }
}

/// The id in the genesis row.
pub fn session_id(genesis: &Row) -> Option<SessionId> {
    genesis.detail.get("session").and_then(Value::as_str).map(SessionId::new)
}

fn optional(path: &Path) -> Result<Option<Vec<u8>>, VerifyError> {
    optional_within(path, MAX_FILE)
}

fn optional_within(path: &Path, most: u64) -> Result<Option<Vec<u8>>, VerifyError> {
    match regular_file::read(path, most) {
        Err(source) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(VerifyError::Io { path: path.to_owned(), source }),
        Ok(bytes) => Ok(Some(bytes)),
    }
}
