//! A granted command in its sandbox, from the plan it was granted to the row of its run.
//!
//! Owns what stands outside while it runs: the egress proxy, and the record. Invariant: what is said to be held was held: the row is
//! written after the kernel took it, with the level it took it at.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use writ_core::Digest;
use writ_core::json::{self, Value};
use writ_egress::{AuthorityError, Certificate};
use writ_policy::Grant;
use writ_sandbox::{
    Command, Confinement, End, Host, Lease, Level, Limits, Listeners, MemoryHeldBy, Noted, Outcome, Replaced, RunError,
    Survivors,
};
use writ_store::StoreError;

use super::keeper::{self, KeeperError};
use super::left::{Left, RunLater, TakenBack};
use super::order::Order;
use super::record::Recorder;
use super::refusals::Refusals;
use super::secrets::{self, SecretsError};
use super::strength::{self, StrengthError};
use super::traffic::{self, Reached, Traffic};
use super::{bare, copy, layers, limits, tracked, trust};
use crate::Home;
use crate::session::{self, Session, SessionError};

/// The event of the row of a run.
pub const CONFINED: &str = "confined";

/// How often what calls share is asked for again.
const RETRIES: u32 = 6;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code as a shell says it.
    pub code: u8,
    /// What was refused, in words for the agent.
    pub refused: Vec<String>,
    /// What it used, where its paths were noted.
    pub observed: Option<Observed>,
}

/// What a run used.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its files; nothing where the kernel cannot tell.
    pub noted: Option<Noted>,
    /// Where its connections led.
    pub reached: BTreeSet<Reached>,
    /// Whether there were more.
    pub more_reached: bool,
    /// How many files and connections it was refused.
    pub refused: u64,
}

/// Why it was not run, or not recorded.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What this machine allows.
    #[error(transparent)]
    Strength(#[from] StrengthError),
    /// A secret that cannot be used.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The authority of the run.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Who holds what the session's calls share.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// The system.
    #[error("{0}")]
    System(#[from] io::Error),
    /// It ran, and its row could not be written.
    #[error("it ran, and that could not be recorded: {0}")]
    Unrecorded(SessionError),
}

impl SuperviseError {
    /// The exit code, as a shell would have it.
    pub fn exit_code(&self) -> u8 {
        if let Self::Run(error) = self { error.exit_code() } else { 126 }
    }
}

/// Runs it, and records that it ran. `beside` gets the socket for hooks, where it has one inside; what it gives is kept until the
/// run has ended.
pub fn supervise<T>(
    recorder: &Recorder,
    grant: &Grant,
    order: &Order,
    mut command: Command,
    beside: impl FnOnce(Option<TcpListener>) -> io::Result<T>,
) -> Result<Ran, SuperviseError> {
    // Files are dated by a clock that is some milliseconds late.
    let begun = SystemTime::now() - Duration::from_millis(10);
    let features = strength::features(&recorder.store)?;
    let level = features.level().ok_or(StrengthError::Nothing)?;
    let host = Host { features: &features, state: recorder.store.root() };
    let confinement = without_secrets(order, &recorder.home)?;
    command.watched = true;
    let seen_to_change = Arc::new(Left::default());
    command.observer = Some(seen_to_change.observer());
    let noting = command.noted;
    let mounts = level >= Level::Namespaces;
    let around = Around { recorder, grant, order, confinement: &confinement, host, mounts, known: OnceCell::new() };
    let Carried { mut ran, lease, traffic, certificate } = match order.shared {
        Some(shared) => around.shared(shared, &command)?,
        None => around.alone(command, beside)?,
    };
    let (code, ended) = ended(ran.end);
    let stays = order.confinement.survivors == Survivors::Stay && matches!(ran.end, End::Exited(_) | End::Signaled(_));
    let mut written = Vec::new();
    let seen = match lease {
        Some(lease) => keeper::give_back(lease, (stays, ran.watched.take()), &recorder.store, || {
            if recorder.call.is_some() {
                written = layers::written(&order.confinement, begun);
            }
        }),
        None => traffic.as_ref().map(|traffic| traffic.seen()),
    };
    let limits = &order.confinement.limits;
    let folder = order.confinement.folder.as_path();
    // Many programs ask for hosts that they do without.
    let mut words = seen.as_ref().filter(|_| code != 0).map(|seen| seen.words.clone()).unwrap_or_default();
    if order.confinement.session == writ_sandbox::Session::Terminal {
        // With a whole run its session ends.
        seen_to_change.unseen();
    }
    let settled = seen_to_change.settle(&order.confinement, recorder.home.user.as_deref());
    words.extend(settled.taken_back.iter().map(TakenBack::words));
    words.extend(replaced_words(&ran.replaced));
    words.extend(layers::words(&written, folder));
    words.extend(tracked::words(&order.confinement).filter(|_| code != 0));
    words.extend(limits::ended(limits, ran.end == End::TimeUp, ran.memory));
    let row = |session: &Session<'_>| {
        let files = Refusals::of(&ran.refused, session);
        words.extend(files.words(folder, code != 0));
        Confined {
            // The digest of the order, which was granted by it.
            order: grant.confinement(),
            level,
            features: around.features(),
            ended,
            after: recorder.after,
            milliseconds: u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX),
            connections: seen.as_ref().map(|seen| seen.allowed),
            refused: seen.as_ref().map(|seen| seen.refused),
            files,
            taken_back: settled.paths(false),
            left: settled.paths(true),
            later: settled.later,
            replaced: names(&ran.replaced.again),
            lost: names(&ran.replaced.lost),
            unwatched: ran.replaced.unwatched.as_deref(),
            limits: (*limits != Limits::default()).then_some(limits),
            memory: ran.memory.map(|memory| HeldMemory { held_by: memory.held_by.into(), killed: memory.killed }),
            secrets: order.sources.keys().map(String::as_str).collect(),
            authority: certificate.as_ref().map(Certificate::fingerprint),
            copy: copy::is_one(&order.confinement),
            standing: "enforced",
        }
    };
    recorder.record_with(CONFINED, row).map_err(SuperviseError::Unrecorded)?;
    let observed = traffic.filter(|_| noting).map(|traffic| {
        let (reached, more_reached) = traffic.reached();
        let refused = ran.refused.len() as u64 + traffic.seen().refused;
        Observed { noted: ran.noted.take(), reached, more_reached, refused }
    });
    Ok(Ran { code, refused: words, observed })
}

