//! Reading a file that may be anything: a pipe put where a policy should be would hold the reader up for ever.
//!
//! Owns the opening of files that somebody else named. Refuses pipes, sockets, devices, folders, and the kernel's files that have
//! content and no size, whose content may never end. Invariant: nothing here waits for another process.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// `O_NONBLOCK` on Linux: opening a pipe returns at once, and reading a plain file is as ever.
const NONBLOCK: i32 = 0o4000;

/// Opens a plain file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening some devices does something; a look at the name does not.
    if !fs::metadata(path)?.is_file() {
        return Err(not_plain());
    }
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(not_plain());
    }
    // A file that says it is empty and is not may have grown just now. If it still says so, it is one of the kernel's.
    if found.len() == 0 && file.read_at(&mut [0], 0)? > 0 && file.metadata()?.len() == 0 {
        return Err(not_plain());
    }
    Ok(file)
}

/// The bytes of a plain file; an error where there are more than `limit`.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(ErrorKind::FileTooLarge, format!("larger than {limit} bytes"));
    let file = open(path)?;
    if file.metadata()?.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
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
    use std::os::unix::net::UnixListener;

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
