//! Files that arguments name, and standard input for `-`: read whole, or refused when they are too long.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::exit::Failure;

/// Longest input: a plan of a large estate.
const MAX_BYTES: u64 = 256 << 20;

/// The bytes of a file.
pub fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::could_not(format!("{}: {error}", file.display()));
    let mut bytes = Vec::new();
    let limit = MAX_BYTES + 1;
    if file == Path::new("-") {
        std::io::stdin().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::malformed(format!("{}: longer than {} MiB", file.display(), MAX_BYTES >> 20)));
    }
    Ok(bytes)
}

/// The text of a file; what is not UTF-8 in it is replaced.
pub fn text(file: &Path) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&bytes(file)?).into_owned())
}
