//! Why the store could not do what it was asked.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use writ_evidence::keys::KeyError;
use writ_evidence::row::RowError;

/// Why the store could not do what it was asked. Every message names the file and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), remedy(source))]
    Io {
        /// What was tried: `open`, `append to`, …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The state folder's path is relative, so it would move with the working directory.
    #[error("the state folder {} is not an absolute path: set WRIT_STATE_DIR to one", path.display())]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// The state folder is another user's, who could put another record in its place.
    #[error("the state folder {} belongs to user {owner}, and you are {own}: set WRIT_STATE_DIR to a folder of your own", path.display())]
    NotOwn {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who runs this.
        own: u32,
    },
    /// Other processes held the ledger for the whole time this one was ready to wait.
    #[error("{} was in use for {} ms: look for a hanging `writ` process, then try again", path.display(), waited.as_millis())]
    Busy {
        /// The ledger.
        path: PathBuf,
        /// How long this process waited.
        waited: Duration,
    },
    /// A symbolic link, a pipe, or something else that is no plain file stands where the ledger should.
    #[error("{} is not a plain file: remove it, and look for who put it there", path.display())]
    NotPlain {
        /// What stands there.
        path: PathBuf,
    },
    /// The ledger was moved or replaced while this process waited for it.
    #[error("{} was replaced while it was being opened: try again", path.display())]
    Replaced {
        /// The ledger.
        path: PathBuf,
    },
    /// The ledger's whole lines are not rows, which no crash can cause.
    #[error("{} is damaged ({why}): see `writ verify`, move the session's folder away, then start a new session", path.display())]
    Damaged {
        /// The ledger.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// An append failed and could not be taken back; opening the session again repairs the ledger.
    #[error("{} ends in a row that could not be written whole: open the session again", path.display())]
    Unfinished {
        /// The ledger.
        path: PathBuf,
    },
    /// The rows are not those that an earlier checkpoint was signed over.
    #[error("{} is not the history that was sealed at {size} rows: put the ledger back as it was", path.display())]
    Rewritten {
        /// The ledger.
        path: PathBuf,
        /// How many rows the last checkpoint seen covers.
        size: u64,
    },
    /// The draft makes no row.
    #[error("this cannot be recorded: {0}")]
    Row(#[from] RowError),
    /// The ledger key cannot be made or used.
    #[error("the ledger key cannot be used: {0}")]
    Key(#[from] KeyError),
    /// The ledger key's file holds no usable key.
    #[error("{} holds no usable key ({source}): put the right file back, or move it away: a new ledger key is then made by itself, a new key that attests by `writ keys rotate`", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KeyError,
    },
    /// Others may read the private key.
    #[error("{} can be read by others: run `chmod 600` on it", path.display())]
    KeyExposed {
        /// The file.
        path: PathBuf,
    },
    /// The file holds another key than the registry published under its name.
    #[error("{} holds another key than the registry names: put the right file back, or run `writ keys rotate`", path.display())]
    OtherKey {
        /// The file.
        path: PathBuf,
    },
    /// A key whose database is not there: nobody knows any more which keys are compromised.
    #[error("{} signed for an instance that this database does not know: put the database back, or move the keys in that folder away for a new instance", path.display())]
    Orphan {
        /// The key's file.
        path: PathBuf,
    },
    /// Others may put something else in its place.
    #[error("others can write to {}: run `chmod {mode:o} {}`, and look at what they wrote", path.display(), path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// The mode it should have.
        mode: u32,
    },
    /// A name that would leave the session's folder.
    #[error("`{name}` is not a name for a file in a session's folder")]
    Name {
        /// The name.
        name: String,
    },
}

/// What a person can do about a failed system call.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the list of system errors is open; most have no remedy of their own"
)]
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ": free some space, then try again",
        ErrorKind::PermissionDenied => ": make it yours (`chown`) and writable (`chmod u+rwX`)",
        ErrorKind::ReadOnlyFilesystem => ": set WRIT_STATE_DIR to a folder that can be written",
        _ => "",
    }
}

/// Turns a system error into a [`StoreError::Io`].
pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { action, path: path.into(), source }
}
