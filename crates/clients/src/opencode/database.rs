//! This client's database of sessions, drawn off into files of lines that are read, kept and sent like any transcript.
//!
//! Owns the reading of the database and the writing of those files. Refuses tables that are none, and what is too long. The invariant: a
//! file only grows; a row that has changed is told again in a line of its own. Format page: `spec/clients/opencode.md`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::Serialize;
use writ_core::json::{self, Limits, Value};
use writ_core::{Digest, Timestamp, regular_file};

use super::log;
use crate::jsonl::{first_entry, text};
use crate::transcript::TranscriptError;

/// How long a client that writes is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// The longest row that is drawn.
const MOST_BYTES: i64 = 32 << 20;
/// The most sessions and rows that are drawn.
const MOST: i64 = 1 << 20;
/// How many sub-agents there may be one below the other.
const DEEPEST: i64 = 32;
/// The longest beginning of a line that says which row it is of.
const MARK: usize = 256;

/// A session, as the first line of its file tells.
#[derive(Debug, Serialize)]
struct First<'a> {
    r#type: &'static str,
    session: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
}

/// A row of a message or a part, as a line tells. What tells two states of it apart comes first.
#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    updated: i64,
    size: i64,
    /// It was told before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
    r#type: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    timestamp: Timestamp,
    /// What the client keeps; null where that cannot be read.
    data: Value,
}

/// When a row was changed last, and how long it is.
type State = (i64, i64);

/// A row without what it holds.
struct Row {
    table: String,
    id: String,
    message: String,
    created: i64,
    updated: i64,
    size: i64,
    role: Option<String>,
    model: Option<String>,
}

/// The rows of a session, in the order in which the client made them.
const ROWS: &str = "select 'message', id, id, time_created, time_updated, length(data), \
    case when json_valid(data) then data ->> '$.role' end, \
    case when json_valid(data) then coalesce(data ->> '$.modelID', data ->> '$.model.modelID') end \
    from message where session_id = ?1 \
    union all select 'part', p.id, p.message_id, p.time_created, p.time_updated, length(p.data), \
    case when json_valid(m.data) then m.data ->> '$.role' end, \
    case when json_valid(m.data) then coalesce(m.data ->> '$.modelID', m.data ->> '$.model.modelID') end \
    from part p left join message m on m.id = p.message_id where p.session_id = ?1 order by 4, 2 limit ?2";

/// A session and those of its sub-agents.
const SESSIONS: &str = "with recursive below(id, depth) as (select id, 0 from session where id = ?1 \
    union select s.id, depth + 1 from session s join below b on s.parent_id = b.id where depth < ?2) \
    select distinct s.id, s.parent_id, s.agent, s.directory from session s join below b on b.id = s.id \
    order by s.time_created limit ?3";

/// Whether a session's id can be the name of a file.
fn is_plain(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Where the main file of a session is among those of a folder. One whose id can name no file is none of the client's: nothing is drawn of it.
pub fn main(folder: &Path, session: &str) -> PathBuf {
    let digest = || Digest::of(session.as_bytes()).hex();
    let name = if is_plain(session) { session.to_owned() } else { digest() };
    folder.join(format!("{name}.jsonl"))
}

/// Begins the main file of a session, where there is none: it names its database.
pub fn begin(main: &Path, database: &Path) -> Result<(), TranscriptError> {
    let failed = |source| TranscriptError::Io { path: main.to_owned(), source };
    if main.exists() {
        return Ok(());
    }
    if let Some(folder) = main.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let session = main.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let database = database.to_string_lossy();
    let first = First {
        r#type: "session",
        session: &session,
        database: Some(&database),
        parent: None,
        kind: None,
        directory: None,
    };
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(main) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other.and_then(|mut file| file.write_all(&line(&first))).map_err(failed),
    }
}

fn line(entry: &impl Serialize) -> Vec<u8> {
    let mut line = json::to_compact(entry).into_bytes();
    line.push(b'\n');
    line
}