/// A run, and who stands around it.
struct Around<'a> {
    recorder: &'a Recorder,
    grant: &'a Grant,
    order: &'a Order,
    confinement: &'a Confinement,
    host: Host<'a>,
    /// Whether anything can be mounted.
    mounts: bool,
    /// The digest of the machine's features.
    known: OnceCell<Digest>,
}

/// A run that was carried out.
struct Carried {
    ran: Outcome,
    lease: Option<Lease>,
    /// Its traffic, where no keeper has seen it.
    traffic: Option<Arc<Traffic>>,
    certificate: Option<Certificate>,
}

impl Around<'_> {
    /// What the run's row needs, as far as it is known before it has ended.
    fn rehearse(&self) {
        self.features();
        session::rehearse(&self.recorder.store, &self.recorder.session);
    }

    fn features(&self) -> Digest {
        *self.known.get_or_init(|| Digest::of(json::to_canonical(self.host.features).as_bytes()))
    }

    /// In what the session's calls share. Where that ends before the command began, it is asked for again.
    fn shared(&self, shared: Digest, command: &Command) -> Result<Carried, SuperviseError> {
        let mut tries = 0;
        loop {
            let (lease, namespaces, certificate) = keeper::borrow(self.recorder, self.order, shared)?;
            let shown = trust::shown(&self.order.trust, certificate.as_ref());
            let command = Command { shared: Some(namespaces), shown, ..command.again()? };
            let began = |listeners: Listeners| lease.began(&listeners);
            match writ_sandbox::run(self.grant, self.confinement, command, self.host, began, || self.rehearse()) {
                Err(error) if error.is_before_command() && tries < RETRIES => {
                    tries += 1;
                    drop(lease);
                    keeper::renew(self.recorder, shared);
                    // One that is about to end still takes questions.
                    sleep(Duration::from_millis(2) * (tries - 1));
                }
                ran => return Ok(Carried { ran: ran?, lease: Some(lease), traffic: None, certificate }),
            }
        }
    }

    /// In what is its own.
    fn alone<T>(
        &self,
        mut command: Command,
        beside: impl FnOnce(Option<TcpListener>) -> io::Result<T>,
    ) -> Result<Carried, SuperviseError> {
        let authority = trust::begin(&self.order.trust)?;
        let certificate = authority.as_ref().map(|authority| authority.certificate().clone());
        let shown = trust::shown(&self.order.trust, certificate.as_ref());
        let mut confinement = Cow::Borrowed(self.confinement);
        let _files = if self.mounts {
            command.shown = shown;
            None
        } else {
            bare::show(&self.order.trust, shown, &mut command, &mut confinement)?
        };
        let traffic = Arc::new(Traffic::of(self.recorder.clone()));
        let ready = |mut listeners: Listeners| {
            let beside = beside(listeners.hooks.take())?;
            // Only now: the first process inside began as a copy of this one.
            let values = secrets::values(&self.order.sources, &self.recorder.home).map_err(io::Error::other)?;
            let serving = traffic::serve(self.order, listeners, (values, authority), &traffic, None);
            Ok((serving.map_err(io::Error::other)?, beside))
        };
        let ran = writ_sandbox::run(self.grant, &confinement, command, self.host, ready, || ())?;
        Ok(Carried { ran, lease: None, traffic: Some(traffic), certificate })
    }
}

