//! Names that are kept while a command runs, and given back.
//!
//! A file that does not exist cannot be protected by a mount, so something has to be there: see [`crate::plan::Reserve`]. Owns who needs it
//! for how long: each run records its names in a file that it holds a lock on, and whoever ends removes the names that no living run holds.
//! Its invariant: a name is removed only under the lock that every run holds from its look at the disk until its mounts stand, since a
//! mount vanishes with the name below it; and it is on record before it is made. A record whose run was killed has no lock, so the next run
//! removes what it left.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, flock, linkat, mknodat, openat2,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::plan::{Reserve, Reserved, is_reserve};

/// What a run keeps.
pub struct Names {
    folder: PathBuf,
    /// What lies ready to be used again: [`NAME`] and [`RECORD`].
    spare: PathBuf,
    /// Held while names are looked at and mounted.
    looking: Option<File>,
    /// Held until the run ends.
    record: Option<File>,
    /// Whether somebody else gives the names back.
    handed_over: bool,
}

const LOCK: &str = "lock";
/// A folder in the state folder.
const SPARE: &str = "spare";
/// There, a socket of the kind that keeps the name of a file: those are links to it.
const NAME: &str = "name";
/// There, a record of a run that has ended.
const RECORD: &str = "record";

impl Names {
    /// Before the disk is looked at.
    pub fn begin(state: &Path) -> io::Result<Self> {
        let folder = state.join("reserved");
        let looking = open_lock(&folder)?;
        flock(&looking, FlockOperation::LockShared)?;
        Ok(Self { folder, spare: state.join(SPARE), looking: Some(looking), record: None, handed_over: false })
    }

    /// Where records are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Folders that are on record, of runs that go on or were killed. To be asked after the disk was looked at: whoever made one that was seen
    /// there had it on record before.
    pub fn folders(&self) -> io::Result<BTreeSet<PathBuf>> {
        let mut found = BTreeSet::new();
        for record in records(&self.folder)? {
            found.extend(folders_of(&mut File::open(record)?)?);
        }
        Ok(found)
    }

    /// Before any is made.
    pub fn record(&mut self, reserved: &[Reserved]) -> io::Result<()> {
        if reserved.is_empty() {
            return Ok(());
        }
        let mut number = [0u8; 8];
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        let path = self.folder.join(format!("{:016x}", u64::from_ne_bytes(number)));
        // Until it has a lock it is nobody's, but nobody looks for those now. What it said before is mostly the same; to write it anew costs
        // some disks more than all the names.
        let again = renameat_with(CWD, self.spare.join(RECORD), CWD, &path, RenameFlags::NOREPLACE).is_ok();
        let mut file = File::options().read(true).write(true).create_new(!again).mode(0o600).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let bytes = encode(reserved);
        let mut said = Vec::new();
        (&file).take(bytes.len() as u64 + 1).read_to_end(&mut said)?;
        if said != bytes {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&bytes)?;
        }
        self.record = Some(file);
        Ok(())
    }

    /// Makes names of files, as links to one socket: a file for each would cost ten times that, and the more the more of them were removed
    /// lately. For a caller who is who made inside would be. What cannot be linked, on another disk or mount, is made inside.
    pub fn link(&self, reserved: &[Reserved]) {
        let mut files = reserved.iter().filter(|reserved| reserved.by == Reserve::File).peekable();
        let spare = self.spare.join(NAME);
        if files.peek().is_none() || !(is_reserve(&spare) || make_spare(&self.spare, &spare).is_ok()) {
            return;
        }
        let mut above: Option<(&Path, OwnedFd)> = None;
        for Reserved { path, .. } in files {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
            if above.as_ref().is_none_or(|(known, _)| *known != parent) {
                above = open_folder(parent).ok().map(|folder| (parent, folder));
            }
            if let Some((_, folder)) = &above {
                // Inside it is looked at once more.
                linkat(CWD, &spare, folder, name, AtFlags::empty()).unwrap_or_default();
            }
        }
    }

    /// The record, for who keeps the names when this process is gone: they are on record as long as anybody has it.
    pub fn shared(&self) -> io::Result<Option<OwnedFd>> {
        self.record.as_ref().map(|record| record.try_clone().map(OwnedFd::from)).transpose()
    }

    /// After every mount stands.
    pub fn placed(&mut self) {
        self.looking = None;
    }

    /// Leaves it to whoever calls [`sweep`] soon to give them back: removing folders waits for some disks.
    pub fn hand_over(&mut self) {
        self.handed_over = true;
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.looking = None;
        if self.record.take().is_some() && !self.handed_over {
            // What cannot be removed now stays on record, and is tried again by the next run.
            drop(clean(&self.folder));
        }
    }
}

/// Removes what runs that were killed have left below a state folder.
pub fn sweep(state: &Path) -> io::Result<()> {
    let folder = state.join("reserved");
    if folder.is_dir() { clean(&folder) } else { Ok(()) }
}

