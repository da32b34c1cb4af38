//! One session's ledger, locked.
//!
//! Owns appending and recovery, which are one path: locking reads the end of the file, puts torn bytes aside and yields a
//! [`LedgerGuard`]. Refuses to append after damage. Invariant: while a guard lives, no other process appends, and the file
//! ends in the guard's last row.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, SessionId, json};
use writ_evidence::checkpoint::Checkpoint;
use writ_evidence::ledger::split_notes;
use writ_evidence::merkle::Tree;
use writ_evidence::row::{Draft, Row};

use crate::error::{StoreError, io};
use crate::{LEDGER, MAX_SMALL, Store, durable, tail};

/// First and longest pause between two tries for the lock.
const PAUSES: (Duration, Duration) = (Duration::from_micros(40), Duration::from_micros(1500));

/// Where the tree under the last checkpoint of a long ledger is kept, in the session's folder.
const TREE: &str = "tree.json";
/// A ledger of so many bytes is read whole for its tree.
const WHOLE: u64 = 2 << 20;

/// A tree as it is kept: where its rows end, the roots of its full subtrees, how many rows it has.
#[derive(Serialize, Deserialize)]
struct Known {
    end: u64,
    roots: Vec<Digest>,
    size: u64,
}

/// A session's ledger, open but not locked.
#[derive(Debug)]
pub struct Session {
    store: Store,
    id: SessionId,
    path: PathBuf,
    file: File,
}

impl Session {
    pub(crate) fn open(store: Store, id: &SessionId) -> Result<Self, StoreError> {
        let path = store.ledger(id);
        let file = match open_existing(&path)? {
            Some(file) => file,
            None => {
                durable::make_folder(&store.folder(id))?;
                create_or_open(&path)?
            }
        };
        Ok(Self { store, id: id.clone(), path, file })
    }

    /// Waits for the ledger, at most until `deadline`, then repairs what a crash left. The lock goes with the guard, and
    /// with the process. After a few quick tries the wait is in the kernel's queue, which serves in order: polling starves
    /// somebody when many wait.
    pub fn lock(self, deadline: Duration) -> Result<LedgerGuard, StoreError> {
        let start = Instant::now();
        let (mut pause, longest) = PAUSES;
        while pause < longest {
            match self.file.try_lock() {
                Ok(()) => return LedgerGuard::recover(self),
                Err(TryLockError::Error(error)) => return Err(io("lock", self.path)(error)),
                Err(TryLockError::WouldBlock) => thread::sleep(pause),
            }
            pause *= 2;
        }
        // The clone shares the open file, and so the lock. A wait that runs out leaves its thread to the process's end.
        let file = self.file.try_clone().map_err(io("lock", &self.path))?;
        let (send, receive) = mpsc::channel();
        thread::spawn(move || drop(send.send(file.lock())));
        match receive.recv_timeout(deadline.saturating_sub(start.elapsed())) {
            Ok(Ok(())) => LedgerGuard::recover(self),
            Ok(Err(error)) => Err(io("lock", self.path)(error)),
            Err(_) => Err(StoreError::Busy { path: self.path, waited: start.elapsed() }),
        }
    }
}

/// Bytes of a row that was being written when its process or the machine died. Its call was never answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// How many bytes.
    pub len: usize,
    /// Where they are kept, relative to the session's folder.
    pub kept: String,
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of an unfinished row, kept in {}", self.len, self.kept)
    }
}

/// A locked ledger.
#[derive(Debug)]
pub struct LedgerGuard {
    session: Session,
    last: Option<Row>,
    /// Length of the file: the end of `last`.
    end: u64,
    torn: Option<Torn>,
    unfinished: bool,
}

impl LedgerGuard {
    fn recover(session: Session) -> Result<Self, StoreError> {
        same_plain_file(&session.file, &session.path)?;
        let tail = tail::read(&session.file, &session.path)?;
        let mut guard = Self { session, last: tail.last, end: tail.whole, torn: None, unfinished: false };
        if !tail.torn.is_empty() {
            let kept = guard.put_aside(LEDGER, tail.whole, &tail.torn)?;
            guard.cut_back().map_err(io("repair", &guard.session.path))?;
            guard.torn = Some(Torn { len: tail.torn.len(), kept });
        }
        Ok(guard)
    }

    /// The last row: it holds the session's state (R43).
    pub const fn last(&self) -> Option<&Row> {
        self.last.as_ref()
    }