/// The database and the session that a main file is of, as its first line tells.
fn source(main: &Path) -> Option<(PathBuf, String)> {
    let first = first_entry(main);
    Some((PathBuf::from(text(&first, "database")?), text(&first, "session")?.to_owned()))
}

/// The database, if there is one.
fn open(path: &Path) -> Result<Option<Connection>, TranscriptError> {
    match regular_file::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TranscriptError::Io { path: path.to_owned(), source }),
        Ok(_) => {}
    }
    let opened = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(path, flags)?;
        database.busy_timeout(PATIENCE)?;
        database.execute_batch("pragma trusted_schema = off; pragma query_only = on; begin")?;
        let tables =
            "select count(*) from sqlite_master where type = 'table' and name in ('session', 'message', 'part')";
        let tables: i64 = database.query_row(tables, [], |row| row.get(0))?;
        if tables == 3 { Ok(database) } else { Err(rusqlite::Error::InvalidQuery) }
    };
    opened().map(Some).map_err(|source| TranscriptError::Database { path: path.to_owned(), source })
}

/// Brings the files of a session up to date. Nothing is there to be drawn where it has not begun, or its client has no database yet.
pub fn draw(main: &Path) -> Result<(), TranscriptError> {
    let Some((path, session)) = source(main) else { return Ok(()) };
    let Some(database) = open(&path)? else { return Ok(()) };
    let failed = |source| TranscriptError::Database { path: path.clone(), source };
    let lock = File::open(main).and_then(|file| file.lock().map(|()| file));
    let _lock = lock.map_err(|source| TranscriptError::Io { path: main.to_owned(), source })?;
    for first in sessions(&database, &session).map_err(failed)? {
        let (own, agent) = if first.id == session {
            (main.to_owned(), None)
        } else {
            (log::below(main).join(format!("{}.jsonl", first.id)), Some(first.id.as_str()))
        };
        append(&database, &own, agent, &first).map_err(|error| match error {
            Appending::Database(source) => failed(source),
            Appending::Io(source) => TranscriptError::Io { path: own.clone(), source },
        })?;
    }
    Ok(())
}

/// Tells lines of what the database holds now, whatever was drawn before.
pub fn now(main: &Path, take: &mut dyn FnMut(&[u8])) -> Result<(), TranscriptError> {
    let Some((path, session)) = source(main) else { return Ok(()) };
    tell(&path, &session, &mut |_session, line| take(line))
}

/// Tells the lines of a session and of its sub-agents', each with whose it is.
pub fn tell(path: &Path, session: &str, take: &mut dyn FnMut(&Session, &[u8])) -> Result<(), TranscriptError> {
    let Some(database) = open(path)? else {
        return Err(TranscriptError::Io { path: path.to_owned(), source: io::Error::from(ErrorKind::NotFound) });
    };
    let mut told = || {
        for one in sessions(&database, session)? {
            let agent = (one.id != session).then_some(one.id.as_str());
            for row in rows(&database, &one.id)? {
                take(&one, &line(&entry(&database, &row, agent, false)?));
            }
        }
        Ok(())
    };
    told().map_err(|source| TranscriptError::Database { path: path.to_owned(), source })
}

