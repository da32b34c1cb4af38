//! Folders and files for what lies on disk only while a command runs: bundles laid out, transcripts masked, packages on their way.
//!
//! Owns their names, which say whose process made them, and the removal of those whose process was killed. Refuses what is not this user's
//! alone. Invariant: nothing of a process that lives is touched, nor of one that cannot be told from here.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempDir};
use writ_engine::session::process::{self, ClientProcess};

/// What their names begin with.
const PREFIX: &str = ".writ-room-";
/// The rights of a folder and of a file: what lies there is what agents said and wrote.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

/// A folder where temporary files are.
pub fn folder() -> io::Result<TempDir> {
    folder_in(&std::env::temp_dir())
}

/// A folder beside what is made.
pub fn folder_in(parent: &Path) -> io::Result<TempDir> {
    sweep(parent);
    Builder::new().prefix(&prefix()).permissions(Permissions::from_mode(FOLDER)).tempdir_in(parent)
}

/// A file that takes the place of what is made once it is whole.
pub fn file_in(parent: &Path) -> io::Result<NamedTempFile> {
    sweep(parent);
    Builder::new().prefix(&prefix()).permissions(Permissions::from_mode(FILE)).tempfile_in(parent)
}

/// Who made one: the process, and in which namespaces its number and its start are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Maker {
    process: ClientProcess,
    namespaces: String,
}

impl Maker {
    fn own() -> Option<Self> {
        process::this().map(|(process, namespaces)| Self { process, namespaces })
    }

    /// Who made what is called so; nothing where it is called otherwise.
    fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(4, '-');
        let (id, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let namespaces = parts.next()?.to_owned();
        parts.next().map(|_own| Self { process: ClientProcess { id, started }, namespaces })
    }

    /// Whether its process is known to have ended, as it is seen from another.
    fn has_ended(&self, here: &Self) -> bool {
        self.namespaces == here.namespaces && process::running(std::slice::from_ref(&self.process)).is_empty()
    }
}

/// What a name begins with; where `/proc` tells nothing it says nothing, and is left to whoever looks after the folder.
fn prefix() -> String {
    match Maker::own() {
        Some(Maker { process: ClientProcess { id, started }, namespaces }) => {
            format!("{PREFIX}{id}-{started}-{namespaces}-")
        }
        None => PREFIX.to_owned(),
    }
}

/// Removes what processes left that were killed. What cannot be removed stays.
fn sweep(parent: &Path) {
    let (Some(here), Ok(own)) = (Maker::own(), fs::metadata("/proc/self")) else { return };
    let alone = |found: &Metadata, rights: u32| found.uid() == own.uid() && found.mode() & 0o7777 == rights;
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let maker = entry.file_name().to_str().and_then(Maker::of);
        // Not what a link leads to: a link is neither.
        let Ok(found) = entry.metadata() else { continue };
        if maker.is_none_or(|maker| !maker.has_ended(&here)) {
            continue;
        }
        if found.is_dir() && alone(&found, FOLDER) {
            drop(fs::remove_dir_all(entry.path()));
        } else if found.is_file() && alone(&found, FILE) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_dead_process_left_goes_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let own = Maker::own().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        let namespaces = &own.namespaces;
        let name = |process: u32, started: i64, namespaces: &str| format!("{PREFIX}{process}-{started}-{namespaces}-x");
        let ClientProcess { id, started } = own.process;
        let made = |name: &str, rights: u32| {
            let path = place.path().join(name);
            fs::create_dir_all(path.join("inside")).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(rights)).unwrap();
            path
        };
        let left = [made(&name(gone, 1, namespaces), 0o700), made(&name(id, started - 1, namespaces), 0o700)];
        let elsewhere = made("elsewhere", 0o700);
        let link = place.path().join(name(gone, 2, namespaces));
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        let stay = [
            made(&name(id, started, namespaces), 0o700),
            made(&name(gone, 3, namespaces), 0o755),
            made(&name(gone, 4, "1.1"), 0o700),
            made(&format!("{PREFIX}{gone}"), 0o700),
            made("writ-room-1-1-1-x", 0o700),
            elsewhere.join("inside"),
            link,
        ];
        let mine = folder_in(place.path()).unwrap();
        assert!(left.iter().all(|path| !path.exists()), "{left:?}");
        assert!(stay.iter().all(|path| path.exists()) && mine.path().exists(), "{stay:?}");
        assert_eq!(Maker::of(mine.path().file_name().unwrap().to_str().unwrap()), Some(own));
        let file = file_in(place.path()).unwrap();
        assert_eq!(fs::metadata(file.path()).unwrap().mode() & 0o777, FILE);
    }
}
