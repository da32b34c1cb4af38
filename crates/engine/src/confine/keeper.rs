//! What the calls of a session share: a network with its proxy, and the processes that they leave running.
//!
//! Owns the process that holds it, one for calls under the same policies, users and hosts: the first call that needs it starts it. Refuses
//! to hold what nobody was granted. Invariant: what is shared under other rules is retired before the first call under new ones runs; no
//! call runs where nobody answers.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use writ_core::json;
use writ_core::{Digest, SessionId};
use writ_egress::{AuthorityError, Certificate};
pub use writ_sandbox::detach;
use writ_sandbox::{Awaited, Book, Confinement, Host, Lease, Observer, RunError, Shared, close_to_others, listen};
use writ_store::{Store, StoreError};

use super::left::Left;
use super::order::Order;
use super::record::Recorder;
use super::secrets::{self, SecretsError};
use super::strength::{self, StrengthError};
use super::traffic::{self, Seen, Traffic};
use super::trust;
use crate::Home;
use crate::home::NoStateDir;
use crate::session::rows::{SESSION_END, event};

/// Their folder in the session's.
const FOLDER: &str = "keepers";
/// The socket in a keeper's folder.
const SOCKET: &str = "socket";
/// The certificate of its authority, whose key it keeps to itself.
const AUTHORITY: &str = "authority.pem";
/// Held by a keeper as long as it lives.
const LIFE: &str = "life-";
/// Held by who starts one.
const LOCK: &str = "lock";
/// The event of a row about what was left running, and made what git would obey.
pub const TAKEN_BACK: &str = "taken-back";
/// What a keeper says when it answers.
const READY: &[u8] = b"ready";
/// How long one waits for the next call when nothing is running.
const IDLE: Duration = Duration::from_secs(600);
/// How long the end of a session waits for them.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often one is asked or started before that is given up: one may end while it is asked.
const TRIES: u32 = 6;