/// The confinement, without those of the caller's variables that a policy refuses, and what else of them holds a secret's value.
fn without_secrets<'a>(order: &'a Order, home: &Home) -> Result<Cow<'a, Confinement>, SecretsError> {
    let mut names = secrets::refused(&order.refused_variables, home);
    if !order.sources.is_empty() {
        names.extend(secrets::carriers(&secrets::values(&order.sources, home)?, home));
    }
    if names.is_empty() {
        return Ok(Cow::Borrowed(&order.confinement));
    }
    let mut confinement = order.confinement.clone();
    confinement.environment.drop.extend(names);
    Ok(Cow::Owned(confinement))
}

fn ended(end: End) -> (u8, Ended) {
    match end {
        End::Exited(code) => (u8::try_from(code).unwrap_or(u8::MAX), Ended::Exited { code }),
        End::Signaled(signal) => {
            (128_u8.saturating_add(u8::try_from(signal).unwrap_or(127)), Ended::Signaled { signal })
        }
        End::TimeUp => (124, Ended::TimeUp {}),
        End::Killed => (137, Ended::Killed {}),
    }
}

/// Most replaced files that a row names.
const MOST_REPLACED: usize = 32;

fn names(paths: &BTreeSet<PathBuf>) -> Vec<String> {
    paths.iter().take(MOST_REPLACED).map(|path| path.to_string_lossy().into_owned()).collect()
}

fn replaced_words(replaced: &Replaced) -> Vec<String> {
    let word =
        |path: &PathBuf, then: &str| format!("`{}` was replaced from outside while this ran; {then}", path.display());
    let again = "it is protected again, and whoever had it open is ended";
    let again = replaced.again.iter().map(|path| word(path, again));
    let lost = replaced.lost.iter().map(|path| word(path, "it could not be protected again"));
    let unwatched = replaced
        .unwatched
        .iter()
        .map(|why| format!("files that are replaced from outside were not watched for: {why}"));
    again.chain(lost).chain(unwatched).collect()
}

/// What the row of a run says.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Confined<'a> {
    order: Digest,
    level: Level,
    features: Digest,
    ended: Ended,
    /// Of a call, the last row there was when it began: its result is not among those.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    milliseconds: u64,
    /// Nothing where the keeper that knew was killed: each connection has a row of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<u64>,
    #[serde(skip_serializing_if = "Refusals::is_empty")]
    files: Refusals,
    /// What it left that git would have obeyed.
    #[serde(rename = "takenBack", skip_serializing_if = "Vec::is_empty")]
    taken_back: Vec<String>,
    /// What of it could not be taken back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left: Vec<String>,
    /// What it changed that runs outside later.
    #[serde(skip_serializing_if = "RunLater::is_empty")]
    later: RunLater,
    /// Protected files that somebody outside replaced meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<String>,
    /// Those of them that could not be protected again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<String>,
    /// Why nobody knows whether there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    unwatched: Option<&'a str>,
    /// As in the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<HeldMemory>,
    /// Names of the secrets that could be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<&'a str>,
    /// Digest of the certificate that vouched inside for hosts whose TLS ended at the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    authority: Option<Digest>,
    /// Whether what it wrote to the policy's folder went to a layer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    copy: bool,
    standing: &'static str,
}

/// What became of a limit on memory.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeldMemory {
    held_by: HeldBy,
    /// Processes that the kernel killed for it.
    killed: u64,
}

/// What held it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum HeldBy {
    Group,
    EachProcess,
}

impl From<MemoryHeldBy> for HeldBy {
    fn from(by: MemoryHeldBy) -> Self {
        match by {
            MemoryHeldBy::Group => Self::Group,
            MemoryHeldBy::EachProcess => Self::EachProcess,
        }
    }
}

/// How the command ended.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Ended {
    Exited { code: i32 },
    Signaled { signal: i32 },
    TimeUp {},
    Killed {},
}

/// How many files a row of a run says that it was refused.
pub fn refused_files(detail: &Value) -> u64 {
    let refused = detail.get("files").and_then(|files| files.get("refused"));
    refused.and_then(|refused| json::from_value(refused).ok()).unwrap_or(0)
}

/// The last row there was when a run began, and how many milliseconds it took.
pub fn began(detail: &Value) -> Option<(u64, u64)> {
    Some((detail.get("after")?.as_u64()?, detail.get("milliseconds")?.as_u64()?))
}

/// What a row of a run says of it: the order and the level.
pub fn told(detail: &Value) -> Option<(Digest, Level)> {
    let order = detail.get("order").and_then(Value::as_str).and_then(|text| Digest::parse(text).ok())?;
    Some((order, json::from_value(detail.get("level")?).ok()?))
}
