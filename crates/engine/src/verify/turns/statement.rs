//! The statement that a row names: read, its signature checked, and about this run.
//!
//! Owns the reading, that of many rows at once by two threads while the rows before are followed: signatures are what takes longest.
//! Refuses to read what is large before its row comes. Invariant: what was read ahead counts for the row and the key that it was read for, and for nothing else. Page:
//! `spec/turns.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::thread;

use writ_core::Digest;
use writ_evidence::dsse::Envelope;
use writ_evidence::intoto::ResourceDescriptor;
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;

use crate::turns::FOLDER;
use crate::turns::named::Named;
use crate::turns::predicate::{PREDICATE_TYPE, RUN, TREE, Turn};
use crate::verify::optional;

/// Fewer statements than these are not worth a thread.
const FEW: usize = 4;
/// The largest file of one that is read ahead, and of all of them together.
const LARGE: u64 = 64 << 10;
const ALL: u64 = 1 << 20;

/// A statement and the work tree's hash, or why there is none.
pub type Statement = Result<(Turn, Option<String>), String>;

/// Whose statements they are.
pub struct Place<'a> {
    /// The folder of evidence.
    pub folder: &'a Path,
    /// The session.
    pub session: Option<&'a str>,
    /// The seal of its first row.
    pub genesis: Digest,
}

impl Place<'_> {
    fn path(&self, named: &Named) -> Result<PathBuf, String> {
        let plain = Path::new(&named.name).file_name().is_some_and(|name| name == named.name.as_str());
        if plain { Ok(self.folder.join(FOLDER).join(&named.name)) } else { Err("its name is no file's".to_owned()) }
    }

    /// The statement that a row names, its signature checked.
    pub fn read(&self, named: &Named, key: Option<&PublicKey>) -> Statement {
        let bytes = optional(&self.path(named)?).ok().flatten();
        let bytes = bytes.ok_or_else(|| format!("{FOLDER}/{} is not there: put it back from a copy", named.name))?;
        if Digest::of(&bytes) != named.attestation {
            return Err(format!("{FOLDER}/{} was changed", named.name));
        }
        let key = key.ok_or("no key is known that it could be checked with")?;
        let envelope = Envelope::parse(&bytes).map_err(|error| format!("{}: {error}", named.name))?;
        let statement = envelope.verify_statement_of::<Turn>(PREDICATE_TYPE, std::slice::from_ref(key));
        let statement = statement.map_err(|error| format!("{}: {error}", named.name))?.into_payload();
        let subject = statement.subject();
        let run = subject.iter().find(|subject| subject.name.starts_with(RUN));
        let session = self.session.unwrap_or_default();
        let ours = |subject: &&ResourceDescriptor| {
            subject.name == format!("{RUN}{session}") && subject.digest() == Some(self.genesis)
        };
        if run.filter(ours).is_none() {
            return Err(format!("{} is about another run", named.name));
        }
        let tree = subject.iter().find(|subject| subject.name == TREE);
        let tree = tree.and_then(|tree| tree.digest.values().next().cloned());
        Ok((statement.into_predicate(), tree))
    }
}

/// Reads the statements of rows that come next.
pub struct Reader<'a> {
    folder: &'a Path,
    session: Option<String>,
    genesis: Digest,
}

impl<'a> Reader<'a> {
    /// Statements of a session, whose first row comes first.
    pub fn of(folder: &'a Path, session: Option<String>) -> Self {
        Self { folder, session, genesis: Digest::ZERO }
    }

    /// The statements that these rows name, as far as they are small. `key` is the one that signs where they begin.
    pub fn read(&mut self, rows: &[Row], key: Option<&PublicKey>) -> Ahead {
        self.genesis = rows.first().filter(|row| row.sequence == 0).map_or(self.genesis, |row| row.entry_hash);
        let place = Place { folder: self.folder, session: self.session.as_deref(), genesis: self.genesis };
        let mut room = ALL;
        let mut small = |named: &Named| {
            let length = place.path(named).ok().and_then(|path| path.metadata().ok()).map(|found| found.len());
            let fits = length.is_some_and(|length| length <= LARGE.min(room));
            room -= length.filter(|_| fits).unwrap_or_default();
            fits
        };
        let named = rows.iter().filter_map(|row| Some((row.sequence, Named::of(row)?.ok()?)));
        let wanted: Vec<(u64, Named)> = named.filter(|(_, named)| small(named)).collect();
        if wanted.len() < FEW {
            return Ahead::default();
        }
        let read = |half: &[(u64, Named)]| -> Vec<(u64, Statement)> {
            half.iter().map(|(row, named)| (*row, place.read(named, key))).collect()
        };
        let (front, back) = wanted.split_at(wanted.len() / 2);
        let statements = thread::scope(|scope| {
            // What no thread is there for is read when its row comes.
            let other = thread::Builder::new().spawn_scoped(scope, || read(back)).ok();
            let mut all = read(front);
            all.extend(other.and_then(|other| other.join().ok()).unwrap_or_default());
            all
        });
        Ahead { key: key.cloned(), statements: statements.into_iter().collect() }
    }
}

/// Statements that were read before their rows came, by these.
#[derive(Default)]
pub struct Ahead {
    key: Option<PublicKey>,
    statements: HashMap<u64, Statement>,
}

impl Ahead {
    /// What was read for a row, where that was under the key that signs there.
    pub fn take(&mut self, row: u64, key: Option<&PublicKey>) -> Option<Statement> {
        self.statements.remove(&row).filter(|_| self.key.as_ref() == key)
    }
}
