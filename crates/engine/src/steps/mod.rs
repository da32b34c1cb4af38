//! A step: a command that Writ runs and attests, with what went in and what came out.
//!
//! Owns the statement, an in-toto link. Refuses to say of a step what Writ did not see. Invariant: the statement is made after the command
//! ended, by the process that ran it. Page: `spec/statements.md`.

pub mod imported;
mod reported;
pub mod told;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use writ_claims::{Limits, Snapshot};
use writ_core::secret::hide;
use writ_core::{Digest, Hasher, SessionId, Timestamp, visible};
use writ_evidence::intoto::{ResourceDescriptor, Statement};
use writ_store::Store;

use crate::Home;
use crate::session::statements::{self, Attested, Word, subject_of};
use crate::session::{Session, SessionError};

pub use reported::{Reported, ReportedError, sign};

/// The predicate of a step.
pub const LINK: &str = "https://in-toto.io/attestation/link/v0.3";
/// Most files of one step.
const MAX_FILES: usize = 10_000;
/// Deepest folder that is looked into.
const MAX_DEPTH: usize = 64;

/// What is run.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name, which a policy's `requiredAttestations` may want.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Files and folders that go in.
    pub materials: Vec<PathBuf>,
    /// Files and folders that come out.
    pub products: Vec<PathBuf>,
    /// The folder it runs in, and that paths are told from.
    pub cwd: PathBuf,
}

/// A step that ran.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code; 128 and the signal's number where one ended it.
    pub code: i32,
    /// The statement.
    pub attested: Attested,
}

/// Why a step is not attested.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// Its name.
    #[error("`{name}` is no name of a step: letters, digits, `-`, `_` and `.`, and none that a turn has (`turn-1`)")]
    Name {
        /// The name.
        name: String,
    },
    /// A file.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A link, which is not followed.
    #[error("{} is a symbolic link: name the files that it leads to by their own path", path.display())]
    Link {
        /// Which.
        path: PathBuf,
    },
    /// A name that no statement can hold.
    #[error("the name of {} is not UTF-8: rename it, or name what matters", path.display())]
    NoText {
        /// Which.
        path: PathBuf,
    },
    /// Too many files.
    #[error("{} has more than {MAX_FILES} files, or nests too deep: name what matters", path.display())]
    TooMany {
        /// Which folder.
        path: PathBuf,
    },
    /// The command.
    #[error("cannot run `{program}`: {source}")]
    Run {
        /// Its program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Another process holds the key.
    #[error("a notary signs for this session, and does not answer ({0}): start it with `writ notary run`")]
    Notary(String),
    /// It answers, and does not attest it.
    #[error("the notary that signs for this session: {0}")]
    Refused(String),
    /// The session.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// The predicate: <https://github.com/in-toto/attestation/blob/main/spec/predicates/link.md>.
#[derive(Debug, Serialize, Deserialize)]
pub struct Link {
    /// The step's name.
    pub name: String,
    command: Vec<String>,
    materials: Vec<ResourceDescriptor>,
    /// What came of it beside its products.
    pub byproducts: Byproducts,
    environment: BTreeMap<String, String>,
}

/// Most of a command that is shown, in characters.
const MAX_SHOWN: usize = 200;

impl Link {
    /// The command on one line, its secrets hidden.
    pub fn shown(&self) -> String {
        let line = hide(&self.command.join(" "));
        visible::line(&line).chars().take(MAX_SHOWN).collect()
    }
}

/// What came of a step beside its products.
#[derive(Debug, Serialize, Deserialize)]
pub struct Byproducts {
    /// Its exit code.
    #[serde(rename = "return-value")]
    pub return_value: i32,
    started: Timestamp,
    finished: Timestamp,
    /// The row of the ledger that names it: two that ran at once are two statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// Whose word command and exit code are, where Writ did not run it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Word>,
}

/// Whether a name is one of turns, of some agent: `turn-1`, `turn-1-part-2`, `research-turn-2`.
fn is_turn(name: &str) -> bool {
    name.starts_with("turn-") || name.contains("-turn-")
}

/// Runs a step of a session, and attests it.
pub fn run(store: &Store, id: &SessionId, home: &Home, step: &Step) -> Result<Ran, StepError> {
    let begun = Begun::of(store, id, home, step)?;
    let code = execute(step)?;
    Ok(Ran { code, attested: begun.ended(code)? })
}

/// Runs a step's command: its exit code.
pub fn execute(step: &Step) -> Result<i32, StepError> {
    let Some((program, arguments)) = step.command.split_first() else {
        return Err(StepError::Run { program: String::new(), source: io::ErrorKind::InvalidInput.into() });
    };
    let status = Command::new(program).args(arguments).current_dir(&step.cwd).status();
    let status = status.map_err(|source| StepError::Run { program: hide(&program.to_string_lossy()), source })?;
    Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1))
}

