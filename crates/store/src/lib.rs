//! Sessions, their ledgers and the ledger key on local disk: durable when a call returns, safe for many processes at once.
//!
//! Owns the layout of the state folder and the lock on each ledger, and what an attesting instance keeps ([`instance`]). Refuses to append to a ledger that is not a plain file,
//! or whose last whole line is not a row. Invariant: a row that [`LedgerGuard::append`] returned survives the death of the
//! process and of the machine. Page: `spec/ledger.md`.

mod accepted;
mod durable;
mod error;
mod genesis;
pub mod instance;
mod key;
mod locked_ledger;
mod tail;

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use writ_core::json::{self, Loose, Value};
use writ_core::{SessionId, Timestamp};
use writ_evidence::keys::{PublicKey, SigningKey};
use writ_evidence::row::{MAX_LINE, Row};

pub use error::StoreError;
pub use locked_ledger::{LedgerGuard, Session, Torn};
pub use writ_core::regular_file;

use error::io;

/// Largest head, key or kept note.
const MAX_SMALL: u64 = 1 << 20;

/// A state folder. Cheap to make: nothing is created before a session is opened.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The state folder at `root`, an absolute path that need not exist yet.
    pub fn open(root: PathBuf) -> Result<Self, StoreError> {
        if root.is_absolute() { Ok(Self { root }) } else { Err(StoreError::NotAbsolute { path: root }) }
    }

    /// The folder of a session, whether or not it exists.
    pub fn folder(&self, id: &SessionId) -> PathBuf {
        self.root.join("sessions").join(id.file_name())
    }

    /// Whether anything is on record for this session. What is no plain file is something: opening it says what is wrong.
    pub fn exists(&self, id: &SessionId) -> bool {
        self.ledger(id).symlink_metadata().is_ok_and(|found| !found.is_file() || found.len() > 0)
    }

    /// Whether this session began or was sealed here, and its rows are gone.
    pub fn is_lost(&self, id: &SessionId) -> bool {
        self.is_known(id) && !self.exists(id)
    }

    /// Refuses to write to a state folder that another user owns. Root, whom nobody keeps from anything, may.
    fn is_own(&self) -> Result<(), StoreError> {
        let (own, found) = (geteuid(), self.root.metadata());
        match found {
            Ok(found) if found.uid() != own.as_raw() && !own.is_root() => {
                Err(StoreError::NotOwn { path: self.root.clone(), owner: found.uid(), own: own.as_raw() })
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Opens a session's ledger, creating folder and file when they are not there. Nothing is locked yet.
    pub fn session(&self, id: &SessionId) -> Result<Session, StoreError> {
        self.is_own()?;
        Session::open(self.clone(), id)
    }

    /// Every row on record, without locking. A row that is just being written is not there yet.
    pub fn rows(&self, id: &SessionId) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.each_row(id, |row| rows.push(row))?;
        Ok(rows)
    }

    /// Takes every row on record, one after the other, without locking and without keeping any.
    pub fn each_row(&self, id: &SessionId, mut take: impl FnMut(Row)) -> Result<(), StoreError> {
        let path = self.ledger(id);
        let file = match regular_file::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(io("open", &path))?,
        };
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            reader.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).map_err(io("read", &path))?;
            let Some(whole) = line.strip_suffix(b"\n") else {
                let endless = line.len() > MAX_LINE;
                let why = format!("line {number}: longer than a row may be");
                return if endless { Err(StoreError::Damaged { path, why }) } else { Ok(()) };
            };
            let row = Row::parse(whole);
            take(
                row.map_err(|error| StoreError::Damaged {
                    path: path.clone(),
                    why: format!("line {number}: {error}"),
                })?,
            );
        }
        Ok(())
    }

    /// Takes rows from the last to the first, without locking, until `take` says that it has enough.
    pub fn each_row_back(&self, id: &SessionId, take: impl FnMut(Row) -> bool) -> Result<(), StoreError> {
        let path = self.ledger(id);
        let file = match regular_file::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other.map_err(io("open", &path))?,
        };
        tail::rows_back(&file, &path, take)
    }

    /// The genesis row.
    pub fn first_row(&self, id: &SessionId) -> Result<Option<Arc<Row>>, StoreError> {
        let path = self.ledger(id);
        let file = match regular_file::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(io("open", &path))?,
        };
        let mut line = Vec::new();
        BufReader::new(file.take(MAX_LINE as u64 + 1)).read_until(b'\n', &mut line).map_err(io("read", &path))?;
        let Some(line) = line.strip_suffix(b"\n") else { return Ok(None) };
        genesis::row(line).map(Some).map_err(|error| StoreError::Damaged { path, why: format!("line 1: {error}") })
    }

    /// The last row that is as wanted, among the last few thousand, without locking.
    pub fn last_row_where(&self, id: &SessionId, wanted: impl Fn(&Row) -> bool) -> Result<Option<Row>, StoreError> {
        let path = self.ledger(id);
        let file = match regular_file::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(io("open", &path))?,
        };
        tail::find(&file, &path, wanted)
    }

    /// The last whole row, without locking.
    pub fn last_row(&self, id: &SessionId) -> Result<Option<Row>, StoreError> {
        let path = self.ledger(id);
        let file = match regular_file::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(io("open", &path))?,
        };
        Ok(tail::read(&file, &path)?.last)
    }

    /// The sessions on record, the most recently written first.
    pub fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let folder = self.root.join("sessions");
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(io("list", &folder))?,
        };
        let mut found: Vec<(SystemTime, SessionId)> = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io("list", &folder))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Ok(written) = entry.path().join(LEDGER).metadata().and_then(|ledger| ledger.modified()) else {
                continue;
            };
            if let Some(id) = self.id_of(&name) {
                found.push((written, id));
            }
        }
        found.sort_by(|a, b| b.cmp(a));
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// The last checkpoint note that was signed for this session on this machine.
    pub fn head(&self, id: &SessionId) -> Result<Option<Vec<u8>>, StoreError> {
        durable::read(&self.head_path(id), MAX_SMALL)
    }

    /// Whether a checkpoint of this session was signed here: it then has rows, or somebody took them away.
    pub fn was_sealed(&self, id: &SessionId) -> bool {
        self.head_path(id).symlink_metadata().is_ok()
    }

    /// The key that signs checkpoints; made on first use. Of several processes that make it at once, all get the same.
    pub fn ledger_key(&self) -> Result<SigningKey, StoreError> {
        key::load_or_make(&self.root.join("keys"), key::LEDGER)
    }

    /// The key that signs checkpoints, if one was made.
    pub fn held_ledger_key(&self) -> Result<Option<SigningKey>, StoreError> {
        key::load(&self.root.join("keys"), key::LEDGER)
    }

    /// The public half of the ledger key, when there is one.
    pub fn public_key(&self) -> Option<PublicKey> {
        key::load(&self.root.join("keys"), key::LEDGER).ok().flatten().map(|key| key.public().clone())
    }

    /// Keeps a small file in the state folder itself. Durable on return.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        durable::replace(&self.root.join(name), bytes)
    }

    /// Locks a file in the state folder until it is dropped, and makes it and its folder.
    pub fn lock(&self, name: &str) -> Result<File, StoreError> {
        let (path, file) = self.to_lock(name)?;
        file.lock().map_err(io("lock", path))?;
        Ok(file)
    }

    /// The same; `None` where another process holds it.
    pub fn try_lock(&self, name: &str) -> Result<Option<File>, StoreError> {
        let (path, file) = self.to_lock(name)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(io("lock", path)(error)),
        }
    }

    fn to_lock(&self, name: &str) -> Result<(PathBuf, File), StoreError> {
        self.is_own()?;
        let path = self.root.join(name);
        if let Some(folder) = path.parent() {
            durable::make_folder(folder)?;
        }
        let file =
            durable::private().create(true).truncate(false).write(true).open(&path).map_err(io("open", &path))?;
        Ok((path, file))
    }

    /// Keeps a small file among the keys, for the owner alone. Durable on return.
    pub fn keep_in_keys(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        durable::replace(&self.root.join("keys").join(name), bytes)
    }

    /// Folders of the store that others than the owner may write to, and so put other evidence in its place.
    pub fn exposed(&self) -> Vec<PathBuf> {
        let folders = ["", "sessions", "keys", HEADS, BEGUN].map(|name| self.root.join(name));
        let writable = |path: &PathBuf| path.metadata().is_ok_and(|found| found.permissions().mode() & 0o022 != 0);
        folders.into_iter().filter(writable).collect()
    }

    /// Keeps, apart from the session, where and when it began. Durable on return.
    pub fn remember(&self, id: &SessionId, cwd: &str, at: Timestamp) -> Result<(), StoreError> {
        let begun =
            Begun { cwd: Loose(Some(cwd.to_owned())), session: Loose(Some(id.clone())), started: Loose(Some(at)) };
        durable::replace(&self.root.join(BEGUN).join(id.file_name()), json::to_canonical(&begun).as_bytes())
    }

    /// Whether this session began here, or a checkpoint of it was signed here: it then has rows, or somebody took them away.
    pub fn is_known(&self, id: &SessionId) -> bool {
        self.was_sealed(id) || self.root.join(BEGUN).join(id.file_name()).symlink_metadata().is_ok()
    }

    /// Every session that began or was sealed here, whether or not its rows are still there.
    pub fn known(&self) -> Result<Vec<Known>, StoreError> {
        let mut found: BTreeMap<String, Known> = BTreeMap::new();
        for folder in [HEADS, BEGUN] {
            let path = self.root.join(folder);
            let entries = match fs::read_dir(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other.map_err(io("list", &path))?,
            };
            for entry in entries {
                let entry = entry.map_err(io("list", &path))?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                if name.starts_with('.') {
                    continue;
                }
                let known = found.entry(name.clone()).or_insert_with(|| Known::named(&self.root, &name));
                if folder == HEADS {
                    known.sealed = entry.metadata().and_then(|head| head.modified()).ok();
                } else {
                    known.began(durable::read(&entry.path(), MAX_SMALL)?.as_deref());
                }
            }
        }
        Ok(found.into_values().collect())
    }

    fn ledger(&self, id: &SessionId) -> PathBuf {
        self.folder(id).join(LEDGER)
    }

    fn head_path(&self, id: &SessionId) -> PathBuf {
        self.root.join(HEADS).join(id.file_name())
    }

    /// The id whose folder is called `name`. A folder name that holds a digest does not say it; the genesis row does.
    fn id_of(&self, name: &str) -> Option<SessionId> {
        let plain = SessionId::new(name);
        if plain.file_name() == name {
            return Some(plain);
        }
        let line = durable::read(&self.root.join("sessions").join(name).join(LEDGER), MAX_LINE as u64 + 1).ok()??;
        let genesis = Row::parse(line.split(|&byte| byte == b'\n').next()?).ok()?;
        let id = SessionId::new(genesis.detail.get("session").and_then(Value::as_str)?);
        (id.file_name() == name).then_some(id)
    }

    /// The state folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// What is kept, apart from the session, of its beginning. A member that was damaged leaves the others standing.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Begun {
    cwd: Loose<String>,
    session: Loose<SessionId>,
    started: Loose<Timestamp>,
}