/// The sessions that are no sub-agent's, each with the folder that it is about, the oldest first.
pub fn roots(path: &Path) -> Result<Vec<(String, String)>, TranscriptError> {
    let Some(database) = open(path)? else { return Ok(Vec::new()) };
    let found = || {
        let mut query = database
            .prepare("select id, directory from session where parent_id is null order by time_created limit ?1")?;
        let found = query.query_map([MOST], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.collect::<rusqlite::Result<Vec<(String, String)>>>()
    };
    let found = found().map_err(|source| TranscriptError::Database { path: path.to_owned(), source })?;
    Ok(found.into_iter().filter(|(id, _)| is_plain(id)).collect())
}

/// A session of the database.
pub struct Session {
    /// Its id.
    pub id: String,
    /// The session that began it.
    pub parent: Option<String>,
    /// The type of its agent.
    pub kind: Option<String>,
    /// The folder that it is about.
    pub directory: Option<String>,
}

fn sessions(database: &Connection, root: &str) -> rusqlite::Result<Vec<Session>> {
    let mut query = database.prepare(SESSIONS)?;
    let found = query.query_map((root, DEEPEST, MOST), |row| {
        Ok(Session { id: row.get(0)?, parent: row.get(1)?, kind: row.get(2)?, directory: row.get(3)? })
    })?;
    let found: Vec<Session> = found.collect::<rusqlite::Result<_>>()?;
    Ok(found.into_iter().filter(|session| is_plain(&session.id)).collect())
}

fn rows(database: &Connection, session: &str) -> rusqlite::Result<Vec<Row>> {
    let mut query = database.prepare(ROWS)?;
    let found = query.query_map((session, MOST), |row| {
        Ok(Row {
            table: row.get(0)?,
            id: row.get(1)?,
            message: row.get(2)?,
            created: row.get(3)?,
            updated: row.get(4)?,
            size: row.get(5)?,
            role: row.get(6)?,
            model: row.get(7)?,
        })
    })?;
    found.collect()
}

fn entry<'a>(database: &Connection, row: &'a Row, agent: Option<&'a str>, again: bool) -> rusqlite::Result<Entry<'a>> {
    let query = if row.table == "part" {
        "select data from part where id = ?1"
    } else {
        "select data from message where id = ?1"
    };
    let data: Option<String> = if row.size <= MOST_BYTES {
        database.query_row(query, [&row.id], |found| found.get(0)).optional()?
    } else {
        None
    };
    let data = data.and_then(|text| json::parse_with(text.as_bytes(), Limits::FOREIGN).ok()).unwrap_or(Value::Null);
    Ok(Entry {
        id: &row.id,
        updated: row.updated,
        size: row.size,
        again,
        r#type: &row.table,
        message: &row.message,
        agent,
        role: row.role.as_deref(),
        model: row.model.as_deref(),
        timestamp: Timestamp::from_millis(row.created),
        data,
    })
}

enum Appending {
    Database(rusqlite::Error),
    Io(io::Error),
}

impl From<rusqlite::Error> for Appending {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<io::Error> for Appending {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Appends what a session's file does not hold yet.
fn append(database: &Connection, path: &Path, agent: Option<&str>, session: &Session) -> Result<(), Appending> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let (known, end) = known(&file)?;
    // A line that was cut off is written anew.
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    let mut new = Vec::new();
    if end == 0 {
        let Session { id, parent, kind, directory } = session;
        let (parent, kind, directory) = (parent.clone(), kind.clone(), directory.clone());
        new.extend(line(&First { r#type: "session", session: id, database: None, parent, kind, directory }));
    }
    for row in rows(database, &session.id)? {
        let before = known.get(&row.id);
        if before != Some(&(row.updated, row.size)) {
            new.extend(line(&entry(database, &row, agent, before.is_some())?));
        }
    }
    Ok(file.write_all(&new)?)
}

/// The rows that a file tells of, each as it was told last, and where its last whole line ends.
fn known(file: &File) -> io::Result<(HashMap<String, State>, u64)> {
    let (mut known, mut end, mut line) = (HashMap::new(), 0, Vec::new());
    let mut reader = BufReader::new(file);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok((known, end));
        }
        end += length as u64;
        known.extend(mark(&line));
    }
}

/// Which row a line is of, and in which state.
fn mark(line: &[u8]) -> Option<(String, State)> {
    let head = String::from_utf8_lossy(line.get(..MARK).unwrap_or(line));
    let (id, rest) = head.strip_prefix("{\"id\":\"")?.split_once("\",\"updated\":")?;
    let (updated, rest) = rest.split_once(",\"size\":")?;
    let size = rest.split(',').next()?;
    Some((id.to_owned(), (updated.parse().ok()?, size.parse().ok()?)))
}

#[cfg(test)]
mod tests;