/// A step whose command is about to run: what goes in is known.
pub struct Begun<'a> {
    store: &'a Store,
    id: &'a SessionId,
    home: &'a Home,
    step: &'a Step,
    materials: Vec<ResourceDescriptor>,
    started: Timestamp,
    word: Word,
}

impl<'a> Begun<'a> {
    /// Looks at what goes in. What would not be attested in the end does not begin.
    pub fn of(store: &'a Store, id: &'a SessionId, home: &'a Home, step: &'a Step) -> Result<Self, StepError> {
        may_attest(store, id, home, &step.name)?;
        let mut materials = described(&step.cwd, &step.materials)?;
        materials.extend(head(&step.cwd));
        Ok(Self { store, id, home, step, materials, started: Timestamp::now(), word: Word::Observed })
    }

    /// The same of a step that another process runs: how it ends that one tells.
    pub fn told(store: &'a Store, id: &'a SessionId, home: &'a Home, step: &'a Step) -> Result<Self, StepError> {
        Self::of(store, id, home, step).map(|begun| Self { word: Word::Runner, ..begun })
    }

    /// Attests it: its command has ended with this code.
    pub fn ended(self, code: i32) -> Result<Attested, StepError> {
        let Self { store, id, home, step, materials, started, word } = self;
        let finished = Timestamp::now();
        let standing = (word != Word::Observed).then_some(word);
        // What failed commonly leaves no product, and it is just this that has to be on record.
        let there = |product: &&PathBuf| code == 0 || unlinked(&step.cwd, product).is_ok();
        let products: Vec<PathBuf> = step.products.iter().filter(there).cloned().collect();
        let subject = subjects(store, id, &step.cwd, &products)?;
        let mut session = Session::resume(store, id, home, finished)?;
        session.take_custody()?;
        let row = session.ledger().last().map(|row| row.sequence + 1);
        let link = Link {
            name: step.name.clone(),
            command: step.command.iter().map(|word| hide(&word.to_string_lossy())).collect(),
            materials,
            byproducts: Byproducts { return_value: code, started, finished, row, standing },
            environment: BTreeMap::new(),
        };
        let (statement, detail) = (Statement::new(subject, LINK, link), Ended { step: &step.name, code });
        Ok(statements::keep(&mut session, &step.name, word, &statement, detail)?)
    }
}

/// Refuses a name that no statement of a step can have.
pub fn named(name: &str) -> Result<(), StepError> {
    if statements::is_name(name) && !is_turn(name) { Ok(()) } else { Err(StepError::Name { name: name.to_owned() }) }
}

/// Whether another process, a notary, signs for a session.
pub fn is_a_notarys(store: &Store, id: &SessionId, home: &Home) -> Result<bool, StepError> {
    let session = Session::resume(store, id, home, Timestamp::now())?;
    Ok(session.state.custody.is_some() && home.keeper.is_none())
}

