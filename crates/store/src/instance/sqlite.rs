//! SQLite: one machine, any number of processes.
//!
//! WAL with `synchronous=FULL`: a commit has reached the disk when it returns. Every write begins with `BEGIN IMMEDIATE`, so
//! that what it read is still the newest when it commits.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params};
use writ_core::json;
use writ_evidence::registry::Registry;

use super::{Changer, Database, DatabaseError, Identity, Kept, Record, check, chosen};
use crate::durable;

/// How long one process waits for another.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pages of the journal, 16 MiB, after which whoever writes works the rest of them into the file and begins it anew: flushing a part
/// that was there before costs less than flushing one that grows. Most of that work [`Database::tidy`] has done by then.
const CHECKPOINT: u32 = 4096;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS instance (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, url TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS registry (version INTEGER PRIMARY KEY, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS attestation (
    at INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, key_id TEXT NOT NULL, document TEXT NOT NULL);";

/// Attestations in one file.
pub struct Sqlite {
    path: PathBuf,
    connection: Connection,
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sqlite({})", self.path.display())
    }
}

impl Sqlite {
    /// Opens the file, and makes it for the owner alone when it is not there.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        if let Some(folder) = path.parent() {
            durable::make_folder(folder)?;
            durable::guarded(folder)?;
        }
        // SQLite would create it by the umask, and its journals after the mode that it has.
        if !path.exists() {
            durable::create(path, b"")?;
        }
        durable::guarded(path)?;
        let mut journal = path.as_os_str().to_owned();
        journal.push("-wal");
        durable::guarded(Path::new(&journal))?;
        let failed = |source| DatabaseError::Sqlite { path: path.display().to_string(), source };
        let connection = Connection::open(path).map_err(failed)?;
        let prepared = connection.busy_timeout(PATIENCE).and_then(|()| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
            connection.execute_batch(SCHEMA)
        });
        prepared.map_err(failed)?;
        Ok(Self { path: path.to_owned(), connection })
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> DatabaseError + use<> {
        let path = self.path.display().to_string();
        move |source| DatabaseError::Sqlite { path: path.clone(), source }
    }
}

impl Database for Sqlite {
    fn known(&mut self) -> Result<Option<Identity>, DatabaseError> {
        let kept = |row: &rusqlite::Row<'_>| Ok(Identity { id: row.get(0)?, url: chosen(row.get(1)?) });
        let select = "SELECT id, url FROM instance WHERE one = 1";
        self.connection.query_row(select, [], kept).optional().map_err(self.failed())
    }

    fn identity(&mut self, first: &Identity) -> Result<Identity, DatabaseError> {
        check(first)?;
        let failed = self.failed();
        let insert = "INSERT OR IGNORE INTO instance (one, id, url) VALUES (1, ?1, ?2)";
        if let Some(found) = self.known()? {
            return Ok(found);
        }
        self.connection.execute(insert, params![first.id, first.url.as_deref().unwrap_or_default()]).map_err(failed)?;
        Ok(self.known()?.unwrap_or_else(|| first.clone()))
    }

    fn move_to(&mut self, url: &str) -> Result<(), DatabaseError> {
        let failed = self.failed();
        self.connection.execute("UPDATE instance SET url = ?1", [url]).map_err(failed).map(|_rows| ())
    }

    fn version(&mut self) -> Result<u64, DatabaseError> {
        newest(&self.connection).map_err(self.failed())
    }

    fn registry(&mut self) -> Result<Option<Registry>, DatabaseError> {
        let document = document(&self.connection).map_err(self.failed())?;
        Ok(document.map(|text| Registry::parse(text.as_bytes())).transpose()?)
    }

    fn history(&mut self) -> Result<Vec<String>, DatabaseError> {
        let failed = self.failed();
        let mut select = self.connection.prepare("SELECT document FROM registry ORDER BY version").map_err(&failed)?;
        let rows = select.query_map([], |row| row.get(0)).map_err(&failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    fn change(&mut self, first: &Registry, changer: Changer<'_>) -> Result<Registry, DatabaseError> {
        let failed = self.failed();
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let known = document(&change).map_err(&failed)?;
        let known = known.map(|text| Registry::parse(text.as_bytes())).transpose()?;
        let known = known.as_ref().unwrap_or(first);
        let Some(next) = changer(known)? else { return Ok(known.clone()) };
        let insert = "INSERT INTO registry (version, document) VALUES (?1, ?2)";
        change.execute(insert, params![signed(next.version()), json::to_compact(&next)]).map_err(&failed)?;
        change.commit().map_err(failed)?;
        Ok(next)
    }

    fn keep(&mut self, version: u64, batch: &[Record]) -> Result<Kept, DatabaseError> {
        let failed = self.failed();
        let keep = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        if newest(&keep).map_err(&failed)? != version {
            return Ok(Kept::Stale);
        }
        match insert(&keep, batch) {
            Err(rusqlite::Error::SqliteFailure(why, _)) if why.code == ErrorCode::ConstraintViolation => {
                return Ok(Kept::Taken);
            }
            other => other.map_err(&failed)?,
        }
        keep.commit().map_err(failed)?;
        Ok(Kept::Whole)
    }

    fn find(&mut self, id: &str) -> Result<Option<Record>, DatabaseError> {
        let failed = self.failed();
        let mut select = self
            .connection
            .prepare_cached("SELECT id, key_id, document FROM attestation WHERE id = ?1")
            .map_err(&failed)?;
        let record =
            |row: &rusqlite::Row<'_>| Ok(Record { id: row.get(0)?, key_id: row.get(1)?, document: row.get(2)? });
        select.query_row([id], record).optional().map_err(failed)
    }

    fn each(&mut self, see: &mut dyn FnMut(Record) -> bool) -> Result<(), DatabaseError> {
        let failed = self.failed();
        let mut select = self
            .connection
            .prepare("SELECT id, key_id, document FROM attestation ORDER BY at DESC")
            .map_err(&failed)?;
        let mut rows = select.query([]).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            let read = || Ok(Record { id: row.get(0)?, key_id: row.get(1)?, document: row.get(2)? });
            if !see(read().map_err(&failed)?) {
                break;
            }
        }
        Ok(())
    }

    fn forget(&mut self, ids: &[String]) -> Result<usize, DatabaseError> {
        let failed = self.failed();
        let forget = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        let mut gone = 0;
        for id in ids {
            gone += forget.execute("DELETE FROM attestation WHERE id = ?1", [id]).map_err(&failed)?;
        }
        forget.commit().map_err(failed)?;
        Ok(gone)
    }

    fn tidy(&mut self) -> Result<(), DatabaseError> {
        // What others are using stays in the journal until the next time.
        self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_row| Ok(())).map_err(self.failed())
    }
}

fn insert(keep: &Transaction<'_>, batch: &[Record]) -> rusqlite::Result<()> {
    let mut insert = keep.prepare_cached("INSERT INTO attestation (id, key_id, document) VALUES (?1, ?2, ?3)")?;
    for record in batch {
        insert.execute(params![record.id, record.key_id, record.document])?;
    }
    Ok(())
}

fn newest(connection: &Connection) -> rusqlite::Result<u64> {
    let mut select = connection.prepare_cached("SELECT COALESCE(MAX(version), 0) FROM registry")?;
    let version: i64 = select.query_row([], |row| row.get(0))?;
    Ok(version.unsigned_abs())
}

fn document(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT document FROM registry ORDER BY version DESC LIMIT 1", [], |row| row.get(0)).optional()
}

/// Versions are far below what a signed integer holds.
fn signed(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}