fn open_lock(folder: &Path) -> io::Result<File> {
    let open =
        || File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(folder.join(LOCK));
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            open()
        }
        other => other,
    }
}

fn make_spare(folder: &Path, name: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    match unlinkat(CWD, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(mknodat(CWD, name, FileType::Socket, Mode::empty(), 0)?),
        Err(error) => Err(error.into()),
    }
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// The records there are.
fn records(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths: io::Result<Vec<PathBuf>> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    Ok(paths?.into_iter().filter(|path| path.file_name() != Some(OsStr::new(LOCK))).collect())
}

/// The folders on a record, wherever it was read before.
pub fn folders_of(record: &mut File) -> io::Result<BTreeSet<PathBuf>> {
    let mut bytes = Vec::new();
    record.rewind()?;
    record.read_to_end(&mut bytes)?;
    let folders = decode(&bytes).into_iter().filter(|reserved| reserved.by == Reserve::Folder);
    Ok(folders.map(|reserved| reserved.path).collect())
}

fn clean(folder: &Path) -> io::Result<()> {
    let lock = open_lock(folder)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let mut ended: Vec<(PathBuf, File)> = Vec::new();
    let mut free: Vec<Reserved> = Vec::new();
    let mut held: Vec<Reserved> = Vec::new();
    for path in records(folder)? {
        let mut file = File::open(&path)?;
        let alive = flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let names = decode(&bytes);
        if alive {
            held.extend(names);
        } else {
            free.extend(names);
            ended.push((path, file));
        }
    }
    // What is deeper first, so that a folder is empty when its turn comes.
    free.sort_by(|one, other| other.path.cmp(&one.path));
    for reserved in free.iter().filter(|reserved| !held.iter().any(|other| other.path.starts_with(&reserved.path))) {
        // Somebody may have put something else there, or taken it away.
        remove(reserved).unwrap_or_default();
    }
    let spare = folder.with_file_name(SPARE).join(RECORD);
    for (path, _) in ended {
        if renameat_with(CWD, &path, CWD, &spare, RenameFlags::NOREPLACE).is_err() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn remove(reserved: &Reserved) -> Result<(), Errno> {
    let (Some(parent), Some(name)) = (reserved.path.parent(), reserved.path.file_name()) else { return Ok(()) };
    let parent = open_folder(parent)?;
    match reserved.by {
        Reserve::Folder => unlinkat(&parent, name, AtFlags::REMOVEDIR),
        Reserve::File => {
            let found = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
            if socket && found.st_mode & 0o777 == 0 { unlinkat(&parent, name, AtFlags::empty()) } else { Ok(()) }
        }
        Reserve::Here if is_reserve(&reserved.path) => unlinkat(&parent, name, AtFlags::empty()),
        Reserve::Here => Ok(()),
    }
}

fn encode(reserved: &[Reserved]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Reserved { path, by } in reserved {
        bytes.push(match by {
            Reserve::Folder => b'd',
            Reserve::File => b'f',
            Reserve::Here => b'h',
        });
        bytes.extend(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

/// What a record says, as far as it was written.
fn decode(bytes: &[u8]) -> Vec<Reserved> {
    let complete = bytes.split_inclusive(|byte| *byte == 0).filter_map(|entry| entry.strip_suffix(&[0]));
    let entry = |entry: &[u8]| {
        let (kind, path) = entry.split_first()?;
        let by = match kind {
            b'd' => Reserve::Folder,
            b'f' => Reserve::File,
            b'h' => Reserve::Here,
            _ => return None,
        };
        Some(Reserved { path: PathBuf::from(OsStr::from_bytes(path)), by })
    };
    complete.filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_used_again_says_what_is_kept_now() {
        let state = tempfile::tempdir().unwrap();
        let kept = |names: &[&str]| {
            let reserved: Vec<Reserved> =
                names.iter().map(|name| Reserved { path: state.path().join(name), by: Reserve::Folder }).collect();
            let mut run = Names::begin(state.path()).unwrap();
            run.record(&reserved).unwrap();
            let (said, wanted) = (run.folders().unwrap(), names.iter().map(|name| state.path().join(name)).collect());
            assert_eq!(said, wanted);
        };
        DirBuilder::new().create(state.path().join(SPARE)).unwrap();
        for names in [["a", "b"].as_slice(), &["a", "b"], &["a"], &["a", "b", "c"], &["d", "e", "f"]] {
            kept(names);
            assert!(state.path().join(SPARE).join(RECORD).exists());
        }
    }

    #[test]
    fn a_record_that_was_cut_short_is_read_as_far_as_it_goes() {
        let reserved = [
            Reserved { path: "/a b\nc".into(), by: Reserve::Folder },
            Reserved { path: "/a b\nc/d".into(), by: Reserve::File },
        ];
        let bytes = encode(&reserved);
        assert_eq!(decode(&bytes), reserved);
        assert_eq!(decode(&bytes[..bytes.len() - 1]), reserved[..1]);
    }
}