/// A session as the store knows it apart from its record.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its folder, whether or not it is there.
    pub folder: PathBuf,
    /// Its id, where its name or its beginning says it.
    pub id: Option<SessionId>,
    /// Where it began.
    pub cwd: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When a checkpoint of it was last signed.
    pub sealed: Option<SystemTime>,
}

impl Known {
    fn named(root: &Path, name: &str) -> Self {
        let id = Some(SessionId::new(name)).filter(|id| id.file_name() == name);
        Self { folder: root.join("sessions").join(name), id, cwd: None, started: None, sealed: None }
    }

    fn began(&mut self, bytes: Option<&[u8]>) {
        let Some(begun) = bytes.and_then(|bytes| json::from_slice::<Begun>(bytes).ok()) else { return };
        self.cwd = begun.cwd.0;
        self.started = begun.started.0;
        self.id = begun.session.0.or_else(|| self.id.take());
    }

    /// Whether it has rows.
    pub fn has_rows(&self) -> bool {
        self.folder.join(LEDGER).symlink_metadata().is_ok_and(|found| !found.is_file() || found.len() > 0)
    }
}

/// Puts a copy for others under a path outside the state folder, unless something is there. Returns whether it did. Durable on return.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    durable::create(path, bytes)
}

/// Where the beginnings of sessions are kept, apart from the sessions.
const BEGUN: &str = "begun";
/// Where the last checkpoint of each session is kept.
const HEADS: &str = "heads";

/// The ledger's name in a session's folder.
const LEDGER: &str = "ledger.jsonl";