/// The same, and refuses a session for which another process signs.
fn may_attest(store: &Store, id: &SessionId, home: &Home, name: &str) -> Result<(), StepError> {
    named(name)?;
    if is_a_notarys(store, id, home)? {
        return Err(StepError::Notary("it was not asked".to_owned()));
    }
    Ok(())
}

/// What a statement is about: the session, and files.
fn subjects(
    store: &Store,
    id: &SessionId,
    cwd: &Path,
    products: &[PathBuf],
) -> Result<Vec<ResourceDescriptor>, StepError> {
    let genesis = store.first_row(id).map_err(SessionError::from)?.ok_or(SessionError::Vanished)?;
    let mut subject = vec![subject_of(id.as_str(), genesis.entry_hash)];
    subject.extend(described(cwd, products)?);
    Ok(subject)
}

/// What the row says beside the statement's name.
#[derive(Serialize)]
struct Ended<'a> {
    step: &'a str,
    code: i32,
}

/// The commit that the work tree was at, where git tells.
fn head(cwd: &Path) -> Option<ResourceDescriptor> {
    let (snapshot, _) = Snapshot::take(cwd, &Limits::default()).ok()?;
    let commit = snapshot.files.get(".git/HEAD")?.strip_prefix("commit:")?;
    (commit != "unborn").then(|| ResourceDescriptor::new("git:HEAD", "gitCommit", commit))
}

/// What a path leads to, where no part of it below `cwd` is a link: what is attested lies where its name says.
fn unlinked(cwd: &Path, path: &Path) -> Result<fs::Metadata, StepError> {
    let failed = |at: &Path, source| StepError::Io { path: at.to_owned(), source };
    let mut at = cwd.to_owned();
    for part in path.components() {
        at.push(part);
        let named = matches!(part, Component::Normal(_));
        if named && fs::symlink_metadata(&at).map_err(|source| failed(&at, source))?.is_symlink() {
            return Err(StepError::Link { path: at });
        }
    }
    fs::metadata(&at).map_err(|source| failed(&at, source))
}

/// Files by their paths from `cwd`, folders by what is in them; links are not followed.
fn described(cwd: &Path, named: &[PathBuf]) -> Result<Vec<ResourceDescriptor>, StepError> {
    let mut out = BTreeMap::new();
    for path in named {
        let at = cwd.join(path);
        if unlinked(cwd, path)?.is_dir() {
            below(&at, path, 0, &mut out)?;
        } else {
            out.insert(shown(path)?, digest(&at)?);
        }
    }
    Ok(out.into_iter().map(|(name, digest)| ResourceDescriptor::sha256(name, digest)).collect())
}

fn below(folder: &Path, name: &Path, depth: usize, out: &mut BTreeMap<String, Digest>) -> Result<(), StepError> {
    let failed = |source| StepError::Io { path: folder.to_owned(), source };
    for entry in writ_core::regular_file::folder(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if out.len() >= MAX_FILES || depth > MAX_DEPTH {
            return Err(StepError::TooMany { path: folder.to_owned() });
        }
        let (path, name) = (entry.path(), name.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            below(&path, &name, depth + 1, out)?;
        } else if kind.is_file() {
            out.insert(shown(&name)?, digest(&path)?);
        }
    }
    Ok(())
}

/// What a file is called in a statement. Two that are no text could look alike there, and one of them would be left out.
fn shown(path: &Path) -> Result<String, StepError> {
    let name = path.strip_prefix(".").unwrap_or(path).to_str();
    name.map(str::to_owned).ok_or_else(|| StepError::NoText { path: path.to_owned() })
}

fn digest(path: &Path) -> Result<Digest, StepError> {
    let failed = |source| StepError::Io { path: path.to_owned(), source };
    let mut file: File = writ_core::regular_file::open(path).map_err(failed)?;
    let (mut hasher, mut piece) = (Hasher::default(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece).map_err(failed)? {
            0 => return Ok(hasher.finish()),
            length => hasher.update(piece.get(..length).unwrap_or_default()),
        }
    }
}