    /// What a crash left and locking put aside, until the next row is appended, which should say so.
    pub const fn recovered(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// Seals `draft` behind the last row and appends it. Durable on return; on an error nothing was recorded.
    //
    // Why no answered call is ever lost, and none is recorded that was not written whole:
    //  1. The lock is held, so `end` is the end of the file and `last` its last row.
    //  2. Before the first row, every folder entry on the way to the file is flushed; so a file with rows in it has a name
    //     that survives, whichever process finds it.
    //  3. One write puts row and line end behind `end`. A crash in here leaves bytes without a line end (or, on some file
    //     systems, zeros): the next lock puts them aside. Nobody was answered.
    //  4. `sync_data` returns when the bytes and the file's new length are on the disk. A crash before that may lose the
    //     row or keep it; nobody was answered.
    //  5. Only then does the caller get the row, and answers. From here on every later row's `prevHash` needs this one.
    // If 3 or 4 fails without a crash (full disk), the file is cut back to `end`. If even that fails, this guard appends
    // nothing more, and the next lock finds the torn bytes as in 3.
    pub fn append(&mut self, draft: Draft) -> Result<&Row, StoreError> {
        self.write(draft, File::sync_data)
    }

    /// The same, durable with the next row, or when the system gets to it: for what nobody is answered with.
    pub fn append_unflushed(&mut self, draft: Draft) -> Result<&Row, StoreError> {
        self.write(draft, |_file| Ok(()))
    }

    fn write(&mut self, draft: Draft, flush: impl FnOnce(&File) -> std::io::Result<()>) -> Result<&Row, StoreError> {
        if self.unfinished {
            return Err(StoreError::Unfinished { path: self.session.path.clone() });
        }
        let (row, mut line) = Row::seal_line(self.last.as_ref(), draft)?;
        if self.last.is_none() {
            self.sync_names()?;
        }
        line.push('\n');
        let written = self.session.file.write_all(line.as_bytes()).and_then(|()| flush(&self.session.file));
        if let Err(error) = written {
            self.unfinished = self.cut_back().is_err();
            return Err(io("append to", &self.session.path)(error));
        }
        self.end += line.len() as u64;
        self.torn = None;
        Ok(self.last.insert(row))
    }

    /// The RFC 6962 tree over every row so far. Refuses to give one that does not extend the last checkpoint seen on this
    /// machine: signing it would make a rewritten history whole again (R42). Of a long ledger only what is behind that
    /// checkpoint is read: what it signs is then the history that it was, and `writ verify` finds one that was rewritten.
    pub fn tree(&mut self) -> Result<Tree, StoreError> {
        let path = self.session.path.clone();
        let damaged = |why: &str| StoreError::Damaged { path: path.clone(), why: why.to_owned() };
        let head = match self.session.store.head(&self.session.id)? {
            None => None,
            Some(note) => {
                let note = String::from_utf8(note).map_err(|_bytes| damaged("its last checkpoint is not text"))?;
                Some(Checkpoint::read(&note).map_err(|_malformed| damaged("its last checkpoint cannot be read"))?)
            }
        };
        let known = head.as_ref().filter(|_| self.end > WHOLE).and_then(|head| self.known_tree(head));
        let (start, mut tree) = known.unwrap_or_default();
        let sealed = head.as_ref().map_or(0, |head| head.size);
        let mut then = (tree.size() == sealed).then(|| tree.root());
        self.each_line(start, |line| {
            tree.push(line);
            if tree.size() == sealed {
                then = Some(tree.root());
            }
        })?;
        match head {
            Some(head) if then != Some(head.root) => Err(StoreError::Rewritten { path, size: head.size }),
            _ => Ok(tree),
        }
    }

    /// The tree under the last checkpoint and where its rows end, as they were kept. Nothing where it is not that
    /// checkpoint's, or no row of the number that comes next begins there.
    fn known_tree(&self, head: &Checkpoint) -> Option<(u64, Tree)> {
        let bytes = durable::read(&self.folder().join(TREE), MAX_SMALL).ok()??;
        let Known { end, roots, size } = json::from_slice(&bytes).ok()?;
        let tree = Tree::resume(size, roots).filter(|tree| (tree.size(), tree.root()) == (head.size, head.root))?;
        let last = tail::line_before(&self.session.file, end).ok()??;
        (end <= self.end && Row::parse(&last).ok()?.sequence.checked_add(1)? == size).then_some((end, tree))
    }

    /// The ids of all calls that have a row.
    pub fn call_ids(&mut self) -> Result<HashSet<String>, StoreError> {
        let mut ids = HashSet::new();
        self.each_line(0, |line| ids.extend(writ_evidence::row::call_id(line)))?;
        Ok(ids)
    }

    /// Which of these calls have a row. Looked for from the end of the ledger, where young ones are.
    pub fn recorded<'a>(&self, mut wanted: HashSet<&'a str>) -> Result<HashSet<&'a str>, StoreError> {
        let mut found = HashSet::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        tail::back(&self.session.file, &self.session.path, |line| {
            if let Some(id) = writ_evidence::row::call_id(line) {
                found.extend(wanted.take(id.as_str()));
            }
            Ok(!wanted.is_empty())
        })?;
        Ok(found)
    }

    /// Adds a signed checkpoint to the session's, then remembers it as the last one seen (R42). Durable on return.
    pub fn keep_checkpoint(&mut self, note: &str, tree: &Tree) -> Result<(), StoreError> {
        if let Some(key) = self.session.store.public_key() {
            self.keep("ledger.pub", key.to_pem().as_bytes())?;
        }
        self.append_note(note)?;
        if self.end > WHOLE {
            let known = Known { end: self.end, roots: tree.roots().to_vec(), size: tree.size() };
            self.keep_soon(TREE, json::to_canonical(&known).as_bytes())?;
        }
        // The head comes last: a head without its checkpoint would look like a checkpoint that somebody removed.
        durable::replace(&self.session.store.head_path(&self.session.id), note.as_bytes())
    }

    /// Keeps `bytes` as `name` in the session's folder; folders in the name are made. Durable on return.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let inside = |part| matches!(part, Component::Normal(_));
        if name.is_empty() || name == LEDGER || !Path::new(name).components().all(inside) {
            return Err(StoreError::Name { name: name.to_owned() });
        }
        let path = self.folder().join(name);
        if durable::read(&path, bytes.len() as u64 + 1)?.is_some_and(|kept| kept == bytes) {
            return Ok(());
        }
        durable::replace(&path, bytes)?;
        path.parent().and_then(Path::parent).map_or(Ok(()), durable::sync_folder)
    }

    /// Keeps bytes that can be made again as `name` in the session's folder. Not durable: after a crash there may be the old ones,
    /// none, or others.
    pub fn keep_soon(&self, name: &'static str, bytes: &[u8]) -> Result<(), StoreError> {
        durable::replace_soon(&self.folder().join(name), bytes)
    }

    fn append_note(&mut self, note: &str) -> Result<(), StoreError> {
        let path = self.folder().join("checkpoints");
        let kept = durable::read(&path, MAX_SMALL << 10)?;
        let fresh = kept.is_none();
        let kept = kept.unwrap_or_default();
        let torn = split_notes(&kept).1;
        let end = (kept.len() - torn.len()) as u64;
        if !torn.is_empty() {
            self.put_aside("checkpoints", end, torn)?;
        }
        let mut file = durable::private().append(true).create(true).open(&path).map_err(io("open", &path))?;
        file.set_len(end).map_err(io("repair", &path))?;
        if let Err(error) = file.write_all(note.as_bytes()).and_then(|()| file.sync_data()) {
            file.set_len(end).map_err(io("repair", &path))?;
            return Err(io("append to", &path)(error));
        }
        if fresh { durable::sync_folder(self.folder()) } else { Ok(()) }
    }

    /// Saves torn bytes before they are cut off. Doing it twice, after a crash in between, makes the same file.
    fn put_aside(&self, of: &str, at: u64, bytes: &[u8]) -> Result<String, StoreError> {
        let digest = Digest::of(bytes).hex();
        let name = format!("torn/{of}-{at}-{}", digest.get(..12).unwrap_or(&digest));
        self.keep(&name, bytes)?;
        Ok(name)
    }

    fn cut_back(&self) -> std::io::Result<()> {
        self.session.file.set_len(self.end)?;
        self.session.file.sync_data()
    }

    /// Flushes the name of the ledger, of its folder and of the folders above, which this or another process made.
    fn sync_names(&self) -> Result<(), StoreError> {
        let root = self.session.store.root();
        self.folder().ancestors().take_while(|folder| folder.starts_with(root)).try_for_each(durable::sync_folder)?;
        root.parent().map_or(Ok(()), durable::sync_folder)
    }

    fn each_line(&mut self, start: u64, mut take: impl FnMut(&[u8])) -> Result<(), StoreError> {
        let read = io("read", &self.session.path);
        let rest = self.end.saturating_sub(start);
        let mut lines = || {
            self.session.file.seek(SeekFrom::Start(start))?;
            let mut reader = BufReader::with_capacity(1 << 18, Read::by_ref(&mut self.session.file).take(rest));
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                take(line.strip_suffix(b"\n").unwrap_or(&line));
                line.clear();
            }
            Ok(())
        };
        lines().map_err(read)
    }

    fn folder(&self) -> &Path {
        self.session.path.parent().unwrap_or(Path::new("/"))
    }
}

fn open_existing(path: &Path) -> Result<Option<File>, StoreError> {
    match File::options().read(true).append(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some).map_err(io("open", path)),
    }
}

fn create_or_open(path: &Path) -> Result<File, StoreError> {
    // Not plain `create`: that would follow a symbolic link and make a file elsewhere.
    match durable::private().read(true).append(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            open_existing(path)?.ok_or_else(|| StoreError::NotPlain { path: path.to_owned() })
        }
        other => other.map_err(io("create", path)),
    }
}

/// Refuses a ledger that is a link or no file, and one that is no longer what its name leads to.
fn same_plain_file(file: &File, path: &Path) -> Result<(), StoreError> {
    let named = path.symlink_metadata().map_err(io("open", path))?;
    let open = file.metadata().map_err(io("open", path))?;
    if !named.is_file() {
        return Err(StoreError::NotPlain { path: path.to_owned() });
    }
    if (named.dev(), named.ino()) == (open.dev(), open.ino()) {
        return Ok(());
    }
    Err(StoreError::Replaced { path: path.to_owned() })
}
