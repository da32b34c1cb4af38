//! Reading a file that may be anything: a pipe put where a policy should be would hold the reader up for ever.
//!
//! Owns the opening of files and folders that somebody else named. Refuses pipes, sockets, devices, folders, and the kernel's files that have
//! content and no size, whose content may never end; and in a process that reads for another user, what that user may not read. Invariant:
//! nothing here waits for another process.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// `O_NONBLOCK` on Linux: opening a pipe returns at once, and reading a plain file is as ever.
const NONBLOCK: i32 = 0o4000;

/// A user for whom a process reads files, that may read more itself.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Its number.
    pub uid: u32,
    /// Its groups.
    pub groups: Vec<u32>,
    /// The folder of files that the process reads for itself.
    pub own: PathBuf,
}

static READER: OnceLock<Reader> = OnceLock::new();

/// From here on this process opens nothing but what that user may read, and its own files.
pub fn read_only_for(reader: Reader) {
    READER.get_or_init(|| reader);
}

impl Reader {
    /// Whether the bits of a file or folder give its user a right: 4 to read, 1 to pass.
    fn has(&self, found: &Metadata, right: u32) -> bool {
        let mode = found.mode();
        let bits = if found.uid() == self.uid {
            mode >> 6
        } else if self.groups.contains(&found.gid()) {
            mode >> 3
        } else {
            mode
        };
        bits & right != 0
    }

    /// Whether its user could have opened the file that was opened by this path. Access lists are not looked at: they count for nothing.
    fn may_read(&self, path: &Path, file: &File, found: &Metadata) -> io::Result<bool> {
        let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if plain && path.starts_with(&self.own) {
            return Ok(true);
        }
        let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let mut folders = real.ancestors().skip(1);
        let passes = folders.all(|folder| folder.symlink_metadata().is_ok_and(|found| self.has(&found, 1)));
        Ok(passes && self.has(found, 4))
    }
}

/// Opens a plain file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path).map(|(file, _)| file)
}

/// The file, and what is known of it.
fn opened(path: &Path) -> io::Result<(File, Metadata)> {
    // Opening some devices does something; a look at the name does not.
    if !fs::metadata(path)?.is_file() {
        return Err(not_plain());
    }
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(not_plain());
    }
    if let Some(reader) = READER.get()
        && !reader.may_read(path, &file, &found)?
    {
        let why = format!("user {} may not read it", reader.uid);
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    // A file that says it is empty and is not may have grown just now. If it still says so, it is one of the kernel's.
    if found.len() == 0 && file.read_at(&mut [0], 0)? > 0 && file.metadata()?.len() == 0 {
        return Err(not_plain());
    }
    Ok((file, found))
}

/// What a folder holds; in a process that reads for another user, one that this user may list.
pub fn folder(path: &Path) -> io::Result<fs::ReadDir> {
    if let Some(reader) = READER.get() {
        let file = File::open(path)?;
        let found = file.metadata()?;
        if !reader.may_read(path, &file, &found)? {
            let why = format!("user {} may not list it", reader.uid);
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
    }
    fs::read_dir(path)
}

/// The bytes of a plain file; an error where there are more than `limit`.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(ErrorKind::FileTooLarge, format!("larger than {limit} bytes"));
    let (file, found) = opened(path)?;
    let len = found.len();
    if len > limit {
        return Err(too_large());
    }
    // Room that grows as it is needed would be twice as much in the end.
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// The text of a plain file.
pub fn text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?).map_err(|_bytes| io::Error::new(ErrorKind::InvalidData, "not UTF-8"))
}

fn not_plain() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "not a plain file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_reader_is_held_by_the_bits_of_a_file_and_its_folders() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, path) = (dir.path().join("f"), dir.path().join("f/file"));
        fs::create_dir(&folder).unwrap();
        fs::write(&path, "text").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(dir.path(), 0o755);
        let found = fs::metadata(&path).unwrap();
        let may = |uid, groups: &[u32], own: &str| {
            let reader = Reader { uid, groups: groups.to_vec(), own: PathBuf::from(own) };
            let file = File::open(&path).unwrap();
            reader.may_read(&path, &file, &file.metadata().unwrap()).unwrap()
        };
        let (other, group) = (found.uid() + 1, found.gid());
        for (bits, folder_bits, as_other, as_group, as_owner) in [
            (0o604, 0o755, true, false, true),
            (0o640, 0o750, false, true, true),
            (0o644, 0o700, false, false, true),
            (0o600, 0o755, false, false, true),
            (0o044, 0o755, true, true, false),
        ] {
            mode(&path, bits);
            mode(&folder, folder_bits);
            let (other, group) = (may(other, &[], "/nowhere"), may(other, &[group], "/nowhere"));
            assert_eq!((other, group, may(found.uid(), &[], "/nowhere")), (as_other, as_group, as_owner), "{bits:o}");
        }
        assert!(may(other, &[], dir.path().to_str().unwrap()), "its own");
    }

    #[test]
    fn what_is_no_plain_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, socket, file) = (dir.path().join("pipe"), dir.path().join("socket"), dir.path().join("file"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _listening = UnixListener::bind(&socket).unwrap();
        fs::write(&file, "text").unwrap();
        let others = [Path::new("/dev/zero"), Path::new("/proc/self/pagemap"), Path::new("/proc/version"), dir.path()];
        for path in others.into_iter().chain([pipe.as_path(), &socket]) {
            assert!(read(path, 10).is_err(), "{}", path.display());
        }
        assert_eq!(
            (read(&file, 4).unwrap(), read(&file, 3).unwrap_err().kind()),
            (b"text".to_vec(), ErrorKind::FileTooLarge)
        );
        fs::write(&file, "").unwrap();
        assert_eq!(read(&file, 0).unwrap(), b"");
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&file, 1 << 30).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
