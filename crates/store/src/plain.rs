//! Reading a file that may be anything: a pipe put where a policy should be would hold the reader up for ever.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `O_NONBLOCK` on Linux: opening a pipe returns at once, and reading a plain file is as ever.
const NONBLOCK: i32 = 0o4000;

/// Opens a plain file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::new(ErrorKind::InvalidInput, "not a plain file")) }
}

/// The bytes of a plain file, at most `limit` of them and one more.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