/// What a call is lent: namespaces, and whom its programs are to trust.
type Lent = (Lease, Awaited, Option<Certificate>);

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// It could not be started.
    #[error("what the session's calls share cannot be held: {0}")]
    Start(String),
    /// The system.
    #[error("what the session's calls share cannot be held: {0}")]
    System(#[from] io::Error),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is none.
    #[error(transparent)]
    State(#[from] NoStateDir),
    /// The order it is to be made by.
    #[error("{0}")]
    Order(String),
    /// What this machine allows.
    #[error(transparent)]
    Strength(#[from] StrengthError),
    /// The namespaces.
    #[error(transparent)]
    Namespaces(#[from] RunError),
    /// Its authority.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The values of its secrets.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The proxy.
    #[error(transparent)]
    Serve(#[from] writ_egress::ServeError),
}

/// Namespaces for a call, from a keeper that is there or is started now.
pub fn borrow(recorder: &Recorder, order: &Order, shared: Digest) -> Result<Lent, KeeperError> {
    let all = recorder.store.folder(&recorder.session).join(FOLDER);
    let folder = all.join(name(shared));
    let call = recorder.call.as_deref().unwrap_or_default();
    let mut last = None;
    for tries in 0..TRIES {
        match Lease::ask(&folder, SOCKET, call, &order.confinement.layered) {
            Ok((lease, awaited)) => return Ok((lease, awaited, certificate(order, &folder)?)),
            Err(error) => last = Some(error),
        }
        // One that is about to end still answers.
        std::thread::sleep(Duration::from_millis(2) * tries);
        start(recorder, order, &all, &folder)?;
    }
    Err(last.map_or_else(|| KeeperError::Start("nobody answers".to_owned()), KeeperError::System))
}

/// The certificate of a keeper's authority, where calls need one.
fn certificate(order: &Order, folder: &Path) -> Result<Option<Certificate>, KeeperError> {
    if order.trust.is_empty() {
        return Ok(None);
    }
    Ok(Some(Certificate::read(&fs::read_to_string(folder.join(AUTHORITY))?)?))
}

/// Has it lent to nobody any more: the next that asks gets another. A namespace whose first process was killed is there until the last
/// in it is gone, and takes no other.
pub fn renew(recorder: &Recorder, shared: Digest) {
    let folder = recorder.store.folder(&recorder.session).join(FOLDER).join(name(shared));
    // Where nobody answers there is nobody to retire.
    Lease::retire(&folder, SOCKET).ok();
}

/// Gives them back: what was seen of the call, if the keeper still knows. `meanwhile` is done until that is told.
pub fn give_back(
    lease: Lease,
    (stays, watched): (bool, Option<OwnedFd>),
    store: &Store,
    meanwhile: impl FnOnce(),
) -> Option<Seen> {
    let told = lease.end(stays, watched, meanwhile);
    if told.is_err() {
        // It would have given the names back that the call reserved.
        writ_sandbox::sweep(store.root()).ok();
    }
    json::from_slice(&told.ok()?).ok()
}

/// Ends what the calls of a session share, and waits for that a while: what it still has to record comes before the session's last row.
/// A call that is running keeps it.
pub fn retire(store: &Store, session: &SessionId) {
    let all = store.folder(session).join(FOLDER);
    retire_but(&all, None);
    let begun = Instant::now();
    let alive = || {
        let folders = fs::read_dir(&all).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let mut lives = files.filter(|file| file.file_name().as_encoded_bytes().starts_with(LIFE.as_bytes()));
        lives.any(|life| {
            let life = File::open(life.path());
            life.is_ok_and(|life| matches!(life.try_lock_shared(), Err(TryLockError::WouldBlock)))
        })
    };
    while begun.elapsed() < FAREWELL && alive() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Looks at all that a session's calls could write, whatever was seen of them, and takes back what they have left there.
pub fn settle_all(store: &Store, session: &SessionId, home: &Home) {
    let Some(order) = Order::last(store, session) else { return };
    let (store, home) = (store.clone(), home.clone());
    let recorder = Recorder { store, home, session: session.clone(), call: None, after: None };
    let left = Left::default();
    left.unseen();
    settle(&left, &order.confinement, &recorder);
}

/// Takes back what was left outside of the time of any call.
fn settle(left: &Left, confinement: &Confinement, recorder: &Recorder) {
    let settled = left.settle(confinement, recorder.home.user.as_deref());
    if !settled.taken_back.is_empty() {
        let row = BTreeMap::from([("takenBack", settled.paths(false)), ("left", settled.paths(true))]);
        // Where there is no record any more there is nobody to tell.
        recorder.record(TAKEN_BACK, row).ok();
    }
}

fn retire_but(all: &Path, one: Option<&Path>) {
    let Ok(entries) = fs::read_dir(all) else { return };
    for folder in entries.flatten().map(|entry| entry.path()).filter(|path| Some(path.as_path()) != one) {
        // Where nobody answers there is nobody to retire.
        Lease::retire(&folder, SOCKET).ok();
    }
}

fn name(shared: Digest) -> String {
    shared.hex().chars().take(32).collect()
}

fn start(recorder: &Recorder, order: &Order, all: &Path, folder: &Path) -> Result<(), KeeperError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
    lock.lock()?;
    if Lease::answers(folder, SOCKET) {
        // Another call has started it meanwhile.
        return Ok(());
    }
    if recorder.store.last_row(&recorder.session)?.is_some_and(|row| event(&row) == SESSION_END) {
        // Nobody would end it.
        return Err(KeeperError::Start("the session is over".to_owned()));
    }
    retire_but(all, Some(folder));
    let program = recorder.home.program.as_deref();
    let program =
        program.ok_or_else(|| KeeperError::Start("where Writ's own program is cannot be found out".to_owned()))?;
    let mut keeper = Command::new(program);
    keeper.args(["keep", "--session", recorder.session.as_str(), "--order", &order.digest().to_string()]);
    // It goes on as nobody's child once it answers; what is waited for is its word. Until then it has the lock, too: were the caller
    // killed, another would start a second, and take this one's socket away.
    let output = keeper.stdin(Stdio::from(lock.try_clone()?)).stdout(Stdio::piped()).stderr(Stdio::null()).output()?;
    if output.stdout == READY {
        return Ok(());
    }
    Err(KeeperError::Start(String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Holds what calls share, until nobody needs it. Told to `ready` is that it answers, or why not; `lock` is held until then.
pub fn keep(
    session: &SessionId,
    order: Digest,
    home: &Home,
    (mut ready, lock): (File, OwnedFd),
) -> Result<(), KeeperError> {
    let begun = Keeper::begin(session, order, home);
    let (keeper, socket) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            ready.write_all(error.to_string().as_bytes())?;
            return Err(error);
        }
    };
    ready.write_all(READY)?;
    drop(ready);
    drop(lock);
    let book = Arc::new(Calls {
        traffic: Arc::clone(&keeper.traffic),
        left: Arc::default(),
        recorder: keeper.recorder.clone(),
        confinement: keeper.confinement.clone(),
    });
    let folder = keeper.folder.clone();
    let gone = move || drop(fs::remove_file(folder.join(SOCKET)));
    let served = keeper.shared.serve(&socket, Arc::clone(&book) as Arc<dyn Book + Send>, IDLE, gone);
    let Keeper { shared, serving, life, .. } = keeper;
    // With it ends what was left running.
    drop(shared);
    drop(serving);
    book.settle();
    drop(life);
    Ok(served?)
}

/// A keeper that answers.
struct Keeper {
    folder: PathBuf,
    shared: Arc<Shared>,
    traffic: Arc<Traffic>,
    recorder: Recorder,
    confinement: Confinement,
    serving: Option<writ_egress::Serving>,
    /// Let go of last, when nothing more is recorded.
    life: File,
}

impl Keeper {
    fn begin(session: &SessionId, digest: Digest, home: &Home) -> Result<(Self, OwnedFd), KeeperError> {
        let store = Store::open(home.state()?.to_owned())?;
        let order = Order::kept(&store, session, digest);
        let order = order.map_err(|path| KeeperError::Order(format!("{} is not what was granted", path.display())))?;
        let shared = order.shared.ok_or_else(|| KeeperError::Order("its calls share nothing".to_owned()))?;
        let folder = store.folder(session).join(FOLDER).join(name(shared));
        let features = strength::features(&store)?;
        let host = Host { features: &features, state: store.root() };
        let life = folder.join(format!("{LIFE}{}", std::process::id()));
        let life = File::options().create(true).truncate(false).write(true).open(life)?;
        life.lock()?;
        let (shared, listeners) = Shared::begin(&order.confinement, host)?;
        close_to_others()?;
        let shared = Arc::new(shared);
        let recorder = Recorder { store, home: home.clone(), session: session.clone(), call: None, after: None };
        let traffic = Arc::new(Traffic::of(recorder.clone()));
        let asked = Arc::downgrade(&shared);
        let whose: writ_egress::Whose = Arc::new(move |socket, stream| asked.upgrade()?.mounts_of(socket, stream));
        let authority = trust::begin(&order.trust)?;
        if let Some(authority) = &authority {
            fs::write(folder.join(AUTHORITY), authority.certificate().pem())?;
        }
        // Only now: what holds the namespaces began as a copy of this process.
        let values = secrets::values(&order.sources, home)?;
        let serving = traffic::serve(&order, listeners, (values, authority), &traffic, Some(whose))?;
        let socket = listen(&folder, SOCKET)?;
        let confinement = order.confinement;
        Ok((Self { folder, shared, traffic, recorder, confinement, serving, life }, socket))
    }
}

/// Which calls there are, and what they have left running.
struct Calls {
    traffic: Arc<Traffic>,
    left: Arc<Left>,
    recorder: Recorder,
    confinement: Confinement,
}

impl Calls {
    /// Takes back what processes that were left running have made since.
    fn settle(&self) {
        settle(&self.left, &self.confinement, &self.recorder);
    }
}

impl Book for Calls {
    fn began(&self, name: &str, mounts: u64) {
        self.traffic.begin(name, mounts);
    }

    fn ended(&self, _name: &str, mounts: u64, well: bool) -> Vec<u8> {
        if !well {
            // Its supervisor may have been killed before it could.
            self.left.unseen();
        }
        self.settle();
        json::to_canonical(&self.traffic.seen_of(mounts)).into_bytes()
    }

    fn observer(&self) -> Option<Observer> {
        Some(self.left.observer())
    }
}
